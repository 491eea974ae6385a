/*
 * Training until a goal of work: by hand, against the same run with a horizon, and what many such runs say together.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "model/base/random.h"
#include "sim/faults/faults.h"
#include "sim/weeks/run_replicas.h"
#include "tests/suite.h"

enum { NODES = 8, GOAL = 100, INTERVAL = 30, BLOCK = 5, RESTART = 20 };

static struct run_options options_of(double horizon, double goal)
{
    struct run_options options = case_options(NODES, horizon, INTERVAL, BLOCK, RESTART, NODES);
    options.goal = nanos_from_seconds(goal);
    return options;
}

static void check_end(const struct run_options *options, const struct fault_trace *trace, double end, double checkpoint,
                      double lost)
{
    struct run_result result = case_run(options, trace);
    ck_assert(result.reached);
    ck_assert_double_eq((double)result.horizon / 1e9, end);
    ck_assert_double_eq(seconds_of(&result, USE_TRAINING), GOAL);
    ck_assert_double_eq(seconds_of(&result, USE_CHECKPOINT), checkpoint);
    ck_assert_double_eq(seconds_of(&result, USE_LOST), lost);
    run_result_free(&result);
}

/* Checkpoints after 30, 60 and 90 s of work, and one at the end: 100 + 4 x 5. */
START_TEST(test_without_failures)
{
    struct run_options options = options_of(1000, GOAL);
    struct fault_trace none = {0};
    check_end(&options, &none, 120, 20, 0);
    options.bin = SECONDS(7); /* how wide the bins are does not matter */
    check_end(&options, &none, 120, 20, 0);
    options.bin = SECONDS(60); /* nor that the run ends with one */
    check_end(&options, &none, 120, 20, 0);
    options.checkpoint.interval = SECONDS(50); /* the last save is the only one then */
    check_end(&options, &none, 110, 10, 0);
    options.checkpoint = (struct checkpoint_policy){
        .interval = SECONDS(60), .block = SECONDS(2), .kind = CHECKPOINT_TWO_STAGE, .persist = SECONDS(9)};
    check_end(&options, &none, 100 + 2 + 2 + 9, 2 + 2 + 9, 0);
}
END_TEST

/* Safe up to 90 s of work at 105; done at 115, but lost at 118 before it is safe: on again at 138, done at 148, safe at 153. One
 * at 120, when it is, comes too late, and one in the middle costs what it costs. */
START_TEST(test_failures_around_the_last_save)
{
    struct run_options options = options_of(1000, GOAL);
    struct fault_trace late = {0}, last = {0}, middle = {0};
    trace_outage(&late, 120, 1, 10);
    check_end(&options, &late, 120, 20, 0);
    trace_outage(&last, 118, 1, 10);
    check_end(&options, &last, 153, 3 * BLOCK + 3 + BLOCK, 10);
    trace_outage(&middle, 50, 1, 10); /* 15 s of work are lost; on at 70 */
    check_end(&options, &middle, 120 + 15 + RESTART, 20, 15);
    fault_trace_free(&late);
    fault_trace_free(&last);
    fault_trace_free(&middle);
}
END_TEST

/* A node that leaves by plan while the last checkpoint is being written does not keep it from being written. */
START_TEST(test_a_planned_outage_at_the_end)
{
    struct run_options options = options_of(1000, GOAL);
    struct fault_trace trace = {0};
    options.recovery.spares = 0;
    fault_trace_add(&trace,
                    (struct fault){.time = SECONDS(117), .down = DAYS(1), .node = 2, .speed = FULL_SPEED, .kind = FAULT_PLANNED},
                    NULL);
    check_end(&options, &trace, 120, 20, 0);
    fault_trace_free(&trace);
}
END_TEST

/* Half the horizon is too short for it, and what is done then counts as always; nor is work that is done, but not safe, enough.
 */
START_TEST(test_the_horizon_comes_first)
{
    struct fault_trace none = {0};
    const double horizons[] = {60, 117};
    for (int i = 0; i < 2; i++) {
        struct run_options options = options_of(horizons[i], GOAL);
        struct run_result result = case_run(&options, &none);
        ck_assert(!result.reached);
        ck_assert_int_eq(result.horizon, options.horizon);
        ck_assert_double_eq(seconds_of(&result, USE_TRAINING), i == 0 ? 60 - BLOCK : GOAL);
        run_result_free(&result);
    }
}
END_TEST

