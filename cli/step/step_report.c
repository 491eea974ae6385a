/* A step for people. */
#include "cli/step/step_report.h"

#include <inttypes.h>
#include <string.h>

#include "cli/job/plan_rates.h"
#include "cli/options/next_command.h"
#include "cli/output/expectation.h"
#include "cli/output/layout_json.h"
#include "cli/output/notes.h"
#include "cli/output/table.h"
#include "cli/step/step_explain.h"
#include "model/base/units.h"

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
static void write_expectation(const struct step_record *record, FILE *out)
{
    const struct setting *setting = &record->setup->setting;
    const struct layout *layout = &record->setup->layout;
    const struct track_record *runs_alike = track_record_of(run_kind_of(layout, setting->model));
    char low[32], high[32], runs[EXPECTATION_TEXT];

    note_write(out, 9, "likely   %s to %s: %s",
               quantity_format(record->result->step_time_s * runs_alike->low, DIM_TIME, low, sizeof low),
               quantity_format(record->result->step_time_s * runs_alike->high, DIM_TIME, high, sizeof high),
               expectation_runs_text(layout, setting, runs, sizeof runs));
}

/* Of a budget: at most so much energy, drawn at most at such a power. */
static void write_energy(const struct step_record *record, FILE *out)
{
    const struct power_bound bound = power_bound_published(&record->setup->experiment.cluster, record->setup->experiment.gpus);
    double watts = bound.gpu_w * record->setup->experiment.gpus;
    char energy[48], power[32], token[32], counted[BOUND_TEXT];

    if (bound.count != POWER_UNKNOWN)
        note_write(out, 9, "energy   at most %s, %s, %s J per token: upper bound, %s",
                   energy_text(power_bound_energy(&bound, step_gpu_hours(record)), energy, sizeof energy),
                   quantity_format(watts, DIM_POWER, power, sizeof power),
                   three_digits(watts / record->result->tokens_per_s, token, sizeof token),
                   power_bound_text(&bound, counted, sizeof counted));
}

void step_report_write_budget(const struct step_record *record, FILE *out)
{
    char hours[32], tokens[32], days[48], cost[48] = "", money[32];
    double said = step_days(record);

    if (said <= 0)
        return;
    if (record->gpu_price > 0)
        snprintf(cost, sizeof cost, ", cost %s",
                 grouped((int64_t)(record->gpu_price * step_gpu_hours(record) + 0.5), money, sizeof money));
    fprintf(out, "budget   %s tokens take %s, %s GPU-hours%s\n",
            quantity_format(record->setup->experiment.job.tokens, DIM_COUNT, tokens, sizeof tokens),
            days_text(said, days, sizeof days), gpu_hours_text(step_gpu_hours(record), hours, sizeof hours), cost);
    write_energy(record, out);
}

