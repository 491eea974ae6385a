/*
 * run_robust.c - faults under a robust policy: each goes through the state machine of sim/weeks/recovery_machine.h. Adds the
 * events that no trace holds: faults that come back, false alarms, and speed that drifts.
 */
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/weeks/run_internal.h"

/* --- the clocks of a restart --- */

#define DRIFT_TICK    (3600 * NANOS_PER_SECOND)
#define NANOS_PER_DAY (86400.0 * NANOS_PER_SECOND)
enum { PURPOSE_MACHINE = 64, PURPOSE_ALARM };

static double robust_drift(const struct run *run)
{
    const struct robust_policy *policy = run->options->robust->policy;
    if (policy->drift_per_day <= 0)
        return 0;
    nanos since = nanos_earlier(run->replicas->oldest(run), run->ledger.now);
    double days = (double)((run->ledger.now - since) / DRIFT_TICK) / 24;
    return fmin(policy->drift_limit, policy->drift_per_day * days);
}

/* Alarms are memoryless, so the clock may start anew at every restart. */
static nanos draw_alarm(struct run *run, nanos time)
{
    const struct run_robust *robust = run->options->robust;
    double heartbeat, hang;
    robust_policy_alarms(robust->policy, run->options->nodes, &heartbeat, &hang);
    if (heartbeat + hang <= 0)
        return NEVER;
    struct random_stream random = random_stream_named(robust->seed, PURPOSE_ALARM, (uint64_t)run->robust.n_alarm_draws++);
    double wait = -log(random_uniform(&random)) / (heartbeat + hang) * NANOS_PER_DAY;
    return wait < 9e18 - (double)time ? time + (nanos)wait + 1 : NEVER;
}

/* Clocks start anew, and slow nodes that monitoring has found leave. */
static void robust_restart(struct run *run, nanos time)
{
    const struct robust_policy *policy = run->options->robust->policy;
    if (run->phase != RUN_REGROUPING) /* after a regrouping the survivors' processes continue */
        run->replicas->begin(run, time);
    run->robust.next_drift = policy->drift_per_day > 0 && time < NEVER - DRIFT_TICK ? time + DRIFT_TICK : NEVER;
    run->robust.next_alarm = draw_alarm(run, time);
    for (size_t i = 0; i < run->robust.n_latent; i++)
        if (run->robust.latent[i].time == NEVER)
            run->robust.latent[i].time = nanos_after(time, run->robust.latent[i].gap);
    nanos age = nanos_from_seconds(policy->straggler_find_s);
    if (age > 0)
        run->replicas->evict_slow(run, time, age, nanos_from_seconds(policy->recheck_s));
    run->replicas->count_missing(run); /* nodes that came back since the failure take part */
    run_set_speed(run);
}

/* --- a failure --- */

/* Counts a failure of a node. Returns whether it has failed too often within the window; then its count starts again. */
static bool fails_too_often(struct run *run, int32_t node, nanos time)
{
    const struct robust_policy *policy = run->options->robust->policy;
    nanos window = policy->blocklist_window_s > 0 ? nanos_from_seconds(policy->blocklist_window_s) : NEVER;
    int n = 1;
    if (!run->robust.last_failure)
        return false;
    for (int32_t i = run->robust.last_failure[node]; i >= 0 && time - run->robust.node_failures[i].time < window;
         i = run->robust.node_failures[i].before)
        n++;
    if (n >= policy->blocklist_failures) {
        run->robust.last_failure[node] = -1;
        return true;
    }
    run->robust.node_failures = memory_grow(run->robust.node_failures, &run->robust.node_failures_capacity,
                                            run->robust.n_node_failures + 1, sizeof *run->robust.node_failures);
    run->robust.node_failures[run->robust.n_node_failures] =
        (struct node_failure){.time = time, .before = run->robust.last_failure[node]};
    run->robust.last_failure[node] = (int32_t)run->robust.n_node_failures++;
    return false;
}

