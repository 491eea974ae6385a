/* What many replicas say together. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/energy_report.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/run/run_likely.h"
#include "cli/run/run_many.h"
#include "model/base/memory.h"
#include "traces/table/csv.h"

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

static double lost_s(const struct run_session *s, const struct replica_outcome *outcome)
{
    (void)s;
    return nanos_to_seconds(outcome->use[USE_LOST]);
}

static double gpu_hours(const struct run_session *s, const struct replica_outcome *outcome)
{
    return run_end_s(s, outcome) / 3600 * run_paid_gpus(&s->experiment, &s->options);
}

static double cost(const struct run_session *s, const struct replica_outcome *outcome)
{
    return s->report.gpu_price * gpu_hours(s, outcome);
}

/* At board power, or nodes' at full load, all the time: an upper bound. */
static double energy_j(const struct run_session *s, const struct replica_outcome *outcome)
{
    const struct power_bound bound = power_bound_published(&s->experiment.cluster, s->experiment.gpus);
    return power_bound_energy(&bound, gpu_hours(s, outcome));
}

static double token_energy_j(const struct run_session *s, const struct replica_outcome *outcome)
{
    const struct power_bound bound = power_bound_published(&s->experiment.cluster, s->experiment.gpus);
    double hours = nanos_to_seconds(outcome->horizon) / 3600 * run_paid_gpus(&s->experiment, &s->options);
    return power_bound_energy(&bound, hours) / tokens(s, outcome);
}

