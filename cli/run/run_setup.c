/* Reads the options and files of a run, and prepares it. */
#include "cli/run/run_setup.h"

#include <math.h>
#include <string.h>

#include "cli/options/experiment_options.h"
#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/run/run_faults.h"
#include "cli/world/world.h"
#include "sim/faults/fault_statistics.h"
#include "sim/faults/faults.h"
#include "sim/search/layout_choice.h"
#include "sim/step/step.h"
#include "sim/weeks/degraded.h"

#define DAY_S 86400.0
/* Without --horizon, a run ends after this multiple of its time without failures. */
#define PATIENCE 10

/* --- defaults --- */

static void assume_unswept(const struct invocation *call, struct run_session *s, const char *key, const char *text)
{
    if (!run_sweeps(call, key))
        run_assume(&s->report, text);
}

/* Defaults of keys that neither the file nor an option sets. The report lists each. */
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
        diag_warning(&call->diags, PLACE_NONE, "checkpoint_%s has no effect with checkpoint step, which saves at every step",
                     faults->checkpoint_steps > 0 ? "steps" : "interval");
    if (faults->checkpoint_interval_s <= 0 && faults->checkpoint_steps <= 0 && !every_step) {
        faults->checkpoint_interval_s = 1800;
        assume_unswept(call, s, "checkpoint-interval", "checkpoint interval 30 min");
    }
    if (faults->checkpoint_block_s < 0 && !faults->checkpoint[0])
        assume_unswept(call, s, "checkpoint-block", "checkpoints do not block training");
    if (faults->detect_s < 0 && !run_has_stages(faults))
        assume_unswept(call, s, "detect", "failures are noticed immediately");
    if (faults->restart_s < 0 && !run_has_stages(faults)) {
        faults->restart_s = 900;
        assume_unswept(call, s, "restart", "restart 15 min");
    }
    if (faults->spares < 0) {
        faults->spares = 4;
        assume_unswept(call, s, "spares", "4 spare nodes");
    }
}

/* --- the step --- */

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
        diag_warning(&call->diags, PLACE_NONE, "a rank of this layout needs %.1f GiB, but the GPU has %.1f GiB",
                     memory->total / 0x1p30, capacity / 0x1p30);
}

static enum status step_simulated(struct invocation *call, struct run_session *s)
{
    const struct setting setting = experiment_setting(&s->experiment);
    enum status status = layout_choose(&s->experiment, world_processors(), &s->layout, &call->diags);
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
    bool alone = option_choice(call, "failover") == FAILOVER_REPLICA; /* needs the layout: which nodes a replica has */
    if (!run_has_stages(&s->experiment.faults) && !s->experiment.faults.checkpoint[0] && !alone)
        return STATUS_OK;
    enum status status = layout_choose(&s->experiment, world_processors(), &s->layout, &call->diags);
    s->has_layout = status == STATUS_OK;
    if (s->has_layout && !s->experiment.layout.given)
        run_assume(&s->report, assumed_layout);
    return status;
}

/* --- the run --- */

static nanos series_width(const struct invocation *call, double horizon_s)
{
    if (option_given(call, "series"))
        return nanos_from_seconds(option_quantity(call, "series"));
    return nanos_from_seconds(horizon_s > 4 * DAY_S ? DAY_S : DAY_S / 24);
}

/* Seconds that the steps for the budget of tokens take without failures; 0: there is no budget. */
static double budget_s(const struct run_session *s)
{
    const struct job *job = &s->experiment.job;
    return ceil(job->tokens / ((double)job->global_batch * (double)job->seq_len)) * s->report.step_time_s;
}

/* Without --horizon: the length of the trace; with a model PATIENCE times the budget, or a month. */
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
    diag_error(&call->diags, PLACE_NONE,
               "tokens: training takes %.0f years without a failure, but msim simulates at most 100; use fewer tokens or more "
               "GPUs, or simulate a part with --horizon",
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
    s->options.checkpoint.block = nanos_from_seconds(fmax(faults->checkpoint_block_s, 0));
    s->options.recovery.detect = nanos_from_seconds(fmax(faults->detect_s, 0));
    s->options.recovery.restart = nanos_from_seconds(fmax(faults->restart_s, 0));
    s->options.recovery.spares = faults->spares;
    s->options.notice = option_given(call, "notice") ? nanos_from_seconds(fmax(option_quantity(call, "notice"), 1e-9)) : 0;
}

/* --- all of it --- */

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

static enum status draw_trace(struct invocation *call, struct run_session *s)
{
    const struct run_parts run = run_parts_of(s);
    enum status status = run_parts_check_faults(&run, &call->diags);
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
    enum status status = run_set_recovery(call, s);
    return status == STATUS_OK && s->has_model ? draw_trace(call, s) : status;
}

void run_session_free(struct run_session *s)
{
    run_result_free(&s->result);
    fault_trace_free(&s->trace);
    repairs_free(&s->repairs);
    degraded_destroy(s->degraded);
}
