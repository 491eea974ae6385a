/* A run for programs: JSON, and CSV of its time series and incidents. */
#include <stdlib.h>

#include "cli/output/energy_report.h"
#include "cli/output/result.h"
#include "cli/output/trained.h"
#include "cli/run/run_likely.h"
#include "cli/run/run_report.h"
#include "model/spec/json_text.h"
#include "traces/table/csv.h"

static nanos idle_time(const nanos *use)
{
    return use[USE_DETECTION] + use[USE_WAITING] + use[USE_RESTART] + use[USE_DIAGNOSIS] + use[USE_HUMAN];
}

static json_t *uses_json(const struct run_report *report, const nanos *use, bool exact)
{
    json_t *uses = json_object();
    for (int i = 0; i < report_uses(report); i++)
        json_object_set_new(uses, time_use_name((enum time_use)i),
                            exact ? json_integer(use[i]) : json_real(nanos_to_seconds(use[i])));
    return uses;
}

static void add_verdict(json_t *object, const struct run_report *report, const struct incident *incident)
{
    const struct verdict *verdict = &incident->verdict;
    bool found_by_test = verdict->found_by >= 0 && verdict->found && !verdict->called;
    if (verdict->channel == CHANNEL_AT_ONCE)
        return;
    json_object_set_new(object, "noticed_by", json_string(channel_name(verdict->channel)));
    json_object_set_new(object, "found_by",
                        found_by_test ? json_string(report->policy->tests.items[verdict->found_by].name)
                                      : json_string(verdict->called ? "a person" : "nobody"));
    json_object_set_new(object, "detection_s", json_real(nanos_to_seconds(verdict->detect)));
    json_object_set_new(object, "diagnosis_s", json_real(nanos_to_seconds(verdict->diagnose)));
    json_object_set_new(object, "human_s", json_real(nanos_to_seconds(verdict->human)));
    json_object_set_new(object, "relapse", json_boolean(incident->relapse));
    json_object_set_new(object, "condemned", json_integer(verdict->n_condemned));
}

const char *incident_cause(const struct run_report *report, const struct incident *incident)
{
    return incident->alarm ? "false alarm" : fault_trace_detail(report->trace, incident->fault);
}

const char *incident_host(const struct run_report *report, const struct incident *incident)
{
    return incident->alarm ? "" : fault_trace_host(report->trace, incident->fault->node);
}

static json_t *incident_json(const struct run_report *report, const struct incident *incident)
{
    json_t *object = json_object();
    const struct fault *fault = incident->fault;
    json_object_set_new(object, "time_s", json_real(nanos_to_seconds(incident->time)));
    json_object_set_new(object, "node", incident->alarm ? json_null() : json_integer(fault->node));
    if (*incident_host(report, incident))
        json_object_set_new(object, "host", json_string(incident_host(report, incident)));
    json_object_set_new(object, "kind", json_string(fault_kind_name(fault->kind)));
    json_object_set_new(object, "detail", json_string(incident_cause(report, incident)));
    json_object_set_new(object, "down_s", json_real(nanos_to_seconds(fault->down)));
    if (fault->kind == FAULT_STRAGGLER || fault->kind == FAULT_LINK)
        json_object_set_new(object, "factor", json_real((double)fault->speed / FULL_SPEED));
    if (report->policy)
        add_verdict(object, report, incident);
    json_object_set_new(object, "interrupted", json_boolean(incident->interrupted));
    if (report->options->failover)
        json_object_set_new(object, "borne", json_boolean(incident->borne));
    json_object_set_new(object, "nodes_down", json_integer(incident->n_down));
    json_object_set_new(object, "lost_s", json_real(nanos_to_seconds(incident->lost)));
    json_object_set_new(object, "resume_s",
                        incident->resumed == NEVER ? json_null() : json_real(nanos_to_seconds(incident->resumed)));
    return object;
}

static json_t *incidents_json(const struct run_report *report)
{
    json_t *incidents = json_array();
    for (size_t i = 0; i < report->result->n_incidents; i++)
        json_array_append_new(incidents, incident_json(report, &report->result->incidents[i]));
    return incidents;
}

