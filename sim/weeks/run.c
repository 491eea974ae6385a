#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/weeks/run_internal.h"

static const struct place nowhere = {0};

static void check_positive(const char *what, nanos value, nanos low, struct diags *diags)
{
    if (value < low)
        diag_error(diags, nowhere, "%s of %.10g s; it must be %s", what, nanos_to_seconds(value),
                   low > 0 ? "above 0" : "0 or more");
}

static enum status check_options(const struct run_options *options, const struct fault_trace *trace, struct diags *diags)
{
    size_t before = diags->n_errors;
    check_positive("a horizon", options->horizon, 1, diags);
    check_positive("a goal", options->goal, 0, diags);
    check_positive("a checkpoint interval", options->checkpoint.interval, 1, diags);
    check_positive("a checkpoint block", options->checkpoint.block, 0, diags);
    check_positive("a detection time", options->recovery.detect, 0, diags);
    check_positive("a restart time", options->recovery.restart, 0, diags);
    check_positive("a series width", options->bin, 0, diags);
    check_positive("a notice", options->notice, 0, diags);
    if (options->nodes < 1)
        diag_error(diags, nowhere, "the job uses %" PRId32 " nodes; it needs one at least", options->nodes);
    if (options->recovery.spares < 0)
        diag_error(diags, nowhere, "%d spares; there cannot be fewer than none", options->recovery.spares);
    if (options->bin > 0 && options->horizon / options->bin >= LEDGER_MAX_BINS)
        diag_error(diags, nowhere, "a series of more than %d bins; take wider ones", LEDGER_MAX_BINS);
    if (options->checkpoint.persist < 0 || options->checkpoint.write < 0)
        diag_error(diags, nowhere, "a checkpoint's way to safety takes less than no time");
    int32_t nodes = fault_trace_nodes(trace);
    if (nodes > options->nodes)
        diag_error(diags, nowhere, "the trace has a fault on node %" PRId32 ", beyond the job's %" PRId32 " nodes", nodes - 1,
                   options->nodes);
    return diags->n_errors > before ? STATUS_BAD_INPUT : STATUS_OK;
}

/* --- speed --- */

static int32_t slowest(const struct run *run, enum fault_kind kind)
{
    return run->options->failover ? failover_slowest(run, kind) : run->cluster.slow[kind].least;
}

void run_set_speed(struct run *run)
{
    const struct degraded_speed *degraded = run->options->degraded;
    int32_t compute = slowest(run, FAULT_STRAGGLER), links = slowest(run, FAULT_LINK), speed = compute < links ? compute : links;
    if (degraded || run->missing_replicas > 0) {
        struct cluster_condition condition = {
            .compute_speed = compute, .link_speed = links, .missing_replicas = run->missing_replicas};
        int32_t all = run->options->failover ? run->options->failover->units * run->options->failover->replicas
                      : run->options->robust ? run->options->robust->replicas
                                             : 1;
        if (degraded)
            speed = degraded->speed(degraded->context, &condition);
        else if (all > run->missing_replicas)
            speed = (int32_t)((int64_t)speed * (all - run->missing_replicas) / all);
    }
    double drift = robust_drift(run);
    if (drift > 0)
        speed = (int32_t)((double)speed * (1 - drift));
    run->training.speed = speed > 0 ? speed : 1;
}

/* --- time passes --- */

/* What was being saved counts once it is there, or the job is going on again. */
static void settle_saving(struct run *run, bool over)
{
    if (!run->saving || (!over && run->ledger.now < run->recovery.saved))
        return;
    training_saved(&run->training, &run->ledger);
    run->saving = false;
}

/* Training goes on, at the ledger's time. */
static void resume(struct run *run)
{
    for (; run->n_resumed < run->n_incidents; run->n_resumed++)
        if (run->incidents[run->n_resumed].resumed == NEVER)
            run->incidents[run->n_resumed].resumed = run->ledger.now;
    run->from_storage = false;
    settle_saving(run, true);
    failover_resume(run, run->ledger.now);
    if (run->options->robust)
        robust_restart(run, run->ledger.now);
    else if (run->options->failover)
        run_set_speed(run);
    run->regrouping = false;
}

