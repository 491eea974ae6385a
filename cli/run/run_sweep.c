/*
 * How goodput depends on one thing, or on several: values of each, every combination with its replicas, on the same luck. Every
 * rank goes through all of them with its share of the replicas, and they meet once at the end.
 */
#include "cli/run/run_sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/options.h"
#include "cli/options/sweep_values.h"
#include "cli/run/run_faults.h"
#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/base/order.h"

/* --- what is asked --- */

static int key_parse(struct invocation *call, const char *name)
{
    for (int i = 0; i < N_RUN_SWEEP_KEYS; i++)
        if (strcmp(name, run_sweep_key_names[i]) == 0)
            return i;
    static const char known[] = "known are gpus, mttf, repair, restart, detect, checkpoint-interval, checkpoint-block and spares";
    char hint[128];
    diag_error(&call->diags, PLACE_NONE, "--sweep: unknown key '%s'; %s", name,
               name_hint(name, run_sweep_key_names, N_RUN_SWEEP_KEYS, known, hint, sizeof hint));
    return -1;
}

/* Keys are options with bounds of their own, but for the mean time to failure, which a rate is the inverse of. */
static bool check_value(const struct invocation *call, enum run_sweep_key key, double value, char *why, size_t size)
{
    char text[48];
    if (key != RUN_SWEEP_MTTF)
        return option_check_number(call, run_sweep_key_names[key], value, why, size) == STATUS_OK;
    if (value > 0)
        return true;
    snprintf(why, size, "'%s' is too small; the time must be above 0", quantity_write(value, DIM_TIME, text, sizeof text));
    return false;
}

/* One value, or those of a range: of counts the nearest whole ones. */
static bool read_values(const struct invocation *call, enum run_sweep_key key, const char *text, size_t length,
                        struct sweep_range *range, double values[], char *why, size_t size)
{
    enum dimension dimension = run_sweep_is_time(key) ? DIM_TIME : DIM_COUNT;
    char copy[64];
    snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1), text);
    if (length >= sizeof copy) {
        snprintf(why, size, "'%.40s...' is too long", copy);
        return false;
    }
    *range = (struct sweep_range){.n = 1};
    bool several = sweep_is_range(text, length);
    enum status status = several ? sweep_range_parse(text, length, dimension, RUN_SWEEP_POINTS, range, why, size)
                                 : quantity_parse(copy, dimension, &range->low, why, size);
    for (int i = 0; i < range->n && status == STATUS_OK; i++) {
        values[i] = several ? sweep_range_value(range, i) : range->low;
        if (several && dimension == DIM_COUNT)
            values[i] = nearbyint(values[i]);
        if (!check_value(call, key, values[i], why, size))
            return false;
    }
    return status == STATUS_OK;
}

static bool add_values(struct invocation *call, struct run_sweep_axis *axis, const char *text, size_t length)
{
    char why[256];
    double values[RUN_SWEEP_POINTS];
    struct sweep_range range;
    if (!read_values(call, axis->key, text, length, &range, values, why, sizeof why)) {
        diag_error(&call->diags, PLACE_NONE, "--sweep %s: %s", run_sweep_key_names[axis->key], why);
        return false;
    }
    axis->logarithmic = range.logarithmic;
    if (axis->n + range.n > RUN_SWEEP_POINTS) {
        diag_error(&call->diags, PLACE_NONE, "--sweep %s: too many values; at most %d", run_sweep_key_names[axis->key],
                   RUN_SWEEP_POINTS);
        return false;
    }
    for (int i = 0; i < range.n; i++)
        axis->values[axis->n++] = values[i];
    return true;
}

/* In order, each once. */
static void sort_values(struct run_sweep_axis *axis)
{
    int n = 0;
    qsort(axis->values, (size_t)axis->n, sizeof *axis->values, double_compare);
    for (int i = 0; i < axis->n; i++)
        if (n == 0 || axis->values[i] > axis->values[n - 1])
            axis->values[n++] = axis->values[i];
    axis->n = n;
}

/* KEY=VALUE,... */
static bool axis_parse(struct invocation *call, const char *text, struct run_sweep_axis *axis)
{
    char key[32];
    size_t letters = strcspn(text, "=");
    bool named = letters > 0 && letters < sizeof key && text[letters] == '=';
    snprintf(key, sizeof key, "%.*s", named ? (int)letters : 0, text);
    int found = named ? key_parse(call, key) : -1;
    if (named && found < 0)
        return false;
    axis->key = (enum run_sweep_key)found;
    const char *p = text + letters;
    int n_texts = 0;
    while (named && *p) {
        size_t length = strcspn(++p, ",");
        if (!add_values(call, axis, p, length))
            return false;
        p += length;
        n_texts++;
    }
    sort_values(axis);
    if (!named || axis->n < 2) {
        diag_error(&call->diags, PLACE_NONE,
                   "--sweep: '%.60s' is not KEY=VALUES with two or more different values; write for example "
                   "restart=1min:30min:8, gpus=256..4096 or spares=0,2,4",
                   text);
        return false;
    }
    axis->logarithmic = axis->logarithmic && n_texts == 1;
    return true;
}

