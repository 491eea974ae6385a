/*
 * closed_form_folded.c - the times of schedules that run in both directions: ZB-V, DualPipe and DualPipe-V.
 */
#include <math.h>

#include "model/cost/step/closed_form_schedule_internal.h"

/* A pass of one stage, on average: what a circle through many of them is made of. */
static double mean_of(const struct schedule_timing *timing, enum pass pass)
{
    return timing->t.sum.s[pass] / timing->p;
}

/* A pass of the model's first chunk, which may have fewer layers than others. */
static double first_chunk(const struct schedule_timing *timing, enum pass pass)
{
    return timing->first_layers * timing->t.layer.s[pass];
}

/*
 * --- ZB-V, by its programs (schedule_zero_bubble_v.c), of which n = 2p - 1 micro-batches are the pattern; f, i, w of a chunk.
 *
 *   steady    what a stage waits for is a matter of the passes' ratios: none for F = B = W, and for each stage after the first
 *             (of whole stages) the greatest of the differences below, which are circles of the programs
 *   few       a micro-batch goes all the way there and back, on the fold and on the first stage behind a w; each further one is
 *             I + W behind it, as the fold has both chunks' gradients one after the other
 *   the fold  is p - 1 passes from the first stage, before its first pass and after its last gradient (of forward passes those
 *             that wait for gradients, if these are slower); between them it has all of its passes to do but for weights'
 *             gradients, of which 2 (max(m, n) - p) + 2
 *   stage r   waits for its first gradient, which takes 2p - r forward passes, 2p - 1 - r back and 4 (p - 1) - 2r messages from
 *             its first pass on; meanwhile it has 2p - r forward passes down and p up, and p - r of i + w, of micro-batches
 *             that exist
 *   the head  is on the first stage, which waits for the first micro-batch to come back up, or has all of them one after the
 *             other (and of the other chunk the passes between: m - p of i + w, m - n of f) until the last one's gradient has
 *             gone down and come back
 */
static double first_gradient_seconds(const struct schedule_timing *timing, const struct pass_times *stage, double r)
{
    const struct pass_times *sum = &timing->t.sum, *inner = &timing->t.inner;
    double f = inner->s[PASS_FORWARD] / 2, i = inner->s[PASS_BACKWARD_INPUT] / 2, w = inner->s[PASS_BACKWARD_WEIGHT] / 2;
    double way_f = f, way_i = i;
    if (r <= 0)
        f = first_chunk(timing, PASS_FORWARD), i = first_chunk(timing, PASS_BACKWARD_INPUT),
        w = first_chunk(timing, PASS_BACKWARD_WEIGHT);
    double down = fmin(timing->m, 2 * timing->p - r), up = fmin(timing->m, timing->p), back = fmin(timing->m, timing->p - r);
    double way = sum->s[PASS_FORWARD] - r * way_f + sum->s[PASS_BACKWARD_INPUT] - r * way_i - i;
    double meanwhile =
        down * f + up * (stage->s[PASS_FORWARD] - f) + back * (work_of(stage, true) - stage->s[PASS_FORWARD] - i - w);
    return timing->m * work_of(stage, true) + way + (4 * (timing->p - 1) - 2 * r) * timing->message - meanwhile;
}

/* A chunk's pass on a stage without ends, on average. */
static double mean_chunk(const struct schedule_timing *timing, enum pass pass)
{
    return (timing->t.sum.s[pass] - timing->t.first.s[pass]) / (2 * (timing->p - 1));
}

/* Messages of a pattern that is full: 6 p - 8 on its longest way, as it fills and drains; behind it a micro-batch waits at each
 * of a stage's neighbours for what of a message the chunk's weights' gradients do not cover. */
static double folded_messages(const struct schedule_timing *timing)
{
    double behind = timing->m - 2 * timing->p + 1, neighbours = timing->p > 2 ? 2 : 1;
    if (behind < 0)
        return 2 * (timing->p - 1) * timing->message;
    return (6 * timing->p - 8) * timing->message +
           behind * neighbours * fmax(0, timing->message - mean_chunk(timing, PASS_BACKWARD_WEIGHT));
}

