/* Masks between documents: pairs, pieces and tiles of equal documents counted one by one, of log-normal ones by their definition
 * and by drawing them; what a kernel and a ring make of them. */
#include <check.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdlib.h>

#include "model/cost/kernel/attention.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/step/packing.h"
#include "model/cost/work/documents.h"
#include "model/spec/catalog.h"
#include "shapes.h"

/* --- equal documents, counted --- */

enum { TILE = 128 };

struct counted {
    double pairs, squares, tiles, blocks;
};

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Pairs of the queries from `from` to `to` of a sequence that begins at token `phase` of a document. */
static double count_pairs(int phase, int length, int window, int from, int to)
{
    double pairs = 0;
    for (int t = from; t < to; t++)
        pairs += 1 + smaller(smaller(t, (t + phase) % length), window - 1);
    return pairs;
}

static void count_tiles(int phase, int length, int tokens, int window, struct counted *sum)
{
    for (int begin = 0; begin < tokens;) {
        int end = begin + length - (begin + phase) % length;
        int tiles = ((end < tokens ? end : tokens) - begin + TILE - 1) / TILE, band = 1 + (window - 1 + TILE - 1) / TILE;
        sum->tiles += tiles;
        for (int k = 1; k <= tiles; k++)
            sum->blocks += k < band ? k : band;
        begin = end;
    }
}

/* The mean over all places of a document at which a sequence can begin. */
static struct counted count_all(int length, int tokens, int window)
{
    struct counted sum = {0};
    for (int phase = 0; phase < length; phase++) {
        double pairs = count_pairs(phase, length, window, 0, tokens);
        sum.pairs += pairs / length;
        sum.squares += pairs * pairs / length;
        count_tiles(phase, length, tokens, window, &sum);
    }
    sum.tiles /= length;
    sum.blocks /= length;
    return sum;
}

static const struct {
    int length, tokens, window;
} equal[] = {{1, 64, 0},     {2, 64, 0},      {7, 64, 0},      {64, 64, 0},     {100, 64, 0},     {300, 1024, 0},
             {300, 1024, 8}, {128, 1024, 0},  {1000, 1024, 0}, {2000, 1024, 0}, {700, 2048, 512}, {700, 2048, 513},
             {50, 1000, 20}, {333, 777, 100}, {10, 777, 100},  {600, 4096, 0}};

START_TEST(equal_documents_are_counted)
{
    int length = equal[_i].length, tokens = equal[_i].tokens, window = equal[_i].window;
    const struct documents documents = {.mean = length};
    struct counted counted = count_all(length, tokens, window ? window : tokens);
    struct document_tiles tiles = documents_tiles(&documents, tokens, window, TILE);
    double variance = counted.squares - counted.pairs * counted.pairs;
    ck_assert_double_eq_tol(documents_pairs(&documents, tokens, window), counted.pairs, 1e-10 * counted.pairs);
    ck_assert_double_eq_tol(tiles.tiles, counted.tiles, 1e-9 * counted.tiles);
    ck_assert_double_eq_tol(tiles.blocks, counted.blocks, 1e-9 * counted.blocks);
    /* whole tokens where the formula has real ones: a part in the length of a document */
    double variation = documents_variation(&documents, tokens, window);
    ck_assert_double_eq_tol(variation, sqrt(variance) / counted.pairs, 2.0 / length * variation + 1e-3 / length);
}
END_TEST

/* A piece of n tokens has n (n + 1) / 2 pairs: 10 tokens of documents of 4 begin with 4, 3, 2 or 1 and are 4 4 2, 3 4 3, 2 4 4
 * and 1 4 4 1: 23, 22, 23 and 22 pairs. */
START_TEST(by_hand)
{
    const struct documents documents = {.mean = 4};
    ck_assert_double_eq_tol(documents_pairs(&documents, 10, 0), 22.5, 1e-12);
    ck_assert_double_eq_tol(documents_pieces(&documents, 10, 0), 13.0 / 4, 1e-12);
    ck_assert_double_eq_tol(documents_pieces(&documents, 10, 1), 11.0 / 4, 1e-12);
    ck_assert_double_eq_tol(documents_pieces(&documents, 10, 3), 7.0 / 4, 1e-12);
    ck_assert_double_eq_tol(documents_pieces(&documents, 10, 4), 0, 1e-12);
    ck_assert_double_eq_tol(documents_longest(&documents, 10, 1), 4, 1); /* to a token */
}
END_TEST

