/* From flags and files to a run that can begin. */
#include "cli/run_setup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/experiment_options.h"
#include "cli/fabric_options.h"
#include "cli/layout_choice.h"
#include "cli/run_faults.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "sim/checkpoint_traffic.h"
#include "sim/degraded.h"
#include "sim/fault_statistics.h"
#include "sim/faults.h"
#include "sim/step.h"

static const struct place nowhere = {0};
enum { FAILOVER_REPLICA = 1 };
#define DAY_S 86400.0
/* Without --horizon a budget of tokens is given up after so many times what it takes without failures. */
#define PATIENCE 10

/* --- what is asked -----------------------------------------------------------------------------------------------------------
 */

/* A policy with stages of its own is asked for. */
static bool has_stages(const struct faults_request *faults)
{
    return faults->policy[0] && strcmp(faults->policy, "replay") != 0;
}

static void assume_unswept(const struct invocation *call, struct run_session *s, const char *key, const char *text)
{
    if (!run_sweeps(call, key))
        run_assume(&s->report, text);
}

/* What neither the file nor a flag said. Each default is told in the report. */
static void fill_defaults(struct invocation *call, struct run_session *s)
{
    struct faults_request *faults = &s->experiment.faults;
    if (faults->model[0]) {
        faults->trace[0] = '\0';
    } else if (!faults->trace[0]) {
        snprintf(faults->trace, sizeof faults->trace, "llama3-54d");
        run_assume(&s->report, "faults llama3-54d: 54 days at Llama 3's rate and causes");
    }
    bool every_step = strcmp(faults->checkpoint, "step") == 0;
    if (every_step && (faults->checkpoint_interval_s > 0 || faults->checkpoint_steps > 0))
        diag_warning(&call->diags, nowhere, "checkpoint_%s says nothing beside checkpoint step, which is one every step",
                     faults->checkpoint_steps > 0 ? "steps" : "interval");
    if (faults->checkpoint_interval_s <= 0 && faults->checkpoint_steps <= 0 && !every_step) {
        faults->checkpoint_interval_s = 1800;
        assume_unswept(call, s, "checkpoint-interval", "checkpoint interval 30 min");
    }
    if (faults->checkpoint_block_s <= 0 && !option_given(call, "checkpoint-block") && !faults->checkpoint[0])
        assume_unswept(call, s, "checkpoint-block", "checkpoints block training for no time");
    if (faults->detect_s <= 0 && !option_given(call, "detect") && !has_stages(faults))
        assume_unswept(call, s, "detect", "failures are noticed at once");
    if (faults->restart_s < 0 && !has_stages(faults)) {
        faults->restart_s = 900;
        assume_unswept(call, s, "restart", "restart 15 min");
    }
    if (faults->spares < 0) {
        faults->spares = 4;
        assume_unswept(call, s, "spares", "4 spare nodes");
    }
}

/* --- the step ----------------------------------------------------------------------------------------------------------------
 */

static void step_given(struct invocation *call, struct run_session *s)
{
    const struct setting setting = experiment_setting(&s->experiment);
    double peak = setting.cluster->gpu.peak_flops[setting.job->precision] * setting.gpus;
    s->report.step_time_s = option_quantity(call, "step-time");
    if (peak > 0)
        s->report.step_mfu = model_flops_per_step(&setting, setting.job->features, FLOPS_FULL) / (s->report.step_time_s * peak);
}

static const char assumed_layout[] = "the layout that msim plan puts first";

static void check_memory(struct invocation *call, const struct run_session *s, const struct footprint *memory)
{
    double capacity = footprint_capacity(&s->experiment.cluster);
    if (memory->total > capacity)
        diag_warning(&call->diags, nowhere, "a rank of this layout needs %.1f GiB, the GPU has %.1f GiB", memory->total / 0x1p30,
                     capacity / 0x1p30);
}

static enum status step_simulated(struct invocation *call, struct run_session *s)
{
    const struct setting setting = experiment_setting(&s->experiment);
    enum status status = layout_choose(&s->experiment, &s->layout, &call->diags);
    if (status != STATUS_OK)
        return status;
    struct step_options options = {.detail = DETAIL_CHUNK};
    struct step_result step;
    status = step_simulate(&s->layout, &setting, &options, &step, NULL, NULL, &call->diags);
    if (status != STATUS_OK)
        return status;
    check_memory(call, s, &step.memory);
    s->has_layout = true;
    s->report.layout = layout_format(&s->layout, s->layout_text, sizeof s->layout_text);
    s->report.simulated = &s->layout;
    s->report.experiment = &s->experiment;
    s->report.step_time_s = step.step_time_s;
    s->report.step_mfu = step.mfu;
    if (!s->experiment.layout.given)
        run_assume(&s->report, assumed_layout);
    return STATUS_OK;
}

