/* figure_scaling.c - how a job scales: the best plans along the first axis of a sweep, one line per combination of the others. */
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "plots/figure_data.h"
#include "plots/palette.h"

/* The first of the keys that change together along an axis. */
static const char *word_of(const json_t *axes, size_t axis)
{
    const char *word = json_string_value(json_array_get(json_object_get(json_array_get(axes, axis), "keys"), 0));
    return word ? word : "";
}

static const char *value_of(const json_t *point, const char *word)
{
    const char *value = json_string_value(json_object_get(json_object_get(point, "values"), word));
    return value ? value : "";
}

/* A count that an axis can have; gnuplot reads none that are larger. */
static bool is_number(const char *text, double *value)
{
    static const double MOST = 1e15;
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value > 0 && *value <= MOST;
}

static bool is_word(const json_t *points, size_t n, const char *word)
{
    double value;
    for (size_t i = 0; i < n; i++)
        if (!is_number(value_of(json_array_get(points, i), word), &value))
            return true;
    return false;
}

static bool is_drawn(const json_t *point)
{
    return json_is_true(json_object_get(point, "fits")) && figure_number(point, "tokens_per_s") > 0;
}

static bool any_drawn(const json_t *points)
{
    for (size_t i = 0; i < json_array_size(points); i++)
        if (is_drawn(json_array_get(points, i)))
            return true;
    return false;
}

/* One line: x, tokens a second, what they were if each GPU did what it does at the first x, MFU, the series. */
static void write_line(const json_t *points, size_t begin, size_t n, const char *word, bool words, FILE *out)
{
    double first = 0, value = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *point = json_array_get(points, begin + i);
        double rate = figure_number(point, "tokens_per_s"), per_gpu = rate / figure_number(point, "gpus");
        if (!is_drawn(point))
            continue;
        if (first <= 0)
            first = per_gpu;
        if (words || !is_number(value_of(point, word), &value))
            value = (double)i;
        fprintf(out, "%.10g\t%.6g\t%.6g\t%.6g\t%zu\n", value, rate, first * figure_number(point, "gpus"),
                figure_number(json_object_get(point, "plan"), "mfu_pct"), begin / n);
    }
}

/* At an axis a percent sign begins the format of a number. */
static void write_label(const char *text, FILE *out)
{
    char label[2 * 128];
    size_t n = 0;
    for (; *text && n + 2 < sizeof label; text++) {
        if (*text == '%')
            label[n++] = '%';
        label[n++] = *text;
    }
    label[n] = '\0';
    figure_write_text(out, label);
}

static void write_series(const json_t *axes, const json_t *points, size_t n, size_t n_series, FILE *out)
{
    fprintf(out, "n_series = %zu\n$series << EOD\n", n_series);
    for (size_t s = 0; s < n_series; s++) {
        char name[192] = "";
        for (size_t a = 1; a < json_array_size(axes); a++)
            text_append(name, sizeof name, "%s%s", name[0] ? ", " : "",
                        value_of(json_array_get(points, s * n), word_of(axes, a)));
        fprintf(out, "%zu\t%u\t", s, (unsigned)palette_series((int)s));
        figure_write_text(out, name[0] ? name : "best plan");
        fputc('\n', out);
    }
    fputs("EOD\n$words << EOD\n", out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "%zu\t", i);
        write_label(value_of(json_array_get(points, i), word_of(axes, 0)), out);
        fputc('\n', out);
    }
    fputs("EOD\n", out);
}

/* The keys of all axes but the first, "precision, seq-len", which distinguish the series; empty: one series. */
static void write_others(const json_t *axes, FILE *out)
{
    char others[192] = "";
    for (size_t a = 1; a < json_array_size(axes); a++)
        text_append(others, sizeof others, "%s%s", others[0] ? ", " : "", word_of(axes, a));
    fputs("others = \"", out);
    figure_write_text(out, others);
    fputs("\"\n", out);
}

enum status figure_data_scaling(const struct figure_input *input, FILE *out, struct diags *diags)
{
    const json_t *scaling = json_object_get(input->result, "scaling"), *axes = json_object_get(scaling, "axes");
    const json_t *points = json_object_get(scaling, "points");
    json_int_t values = json_integer_value(json_object_get(json_array_get(axes, 0), "values"));
    size_t n = values > 0 ? (size_t)values : 0, all = json_array_size(points);
    if (n == 0 || all == 0 || all % n != 0) {
        diag_error(diags, (struct place){.file = input->name},
                   "this result has no points; draw what 'msim plan --sweep --format "
                   "json' writes");
        return STATUS_BAD_INPUT;
    }
    if (!any_drawn(points)) {
        diag_error(diags, (struct place){.file = input->name}, "no layout fits at any of these points: there is nothing to draw");
        return STATUS_BAD_INPUT;
    }
    const char *word = word_of(axes, 0);
    bool words = is_word(points, n, word);
    fputs("$points << EOD\n", out);
    for (size_t begin = 0; begin < all; begin += n)
        write_line(points, begin, n, word, words, out);
    fputs("EOD\n", out);
    write_series(axes, points, n, all / n, out);
    bool gpus = strcmp(word, "gpus") == 0 || strcmp(word, "cluster.gpus") == 0;
    fprintf(out, "is_word = %d\nis_gpus = %d\nn_values = %zu\nkey = \"", words, gpus, n);
    figure_write_text(out, gpus ? "GPUs" : word);
    fputs("\"\n", out);
    write_others(axes, out);
    return STATUS_OK;
}

bool figure_has_models(const json_t *result)
{
    const json_t *axes = json_object_get(json_object_get(result, "scaling"), "axes");
    for (size_t a = 0; a < json_array_size(axes); a++) {
        const json_t *keys = json_object_get(json_array_get(axes, a), "keys");
        for (size_t k = 0; k < json_array_size(keys); k++) {
            const char *key = json_string_value(json_array_get(keys, k));
            if (key && strcmp(key, "model") == 0)
                return true;
        }
    }
    return false;
}
