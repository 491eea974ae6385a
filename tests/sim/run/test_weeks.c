/*
 * Weeks with faults drawn from models, recovery in stages and checkpoints in stages.
 *
 * Oracles: the closed form for memoryless failures, Young's interval, MegaScale's start-up times, checkpoints by hand; the books
 * balance in every run; one answer for any number of threads; a fit finds the parameters that made a trace.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "sim/checkpoint_cost.h"
#include "sim/fault_fit.h"
#include "sim/faults.h"
#include "sim/run_replicas.h"
#include "sim/startup.h"
#include "tests/suite.h"

#define DAYS(n) ((nanos)(n)*86400 * NANOS_PER_SECOND)

static struct fault_model model_named(const char *name)
{
    struct fault_model model;
    struct diags diags = {0};
    ck_assert_int_eq(fault_model_load(name, &model, &diags), STATUS_OK);
    diags_free(&diags);
    return model;
}

static struct robust_policy policy_named(const char *name)
{
    struct robust_policy policy;
    struct diags diags = {0};
    ck_assert_int_eq(robust_policy_load(name, &policy, &diags), STATUS_OK);
    diags_free(&diags);
    return policy;
}

static struct estimate ettr_of(const struct run_options *options, const struct fault_model *model, bool poisson, int64_t n,
                               int threads)
{
    struct replica_outcome *outcomes = calloc((size_t)n, sizeof *outcomes);
    double *ettr = calloc((size_t)n, sizeof *ettr);
    struct diags diags = {0};
    struct replicas_request request = {
        .options = options, .model = model, .poisson = poisson, .seed = 11, .n = n, .threads = threads};
    ck_assert_int_eq(replicas_run(&request, outcomes, &diags), STATUS_OK);
    for (int64_t i = 0; i < n; i++) {
        nanos sum = 0;
        for (int use = 0; use < N_TIME_USES; use++)
            sum += outcomes[i].use[use];
        ck_assert_int_eq(sum, options->horizon);
        ettr[i] = outcome_ettr(&outcomes[i], options->horizon);
    }
    struct estimate e = estimate_of(ettr, (size_t)n);
    free(outcomes);
    free(ettr);
    diags_free(&diags);
    return e;
}

/* --- closed forms ------------------------------------------------------------------------------------------------------------
 */

START_TEST(test_exponential_failures_give_the_closed_form)
{
    struct fault_model model = model_named("llama3");
    static const struct {
        double interval, block, restart;
    } cases[] = {{1800, 0, 900}, {1800, 30, 900}, {600, 5, 300}, {7200, 60, 1800}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run_options options = case_options(1536, 365 * 86400.0, cases[i].interval, cases[i].block, cases[i].restart, 1536);
        struct estimate e = ettr_of(&options, &model, true, 100, 2);
        double failures = model.rate * 1536 * 365;
        double expected = run_closed_form(&options, llround(failures)).exponential;
        ck_assert_msg(fabs(e.mean - expected) < e.half_width, "case %zu: %.6f +- %.6f, closed form %.6f", i, e.mean, e.half_width,
                      expected);
        ck_assert_double_lt(e.half_width, 0.002);
    }
}
END_TEST

/* Nowhere near Young's interval is anything better by more than a few parts in 10,000, and far from it everything is worse. */
START_TEST(test_best_interval_is_youngs)
{
    struct fault_model model = model_named("llama3");
    struct run_options options = case_options(1536, 180 * 86400.0, 1, 30, 300, 1536);
    double young = run_closed_form(&options, llround(model.rate * 1536 * 180)).best_interval_s, at_young = 0, best = 0;
    for (int i = -4; i <= 4; i++) {
        options.checkpoint.interval = nanos_from_seconds(young * pow(1.35, i));
        double mean = ettr_of(&options, &model, true, 40, 2).mean;
        at_young = i == 0 ? mean : at_young;
        best = fmax(best, mean);
    }
    ck_assert_double_lt(best - at_young, 5e-4);
    options.checkpoint.interval = nanos_from_seconds(young / 4);
    ck_assert_double_lt(ettr_of(&options, &model, true, 40, 2).mean, best - 0.01);
    options.checkpoint.interval = nanos_from_seconds(young * 4);
    ck_assert_double_lt(ettr_of(&options, &model, true, 40, 2).mean, best - 0.01);
}
END_TEST

