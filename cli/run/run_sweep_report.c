/* What the points of a sweep say: a line for each. */
#include <stdlib.h>

#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/run/run_sweep.h"

#define DAY_S 86400.0

static double point_cost(const struct run_point *point)
{
    return point->goodput.mean > 0 ? point->full_cost / (point->goodput.mean / 100) : 0;
}

/* The value that the user specified; for GPUs, the largest number that layouts and nodes allow. */
static double shown_value(const struct run_grid *grid, int axis, int i, const struct run_point *points)
{
    return grid->axes[axis].key == RUN_SWEEP_GPUS ? points[i].gpus : run_grid_value(grid, axis, i);
}

/* Do batch and spares grow with the GPUs? */
static bool is_weak_scaling(const struct run_grid *grid)
{
    return run_grid_axis(grid, RUN_SWEEP_GPUS) >= 0;
}

/* Spares of which there is a share of a node more or less: what steps for no reason but that. */
static bool has_stepped_spares(const struct run_session *s, const struct run_grid *grid)
{
    return is_weak_scaling(grid) && run_grid_axis(grid, RUN_SWEEP_SPARES) < 0 && s->options.recovery.spares > 0;
}

static void spares_note(const struct run_session *s, char *text, size_t size)
{
    char gpus[32];
    snprintf(text, size,
             "spares grow with the GPUs (%d for %s, rounded up to whole nodes), so waiting time has a kink where their number "
             "steps",
             s->options.recovery.spares, grouped(s->experiment.gpus, gpus, sizeof gpus));
}

/* For people, the unit in which all values of an axis are handy. */
static double axis_unit(const struct run_sweep_axis *axis, bool csv, const char **name)
{
    double high = axis->values[axis->n - 1];
    bool is_time = run_sweep_is_time(axis->key);
    double unit = !is_time || csv ? 1 : high >= 5 * DAY_S ? DAY_S : high >= 2 * 3600 ? 3600 : high >= 120 ? 60 : 1;
    *name = !is_time ? NULL : unit >= DAY_S ? "d" : unit >= 3600 ? "h" : unit >= 60 ? "min" : "s";
    return unit;
}

static void size_columns(const struct run_grid *grid, struct table *table)
{
    if (is_weak_scaling(grid))
        table_column(table, "batch", NULL, ALIGN_RIGHT);
    if (is_weak_scaling(grid) && run_grid_axis(grid, RUN_SWEEP_SPARES) < 0)
        table_column(table, "spares", NULL, ALIGN_RIGHT);
}

static void size_cells(const struct run_grid *grid, const struct run_point *point, struct table *table)
{
    if (is_weak_scaling(grid))
        table_cell(table, "%lld", (long long)point->global_batch);
    if (is_weak_scaling(grid) && run_grid_axis(grid, RUN_SWEEP_SPARES) < 0)
        table_cell(table, "%d", point->options.recovery.spares);
}

/* The swept columns. In text, the sizes that grow with a swept one follow it; in CSV they follow all older columns. */
static void columns(const struct run_grid *grid, const struct run_point *points, bool csv, struct table *table)
{
    static const char *const end_titles[] = {"ends p05", "ends median", "ends p95"};
    for (int a = 0; a < grid->n_axes; a++) {
        const char *unit;
        (void)axis_unit(&grid->axes[a], csv, &unit);
        table_column(table, run_sweep_key_name(grid->axes[a].key), unit, ALIGN_RIGHT);
    }
    if (!csv)
        size_columns(grid, table);
    table_column(table, "goodput", "%", ALIGN_RIGHT);
    table_column(table, "ci95", "points", ALIGN_RIGHT);
    table_column(table, "ETTR", "%", ALIGN_RIGHT);
    table_column(table, "memoryless", "%", ALIGN_RIGHT);
    table_column(table, "MFU", "%", ALIGN_RIGHT);
    table_column(table, "step", "s", ALIGN_RIGHT);
    if (!csv)
        table_column(table, "away", "nodes", ALIGN_RIGHT);
    if (points[0].full_cost > 0)
        table_column(table, "cost", "per M tokens", ALIGN_RIGHT);
    for (int i = 0; points[0].options.goal > 0 && i < 3; i++)
        table_column(table, end_titles[i], "days", ALIGN_RIGHT);
    if (csv)
        size_columns(grid, table);
    if (csv)
        table_column(table, "nodes away", NULL, ALIGN_RIGHT);
}

static void row(const struct run_grid *grid, const struct run_point *points, int i, bool csv, struct table *table)
{
    const struct run_point *point = &points[i];
    const char *unit;
    for (int a = 0; a < grid->n_axes; a++) {
        double value = shown_value(grid, a, i, points) / axis_unit(&grid->axes[a], csv, &unit);
        table_cell(table, csv || value >= 1000 ? "%.6g" : "%.4g", value);
    }
    if (!csv)
        size_cells(grid, point, table);
    table_cell(table, "%.3f", point->goodput.mean);
    table_cell(table, "%.3f", point->goodput.half_width);
    table_cell(table, "%.3f", point->ettr.mean);
    table_cell(table, "%.3f", point->closed_form);
    table_cell(table, "%.2f", point->goodput.mean * point->step_mfu);
    table_cell(table, "%.4g", point->step_time_s);
    if (!csv)
        table_cell(table, "%.3g", point->away);
    if (points[0].full_cost > 0)
        table_cell(table, "%.4g", point_cost(point));
    const double days[] = {point->end_s.p05 / DAY_S, point->end_s.median / DAY_S, point->end_s.p95 / DAY_S};
    for (int k = 0; points[0].options.goal > 0 && k < 3; k++)
        number_cell(table, "%.2f", days[k]);
    if (csv)
        size_cells(grid, point, table);
    if (csv)
        table_cell(table, "%.6g", point->away);
}

