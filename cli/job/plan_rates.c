#include "cli/job/plan_rates.h"

#include <math.h>

#include "model/base/units.h"

void plan_rates_json(const struct step_rates *rates, json_t *json)
{
    json_object_set_new(json, "mfu_causal_pct", json_real(100 * rates->mfu_causal));
    json_object_set_new(json, "tflops_per_gpu", json_real(rates->tflops));
    json_object_set_new(json, "tflops_causal_per_gpu", json_real(rates->tflops_causal));
    json_object_set_new(json, "tokens_per_s", json_real(rates->tokens_per_s));
    json_object_set_new(json, "tokens_per_s_per_gpu", json_real(rates->tokens_per_gpu));
    if (rates->days > 0) {
        json_object_set_new(json, "days", json_real(rates->days));
        json_object_set_new(json, "gpu_hours", json_real(rates->gpu_hours));
    }
}

void plan_rates_columns(struct table *table)
{
    table_column(table, "mfu causal", "%", ALIGN_LEFT);
    table_column(table, "tflops per gpu", NULL, ALIGN_LEFT);
    table_column(table, "tokens_per_s per gpu", NULL, ALIGN_LEFT);
}

void plan_rates_cells(const struct step_rates *rates, struct table *table)
{
    table_cell(table, "%.12g", 100 * rates->mfu_causal);
    table_cell(table, "%.12g", rates->tflops);
    table_cell(table, "%.12g", rates->tokens_per_gpu);
}

bool plan_rates_differ(const struct step_rates *rates)
{
    return 100 * (rates->mfu - rates->mfu_causal) >= MFU_POINTS_WORTH_TELLING;
}

void plan_rates_write(const struct step_rates *rates, FILE *out)
{
    char full[32], causal[32], tokens[32];

    fprintf(out, "%s TFLOPS (attention in full; causal %s) and %s tokens/s per GPU",
            three_digits(rates->tflops, full, sizeof full), three_digits(rates->tflops_causal, causal, sizeof causal),
            three_digits(rates->tokens_per_gpu, tokens, sizeof tokens));
}

char *days_text(double days, char *buffer, size_t size)
{
    char number[32];

    if (days < 0.01)
        return quantity_format(days * 86400, DIM_TIME, buffer, size);
    snprintf(buffer, size, "%s days", three_digits(days, number, sizeof number));
    return buffer;
}

char *gpu_hours_text(double hours, char *buffer, size_t size)
{
    if (hours >= 10)
        return grouped(llround(hours), buffer, size);
    if (hours < 0.01)
        snprintf(buffer, size, "less than 0.01");
    else
        three_digits(hours, buffer, size);
    return buffer;
}

void plan_budget_write(const struct step_rates *rates, double tokens, FILE *out)
{
    char budget[32], days[48], hours[32];

    fprintf(out, "%s tokens take %s, %s GPU-hours", quantity_format(tokens, DIM_COUNT, budget, sizeof budget),
            days_text(rates->days, days, sizeof days), gpu_hours_text(rates->gpu_hours, hours, sizeof hours));
}