/* --- checkpoints in stages, by hand -------------------------------------------------------------------------------------------
 */

static struct run_options staged(enum checkpoint_kind kind)
{
    struct run_options options = case_options(4, 300, 100, 10, 20, 4);
    options.checkpoint.kind = kind;
    options.checkpoint.persist = SECONDS(30);
    return options;
}

static void check_lost(const struct run_options *options, double at, double lost, double training)
{
    struct fault_trace trace = {0};
    trace_outage(&trace, at, 0, 1000);
    struct run_result result = case_run(options, &trace);
    ck_assert_double_eq(seconds_of(&result, USE_LOST), lost);
    ck_assert_double_eq(seconds_of(&result, USE_TRAINING), training);
    run_result_free(&result);
    fault_trace_free(&trace);
}

START_TEST(test_two_stages_by_hand)
{
    /* work 0-100, copied to the host until 110, in storage at 140 */
    struct run_options options = staged(CHECKPOINT_TWO_STAGE);
    check_lost(&options, 105, 100, 165);      /* 125-225, copy, 235-300 */
    check_lost(&options, 139, 100 + 29, 131); /* on its way: lost. Then 159-259, copy, 269-300 */
    check_lost(&options, 140, 30, 100 + 130); /* there: what came after it is lost; then 160-260, copy, 270-300 */
    /* storage too slow for the interval: the second copy, due at 210, waits for the first until 250 */
    options.checkpoint.persist = SECONDS(140);
    struct fault_trace none = {0};
    struct run_result result = case_run(&options, &none);
    ck_assert_double_eq(seconds_of(&result, USE_CHECKPOINT), 10 + 40 + 10);
    ck_assert_double_eq(seconds_of(&result, USE_TRAINING), 240);
    run_result_free(&result);
}
END_TEST

/* Nodes 2 and 0 are lost. */
static void check_lost_twice(const struct run_options *options, double at, double again, double down, double lost)
{
    struct fault_trace trace = {0};
    trace_outage(&trace, at, 2, down);
    trace_outage(&trace, again, 0, down);
    struct run_result result = case_run(options, &trace);
    ck_assert_double_eq(seconds_of(&result, USE_LOST), lost);
    run_result_free(&result);
    fault_trace_free(&trace);
}

START_TEST(test_neighbours_by_hand)
{
    struct run_options options = staged(CHECKPOINT_MEMORY);
    check_lost(&options, 139, 129, 131);
    check_lost(&options, 140, 30, 230);
    /* Node 0 keeps its copy on node 2. A spare has taken that one's place, and the checkpoint of 70-170, there at 210. */
    check_lost_twice(&options, 50, 270, 1000, 50 + 90);
    /* Node 2 is lost at 145, and node 0 before another checkpoint is there (165-265, to the host until 275): 0-100 is lost, too,
     * as well as when it falls into the recovery. */
    check_lost_twice(&options, 145, 270, 1000, 35 + 100 + 100);
    check_lost_twice(&options, 145, 150, 1000, 35 + 100);
    /* A process that ends leaves memory as it is. */
    check_lost_twice(&options, 145, 270, 0, 35 + 100);
    /* What storage has by 150 stays. */
    options.checkpoint.storage_every = 1;
    options.checkpoint.write = SECONDS(10);
    check_lost_twice(&options, 151, 280, 1000, 41 + 100);
}
END_TEST

