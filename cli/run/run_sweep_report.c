/* What the points of a sweep say: a line for each. */
#include <math.h>
#include <stdlib.h>

#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/run/run_sweep.h"
#include "traces/table/csv.h"

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

/* --- rows --- */

/* A sweep, and one of its points. */
struct run_swept {
    const struct run_session *session;
    const struct run_grid *grid;
    const struct run_point *points, *point;
    int64_t n; /* replicas of a point */
    int i;
};

static struct run_swept swept_at(const struct run_swept *sweep, int i)
{
    struct run_swept at = *sweep;
    at.point = &sweep->points[i];
    at.i = i;
    return at;
}

static json_t *values_json(const struct run_swept *s)
{
    json_t *values = json_object();
    for (int a = 0; a < s->grid->n_axes; a++)
        json_object_set_new(values, run_sweep_key_names[s->grid->axes[a].key],
                            json_real(shown_value(s->grid, a, s->i, s->points)));
    return values;
}

static json_t *uses_json(const double use[N_TIME_USES])
{
    json_t *uses = json_object();
    for (int i = 0; i < N_TIME_USES; i++)
        json_object_set_new(uses, time_use_name((enum time_use)i), json_real(use[i]));
    return uses;
}

/* What grows with the GPUs has a column. */
static bool has_spares(const struct run_grid *grid)
{
    return is_weak_scaling(grid) && run_grid_axis(grid, RUN_SWEEP_SPARES) < 0;
}

static struct value days_value(const struct run_swept *s, double seconds)
{
    struct value days = isfinite(seconds) ? as_real(seconds / DAY_S) : as_text("-");
    return present_if(s->points[0].options.goal > 0, days);
}

static struct value end_value(const struct run_point *point)
{
    return as_json(point->options.goal > 0 ? estimate_json(point->end_s) : NULL);
}

#define SHOWN(FORMAT) .digits = FORMAT, .show = FORMAT
#define RUN_POINT_ROWS(ROW)                                                                                                      \
    ROW(run_swept, value, as_real(shown_value(s->grid, 0, s->i, s->points)), "", JSON, "value of the first key")                 \
    ROW(run_swept, goodput, as_real(s->point->goodput.mean / 100), "", JSON, "mean goodput of the replicas")                     \
    ROW(run_swept, ci95_low, as_real((s->point->goodput.mean - s->point->goodput.half_width) / 100), "", JSON,                   \
        "low end of its 95 % interval")                                                                                          \
    ROW(run_swept, ci95_high, as_real((s->point->goodput.mean + s->point->goodput.half_width) / 100), "", JSON, "its high end")  \
    ROW(run_swept, goodput_pct, as_real(s->point->goodput.mean), "%", CSV, "mean goodput", .title = "goodput", SHOWN("%.3f"))    \
    ROW(run_swept, ci95_points, as_real(s->point->goodput.half_width), "points", CSV, "half of its 95 % interval",               \
        .title = "ci95", SHOWN("%.3f"))                                                                                          \
    ROW(run_swept, ettr, as_real(s->point->ettr.mean / 100), "", JSON, "mean ETTR")                                              \
    ROW(run_swept, ettr_pct, as_real(s->point->ettr.mean), "%", CSV, "mean ETTR", .title = "ETTR", SHOWN("%.3f"))                \
    ROW(run_swept, memoryless, as_real(s->point->closed_form / 100), "", JSON,                                                   \
        "ETTR of exponential failures at this rate with unlimited spares")                                                       \
    ROW(run_swept, memoryless_pct, as_real(s->point->closed_form), "%", CSV, "the same", .title = "memoryless", SHOWN("%.3f"))   \
    ROW(run_swept, mfu_pct, as_real(s->point->goodput.mean * s->point->step_mfu), "%", JSON | CSV,                               \
        "delivered MFU, attention counted in full", .title = "MFU", SHOWN("%.2f"))                                               \
    ROW(run_swept, step_time_s, as_real(s->point->step_time_s), "s", JSON | CSV, "duration of a step", .column = "step_s",       \
        .title = "step", SHOWN("%.4g"))                                                                                          \
    ROW(run_swept, breakdown, as_json(uses_json(s->point->use)), "", JSON, "shares of the horizon by use")                       \
    ROW(run_swept, values, as_json(values_json(s)), "", JSON, "values of all keys")                                              \
    ROW(run_swept, nodes_away, as_real(s->point->away), "", JSON | CSV, "unavailable nodes on average", .digits = "%.6g",        \
        .title = "away", .text_unit = "nodes", .show = "%.3g")                                                                   \
    ROW(run_swept, gpus, as_count(s->point->gpus), "", JSON, "number of GPUs")                                                   \
    ROW(run_swept, global_batch, as_count(s->point->global_batch), "", JSON | CSV, "sequences per step", .column = "batch",      \
        .title = "batch", .show = "%.0f")                                                                                        \
    ROW(run_swept, spares, as_count(s->point->options.recovery.spares), "", JSON | CSV, "spare nodes", .show = "%.0f")           \
    ROW(run_swept, cost_per_million_tokens, present_if(s->point->full_cost > 0, as_real(point_cost(s->point))), "", JSON | CSV,  \
        "money per million tokens, spares included", .column = "cost_per_m_tokens", .title = "cost",                             \
        .text_unit = "per M tokens", SHOWN("%.4g"))                                                                              \
    ROW(run_swept, end_s, end_value(s->point), "s", JSON, "when the budget of tokens is trained")                                \
    ROW(run_swept, ends_p05_days, days_value(s, s->point->end_s.p05), "days", CSV, "5th percentile of it", .title = "ends p05",  \
        SHOWN("%.2f"))                                                                                                           \
    ROW(run_swept, ends_median_days, days_value(s, s->point->end_s.median), "days", CSV, "its median", .title = "ends median",   \
        SHOWN("%.2f"))                                                                                                           \
    ROW(run_swept, ends_p95_days, days_value(s, s->point->end_s.p95), "days", CSV, "its 95th percentile", .title = "ends p95",   \
        SHOWN("%.2f"))
