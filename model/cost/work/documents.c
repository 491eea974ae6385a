#include "model/cost/work/documents.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

static double normal(double z)
{
    return 0.5 * erfc(-z * M_SQRT1_2);
}

/* --- one length */

/* log(m / d) - S^2 / 2: by how much d is below the median. */
static double below_median(const struct documents *d, double length)
{
    return log(d->mean / length) - 0.5 * d->spread * d->spread;
}

/* P(L > length) */
static double longer(const struct documents *d, double length)
{
    if (length <= 0)
        return 1;
    if (d->spread <= 0)
        return d->mean > length;
    return normal(below_median(d, length) / d->spread);
}

/* E[L^k; L > length] */
static double moment_above(const struct documents *d, int k, double length)
{
    double variance = d->spread * d->spread, whole = pow(d->mean, k) * exp(0.5 * k * (k - 1) * variance);
    if (length <= 0)
        return whole;
    if (d->spread <= 0)
        return d->mean > length ? whole : 0;
    return whole * normal((below_median(d, length) + k * variance) / d->spread);
}

/* E[L^k; L <= length], of which the difference to the whole would lose all digits where it is small. */
static double moment_below(const struct documents *d, int k, double length)
{
    double variance = d->spread * d->spread, whole = pow(d->mean, k) * exp(0.5 * k * (k - 1) * variance);
    if (length <= 0)
        return 0;
    if (d->spread <= 0)
        return d->mean > length ? 0 : whole;
    return whole * normal(-(below_median(d, length) + k * variance) / d->spread);
}

double documents_together(const struct documents *d, double distance)
{
    if (distance <= 0)
        return 1;
    if (d->spread <= 0)
        return fmax(0, 1 - distance / d->mean);
    return fmax(0, (moment_above(d, 1, distance) - distance * longer(d, distance)) / d->mean);
}

/* --- pairs */

enum { ONE_BY_ONE = 16 }; /* distances summed so; behind them q is smooth from token to token */

/* f(d) = (tokens - d) q(d), and its derivative. */
static double at_distance(const struct documents *d, double tokens, double distance)
{
    return (tokens - distance) * documents_together(d, distance);
}

static double slope_at(const struct documents *d, double tokens, double distance)
{
    return -documents_together(d, distance) - (tokens - distance) * longer(d, distance) / d->mean;
}

/* Integral of f from 0: of a length L up to x it is s L^2 / 2 - L^3 / 6, of longer ones s L x - (s + L) x^2 / 2 + x^3 / 3. */
static double integral_to(const struct documents *d, double s, double x)
{
    double below = 0.5 * s * moment_below(d, 2, x) - moment_below(d, 3, x) / 6;
    double above = (s * x - 0.5 * x * x) * moment_above(d, 1, x) - (0.5 * s * x * x - x * x * x / 3) * longer(d, x);
    return (below + above) / d->mean;
}

/* Equal documents: the sum of (s - d)(1 - d / m) over d = 0 .. last. */
static double pairs_of_equal(double mean, double tokens, double distances)
{
    double last = fmin(distances - 1, floor(mean)), n = last + 1;
    double sum = 0.5 * last * n, squares = last * n * (2 * last + 1) / 6;
    return tokens * n - (1 + tokens / mean) * sum + squares / mean;
}

double documents_pairs(const struct documents *d, double tokens, double window)
{
    double n = window > 0 && window < tokens ? window : tokens; /* distances 0 .. n - 1 */
    if (d->mean <= 0)
        return tokens * n - 0.5 * n * (n - 1);
    if (d->spread <= 0)
        return pairs_of_equal(d->mean, tokens, n);
    double pairs = 0, near = fmin(n, ONE_BY_ONE);
    for (int distance = 0; distance < near; distance++)
        pairs += at_distance(d, tokens, distance);
    if (n <= near)
        return pairs;
    return pairs + integral_to(d, tokens, n) - integral_to(d, tokens, near) +
           0.5 * (at_distance(d, tokens, near) - at_distance(d, tokens, n)) +
           (slope_at(d, tokens, n) - slope_at(d, tokens, near)) / 12; /* Euler and Maclaurin */
}

/* --- pieces */

double documents_pieces(const struct documents *d, double tokens, double longer_than)
{
    if (longer_than >= tokens)
        return 0;
    return at_distance(d, tokens, longer_than) - at_distance(d, tokens, longer_than + 1);
}

/* How many lengths from the median on, in standard deviations of their logarithm, all but 1e-15 of them are within. */
#define ALL_LENGTHS 8.0