/* The node leaves for its repair, or for longer if it fails too often. */
static void evict(struct run *run, const struct fault *fault)
{
    struct fault outage = *fault;
    enum away_reason reason = AWAY_OUTAGE;
    if (fault->down > 0 && fails_too_often(run, fault->node, fault->time)) {
        nanos listed = nanos_from_seconds(run->options->robust->policy->blocklist_s);
        if (outage.down < listed) {
            run->counts.listed++;
            outage.down = listed;
            reason = AWAY_LISTED;
        }
    }
    cluster_state_begin_for(&run->cluster, &outage, reason);
}

static void condemn(struct run *run, nanos time, int n, struct random_stream *random)
{
    nanos away = nanos_from_seconds(run->options->robust->policy->recheck_s);
    for (int i = 0; i < n; i++) {
        int32_t node = (int32_t)random_below(random, (uint64_t)run->options->nodes);
        struct fault check = {.time = time, .down = away, .node = node, .speed = FULL_SPEED, .kind = FAULT_NODE};
        cluster_state_begin_for(&run->cluster, &check, AWAY_CHECKED);
    }
    run->counts.condemned += n;
}

static void keep_latent(struct run *run, const struct fault *fault, int attempt, nanos gap)
{
    run->robust.latent =
        memory_grow(run->robust.latent, &run->robust.latent_capacity, run->robust.n_latent + 1, sizeof *run->robust.latent);
    run->robust.latent[run->robust.n_latent++] = (struct latent){.fault = fault, .attempt = attempt, .gap = gap, .time = NEVER};
}

static struct fault_case case_of(const struct run *run, const struct fault *fault, int attempt)
{
    const struct cause_reading *cause = &run->robust.causes[fault->detail >= 0 ? (size_t)fault->detail : run->trace->n_details];
    struct fault_case c = {.component = cause->component,
                           .symptom = cause->symptom,
                           .broken = fault->down > 0 && fault->kind == FAULT_NODE,
                           .nodes = run->options->nodes,
                           .attempt = attempt};
    if (fault->kind != FAULT_NODE)
        c.symptom = SYMPTOM_HANG;
    return c;
}

/* Checkpoints continue while numbers are silently wrong. After an interval the copies in memory are wrong too. */
static enum memory_fate memory_fate(const struct run *run, const struct fault_case *c, const struct verdict *verdict)
{
    return c->symptom == SYMPTOM_SILENT && verdict->detect >= run->options->checkpoint.interval ? MEMORY_STALE : MEMORY_STAYS;
}

/* The replicas of the node of `gone` leave, and the others go on. The suite ran on the nodes of these replicas, so the healthy
 * nodes that it condemns are among them. */
static void leave(struct run *run, struct incident *incident, const struct fault *gone, struct random_stream *random)
{
    const struct verdict verdict = incident->verdict;
    nanos search = verdict.diagnose + verdict.human, found = nanos_after(incident->time, verdict.detect + search);
    nanos away = nanos_from_seconds(run->options->robust->policy->recheck_s);
    run->replicas->leave(run, incident, gone, verdict.detect, search);
    for (int i = 0; i < verdict.n_condemned; i++)
        run->replicas->condemn(run, gone->node, found, away, random);
    run->counts.condemned += verdict.n_condemned;
    incident->n_down = run->cluster.n_down;
}

/* The job stops, and the node of `gone` leaves it (NULL: none). */
static void stop(struct run *run, struct incident *incident, const struct fault *gone, struct random_stream *random)
{
    const struct verdict *verdict = &incident->verdict;
    condemn(run, incident->time, verdict->n_condemned, random);
    incident->n_down = run->cluster.n_down;
    const struct recovery_plan plan = {
        .detect = verdict->detect, .diagnose = verdict->diagnose, .human = verdict->human, .restart = run_restart_time(run)};
    nanos found = incident->time + verdict->detect + verdict->diagnose + verdict->human;
    run_stop(run, RUN_RECOVERING, incident->time, run->replicas->stop(run, gone, found), &plan);
}

/* How long failed replicas stay out after the others resume, if a node is ready for them. */
static nanos time_out(const struct run *run, const struct verdict *verdict)
{
    return verdict->diagnose + verdict->human + run->replicas->rejoin_time(run);
}

