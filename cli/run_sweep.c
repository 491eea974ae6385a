/*
 * How goodput depends on one thing: N values of it, each with its replicas, on the same luck. Every rank goes through all values
 * with its share of the replicas, and they meet once at the end.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/result.h"
#include "cli/run_many.h"
#include "cli/table.h"
#include "model/base/memory.h"

static const struct place nowhere = {0};

enum sweep_key { SWEEP_GPUS, SWEEP_MTTF, SWEEP_RESTART, SWEEP_DETECT, SWEEP_INTERVAL, SWEEP_BLOCK, SWEEP_SPARES, N_SWEEP_KEYS };
static const char *const sweep_names[N_SWEEP_KEYS] = {
    "gpus", "mttf", "restart", "detect", "checkpoint-interval", "checkpoint-block", "spares"};

struct sweep {
    enum sweep_key key;
    double low, high;
    int n;
    bool logarithmic;
};

enum { MAX_POINTS = 200 };
#define DAY_S 86400.0

static bool is_time(enum sweep_key key)
{
    return key != SWEEP_GPUS && key != SWEEP_SPARES;
}

static bool parse_value(struct invocation *call, enum sweep_key key, const char *text, double *value)
{
    char why[256];
    if (quantity_parse(text, is_time(key) ? DIM_TIME : DIM_COUNT, value, why, sizeof why) == STATUS_OK)
        return true;
    diag_error(&call->diags, nowhere, "--sweep %s: %s", sweep_names[key], why);
    return false;
}

static int sweep_key_parse(struct invocation *call, const char *name)
{
    for (int i = 0; i < N_SWEEP_KEYS; i++)
        if (strcmp(name, sweep_names[i]) == 0)
            return i;
    static const char known[] = "known are gpus, mttf, restart, detect, checkpoint-interval, checkpoint-block and spares";
    char hint[128];
    diag_error(&call->diags, nowhere, "--sweep: unknown key '%s'; %s", name,
               name_hint(name, sweep_names, N_SWEEP_KEYS, known, hint, sizeof hint));
    return -1;
}

/* KEY=A:B:N[:log] */
static bool parse_sweep(struct invocation *call, const char *text, struct sweep *sweep)
{
    char key[32], low[32], high[32], n[16], how[8] = "";
    int fields = sscanf(text, "%31[^=]=%31[^:]:%31[^:]:%15[^:]:%7s", key, low, high, n, how);
    if (fields < 4 || (*how && strcmp(how, "log") != 0)) {
        diag_error(&call->diags, nowhere, "--sweep: '%.60s' is not KEY=A:B:N; write for example restart=1min:30min:8", text);
        return false;
    }
    int found = sweep_key_parse(call, key);
    if (found < 0)
        return false;
    sweep->key = (enum sweep_key)found;
    sweep->n = (int)strtol(n, NULL, 10);
    sweep->logarithmic = *how != '\0';
    if (!parse_value(call, sweep->key, low, &sweep->low) || !parse_value(call, sweep->key, high, &sweep->high))
        return false;
    if (sweep->n < 2 || sweep->n > MAX_POINTS || sweep->low >= sweep->high || (sweep->logarithmic && sweep->low <= 0)) {
        diag_error(&call->diags, nowhere, "--sweep: 2 to %d points from a lower to a higher value (above 0 for log)", MAX_POINTS);
        return false;
    }
    return true;
}

static double sweep_value(const struct sweep *sweep, int i)
{
    double t = (double)i / (sweep->n - 1);
    return sweep->logarithmic ? sweep->low * pow(sweep->high / sweep->low, t) : sweep->low + t * (sweep->high - sweep->low);
}

struct point {
    double value, step_time_s, step_mfu;
    struct run_options options;   /* as far as the closed form looks */
    struct run_failover failover; /* that they point to */
    struct estimate goodput, ettr;
    struct estimate end_s;   /* of the budget of tokens; nothing without one */
    double full_cost;        /* of a million tokens, were the goodput 100 % */
    double use[N_TIME_USES]; /* shares of the horizon, mean */
    double closed_form;
};

