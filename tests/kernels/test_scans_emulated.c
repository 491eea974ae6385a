/*
 * Scans of mixers with a state in emulation (emulation.cuh), by chunks on tensor cores, against the references: all widths of
 * tiles, decays from none to all, what the delta rule makes hard.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "tests/kernels/emulated_run.h"
#include "tests/suite.h"

/* Frees the case. */
static void check_drawn(struct kernel_case *c)
{
    const enum kernel kernel = c->call.kernel;
    char why[200] = "";
    ck_assert_msg(emulated_agrees(c, true, why, sizeof why), "%s %s: %s", kernel_name(kernel), c->text, why);
}

static void check_chunked(enum kernel kernel, int first, bool delta)
{
    for (int number = first; number < N_CHUNKED * CHUNKED_WAYS; number += N_CHUNKED) {
        struct random_stream random = random_stream_named((uint64_t)number, delta ? 22 : 20, (uint64_t)kernel);
        struct kernel_case c;
        kernel_case_draw_chunked(&c, kernel, number, delta, &random);
        check_drawn(&c);
    }
}

START_TEST(scans_by_chunks)
{
    check_chunked(_i % 2 ? KERNEL_SCAN_BACKWARD : KERNEL_SCAN_FORWARD, _i / 2, false);
}
END_TEST

START_TEST(delta_rules_by_chunks)
{
    check_chunked(KERNEL_SCAN_FORWARD, _i, true);
}
END_TEST

/* Decays that hardly are, so that states grow over several chunks; those that leave nothing, at the edges of chunks and
 * elsewhere, of which two in a chunk must not make the rest forget less. */
START_TEST(scans_with_other_decays)
{
    enum { TOKENS = 200 };
    const struct scan_call scan = {.batch = 1, .seq_len = TOKENS, .chunk = 50, .groups = 1, .state = 16, .head_dim = 24};
    static const int ends[] = {0, 1, 63, 64, 100, 101, 127, 130, 199};
    struct kernel_case c;
    emulated_draw_scan(&c, _i % 2 ? KERNEL_SCAN_BACKWARD : KERNEL_SCAN_FORWARD, 1, scan, false);
    float *decay = (float *)c.call.scan.decay;
    ck_assert_int_ne(c.call.scan.decay_row, 0);
    const int heads = c.call.scan.heads;
    for (int i = 0; i < TOKENS * heads; i++)
        decay[i] *= 0.01f;
    for (size_t i = 0; i < sizeof ends / sizeof *ends && _i / 2; i++)
        for (int h = 0; h < heads; h++)
            decay[ends[i] * heads + h] = h ? -INFINITY : -1e5f;
    check_drawn(&c);
}
END_TEST

/* A case whose decays hardly are: the error of their gradients; a negative number where decays are constant. */
static double error_of_weak_decays(uint64_t seed, struct scan_call scan)
{
    struct kernel_case c;
    struct kernel_run run;
    emulated_draw_scan(&c, KERNEL_SCAN_BACKWARD, seed, scan, false);
    float *decay = (float *)c.call.scan.decay;
    double error = -1;
    if (c.call.scan.decay_row) {
        for (int64_t i = 0; i < scan.seq_len * c.call.scan.heads; i++)
            decay[i] *= 0.01f;
        emulated_run(&c, &run);
        kernel_case_reference(&c);
        error = kernel_run_error_of(&run, "ddecay");
        kernel_run_free(&run);
    }
    kernel_case_free(&c);
    return error;
}

/*
 * Of decays that hardly are the gradient is a sum over what states S and their gradients dS hold, the pairs of a chunk beside it
 * are little. Four roundings to bf16 are in it, whatever the sizes: of what tokens add to S and to dS, and of S and dS as
 * operands. A rounding is 1.6e-3 in the mean, so four are 3.3e-3, and the mean over cases is held to the bound that every kernel
 * has. Of one case neighbours' gradients are nearly the same sum, so it is a single draw: at most twice the bound.
 */
