/*
 * msim run - weeks of training with failures.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/experiment_options.h"
#include "cli/layout_choice.h"
#include "cli/result.h"
#include "cli/run_report.h"
#include "sim/fault_statistics.h"
#include "sim/step.h"

static const struct place nowhere = {0};
#define DAY_S 86400.0

/* Everything one call holds. */
struct session {
    struct experiment experiment;
    struct fault_trace trace;
    struct run_options options;
    struct run_result result;
    struct run_report report;
    struct layout layout;
    char layout_text[256];
};

/* --- what is asked -----------------------------------------------------------------------------------------------------------
 */

/* Flags win over the experiment file. */
static enum status apply_flags(struct invocation *call, struct faults_request *faults)
{
    const char *trace = option_text(call, "faults");
    if (option_given(call, "checkpoint-interval") && option_given(call, "checkpoint-steps")) {
        diag_error(&call->diags, nowhere, "--checkpoint-interval and --checkpoint-steps say the same thing; keep one");
        return STATUS_USAGE;
    }
    if (trace && strlen(trace) >= sizeof faults->trace) {
        diag_error(&call->diags, nowhere, "--faults: a name of at most %zu characters", sizeof faults->trace - 1);
        return STATUS_USAGE;
    }
    if (trace)
        snprintf(faults->trace, sizeof faults->trace, "%s", trace);
    if (option_given(call, "horizon"))
        faults->horizon_s = option_quantity(call, "horizon");
    if (option_given(call, "checkpoint-interval") || option_given(call, "checkpoint-steps")) {
        faults->checkpoint_interval_s = option_quantity(call, "checkpoint-interval");
        faults->checkpoint_steps = option_count(call, "checkpoint-steps");
    }
    if (option_given(call, "checkpoint-block"))
        faults->checkpoint_block_s = option_quantity(call, "checkpoint-block");
    if (option_given(call, "detect"))
        faults->detect_s = option_quantity(call, "detect");
    if (option_given(call, "restart"))
        faults->restart_s = option_quantity(call, "restart");
    if (option_given(call, "spares"))
        faults->spares = (int)option_count(call, "spares");
    return STATUS_OK;
}

static void assume(struct run_report *report, const char *text)
{
    report->assumptions[report->n_assumptions++] = text;
}

/* What neither the file nor a flag said. Each default is told in the report. */
static void fill_defaults(struct invocation *call, struct session *s)
{
    struct faults_request *faults = &s->experiment.faults;
    if (!faults->trace[0]) {
        snprintf(faults->trace, sizeof faults->trace, "llama3-54d");
        assume(&s->report, "faults llama3-54d: 54 days at Llama 3's rate and causes");
    }
    if (faults->checkpoint_interval_s <= 0 && faults->checkpoint_steps <= 0) {
        faults->checkpoint_interval_s = 1800;
        assume(&s->report, "checkpoint interval 30 min");
    }
    if (faults->checkpoint_block_s <= 0 && !option_given(call, "checkpoint-block"))
        assume(&s->report, "checkpoints block training for no time");
    if (faults->detect_s <= 0 && !option_given(call, "detect"))
        assume(&s->report, "failures are noticed at once");
    if (faults->restart_s < 0) {
        faults->restart_s = 900;
        assume(&s->report, "restart 15 min");
    }
    if (faults->spares < 0) {
        faults->spares = 4;
        assume(&s->report, "4 spare nodes");
    }
}

/* --- the trace ---------------------------------------------------------------------------------------------------------------
 */

static int32_t job_nodes(const struct experiment *e)
{
    return (int32_t)((e->gpus + e->cluster.gpus_per_node - 1) / e->cluster.gpus_per_node);
}

static void note_outside(struct invocation *call, const struct session *s, bool shipped)
{
    if (s->trace.n_outside > 0)
        diag_note(&call->diags, nowhere, "%zu faults of %s are on nodes %s (it uses %" PRId32 ") and are left out",
                  s->trace.n_outside, s->experiment.faults.trace, shipped ? "beyond the job's" : "that the job does not use",
                  s->options.nodes);
}

