/* The best plan at each point of a sweep, for programs: JSON, and a line of CSV a point. */
#include <string.h>

#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/plan/plan_sweep_report.h"
#include "model/spec/json_text.h"

/* --- JSON --- */

static json_t *point_json(const struct plan_sweep *sweep, int i)
{
    const struct sweep_point *point = &sweep->points[i];
    char why[sizeof point->why];
    json_t *values = json_object();
    for (int a = 0; a < sweep->axes.n_axes; a++)
        for (int k = 0; k < sweep->axes.axes[a].n_keys; k++)
            json_object_set_new(values, sweep_key_at(&sweep->axes, a, k)->word,
                                json_string(sweep_value_at(&sweep->axes, a, k, i)));
    if (point->why[0])
        return json_pack("{s:o, s:o, s:b}", "values", values, "why", json_text(point->why), "fits", 0);
    json_t *json =
        json_pack("{s:o, s:o, s:s, s:s, s:i, s:I, s:I, s:s, s:b}", "values", values, "model", json_text(point->model), "cluster",
                  point->cluster, "gpu", point->gpu, "gpus", point->gpus, "global_batch", (json_int_t)point->global_batch,
                  "seq_len", (json_int_t)point->seq_len, "precision", point->precision, "fits", point->fits);
    if (!point->fits) {
        json_object_set_new(json, "why", json_text(sweep_point_why(point, why, sizeof why)));
        return json;
    }
    json_object_set_new(json, "tokens_per_s", json_real(point->best.tokens_per_s));
    if (sweep_scaling(sweep, i) > 0)
        json_object_set_new(json, "scaling_pct", json_real(100 * sweep_scaling(sweep, i)));
    if (point->tokens > 0) {
        json_object_set_new(json, "tokens", json_real(point->tokens));
        json_object_set_new(json, "days", json_real(point->days));
        json_object_set_new(json, "gpu_hours", json_real(point->gpu_hours));
    }
    if (point->cost > 0) {
        json_object_set_new(json, "gpu_price", json_real(point->gpu_price));
        json_object_set_new(json, "cost", json_real(point->cost));
    } else if (sweep_is_unpriced(sweep, i))
        json_object_set_new(json, "cost", json_null());
    json_object_set_new(json, "energy_at_most",
                        energy_json(&point->power[sweep->counted], point->gpus, point->gpu_hours, point->best.tokens_per_s));
    json_object_set(json, "plan", point->best.json);
    return json;
}

enum status sweep_write_json(const struct plan_sweep *sweep, struct invocation *call)
{
    const struct plan_axes *axes = &sweep->axes;
    json_t *root = result_create(call, sweep_first_real(sweep)->config), *keys = json_array(), *points = json_array();
    for (int a = 0; a < axes->n_axes; a++) {
        json_t *together = json_array();
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            json_array_append_new(together, json_string(sweep_key_at(axes, a, k)->word));
        json_array_append_new(keys, json_pack("{s:o, s:i}", "keys", together, "values", axes->axes[a].n_values));
    }
    for (int i = 0; i < axes->n_points; i++)
        json_array_append_new(points, point_json(sweep, i));
    json_t *scaled = json_pack("{s:o, s:o}", "axes", keys, "points", points);
    if (sweep->cheapest >= 0)
        json_object_set_new(scaled, "cheapest", json_integer(sweep->cheapest));
    if (sweep->within_s > 0)
        json_object_set_new(scaled, "least", json_string(sweep_least_choices[sweep->least]));
    json_object_set_new(root, "scaling", scaled);
    return result_write(call, root);
}

/* --- CSV --- */

static void csv_numbers(struct table *table, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (values[i] > 0)
            table_cell(table, "%.12g", values[i]);
        else
            table_cell(table, "%s", "");
}

/* Has every row a column of its own for this key? Dimensions of layouts have none where nothing fits. */
static bool has_column(const struct sweep_key *key)
{
    static const char *const paths[] = {"model",       "cluster",      "gpu", "cluster.gpus", "job.global_batch",
                                        "job.seq_len", "job.precision"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(key->path, paths[i]) == 0)
            return true;
    return false;
}

/* What else is swept, as it was asked for: of point `i`, or their titles where it is -1. Behind all others, which keep their
 * places. */
static void csv_swept(const struct plan_axes *axes, int i, struct table *table)
{
    char title[sizeof axes->axes->keys->word + sizeof "sweep "];
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            if (has_column(sweep_key_at(axes, a, k)))
                continue;
            else if (i >= 0)
                table_cell(table, "%s", sweep_value_at(axes, a, k, i));
            else {
                snprintf(title, sizeof title, "sweep %s", sweep_key_at(axes, a, k)->word);
                table_column(table, title, NULL, ALIGN_LEFT);
            }
}

void sweep_write_csv(const struct plan_sweep *sweep, const struct invocation *call)
{
    static const struct {
        const char *title, *unit;
    } columns[] = {{"model", NULL},        {"cluster", NULL}, {"gpu", NULL},       {"gpus", NULL},
                   {"global batch", NULL}, {"seq len", NULL}, {"precision", NULL}, {"tokens_per_s", NULL},
                   {"scaling", "%"},       {"days", NULL},    {"gpu_hours", NULL}, {"cost", NULL}};
    struct table table = {0};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        table_column(&table, columns[i].title, columns[i].unit, ALIGN_LEFT);
    size_t own = table.n_columns;
    plan_columns_csv(&table);
    table_column(&table, "energy at most", "j", ALIGN_LEFT);
    table_column(&table, "energy counted", NULL, ALIGN_LEFT);
    size_t swept = table.n_columns;
    csv_swept(&sweep->axes, -1, &table);
    for (int i = 0; i < sweep->axes.n_points; i++) {
        const struct sweep_point *point = &sweep->points[i];
        const double values[] = {point->best.tokens_per_s, 100 * sweep_scaling(sweep, i), point->days, point->gpu_hours,
                                 point->cost};
        if (point->why[0])
            continue;
        table_cell(&table, "%s", point->model);
        table_cell(&table, "%s", point->cluster);
        table_cell(&table, "%s", point->gpu);
        table_cell(&table, "%d", point->gpus);
        table_cell(&table, "%lld", (long long)point->global_batch);
        table_cell(&table, "%lld", (long long)point->seq_len);
        table_cell(&table, "%s", point->precision);
        csv_numbers(&table, values, sizeof values / sizeof values[0]);
        if (point->fits) {
            plan_cells_csv(&table, &point->best.ranked, &point->best.rates, point->best.use, point->best.host_bytes);
            csv_numbers(&table, &point->energy_j, 1);
            table_cell(&table, "%s", point->energy_j > 0 ? power_count_name(sweep->counted) : "");
        }
        for (size_t c = own; c < swept && !point->fits; c++)
            table_cell(&table, "%s", "");
        csv_swept(&sweep->axes, i, &table);
    }
    table_write(&table, call);
    table_free(&table);
}
