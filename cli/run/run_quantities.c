/* What both reports of a run ask: tokens, days, GPU-hours, energy, cost, and what was assumed. */
#include "cli/output/notes.h"
#include "cli/run/run_report.h"
#include "model/base/units.h"
#include "model/spec/json_text.h"

double report_tokens(const struct run_report *report)
{
    const struct job *job = &report->experiment->job;
    double steps = nanos_to_seconds(report->result->use[USE_TRAINING]) / report->step_time_s;
    return steps * (double)job->global_batch * (double)job->seq_len;
}

double report_budget_days(const struct run_report *report)
{
    if (report->result->reached)
        return nanos_to_seconds(report->result->horizon) / 86400;
    double tokens = report_tokens(report);
    return tokens > 0 ? report->experiment->job.tokens / tokens * nanos_to_seconds(report->result->horizon) / 86400 : 0;
}

double run_paid_gpus(const struct experiment *experiment, const struct run_options *options)
{
    return experiment->gpus + (double)options->recovery.spares * experiment->cluster.gpus_per_node;
}

double report_paid_hours(const struct run_report *report)
{
    return run_paid_gpus(report->experiment, report->options) * nanos_to_seconds(report->result->horizon) / 3600;
}

double report_energy(const struct run_report *report)
{
    const struct power_bound bound = power_bound_published(&report->experiment->cluster, report->experiment->gpus);
    return power_bound_energy(&bound, report_paid_hours(report));
}

double report_gpu_hours(const struct run_report *report)
{
    return report->result->reached ? report_paid_hours(report) : 0;
}

double report_token_cost(const struct run_report *report)
{
    double tokens = report_tokens(report);
    return tokens > 0 ? report->gpu_price * report_paid_hours(report) / tokens * 1e6 : 0;
}

int report_uses(const struct run_report *report)
{
    return report->policy ? N_TIME_USES : N_PLAIN_USES;
}

const char *incident_cause(const struct run_report *report, const struct incident *incident)
{
    return incident->alarm ? "false alarm" : fault_trace_detail(report->trace, incident->fault);
}

const char *incident_host(const struct run_report *report, const struct incident *incident)
{
    return incident->alarm ? "" : fault_trace_host(report->trace, incident->fault->node);
}

char *horizon_text(nanos horizon, char *buffer, size_t size)
{
    double days = nanos_to_seconds(horizon) / 86400;
    if (days < 1)
        return quantity_format(nanos_to_seconds(horizon), DIM_TIME, buffer, size);
    snprintf(buffer, size, "%.6g d", days);
    return buffer;
}

void run_assume(struct run_report *report, const char *text)
{
    if (report->n_assumptions < MAX_ASSUMPTIONS)
        report->assumptions[report->n_assumptions++] = text;
}

void run_assumptions_write(const struct run_report *report, FILE *out)
{
    if (report->n_assumptions > 0)
        fputs("\nassumed:\n", out);
    for (int i = 0; i < report->n_assumptions; i++)
        note_write(out, 4, "  - %s", report->assumptions[i]);
}

json_t *run_assumptions_json(const struct run_report *report)
{
    json_t *assumptions = json_array();
    for (int i = 0; i < report->n_assumptions; i++)
        json_array_append_new(assumptions, json_text(report->assumptions[i]));
    return assumptions;
}
