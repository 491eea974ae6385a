/*
 * Every schedule against its closed form. Passes take whole units of time (a chunk of an interleaved schedule 1 / v of a stage's,
 * scaled to whole units), messages none; the reference executor then gives the makespan that theory says, to the unit.
 */
#include <check.h>
#include <stdlib.h>

#include "fixtures.h"
#include "model/base/memory.h"
#include "model/cost/memory/footprint.h"
#include "reference_executor.h"
#include "tests/suite.h"

static int64_t makespan_of(const struct program *program, const int64_t *times)
{
    struct reference_run run = reference_execute(program, times);
    for (int r = 0; r < program->n_ranks; r++) {
        uint32_t n;
        rank_ops(program, r, &n);
        for (uint32_t i = 0; i < n; i++)
            ck_assert_int_ge(run.end[r][i], 0); /* everything ends */
    }
    int64_t makespan = run.makespan;
    reference_free(&run);
    return makespan;
}

/* Blocking and overlapped exchanges differ only in what they cost. */
static int64_t makespan(enum schedule schedule, int p, int v, int m, feature_set features, const int64_t *times)
{
    struct fixture f = fixture_pipeline(schedule, p, v, m);
    f.layout.features = features;
    struct program program = fixture_build(&f, DETAIL_CHUNK, true);
    int64_t result = makespan_of(&program, times);
    program_free(&program);
    return result;
}

static const int STAGES[] = {2, 3, 4, 8};
enum { N_STAGES = sizeof STAGES / sizeof STAGES[0] };

START_TEST(gpipe_and_1f1b)
{
    static const int64_t times[N_PASSES] = {1, 2, 0, 0};
    for (int i = 0; i < N_STAGES; i++) {
        for (int m = 1; m <= 3 * STAGES[i]; m++) {
            int64_t expected = (int64_t)(m + STAGES[i] - 1) * (1 + 2);
            ck_assert_int_eq(makespan(SCHEDULE_GPIPE, STAGES[i], 1, m, FEATURE_BIT(PP_OVERLAP), times), expected);
            ck_assert_int_eq(makespan(SCHEDULE_1F1B, STAGES[i], 1, m, FEATURE_BIT(PP_OVERLAP), times), expected);
            ck_assert_int_eq(makespan(SCHEDULE_GPIPE, STAGES[i], 1, m, 0, times), expected);
            ck_assert_int_eq(makespan(SCHEDULE_1F1B, STAGES[i], 1, m, 0, times), expected);
        }
    }
}
END_TEST

/* v chunks of 1 and 2 units each: a stage's F = v, B = 2v; bubble (p - 1)(F + B) / v = 3 (p - 1). Blocking exchanges, once per
 * pair of passes, use slack that the warm-up leaves between neighbours, so they lengthen nothing either. */
START_TEST(interleaved)
{
    static const int64_t times[N_PASSES] = {1, 2, 0, 0};
    for (int i = 0; i < N_STAGES; i++) {
        int p = STAGES[i];
        for (int v = 2; v <= 4; v++) {
            for (int rounds = 1; rounds <= 4; rounds++) {
                int64_t expected = 3 * (int64_t)v * rounds * p + 3 * (p - 1);
                ck_assert_int_eq(makespan(SCHEDULE_INTERLEAVED, p, v, rounds * p, FEATURE_BIT(PP_OVERLAP), times), expected);
                ck_assert_int_eq(makespan(SCHEDULE_INTERLEAVED, p, v, rounds * p, 0, times), expected);
            }
        }
    }
}
END_TEST

