/*
 * Replicas that fail alone: cases by hand, a program that takes one second after another, and which replicas leave together.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "four_units.h"
#include "model/base/random.h"
#include "sim/weeks/failover.h"
#include "tests/suite.h"

enum { DETECT = 2, RESTART = 20, INTERVAL = 50 }; /* seconds */

static struct run_options options_of(double horizon, double interval, int spares)
{
    struct run_options options = case_options(NODES, horizon, interval, 0, RESTART, spares);
    options.recovery.detect = SECONDS(DETECT);
    options.failover = &four_units;
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

/* Centuries for everything: beyond what the clock can tell, nobody comes back. */
START_TEST(test_never)
{
    enum { CENTURY = 100 * 365 };
    struct run_options options = options_of(86400.0 * CENTURY, 1e6, 4);
    struct run_failover failover = four_units;
    struct fault_trace trace = {0};
    failover.rejoin = options.recovery.detect = DAYS(CENTURY);
    options.failover = &failover;
    trace_outage(&trace, 86400.0 * (CENTURY - 1), 1, 10);
    struct run_result result = case_run(&options, &trace);
    ck_assert_int_eq(result.use[USE_DETECTION], DAYS(1));
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

/* Nothing that is drawn happens, but for what `finds` says of tests. */
static struct robust_policy calm_policy(double finds)
{
    struct robust_policy policy = case_policy("megascale");
    policy.drift_per_day = policy.pause_rate = policy.stall_rate = 0;
    policy.relapse_s = 1e9;
    policy.automatic = 1;
    for (int i = 0; i < policy.tests.n; i++) {
        policy.tests.items[i].false_positive = 0;
        policy.tests.items[i].finds[COMPONENT_GPU] = finds;
    }
    return policy;
}

/* Unit 2 waits for its node to the end; unit 1, whose fault nobody finds, keeps its node and is back soon. */
START_TEST(test_a_node_that_is_not_found_is_there)
{
    struct robust_policy policy = calm_policy(0);
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(RESTART), .restart_hot = SECONDS(RESTART)};
    struct run_options options = options_of(10000, 1e6, 0);
    struct fault_trace trace = {0};
    options.robust = &robust;
    fault_trace_add(&trace,
                    (struct fault){.time = SECONDS(1000), .down = DAYS(1), .node = 2, .speed = FULL_SPEED, .kind = FAULT_PLANNED},
                    NULL);
    fault_trace_add(&trace, (struct fault){.time = SECONDS(2000), .down = DAYS(1), .node = 1, .speed = FULL_SPEED}, "Faulty GPU");
    struct run_result result = case_run(&options, &trace);
    ck_assert_int_eq(result.borne, 2);
    ck_assert_double_lt(seconds_of(&result, USE_DEGRADED), 0.25 * 9000 + 0.25 * 600); /* the suite takes 330 s */
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* A node at half speed leaves when the job restarts, at 1,000; without a spare its unit is out until 3,020 and it is back. */
START_TEST(test_slow_nodes_leave_at_a_restart)
{
    struct robust_policy policy = calm_policy(1);
    struct run_robust robust = {.policy = &policy, .restart = SECONDS(RESTART), .restart_hot = SECONDS(RESTART)};
    policy.straggler_find_s = 100;
    policy.recheck_s = 2000;
    for (int spares = 0; spares < 2; spares++) {
        struct run_options options = options_of(10000, 1e6, spares);
        struct fault_trace trace = {0};
        options.robust = &robust;
        trace_slow(&trace, 0, 2, 20000, 0.5);
        fault_trace_add(&trace, (struct fault){.time = SECONDS(1000), .node = 1, .speed = FULL_SPEED, .kind = FAULT_PLANNED},
                        NULL);
        struct run_result result = case_run(&options, &trace);
        ck_assert_double_eq(seconds_of(&result, USE_DEGRADED), spares ? 500 : 500 + 0.25 * (2000 + REJOIN));
        run_result_free(&result);
        fault_trace_free(&trace);
    }
}
END_TEST

/* --- second by second --- */

struct away {
    int node;
    long found, ready; /* -1: no node is there */
};

struct slow_run {
    long fresh_work, fresh_time;         /* since the checkpoint: eighths of a second, seconds */
    long step_work, step_time;           /* since the step began */
    long training, degraded, lost, idle; /* eighths */
    long down_until[NODES], slow_until[NODES], empty, spares;
    struct away away[128];
    int n_away;
    long found, ready, takes; /* of the stop under way; ready -1: nodes are short */
    bool stopped, regrouping, whole;
};

static void mark_out(const struct slow_run *s, bool out[UNITS])
{
    memset(out, 0, UNITS * sizeof *out);
    for (int i = 0; i < s->n_away; i++)
        out[s->away[i].node % UNITS] = true;
}

static int units_out(const struct slow_run *s)
{
    bool out[UNITS];
    int n = 0;
    mark_out(s, out);
    for (int unit = 0; unit < UNITS; unit++)
        n += out[unit];
    return n;
}

static long later(long a, long b)
{
    return a > b ? a : b;
}

static long lacking(const struct slow_run *s, long now)
{
    long n = s->empty - s->spares;
    for (int node = 0; node < NODES; node++)
        n += s->down_until[node] > now;
    return later(n, 0);
}

static long waiting(const struct slow_run *s)
{
    long n = 0;
    for (int i = 0; i < s->n_away; i++)
        n += s->away[i].ready < 0;
    return n;
}

static void commit(struct slow_run *s)
{
    s->training += s->fresh_work;
    s->degraded += 8 * s->fresh_time - s->fresh_work;
    s->fresh_work = s->fresh_time = s->step_work = s->step_time = 0;
}

static void lose(struct slow_run *s, bool all)
{
    long time = all ? s->fresh_time : s->step_time, work = all ? s->fresh_work : s->step_work;
    s->lost += 8 * time;
    s->fresh_work -= work;
    s->fresh_time -= time;
    s->step_work = s->step_time = 0;
}

static void add_away(struct slow_run *s, long now, const struct fault *fault, long found)
{
    bool there = fault->down == 0 || waiting(s) >= lacking(s, now);
    s->away[s->n_away++] = (struct away){fault->node, found, there ? found + REJOIN : -1};
}

static void stop(struct slow_run *s, long now, long detect, bool regrouping)
{
    s->found = later(s->stopped ? s->found : now, now + detect);
    s->ready = s->whole && lacking(s, now) > 0 ? -1 : s->found;
    s->takes = regrouping ? REGROUP : RESTART;
    s->regrouping = regrouping;
    s->stopped = true;
}

/* The job stops, or goes on standing still. */
static void stop_all(struct slow_run *s, long now, const struct fault *fault)
{
    bool planned = fault->kind == FAULT_PLANNED, training = !s->stopped || s->regrouping;
    long detect = planned ? 0 : DETECT;
    if (training && planned)
        commit(s);
    else if (training)
        lose(s, true);
    if (fault->down > 0)
        add_away(s, now, fault, now + detect);
    s->whole |= units_out(s) == UNITS;
    s->n_away = s->whole ? 0 : s->n_away;
    if (training || !planned)
        stop(s, now, detect, false);
    else if (s->whole && lacking(s, now) > 0)
        s->ready = -1;
    else if (s->ready >= 0 && now > s->ready)
        s->ready = now;
}

static void slow_fault(struct slow_run *s, long now, const struct fault *fault)
{
    bool planned = fault->kind == FAULT_PLANNED;
    int before = units_out(s);
    if (fault->kind == FAULT_STRAGGLER) {
        s->slow_until[fault->node] = later(s->slow_until[fault->node], now + (long)(fault->down / NANOS_PER_SECOND));
        return;
    }
    s->empty += fault->down == 0 && s->down_until[fault->node] <= now;
    s->down_until[fault->node] = later(s->down_until[fault->node], now + (long)(fault->down / NANOS_PER_SECOND));
    struct slow_run tried = *s;
    add_away(&tried, now, fault, now + (planned ? 0 : DETECT));
    if ((planned && fault->down == 0) || (s->stopped && !s->regrouping) || units_out(&tried) == UNITS) {
        stop_all(s, now, fault);
        return;
    }
    *s = tried;
    if (units_out(s) == before)
        return;
    if (!s->stopped && !planned)
        lose(s, false);
    stop(s, now, planned ? 0 : DETECT, true);
}

/* As many nodes as are not lacking are there for those who wait. */
static void nodes_back(struct slow_run *s, long now)
{
    for (int i = 0; i < s->n_away && waiting(s) > lacking(s, now); i++)
        if (s->away[i].ready < 0)
            s->away[i].ready = later(now, s->away[i].found) + REJOIN;
    if (s->stopped && s->ready < 0 && lacking(s, now) == 0)
        s->ready = later(now, s->found);
}

static bool slow_join(struct slow_run *s, long now)
{
    int before = units_out(s), kept = 0;
    for (int i = 0; i < s->n_away; i++)
        if (s->away[i].ready < 0 || s->away[i].ready > now)
            s->away[kept++] = s->away[i];
    s->n_away = kept;
    return units_out(s) < before;
}

/* Who is at half speed and not out holds everybody up. */
static int eighths_a_second(const struct slow_run *s, long now)
{
    bool out[UNITS], slow = false;
    mark_out(s, out);
    for (int node = 0; node < NODES; node++)
        slow |= s->slow_until[node] > now && !out[node % UNITS];
    return (UNITS - units_out(s)) * (slow ? 1 : 2);
}

/* A step or an interval of 0 never ends. */
static void slow_second(struct slow_run *s, long now, int interval, int step)
{
    int speed = eighths_a_second(s, now);
    s->fresh_time++;
    s->step_time++;
    s->fresh_work += speed;
    s->step_work += speed;
    if (s->step_work >= 8 * step) {
        s->step_work -= step ? 8 * step : s->step_work;
        s->step_time = 0;
    }
    if (interval && s->fresh_work >= 8 * interval)
        commit(s);
}

static struct slow_run run_slowly(const struct fault_trace *trace, long horizon, int spares, int interval, int step)
{
    struct slow_run s = {.spares = spares};
    size_t next = 0;
    for (long now = 0; now < horizon; now++) {
        if (s.stopped && s.ready >= 0 && s.ready + s.takes == now) {
            (void)slow_join(&s, now);
            s.stopped = s.regrouping = s.whole = false;
        }
        nodes_back(&s, now);
        for (; next < trace->n_items && trace->items[next].time == SECONDS(now); next++)
            slow_fault(&s, now, &trace->items[next]);
        s.empty = 0;
        nodes_back(&s, now);
        if (!s.stopped && slow_join(&s, now))
            stop(&s, now, 0, true);
        if (s.stopped)
            s.idle += 8;
        else
            slow_second(&s, now, interval, step);
    }
    commit(&s);
    return s;
}

/* On nodes of `units` units, of all kinds: one in three announced, one in four of no length, and one in five of the others only
 * at half speed. */
static struct fault_trace drawn(uint64_t seed, double horizon, int units, bool all_kinds)
{
    struct random_stream random = random_stream_named(7, 1, seed);
    struct fault_trace trace = {0};
    double at = 0;
    for (int i = 0; i < 60; i++) {
        at += (double)random_below(&random, seed % 2 ? 40 : 150) + !all_kinds;
        int node = (int)random_below(&random, 2) * UNITS + (int)random_below(&random, (uint64_t)units);
        double down = 1 + (double)random_below(&random, 300);
        struct fault fault = {.time = nanos_from_seconds(at), .node = node, .speed = FULL_SPEED, .kind = FAULT_NODE};
        if (all_kinds && random_below(&random, 3) == 0)
            fault.kind = FAULT_PLANNED;
        fault.down = all_kinds && random_below(&random, 4) == 0 ? 0 : nanos_from_seconds(down);
        if (all_kinds && fault.down > 0 && random_below(&random, 5) == 0) {
            fault.kind = FAULT_STRAGGLER;
            fault.speed = FULL_SPEED / 2;
        }
        if (at < horizon)
            fault_trace_add(&trace, fault, NULL);
    }
    return trace;
}

static void check_exactly(const struct run_result *result, const struct slow_run *slow)
{
    ck_assert_int_eq(result->use[USE_TRAINING] * 8, SECONDS(slow->training));
    ck_assert_int_eq(result->use[USE_DEGRADED] * 8, SECONDS(slow->degraded));
    ck_assert_int_eq(result->use[USE_LOST] * 8, SECONDS(slow->lost));
    ck_assert_int_eq((result->use[USE_DETECTION] + result->use[USE_RESTART] + result->use[USE_WAITING]) * 8, SECONDS(slow->idle));
}

/* Outages that are announced or not, of any length, several at once, with any number of spares, and slow nodes, who hold nobody
 * up while their replica is out. */
START_TEST(test_all_kinds_against_seconds)
{
    struct run_failover failover = four_units;
    struct fault_trace trace = drawn((uint64_t)_i, 3000, UNITS, true);
    failover.step = 0;
    for (int spares = 0; spares <= NODES; spares++) {
        struct run_options options = options_of(3000, 1e6, spares);
        options.failover = &failover;
        struct run_result result = case_run(&options, &trace);
        struct slow_run slow = run_slowly(&trace, 3000, spares, 0, 0);
        check_exactly(&result, &slow);
        run_result_free(&result);
    }
    fault_trace_free(&trace);
}
END_TEST

/* Without steps and checkpoints everything falls on whole seconds: the two agree to the nanosecond. */
START_TEST(test_against_seconds)
{
    struct run_failover failover = four_units;
    struct run_options options = options_of(3000, 1e6, NODES);
    options.failover = &failover;
    failover.step = 0;
    struct fault_trace trace = drawn((uint64_t)_i, 3000, UNITS, false);
    struct run_result result = case_run(&options, &trace);
    struct slow_run slow = run_slowly(&trace, 3000, NODES, 0, 0);
    check_exactly(&result, &slow);
    run_result_free(&result);
    fault_trace_free(&trace);
    /* With them a step ends within a second at less than full speed: and one whose
     * replicas came back midway counts as done at the later speed: a second off for each failure. One unit never fails. */
    trace = drawn((uint64_t)_i, 3000, UNITS - 1, false);
    options.checkpoint.interval = SECONDS(INTERVAL);
    failover.step = SECONDS(STEP);
    result = case_run(&options, &trace);
    slow = run_slowly(&trace, 3000, NODES, INTERVAL, STEP);
    double off = (double)trace.n_items;
    ck_assert_double_eq_tol(seconds_of(&result, USE_TRAINING), (double)slow.training / 8, off);
    ck_assert_double_eq_tol(seconds_of(&result, USE_LOST), (double)slow.lost / 8, off);
    ck_assert_double_gt(seconds_of(&result, USE_LOST), 20);
    run_result_free(&result);
    fault_trace_free(&trace);
}
END_TEST

/* How wide the bins of the series are does not matter. */
START_TEST(test_series_width_does_not_matter)
{
    struct fault_trace trace = drawn((uint64_t)_i, 3000, UNITS, false);
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

/* --- who leaves together --- */

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
    tcase_add_test(all, test_never);
    tcase_add_test(all, test_nobody_is_left);
    tcase_add_test(all, test_slow_nodes_leave);
    tcase_add_test(all, test_a_node_that_is_not_found_is_there);
    tcase_add_test(all, test_slow_nodes_leave_at_a_restart);
    tcase_add_loop_test(all, test_against_seconds, 0, 40);
    tcase_add_loop_test(all, test_all_kinds_against_seconds, 0, 100);
    tcase_add_loop_test(all, test_series_width_does_not_matter, 0, 10);
    tcase_add_test(all, test_units);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
