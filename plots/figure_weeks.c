/* figure_weeks.c - many runs: goodput along a sweep, its distribution over replicas, and the causes in a fault trace. */
#include <math.h>
#include <string.h>

#include "plots/figure_data.h"
#include "plots/palette.h"

static enum status nothing(const struct figure_input *input, const char *what, const char *command, struct diags *diags)
{
    diag_error(diags, (struct place){.file = input->name}, "this result has no %s; draw what '%s --format json' writes", what,
               command);
    return STATUS_BAD_INPUT;
}

/* --- sweep --- */

double figure_axis_unit(const char *unit, double high, const char **name)
{
    *name = "";
    if (!unit || strcmp(unit, "s") != 0)
        return 1;
    *name = high > 2 * 86400 ? " [days]" : high > 2 * 3600 ? " [h]" : high > 120 ? " [min]" : " [s]";
    return high > 2 * 86400 ? 86400 : high > 2 * 3600 ? 3600 : high > 120 ? 60 : 1;
}

const char *figure_axis_name(const char *key)
{
    static const char *const names[][2] = {{"gpus", "GPUs"},
                                           {"mttf", "mean time to failure"},
                                           {"repair", "mean time until a failed node is back"},
                                           {"restart", "restart time"},
                                           {"detect", "detection time"},
                                           {"checkpoint-interval", "checkpoint interval"},
                                           {"checkpoint-block", "time a checkpoint blocks"},
                                           {"spares", "spare nodes"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], key) == 0)
            return names[i][1];
    return key;
}

/* Uses of time besides training that some point of the sweep has, the largest at the end of the sweep first. */
static void write_uses(const json_t *points, double scale, FILE *out)
{
    const char *used[16];
    size_t n = json_array_size(points), n_used = 0, i;
    const char *name;
    json_t *share, *point;
    json_object_foreach(json_object_get(json_array_get(points, n - 1), "breakdown"), name, share)
    {
        double most = 0;
        for (i = 0; i < n; i++)
            most = fmax(most, figure_number(json_object_get(json_array_get(points, i), "breakdown"), name));
        if (most >= 1e-4 && strcmp(name, "training") != 0 && n_used < sizeof used / sizeof *used)
            used[n_used++] = name;
    }
    fprintf(out, "n_uses = %zu\n$uses << EOD\n", n_used);
    for (i = 0; i < n_used; i++) {
        fprintf(out, "%u\t", (unsigned)palette_of(used[i]));
        figure_write_text(out, used[i]);
        fputc('\n', out);
    }
    fputs("EOD\n$shares << EOD\n", out);
    json_array_foreach((json_t *)points, i, point)
    {
        double sum = 0;
        fprintf(out, "%.6g", figure_number(point, "value") / scale);
        for (size_t u = 0; u < n_used; u++)
            fprintf(out, "\t%.6g", sum += 100 * figure_number(json_object_get(point, "breakdown"), used[u]));
        fputc('\n', out);
    }
    fputs("EOD\n", out);
}

/* The axis begins at a ten below all that is shown. */
static double lowest_ten(const json_t *points)
{
    double low = 1;
    size_t i;
    json_t *point;
    json_array_foreach((json_t *)points, i, point) low = fmin(low, figure_number(point, "ci95_low"));
    return fmax(0, 10 * floor(10 * low - 0.1));
}

enum status figure_data_sweep(const struct figure_input *input, FILE *out, struct diags *diags)
{
    const json_t *sweep = json_object_get(input->result, "sweep"), *points = json_object_get(sweep, "points");
    size_t n = json_array_size(points), i;
    const char *unit, *key = json_string_value(json_object_get(sweep, "key"));
    json_t *point;
    if (n < 2 || !key)
        return nothing(input, "sweep", "msim run --sweep", diags);
    double high = figure_number(json_array_get(points, n - 1), "value");
    double scale = figure_axis_unit(json_string_value(json_object_get(sweep, "unit")), high, &unit);
    fputs("$points << EOD\n", out);
    json_array_foreach((json_t *)points, i, point)
    {
        fprintf(out, "%.6g\t%.6g\t%.6g\t%.6g\t%.6g\n", figure_number(point, "value") / scale,
                100 * figure_number(point, "goodput"), 100 * figure_number(point, "ci95_low"),
                100 * figure_number(point, "ci95_high"), 100 * figure_number(point, "memoryless"));
    }
    fprintf(out, "EOD\nlogarithmic = %d\nlow = %.6g\nhigh = %.6g\nreplicas = %.0f\nkey = \"",
            json_is_true(json_object_get(sweep, "logarithmic")), figure_number(json_array_get(points, 0), "value") / scale,
            high / scale, figure_number(sweep, "replicas"));
    figure_write_text(out, figure_axis_name(key));
    fprintf(out, "%s\"\npowers_of_two = %d\nbottom = %.0f\n", unit, strcmp(key, "gpus") == 0, lowest_ten(points));
    write_uses(points, scale, out);
    return STATUS_OK;
}

