/* fold_connections.c - the paths over the fabric that a program uses: of its messages and of the edges of its collectives. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "sim/network/fold_internal.h"

static int gpu_of(const struct fold_network *network, int rank)
{
    return network->options->placement != NULL ? network->options->placement[rank] : rank;
}

/* What each queue pair has of a way to itself: its slowest link, shared among those that cross it. */
static double way_rate(const double *rates, const uint32_t *hops, size_t n)
{
    uint32_t *sorted = memory_new(n, sizeof *sorted);
    double rate = 1e16;
    size_t crossings = 0;

    memcpy(sorted, hops, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, uint32_compare);
    for (size_t h = 0; h < n; h++) {
        crossings = h > 0 && sorted[h] == sorted[h - 1] ? crossings + 1 : 1;
        if (rates[sorted[h]] / (double)crossings < rate)
            rate = rates[sorted[h]] / (double)crossings;
    }
    free(sorted);
    return rate;
}

/* From a GPU to a GPU, over all queue pairs; `of` says whose they are. */
static bool way_add(struct fold *fold, const struct fold_network *network, int from, int to, struct fold_connection of)
{
    const struct network_flow_options *options = network->options;
    const struct router router = {.fabric = options->fabric,
                                  .routing = options->routing,
                                  .polarised = options->polarised,
                                  .rail_aware = options->rail_aware,
                                  .seed = options->seed};
    struct path path;

    of.first_hop = (uint32_t)fold->n_hops;
    for (int q = 0; q < options->queue_pairs; q++) {
        if (!route_gpus(&router, from, to, (uint32_t)q, &path))
            return false;
        if (fold->n_hops + path.n > fold->hop_capacity)
            fold->hops = memory_grow(fold->hops, &fold->hop_capacity, fold->n_hops + path.n, sizeof *fold->hops);
        for (int h = 0; h < path.n; h++)
            fold->hops[fold->n_hops++] = path.links[h];
    }
    of.n_hops = (uint32_t)fold->n_hops - of.first_hop;
    of.rate = way_rate(network->rates, fold->hops + of.first_hop, of.n_hops);
    if (fold->n_connections == fold->connection_capacity)
        fold->connections =
            memory_grow(fold->connections, &fold->connection_capacity, fold->n_connections + 1, sizeof *fold->connections);
    fold->connections[fold->n_connections++] = of;
    return true;
}

/* ---- messages */

/* Bit p: the script sends to its peer in role p. */
static unsigned roles_sent(const struct program *program, int32_t script)
{
    const struct script *s = &program->scripts[script];
    unsigned roles = 0;

    for (uint32_t i = 0; i < s->n_ops; i++)
        if (program->ops[s->first_op + i].kind == OP_SEND)
            roles |= 1u << program->ops[s->first_op + i].role;
    return roles;
}

static bool messages_list(struct fold *fold, const struct fold_network *network)
{
    const struct program *whole = fold->whole;
    unsigned *roles = memory_new((size_t)whole->n_scripts, sizeof *roles);
    bool joined = true;

    for (int32_t s = 0; s < whole->n_scripts; s++)
        roles[s] = roles_sent(whole, s);
    for (int32_t r = 0; r < whole->n_ranks; r++)
        for (int p = 0; p < N_PEERS; p++) {
            uint32_t *first = &fold->message_first[(size_t)r * N_PEERS + (size_t)p];
            *first = UINT32_MAX;
            if (p > 0 && whole->ranks[r].peers[p] == whole->ranks[r].peers[0])
                *first = fold->message_first[(size_t)r * N_PEERS]; /* two stages: both neighbours are one */
            if (*first != UINT32_MAX || !joined || !(roles[whole->ranks[r].script] >> p & 1u) || whole->ranks[r].peers[p] < 0)
                continue;
            uint32_t begins = (uint32_t)fold->n_connections;
            joined = way_add(fold, network, gpu_of(network, r), gpu_of(network, whole->ranks[r].peers[p]),
                             (struct fold_connection){.from = r, .to = whole->ranks[r].peers[p], .owner = N_GROUP_KINDS});
            *first = begins;
        }
    free(roles);
    return joined;
}

/* ---- collectives */

/* Bit s: the collectives of a group's members take shape s. */
static unsigned shapes_used(const struct fold *fold, const struct fold_network *network, const struct rank_group *group,
                            struct group_span span)
{
    const struct program *whole = fold->whole;
    const struct script *s = &whole->scripts[whole->ranks[whole->members[group->first_member]].script];
    unsigned shapes = 0;

    for (uint32_t i = 0; i < s->n_ops; i++) {
        const struct op *op = &whole->ops[s->first_op + i];
        if (op->kind != OP_COLLECTIVE || op->role != group->kind)
            continue;
        const struct work_collective exchange = op_exchange(whole, op);
        shapes |= 1u << collective_shape_of(network->cluster, span, &exchange);
    }
    return shapes & ~(1u << SHAPE_NONE);
}

static bool group_list(struct fold *fold, const struct fold_network *network, int32_t g)
{
    const struct rank_group *group = &fold->whole->groups[g];
    const struct fabric *fabric = network->options->fabric;
    int *gpus = memory_new((size_t)group->n_members, sizeof *gpus);
    bool joined = true;

    for (int32_t m = 0; m < group->n_members; m++)
        gpus[m] = gpu_of(network, fold->whole->members[group->first_member + m]);
    struct group_span span = network_flow_span(fabric, network->machine, group->kind, gpus, group->n_members);
    unsigned shapes = shapes_used(fold, network, group, span);
    for (int shape = 0; shape < N_COLLECTIVE_SHAPES && joined; shape++) {
        struct collective_plan plan;
        if (!(shapes >> shape & 1u))
            continue;
        struct fold_edges *edges = &fold->edges[(size_t)g * N_COLLECTIVE_SHAPES + (size_t)shape];
        edges->first = (uint32_t)fold->n_connections;
        collective_plan_create(fabric, (enum collective_shape)shape, gpus, group->n_members, span.sharing > 1, &plan);
        for (size_t e = 0; e < plan.n_edges && joined; e++)
            joined = way_add(fold, network, plan.edges[e].from, plan.edges[e].to,
                             (struct fold_connection){.from = g, .to = shape, .owner = (uint8_t)group->kind});
        collective_plan_free(&plan);
        edges->n = (uint32_t)fold->n_connections - edges->first;
    }
    free(gpus);
    return joined;
}

bool fold_connections_list(struct fold *fold, const struct fold_network *network)
{
    fold->message_first = memory_new((size_t)fold->whole->n_ranks * N_PEERS, sizeof *fold->message_first);
    fold->edges = memory_new((size_t)fold->whole->n_groups * N_COLLECTIVE_SHAPES, sizeof *fold->edges);
    bool joined = messages_list(fold, network);
    for (int32_t g = 0; g < fold->whole->n_groups && joined; g++)
        joined = group_list(fold, network, g);
    return joined;
}
