#include "cli/run/run_interval.h"

#include <math.h>

#include "cli/output/expectation.h"
#include "cli/output/notes.h"
#include "cli/output/table.h"

#define DAY_S 86400.0

struct run_interval report_interval(const struct run_report *report)
{
    return (struct run_interval){.report = report,
                                 .end_s = report->result->reached ? nanos_to_seconds(report->result->horizon) : 0,
                                 .paid_gpus = run_paid_gpus(report->experiment, report->options),
                                 .gpu_price = report->gpu_price};
}

static const struct track_record *record_of(const struct run_interval *interval)
{
    const struct run_report *report = interval->report;
    return report->simulated ? track_record_of(run_kind_of(report->simulated, &report->experiment->model)) : NULL;
}

static bool ends(const struct run_interval *interval)
{
    return interval->end_s > 0 && isfinite(interval->end_s);
}

static double hours(const struct run_interval *interval, double factor)
{
    return factor * interval->end_s / 3600 * interval->paid_gpus;
}

/* "244,120 to 292,400" */
static void write_range(double low, double high, FILE *out)
{
    char texts[2][32];
    fprintf(out, "%s to %s", grouped(llround(low), texts[0], sizeof texts[0]), grouped(llround(high), texts[1], sizeof texts[1]));
}

void run_interval_write(const struct run_interval *interval, FILE *out)
{
    const struct track_record *record = record_of(interval);
    if (!record || !ends(interval))
        return;
    const struct setting setting = experiment_setting(interval->report->experiment);
    char runs[EXPECTATION_TEXT];
    const char *form = interval->end_s < 10 * DAY_S ? "\nlikely: %.3g to %.3g days, " : "\nlikely: %.1f to %.1f days, ";
    fprintf(out, form, record->low * interval->end_s / DAY_S, record->high * interval->end_s / DAY_S);
    write_range(hours(interval, record->low), hours(interval, record->high), out);
    fputs(" GPU-hours", out);
    if (interval->gpu_price > 0) {
        fputs(", cost ", out);
        write_range(interval->gpu_price * hours(interval, record->low), interval->gpu_price * hours(interval, record->high), out);
    }
    fputc('\n', out);
    note_write(out, 2, "  (%.2f to %.2f times the predicted step: %s)", record->low, record->high,
               expectation_runs_text(interval->report->simulated, &setting, runs, sizeof runs));
}

json_t *run_interval_json(const struct run_interval *interval)
{
    const struct track_record *record = record_of(interval);
    if (!record)
        return NULL;
    const struct setting setting = experiment_setting(interval->report->experiment);
    json_t *json = expectation_json(interval->report->simulated, &setting, interval->report->step_time_s);
    const double factors[] = {record->low, record->high};
    static const char *const keys[][3] = {{"end_low_s", "gpu_hours_low", "cost_low"},
                                          {"end_high_s", "gpu_hours_high", "cost_high"}};
    for (int i = 0; i < 2 && ends(interval); i++) {
        json_object_set_new(json, keys[i][0], json_real(factors[i] * interval->end_s));
        json_object_set_new(json, keys[i][1], json_real(hours(interval, factors[i])));
        if (interval->gpu_price > 0)
            json_object_set_new(json, keys[i][2], json_real(interval->gpu_price * hours(interval, factors[i])));
    }
    return json;
}
