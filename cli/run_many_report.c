/* What many replicas say together. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/result.h"
#include "cli/run_many.h"
#include "cli/table.h"
#include "traces/csv.h"

static double mfu_pct(const struct run_session *s, const struct replica_outcome *outcome)
{
    return outcome_goodput_pct(s, outcome) * s->report.step_mfu;
}

static double tokens(const struct run_session *s, const struct replica_outcome *outcome)
{
    const struct job *job = &s->experiment.job;
    return nanos_to_seconds(outcome->use[USE_TRAINING]) / s->report.step_time_s * (double)job->global_batch *
           (double)job->seq_len;
}

static double tokens_billion(const struct run_session *s, const struct replica_outcome *outcome)
{
    return tokens(s, outcome) / 1e9;
}

static double token_cost(const struct run_session *s, const struct replica_outcome *outcome)
{
    return run_token_cost(s, outcome_goodput_pct(s, outcome));
}

#define COUNT(name)                                                                                                              \
    static double name(const struct run_session *s, const struct replica_outcome *outcome)                                       \
    {                                                                                                                            \
        (void)s;                                                                                                                 \
        return (double)outcome->name;                                                                                            \
    }
COUNT(failures)
COUNT(interruptions)
COUNT(called)
COUNT(relapses)
COUNT(alarms)
COUNT(ended_waiting)

#define SHARE(id)                                                                                                                \
    static double share_##id(const struct run_session *s, const struct replica_outcome *outcome)                                 \
    {                                                                                                                            \
        return 100 * (double)outcome->use[USE_##id] / (double)s->options.horizon;                                                \
    }
SHARE(TRAINING)
SHARE(DEGRADED)
SHARE(CHECKPOINT)
SHARE(LOST)
SHARE(DETECTION)
SHARE(WAITING)
SHARE(RESTART)
SHARE(DIAGNOSIS)
SHARE(HUMAN)

struct quantity {
    const char *name, *title, *unit;
    outcome_function *f;
    bool robust; /* only with a policy of stages */
};

static const struct quantity quantities[] = {
    {"ettr_pct", "ETTR", "%", outcome_ettr_pct, false},
    {"goodput_pct", "goodput", "%", outcome_goodput_pct, false},
    {"mfu_pct", "MFU", "%", mfu_pct, false},
    {"tokens_billion", "tokens", "B", tokens_billion, false},
    {"cost_per_million_tokens", "cost", "per M tokens", token_cost, false},
    {"failures", "failures", "", failures, false},
    {"interruptions", "interruptions", "", interruptions, false},
    {"called", "called somebody", "", called, true},
    {"relapses", "relapses", "", relapses, true},
    {"false_alarms", "false alarms", "", alarms, true},
    {"ended_waiting", "ended waiting", "", ended_waiting, false},
    {"training_pct", "training", "%", share_TRAINING, false},
    {"degraded_pct", "degraded", "%", share_DEGRADED, false},
    {"checkpoint_pct", "checkpoint", "%", share_CHECKPOINT, false},
    {"lost_pct", "lost", "%", share_LOST, false},
    {"detection_pct", "detection", "%", share_DETECTION, false},
    {"diagnosis_pct", "diagnosis", "%", share_DIAGNOSIS, true},
    {"human_pct", "human", "%", share_HUMAN, true},
    {"waiting_pct", "waiting", "%", share_WAITING, false},
    {"restart_pct", "restart", "%", share_RESTART, false},
};
enum { N_QUANTITIES = sizeof quantities / sizeof *quantities };

static bool is_shown(const struct run_session *s, const struct quantity *quantity)
{
    if (quantity->f == mfu_pct && s->report.step_mfu <= 0)
        return false;
    if (quantity->f == token_cost && s->report.gpu_price <= 0)
        return false;
    return !quantity->robust || s->has_policy;
}

static void write_table(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    struct table table = {0};
    static const char *const titles[] = {"mean", "+- 95 %", "p05", "median", "p95"};
    table_column(&table, "quantity", NULL, ALIGN_LEFT);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_column(&table, titles[i], NULL, ALIGN_RIGHT);
    table_column(&table, "unit", NULL, ALIGN_LEFT);
    for (int i = 0; i < N_QUANTITIES; i++) {
        if (!is_shown(s, &quantities[i]))
            continue;
        struct estimate e = run_estimate(s, outcomes, n, quantities[i].f);
        table_cell(&table, "%s", quantities[i].title);
        table_cell(&table, "%.5g", e.mean);
        table_cell(&table, "%.2g", e.half_width);
        table_cell(&table, "%.5g", e.p05);
        table_cell(&table, "%.5g", e.median);
        table_cell(&table, "%.5g", e.p95);
        table_cell(&table, "%s", quantities[i].unit);
    }
    table_write(&table, call);
    table_free(&table);
}

