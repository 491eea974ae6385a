/* A step for people. */
#include "cli/step/step_report.h"

#include <inttypes.h>
#include <string.h>

#include "cli/job/plan_rates.h"
#include "cli/output/expectation.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "cli/output/table.h"
#include "cli/step/step_explain.h"
#include "model/base/units.h"
#include "model/cost/work/host_memory.h"

/* ---- what all reports ask */

static bool fits(const struct step_report *report)
{
    return report->result->memory.total <= report->capacity_bytes;
}

double step_report_host_capacity(const struct step_report *report)
{
    return host_capacity(&report->setup->experiment.cluster, &report->setup->layout);
}

static bool host_fits(const struct step_report *report)
{
    double capacity = step_report_host_capacity(report);
    return capacity <= 0 || report->result->memory.host <= capacity;
}

bool step_report_runs(const struct step_report *report)
{
    return fits(report) && host_fits(report);
}

double step_report_days(const struct step_report *report)
{
    double tokens = report->setup->experiment.job.tokens, rate = report->result->tokens_per_s;

    return tokens > 0 && rate > 0 ? tokens / rate / 86400 : 0;
}

double step_report_gpu_hours(const struct step_report *report)
{
    return step_report_days(report) * 24 * report->setup->experiment.gpus;
}

/* ---- text */

void step_report_header(const struct job_setup *setup, FILE *out)
{
    const struct experiment *e = &setup->experiment;
    const struct layout *layout = &setup->layout;
    char gpus[32], batch[32], text[LAYOUT_TEXT];

    fprintf(out, "%s on %s x %s (%s)\n", e->model.name, grouped(e->gpus, gpus, sizeof gpus), e->cluster.gpu.name,
            e->cluster.name);
    fprintf(out, "layout   %s%s\n", layout_format(layout, text, sizeof text), setup->chosen ? "  (chosen)" : "");
    int64_t micro_batches = layout_micro_batches(layout, &e->job);
    fprintf(out, "batch    %s x %" PRId64 " tokens, %s, %" PRId64 " micro-batch%s of %d per replica\n",
            grouped(e->job.global_batch, batch, sizeof batch), e->job.seq_len, precision_name(e->job.precision), micro_batches,
            micro_batches == 1 ? "" : "es", layout->micro_batch);
    trained_write(&setup->setting, layout->features, out);
    routing_write(&setup->setting, out);
    packed_write(&setup->setting, layout->features, out);
    fputs("features ", out);
    for (int f = 0, n = 0; f < N_FEATURES; f++)
        if (layout->features >> f & 1u)
            fprintf(out, "%s%s", n++ ? ", " : "", feature_name(f));
    fprintf(out, "%s\n\n", layout->features ? "" : "none");
}

/* How long runs of this kind took for such a prediction. */
static void write_expectation(const struct step_report *report, FILE *out)
{
    const struct setting *setting = &report->setup->setting;
    const struct layout *layout = &report->setup->layout;
    const struct track_record *record = track_record_of(run_kind_of(layout, setting->model));
    char low[32], high[32], runs[EXPECTATION_TEXT];

    note_write(out, 9, "likely   %s to %s: %s",
               quantity_format(report->result->step_time_s * record->low, DIM_TIME, low, sizeof low),
               quantity_format(report->result->step_time_s * record->high, DIM_TIME, high, sizeof high),
               expectation_runs_text(layout, setting, runs, sizeof runs));
}

/* Of a budget: at most so much energy, drawn at most at such a power. */
static void write_energy(const struct step_report *report, FILE *out)
{
    const struct power_bound bound = power_bound_published(&report->setup->experiment.cluster, report->setup->experiment.gpus);
    double watts = bound.gpu_w * report->setup->experiment.gpus;
    char energy[48], power[32], token[32], counted[BOUND_TEXT];

    if (bound.count != POWER_UNKNOWN)
        note_write(out, 9, "energy   at most %s, %s, %s J per token: upper bound, %s",
                   energy_text(power_bound_energy(&bound, step_report_gpu_hours(report)), energy, sizeof energy),
                   quantity_format(watts, DIM_POWER, power, sizeof power),
                   three_digits(watts / report->result->tokens_per_s, token, sizeof token),
                   power_bound_text(&bound, counted, sizeof counted));
}

