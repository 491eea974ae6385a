/* run.c - one run: events in the order of time, until training or the horizon ends. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/weeks/run_internal.h"

static void check_positive(const char *what, nanos value, nanos low, struct diags *diags)
{
    if (value < low)
        diag_error(diags, PLACE_NONE, "%s of %.10g s; it must be %s", what, nanos_to_seconds(value),
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
        diag_error(diags, PLACE_NONE, "the job uses %" PRId32 " nodes; it needs one at least", options->nodes);
    if (options->recovery.spares < 0)
        diag_error(diags, PLACE_NONE, "%d spares; there cannot be fewer than none", options->recovery.spares);
    if (options->bin > 0 && options->horizon / options->bin >= LEDGER_MAX_BINS)
        diag_error(diags, PLACE_NONE, "a series of more than %d bins; take wider ones", LEDGER_MAX_BINS);
    if (options->checkpoint.persist < 0 || options->checkpoint.write < 0)
        diag_error(diags, PLACE_NONE, "a checkpoint's way to safety takes less than no time");
    int32_t nodes = fault_trace_nodes(trace);
    if (nodes > options->nodes)
        diag_error(diags, PLACE_NONE, "the trace has a fault on node %" PRId32 ", beyond the job's %" PRId32 " nodes", nodes - 1,
                   options->nodes);
    return diags->n_errors > before ? STATUS_BAD_INPUT : STATUS_OK;
}

/* --- events --- */

static void begin_fault(struct run *run, const struct fault *fault)
{
    run_advance(run, fault->time);
    run->faults->fault(run, fault);
}

static void end_fault(struct run *run)
{
    nanos time = cluster_state_next_end(&run->cluster)->time;
    run_advance(run, time);
    if (!cluster_state_next_end(&run->cluster) || cluster_state_next_end(&run->cluster)->time != time)
        return; /* the slow node left at a restart in between */
    struct fault_end end = cluster_state_end(&run->cluster);
    if (end.kind == FAULT_NODE || end.kind == FAULT_PLANNED) {
        recovery_node_back(&run->recovery, time, run->cluster.n_down);
        run->replicas->node_back(run, time);
    } else {
        run_set_speed(run);
    }
}

/* The end of a restart is an event of its own, because rules may start clocks then. */
static bool resume_first(struct run *run, nanos before)
{
    if (run->phase == RUN_TRAINING || run->recovery.resumes >= nanos_earlier(before, run->ledger.horizon))
        return false;
    recovery_advance(&run->recovery, &run->ledger, run->recovery.resumes);
    run_resume(run);
    return true;
}

/* If the goal's work, or its last save, is done by `before`: advances to that time and returns true. */
static bool reach_goal(struct run *run, nanos before)
{
    if (run->options->goal == 0)
        return false;
    nanos until = nanos_earlier(before, run->ledger.horizon);
    if (run->phase == RUN_LAST_SAVE && run->recovery.saved <= until) {
        recovery_advance(&run->recovery, &run->ledger, run->recovery.saved);
        return run_settle_saving(run);
    }
    if (run->phase != RUN_TRAINING)
        return false;
    training_advance(&run->training, &run->ledger, until);
    if (!training_is_done(&run->training, &run->ledger))
        return false;
    const struct recovery_plan save = {.save = checkpoint_save_time(&run->options->checkpoint)};
    run_stop(run, RUN_LAST_SAVE, run->ledger.now, 0, &save);
    return true;
}

/* The next event that does not come from the rules: a fault of the trace begins or ends. */
struct trace_event {
    nanos time;                /* NEVER: none */
    const struct fault *fault; /* NULL: a fault ends */
};

static struct trace_event next_of_trace(const struct run *run)
{
    const struct fault_end *end = cluster_state_next_end(&run->cluster);
    const struct fault *fault = run->next_fault < run->trace->n_items ? &run->trace->items[run->next_fault] : NULL;
    bool end_first = end && (!fault || end->time < fault->time || (end->time == fault->time && end->class == EVENT_END));
    if (end_first)
        return (struct trace_event){.time = end->time};
    return (struct trace_event){.time = fault ? fault->time : NEVER, .fault = fault};
}

/*
 * Handles the next event. Returns false after the horizon, and when the run is over. Order at equal times:
 *
 *   1. the goal's work is done, or its last save
 *   2. the trace: a fault ends or begins, in the order of enum event_class. If a restart ends at the same time, it ends first
 *   3. replicas come back
 *   4. events of the fault rules
 */
