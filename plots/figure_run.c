/* figure_run.c - a run over time: the uses of each bin, goodput, MFU, and the failures that cost most. */
#include <math.h>
#include <string.h>

#include "plots/figure_data.h"
#include "plots/palette.h"

enum { DAY = 86400, MAX_USES = 16, SHOWN_BINS = 400 };

/* Bins in one step of the picture: more than SHOWN_BINS would be lines, not areas. */
static size_t stride_of(const json_t *series)
{
    return (json_array_size(series) + SHOWN_BINS - 1) / SHOWN_BINS;
}

/* Uses of time besides training that occur, in the order of the result. */
static size_t uses_of(const json_t *total, const char *uses[MAX_USES])
{
    const char *key;
    json_t *value;
    size_t n = 0;
    json_object_foreach((json_t *)total, key, value)
    {
        if (n < MAX_USES && json_number_value(value) > 0 && strcmp(key, "training") != 0)
            uses[n++] = key;
    }
    return n;
}

/* One line of $shares: a range of bins. Times in days, the rest in percent. */
struct share {
    double start, end, goodput, mfu; /* mfu NaN: unknown */
    double uses[MAX_USES];           /* each with those before it */
};

static struct share share_of(const json_t *series, size_t first, size_t end, const char *const *uses, size_t n_uses)
{
    struct share s = {.start = figure_number(json_array_get(series, first), "start_s") / DAY};
    double length = 0, use_s[MAX_USES] = {0}, sum = 0;
    for (size_t i = first; i < end; i++) {
        const json_t *bin = json_array_get(series, i);
        const json_t *mfu = json_object_get(bin, "mfu_pct");
        double bin_s = figure_number(bin, "length_s");
        length += bin_s;
        s.goodput += bin_s * figure_number(bin, "goodput");
        s.mfu += json_is_number(mfu) ? bin_s * json_number_value(mfu) : NAN;
        for (size_t u = 0; u < n_uses; u++)
            use_s[u] += figure_number(json_object_get(bin, "breakdown"), uses[u]);
    }
    s.end = s.start + length / DAY;
    s.goodput *= 100 / length;
    s.mfu /= length;
    for (size_t u = 0; u < n_uses; u++)
        s.uses[u] = 100 * (sum += use_s[u]) / length;
    return s;
}

static void write_share(const struct share *s, double time, size_t n_uses, FILE *out)
{
    fprintf(out, "%.6g\t%.6g\t%.6g", time, s->goodput, s->mfu);
    for (size_t u = 0; u < n_uses; u++)
        fprintf(out, "\t%.6g", s->uses[u]);
    fputc('\n', out);
}

static void write_series(const json_t *series, const char *const *uses, size_t n_uses, FILE *out)
{
    size_t n = json_array_size(series), stride = stride_of(series);
    struct share last = {0};
    fputs("$shares << EOD\n", out);
    for (size_t i = 0; i < n; i += stride) {
        last = share_of(series, i, i + stride < n ? i + stride : n, uses, n_uses);
        write_share(&last, last.start, n_uses, out);
    }
    write_share(&last, last.end, n_uses, out); /* where the last step ends */
    fputs("EOD\n$uses << EOD\n", out);
    for (size_t u = 0; u < n_uses; u++) {
        fprintf(out, "%u\t", (unsigned)palette_of(uses[u]));
        figure_write_text(out, uses[u]);
        fputc('\n', out);
    }
    fputs("EOD\n", out);
}

static void write_incidents(const json_t *incidents, FILE *out)
{
    size_t i;
    json_t *incident;
    fputs("$incidents << EOD\n", out);
    json_array_foreach((json_t *)incidents, i, incident)
    {
        if (json_is_true(json_object_get(incident, "interrupted")))
            fprintf(out, "%.6g\t%.6g\n", figure_number(incident, "time_s") / DAY, figure_number(incident, "lost_s") / 3600);
    }
    fputs("EOD\n", out);
}

enum status figure_data_run(const struct figure_input *input, FILE *out, struct diags *diags)
{
    const json_t *series = json_object_get(input->result, "series");
    const json_t *total = json_object_get(input->result, "breakdown");
    const char *uses[MAX_USES];
    if (!json_is_array(series) || json_array_size(series) == 0 || !json_is_object(total)) {
        diag_error(diags, (struct place){.file = input->name},
                   "this result has no time series; draw what 'msim run --format json' writes");
        return STATUS_BAD_INPUT;
    }
    size_t n_uses = uses_of(total, uses);
    bool has_mfu = json_is_number(json_object_get(json_array_get(series, 0), "mfu_pct"));
    write_series(series, uses, n_uses, out);
    write_incidents(json_object_get(input->result, "incidents"), out);
    fprintf(out, "n_uses = %zu\nhas_mfu = %d\nhorizon = %.6g\ngoodput = %.6g\nettr = %.6g\nmfu = %.6g\ninterruptions = %.0f\n",
            n_uses, has_mfu, figure_number(input->result, "horizon_s") / DAY, 100 * figure_number(input->result, "goodput"),
            100 * figure_number(input->result, "ettr"), has_mfu ? figure_number(input->result, "mfu_pct") : 0.0,
            figure_number(input->result, "interruptions"));
    return STATUS_OK;
}