static void write_summary(const struct step_record *record, const struct invocation *call)
{
    const struct step_result *r = record->result;
    char time[32], rate[32];
    FILE *out = call->out;

    fprintf(out, "step     %s%s%s   %s tokens/s\n", tint_start(TINT_STRONG, call->colour),
            quantity_format(r->step_time_s, DIM_TIME, time, sizeof time), tint_end(TINT_STRONG, call->colour),
            quantity_format(r->tokens_per_s, DIM_COUNT, rate, sizeof rate));
    write_expectation(record, out);
    fprintf(out, "MFU      %s%.1f %%%s (attention counted in full), %.1f %% (causal half)", tint_start(TINT_STRONG, call->colour),
            r->mfu * 100, tint_end(TINT_STRONG, call->colour), r->mfu_causal * 100);
    if (job_masks_documents(&record->setup->experiment.job))
        fprintf(out, ", %.1f %% (within documents)", r->mfu_masked * 100);
    fputc('\n', out);
    fprintf(out, "HFU      %.1f %%, %.1f %%\n", r->hfu * 100, r->hfu_causal * 100);
    const struct step_rates rates = step_rates_of(&record->setup->layout, &record->setup->setting, r->step_time_s);
    fputs("rates    ", out);
    plan_rates_write(&rates, out);
    fputc('\n', out);
    step_report_write_budget(record, out);
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

static void write_breakdown(const struct step_record *record, const struct invocation *call)
{
    const struct step_result *r = record->result;
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

static void write_stages(const struct step_record *record, const struct invocation *call)
{
    struct table table = {0};

    for (int i = 0; i < record->stages->n_stages; i++) {
        const struct stage stage = step_stage(record, i);
        if (i == 0)
            rows_columns(stage_rows, &stage, &table);
        rows_cells(stage_rows, &stage, &table);
    }
    table_write_text(&table, call);
    table_free(&table);
    fputc('\n', call->out);
}

/* Where the prediction alone does not decide whether the layout runs. */
static void write_memory_expectation(const struct step_record *record, FILE *out)
{
    double use = record->result->memory.total / record->capacity_bytes, share = memory_record_share(use);
    char runs[EXPECTATION_TEXT];

    if (share < SHARE_WORTH_TELLING || share > 1 - SHARE_WORTH_TELLING)
        return;
    note_write(out, 2, "  %.0f %% of runs that fill %.0f %% of the memory run out of it (%s)", 100 * share, 100 * use,
               expectation_outcomes_text(&record->setup->layout, &record->setup->setting, runs, sizeof runs));
}

static void write_host_memory(const struct step_record *record, FILE *out)
{
    double host = step_host_capacity(record);

    fprintf(out, "host memory per rank: %.1f GiB of ", record->result->memory.host / GIB);
    if (host > 0)
        fprintf(out, "%.1f GiB%s\n", host / GIB, step_fits_host(record) ? "" : ": too much");
    else
        fputs("an unknown size (host_memory)\n", out);
}

void step_report_write_misfit(const struct step_record *record, const char *name, const struct invocation *call)
{
    char text[MISFIT_TEXT];
    if (step_fits(record))
        return;
    fputs(tint_start(TINT_BAD, call->colour), call->out);
    note_write(call->out, 2, "warning: %s%s%s", name, *name ? ": " : "", step_misfit_text(record, text, sizeof text));
    fprintf(call->out, "%s\n", tint_end(TINT_BAD, call->colour));
}

static void write_memory(const struct step_record *record, const struct invocation *call)
{
    const struct step_result *r = record->result;
    struct memory_part parts[N_MEMORY_PARTS];
    double capacity = record->capacity_bytes;
    FILE *out = call->out;

    memory_parts(&r->memory, parts);
    fprintf(out, "memory of the fullest stage (%d): %.1f of %.1f GiB\n ", r->memory_stage, r->memory.total / GIB, capacity / GIB);
    for (int i = 0; i < N_MEMORY_PARTS; i++)
        fprintf(out, "%s %s %.2f", i ? "," : "", parts[i].name, parts[i].bytes / GIB);
    fputc('\n', out);
    write_memory_expectation(record, out);
    if (!offload_is_none(&record->setup->layout.offload))
        write_host_memory(record, out);
    fputc('\n', out);
}

/* Wall time goes to stderr: what is written to a file is the same every time. */
static void talk_about_cost(const struct step_record *record, const struct invocation *call)
{
    const struct step_result *r = record->result;
    char events[32], actors[32];

    info(call, 0, "simulated %s rank%s, %s operations in %.3f s (%.3g M/s)", grouped(r->actors, actors, sizeof actors),
         r->actors == 1 ? "" : "s", grouped((int64_t)r->events, events, sizeof events), r->seconds,
         r->seconds > 0 ? (double)r->events / r->seconds / 1e6 : 0);
}

static void write_end(const struct step_record *record, FILE *out)
{
    static const char *const details[] = {"chunk", "layer", "kernel"};
    char actors[32];
    bool stand = record->flow != NULL && record->result->actors < record->setup->experiment.gpus;

    fprintf(out, "simulated: %s rank%s%s, one operation per %s\nassumed:\n",
            grouped(record->result->actors, actors, sizeof actors), record->result->actors == 1 ? "" : "s",
            stand ? "; the other ranks behave the same" : "", details[record->detail]);
    for (int i = 0; i < record->n_assumptions; i++)
        note_write(out, 4, "  - %s", record->assumptions[i]);
}

void step_report_write_plan(const struct invocation *call)
{
    static const char *const without[] = {"layout", NULL};
    next_command_write(call, "plan", without, call->n_operands > 0 ? "--layout auto" : "");
}

/* A layout that fits, a figure of the file that was written, or where this step spends its time. */
static void write_next(const struct step_record *record, const struct invocation *call)
{
    static const char *const once[] = {"explain", "trace-ranks", NULL};
    static const char *const files[] = {"timeline", "link-map"};
    const char *file = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files && !file; i++)
        if (option_given(call, files[i]) && strcmp(option_text(call, files[i]), "-") != 0)
            file = option_text(call, files[i]);
    if (!step_fits(record))
        step_report_write_plan(call);
    else if (file)
        next_plot_write(call, file);
    else if (record->flow)
        next_command_write(call, "step", once, "--link-map links.csv");
    else
        next_command_write(call, "step", once, record->program ? "--timeline timeline.csv" : "--explain");
}

static void write_text(const struct step_record *record, const struct invocation *call)
{
    step_report_write_misfit(record, "", call);
    step_report_header(record->setup, call->out);
    write_summary(record, call);
    write_breakdown(record, call);
    routing_write_waiting(&record->setup->setting, &record->setup->layout, call->out);
    if (call->verbosity > 0)
        write_stages(record, call);
    write_memory(record, call);
    if (record->profile != NULL)
        step_profile_write(record->profile, call);
    if (record->flow != NULL)
        step_flow_write(record->flow, call);
    if (record->program != NULL)
        step_explain(record->setup, record->program, call);
    write_end(record, call->out);
    write_next(record, call);
}

enum status step_report_write(const struct step_record *record, struct invocation *call)
{
    enum status fit = step_check_fit(record, NULL, call), status = STATUS_OK;
    talk_about_cost(record, call);
    if (call->format == FORMAT_JSON)
        status = step_record_write_json(record, call);
    else if (call->format == FORMAT_CSV)
        step_record_write_csv(record, call->out);
    else
        write_text(record, call);
    return status == STATUS_OK ? fit : status;
}