START_TEST(zero_bubble)
{
    static const int64_t cases[][N_PASSES] = {{1, 0, 1, 1}, {4, 0, 4, 3}, {4, 0, 5, 3}, {3, 0, 4, 3}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int64_t F = cases[c][PASS_FORWARD], B = cases[c][PASS_BACKWARD_INPUT], W = cases[c][PASS_BACKWARD_WEIGHT];
        for (int i = 0; i < N_STAGES; i++) {
            int p = STAGES[i], m = 2 * p + 3;
            ck_assert_int_eq(makespan(SCHEDULE_ZB1P, p, 1, m, 0, cases[c]), m * (F + B + W) + (p - 1) * (F + B - W));
            struct fixture f = fixture_pipeline(SCHEDULE_ZB2P, p, 1, m);
            struct program program = fixture_build(&f, DETAIL_CHUNK, true);
            ck_assert(program.rolling);
            struct reference_run run = reference_execute(&program, cases[c]);
            int64_t longest = 0;
            for (int r = 0; r < p; r++) {
                int64_t span = reference_busy_span(&run, &program, r);
                longest = span > longest ? span : longest;
            }
            ck_assert_int_eq(longest, m * (F + B + W) + (p - 1) * (F + B - 2 * W)); /* F = B = W: none */
            reference_free(&run);
            program_free(&program);
        }
    }
}
END_TEST

/* ZB-V, the passes of a chunk F = B = W: no stage waits between its first and its last pass (Qi et al., section 6). */
START_TEST(zero_bubble_v)
{
    static const int64_t times[N_PASSES] = {3, 0, 3, 3};
    for (int i = 0; i < N_STAGES; i++) {
        for (int m = 2 * STAGES[i]; m <= 3 * STAGES[i] + 1; m++) {
            struct fixture f = fixture_pipeline(SCHEDULE_ZBV, STAGES[i], 2, m);
            struct program program = fixture_build(&f, DETAIL_CHUNK, true);
            ck_assert(program.rolling);
            struct reference_run run = reference_execute(&program, times);
            for (int r = 0; r < STAGES[i]; r++)
                ck_assert_int_eq(reference_busy_span(&run, &program, r), (int64_t)m * 2 * (3 + 3 + 3));
            reference_free(&run);
            program_free(&program);
        }
    }
}
END_TEST

/* The published bubble (P/2 - 1)(F&B + B - 3W), here F&B = F + B as nothing of a pair overlaps and B the whole backward pass, to
 * the unit where the forward pass takes as long as the input gradients; DualPipe-V's P is twice its stages. */
START_TEST(dualpipe)
{
    static const int64_t cases[][N_PASSES] = {{1, 2, 1, 1}, {5, 8, 5, 3}, {4, 7, 4, 3}, {2, 3, 2, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int64_t F = cases[c][PASS_FORWARD], B = cases[c][PASS_BACKWARD], W = cases[c][PASS_BACKWARD_WEIGHT];
        for (int p = 2; p <= 8; p += 2) {
            for (int m = 2 * p; m <= 2 * p + 8; m += 2) {
                int64_t folded = makespan(SCHEDULE_DUALPIPEV, p, 2, m, 0, cases[c]);
                ck_assert_int_eq(makespan(SCHEDULE_DUALPIPE, p, 2, m, 0, cases[c]),
                                 m * (F + B) + (p / 2 - 1) * (F + B + B - 3 * W));
                ck_assert_int_eq(folded, 2 * m * (F + B) + (p - 1) * (F + B + B - 3 * W));
                ck_assert_int_eq(folded, makespan(SCHEDULE_DUALPIPE, 2 * p, 2, 2 * m, 0, cases[c]));
            }
        }
    }
}
END_TEST

/* Any number of micro-batches. Up to p of them make one round, all forward and then all backward through a pipeline of v p
 * virtual stages: (m + v p - 1)(F + B). With more, the last and shorter round costs no more than a whole one would, and at least
 * its own work; one micro-batch more never shortens the step. */
START_TEST(interleaved_any_number)
{
    static const int64_t times[N_PASSES] = {1, 2, 0, 0};
    for (int i = 0; i < N_STAGES; i++) {
        int p = STAGES[i];
        for (int v = 2; v <= 4; v++) {
            int64_t before = 0;
            for (int m = 1; m <= 3 * p; m++) {
                int64_t step = makespan(SCHEDULE_INTERLEAVED, p, v, m, FEATURE_BIT(PP_OVERLAP), times);
                int64_t whole = 3 * ((int64_t)v * ((m + p - 1) / p) * p + p - 1);
                int64_t blocking = makespan(SCHEDULE_INTERLEAVED, p, v, m, 0, times);
                ck_assert(blocking >= step && blocking <= whole);
                ck_assert(step <= whole && step >= 3 * ((int64_t)v * m + p - 1) && step >= before);
                ck_assert(m % p || step == whole);
                ck_assert(m > p || step == 3 * ((int64_t)m + v * p - 1));
                before = step;
            }
        }
    }
}
END_TEST

/* By hand: p = 2, v = 2, m = 3, F = 1, B = 2. The third micro-batch is a round of its own. Its gradient goes round the ring
 * alone, when no forward passes are left to fill the gap: 3 * 2 * 3 of work, a bubble of 3, and a backward pass of 2 for the
 * missing micro-batch. */
START_TEST(interleaved_by_hand)
{
    static const int64_t times[N_PASSES] = {1, 2, 0, 0};
    ck_assert_int_eq(makespan(SCHEDULE_INTERLEAVED, 2, 2, 3, FEATURE_BIT(PP_OVERLAP), times), 18 + 3 + 2);
}
END_TEST

/* The deepest a stage's stack of activations gets: begun forward, not yet let go by the pass that needs them last. */
static int most_in_flight(const struct program *program, int rank)
{
    uint32_t n;
    const struct op *ops = rank_ops(program, rank, &n);
    int now = 0, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (ops[i].kind != OP_COMPUTE || ops[i].pass >= N_PASSES)
            continue;
        now += ops[i].pass == PASS_FORWARD;
        most = now > most ? now : most;
        now -= ops[i].pass == PASS_BACKWARD || ops[i].pass == PASS_BACKWARD_WEIGHT;
    }
    ck_assert_int_eq(now, 0);
    return most;
}

