/* measurement_step.c - the outcome of a row: its step time, the other columns that determine it, and whether they agree. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "model/base/append.h"
#include "model/cost/work/work.h"
#include "traces/table/measurement.h"
#include "traces/table/measurement_internal.h"

/* A share in percent; one below 1 is a fraction, which no run's MFU is a hundredth of (assumption, told). */
static double read_mfu(struct measurement_parser *parser)
{
    double percent = parser_number(parser, COLUMN_MFU_PCT, 0, 100);
    const char *text = parser_text(parser, COLUMN_MFU_PCT);
    if (percent > 0 && percent < 1 && !strchr(text, '%')) {
        parser_warn_once(parser, COLUMN_MFU_PCT, measurement_columns[COLUMN_MFU_PCT].name,
                         "mfu_pct '%.40s' is below 1: a fraction, not percent, is taken to be meant", text);
        return percent;
    }
    return percent / 100;
}

/* What may say how long a step was, the surest first, and by how much that may differ from the time or rate that is taken without
 * a contradiction: rates are rounded; counts of FLOPs differ by half of attention and by recomputation, which is 4/3 at most. */
static const struct {
    enum column column;
    double tolerance;
} measured[] = {{COLUMN_STEP_TIME_S, 1.1},   {COLUMN_TOKENS_PER_S, 1.1}, {COLUMN_TOKENS_PER_S_GPU, 1.1},
                {COLUMN_SAMPLES_PER_S, 1.1}, {COLUMN_TFLOPS_GPU, 2},     {COLUMN_MFU_PCT, 2}};
enum { N_MEASURED = sizeof measured / sizeof measured[0], FIRST_OF_FLOPS = 4 };

static double peak_of(const struct measurement *row)
{
    return row->cluster.gpu.peak_flops[row->job.precision];
}

static double flops_of(const struct measurement *row, enum flop_convention convention)
{
    struct setting setting = measurement_setting(row);
    return model_flops_per_step(&setting, row->layout.features, convention);
}

/* Seconds of a step by the value of a column; MFU and TFLOPS are taken to count attention in full and no recomputation. */
static double step_by(const struct measurement *row, enum column column, double value)
{
    double batch = (double)row->job.global_batch, tokens = batch * (double)row->job.seq_len;
    switch (column) {
    case COLUMN_STEP_TIME_S: return value;
    case COLUMN_TOKENS_PER_S: return tokens / value;
    case COLUMN_TOKENS_PER_S_GPU: return tokens / (value * row->gpus);
    case COLUMN_SAMPLES_PER_S: return batch / value;
    case COLUMN_TFLOPS_GPU: return flops_of(row, FLOPS_FULL) / (value * 1e12 * row->gpus);
    default: return peak_of(row) > 0 ? flops_of(row, FLOPS_FULL) / (value * peak_of(row) * row->gpus) : 0;
    }
}

static double value_of(struct measurement_parser *parser, const struct measurement *row, enum column column)
{
    if (column == COLUMN_MFU_PCT)
        return row->mfu;
    return parser_number(parser, column, 0, column == COLUMN_TFLOPS_GPU ? 1e6 : HUGE_VAL);
}

/* The step by the surest of what was measured, which *by becomes; 0: nothing was. */
static double step_of(struct measurement_parser *parser, const struct measurement *row, size_t *by)
{
    for (*by = 0; *by < N_MEASURED; ++*by) {
        double value = value_of(parser, row, measured[*by].column);
        if (parser->unusable)
            return 0;
        if (value > 0)
            return step_by(row, measured[*by].column, value);
    }
    return 0;
}

/* What else the row says of its step, where that is another one. Step times and MFU are compared by whole tables (reconcile.h).
 */
static void tell_contradictions(struct measurement_parser *parser, const struct measurement *row, size_t by)
{
    const char *taken = measurement_columns[measured[by].column].name;
    for (size_t i = by + 1; i < N_MEASURED; i++) {
        enum column column = measured[i].column;
        double value = 0, range = measured[i].tolerance;
        if (column == COLUMN_MFU_PCT)
            value = by == 0 ? 0 : row->mfu;
        else if (*parser_text(parser, column) && !cell_number(parser, column, false, &value))
            continue;
        double step = value > 0 ? step_by(row, column, value) : 0;
        if (step > 0 && (step > row->step_s * range || step < row->step_s / range))
            parser_warn_once(parser, column, taken, "%s '%.40s' is a step of %.4g s, but %s says %.4g s, which is taken",
                             measurement_columns[column].name, parser_text(parser, column), step, taken, row->step_s);
    }
}