static enum status find_step(struct invocation *call, struct run_session *s)
{
    if (!option_given(call, "step-time"))
        return step_simulated(call, s);
    step_given(call, s);
    bool alone = option_choice(call, "failover") == FAILOVER_REPLICA; /* what replicas share follows from the layout */
    if (!has_stages(&s->experiment.faults) && !s->experiment.faults.checkpoint[0] && !alone)
        return STATUS_OK;
    enum status status = layout_choose(&s->experiment, &s->layout, &call->diags);
    s->has_layout = status == STATUS_OK;
    if (s->has_layout && !s->experiment.layout.given)
        run_assume(&s->report, assumed_layout);
    return status;
}

/* --- the run -----------------------------------------------------------------------------------------------------------------
 */

static nanos series_width(const struct invocation *call, double horizon_s)
{
    if (option_given(call, "series"))
        return nanos_from_seconds(option_quantity(call, "series"));
    return nanos_from_seconds(horizon_s > 4 * DAY_S ? DAY_S : DAY_S / 24);
}

/* Whole steps for the budget of tokens, in seconds without failures; 0: there is no budget. */
static double budget_s(const struct run_session *s)
{
    const struct job *job = &s->experiment.job;
    return ceil(job->tokens / ((double)job->global_batch * (double)job->seq_len)) * s->report.step_time_s;
}

/* As long as something is known about: the trace; the budget, though not for ever; a month. */
static double usual_horizon_s(const struct run_session *s)
{
    double budget = budget_s(s);
    if (!s->has_model)
        return nanos_to_seconds(fault_trace_horizon(&s->trace));
    return budget > 0 ? fmin(PATIENCE * budget, TIME_LONGEST_S) : 30 * DAY_S;
}

static enum status check_budget(struct invocation *call, const struct run_session *s)
{
    double budget = budget_s(s);
    if (budget <= TIME_LONGEST_S || s->experiment.faults.horizon_s > 0)
        return STATUS_OK;
    diag_error(
        &call->diags, nowhere,
        "tokens: %.0f years without a failure; at most 100 can be looked at: fewer tokens, more GPUs, or a part of it with "
        "--horizon",
        budget / (365.25 * DAY_S));
    return STATUS_BAD_INPUT;
}

static void set_options(struct invocation *call, struct run_session *s)
{
    struct faults_request *faults = &s->experiment.faults;
    double horizon_s = faults->horizon_s > 0 ? faults->horizon_s : usual_horizon_s(s);
    s->options.goal = nanos_from_seconds(fmin(budget_s(s), 2 * TIME_LONGEST_S)); /* beyond any horizon */
    double interval_s = faults->checkpoint_interval_s;
    if (faults->checkpoint_steps > 0)
        interval_s = (double)faults->checkpoint_steps * s->report.step_time_s;
    s->options.horizon = nanos_from_seconds(horizon_s);
    s->options.bin = series_width(call, s->options.goal > 0 ? fmin(budget_s(s), horizon_s) : horizon_s);
    s->options.checkpoint.interval = nanos_from_seconds(interval_s);
    s->options.checkpoint.block = nanos_from_seconds(faults->checkpoint_block_s);
    s->options.recovery.detect = nanos_from_seconds(faults->detect_s);
    s->options.recovery.restart = nanos_from_seconds(faults->restart_s > 0 ? faults->restart_s : 0);
    s->options.recovery.spares = faults->spares;
    s->options.notice = option_given(call, "notice") ? nanos_from_seconds(fmax(option_quantity(call, "notice"), 1e-9)) : 0;
}

/* --- checkpoints, start-up, policy --------------------------------------------------------------------------------------------
 */

static const char *const checkpoint_names[] = {"blocking", "two-stage", "memory", "step"};
enum { N_CHECKPOINT_NAMES = sizeof checkpoint_names / sizeof *checkpoint_names, CHECKPOINT_EVERY_STEP = N_CHECKPOINT_KINDS };

static int checkpoint_parse(struct invocation *call, const char *name)
{
    for (int i = 0; i < N_CHECKPOINT_NAMES; i++)
        if (strcmp(name, checkpoint_names[i]) == 0)
            return i;
    char hint[96];
    diag_error(&call->diags, nowhere, "unknown kind of checkpoint '%s'; %s", name,
               name_hint(name, checkpoint_names, N_CHECKPOINT_NAMES, "known are blocking, two-stage, memory and step", hint,
                         sizeof hint));
    return -1;
}