/* --- log-normal ones --- */

static const struct {
    double mean, spread, tokens, window;
} drawn[] = {{1200, 1.1, 8192, 0}, {1200, 1.1, 8192, 1024}, {300, 2, 4096, 0},      {50, 0.5, 4096, 0},
             {700, 0.1, 8192, 0},  {20000, 1.5, 8192, 0},   {1200, 0.8, 131072, 0}, {3, 0.7, 512, 0}};
enum { N_DRAWN = sizeof drawn / sizeof *drawn };

/* Integral of P(L > x) / m from a distance on, over the logarithm of x by Simpson's rule. */
static double by_definition(const struct documents *d, double distance)
{
    enum { PANELS = 20000 };
    double centre = log(d->mean) - 0.5 * d->spread * d->spread, sum = 0;
    double low = log(distance), high = fmax(low, centre) + 12 * d->spread + d->spread * d->spread, h = (high - low) / PANELS;
    for (int i = 0; i <= PANELS; i++) {
        double x = low + i * h, weight = i == 0 || i == PANELS ? 1 : i % 2 ? 4 : 2;
        sum += weight * exp(x) * gsl_cdf_ugaussian_Q((x - centre) / d->spread);
    }
    return sum * h / 3 / d->mean;
}

START_TEST(age_is_stationary)
{
    const struct documents d = {drawn[_i].mean, drawn[_i].spread};
    for (double distance = 1; distance < drawn[_i].tokens; distance *= 3) {
        double expected = by_definition(&d, distance);
        ck_assert_double_eq_tol(documents_together(&d, distance), expected, 1e-7 * expected + 1e-12);
    }
}
END_TEST

/* One distance after the other. */
START_TEST(sums_are_those_of_all_distances)
{
    const struct documents d = {drawn[_i].mean, drawn[_i].spread};
    double s = drawn[_i].tokens, w = drawn[_i].window > 0 ? drawn[_i].window : s, pairs = 0, tiles = 0, blocks = 0;
    for (double x = 0; x < w; x++)
        pairs += (s - x) * documents_together(&d, x);
    for (double k = 0; k * TILE < s; k++) {
        double pieces = documents_pieces(&d, s, k * TILE);
        tiles += pieces;
        blocks += pieces * fmin(k + 1, 1 + ceil((w - 1) / TILE));
    }
    struct document_tiles summed = documents_tiles(&d, s, drawn[_i].window, TILE);
    ck_assert_double_eq_tol(documents_pairs(&d, s, drawn[_i].window), pairs, 1e-6 * pairs);
    ck_assert_double_eq_tol(summed.tiles, tiles, 1e-4 * tiles);
    ck_assert_double_eq_tol(summed.blocks, blocks, 5e-4 * blocks);
}
END_TEST

/* Hardly different lengths: rows in which q is a straight line are taken together, those behind the longest document left out. */
START_TEST(straight_rows_are_those_one_by_one)
{
    static const double spreads[] = {0, 1e-3, 0.02, 0.3}, windows[] = {0, 5000, 1}, means[] = {100, 100000, 4e6};
    double s = 1 << 20, spread = spreads[_i / 9], window = windows[_i / 3 % 3], mean = means[_i % 3], tiles = 0, blocks = 0;
    const struct documents d = {mean, spread};
    for (double k = 0; k * TILE < s; k++) {
        double pieces = documents_pieces(&d, s, k * TILE);
        tiles += pieces;
        blocks += pieces * (window > 0 ? fmin(k + 1, 1 + ceil((window - 1) / TILE)) : k + 1);
    }
    struct document_tiles summed = documents_tiles(&d, s, window, TILE);
    ck_assert_double_eq_tol(summed.tiles, tiles, (spread > 0 ? 1e-4 : 1e-9) * tiles);
    ck_assert_double_eq_tol(summed.blocks, blocks, (spread > 0 ? 5e-4 : 1e-9) * blocks);
}
END_TEST