/* Wrong numbers are noticed after two hours: by then memory holds nothing else, and only storage has older checkpoints. */
START_TEST(test_memory_is_stale_after_silent_corruption)
{
    struct robust_policy policy = policy_named("megascale");
    policy.drift_per_day = policy.pause_rate = policy.stall_rate = 0;
    policy.automatic = policy.tests.items[0].finds[COMPONENT_GPU] = policy.tests.items[0].finds[COMPONENT_SILENT] = 1;
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .restart_hot = SECONDS(60), .reload = SECONDS(40)};
    struct run_options options = case_options(64, 10 * 86400.0, 60, 0, 0, 4);
    options.checkpoint.kind = CHECKPOINT_MEMORY;
    options.checkpoint.storage_every = 60; /* once an hour */
    options.robust = &robust;
    for (int silent = 0; silent < 2; silent++) {
        struct fault_trace trace = {0};
        fault_trace_add(&trace, (struct fault){.time = DAYS(1) + SECONDS(1830), .down = DAYS(1), .node = 3, .speed = FULL_SPEED},
                        silent ? "Silent data corruption" : "Faulty GPU");
        policy.silent_detect_s = 86400;
        struct run_result result = case_run(&options, &trace);
        ck_assert_double_eq(seconds_of(&result, USE_LOST), silent ? 1830 : 30);
        ck_assert_double_eq(fmod(seconds_of(&result, USE_RESTART), 60), silent ? 40 : 0);
        run_result_free(&result);
        fault_trace_free(&trace);
    }
}
END_TEST

/* Looking at the clock does not matter, whatever the kind. */
START_TEST(test_series_width_does_not_matter_in_stages)
{
    struct fault_model model = model_named("megascale");
    struct robust_policy policy = policy_named("megascale");
    struct run_robust robust = {
        .policy = &policy, .restart = SECONDS(190), .restart_hot = SECONDS(120), .seed = 5, .replicas = 8};
    struct fault_trace trace;
    faults_generate(&model, 512, DAYS(60), 3, &trace);
    for (int kind = 0; kind < N_CHECKPOINT_KINDS; kind++) {
        struct run_options options = case_options(512, 60 * 86400.0, 700, 1.5, 100, 2);
        options.checkpoint.kind = (enum checkpoint_kind)kind;
        options.checkpoint.persist = SECONDS(25);
        options.checkpoint.storage_every = 4;
        options.checkpoint.write = SECONDS(900);
        options.robust = &robust;
        struct run_result one, other;
        struct diags diags = {0};
        ck_assert_int_eq(run_simulate(&options, &trace, &one, &diags), STATUS_OK);
        options.bin = SECONDS(4321);
        ck_assert_int_eq(run_simulate(&options, &trace, &other, &diags), STATUS_OK);
        for (int use = 0; use < N_TIME_USES; use++)
            ck_assert_int_eq(one.use[use], other.use[use]);
        for (size_t i = 0; i < other.n_series; i++) {
            nanos sum = 0;
            for (int use = 0; use < N_TIME_USES; use++)
                sum += other.series[i].use[use];
            ck_assert_int_eq(sum, run_bin_length(&other, i));
        }
        ck_assert_int_gt(one.use[USE_DIAGNOSIS], 0);
        ck_assert_int_gt(one.use[USE_DEGRADED], 0);
        run_result_free(&one);
        run_result_free(&other);
        diags_free(&diags);
    }
    fault_trace_free(&trace);
}
END_TEST

/* --- start-up and the machine --------------------------------------------------------------------------------------------------
 */

START_TEST(test_communicators_as_published)
{
    struct layout small = {.tp = 8, .pp = 8, .dp = 32, .cp = 1, .ep = 1}, large = small;
    large.dp = 192;
    ck_assert_double_eq_tol(startup_communicators_s(&small, 2048, STORE_TCP), 1047, 0.5);
    ck_assert_double_eq_tol(startup_communicators_s(&small, 2048, STORE_REDIS), 361, 0.5);
    ck_assert_double_lt(startup_communicators_s(&small, 2048, STORE_ORDERED), 5);
    ck_assert_double_lt(startup_communicators_s(&large, 12288, STORE_ORDERED), 30);
}
END_TEST