/* A cluster of that size: nodes, GPUs, global batch and spares grow together (weak scaling), everything else as asked. */
static enum status resize(struct invocation *call, const struct run_session *s, double gpus, struct run_session *out)
{
    const struct experiment *e = &s->experiment;
    int64_t unit = s->has_layout ? (int64_t)s->layout.tp * s->layout.pp * s->layout.cp : e->cluster.gpus_per_node;
    if (unit % e->cluster.gpus_per_node)
        unit *= e->cluster.gpus_per_node;
    int64_t n = llround(gpus / (double)unit) * unit;
    n = n < unit ? unit : n;
    char texts[3][64];
    snprintf(texts[0], sizeof texts[0], "cluster.gpus=%" PRId64, n);
    snprintf(texts[1], sizeof texts[1], "cluster.nodes=%" PRId64, n / e->cluster.gpus_per_node);
    int64_t replicas = n / unit, batch = llround((double)e->job.global_batch * (double)n / e->gpus / (double)replicas) * replicas;
    snprintf(texts[2], sizeof texts[2], "job.global_batch=%" PRId64, batch > 0 ? batch : replicas);
    const char **overrides = memory_new((size_t)call->n_overrides + 3, sizeof *overrides);
    memcpy(overrides, call->overrides, (size_t)call->n_overrides * sizeof *overrides);
    for (int i = 0; i < 3; i++)
        overrides[call->n_overrides + i] = texts[i];
    struct invocation sub = *call;
    sub.overrides = overrides;
    sub.n_overrides += 3;
    enum status status = run_session_load(&sub, out);
    if (status == STATUS_OK)
        status = run_session_prepare(&sub, out);
    double share = (double)s->options.recovery.spares * (double)n / e->gpus;
    out->options.recovery.spares = (int)ceil(share - 1e-9);
    call->diags = sub.diags;
    free(overrides);
    return status;
}

static void set_point(struct run_session *s, enum sweep_key key, double value)
{
    nanos time = is_time(key) ? nanos_from_seconds(value) : 0;
    switch (key) {
    case SWEEP_MTTF: s->model.rate = 86400 / value / s->options.nodes; break;
    case SWEEP_RESTART:
        s->options.recovery.restart = s->robust.restart = s->robust.restart_hot = time;
        s->robust.reload = 0; /* as with --restart */
        s->failover.rejoin = s->failover.rejoin_hot = time;
        break;
    case SWEEP_DETECT: s->options.recovery.detect = time; break;
    case SWEEP_INTERVAL: s->options.checkpoint.interval = time; break;
    case SWEEP_BLOCK: s->options.checkpoint.block = time; break;
    case SWEEP_SPARES: s->options.recovery.spares = (int)llround(value); break;
    default: break;
    }
}

/* This rank's share of one value's replicas. */
static enum status run_point(struct invocation *call, const struct run_session *s, int64_t n, struct campaign *campaign,
                             struct replica_outcome *outcomes, struct point *point)
{
    point->options = s->options;
    point->failover = s->failover;
    point->options.failover = s->options.failover ? &point->failover : NULL;
    point->step_time_s = s->report.step_time_s;
    point->step_mfu = s->report.step_mfu;
    point->full_cost = run_token_cost(s, 100);
    enum status status = run_check_faults(call, s);
    return status == STATUS_OK ? run_own_share(call, s, n, campaign, outcomes) : status;
}

static enum status run_resized(struct invocation *call, const struct run_session *s, int64_t n, struct campaign *campaign,
                               struct replica_outcome *outcomes, struct point *point)
{
    struct run_session *resized = memory_new(1, sizeof *resized);
    enum status status = resize(call, s, point->value, resized);
    point->value = resized->experiment.gpus;
    if (status == STATUS_OK)
        status = run_point(call, resized, n, campaign, outcomes, point);
    run_session_free(resized);
    free(resized);
    return status;
}

