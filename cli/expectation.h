/*
 * expectation.h - what a predicted step time can be expected to be worth, by the record of real runs of its kind.
 */
#ifndef MSIM_CLI_EXPECTATION_H
#define MSIM_CLI_EXPECTATION_H

#include <jansson.h>
#include <stdio.h>

#include "model/cost/track_record.h"

/* "eight in ten of 858 real runs of its kind (dense, fused kernels; 9 sources), none of them on a100-40g-sxm"; no line's end. */
void expectation_write_runs(const struct layout *layout, const struct setting *setting, FILE *out);

/* {"kind", "low_s", "high_s", "runs", "sources", "gpu_among_them"}; of a step of `step_s` seconds. */
json_t *expectation_json(const struct layout *layout, const struct setting *setting, double step_s);

#endif
