/* figure_breakdown.c - where time goes: the breakdown object of any result, {class: seconds}. */
#include <string.h>

#include "model/base/append.h"
#include "model/spec/layout_dimensions.h"
#include "plots/figure_data.h"
#include "plots/palette.h"

enum { MAX_BARS = 40, PLANS_SHOWN = 10 };

/* One bar. */
struct bar {
    char name[96];
    const json_t *breakdown;
};
struct bars {
    struct bar items[MAX_BARS];
    size_t n;
};

static void add_bar(struct bars *bars, const char *name, const json_t *breakdown)
{
    if (bars->n == MAX_BARS || !json_is_object(breakdown) || json_object_size(breakdown) == 0)
        return;
    struct bar *bar = &bars->items[bars->n++];
    bar->breakdown = breakdown;
    snprintf(bar->name, sizeof bar->name, "%s", name);
}

/* The dimensions of a layout that are not one, and its ZeRO stage: "tp8 pp4 vpp24 mb2 z1". */
static void layout_name(const json_t *layout, char *name, size_t size)
{
    static const enum layout_dimension shown[] = {DIMENSION_TP, DIMENSION_PP,          DIMENSION_VPP, DIMENSION_CP,
                                                  DIMENSION_EP, DIMENSION_MICRO_BATCH, DIMENSION_ZERO};
    *name = '\0';
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const struct layout_dimension_row *row = &layout_dimensions[shown[i]];
        json_int_t value = json_integer_value(json_object_get(layout, row->key));
        if (value > 1 || shown[i] == DIMENSION_ZERO)
            text_append(name, size, "%s%s%lld", *name ? " " : "", row->brief, (long long)value);
    }
}

/* --- results of different work ------------------------------------------------------------------------------------- */

/* Features of a result; the seconds of two results are comparable only if these are the same. */
static const struct {
    const char *part, *key; /* of the result's configuration */
    const char *title;      /* "batch 256" */
    const char *what;       /* not the same ... */
} works[] = {{"model", "name", "", "model"},
             {"cluster", "gpu", "", "GPU"},
             {"cluster", "gpus", "GPUs", "number of GPUs"},
             {"job", "global_batch", "batch", "batch"},
             {"job", "seq_len", "tokens", "sequence length"},
             {"job", "precision", "", "precision"}};
enum { N_WORKS = sizeof works / sizeof *works };

static const json_t *work_of(const struct figure_input *input, int w)
{
    const json_t *config = json_object_get(input->result, "config");
    const json_t *work = json_object_get(json_object_get(config, works[w].part), works[w].key);
    return json_is_object(work) ? json_object_get(work, "name") : work; /* a GPU, by its name */
}

/* Finds the features in which the inputs differ. */
static void find_differences(const struct figure_input *inputs, size_t n, bool differs[N_WORKS])
{
    for (int w = 0; w < N_WORKS; w++)
        for (size_t i = 1; i < n; i++) {
            const json_t *first = work_of(&inputs[0], w), *other = work_of(&inputs[i], w);
            differs[w] |= first && other && !json_equal(first, other);
        }
}

/* ", batch 256" behind a bar's name, for all that differs. */
static void append_differences(const struct figure_input *input, const bool differs[N_WORKS], char *name, size_t size)
{
    for (int w = 0; w < N_WORKS; w++) {
        const json_t *value = work_of(input, w);
        if (!differs[w] || !value)
            continue;
        text_append(name, size, ", %s%s", works[w].title, *works[w].title ? " " : "");
        if (json_is_string(value))
            text_append(name, size, "%.40s", json_string_value(value));
        else
            text_append(name, size, "%.10g", json_number_value(value));
    }
}

/* The names of the differing features, for the title: "batch, precision". */
static void write_differences(const bool differs[N_WORKS], FILE *out)
{
    char text[128] = "";
    for (int w = 0; w < N_WORKS; w++)
        if (differs[w])
            text_append(text, sizeof text, "%s%s", *text ? ", " : "", works[w].what);
    fprintf(out, "differs = '%s'\n", text);
}

/* --- bars ---------------------------------------------------------------------------------------------------------- */

/* A step and the profile of the real step: both, by the classes that a profile distinguishes. */
static bool add_profile(struct bars *bars, const json_t *result)
{
    const json_t *profile = json_object_get(result, "profile");
    size_t before = bars->n;
    add_bar(bars, "predicted", json_object_get(profile, "predicted"));
    add_bar(bars, "measured", json_object_get(profile, "measured"));
    return bars->n > before;
}

