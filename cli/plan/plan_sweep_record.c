/* The best plan at each point of a sweep, for programs: JSON, and a line of CSV a point. */
#include <stdlib.h>
#include <string.h>

#include "cli/job/plan_record.h"
#include "cli/output/notes.h"
#include "cli/output/result.h"
#include "cli/plan/plan_sweep.h"
#include "traces/table/csv.h"

const char *const sweep_least_choices[] = {
    [LEAST_GPU_HOURS] = "gpu-hours", [LEAST_ENERGY] = "energy", [LEAST_COST] = "cost", NULL};

/* --- rows --- */

struct sweep_line sweep_line_at(const struct plan_sweep *sweep, int i)
{
    return (struct sweep_line){sweep, &sweep->found.points[i], &sweep->found.points[i].experiment, i};
}

static json_t *values_json(const struct sweep_line *s)
{
    const struct plan_axes *axes = &s->sweep->axes;
    json_t *values = json_object();
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            json_object_set_new(values, sweep_key_at(axes, a, k)->word, json_string(sweep_value_at(axes, a, k, s->i)));
    return values;
}

static struct value why_value(const struct sweep_line *s)
{
    char why[SWEEP_WHY_TEXT];
    return present_if(!s->point->fits, as_text(sweep_point_why(s->point, why)));
}

/* Zero is none: no key, and an empty cell. */
static struct value positive(double number, struct value value)
{
    return in_json_if(number > 0, known_if(number > 0, value));
}

static struct value positive_real(double number)
{
    return positive(number, as_real(number));
}

static struct value grouped_real(double number)
{
    char text[32];
    return positive(number, shown_as(as_real(number), "%s", grouped((int64_t)(number + 0.5), text, sizeof text)));
}

/* Unknown where others have a price. */
static struct value cost_value(const struct sweep_line *s)
{
    return in_json_if(s->point->cost > 0 || sweep_is_unpriced(s->sweep, s->point), grouped_real(s->point->cost));
}

static json_t *energy_of(const struct plan_point *point)
{
    return point->fits ? energy_json(&point->power, point->experiment.gpus, point->gpu_hours, point->tokens_per_s) : NULL;
}

static struct value energy_value(const struct plan_point *point)
{
    char text[32];
    return known_if(point->energy_j > 0,
                    shown_as(as_real(point->energy_j), "%s", megawatt_hours_text(point->energy_j, text, sizeof text)));
}

static struct value counted_value(const struct sweep_line *s)
{
    return as_text(s->point->energy_j > 0 ? power_count_name(s->sweep->found.counted) : "");
}

static json_t *best_json(const struct plan_point *point)
{
    const struct setting setting = experiment_setting(&point->experiment);
    return point->fits ? plan_json(&point->best, &setting) : NULL;
}

static struct value tokens_value(const struct plan_point *point)
{
    double tokens = point->experiment.job.tokens;
    return present_if(point->fits && tokens > 0, as_real(tokens));
}

#define POINT_ROWS(ROW)                                                                                                          \
    ROW(sweep_line, values, as_json(values_json(s)), "", JSON, "values of the swept keys")                                       \
    ROW(sweep_line, model, as_text(s->e->model.name), "", JSON | CSV, "model")                                                   \
    ROW(sweep_line, cluster, as_text(s->e->cluster.name), "", JSON | CSV, "cluster")                                             \
    ROW(sweep_line, gpu, as_text(s->e->cluster.gpu.name), "", JSON | CSV, "GPU")                                                 \
    ROW(sweep_line, gpus, as_count(s->e->gpus), "", JSON | CSV, "number of GPUs")                                                \
    ROW(sweep_line, global_batch, as_count(s->e->job.global_batch), "", JSON | CSV, "sequences per step")                        \
    ROW(sweep_line, seq_len, as_count(s->e->job.seq_len), "", JSON | CSV, "tokens per sequence")                                 \
    ROW(sweep_line, precision, as_text(precision_name(s->e->job.precision)), "", JSON | CSV, "number format")                    \
    ROW(sweep_line, fits, as_flag(s->point->fits), "", JSON, "whether any layout fits")                                          \
    ROW(sweep_line, why, why_value(s), "", JSON, "why there is no plan")                                                         \
    ROW(sweep_line, tokens_per_s, positive_real(s->point->tokens_per_s), "1/s", JSON | CSV, "tokens per second", TWELVE_DIGITS)  \
    ROW(sweep_line, scaling_pct, positive_real(100 * s->point->scaling), "%", JSON | CSV,                                        \
        "tokens per second and GPU, relative to the first number of GPUs", TWELVE_DIGITS, .title = "scaling", .show = "%.1f")    \
    ROW(sweep_line, tokens, tokens_value(s->point), "", JSON, "budget of tokens")                                                \
    ROW(sweep_line, days, positive_real(s->point->days), "days", JSON | CSV, "time for the budget without failures",             \
        TWELVE_DIGITS, .text_unit = "", .show = "%.1f")                                                                          \
    ROW(sweep_line, gpu_hours, grouped_real(s->point->gpu_hours), "GPU-hours", JSON | CSV, "GPU-hours for the budget",           \
        TWELVE_DIGITS, .title = "GPU-hours", .text_unit = "", .show = "%.0f")                                                    \
    ROW(sweep_line, gpu_price, present_if(s->point->cost > 0, as_real(s->point->gpu_price)), "", JSON, "money per GPU-hour")     \
    ROW(sweep_line, cost, cost_value(s), "", JSON | CSV, "money for the budget", TWELVE_DIGITS, .show = "%.0f")                  \
    ROW(sweep_line, energy_at_most, as_json(energy_of(s->point)), "", JSON,                                                      \
        "upper bound of power and energy; null where no power is published")                                                     \
    ROW(sweep_line, energy_at_most_j, energy_value(s->point), "J", CSV, "upper bound of the energy for the budget",              \
        TWELVE_DIGITS, .title = "energy", .text_unit = "MWh", .show = "%.0f")                                                    \
    ROW(sweep_line, energy_counted, counted_value(s), "", CSV, "what it counts: boards or nodes")                                \
    ROW(sweep_line, plan, as_json(best_json(s->point)), "", JSON, "best plan")
