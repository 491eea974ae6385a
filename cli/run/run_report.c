#include "cli/run/run_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_rates.h"
#include "cli/output/notes.h"
#include "cli/output/table.h"
#include "cli/run/run_interval.h"
#include "model/base/memory.h"

/* From the fault to the moment training went on. */
static nanos stopped_time(const struct run_result *result, const struct incident *incident)
{
    nanos until = incident->resumed < result->horizon ? incident->resumed : result->horizon;
    return until - incident->time;
}

/* --- for people --- */

static const char *fraction_block(double fraction)
{
    static const char *const blocks[] = {".", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int level = (int)(fraction * 8 + 0.5);
    return blocks[level < 0 ? 0 : level > 8 ? 8 : level];
}

/* Training share of the bins [first, end). */
static double stretch_goodput(const struct run_result *result, size_t first, size_t end)
{
    nanos training = 0, length = 0;
    for (size_t i = first; i < end; i++) {
        training += result->series[i].use[USE_TRAINING];
        length += run_bin_length(result, i);
    }
    return length > 0 ? (double)training / (double)length : 0;
}

/* A bar of `width` characters, one per stretch of the series, 0 to 100 % of goodput. Returns buffer. */
static char *goodput_bars(const struct run_result *result, int width, char *buffer, size_t size)
{
    size_t columns = result->n_series < (size_t)width ? result->n_series : (size_t)width;
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < columns && used + 4 < size; i++) {
        size_t first = i * result->n_series / columns, end = (i + 1) * result->n_series / columns;
        used += (size_t)snprintf(buffer + used, size - used, "%s", fraction_block(stretch_goodput(result, first, end)));
    }
    return buffer;
}

static char *duration_text(nanos time, char *buffer, size_t size)
{
    return quantity_format(nanos_to_seconds(time), DIM_TIME, buffer, size);
}

static void write_head(const struct invocation *call, const struct run_report *report)
{
    const struct experiment *e = report->experiment;
    char step[32], interval[32], block[32], restart[32], detect[32], horizon[32], gpus[32], nodes[32];
    fprintf(call->out, "%s on %s x %s (%s node%s of %s), %s of %s\n", e->model.name, grouped(e->gpus, gpus, sizeof gpus),
            e->cluster.gpu.name, grouped(report->options->nodes, nodes, sizeof nodes), plural(report->options->nodes),
            e->cluster.name, horizon_text(report->result->horizon, horizon, sizeof horizon),
            e->faults.model[0] ? e->faults.model : e->faults.trace);
    if (report->layout)
        fprintf(call->out, "layout %s\n", report->layout);
    const struct setting setting = experiment_setting(e);
    trained_write(&setting, e->job.features, call->out);
    routing_write(&setting, call->out);
    quantity_format(report->step_time_s, DIM_TIME, step, sizeof step);
    fprintf(call->out, "step %s, checkpoint every %s of work blocking %s, detection %s, restart %s, %d spare node%s\n\n", step,
            duration_text(report->options->checkpoint.interval, interval, sizeof interval),
            duration_text(report->options->checkpoint.block, block, sizeof block),
            report->policy ? "by the policy" : duration_text(report->options->recovery.detect, detect, sizeof detect),
            duration_text(report->options->recovery.restart, restart, sizeof restart), report->options->recovery.spares,
            plural(report->options->recovery.spares));
}

static void write_failover(const struct invocation *call, const struct run_report *report)
{
    const struct run_failover *f = report->options->failover;
    char regroup[32], rejoin[32];
    if (f)
        fprintf(call->out, "failover: %d units of %d replica%s; the others stop %s to regroup; one rejoins after %s\n", f->units,
                f->replicas, plural(f->replicas), duration_text(f->regroup, regroup, sizeof regroup),
                duration_text(f->rejoin, rejoin, sizeof rejoin));
}