static json_t *outcomes_json(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:f, s:f, s:I}", "ettr", outcome_ettr(&outcomes[i], s->options.horizon),
                                              "goodput", outcome_goodput(&outcomes[i], s->options.horizon), "interruptions",
                                              (json_int_t)outcomes[i].interruptions));
    return list;
}

static json_t *estimate_json(struct estimate e)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "mean", e.mean, "ci95_low", e.mean - e.half_width, "ci95_high",
                     e.mean + e.half_width, "deviation", e.deviation, "p05", e.p05, "median", e.median, "p95", e.p95);
}

static enum status write_json(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes,
                              int64_t n)
{
    char *config = experiment_to_json(&s->experiment);
    json_t *root = result_create(call, config);
    json_t *means = json_object();
    free(config);
    json_object_set_new(root, "replicas", json_integer(n));
    json_object_set_new(root, "horizon_s", json_real(nanos_to_seconds(s->options.horizon)));
    json_object_set_new(root, "ettr", json_real(run_estimate(s, outcomes, n, outcome_ettr_pct).mean / 100));
    json_object_set_new(root, "goodput", json_real(run_estimate(s, outcomes, n, outcome_goodput_pct).mean / 100));
    json_object_set_new(root, "step_time_s", json_real(s->report.step_time_s));
    for (int i = 0; i < N_QUANTITIES; i++)
        if (is_shown(s, &quantities[i]))
            json_object_set_new(means, quantities[i].name, estimate_json(run_estimate(s, outcomes, n, quantities[i].f)));
    json_object_set_new(root, "estimates", means);
    json_object_set_new(root, "outcomes", outcomes_json(s, outcomes, n));
    return result_write(call, root);
}

static void write_csv(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    fputs("replica,ettr,goodput,failures,interruptions,called", call->out);
    for (int i = 0; i < N_TIME_USES; i++)
        fprintf(call->out, ",%s_s", time_use_name((enum time_use)i));
    fputc('\n', call->out);
    for (int64_t r = 0; r < n; r++) {
        const struct replica_outcome *outcome = &outcomes[r];
        csv_write_integer(call->out, true, r);
        csv_write_number(call->out, false, outcome_ettr(outcome, s->options.horizon));
        csv_write_number(call->out, false, outcome_goodput(outcome, s->options.horizon));
        csv_write_integer(call->out, false, outcome->failures);
        csv_write_integer(call->out, false, outcome->interruptions);
        csv_write_integer(call->out, false, outcome->called);
        for (int i = 0; i < N_TIME_USES; i++)
            csv_write_number(call->out, false, nanos_to_seconds(outcome->use[i]));
        fputc('\n', call->out);
    }
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

enum status run_replicas_report(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes,
                                int64_t n)
{
    const struct experiment *e = &s->experiment;
    if (call->format == FORMAT_JSON)
        return write_json(call, s, outcomes, n);
    if (call->format == FORMAT_CSV) {
        write_csv(call, s, outcomes, n);
        return STATUS_OK;
    }
    char horizon[32], gpus[32], replicas[32];
    fprintf(call->out, "%s on %s x %s (%s), %s of %s, policy %s, %s replica%s\n\n", e->model.name,
            grouped(e->gpus, gpus, sizeof gpus), e->cluster.gpu.name, e->cluster.name,
            horizon_text(s->options.horizon, horizon, sizeof horizon), s->has_model ? s->model.name : e->faults.trace,
            s->has_policy ? s->policy.name : "replay", grouped(n, replicas, sizeof replicas), plural(n));
    write_table(call, s, outcomes, n);
    tell_waiting(call, outcomes, n);
    for (int i = 0; i < s->report.n_assumptions; i++)
        fprintf(call->out, "%s%s\n", i == 0 ? "\nassumed, for want of being told: " : "                                 ",
                s->report.assumptions[i]);
    return STATUS_OK;
}
