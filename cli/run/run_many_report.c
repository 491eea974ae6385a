/* `msim run --replicas`: what many replicas say together. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/next_command.h"
#include "cli/options/shared_options.h"
#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/output/result_row.h"
#include "cli/output/table.h"
#include "cli/run/run_interval.h"
#include "cli/run/run_many.h"
#include "model/base/memory.h"
#include "traces/table/csv.h"

/* One replica of a session. */
struct replica {
    const struct run_session *session;
    const struct replica_outcome *outcome;
};

struct listed_replica {
    struct replica of;
};

static double tokens(const struct replica *s)
{
    const struct job *job = &s->session->experiment.job;
    return nanos_to_seconds(s->outcome->use[USE_TRAINING]) / s->session->report.step_time_s * (double)job->global_batch *
           (double)job->seq_len;
}

static double paid_hours(const struct replica *s, double seconds)
{
    return seconds / 3600 * run_paid_gpus(&s->session->experiment, &s->session->options);
}

/* At board power, or nodes' at full load, all the time: an upper bound. */
static struct value energy(const struct replica *s, double hours, double share)
{
    const struct experiment *e = &s->session->experiment;
    const struct power_bound bound = power_bound_published(&e->cluster, e->gpus);
    return present_if(bound.count != POWER_UNKNOWN, as_real(power_bound_energy(&bound, hours) / share));
}

static struct value with_goal(const struct replica *s, struct value value)
{
    return present_if(s->session->options.goal > 0, value);
}

static struct value with_price(const struct replica *s, double money)
{
    return present_if(s->session->report.gpu_price > 0, as_real(money));
}

static struct value with_policy(const struct replica *s, double number)
{
    return present_if(s->session->has_policy, as_real(number));
}

static double share(const struct replica *s, enum time_use use)
{
    return 100 * (double)s->outcome->use[use] / (double)s->outcome->horizon;
}