/* "scheduling 60.0 s, image 10.0 s" */
static void write_times(const char *const *names, const double *seconds, int n, FILE *out)
{
    char time[32];
    for (int i = 0; i < n; i++)
        fprintf(out, "%s %s %s", i ? "," : "", names[i], quantity_format(seconds[i], DIM_TIME, time, sizeof time));
    fputc('\n', out);
}

static void write_costs(const struct invocation *call, const struct run_report *report)
{
    const struct startup *up = report->startup;
    const struct checkpoint_cost *cost = report->cost;
    char bytes[32];
    if (cost) {
        static const char *const names[] = {"snapshot", "storage", "neighbour"};
        const double seconds[] = {cost->snapshot_s, cost->storage_s, cost->neighbour_s};
        fprintf(call->out, "checkpoint %s: %s%s,", checkpoint_kind_name(report->options->checkpoint.kind),
                quantity_format(cost->total_bytes, DIM_BYTES, bytes, sizeof bytes),
                cost->base_bytes > 0 ? " (adapters only)" : "");
        write_times(names, seconds, 3, call->out);
    }
    if (up) {
        static const char *const names[] = {"scheduling", "image", "process", "communicators", "loading", "warm-up"};
        const double seconds[] = {up->scheduling_s,    up->image_s,   up->process_s,
                                  up->communicators_s, up->loading_s, up->warm_up_s};
        fprintf(call->out, "policy %s; restart:", report->policy->name);
        write_times(names, seconds, 6, call->out);
    }
    write_failover(call, report);
    if (cost || up || report->options->failover)
        fputc('\n', call->out);
}

/* A count that is worth a line only where it is not 0. */
static void count_line(struct table *table, const struct run_report *report, const char *key, int64_t count)
{
    if (count > 0)
        rows_line(run_rows, key, report, table);
}

static void write_robust_answers(struct table *table, const struct run_report *report)
{
    const struct run_result *result = report->result;
    if (!report->policy)
        return;
    int64_t noticed = 0; /* also while the job was stopped already */
    for (int i = 0; i < N_CHANNELS; i++)
        noticed += result->by_channel[i];
    double share = noticed > 0 ? 1 - (double)result->called / (double)noticed : 1;
    table_value_row(table, "automatic", "share of faults and false alarms handled without a person", "%.1f %%", 100 * share);
    count_line(table, report, "false_alarms", result->alarms);
    count_line(table, report, "relapses", result->relapses);
    count_line(table, report, "condemned", result->condemned);
    count_line(table, report, "blocklisted", result->listed);
    for (int i = 0; i < N_CHANNELS; i++)
        if (result->by_channel[i] > 0)
            table_value_row(table,
                            i == CHANNEL_HEARTBEAT ? "by heartbeat"
                            : i == CHANNEL_LOG     ? "by log"
                            : i == CHANNEL_TRAFFIC ? "by traffic"
                            : i == CHANNEL_TIMEOUT ? "by timeout"
                                                   : "by numbers",
                            "faults detected this way", "%" PRId64, result->by_channel[i]);
}

/* When the training budget is trained; at the pace of the horizon, failures included, when it is not. */
static void write_budget(struct table *table, const struct run_report *report)
{
    double days = report_budget_days(report), hours = report_gpu_hours(report);
    char name[48], tokens[32], number[48];
    if (days <= 0)
        return;
    snprintf(name, sizeof name, "%s tokens", quantity_format(report->experiment->job.tokens, DIM_COUNT, tokens, sizeof tokens));
    if (!report->result->reached) {
        table_value_row(table, name, "time for the whole budget at this pace", "%s", days_text(days, number, sizeof number));
        return;
    }
    table_value_row(table, name, "time until they are trained and the last checkpoint is written", "%s",
                    days_text(days, number, sizeof number));
    table_value_row(table, "without failures", "the same without failures and checkpoints", "%s",
                    days_text(nanos_to_seconds(report->options->goal) / 86400, number, sizeof number));
    table_value_row(table, "GPU-hours", "until then, spares included", "%s", grouped(llround(hours), number, sizeof number));
    if (report->gpu_price > 0)
        table_value_row(table, "total cost", "cost of these GPU-hours", "%s",
                        grouped(llround(report->gpu_price * hours), number, sizeof number));
}

