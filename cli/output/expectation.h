/*
 * expectation.h - what predicted step times and memory can be expected to be worth, by the record of real runs.
 */
#ifndef MSIM_CLI_OUTPUT_EXPECTATION_H
#define MSIM_CLI_OUTPUT_EXPECTATION_H

#include <jansson.h>
#include <stdio.h>

#include "cli/output/result_row.h"
#include "model/cost/step/track_record.h"

/* "80 % interval from 858 published runs of this kind (dense, fused kernels; 9 sources); none of them on b200". Returns buffer.
 */
enum { EXPECTATION_TEXT = 400 };
char *expectation_runs_text(const struct layout *layout, const struct setting *setting, char *buffer, size_t size);

/* What none of these runs has: "on b200, with Muon"; "" nothing. Returns buffer. */
enum { UNHEARD_TEXT = 256 };
char *expectation_unheard(const struct layout *layout, const struct setting *setting, char *buffer, size_t size);

/* The object `likely` of a result, with likely_rows; of a step of `step_s` seconds. none_with lists what the text says none of
 * these runs has: gpu, hybrid, muon, adapter, documents, offload, cp_comm, recompute. */
extern const struct result_row likely_rows[];
json_t *expectation_json(const struct layout *layout, const struct setting *setting, double step_s);

/* "646 published runs that report failures, 43 of this kind: dense, fused kernels". Returns buffer. */
char *expectation_outcomes_text(const struct layout *layout, const struct setting *setting, char *buffer, size_t size);

/* The object `out_of_memory` of a result, with out_of_memory_rows. */
extern const struct result_row out_of_memory_rows[];
json_t *expectation_memory_json(const struct layout *layout, const struct setting *setting, double use);

#endif