static double nodes_away(const struct run_session *s, const struct replica_outcome *outcome)
{
    (void)s;
    return outcome_away(outcome);
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
        (void)s;                                                                                                                 \
        return 100 * (double)outcome->use[USE_##id] / (double)outcome->horizon;                                                  \
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

enum shown_with { ALWAYS, WITH_POLICY, WITH_GOAL };

struct quantity {
    const char *name, *title, *unit;
    outcome_function *f;
    enum shown_with with; /* what has to be there for it to say something */
    double text_unit;     /* in those of the name, where people read another one; 0: none */
    bool is_share;        /* of the replicas: each says 0 or 1 */
};

static const struct quantity quantities[] = {
    {"end_s", "training ends", "days", run_end_s, WITH_GOAL, 86400, false},
    {"gpu_hours", "GPU-hours", "M", gpu_hours, WITH_GOAL, 1e6, false},
    {"cost", "total cost", "M", cost, WITH_GOAL, 1e6, false},
    {"energy_at_most_j", "energy at most", "MWh", energy_j, WITH_GOAL, 3.6e9, false},
    {"ettr_pct", "ETTR", "%", outcome_ettr_pct, ALWAYS, 0, false},
    {"goodput_pct", "goodput", "%", outcome_goodput_pct, ALWAYS, 0, false},
    {"mfu_pct", "MFU", "%", mfu_pct, ALWAYS, 0, false},
    {"tokens_billion", "tokens", "B", tokens_billion, ALWAYS, 0, false},
    {"cost_per_million_tokens", "cost", "per M tokens", token_cost, ALWAYS, 0, false},
    {"energy_at_most_j_per_token", "energy at most", "J a token", token_energy_j, ALWAYS, 0, false},
    {"failures", "failures", "", failures, ALWAYS, 0, false},
    {"lost_s", "lost time", "h", lost_s, ALWAYS, 3600, false},
    {"interruptions", "interruptions", "", interruptions, ALWAYS, 0, false},
    {"called", "called somebody", "", called, WITH_POLICY, 0, false},
    {"relapses", "relapses", "", relapses, WITH_POLICY, 0, false},
    {"false_alarms", "false alarms", "", alarms, WITH_POLICY, 0, false},
    {"nodes_away", "nodes away", "", nodes_away, ALWAYS, 0, false},
    {"ended_waiting", "ended waiting", "", ended_waiting, ALWAYS, 0, true},
    {"training_pct", "training", "%", share_TRAINING, ALWAYS, 0, false},
    {"degraded_pct", "degraded", "%", share_DEGRADED, ALWAYS, 0, false},
    {"checkpoint_pct", "checkpoint", "%", share_CHECKPOINT, ALWAYS, 0, false},
    {"lost_pct", "lost", "%", share_LOST, ALWAYS, 0, false},
    {"detection_pct", "detection", "%", share_DETECTION, ALWAYS, 0, false},
    {"diagnosis_pct", "diagnosis", "%", share_DIAGNOSIS, WITH_POLICY, 0, false},
    {"human_pct", "human", "%", share_HUMAN, WITH_POLICY, 0, false},
    {"waiting_pct", "waiting", "%", share_WAITING, ALWAYS, 0, false},
    {"restart_pct", "restart", "%", share_RESTART, ALWAYS, 0, false},
};
enum { N_QUANTITIES = sizeof quantities / sizeof *quantities };

/* What a row means, for people; one without an entry speaks for itself. */
static const char *meaning_of(const char *name)
{
    static const char *const meanings[][2] = {
        {"end_s", "budget trained, and its last checkpoint written"},
        {"gpu_hours", "until then, spares included"},
        {"cost", "money for them"},
        {"energy_at_most_j", "at full power until then, spares included"},
        {"energy_at_most_j_per_token", "of those trained"},
        {"ettr_pct", "time spent on training that counts"},
        {"goodput_pct", "work that counts, over that without faults and checkpoints"},
        {"mfu_pct", "delivered; attention counted in full"},
        {"tokens_billion", "trained"},
        {"cost_per_million_tokens", "money, spares included"},
        {"failures", "node outages"},
        {"lost_s", "work undone by failures"},
        {"interruptions", "that found the job training"},
        {"called", "faults that needed a person"},
        {"relapses", "faults that were not found and came back"},
        {"false_alarms", "interruptions without a fault"},
        {"nodes_away", "in the mean, in repair or kept out: what spares stand in for"},
        {"ended_waiting", "still without nodes at the horizon: share of the replicas"},
        {"training_pct", "of the time: work that counts, at full speed"},
        {"degraded_pct", "extra time on slow nodes and links"},
        {"checkpoint_pct", "blocked by checkpoints"},
        {"lost_pct", "work undone by failures"},
        {"detection_pct", "stopped, failure not noticed yet"},
        {"diagnosis_pct", "stopped, tests look for the node"},
        {"human_pct", "stopped until a person has found it"},
        {"waiting_pct", "stopped, more nodes down than spares"},
        {"restart_pct", "scheduling, loading, initialising"},
    };
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strcmp(meanings[i][0], name) == 0)
            return meanings[i][1];
    return "";
}

static bool is_shown(const struct run_session *s, const struct quantity *quantity)
{
    if (quantity->f == mfu_pct && s->report.step_mfu <= 0)
        return false;
    if ((quantity->f == token_cost || quantity->f == cost) && s->report.gpu_price <= 0)
        return false;
    if ((quantity->f == energy_j || quantity->f == token_energy_j) &&
        power_bound_published(&s->experiment.cluster, s->experiment.gpus).count == POWER_UNKNOWN)
        return false;
    return quantity->with == WITH_POLICY ? s->has_policy : quantity->with == WITH_GOAL ? s->options.goal > 0 : true;
}

void number_cell(struct table *table, const char *format, double x)
{
    char text[32];
    snprintf(text, sizeof text, isfinite(x) ? format : "-", x);
    table_cell(table, "%s", text);
}

/* Half of the interval, or from where to where a share lies. */
static void spread_cell(struct table *table, const struct quantity *quantity, struct estimate e, int64_t n)
{
    double low, high;
    if (!quantity->is_share) {
        number_cell(table, "%.2g", e.half_width / (quantity->text_unit > 0 ? quantity->text_unit : 1));
        return;
    }
    share_interval(e.mean, n, &low, &high);
    table_cell(table, "%.2g to %.2g", low, high);
}

static void write_table(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    struct table table = {0};
    static const char *const titles[] = {"mean", "+- 95 %", "p05", "median", "p95"};
    table_column(&table, "quantity", NULL, ALIGN_LEFT);
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        table_column(&table, titles[i], NULL, ALIGN_RIGHT);
    table_column(&table, "unit", NULL, ALIGN_LEFT);
    table_column(&table, "meaning", NULL, ALIGN_LEFT);
    for (int i = 0; i < N_QUANTITIES; i++) {
        if (!is_shown(s, &quantities[i]))
            continue;
        struct estimate e = run_estimate(s, outcomes, n, quantities[i].f);
        table_cell(&table, "%s", quantities[i].title);
        double unit = quantities[i].text_unit > 0 ? quantities[i].text_unit : 1;
        number_cell(&table, "%.5g", e.mean / unit);
        spread_cell(&table, &quantities[i], e, n);
        number_cell(&table, "%.5g", e.p05 / unit);
        number_cell(&table, "%.5g", e.median / unit);
        number_cell(&table, "%.5g", e.p95 / unit);
        table_cell(&table, "%s", quantities[i].unit);
        table_cell(&table, "%s", meaning_of(quantities[i].name));
    }
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

json_t *number_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *outcomes_json(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++) {
        json_t *outcome =
            json_pack("{s:f, s:f, s:I, s:f}", "ettr", outcome_ettr(&outcomes[i]), "goodput", outcome_goodput(&outcomes[i]),
                      "interruptions", (json_int_t)outcomes[i].interruptions, "lost_s", lost_s(s, &outcomes[i]));
        if (s->options.goal > 0)
            json_object_set_new(outcome, "end_s", number_json(outcome_end_s(&outcomes[i])));
        json_array_append_new(list, outcome);
    }
    return list;
}

json_t *estimate_json(struct estimate e)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "mean", number_json(e.mean), "ci95_low",
                     number_json(e.mean - e.half_width), "ci95_high", number_json(e.mean + e.half_width), "deviation",
                     number_json(e.deviation), "p05", number_json(e.p05), "median", number_json(e.median), "p95",
                     number_json(e.p95));
}