/* At board power, or nodes' at full load, all the time: idle, waiting and down, too. */
static void write_energy(struct table *table, const struct run_report *report)
{
    const struct power_bound bound = power_bound_published(&report->experiment->cluster, report->experiment->gpus);
    double watts = bound.gpu_w * run_paid_gpus(report->experiment, report->options), tokens = report_tokens(report);
    char text[BOUND_TEXT], meaning[BOUND_TEXT + 32], power[32];
    if (bound.count == POWER_UNKNOWN)
        return;
    snprintf(meaning, sizeof meaning, "at most, spares included: %s", power_bound_text(&bound, text, sizeof text));
    table_value_row(table, "power", meaning, "%s", quantity_format(watts, DIM_POWER, power, sizeof power));
    table_value_row(table, "energy", "at that power all the time, also while waiting or down: an upper bound", "%s",
                    energy_text(report_energy(report), text, sizeof text));
    if (tokens > 0)
        table_value_row(table, "energy a token", "of those trained, at most", "%s J",
                        three_digits(report_energy(report) / tokens, power, sizeof power));
}

/* How often training is interrupted, and how often checkpoints are best taken. */
static void write_intervals(struct table *table, const struct run_report *report)
{
    const struct run_closed_form *form = &report->memoryless;
    char between[32], meaning[96];
    if (form->nothing_failed) {
        snprintf(meaning, sizeof meaning, "nothing failed; above %s at 95 %% confidence, if failures are memoryless",
                 quantity_format(nanos_to_seconds(report->result->horizon) / -log(0.05), DIM_TIME, between, sizeof between));
        table_value_row(table, "MTBF", meaning, "unknown");
    }
    if (form->between_s > 0)
        table_value_row(table, "MTBF", "M: mean time between interruptions", "%s",
                        quantity_format(form->between_s, DIM_TIME, between, sizeof between));
    if (form->interval.young_s > 0)
        table_value_row(table, "Young's interval", "sqrt(2 M x block): best to first order", "%s",
                        quantity_format(form->interval.young_s, DIM_TIME, between, sizeof between));
    if (form->interval.young_s > 0)
        table_value_row(table, "Daly's interval", "the same to a higher order", "%s",
                        quantity_format(form->interval.daly_s, DIM_TIME, between, sizeof between));
    if (checkpoint_lag(&report->options->checkpoint) > 0 && form->interval.best_s > 0)
        table_value_row(table, "best interval", "Daly's, but at least the time until a checkpoint is safe", "%s",
                        quantity_format(form->interval.best_s, DIM_TIME, between, sizeof between));
}

/* What spares have to stand in for. */
static void write_away(struct table *table, const struct run_report *report)
{
    const double *away = report->result->away;
    char meaning[128] = "on average";
    if (report->policy)
        snprintf(meaning, sizeof meaning, "on average: %.2f in repair, %.2f blocklisted, %.2f evicted though healthy or slow",
                 away[AWAY_OUTAGE], away[AWAY_LISTED], away[AWAY_CHECKED]);
    table_value_row(table, "unavailable nodes", meaning, "%.2f", away[AWAY_OUTAGE] + away[AWAY_LISTED] + away[AWAY_CHECKED]);
}

