/*
 * Replicas that fail alone: cases by hand, a program that takes one second after another, and which replicas leave together.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "model/base/random.h"
#include "sim/failover.h"
#include "tests/suite.h"

/* Eight nodes of one GPU: two stages of four replicas, of which node n has n % 4. */
enum { UNITS = 4, NODES = 8, STEP = 10, REGROUP = 5, REJOIN = 60, DETECT = 2, RESTART = 20, INTERVAL = 50 };

static const struct run_failover four = {.units = UNITS,
                                         .replicas = 1,
                                         .tp = 1,
                                         .span = UNITS,
                                         .size = 1,
                                         .gpus_per_node = 1,
                                         .step = SECONDS(STEP),
                                         .regroup = SECONDS(REGROUP),
                                         .rejoin = SECONDS(REJOIN),
                                         .rejoin_hot = SECONDS(REJOIN)};

static struct run_options options_of(double horizon, double interval, int spares)
{
    struct run_options options = case_options(NODES, horizon, interval, 0, RESTART, spares);
    options.recovery.detect = SECONDS(DETECT);
    options.failover = &four;
    return options;
}

static void check_uses(const struct run_result *result, double training, double degraded, double lost, double detection,
                       double restart)
{
    ck_assert_double_eq(seconds_of(result, USE_TRAINING), training);
    ck_assert_double_eq(seconds_of(result, USE_DEGRADED), degraded);
    ck_assert_double_eq(seconds_of(result, USE_LOST), lost);
    ck_assert_double_eq(seconds_of(result, USE_DETECTION), detection);
    ck_assert_double_eq(seconds_of(result, USE_RESTART), restart);
}