/* So that the sums take no longer of a sequence without end: a document of m tokens has m / TILE tiles, and half of one more. */
START_TEST(long_sequences_take_no_longer)
{
    static const double spreads[] = {0, 1e-3};
    const struct documents d = {1e9 + 1, spreads[_i]};
    double tokens = 1e14;
    struct document_tiles summed = documents_tiles(&d, tokens, 0, TILE);
    ck_assert_double_eq_tol(summed.tiles, tokens / TILE, 1e-4 * tokens / TILE);
}
END_TEST

START_TEST(a_memo_answers_the_same)
{
    struct documents_memo memo = {0};
    for (int again = 0; again < 3; again++)
        for (int i = 0; i < N_DRAWN; i++)
            for (int tile = 64; tile <= 256; tile *= 2) {
                const struct documents_question question = {.mean = drawn[i].mean,
                                                            .spread = drawn[i].spread,
                                                            .tokens = drawn[i].tokens,
                                                            .window = drawn[i].window,
                                                            .sequences = 1 + i,
                                                            .tile = tile};
                struct documents_walk kept = documents_walk(&memo, &question), fresh = documents_walk(NULL, &question);
                ck_assert_double_eq(kept.tiles.tiles, fresh.tiles.tiles);
                ck_assert_double_eq(kept.tiles.blocks, fresh.tiles.blocks);
                ck_assert_double_eq(kept.longest, fresh.longest);
            }
}
END_TEST

static struct packing packing_drawn(int i)
{
    struct packing p = {.documents = {drawn[i].mean, drawn[i].spread},
                        .tokens = drawn[i].tokens,
                        .window = drawn[i].window,
                        .whole = drawn[i].window > 0 ? 0 : 1,
                        .windowed = drawn[i].window > 0 ? 1 : 0};
    p.pairs = documents_pairs(&p.documents, p.tokens, p.window);
    return p;
}

/* Sequences drawn document by document: their mean and their spread, within four standard errors. */
START_TEST(draws_have_the_mean_and_the_spread)
{
    enum { N = 20000 };
    struct packing p = packing_drawn(_i);
    double sum = 0, squares = 0, fourths = 0, mean, variance;
    double *pairs = malloc(N * sizeof *pairs);
    ck_assert_ptr_nonnull(pairs);
    for (uint64_t i = 0; i < N; i++) {
        struct random_stream stream = random_stream_named(5, 6, i);
        sum += pairs[i] = packing_draw(&p, &stream);
    }
    mean = sum / N;
    for (int i = 0; i < N; i++) {
        double from_mean = pow(pairs[i] - mean, 2);
        squares += from_mean;
        fourths += from_mean * from_mean;
    }
    free(pairs);
    variance = squares / N;
    double error = 4 * sqrt((fourths / N - variance * variance) / N); /* of the variance */
    double expected = pow(documents_variation(&p.documents, p.tokens, p.window), 2);
    ck_assert_double_eq_tol(mean, 1, 4 * sqrt(variance / N));
    ck_assert_double_eq_tol(variance, expected, error + 0.01 * expected);
}
END_TEST

START_TEST(limits)
{
    const struct documents none = {0}, endless = {.mean = 1e9}, random = {.mean = 1e9, .spread = 1};
    double causal = 4096.0 * 4097 / 2, banded = 4096.0 * 512 - 512.0 * 511 / 2, before = INFINITY;
    ck_assert_double_eq(documents_pairs(&none, 4096, 0), causal);
    ck_assert_double_eq(documents_pairs(&none, 4096, 512), banded);
    ck_assert_double_eq_tol(documents_pairs(&endless, 4096, 0), causal, 1e-5 * causal);
    ck_assert_double_eq_tol(documents_pairs(&random, 4096, 512), banded, 1e-5 * banded);
    ck_assert_double_eq(documents_variation(&none, 4096, 0), 0);
    ck_assert_double_lt(documents_variation(&random, 4096, 0), 0.01);
    for (double mean = 65536; mean >= 1; mean /= 2) { /* shorter documents leave less */
        const struct documents d = {.mean = mean, .spread = 1.1};
        double pairs = documents_pairs(&d, 4096, 0);
        ck_assert_double_lt(pairs, before);
        ck_assert_double_le(documents_pairs(&d, 4096, 512), pairs);
        before = pairs;
    }
    ck_assert_double_ge(before, 4096);
}
END_TEST