static void write_answers(struct invocation *call, const struct run_report *report)
{
    const struct run_result *result = report->result;
    struct table table = {0};
    table_column(&table, "result", NULL, ALIGN_LEFT);
    table_column(&table, "value", NULL, ALIGN_RIGHT);
    table_column(&table, "meaning", NULL, ALIGN_LEFT);
    rows_line(run_rows, "ettr", report, &table);
    rows_line(run_rows, "goodput", report, &table);
    if (report->step_mfu > 0)
        table_value_row(&table, "MFU",
                        job_masks_documents(&report->experiment->job)
                            ? "delivered; attention counted in full, also what masks between documents leave out"
                            : "delivered; attention counted in full",
                        "%.2f %%", 100 * result->goodput * report->step_mfu);
    if (report->step_mfu > 0)
        table_value_row(&table, "MFU of a step", "while nothing fails", "%.2f %%", 100 * report->step_mfu);
    table_value_row(&table, "tokens", "trained", report_tokens(report) < 1e13 ? "%.4g B" : "%.0f B", report_tokens(report) / 1e9);
    write_budget(&table, report);
    write_energy(&table, report);
    rows_line(run_rows, "failures", report, &table);
    table_value_row(&table, "interruptions",
                    report->policy        ? "failures, relapses and false alarms that found the job training"
                    : result->planned > 0 ? "failures and announced outages that found the job training"
                                          : "failures that found the job training",
                    "%" PRId64, result->interruptions);
    write_away(&table, report);
    rows_line(run_rows, "borne", report, &table);
    count_line(&table, report, "planned", result->planned);
    count_line(&table, report, "slowdowns", result->slowdowns);
    rows_line(run_rows, "checkpoints", report, &table);
    if (!report->memoryless.nothing_failed)
        rows_line(memoryless_rows, "ettr_exponential", &report->memoryless, &table);
    if (!report->memoryless.nothing_failed &&
        report->memoryless.first_order > 0) /* it is good while failures are rare, and says nothing at all where they are not */
        rows_line(memoryless_rows, "ettr_first_order", &report->memoryless, &table);
    write_intervals(&table, report);
    write_robust_answers(&table, report);
    if (report_token_cost(report) > 0)
        rows_line(run_rows, "cost_per_million_tokens", report, &table);
    table_write(&table, call);
    table_free(&table);
}

static void write_uses(struct invocation *call, const struct run_report *report)
{
    const struct run_result *result = report->result;
    struct table table = {0};
    table_column(&table, "where the time went", NULL, ALIGN_LEFT);
    table_column(&table, "time", "h", ALIGN_RIGHT);
    table_column(&table, "share", "%", ALIGN_RIGHT);
    table_column(&table, "", NULL, ALIGN_LEFT);
    for (int i = 0; i < report_uses(report); i++) {
        table_cell(&table, "%s", time_use_name((enum time_use)i));
        table_cell(&table, "%.2f", nanos_to_seconds(result->use[i]) / 3600);
        table_cell(&table, "%.3f", 100.0 * (double)result->use[i] / (double)result->horizon);
        table_tint(&table, TINT_DIM);
        table_cell(&table, "%s", time_use_meaning((enum time_use)i));
    }
    fputc('\n', call->out);
    table_write(&table, call);
    table_free(&table);
}

static const char *bin_name(nanos width)
{
    const nanos hour = 3600 * NANOS_PER_SECOND;
    return width == 24 * hour ? "days" : width == hour ? "hours" : "bins";
}

static void write_series(const struct invocation *call, const struct run_report *report)
{
    enum { WIDTH = 78 };
    const struct run_result *result = report->result;
    char bars[4 * WIDTH + 8], at[32];
    if (result->n_series < 2)
        return;
    double low = 1;
    size_t worst = 0;
    for (size_t i = 0; i < result->n_series; i++)
        if (stretch_goodput(result, i, i + 1) < low) {
            low = stretch_goodput(result, i, i + 1);
            worst = i;
        }
    fprintf(call->out, "\ngoodput over time (full height 100 %%; %zu %s, worst %.1f %% at %s)\n%s\n", result->n_series,
            bin_name(result->bin), 100 * low, horizon_text((nanos)worst * result->bin, at, sizeof at),
            goodput_bars(result, WIDTH, bars, sizeof bars));
}

struct costly {
    nanos cost;
    size_t incident;
};

static int compare_costs(const void *left, const void *right)
{
    const struct costly *a = left, *b = right;
    if (a->cost != b->cost)
        return a->cost > b->cost ? -1 : 1;
    return (a->incident > b->incident) - (a->incident < b->incident);
}