/* 0-103 training, of which 3 are dropped; noticed 105, going on at 110 with three of four until 165, all from 170. */
START_TEST(test_the_others_go_on)
{
    struct run_options options = options_of(300, 1000, 4);
    struct fault_trace trace = {0};
    trace_outage(&trace, 103, 1, 1000);
    struct run_result result = case_run(&options, &trace);
    check_uses(&result, 100 + 55 * 0.75 + 130, 55 * 0.25, 3, 2, 10);
    ck_assert_int_eq(result.borne, 1);
    run_result_free(&result);
    /* the other node of that replica: it is out already, and back when both are there, at 182 */
    trace_outage(&trace, 120, 5, 1000);
    result = case_run(&options, &trace);
    check_uses(&result, 100 + 72 * 0.75 + 113, 72 * 0.25, 3, 2, 10);
    ck_assert_int_eq(result.interruptions, 1);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* Without a spare the replica waits for its node until 153, and is back at 213. */
START_TEST(test_a_replica_waits_for_a_node)
{
    struct run_options options = options_of(300, 1000, 0);
    struct fault_trace trace = {0};
    trace_outage(&trace, 103, 1, 50);
    struct run_result result = case_run(&options, &trace);
    check_uses(&result, 100 + 103 * 0.75 + 82, 103 * 0.25, 3, 2, 10);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* The second failure falls into the first one's regrouping: noticed 108, going on at 113 with two; both are back at 170. */
START_TEST(test_a_failure_while_regrouping)
{
    struct run_options options = options_of(300, 1000, 4);
    struct fault_trace trace = {0};
    trace_outage(&trace, 103, 1, 1000);
    trace_outage(&trace, 106, 2, 1000);
    struct run_result result = case_run(&options, &trace);
    check_uses(&result, 100 + 52 * 0.5 + 130, 52 * 0.5, 3, 4, 1 + 5 + 5);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* The last replica takes the job with it: from the beginning at 172. */
START_TEST(test_nobody_is_left)
{
    struct run_options options = options_of(300, 1000, 4);
    struct fault_trace trace = {0};
    for (int i = 0; i < UNITS; i++)
        trace_outage(&trace, 103 + 16 * i, i, 1000);
    struct run_result result = case_run(&options, &trace);
    ck_assert_double_eq(seconds_of(&result, USE_TRAINING), 300 - (151 + DETECT + RESTART));
    ck_assert_int_eq(result.borne, UNITS - 1);
    ck_assert_int_eq(result.interruptions, UNITS);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* A node at half speed leaves when the others regroup for another one, and its unit comes back without it. */
START_TEST(test_slow_nodes_leave)
{
    struct robust_policy policy;
    struct diags diags = {0};
    ck_assert_int_eq(robust_policy_load("megascale", &policy, &diags), STATUS_OK);
    policy.drift_per_day = policy.pause_rate = policy.stall_rate = policy.tests.items[0].false_positive = 0;
    policy.automatic = policy.tests.items[0].finds[COMPONENT_GPU] = 1;
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(RESTART), .restart_hot = SECONDS(RESTART)};
    struct run_options options = options_of(20000, 1e6, 4);
    options.robust = &robust;
    double degraded[2];
    for (int finds = 0; finds < 2; finds++) {
        struct fault_trace trace = {0};
        policy.straggler_find_s = finds ? 100 : 0;
        trace_slow(&trace, 0, 2, 20000, 0.5);
        fault_trace_add(&trace, (struct fault){.time = SECONDS(1000), .down = SECONDS(9000), .node = 1, .speed = FULL_SPEED},
                        "Faulty GPU");
        struct run_result result = case_run(&options, &trace);
        ck_assert_int_eq(result.borne, 1);
        degraded[finds] = seconds_of(&result, USE_DEGRADED);
        run_result_free(&result);
        fault_trace_free(&trace);
    }
    ck_assert_double_gt(degraded[0], 9800);
    ck_assert_double_lt(degraded[1], 500 + 200); /* until 1,000; then two of four units are out for some minutes */
    diags_free(&diags);
}
END_TEST

/* --- second by second ---------------------------------------------------------------------------------------------------------
 */

struct slow_run {
    long fresh_work, fresh_time;         /* since the checkpoint: quarters of a second, seconds */
    long step_work, step_time;           /* since the step began */
    long training, degraded, lost, idle; /* quarters */
    long ready[NODES];                   /* of a node that is out */
    bool out[NODES];
    long stopped_until; /* 0: training */
    bool whole;
};

static int units_out(const struct slow_run *s)
{
    int n = 0;
    for (int unit = 0; unit < UNITS; unit++)
        n += s->out[unit] || s->out[unit + UNITS];
    return n;
}

static void commit(struct slow_run *s)
{
    s->training += s->fresh_work;
    s->degraded += 4 * s->fresh_time - s->fresh_work;
    s->fresh_work = s->fresh_time = s->step_work = s->step_time = 0;
}

/* Enough spares for all: no unit waits for a node. */
static void slow_failure(struct slow_run *s, long now, int node)
{
    int before = units_out(s);
    s->out[node] = true;
    s->ready[node] = now + DETECT + REJOIN;
    if (s->whole || units_out(s) == UNITS) {
        s->lost += 4 * s->fresh_time;
        s->fresh_work = s->fresh_time = s->step_work = s->step_time = 0;
        s->whole = true;
        s->stopped_until = now + DETECT + RESTART;
        memset(s->out, 0, sizeof s->out);
    } else if (units_out(s) > before) {
        if (now >= s->stopped_until) { /* else no step is under way */
            s->lost += 4 * s->step_time;
            s->fresh_work -= s->step_work;
            s->fresh_time -= s->step_time;
            s->step_work = s->step_time = 0;
        }
        s->stopped_until = now + DETECT + REGROUP;
    }
}

static bool slow_join(struct slow_run *s, long now)
{
    int before = units_out(s);
    for (int node = 0; node < NODES; node++)
        if (s->out[node] && s->ready[node] <= now)
            s->out[node] = false;
    return units_out(s) < before;
}

/* A step or an interval of 0 never ends. */
static void slow_second(struct slow_run *s, int interval, int step)
{
    int speed = UNITS - units_out(s);
    s->fresh_time++;
    s->step_time++;
    s->fresh_work += speed;
    s->step_work += speed;
    if (s->step_work >= 4 * step) {
        s->step_work -= step ? 4 * step : s->step_work;
        s->step_time = 0;
    }
    if (interval && s->fresh_work >= 4 * interval)
        commit(s);
}

static struct slow_run run_slowly(const struct fault_trace *trace, long horizon, int interval, int step)
{
    struct slow_run s = {0};
    size_t next = 0;
    for (long now = 0; now < horizon; now++) {
        if (s.stopped_until == now && now > 0) {
            (void)slow_join(&s, now);
            s.whole = false;
        }
        for (; next < trace->n_items && trace->items[next].time == SECONDS(now); next++)
            slow_failure(&s, now, trace->items[next].node);
        if (now >= s.stopped_until && slow_join(&s, now))
            s.stopped_until = now + REGROUP;
        if (now < s.stopped_until)
            s.idle += 4;
        else
            slow_second(&s, interval, step);
    }
    commit(&s);
    return s;
}

/* On nodes of so many units. */
static struct fault_trace drawn(uint64_t seed, double horizon, int units)
{
    struct random_stream random = random_stream_named(7, 1, seed);
    struct fault_trace trace = {0};
    double at = 0;
    for (int i = 0; i < 60; i++) {
        at += 1 + (double)random_below(&random, seed % 2 ? 40 : 150);
        if (at < horizon)
            trace_outage(&trace, at, (int)random_below(&random, 2) * UNITS + (int)random_below(&random, (uint64_t)units),
                         1 + (double)random_below(&random, 300));
    }
    return trace;
}

/* Without steps and checkpoints everything falls on whole seconds: the two agree to the nanosecond. */
START_TEST(test_against_seconds)
{
    struct run_failover failover = four;
    struct run_options options = options_of(3000, 1e6, NODES);
    options.failover = &failover;
    failover.step = 0;
    struct fault_trace trace = drawn((uint64_t)_i, 3000, UNITS);
    struct run_result result = case_run(&options, &trace);
    struct slow_run slow = run_slowly(&trace, 3000, 0, 0);
    ck_assert_int_eq(result.use[USE_TRAINING] * 4, SECONDS(slow.training));
    ck_assert_int_eq(result.use[USE_DEGRADED] * 4, SECONDS(slow.degraded));
    ck_assert_int_eq(result.use[USE_LOST] * 4, SECONDS(slow.lost));
    ck_assert_int_eq((result.use[USE_DETECTION] + result.use[USE_RESTART]) * 4, SECONDS(slow.idle));
    run_result_free(&result);
    fault_trace_free(&trace);
    /* With them a step ends within a second at less than full speed: and one whose
     * replicas came back midway counts as done at the later speed: a second off for each failure. Somebody is left. */
    trace = drawn((uint64_t)_i, 3000, UNITS - 1);
    options.checkpoint.interval = SECONDS(INTERVAL);
    failover.step = SECONDS(STEP);
    result = case_run(&options, &trace);
    slow = run_slowly(&trace, 3000, INTERVAL, STEP);
    double off = (double)trace.n_items;
    ck_assert_double_eq_tol(seconds_of(&result, USE_TRAINING), (double)slow.training / 4, off);
    ck_assert_double_eq_tol(seconds_of(&result, USE_LOST), (double)slow.lost / 4, off);
    ck_assert_double_gt(seconds_of(&result, USE_LOST), 20);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* How wide the bins of the series are does not matter. */
START_TEST(test_series_width_does_not_matter)
{
    struct fault_trace trace = drawn((uint64_t)_i, 3000, UNITS);
    struct run_options options = options_of(3000, INTERVAL, 1);
    struct run_result one = case_run(&options, &trace);
    options.bin = SECONDS(7);
    struct run_result other = case_run(&options, &trace);
    ck_assert_int_eq(memcmp(one.use, other.use, sizeof one.use), 0);
    run_result_free(&one);
    run_result_free(&other);
    fault_trace_free(&trace);
}
END_TEST

/* --- who leaves together ------------------------------------------------------------------------------------------------------
 */

static int units_of(struct layout layout, struct run_failover *out)
{
    char why[256] = "";
    struct cluster cluster = {.gpus_per_node = 8};
    *out = (struct run_failover){0};
    bool legal = failover_units(&layout, &cluster, out, why, sizeof why);
    ck_assert(legal == (why[0] == '\0'));
    return legal ? out->units : 0;
}

START_TEST(test_units)
{
    struct run_failover f;
    struct layout layout = {.tp = 8, .cp = 1, .pp = 2, .dp = 16, .ep = 1, .etp = 1};
    ck_assert_int_eq(units_of(layout, &f), 16);
    ck_assert_int_eq(f.replicas, 1);
    layout.zero = 1; /* divided among all: nobody has what is lost */
    ck_assert_int_eq(units_of(layout, &f), 0);
    layout.shard = 4;
    ck_assert_int_eq(units_of(layout, &f), 4);
    ck_assert_int_eq(f.replicas, 4);
    layout.shard = 16;
    ck_assert_int_eq(units_of(layout, &f), 0);
    layout.zero = 0;
    layout.shard = 0;
    layout.cp = 2; /* a sequence */
    ck_assert_int_eq(units_of(layout, &f), 16);
    ck_assert_int_eq(f.size, 2);
    layout.ep = 32; /* experts over four of the 32 */
    ck_assert_int_eq(units_of(layout, &f), 8);
    ck_assert_int_eq(f.replicas, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("failover");
    TCase *all = tcase_create("failover");
    tcase_add_test(all, test_the_others_go_on);
    tcase_add_test(all, test_a_replica_waits_for_a_node);
    tcase_add_test(all, test_a_failure_while_regrouping);
    tcase_add_test(all, test_nobody_is_left);
    tcase_add_test(all, test_slow_nodes_leave);
    tcase_add_loop_test(all, test_against_seconds, 0, 40);
    tcase_add_loop_test(all, test_series_width_does_not_matter, 0, 10);
    tcase_add_test(all, test_units);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