/* --- kernels and rings --- */

/* One layer on cp ranks; 16 heads of 128, four of keys and values. */
static void shape_documents(struct shape *s, int cp, struct documents documents)
{
    struct diags diags = {0};
    shape_megascale(s);
    ck_assert_int_eq(catalog_cluster("dgx-h100", &s->cluster, &diags), STATUS_OK);
    s->model.heads = 16, s->model.kv_heads = 4, s->model.head_dim = 128, s->model.hidden = 2048, s->model.ffn_hidden = 8192;
    s->job.seq_len = 8192;
    s->job.documents = documents;
    s->layout = (struct layout){.tp = 1, .cp = cp, .pp = 1, .vpp = 1, .dp = 1, .ep = 1, .micro_batch = 1, .cp_comm = CP_RING};
    s->layout.features = FEATURE_BIT(FLASH_ATTENTION3) | FEATURE_BIT(FUSED_OPS);
    s->setting.gpus = cp;
    diags_free(&diags);
}

static struct work attention_work(const struct shape *s)
{
    struct work_table table = {0};
    struct work found = {0};
    work_add_pass(&table, &s->layout, &s->setting, PASS_FORWARD, (struct layer_range){0, 1}, false, false);
    for (int32_t i = 0; i < table.n_items; i++)
        if (table.items[i].kind == WORK_ATTENTION)
            found = table.items[i];
    work_table_free(&table);
    return found;
}

static double pass_seconds(const struct shape *s, enum pass pass)
{
    struct work_table table = {0};
    struct machine machine = machine_of(&s->layout, &s->setting);
    int32_t work = work_add_pass(&table, &s->layout, &s->setting, pass, (struct layer_range){0, 1}, false, false);
    double seconds = cost_seconds(work_cost(&machine, &table, work));
    work_table_free(&table);
    return seconds;
}

/* Of k ranks one has chunks r and 2 k - 1 - r: the fullest is found by counting, and so are the first rank's pairs with its own
 * keys. */
START_TEST(chunks_are_counted)
{
    static const int lengths[] = {100, 700, 2048, 5000};
    int length = lengths[_i], tokens = 8192;
    for (int k = 2; k <= 8; k *= 2) {
        struct shape s;
        double most = 0, own = 0, all = 0;
        int chunk = tokens / (2 * k), last = tokens - chunk;
        shape_documents(&s, k, (struct documents){.mean = length});
        struct work work = attention_work(&s);
        for (int r = 0; r < k; r++) {
            double pairs = 0;
            for (int phase = 0; phase < length; phase++)
                pairs += (count_pairs(phase, length, tokens, r * chunk, (r + 1) * chunk) +
                          count_pairs(phase, length, tokens, tokens - (r + 1) * chunk, tokens - r * chunk)) /
                         length;
            most = fmax(most, pairs);
            all += pairs;
        }
        for (int phase = 0; phase < length; phase++)
            for (int t = 0; t < tokens; t++) {
                int first = t - (t + phase) % length, begin = t < chunk ? 0 : last; /* of its document; of its chunk */
                if (t >= chunk && t < last)
                    continue;
                own += 1 + smaller(t - begin, t - first);
                if (t >= last && first < chunk)
                    own += chunk - (first > 0 ? first : 0);
            }
        ck_assert_double_eq_tol(work.attention.pairs, all / k, 1e-9 * all);
        ck_assert_double_eq_tol(work.attention.documents.fullest, most / all * k, 1e-9);
        ck_assert_double_eq_tol(work.attention.documents.own, own / length / all * k, 1e-9);
        ck_assert_double_eq_tol(work.flops, 2.0 * 256 * 16 * all / k, 1e-9 * work.flops); /* executed: the mean rank's */
    }
}
END_TEST

