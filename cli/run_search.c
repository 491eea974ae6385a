/*
 * The best policy, and how goodput depends on one thing.
 *
 * --optimise makes a trained token cheapest: (nodes + spares) over the mean work that counts. All candidates meet the same faults
 * (common random numbers), so the curve is smooth enough for Brent's method on ln(interval) (GSL) even with few replicas; spares
 * are whole nodes and are searched by doubling and halving. Young's optimum sqrt(2 w M) and Daly's refinement stand beside.
 */
#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/result.h"
#include "cli/run_many.h"
#include "cli/table.h"
#include "model/base/memory.h"

static const struct place nowhere = {0};

/* --- the price of a policy --- */

struct search {
    struct invocation *call;
    struct run_session *s;
    int64_t n;
    struct replica_outcome *outcomes;
    int evaluations;
    enum status status;
};

static void evaluate(struct search *search)
{
    memset(search->outcomes, 0, (size_t)search->n * sizeof *search->outcomes);
    search->evaluations++;
    enum status status = run_batch(search->call, search->s, search->n, NULL, search->outcomes);
    if (search->status == STATUS_OK)
        search->status = status;
}

/* Nodes paid for, per node's worth of work that counts. */
static double price(struct search *search)
{
    evaluate(search);
    double goodput = run_estimate(search->s, search->outcomes, search->n, outcome_goodput_pct).mean / 100;
    double nodes = search->s->options.nodes;
    return (nodes + search->s->options.recovery.spares) / nodes / fmax(goodput, 1e-9);
}

static double price_of_interval(double log_interval, void *data)
{
    struct search *search = data;
    search->s->options.checkpoint.interval = nanos_from_seconds(exp(log_interval));
    return price(search);
}

static double price_of_spares(struct search *search, int spares)
{
    search->s->options.recovery.spares = spares;
    return price(search);
}

/* --- the interval --- */

/* A coarse grid around `start` gives Brent's method its bracket. */
static bool bracket(struct search *search, double start, double *low, double *middle, double *high, double values[3])
{
    enum { SIDE = 6 };
    double x[2 * SIDE + 1], f[2 * SIDE + 1];
    int best = 0;
    for (int i = 0; i <= 2 * SIDE; i++) {
        x[i] = start + 0.6 * (i - SIDE);
        f[i] = price_of_interval(x[i], search);
        best = f[i] < f[best] ? i : best;
    }
    if (best == 0 || best == 2 * SIDE)
        return false;
    *low = x[best - 1];
    *middle = x[best];
    *high = x[best + 1];
    memcpy(values, &f[best - 1], 3 * sizeof *values);
    return f[best] < f[best - 1] && f[best] < f[best + 1];
}

static double best_interval(struct search *search, double start_s)
{
    double low, middle = log(start_s), high, values[3];
    if (bracket(search, log(start_s), &low, &middle, &high, values)) {
        gsl_error_handler_t *before = gsl_set_error_handler_off();
        gsl_function f = {.function = price_of_interval, .params = search};
        gsl_min_fminimizer *minimizer = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
        int status = gsl_min_fminimizer_set_with_values(minimizer, &f, middle, values[1], low, values[0], high, values[2]);
        for (int i = 0; i < 24 && status == GSL_SUCCESS; i++) {
            status = gsl_min_fminimizer_iterate(minimizer);
            middle = gsl_min_fminimizer_x_minimum(minimizer);
            if (gsl_min_fminimizer_x_upper(minimizer) - gsl_min_fminimizer_x_lower(minimizer) < 0.01)
                break;
        }
        gsl_min_fminimizer_free(minimizer);
        gsl_set_error_handler(before);
    }
    search->s->options.checkpoint.interval = nanos_from_seconds(exp(middle));
    return exp(middle);
}

/* --- spares --- */

static int best_spares(struct search *search)
{
    int limit = search->s->options.nodes, best = 0, step = 1;
    double least = price_of_spares(search, 0);
    for (int spares = 1; spares <= limit; spares *= 2) {
        double value = price_of_spares(search, spares);
        if (value < least) {
            least = value;
            best = spares;
        } else if (spares > 4 * (best + 1)) {
            break;
        }
    }
    for (step = best / 2; step >= 1; step /= 2)
        for (int side = -1; side <= 1; side += 2) {
            double value = best + side * step >= 0 ? price_of_spares(search, best + side * step) : HUGE_VAL;
            if (value < least) {
                least = value;
                best += side * step;
            }
        }
    search->s->options.recovery.spares = best;
    return best;
}

/* --- optimise --- */

struct optimum {
    bool interval, spares;
    double young_s, daly_s, mttf_s;
    double before_s;
    int spares_before;
    struct estimate start, end;
};

/* Mean time between failures as drawn, and what the closed forms make of it. */
static void closed_forms(const struct search *search, struct optimum *optimum)
{
    double failures = 0, w = (double)search->s->options.checkpoint.block / 1e9;
    for (int64_t i = 0; i < search->n; i++)
        failures += (double)search->outcomes[i].interruptions;
    optimum->mttf_s = failures > 0 ? (double)search->s->options.horizon / 1e9 * (double)search->n / failures : HUGE_VAL;
    double m = optimum->mttf_s;
    optimum->young_s = sqrt(2 * w * m);
    double x = w / (2 * m);
    optimum->daly_s = w < 2 * m ? optimum->young_s * (1 + sqrt(x) / 3 + x / 9) - w : m;
}