/* Interruptions by what they cost: work undone and time stopped. */
static struct costly *worst_incidents(const struct run_result *result, size_t *n)
{
    struct costly *costs = memory_new(result->n_incidents, sizeof *costs);
    *n = 0;
    for (size_t i = 0; i < result->n_incidents; i++)
        if (result->incidents[i].interrupted)
            costs[(*n)++] =
                (struct costly){.cost = result->incidents[i].lost + stopped_time(result, &result->incidents[i]), .incident = i};
    if (*n > 1)
        qsort(costs, *n, sizeof *costs, compare_costs);
    return costs;
}

static void write_worst(struct invocation *call, const struct run_report *report)
{
    enum { SHOWN = 5 };
    size_t n;
    bool named = report->trace->n_hosts > 0;
    struct costly *costs = worst_incidents(report->result, &n);
    struct table table = {0};
    table_column(&table, "worst interruption", "d", ALIGN_RIGHT);
    table_column(&table, "node", NULL, ALIGN_RIGHT);
    if (named)
        table_column(&table, "host", NULL, ALIGN_LEFT);
    table_column(&table, "lost", "h", ALIGN_RIGHT);
    table_column(&table, "stopped", "h", ALIGN_RIGHT);
    table_column(&table, "nodes down", NULL, ALIGN_RIGHT);
    table_column(&table, "cause", NULL, ALIGN_LEFT);
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const struct incident *incident = &report->result->incidents[costs[i].incident];
        table_cell(&table, "%.3f", nanos_to_seconds(incident->time) / 86400);
        if (incident->alarm)
            table_cell(&table, "-");
        else
            table_cell(&table, "%" PRId32, incident->fault->node);
        if (named)
            table_cell(&table, "%s", incident_host(report, incident));
        table_cell(&table, "%.3f", nanos_to_seconds(incident->lost) / 3600);
        table_cell(&table, "%.3f", nanos_to_seconds(stopped_time(report->result, incident)) / 3600);
        table_cell(&table, "%" PRId32, incident->n_down);
        table_cell(&table, "%s", incident_cause(report, incident));
    }
    if (n > 0) {
        fputc('\n', call->out);
        table_write(&table, call);
    }
    table_free(&table);
    free(costs);
}

static void write_waiting(const struct invocation *call, const struct run_result *result)
{
    fprintf(call->out, "\nat the horizon the job has been waiting for nodes since day %.3f\n",
            nanos_to_seconds(result->waiting_since) / 86400);
    if (result->next_repair == NEVER)
        fputs("the run never ends: no spares are left and no repair is under way\n", call->out);
    else if (result->next_repair >= 2 * result->horizon)
        fprintf(call->out, "the run does not end in reasonable time: the next node returns on day %.0f\n",
                nanos_to_seconds(result->next_repair) / 86400);
}

/* The step is the analytic network's, which charges each kind of exchange by itself for such a fabric. */
static void write_fabric(const struct invocation *call, const struct run_report *report)
{
    char narrow[OVERSUBSCRIBED_TEXT];
    if (report->simulated && oversubscribed_text(report->simulated, &report->experiment->cluster, narrow, sizeof narrow) > 0)
        note_write(call->out, 2, "\nnetwork of the step: %s", narrow);
}

static void write_text(struct invocation *call, const struct run_report *report)
{
    write_head(call, report);
    write_costs(call, report);
    write_answers(call, report);
    if (report->options->goal > 0) {
        const struct run_interval interval = report_interval(report);
        run_interval_write(&interval, call->out);
    }
    write_uses(call, report);
    write_series(call, report);
    write_worst(call, report);
    if (report->result->ended_waiting)
        write_waiting(call, report->result);
    write_fabric(call, report);
    run_assumptions_write(report, call->out);
}

enum status run_report_write(struct invocation *call, const struct run_report *report)
{
    if (call->format == FORMAT_JSON)
        return run_report_json(call, report);
    if (call->format == FORMAT_CSV)
        run_report_series_csv(report, call->out);
    else
        write_text(call, report);
    return STATUS_OK;
}