static bool grid_parse(struct invocation *call, struct run_grid *grid)
{
    int n;
    const char *const *texts = option_list(call, "sweep", &n);
    grid->n_points = 1;
    for (int a = 0; a < n; a++) {
        if (a == RUN_SWEEP_AXES) {
            diag_error(&call->diags, PLACE_NONE, "--sweep is given more than %d times", RUN_SWEEP_AXES);
            return false;
        }
        if (!axis_parse(call, texts[a], &grid->axes[a]))
            return false;
        for (int other = 0; other < a; other++)
            if (grid->axes[other].key == grid->axes[a].key) {
                diag_error(&call->diags, PLACE_NONE,
                           "--sweep: %s is given twice; give all its values at once, separated by commas",
                           run_sweep_key_names[grid->axes[a].key]);
                return false;
            }
        grid->n_axes++;
        grid->n_points *= grid->axes[a].n;
        text_append(grid->text, sizeof grid->text, "%s%s", a ? " " : "", texts[a]);
    }
    if (grid->n_points > RUN_SWEEP_POINTS)
        diag_error(&call->diags, PLACE_NONE, "--sweep: %d combinations are too many; at most %d", grid->n_points,
                   RUN_SWEEP_POINTS);
    return grid->n_points <= RUN_SWEEP_POINTS;
}

/* --- the points --- */

/* GPUs of which the job's size is a multiple: a replica's, in whole nodes. */
static int64_t size_unit(const struct run_session *s)
{
    int64_t node = s->experiment.cluster.gpus_per_node;
    int64_t unit = s->has_layout ? (int64_t)s->layout.tp * s->layout.pp * s->layout.cp : node;
    return unit % node ? unit * node : unit;
}

static int64_t whole_size(const struct run_session *s, double gpus)
{
    int64_t unit = size_unit(s), n = llround(gpus / (double)unit) * unit;
    return n < unit ? unit : n;
}

/* Round to sizes that a job of this layout can have, each once, and report the changes. */
static void round_sizes(struct invocation *call, const struct run_session *s, struct run_grid *grid)
{
    enum { TOLD = 6 };
    int a = run_grid_axis(grid, RUN_SWEEP_GPUS), n = 0;
    struct run_sweep_axis *axis = a >= 0 ? &grid->axes[a] : NULL;
    char changes[256] = "";
    for (int i = 0; axis && i < axis->n; i++) {
        int64_t size = whole_size(s, axis->values[i]);
        if ((double)size != axis->values[i] && n++ < TOLD)
            text_append(changes, sizeof changes, "%s%.0f -> %" PRId64, n > 1 ? ", " : "", axis->values[i], size);
        axis->values[i] = (double)size;
    }
    if (n == 0)
        return;
    int64_t unit = size_unit(s), node = s->experiment.cluster.gpus_per_node;
    char why[64];
    snprintf(why, sizeof why, s->has_layout ? "tp*cp*pp = %" PRId64 : "GPUs per node: %" PRId64,
             s->has_layout ? (int64_t)s->layout.tp * s->layout.cp * s->layout.pp : unit);
    if (s->has_layout && unit != (int64_t)s->layout.tp * s->layout.cp * s->layout.pp)
        text_append(why, sizeof why, ", %" PRId64 " GPUs per node", node);
    diag_note(&call->diags, PLACE_NONE, "--sweep gpus: %s%s (%s)", changes, n > TOLD ? ", ..." : "", why);
    grid->n_points /= axis->n;
    sort_values(axis);
    grid->n_points *= axis->n;
}

/* A cluster of that size: nodes, GPUs, global batch and spares grow together (weak scaling), everything else as asked. */
static enum status resize(struct invocation *call, const struct run_session *s, double gpus, struct run_session *out)
{
    const struct experiment *e = &s->experiment;
    int64_t unit = size_unit(s), n = whole_size(s, gpus);
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
    double spares = ceil((double)s->options.recovery.spares * (double)n / e->gpus - 1e-9);
    char why[160];
    call->diags = sub.diags;
    free(overrides);
    if (status == STATUS_OK && option_check_number(call, "spares", spares, why, sizeof why) != STATUS_OK) {
        diag_error(&call->diags, PLACE_NONE, "--sweep gpus=%" PRId64 ": the spares, which grow with the GPUs: %s", n, why);
        return STATUS_BAD_INPUT;
    }
    out->options.recovery.spares = status == STATUS_OK ? (int)spares : 0;
    return status;
}

