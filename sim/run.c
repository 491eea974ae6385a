#include "sim/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/cluster_state.h"

/* A fault that nobody found: it comes back. */
struct latent {
    const struct fault *fault;
    int attempt;
    nanos gap;  /* of training until it is back */
    nanos time; /* when, once training goes on; NEVER before */
};

/* What a cause speaks of: read once for each. */
struct cause_reading {
    enum component component;
    enum symptom symptom;
};

/* One run in progress: the ledger is its clock. */
struct run {
    const struct run_options *options;
    const struct fault_trace *trace;
    size_t next_fault;
    struct latent *latent;
    size_t n_latent, latent_capacity;
    struct cause_reading *causes; /* [n_details + 1], the last for faults without a cause; NULL without a policy */
    uint16_t *node_failures;      /* [nodes] for the blocklist; NULL without */
    nanos trained_since;          /* the last restart; speed drifts from there */
    nanos next_drift;             /* NEVER without drift */
    nanos next_alarm;             /* NEVER while nothing trains, or without false alarms */
    int64_t restarts;             /* the stream of the next alarm */
    int32_t missing_replicas;
    struct cluster_state cluster;
    struct training training;
    struct recovery recovery;
    struct ledger ledger;
    struct incident *incidents;
    size_t n_incidents, incidents_capacity, n_resumed; /* incidents before n_resumed know when training went on */
    int64_t failures, slowdowns, interruptions;
    int64_t relapses, alarms, outside, called, condemned, listed, by_channel[N_CHANNELS];
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
    if (options->checkpoint.persist < 0 || options->checkpoint.write < 0)
        diag_error(diags, nowhere, "a checkpoint's way to safety takes less than no time");
    int32_t nodes = fault_trace_nodes(trace);
    if (nodes > options->nodes)
        diag_error(diags, nowhere, "the trace has a fault on node %" PRId32 ", beyond the job's %" PRId32 " nodes", nodes - 1,
                   options->nodes);
    return diags->n_errors > before ? STATUS_BAD_INPUT : STATUS_OK;
}

/* --- speed -------------------------------------------------------------------------------------------------------------------
 */

#define DRIFT_TICK (3600 * NANOS_PER_SECOND)

static double drift_of(const struct run *run)
{
    const struct robust_policy *policy = run->options->robust ? run->options->robust->policy : NULL;
    if (!policy || policy->drift_per_day <= 0)
        return 0;
    double days = (double)((run->ledger.now - run->trained_since) / DRIFT_TICK) / 24;
    return fmin(policy->drift_limit, policy->drift_per_day * days);
}

static void set_speed(struct run *run)
{
    const struct degraded_speed *degraded = run->options->degraded;
    int32_t speed = run->cluster.speed;
    if (degraded || run->missing_replicas > 0) {
        struct cluster_condition condition = {.compute_speed = run->cluster.slow[FAULT_STRAGGLER].least,
                                              .link_speed = run->cluster.slow[FAULT_LINK].least,
                                              .missing_replicas = run->missing_replicas};
        int32_t all = run->options->robust ? run->options->robust->replicas : 1;
        if (degraded)
            speed = degraded->speed(degraded->context, &condition);
        else if (all > run->missing_replicas)
            speed = (int32_t)((int64_t)speed * (all - run->missing_replicas) / all);
    }
    double drift = drift_of(run);
    if (drift > 0)
        speed = (int32_t)((double)speed * (1 - drift));
    run->training.speed = speed > 0 ? speed : 1;
}

/* --- time passes -------------------------------------------------------------------------------------------------------------
 */

static void note_resumption(struct run *run, nanos time)
{
    for (; run->n_resumed < run->n_incidents; run->n_resumed++)
        if (run->incidents[run->n_resumed].resumed == NEVER)
            run->incidents[run->n_resumed].resumed = time;
}

enum { PURPOSE_MACHINE = 64, PURPOSE_ALARM };
#define NANOS_PER_DAY (86400.0 * NANOS_PER_SECOND)

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

/* A restart: the clocks of drift, of false alarms and of faults not found begin, slow nodes that were found leave. */
static void restart_robust(struct run *run, nanos time)
{
    const struct robust_policy *policy = run->options->robust->policy;
    run->trained_since = time;
    run->next_drift = policy->drift_per_day > 0 && time < NEVER - DRIFT_TICK ? time + DRIFT_TICK : NEVER;
    run->next_alarm = draw_alarm(run, time);
    for (size_t i = 0; i < run->n_latent; i++)
        if (run->latent[i].time == NEVER)
            run->latent[i].time = time + run->latent[i].gap;
    if (policy->straggler_find_s > 0)
        cluster_state_evict_slow(&run->cluster, time, nanos_from_seconds(policy->straggler_find_s),
                                 nanos_from_seconds(policy->recheck_s));
    set_speed(run);
}