RESULT_ROWS(run_point_rows, RUN_POINT_ROWS)

#define RUN_AXIS_ROWS(ROW)                                                                                                       \
    ROW(run_sweep_axis, key, as_text(run_sweep_key_names[s->key]), "", JSON, "what is swept")                                    \
    ROW(run_sweep_axis, unit, as_text(run_sweep_is_time(s->key) ? "s" : ""), "", JSON, "unit of its values")                     \
    ROW(run_sweep_axis, values, as_count(s->n), "", JSON, "number of values")                                                    \
    ROW(run_sweep_axis, logarithmic, as_flag(s->logarithmic), "", JSON, "whether they have equal ratios")
RESULT_ROWS(run_axis_rows, RUN_AXIS_ROWS)

/* --- text and CSV --- */

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

/* Columns behind the swept ones. In text, the sizes that grow with a swept one follow it; in CSV they follow all older columns.
 */
static const struct result_row *pick_columns(const struct run_swept *sweep, bool csv, struct result_row picked[MAX_PICKED])
{
    const char *batch = is_weak_scaling(sweep->grid) ? "global_batch" : "", *spares = has_spares(sweep->grid) ? "spares" : "";
    const char *const keys[] = {csv ? "" : batch,
                                csv ? "" : spares,
                                "goodput_pct",
                                "ci95_points",
                                "ettr_pct",
                                "memoryless_pct",
                                "mfu_pct",
                                "step_time_s",
                                csv ? "" : "nodes_away",
                                "cost_per_million_tokens",
                                "ends_p05_days",
                                "ends_median_days",
                                "ends_p95_days",
                                csv ? batch : "",
                                csv ? spares : "",
                                csv ? "nodes_away" : "",
                                NULL};
    return rows_pick(run_point_rows, keys, picked);
}

static void write_csv(const struct run_swept *sweep, FILE *out)
{
    const struct run_grid *grid = sweep->grid;
    struct result_row picked[MAX_PICKED];
    const char *unit;
    for (int a = 0; a < grid->n_axes; a++) {
        (void)axis_unit(&grid->axes[a], true, &unit);
        csv_title_write(out, a == 0, run_sweep_key_names[grid->axes[a].key], unit);
    }
    const struct run_swept first = swept_at(sweep, 0);
    rows_csv_heading(pick_columns(sweep, true, picked), &first, false, out);
    fputc('\n', out);
    for (int i = 0; i < grid->n_points; i++) {
        const struct run_swept at = swept_at(sweep, i);
        char value[32];
        for (int a = 0; a < grid->n_axes; a++) {
            snprintf(value, sizeof value, "%.6g", shown_value(grid, a, i, sweep->points));
            csv_write_cell(out, a == 0, value);
        }
        rows_csv_cells(picked, &at, false, out);
        fputc('\n', out);
    }
}

