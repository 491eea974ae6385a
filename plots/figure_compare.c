/* figure_compare.c - predicted against measured times, and their errors, from the rows and sources of a comparison. */
#include <math.h>
#include <string.h>

#include "plots/figure_data.h"
#include "plots/palette.h"

static const json_t *array_of(const struct figure_input *input, const char *key, struct diags *diags)
{
    const json_t *array = json_object_get(input->result, key);
    if (json_is_array(array) && json_array_size(array) > 0)
        return array;
    diag_error(diags, (struct place){.file = input->name}, "this result has no %s; draw what 'msim compare --format json' writes",
               key);
    return NULL;
}

static const char *source_of(const json_t *object)
{
    const char *source = json_string_value(json_object_get(object, "source"));
    return source ? source : "";
}

/* The place of a row's source among the sources; sources are few. */
static size_t group_of(const json_t *sources, const json_t *row)
{
    size_t i = 0;
    while (i < json_array_size(sources) && strcmp(source_of(json_array_get(sources, i)), source_of(row)) != 0)
        i++;
    return i;
}

static void write_groups(const json_t *sources, FILE *out)
{
    size_t i;
    json_t *source;
    fputs("$groups << EOD\n", out);
    json_array_foreach((json_t *)sources, i, source)
    {
        char name[128];
        fprintf(out, "%zu\t%u\t%zu\t", i, (unsigned)palette_series((int)i), i % 8);
        figure_write_text(out, figure_short_name(source_of(source), name, sizeof name));
        fprintf(out, "\t%.0f\t%.1f\n", figure_number(source, "n"), figure_number(source, "mape_pct"));
    }
    fputs("EOD\n", out);
}

enum status figure_data_scatter(const struct figure_input *input, FILE *out, struct diags *diags)
{
    const json_t *rows = array_of(input, "rows", diags), *sources = rows ? array_of(input, "sources", diags) : NULL;
    double low = INFINITY, high = 0;
    size_t i;
    json_t *row;
    if (!sources)
        return STATUS_BAD_INPUT;
    fputs("$points << EOD\n", out);
    json_array_foreach((json_t *)rows, i, row)
    {
        double measured = figure_number(row, "measured_s"), predicted = figure_number(row, "predicted_s");
        if (!(measured > 0) || !(predicted > 0))
            continue;
        fprintf(out, "%.6g\t%.6g\t%zu\n", measured, predicted, group_of(sources, row));
        low = fmin(low, fmin(measured, predicted));
        high = fmax(high, fmax(measured, predicted));
    }
    fputs("EOD\n", out);
    if (!(high > 0)) {
        diag_error(diags, (struct place){.file = input->name}, "no row has both a measured and a predicted time");
        return STATUS_BAD_INPUT;
    }
    const json_t *summary = json_object_get(input->result, "summary");
    write_groups(sources, out);
    fprintf(out, "low = %.6g\nhigh = %.6g\nn_groups = %zu\nn_points = %.0f\nmape = %.6g\n", low, high, json_array_size(sources),
            figure_number(summary, "n"), figure_number(summary, "mape_pct"));
    return STATUS_OK;
}

enum status figure_data_errors(const struct figure_input *input, FILE *out, struct diags *diags)
{
    const json_t *sources = array_of(input, "sources", diags);
    size_t i, n = 0;
    json_t *source;
    if (!sources)
        return STATUS_BAD_INPUT;
    fputs("$errors << EOD\n", out);
    json_array_foreach((json_t *)sources, i, source)
    {
        char name[128];
        if (!(figure_number(source, "n") > 0))
            continue;
        fprintf(out, "%zu\t%.6g\t%.6g\t%.6g\t%.6g\t%.0f\t", n++, figure_number(source, "mape_pct"),
                figure_number(source, "median_ape_pct"), figure_number(source, "p90_ape_pct"), figure_number(source, "bias_pct"),
                figure_number(source, "n"));
        figure_write_text(out, figure_short_name(source_of(source), name, sizeof name));
        fputc('\n', out);
    }
    fputs("EOD\n", out);
    if (n == 0) {
        diag_error(diags, (struct place){.file = input->name}, "no source has a row with both times");
        return STATUS_BAD_INPUT;
    }
    const json_t *summary = json_object_get(input->result, "summary");
    fprintf(out, "n_rows = %zu\ntext_lines = %zu\nmape = %.6g\nmacro_mape = %.6g\n", n, n + 6, figure_number(summary, "mape_pct"),
            figure_number(summary, "macro_mape_pct"));
    return STATUS_OK;
}