static void meet_fault(struct run *run, const struct fault *fault, nanos time, int attempt)
{
    const struct run_robust *robust = run->options->robust;
    uint64_t name = (uint64_t)fault->time ^ (uint64_t)fault->node << 44 ^ (uint64_t)attempt << 58;
    struct random_stream random = random_stream_named(robust->seed, PURPOSE_MACHINE, name);
    struct fault_case c = case_of(run, fault, attempt);
    bool borne = c.symptom != SYMPTOM_SILENT && run->replicas->survives(run, fault->node);
    if (borne) /* the suite runs on the failed unit only */
        c.nodes = run->replicas->unit_nodes(run);
    struct verdict verdict = recovery_machine_run(robust->policy, &c, &random);
    struct incident *incident = run_add_incident(run, fault, time);
    incident->relapse = attempt > 0;
    incident->verdict = verdict;
    if (!borne)
        run_lose_work(run, incident, memory_fate(run, &c, &verdict));
    if (c.broken && verdict.found) {
        struct fault outage = *fault;
        outage.time = time;
        evict(run, &outage);
    }
    if (verdict.relapse > 0)
        keep_latent(run, fault, attempt + 1, verdict.relapse + (borne ? time_out(run, &verdict) : 0));
    run->counts.called += verdict.called;
    run->counts.by_channel[verdict.channel]++;
    run->counts.failures += attempt == 0 && fault->kind == FAULT_NODE;
    run->counts.relapses += attempt > 0;
    if (borne)
        leave(run, incident, fault, &random);
    else
        stop(run, incident, c.broken && verdict.found ? fault : NULL, &random);
}

/* The link is down for longer than the collective timeout. */
static bool breaks_collectives(const struct run *run, const struct fault *fault)
{
    const struct robust_policy *policy = run->options->robust->policy;
    return fault->kind == FAULT_LINK && fault->speed < FULL_SPEED / 20 && policy->collective_timeout_s > 0 &&
           fault->down > nanos_from_seconds(policy->collective_timeout_s);
}

static void robust_fault(struct run *run, const struct fault *fault)
{
    bool leaves = fault->kind == FAULT_NODE || fault_takes_node(fault);
    bool down = leaves && cluster_state_is_down(&run->cluster, fault->node);
    if (fault->kind == FAULT_PLANNED) /* a node under repair stays away for it as well */
        cluster_state_begin(&run->cluster, fault);
    if (down) {
        run->counts.outside++;
        run->counts.failures += fault->kind == FAULT_NODE;
        run->counts.planned += fault->kind == FAULT_PLANNED;
        run_add_incident(run, fault, fault->time);
    } else if (fault->kind == FAULT_PLANNED) {
        run_leave_as_planned(run, fault);
    } else if (fault->kind == FAULT_NODE || breaks_collectives(run, fault)) {
        run->counts.slowdowns += fault->kind != FAULT_NODE;
        meet_fault(run, fault, fault->time, 0);
    } else {
        cluster_state_begin(&run->cluster, fault);
        run_add_incident(run, fault, fault->time);
        run->counts.slowdowns++;
        run_set_speed(run);
    }
}

/* --- events that are in no trace --- */

static const struct fault no_fault = {.node = -1, .detail = -1, .speed = FULL_SPEED, .kind = FAULT_NODE};

/* The channel of a false alarm. */
static enum channel alarming_channel(const struct run *run, struct random_stream *random)
{
    const struct robust_policy *policy = run->options->robust->policy;
    double heartbeat, hang;
    robust_policy_alarms(policy, run->options->nodes, &heartbeat, &hang);
    if (random_uniform(random) * (heartbeat + hang) < heartbeat)
        return CHANNEL_HEARTBEAT;
    return robust_policy_watches_traffic(policy) ? CHANNEL_TRAFFIC : CHANNEL_TIMEOUT;
}