/* What of each replica the report estimates. */
#define QUANTITIES(ROW)                                                                                                          \
    ROW(replica, end_s, with_goal(s, as_real(outcome_end_s(s->outcome))), "s", JSON,                                             \
        "budget trained and last checkpoint written", .title = "training ends", .text_unit = "days", .scale = 1 / 86400.0)       \
    ROW(replica, gpu_hours, with_goal(s, as_real(paid_hours(s, outcome_end_s(s->outcome)))), "GPU-hours", JSON,                  \
        "until then, spares included", .title = "GPU-hours", .text_unit = "M", .scale = 1e-6)                                    \
    ROW(replica, cost, with_goal(s, with_price(s, s->session->report.gpu_price *paid_hours(s, outcome_end_s(s->outcome)))), "",  \
        JSON, "cost of these GPU-hours", .title = "total cost", .text_unit = "M", .scale = 1e-6)                                 \
    ROW(replica, energy_at_most_j, with_goal(s, energy(s, paid_hours(s, outcome_end_s(s->outcome)), 1)), "J", JSON,              \
        "at full power until then, spares included", .title = "energy at most", .text_unit = "MWh", .scale = 1 / 3.6e9)          \
    ROW(replica, ettr_pct, as_real(100 * outcome_ettr(s->outcome)), "%", JSON,                                                   \
        "share of the time spent on training that is kept", .title = "ETTR")                                                     \
    ROW(replica, goodput_pct, as_real(100 * outcome_goodput(s->outcome)), "%", JSON,                                             \
        "useful work relative to a cluster without faults and checkpoints", .title = "goodput")                                  \
    ROW(replica, mfu_pct,                                                                                                        \
        present_if(s->session->report.step_mfu > 0, as_real(100 * outcome_goodput(s->outcome) * s->session->report.step_mfu)),   \
        "%", JSON, "delivered; attention counted in full", .title = "MFU")                                                       \
    ROW(replica, tokens_billion, as_real(tokens(s) / 1e9), "B", JSON, "trained", .title = "tokens")                              \
    ROW(replica, cost_per_million_tokens, with_price(s, run_token_cost(s->session, 100 * outcome_goodput(s->outcome))), "",      \
        JSON, "money, spares included", .title = "cost", .text_unit = "per M tokens")                                            \
    ROW(replica, energy_at_most_j_per_token, energy(s, paid_hours(s, nanos_to_seconds(s->outcome->horizon)), tokens(s)), "J",    \
        JSON, "of those trained", .title = "energy at most", .text_unit = "J a token")                                           \
    ROW(replica, failures, as_real((double)s->outcome->failures), "", JSON, "node outages")                                      \
    ROW(replica, lost_s, as_real(nanos_to_seconds(s->outcome->use[USE_LOST])), "s", JSON, "work undone by failures",             \
        .title = "lost time", .text_unit = "h", .scale = 1 / 3600.0)                                                             \
    ROW(replica, interruptions, as_real((double)s->outcome->interruptions), "", JSON, "failures that stopped training")          \
    ROW(replica, called, with_policy(s, (double)s->outcome->called), "", JSON, "faults that needed a person",                    \
        .title = "called a person")                                                                                              \
    ROW(replica, relapses, with_policy(s, (double)s->outcome->relapses), "", JSON, "faults that were not found and came back")   \
    ROW(replica, false_alarms, with_policy(s, (double)s->outcome->alarms), "", JSON, "interruptions without a fault",            \
        .title = "false alarms")                                                                                                 \
    ROW(replica, nodes_away, as_real(outcome_away(s->outcome)), "", JSON, "unavailable nodes on average: in repair or kept out", \
        .title = "unavailable nodes")                                                                                            \
    ROW(replica, ended_waiting, as_real((double)s->outcome->ended_waiting), "", JSON,                                            \
        "share of replicas that wait for nodes at the horizon", .title = "ended waiting")                                        \
    ROW(replica, training_pct, as_real(share(s, USE_TRAINING)), "%", JSON, "useful work at full speed", .title = "training")     \
    ROW(replica, degraded_pct, as_real(share(s, USE_DEGRADED)), "%", JSON, "extra time on slow nodes and links",                 \
        .title = "degraded")                                                                                                     \
    ROW(replica, checkpoint_pct, as_real(share(s, USE_CHECKPOINT)), "%", JSON, "blocked by checkpoints", .title = "checkpoint")  \
    ROW(replica, lost_pct, as_real(share(s, USE_LOST)), "%", JSON, "work undone by failures", .title = "lost")                   \
    ROW(replica, detection_pct, as_real(share(s, USE_DETECTION)), "%", JSON, "stopped, failure not detected yet",                \
        .title = "detection")                                                                                                    \
    ROW(replica, diagnosis_pct, with_policy(s, share(s, USE_DIAGNOSIS)), "%", JSON, "stopped, tests search for the node",        \
        .title = "diagnosis")                                                                                                    \
    ROW(replica, human_pct, with_policy(s, share(s, USE_HUMAN)), "%", JSON, "stopped until a person finds the node",             \
        .title = "human")                                                                                                        \
    ROW(replica, waiting_pct, as_real(share(s, USE_WAITING)), "%", JSON, "stopped, more nodes down than spares",                 \
        .title = "waiting")                                                                                                      \
    ROW(replica, restart_pct, as_real(share(s, USE_RESTART)), "%", JSON, "scheduling, loading, initialising", .title = "restart")
RESULT_ROWS(replica_rows, QUANTITIES)

/* Each replica says 0 or 1. */
static bool is_share(const struct result_row *row)
{
    return strcmp(row->key, "ended_waiting") == 0;
}

/* False where the session does not have the quantity. */
static bool estimate_row(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n,
                         const struct result_row *row, struct estimate *estimate)
{
    double *x = memory_new((size_t)n, sizeof *x);
    struct value value = {0};
    for (int64_t i = 0; i < n; i++) {
        value = row->get(&(struct replica){s, &outcomes[i]});
        x[i] = value.real;
    }
    *estimate = estimate_of(x, (size_t)n);
    free(x);
    return value.kind != VALUE_ABSENT;
}

/* Half of the interval, or from where to where a share lies. */
static void spread_cell(struct table *table, const struct result_row *row, struct estimate e, double unit, int64_t n)
{
    double low, high;
    if (!is_share(row)) {
        number_cell(table, "%.2g", e.half_width / unit);
        return;
    }
    share_interval(e.mean, n, &low, &high);
    table_cell(table, "%.2g to %.2g", low, high);
}