/* Let time pass to `until` without an event. */
static void advance(struct run *run, nanos until)
{
    if (run->recovery.active) {
        recovery_advance(&run->recovery, &run->ledger, until);
        if (run->recovery.active)
            return;
        note_resumption(run, run->ledger.now);
        if (run->options->robust)
            restart_robust(run, run->ledger.now);
    }
    training_advance(&run->training, &run->ledger, until);
}

/* --- a failure ---------------------------------------------------------------------------------------------------------------
 */

/* In-memory checkpoints live on a node and on the one half the cluster further, which shares no rack with it. */
static bool memory_survives(const struct run *run, int32_t node)
{
    int32_t buddy = (int32_t)(((int64_t)node + run->options->nodes / 2) % run->options->nodes);
    int32_t keeper = (int32_t)(((int64_t)node + run->options->nodes - run->options->nodes / 2) % run->options->nodes);
    return buddy != node && !cluster_state_is_down(&run->cluster, buddy) && !cluster_state_is_down(&run->cluster, keeper);
}

static struct incident *new_incident(struct run *run, const struct fault *fault, nanos time)
{
    if (run->options->lean && run->n_incidents > 0 && !run->recovery.active)
        run->n_incidents = run->n_resumed = 0;
    run->incidents = memory_grow(run->incidents, &run->incidents_capacity, run->n_incidents + 1, sizeof *run->incidents);
    struct incident *incident = &run->incidents[run->n_incidents++];
    *incident = (struct incident){.fault = fault, .time = time, .n_down = run->cluster.n_down, .resumed = time};
    return incident;
}

static void stop_training(struct run *run, struct incident *incident)
{
    incident->interrupted = !run->recovery.active;
    incident->resumed = NEVER;
    if (!incident->interrupted)
        return;
    bool memory = incident->alarm || memory_survives(run, incident->fault->node);
    incident->lost = training_fail(&run->training, &run->ledger, memory);
    run->interruptions++;
}

static void begin_outage(struct run *run, struct incident *incident)
{
    stop_training(run, incident);
    struct recovery_plan plan = recovery_plain_plan(&run->recovery.policy);
    recovery_begin(&run->recovery, incident->time, run->cluster.n_down, &plan);
    run->failures++;
}

/* --- a failure under a robust policy --- */

/* Elastic running: the nodes that are short take their replicas with them, in the worst case one each. */
static int32_t replicas_short(const struct run *run)
{
    const struct run_robust *robust = run->options->robust;
    int32_t lacking = run->cluster.n_down - run->recovery.policy.spares;
    if (!robust || !robust->policy->elastic || lacking <= 0)
        return 0;
    return lacking < robust->replicas ? lacking : 0;
}

static void begin_recovery(struct run *run, nanos time, const struct verdict *verdict)
{
    const struct run_robust *robust = run->options->robust;
    bool hot = run->cluster.n_down <= robust->policy->hot_spares;
    struct recovery_plan plan = {verdict->detect, verdict->diagnose, verdict->human, hot ? robust->restart_hot : robust->restart};
    run->missing_replicas = replicas_short(run);
    recovery_begin(&run->recovery, time, run->missing_replicas > 0 ? 0 : run->cluster.n_down, &plan);
}

/* The node leaves for its repair; one that fails too often for longer. */
static void evict(struct run *run, const struct fault *fault)
{
    const struct robust_policy *policy = run->options->robust->policy;
    struct fault outage = *fault;
    if (run->node_failures && fault->down > 0 && run->node_failures[fault->node] < UINT16_MAX)
        run->node_failures[fault->node]++;
    if (run->node_failures && policy->blocklist_failures > 0 && run->node_failures[fault->node] >= policy->blocklist_failures) {
        nanos listed = nanos_from_seconds(policy->blocklist_s);
        run->listed += outage.down < listed;
        outage.down = outage.down < listed ? listed : outage.down;
        run->node_failures[fault->node] = 0;
    }
    cluster_state_begin(&run->cluster, &outage);
}

