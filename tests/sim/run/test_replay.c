/*
 * The replay rules: 48 settings of a real 974-day trace against published exact answers, and boundary cases by hand.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "case.h"
#include "model/base/memory.h"
#include "sim/weeks/run_closed_form.h"
#include "tests/suite.h"
#include "traces/table/csv.h"

/* --- the reference table --- */

static char *shared_path(const char *name)
{
    const char *shared = getenv("MSIM_SHARED");
    char path[4096];
    snprintf(path, sizeof path, "%s/traces/%s", shared ? shared : "", name);
    FILE *file = shared && *shared ? fopen(path, "r") : NULL;
    if (!file) {
        printf("skipped: no %s (MSIM_SHARED)\n", name);
        return NULL;
    }
    fclose(file);
    return memory_copy_text(path);
}

static double number(const struct csv_table *table, size_t row, const char *column)
{
    struct diags diags = {0};
    double value = NAN;
    ck_assert_int_eq(csv_cell_number(table, row, csv_table_column(table, column), -1e18, 1e18, &value, &diags), STATUS_OK);
    diags_free(&diags);
    return value;
}

static void check_row(const struct csv_table *table, size_t row, const struct fault_trace *trace)
{
    struct run_options options =
        case_options(1536, 974 * 86400.0, number(table, row, "ckpt_interval_s"), number(table, row, "ckpt_block_s"),
                     number(table, row, "restart_s"), (int)number(table, row, "spares"));
    options.bin = SECONDS(86400);
    struct run_result result = case_run(&options, trace);
    double idle = seconds_of(&result, USE_DETECTION) + seconds_of(&result, USE_WAITING) + seconds_of(&result, USE_RESTART);
    ck_assert_int_eq(result.failures, (int64_t)number(table, row, "failures_in_trace"));
    ck_assert_int_eq(result.interruptions, (int64_t)number(table, row, "interruptions_of_training"));
    /* The table has two and five decimals: half a unit of the last, and a little for ties of the rounding. */
    ck_assert_double_eq_tol(seconds_of(&result, USE_TRAINING) / 3600, number(table, row, "useful_h"), 0.00501);
    ck_assert_double_eq_tol(seconds_of(&result, USE_LOST) / 3600, number(table, row, "lost_h"), 0.00501);
    ck_assert_double_eq_tol(seconds_of(&result, USE_CHECKPOINT) / 3600, number(table, row, "ckpt_h"), 0.00501);
    ck_assert_double_eq_tol(idle / 3600, number(table, row, "idle_h"), 0.00501);
    ck_assert_double_eq_tol(result.ettr, number(table, row, "ettr"), 0.00000501);
    ck_assert(result.ettr == result.goodput);
    struct run_closed_form form = run_closed_form(&options, (double)result.failures);
    ck_assert_double_eq_tol(form.first_order, number(table, row, "ettr_first_order"), 0.00000501);
    ck_assert_double_eq_tol(form.exponential, number(table, row, "ettr_exponential"), 0.00000501);
    run_result_free(&result);
}

START_TEST(test_reference)
{
    char *table_path = shared_path("replay_reference.csv");
    char *trace_path = shared_path("lanl_replay_1536.csv.gz");
    if (table_path && trace_path) {
        struct diags diags = {0};
        struct csv_table table;
        struct fault_trace trace;
        ck_assert_int_eq(csv_table_read(table_path, &table, &diags), STATUS_OK);
        ck_assert_int_eq(fault_trace_read(trace_path, (struct fault_trace_limits){.keep = 1536}, &trace, &diags), STATUS_OK);
        ck_assert_uint_eq(table.n_rows, 48);
        for (size_t row = 0; row < table.n_rows; row++)
            check_row(&table, row, &trace);
        csv_table_free(&table);
        fault_trace_free(&trace);
        diags_free(&diags);
    }
    free(table_path);
    free(trace_path);
}
END_TEST

/* --- by hand --- */

struct expected {
    double training, checkpoint, lost, waiting, restart;
    int interruptions;
};

static void check_use(const char *what, const struct run_result *result, enum time_use use, double expected_s)
{
    ck_assert_msg(seconds_of(result, use) == expected_s, "%s: %s %.9f s, not %.9f s", what, time_use_name(use),
                  seconds_of(result, use), expected_s);
}