/* Documents that never end cost what sequences do: the same tiles and blocks, the same ring. */
START_TEST(endless_documents_cost_what_sequences_do)
{
    for (int cp = 1; cp <= 8; cp *= 2) {
        bool gathers = _i > 0, windowed = _i > 1; /* a ring's first step has most of a window, which whole sequences leave out */
        struct shape whole, endless;
        shape_documents(&whole, cp, (struct documents){0});
        shape_documents(&endless, cp, (struct documents){.mean = 1e9});
        whole.layout.cp_comm = endless.layout.cp_comm = gathers ? CP_ALL_GATHER : CP_RING;
        whole.job.window = endless.job.window = windowed ? 1024 : 0;
        if (windowed)
            whole.layout.features = endless.layout.features |= FEATURE_BIT(SLIDING_WINDOW);
        if (cp > 1) /* a tile more of a rank's share, half full, is where chunks may begin */
            whole.job.seq_len = endless.job.seq_len = 1 << 20;
        for (enum pass pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
            double seconds = pass_seconds(&whole, pass);
            ck_assert_double_eq_tol(pass_seconds(&endless, pass), seconds, (cp > 1 ? 0.005 : 1e-4) * seconds);
        }
    }
}
END_TEST

/* Also where a ring waits for its exchanges, all of them or a part: links slower by this factor. */
START_TEST(endless_documents_wait_as_sequences_do)
{
    static const double slower[] = {1, 10, 100, 200, 300, 450, 650, 1000, 2000};
    for (int cp = 2; cp <= 8; cp *= 2) {
        struct shape whole, endless;
        shape_documents(&whole, cp, (struct documents){0});
        shape_documents(&endless, cp, (struct documents){.mean = 1e9, .spread = 0.5 * (_i % 2)});
        whole.job.seq_len = endless.job.seq_len = 1 << 18;
        whole.cluster.gpu.nccl_rate = endless.cluster.gpu.nccl_rate /= slower[_i];
        for (enum pass pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
            double seconds = pass_seconds(&whole, pass);
            ck_assert_double_eq_tol(pass_seconds(&endless, pass), seconds, 0.005 * seconds);
        }
    }
}
END_TEST

/* Nothing jumps where documents are as long as a rank's share of a sequence, or a chunk, on one rank or several: means a per cent
 * apart take no more than 4 % more or less (a tile more of the longest document), and lengths that hardly differ what equal ones
 * do. */
START_TEST(near_a_rank_s_share_nothing_jumps)
{
    int cp = 1 << _i % 4;
    for (enum pass pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++)
        for (int part = 1; part <= 2 * cp; part *= 2) {
            double before = 0, share = 32768.0 / part;
            for (double mean = 0.95 * share; mean < 1.05 * share; mean += 0.01 * share) {
                struct shape s;
                shape_documents(&s, cp, (struct documents){.mean = mean});
                s.job.seq_len = 32768;
                s.layout.cp_comm = _i < 4 ? CP_RING : CP_ALL_GATHER;
                double alike = pass_seconds(&s, pass);
                s.job.documents.spread = 1e-9;
                ck_assert_double_eq_tol(pass_seconds(&s, pass), alike, 1e-3 * alike);
                if (before > 0)
                    ck_assert_double_eq_tol(alike, before, 0.04 * before);
                before = alike;
            }
        }
}
END_TEST

/* In a step of a ring a rank has its own keys or another's, never all of them: what tiles cost does not grow with the ranks. */
START_TEST(a_ring_has_a_rank_s_tiles_at_a_time)
{
    struct shape s;
    shape_documents(&s, 8, (struct documents){.mean = 300});
    s.job.seq_len = 1 << 17;
    struct work work = attention_work(&s);
    struct work_attention step = work.attention;
    double tile_s = s.cluster.gpu.attention.tile_overhead_s;
    step.key_tokens /= 8, step.pairs *= 1e-9; /* what is left are tiles: 3.3 to a document, with those that are not full */
    double tiles = 16 * ((1 << 17) / 8 / TILE + (1 << 17) / 8 / 300.0 * 0.75);
    s.cluster.gpu.memory.bandwidth_fraction = 0;
    struct cost cost = attention_cost(&s.cluster.gpu, &step, true);
    double expected = 2.5 * tile_s * tiles / s.cluster.gpu.sms;
    ck_assert_double_gt(tile_s, 0);
    ck_assert_double_eq_tol(cost.compute_s, expected, 0.2 * expected);
}
END_TEST