static void optimum_row(struct table *table, const char *what, const char *before, const char *after)
{
    table_cell(table, "%s", what);
    table_cell(table, "%s", before);
    table_cell(table, "%s", after);
}

static void write_optimum(struct invocation *call, const struct search *search, const struct optimum *o)
{
    char before[64], after[64];
    const struct run_options *options = &search->s->options;
    struct table table = {0};
    table_column(&table, "quantity", NULL, ALIGN_LEFT);
    table_column(&table, "before", NULL, ALIGN_RIGHT);
    table_column(&table, "best", NULL, ALIGN_RIGHT);
    quantity_format(o->before_s, DIM_TIME, before, sizeof before);
    quantity_format((double)options->checkpoint.interval / 1e9, DIM_TIME, after, sizeof after);
    optimum_row(&table, "checkpoint interval", before, o->interval ? after : before);
    snprintf(before, sizeof before, "%d", o->spares_before);
    snprintf(after, sizeof after, "%d", options->recovery.spares);
    optimum_row(&table, "spares", before, after);
    snprintf(before, sizeof before, "%.3f +- %.3f", o->start.mean, o->start.half_width);
    snprintf(after, sizeof after, "%.3f +- %.3f", o->end.mean, o->end.half_width);
    optimum_row(&table, "goodput [%]", before, after);
    quantity_format(o->young_s, DIM_TIME, after, sizeof after);
    optimum_row(&table, "Young's interval", "", after);
    quantity_format(o->daly_s, DIM_TIME, after, sizeof after);
    optimum_row(&table, "Daly's interval", "", after);
    quantity_format(o->mttf_s, DIM_TIME, after, sizeof after);
    optimum_row(&table, "time between interruptions", "", after);
    table_write(&table, call);
    table_free(&table);
    if (call->format == FORMAT_TEXT)
        fprintf(call->out, "\n%" PRId64 " replicas of the same luck for each of %d candidates\n", search->n, search->evaluations);
}

static enum status write_optimum_json(struct invocation *call, const struct search *search, const struct optimum *o)
{
    const struct run_options *options = &search->s->options;
    char *config = experiment_to_json(&search->s->experiment);
    json_t *root = result_create(call, config);
    free(config);
    json_object_set_new(root, "optimum",
                        json_pack("{s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:i}", "checkpoint_interval_s",
                                  (double)options->checkpoint.interval / 1e9, "spares", options->recovery.spares, "goodput",
                                  o->end.mean / 100, "goodput_ci95", o->end.half_width / 100, "goodput_before",
                                  o->start.mean / 100, "young_s", o->young_s, "daly_s", o->daly_s, "mttf_s", o->mttf_s,
                                  "checkpoint_interval_before_s", o->before_s, "replicas", (json_int_t)search->n, "evaluations",
                                  search->evaluations));
    return result_write(call, root);
}

static enum status check_optimise(struct invocation *call, const struct run_session *s, struct optimum *o)
{
    int n = 0;
    const char *const *what = option_list(call, "optimise", &n);
    for (int i = 0; i < n; i++) {
        o->interval |= strcmp(what[i], "checkpoint-interval") == 0;
        o->spares |= strcmp(what[i], "spares") == 0;
    }
    if (o->interval && s->options.checkpoint.block <= 0)
        diag_error(&call->diags, nowhere,
                   "--optimise checkpoint-interval: checkpoints cost nothing here, so the shortest interval is best; give "
                   "--checkpoint-block, or --checkpoint two-stage");
    if (!s->has_model && !s->has_policy && option_given(call, "replicas"))
        diag_error(&call->diags, nowhere, "--replicas: a trace replayed by fixed rules is the same every time; leave it out");
    return diags_status(&call->diags) == STATUS_OK ? STATUS_OK : STATUS_USAGE;
}

enum status run_optimise(struct invocation *call, struct run_session *s)
{
    struct optimum o = {.before_s = (double)s->options.checkpoint.interval / 1e9, .spares_before = s->options.recovery.spares};
    enum status status = check_optimise(call, s, &o);
    if (status != STATUS_OK)
        return status;
    bool lucky = s->has_model || s->has_policy;
    struct search search = {.call = call, .s = s, .n = lucky ? run_replica_count(call, SEARCH_REPLICAS) : 1};
    search.outcomes = memory_new((size_t)search.n, sizeof *search.outcomes);
    evaluate(&search);
    o.start = run_estimate(s, search.outcomes, search.n, outcome_goodput_pct);
    closed_forms(&search, &o);
    double start = o.young_s > 0 && isfinite(o.young_s) ? o.young_s : o.before_s;
    for (int round = 0; round < (o.interval && o.spares ? 2 : 1) && search.status == STATUS_OK; round++) {
        if (o.spares)
            best_spares(&search);
        if (o.interval)
            start = best_interval(&search, start);
    }
    evaluate(&search);
    o.end = run_estimate(s, search.outcomes, search.n, outcome_goodput_pct);
    closed_forms(&search, &o);
    free(search.outcomes);
    if (search.status != STATUS_OK)
        return search.status;
    if (call->format == FORMAT_JSON)
        return write_optimum_json(call, &search, &o);
    write_optimum(call, &search, &o);
    return STATUS_OK;
}