START_TEST(gradients_of_weak_decays)
{
    enum { SEEDS = 12 };
    const int states[] = {16, 128};
    const double allowed = kernel_tolerance(KERNEL_SCAN_BACKWARD);
    double square = 0;
    int cases = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct scan_call scan = {
            .batch = 1, .seq_len = 200, .chunk = 50, .groups = 1, .state = states[_i], .head_dim = seed % 2 ? 24 : 64};
        const double error = error_of_weak_decays(seed, scan);
        ck_assert_msg(error <= 2 * allowed, "seed %d: ddecay is off by %.2e", (int)seed, error);
        square += error > 0 ? error * error : 0;
        cases += error >= 0;
    }
    ck_assert_int_ge(cases, SEEDS / 3);
    ck_assert_msg(square <= cases * allowed * allowed, "ddecay is off by %.2e in the mean", sqrt(square / cases));
}
END_TEST

/* --- the delta rule */

enum { CHUNK = 64 };

/* A head of a sequence in double precision, token by token, and beside it what the sums by chunks are sums of. */
struct exact_head {
    const struct scan_call *call;
    int64_t row; /* of its first token */
    int h, group;
    double *state, *begin;       /* [N, P]: in front of the token, of its chunk */
    double *written;             /* [CHUNK, P] */
    double sums[CHUNK];          /* of decays */
    double square_terms, square; /* of outputs without skips */
};

static const float *key_of(const struct exact_head *e, const void *keys, int64_t t)
{
    return (const float *)keys + (e->row + t) * e->call->k_row + (int64_t)e->group * e->call->state;
}

/* The token decays the state and writes. */
static void exact_write(struct exact_head *e, int64_t t)
{
    const struct scan_call *call = e->call;
    const float *k = key_of(e, call->k, t), *v = (const float *)call->v + (e->row + t) * call->v_row + e->h * call->head_dim;
    const int64_t n = call->state, width = call->head_dim, i = t % CHUNK;
    const double decay = (double)call->decay[(e->row + t) * call->decay_row + e->h];
    e->sums[i] = (i ? e->sums[i - 1] : 0) + fmax(decay, -1000);
    for (int64_t p = 0; p < width; p++) {
        double found = 0;
        for (int64_t r = 0; r < n; r++)
            found += (double)k[r] * (e->state[r * width + p] *= exp(decay));
        const double u =
            (call->strength ? (double)call->strength[(e->row + t) * call->heads + e->h] : 1) * ((double)v[p] - found);
        e->written[i * width + p] = u;
        for (int64_t r = 0; r < n; r++)
            e->state[r * width + p] += (double)k[r] * u;
    }
}

/* What the token's query reads, and the terms of that by chunks: of each token of the chunk, and of each row of the state. */
static void exact_read(struct exact_head *e, int64_t t)
{
    const struct scan_call *call = e->call;
    const float *q = key_of(e, call->q, t);
    const int64_t n = call->state, width = call->head_dim, i = t % CHUNK;
    for (int64_t p = 0; p < width; p++) {
        double y = 0;
        for (int64_t r = 0; r < n; r++) {
            y += (double)q[r] * e->state[r * width + p];
            const double kept = exp(e->sums[i]) * (double)q[r] * e->begin[r * width + p];
            e->square_terms += kept * kept;
        }
        e->square += y * y;
    }
    for (int64_t j = 0; j <= i; j++) {
        const float *k = key_of(e, call->k, t - i + j);
        double score = 0, square = 0;
        for (int64_t r = 0; r < n; r++)
            score += (double)q[r] * (double)k[r];
        score *= exp(e->sums[i] - e->sums[j]);
        for (int64_t p = 0; p < width; p++)
            square += e->written[j * width + p] * e->written[j * width + p];
        e->square_terms += score * score * square;
    }
}

/*
 * How much larger the terms of outputs are than outputs: sqrt(sum of terms^2 / sum of y^2), at least 1. What tokens write are
 * differences from what was there. Where the same keys come again and little is forgotten they cancel one another, and the error
 * of each that is rounded stays: a rounding is 1.6e-3 of the terms, not of the outputs. There are six (scan_chunks.cu: weights,
 * what is written, X, what X multiplies, keys on their way to the state, the state), so 3.9e-3 of terms.
 */
