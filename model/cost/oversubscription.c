#include "model/cost/oversubscription.h"

#include <math.h>

#include "model/base/order.h"

/* What NICs send over what the links above the leaves carry; 0: there are none. */
static double above_leaves(const struct cluster *cluster)
{
    bool none = cluster->topology == TOPOLOGY_CLOS && cluster->fabric_layers < 2;
    return none ? 0 : cluster_leaf_oversubscription(cluster);
}

/* The same above pods. A Clos says it of what comes from the leaves, a dragonfly of NICs. */
static double above_pods(const struct cluster *cluster)
{
    if (cluster->topology == TOPOLOGY_DRAGONFLY)
        return cluster_pod_oversubscription(cluster);
    return cluster->fabric_layers < 3 ? 0 : cluster_leaf_oversubscription(cluster) * cluster_pod_oversubscription(cluster);
}

/* Without it nothing is ever longer, whatever the layout. */
static bool is_narrow(const struct cluster *cluster)
{
    return cluster->topology == TOPOLOGY_DRAGONFLY || above_leaves(cluster) > 1 || above_pods(cluster) > 1;
}

struct loads {
    double leaf, pod;
};

/* See the header; of fewer than three there is no way around. */
static double detours(int of, int used, int reached)
{
    return of > 2 && used > reached ? (of - 1) / (of - 1 - 0.5 * (used - reached)) : 1;
}

/* `leaf` and `pod`: what leaves them. From one group to the next every switch of both sends to, or gets from, all others alike.
 */
static struct loads dragonfly_loads(const struct cluster *cluster, double leaf, double pod, struct group_span span, bool to_all)
{
    const struct dragonfly *d = &cluster->dragonfly;
    int rails = cluster_dragonfly_rails(cluster), pods = span.pods > 1 ? span.pods : 1;
    int used = int_min(span.leaf_exits.units * rails, d->switches_per_group);
    int reached = to_all ? (span.leaves + pods - 1) / pods * rails : 2;
    double inside = fmax(0, leaf - pod) * detours(d->switches_per_group, used, reached);
    return (struct loads){
        .leaf = (inside + 2 * pod) * above_leaves(cluster),
        .pod = pod * above_pods(cluster) * detours(d->groups, span.pod_exits.units, to_all ? pods : 2),
    };
}

static struct loads loads_of(const struct cluster *cluster, struct group_span span, bool to_all)
{
    double leaf = to_all ? span.leaf_exits.to_all : span.leaf_exits.to_next;
    double pod = to_all ? span.pod_exits.to_all : span.pod_exits.to_next;
    if (leaf <= 0)
        return (struct loads){0, 0};
    if (cluster->topology == TOPOLOGY_DRAGONFLY)
        return dragonfly_loads(cluster, leaf, pod, span, to_all);
    return (struct loads){leaf * above_leaves(cluster), pod * above_pods(cluster)};
}

static double fuller(struct loads loads)
{
    return fmax(loads.leaf, loads.pod);
}

/* The part of its NICs that a domain uses while all its groups of the kind send: one NIC where they take turns. */
static double nics_used(const struct cluster *cluster, struct group_span span)
{
    int gpus = cluster->nvlink_domain > cluster->gpus_per_node ? cluster->nvlink_domain : cluster->gpus_per_node;
    double groups = (double)gpus / span.ranks_per_domain, sharing = span.sharing > 1 ? span.sharing : 1;
    return fmin(1, groups * cluster_nics_of(cluster, span.ranks_per_domain) / (sharing * cluster_domain_nics(cluster)));
}

double oversubscription_of_rings(const struct cluster *cluster, struct group_span span)
{
    double load = fuller(loads_of(cluster, span, false));
    return load > 0 ? load * nics_used(cluster, span) : 0;
}

double oversubscription_of_all_to_all(const struct cluster *cluster, struct group_span span)
{
    return fuller(loads_of(cluster, span, true));
}

double oversubscription_of_stages(const struct cluster *cluster, struct group_span span)
{
    return fuller(loads_of(cluster, span, false));
}

/* Of the hops of a pipeline over so many leaves or pods those from one to the next. Interleaved the last stage sends to the first
 * one, too. */
static double crossing(const struct layout *layout, int units)
{
    if (layout->schedule == SCHEDULE_INTERLEAVED)
        return units > 1 ? (double)units / layout->pp : 0;
    return (double)(units - 1) / (layout->pp - 1);
}

double oversubscription_of_messages(const struct cluster *cluster, const struct layout *layout)
{
    if (layout->pp < 2 || !is_narrow(cluster))
        return 1;
    struct group_span span = layout_span(layout, cluster, GROUP_PP);
    struct loads loads = loads_of(cluster, span, false);
    double leave = crossing(layout, span.leaves), far = crossing(layout, span.pods);
    double of_leaf = fmax(1, loads.leaf), of_pod = fmax(of_leaf, loads.pod);
    return 1 - leave + (leave - far) * of_leaf + far * of_pod;
}