static void condemn(struct run *run, nanos time, int n, struct random_stream *random)
{
    nanos away = nanos_from_seconds(run->options->robust->policy->recheck_s);
    for (int i = 0; i < n; i++) {
        int32_t node = (int32_t)random_below(random, (uint64_t)run->options->nodes);
        struct fault check = {.time = time, .down = away, .node = node, .speed = FULL_SPEED, .kind = FAULT_NODE};
        cluster_state_begin(&run->cluster, &check);
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

static void meet_fault(struct run *run, const struct fault *fault, nanos time, int attempt)
{
    const struct run_robust *robust = run->options->robust;
    uint64_t name = (uint64_t)fault->time ^ (uint64_t)fault->node << 44 ^ (uint64_t)attempt << 58;
    struct random_stream random = random_stream_named(robust->seed, PURPOSE_MACHINE, name);
    struct fault_case c = case_of(run, fault, attempt);
    struct verdict verdict = recovery_machine_run(robust->policy, &c, &random);
    struct incident *incident = new_incident(run, fault, time);
    incident->relapse = attempt > 0;
    incident->verdict = verdict;
    stop_training(run, incident);
    if (c.broken && verdict.found) {
        struct fault outage = *fault;
        outage.time = time;
        evict(run, &outage);
    }
    if (verdict.relapse > 0)
        keep_latent(run, fault, attempt + 1, verdict.relapse);
    condemn(run, time, verdict.n_condemned, &random);
    incident->n_down = run->cluster.n_down;
    run->called += verdict.called;
    run->by_channel[verdict.channel]++;
    run->failures += attempt == 0 && fault->kind == FAULT_NODE;
    run->relapses += attempt > 0;
    begin_recovery(run, time, &verdict);
}

static const struct fault no_fault = {.node = -1, .detail = -1, .speed = FULL_SPEED, .kind = FAULT_NODE};

static void meet_alarm(struct run *run, nanos time)
{
    const struct run_robust *robust = run->options->robust;
    double heartbeat, hang;
    struct random_stream random = random_stream_named(robust->seed, PURPOSE_ALARM, (uint64_t)run->restarts++);
    robust_policy_alarms(robust->policy, run->options->nodes, &heartbeat, &hang);
    enum channel watcher = robust_policy_watches_traffic(robust->policy) ? CHANNEL_TRAFFIC : CHANNEL_TIMEOUT;
    bool silent = random_uniform(&random) * (heartbeat + hang) < heartbeat;
    struct verdict verdict =
        recovery_machine_alarm(robust->policy, silent ? CHANNEL_HEARTBEAT : watcher, run->options->nodes, &random);
    struct incident *incident = new_incident(run, &no_fault, time);
    incident->alarm = true;
    incident->verdict = verdict;
    stop_training(run, incident);
    condemn(run, time, verdict.n_condemned, &random);
    incident->n_down = run->cluster.n_down;
    run->alarms++;
    run->by_channel[verdict.channel]++;
    begin_recovery(run, time, &verdict);
}

/* A link that is gone for longer than the collectives wait. */
static bool breaks_collectives(const struct run *run, const struct fault *fault)
{
    const struct robust_policy *policy = run->options->robust->policy;
    return fault->kind == FAULT_LINK && fault->speed < FULL_SPEED / 20 && policy->collective_timeout_s > 0 &&
           fault->down > nanos_from_seconds(policy->collective_timeout_s);
}

static void begin_robust(struct run *run, const struct fault *fault)
{
    if (fault->kind == FAULT_NODE && cluster_state_is_down(&run->cluster, fault->node)) {
        run->outside++;
        run->failures++;
        new_incident(run, fault, fault->time);
    } else if (fault->kind == FAULT_NODE || breaks_collectives(run, fault)) {
        run->slowdowns += fault->kind != FAULT_NODE;
        meet_fault(run, fault, fault->time, 0);
    } else {
        cluster_state_begin(&run->cluster, fault);
        new_incident(run, fault, fault->time);
        run->slowdowns++;
        set_speed(run);
    }
}

/* --- events ------------------------------------------------------------------------------------------------------------------
 */

static void begin_fault(struct run *run, const struct fault *fault)
{
    advance(run, fault->time);
    if (run->options->robust) {
        begin_robust(run, fault);
        return;
    }
    cluster_state_begin(&run->cluster, fault);
    struct incident *incident = new_incident(run, fault, fault->time);
    if (fault->kind == FAULT_NODE) {
        begin_outage(run, incident);
    } else {
        run->slowdowns++;
        set_speed(run);
    }
}

/* Nodes are back: replicas that were left out come back after a planned restart, for which nothing is undone. */
static void grow(struct run *run, nanos time)
{
    int32_t lacking = replicas_short(run);
    if (run->missing_replicas == 0 || lacking >= run->missing_replicas || run->recovery.active)
        return;
    struct recovery_plan plan = {.restart = run->options->robust->restart_hot};
    run->missing_replicas = lacking;
    recovery_begin(&run->recovery, time, 0, &plan);
}

static void end_fault(struct run *run)
{
    nanos time = cluster_state_next_end(&run->cluster)->time;
    advance(run, time);
    if (!cluster_state_next_end(&run->cluster) || cluster_state_next_end(&run->cluster)->time != time)
        return; /* a slow node that left at a restart in between */
    struct fault_end end = cluster_state_end(&run->cluster);
    if (end.kind == FAULT_NODE) {
        recovery_node_back(&run->recovery, time, run->cluster.n_down);
        grow(run, time);
    } else {
        set_speed(run);
    }
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

/* What no trace holds: a fault that comes back, the speed that drifts, a false alarm. */
enum internal { INTERNAL_LATENT, INTERNAL_DRIFT, INTERNAL_ALARM };

static nanos next_internal(const struct run *run, enum internal *what)
{
    nanos next = run->n_latent > 0 ? run->latent[next_latent(run)].time : NEVER;
    *what = INTERNAL_LATENT;
    if (run->recovery.active)
        return next;
    if (run->next_drift < next) {
        *what = INTERNAL_DRIFT;
        next = run->next_drift;
    }
    if (run->next_alarm < next) {
        *what = INTERNAL_ALARM;
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

static void internal_event(struct run *run, nanos time, enum internal what)
{
    advance(run, time);
    if (what == INTERNAL_LATENT) {
        latent_returns(run, time);
    } else if (what == INTERNAL_ALARM) {
        meet_alarm(run, time);
    } else {
        run->next_drift += DRIFT_TICK;
        set_speed(run);
    }
}

/* The time at which training resumes is an event where something begins to run then. */
static bool resume_first(struct run *run, nanos before)
{
    if (!run->options->robust || !run->recovery.active || run->recovery.resumes >= before ||
        run->recovery.resumes >= run->ledger.horizon)
        return false;
    recovery_advance(&run->recovery, &run->ledger, run->recovery.resumes);
    note_resumption(run, run->ledger.now);
    restart_robust(run, run->ledger.now);
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
    enum internal what;
    if (resume_first(run, next))
        return true;
    nanos internal = next_internal(run, &what);
    if (internal < next && internal < horizon) {
        internal_event(run, internal, what);
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

static struct cause_reading *read_causes(const struct fault_trace *trace)
{
    struct cause_reading *causes = memory_new(trace->n_details + 1, sizeof *causes);
    for (size_t i = 0; i <= trace->n_details; i++) {
        const char *text = i < trace->n_details ? trace->details[i] : "";
        causes[i] = (struct cause_reading){component_of_text(text), symptom_of_text(text)};
    }
    return causes;
}

static void run_open(struct run *run, const struct run_options *options, const struct fault_trace *trace)
{
    *run = (struct run){
        .options = options, .trace = trace, .recovery = {.policy = options->recovery}, .next_drift = NEVER, .next_alarm = NEVER};
    cluster_state_init(&run->cluster, options->nodes);
    training_init(&run->training, options->checkpoint);
    ledger_open(&run->ledger, options->horizon, options->bin > 0 ? options->bin : options->horizon);
    if (!options->lean)
        run->incidents = memory_grow(NULL, &run->incidents_capacity, trace->n_items + 1, sizeof *run->incidents);
    if (options->robust && options->robust->policy->blocklist_failures > 0)
        run->node_failures = memory_new((size_t)options->nodes, sizeof *run->node_failures);
    if (options->robust) {
        run->causes = read_causes(trace);
        restart_robust(run, 0);
    }
}

static void run_close(struct run *run, struct run_result *result)
{
    bool waiting = run->recovery.active && run->recovery.ready == NEVER;
    training_finish(&run->training, &run->ledger);
    *result = (struct run_result){
        .horizon = run->ledger.horizon,
        .failures = run->failures,
        .slowdowns = run->slowdowns,
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
        .called = run->called,
        .condemned = run->condemned,
        .listed = run->listed,
    };
    memcpy(result->by_channel, run->by_channel, sizeof run->by_channel);
    for (int i = 0; i < N_TIME_USES; i++)
        result->use[i] = ledger_total(&run->ledger, (enum time_use)i);
    result->ettr = (double)(result->use[USE_TRAINING] + result->use[USE_DEGRADED]) / (double)result->horizon;
    result->goodput = (double)result->use[USE_TRAINING] / (double)result->horizon;
    cluster_state_free(&run->cluster);
    free(run->latent);
    free(run->causes);
    free(run->node_failures);
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

struct run_closed_form run_closed_form_of_policy(const struct run_options *options, const double *use, int64_t interruptions)
{
    struct run_options mean = *options;
    double n = (double)interruptions;
    if (interruptions > 0) {
        mean.recovery.detect = nanos_from_seconds((use[USE_DETECTION] + use[USE_DIAGNOSIS] + use[USE_HUMAN]) / n);
        mean.recovery.restart = nanos_from_seconds(use[USE_RESTART] / n);
    }
    return run_closed_form(&mean, interruptions);
}