START_TEST(test_machine_notices_and_finds)
{
    enum { N = 4000 };
    struct robust_policy policy = policy_named("megascale");
    size_t automatic = 0, found = 0;
    double noticed = 0, diagnosed = 0;
    for (uint64_t i = 0; i < N; i++) {
        struct random_stream random = random_stream_named(1, 2, i);
        struct fault_case c = {.component = COMPONENT_GPU, .symptom = (enum symptom)(i % 3), .broken = true, .nodes = 1536};
        struct verdict v = recovery_machine_run(&policy, &c, &random);
        static const double longest[] = {15, 60, 70};
        ck_assert_double_le((double)v.detect / 1e9, longest[c.symptom] + 0.001);
        ck_assert_int_ge(v.detect, 0);
        automatic += !v.called;
        found += v.found_by >= 0;
        noticed += (double)v.detect / 1e9 / N;
        diagnosed += (double)v.diagnose / 1e9 / N;
        ck_assert(v.found || v.relapse > 0);
    }
    /* 1 - 0.7 * 0.1 * 0.4 of GPU faults are found (the second test does not look for them); below 10 min together */
    ck_assert_double_eq_tol((double)found / N, 0.972, 4 * sqrt(0.972 * 0.028 / N));
    ck_assert_double_gt((double)automatic / N, 0.90);
    ck_assert_double_lt(noticed + diagnosed, 600);
}
END_TEST

START_TEST(test_causes_are_understood)
{
    static const struct {
        const char *cause;
        enum component component;
        enum symptom symptom;
    } rows[] = {{"Unplanned host maintenance", COMPONENT_HOST, SYMPTOM_UNREACHABLE},
                {"Silent data corruption", COMPONENT_SILENT, SYMPTOM_SILENT},
                {"storage", COMPONENT_STORAGE, SYMPTOM_EXIT},
                {"Code change", COMPONENT_UNKNOWN, SYMPTOM_UNREACHABLE},
                {"NaN", COMPONENT_SILENT, SYMPTOM_SILENT},
                {"Network switch/cable", COMPONENT_SWITCH, SYMPTOM_HANG},
                {"NCCL watchdog timeout", COMPONENT_UNKNOWN, SYMPTOM_HANG},
                {"GPU HBM3 memory", COMPONENT_HBM, SYMPTOM_EXIT},
                {"", COMPONENT_UNKNOWN, SYMPTOM_UNREACHABLE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(component_of_text(rows[i].cause) == rows[i].component, "%s: %s", rows[i].cause,
                      component_name(component_of_text(rows[i].cause)));
        ck_assert_msg(symptom_of_text(rows[i].cause) == rows[i].symptom, "%s", rows[i].cause);
    }
}
END_TEST

/* A node that is not found comes back to haunt the job, then a person finds it. */
START_TEST(test_faults_that_are_not_found_come_back)
{
    struct robust_policy policy = policy_named("megascale");
    for (int i = 0; i < policy.tests.n; i++)
        memset(policy.tests.items[i].finds, 0, sizeof policy.tests.items[i].finds);
    policy.automatic = 1;
    policy.attempts = 3;
    policy.pause_rate = policy.stall_rate = 0;
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .seed = 1};
    struct run_options options = case_options(64, 10 * 86400.0, 600, 0, 0, 4);
    options.robust = &robust;
    struct fault_trace trace = {0};
    fault_trace_add(&trace, (struct fault){.time = DAYS(1), .down = SECONDS(3600), .node = 3, .speed = FULL_SPEED}, "Faulty GPU");
    struct run_result result;
    struct diags diags = {0};
    ck_assert_int_eq(run_simulate(&options, &trace, &result, &diags), STATUS_OK);
    ck_assert_int_eq(result.interruptions, 3);
    ck_assert_int_eq(result.relapses, 2);
    ck_assert_int_eq(result.called, 1);
    ck_assert_int_gt(result.use[USE_HUMAN], 0);
    run_result_free(&result);
    fault_trace_free(&trace);
    diags_free(&diags);
}
END_TEST

