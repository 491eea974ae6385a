#include "model/cost/kernel/oversubscription.h"

#include <math.h>

#include "model/base/order.h"

/* The rate of the NICs over that of the links above the leaves; 0: there are no such links. */
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

/* Of the neighbours in order that a leaf or pod holds each tree has three edges to others at most: from the highest to its
 * parent, and to a child on either side. Of the two trees that is 6 halves of S / r while the busiest NIC sends
 * COLLECTIVE_TREE_LINKS. One domain alone has no more than these, and two leaves have two edges of each tree between them. */
static double tree_exits(double ring, int domains, int units)
{
    return units > 2 && domains > units ? fmin(1, 6.0 / COLLECTIVE_TREE_LINKS * ring) : ring;
}

double oversubscription_of_trees(const struct cluster *cluster, struct group_span span)
{
    span.leaf_exits.to_next = tree_exits(span.leaf_exits.to_next, span.domains, span.leaves);
    span.pod_exits.to_next = tree_exits(span.pod_exits.to_next, span.domains, span.pods);
    return oversubscription_of_rings(cluster, span);
}

double oversubscription_of_all_to_all(const struct cluster *cluster, struct group_span span)
{
    return fuller(loads_of(cluster, span, true));
}

double oversubscription_of_stages(const struct cluster *cluster, struct group_span span)
{
    return fuller(loads_of(cluster, span, false));
}

/* --- messages of a pipeline */

/* Of the hops of a pipeline over n leaves or pods those from one to the next. Interleaved the last stage sends to the first
 * one, too. */
static double crossing(const struct layout *layout, int units)
{
    if (layout->schedule == SCHEDULE_INTERLEAVED)
        return units > 1 ? (double)units / layout->pp : 0;
    return (double)(units - 1) / (layout->pp - 1);
}

static double messages_of_dragonfly(const struct cluster *cluster, const struct layout *layout)
{
    struct group_span span = layout_span(layout, cluster, GROUP_PP);
    struct loads loads = loads_of(cluster, span, false);
    double leave = crossing(layout, span.leaves), far = crossing(layout, span.pods);
    double of_leaf = fmax(1, loads.leaf), of_pod = fmax(of_leaf, loads.pod);
    return 1 - leave + (leave - far) * of_leaf + far * of_pod;
}

/* Of all messages to the next stage those that leave a leaf or pod, and what that makes them longer; the last ones separately. */
struct leaving {
    double share, over;
    double last_share, last_over;
};

/*
 * Ranks 0 to world - 1 in units of `size`; rank r sends to r + stage, the last stage nowhere. Where stages are smaller than units
 * the last `stage` ranks of each send beyond it, and to the last unit no more than are there. Larger ones leave all, and where
 * both the last sender's unit and the last receiver's are full in part only, so are their links.
 */
static struct leaving leaving_of(int64_t world, int64_t stage, int64_t size, double k)
{
    double messages = (double)(world - stage), full = fmax(1, k * (double)(stage < size ? stage : size) / (double)size);
    int64_t last = 0, beyond = world - stage;
    double over = 1;
    if (stage < size) {
        int64_t boundaries = (world - 1) / size, there = world - boundaries * size;
        last = boundaries == 0 ? 0 : there < stage ? there : stage;
        beyond = boundaries == 0 ? 0 : (boundaries - 1) * stage + last;
        over = fmax(1, k * (double)last / (double)size);
    } else if (world % size && (world - stage) % size) {
        int64_t out = (world - stage) % size, in = world % size;
        last = out < in ? out : in;
        over = fmax(1, k * (double)(out > in ? out : in) / (double)size);
    }
    return (struct leaving){(double)(beyond - last) / messages, full, (double)last / messages, over};
}

/* The same where the last stage sends to the first one: every rank sends, and every link between units is as full. */
static struct leaving leaving_around(int64_t world, int64_t stage, int64_t size, double k)
{
    int64_t boundaries = (world - 1) / size, there = world - boundaries * size, inside = size - (world - stage);
    if (boundaries == 0)
        return (struct leaving){0, 1, 0, 1};
    if (stage >= size)
        return (struct leaving){1, fmax(1, k), 0, 1};
    int64_t stay = inside > 0 ? inside : 0; /* of the last stage, where two units are all there is */
    double beyond = (double)((boundaries - 1) * stage + (there < stage ? there : stage) + stage - stay);
    return (struct leaving){beyond / (double)world, fmax(1, k * (double)(stage - stay) / (double)size), 0, 1};
}

static double messages_of_clos(const struct cluster *cluster, const struct layout *layout)
{
    int64_t stage = (int64_t)layout->tp * layout->cp * layout->dp, world = stage * layout->pp;
    const int nodes[] = {cluster_leaf_nodes(cluster), cluster_pod_nodes(cluster)};
    const double k[] = {above_leaves(cluster), above_pods(cluster)};
    struct leaving of[2];
    for (int level = 0; level < 2; level++) {
        int64_t size = (int64_t)nodes[level] * cluster->gpus_per_node;
        size = size > 0 && size < world && k[level] > 0 ? size : world;
        of[level] = layout->schedule == SCHEDULE_INTERLEAVED ? leaving_around(world, stage, size, k[level])
                                                             : leaving_of(world, stage, size, k[level]);
    }
    double leave = of[0].share + of[0].last_share, far = of[1].share + of[1].last_share;
    double near_extra = of[0].share * (of[0].over - 1) + of[0].last_share * (of[0].last_over - 1);
    double of_leaf = leave > 0 ? near_extra / leave : 0; /* beyond 1, the mean of those that leave */
    return 1 + fmax(0, leave - far) * of_leaf + of[1].share * fmax(of_leaf, of[1].over - 1) +
           of[1].last_share * fmax(of_leaf, of[1].last_over - 1);
}

double oversubscription_of_messages(const struct cluster *cluster, const struct layout *layout)
{
    if (layout->pp < 2 || !is_narrow(cluster))
        return 1;
    return cluster->topology == TOPOLOGY_DRAGONFLY ? messages_of_dragonfly(cluster, layout) : messages_of_clos(cluster, layout);
}