static void check_case(const char *what, struct run_options options, const struct fault_trace *trace, struct expected expected)
{
    struct run_result result = case_run(&options, trace);
    check_use(what, &result, USE_TRAINING, expected.training);
    check_use(what, &result, USE_CHECKPOINT, expected.checkpoint);
    check_use(what, &result, USE_LOST, expected.lost);
    check_use(what, &result, USE_WAITING, expected.waiting);
    check_use(what, &result, USE_RESTART, expected.restart);
    ck_assert_msg(result.interruptions == expected.interruptions, "%s: %lld interruptions, not %d", what,
                  (long long)result.interruptions, expected.interruptions);
    run_result_free(&result);
}

/* As case_options and trace_outage take them. */
struct by_hand {
    const char *what;
    struct {
        int nodes;
        double horizon, interval, block, restart;
        int spares;
    } job;
    struct expected expected;
    int n_outages;
    struct {
        double time_s;
        int node;
        double down_s;
    } outages[2];
};

static const struct by_hand by_hand[] = {
    {"nothing but intervals: 1000 = 9 * (100 + 10) + 10",
     {2, 1000, 100, 10, 60, 0},
     {.training = 910, .checkpoint = 90},
     0,
     {{0, 0, 0}}},
    {"the horizon inside a checkpoint: 105 = 100 + half of one",
     {2, 105, 100, 10, 60, 0},
     {.training = 100, .checkpoint = 5},
     0,
     {{0, 0, 0}}},
    {"an interval beyond the horizon never ends", {2, 1000, 5000, 10, 60, 0}, {.training = 1000}, 0, {{0, 0, 0}}},
    /* a failure at the edges of a checkpoint */
    {"at the end of the interval, before its checkpoint: all of it is lost",
     {2, 110, 100, 10, 10, 1},
     {.lost = 100, .restart = 10, .interruptions = 1},
     1,
     {{100, 0, 1}}},
    {"inside the checkpoint: the half-written one is lost too, its time is checkpoint time",
     {2, 117, 100, 10, 10, 1},
     {.checkpoint = 7, .lost = 100, .restart = 10, .interruptions = 1},
     1,
     {{107, 0, 1}}},
    {"exactly at its end the state is safe",
     {2, 120, 100, 10, 10, 1},
     {.training = 100, .checkpoint = 10, .restart = 10, .interruptions = 1},
     1,
     {{110, 0, 1}}},
    {"and so it is at the end of an interval when checkpoints take no time",
     {2, 350, 100, 0, 10, 1},
     {.training = 340, .restart = 10, .interruptions = 1},
     1,
     {{300, 0, 1}}},
    /* whole intervals start anew after a restart */
    {"stops at 150 (50 lost), resumes at 160; the next checkpoint is due at 260, the failure at 259 undoes 99",
     {2, 300, 100, 0, 10, 1},
     {.training = 131, .lost = 149, .restart = 20, .interruptions = 2},
     2,
     {{150, 0, 1}, {259, 0, 1}}},
    /* waiting for nodes */
    {"one spare, two nodes down: the repair at 130 brings the number down to one",
     {4, 300, 50, 0, 20, 1},
     {.training = 250, .waiting = 20, .restart = 30, .interruptions = 1},
     2,
     {{100, 0, 30}, {110, 1, 90}}},
    {"no spare: both must be back, at 200",
     {4, 300, 50, 0, 20, 0},
     {.training = 180, .waiting = 100, .restart = 20, .interruptions = 1},
     2,
     {{100, 0, 30}, {110, 1, 90}}},
    {"overlapping outages of one node count as one node, and end together at 180",
     {4, 300, 50, 0, 20, 0},
     {.training = 200, .waiting = 80, .restart = 20, .interruptions = 1},
     2,
     {{100, 0, 80}, {110, 0, 20}}},
    {"as many spares as nodes: nobody waits",
     {2, 300, 50, 0, 20, 2},
     {.training = 275, .restart = 25, .interruptions = 1},
     2,
     {{100, 0, 1000}, {105, 1, 1000}}},
    /* ties */
    {"due to resume at 120 and hit at 120: resumes first, is interrupted at once",
     {4, 200, 50, 0, 20, 1},
     {.training = 160, .restart = 40, .interruptions = 2},
     2,
     {{100, 0, 5}, {120, 1, 5}}},
    {"one nanosecond earlier it is still recovering, and the clock starts anew",
     {4, 200, 50, 0, 20, 1},
     {.training = 160.000000001, .restart = 39.999999999, .interruptions = 1},
     2,
     {{100, 0, 5}, {119.999999999, 1, 5}}},
    {"repairs before failures: node 0 is back at 120, training resumes then, and node 1 interrupts it at once",
     {4, 200, 50, 0, 0, 0},
     {.training = 150, .waiting = 50, .interruptions = 2},
     2,
     {{100, 0, 20}, {120, 1, 30}}},
    {"an outage of no length ends after the failures of its instant: two nodes are down, one spare, then none is",
     {4, 200, 50, 0, 20, 1},
     {.training = 180, .restart = 20, .interruptions = 1},
     2,
     {{100, 0, 0}, {100, 1, 0}}},
    {"without spares and restart time an empty outage costs the interval only, once for each failure that finds it training",
     {4, 200, 50, 0, 0, 0},
     {.training = 180, .lost = 20, .interruptions = 1},
     2,
     {{120, 0, 0}, {120, 1, 0}}},
    {"with a spare for each they find it training twice",
     {4, 200, 50, 0, 0, 2},
     {.training = 180, .lost = 20, .interruptions = 2},
     2,
     {{120, 0, 0}, {120, 1, 0}}},
    /* beginning and horizon */
    {"a failure at 0 interrupts a run that has just begun",
     {2, 100, 50, 0, 20, 1},
     {.training = 80, .restart = 20, .interruptions = 1},
     1,
     {{0, 0, 5}}},
    {"one at the horizon is none; work in progress there counts", {2, 100, 70, 0, 20, 1}, {.training = 100}, 1, {{100, 0, 5}}},
};