static void estimate_point(const struct replica_outcome *outcomes, int64_t n, struct point *point)
{
    double *goodput = memory_new((size_t)n, sizeof *goodput), *ettr = memory_new((size_t)n, sizeof *ettr);
    double *end_s = memory_new((size_t)n, sizeof *end_s);
    point->options.horizon = outcomes_horizon(outcomes, n);
    double failures = 0, interruptions = 0, horizon_s = nanos_to_seconds(point->options.horizon), use_s[N_TIME_USES];
    for (int64_t i = 0; i < n; i++) {
        goodput[i] = 100 * outcome_goodput(&outcomes[i]);
        ettr[i] = 100 * outcome_ettr(&outcomes[i]);
        end_s[i] = outcome_end_s(&outcomes[i]);
        failures += (double)outcomes[i].failures / (double)n;
        interruptions += (double)outcomes[i].interruptions / (double)n;
        for (int use = 0; use < N_TIME_USES; use++)
            point->use[use] += (double)outcomes[i].use[use] / (double)outcomes[i].horizon / (double)n;
    }
    point->goodput = estimate_of(goodput, (size_t)n);
    point->ettr = estimate_of(ettr, (size_t)n);
    if (point->options.goal > 0)
        point->end_s = estimate_of(end_s, (size_t)n);
    for (int use = 0; use < N_TIME_USES; use++)
        use_s[use] = point->use[use] * horizon_s;
    struct run_closed_form form = point->options.robust
                                      ? run_closed_form_of_policy(&point->options, use_s, llround(interruptions))
                                      : run_closed_form(&point->options, llround(failures));
    point->closed_form = 100 * form.exponential;
    free(goodput);
    free(ettr);
    free(end_s);
}

/* Values [begin, end). */
static enum status run_block(struct invocation *call, struct run_session *s, const struct sweep *sweep, int64_t n,
                             struct campaign *campaign, int begin, int end, struct point *points)
{
    struct replica_outcome *outcomes = memory_new((size_t)(end - begin) * (size_t)n, sizeof *outcomes);
    enum status status = STATUS_OK;
    for (int i = begin; i < end && status == STATUS_OK; i++) {
        struct replica_outcome *own = outcomes + (int64_t)(i - begin) * n;
        points[i].value = sweep_value(sweep, i);
        set_point(s, sweep->key, points[i].value);
        status = sweep->key == SWEEP_GPUS ? run_resized(call, s, n, campaign, own, &points[i])
                                          : run_point(call, s, n, campaign, own, &points[i]);
    }
    status = run_share(outcomes, n, end - begin, status);
    for (int i = begin; i < end && status == STATUS_OK; i++)
        estimate_point(outcomes + (int64_t)(i - begin) * n, n, &points[i]);
    free(outcomes);
    return status;
}

/* All values, in blocks whose outcomes take some 100 MB at most. */
static enum status run_points(struct invocation *call, struct run_session *s, const struct sweep *sweep, int64_t n,
                              struct campaign *campaign, struct point *points)
{
    enum { AT_ONCE = 800000 };
    int64_t block = n < AT_ONCE ? AT_ONCE / n : 1;
    enum status status = STATUS_OK;
    for (int64_t begin = 0; begin < sweep->n && status == STATUS_OK; begin += block) {
        int64_t end = begin + block < sweep->n ? begin + block : sweep->n;
        status = run_block(call, s, sweep, n, campaign, (int)begin, (int)end, points);
    }
    return status;
}

static double point_cost(const struct point *point)
{
    return point->goodput.mean > 0 ? point->full_cost / (point->goodput.mean / 100) : 0;
}

static const char *const end_titles[] = {"ends p05", "ends median", "ends p95"};