/* The way of checkpoints through the network: on a fabric when that is asked for. */
static enum status find_traffic(struct invocation *call, struct run_session *s, const struct setting *setting)
{
    struct fabric fabric;
    if (option_choice(call, "checkpoint-network") != NETWORK_FLOW)
        return STATUS_OK;
    enum status status = fabric_options_load(call, &s->experiment.cluster, &fabric);
    if (status != STATUS_OK)
        return status;
    struct router router = fabric_options_router(call, &fabric);
    status = checkpoint_cost_on_fabric(&s->layout, setting, &router, fabric_options_queue_pairs(call, setting->cluster), &s->cost,
                                       &call->diags);
    fabric_free(&fabric);
    return status;
}

static struct startup_options startup_asked(const struct invocation *call)
{
    struct startup_options startup = startup_usual();
    int store = option_choice(call, "store");
    startup.store = store >= 0 ? (enum store_kind)store : STORE_ORDERED;
    startup.image_bytes = option_quantity(call, "image");
    startup.registry_rate = option_quantity(call, "registry-rate");
    if (option_given(call, "scheduling"))
        startup.scheduling_s = option_quantity(call, "scheduling");
    if (option_given(call, "warm-up"))
        startup.warm_up_s = option_quantity(call, "warm-up");
    return startup;
}

static enum status find_costs(struct invocation *call, struct run_session *s)
{
    const struct setting setting = experiment_setting(&s->experiment);
    struct startup_options startup = startup_asked(call);
    checkpoint_cost_of(&s->layout, &setting, option_quantity(call, "storage-rate"), &s->cost);
    enum status status = find_traffic(call, s, &setting);
    if (status != STATUS_OK)
        return status;
    double loading = option_choice(call, "load") == LOAD_ALL ? s->cost.load_all_s : s->cost.load_broadcast_s;
    s->storage_loading_s = loading;
    if (s->options.checkpoint.kind == CHECKPOINT_MEMORY)
        loading = s->cost.load_memory_s;
    s->startup = startup_of(&startup, &s->layout, &setting, 1, loading);
    s->has_cost = true;
    return STATUS_OK;
}

/* Every-step checkpoints go to memory; one an hour of work goes to storage too. */
static void storage_every(struct checkpoint_policy *policy)
{
    nanos every = (3600 * NANOS_PER_SECOND + policy->interval - 1) / policy->interval;
    policy->storage_every = every > 1 ? (every < 1000000 ? (int)every : 1000000) : 1;
}

static enum status set_checkpoint(struct invocation *call, struct run_session *s)
{
    struct checkpoint_policy *policy = &s->options.checkpoint;
    const char *name = s->experiment.faults.checkpoint;
    int kind = *name ? checkpoint_parse(call, name) : CHECKPOINT_BLOCKING;
    if (kind < 0)
        return STATUS_BAD_INPUT;
    policy->kind = kind == CHECKPOINT_EVERY_STEP ? CHECKPOINT_MEMORY : (enum checkpoint_kind)kind;
    if (kind == CHECKPOINT_EVERY_STEP)
        policy->interval = nanos_from_seconds(s->report.step_time_s);
    enum status status = s->has_layout ? find_costs(call, s) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    if (!*name || !s->has_cost)
        return STATUS_OK;
    checkpoint_cost_apply(&s->cost, policy);
    if (s->experiment.faults.checkpoint_block_s > 0 || option_given(call, "checkpoint-block"))
        policy->block = nanos_from_seconds(s->experiment.faults.checkpoint_block_s);
    if (policy->kind == CHECKPOINT_MEMORY)
        storage_every(policy);
    return STATUS_OK;
}

void run_warn_interval(struct invocation *call, const struct run_session *s, nanos interval)
{
    char every[32], lag[32];
    nanos safe = checkpoint_lag(&s->options.checkpoint);
    if (interval >= safe)
        return;
    diag_warning(&call->diags, nowhere,
                 "a checkpoint every %s waits for the one before, which takes %s until it is safe: training stands still "
                 "meanwhile; an interval of %s or more does not",
                 quantity_format(nanos_to_seconds(interval), DIM_TIME, every, sizeof every),
                 quantity_format(nanos_to_seconds(safe), DIM_TIME, lag, sizeof lag), lag);
}

void run_note_hot_spares(struct invocation *call, const struct run_session *s, int spares)
{
    if (s->has_policy && s->policy.hot_spares > spares)
        diag_note(&call->diags, nowhere,
                  "policy %s keeps %d hot spares, and there %s %d spare node%s: no more than these are hot", s->policy.name,
                  s->policy.hot_spares, spares == 1 ? "is" : "are", spares, plural(spares));
}