/* Let time pass to `until` without an event. */
static void advance(struct run *run, nanos until)
{
    if (run->recovery.active) {
        recovery_advance(&run->recovery, &run->ledger, until);
        if (run->recovery.active)
            return;
        resume(run);
    }
    training_advance(&run->training, &run->ledger, until);
}

/* --- a failure --- */

/* Has a node (or the spare in its place) all that a checkpoint put into its memory? */
static bool memory_is_whole(const struct run *run, int32_t node)
{
    return run->memory_lost[node] < run->training.n_written;
}

/* In-memory checkpoints live on a node and on the one half the cluster further, which shares no rack with it. A node that is lost
 * takes both copies of something with it when one of the two that share copies with it was lost since the last checkpoint. */
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
    if (run->options->lean && run->n_incidents > 0 && !run->recovery.active)
        run->n_incidents = run->n_resumed = 0;
    run->incidents = memory_grow(run->incidents, &run->incidents_capacity, run->n_incidents + 1, sizeof *run->incidents);
    struct incident *incident = &run->incidents[run->n_incidents++];
    *incident = (struct incident){.fault = fault, .time = time, .n_down = run->cluster.n_down, .resumed = time};
    return incident;
}

void run_stop_training(struct run *run, struct incident *incident, enum memory_fate fate)
{
    bool memory = run_lose_memory(run, incident->fault) && fate == MEMORY_STAYS;
    settle_saving(run, false);
    incident->interrupted = !run->recovery.active || run->regrouping || run->saving;
    run->saving = run->ending = false;
    incident->resumed = NEVER;
    run->from_storage |= !memory;
    if (!incident->interrupted && (memory || !run->memory_lost))
        return; /* during a recovery nothing but what neighbours hold can be lost */
    incident->lost = training_fail(&run->training, &run->ledger, memory);
    run->interruptions += incident->interrupted;
}

static void begin_outage(struct run *run, struct incident *incident)
{
    struct recovery_plan plan = recovery_plain_plan(&run->recovery.policy);
    run->failures++;
    if (failover_bears(run, incident->fault->node)) {
        failover_leave(run, incident, incident->fault, plan.detect, 0);
        return;
    }
    run_stop_training(run, incident, MEMORY_STAYS);
    const struct fault *gone = incident->fault->down > 0 ? incident->fault : NULL;
    recovery_begin(&run->recovery, incident->time, robust_lacking(run, gone, incident->time + plan.detect), &plan);
}

static void stop_saved(struct run *run, struct incident *incident, nanos save, const struct fault *gone)
{
    struct recovery_plan plan = {.save = save, .restart = robust_restart_time(run)};
    incident->interrupted = true;
    incident->resumed = NEVER;
    run->interruptions++;
    run->saving = true;
    recovery_begin(&run->recovery, incident->time, robust_lacking(run, gone, incident->time + save), &plan);
}

void run_leave_as_planned(struct run *run, const struct fault *fault)
{
    struct incident *incident = run_add_incident(run, fault, fault->time);
    nanos save = checkpoint_save_time(&run->options->checkpoint);
    bool in_time = run->options->notice == 0 || save <= run->options->notice;
    const struct fault *gone = fault->down > 0 ? fault : NULL;
    bool stops = !run->recovery.active || run->regrouping; /* those that regroup have what is to be saved */
    run->planned++;
    if (gone && failover_bears(run, fault->node)) {
        failover_leave(run, incident, fault, 0, 0);
    } else if (stops && in_time) {
        (void)run_lose_memory(run, fault);
        stop_saved(run, incident, save, gone);
    } else if (stops) {
        run_stop_training(run, incident, MEMORY_STAYS);
        struct recovery_plan plan = {.restart = robust_restart_time(run)};
        recovery_begin(&run->recovery, fault->time, robust_lacking(run, gone, fault->time), &plan);
    } else {
        (void)run_lose_memory(run, fault);
        incident->resumed = NEVER;
        recovery_node_leaves(&run->recovery, fault->time, robust_lacking(run, gone, fault->time));
    }
}

