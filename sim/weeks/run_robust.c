#include "sim/weeks/run_internal.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"

/* --- the clocks of a restart --- */

#define DRIFT_TICK    (3600 * NANOS_PER_SECOND)
#define NANOS_PER_DAY (86400.0 * NANOS_PER_SECOND)
enum { PURPOSE_MACHINE = 64, PURPOSE_ALARM };

double robust_drift(const struct run *run)
{
    const struct robust_policy *policy = run->options->robust ? run->options->robust->policy : NULL;
    if (!policy || policy->drift_per_day <= 0)
        return 0;
    nanos since = run->options->failover ? nanos_earlier(failover_oldest(run), run->ledger.now) : run->trained_since;
    double days = (double)((run->ledger.now - since) / DRIFT_TICK) / 24;
    return fmin(policy->drift_limit, policy->drift_per_day * days);
}

/* Elastic running: the nodes that are short take their replicas with them, in the worst case one each. */
static int32_t replicas_short(const struct run *run)
{
    const struct run_robust *robust = run->options->robust;
    int32_t lacking = run->cluster.n_down - run->recovery.policy.spares;
    if (!robust || run->options->failover || !robust->policy->elastic || lacking <= 0)
        return 0;
    return lacking < robust->replicas ? lacking : 0;
}

/* Memoryless, so the clock may begin anew at every restart. */
static nanos draw_alarm(struct run *run, nanos time)
{
    const struct run_robust *robust = run->options->robust;
    double heartbeat, hang;
    robust_policy_alarms(robust->policy, run->options->nodes, &heartbeat, &hang);
    if (heartbeat + hang <= 0)
        return NEVER;
    struct random_stream random = random_stream_named(robust->seed, PURPOSE_ALARM, (uint64_t)run->restarts++);
    double wait = -log(random_uniform(&random)) / (heartbeat + hang) * NANOS_PER_DAY;
    return wait < 9e18 - (double)time ? time + (nanos)wait + 1 : NEVER;
}

bool robust_is_hot(const struct run *run)
{
    if (!run->options->robust)
        return false;
    int hot = run->options->robust->policy->hot_spares, spares = run->recovery.policy.spares;
    return run->cluster.n_down <= (hot < spares ? hot : spares);
}

/* How many nodes may leave at a restart that waits for none: slow ones are better than none. */
static int replaceable(const struct run *run)
{
    const struct run_robust *robust = run->options->robust;
    int n = run->recovery.policy.spares - run->cluster.n_down + (robust->policy->elastic ? robust->replicas - 1 : 0);
    return n > 0 ? n : 0;
}

void robust_restart(struct run *run, nanos time)
{
    const struct robust_policy *policy = run->options->robust->policy;
    if (!run->regrouping) { /* the others' processes go on */
        run->trained_since = time;
        failover_begin(run, time);
    }
    run->next_drift = policy->drift_per_day > 0 && time < NEVER - DRIFT_TICK ? time + DRIFT_TICK : NEVER;
    run->next_alarm = draw_alarm(run, time);
    for (size_t i = 0; i < run->n_latent; i++)
        if (run->latent[i].time == NEVER)
            run->latent[i].time = nanos_after(time, run->latent[i].gap);
    nanos age = nanos_from_seconds(policy->straggler_find_s), away = nanos_from_seconds(policy->recheck_s);
    if (age > 0 && run->options->failover)
        failover_evict_slow(run, time, age, away);
    else if (age > 0)
        cluster_state_evict_slow(&run->cluster, time, age, away, replaceable(run));
    if (!run->options->failover) /* nodes that came back since the failure take part */
        run->missing_replicas = replicas_short(run);
    run_set_speed(run);
}

/* --- a failure --- */

/* Nodes of one of the units that fail alone. */
static int32_t unit_nodes(const struct run *run)
{
    const int32_t units = run->options->failover->units;
    return (run->options->nodes + units - 1) / units;
}

/* How long replicas are out that fail alone and need not wait for a node, beyond the others' stop. */
static nanos away(const struct run *run, const struct verdict *verdict)
{
    const struct run_failover *f = run->options->failover;
    return verdict->diagnose + verdict->human + (robust_is_hot(run) ? f->rejoin_hot : f->rejoin);
}

