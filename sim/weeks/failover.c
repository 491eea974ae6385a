#include "sim/weeks/failover.h"

#include <stdio.h>

static int32_t common_multiple(int32_t a, int32_t b)
{
    int32_t multiple = a;
    while (multiple % b)
        multiple += a;
    return multiple;
}

bool failover_units(const struct layout *layout, const struct cluster *cluster, struct run_failover *failover, char *why,
                    size_t size)
{
    int32_t span = layout->dp * layout->cp, unit = layout->cp, experts = layout->ep * layout_expert_tp(layout);
    if (layout->zero > 0 && layout->shard == 0) {
        snprintf(why, size, "zero=%d divides states among all replicas, so no other has what one loses; zero=0, or shard=N",
                 layout->zero);
        return false;
    }
    if (layout->zero > 0)
        unit = common_multiple(unit, layout->shard);
    if (experts > layout->tp)
        unit = common_multiple(unit, (experts + layout->tp - 1) / layout->tp);
    if (span / unit < 2) {
        snprintf(why, size,
                 "nobody would go on: ranks that hold parts of one state or sequence are %d of %d; give it more replicas, or a "
                 "smaller shard, cp or ep",
                 unit, span);
        return false;
    }
    if (span % unit) {
        snprintf(why, size,
                 "the %d ranks with the same weights are no multiple of the %d that hold parts of one state or sequence", span,
                 unit);
        return false;
    }
    failover->units = span / unit;
    failover->replicas = unit / layout->cp;
    failover->tp = layout->tp;
    failover->span = span;
    failover->size = unit;
    failover->gpus_per_node = cluster->gpus_per_node;
    return true;
}

double failover_regroup_s(const struct layout *layout, int gpus, enum store_kind store)
{
    return startup_groups_s(gpus, (double)gpus / (layout->dp * layout->cp), 1, store);
}

struct startup failover_rejoin(const struct startup_options *options, const struct layout *layout,
                               const struct run_failover *failover, const struct setting *setting, double loading_s)
{
    struct layout alone = *layout;
    struct setting part = *setting;
    alone.dp = failover->replicas;
    part.gpus = setting->gpus / failover->units;
    return startup_of(options, &alone, &part, 1, loading_s);
}