RESULT_ROWS(point_rows, POINT_ROWS)

/* --- JSON --- */

static json_t *axes_json(const struct plan_axes *axes)
{
    json_t *keys = json_array();
    for (int a = 0; a < axes->n_axes; a++) {
        json_t *together = json_array();
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            json_array_append_new(together, json_string(sweep_key_at(axes, a, k)->word));
        json_array_append_new(keys, json_pack("{s:o, s:i}", "keys", together, "values", axes->axes[a].n_values));
    }
    return keys;
}

enum status sweep_write_json(const struct plan_sweep *sweep, struct invocation *call)
{
    static const char *const unread[] = {"values", "why", "fits", NULL}; /* of a point that is no experiment */
    const struct plan_points *found = &sweep->found;
    char *config = experiment_to_json(sweep_first_experiment(sweep));
    struct result_row picked[MAX_PICKED];
    json_t *root = result_create(call, config), *points = json_array();
    free(config);
    for (int i = 0; i < found->n; i++) {
        const struct sweep_line line = sweep_line_at(sweep, i);
        bool read = found->points[i].status == STATUS_OK;
        json_array_append_new(points, rows_object(read ? point_rows : rows_pick(point_rows, unread, picked), &line));
    }
    json_t *scaled = json_pack("{s:o, s:o}", "axes", axes_json(&sweep->axes), "points", points);
    if (found->cheapest >= 0)
        json_object_set_new(scaled, "cheapest", json_integer(found->cheapest));
    if (found->within_s > 0)
        json_object_set_new(scaled, "least", json_string(sweep_least_choices[found->least]));
    json_object_set_new(root, "scaling", scaled);
    return result_write(call, root);
}

/* --- CSV --- */

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
static void csv_swept(const struct plan_axes *axes, int i, FILE *out)
{
    char title[sizeof axes->axes->keys->word + sizeof "sweep "];
    for (int a = 0; a < axes->n_axes; a++)
        for (int k = 0; k < axes->axes[a].n_keys; k++)
            if (has_column(sweep_key_at(axes, a, k)))
                continue;
            else if (i >= 0)
                csv_write_cell(out, false, sweep_value_at(axes, a, k, i));
            else {
                snprintf(title, sizeof title, "sweep %s", sweep_key_at(axes, a, k)->word);
                csv_title_write(out, false, title, NULL);
            }
    fputc('\n', out);
}

void sweep_write_csv(const struct plan_sweep *sweep, FILE *out)
{
    static const char *const first[] = {"model",     "cluster",      "gpu",         "gpus", "global_batch", "seq_len",
                                        "precision", "tokens_per_s", "scaling_pct", "days", "gpu_hours",    "cost",
                                        NULL};
    static const char *const last[] = {"energy_at_most_j", "energy_counted", NULL};
    struct result_row before[MAX_PICKED], behind[MAX_PICKED];
    rows_csv_heading(rows_pick(point_rows, first, before), NULL, true, out);
    plan_csv_heading(false, out);
    rows_csv_heading(rows_pick(point_rows, last, behind), NULL, false, out);
    csv_swept(&sweep->axes, -1, out);
    for (int i = 0; i < sweep->found.n; i++) {
        const struct sweep_line line = sweep_line_at(sweep, i);
        if (line.point->status != STATUS_OK)
            continue;
        const struct setting setting = experiment_setting(line.e);
        struct shown_plan plan = {0};
        if (line.point->fits)
            plan = shown_plan_of(&line.point->best, &setting);
        rows_csv_cells(before, &line, true, out);
        plan_csv_cells(line.point->fits ? &plan : NULL, false, out);
        rows_csv_cells(behind, &line, false, out);
        csv_swept(&sweep->axes, i, out);
    }
}
