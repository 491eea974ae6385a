/*
 * Outages that are announced: everything is saved before training stops; by hand.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "sim/faults/fault_model.h"
#include "sim/faults/faults.h"
#include "sim/weeks/robust_policy.h"
#include "tests/suite.h"

static void trace_planned(struct fault_trace *trace, double time_s, int node, double down_s)
{
    fault_trace_add(trace,
                    (struct fault){.time = nanos_from_seconds(time_s),
                                   .down = nanos_from_seconds(down_s),
                                   .node = node,
                                   .speed = FULL_SPEED,
                                   .kind = FAULT_PLANNED},
                    NULL);
}

static void check_uses(const struct run_options *options, const struct fault_trace *trace, double training, double checkpoint,
                       double lost, double waiting, double restart)
{
    struct run_result result = case_run(options, trace);
    ck_assert_double_eq(seconds_of(&result, USE_TRAINING), training);
    ck_assert_double_eq(seconds_of(&result, USE_CHECKPOINT), checkpoint);
    ck_assert_double_eq(seconds_of(&result, USE_LOST), lost);
    ck_assert_double_eq(seconds_of(&result, USE_WAITING), waiting);
    ck_assert_double_eq(seconds_of(&result, USE_RESTART), restart);
    run_result_free(&result);
}

/* Training until 100, saved by 110, again from 130: nothing is noticed late, nothing lost. */
START_TEST(test_everything_is_saved)
{
    struct run_options options = case_options(8, 300, 1000, 10, 20, 4);
    options.recovery.detect = SECONDS(60);
    struct fault_trace trace = {0};
    trace_planned(&trace, 100, 1, 1000);
    check_uses(&options, &trace, 100 + 170, 10, 0, 0, 20);
    /* a rack at once is one stop */
    trace_planned(&trace, 100, 2, 1000);
    trace_planned(&trace, 100, 3, 1000);
    check_uses(&options, &trace, 100 + 170, 10, 0, 0, 20);
    /* with fewer spares than nodes that leave it waits for the first that is back */
    options.recovery.spares = 3;
    trace_planned(&trace, 101, 4, 49);
    check_uses(&options, &trace, 100 + 130, 10, 0, 40, 20);
    fault_trace_free(&trace);
}
END_TEST

/* In storage: after the copy to the host, 30 s later. */
START_TEST(test_saving_takes_what_its_kind_takes)
{
    struct run_options options = case_options(8, 300, 1000, 10, 20, 4);
    struct fault_trace trace = {0};
    trace_planned(&trace, 100, 1, 1000);
    options.checkpoint.persist = SECONDS(30);
    options.checkpoint.write = SECONDS(50);
    options.checkpoint.kind = CHECKPOINT_TWO_STAGE;
    check_uses(&options, &trace, 100 + 140, 40, 0, 0, 20);
    options.checkpoint.kind = CHECKPOINT_MEMORY;
    check_uses(&options, &trace, 100 + 120, 60, 0, 0, 20);
    /* a preemption with 39 s of notice is a failure that is noticed at once, one with 60 s is not */
    options.notice = SECONDS(39);
    check_uses(&options, &trace, 180, 0, 100, 0, 20);
    options.notice = SECONDS(60);
    check_uses(&options, &trace, 100 + 120, 60, 0, 0, 20);
    fault_trace_free(&trace);
}
END_TEST

/* A failure before all is saved undoes what was to be; one behind it nothing. */
START_TEST(test_failures_while_saving)
{
    struct run_options options = case_options(8, 300, 1000, 10, 20, 4);
    struct fault_trace trace = {0};
    trace_planned(&trace, 100, 1, 1000);
    trace_outage(&trace, 105, 2, 1000);
    check_uses(&options, &trace, 300 - 125, 5, 100, 0, 20);
    fault_trace_free(&trace);
    trace = (struct fault_trace){0};
    trace_planned(&trace, 100, 1, 1000);
    trace_outage(&trace, 115, 2, 1000);
    check_uses(&options, &trace, 100 + 300 - 135, 10, 0, 0, 5 + 20);
    fault_trace_free(&trace);
}
END_TEST