static void write_points(struct invocation *call, const struct sweep *sweep, const struct point *points)
{
    struct table table = {0};
    table_column(&table, sweep_names[sweep->key], is_time(sweep->key) ? "s" : NULL, ALIGN_RIGHT);
    table_column(&table, "goodput", "%", ALIGN_RIGHT);
    table_column(&table, "ci95", "points", ALIGN_RIGHT);
    table_column(&table, "ETTR", "%", ALIGN_RIGHT);
    table_column(&table, "memoryless", "%", ALIGN_RIGHT);
    table_column(&table, "MFU", "%", ALIGN_RIGHT);
    table_column(&table, "step", "s", ALIGN_RIGHT);
    if (points[0].full_cost > 0)
        table_column(&table, "cost", "per M tokens", ALIGN_RIGHT);
    bool ends = points[0].options.goal > 0;
    for (int i = 0; ends && i < 3; i++)
        table_column(&table, end_titles[i], "days", ALIGN_RIGHT);
    for (int i = 0; i < sweep->n; i++) {
        table_cell(&table, "%.6g", points[i].value);
        table_cell(&table, "%.3f", points[i].goodput.mean);
        table_cell(&table, "%.3f", points[i].goodput.half_width);
        table_cell(&table, "%.3f", points[i].ettr.mean);
        table_cell(&table, "%.3f", points[i].closed_form);
        table_cell(&table, "%.2f", points[i].goodput.mean * points[i].step_mfu);
        table_cell(&table, "%.4g", points[i].step_time_s);
        if (points[0].full_cost > 0)
            table_cell(&table, "%.4g", point_cost(&points[i]));
        const double days[] = {points[i].end_s.p05 / DAY_S, points[i].end_s.median / DAY_S, points[i].end_s.p95 / DAY_S};
        for (int k = 0; ends && k < 3; k++)
            number_cell(&table, "%.2f", days[k]);
    }
    table_write(&table, call);
    table_free(&table);
}

static enum status write_points_json(struct invocation *call, const struct run_session *s, const struct sweep *sweep,
                                     const struct point *points, int64_t n)
{
    char *config = experiment_to_json(&s->experiment);
    json_t *root = result_create(call, config), *list = json_array();
    free(config);
    for (int i = 0; i < sweep->n; i++) {
        json_t *uses = json_object();
        for (int use = 0; use < N_TIME_USES; use++)
            json_object_set_new(uses, time_use_name((enum time_use)use), json_real(points[i].use[use]));
        json_t *object =
            json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "value", points[i].value, "goodput",
                      points[i].goodput.mean / 100, "ci95_low", (points[i].goodput.mean - points[i].goodput.half_width) / 100,
                      "ci95_high", (points[i].goodput.mean + points[i].goodput.half_width) / 100, "ettr",
                      points[i].ettr.mean / 100, "memoryless", points[i].closed_form / 100, "mfu_pct",
                      points[i].goodput.mean * points[i].step_mfu, "step_time_s", points[i].step_time_s, "breakdown", uses);
        if (points[i].full_cost > 0)
            json_object_set_new(object, "cost_per_million_tokens", json_real(point_cost(&points[i])));
        if (points[i].options.goal > 0)
            json_object_set_new(object, "end_s", estimate_json(points[i].end_s));
        json_array_append_new(list, object);
    }
    json_object_set_new(root, "sweep",
                        json_pack("{s:s, s:s, s:b, s:I, s:o}", "key", sweep_names[sweep->key], "unit",
                                  is_time(sweep->key) ? "s" : "", "logarithmic", sweep->logarithmic, "replicas", (json_int_t)n,
                                  "points", list));
    return result_write(call, root);
}

enum status run_sweep(struct invocation *call, struct run_session *s)
{
    struct sweep sweep;
    if (!parse_sweep(call, option_text(call, "sweep"), &sweep))
        return STATUS_USAGE;
    if (sweep.key == SWEEP_MTTF && !s->has_model) {
        diag_error(&call->diags, nowhere, "--sweep mttf: a trace has its own failures; draw them with --fault-model");
        return STATUS_USAGE;
    }
    int64_t n = s->has_model || s->has_policy ? run_replica_count(call, SEARCH_REPLICAS) : 1;
    struct point *points = memory_new((size_t)sweep.n, sizeof *points);
    struct campaign campaign;
    enum status status = campaign_open(call, s, option_text(call, "sweep"), n * sweep.n, &campaign);
    status = status == STATUS_OK ? run_points(call, s, &sweep, n, &campaign, points) : run_share(NULL, 1, 0, status);
    if (status == STATUS_OK && call->format == FORMAT_JSON)
        status = write_points_json(call, s, &sweep, points, n);
    else if (status == STATUS_OK)
        write_points(call, &sweep, points);
    campaign_close(&campaign);
    free(points);
    return status;
}
