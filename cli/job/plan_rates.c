#include "cli/job/plan_rates.h"

#include <math.h>

#include "model/base/units.h"

struct value as_tokens(double number)
{
    char text[48];
    return shown_as(as_real(number), "%s", quantity_format(number, DIM_COUNT, text, sizeof text));
}

/* Four digits, or all before the point, grouped. */
struct value as_tokens_per_gpu(double number)
{
    char text[32];
    return number >= 999.95 ? shown_as(as_real(number), "%s", grouped((int64_t)(number + 0.5), text, sizeof text))
                            : shown_as(as_real(number), "%#.4g", number);
}

#define RATE_ROWS(ROW) RATE_ROWS_OF(ROW, step_rates, s)
RESULT_ROWS(rate_rows, RATE_ROWS)

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
