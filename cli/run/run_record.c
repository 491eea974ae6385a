/* A run for programs: JSON, and CSV of its time series and incidents. */
#include <stdlib.h>

#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/output/result_row.h"
#include "cli/run/run_interval.h"
#include "cli/run/run_report.h"
#include "model/spec/json_text.h"
#include "traces/table/csv.h"

static struct value as_time(nanos time)
{
    return as_real(nanos_to_seconds(time));
}

static json_t *uses_json(const struct run_report *report, const nanos *use, bool exact)
{
    json_t *uses = json_object();
    for (int i = 0; i < report_uses(report); i++)
        json_object_set_new(uses, time_use_name((enum time_use)i),
                            exact ? json_integer(use[i]) : json_real(nanos_to_seconds(use[i])));
    return uses;
}

/* --- incidents --- */

struct incident_of {
    const struct run_report *report;
    const struct incident *incident;
};

/* What a policy made of it; not of failures that everybody notices at once. */
static struct value judged(const struct incident_of *s, struct value value)
{
    return present_if(s->report->policy && s->incident->verdict.channel != CHANNEL_AT_ONCE, value);
}

static struct value found_by(const struct incident_of *s)
{
    const struct verdict *verdict = &s->incident->verdict;
    if (s->report->policy && verdict->found_by >= 0 && verdict->found && !verdict->called)
        return judged(s, as_text(s->report->policy->tests.items[verdict->found_by].name));
    return judged(s, as_text(verdict->called ? "a person" : "nobody"));
}

static struct value slow_factor(const struct fault *fault)
{
    return present_if(fault->kind == FAULT_STRAGGLER || fault->kind == FAULT_LINK, as_real((double)fault->speed / FULL_SPEED));
}

static struct value host_value(const struct incident_of *s)
{
    const char *host = incident_host(s->report, s->incident);
    return present_if(*host, as_text(host));
}

#define INCIDENT_ROWS(ROW)                                                                                                       \
    ROW(incident_of, time_s, as_time(s->incident->time), "s", JSON | CSV, "time since the start")                                \
    ROW(incident_of, node, s->incident->alarm ? unknown() : as_count(s->incident->fault->node), "", JSON | CSV,                  \
        "number of its node")                                                                                                    \
    ROW(incident_of, host, host_value(s), "", JSON, "name of its node, where the trace has names")                               \
    ROW(incident_of, kind, as_text(fault_kind_name(s->incident->fault->kind)), "", JSON | CSV, "outage, straggler, link ...")    \
    ROW(incident_of, detail, as_text(incident_cause(s->report, s->incident)), "", JSON | CSV, "its cause")                       \
    ROW(incident_of, down_s, as_time(s->incident->fault->down), "s", JSON | CSV, "duration of the fault")                        \
    ROW(incident_of, factor, slow_factor(s->incident->fault), "", JSON, "speed that is left to a slow node or link")             \
    ROW(incident_of, noticed_by, judged(s, as_text(channel_name(s->incident->verdict.channel))), "", JSON,                       \
        "channel that noticed it")                                                                                               \
    ROW(incident_of, found_by, found_by(s), "", JSON, "test that found the node, a person, or nobody")                           \
    ROW(incident_of, detection_s, judged(s, as_time(s->incident->verdict.detect)), "s", JSON, "time until it was noticed")       \
    ROW(incident_of, diagnosis_s, judged(s, as_time(s->incident->verdict.diagnose)), "s", JSON, "time of tests")                 \
    ROW(incident_of, human_s, judged(s, as_time(s->incident->verdict.human)), "s", JSON, "time until a person found it")         \
    ROW(incident_of, relapse, judged(s, as_flag(s->incident->relapse)), "", JSON, "a fault that was not found and came back")    \
    ROW(incident_of, condemned, judged(s, as_count(s->incident->verdict.n_condemned)), "", JSON, "healthy nodes evicted")        \
    ROW(incident_of, interrupted, as_flag(s->incident->interrupted), "", JSON | CSV, "whether it stopped training")              \
    ROW(incident_of, borne, present_if(s->report->options->failover, as_flag(s->incident->borne)), "", JSON,                     \
        "whether the other replicas went on")                                                                                    \
    ROW(incident_of, nodes_down, as_count(s->incident->n_down), "", JSON | CSV, "nodes down")                                    \
    ROW(incident_of, lost_s, as_time(s->incident->lost), "s", JSON | CSV, "work undone")                                         \
    ROW(incident_of, resume_s, s->incident->resumed == NEVER ? unknown() : as_time(s->incident->resumed), "s", JSON | CSV,       \
        "when training went on")