/* --- events --- */

static void begin_fault(struct run *run, const struct fault *fault)
{
    advance(run, fault->time);
    if (run->options->robust) {
        robust_fault(run, fault);
        return;
    }
    cluster_state_begin(&run->cluster, fault);
    if (fault->kind == FAULT_PLANNED) {
        run_leave_as_planned(run, fault);
        return;
    }
    struct incident *incident = run_add_incident(run, fault, fault->time);
    if (fault->kind == FAULT_NODE) {
        begin_outage(run, incident);
    } else {
        run->slowdowns++;
        run_set_speed(run);
    }
}

static void end_fault(struct run *run)
{
    nanos time = cluster_state_next_end(&run->cluster)->time;
    advance(run, time);
    if (!cluster_state_next_end(&run->cluster) || cluster_state_next_end(&run->cluster)->time != time)
        return; /* a slow node that left at a restart in between */
    struct fault_end end = cluster_state_end(&run->cluster);
    if (end.kind == FAULT_NODE || end.kind == FAULT_PLANNED) {
        recovery_node_back(&run->recovery, time, run->cluster.n_down);
        failover_node_back(run, time);
        robust_grow(run, time);
    } else {
        run_set_speed(run);
    }
}

/* The time at which training resumes is an event where something begins to run then. */
static bool resume_first(struct run *run, nanos before)
{
    bool something = run->options->robust || run->options->failover || run->options->goal > 0;
    if (!something || !run->recovery.active || run->recovery.resumes >= before || run->recovery.resumes >= run->ledger.horizon)
        return false;
    recovery_advance(&run->recovery, &run->ledger, run->recovery.resumes);
    resume(run);
    return true;
}

/* Nothing but the goal's work, or its last save, comes before `before`; whether it has come that far. */
static bool reach_goal(struct run *run, nanos before)
{
    if (run->options->goal == 0)
        return false;
    nanos until = nanos_earlier(before, run->ledger.horizon);
    if (run->ending && run->recovery.saved <= until) {
        recovery_advance(&run->recovery, &run->ledger, run->recovery.saved);
        settle_saving(run, true);
        run->over = true;
        return true;
    }
    if (run->recovery.active)
        return false;
    training_advance(&run->training, &run->ledger, until);
    if (!training_is_done(&run->training, &run->ledger))
        return false;
    struct recovery_plan save = {.save = checkpoint_save_time(&run->options->checkpoint)};
    recovery_begin(&run->recovery, run->ledger.now, 0, &save);
    run->saving = run->ending = true;
    return true;
}

/* The earlier of the next fault and the next end, in the order of enum event_class at equal times; false after the horizon. */
static bool step(struct run *run)
{
    const struct fault_end *end = cluster_state_next_end(&run->cluster);
    const struct fault *fault = run->next_fault < run->trace->n_items ? &run->trace->items[run->next_fault] : NULL;
    bool end_first = end && (!fault || end->time < fault->time || (end->time == fault->time && end->class == EVENT_END));
    nanos horizon = run->ledger.horizon;
    nanos next = end_first ? end->time : fault ? fault->time : NEVER;
    enum robust_event what;
    nanos internal = robust_next(run, &what), back = failover_next(run);
    if (reach_goal(run, nanos_earlier(next, nanos_earlier(internal, back))))
        return !run->over;
    if (resume_first(run, nanos_earlier(next, internal))) /* a relapse meanwhile waits for the restart */
        return true;
    if (back < next && back < horizon && back <= internal) {
        advance(run, back);
        failover_return(run, back);
        return true;
    }
    if (internal < next && internal < horizon) {
        advance(run, internal);
        robust_happen(run, internal, what);
        return true;
    }
    if (next >= horizon)
        return false;
    if (end_first) {
        end_fault(run);
    } else {
        run->next_fault++;
        begin_fault(run, fault);
    }
    return true;
}

