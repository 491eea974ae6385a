/* figure_end.c - when training ends: the share of replicas that have trained their tokens, over time. */
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "model/base/units.h"
#include "plots/figure_data.h"

enum { DAY = 86400, SHOWN_POINTS = 1000 };

/* NaN: the file marks it as unknown. */
static double days_of(const json_t *object, const char *key)
{
    const json_t *seconds = json_object_get(object, key);
    return json_is_number(seconds) ? json_number_value(seconds) / DAY : NAN;
}

static void write_days(FILE *out, const char *variable, const json_t *object, const char *key)
{
    double days = days_of(object, key);
    if (isnan(days))
        fprintf(out, "%s = NaN\n", variable);
    else
        fprintf(out, "%s = %.6g\n", variable, days);
}

/* Sorted; those that have not ended are left out. Returns how many there are. */
static size_t ends_of(const json_t *outcomes, double *ends)
{
    size_t i, n = 0;
    json_t *outcome;
    json_array_foreach((json_t *)outcomes, i, outcome)
    {
        double days = days_of(outcome, "end_s");
        if (!isnan(days))
            ends[n++] = days;
    }
    qsort(ends, n, sizeof *ends, double_compare);
    return n;
}

/* So many of `all` have ended by then; not every one of very many. */
static void write_ends(const double *ends, size_t n, size_t all, FILE *out)
{
    size_t stride = (n + SHOWN_POINTS - 1) / SHOWN_POINTS;
    fputs("$ends << EOD\n", out);
    if (n > 0)
        fprintf(out, "%.6g\t0\n", ends[0]);
    for (size_t i = 0; i < n; i++)
        if ((i + 1) % stride == 0 || i + 1 == n)
            fprintf(out, "%.6g\t%.6g\n", ends[i], 100 * (double)(i + 1) / (double)all);
    fputs("EOD\n", out);
}

enum status figure_data_end(const struct figure_input *input, FILE *out, struct diags *diags)
{
    const json_t *outcomes = json_object_get(input->result, "outcomes");
    const json_t *end = json_object_get(json_object_get(input->result, "estimates"), "end_s");
    const json_t *job = json_object_get(json_object_get(input->result, "config"), "job");
    size_t all = json_array_size(outcomes);
    double *ends = memory_new(all + 1, sizeof *ends), tokens = figure_number(job, "tokens");
    size_t n = ends_of(outcomes, ends);
    char text[32] = "the";
    if (end && n > 0) {
        write_ends(ends, n, all, out);
        fprintf(out, "first = %.6g\nlast = %.6g\nreplicas = %zu\ntokens = \"%s\"\n", ends[0], ends[n - 1], all,
                tokens > 0 ? quantity_format(tokens, DIM_COUNT, text, sizeof text) : text);
        write_days(out, "fault_free", input->result, "fault_free_s");
        write_days(out, "mean", end, "mean");
        write_days(out, "p05", end, "p05");
        write_days(out, "median", end, "median");
        write_days(out, "p95", end, "p95");
        write_days(out, "likely_low", json_object_get(input->result, "likely"), "end_low_s");
        write_days(out, "likely_high", json_object_get(input->result, "likely"), "end_high_s");
    }
    free(ends);
    if (end && n > 0)
        return STATUS_OK;
    diag_error(diags, (struct place){.file = input->name},
               "%s; draw what 'msim run --tokens N --replicas N --format json' writes",
               end ? "no replica of this result has trained its tokens" : "this result does not say when training ends");
    return STATUS_BAD_INPUT;
}