/* A sweep under way. */
struct sweeping {
    struct invocation *call;
    struct run_session *session; /* takes the values of each point in turn */
    const struct run_grid *grid;
    int64_t n; /* replicas of a point */
    struct campaign campaign;
    struct run_point *points; /* [grid->n_points] */
};

/* This rank's share of the replicas of point `i`, whose values the session has. */
static enum status run_point(struct sweeping *w, struct run_session *s, int i, struct replica_outcome *outcomes)
{
    struct run_point *point = &w->points[i];
    point->options = s->options;
    point->gpus = s->experiment.gpus;
    point->global_batch = s->experiment.job.global_batch;
    point->failover = s->failover;
    point->options.failover = s->options.failover ? &point->failover : NULL;
    point->step_time_s = s->report.step_time_s;
    point->step_mfu = s->report.step_mfu;
    point->full_cost = run_token_cost(s, 100);
    const struct run_parts run = run_parts_of(s);
    enum status status = run_parts_check_faults(&run, &w->call->diags);
    return status == STATUS_OK ? campaign_run_own(&w->campaign, &run, w->n, outcomes, &w->call->diags) : status;
}

/* The same with as many GPUs as the point says. */
static enum status run_resized(struct sweeping *w, int i, struct replica_outcome *outcomes)
{
    struct run_session *resized = memory_new(1, sizeof *resized);
    double gpus = run_grid_value(w->grid, run_grid_axis(w->grid, RUN_SWEEP_GPUS), i);
    enum status status = resize(w->call, w->session, gpus, resized);
    if (status == STATUS_OK) {
        const struct run_parts run = run_parts_of(resized);
        run_grid_set(w->grid, i, &run);
        status = run_point(w, resized, i, outcomes);
    }
    run_session_free(resized);
    free(resized);
    return status;
}

/* The replicas of point `i`, for run_grid_run. */
static enum status run_one(void *context, int i, struct replica_outcome *outcomes)
{
    struct sweeping *w = context;
    if (run_grid_axis(w->grid, RUN_SWEEP_GPUS) >= 0)
        return run_resized(w, i, outcomes);
    const struct run_parts run = run_parts_of(w->session);
    run_grid_set(w->grid, i, &run);
    return run_point(w, w->session, i, outcomes);
}

/* Warnings before the sweep starts, for its shortest interval and its fewest spares. */
static void warn_ahead(struct invocation *call, const struct run_session *s, const struct run_grid *grid)
{
    int interval = run_grid_axis(grid, RUN_SWEEP_INTERVAL);
    run_warn_interval(call, s,
                      interval >= 0 ? nanos_from_seconds(grid->axes[interval].values[0]) : s->options.checkpoint.interval);
    int spares = run_grid_axis(grid, RUN_SWEEP_SPARES);
    run_note_hot_spares(call, s, spares >= 0 ? (int)grid->axes[spares].values[0] : s->options.recovery.spares);
}

enum status run_sweep(struct invocation *call, struct run_session *s)
{
    struct run_grid *grid = memory_new(1, sizeof *grid);
    struct sweeping w = {.call = call, .session = s, .grid = grid};
    enum status status = grid_parse(call, grid) ? STATUS_OK : STATUS_USAGE;
    if (status == STATUS_OK && run_grid_axis(grid, RUN_SWEEP_MTTF) >= 0 && !s->has_model) {
        diag_error(&call->diags, PLACE_NONE, "--sweep mttf: a trace has fixed failures; draw them with --fault-model");
        status = STATUS_USAGE;
    }
    if (status == STATUS_OK) {
        warn_ahead(call, s, grid);
        round_sizes(call, s, grid);
        w.n = s->has_model || s->has_policy ? run_replica_count(call, SEARCH_REPLICAS) : 1;
        w.points = memory_new((size_t)grid->n_points, sizeof *w.points);
        const struct run_parts run = run_parts_of(s);
        struct progress progress;
        w.campaign = run_campaign(call, w.n * grid->n_points, &progress);
        status = campaign_open(&w.campaign, &run, option_text(call, "resume"), grid->text, &call->diags);
        status = status == STATUS_OK ? run_grid_run(grid, w.n, &w.campaign.processes, run_one, &w, w.points)
                                     : outcomes_share(&w.campaign.processes, NULL, 1, 0, status);
        progress_end(&progress);
        if (status == STATUS_OK)
            status = run_sweep_report(call, s, grid, w.points, w.n);
        campaign_close(&w.campaign);
    }
    free(w.points);
    free(grid);
    return status;
}