static void write_row(struct table *table, const struct result_row *row, struct estimate e, int64_t n)
{
    double unit = row->scale > 0 ? 1 / row->scale : 1;
    table_cell(table, "%s", row->title ? row->title : row->key);
    number_cell(table, "%.5g", e.mean / unit);
    spread_cell(table, row, e, unit, n);
    number_cell(table, "%.5g", e.p05 / unit);
    number_cell(table, "%.5g", e.median / unit);
    number_cell(table, "%.5g", e.p95 / unit);
    table_cell(table, "%s", row->text_unit ? row->text_unit : row->unit);
    table_cell(table, "%s", row->meaning);
}

static void write_table(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    struct table table = {0};
    struct estimate e;
    static const char *const titles[] = {"mean", "+- 95 %", "p05", "median", "p95"};
    table_column(&table, "quantity", NULL, ALIGN_LEFT);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_column(&table, titles[i], NULL, ALIGN_RIGHT);
    table_column(&table, "unit", NULL, ALIGN_LEFT);
    table_column(&table, "meaning", NULL, ALIGN_LEFT);
    for (const struct result_row *row = replica_rows; row->key; row++)
        if (estimate_row(s, outcomes, n, row, &e))
            write_row(&table, row, e, n);
    table_write(&table, call);
    table_free(&table);
}

static int64_t n_reached(const struct replica_outcome *outcomes, int64_t n)
{
    int64_t reached = 0;
    for (int64_t i = 0; i < n; i++)
        reached += outcomes[i].reached;
    return reached;
}

/* A replica in the list of all; what is only known to be beyond the horizon is null. */
#define OUTCOME_ROWS(ROW)                                                                                                        \
    ROW(listed_replica, ettr, as_real(outcome_ettr(s->of.outcome)), "", JSON,                                                    \
        "share of the time spent on training that is kept")                                                                      \
    ROW(listed_replica, goodput, as_real(outcome_goodput(s->of.outcome)), "", JSON, "useful work relative to no faults")         \
    ROW(listed_replica, interruptions, as_count(s->of.outcome->interruptions), "", JSON, "failures that found the job training") \
    ROW(listed_replica, lost_s, as_real(nanos_to_seconds(s->of.outcome->use[USE_LOST])), "s", JSON, "work undone by failures")   \
    ROW(listed_replica, end_s, with_goal(&s->of, as_number(outcome_end_s(s->of.outcome))), "s", JSON,                            \
        "when the budget of tokens is trained")
RESULT_ROWS(outcome_rows, OUTCOME_ROWS)

static json_t *outcomes_json(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, rows_object(outcome_rows, &(struct listed_replica){{s, &outcomes[i]}}));
    return list;
}

/* By the replica in the middle: the others differ from it by their luck. */
static struct run_interval interval_of(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    return (struct run_interval){.report = &s->report,
                                 .end_s = run_estimate(s, outcomes, n, run_end_s).median,
                                 .paid_gpus = run_paid_gpus(&s->experiment, &s->options),
                                 .gpu_price = s->report.gpu_price};
}

/* Of each quantity that the session has. */
static json_t *estimates_json(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    json_t *estimates = json_object();
    double low, high;
    for (const struct result_row *row = replica_rows; row->key; row++) {
        struct estimate e;
        if (!estimate_row(s, outcomes, n, row, &e))
            continue;
        json_t *object = estimate_json(e);
        if (is_share(row)) {
            share_interval(e.mean, n, &low, &high);
            json_object_set_new(object, "ci95_low", json_real(low));
            json_object_set_new(object, "ci95_high", json_real(high));
        }
        json_object_set_new(estimates, row->key, object);
    }
    return estimates;
}

/* All replicas. */
struct replicas {
    const struct run_session *session;
    const struct replica_outcome *outcomes;
    int64_t n;
};

static double mean_of(const struct replicas *s, outcome_function *f)
{
    return run_estimate(s->session, s->outcomes, s->n, f).mean;
}

static struct value of_budget(const struct replicas *s, struct value value)
{
    return present_if(s->session->options.goal > 0, value);
}