/* "llama3-70b on h100-sxm (dgx-h100), llama3, policy replay, 64 replicas a line: batch and spares grow with the GPUs" */
static void write_head(const struct invocation *call, const struct run_session *s, const struct run_grid *grid, int64_t n)
{
    const struct experiment *e = &s->experiment;
    char gpus[32], count[40] = "", replicas[32];
    if (!is_weak_scaling(grid))
        snprintf(count, sizeof count, "%s x ", grouped(e->gpus, gpus, sizeof gpus));
    fprintf(call->out, "%s on %s%s (%s), %s, policy %s, %s run%s per row%s\n\n", e->model.name, count, e->cluster.gpu.name,
            e->cluster.name, s->has_model ? s->model.name : e->faults.trace, s->has_policy ? s->policy.name : "replay",
            grouped(n, replicas, sizeof replicas), plural(n),
            !is_weak_scaling(grid)                       ? ""
            : run_grid_axis(grid, RUN_SWEEP_SPARES) >= 0 ? "; the batch grows with the GPUs (weak scaling)"
                                                         : "; batch and spares grow with the GPUs (weak scaling)");
}

static void write_table(struct invocation *call, const struct run_session *s, const struct run_grid *grid,
                        const struct run_point *points, int64_t n)
{
    bool csv = call->format == FORMAT_CSV;
    struct table table = {0};
    columns(grid, points, csv, &table);
    for (int i = 0; i < grid->n_points; i++)
        row(grid, points, i, csv, &table);
    if (!csv)
        write_head(call, s, grid, n);
    table_write(&table, call);
    table_free(&table);
    if (!csv)
        note_write(
            call->out, 1,
            "(ci95: half width of the goodput's 95 %% interval; MFU: delivered, attention counted in full; memoryless: ETTR of "
            "exponential failures at this rate with unlimited spares; away: unavailable nodes on average)");
    char note[256];
    if (!csv && has_stepped_spares(s, grid)) {
        spares_note(s, note, sizeof note);
        note_write(call->out, 1, "(%s)", note);
    }
    if (!csv)
        run_assumptions_write(&s->report, call->out);
}

/* --- JSON --- */

static json_t *point_json(const struct run_grid *grid, const struct run_point *points, int i)
{
    const struct run_point *point = &points[i];
    json_t *uses = json_object(), *values = json_object();
    for (int use = 0; use < N_TIME_USES; use++)
        json_object_set_new(uses, time_use_name((enum time_use)use), json_real(point->use[use]));
    json_t *object =
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "value", shown_value(grid, 0, i, points), "goodput",
                  point->goodput.mean / 100, "ci95_low", (point->goodput.mean - point->goodput.half_width) / 100, "ci95_high",
                  (point->goodput.mean + point->goodput.half_width) / 100, "ettr", point->ettr.mean / 100, "memoryless",
                  point->closed_form / 100, "mfu_pct", point->goodput.mean * point->step_mfu, "step_time_s", point->step_time_s,
                  "breakdown", uses);
    for (int a = 0; a < grid->n_axes; a++)
        json_object_set_new(values, run_sweep_key_name(grid->axes[a].key), json_real(shown_value(grid, a, i, points)));
    json_object_set_new(object, "values", values);
    json_object_set_new(object, "nodes_away", json_real(point->away));
    json_object_set_new(object, "gpus", json_integer(point->gpus));
    json_object_set_new(object, "global_batch", json_integer(point->global_batch));
    json_object_set_new(object, "spares", json_integer(point->options.recovery.spares));
    if (point->full_cost > 0)
        json_object_set_new(object, "cost_per_million_tokens", json_real(point_cost(point)));
    if (point->options.goal > 0)
        json_object_set_new(object, "end_s", estimate_json(point->end_s));
    return object;
}

static enum status write_json(struct invocation *call, const struct run_session *s, const struct run_grid *grid,
                              const struct run_point *points, int64_t n)
{
    const struct run_sweep_axis *first = &grid->axes[0];
    char *config = experiment_to_json(&s->experiment);
    json_t *root = result_create(call, config), *list = json_array(), *axes = json_array();
    free(config);
    for (int i = 0; i < grid->n_points; i++)
        json_array_append_new(list, point_json(grid, points, i));
    for (int a = 0; a < grid->n_axes; a++)
        json_array_append_new(axes, json_pack("{s:s, s:s, s:i, s:b}", "key", run_sweep_key_name(grid->axes[a].key), "unit",
                                              run_sweep_is_time(grid->axes[a].key) ? "s" : "", "values", grid->axes[a].n,
                                              "logarithmic", grid->axes[a].logarithmic));
    json_object_set_new(root, "sweep",
                        json_pack("{s:s, s:s, s:b, s:I, s:o, s:o}", "key", run_sweep_key_name(first->key), "unit",
                                  run_sweep_is_time(first->key) ? "s" : "", "logarithmic", first->logarithmic, "replicas",
                                  (json_int_t)n, "axes", axes, "points", list));
    json_object_set_new(root, "assumptions", run_assumptions_json(&s->report));
    char note[256];
    json_t *notes = json_array();
    if (has_stepped_spares(s, grid)) {
        spares_note(s, note, sizeof note);
        json_array_append_new(notes, json_string(note));
    }
    json_object_set_new(root, "notes", notes);
    return result_write(call, root);
}

enum status run_sweep_report(struct invocation *call, const struct run_session *s, const struct run_grid *grid,
                             const struct run_point *points, int64_t n)
{
    if (call->format == FORMAT_JSON)
        return write_json(call, s, grid, points, n);
    write_table(call, s, grid, points, n);
    return STATUS_OK;
}