#define OTHER_UNIT "is its unit another one, or is it of all GPUs or of one?"

/* A step that the GPUs cannot have made is no measurement, and one for which they would have stood still hardly is: either is
 * likely to have been said in another unit, or of one GPU where all are meant. The peak is the dense one of the row's precision;
 * the work is counted with the causal half of attention, so that no way to count makes a row impossible that another allows. */
static void judge_step(struct measurement_parser *parser, const struct measurement *row, enum column column)
{
    static const double LEAST_SHARE = 0.005;
    double second = peak_of(row) * row->gpus;
    if (!(second > 0))
        return;
    const char *name = measurement_columns[column].name, *text = parser_text(parser, column);
    const char *assumed = *parser_text(parser, COLUMN_PRECISION) ? "" : " (bf16 is assumed: no precision is said)";
    double full = flops_of(row, FLOPS_FULL) / second / row->step_s, causal = flops_of(row, FLOPS_CAUSAL) / second / row->step_s;
    if (causal > 1)
        parser_skip(parser, column,
                    "%s '%.40s' is a step of %.4g s, %.3g times what the %s peak of %d GPUs allows%s: is its precision or its "
                    "unit another one, or is it of all GPUs or of one?",
                    name, text, row->step_s, causal, precision_name(row->job.precision), row->gpus, assumed);
    else if (full < LEAST_SHARE)
        parser_warn_once(parser, column, "far below the peak",
                         "%s '%.40s' is a step of %.4g s, an MFU of %.2g %% on %d GPUs: " OTHER_UNIT, name, text, row->step_s,
                         100 * full, row->gpus);
}

/* The step time, or what makes it. */
static void read_step(struct measurement_parser *parser, struct measurement *row)
{
    size_t by;
    double step = step_of(parser, row, &by);
    row->derived = by > 0;
    if (parser->unusable || !(step > 0))
        return;
    enum column column = measured[by].column;
    row->step_s = step;
    if (by >= FIRST_OF_FLOPS)
        parser_warn_once(parser, column, measurement_columns[column].name,
                         "step_time_s is unknown; it is taken from %s, attention counted in full and recomputation not at all",
                         measurement_columns[column].name);
    tell_contradictions(parser, row, by);
    judge_step(parser, row, column);
}

static bool is_oom(const char *text)
{
    const char *ours = words_ours(COLUMN_OUTCOME, text);
    return strcasecmp(ours ? ours : text, "oom") == 0;
}

/* "OOM" instead of a measurement. */
static bool says_oom(const struct measurement_parser *parser)
{
    for (size_t i = 0; i < N_MEASURED; i++)
        if (is_oom(parser_text(parser, measured[i].column)))
            return true;
    return false;
}

/* No step takes no time, and no rate is zero: a warning reports that for a run that did not run out of memory. */
static void tell_zeros(struct measurement_parser *parser)
{
    for (size_t i = 0; i < N_MEASURED; i++) {
        enum column column = measured[i].column;
        double value;
        if (*parser_text(parser, column) && cell_number(parser, column, false, &value) && !(value > 0 || value < 0))
            parser_warn_once(parser, column, "zero", "%s '%.40s' is taken for nothing measured", measurement_columns[column].name,
                             parser_text(parser, column));
    }
}

void parser_outcome(struct measurement_parser *parser, struct measurement *row)
{
    static const char *const outcomes[] = {"ok", "oom"};
    int outcome = parser_way(parser, COLUMN_OUTCOME, outcomes, 2);
    row->oom = outcome == 1 || (outcome < 0 && says_oom(parser));
    if (row->oom)
        return;
    row->mfu = read_mfu(parser);
    read_step(parser, row);
    if (!parser->unusable && row->step_s <= 0)
        tell_zeros(parser);
    row->outcome_unknown = outcome < 0 && row->step_s <= 0 && row->mfu <= 0;
}