static bool step(struct run *run)
{
    const struct trace_event next = next_of_trace(run);
    nanos horizon = run->ledger.horizon;
    nanos internal = run->faults->next(run), back = run->replicas->next(run);
    if (reach_goal(run, nanos_earlier(next.time, nanos_earlier(internal, back))))
        return run->phase != RUN_OVER;
    if (resume_first(run, nanos_earlier(next.time, internal))) /* a fault that comes back during the restart waits for its end */
        return true;
    if (next.time >= horizon && internal >= horizon && back >= horizon)
        return false;
    if (back < next.time && back <= internal) {
        run_advance(run, back);
        run->replicas->come_back(run, back);
    } else if (internal < next.time) {
        run_advance(run, internal);
        run->faults->happen(run, internal);
    } else if (next.fault) {
        run->next_fault++;
        begin_fault(run, next.fault);
    } else {
        end_fault(run);
    }
    return true;
}

/* --- beginning and end --- */

static void set_restart_times(struct run *run)
{
    const struct run_options *options = run->options;
    const struct run_robust *robust = options->robust;
    nanos plain = options->recovery.restart;
    run->restart = (struct restart_times){.cold = plain, .hot = plain, .hot_spares = -1};
    if (!robust)
        return;
    int hot = robust->policy->hot_spares, spares = options->recovery.spares;
    run->restart = (struct restart_times){
        .cold = robust->restart, .hot = robust->restart_hot, .hot_spares = hot < spares ? hot : spares, .reload = robust->reload};
}

static void pick_rules(struct run *run)
{
    const struct run_options *options = run->options;
    const struct run_robust *robust = options->robust;
    run->faults = robust ? &robust_fault_rules : &plain_fault_rules;
    run->n_replicas = robust ? robust->replicas : 1;
    run->replicas = robust && robust->policy->elastic ? &elastic_rules : &whole_job_rules;
    if (options->failover) {
        run->n_replicas = options->failover->units * options->failover->replicas;
        run->replicas = &failover_rules;
    }
}

static void run_open(struct run *run, const struct run_options *options, const struct fault_trace *trace)
{
    *run = (struct run){.options = options, .trace = trace, .recovery = {.policy = options->recovery}};
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
    set_restart_times(run);
    pick_rules(run);
    if (run->replicas->open)
        run->replicas->open(run);
    if (run->faults->open)
        run->faults->open(run);
}

static void report_counts(const struct run *run, struct run_result *result)
{
    const struct run_counts *counts = &run->counts;
    result->failures = counts->failures;
    result->slowdowns = counts->slowdowns;
    result->planned = counts->planned;
    result->interruptions = counts->interruptions;
    result->relapses = counts->relapses;
    result->alarms = counts->alarms;
    result->outside = counts->outside;
    result->borne = counts->borne;
    result->called = counts->called;
    result->condemned = counts->condemned;
    result->listed = counts->listed;
    memcpy(result->by_channel, counts->by_channel, sizeof counts->by_channel);
}

static void report_time(const struct run *run, struct run_result *result)
{
    double horizon_s = nanos_to_seconds(result->horizon);
    for (int i = 0; i < N_TIME_USES; i++)
        result->use[i] = ledger_total(&run->ledger, (enum time_use)i);
    for (int i = 0; i < N_AWAY_REASONS; i++)
        result->away[i] = cluster_state_away_s(&run->cluster, (enum away_reason)i, result->horizon) / horizon_s;
    result->ettr = (double)(result->use[USE_TRAINING] + result->use[USE_DEGRADED]) / (double)result->horizon;
    result->goodput = (double)result->use[USE_TRAINING] / (double)result->horizon;
}

static void run_close(struct run *run, struct run_result *result)
{
    bool over = run->phase == RUN_OVER, waiting = !over && run->recovery.active && run->recovery.ready == NEVER;
    const struct fault_end *repair = cluster_state_next_end(&run->cluster);
    training_finish(&run->training, &run->ledger);
    if (over)
        ledger_close(&run->ledger);
    *result = (struct run_result){
        .horizon = run->ledger.horizon,
        .reached = over,
        .checkpoints = run->training.n_written,
        .incidents = run->incidents,
        .n_incidents = run->n_incidents,
        .bin = run->ledger.width,
        .series = run->ledger.bins,
        .n_series = run->ledger.n_bins,
        .ended_waiting = waiting,
        .waiting_since = waiting ? run->recovery.short_since : 0,
        .next_repair = waiting && repair ? repair->time : NEVER,
    };
    report_counts(run, result);
    report_time(run, result);
    cluster_state_free(&run->cluster);
    free(run->memory_lost);
    if (run->replicas->close)
        run->replicas->close(run);
    if (run->faults->close)
        run->faults->close(run);
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
    if (run.phase != RUN_OVER)
        run_advance(&run, options->horizon);
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