/* Nothing is broken, but the job hangs again and again until somebody looks at it. */
START_TEST(test_hangs_recur)
{
    struct robust_policy policy = policy_named("megascale");
    policy.automatic = policy.hang_recurs = 1;
    policy.attempts = 3;
    policy.pause_rate = policy.stall_rate = 0;
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .seed = 1};
    struct run_options options = case_options(64, 10 * 86400.0, 600, 0, 0, 4);
    options.robust = &robust;
    struct fault_trace trace = {0};
    fault_trace_add(&trace, (struct fault){.time = DAYS(1), .node = 3, .speed = FULL_SPEED}, "Job hang");
    struct run_result result = case_run(&options, &trace);
    ck_assert_int_eq(result.interruptions, 3);
    ck_assert_int_eq(result.relapses, 2);
    ck_assert_int_eq(result.called, 1);
    ck_assert_int_eq(result.by_channel[CHANNEL_TRAFFIC], 3);
    run_result_free(&result);
    policy.hang_recurs = 0;
    result = case_run(&options, &trace);
    ck_assert_int_eq(result.interruptions, 1);
    ck_assert_int_eq(result.relapses + result.called, 0);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* 64 nodes, 10 pauses each a day of 20 s in the mean, timeout 60 s: 31.9 of them a day are longer; stalls: 100 e^-3 = 4.98. */
START_TEST(test_false_alarms_come_at_their_rate)
{
    struct robust_policy policy = policy_named("megascale");
    policy.heartbeat_timeout_s = 60, policy.pause_rate = 10, policy.pause_s = 20;
    policy.traffic_window_s = 30, policy.stall_rate = 100, policy.stall_s = 10;
    for (int i = 0; i < policy.tests.n; i++)
        policy.tests.items[i].false_positive = 0;
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .seed = 1};
    struct run_options options = case_options(64, 100 * 86400.0, 600, 0, 0, 4);
    options.robust = &robust;
    struct fault_trace trace = {0};
    struct run_result result = case_run(&options, &trace);
    double trained_d = 100 - (double)(result.use[USE_RESTART] + result.use[USE_DIAGNOSIS]) / 86400e9;
    double silent = 640 * exp(-3) * trained_d, still = 100 * exp(-3) * trained_d;
    ck_assert_double_eq_tol((double)result.by_channel[CHANNEL_HEARTBEAT], silent, 4 * sqrt(silent));
    ck_assert_double_eq_tol((double)result.by_channel[CHANNEL_TRAFFIC], still, 4 * sqrt(still));
    ck_assert_int_eq(result.alarms, result.interruptions);
    ck_assert_int_eq(result.failures, 0);
    ck_assert_int_eq(result.use[USE_DETECTION], 0);
    /* each takes the whole suite, 330 s, and a restart of 60 s */
    ck_assert_int_ge(result.use[USE_DIAGNOSIS], (result.alarms - 1) * SECONDS(330));
    ck_assert_int_le(result.use[USE_DIAGNOSIS], result.alarms * SECONDS(330));
    run_result_free(&result);
}
END_TEST