/* By the replica in the middle: the others differ from it by their luck. */
static struct run_likely likely_of(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    return (struct run_likely){.report = &s->report,
                               .end_s = run_estimate(s, outcomes, n, run_end_s).median,
                               .paid_gpus = run_paid_gpus(&s->experiment, &s->options),
                               .gpu_price = s->report.gpu_price};
}

static json_t *quantity_json(const struct run_session *s, const struct replica_outcome *outcomes, int64_t n,
                             const struct quantity *quantity)
{
    struct estimate e = run_estimate(s, outcomes, n, quantity->f);
    json_t *object = estimate_json(e);
    double low, high;
    if (quantity->is_share) {
        share_interval(e.mean, n, &low, &high);
        json_object_set_new(object, "ci95_low", json_real(low));
        json_object_set_new(object, "ci95_high", json_real(high));
    }
    return object;
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
            json_object_set_new(means, quantities[i].name, quantity_json(s, outcomes, n, &quantities[i]));
    if (s->options.goal > 0) {
        json_object_set_new(root, "fault_free_s", json_real(nanos_to_seconds(s->options.goal)));
        json_object_set_new(root, "reached", json_integer(n_reached(outcomes, n)));
        const struct run_likely likely = likely_of(s, outcomes, n);
        if (s->report.simulated)
            json_object_set_new(root, "likely", run_likely_json(&likely));
    }
    json_object_set_new(root, "repair_mean_s", json_real(s->report.repair_s));
    json_object_set_new(root, "assumptions", run_assumptions_json(&s->report));
    json_object_set_new(root, "estimates", means);
    json_object_set_new(root, "outcomes", outcomes_json(s, outcomes, n));
    return result_write(call, root);
}

/* A column of CSV: a number of every outcome. */
struct column {
    const char *name;
    outcome_function *f;
    enum time_use use; /* whose seconds they are, where there is no function */
};

static double column_value(const struct run_session *s, const struct column *column, const struct replica_outcome *outcome)
{
    return column->f ? column->f(s, outcome) : nanos_to_seconds(outcome->use[column->use]);
}