/* --- replicas --- */

/* A quantity in which replicas differ: the key of an outcome, its unit in the figure, and the key of its estimate. */
static const struct replica_quantity {
    const char *key, *estimate, *name, *unit, *of;
    double scale;
    int digits; /* behind the point of the mean */
} QUANTITIES[] = {
    {"goodput", "goodput_pct", "goodput", "%", "runs", 100, 2},
    {"step_time_s", "step_time_s", "step time", "s", "steps", 1, 4},
};
enum { N_QUANTITIES = sizeof QUANTITIES / sizeof QUANTITIES[0] };

static void write_bins(const json_t *outcomes, const struct replica_quantity *quantity, FILE *out)
{
    enum { BINS = 24 };
    size_t counts[BINS] = {0}, i;
    double low = HUGE_VAL, high = -HUGE_VAL;
    json_t *outcome;
    json_array_foreach((json_t *)outcomes, i, outcome)
    {
        low = fmin(low, quantity->scale * figure_number(outcome, quantity->key));
        high = fmax(high, quantity->scale * figure_number(outcome, quantity->key));
    }
    double width = high > low ? (high - low) / BINS : 1;
    json_array_foreach((json_t *)outcomes, i, outcome)
    {
        int bin = (int)((quantity->scale * figure_number(outcome, quantity->key) - low) / width);
        counts[bin < 0 ? 0 : bin >= BINS ? BINS - 1 : bin]++;
    }
    fputs("$bins << EOD\n", out);
    for (i = 0; i < BINS; i++)
        fprintf(out, "%.9g\t%zu\n", low + ((double)i + 0.5) * width, counts[i]);
    fprintf(out, "EOD\nbin_width = %.9g\n", width);
}

enum status figure_data_replicas(const struct figure_input *input, FILE *out, struct diags *diags)
{
    const json_t *outcomes = json_object_get(input->result, "outcomes"), *estimate = NULL;
    const struct replica_quantity *quantity = QUANTITIES;
    for (int i = 0; i < N_QUANTITIES && !estimate; i++) {
        quantity = &QUANTITIES[i];
        estimate = json_object_get(json_object_get(input->result, "estimates"), quantity->estimate);
    }
    if (json_array_size(outcomes) == 0 || !estimate) {
        diag_error(diags, (struct place){.file = input->name},
                   "%s; draw what 'msim step --replicas N' or 'msim run --replicas N' writes with --format json",
                   input->result ? "this result has no replicas" : "of replicas only JSON is drawn, no CSV");
        return STATUS_BAD_INPUT;
    }
    write_bins(outcomes, quantity, out);
    fprintf(out, "quantity = '%s'\nunit = '%s'\nof = '%s'\ndigits = %d\n", quantity->name, quantity->unit, quantity->of,
            quantity->digits);
    fprintf(out, "replicas = %zu\nmean = %.9g\nci_low = %.9g\nci_high = %.9g\np05 = %.9g\np95 = %.9g\n",
            json_array_size(outcomes), figure_number(estimate, "mean"), figure_number(estimate, "ci95_low"),
            figure_number(estimate, "ci95_high"), figure_number(estimate, "p05"), figure_number(estimate, "p95"));
    return STATUS_OK;
}

/* --- faults --- */

enum status figure_data_faults(const struct figure_input *input, FILE *out, struct diags *diags)
{
    enum { SHOWN = 16 };
    const json_t *causes = json_object_get(input->result, "causes");
    size_t n = json_array_size(causes), i;
    json_t *cause;
    if (n == 0)
        return nothing(input, "causes", "msim faults summary", diags);
    fputs("$causes << EOD\n", out);
    json_array_foreach((json_t *)causes, i, cause)
    {
        const char *detail = json_string_value(json_object_get(cause, "detail"));
        if (i >= SHOWN)
            break;
        fprintf(out, "%zu\t%.0f\t%.6g\t", i, figure_number(cause, "faults"), figure_number(cause, "mean_down_s") / 3600);
        figure_write_text(out, detail && *detail ? detail : "unknown");
        fputc('\n', out);
    }
    const json_t *gaps = json_object_get(input->result, "gaps"), *kinds = json_object_get(input->result, "kinds");
    size_t shown = n < SHOWN ? n : SHOWN;
    fprintf(out, "EOD\nn_rows = %zu\ntext_lines = %zu\nfailures = %.0f\nmtbf_h = %.6g\nshape = %.6g\nper_node_day = %.6g\n",
            shown, shown + 6, figure_number(input->result, "failures"), figure_number(input->result, "mtbf_s") / 3600,
            figure_number(gaps, "shape"), figure_number(input->result, "per_node_day"));
    fprintf(out, "slow = %.0f\nplanned = %.0f\n", figure_number(kinds, "straggler") + figure_number(kinds, "link"),
            figure_number(kinds, "planned"));
    return STATUS_OK;
}