/* 1 % of the speed a day, up to 3 %, hour by hour; a restart brings it back. */
START_TEST(test_speed_drifts_until_a_restart)
{
    struct robust_policy policy = policy_named("megascale");
    policy.drift_per_day = 0.01, policy.drift_limit = 0.03, policy.automatic = 1, policy.hang_recurs = 0;
    policy.pause_rate = policy.stall_rate = 0;
    struct run_robust robust = {.policy = &policy, .seed = 1};
    struct run_options options = case_options(64, 10 * 86400.0, 600, 0, 0, 4);
    options.robust = &robust;
    struct fault_trace trace = {0};
    for (int restarts = 0; restarts < 2; restarts++) {
        double lost_h = 0;
        for (int h = 0; h < 240; h++)
            lost_h += fmin(0.03, 0.01 * (restarts ? h % 120 : h) / 24);
        if (restarts)
            fault_trace_add(&trace, (struct fault){.time = DAYS(5), .node = 3, .speed = FULL_SPEED}, "Software bug");
        struct run_result result = case_run(&options, &trace);
        ck_assert_double_eq_tol((double)result.use[USE_DEGRADED] / 3600e9, lost_h, 0.02);
        run_result_free(&result);
    }
    fault_trace_free(&trace);
}
END_TEST

/* Somebody is under way for ten hours; a fault that is found in three minutes meanwhile does not make them come sooner. */
START_TEST(test_a_failure_does_not_end_the_wait_for_a_person)
{
    const nanos minute = 60 * NANOS_PER_SECOND, hour = 60 * minute;
    const struct recovery_plan slow = {.detect = minute, .diagnose = 4 * minute, .human = 10 * hour, .restart = minute};
    const struct recovery_plan quick = {.detect = minute, .diagnose = 2 * minute, .restart = 5 * minute};
    struct recovery recovery = {.policy = {.spares = 4}};

    recovery_begin(&recovery, 0, 1, &slow);
    ck_assert_int_eq(recovery.found, 10 * hour + 5 * minute);
    recovery_begin(&recovery, hour, 2, &quick);
    ck_assert_int_eq(recovery.diagnosed, hour + 3 * minute);
    ck_assert_int_eq(recovery.found, 10 * hour + 5 * minute);
    ck_assert_int_eq(recovery.resumes, 10 * hour + 10 * minute);
    recovery_begin(&recovery, 10 * hour + 4 * minute, 3, &quick);
    ck_assert_int_eq(recovery.resumes, 10 * hour + 12 * minute);
}
END_TEST

START_TEST(test_elastic_goes_on_where_others_wait)
{
    struct robust_policy policy = policy_named("megascale");
    policy.drift_per_day = 0;
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .restart_hot = SECONDS(60), .seed = 1, .replicas = 8};
    struct run_options options = case_options(64, 10 * 86400.0, 600, 0, 0, 0);
    options.robust = &robust;
    struct fault_trace trace = {0};
    fault_trace_add(&trace, (struct fault){.time = DAYS(1), .down = DAYS(5), .node = 3, .speed = FULL_SPEED}, "Power supply");
    struct run_result waits, goes_on;
    struct diags diags = {0};
    ck_assert_int_eq(run_simulate(&options, &trace, &waits, &diags), STATUS_OK);
    policy.elastic = true;
    ck_assert_int_eq(run_simulate(&options, &trace, &goes_on, &diags), STATUS_OK);
    ck_assert_double_eq_tol((double)waits.use[USE_WAITING] / 86400e9, 5, 0.1);
    ck_assert_int_eq(goes_on.use[USE_WAITING], 0);
    /* one replica of eight is missing for five days */
    ck_assert_double_eq_tol((double)goes_on.use[USE_DEGRADED] / 86400e9, 5 / 8.0, 0.03);
    run_result_free(&waits);
    run_result_free(&goes_on);
    fault_trace_free(&trace);
    diags_free(&diags);
}
END_TEST