void step_report_write_budget(const struct step_report *report, FILE *out)
{
    char hours[32], tokens[32], days[48], cost[48] = "", money[32];
    double said = step_report_days(report);

    if (said <= 0)
        return;
    if (report->gpu_price > 0)
        snprintf(cost, sizeof cost, ", cost %s",
                 grouped((int64_t)(report->gpu_price * step_report_gpu_hours(report) + 0.5), money, sizeof money));
    fprintf(out, "budget   %s tokens take %s, %s GPU-hours%s\n",
            quantity_format(report->setup->experiment.job.tokens, DIM_COUNT, tokens, sizeof tokens),
            days_text(said, days, sizeof days), gpu_hours_text(step_report_gpu_hours(report), hours, sizeof hours), cost);
    write_energy(report, out);
}

static void write_summary(const struct step_report *report, const struct invocation *call)
{
    const struct step_result *r = report->result;
    char time[32], rate[32];
    FILE *out = call->out;

    fprintf(out, "step     %s%s%s   %s tokens/s\n", tint_start(TINT_STRONG, call->colour),
            quantity_format(r->step_time_s, DIM_TIME, time, sizeof time), tint_end(TINT_STRONG, call->colour),
            quantity_format(r->tokens_per_s, DIM_COUNT, rate, sizeof rate));
    write_expectation(report, out);
    fprintf(out, "MFU      %s%.1f %%%s (attention counted in full), %.1f %% (causal half)", tint_start(TINT_STRONG, call->colour),
            r->mfu * 100, tint_end(TINT_STRONG, call->colour), r->mfu_causal * 100);
    if (job_masks_documents(&report->setup->experiment.job))
        fprintf(out, ", %.1f %% (within documents)", r->mfu_masked * 100);
    fputc('\n', out);
    fprintf(out, "HFU      %.1f %%, %.1f %%\n", r->hfu * 100, r->hfu_causal * 100);
    const struct step_rates rates = step_rates_of(&report->setup->layout, &report->setup->setting, r->step_time_s);
    fputs("rates    ", out);
    plan_rates_write(&rates, out);
    fputc('\n', out);
    step_report_write_budget(report, out);
    fputc('\n', out);
}

static void bar(double fraction, char *buffer, size_t size)
{
    size_t n = fraction > 0 ? (size_t)(fraction * 40 + 0.5) : 0;

    if (n >= size)
        n = size - 1;
    memset(buffer, '#', n);
    buffer[n] = '\0';
}

static void write_breakdown(const struct step_report *report, const struct invocation *call)
{
    const struct step_result *r = report->result;
    struct table table = {0};
    char line[48];

    table_column(&table, "where the time goes", NULL, ALIGN_LEFT);
    table_column(&table, "time", "s", ALIGN_RIGHT);
    table_column(&table, "share", "%", ALIGN_RIGHT);
    table_column(&table, "", NULL, ALIGN_LEFT);
    for (int c = 0; c < N_WORK_CLASSES; c++) {
        double share = r->step_time_s > 0 ? r->breakdown.s[c] / r->step_time_s : 0;
        if (r->breakdown.s[c] == 0)
            continue;
        bar(share, line, sizeof line);
        table_cell(&table, "%s", work_class_name(c));
        table_cell(&table, "%.4f", r->breakdown.s[c]);
        table_cell(&table, "%.2f", share * 100);
        table_cell(&table, "%s", line);
    }
    table_cell(&table, "step");
    table_cell(&table, "%.4f", r->step_time_s);
    table_cell(&table, "%.2f", 100.0);
    table_cell(&table, "%s", "");
    table_write_text(&table, call);
    table_free(&table);
    fputs("(mean over ranks; only exposed communication is counted)\n\n", call->out);
}

/* Classes down, stages across would be wide: one row per stage, the classes that occur as columns. */
static void write_stages(const struct step_report *report, const struct invocation *call)
{
    struct table table = {0};

    table_column(&table, "stage", NULL, ALIGN_RIGHT);
    for (int c = 0; c < N_WORK_CLASSES; c++)
        if (report->result->breakdown.s[c] > 0)
            table_column(&table, work_class_name(c), "s", ALIGN_RIGHT);
    table_column(&table, "memory", "GiB", ALIGN_RIGHT);
    for (int i = 0; i < report->stages->n_stages; i++) {
        struct cost_by_class mean = breakdown_mean(report->stages, i);
        struct footprint memory;
        footprint_of_stage(&report->setup->layout, &report->setup->setting, i, &memory);
        table_cell(&table, "%d", i);
        for (int c = 0; c < N_WORK_CLASSES; c++)
            if (report->result->breakdown.s[c] > 0)
                table_cell(&table, "%.4f", mean.s[c]);
        table_cell(&table, "%.2f", memory.total / GIB);
    }
    table_write_text(&table, call);
    table_free(&table);
    fputc('\n', call->out);
}

