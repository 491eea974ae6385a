/*
 * memory_bound.h - the time of kernels that stream memory: norms, activations, residual additions, dropout, casts, optimizer.
 *
 * Example: a norm that moves 64 MiB in one kernel on H100 takes 23.3 us: 3.0 launch, 20.3 memory.
 *
 *     time = count (fixed + launch) + bytes (1 - exp(-bytes / count / L2) / 2) / (HBM bandwidth * bandwidth_fraction)
 *
 * Half of the bytes were just written by the kernel before; the part of them that is still in the L2 is not fetched again.
 *
 * A kernel with another limit (GeLU's exponentials on a CPU, the scattered rows of a table) has a measured rate of its own
 * instead of the bandwidth: bytes as counted here over the measured time.
 */
#ifndef MSIM_MODEL_COST_KERNEL_MEMORY_BOUND_H
#define MSIM_MODEL_COST_KERNEL_MEMORY_BOUND_H

#include "model/cost/work/cost.h"
#include "model/cost/work/work.h"

/* Seconds of `memory->count` kernels that move `memory->bytes` together. */
struct cost memory_bound_cost(const struct gpu *gpu, const struct work_memory *memory);

#endif
