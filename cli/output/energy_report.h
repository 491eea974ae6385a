/*
 * energy_report.h - what power and energy at most (model/cost/step/energy.h) are called, in text and in JSON.
 */
#ifndef MSIM_CLI_OUTPUT_ENERGY_REPORT_H
#define MSIM_CLI_OUTPUT_ENERGY_REPORT_H

#include <jansson.h>
#include <stddef.h>

#include "model/cost/step/energy.h"

enum { BOUND_TEXT = 160 };

/* J in MWh as "206" or "21,588". Returns buffer. */
char *megawatt_hours_text(double joules, char *buffer, size_t size);
/* The same with its unit, "206 MWh"; in kWh below one MWh. Returns buffer. */
char *energy_text(double joules, char *buffer, size_t size);
/* What is counted and what is not: "GPUs at board power (400 W), without hosts and network; PUE 1 assumed". Returns buffer. */
char *power_bound_text(const struct power_bound *bound, char *buffer, size_t size);
/* The same of points whose watts or PUE differ. */
/* "nodes", "boards". */
const char *power_count_name(enum power_count count);
const char *power_count_text(enum power_count count);
/* Do they count the same at the same watts and PUE? */
bool power_bounds_alike(const struct power_bound *a, const struct power_bound *b);
/* "energy_at_most" of a result: of so many GPUs, GPU-hours (0: nobody says how many) and tokens a second of all of them (0:
 * none); null where no power is published. */
json_t *energy_json(const struct power_bound *bound, double gpus, double gpu_hours, double tokens_per_s);

#endif