static double bin_share(const struct run_result *result, size_t i, nanos time)
{
    return (double)time / (double)run_bin_length(result, i);
}

/* While training at full speed. */
static double tokens_per_s(const struct run_report *report)
{
    const struct job *job = &report->experiment->job;
    return (double)job->global_batch * (double)job->seq_len / report->step_time_s;
}

static json_t *series_json(const struct run_report *report)
{
    const struct run_result *result = report->result;
    json_t *series = json_array();
    for (size_t i = 0; i < result->n_series; i++) {
        const nanos *use = result->series[i].use;
        json_t *bin = json_object();
        double goodput = bin_share(result, i, use[USE_TRAINING]);
        json_object_set_new(bin, "start_s", json_real(nanos_to_seconds((nanos)i * result->bin)));
        json_object_set_new(bin, "length_s", json_real(nanos_to_seconds(run_bin_length(result, i))));
        json_object_set_new(bin, "ettr", json_real(bin_share(result, i, use[USE_TRAINING] + use[USE_DEGRADED])));
        json_object_set_new(bin, "goodput", json_real(goodput));
        json_object_set_new(bin, "tokens", json_real(nanos_to_seconds(use[USE_TRAINING]) * tokens_per_s(report)));
        if (report->step_mfu > 0)
            json_object_set_new(bin, "mfu_pct", json_real(100 * goodput * report->step_mfu));
        json_object_set_new(bin, "breakdown", uses_json(report, use, false));
        json_array_append_new(series, bin);
    }
    return series;
}

static void add_policy(json_t *root, const struct run_report *report)
{
    const struct run_options *options = report->options;
    json_t *policy = json_object();
    json_object_set_new(policy, "nodes", json_integer(options->nodes));
    json_object_set_new(policy, "spares", json_integer(options->recovery.spares));
    json_object_set_new(policy, "checkpoint_interval_s", json_real(nanos_to_seconds(options->checkpoint.interval)));
    json_object_set_new(policy, "checkpoint_block_s", json_real(nanos_to_seconds(options->checkpoint.block)));
    json_object_set_new(policy, "detect_s", json_real(nanos_to_seconds(options->recovery.detect)));
    json_object_set_new(policy, "restart_s", json_real(nanos_to_seconds(options->recovery.restart)));
    json_object_set_new(policy, "repair_mean_s", json_real(report->repair_s));
    json_object_set_new(policy, "checkpoint", json_string(checkpoint_kind_name(options->checkpoint.kind)));
    if (options->checkpoint.kind != CHECKPOINT_BLOCKING)
        json_object_set_new(policy, "checkpoint_persist_s", json_real(nanos_to_seconds(options->checkpoint.persist)));
    if (options->failover)
        json_object_set_new(policy, "failover",
                            json_pack("{s:i, s:i, s:f, s:f}", "units", options->failover->units, "replicas_of_a_unit",
                                      options->failover->replicas, "regroup_s", nanos_to_seconds(options->failover->regroup),
                                      "rejoin_s", nanos_to_seconds(options->failover->rejoin)));
    if (report->policy) {
        char *text = robust_policy_to_json(report->policy);
        json_object_set_new(policy, "recovery", json_loads(text, 0, NULL));
        free(text);
    }
    if (report->startup)
        json_object_set_new(policy, "startup",
                            json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "scheduling_s", report->startup->scheduling_s, "image_s",
                                      report->startup->image_s, "process_s", report->startup->process_s, "communicators_s",
                                      report->startup->communicators_s, "loading_s", report->startup->loading_s, "warm_up_s",
                                      report->startup->warm_up_s));
    json_object_set_new(root, "policy", policy);
}