/* --- sweep -------------------------------------------------------------------------------------------------------------------
 */

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
    const char *near = nearest_name(name, sweep_names, N_SWEEP_KEYS);
    diag_error(&call->diags, nowhere, "--sweep: unknown key '%s'; %s%s", name,
               near ? "did you mean " : "known are gpus, mttf, restart, detect, checkpoint-interval, checkpoint-block and spares",
               near ? near : "");
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
    struct estimate goodput, ettr;
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
    case SWEEP_RESTART: s->options.recovery.restart = s->robust.restart = s->robust.restart_hot = time; break;
    case SWEEP_DETECT: s->options.recovery.detect = time; break;
    case SWEEP_INTERVAL: s->options.checkpoint.interval = time; break;
    case SWEEP_BLOCK: s->options.checkpoint.block = time; break;
    case SWEEP_SPARES: s->options.recovery.spares = (int)llround(value); break;
    default: break;
    }
}

static enum status measure(struct invocation *call, struct run_session *s, int64_t n, struct point *point)
{
    struct search search = {.call = call, .s = s, .n = n, .outcomes = memory_new((size_t)n, sizeof *search.outcomes)};
    evaluate(&search);
    double failures = 0;
    for (int64_t i = 0; i < n; i++)
        failures += (double)search.outcomes[i].failures / (double)n;
    point->goodput = run_estimate(s, search.outcomes, n, outcome_goodput_pct);
    point->ettr = run_estimate(s, search.outcomes, n, outcome_ettr_pct);
    point->closed_form = 100 * run_closed_form(&s->options, llround(failures)).exponential;
    point->step_time_s = s->report.step_time_s;
    point->step_mfu = s->report.step_mfu;
    free(search.outcomes);
    return search.status;
}

static enum status sweep_point(struct invocation *call, struct run_session *s, const struct sweep *sweep, int64_t n, int i,
                               struct point *point)
{
    point->value = sweep_value(sweep, i);
    if (sweep->key != SWEEP_GPUS) {
        set_point(s, sweep->key, point->value);
        return measure(call, s, n, point);
    }
    struct run_session *resized = memory_new(1, sizeof *resized);
    enum status status = resize(call, s, point->value, resized);
    point->value = resized->experiment.gpus;
    if (status == STATUS_OK)
        status = measure(call, resized, n, point);
    run_session_free(resized);
    free(resized);
    return status;
}

static void write_points(struct invocation *call, const struct sweep *sweep, const struct point *points)
{
    struct table table = {0};
    table_column(&table, sweep_names[sweep->key], is_time(sweep->key) ? "s" : NULL, ALIGN_RIGHT);
    table_column(&table, "goodput", "%", ALIGN_RIGHT);
    table_column(&table, "+- 95", "%", ALIGN_RIGHT);
    table_column(&table, "ETTR", "%", ALIGN_RIGHT);
    table_column(&table, "memoryless", "%", ALIGN_RIGHT);
    table_column(&table, "MFU", "%", ALIGN_RIGHT);
    table_column(&table, "step", "s", ALIGN_RIGHT);
    for (int i = 0; i < sweep->n; i++) {
        table_cell(&table, "%.6g", points[i].value);
        table_cell(&table, "%.3f", points[i].goodput.mean);
        table_cell(&table, "%.3f", points[i].goodput.half_width);
        table_cell(&table, "%.3f", points[i].ettr.mean);
        table_cell(&table, "%.3f", points[i].closed_form);
        table_cell(&table, "%.2f", points[i].goodput.mean * points[i].step_mfu);
        table_cell(&table, "%.4g", points[i].step_time_s);
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
    for (int i = 0; i < sweep->n; i++)
        json_array_append_new(list, json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "value", points[i].value, "goodput",
                                              points[i].goodput.mean / 100, "ci95_low",
                                              (points[i].goodput.mean - points[i].goodput.half_width) / 100, "ci95_high",
                                              (points[i].goodput.mean + points[i].goodput.half_width) / 100, "ettr",
                                              points[i].ettr.mean / 100, "memoryless", points[i].closed_form / 100, "mfu_pct",
                                              points[i].goodput.mean * points[i].step_mfu, "step_time_s", points[i].step_time_s));
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
    struct point points[MAX_POINTS];
    enum status status = STATUS_OK;
    for (int i = 0; i < sweep.n && status == STATUS_OK; i++)
        status = sweep_point(call, s, &sweep, n, i, &points[i]);
    if (status != STATUS_OK)
        return status;
    if (call->format == FORMAT_JSON)
        return write_points_json(call, s, &sweep, points, n);
    write_points(call, &sweep, points);
    return STATUS_OK;
}
