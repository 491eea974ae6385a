/*
 * memory_bound.h - time of kernels that stream memory: norms, activations, residual additions, dropout, casts, optimizer.
 *
 *     time = count (fixed + launch) + bytes (1 - exp(-bytes / count / L2) / 2) / (HBM bandwidth * bandwidth_fraction)
 *
 * Half of the bytes are what the kernel before has just written; what of them is still in the L2 is not fetched again.
 *
 * A kernel that something else limits (GeLU's exponentials on a CPU, a table's scattered rows) has a measured rate of its own in
 * the place of the bandwidth: bytes as counted here over the time that they take.
 */
#ifndef MSIM_MODEL_COST_KERNEL_MEMORY_BOUND_H
#define MSIM_MODEL_COST_KERNEL_MEMORY_BOUND_H

#include "model/cost/work/cost.h"
#include "model/cost/work/work.h"

struct cost memory_bound_cost(const struct gpu *gpu, const struct work_memory *memory);

#endif