nanos robust_restart_time(const struct run *run)
{
    const struct run_robust *robust = run->options->robust;
    if (!robust)
        return run->recovery.policy.restart;
    return (robust_is_hot(run) ? robust->restart_hot : robust->restart) + (run->from_storage ? robust->reload : 0);
}

int32_t robust_lacking(struct run *run, const struct fault *gone, nanos found)
{
    if (run->options->failover)
        return failover_stop(run, gone, found);
    run->missing_replicas = replicas_short(run);
    return run->missing_replicas > 0 ? 0 : run->cluster.n_down;
}

/* `gone`: the fault whose node leaves, NULL none. */
static void begin_recovery(struct run *run, nanos time, const struct verdict *verdict, const struct fault *gone)
{
    struct recovery_plan plan = {
        .detect = verdict->detect, .diagnose = verdict->diagnose, .human = verdict->human, .restart = robust_restart_time(run)};
    int32_t lacking = robust_lacking(run, gone, time + verdict->detect + verdict->diagnose + verdict->human);
    recovery_begin(&run->recovery, time, lacking, &plan);
}

/* A node leaves; whether it has failed too often within the window, after which its count begins anew. */
static bool fails_too_often(struct run *run, int32_t node, nanos time)
{
    const struct robust_policy *policy = run->options->robust->policy;
    nanos window = policy->blocklist_window_s > 0 ? nanos_from_seconds(policy->blocklist_window_s) : NEVER;
    int n = 1;
    if (!run->last_failure)
        return false;
    for (int32_t i = run->last_failure[node]; i >= 0 && time - run->node_failures[i].time < window;
         i = run->node_failures[i].before)
        n++;
    if (n >= policy->blocklist_failures) {
        run->last_failure[node] = -1;
        return true;
    }
    run->node_failures =
        memory_grow(run->node_failures, &run->node_failures_capacity, run->n_node_failures + 1, sizeof *run->node_failures);
    run->node_failures[run->n_node_failures] = (struct node_failure){.time = time, .before = run->last_failure[node]};
    run->last_failure[node] = (int32_t)run->n_node_failures++;
    return false;
}