RESULT_ROWS(incident_rows, INCIDENT_ROWS)

static json_t *incidents_json(const struct run_report *report)
{
    json_t *incidents = json_array();
    for (size_t i = 0; i < report->result->n_incidents; i++)
        json_array_append_new(incidents,
                              rows_object(incident_rows, &(struct incident_of){report, &report->result->incidents[i]}));
    return incidents;
}

void run_report_incidents_csv(const struct run_report *report, FILE *out)
{
    const struct run_result *result = report->result;
    const struct incident nothing = {.alarm = true, .fault = &(struct fault){0}};
    bool named = report->trace->n_hosts > 0;
    rows_csv_heading(incident_rows, &(struct incident_of){report, &nothing}, true, out);
    fputs(named ? ",host\n" : "\n", out);
    for (size_t i = 0; i < result->n_incidents; i++) {
        rows_csv_cells(incident_rows, &(struct incident_of){report, &result->incidents[i]}, true, out);
        if (named)
            csv_write_cell(out, false, incident_host(report, &result->incidents[i]));
        fputc('\n', out);
    }
}

/* --- time series --- */

struct bin {
    const struct run_report *report;
    size_t i;
};

static const nanos *bin_use(const struct bin *s)
{
    return s->report->result->series[s->i].use;
}

static double bin_share(const struct bin *s, nanos time)
{
    return (double)time / (double)run_bin_length(s->report->result, s->i);
}

/* While training at full speed. */
static double tokens_per_s(const struct run_report *report)
{
    const struct job *job = &report->experiment->job;
    return (double)job->global_batch * (double)job->seq_len / report->step_time_s;
}

static struct value bin_mfu(const struct bin *s)
{
    return known_if(s->report->step_mfu > 0, as_real(100 * bin_share(s, bin_use(s)[USE_TRAINING]) * s->report->step_mfu));
}

#define SERIES_ROWS(ROW)                                                                                                         \
    ROW(bin, start_s, as_time((nanos)s->i * s->report->result->bin), "s", JSON | CSV, "begin of the stretch")                    \
    ROW(bin, length_s, as_time(run_bin_length(s->report->result, s->i)), "s", JSON | CSV, "its length")                          \
    ROW(bin, ettr, as_real(bin_share(s, bin_use(s)[USE_TRAINING] + bin_use(s)[USE_DEGRADED])), "", JSON | CSV,                   \
        "share of the time spent on training that is kept")                                                                      \
    ROW(bin, goodput, as_real(bin_share(s, bin_use(s)[USE_TRAINING])), "", JSON | CSV,                                           \
        "useful work per work without faults and checkpoints")                                                                   \
    ROW(bin, tokens, as_real(nanos_to_seconds(bin_use(s)[USE_TRAINING]) * tokens_per_s(s->report)), "", JSON, "tokens trained")
RESULT_ROWS(series_rows, SERIES_ROWS)
#define SERIES_MFU_ROWS(ROW) ROW(bin, mfu_pct, bin_mfu(s), "%", JSON | CSV, "MFU delivered, attention counted in full")
RESULT_ROWS(series_mfu_rows, SERIES_MFU_ROWS)

static json_t *series_json(const struct run_report *report)
{
    json_t *series = json_array();
    for (size_t i = 0; i < report->result->n_series; i++) {
        const struct bin bin = {report, i};
        json_t *object = rows_object(series_rows, &bin);
        if (report->step_mfu > 0)
            rows_json(series_mfu_rows, &bin, object);
        json_object_set_new(object, "breakdown", uses_json(report, bin_use(&bin), false));
        json_array_append_new(series, object);
    }
    return series;
}

void run_report_series_csv(const struct run_report *report, FILE *out)
{
    fputs("start_s,length_s,ettr,goodput,mfu_pct", out);
    for (int i = 0; i < report_uses(report); i++)
        fprintf(out, ",%s_s", time_use_name((enum time_use)i));
    fputc('\n', out);
    for (size_t i = 0; i < report->result->n_series; i++) {
        const struct bin bin = {report, i};
        rows_csv_cells(series_rows, &bin, true, out);
        rows_csv_cells(series_mfu_rows, &bin, false, out);
        for (int j = 0; j < report_uses(report); j++)
            csv_write_number(out, false, nanos_to_seconds(bin_use(&bin)[j]));
        fputc('\n', out);
    }
}