static json_t *interval_json(const struct replicas *s)
{
    const struct run_interval interval = interval_of(s->session, s->outcomes, s->n);
    return s->session->options.goal > 0 && s->session->report.simulated ? run_interval_json(&interval) : NULL;
}

#define REPLICAS_ROWS(ROW)                                                                                                       \
    ROW(replicas, replicas, as_count(s->n), "", JSON, "number of replicas")                                                      \
    ROW(replicas, horizon_s, as_real(nanos_to_seconds(s->session->options.horizon)), "s", JSON, "time simulated at most")        \
    ROW(replicas, ettr, as_real(mean_of(s, outcome_ettr_pct) / 100), "", JSON, "mean ETTR")                                      \
    ROW(replicas, goodput, as_real(mean_of(s, outcome_goodput_pct) / 100), "", JSON, "mean goodput")                             \
    ROW(replicas, step_time_s, as_real(s->session->report.step_time_s), "s", JSON, "duration of a step")                         \
    ROW(replicas, fault_free_s, of_budget(s, as_real(nanos_to_seconds(s->session->options.goal))), "s", JSON,                    \
        "time for the budget of tokens without failures and checkpoints")                                                        \
    ROW(replicas, reached, of_budget(s, as_count(n_reached(s->outcomes, s->n))), "", JSON, "replicas that trained the budget")   \
    ROW(replicas, likely, as_json(interval_json(s)), "", JSON, "80 % interval of the end, by published runs")                    \
    ROW(replicas, repair_mean_s, as_real(s->session->report.repair_s), "s", JSON, "mean time of repairs")                        \
    ROW(replicas, assumptions, as_json(run_assumptions_json(&s->session->report)), "", JSON, "what nobody specified")            \
    ROW(replicas, estimates, as_json(estimates_json(s->session, s->outcomes, s->n)), "", JSON, "statistics of each quantity")    \
    ROW(replicas, outcomes, as_json(outcomes_json(s->session, s->outcomes, s->n)), "", JSON, "each replica")
RESULT_ROWS(replicas_rows, REPLICAS_ROWS)

static enum status write_json(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes,
                              int64_t n)
{
    char *config = experiment_to_json(&s->experiment);
    json_t *root = result_create(call, config);
    free(config);
    rows_json(replicas_rows, &(struct replicas){s, outcomes, n}, root);
    return result_write(call, root);
}

static void csv_quantity(const struct run_session *s, const struct replica_outcome *outcome, const char *key, FILE *out)
{
    struct value value = row_of(replica_rows, key)->get(&(struct replica){s, outcome});
    csv_write_number(out, false, isfinite(value.real) ? value.real : NAN);
}

/* A row for each replica; what is not known of one (it has not ended) is empty. */
static void write_csv(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    FILE *out = call->out;
    bool ends = s->options.goal > 0;
    fputs("replica,ettr,goodput,failures,interruptions,called", out);
    for (int i = 0; i < N_TIME_USES; i++)
        fprintf(out, ",%s_s", time_use_name((enum time_use)i));
    fprintf(out, "%s,nodes_away\n", ends ? ",end_s,gpu_hours" : "");
    for (int64_t r = 0; r < n; r++) {
        const struct replica_outcome *outcome = &outcomes[r];
        csv_write_integer(out, true, r);
        csv_write_number(out, false, outcome_ettr(outcome));
        csv_write_number(out, false, outcome_goodput(outcome));
        csv_write_integer(out, false, outcome->failures);
        csv_write_integer(out, false, outcome->interruptions);
        csv_write_integer(out, false, outcome->called);
        for (int i = 0; i < N_TIME_USES; i++)
            csv_write_number(out, false, nanos_to_seconds(outcome->use[i]));
        if (ends) {
            csv_quantity(s, outcome, "end_s", out);
            csv_quantity(s, outcome, "gpu_hours", out);
        }
        csv_write_number(out, false, outcome_away(outcome));
        fputc('\n', out);
    }
}

static void tell_unreached(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes,
                           int64_t n)
{
    char horizon[32];
    int64_t late = s->options.goal > 0 ? n - n_reached(outcomes, n) : 0;
    if (late > 0)
        note_write(call->out, 2,
                   "\n%" PRId64 " of %" PRId64 " replica%s had not trained the tokens after %s: percentiles count them as last, "
                   "and there is no mean",
                   late, n, plural(n), horizon_text(s->options.horizon, horizon, sizeof horizon));
}