/* Nearly all tokens are in documents longer than the first, so that q is a straight line up to there; hardly any in documents
 * longer than the second, behind which it is nothing. */
static double shortest(const struct documents *d)
{
    return d->mean * exp(-0.5 * d->spread * d->spread - ALL_LENGTHS * d->spread);
}

static double longest(const struct documents *d)
{
    return d->mean * exp(0.5 * d->spread * d->spread + ALL_LENGTHS * d->spread);
}

/* Rows k to k + n - 1, of which row i has p(i tile) tiles of min(i + 1, across) blocks: all at the middle one. That is exact of
 * tiles where p is a straight line, and of blocks but for what a product of two lines has more. */
static void add_rows(const struct documents *d, double tokens, int tile, double across, double k, double n,
                     struct document_tiles *sum)
{
    double middle = k + 0.5 * (n - 1), pieces = n * documents_pieces(d, tokens, middle * tile);
    sum->tiles += pieces;
    sum->blocks += pieces * fmin(middle + 1, across);
}

static void add_straight(const struct documents *d, double tokens, int tile, double across, double k, double n,
                         struct document_tiles *sum)
{
    add_rows(d, tokens, tile, across, k, n, sum);
    if (n < 2 || k >= across)
        return;
    double first = documents_pieces(d, tokens, k * tile), last = documents_pieces(d, tokens, (k + n - 1) * tile);
    sum->blocks += (last - first) / (n - 1) * n * (n * n - 1) / 12;
}

struct document_tiles documents_tiles(const struct documents *d, double tokens, double window, int tile)
{
    struct document_tiles sum = {0};
    double across = window > 0 ? 1 + ceil((window - 1) / tile) : INFINITY;
    double rows = ceil(tokens / tile), widens = fmin(1.0 / 16, d->spread / 12), end = longest(d), n;
    double straight = fmin(rows, floor((shortest(d) - 1) / tile) + 1);
    for (double k = 0; k < rows && k * tile <= end; k += n) { /* far away several rows at once */
        if (k < straight) {
            n = fmin(straight, k < across ? across : INFINITY) - k;
            add_straight(d, tokens, tile, across, k, n, &sum);
        } else {
            n = fmin(fmax(1, floor(k * widens)), rows - k);
            add_rows(d, tokens, tile, across, k, n, &sum);
        }
    }
    return sum;
}

