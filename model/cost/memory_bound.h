/*
 * memory_bound.h - time of kernels that stream memory: norms, activations, residual additions, dropout, casts, optimizer.
 *
 *     time = count (fixed + launch) + bytes / (HBM bandwidth * bandwidth_fraction)
 */
#ifndef MSIM_MODEL_COST_MEMORY_BOUND_H
#define MSIM_MODEL_COST_MEMORY_BOUND_H

#include "model/cost/cost.h"
#include "model/cost/work.h"

struct cost memory_bound_cost(const struct gpu *gpu, const struct work_memory *memory);

#endif