/* A false alarm: the healthy job seems to hang, or a healthy node seems silent. Only a silent node has replicas to take out. */
static void meet_alarm(struct run *run, nanos time)
{
    const struct run_robust *robust = run->options->robust;
    struct random_stream random = random_stream_named(robust->seed, PURPOSE_ALARM, (uint64_t)run->robust.n_alarm_draws++);
    enum channel channel = alarming_channel(run, &random);
    struct fault gone = no_fault;
    if (channel == CHANNEL_HEARTBEAT)
        gone.node = run->replicas->silent_node(run, &random);
    if (gone.node == NODE_NOT_IN_JOB) {
        run->robust.next_alarm = draw_alarm(run, time);
        return;
    }
    bool borne = run->replicas->survives(run, gone.node);
    int32_t nodes = borne ? run->replicas->unit_nodes(run) : run->options->nodes;
    struct incident *incident = run_add_incident(run, &no_fault, time);
    incident->alarm = true;
    incident->verdict = recovery_machine_alarm(robust->policy, channel, nodes, &random);
    run->counts.alarms++;
    run->counts.by_channel[channel]++;
    if (borne) {
        leave(run, incident, &gone, &random);
        return;
    }
    run_lose_work(run, incident, MEMORY_STAYS);
    stop(run, incident, NULL, &random);
}

/* The earliest fault that comes back. */
static size_t next_latent(const struct run *run)
{
    size_t first = 0;
    for (size_t i = 1; i < run->robust.n_latent; i++)
        if (run->robust.latent[i].time < run->robust.latent[first].time)
            first = i;
    return first;
}

/* A fault comes back, the speed drifts, a false alarm. */
enum robust_event { ROBUST_LATENT, ROBUST_DRIFT, ROBUST_ALARM };

static nanos next_event(const struct run *run, enum robust_event *event)
{
    nanos next = run->robust.n_latent > 0 ? run->robust.latent[next_latent(run)].time : NEVER;
    *event = ROBUST_LATENT;
    if (run->phase != RUN_TRAINING)
        return next;
    if (run->robust.next_drift < next) {
        *event = ROBUST_DRIFT;
        next = run->robust.next_drift;
    }
    if (run->robust.next_alarm < next) {
        *event = ROBUST_ALARM;
        next = run->robust.next_alarm;
    }
    return next;
}

static nanos robust_next(const struct run *run)
{
    enum robust_event event;
    return next_event(run, &event);
}

static void latent_returns(struct run *run, nanos time)
{
    size_t i = next_latent(run);
    struct latent latent = run->robust.latent[i];
    run->robust.latent[i] = run->robust.latent[--run->robust.n_latent];
    if (run->phase != RUN_TRAINING) /* stopped for another fault: try again after the restart */
        keep_latent(run, latent.fault, latent.attempt, latent.gap);
    else
        meet_fault(run, latent.fault, time, latent.attempt);
}

static void robust_happen(struct run *run, nanos time)
{
    enum robust_event event;
    (void)next_event(run, &event);
    if (event == ROBUST_LATENT) {
        latent_returns(run, time);
    } else if (event == ROBUST_ALARM) {
        meet_alarm(run, time);
    } else {
        run->robust.next_drift += DRIFT_TICK;
        run_set_speed(run);
    }
}

/* --- beginning and end --- */

static struct cause_reading *read_causes(const struct fault_trace *trace)
{
    struct cause_reading *causes = memory_new(trace->n_details + 1, sizeof *causes);
    for (size_t i = 0; i <= trace->n_details; i++) {
        const char *text = i < trace->n_details ? trace->details[i] : "";
        causes[i] = (struct cause_reading){component_of_text(text), symptom_of_text(text)};
    }
    return causes;
}

static void robust_open(struct run *run)
{
    if (run->options->robust->policy->blocklist_failures > 0) {
        run->robust.last_failure = memory_new((size_t)run->options->nodes, sizeof *run->robust.last_failure);
        for (int32_t i = 0; i < run->options->nodes; i++)
            run->robust.last_failure[i] = -1;
    }
    run->robust.causes = read_causes(run->trace);
    robust_restart(run, 0);
}

static void robust_close(struct run *run)
{
    free(run->robust.latent);
    free(run->robust.causes);
    free(run->robust.node_failures);
    free(run->robust.last_failure);
}

const struct fault_rules robust_fault_rules = {
    .open = robust_open,
    .close = robust_close,
    .fault = robust_fault,
    .restart = robust_restart,
    .next = robust_next,
    .happen = robust_happen,
    .drift = robust_drift,
};