/* Of a budget of tokens; null while it is not trained. */
static void add_end(json_t *root, const struct run_report *report)
{
    const struct run_result *result = report->result;
    double hours = report_gpu_hours(report);
    if (report->options->goal == 0)
        return;
    json_object_set_new(root, "end_s", result->reached ? json_real(nanos_to_seconds(result->horizon)) : json_null());
    json_object_set_new(root, "fault_free_s", json_real(nanos_to_seconds(report->options->goal)));
    const struct run_likely likely = report_likely(report);
    if (report->simulated)
        json_object_set_new(root, "likely", run_likely_json(&likely));
    json_object_set_new(root, "gpu_hours", result->reached ? json_real(hours) : json_null());
    if (report->gpu_price > 0)
        json_object_set_new(root, "cost", result->reached ? json_real(report->gpu_price * hours) : json_null());
}

/* Of the horizon, or what of it the budget took. */
static void add_energy(json_t *root, const struct run_report *report)
{
    const struct power_bound bound = power_bound_published(&report->experiment->cluster, report->experiment->gpus);
    double seconds = nanos_to_seconds(report->result->horizon), gpus = run_paid_gpus(report->experiment, report->options);
    json_object_set_new(root, "energy_at_most",
                        energy_json(&bound, gpus, gpus * seconds / 3600, seconds > 0 ? report_tokens(report) / seconds : 0));
}

static void add_answers(json_t *root, const struct run_report *report)
{
    const struct run_result *result = report->result;
    const nanos *use = result->use;
    json_object_set_new(root, "horizon_s", json_real(nanos_to_seconds(result->horizon)));
    json_object_set_new(root, "ettr", json_real(result->ettr));
    json_object_set_new(root, "goodput", json_real(result->goodput));
    json_object_set_new(root, "mfu_pct",
                        report->step_mfu > 0 ? json_real(100 * result->goodput * report->step_mfu) : json_null());
    json_object_set_new(root, "tokens", json_real(report_tokens(report)));
    if (report_budget_days(report) > 0)
        json_object_set_new(root, "budget_days", json_real(report_budget_days(report)));
    add_end(root, report);
    add_energy(root, report);
    json_object_set_new(root, "failures", json_integer(result->failures));
    json_object_set_new(root, "slowdowns", json_integer(result->slowdowns));
    json_object_set_new(root, "planned", json_integer(result->planned));
    json_object_set_new(root, "interruptions", json_integer(result->interruptions));
    json_object_set_new(root, "checkpoints", json_integer(result->checkpoints));
    const double *away = result->away;
    json_object_set_new(root, "nodes_away",
                        json_pack("{s:f, s:f, s:f}", "in_repair", away[AWAY_OUTAGE], "blocklisted", away[AWAY_LISTED], "evicted",
                                  away[AWAY_CHECKED]));
    if (report->options->failover)
        json_object_set_new(root, "borne", json_integer(result->borne));
    if (report->policy) {
        json_object_set_new(root, "relapses", json_integer(result->relapses));
        json_object_set_new(root, "false_alarms", json_integer(result->alarms));
        json_object_set_new(root, "called", json_integer(result->called));
        json_object_set_new(root, "condemned", json_integer(result->condemned));
        json_object_set_new(root, "blocklisted", json_integer(result->listed));
        json_object_set_new(root, "outside", json_integer(result->outside));
    }
    if (report->gpu_price > 0)
        json_object_set_new(root, "cost_per_million_tokens", json_real(report_token_cost(report)));
    json_object_set_new(root, "useful_s", json_real(nanos_to_seconds(use[USE_TRAINING])));
    json_object_set_new(root, "degraded_s", json_real(nanos_to_seconds(use[USE_DEGRADED])));
    json_object_set_new(root, "lost_s", json_real(nanos_to_seconds(use[USE_LOST])));
    json_object_set_new(root, "checkpoint_s", json_real(nanos_to_seconds(use[USE_CHECKPOINT])));
    json_object_set_new(root, "idle_s", json_real(nanos_to_seconds(idle_time(use))));
    json_object_set_new(root, "breakdown", uses_json(report, use, false));
    json_object_set_new(root, "breakdown_ns", uses_json(report, use, true));
    json_object_set_new(root, "waiting_since_s",
                        result->ended_waiting ? json_real(nanos_to_seconds(result->waiting_since)) : json_null());
}

json_t *run_assumptions_json(const struct run_report *report)
{
    json_t *assumptions = json_array();
    for (int i = 0; i < report->n_assumptions; i++)
        json_array_append_new(assumptions, json_text(report->assumptions[i]));
    return assumptions;
}

