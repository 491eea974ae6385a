/* Where time goes: a breakdown object of any result, {class: seconds}. */
#include <string.h>

#include "plots/figure_data.h"
#include "plots/palette.h"

/* The breakdown of a result; of a plan's result that of its best plan. NULL with a diagnostic. */
static const json_t *breakdown_of(const struct figure_input *input, struct diags *diags)
{
    const json_t *breakdown = json_object_get(input->result, "breakdown");
    if (!breakdown)
        breakdown = json_object_get(json_array_get(json_object_get(input->result, "plans"), 0), "breakdown");
    if (json_is_object(breakdown) && json_object_size(breakdown) > 0)
        return breakdown;
    diag_error(diags, (struct place){.file = input->name}, "this result has no breakdown; step, plan and run results have");
    return NULL;
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
        total += json_number_value(json_object_get(breakdown, classes->keys[i]));
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

enum status figure_data_breakdown(const struct figure_input *inputs, size_t n_inputs, FILE *out, struct diags *diags)
{
    struct classes classes = {0};
    double largest = 0;
    for (size_t i = 0; i < n_inputs; i++) {
        const json_t *breakdown = inputs[i].result ? breakdown_of(&inputs[i], diags) : NULL;
        if (!breakdown && !inputs[i].result)
            diag_error(diags, (struct place){.file = inputs[i].name}, "a timeline has no breakdown; draw a JSON result");
        if (!breakdown)
            return STATUS_BAD_INPUT;
        collect_classes(breakdown, &classes);
        double total = total_of(breakdown, &classes);
        largest = total > largest ? total : largest;
    }
    const char *unit;
    double scale = time_scale(largest, &unit);
    fprintf(out, "time_unit = '%s'\nn_columns = %zu\nn_classes = %zu\ntext_lines = %zu\n$bars << EOD\n", unit, n_inputs,
            classes.n, n_inputs == 1 ? classes.n + 6 : n_inputs + 6);
    for (size_t i = 0; i < n_inputs; i++) {
        const json_t *breakdown = breakdown_of(&inputs[i], diags);
        double total = total_of(breakdown, &classes), base = 0;
        for (size_t c = 0; c < classes.n; c++) {
            char title[64];
            double seconds = json_number_value(json_object_get(breakdown, classes.keys[c]));
            class_title(classes.keys[c], title, sizeof title);
            fprintf(out, "%zu\t%zu\t%u\t%.6g\t%.6g\t%.4g\t", i, c, (unsigned)palette_of(title), base * scale, seconds * scale,
                    total > 0 ? 100 * seconds / total : 0);
            figure_write_text(out, title);
            fputc('\n', out);
            base += seconds;
        }
    }
    fputs("EOD\n$names << EOD\n", out);
    for (size_t i = 0; i < n_inputs; i++) {
        char name[128];
        fprintf(out, "%zu\t", i);
        figure_write_text(out, figure_short_name(inputs[i].name, name, sizeof name));
        fprintf(out, "\t%.6g\n", total_of(breakdown_of(&inputs[i], diags), &classes) * scale);
    }
    fputs("EOD\n", out);
    return STATUS_OK;
}