double documents_longest(const struct documents *d, double tokens, double sequences)
{
    double low = 0, high = tokens;
    while (high - low > 1) {
        double middle = 0.5 * (low + high);
        if (sequences * documents_pieces(d, tokens, middle) > M_LN2) /* P(none) = exp(-expected) */
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* --- what is asked again and again */

static bool same_question(const struct documents_question *a, const struct documents_question *b)
{
    return memcmp(a, b, sizeof *a) == 0; /* doubles and one integer as wide: no gaps */
}

struct documents_walk documents_walk(struct documents_memo *memo, const struct documents_question *q)
{
    for (int i = 0; memo && i < memo->n; i++)
        if (same_question(&memo->kept[i].question, q))
            return memo->kept[i].walk;
    const struct documents lengths = {.mean = q->mean, .spread = q->spread};
    struct documents_walk walk = {.tiles = documents_tiles(&lengths, q->tokens, q->window, (int)q->tile),
                                  .longest = documents_longest(&lengths, q->tokens, q->sequences)};
    if (!memo)
        return walk;
    memo->kept[memo->next] = (struct documents_kept){*q, walk};
    memo->next = (memo->next + 1) % DOCUMENTS_KEPT;
    memo->n = memo->n < DOCUMENTS_KEPT ? memo->n + 1 : DOCUMENTS_KEPT;
    return walk;
}

/* --- variance */

enum { NODES = 1024, PHASES = 1024 };

/* Pairs of a piece less half its tokens, n (n + 1) / 2 - n / 2 or w n - w (w - 1) / 2 - n / 2: half of all tokens are the same of
 * every sequence. */
static double piece_pairs(double length, double window)
{
    return length <= window ? 0.5 * length * length : (window - 0.5) * length - 0.5 * window * (window - 1);
}

/* E[X^k; X <= length] of a document's length, or of what is left of the one that a sequence begins in (density P(L > x) / m). */
static double moment_of(const struct documents *d, bool rest, int k, double length)
{
    if (!rest)
        return moment_below(d, k, length);
    return (pow(length, k + 1) * longer(d, length) + moment_below(d, k + 1, length)) / ((k + 1) * d->mean);
}

/* E[h^power X^k; X <= length] with h = piece_pairs(X). */
static double reward_moment(const struct documents *d, bool rest, int power, int k, double length, double window)
{
    double w = window, low = fmin(length, w), a = w - 0.5, b = -0.5 * w * (w - 1);
    double polynomial[3] = {power == 0 ? 1 : power == 1 ? b : b * b, power == 1 ? a : 2 * a * b, a * a};
    double sum = moment_of(d, rest, k + 2 * power, low) / (1 << power);
    for (int i = 0; i <= power && length > w; i++)
        sum += polynomial[i] * (moment_of(d, rest, k + i, length) - moment_of(d, rest, k + i, w));
    return sum;
}

/* E[h^power max(x - X, 0)]: its second differences are what hat functions on the grid see, so that sums over nodes keep the
 * moments of h exactly, and those of h X. */
static double ramp(const struct documents *d, bool rest, int power, double x, double window)
{
    return x * reward_moment(d, rest, power, 0, x, window) - reward_moment(d, rest, power, 1, x, window);
}

/* A length on the grid: its probability at node k, and with it h and h^2. */
struct node {
    double of[3];
};

static void nodes_of(const struct documents *d, bool rest, double step, double window, struct node nodes[NODES + 1])
{
    for (int power = 0; power <= 2; power++) {
        double before = 0, here = 0, next;
        for (int k = 0; k <= NODES; k++) {
            next = ramp(d, rest, power, (k + 1) * step, window);
            nodes[k].of[power] = (next - 2 * here + before) / step;
            before = here;
            here = next;
        }
    }
}

/* Moments of the pairs of pieces behind a border, by the node of what is left there. */
struct behind {
    struct node nodes[NODES + 1]; /* lengths of the document that begins there */
    double first[NODES + 1], second[NODES + 1];
};

/* The moments with node i left, from those with less left. What a document shorter than half a step takes of the grid is node 0:
 * it does not go on, so (`again`) another one begins there, and its share stands on both sides; otherwise those of node i are
 * known, and are what is behind it. */
static void moments_at(struct behind *b, double left, double window, int i, bool again, double out[2])
{
    const struct node *nodes = b->nodes;
    double reach = 0, h = piece_pairs(left, window), one = 0, two = 0;
    for (int k = 0; k <= i; k++) {
        reach += nodes[k].of[0];
        one += nodes[k].of[1] + (again && k == 0 ? 0 : nodes[k].of[0] * b->first[i - k]);
    }
    double other = again ? 1 - nodes[0].of[0] : 1;
    out[0] = (one + (1 - reach) * h) / other;
    if (again)
        b->first[i] = out[0];
    for (int k = 0; k <= i; k++)
        two += nodes[k].of[2] + 2 * nodes[k].of[1] * b->first[i - k] + (again && k == 0 ? 0 : nodes[k].of[0] * b->second[i - k]);
    out[1] = (two + (1 - reach) * h * h) / other;
    if (again)
        b->second[i] = out[1];
}

static double variance_on_grid(const struct documents *d, double tokens, double window)
{
    struct behind *b = memory_new(1, sizeof *b);
    double step = tokens / NODES, moments[2];
    nodes_of(d, false, step, window, b->nodes);
    for (int i = 0; i <= NODES; i++)
        moments_at(b, i * step, window, i, true, moments);
    nodes_of(d, true, step, window, b->nodes);
    moments_at(b, tokens, window, NODES, false, moments);
    free(b);
    return fmax(0, moments[1] - moments[0] * moments[0]);
}

/* Of equal documents a sequence is known by where in one it begins. */
static double variance_of_equal(double mean, double tokens, double window)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < PHASES; i++) {
        double first = fmin(tokens, mean * (i + 0.5) / PHASES), left = tokens - first, whole = floor(left / mean);
        double pairs = piece_pairs(first, window) + whole * piece_pairs(mean, window) + piece_pairs(left - whole * mean, window);
        sum += pairs / PHASES;
        squares += pairs * pairs / PHASES;
    }
    return fmax(0, squares - sum * sum);
}

double documents_variation(const struct documents *d, double tokens, double window)
{
    double w = window > 0 && window < tokens ? window : tokens;
    if (d->mean <= 0)
        return 0;
    double variance = d->spread > 0 ? variance_on_grid(d, tokens, w) : variance_of_equal(d->mean, tokens, w);
    return sqrt(variance) / documents_pairs(d, tokens, w);
}
