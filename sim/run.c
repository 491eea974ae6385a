#include "sim/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/cluster_state.h"

/* One run in progress: the ledger is its clock. */
struct run {
    const struct fault_trace *trace;
    size_t next_fault;
    struct cluster_state cluster;
    struct training training;
    struct recovery recovery;
    struct ledger ledger;
    struct incident *incidents;
    size_t n_incidents, n_resumed; /* incidents before n_resumed know when training went on */
    int64_t failures, interruptions;
};

static const struct place nowhere = {0};

static void check_positive(const char *what, nanos value, nanos low, struct diags *diags)
{
    if (value < low)
        diag_error(diags, nowhere, "%s of %.10g s; it must be %s", what, (double)value / 1e9, low > 0 ? "above 0" : "0 or more");
}

static enum status check_options(const struct run_options *options, const struct fault_trace *trace, struct diags *diags)
{
    size_t before = diags->n_errors;
    check_positive("a horizon", options->horizon, 1, diags);
    check_positive("a checkpoint interval", options->checkpoint.interval, 1, diags);
    check_positive("a checkpoint block", options->checkpoint.block, 0, diags);
    check_positive("a detection time", options->recovery.detect, 0, diags);
    check_positive("a restart time", options->recovery.restart, 0, diags);
    check_positive("a series width", options->bin, 0, diags);
    if (options->nodes < 1)
        diag_error(diags, nowhere, "the job uses %" PRId32 " nodes; it needs one at least", options->nodes);
    if (options->recovery.spares < 0)
        diag_error(diags, nowhere, "%d spares; there cannot be fewer than none", options->recovery.spares);
    if (options->bin > 0 && options->horizon / options->bin >= LEDGER_MAX_BINS)
        diag_error(diags, nowhere, "a series of more than %d bins; take wider ones", LEDGER_MAX_BINS);
    int32_t nodes = fault_trace_nodes(trace);
    if (nodes > options->nodes)
        diag_error(diags, nowhere, "the trace has a fault on node %" PRId32 ", beyond the job's %" PRId32 " nodes", nodes - 1,
                   options->nodes);
    return diags->n_errors > before ? STATUS_BAD_INPUT : STATUS_OK;
}

static void note_resumption(struct run *run, nanos time)
{
    for (; run->n_resumed < run->n_incidents; run->n_resumed++)
        if (run->incidents[run->n_resumed].resumed == NEVER)
            run->incidents[run->n_resumed].resumed = time;
}

/* Let time pass to `until` without an event. */
static void advance(struct run *run, nanos until)
{
    if (run->recovery.active) {
        recovery_advance(&run->recovery, &run->ledger, until);
        if (run->recovery.active)
            return;
        note_resumption(run, run->ledger.now);
    }
    training_advance(&run->training, &run->ledger, until);
}

static void begin_outage(struct run *run, struct incident *incident)
{
    incident->interrupted = !run->recovery.active;
    incident->resumed = NEVER;
    if (incident->interrupted) {
        incident->lost = training_fail(&run->training, &run->ledger);
        run->interruptions++;
    }
    recovery_begin(&run->recovery, incident->fault->time, run->cluster.n_down);
    run->failures++;
}

static void begin_fault(struct run *run, const struct fault *fault)
{
    advance(run, fault->time);
    cluster_state_begin(&run->cluster, fault);
    struct incident *incident = &run->incidents[run->n_incidents++];
    *incident = (struct incident){.fault = fault, .n_down = run->cluster.n_down, .resumed = fault->time};
    if (fault->kind == FAULT_NODE)
        begin_outage(run, incident);
    else
        run->training.speed = run->cluster.speed;
}

static void end_fault(struct run *run)
{
    nanos time = cluster_state_next_end(&run->cluster)->time;
    advance(run, time);
    struct fault_end end = cluster_state_end(&run->cluster);
    if (end.kind == FAULT_NODE)
        recovery_node_back(&run->recovery, time, run->cluster.n_down);
    else
        run->training.speed = run->cluster.speed;
}

/* The earlier of the next fault and the next end, in the order of enum event_class at equal times; false after the horizon. */
static bool step(struct run *run)
{
    const struct fault_end *end = cluster_state_next_end(&run->cluster);
    const struct fault *fault = run->next_fault < run->trace->n_items ? &run->trace->items[run->next_fault] : NULL;
    bool end_first = end && (!fault || end->time < fault->time || (end->time == fault->time && end->class == EVENT_END));
    nanos horizon = run->ledger.horizon;
    if (end_first) {
        if (end->time >= horizon)
            return false;
        end_fault(run);
        return true;
    }
    if (!fault || fault->time >= horizon)
        return false;
    run->next_fault++;
    begin_fault(run, fault);
    return true;
}

static void run_open(struct run *run, const struct run_options *options, const struct fault_trace *trace)
{
    *run = (struct run){.trace = trace, .recovery = {.policy = options->recovery}};
    cluster_state_init(&run->cluster, options->nodes);
    training_init(&run->training, options->checkpoint);
    ledger_open(&run->ledger, options->horizon, options->bin > 0 ? options->bin : options->horizon);
    run->incidents = memory_new(trace->n_items, sizeof *run->incidents);
}

static void run_close(struct run *run, struct run_result *result)
{
    bool waiting = run->recovery.active && run->recovery.ready == NEVER;
    training_finish(&run->training, &run->ledger);
    *result = (struct run_result){
        .horizon = run->ledger.horizon,
        .failures = run->failures,
        .slowdowns = (int64_t)run->n_incidents - run->failures,
        .interruptions = run->interruptions,
        .checkpoints = run->training.n_written,
        .incidents = run->incidents,
        .n_incidents = run->n_incidents,
        .bin = run->ledger.width,
        .series = run->ledger.bins,
        .n_series = run->ledger.n_bins,
        .ended_waiting = waiting,
        .waiting_since = waiting ? run->recovery.noticed : 0,
    };
    for (int i = 0; i < N_TIME_USES; i++)
        result->use[i] = ledger_total(&run->ledger, (enum time_use)i);
    result->ettr = (double)(result->use[USE_TRAINING] + result->use[USE_DEGRADED]) / (double)result->horizon;
    result->goodput = (double)result->use[USE_TRAINING] / (double)result->horizon;
    cluster_state_free(&run->cluster);
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

struct run_closed_form run_closed_form(const struct run_options *options, int64_t failures)
{
    double d = (double)options->checkpoint.interval / 1e9, w = (double)options->checkpoint.block / 1e9;
    double r = (double)(options->recovery.detect + options->recovery.restart) / 1e9;
    double rate = (double)failures / ((double)options->horizon / 1e9);
    struct run_closed_form form = {.first_order = (1 - rate * (r + d / 2)) / (1 + w / d), .exponential = 1 / (1 + w / d)};
    if (failures == 0)
        return form;
    /* q / (1 - q) and exp(L R) - 1 without the cancellation at small rates */
    double odds = 1 / expm1(rate * (d + w));
    form.exponential = d * odds / (1 / rate + expm1(rate * r) / rate);
    form.best_interval_s = sqrt(2 * w / rate);
    return form;
}