START_TEST(test_by_hand)
{
    const struct by_hand *c = &by_hand[_i];
    struct fault_trace trace = {0};
    for (int i = 0; i < c->n_outages; i++)
        trace_outage(&trace, c->outages[i].time_s, c->outages[i].node, c->outages[i].down_s);
    check_case(c->what, case_options(c->job.nodes, c->job.horizon, c->job.interval, c->job.block, c->job.restart, c->job.spares),
               &trace, c->expected);
    fault_trace_free(&trace);
}
END_TEST

START_TEST(test_the_longest_interval_there_is)
{
    struct fault_trace none = {0};
    struct run_options longest = case_options(2, 1000, 1, 0, 60, 0);
    longest.checkpoint = (struct checkpoint_policy){.interval = INT64_MAX, .block = INT64_MAX};
    check_case("the longest interval", longest, &none, (struct expected){.training = 1000});
}
END_TEST

START_TEST(test_never_repaired)
{
    struct fault_trace trace = {0};
    trace_outage(&trace, 60, 0, 1e9);
    struct run_options options = case_options(2, 100, 50, 0, 20, 0);
    struct run_result result = case_run(&options, &trace);
    ck_assert(result.ended_waiting);
    ck_assert_int_eq(result.waiting_since, SECONDS(60));
    ck_assert(result.incidents[0].resumed == NEVER);
    ck_assert_double_eq(seconds_of(&result, USE_WAITING), 40);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

START_TEST(test_detection)
{
    struct fault_trace trace = {0};
    /* unnoticed to 110, node back at 130, restart to 150 */
    trace_outage(&trace, 100, 0, 30);
    struct run_options options = case_options(2, 200, 50, 0, 20, 0);
    options.recovery.detect = SECONDS(10);
    struct run_result result = case_run(&options, &trace);
    ck_assert_double_eq(seconds_of(&result, USE_DETECTION), 10);
    ck_assert_double_eq(seconds_of(&result, USE_WAITING), 20);
    ck_assert_double_eq(seconds_of(&result, USE_RESTART), 20);
    ck_assert_int_eq(result.incidents[0].resumed, SECONDS(150));
    run_result_free(&result);
    /* a node that is back before anybody noticed costs the detection all the same */
    options.recovery.detect = SECONDS(40);
    result = case_run(&options, &trace);
    ck_assert_double_eq(seconds_of(&result, USE_DETECTION), 40);
    ck_assert_double_eq(seconds_of(&result, USE_WAITING), 0);
    ck_assert_int_eq(result.incidents[0].resumed, SECONDS(160));
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

START_TEST(test_stragglers)
{
    struct fault_trace trace = {0};
    /* half speed in [100, 140), a quarter in [120, 130): 100 + 10 + 2.5 + 5 + 60 = 177.5 of work in 200 */
    trace_slow(&trace, 100, 0, 40, 0.5);
    trace_slow(&trace, 120, 1, 10, 0.25);
    struct run_options options = case_options(2, 200, 1000, 0, 20, 0);
    struct run_result result = case_run(&options, &trace);
    ck_assert_double_eq(seconds_of(&result, USE_TRAINING), 177.5);
    ck_assert_double_eq(seconds_of(&result, USE_DEGRADED), 22.5);
    ck_assert_double_eq(result.ettr, 1);
    ck_assert_double_eq(result.goodput, 177.5 / 200);
    ck_assert_int_eq(result.interruptions, 0);
    ck_assert_int_eq(result.slowdowns, 2);
    run_result_free(&result);
    /* an interval is work, not time: 50 of it end at 50, 100 and 200 (half speed from 100 on); the failure at 199 undoes 99 s of
     * the clock, and the restart is no faster for being on slow hardware */
    fault_trace_free(&trace);
    trace_slow(&trace, 100, 0, 1000, 0.5);
    trace_outage(&trace, 199, 1, 5);
    options = case_options(2, 300, 50, 0, 20, 1);
    result = case_run(&options, &trace);
    ck_assert_double_eq(seconds_of(&result, USE_LOST), 99);
    ck_assert_double_eq(seconds_of(&result, USE_RESTART), 20);
    ck_assert_double_eq(seconds_of(&result, USE_TRAINING), 100 + 81 * 0.5);
    ck_assert_double_eq(seconds_of(&result, USE_DEGRADED), 81 * 0.5);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* Looking at the clock more often changes nothing, although speeds such as 1/3 leave fractions of a nanosecond. */
START_TEST(test_series_width_does_not_matter)
{
    struct fault_trace trace = {0};
    for (int i = 0; i < 40; i++) {
        trace_slow(&trace, 100 * i + 1.000000007 * i, i % 7, 155.25, 1 / (3.0 + i % 3));
        trace_outage(&trace, 100 * i + 1.3 * i + 41, i % 5, 77.123456789);
    }
    struct run_options options = case_options(7, 5000, 13.37, 0.7, 9.5, 1);
    struct run_result one = case_run(&options, &trace);
    static const double widths[] = {1, 3.3, 100, 4999.999999999, 5000, 1e9};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        options.bin = nanos_from_seconds(widths[i]);
        struct run_result other = case_run(&options, &trace);
        for (int use = 0; use < N_TIME_USES; use++)
            ck_assert_int_eq(one.use[use], other.use[use]);
        ck_assert_int_eq(one.checkpoints, other.checkpoints);
        run_result_free(&other);
    }
    ck_assert_int_gt(one.use[USE_DEGRADED], 0);
    ck_assert_int_gt(one.use[USE_LOST], 0);
    run_result_free(&one);
    fault_trace_free(&trace);
}
END_TEST

START_TEST(test_bad_options)
{
    struct fault_trace trace = {0};
    trace_outage(&trace, 5, 7, 5);
    struct run_options options = case_options(4, 0, 0, -1, -1, -1);
    options.recovery.detect = -1;
    struct run_result result;
    struct diags diags = {0};
    ck_assert_int_eq(run_simulate(&options, &trace, &result, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 7);
    ck_assert_str_eq(diags.items[0].text, "a horizon of 0 s; it must be above 0");
    ck_assert_str_eq(diags.items[6].text, "the trace has a fault on node 7, beyond the job's 4 nodes");
    diags_free(&diags);
    fault_trace_free(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replay");
    TCase *hand = tcase_create("by hand");
    tcase_add_loop_test(hand, test_by_hand, 0, sizeof by_hand / sizeof by_hand[0]);
    tcase_add_test(hand, test_the_longest_interval_there_is);
    tcase_add_test(hand, test_never_repaired);
    tcase_add_test(hand, test_detection);
    tcase_add_test(hand, test_stragglers);
    tcase_add_test(hand, test_series_width_does_not_matter);
    tcase_add_test(hand, test_bad_options);
    suite_add_tcase(suite, hand);
    TCase *reference = tcase_create("reference");
    tcase_add_test(reference, test_reference);
    suite_add_tcase(suite, reference);
    return suite_run(suite);
}