static void assume_storage(const struct invocation *call, struct run_session *s)
{
    char rate[32];
    bool loads = s->experiment.faults.checkpoint[0] || (has_stages(&s->experiment.faults) && s->experiment.faults.restart_s < 0);
    if (!s->has_cost || !loads || option_given(call, "storage-rate") || s->experiment.cluster.storage_rate > 0)
        return;
    snprintf(s->storage_text, sizeof s->storage_text, "the checkpoint store takes and gives %s",
             quantity_format(UNKNOWN_STORAGE, DIM_RATE, rate, sizeof rate));
    run_assume(&s->report, s->storage_text);
}

/* How long restarts take: as given, or what starting up takes with these checkpoints. */
static void set_restart(struct run_session *s)
{
    double given = s->experiment.faults.restart_s;
    s->robust.restart = nanos_from_seconds(s->restart_given ? given : startup_total_s(&s->startup));
    s->robust.restart_hot = nanos_from_seconds(s->restart_given ? given : startup_hot_s(&s->startup));
    bool memory = s->options.checkpoint.kind == CHECKPOINT_MEMORY && !s->restart_given && s->has_cost;
    s->robust.reload = memory ? nanos_from_seconds(fmax(0, s->storage_loading_s - s->cost.load_memory_s)) : 0;
    s->options.recovery.restart = s->robust.restart;
}

static void set_robust(struct invocation *call, struct run_session *s)
{
    s->robust = (struct run_robust){.policy = &s->policy, .seed = call->seed, .replicas = s->has_layout ? s->layout.dp : 1};
    s->options.robust = &s->robust;
    s->restart_given = s->experiment.faults.restart_s >= 0;
    set_restart(s);
}

enum status run_set_checkpoint(struct invocation *call, struct run_session *s, const char *kind)
{
    snprintf(s->experiment.faults.checkpoint, sizeof s->experiment.faults.checkpoint, "%s", kind);
    enum status status = set_checkpoint(call, s);
    if (status == STATUS_OK && s->has_policy)
        set_restart(s);
    return status;
}

static enum status set_policy(struct invocation *call, struct run_session *s)
{
    if (!has_stages(&s->experiment.faults))
        return STATUS_OK;
    enum status status = robust_policy_load(s->experiment.faults.policy, &s->policy, &call->diags);
    if (status != STATUS_OK)
        return status;
    s->has_policy = true;
    set_robust(call, s);
    return STATUS_OK;
}

/* How long the others stop, and until a unit is back: as given, or what starting up takes. */
static void time_failover(struct invocation *call, struct run_session *s, const struct setting *setting)
{
    struct run_failover *f = &s->failover;
    struct startup_options startup = startup_asked(call);
    struct startup rejoin = failover_rejoin(&startup, &s->layout, f, setting, s->cost.load_memory_s);
    bool given = s->has_policy ? s->restart_given : true;
    double regroup_s = failover_regroup_s(&s->layout, setting->gpus, startup.store);
    f->step = nanos_from_seconds(s->report.step_time_s);
    f->regroup = nanos_from_seconds(option_given(call, "regroup") ? option_quantity(call, "regroup") : regroup_s);
    f->rejoin = given ? s->options.recovery.restart : nanos_from_seconds(startup_total_s(&rejoin));
    f->rejoin_hot = given ? f->rejoin : nanos_from_seconds(startup_hot_s(&rejoin));
}

/* Options that say nothing unless replicas fail alone, or where they cannot. */
static enum status set_failover(struct invocation *call, struct run_session *s)
{
    const struct setting setting = experiment_setting(&s->experiment);
    char why[192] = "which replicas share states follows from the layout";
    if (option_choice(call, "failover") != FAILOVER_REPLICA) {
        if (option_given(call, "regroup"))
            diag_warning(&call->diags, nowhere, "--regroup says nothing without --failover replica");
        return STATUS_OK;
    }
    if (!s->has_layout || !failover_units(&s->layout, setting.cluster, &s->failover, why, sizeof why)) {
        diag_error(&call->diags, nowhere, "--failover replica: %s", why);
        return STATUS_BAD_INPUT;
    }
    time_failover(call, s, &setting);
    if (s->has_policy && s->policy.elastic)
        run_assume(&s->report, "a job that has lost all replicas waits for all their nodes, though the policy is elastic");
    s->options.failover = &s->failover;
    return STATUS_OK;
}