static void write_table(const struct run_swept *sweep, const struct invocation *call)
{
    const struct run_grid *grid = sweep->grid;
    struct table table = {0};
    struct result_row picked[MAX_PICKED];
    double units[RUN_SWEEP_AXES];
    for (int a = 0; a < grid->n_axes; a++) {
        const char *unit;
        units[a] = axis_unit(&grid->axes[a], false, &unit);
        table_column(&table, run_sweep_key_names[grid->axes[a].key], unit, ALIGN_RIGHT);
    }
    const struct run_swept first = swept_at(sweep, 0);
    rows_columns(pick_columns(sweep, false, picked), &first, &table);
    for (int i = 0; i < grid->n_points; i++) {
        const struct run_swept at = swept_at(sweep, i);
        for (int a = 0; a < grid->n_axes; a++) {
            double value = shown_value(grid, a, i, sweep->points) / units[a];
            table_cell(&table, value >= 1000 ? "%.6g" : "%.4g", value);
        }
        rows_cells(picked, &at, &table);
    }
    table_write(&table, call);
    table_free(&table);
}

static void write_text(const struct run_swept *sweep, const struct invocation *call)
{
    char note[256];
    write_head(call, sweep->session, sweep->grid, sweep->n);
    write_table(sweep, call);
    note_write(
        call->out, 1,
        "(ci95: half width of the goodput's 95 %% interval; MFU: delivered, attention counted in full; memoryless: ETTR of "
        "exponential failures at this rate with unlimited spares; away: unavailable nodes on average)");
    if (has_stepped_spares(sweep->session, sweep->grid)) {
        spares_note(sweep->session, note, sizeof note);
        note_write(call->out, 1, "(%s)", note);
    }
    run_assumptions_write(&sweep->session->report, call->out);
}

/* --- JSON --- */

static json_t *axes_json(const struct run_grid *grid)
{
    json_t *axes = json_array();
    for (int a = 0; a < grid->n_axes; a++)
        json_array_append_new(axes, rows_object(run_axis_rows, &grid->axes[a]));
    return axes;
}

static json_t *points_json(const struct run_swept *sweep)
{
    json_t *points = json_array();
    for (int i = 0; i < sweep->grid->n_points; i++) {
        const struct run_swept at = swept_at(sweep, i);
        json_array_append_new(points, rows_object(run_point_rows, &at));
    }
    return points;
}

static json_t *notes_json(const struct run_swept *sweep)
{
    char note[256];
    json_t *notes = json_array();
    if (has_stepped_spares(sweep->session, sweep->grid)) {
        spares_note(sweep->session, note, sizeof note);
        json_array_append_new(notes, json_string(note));
    }
    return notes;
}

static enum status write_json(struct invocation *call, const struct run_swept *sweep)
{
    const struct run_sweep_axis *first = &sweep->grid->axes[0];
    char *config = experiment_to_json(&sweep->session->experiment);
    json_t *root = result_create(call, config);
    free(config);
    json_object_set_new(root, "sweep",
                        json_pack("{s:s, s:s, s:b, s:I, s:o, s:o}", "key", run_sweep_key_names[first->key], "unit",
                                  run_sweep_is_time(first->key) ? "s" : "", "logarithmic", first->logarithmic, "replicas",
                                  (json_int_t)sweep->n, "axes", axes_json(sweep->grid), "points", points_json(sweep)));
    json_object_set_new(root, "assumptions", run_assumptions_json(&sweep->session->report));
    json_object_set_new(root, "notes", notes_json(sweep));
    return result_write(call, root);
}

enum status run_sweep_report(struct invocation *call, const struct run_session *s, const struct run_grid *grid,
                             const struct run_point *points, int64_t n)
{
    const struct run_swept sweep = {.session = s, .grid = grid, .points = points, .n = n};
    if (call->format == FORMAT_JSON)
        return write_json(call, &sweep);
    if (call->format == FORMAT_CSV)
        write_csv(&sweep, call->out);
    else
        write_text(&sweep, call);
    return STATUS_OK;
}
