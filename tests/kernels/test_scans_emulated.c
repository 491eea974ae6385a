/*
 * Scans of mixers with a state in emulation (emulation.cuh), by chunks on tensor cores, against the references: all widths of
 * tiles, decays from none to all, what the delta rule makes hard.
 */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/kernels/emulated_run.h"
#include "tests/suite.h"

/* Frees the case. */
static void check_drawn(struct kernel_case *c)
{
    const enum kernel kernel = c->call.kernel;
    char why[200] = "";
    ck_assert_msg(emulated_agrees(c, true, why, sizeof why), "%s %s: %s", kernel_name(kernel), c->text, why);
}

/* In all ways; the delta rule, whose emulation takes twice as long, in half of them. The short tier takes one way. */
static void check_chunked(enum kernel kernel, int first, bool delta)
{
    const int ways = suite_draws(delta ? CHUNKED_WAYS / 2 : CHUNKED_WAYS, CHUNKED_WAYS);
    for (int number = first; number < N_CHUNKED * ways; number += N_CHUNKED) {
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
    check_chunked(_i % 2 ? KERNEL_SCAN_BACKWARD : KERNEL_SCAN_FORWARD, _i / 2, true);
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
 * operands. A rounding is 1.6e-3 on average, so four are 3.3e-3, and the mean over cases is held to the bound that every kernel
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
    ck_assert_msg(square <= cases * allowed * allowed, "ddecay is off by %.2e on average", sqrt(square / cases));
}
END_TEST

/* --- the delta rule */

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
            k[t * call->k_row + n] = float_of_bf16(bf16_of_float((n % 2 ? 1.0f : -1.0f) / sqrtf((float)call->state)));
}

/* Decays and strengths are not constant, and there is no skip, which would hide what is wrong behind it. */
static void draw_hard(struct kernel_case *c, enum kernel kernel, enum hardness how, int state)
{
    const struct scan_call scan = {
        .batch = 1, .seq_len = 200, .chunk = 50, .groups = 1, .state = state, .head_dim = 40, .delta = true};
    for (uint64_t seed = 0;; seed++) {
        emulated_draw_scan(c, kernel, seed, scan, false);
        if (c->call.scan.decay_row && c->call.scan.strength && !c->call.scan.skip)
            break;
        kernel_case_free(c);
    }
    harden(&c->call.scan, how);
    c->amplification = scan_amplification(&c->call.scan);
    ck_assert_double_le(c->amplification, how == ONE_KEY ? 9 : how == DECAYS_OF_ALL ? 1.1 : 2.1);
}

/* What kernels/README.md says of a single key, in both passes, where terms would allow 4.1e-2. */
static const double ONE_KEY_ERROR = 2.5e-2;

static const int hard_states[] = {16, 128, 200}; /* of each number of tiles */
enum { N_HARD_STATES = sizeof hard_states / sizeof *hard_states };

START_TEST(hard_delta_rules)
{
    const enum hardness how = (enum hardness)(_i % N_HARD);
    struct kernel_case c;
    draw_hard(&c, KERNEL_SCAN_FORWARD, how, hard_states[_i / N_HARD]);
    if (how == ONE_KEY)
        c.amplification = fmin(c.amplification, ONE_KEY_ERROR / kernel_tolerance(KERNEL_SCAN_FORWARD));
    check_drawn(&c);
}
END_TEST

/*
 * Ten roundings are in gradients (scan_delta_backward.cu): of X, u, dU and c, both weights of pairs, S and dS as operands, and
 * what tokens add to each of the two; so 5.1e-3 of terms, which are taken to be as much larger than sums as those of outputs.
 * Gradients of weak decays are a draw of one (gradients_of_weak_decays). Where one key is written for with all strength there is
 * nothing of the state in front left to decay: their gradients are nothing but error, whatever the precision.
 */
START_TEST(gradients_of_hard_delta_rules)
{
    const enum hardness how = (enum hardness)(_i % N_HARD);
    struct kernel_case c;
    struct kernel_run run;
    draw_hard(&c, KERNEL_SCAN_BACKWARD, how, hard_states[_i / N_HARD]);
    emulated_run(&c, &run);
    kernel_case_reference(&c);
    for (int i = 0; i < c.n_operands; i++) {
        const struct operand *operand = &c.operands[i];
        const bool is_decays = strcmp(operand->name, "ddecay") == 0;
        if (operand->role == ROLE_IN || operand->type == OPERAND_SCRATCH || (is_decays && how == ONE_KEY))
            continue;
        const double error = kernel_run_error_of(&run, operand->name);
        const double terms = 5.1e-3 * c.amplification * (is_decays ? 2 : 1);
        ck_assert_msg(error <= (how == ONE_KEY ? fmin(terms, ONE_KEY_ERROR) : terms), "%s of %s is off by %.2e, terms by %.2f",
                      operand->name, c.text, error, c.amplification);
    }
    kernel_run_free(&run);
    kernel_case_free(&c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scans by chunks, emulated");
    TCase *tcase = tcase_create("scans");
    tcase_add_loop_test(tcase, scans_by_chunks, 0, 2 * N_CHUNKED);
    tcase_add_loop_test(tcase, scans_with_other_decays, 0, 4);
    tcase_add_loop_test(tcase, gradients_of_weak_decays, 0, suite_is_long() ? 2 : 1);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("delta rules");
    tcase_add_loop_test(tcase, delta_rules_by_chunks, 0, 2 * N_CHUNKED);
    tcase_add_loop_test(tcase, hard_delta_rules, 0, suite_draws(N_HARD_STATES, N_HARD_STATES) * N_HARD);
    tcase_add_loop_test(tcase, gradients_of_hard_delta_rules, 0, suite_draws(N_HARD_STATES, N_HARD_STATES) * N_HARD);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