static void run_open(struct run *run, const struct run_options *options, const struct fault_trace *trace)
{
    *run = (struct run){
        .options = options, .trace = trace, .recovery = {.policy = options->recovery}, .next_drift = NEVER, .next_alarm = NEVER};
    cluster_state_init(&run->cluster, options->nodes);
    training_init(&run->training, options->checkpoint);
    run->training.goal = options->goal;
    ledger_open(&run->ledger, options->horizon, options->bin > 0 ? options->bin : options->horizon);
    if (!options->lean)
        run->incidents = memory_grow(NULL, &run->incidents_capacity, trace->n_items + 1, sizeof *run->incidents);
    if (options->checkpoint.kind == CHECKPOINT_MEMORY) {
        run->memory_lost = memory_new((size_t)options->nodes, sizeof *run->memory_lost);
        for (int32_t i = 0; i < options->nodes; i++)
            run->memory_lost[i] = -1;
    }
    failover_open(run);
    if (options->robust)
        robust_open(run);
}

static void run_close(struct run *run, struct run_result *result)
{
    bool waiting = run->recovery.active && run->recovery.ready == NEVER && !run->over;
    training_finish(&run->training, &run->ledger);
    if (run->over)
        ledger_close(&run->ledger);
    *result = (struct run_result){
        .horizon = run->ledger.horizon,
        .reached = run->over,
        .failures = run->failures,
        .slowdowns = run->slowdowns,
        .planned = run->planned,
        .interruptions = run->interruptions,
        .checkpoints = run->training.n_written,
        .incidents = run->incidents,
        .n_incidents = run->n_incidents,
        .bin = run->ledger.width,
        .series = run->ledger.bins,
        .n_series = run->ledger.n_bins,
        .ended_waiting = waiting,
        .waiting_since = waiting ? run->recovery.short_since : 0,
        .next_repair = waiting && cluster_state_next_end(&run->cluster) ? cluster_state_next_end(&run->cluster)->time : NEVER,
        .relapses = run->relapses,
        .alarms = run->alarms,
        .outside = run->outside,
        .borne = run->borne,
        .called = run->called,
        .condemned = run->condemned,
        .listed = run->listed,
    };
    memcpy(result->by_channel, run->by_channel, sizeof run->by_channel);
    for (int i = 0; i < N_TIME_USES; i++)
        result->use[i] = ledger_total(&run->ledger, (enum time_use)i);
    for (int i = 0; i < N_AWAY_REASONS; i++)
        result->away[i] =
            cluster_state_away_s(&run->cluster, (enum away_reason)i, result->horizon) / nanos_to_seconds(result->horizon);
    result->ettr = (double)(result->use[USE_TRAINING] + result->use[USE_DEGRADED]) / (double)result->horizon;
    result->goodput = (double)result->use[USE_TRAINING] / (double)result->horizon;
    cluster_state_free(&run->cluster);
    free(run->memory_lost);
    failover_close(run);
    robust_close(run);
}

enum status run_simulate(const struct run_options *options, const struct fault_trace *trace, struct run_result *result,
                         struct diags *diags)
{
    enum status status = check_options(options, trace, diags);
    if (status != STATUS_OK)
        return status;
    struct run run;
    run_open(&run, options, trace);
    while (step(&run))
        ;
    if (!run.over)
        advance(&run, options->horizon);
    run_close(&run, result);
    return STATUS_OK;
}

void run_result_free(struct run_result *result)
{
    free(result->incidents);
    free(result->series);
    *result = (struct run_result){0};
}

nanos run_bin_length(const struct run_result *result, size_t i)
{
    nanos start = (nanos)i * result->bin;
    return i + 1 < result->n_series ? result->bin : result->horizon - start;
}