/* --- the policy --- */

static json_t *failover_json(const struct run_failover *f)
{
    return json_pack("{s:i, s:i, s:f, s:f}", "units", f->units, "replicas_of_a_unit", f->replicas, "regroup_s",
                     nanos_to_seconds(f->regroup), "rejoin_s", nanos_to_seconds(f->rejoin));
}

static json_t *recovery_json(const struct robust_policy *policy)
{
    char *text = robust_policy_to_json(policy);
    json_t *json = json_loads(text, 0, NULL);
    free(text);
    return json;
}

static json_t *startup_json(const struct startup *startup)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "scheduling_s", startup->scheduling_s, "image_s", startup->image_s,
                     "process_s", startup->process_s, "communicators_s", startup->communicators_s, "loading_s",
                     startup->loading_s, "warm_up_s", startup->warm_up_s);
}

static struct value persist_value(const struct checkpoint_policy *checkpoint)
{
    return present_if(checkpoint->kind != CHECKPOINT_BLOCKING, as_time(checkpoint->persist));
}

#define POLICY_ROWS(ROW)                                                                                                         \
    ROW(run_report, nodes, as_count(s->options->nodes), "", JSON, "nodes of the job")                                            \
    ROW(run_report, spares, as_count(s->options->recovery.spares), "", JSON, "spare nodes")                                      \
    ROW(run_report, checkpoint_interval_s, as_time(s->options->checkpoint.interval), "s", JSON, "work between checkpoints")      \
    ROW(run_report, checkpoint_block_s, as_time(s->options->checkpoint.block), "s", JSON,                                        \
        "time that a checkpoint blocks training")                                                                                \
    ROW(run_report, detect_s, as_time(s->options->recovery.detect), "s", JSON, "time until a failure is noticed")                \
    ROW(run_report, restart_s, as_time(s->options->recovery.restart), "s", JSON, "duration of a restart")                        \
    ROW(run_report, repair_mean_s, as_real(s->repair_s), "s", JSON, "mean repair time")                                          \
    ROW(run_report, checkpoint, as_text(checkpoint_kind_name(s->options->checkpoint.kind)), "", JSON, "kind of checkpoints")     \
    ROW(run_report, checkpoint_persist_s, persist_value(&s->options->checkpoint), "s", JSON, "time until a checkpoint is safe")  \
    ROW(run_report, failover, as_json(s->options->failover ? failover_json(s->options->failover) : NULL), "", JSON,              \
        "replicas that go on without the others")                                                                                \
    ROW(run_report, recovery, as_json(s->policy ? recovery_json(s->policy) : NULL), "", JSON, "the recovery policy")             \
    ROW(run_report, startup, as_json(s->startup ? startup_json(s->startup) : NULL), "s", JSON, "parts of a restart")
RESULT_ROWS(policy_rows, POLICY_ROWS)

/* --- answers --- */

static nanos idle_time(const nanos *use)
{
    return use[USE_DETECTION] + use[USE_WAITING] + use[USE_RESTART] + use[USE_DIAGNOSIS] + use[USE_HUMAN];
}

static struct value interval_value(const struct run_report *report)
{
    const struct run_interval interval = report_interval(report);
    return as_json(report->options->goal > 0 && report->simulated ? run_interval_json(&interval) : NULL);
}

/* Of a budget of tokens; unknown while it is not trained. */
static struct value at_end(const struct run_report *report, double number)
{
    return present_if(report->options->goal > 0, known_if(report->result->reached, as_real(number)));
}

/* Of the horizon, or what of it the budget took. */
static struct value energy_value(const struct run_report *report)
{
    const struct power_bound bound = power_bound_published(&report->experiment->cluster, report->experiment->gpus);
    double seconds = nanos_to_seconds(report->result->horizon), gpus = run_paid_gpus(report->experiment, report->options);
    return as_json(energy_json(&bound, gpus, gpus * seconds / 3600, seconds > 0 ? report_tokens(report) / seconds : 0));
}

