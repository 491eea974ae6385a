/*
 * dragonfly_cut.c - what passes between two halves of a dragonfly's hosts under ideal routing: the maximum flow over its
 * switches, from the NICs of the first half to those of the rest, which is the least cut between them.
 *
 * Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", Soviet Mathematics Doklady 11
 * (1970): breadth-first levels, then every shortest way that has room left, until no way is left. Frontier's 2,368 switches take
 * some hundredths of a second.
 */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/fabric/dragonfly.h"

/* B/s: less room than this is what rounding leaves of rates of some GB/s. */
static const double NO_ROOM = 1;

/* Arcs 2 i and 2 i + 1 are those of a pair of switches, each way; what one carries is room in the other. */
struct flow_graph {
    int *to, *next; /* [arcs]; the next arc of the same node, -1: none */
    double *room;   /* [arcs] B/s left */
    int *head;      /* [nodes] its first arc */
    int *level;     /* [nodes] arcs from the source; -1: not reached */
    int *current;   /* [nodes] the arc that is tried next */
    int *stack;     /* [nodes] nodes in breadth, and arcs in depth */
    int n_nodes, n_arcs, source, sink;
};

static void graph_create(struct flow_graph *g, int n_nodes, size_t pairs)
{
    size_t nodes = (size_t)n_nodes;

    *g = (struct flow_graph){.to = memory_new(2 * pairs, sizeof *g->to),
                             .next = memory_new(2 * pairs, sizeof *g->next),
                             .room = memory_new(2 * pairs, sizeof *g->room),
                             .head = memory_new(nodes, sizeof *g->head),
                             .level = memory_new(nodes, sizeof *g->level),
                             .current = memory_new(nodes, sizeof *g->current),
                             .stack = memory_new(nodes, sizeof *g->stack),
                             .n_nodes = n_nodes,
                             .source = n_nodes - 2,
                             .sink = n_nodes - 1};
    memset(g->head, -1, nodes * sizeof *g->head);
}

static void graph_free(struct flow_graph *g)
{
    free(g->to);
    free(g->next);
    free(g->room);
    free(g->head);
    free(g->level);
    free(g->current);
    free(g->stack);
}

static void arc_add(struct flow_graph *g, int from, int to, double room)
{
    g->to[g->n_arcs] = to;
    g->room[g->n_arcs] = room;
    g->next[g->n_arcs] = g->head[from];
    g->head[from] = g->n_arcs++;
}

static void pair_add(struct flow_graph *g, int from, int to, double there, double back)
{
    arc_add(g, from, to, there);
    arc_add(g, to, from, back);
}

/* Is there a way from the source to the sink? */
static bool levels_find(struct flow_graph *g)
{
    int n = 0;

    memset(g->level, -1, (size_t)g->n_nodes * sizeof *g->level);
    g->level[g->source] = 0;
    g->stack[n++] = g->source;
    for (int i = 0; i < n; i++)
        for (int a = g->head[g->stack[i]]; a >= 0; a = g->next[a])
            if (g->room[a] > NO_ROOM && g->level[g->to[a]] < 0) {
                g->level[g->to[a]] = g->level[g->stack[i]] + 1;
                g->stack[n++] = g->to[a];
            }
    return g->level[g->sink] >= 0;
}

/* As much as the way of `depth` arcs lets through; back to where the first of them is full. Returns the depth there. */
static int way_fill(struct flow_graph *g, int depth, double *sum)
{
    double least = g->room[g->stack[0]];
    int full = 0;

    for (int i = 1; i < depth; i++)
        if (g->room[g->stack[i]] < least) {
            least = g->room[g->stack[i]];
            full = i;
        }
    for (int i = 0; i < depth; i++) {
        g->room[g->stack[i]] -= least;
        g->room[g->stack[i] ^ 1] += least;
    }
    *sum += least;
    return full;
}

/* All that the shortest ways of these levels let through. */
static double levels_fill(struct flow_graph *g)
{
    double sum = 0;
    int depth = 0, at = g->source;

    memcpy(g->current, g->head, (size_t)g->n_nodes * sizeof *g->current);
    while (true) {
        int a = g->current[at];
        while (a >= 0 && (g->room[a] <= NO_ROOM || g->level[g->to[a]] != g->level[at] + 1))
            a = g->next[a];
        g->current[at] = a;
        if (a >= 0) {
            g->stack[depth++] = a;
            at = g->to[a];
            if (at == g->sink) {
                depth = way_fill(g, depth, &sum);
                at = g->to[g->stack[depth] ^ 1];
            }
        } else if (depth > 0) { /* a dead end: the arc to it is not tried again */
            at = g->to[g->stack[--depth] ^ 1];
            g->current[at] = g->next[g->current[at]];
        } else {
            return sum;
        }
    }
}

/* ---- the switches of a dragonfly */

/* NICs of the first half send, those of the rest receive. */
static void add_hosts(struct flow_graph *g, const struct fabric *f)
{
    int half = f->shape.hosts / 2 * (f->n_ports / f->shape.hosts);
    double *rates = memory_new((size_t)f->n_tors * 2, sizeof *rates);

    for (int port = 0; port < f->n_ports; port++)
        rates[2 * fabric_tor_of_port(f, port) + (port >= half)] +=
            fabric_rate(f, f->first[port < half ? LAYER_NIC_UP : LAYER_NIC_DOWN] + (uint32_t)port);
    for (int s = 0; s < f->n_tors; s++) {
        if (rates[2 * s] > 0)
            pair_add(g, g->source, s, rates[2 * s], 0);
        if (rates[2 * s + 1] > 0)
            pair_add(g, s, g->sink, rates[2 * s + 1], 0);
    }
    free(rates);
}

double dragonfly_cut(const struct fabric *f)
{
    uint32_t out[] = {LAYER_LOCAL_OUT, LAYER_GLOBAL_OUT}, in[] = {LAYER_LOCAL_IN, LAYER_GLOBAL_IN};
    struct flow_graph g;
    double sum = 0;

    graph_create(&g, f->n_tors + 2, (size_t)dragonfly_local_cables(f) + dragonfly_global_cables(f) + 2 * (size_t)f->n_tors);
    for (int k = 0; k < 2; k++)
        for (uint32_t l = 0; l < f->first[out[k] + 1] - f->first[out[k]]; l++) {
            struct dragonfly_cable cable = dragonfly_cable(f, f->first[out[k]] + l);
            pair_add(&g, cable.low, cable.high, fabric_rate(f, f->first[out[k]] + l), fabric_rate(f, f->first[in[k]] + l));
        }
    add_hosts(&g, f);
    while (levels_find(&g))
        sum += levels_fill(&g);
    graph_free(&g);
    return sum;
}