START_TEST(test_no_spares_and_no_repair_is_told)
{
    struct run_options options = case_options(4, 100, 50, 0, 20, 0);
    struct fault_trace trace = {0};
    trace_outage(&trace, 60, 0, 3e9);
    trace_outage(&trace, 70, 1, 3e9); /* while it waits: it does not begin to wait anew */
    struct run_result result = case_run(&options, &trace);
    ck_assert(result.ended_waiting);
    ck_assert_int_eq(result.waiting_since, SECONDS(60));
    ck_assert_int_gt(result.next_repair, 1000 * result.horizon);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* --- replicas and fits ---------------------------------------------------------------------------------------------------------
 */

START_TEST(test_threads_do_not_matter)
{
    enum { N = 24 };
    struct fault_model model = model_named("megascale");
    struct robust_policy policy = policy_named("megascale");
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(190), .restart_hot = SECONDS(120)};
    struct run_options options = case_options(1536, 30 * 86400.0, 1800, 1, 0, 4);
    options.robust = &robust;
    static struct replica_outcome outcomes[3][N];
    for (int i = 0; i < 3; i++) {
        struct diags diags = {0};
        struct replicas_request request = {.options = &options, .model = &model, .seed = 7, .n = N, .threads = 1 + 3 * i};
        ck_assert_int_eq(replicas_run(&request, outcomes[i], &diags), STATUS_OK);
        diags_free(&diags);
    }
    ck_assert_mem_eq(outcomes[0], outcomes[1], sizeof outcomes[0]);
    ck_assert_mem_eq(outcomes[0], outcomes[2], sizeof outcomes[0]);
    ck_assert_int_ne(outcomes[0][0].use[USE_LOST], outcomes[0][1].use[USE_LOST]);
}
END_TEST

static void check_inside(const char *what, struct interval_estimate e, double truth)
{
    double width = e.high - e.low; /* once more the interval on either side: about five standard errors */
    ck_assert_msg(e.low - width < truth && truth < e.high + width, "%s: %g in [%g, %g]", what, truth, e.low, e.high);
    ck_assert_msg(width < 1.2 * e.value, "%s: [%g, %g] says nothing", what, e.low, e.high);
}

START_TEST(test_a_fit_recovers_its_model)
{
    struct fault_model model = model_named("llama3");
    model.lemon_share = 0.03;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct fault_trace trace;
        struct fault_fit fit;
        struct diags diags = {0};
        faults_generate(&model, 2048, DAYS(700), seed, &trace);
        ck_assert_int_eq(fault_fit(&trace, "drawn", 2048, DAYS(700), &fit, &diags), STATUS_OK);
        check_inside("rate", fit.rate, model.rate);
        check_inside("shape", fit.shape, model.shape);
        check_inside("lemon share", fit.lemon_share, model.lemon_share);
        check_inside("lemon factor", fit.lemon_factor, model.lemon_factor);
        ck_assert(fit.lemons);
        ck_assert_double_gt(fit.p, 0.001);
        ck_assert_double_eq_tol(fit.repairs[REPAIR_NETWORK].mu.value, 0.032, 0.2);
        ck_assert_double_eq_tol(fit.repairs[REPAIR_NETWORK].sigma.value, 1.595, 0.2);
        fault_trace_free(&trace);
        diags_free(&diags);
    }
}
END_TEST