static struct fault_trace drawn(uint64_t seed)
{
    struct random_stream random = random_stream_named(11, 1, seed);
    struct fault_trace trace = {0};
    double at = 0;
    for (int i = 0; i < 60; i++) {
        at += 1 + (double)random_below(&random, 120);
        int node = (int)random_below(&random, NODES);
        if (random_below(&random, 4) == 0)
            trace_slow(&trace, at, node, 1 + (double)random_below(&random, 90), 0.75);
        else
            trace_outage(&trace, at, node, (double)random_below(&random, 300));
    }
    return trace;
}

/* The work that counts when the same run has a horizon instead: work in progress does. */
static struct run_result until_horizon(const struct run_options *options, nanos horizon, const struct fault_trace *trace)
{
    struct run_options same = *options;
    same.goal = 0;
    same.horizon = horizon;
    return case_run(&same, trace);
}

static nanos work_at(const struct run_options *options, nanos horizon, const struct fault_trace *trace)
{
    struct run_result at = until_horizon(options, horizon, trace);
    nanos work = at.use[USE_TRAINING];
    run_result_free(&at);
    return work;
}

/* Did a failure fall into the last save, so that there was more than one? */
static bool saved_twice(const struct run_options *options, const struct run_result *reached, const struct fault_trace *trace)
{
    for (size_t i = 0; i < reached->n_incidents; i++) {
        const struct incident *incident = &reached->incidents[i];
        if (incident->interrupted && work_at(options, incident->time, trace) >= options->goal)
            return true;
    }
    return false;
}

/*
 * The same run with a horizon instead. At the moment that the goal's work is done it has done exactly that and a
 * nanosecond earlier less; before that nothing else went differently.
 */
START_TEST(test_against_horizons)
{
    struct fault_trace trace = drawn((uint64_t)_i);
    for (double goal = 20; goal < 1500; goal += 77) {
        struct run_options options = options_of(1e6, goal);
        options.recovery.spares = _i % 3;
        struct run_result reached = case_run(&options, &trace);
        ck_assert(reached.reached);
        ck_assert_int_eq(reached.use[USE_TRAINING], options.goal);
        nanos done = reached.horizon - SECONDS(BLOCK);
        if (!saved_twice(&options, &reached, &trace)) {
            struct run_result at = until_horizon(&options, done, &trace);
            for (int use = 0; use < N_TIME_USES; use++)
                ck_assert_int_eq(reached.use[use], at.use[use] + (use == USE_CHECKPOINT ? SECONDS(BLOCK) : 0));
            ck_assert_int_lt(work_at(&options, done - 1, &trace), options.goal);
            run_result_free(&at);
        }
        run_result_free(&reached);
    }
    fault_trace_free(&trace);
}
END_TEST

/* --- many --- */

/* Replicas look only as far ahead as they have to: the answer is that of the whole horizon. */
START_TEST(test_replicas_look_far_enough)
{
    enum { N = 12 };
    struct fault_model model;
    struct diags diags = {0};
    struct replica_outcome outcomes[N] = {0};
    ck_assert_int_eq(fault_model_load("llama3", &model, &diags), STATUS_OK);
    model.rate = 0.02; /* most runs take more than twice the goal, and a few more than eight times */
    struct run_options options = case_options(400, 20 * 86400.0, 3 * 3600, 60, 1800, 2);
    options.goal = DAYS(1);
    struct replicas_request request = {.options = &options, .model = &model, .seed = 5, .n = N, .threads = 2};
    ck_assert_int_eq(replicas_run(&request, outcomes, &diags), STATUS_OK);
    int far = 0;
    for (int i = 0; i < N; i++) {
        struct fault_trace trace;
        faults_generate(&model, options.nodes, options.horizon, faults_replica_seed(5, (uint64_t)i), &trace);
        struct run_result whole = case_run(&options, &trace);
        ck_assert_int_eq(outcomes[i].reached, whole.reached);
        ck_assert_int_eq(outcomes[i].horizon, whole.horizon);
        ck_assert_int_eq(outcomes[i].failures, whole.failures);
        ck_assert_mem_eq(outcomes[i].use, whole.use, sizeof whole.use);
        far += whole.horizon > 2 * options.goal;
        run_result_free(&whole);
        fault_trace_free(&trace);
    }
    ck_assert_int_gt(far, 0);
    diags_free(&diags);
}
END_TEST

