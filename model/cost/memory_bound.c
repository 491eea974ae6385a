#include "model/cost/memory_bound.h"

struct cost memory_bound_cost(const struct gpu *gpu, const struct work_memory *memory)
{
    const struct memory_parameters *p = &gpu->memory;
    double own = p->rate[memory->kernel], rate = own > 0 ? own : gpu->hbm_rate * p->bandwidth_fraction;
    return (struct cost){
        .launch_s = memory->count * (p->fixed_s + gpu->launch_s),
        .memory_s = memory->bytes / rate,
    };
}
