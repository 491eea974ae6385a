/* network_flow_groups.c - the collectives of a network of flows: connections of a group per shape, and their start. */
#include "sim/network/network_flow_internal.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"

/* ---- collectives */

/* The group itself, or the one that stands for a class. */
static const struct rank_group *group_at(const struct network_flow *n, int group)
{
    return &n->program->groups[n->fold != NULL ? n->fold->group_of[group] : group];
}

static int *group_gpus(const struct network_flow *n, int group)
{
    const struct rank_group *of = group_at(n, group);
    int *gpus = memory_new((size_t)of->n_members, sizeof *gpus);

    for (int i = 0; i < of->n_members; i++)
        gpus[i] = network_flow_gpu(n, n->program->members[of->first_member + i]);
    return gpus;
}

/* One flow for each class of the group's edges. */
static void classes_open(struct network_flow *n, int group, enum collective_shape shape)
{
    const struct fold *fold = n->fold;
    const struct fold_edges *edges = &fold->edges[(size_t)fold->group_of[group] * N_COLLECTIVE_SHAPES + (size_t)shape];
    bool *met = memory_new((size_t)fold->n_connection_classes, sizeof *met);

    for (uint32_t e = edges->first; e < edges->first + edges->n; e++) {
        int32_t class = fold->connections[e].class;
        if (!met[class])
            network_flow_open_class(n, class);
        met[class] = true;
    }
    free(met);
}

static void group_shape_open(struct network_flow *n, int group, enum collective_shape shape)
{
    struct group_flows *flows = &n->groups[group];
    const struct rank_group *of = group_at(n, group);
    struct collective_plan plan;
    int *gpus = group_gpus(n, group);

    collective_plan_create(n->options.fabric, shape, gpus, of->n_members, flows->span.sharing > 1, &plan);
    flows->shapes[shape].known = true;
    flows->shapes[shape].share = plan.share;
    flows->shapes[shape].ring = (uint32_t)plan.ring;
    flows->shapes[shape].first = (uint32_t)n->n_flows;
    if (n->fold != NULL)
        classes_open(n, group, shape);
    for (size_t e = 0; e < plan.n_edges && n->fold == NULL; e++)
        if (!network_flow_open(n, plan.edges[e].from, plan.edges[e].to, (int)of->kind))
            network_flow_lose(n, plan.edges[e].from, plan.edges[e].to);
    flows->shapes[shape].n = (uint32_t)n->n_flows - flows->shapes[shape].first;
    collective_plan_free(&plan);
    free(gpus);
}

struct group_span network_flow_span(const struct fabric *fabric, const struct machine *machine, enum group_kind kind,
                                    const int *gpus, int n)
{
    struct group_span span = collective_span(fabric, gpus, n);

    span.sharing = replica_turns(machine->layout, machine->cluster, kind, span);
    return span;
}

static void group_know(struct network_flow *n, int group)
{
    int *gpus = group_gpus(n, group);

    n->groups[group].span =
        network_flow_span(n->options.fabric, n->machine, group_at(n, group)->kind, gpus, group_at(n, group)->n_members);
    n->groups[group].known = true;
    free(gpus);
}

/* B/s of each edge's part of the NICs while the group is alone: rings and trees have as many channels as members in a domain,
 * over as many NICs as there are; in an all-to-all every member has its share. */
static double edge_rate(const struct network_flow *n, enum collective_shape shape, const struct group_span *span)
{
    const struct cluster *c = &n->cluster;
    if (shape == SHAPE_ALL_TO_ALL || shape == SHAPE_DISPATCH || span->ranks_per_domain < 1)
        return n->nic_rate;
    int channels = span->sharing > 1 ? 1 : span->ranks_per_domain; /* those that take turns: one */
    return c->nic_rate * c->net_fraction * cluster_nics_of(c, span->ranks_per_domain) / (span->sharing * channels);
}

/* Seconds of a bandwidth term in which the NICs send: all but where links inside domains hold a ring or tree up. */
static double nics_busy(const struct network_flow *n, enum collective_shape shape, struct group_span span,
                        const struct work_collective *exchange, double seconds)
{
    bool pipelined = n->cluster.collective_algorithm != ALGORITHM_HIERARCHICAL && (shape == SHAPE_RING || shape == SHAPE_TREE);

    return pipelined ? fmin(seconds, collective_nics_s(&n->cluster, exchange->collective, span, exchange->bytes)) : seconds;
}

void network_flow_collective(void *state, nanos now, const struct work_collective *exchange, int group, uint64_t payload)
{
    struct network_flow *n = state;
    struct group_flows *flows = &n->groups[group];

    network_flow_reach(n, now);
    if (!flows->known)
        group_know(n, group);
    struct collective_phases phases = exchange_phases(&n->cluster, flows->span, exchange);
    nanos total = nanos_from_seconds(cost_seconds(cost_add(cost_add(phases.before, phases.network), phases.after)));
    nanos delay = nanos_from_seconds(cost_seconds(phases.before));
    double seconds = phases.network.bandwidth_s;
    enum collective_shape shape = collective_shape_of(&n->cluster, flows->span, exchange);
    if (shape == SHAPE_NONE) {
        network_flow_transfer(n, payload, total, 0);
        return;
    }
    if (!flows->shapes[shape].known)
        group_shape_open(n, group, shape);
    double busy = nics_busy(n, shape, flows->span, exchange, seconds);
    struct flows_start start = {.first = flows->shapes[shape].first,
                                .n = flows->shapes[shape].n,
                                .carried = busy * edge_rate(n, shape, &flows->span) * flows->shapes[shape].share /
                                           n->options.queue_pairs};
    if (n->options.per_step && shape == SHAPE_RING) {
        start.length = flows->shapes[shape].ring;
        start.parts = (exchange->collective == COLLECTIVE_ALL_REDUCE ? 2 : 1) * (start.length - 1);
    }
    start.transfer = network_flow_transfer(n, payload, total - delay - nanos_from_seconds(seconds), start.n);
    if (busy < seconds)
        n->transfers[start.transfer].until = now + delay + nanos_from_seconds(seconds);
    if (delay > 0)
        delayed_starts_add(&n->delayed, now + delay, start);
    else
        network_flow_begin(n, &start);
}