/* Where the prediction alone does not decide whether the layout runs. */
static void write_memory_expectation(const struct step_report *report, FILE *out)
{
    double use = report->result->memory.total / report->capacity_bytes, share = memory_record_share(use);
    char runs[EXPECTATION_TEXT];

    if (share < SHARE_WORTH_TELLING || share > 1 - SHARE_WORTH_TELLING)
        return;
    note_write(out, 2, "  %.0f %% of runs that fill %.0f %% of the memory run out of it (%s)", 100 * share, 100 * use,
               expectation_outcomes_text(&report->setup->layout, &report->setup->setting, runs, sizeof runs));
}

static void write_host_memory(const struct step_report *report, FILE *out)
{
    double host = step_report_host_capacity(report);

    fprintf(out, "host memory per rank: %.1f GiB of ", report->result->memory.host / GIB);
    if (host > 0)
        fprintf(out, "%.1f GiB%s\n", host / GIB, host_fits(report) ? "" : ": too much");
    else
        fputs("an unknown size (host_memory)\n", out);
}

static void write_too_large(const struct step_report *report, const struct invocation *call)
{
    if (fits(report))
        return;
    fprintf(call->out, "%sThis layout does not fit: it needs %.1f GiB more than a GPU has; msim plan finds one that fits.%s\n",
            tint_start(TINT_BAD, call->colour), (report->result->memory.total - report->capacity_bytes) / GIB,
            tint_end(TINT_BAD, call->colour));
}

void step_report_write_misfit(const struct step_report *report, const struct invocation *call)
{
    if (!host_fits(report))
        write_host_memory(report, call->out);
    write_too_large(report, call);
}

static void write_memory(const struct step_report *report, const struct invocation *call)
{
    const struct step_result *r = report->result;
    struct memory_part parts[N_MEMORY_PARTS];
    double capacity = report->capacity_bytes;
    FILE *out = call->out;

    memory_parts(&r->memory, parts);
    fprintf(out, "memory of the fullest stage (%d): %.1f of %.1f GiB\n ", r->memory_stage, r->memory.total / GIB, capacity / GIB);
    for (int i = 0; i < N_MEMORY_PARTS; i++)
        fprintf(out, "%s %s %.2f", i ? "," : "", parts[i].name, parts[i].bytes / GIB);
    fputc('\n', out);
    write_memory_expectation(report, out);
    if (!offload_is_none(&report->setup->layout.offload))
        write_host_memory(report, out);
    write_too_large(report, call);
    fputc('\n', out);
}

/* Wall time goes to stderr: what is written to a file is the same every time. */
static void talk_about_cost(const struct step_report *report, const struct invocation *call)
{
    const struct step_result *r = report->result;
    char events[32], actors[32];

    info(call, 0, "simulated %s rank%s, %s operations in %.3f s (%.3g M/s)", grouped(r->actors, actors, sizeof actors),
         r->actors == 1 ? "" : "s", grouped((int64_t)r->events, events, sizeof events), r->seconds,
         r->seconds > 0 ? (double)r->events / r->seconds / 1e6 : 0);
}

static void write_end(const struct step_report *report, FILE *out)
{
    static const char *const details[] = {"chunk", "layer", "kernel"};
    char actors[32];
    bool stand = report->flow != NULL && report->result->actors < report->setup->experiment.gpus;

    fprintf(out, "simulated: %s rank%s%s, one operation per %s\nassumed:\n",
            grouped(report->result->actors, actors, sizeof actors), report->result->actors == 1 ? "" : "s",
            stand ? "; the other ranks behave the same" : "", details[report->detail]);
    for (int i = 0; i < report->n_assumptions; i++)
        note_write(out, 4, "  - %s", report->assumptions[i]);
}

static void write_text(const struct step_report *report, const struct invocation *call)
{
    step_report_header(report->setup, call->out);
    write_summary(report, call);
    write_breakdown(report, call);
    routing_write_waiting(&report->setup->setting, &report->setup->layout, call->out);
    if (call->verbosity > 0)
        write_stages(report, call);
    write_memory(report, call);
    if (report->profile != NULL)
        step_profile_write(report->profile, call);
    if (report->flow != NULL)
        step_flow_write(report->flow, call);
    if (report->program != NULL)
        step_explain(report->setup, report->program, call);
    write_end(report, call->out);
}

enum status step_report_write(const struct step_report *report, struct invocation *call)
{
    talk_about_cost(report, call);
    if (call->format == FORMAT_JSON)
        return step_report_write_json(report, call);
    if (call->format == FORMAT_CSV)
        step_report_write_csv(report, call);
    else
        write_text(report, call);
    return STATUS_OK;
}