static double folded_seconds(const struct schedule_timing *timing)
{
    const struct pass_times *inner = &timing->t.inner;
    double f = mean_chunk(timing, PASS_FORWARD), i = mean_chunk(timing, PASS_BACKWARD_INPUT);
    double weights = fmin(2 * timing->m, 2 * (fmax(timing->m, 2 * timing->p - 1) - timing->p) + 2) / 2;
    return (timing->p - 1) * (fmax(f, i) + i) + folded_messages(timing) +
           timing->m * (inner->s[PASS_FORWARD] + inner->s[PASS_BACKWARD_INPUT]) + weights * inner->s[PASS_BACKWARD_WEIGHT];
}

static double head_chain_seconds(const struct schedule_timing *timing)
{
    const struct pass_times *first = &timing->t.first;
    double f = mean_chunk(timing, PASS_FORWARD), i = mean_chunk(timing, PASS_BACKWARD_INPUT),
           w = mean_chunk(timing, PASS_BACKWARD_WEIGHT);
    double own_f = first_chunk(timing, PASS_FORWARD), own_i = first_chunk(timing, PASS_BACKWARD_INPUT),
           own_w = first_chunk(timing, PASS_BACKWARD_WEIGHT);
    double way = 2 * timing->p - 1, up = timing->m * (work_of(first, true) - own_f - own_i - own_w);
    double between = fmax(0, timing->m - timing->p) * (own_i + own_w) + fmax(0, timing->m - way) * own_f;
    double weights = own_w + w - (first->s[PASS_BACKWARD_WEIGHT] - own_w);
    double chain = way * (f + i) + up + between + weights + 4 * (timing->p - 1) * timing->message;
    return fmax(chain, timing->m * work_of(first, true) + fmax(0, way - timing->m) * f);
}

double zero_bubble_v_seconds(const struct schedule_timing *timing, double slowest)
{
    const struct pass_times *inner = &timing->t.inner, *sum = &timing->t.sum;
    double f = mean_of(timing, PASS_FORWARD), i = mean_of(timing, PASS_BACKWARD_INPUT), w = mean_of(timing, PASS_BACKWARD_WEIGHT);
    double gap = fmax(fmax(i, f) - w, fmax(fmax(fabs(f - i), w - f) / 2, f - (i + w) / 2));
    double seconds = fmax(timing->m * slowest, folded_seconds(timing));
    if (timing->m >= 2 * timing->p - 1)
        seconds = fmax(seconds, timing->m * work_of(inner, true) + (timing->p - 1) * fmax(0, gap) + folded_messages(timing));
    double few = sum->s[PASS_FORWARD] + sum->s[PASS_BACKWARD_INPUT] + 4 * (timing->p - 1) * timing->message;
    few += timing->t.layers.s[PASS_BACKWARD_WEIGHT] / timing->p; /* a chunk's on the fold, and one on the first stage */
    few += (timing->m - 1) * (inner->s[PASS_BACKWARD_INPUT] + inner->s[PASS_BACKWARD_WEIGHT]);
    double first =
        fmax(first_gradient_seconds(timing, &timing->t.first, 0), first_gradient_seconds(timing, inner, timing->p - 1));
    return fmax(fmax(fmax(seconds, few), fmax(first, head_chain_seconds(timing))), sent_seconds(timing, 2) + timing->m * i + f);
}