static json_t *away_json(const double *away)
{
    return json_pack("{s:f, s:f, s:f}", "in_repair", away[AWAY_OUTAGE], "blocklisted", away[AWAY_LISTED], "evicted",
                     away[AWAY_CHECKED]);
}

/* Of what only a recovery policy does. */
static struct value of_policy(const struct run_report *report, int64_t count)
{
    return present_if(report->policy, as_count(count));
}

static struct value mfu_value(const struct run_report *report, double share)
{
    return known_if(report->step_mfu > 0, as_real(100 * share * report->step_mfu));
}

#define RUN_ROWS(ROW)                                                                                                            \
    ROW(run_report, horizon_s, as_time(s->result->horizon), "s", JSON, "time simulated")                                         \
    ROW(run_report, ettr, as_real(s->result->ettr), "", JSON, "share of the time spent on training that is kept",                \
        .title = "ETTR", .show = "%.3f %%", .scale = 100)                                                                        \
    ROW(run_report, goodput, as_real(s->result->goodput), "", JSON,                                                              \
        "useful work relative to a cluster without faults and checkpoints", .title = "goodput", .show = "%.3f %%", .scale = 100) \
    ROW(run_report, mfu_pct, mfu_value(s, s->result->goodput), "%", JSON, "delivered; attention counted in full")                \
    ROW(run_report, tokens, as_real(report_tokens(s)), "", JSON, "tokens trained")                                               \
    ROW(run_report, budget_days, present_if(report_budget_days(s) > 0, as_real(report_budget_days(s))), "days", JSON,            \
        "time for the whole budget of tokens, at this pace if it is not trained")                                                \
    ROW(run_report, end_s, at_end(s, nanos_to_seconds(s->result->horizon)), "s", JSON, "when the budget is trained")             \
    ROW(run_report, fault_free_s, present_if(s->options->goal > 0, as_time(s->options->goal)), "s", JSON,                        \
        "the same without failures and checkpoints")                                                                             \
    ROW(run_report, likely, interval_value(s), "", JSON, "80 % interval of the end, by published runs")                          \
    ROW(run_report, gpu_hours, at_end(s, report_gpu_hours(s)), "GPU-hours", JSON,                                                \
        "until the budget is trained, spares included")                                                                          \
    ROW(run_report, cost, present_if(s->gpu_price > 0, at_end(s, s->gpu_price * report_gpu_hours(s))), "", JSON,                 \
        "money for them")                                                                                                        \
    ROW(run_report, energy_at_most, energy_value(s), "", JSON,                                                                   \
        "upper bound of power and energy; null where no power is published")                                                     \
    ROW(run_report, failures, as_count(s->result->failures), "", JSON, "node outages", .show = "%.0f")                           \
    ROW(run_report, slowdowns, as_count(s->result->slowdowns), "", JSON, "stragglers and slow links", .show = "%.0f")            \
    ROW(run_report, planned, as_count(s->result->planned), "", JSON,                                                             \
        "announced outages: maintenance, preemptions, restarts by plan", .show = "%.0f")                                         \
    ROW(run_report, interruptions, as_count(s->result->interruptions), "", JSON, "failures that found the job training")         \
    ROW(run_report, checkpoints, as_count(s->result->checkpoints), "", JSON, "completed", .show = "%.0f")                        \
    ROW(run_report, nodes_away, as_json(away_json(s->result->away)), "", JSON,                                                   \
        "unavailable nodes on average: in repair, blocklisted, evicted")                                                         \
    ROW(run_report, borne, present_if(s->options->failover, as_count(s->result->borne)), "", JSON,                               \
        "outages that only took replicas out, while the others went on", .show = "%.0f")                                         \
    ROW(run_report, relapses, of_policy(s, s->result->relapses), "", JSON, "faults that were not found and came back",           \
        .show = "%.0f")                                                                                                          \
    ROW(run_report, false_alarms, of_policy(s, s->result->alarms), "", JSON, "interruptions without a fault",                    \
        .title = "false alarms", .show = "%.0f")                                                                                 \
    ROW(run_report, called, of_policy(s, s->result->called), "", JSON, "faults that needed a person")                            \
    ROW(run_report, condemned, of_policy(s, s->result->condemned), "", JSON, "healthy nodes that diagnosis evicted",             \
        .show = "%.0f")                                                                                                          \
    ROW(run_report, blocklisted, of_policy(s, s->result->listed), "", JSON,                                                      \
        "times that a node was blocklisted for failing too often", .title = "blocklist", .show = "%.0f")                         \
    ROW(run_report, outside, of_policy(s, s->result->outside), "", JSON, "failures of nodes outside the job")                    \
    ROW(run_report, cost_per_million_tokens, present_if(s->gpu_price > 0, as_real(report_token_cost(s))), "", JSON,              \
        "money per million tokens, spares included", .title = "cost", .show = "%.4g")                                            \
    ROW(run_report, useful_s, as_time(s->result->use[USE_TRAINING]), "s", JSON, "training that counts")                          \
    ROW(run_report, degraded_s, as_time(s->result->use[USE_DEGRADED]), "s", JSON, "extra time on slow nodes and links")          \
    ROW(run_report, lost_s, as_time(s->result->use[USE_LOST]), "s", JSON, "work undone by failures")                             \
    ROW(run_report, checkpoint_s, as_time(s->result->use[USE_CHECKPOINT]), "s", JSON, "blocked by checkpoints")                  \
    ROW(run_report, idle_s, as_time(idle_time(s->result->use)), "s", JSON, "stopped")                                            \
    ROW(run_report, breakdown, as_json(uses_json(s, s->result->use, false)), "s", JSON, "time by use")                           \
    ROW(run_report, breakdown_ns, as_json(uses_json(s, s->result->use, true)), "ns", JSON, "the same, exact")                    \
    ROW(run_report, waiting_since_s, known_if(s->result->ended_waiting, as_time(s->result->waiting_since)), "s", JSON,           \
        "since when the job waited for nodes at the horizon")