/* Bars of a result: its own breakdown (two with a profile), or those of the first plans of a plan result. */
static enum status add_bars(struct bars *bars, const struct figure_input *input, const bool differs[N_WORKS], struct diags *diags)
{
    char name[96];
    size_t before = bars->n, i;
    json_t *plan;
    if (!add_profile(bars, input->result)) {
        figure_short_name(input->name, name, sizeof name);
        append_differences(input, differs, name, sizeof name);
        add_bar(bars, name, json_object_get(input->result, "breakdown"));
    }
    json_array_foreach(json_object_get(input->result, "plans"), i, plan)
    {
        layout_name(json_object_get(plan, "layout"), name, sizeof name);
        if (i < PLANS_SHOWN)
            add_bar(bars, name, json_object_get(plan, "breakdown"));
    }
    if (bars->n > before)
        return STATUS_OK;
    diag_error(diags, (struct place){.file = input->name}, "this has no breakdown; JSON results of step, plan and run have");
    return STATUS_BAD_INPUT;
}

/* Result keys end in their unit: "lost_s" is about "lost". */
static void class_title(const char *key, char *title, size_t size)
{
    snprintf(title, size, "%s", key);
    size_t n = strlen(title);
    if (n > 2 && strcmp(title + n - 2, "_s") == 0)
        title[n - 2] = '\0';
}

/* The classes of all inputs in order of appearance, each once. */
struct classes {
    const char *keys[64];
    size_t n;
};

static void collect_classes(const json_t *breakdown, struct classes *classes)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)breakdown, key, value)
    {
        size_t i = 0;
        while (i < classes->n && strcmp(classes->keys[i], key) != 0)
            i++;
        if (i == classes->n && i < sizeof classes->keys / sizeof *classes->keys && json_number_value(value) > 0)
            classes->keys[classes->n++] = key;
    }
}

static double total_of(const json_t *breakdown, const struct classes *classes)
{
    double total = 0;
    for (size_t i = 0; i < classes->n; i++)
        total += figure_number(breakdown, classes->keys[i]);
    return total;
}

/* Long runs in hours or days, short steps in milliseconds. */
static double time_scale(double seconds, const char **unit)
{
    static const struct {
        double from, scale;
        const char *unit;
    } units[] = {{3 * 86400.0, 1 / 86400.0, "days"}, {3 * 3600.0, 1 / 3600.0, "hours"}, {1, 1, "s"}, {0, 1e3, "ms"}};
    size_t i = 0;
    while (seconds < units[i].from)
        i++;
    *unit = units[i].unit;
    return units[i].scale;
}

static void write_bar(const struct bar *bar, size_t column, const struct classes *classes, double scale, FILE *out)
{
    double total = total_of(bar->breakdown, classes), base = 0;
    for (size_t c = 0; c < classes->n; c++) {
        char title[64];
        double seconds = figure_number(bar->breakdown, classes->keys[c]);
        class_title(classes->keys[c], title, sizeof title);
        fprintf(out, "%zu\t%zu\t%u\t%.6g\t%.6g\t%.4g\t", column, c, (unsigned)palette_of(title), base * scale, seconds * scale,
                total > 0 ? 100 * seconds / total : 0);
        figure_write_text(out, title);
        fputc('\n', out);
        base += seconds;
    }
}

static void write_bars(const struct bars *bars, const struct classes *classes, FILE *out)
{
    enum { TEXT_FRAME = 6, LEGEND_LINE = 7 }; /* lines of title, legend and frame; classes in a line of the legend */
    double largest = 0;
    for (size_t i = 0; i < bars->n; i++)
        if (total_of(bars->items[i].breakdown, classes) > largest)
            largest = total_of(bars->items[i].breakdown, classes);
    const char *unit;
    double scale = time_scale(largest, &unit);
    fprintf(out, "time_unit = '%s'\nn_columns = %zu\nn_classes = %zu\ntext_lines = %zu\n", unit, bars->n, classes->n,
            bars->n == 1 ? classes->n + TEXT_FRAME : bars->n + TEXT_FRAME + (classes->n > LEGEND_LINE));
    fputs("$bars << EOD\n", out);
    for (size_t i = 0; i < bars->n; i++)
        write_bar(&bars->items[i], i, classes, scale, out);
    fputs("EOD\n$names << EOD\n", out);
    for (size_t i = 0; i < bars->n; i++) {
        fprintf(out, "%zu\t", i);
        figure_write_text(out, bars->items[i].name);
        fprintf(out, "\t%.6g\n", total_of(bars->items[i].breakdown, classes) * scale);
    }
    fputs("EOD\n", out);
}

enum status figure_data_breakdown(const struct figure_input *inputs, size_t n_inputs, FILE *out, struct diags *diags)
{
    struct bars bars = {0};
    struct classes classes = {0};
    enum status status = STATUS_OK;
    bool differs[N_WORKS] = {false};
    find_differences(inputs, n_inputs, differs);
    for (size_t i = 0; i < n_inputs; i++)
        if (add_bars(&bars, &inputs[i], differs, diags) != STATUS_OK)
            status = STATUS_BAD_INPUT;
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < bars.n; i++)
        collect_classes(bars.items[i].breakdown, &classes);
    write_differences(differs, out);
    write_bars(&bars, &classes, out);
    return STATUS_OK;
}
