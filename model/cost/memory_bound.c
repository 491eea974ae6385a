#include "model/cost/memory_bound.h"

struct cost memory_bound_cost(const struct gpu *gpu, const struct work_memory *memory)
{
    const struct memory_parameters *p = &gpu->memory;
    return (struct cost){
        .launch_s = memory->count * (p->fixed_s + gpu->launch_s),
        .memory_s = memory->bytes / (gpu->hbm_rate * p->bandwidth_fraction),
    };
}
