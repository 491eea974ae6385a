/* figure_grid.c - runs along a sweep of several values: one curve per combination of the other values, or a map if both axes are
 * long. */
#include <math.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"
#include "plots/figure_data.h"
#include "plots/palette.h"

/* Nobody can distinguish more curves, or read the numbers of a map with more cells. */
enum { CURVES_MAX = 8, NUMBERS_MAX = 300, CELLS_MAX = 1000000 };

/* The axis along which the curves run: the longest. The others' combinations are the curves, in the order of the points, in which
 * the first axis changes fastest. */
struct grid {
    const json_t *sweep, *axes, *points;
    size_t n_axes, along;
    size_t n, n_points; /* points of a curve, and of all */
};

static size_t values_of(const struct grid *grid, size_t axis)
{
    json_int_t n = json_integer_value(json_object_get(json_array_get(grid->axes, axis), "values"));
    return n > 0 && n <= CELLS_MAX ? (size_t)n : 0;
}

static const char *key_of(const struct grid *grid, size_t axis)
{
    const char *key = json_string_value(json_object_get(json_array_get(grid->axes, axis), "key"));
    return key ? key : "";
}

static double value_at(const struct grid *grid, size_t point, size_t axis)
{
    return figure_number(json_object_get(json_array_get(grid->points, point), "values"), key_of(grid, axis));
}

/* Points between two neighbours along the curves' axis. */
static size_t stride_of(const struct grid *grid)
{
    size_t stride = 1;
    for (size_t a = 0; a < grid->along; a++)
        stride *= values_of(grid, a);
    return stride;
}

/* The i-th point of a curve. */
static size_t point_of(const struct grid *grid, size_t curve, size_t i)
{
    size_t stride = stride_of(grid);
    return curve / stride * stride * grid->n + curve % stride + i * stride;
}

bool figure_is_grid(const json_t *result)
{
    return json_array_size(json_object_get(json_object_get(result, "sweep"), "axes")) > 1;
}

static bool read_grid(const json_t *result, struct grid *grid)
{
    *grid = (struct grid){.sweep = json_object_get(result, "sweep")};
    grid->axes = json_object_get(grid->sweep, "axes");
    grid->points = json_object_get(grid->sweep, "points");
    grid->n_axes = json_array_size(grid->axes);
    grid->n_points = 1;
    for (size_t a = 0; a < grid->n_axes; a++) {
        if (values_of(grid, a) > values_of(grid, grid->along))
            grid->along = a;
        grid->n_points *= values_of(grid, a);
        if (grid->n_points == 0 || grid->n_points > CELLS_MAX)
            return false;
    }
    grid->n = values_of(grid, grid->along);
    return grid->n_points == json_array_size(grid->points) && grid->n > 1;
}

/* "4", "15.0 min". */
static char *value_text(const struct grid *grid, size_t axis, double value, char *buffer, size_t size)
{
    const char *unit = json_string_value(json_object_get(json_array_get(grid->axes, axis), "unit"));
    if (unit && *unit && value > 0)
        return quantity_format(value, DIM_TIME, buffer, size);
    snprintf(buffer, size, "%.7g", value);
    return buffer;
}

static void write_curves(const struct grid *grid, size_t n_curves, double scale, FILE *out)
{
    fputs("$series << EOD\n", out);
    for (size_t c = 0; c < n_curves; c++) {
        char name[160] = "", value[40];
        for (size_t a = 0; a < grid->n_axes; a++)
            if (a != grid->along)
                text_append(name, sizeof name, "%s%s", *name ? ", " : "",
                            value_text(grid, a, value_at(grid, point_of(grid, c, 0), a), value, sizeof value));
        fprintf(out, "%zu\t%u\t", c, (unsigned)palette_series((int)c));
        figure_write_text(out, name);
        fputc('\n', out);
    }
    fputs("EOD\n$columns << EOD\n", out);
    for (size_t i = 0; i < grid->n; i++)
        fprintf(out, "%zu\t%.3g\n", i, value_at(grid, point_of(grid, 0, i), grid->along) / scale);
    fputs("EOD\n", out);
}

static void write_points(const struct grid *grid, size_t n_curves, double scale, FILE *out)
{
    double low = 1;
    fputs("$points << EOD\n", out);
    for (size_t c = 0; c < n_curves; c++)
        for (size_t i = 0; i < grid->n; i++) {
            size_t at = point_of(grid, c, i);
            const json_t *point = json_array_get(grid->points, at);
            low = fmin(low, figure_number(point, "ci95_low"));
            fprintf(out, "%.6g\t%.6g\t%.6g\t%.6g\t%zu\t%zu\n", value_at(grid, at, grid->along) / scale,
                    100 * figure_number(point, "goodput"), 100 * figure_number(point, "ci95_low"),
                    100 * figure_number(point, "ci95_high"), c, i);
        }
    fprintf(out, "EOD\nbottom = %.0f\n", fmax(0, 10 * floor(10 * low - 0.1)));
}

static void write_names(const struct grid *grid, double scale, const char *unit, FILE *out)
{
    const json_t *along = json_array_get(grid->axes, grid->along);
    fprintf(out, "key = \"");
    figure_write_text(out, figure_axis_name(key_of(grid, grid->along)));
    fprintf(out, "%s\"\nothers = \"", unit);
    for (size_t a = 0, n = 0; a < grid->n_axes; a++)
        if (a != grid->along) {
            fputs(n++ ? ", " : "", out);
            figure_write_text(out, figure_axis_name(key_of(grid, a)));
        }
    fprintf(out, "\"\nlogarithmic = %d\nlow = %.6g\nhigh = %.6g\nreplicas = %.0f\npowers_of_two = %d\n",
            json_is_true(json_object_get(along, "logarithmic")), value_at(grid, 0, grid->along) / scale,
            value_at(grid, grid->n_points - 1, grid->along) / scale, figure_number(grid->sweep, "replicas"),
            strcmp(key_of(grid, grid->along), "gpus") == 0);
}

enum status figure_data_grid(const struct figure_input *input, FILE *out, struct diags *diags)
{
    struct grid grid;
    const char *unit;
    if (!read_grid(input->result, &grid)) {
        diag_error(diags, (struct place){.file = input->name},
                   "this result has no sweep; draw what 'msim run --sweep --format json' writes");
        return STATUS_BAD_INPUT;
    }
    size_t n_curves = grid.n_points / grid.n;
    bool map = n_curves > CURVES_MAX;
    if (map && grid.n_axes > 2) {
        diag_error(diags, (struct place){.file = input->name},
                   "%zu curves are too many for one figure; sweep two things, or fewer values than %d of the others together",
                   n_curves, CURVES_MAX + 1);
        return STATUS_BAD_INPUT;
    }
    const char *along = json_string_value(json_object_get(json_array_get(grid.axes, grid.along), "unit"));
    double scale = figure_axis_unit(along, value_at(&grid, grid.n_points - 1, grid.along), &unit);
    write_points(&grid, n_curves, scale, out);
    write_curves(&grid, n_curves, scale, out);
    write_names(&grid, scale, unit, out);
    fprintf(out, "n_series = %zu\nn_columns = %zu\nis_map = %d\nnumbers = %d\n", n_curves, grid.n, map,
            grid.n_points <= NUMBERS_MAX);
    return STATUS_OK;
}