static double ettr(const struct run_session *s, const struct replica_outcome *outcome)
{
    (void)s;
    return outcome_ettr(outcome);
}

static double goodput(const struct run_session *s, const struct replica_outcome *outcome)
{
    (void)s;
    return outcome_goodput(outcome);
}

static void cell(FILE *out, double x)
{
    if (isfinite(x))
        csv_write_number(out, false, x);
    else
        csv_write_cell(out, false, "");
}

enum { MAX_COLUMNS = 8 + N_TIME_USES };

static int csv_columns(const struct run_session *s, struct column *columns, char names[N_TIME_USES][32])
{
    static const struct column first[] = {{.name = "ettr", .f = ettr},
                                          {.name = "goodput", .f = goodput},
                                          {.name = "failures", .f = failures},
                                          {.name = "interruptions", .f = interruptions},
                                          {.name = "called", .f = called}};
    int n = sizeof first / sizeof *first;
    memcpy(columns, first, sizeof first);
    for (int i = 0; i < N_TIME_USES; i++) {
        snprintf(names[i], sizeof names[i], "%s_s", time_use_name((enum time_use)i));
        columns[n++] = (struct column){.name = names[i], .use = (enum time_use)i};
    }
    if (s->options.goal > 0) {
        columns[n++] = (struct column){.name = "end_s", .f = run_end_s};
        columns[n++] = (struct column){.name = "gpu_hours", .f = gpu_hours};
    }
    columns[n++] = (struct column){.name = "nodes_away", .f = nodes_away};
    return n;
}

/* A row for each replica; what is not known of one (it has not ended) is empty. */
static void write_csv(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    struct column columns[MAX_COLUMNS];
    char names[N_TIME_USES][32];
    int n_columns = csv_columns(s, columns, names);
    fputs("replica", call->out);
    for (int i = 0; i < n_columns; i++)
        fprintf(call->out, ",%s", columns[i].name);
    fputc('\n', call->out);
    for (int64_t r = 0; r < n; r++) {
        csv_write_integer(call->out, true, r);
        for (int i = 0; i < n_columns; i++)
            cell(call->out, column_value(s, &columns[i], &outcomes[r]));
        fputc('\n', call->out);
    }
}

static void tell_unreached(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes,
                           int64_t n)
{
    char horizon[32];
    int64_t late = s->options.goal > 0 ? n - n_reached(outcomes, n) : 0;
    if (late > 0)
        fprintf(call->out,
                "\n%" PRId64 " of %" PRId64 " replica%s had not trained the tokens after %s: they count as later than all others "
                "in percentiles, and there is no mean\n",
                late, n, plural(n), horizon_text(s->options.horizon, horizon, sizeof horizon));
}

static void tell_likely(struct invocation *call, const struct run_session *s, const struct replica_outcome *outcomes, int64_t n)
{
    const struct run_likely likely = likely_of(s, outcomes, n);
    if (s->options.goal == 0)
        return;
    run_likely_write(&likely, call->out);
    bool simulated = s->report.simulated != NULL;
    fprintf(call->out, "%sp05 to p95 of the end are its spread by failures alone, at the step as it %s\n", simulated ? "" : "\n",
            simulated ? "is predicted" : "was given");
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
        fprintf(call->out, "\nenergy is an upper bound, spares, waiting and down included: %s\n",
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
    char until[96], gpus[32], replicas[32];
    fprintf(call->out, "%s on %s x %s (%s), %s of %s, policy %s, %s replica%s\n\n", e->model.name,
            grouped(e->gpus, gpus, sizeof gpus), e->cluster.gpu.name, e->cluster.name, until_text(s, until, sizeof until),
            s->has_model ? s->model.name : e->faults.trace, s->has_policy ? s->policy.name : "replay",
            grouped(n, replicas, sizeof replicas), plural(n));
    write_table(call, s, outcomes, n);
    tell_likely(call, s, outcomes, n);
    tell_unreached(call, s, outcomes, n);
    tell_waiting(call, outcomes, n);
    tell_energy(call, s);
    run_assumptions_write(&s->report, call->out);
    return STATUS_OK;
}