/* Is a node (FAULT_STRAGGLER), or a link, slow for a while? */
static bool has_slow(const struct run_session *s, enum fault_kind kind)
{
    for (size_t i = 0; i < s->trace.n_items; i++)
        if (s->trace.items[i].kind == kind)
            return true;
    for (int i = 0; s->has_model && i < s->model.slow.n; i++)
        if ((s->model.slow.items[i].kind == 1) == (kind == FAULT_LINK))
            return true;
    return false;
}

/* 0 auto, 1 factor, 2 step. */
static enum status set_degraded(struct invocation *call, struct run_session *s)
{
    int how = option_choice(call, "degraded");
    bool link = has_slow(s, FAULT_LINK);
    bool asked = s->has_policy || s->has_model || s->options.failover || link || has_slow(s, FAULT_STRAGGLER);
    if (how == 0 && option_given(call, "step-time") && link)
        run_assume(&s->report, "a slow link slows all of the step, as --step-time does not say what of it is communication");
    if (how == 2 && (!s->has_layout || option_given(call, "step-time")))
        diag_note(&call->diags, nowhere,
                  "--degraded step changes nothing where the step is not simulated: without --step-time it is");
    if (how == 1 || (how == 0 && !asked) || !s->has_layout || option_given(call, "step-time"))
        return STATUS_OK;
    s->setting = experiment_setting(&s->experiment);
    s->degraded = degraded_create(&s->layout, &s->setting, &call->diags);
    if (!s->degraded)
        return STATUS_BAD_INPUT;
    s->degraded_speed = degraded_speed_of(s->degraded);
    s->options.degraded = &s->degraded_speed;
    return STATUS_OK;
}

/* --- all of it ---------------------------------------------------------------------------------------------------------------
 */

enum status run_session_load(struct invocation *call, struct run_session *s)
{
    struct experiment_flags flags = experiment_flags_of(call);
    enum status status = experiment_read(call, &flags, &s->experiment);
    if (status == STATUS_OK)
        status = gpu_price_option(call, s->experiment.cluster.gpu.name, &s->report.gpu_price);
    if (status == STATUS_OK)
        fill_defaults(call, s);
    return status;
}

enum status run_check_faults(struct invocation *call, const struct run_session *s)
{
    double days = (double)s->options.horizon / 86400e9;
    double rate = s->has_model ? fault_model_total_rate(&s->model) : 0;
    for (int i = 0; s->has_model && i < s->model.slow.n; i++)
        rate += s->model.slow.items[i].share / fmax(days, 1) + s->model.slow.items[i].rate;
    double expected = rate * s->options.nodes * days;
    if (rate >= 0 && expected <= 1e7)
        return STATUS_OK;
    char text[32];
    if (!(rate >= 0)) {
        diag_error(&call->diags, nowhere, "%.3g faults a node and day: a rate is not negative", rate);
        return STATUS_BAD_INPUT;
    }
    diag_error(&call->diags, nowhere, "about %s faults; fewer nodes, a shorter horizon or a lower rate give a usable run",
               quantity_format(expected, DIM_COUNT, text, sizeof text));
    return STATUS_BAD_INPUT;
}

static enum status draw_trace(struct invocation *call, struct run_session *s)
{
    enum status status = run_check_faults(call, s);
    if (status == STATUS_OK)
        faults_generate(&s->model, s->options.nodes, s->options.horizon, call->seed, &s->trace);
    return status;
}

/* Nodes that the job of an experiment uses. */
static int32_t job_nodes(const struct experiment *e)
{
    return (int32_t)((e->gpus + e->cluster.gpus_per_node - 1) / e->cluster.gpus_per_node);
}

enum status run_session_prepare(struct invocation *call, struct run_session *s)
{
    s->options.nodes = job_nodes(&s->experiment);
    enum status faults = run_read_faults(call, s);
    enum status stepped = find_step(call, s);
    if (faults != STATUS_OK || stepped != STATUS_OK)
        return faults != STATUS_OK ? faults : stepped;
    if (check_budget(call, s) != STATUS_OK)
        return STATUS_BAD_INPUT;
    set_options(call, s);
    if (option_choice(call, "checkpoint-network") != NETWORK_FLOW)
        fabric_options_note_idle(call, "checkpoint-network", "flow");
    enum status status = set_checkpoint(call, s);
    assume_storage(call, s);
    if (status == STATUS_OK)
        status = set_policy(call, s);
    if (status == STATUS_OK)
        status = set_failover(call, s);
    if (status == STATUS_OK)
        status = set_degraded(call, s);
    return status == STATUS_OK && s->has_model ? draw_trace(call, s) : status;
}

void run_session_free(struct run_session *s)
{
    run_result_free(&s->result);
    fault_trace_free(&s->trace);
    repairs_free(&s->repairs);
    degraded_destroy(s->degraded);
}