static enum status read_trace(struct invocation *call, struct session *s)
{
    char *path;
    bool shipped;
    enum status status = fault_trace_find(s->experiment.faults.trace, &path, &shipped, &call->diags);
    if (status != STATUS_OK)
        return status;
    int32_t with_spares = s->options.nodes + s->experiment.faults.spares;
    int32_t known = s->experiment.cluster.nodes > with_spares ? s->experiment.cluster.nodes : with_spares;
    struct fault_trace_limits limits = {.keep = s->options.nodes, .known = known, .drop = shipped};
    status = fault_trace_read(path, limits, &s->trace, &call->diags);
    free(path);
    if (status == STATUS_OK)
        note_outside(call, s, shipped);
    return status;
}

/* --- the step ----------------------------------------------------------------------------------------------------------------
 */

static void step_given(struct invocation *call, struct session *s)
{
    const struct setting setting = experiment_setting(&s->experiment);
    double peak = setting.cluster->gpu.peak_flops[setting.job->precision] * setting.gpus;
    s->report.step_time_s = option_quantity(call, "step-time");
    if (peak > 0)
        s->report.step_mfu = model_flops_per_step(&setting, setting.job->features, FLOPS_FULL) / (s->report.step_time_s * peak);
}

static void check_memory(struct invocation *call, const struct session *s, const struct footprint *memory)
{
    double capacity = footprint_capacity(&s->experiment.cluster);
    if (memory->total > capacity)
        diag_warning(&call->diags, nowhere, "a rank of this layout needs %.1f GiB, the GPU has %.1f GiB", memory->total / 0x1p30,
                     capacity / 0x1p30);
}

static enum status step_simulated(struct invocation *call, struct session *s)
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
    s->report.layout = layout_format(&s->layout, s->layout_text, sizeof s->layout_text);
    s->report.step_time_s = step.step_time_s;
    s->report.step_mfu = step.mfu;
    if (!s->experiment.layout.given)
        assume(&s->report, "the layout that is best by the closed form");
    return STATUS_OK;
}

static enum status find_step(struct invocation *call, struct session *s)
{
    if (!option_given(call, "step-time"))
        return step_simulated(call, s);
    step_given(call, s);
    return STATUS_OK;
}

/* --- the run -----------------------------------------------------------------------------------------------------------------
 */

static nanos series_width(const struct invocation *call, double horizon_s)
{
    if (option_given(call, "series"))
        return nanos_from_seconds(option_quantity(call, "series"));
    return nanos_from_seconds(horizon_s > 4 * DAY_S ? DAY_S : DAY_S / 24);
}

static void set_options(struct invocation *call, struct session *s)
{
    struct faults_request *faults = &s->experiment.faults;
    if (faults->horizon_s <= 0)
        faults->horizon_s = (double)fault_trace_horizon(&s->trace) / 1e9;
    double interval_s = faults->checkpoint_interval_s;
    if (faults->checkpoint_steps > 0)
        interval_s = (double)faults->checkpoint_steps * s->report.step_time_s;
    s->options.horizon = nanos_from_seconds(faults->horizon_s);
    s->options.bin = series_width(call, faults->horizon_s);
    s->options.checkpoint.interval = nanos_from_seconds(interval_s);
    s->options.checkpoint.block = nanos_from_seconds(faults->checkpoint_block_s);
    s->options.recovery.detect = nanos_from_seconds(faults->detect_s);
    s->options.recovery.restart = nanos_from_seconds(faults->restart_s);
    s->options.recovery.spares = faults->spares;
}

static enum status write_report(struct invocation *call, struct session *s)
{
    s->report.experiment = &s->experiment;
    s->report.trace = &s->trace;
    s->report.options = &s->options;
    s->report.result = &s->result;
    s->report.memoryless = run_closed_form(&s->options, s->result.failures);
    const char *incidents = option_text(call, "incidents");
    FILE *out = incidents ? output_open(call, incidents) : NULL;
    if (incidents && !out)
        return STATUS_FAILED;
    if (out)
        run_report_incidents_csv(&s->report, out);
    return run_report_write(call, &s->report);
}

static enum status simulate(struct invocation *call, struct session *s)
{
    s->options.nodes = job_nodes(&s->experiment);
    enum status traced = read_trace(call, s);
    enum status stepped = find_step(call, s);
    if (traced != STATUS_OK || stepped != STATUS_OK)
        return traced != STATUS_OK ? traced : stepped;
    set_options(call, s);
    enum status status = run_simulate(&s->options, &s->trace, &s->result, &call->diags);
    return status == STATUS_OK ? write_report(call, s) : status;
}