static void add_step(json_t *root, const struct run_report *report)
{
    json_object_set_new(root, "step_time_s", json_real(report->step_time_s));
    json_object_set_new(root, "step_mfu_pct", report->step_mfu > 0 ? json_real(100 * report->step_mfu) : json_null());
    json_object_set_new(root, "layout", report->layout ? json_string(report->layout) : json_null());
    const struct setting setting = experiment_setting(report->experiment);
    trained_json(&setting, report->experiment->job.features, root);
    json_object_set_new(root, "memoryless",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "ettr_first_order", report->memoryless.first_order,
                                  "ettr_exponential", report->memoryless.exponential, "best_interval_s",
                                  report->memoryless.interval.best_s, "young_s", report->memoryless.interval.young_s, "daly_s",
                                  report->memoryless.interval.daly_s, "mtbi_s", report->memoryless.between_s));
    json_object_set_new(root, "assumptions", run_assumptions_json(report));
}

enum status run_report_json(struct invocation *call, const struct run_report *report)
{
    char *config = experiment_to_json(report->experiment);
    json_t *root = result_create(call, config);
    free(config);
    const struct faults_request *faults = &report->experiment->faults;
    json_object_set_new(root, "trace", json_text(faults->model[0] ? faults->model : faults->trace));
    add_policy(root, report);
    add_answers(root, report);
    add_step(root, report);
    json_object_set_new(root, "series", series_json(report));
    json_object_set_new(root, "incidents", incidents_json(report));
    return result_write(call, root);
}

void run_report_series_csv(const struct run_report *report, FILE *out)
{
    const struct run_result *result = report->result;
    fputs("start_s,length_s,ettr,goodput,mfu_pct", out);
    for (int i = 0; i < report_uses(report); i++)
        fprintf(out, ",%s_s", time_use_name((enum time_use)i));
    fputc('\n', out);
    for (size_t i = 0; i < result->n_series; i++) {
        const nanos *use = result->series[i].use;
        double goodput = bin_share(result, i, use[USE_TRAINING]);
        csv_write_number(out, true, nanos_to_seconds((nanos)i * result->bin));
        csv_write_number(out, false, nanos_to_seconds(run_bin_length(result, i)));
        csv_write_number(out, false, bin_share(result, i, use[USE_TRAINING] + use[USE_DEGRADED]));
        csv_write_number(out, false, goodput);
        if (report->step_mfu > 0)
            csv_write_number(out, false, 100 * goodput * report->step_mfu);
        else
            csv_write_cell(out, false, "");
        for (int j = 0; j < report_uses(report); j++)
            csv_write_number(out, false, nanos_to_seconds(use[j]));
        fputc('\n', out);
    }
}

void run_report_incidents_csv(const struct run_report *report, FILE *out)
{
    const struct run_result *result = report->result;
    bool named = report->trace->n_hosts > 0;
    fprintf(out, "time_s,node,kind,detail,down_s,interrupted,nodes_down,lost_s,resume_s%s\n", named ? ",host" : "");
    for (size_t i = 0; i < result->n_incidents; i++) {
        const struct incident *incident = &result->incidents[i];
        csv_write_number(out, true, nanos_to_seconds(incident->time));
        if (incident->alarm)
            csv_write_cell(out, false, "");
        else
            csv_write_integer(out, false, incident->fault->node);
        csv_write_cell(out, false, fault_kind_name(incident->fault->kind));
        csv_write_cell(out, false, incident_cause(report, incident));
        csv_write_number(out, false, nanos_to_seconds(incident->fault->down));
        csv_write_integer(out, false, incident->interrupted);
        csv_write_integer(out, false, incident->n_down);
        csv_write_number(out, false, nanos_to_seconds(incident->lost));
        if (incident->resumed == NEVER)
            csv_write_cell(out, false, "");
        else
            csv_write_number(out, false, nanos_to_seconds(incident->resumed));
        if (named)
            csv_write_cell(out, false, incident_host(report, incident));
        fputc('\n', out);
    }
}