/* Shorter documents never take longer, in one call or in a ring, but for the tiles that begin anew with them; and what is not
 * fused computes everything. */
START_TEST(shorter_documents_take_less)
{
    for (int cp = 1; cp <= 4; cp *= 4) {
        struct shape s;
        double before[N_PASSES];
        shape_documents(&s, cp, (struct documents){0});
        for (enum pass pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++)
            before[pass] = pass_seconds(&s, pass) * 1.01; /* tiles that begin anew */
        for (double mean = 1 << 20; mean > 256; mean /= 4) {
            s.job.documents = (struct documents){mean, 1.1};
            for (enum pass pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
                double seconds = pass_seconds(&s, pass);
                ck_assert_double_le(seconds, before[pass]);
                before[pass] = seconds;
            }
        }
        s.layout.features = FEATURE_BIT(FUSED_OPS);
        double masked = pass_seconds(&s, PASS_FORWARD);
        s.job.documents = (struct documents){0};
        ck_assert_double_eq(pass_seconds(&s, PASS_FORWARD), masked);
    }
}
END_TEST

/* Kernels that count pair by pair (an entry without tiles) take as much less as there are fewer. */
START_TEST(without_tiles_pairs_count)
{
    struct shape s;
    shape_documents(&s, 1, (struct documents){1200, 1.1});
    struct work masked = attention_work(&s);
    s.job.documents = (struct documents){0};
    struct work whole = attention_work(&s);
    s.cluster.gpu.attention.tile = 0;
    s.cluster.gpu.attention.tile_overhead_s = 0;
    struct cost less = attention_cost(&s.cluster.gpu, &masked.attention, false);
    struct cost all = attention_cost(&s.cluster.gpu, &whole.attention, false);
    ck_assert_double_eq_tol(less.compute_s / all.compute_s, masked.attention.pairs / whole.attention.pairs, 1e-12);
    ck_assert_double_eq_tol(masked.flops / whole.flops, masked.attention.pairs / whole.attention.pairs, 1e-12);
}
END_TEST

Suite *suite_documents(void)
{
    Suite *suite = suite_create("documents");
    TCase *cases = tcase_create("documents");
    tcase_add_loop_test(cases, equal_documents_are_counted, 0, sizeof equal / sizeof *equal);
    tcase_add_test(cases, by_hand);
    tcase_add_loop_test(cases, age_is_stationary, 0, N_DRAWN);
    tcase_add_loop_test(cases, sums_are_those_of_all_distances, 0, N_DRAWN);
    tcase_add_loop_test(cases, straight_rows_are_those_one_by_one, 0, 36);
    tcase_add_loop_test(cases, long_sequences_take_no_longer, 0, 2);
    tcase_add_test(cases, a_memo_answers_the_same);
    tcase_add_loop_test(cases, draws_have_the_mean_and_the_spread, 0, N_DRAWN);
    tcase_add_test(cases, limits);
    tcase_add_loop_test(cases, chunks_are_counted, 0, 4);
    tcase_add_loop_test(cases, endless_documents_cost_what_sequences_do, 0, 3);
    tcase_add_loop_test(cases, endless_documents_wait_as_sequences_do, 0, 9);
    tcase_add_loop_test(cases, near_a_rank_s_share_nothing_jumps, 0, 8);
    tcase_add_test(cases, a_ring_has_a_rank_s_tiles_at_a_time);
    tcase_add_test(cases, shorter_documents_take_less);
    tcase_add_test(cases, without_tiles_pairs_count);
    suite_add_tcase(suite, cases);
    return suite;
}
