/*
 * Recovery as a policy has it: what the machine notices, finds and condemns, whom it calls, and what follows in a run, by hand.
 */
#include <check.h>
#include <math.h>
#include <string.h>

#include "case.h"
#include "sim/weeks/recovery_machine.h"
#include "tests/suite.h"

START_TEST(machine_notices_and_finds)
{
    enum { N = 4000 };
    struct robust_policy policy = case_policy("megascale");
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

START_TEST(causes_are_understood)
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
START_TEST(faults_that_are_not_found_come_back)
{
    struct robust_policy policy = case_policy("megascale");
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

/* Nothing is broken, but the job hangs again and again until a technician looks at it. */
START_TEST(hangs_recur)
{
    struct robust_policy policy = case_policy("megascale");
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

/* 64 nodes, 10 pauses each a day of 20 s on average, timeout 60 s: 31.9 of them a day are longer; stalls: 100 e^-3 = 4.98. */
START_TEST(false_alarms_come_at_their_rate)
{
    struct robust_policy policy = case_policy("megascale");
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
START_TEST(speed_drifts_until_a_restart)
{
    struct robust_policy policy = case_policy("megascale");
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

/* A technician is under way for ten hours; a fault found in three minutes meanwhile does not bring them sooner. */
START_TEST(a_failure_does_not_end_the_wait_for_a_person)
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

START_TEST(elastic_goes_on_where_others_wait)
{
    struct robust_policy policy = case_policy("megascale");
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

/* --- by hand --- */

/* Whatever is broken is found at once by one test of no time, and nobody is called; nothing happens by itself. */
static struct robust_policy plain_policy(void)
{
    struct robust_policy policy = case_policy("megascale");
    policy.tests.n = 1;
    policy.tests.items[0].seconds = policy.tests.items[0].false_positive = 0;
    for (int component = 0; component < N_COMPONENTS; component++)
        policy.tests.items[0].finds[component] = 1;
    policy.automatic = 1;
    policy.pause_rate = policy.stall_rate = policy.hang_recurs = policy.drift_per_day = policy.straggler_find_s = 0;
    policy.blocklist_failures = policy.hot_spares = 0;
    return policy;
}

static void add_fault(struct fault_trace *trace, nanos time, int node, nanos down, const char *cause)
{
    fault_trace_add(trace, (struct fault){.time = time, .down = down, .node = node, .speed = FULL_SPEED, .kind = FAULT_NODE},
                    cause);
}

static double days(nanos time)
{
    return (double)time / 86400e9;
}

/* With nothing that watches the traffic a hang is noticed by the timeout of collectives, and what follows is one heartbeat. */
START_TEST(hangs_that_nothing_watches_time_out)
{
    struct robust_policy policy = plain_policy();
    policy.traffic_window_s = 0;
    policy.collective_timeout_s = 600;
    ck_assert(!robust_policy_watches_traffic(&policy));
    for (uint64_t i = 0; i < 100; i++) {
        struct random_stream random = random_stream_named(1, 2, i);
        struct fault_case c = {.component = COMPONENT_UNKNOWN, .symptom = SYMPTOM_HANG, .nodes = 8};
        struct verdict v = recovery_machine_run(&policy, &c, &random);
        ck_assert_int_eq(v.channel, CHANNEL_TIMEOUT);
        ck_assert_int_ge(v.detect, SECONDS(600));
        ck_assert_int_le(v.detect, SECONDS(600) + nanos_from_seconds(policy.heartbeat_s));
    }
}
END_TEST

/* Heartbeats that are further apart than their timeout: a fault is anywhere in it, and is noticed after 5 s on average. */
START_TEST(rare_heartbeats_are_missed_within_their_timeout)
{
    enum { N = 4000 };
    struct robust_policy policy = plain_policy();
    double mean = 0;
    policy.heartbeat_s = 100;
    policy.heartbeat_timeout_s = 10;
    for (uint64_t i = 0; i < N; i++) {
        struct random_stream random = random_stream_named(1, 2, i);
        struct fault_case c = {.component = COMPONENT_HOST, .symptom = SYMPTOM_UNREACHABLE, .broken = true, .nodes = 8};
        mean += nanos_to_seconds(recovery_machine_run(&policy, &c, &random).detect) / N;
    }
    ck_assert_double_eq_tol(mean, 5, 4 * 10 / sqrt(12 * N));
}
END_TEST

/* 64 nodes for `n_days` days, a checkpoint every ten minutes. */
static struct run_result run_policy(const struct run_robust *robust, int n_days, int spares, const struct fault_trace *trace)
{
    struct run_options options = case_options(64, n_days * 86400.0, 600, 0, 0, spares);
    options.robust = robust;
    return case_run(&options, trace);
}

/* The first outage is replaced by the hot spare, the second one, while that is away, waits for scheduling. */
START_TEST(hot_spares_restart_sooner)
{
    struct robust_policy policy = plain_policy();
    policy.hot_spares = 1;
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(500), .restart_hot = SECONDS(70), .seed = 1};
    struct fault_trace trace = {0};
    add_fault(&trace, DAYS(1), 3, DAYS(5), "Power supply");
    add_fault(&trace, DAYS(2), 4, DAYS(5), "Power supply");
    struct run_result result = run_policy(&robust, 10, 4, &trace);
    ck_assert_int_eq(result.use[USE_RESTART], SECONDS(500 + 70));
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* Two of the spares are hot at most, for there are two: three outages at once. */
START_TEST(hot_spares_are_spares)
{
    static const int hot[] = {0, 1, 2, 8}, spares[] = {2, 2, 2, 2, 0, 0, 0, 0};
    static const int restarts_s[] = {500 + 500 + 500, 70 + 500 + 500, 70 + 70 + 500, 70 + 70 + 500, 1500, 1500, 1500, 1500};
    for (size_t i = 0; i < sizeof spares / sizeof *spares; i++) {
        struct robust_policy policy = plain_policy();
        policy.hot_spares = hot[i % 4];
        struct run_robust robust = {.policy = &policy, .restart = SECONDS(500), .restart_hot = SECONDS(70), .seed = 1};
        struct fault_trace trace = {0};
        for (int node = 0; node < 3; node++) /* without spares each is back before the next one fails */
            add_fault(&trace, DAYS(1 + node), node, spares[i] > 0 ? DAYS(6) : DAYS(1) / 2, "Power supply");
        struct run_result result = run_policy(&robust, 30, spares[i], &trace);
        ck_assert_int_eq(result.use[USE_RESTART], SECONDS(restarts_s[i]));
        run_result_free(&result);
        fault_trace_free(&trace);
    }
}
END_TEST

/* Node 3 fails three times, a given number of days apart; between, node 4 fails, which does not count for node 3. */
START_TEST(blocklists_count_within_their_window)
{
    static const struct {
        int apart_d;
        double window_s;
        int listed;
    } cases[] = {{10, 30 * 86400.0, 1},
                 {14, 30 * 86400.0, 1},
                 {15, 30 * 86400.0, 0},
                 {20, 30 * 86400.0, 0},
                 {20, 0, 1},
                 {20, 41 * 86400.0, 1},
                 {10, 1, 0}};
    static const char *const shipped[] = {"byterobust", "megascale", "manual"}; /* of which the last does not say */
    for (size_t k = 0; k < sizeof shipped / sizeof *shipped; k++)
        ck_assert_double_eq_tol(case_policy(shipped[k]).blocklist_window_s, 30 * 86400.0, 1e-6);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct robust_policy policy = plain_policy();
        policy.blocklist_failures = 3;
        policy.blocklist_window_s = cases[k].window_s;
        policy.blocklist_s = 3600;
        struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .restart_hot = SECONDS(60), .seed = 1};
        struct fault_trace trace = {0};
        for (int i = 0; i < 3; i++) {
            add_fault(&trace, DAYS(1 + i * cases[k].apart_d), 3, SECONDS(600), "Power supply");
            add_fault(&trace, DAYS(2 + i * cases[k].apart_d), 4 + i, SECONDS(600), "Power supply");
        }
        if (cases[k].listed) /* after that it counts as the first */
            add_fault(&trace, DAYS(3 + 2 * cases[k].apart_d), 3, SECONDS(600), "Power supply");
        struct run_result result = run_policy(&robust, 60, 0, &trace);
        ck_assert_int_eq(result.listed, cases[k].listed);
        ck_assert_int_eq(result.use[USE_WAITING] + result.use[USE_DETECTION], SECONDS(6 * 600 + cases[k].listed * (600 + 3000)));
        ck_assert_double_eq_tol(result.away[AWAY_OUTAGE] * 60 * 86400, 6 * 600, 1e-6);
        ck_assert_double_eq_tol(result.away[AWAY_LISTED] * 60 * 86400, cases[k].listed * 3600, 1e-6);
        run_result_free(&result);
        fault_trace_free(&trace);
    }
}
END_TEST

/* Until a moment, whatever is still to come: an outage of 4 s and one that is under way, a listing from 3 s to 9 s, a slow node
 * that is there. Two outages of a node count both. */
START_TEST(nodes_are_away_until_a_moment)
{
    static const struct {
        double now_s, outage_s, listed_s;
    } cases[] = {{4, 8 + 1, 1}, {8, 8 + 5, 5}, {9, 8 + 6, 6}, {103, 8 + 100, 6}, {500, 8 + 100, 6}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct cluster_state state;
        cluster_state_init(&state, 3);
        struct fault gone = {.down = SECONDS(4), .node = 1, .kind = FAULT_NODE},
                     slow = {.down = SECONDS(50), .kind = FAULT_STRAGGLER};
        cluster_state_begin(&state, &gone);
        cluster_state_begin(&state, &gone);
        cluster_state_begin(&state, &slow);
        gone = (struct fault){.time = SECONDS(3), .down = SECONDS(100), .node = 2, .kind = FAULT_PLANNED};
        cluster_state_begin(&state, &gone);
        gone.down = SECONDS(6);
        cluster_state_begin_for(&state, &gone, AWAY_LISTED);
        while (state.n_ends > 0 && cluster_state_next_end(&state)->time <= nanos_from_seconds(cases[k].now_s))
            cluster_state_end(&state);
        nanos now = nanos_from_seconds(cases[k].now_s);
        ck_assert_double_eq_tol(cluster_state_away_s(&state, AWAY_OUTAGE, now), cases[k].outage_s, 1e-9);
        ck_assert_double_eq_tol(cluster_state_away_s(&state, AWAY_LISTED, now), cases[k].listed_s, 1e-9);
        ck_assert_double_eq_tol(cluster_state_away_s(&state, AWAY_CHECKED, now), 0, 1e-9);
        cluster_state_free(&state);
    }
}
END_TEST

/* A node that failed too often is away for an hour at least, and for as long as its repair takes; without spares that is waited.
 */
START_TEST(blocklists_never_shorten_a_repair)
{
    static const struct {
        double down_s, away_s;
        int listed;
    } cases[] = {{60, 3600, 1}, {2 * 86400, 2 * 86400, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct robust_policy policy = plain_policy();
        policy.blocklist_failures = 1;
        policy.blocklist_s = 3600;
        struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .restart_hot = SECONDS(60), .seed = 1};
        struct fault_trace trace = {0};
        add_fault(&trace, DAYS(1), 3, nanos_from_seconds(cases[k].down_s), "Power supply");
        struct run_result result = run_policy(&robust, 10, 0, &trace);
        ck_assert_int_eq(result.use[USE_WAITING] + result.use[USE_DETECTION], nanos_from_seconds(cases[k].away_s));
        ck_assert_int_eq(result.listed, cases[k].listed);
        run_result_free(&result);
        fault_trace_free(&trace);
    }
}
END_TEST

/* Faulty GPUs are not found, and fail the job again about a day later. */
static struct robust_policy blind_policy(void)
{
    struct robust_policy policy = plain_policy();
    policy.tests.items[0].finds[component_of_text("Faulty GPU")] = 0;
    policy.attempts = 3;
    policy.relapse_s = 86400;
    return policy;
}

/* A GPU is not found and fails the job again, about a day later; by then the job waits for a node that has no spare. The fault
 * does not happen to a job that stands still: it comes after the restart. */
START_TEST(what_comes_back_waits_for_the_restart)
{
    struct robust_policy policy = blind_policy();
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .restart_hot = SECONDS(60), .seed = 1};
    struct fault_trace trace = {0};
    add_fault(&trace, DAYS(1), 3, 1, "Faulty GPU");
    add_fault(&trace, DAYS(1) + SECONDS(1000), 5, DAYS(20), "Power supply");
    struct run_result result = run_policy(&robust, 60, 0, &trace);
    ck_assert_int_ge(result.relapses, 1);
    ck_assert_double_eq_tol(days(result.use[USE_WAITING]), 20, 0.1);
    for (size_t i = 0; i < result.n_incidents; i++) {
        ck_assert(result.incidents[i].interrupted);
        ck_assert(!result.incidents[i].relapse || result.incidents[i].time > DAYS(21));
    }
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* Restarts for other reasons, every hour, do not put it off. */
START_TEST(restarts_do_not_put_off_what_comes_back)
{
    struct robust_policy policy = blind_policy();
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .restart_hot = SECONDS(60), .seed = 1};
    struct fault_trace trace = {0};
    add_fault(&trace, SECONDS(1800), 3, 1, "Faulty GPU");
    for (int hour = 1; hour < 20 * 24; hour++)
        add_fault(&trace, SECONDS(3600) * hour, 9, 0, "Software bug");
    struct run_result result = run_policy(&robust, 20, 4, &trace);
    ck_assert_int_eq(result.relapses, 2);
    ck_assert_int_eq(result.called, 1);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* --- slow nodes --- */

/* Nodes at half and at a quarter of the speed, found long ago, at a restart by plan at 1,000 s: as many leave as there are spares
 * for, the slowest first; who has no spare stays, as a slow node is better than none. */
START_TEST(slow_nodes_leave_for_spares)
{
    const double left[] = {0.75, 0.5, 0}; /* of the speed that is lost after it, by spares */
    struct robust_policy policy = plain_policy();
    struct fault_trace trace = {0};
    policy.straggler_find_s = 100;
    policy.recheck_s = 1e6;
    trace_slow(&trace, 0, 2, 20000, 0.5);
    trace_slow(&trace, 0, 5, 20000, 0.25);
    fault_trace_add(&trace, (struct fault){.time = SECONDS(1000), .node = 1, .speed = FULL_SPEED, .kind = FAULT_PLANNED}, NULL);
    for (int spares = 0; spares < 3; spares++) {
        struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .restart_hot = SECONDS(60), .replicas = 4};
        struct run_options options = case_options(8, 10060, 1e6, 0, 60, spares);
        options.robust = &robust;
        struct run_result result = case_run(&options, &trace);
        ck_assert_double_eq_tol(seconds_of(&result, USE_DEGRADED), 750 + 9000 * left[spares], 1e-6);
        ck_assert_int_eq(result.use[USE_WAITING], 0);
        run_result_free(&result);
    }
    fault_trace_free(&trace);
}
END_TEST

/* --- elastic running --- */

/* Two nodes of two replicas are away from day 2 to day 4, in the worst case one each: nothing is left to go on with until the
 * first is back. With one of them, on day 1 and from day 4 to day 7, half of the speed is lost. */
START_TEST(elastic_waits_where_no_replica_is_whole)
{
    struct robust_policy policy = plain_policy();
    policy.elastic = true;
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(60), .restart_hot = SECONDS(60), .seed = 1, .replicas = 2};
    struct fault_trace trace = {0};
    add_fault(&trace, DAYS(1), 3, DAYS(3), "Power supply"); /* until day 4 */
    add_fault(&trace, DAYS(2), 4, DAYS(5), "Power supply"); /* until day 7 */
    struct run_result result = run_policy(&robust, 10, 0, &trace);
    ck_assert_double_eq_tol(days(result.use[USE_WAITING]), 2, 0.01);
    ck_assert_double_eq_tol(days(result.use[USE_DEGRADED]), (1 + 3) / 2.0, 0.03);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* One replica of eight is missing for five days. Its node is back while the job restarts for another reason, and takes part in
 * what follows. */
START_TEST(elastic_grows_at_any_restart)
{
    struct robust_policy policy = plain_policy();
    policy.elastic = true;
    struct run_robust robust = {
        .policy = &policy, .restart = SECONDS(600), .restart_hot = SECONDS(600), .seed = 1, .replicas = 8};
    struct fault_trace trace = {0};
    add_fault(&trace, DAYS(1), 3, DAYS(5), "Power supply");
    add_fault(&trace, DAYS(6) - SECONDS(60), 9, 0, "Software bug");
    struct run_result result = run_policy(&robust, 10, 0, &trace);
    ck_assert_double_eq_tol(days(result.use[USE_DEGRADED]), 5 / 8.0, 0.03);
    ck_assert_int_eq(result.use[USE_WAITING], 0);
    ck_assert_int_eq(result.interruptions, 2);
    ck_assert_int_eq(result.use[USE_RESTART], SECONDS(2 * 600)); /* none for growing alone */
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("robust");
    TCase *all = tcase_create("robust");
    tcase_add_test(all, machine_notices_and_finds);
    tcase_add_test(all, causes_are_understood);
    tcase_add_test(all, faults_that_are_not_found_come_back);
    tcase_add_test(all, hangs_recur);
    tcase_add_test(all, false_alarms_come_at_their_rate);
    tcase_add_test(all, speed_drifts_until_a_restart);
    tcase_add_test(all, a_failure_does_not_end_the_wait_for_a_person);
    tcase_add_test(all, elastic_goes_on_where_others_wait);
    tcase_add_test(all, hangs_that_nothing_watches_time_out);
    tcase_add_test(all, rare_heartbeats_are_missed_within_their_timeout);
    tcase_add_test(all, hot_spares_restart_sooner);
    tcase_add_test(all, hot_spares_are_spares);
    tcase_add_test(all, blocklists_count_within_their_window);
    tcase_add_test(all, blocklists_never_shorten_a_repair);
    tcase_add_test(all, nodes_are_away_until_a_moment);
    tcase_add_test(all, what_comes_back_waits_for_the_restart);
    tcase_add_test(all, restarts_do_not_put_off_what_comes_back);
    tcase_add_test(all, slow_nodes_leave_for_spares);
    tcase_add_test(all, elastic_waits_where_no_replica_is_whole);
    tcase_add_test(all, elastic_grows_at_any_restart);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