static void write_interval(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes,
                           int64_t n)
{
    const struct run_interval interval = interval_of(s, outcomes, n);
    if (s->options.goal == 0)
        return;
    run_interval_write(&interval, call->out);
    bool simulated = s->report.simulated != NULL;
    fprintf(call->out, "%sp05 to p95 of the end is the spread by failures alone, for the %s step\n", simulated ? "" : "\n",
            simulated ? "predicted" : "given");
}

static void tell_waiting(struct invocation *call, const struct replica_outcome *outcomes, int64_t n)
{
    int64_t waiting = 0;
    for (int64_t i = 0; i < n; i++)
        waiting += outcomes[i].ended_waiting;
    if (waiting > 0)
        fprintf(call->out, "\n%" PRId64 " of %" PRId64 " replica%s had stopped and waited for nodes at the horizon\n", waiting, n,
                plural(n));
}

/* What the energy counts. */
static void tell_energy(struct invocation *call, const struct run_session *s)
{
    const struct power_bound bound = power_bound_published(&s->experiment.cluster, s->experiment.gpus);
    char counted[BOUND_TEXT];
    if (bound.count != POWER_UNKNOWN)
        fprintf(call->out, "\nenergy is an upper bound that includes spares, waiting and down time: %s\n",
                power_bound_text(&bound, counted, sizeof counted));
}

/* "54 d", or "15 T tokens (600 d at most)". */
static char *until_text(const struct run_session *s, char *text, size_t size)
{
    char tokens[32], horizon[32];
    horizon_text(s->options.horizon, horizon, sizeof horizon);
    if (s->options.goal > 0)
        snprintf(text, size, "%s tokens (%s at most)",
                 quantity_format(s->experiment.job.tokens, DIM_COUNT, tokens, sizeof tokens), horizon);
    else
        snprintf(text, size, "%s", horizon);
    return text;
}

static enum status report(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    const struct experiment *e = &s->experiment;
    if (call->format == FORMAT_JSON)
        return write_json(call, s, outcomes, n);
    if (call->format == FORMAT_CSV) {
        write_csv(call, s, outcomes, n);
        return STATUS_OK;
    }
    char until[96], gpus[32], replicas[32];
    fprintf(call->out, "%s on %s x %s (%s), %s of %s, policy %s, %s replica%s\n\n", e->model.name,
            grouped(e->gpus, gpus, sizeof gpus), e->cluster.gpu.name, e->cluster.name, until_text(s, until, sizeof until),
            s->has_model ? s->model.name : e->faults.trace, s->has_policy ? s->policy.name : "replay",
            grouped(n, replicas, sizeof replicas), plural(n));
    write_table(call, s, outcomes, n);
    write_interval(call, s, outcomes, n);
    tell_unreached(call, s, outcomes, n);
    tell_waiting(call, outcomes, n);
    tell_energy(call, s);
    run_assumptions_write(&s->report, call->out);
    next_command_write(call, "run", NULL, "--optimise all");
    return STATUS_OK;
}

enum status run_replicas(struct invocation *call, struct run_session *s)
{
    int64_t n = run_replica_count(call, 0);
    if (!s->has_model && !s->has_policy) {
        diag_error(&call->diags, PLACE_NONE,
                   "--replicas: a replayed trace with fixed times gives the same result every time; draw faults with "
                   "--fault-model, or add --policy");
        return STATUS_USAGE;
    }
    struct replica_outcome *outcomes = memory_new((size_t)n, sizeof *outcomes);
    struct progress progress;
    const struct run_parts run = run_parts_of(s);
    struct campaign campaign = run_campaign(call, n, &progress);
    enum status status = campaign_open(&campaign, &run, option_text(call, "resume"), NULL, &call->diags);
    status = status == STATUS_OK ? campaign_run(&campaign, &run, n, outcomes, &call->diags)
                                 : outcomes_share(&campaign.processes, outcomes, n, 1, status);
    progress_end(&progress);
    if (status == STATUS_OK)
        status = report(call, s, outcomes, n);
    campaign_close(&campaign);
    free(outcomes);
    return status;
}