static double amplification(const struct scan_call *call)
{
    const size_t size = (size_t)(call->state * call->head_dim) * sizeof(double);
    struct exact_head e = {.call = call, .state = memory_new(1, size), .begin = memory_new(1, size)};
    e.written = memory_new(1, (size_t)(CHUNK * call->head_dim) * sizeof(double));
    for (int64_t sequence = 0; sequence < call->batch; sequence++)
        for (e.h = 0; e.h < call->heads; e.h++) {
            e.row = sequence * call->seq_len;
            e.group = e.h / (call->heads / call->groups);
            memset(e.state, 0, size);
            for (int64_t t = 0; t < call->seq_len; t++) {
                if (t % CHUNK == 0)
                    memcpy(e.begin, e.state, size);
                exact_write(&e, t);
                exact_read(&e, t);
            }
        }
    free(e.state), free(e.begin), free(e.written);
    return fmax(1, sqrt(e.square_terms / e.square));
}

enum hardness { WEAK_DECAYS, DECAYS_OF_ALL, WRITES_LITTLE, WRITES_ALL, WRITES_ALL_OR_NOTHING, ONE_KEY, N_HARD };

static void harden(const struct scan_call *call, enum hardness how)
{
    float *decay = (float *)call->decay, *strength = (float *)call->strength, *k = (float *)call->k;
    const int64_t numbers = call->seq_len * call->heads;
    for (int64_t i = 0; i < numbers; i++) {
        decay[i] *= how == ONE_KEY ? 0.001f : how == DECAYS_OF_ALL ? 1 : 0.01f;
        if (how == DECAYS_OF_ALL && i % 37 == 0)
            decay[i] = i % 2 ? -INFINITY : -1e5f;
        if (how == WRITES_LITTLE)
            strength[i] = 1e-4f * (float)(i % 5);
        if (how == WRITES_ALL || how == ONE_KEY)
            strength[i] = 1 - 1e-3f * (float)(i % 3);
        if (how == WRITES_ALL_OR_NOTHING && i % 3 < 2)
            strength[i] = (float)(i % 3);
    }
    for (int64_t t = 0; t < call->seq_len && how == ONE_KEY; t++)
        for (int n = 0; n < call->state; n++)
            k[t * call->k_row + n] = float_of_bf16(bf16_of_float((n % 2 ? 1 : -1) / sqrtf((float)call->state)));
}

/* States of each number of tiles and columns of several blocks, whose decays and strengths are not constant. */
static void check_hard(enum hardness how, int state)
{
    struct scan_call scan = {.batch = 1, .seq_len = 200, .chunk = 50, .groups = 1, .state = state, .head_dim = 40, .delta = true};
    struct kernel_case c;
    for (uint64_t seed = 0;; seed++) {
        emulated_draw_scan(&c, KERNEL_SCAN_FORWARD, seed, scan, false);
        if (c.call.scan.decay_row && c.call.scan.strength && !c.call.scan.skip)
            break;
        kernel_case_free(&c);
    }
    harden(&c.call.scan, how);
    c.amplification = amplification(&c.call.scan);
    ck_assert_double_le(c.amplification, how == ONE_KEY ? 9 : how == DECAYS_OF_ALL ? 1.1 : 2.1);
    check_drawn(&c);
}

START_TEST(hard_delta_rules)
{
    static const int states[] = {16, 128, 200};
    check_hard((enum hardness)(_i % N_HARD), states[_i / N_HARD]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scans by chunks, emulated");
    TCase *tcase = tcase_create("against references");
    tcase_set_timeout(tcase, 200);
    tcase_add_loop_test(tcase, scans_by_chunks, 0, 2 * N_CHUNKED);
    tcase_add_loop_test(tcase, scans_with_other_decays, 0, 4);
    tcase_add_loop_test(tcase, gradients_of_weak_decays, 0, 2);
    tcase_add_loop_test(tcase, delta_rules_by_chunks, 0, N_CHUNKED);
    tcase_add_loop_test(tcase, hard_delta_rules, 0, 3 * N_HARD);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