/* 1 to 21 in any order: places 1, 10 and 19; of 1 to 4, 0.15, 1.5 and 2.85, between two of them in proportion. */
START_TEST(test_percentiles)
{
    double x[21], few[4] = {4, 1, 3, 2};
    for (int i = 0; i < 21; i++)
        x[i] = 1 + (i * 8) % 21;
    struct estimate e = estimate_of(x, 21);
    ck_assert_double_eq(e.p05, 2);
    ck_assert_double_eq(e.median, 11);
    ck_assert_double_eq(e.p95, 20);
    e = estimate_of(few, 4);
    ck_assert_double_eq_tol(e.p05, 1.15, 1e-12);
    ck_assert_double_eq_tol(e.median, 2.5, 1e-12);
    ck_assert_double_eq_tol(e.p95, 3.85, 1e-12);
}
END_TEST

/* Three of 21 have not ended: the earlier percentiles are known all the same. */
START_TEST(test_percentiles_of_what_has_not_ended)
{
    double x[21];
    for (int i = 0; i < 21; i++)
        x[i] = i < 3 ? HUGE_VAL : i;
    struct estimate e = estimate_of(x, 21);
    ck_assert_double_eq(e.p05, 4);
    ck_assert_double_eq(e.median, 13);
    ck_assert(isinf(e.p95) && isinf(e.mean) && isinf(e.half_width));
    for (int i = 0; i < 21; i++)
        x[i] = HUGE_VAL;
    e = estimate_of(x, 21);
    ck_assert(isinf(e.p05) && isinf(e.median));
    for (int i = 0; i < 21; i++)
        x[i] = 0.1;
    e = estimate_of(x, 21);
    ck_assert(e.mean == 0.1 && e.half_width == 0); /* of equal ones, exactly */
}
END_TEST

/* Wilson's: of none of 30, up to z^2 / (n + z^2); half of four, (1 -+ sqrt(t / (1 + t))) / 2 with t = z^2 / n; the same seen from
 * the other side. */
START_TEST(shares_have_an_interval_that_is_never_empty)
{
    const double z2 = 3.841458820694124;
    double low, high, other_low, other_high;
    share_interval(0, 30, &low, &high);
    ck_assert_double_eq_tol(low, 0, 1e-15);
    ck_assert_double_eq_tol(high, z2 / (30 + z2), 1e-12);
    share_interval(1, 30, &other_low, &other_high);
    ck_assert_double_eq_tol(other_low, 1 - high, 1e-12);
    ck_assert_double_eq_tol(other_high, 1, 1e-12);
    share_interval(0.5, 4, &low, &high);
    ck_assert_double_eq_tol(low, (1 - sqrt(z2 / 4 / (1 + z2 / 4))) / 2, 1e-12);
    ck_assert_double_eq_tol(high, 1 - low, 1e-12);
    share_interval(81 / 263.0, 263, &low, &high); /* Newcombe, Statistics in Medicine 17, 1998, Table I, from memory */
    ck_assert_double_eq_tol(low, 0.2553, 5e-5);
    ck_assert_double_eq_tol(high, 0.3662, 5e-5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("until");
    TCase *all = tcase_create("until");
    tcase_add_test(all, test_without_failures);
    tcase_add_test(all, test_failures_around_the_last_save);
    tcase_add_test(all, test_a_planned_outage_at_the_end);
    tcase_add_test(all, test_the_horizon_comes_first);
    tcase_add_loop_test(all, test_against_horizons, 0, 40);
    tcase_add_test(all, test_replicas_look_far_enough);
    tcase_add_test(all, test_percentiles);
    tcase_add_test(all, test_percentiles_of_what_has_not_ended);
    tcase_add_test(all, shares_have_an_interval_that_is_never_empty);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
