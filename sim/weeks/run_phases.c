/*
 * run_phases.c - the phases of a run, and those effects of transitions that are the same under all rules. The table is in
 * run_internal.h.
 */
#include "model/base/memory.h"
#include "sim/weeks/run_internal.h"

/* --- speed --- */

/* Without a step simulation to ask: the slowest sets the speed, and missing replicas lower it in proportion. */
static int32_t speed_under(const struct run *run, const struct cluster_condition *condition)
{
    const struct degraded_speed *degraded = run->options->degraded;
    int32_t speed = condition->compute_speed < condition->link_speed ? condition->compute_speed : condition->link_speed;
    int32_t missing = condition->missing_replicas, all = run->n_replicas;
    if (degraded)
        return degraded->speed(degraded->context, condition);
    return missing > 0 && all > missing ? (int32_t)((int64_t)speed * (all - missing) / all) : speed;
}

void run_set_speed(struct run *run)
{
    const struct cluster_condition condition = {.compute_speed = run->replicas->slowest(run, FAULT_STRAGGLER),
                                                .link_speed = run->replicas->slowest(run, FAULT_LINK),
                                                .missing_replicas = run->missing_replicas};
    int32_t speed = speed_under(run, &condition);
    double drift = run->faults->drift(run);
    if (drift > 0)
        speed = (int32_t)((double)speed * (1 - drift));
    run->training.speed = speed > 0 ? speed : 1;
}

/* --- from stop to training --- */

bool run_has_state(const struct run *run)
{
    return run->phase == RUN_TRAINING || run->phase == RUN_REGROUPING;
}

bool run_is_hot(const struct run *run)
{
    return run->cluster.n_down <= run->restart.hot_spares;
}

nanos run_restart_time(const struct run *run)
{
    return (run_is_hot(run) ? run->restart.hot : run->restart.cold) + (run->from_storage ? run->restart.reload : 0);
}

void run_stop(struct run *run, enum run_phase phase, nanos time, int32_t n_down, const struct recovery_plan *plan)
{
    recovery_begin(&run->recovery, time, n_down, plan);
    run->phase = phase;
}

bool run_settle_saving(struct run *run)
{
    bool saves = run->phase == RUN_SAVING || run->phase == RUN_LAST_SAVE;
    if (!saves || run->ledger.now < run->recovery.saved)
        return false;
    training_saved(&run->training, &run->ledger);
    run->phase = run->phase == RUN_LAST_SAVE ? RUN_OVER : RUN_RECOVERING;
    return true;
}

void run_resume(struct run *run)
{
    for (; run->n_resumed < run->n_incidents; run->n_resumed++)
        if (run->incidents[run->n_resumed].resumed == NEVER)
            run->incidents[run->n_resumed].resumed = run->ledger.now;
    run->from_storage = false;
    (void)run_settle_saving(run);
    run->replicas->resume(run, run->ledger.now);
    run->faults->restart(run, run->ledger.now);
    run->phase = RUN_TRAINING; /* not earlier: the rules ask whether the job regrouped or restarted */
}

void run_advance(struct run *run, nanos until)
{
    if (run->phase != RUN_TRAINING) {
        recovery_advance(&run->recovery, &run->ledger, until);
        if (run->recovery.active)
            return;
        run_resume(run);
    }
    training_advance(&run->training, &run->ledger, until);
}

/* --- what a stop loses --- */

/* Has a node (or the spare in its place) all that a checkpoint put into its memory? */
static bool memory_is_whole(const struct run *run, int32_t node)
{
    return run->memory_lost[node] < run->training.n_written;
}

/* In-memory checkpoints live on a node and on the one half the cluster further, which shares no rack with it. So a node shares
 * copies with two others. If either was lost since the last checkpoint, both copies of something go with this node. */
bool run_lose_memory(struct run *run, const struct fault *fault)
{
    int64_t nodes = run->options->nodes, node = fault->node;
    if (!run->memory_lost)
        return false;
    if (!fault_takes_node(fault) || node < 0) /* the process ended, its host did not */
        return true;
    int32_t buddy = (int32_t)((node + nodes / 2) % nodes), keeper = (int32_t)((node + nodes - nodes / 2) % nodes);
    bool alone = buddy == node || !memory_is_whole(run, buddy) || !memory_is_whole(run, keeper);
    run->memory_lost[node] = run->training.n_written;
    return !alone;
}

struct incident *run_add_incident(struct run *run, const struct fault *fault, nanos time)
{
    if (run->options->lean && run->n_incidents > 0 && run->phase == RUN_TRAINING)
        run->n_incidents = run->n_resumed = 0;
    run->incidents = memory_grow(run->incidents, &run->incidents_capacity, run->n_incidents + 1, sizeof *run->incidents);
    struct incident *incident = &run->incidents[run->n_incidents++];
    *incident = (struct incident){.fault = fault, .time = time, .n_down = run->cluster.n_down, .resumed = time};
    return incident;
}

void run_lose_work(struct run *run, struct incident *incident, enum memory_fate fate)
{
    bool memory = run_lose_memory(run, incident->fault) && fate == MEMORY_STAYS;
    (void)run_settle_saving(run);
    incident->interrupted = run->phase != RUN_RECOVERING;
    incident->resumed = NEVER;
    run->from_storage |= !memory;
    if (!incident->interrupted && (memory || !run->memory_lost))
        return; /* during a recovery only what neighbours hold can be lost */
    incident->lost = training_fail(&run->training, &run->ledger, memory);
    run->counts.interruptions += incident->interrupted;
}

/* --- planned outages --- */

static void save_and_stop(struct run *run, struct incident *incident, nanos save, const struct fault *gone)
{
    const struct recovery_plan plan = {.save = save, .restart = run_restart_time(run)};
    incident->interrupted = true;
    incident->resumed = NEVER;
    run->counts.interruptions++;
    run_stop(run, RUN_SAVING, incident->time, run->replicas->stop(run, gone, incident->time + save), &plan);
}

static void stop_unsaved(struct run *run, struct incident *incident, const struct fault *gone)
{
    run_lose_work(run, incident, MEMORY_STAYS);
    const struct recovery_plan plan = {.restart = run_restart_time(run)};
    run_stop(run, RUN_RECOVERING, incident->time, run->replicas->stop(run, gone, incident->time), &plan);
}

void run_leave_as_planned(struct run *run, const struct fault *fault)
{
    struct incident *incident = run_add_incident(run, fault, fault->time);
    nanos save = checkpoint_save_time(&run->options->checkpoint);
    bool in_time = run->options->notice == 0 || save <= run->options->notice;
    const struct fault *gone = fault->down > 0 ? fault : NULL;
    run->counts.planned++;
    if (gone && run->replicas->survives(run, fault->node)) {
        run->replicas->leave(run, incident, fault, 0, 0);
    } else if (run_has_state(run) && in_time) {
        (void)run_lose_memory(run, fault);
        save_and_stop(run, incident, save, gone);
    } else if (run_has_state(run)) {
        stop_unsaved(run, incident, gone);
    } else {
        (void)run_lose_memory(run, fault);
        incident->resumed = NEVER;
        recovery_node_leaves(&run->recovery, fault->time, run->replicas->stop(run, gone, fault->time));
    }
}