/* The node leaves for its repair; one that fails too often for longer. */
static void evict(struct run *run, const struct fault *fault)
{
    struct fault outage = *fault;
    enum away_reason reason = AWAY_OUTAGE;
    if (fault->down > 0 && fails_too_often(run, fault->node, fault->time)) {
        nanos listed = nanos_from_seconds(run->options->robust->policy->blocklist_s);
        if (outage.down < listed) {
            run->listed++;
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
    run->condemned += n;
}

static void keep_latent(struct run *run, const struct fault *fault, int attempt, nanos gap)
{
    run->latent = memory_grow(run->latent, &run->latent_capacity, run->n_latent + 1, sizeof *run->latent);
    run->latent[run->n_latent++] = (struct latent){.fault = fault, .attempt = attempt, .gap = gap, .time = NEVER};
}

static struct fault_case case_of(const struct run *run, const struct fault *fault, int attempt)
{
    const struct cause_reading *cause = &run->causes[fault->detail >= 0 ? (size_t)fault->detail : run->trace->n_details];
    struct fault_case c = {.component = cause->component,
                           .symptom = cause->symptom,
                           .broken = fault->down > 0 && fault->kind == FAULT_NODE,
                           .nodes = run->options->nodes,
                           .attempt = attempt};
    if (fault->kind != FAULT_NODE)
        c.symptom = SYMPTOM_HANG;
    return c;
}

/* Checkpoints go on while numbers are wrong and nobody knows: after a while memory holds nothing else. */
static enum memory_fate memory_fate(const struct run *run, const struct fault_case *c, const struct verdict *verdict)
{
    return c->symptom == SYMPTOM_SILENT && verdict->detect >= run->options->checkpoint.interval ? MEMORY_STALE : MEMORY_STAYS;
}

/* Of a suite that ran on the nodes of one unit. */
static void condemn_beside(struct run *run, const struct fault *fault, nanos found, int n, struct random_stream *random)
{
    nanos away = nanos_from_seconds(run->options->robust->policy->recheck_s);
    for (int i = 0; i < n; i++)
        failover_condemn(run, fault->node, found, away, random);
    run->condemned += n;
}

/* The replicas of the node of `gone` leave, and the others go on. */
static void leave(struct run *run, struct incident *incident, const struct fault *gone, struct random_stream *random)
{
    const struct verdict verdict = incident->verdict;
    nanos search = verdict.diagnose + verdict.human, found = nanos_after(incident->time, verdict.detect + search);
    failover_leave(run, incident, gone, verdict.detect, search);
    condemn_beside(run, gone, found, verdict.n_condemned, random);
    incident->n_down = run->cluster.n_down;
}

/* The job stops, and the node of `gone` leaves it (NULL: none). */
static void stop(struct run *run, struct incident *incident, const struct fault *gone, struct random_stream *random)
{
    condemn(run, incident->time, incident->verdict.n_condemned, random);
    incident->n_down = run->cluster.n_down;
    begin_recovery(run, incident->time, &incident->verdict, gone);
}

static void meet_fault(struct run *run, const struct fault *fault, nanos time, int attempt)
{
    const struct run_robust *robust = run->options->robust;
    uint64_t name = (uint64_t)fault->time ^ (uint64_t)fault->node << 44 ^ (uint64_t)attempt << 58;
    struct random_stream random = random_stream_named(robust->seed, PURPOSE_MACHINE, name);
    struct fault_case c = case_of(run, fault, attempt);
    bool borne = c.symptom != SYMPTOM_SILENT && failover_bears(run, fault->node);
    if (borne) /* the others do not wait for the suite */
        c.nodes = unit_nodes(run);
    struct verdict verdict = recovery_machine_run(robust->policy, &c, &random);
    struct incident *incident = run_add_incident(run, fault, time);
    incident->relapse = attempt > 0;
    incident->verdict = verdict;
    if (!borne)
        run_stop_training(run, incident, memory_fate(run, &c, &verdict));
    if (c.broken && verdict.found) {
        struct fault outage = *fault;
        outage.time = time;
        evict(run, &outage);
    }
    if (verdict.relapse > 0)
        keep_latent(run, fault, attempt + 1, verdict.relapse + (borne ? away(run, &verdict) : 0));
    run->called += verdict.called;
    run->by_channel[verdict.channel]++;
    run->failures += attempt == 0 && fault->kind == FAULT_NODE;
    run->relapses += attempt > 0;
    if (borne)
        leave(run, incident, fault, &random);
    else
        stop(run, incident, c.broken && verdict.found ? fault : NULL, &random);
}

/* A link that is gone for longer than the collectives wait. */
static bool breaks_collectives(const struct run *run, const struct fault *fault)
{
    const struct robust_policy *policy = run->options->robust->policy;
    return fault->kind == FAULT_LINK && fault->speed < FULL_SPEED / 20 && policy->collective_timeout_s > 0 &&
           fault->down > nanos_from_seconds(policy->collective_timeout_s);
}

void robust_fault(struct run *run, const struct fault *fault)
{
    bool leaves = fault->kind == FAULT_NODE || fault_takes_node(fault);
    bool down = leaves && cluster_state_is_down(&run->cluster, fault->node);
    if (fault->kind == FAULT_PLANNED) /* one that is being repaired stays away for it, too */
        cluster_state_begin(&run->cluster, fault);
    if (down) {
        run->outside++;
        run->failures += fault->kind == FAULT_NODE;
        run->planned += fault->kind == FAULT_PLANNED;
        run_add_incident(run, fault, fault->time);
    } else if (fault->kind == FAULT_PLANNED) {
        run_leave_as_planned(run, fault);
    } else if (fault->kind == FAULT_NODE || breaks_collectives(run, fault)) {
        run->slowdowns += fault->kind != FAULT_NODE;
        meet_fault(run, fault, fault->time, 0);
    } else {
        cluster_state_begin(&run->cluster, fault);
        run_add_incident(run, fault, fault->time);
        run->slowdowns++;
        run_set_speed(run);
    }
}

void robust_grow(struct run *run, nanos time)
{
    int32_t lacking = replicas_short(run);
    if (lacking > 0) /* if it waits for nodes: there are enough to go on without the others */
        recovery_node_back(&run->recovery, time, 0);
    if (run->options->failover || run->missing_replicas == 0 || lacking >= run->missing_replicas || run->recovery.active)
        return;
    struct recovery_plan plan = {.restart = run->options->robust->restart_hot};
    run->missing_replicas = lacking;
    recovery_begin(&run->recovery, time, 0, &plan);
}

/* --- what no trace holds --- */

static const struct fault no_fault = {.node = -1, .detail = -1, .speed = FULL_SPEED, .kind = FAULT_NODE};

/* A healthy job stands still, and nobody knows where; or one of its nodes falls silent, which its replicas leave for where
 * they can fail alone. */
static void meet_alarm(struct run *run, nanos time)
{
    const struct run_robust *robust = run->options->robust;
    const struct run_failover *failover = run->options->failover;
    double heartbeat, hang;
    struct random_stream random = random_stream_named(robust->seed, PURPOSE_ALARM, (uint64_t)run->restarts++);
    robust_policy_alarms(robust->policy, run->options->nodes, &heartbeat, &hang);
    enum channel watcher = robust_policy_watches_traffic(robust->policy) ? CHANNEL_TRAFFIC : CHANNEL_TIMEOUT;
    bool silent = random_uniform(&random) * (heartbeat + hang) < heartbeat;
    struct fault gone = no_fault;
    if (silent && failover)
        gone.node = (int32_t)random_below(&random, (uint64_t)run->options->nodes);
    if (gone.node >= 0 && !failover_is_in(run, gone.node)) { /* nobody listens to it */
        run->next_alarm = draw_alarm(run, time);
        return;
    }
    bool borne = failover_bears(run, gone.node);
    int32_t nodes = borne ? unit_nodes(run) : run->options->nodes;
    struct incident *incident = run_add_incident(run, &no_fault, time);
    incident->alarm = true;
    incident->verdict = recovery_machine_alarm(robust->policy, silent ? CHANNEL_HEARTBEAT : watcher, nodes, &random);
    run->alarms++;
    run->by_channel[incident->verdict.channel]++;
    if (borne) {
        leave(run, incident, &gone, &random);
        return;
    }
    run_stop_training(run, incident, MEMORY_STAYS);
    stop(run, incident, NULL, &random);
}

/* The earliest fault that comes back. */
static size_t next_latent(const struct run *run)
{
    size_t first = 0;
    for (size_t i = 1; i < run->n_latent; i++)
        if (run->latent[i].time < run->latent[first].time)
            first = i;
    return first;
}

nanos robust_next(const struct run *run, enum robust_event *what)
{
    nanos next = run->n_latent > 0 ? run->latent[next_latent(run)].time : NEVER;
    *what = ROBUST_LATENT;
    if (run->recovery.active)
        return next;
    if (run->next_drift < next) {
        *what = ROBUST_DRIFT;
        next = run->next_drift;
    }
    if (run->next_alarm < next) {
        *what = ROBUST_ALARM;
        next = run->next_alarm;
    }
    return next;
}

static void latent_returns(struct run *run, nanos time)
{
    size_t i = next_latent(run);
    struct latent latent = run->latent[i];
    run->latent[i] = run->latent[--run->n_latent];
    if (run->recovery.active) /* stopped for another fault: it waits for the restart */
        keep_latent(run, latent.fault, latent.attempt, latent.gap);
    else
        meet_fault(run, latent.fault, time, latent.attempt);
}

void robust_happen(struct run *run, nanos time, enum robust_event what)
{
    if (what == ROBUST_LATENT) {
        latent_returns(run, time);
    } else if (what == ROBUST_ALARM) {
        meet_alarm(run, time);
    } else {
        run->next_drift += DRIFT_TICK;
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

void robust_open(struct run *run)
{
    if (run->options->robust->policy->blocklist_failures > 0) {
        run->last_failure = memory_new((size_t)run->options->nodes, sizeof *run->last_failure);
        for (int32_t i = 0; i < run->options->nodes; i++)
            run->last_failure[i] = -1;
    }
    run->causes = read_causes(run->trace);
    robust_restart(run, 0);
}

void robust_close(struct run *run)
{
    free(run->latent);
    free(run->causes);
    free(run->node_failures);
    free(run->last_failure);
}