START_TEST(in_flight)
{
    enum { P = 4, M = 12, V = 3 };
    static const struct {
        enum schedule schedule;
        int v;
    } cases[] = {
        {SCHEDULE_GPIPE, 1}, {SCHEDULE_1F1B, 1}, {SCHEDULE_INTERLEAVED, V}, {SCHEDULE_ZB1P, 1},
        {SCHEDULE_ZB2P, 1},  {SCHEDULE_ZBV, 2},  {SCHEDULE_DUALPIPE, 2},    {SCHEDULE_DUALPIPEV, 2},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct fixture f = fixture_pipeline(cases[c].schedule, P, cases[c].v, M);
        struct program program = fixture_build(&f, DETAIL_CHUNK, true);
        for (int r = 0; r < P; r++) {
            const int expected[] = {M, P - r, 2 * (P - r - 1) + (V - 1) * P + 1, P, 2 * P - 1, 2 * P, P + 1, 2 * P + 1};
            ck_assert_int_eq(most_in_flight(&program, r), expected[c]);
        }
        program_free(&program);
    }
}
END_TEST

/* What the footprint says a stage holds against what its program does, for any number of micro-batches. */
START_TEST(interleaved_in_flight)
{
    for (int i = 0; i < N_STAGES; i++) {
        for (int v = 2; v <= 3; v++) {
            for (int m = 1; m <= 3 * STAGES[i]; m++) {
                int p = STAGES[i];
                struct fixture f = fixture_pipeline(SCHEDULE_INTERLEAVED, p, v, m),
                               one = fixture_pipeline(SCHEDULE_INTERLEAVED, p, v, 1);
                struct setting setting = fixture_setting(&f), single = fixture_setting(&one);
                struct program program = fixture_build(&f, DETAIL_CHUNK, true);
                for (int r = 0; r < p; r++) {
                    struct footprint held, unit; /* one micro-batch: a pass per chunk */
                    footprint_of_stage(&f.layout, &setting, r, &held);
                    footprint_of_stage(&one.layout, &single, r, &unit);
                    int most = most_in_flight(&program, r);
                    ck_assert_int_le(most, m * v);
                    if (r > 0 && r < p - 1) /* no ends of the model */
                        ck_assert_double_eq_tol(held.activations / unit.activations * v, most, 1e-9 * most);
                }
                program_free(&program);
            }
        }
    }
}
END_TEST