static enum status run(struct invocation *call)
{
    struct session *s = calloc(1, sizeof *s);
    if (!s)
        return STATUS_FAILED;
    struct experiment_flags flags = experiment_flags_of(call);
    enum status status = experiment_load(&flags, &s->experiment, &call->diags);
    if (status == STATUS_OK)
        status = apply_flags(call, &s->experiment.faults);
    if (status == STATUS_OK) {
        fill_defaults(call, s);
        status = simulate(call, s);
    }
    run_result_free(&s->result);
    fault_trace_free(&s->trace);
    free(s);
    return status;
}

/* --- the command -------------------------------------------------------------------------------------------------------------
 */

#define CENTURY_S   (100 * 365.25 * DAY_S)
#define TIME_OPTION .argument = "TIME", .type = OPTION_QUANTITY, .dimension = DIM_TIME, .high = CENTURY_S

static const struct option_row options[] = {
    {.name = "faults",
     .argument = "NAME|FILE",
     .type = OPTION_TEXT,
     .help = "fault trace: a shipped one (llama3-54d, megascale-30d) or a CSV file, also .gz; llama3-54d when left out",
     .group = "Run"},
    {.name = "horizon", TIME_OPTION, .low = 1, .help = "how long to look; to the trace's last day when left out", .group = "Run"},
    {.name = "checkpoint-interval",
     TIME_OPTION,
     .low = 1e-3,
     .help = "useful work between checkpoints; 30min when left out",
     .group = "Run"},
    {.name = "checkpoint-steps",
     .argument = "N",
     .type = OPTION_COUNT,
     .low = 1,
     .high = 1e12,
     .help = "the same in steps",
     .group = "Run"},
    {.name = "checkpoint-block", TIME_OPTION, .help = "how long a checkpoint stops training; 0s when left out", .group = "Run"},
    {.name = "detect", TIME_OPTION, .help = "from a failure until it is noticed; 0s when left out", .group = "Run"},
    {.name = "restart",
     TIME_OPTION,
     .help = "from enough healthy nodes until training goes on; 15min when left out",
     .group = "Run"},
    {.name = "spares",
     .argument = "N",
     .type = OPTION_COUNT,
     .high = 1e6,
     .help = "nodes that stand by; 4 when left out",
     .group = "Run"},
    {.name = "step-time",
     TIME_OPTION,
     .low = 1e-6,
     .help = "time of one step, instead of simulating one for the layout",
     .group = "Run"},
    {.name = "series",
     TIME_OPTION,
     .low = 60,
     .help = "width of the time series; a day, or an hour for horizons up to 4 days",
     .group = "Run"},
    {.name = "incidents", .argument = "FILE", .type = OPTION_TEXT, .help = "also write every fault as CSV", .group = "Run"},
    {0},
};

static const struct example examples[] = {
    {"msim run --model gpt-175b-megascale --cluster megascale-a100 --global-batch 6144 --faults megascale-30d",
     "a month on 12,288 GPUs at Llama 3's failure rate"},
    {"msim run experiment.yaml --faults lanl.csv.gz --horizon 974d --checkpoint-interval 30min --checkpoint-block 30s --restart "
     "15min --spares 2 --format json -o run.json",
     "a trace of one's own, for programs"},
    {0},
};

const struct command command_run = {
    .name = "run",
    .summary = "weeks of training with failures: goodput, lost work, MFU over time",
    .description =
        "Replays a fault trace over a training job. Training alternates an interval of work with a checkpoint that may block it. "
        "A node failure undoes the work since the last checkpoint; training goes on once it is noticed, no more nodes are down "
        "than there are spares, and the job has restarted. Stragglers and slow links slow training down to the slowest.\n\n"
        "ETTR is the share of the time spent on training that counts; goodput is the work that counts over that of a cluster "
        "without faults and checkpoints. They differ only where nodes or links are slow. Every second of the horizon is booked "
        "to one use.",
    .operands = "[EXPERIMENT.yaml]",
    .max_operands = 1,
    .experiment = true,
    .options = options,
    .examples = examples,
    .run = run,
};
