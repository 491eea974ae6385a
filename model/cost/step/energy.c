#include "model/cost/step/energy.h"

#include "model/base/order.h"

enum power_count power_published(const struct cluster *cluster)
{
    return cluster->node_power_w > 0 ? POWER_NODES : cluster->gpu.power_w > 0 ? POWER_BOARDS : POWER_UNKNOWN;
}

struct power_bound power_bound_of(const struct cluster *cluster, int gpus, enum power_count count)
{
    double each = count == POWER_NODES ? cluster->node_power_w : count == POWER_BOARDS ? cluster->gpu.power_w : 0;
    double sharing = count == POWER_NODES ? int_min(gpus, cluster->gpus_per_node) : 1;
    struct power_bound bound = {.pue = cluster->pue > 0 ? cluster->pue : 1, .pue_assumed = cluster->pue <= 0};

    if (each <= 0)
        return bound;
    bound.count = count;
    bound.each_w = each;
    bound.gpu_w = each / sharing * bound.pue;
    return bound;
}

struct power_bound power_bound_published(const struct cluster *cluster, int gpus)
{
    return power_bound_of(cluster, gpus, power_published(cluster));
}

double power_bound_energy(const struct power_bound *bound, double gpu_hours)
{
    return bound->gpu_w * gpu_hours * 3600;
}
