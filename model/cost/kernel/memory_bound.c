#include "model/cost/kernel/memory_bound.h"

#include <math.h>

/* Half of the bytes that a kernel moves were just written by the kernel before it and need no trip to memory while they are in
 * the L2. Cache lines are replaced about at random: a line survives until `bytes` more have passed with probability exp(-bytes
 * / l2). The kernels of the optimizer read data written a pass ago. Bytes of no kernel (count 0) come on top of another's. */
static double found_in_l2(const struct gpu *gpu, const struct work_memory *memory)
{
    if (memory->kernel == MEMORY_OPTIMIZER || memory->count == 0 || gpu->l2_bytes <= 0)
        return 0;
    return 0.5 * exp(-memory->bytes / memory->count / gpu->l2_bytes);
}

struct cost memory_bound_cost(const struct gpu *gpu, const struct work_memory *memory)
{
    const struct memory_parameters *p = &gpu->memory;
    double own = p->rate[memory->kernel], hbm = gpu->hbm_rate * p->bandwidth_fraction;
    return (struct cost){
        .launch_s = memory->count * (p->fixed_s + gpu->launch_s),
        .memory_s = own > 0 ? memory->bytes / own : memory->bytes * (1 - found_in_l2(gpu, memory)) / hbm,
    };
}