/* Each micro-batch passes each chunk once in each direction, forward before backward before weight. */
static void check_passes(const struct program *program, int rank, int m)
{
    enum { NOT_YET, FORWARD, INPUT, DONE };
    static const int before[N_PASSES] = {NOT_YET, FORWARD, FORWARD, INPUT}, after[N_PASSES] = {FORWARD, DONE, INPUT, DONE};
    int v = program->layout.vpp, done = 0;
    int *stage = memory_new((size_t)v * (size_t)m, sizeof *stage); /* how far it has come */
    uint32_t n;
    const struct op *ops = rank_ops(program, rank, &n);
    for (uint32_t i = 0; i < n; i++) {
        if ((ops[i].kind != OP_COMPUTE && ops[i].kind != OP_JOIN) || ops[i].pass >= N_PASSES)
            continue;
        ck_assert(ops[i].chunk >= 0 && ops[i].chunk < v && ops[i].micro_batch >= 0 && ops[i].micro_batch < m);
        int *at = &stage[ops[i].chunk * m + ops[i].micro_batch];
        ck_assert_int_eq(*at, before[ops[i].pass]);
        *at = after[ops[i].pass];
        done += *at == DONE;
    }
    for (int i = 0; i < v * m; i++)
        ck_assert(stage[i] == DONE || (stage[i] == NOT_YET && program->layout.schedule == SCHEDULE_DUALPIPE));
    ck_assert_int_eq(done, program->layout.schedule == SCHEDULE_DUALPIPE ? m : v * m); /* half of them in either direction */
    free(stage);
}

START_TEST(every_pass_once)
{
    for (int s = SCHEDULE_GPIPE; s < N_SCHEDULES; s++) {
        for (int i = 0; i < N_STAGES; i++) {
            bool chunked = s == SCHEDULE_INTERLEAVED || schedule_is_folded((enum schedule)s);
            if (s == SCHEDULE_DUALPIPE && STAGES[i] % 2)
                continue;
            for (int m = (s >= SCHEDULE_DUALPIPE ? 2 : 1) * STAGES[i]; m <= 4 * STAGES[i];
                 m += s == SCHEDULE_INTERLEAVED ? 1 : STAGES[i]) {
                struct fixture f = fixture_pipeline((enum schedule)s, STAGES[i], chunked ? 2 : 1, m);
                struct program program = fixture_build(&f, DETAIL_CHUNK, true);
                for (int r = 0; r < STAGES[i]; r++)
                    check_passes(&program, r, m);
                program_free(&program);
            }
        }
    }
}
END_TEST

/* Warm-up counts of Megatron-LM: forward passes before the first backward one. */
START_TEST(interleaved_warm_up)
{
    struct fixture f = fixture_pipeline(SCHEDULE_INTERLEAVED, 4, 2, 8);
    for (int m = 4; m <= 8; m += 4) {
        f.job.global_batch = m;
        struct program program = fixture_build(&f, DETAIL_CHUNK, true);
        for (int r = 0; r < 4; r++) {
            uint32_t n;
            const struct op *ops = rank_ops(&program, r, &n);
            int forward = 0;
            for (uint32_t i = 0; i < n && !(ops[i].kind == OP_COMPUTE && ops[i].pass == PASS_BACKWARD); i++)
                forward += ops[i].kind == OP_COMPUTE && ops[i].pass == PASS_FORWARD;
            int expected = m == 4 ? 8 : 2 * (4 - r - 1) + 4 + 1; /* one round: all; else one more stands in the first pair */
            ck_assert_int_eq(forward, expected);
        }
        program_free(&program);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("program_schedules");
    TCase *tcase = tcase_create("schedules");
    tcase_add_test(tcase, gpipe_and_1f1b);
    tcase_add_test(tcase, interleaved);
    tcase_add_test(tcase, interleaved_any_number);
    tcase_add_test(tcase, interleaved_by_hand);
    tcase_add_test(tcase, interleaved_in_flight);
    tcase_add_test(tcase, zero_bubble);
    tcase_add_test(tcase, zero_bubble_v);
    tcase_add_test(tcase, dualpipe);
    tcase_add_test(tcase, in_flight);
    tcase_add_test(tcase, every_pass_once);
    tcase_add_test(tcase, interleaved_warm_up);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
