/*
 * footprint.h - memory of one rank. Bytes, by what they are for.
 */
#ifndef MSIM_MODEL_COST_FOOTPRINT_H
#define MSIM_MODEL_COST_FOOTPRINT_H

#include "model/cost/stage_load.h"

struct footprint {
    double weights, gradients, optimizer, activations, buffers, framework;
    double total;
    double host; /* in the memory of the host; not in the total */
};

/* Features that no footprint depends on: the search asks once for layouts that differ in these alone. */
#define FOOTPRINT_IGNORES (FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP))

/* Bytes that a layer keeps of a micro-batch from its forward to its backward pass. */
double footprint_layer_bytes(const struct layout *layout, const struct setting *setting, bool mixture);

/* Peak of the pipeline stage that needs most (`host`: of the one that needs most of that), or of one stage. */
void footprint_of_stage(const struct layout *layout, const struct setting *setting, int stage, struct footprint *out);
void footprint_peak(const struct layout *layout, const struct setting *setting, struct footprint *out, int *stage);
/* The same; `full` keeps what stages hold for the next layout of the same division. */
void footprint_peak_of(struct full_stages *full, const struct layout *layout, const struct setting *setting,
                       struct footprint *out, int *stage);
/* What fits: the GPU's memory less what the driver and fragmentation take. */
double footprint_capacity(const struct cluster *cluster);

#endif