/* Everything that makes failures come together: bursts, early deaths, racks and switches. */
START_TEST(test_a_fit_tells_apart_what_comes_together)
{
    struct fault_model model = model_named("llama3");
    model.rate = 4e-3, model.shape = 0.75, model.lemon_share = 0.02;
    model.burst_probability = 0.15, model.burst_hours = 3;
    model.early_share = 0.2, model.early_days = 10;
    model.groups.n = 2;
    model.groups.items[0] = (struct fault_group){.name = "rack", .nodes = 8, .rate = 2e-3, .share = 0.7, .repair = {1, 0.5}};
    model.groups.items[1] = (struct fault_group){.name = "ToR", .nodes = 36, .rate = 1e-3, .share = 0.9, .repair = {0, 0.3}};
    struct fault_trace trace;
    struct fault_fit fit;
    struct diags diags = {0};
    faults_generate(&model, 1024, DAYS(400), 5, &trace);
    ck_assert_int_eq(fault_fit(&trace, "drawn", 1024, DAYS(400), &fit, &diags), STATUS_OK);
    ck_assert(fit.lemons && fit.bursts && fit.early);
    check_inside("shape", fit.shape, model.shape);
    check_inside("burst probability", fit.burst_probability, model.burst_probability);
    check_inside("burst hours", fit.burst_hours, model.burst_hours);
    check_inside("early share", fit.early_share, model.early_share);
    check_inside("early days", fit.early_days, model.early_days);
    ck_assert_double_eq_tol(fit.model.rate, model.rate, 0.1 * model.rate);
    ck_assert_int_eq(fit.model.groups.n, 2);
    for (int i = 0; i < 2; i++) {
        const struct fault_group *found = &fit.model.groups.items[i];
        const struct fault_group *drawn = &model.groups.items[strcmp(found->name, "ToR") == 0];
        ck_assert_str_eq(found->name, drawn->name);
        ck_assert_int_eq(found->nodes, drawn->nodes);
        ck_assert_double_eq_tol(found->share, drawn->share, 0.06);
        ck_assert_double_eq_tol(found->repair.mu, drawn->repair.mu, 0.3);
        check_inside(found->name, fit.groups[i].rate, drawn->rate);
    }
    fault_trace_free(&trace);
    diags_free(&diags);
}
END_TEST

START_TEST(test_a_fit_sees_no_lemons_where_none_are)
{
    struct fault_model model = model_named("llama3");
    struct fault_trace trace = {0};
    struct fault_fit fit;
    struct diags diags = {0};
    model.lemon_share = 0;
    model.shape = 1;
    faults_generate(&model, 2048, DAYS(700), 9, &trace);
    ck_assert_int_eq(fault_fit(&trace, "drawn", 2048, DAYS(700), &fit, &diags), STATUS_OK);
    ck_assert_double_eq_tol(fit.shape.value, 1, 0.05);
    ck_assert(!fit.lemons || fit.lemon_factor.value < 2);
    ck_assert(!fit.early && fit.model.groups.n == 0);
    ck_assert(!fit.bursts);
    fault_trace_free(&trace);
    ck_assert_int_eq(fault_fit(&trace, "nothing", 10, DAYS(1), &fit, &diags), STATUS_BAD_INPUT);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("weeks");
    TCase *all = tcase_create("weeks");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, test_exponential_failures_give_the_closed_form);
    tcase_add_test(all, test_best_interval_is_youngs);
    tcase_add_test(all, test_two_stages_by_hand);
    tcase_add_test(all, test_neighbours_by_hand);
    tcase_add_test(all, test_memory_is_stale_after_silent_corruption);
    tcase_add_test(all, test_series_width_does_not_matter_in_stages);
    tcase_add_test(all, test_communicators_as_published);
    tcase_add_test(all, test_causes_are_understood);
    tcase_add_test(all, test_machine_notices_and_finds);
    tcase_add_test(all, test_faults_that_are_not_found_come_back);
    tcase_add_test(all, test_hangs_recur);
    tcase_add_test(all, test_false_alarms_come_at_their_rate);
    tcase_add_test(all, test_speed_drifts_until_a_restart);
    tcase_add_test(all, test_a_failure_does_not_end_the_wait_for_a_person);
    tcase_add_test(all, test_elastic_goes_on_where_others_wait);
    tcase_add_test(all, test_no_spares_and_no_repair_is_told);
    tcase_add_test(all, test_threads_do_not_matter);
    tcase_add_test(all, test_a_fit_recovers_its_model);
    tcase_add_test(all, test_a_fit_tells_apart_what_comes_together);
    tcase_add_test(all, test_a_fit_sees_no_lemons_where_none_are);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