RESULT_ROWS(run_rows, RUN_ROWS)

#define STEP_ROWS(ROW)                                                                                                           \
    ROW(run_report, step_time_s, as_real(s->step_time_s), "s", JSON, "duration of a step")                                       \
    ROW(run_report, step_mfu_pct, mfu_value(s, 1), "%", JSON, "MFU while nothing fails")                                         \
    ROW(run_report, layout, as_text(s->layout), "", JSON, "the layout; null where the step time was given")
RESULT_ROWS(run_step_rows, STEP_ROWS)

#define MEMORYLESS_ROWS(ROW)                                                                                                     \
    ROW(run_closed_form, ettr_first_order, known_if(!s->nothing_failed, as_real(s->first_order)), "", JSON,                      \
        "the same to first order", .title = "first-order ETTR", .show = "%.3f %%", .scale = 100)                                 \
    ROW(run_closed_form, ettr_exponential, known_if(!s->nothing_failed, as_real(s->exponential)), "", JSON,                      \
        "plausibility check: exponential failures at this rate, unlimited spares", .title = "memoryless ETTR",                   \
        .show = "%.3f %%", .scale = 100)                                                                                         \
    ROW(run_closed_form, best_interval_s, as_real(s->interval.best_s), "s", JSON, "best interval between checkpoints")           \
    ROW(run_closed_form, young_s, as_real(s->interval.young_s), "s", JSON, "Young's interval")                                   \
    ROW(run_closed_form, daly_s, as_real(s->interval.daly_s), "s", JSON, "Daly's interval")                                      \
    ROW(run_closed_form, mtbi_s, known_if(s->between_s > 0, as_real(s->between_s)), "s", JSON,                                   \
        "mean time between interruptions; null where nothing failed")
RESULT_ROWS(memoryless_rows, MEMORYLESS_ROWS)

enum status run_report_json(struct invocation *call, const struct run_report *report)
{
    char *config = experiment_to_json(report->experiment);
    json_t *root = result_create(call, config);
    free(config);
    const struct faults_request *faults = &report->experiment->faults;
    const struct setting setting = experiment_setting(report->experiment);
    json_object_set_new(root, "trace", json_text(faults->model[0] ? faults->model : faults->trace));
    json_object_set_new(root, "policy", rows_object(policy_rows, report));
    rows_json(run_rows, report, root);
    rows_json(run_step_rows, report, root);
    trained_json(&setting, report->experiment->job.features, root);
    json_object_set_new(root, "memoryless", rows_object(memoryless_rows, &report->memoryless));
    json_object_set_new(root, "assumptions", run_assumptions_json(report));
    json_object_set_new(root, "series", series_json(report));
    json_object_set_new(root, "incidents", incidents_json(report));
    return result_write(call, root);
}
