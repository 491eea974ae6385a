/*
 * Replicas that fail alone under a robust policy: false alarms, speed that drifts, healthy nodes that are taken for faulty, by
 * hand.
 */
#include <check.h>

#include "case.h"
#include "four_units.h"
#include "sim/weeks/failover.h"
#include "tests/suite.h"

enum { RESTART = 20, HOUR = 3600, RECHECK = 2000 }; /* seconds */

/* No suite, nobody is called, nothing comes back, nothing drifts, and no watcher is fooled. */
static struct robust_policy quiet_policy(void)
{
    struct robust_policy policy = case_policy("megascale");
    policy.tests.n = policy.blocklist_failures = 0;
    policy.automatic = 1;
    policy.drift_per_day = policy.pause_rate = policy.stall_rate = policy.hang_recurs = policy.straggler_find_s = 0;
    policy.recheck_s = RECHECK;
    return policy;
}

static struct run_result run_of(const struct robust_policy *policy, double horizon, int spares, nanos bin,
                                const struct fault_trace *trace)
{
    struct run_robust robust = {
        .policy = policy, .restart = SECONDS(RESTART), .restart_hot = SECONDS(RESTART), .seed = 3, .replicas = UNITS};
    struct run_options options = case_options(NODES, horizon, 1e7, 0, RESTART, spares);
    options.robust = &robust;
    options.failover = &four_units;
    options.bin = bin;
    return case_run(&options, trace);
}

/* A node that falls silent two times a day (seven times with this seed, hours apart): its replica is restarted, and the others
 * go on with three of four until it is back, 60 s later. */
START_TEST(test_a_silent_node_is_one_replica)
{
    struct robust_policy policy = quiet_policy();
    struct fault_trace none = {0};
    policy.pause_rate = 2.0 / NODES;
    policy.pause_s = 1e9; /* each pause is longer than the timeout */
    struct run_result result = run_of(&policy, 4 * 86400, 4, 0, &none);
    double n = (double)result.alarms;
    ck_assert_double_gt(n, 3);
    ck_assert_int_eq(result.borne, result.alarms);
    ck_assert_int_eq(result.interruptions, result.alarms);
    ck_assert_double_eq(seconds_of(&result, USE_RESTART), n * 2 * REGROUP);
    ck_assert_double_eq_tol(seconds_of(&result, USE_DEGRADED), n * 0.25 * (REJOIN - REGROUP), 1e-6);
    ck_assert_double_lt(seconds_of(&result, USE_LOST), n * STEP);
    for (size_t i = 0; i < result.n_incidents; i++)
        ck_assert(result.incidents[i].alarm && result.incidents[i].borne);
    run_result_free(&result);
}
END_TEST

/* When the whole job stands still nobody knows whose replica is to blame: it stops, and goes back to its checkpoint. */
START_TEST(test_a_job_that_stands_still_stops)
{
    struct robust_policy policy = quiet_policy();
    struct fault_trace none = {0};
    policy.stall_rate = 2;
    policy.stall_s = 1e9;
    struct run_result result = run_of(&policy, 4 * 86400, 4, 0, &none);
    ck_assert_int_gt(result.alarms, 3);
    ck_assert_int_eq(result.borne, 0);
    ck_assert_double_eq(seconds_of(&result, USE_RESTART), (double)result.alarms * RESTART);
    ck_assert_double_eq_tol(seconds_of(&result, USE_TRAINING) + seconds_of(&result, USE_LOST),
                            4 * 86400 - (double)result.alarms * RESTART, 1e-6);
    ck_assert_double_gt(seconds_of(&result, USE_LOST), 86400);
    run_result_free(&result);
}
END_TEST

/* The suite runs on the two nodes of the silent one's replica, and condemns them again and again: without spares it is out
 * until they are checked, and no other replica is. */
START_TEST(test_condemned_nodes_are_of_the_replica)
{
    struct robust_policy policy = quiet_policy();
    struct fault_trace none = {0};
    policy.pause_rate = 2.0 / NODES;
    policy.pause_s = 1e9;
    policy.tests.n = 1;
    policy.tests.items[0].seconds = 0;
    policy.tests.items[0].false_positive = 10;
    struct run_result result = run_of(&policy, 4 * 86400, 0, 0, &none);
    double n = (double)result.borne;
    ck_assert_double_gt(n, 3);
    ck_assert_int_gt(result.condemned, 10 * result.borne);
    ck_assert_double_eq_tol(seconds_of(&result, USE_DEGRADED), n * 0.25 * (RECHECK + REJOIN - REGROUP), 1e-6);
    ck_assert_int_eq(result.use[USE_WAITING], 0);
    run_result_free(&result);
}
END_TEST

/* One percent an hour since the processes began, of those that have run longest: all four are replaced after 10, 20, 30 and 40 h,
 * so that in the 50th hour the oldest are 38 h and a bit old, and in the ninth they were 8 h. */
START_TEST(test_speed_drifts_with_the_oldest)
{
    struct robust_policy policy = quiet_policy();
    struct fault_trace trace = {0};
    policy.drift_per_day = 0.24;
    policy.drift_limit = 0.9;
    for (int unit = 0; unit < UNITS; unit++)
        trace_outage(&trace, (unit + 1) * 10 * HOUR, unit, 0);
    struct run_result result = run_of(&policy, 50 * HOUR, 4, SECONDS(HOUR), &trace);
    ck_assert_int_eq(result.borne, UNITS);
    ck_assert_double_eq_tol((double)result.series[8].use[USE_DEGRADED] / 1e9, 0.08 * HOUR, 1e-3);
    ck_assert_double_eq_tol((double)result.series[19].use[USE_DEGRADED] / 1e9, 0.19 * HOUR, 0.01 * HOUR);
    ck_assert_double_gt((double)result.series[49].use[USE_DEGRADED] / 1e9, 0.38 * HOUR);
    ck_assert_double_lt((double)result.series[49].use[USE_DEGRADED] / 1e9, 0.39 * HOUR);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("failover_policy");
    TCase *all = tcase_create("failover_policy");
    tcase_add_test(all, test_a_silent_node_is_one_replica);
    tcase_add_test(all, test_a_job_that_stands_still_stops);
    tcase_add_test(all, test_condemned_nodes_are_of_the_replica);
    tcase_add_test(all, test_speed_drifts_with_the_oldest);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
