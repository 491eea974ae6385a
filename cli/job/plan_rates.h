/*
 * plan_rates.h - the rates of a plan (model/cost/step/step_rates.h) as JSON, as cells of a table and as text.
 */
#ifndef MSIM_CLI_JOB_PLAN_RATES_H
#define MSIM_CLI_JOB_PLAN_RATES_H

#include <jansson.h>
#include <stdio.h>

#include "cli/output/table.h"
#include "model/cost/step/step_rates.h"

/* mfu_causal_pct, tflops_per_gpu, tflops_causal_per_gpu, tokens_per_s, tokens_per_s_per_gpu; with a budget days and gpu_hours. */
void plan_rates_json(const struct step_rates *rates, json_t *json);
/* Of these what a line of plans has behind its other columns; not the budget, which sweeps have elsewhere. */
void plan_rates_columns(struct table *table);
void plan_rates_cells(const struct step_rates *rates, struct table *table);

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