/* Replicas that fail alone leave after their step, without a checkpoint; a restart by plan is one of the job. */
START_TEST(test_replicas_leave)
{
    static const struct run_failover four = {.units = 4,
                                             .replicas = 1,
                                             .tp = 1,
                                             .span = 4,
                                             .size = 1,
                                             .gpus_per_node = 1,
                                             .step = SECONDS(10),
                                             .regroup = SECONDS(5),
                                             .rejoin = SECONDS(60),
                                             .rejoin_hot = SECONDS(60)};
    struct run_options options = case_options(8, 300, 1000, 10, 20, 4);
    options.failover = &four;
    struct fault_trace trace = {0};
    trace_planned(&trace, 103, 1, 1000);
    check_uses(&options, &trace, 103 + 55 * 0.75 + 132, 0, 0, 0, 10); /* 108 to 163, from 168 */
    fault_trace_free(&trace);
    trace = (struct fault_trace){0};
    trace_planned(&trace, 103, 1, 0);
    check_uses(&options, &trace, 300 - 30, 10, 0, 0, 20);
    fault_trace_free(&trace);
    /* notice shorter than a step: the step under way is dropped, at 103 its last 3 s */
    options.notice = SECONDS(9);
    trace = (struct fault_trace){0};
    trace_planned(&trace, 103, 1, 1000);
    check_uses(&options, &trace, 100 + 55 * 0.75 + 132, 0, 3, 0, 10);
    fault_trace_free(&trace);
    /* a whole rack: the last of the units saves all before it leaves, until 113; four nodes are back at 203 */
    options.notice = 0;
    options.recovery.spares = 0;
    trace = (struct fault_trace){0};
    for (int node = 0; node < 4; node++)
        trace_planned(&trace, 103, node, 100);
    check_uses(&options, &trace, 103 + 77, 10, 0, 90, 20);
    fault_trace_free(&trace);
}
END_TEST

/* With a policy, which knows who is in the job: that a node under repair is looked at by plan meanwhile stops nobody. */
START_TEST(test_a_node_that_is_away)
{
    struct robust_policy policy = case_policy("megascale");
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(100), .restart_hot = SECONDS(100)};
    struct run_options options = case_options(8, 20000, 1800, 0, 100, 8);
    struct fault_trace trace = {0};
    policy.drift_per_day = policy.pause_rate = policy.stall_rate = 0;
    options.robust = &robust;
    trace_planned(&trace, 1000, 1, 10000);
    trace_planned(&trace, 5000, 1, 10000);
    trace_outage(&trace, 12000, 1, 1000);
    struct run_result result = case_run(&options, &trace);
    ck_assert_int_eq(result.planned, 2);
    ck_assert_int_eq(result.failures, 1);
    ck_assert_int_eq(result.outside, 2);
    ck_assert_int_eq(result.interruptions, 1);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* Maintenance of a model, under a policy: no detection, no diagnosis. */
START_TEST(test_maintenance_of_a_model)
{
    static const char text[] =
        "name: m\nsource: \"a test\"\nrate: 1e-9\nnodes: 8\ndays: 30\ncauses: [{name: gpu, count: 1, repair: none}]\n"
        "groups: [{name: maintenance, nodes: 8, rate: 1, planned: true, repair: {mu: 0, sigma: 0}}]\n";
    struct fault_model model;
    struct robust_policy policy;
    struct diags diags = {0};
    struct fault_trace trace;
    ck_assert_int_eq(fault_model_parse("m", text, strlen(text), &model, &diags), STATUS_OK);
    ck_assert_int_eq(robust_policy_load("megascale", &policy, &diags), STATUS_OK);
    policy.drift_per_day = policy.pause_rate = policy.stall_rate = 0;
    struct run_options options = case_options(8, 30 * 86400.0, 1800, 10, 100, 8);
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(100), .restart_hot = SECONDS(100)};
    options.robust = &robust;
    faults_generate(&model, 8, options.horizon, 5, &trace);
    ck_assert_uint_gt(trace.n_items, 100);
    struct run_result result = case_run(&options, &trace);
    ck_assert_int_eq(result.planned, (int64_t)trace.n_items);
    ck_assert_int_gt(result.interruptions, 10);
    ck_assert_int_eq(result.use[USE_LOST] + result.use[USE_DETECTION] + result.use[USE_DIAGNOSIS] + result.use[USE_HUMAN], 0);
    ck_assert_double_eq(seconds_of(&result, USE_RESTART), 100.0 * (double)result.interruptions);
    run_result_free(&result);
    fault_trace_free(&trace);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("planned");
    TCase *all = tcase_create("planned");
    tcase_add_test(all, test_everything_is_saved);
    tcase_add_test(all, test_saving_takes_what_its_kind_takes);
    tcase_add_test(all, test_failures_while_saving);
    tcase_add_test(all, test_replicas_leave);
    tcase_add_test(all, test_a_node_that_is_away);
    tcase_add_test(all, test_maintenance_of_a_model);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