/*
 * --- DualPipe, and its half on P places of a V. DualPipe is that of pp / 2 places, whose fold is between two stages, with half
 * as many micro-batches from either end: a place has two chunks of each. From the programs (schedule_dualpipe.c), f, i, w of a
 * chunk, c of a pair of chunks; n = 2 P - 1 micro-batches fill and drain:
 *
 *   a place     has all its work of m micro-batches to do, less what its pairs save, which at the first place are those of
 *               m - (3 P - 1) / 2 (of one place alone m - 3/2). Until the first micro-batch comes back there, 2 P - 1 chunks
 *               later, it has as many forward passes of its own first chunk; until the last gradient does, P and P - 1 of that
 *               chunk's gradients, of inputs and of weights
 *   the pattern the first place, where it is slow, sets the pace of m - n micro-batches only, the others are those of the
 *               average place; and what all wait for while it fills and drains, (P - 1)(c - i - w + f + max(0, i - w)) and
 *               max(0, (P - 1)(i - f) - f): DeepSeek's F&B + (B + W) - 3 W a place for F = B
 *
 * Messages. In flight are as many micro-batches as places, so that their circle holds all passes and two messages over each
 * boundary between stages, of which the V has two. A place alone waits for those of the first micro-batch's way there and back;
 * while the pattern fills and drains its longest way has 10 P - 17 of them (short ones 9 P - 16, long ones 11 P - 18), over
 * DualPipe's fold 10 P - 12: counted in the programs.
 */
struct two_ways {
    double m, places;
    double work;  /* of the average place without ends, a micro-batch */
    double saved; /* of that, by pairs */
    double circle, gap, message;
    bool spans; /* the fold is between stages */
};

/* Through a place with so much to do, that waits so long for the first to come back and the last. */
static double two_ways_seconds(const struct two_ways *w, double work, double waits, bool inside)
{
    double p = w->places, n = inside ? 0 : fmin(w->m, 2 * p - 1);
    double filling = w->spans ? fmax(1, 10 * p - 12) : 10 * p - 17, way = 4 * (p - 1) + (w->spans ? 2 : 0);
    double place = w->m * work - w->saved * fmax(0, w->m - fmax((3 * p - 1) / 2, p + 0.5)) + waits + way * w->message;
    double pattern = (w->m - n) * work + fmax(0, w->m - 2 * p + 1) * fmax(0, w->circle - work) + n * w->work + w->gap -
                     w->saved * fmax(0, w->m - p - 0.5);
    return fmax(place, pattern + filling * w->message);
}

double both_ways_seconds(const struct schedule_timing *timing)
{
    bool folded = timing->layout->schedule == SCHEDULE_DUALPIPEV;
    double halves = folded ? 1 : 2, places = timing->p / halves, chunks = 2 * places;
    double f = timing->t.layers.s[PASS_FORWARD] / chunks, i = timing->t.layers.s[PASS_BACKWARD_INPUT] / chunks,
           w = timing->t.layers.s[PASS_BACKWARD_WEIGHT] / chunks;
    double alone = work_of(&timing->t.inner, false), backward = timing->t.layers.s[PASS_BACKWARD] / chunks;
    double pair = (f + backward) * timing->pair / alone;
    const struct two_ways ways = {
        .m = timing->m / halves,
        .places = places,
        .work = 2 * (f + backward),
        .saved = 2 * (f + backward - pair),
        .circle = halves * work_of(&timing->t.sum, false) / timing->p + 4 * (1 - 1 / timing->p) * timing->message,
        .gap = (places - 1) * (pair - i - w + f + fmax(0, i - w)) + fmax(0, (places - 1) * (i - f) - f),
        .message = timing->message,
        .spans = !folded,
    };
    double way = 2 * places - 1, late = fmax(0, (places - 1) * (i - w)), own = timing->first_layers;
    const double *layer = timing->t.layer.s;
    double first = way * fmax(0, f - own * layer[PASS_FORWARD]);
    first += fmax(0, way * i - own * (places * layer[PASS_BACKWARD_INPUT] + (places - 1) * layer[PASS_BACKWARD_WEIGHT]));
    double inner = two_ways_seconds(&ways, halves * alone, late, true);
    double passes = fmax(inner, two_ways_seconds(&ways, halves * work_of(&timing->t.head, false), first, false));
    return fmax(passes, sent_seconds(timing, folded ? 2 : 1) + alone);
}
