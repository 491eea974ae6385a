/*
 * plan_rates.h - the rates of a plan (model/cost/step/step_rates.h) as rows of results and as text.
 */
#ifndef MSIM_CLI_JOB_PLAN_RATES_H
#define MSIM_CLI_JOB_PLAN_RATES_H

#include <stdio.h>

#include "cli/output/result_row.h"
#include "model/cost/step/step_rates.h"

/* The rows of rates (an expression of `s`) in any list of rows, of subject SUBJECT. */
#define RATE_ROWS_OF(ROW, SUBJECT, RATES)                                                                                        \
    ROW(SUBJECT, mfu_causal_pct, as_real(100 * (RATES)->mfu_causal), "%", JSON | CSV,                                            \
        "MFU if only the causal half of attention counts", TWELVE_DIGITS, .title = "causal", .show = "%.1f")                     \
    ROW(SUBJECT, tflops_per_gpu, as_real((RATES)->tflops), "", JSON | CSV, "model TFLOPS per GPU, attention counted in full",    \
        TWELVE_DIGITS)                                                                                                           \
    ROW(SUBJECT, tflops_causal_per_gpu, as_real((RATES)->tflops_causal), "", JSON, "the same with the causal half of attention") \
    ROW(SUBJECT, tokens_per_s, as_tokens((RATES)->tokens_per_s), "1/s", JSON | CSV, "tokens per second", TWELVE_DIGITS,          \
        .title = "tokens/s", .text_unit = "", .show = "%.0f")                                                                    \
    ROW(SUBJECT, tokens_per_s_per_gpu, as_tokens_per_gpu((RATES)->tokens_per_gpu), "1/s", JSON | CSV,                            \
        "tokens per second and GPU", TWELVE_DIGITS, .title = "a GPU", .text_unit = "", .show = "%.0f", .view = VIEW_ALL)         \
    ROW(SUBJECT, days, present_if((RATES)->days > 0, as_real((RATES)->days)), "days", JSON | CSV,                                \
        "time for the budget of tokens without failures", TWELVE_DIGITS)                                                         \
    ROW(SUBJECT, gpu_hours, present_if((RATES)->days > 0, as_real((RATES)->gpu_hours)), "GPU-hours", JSON | CSV,                 \
        "GPU-hours for the budget of tokens", TWELVE_DIGITS)
extern const struct result_row rate_rows[];    /* of a struct step_rates */
struct value as_tokens(double number);         /* as "1.23 M" in text */
struct value as_tokens_per_gpu(double number); /* "9.203", "10,183" */

/* By so much, in points, the two conventions of MFU differ where a table shows both. */
#define MFU_POINTS_WORTH_TELLING 3
bool plan_rates_differ(const struct step_rates *rates);

/* "489 TFLOPS (attention in full; causal 457) and 1,123 tokens/s a GPU"; no line's end. */
void plan_rates_write(const struct step_rates *rates, FILE *out);
/* "20.0 days"; of less than 0.01 of them "14.1 us". Returns buffer; 48 bytes always suffice. */
char *days_text(double days, char *buffer, size_t size);
/* "3,660,786", "1.10", "less than 0.01". Returns buffer; 32 bytes always suffice. */
char *gpu_hours_text(double hours, char *buffer, size_t size);
/* "15.0 T tokens take 298 days, 3,660,786 GPU-hours"; no line's end. Of a job with a budget. */
void plan_budget_write(const struct step_rates *rates, double tokens, FILE *out);

#endif
