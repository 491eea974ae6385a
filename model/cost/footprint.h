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

/*
 * Bytes of what a rank has of all keys and values while context parallelism's attention runs, with elements of so many bytes; 0
 * without it. As the program executes it (work_attention.c: keys and values are gathered, their gradients reduced to whom they
 * belong), most in a layer's backward pass, until the reduction: all keys and values of the micro-batch; their gradients; these
 * in the order of ranks; the rank's own. (A ring that passes blocks on has two of them and of their gradients at a time: four
 * ranks' worth in place of 3 cp + 1.)
 */
double footprint_gathered_keys_bytes(const struct layout *layout, const struct setting *setting, double element_bytes);

/* Peak of the pipeline stage that needs most (`host`: of the one that needs most of that), or of one stage. */
void footprint_of_stage(const struct layout *layout, const struct setting *setting, int stage, struct footprint *out);
void footprint_peak(const struct layout *layout, const struct setting *setting, struct footprint *out, int *stage);
/* The same; `full` keeps what stages hold for the next layout of the same division. */
void footprint_peak_of(struct full_stages *full, const struct layout *layout, const struct setting *setting,
                       struct footprint *out, int *stage);
/* What fits: the GPU's memory less what the driver and fragmentation take. */
double footprint_capacity(const struct cluster *cluster);

#endif
