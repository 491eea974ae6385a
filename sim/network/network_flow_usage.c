/* network_flow_usage.c - the use of links by a network of flows, and the owners of the busiest. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/network/network_flow_internal.h"

/* Every connection has carried what the one that stands for its class has. */
static void usage_unfold(const struct network_flow *n, uint32_t n_links, struct link_usage *usage)
{
    const struct fold *fold = n->fold;
    double *carried = memory_new((size_t)fold->n_connection_classes, sizeof *carried);

    for (uint32_t f = 0; f < n->n_flows; f++)
        carried[flows_payload(n->flows, f)] += flows_sent(n->flows, f);
    for (uint32_t l = 0; l < n_links; l++) {
        int32_t class = fold->link_class[l];
        if (class != FOLD_NO_CLASS)
            usage[l] = (struct link_usage){.contended = flows_contended(n->flows, (uint32_t) class),
                                           .most = flows_most(n->flows, (uint32_t) class)};
    }
    for (size_t i = 0; i < fold->n_connections; i++) {
        const struct fold_connection *c = &fold->connections[i];
        for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
            usage[fold->hops[h]].carried += carried[c->class];
    }
    free(carried);
}

void network_flow_usage(const struct network_flow *n, struct link_usage *usage)
{
    uint32_t n_links = fabric_links(n->options.fabric);

    for (uint32_t l = 0; l < n_links; l++)
        usage[l] = (struct link_usage){0};
    if (n->fold != NULL) {
        usage_unfold(n, n_links, usage);
        return;
    }
    double *carried = memory_new(n_links, sizeof *carried);
    flows_carried(n->flows, carried);
    for (uint32_t l = 0; l < n_links; l++)
        usage[l] = (struct link_usage){
            .carried = carried[l], .contended = flows_contended(n->flows, l), .most = flows_most(n->flows, l)};
    free(carried);
}

/* A link with its layer, for sorting. */
struct hot_candidate {
    struct hot_link link;
    enum fabric_layer layer;
};

/* Hotter first; those that are alike stand together. */
static int candidate_compare(const struct hot_candidate *x, const struct hot_candidate *y)
{
    if (x->link.contended != y->link.contended)
        return x->link.contended > y->link.contended ? -1 : 1;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return (x->link.most < y->link.most) - (x->link.most > y->link.most);
}

static int hotter_first(const void *a, const void *b)
{
    const struct hot_candidate *x = a, *y = b;
    int order = candidate_compare(x, y);

    return order != 0 ? order : (x->link.link > y->link.link) - (x->link.link < y->link.link);
}

static void owner_count(struct hot_link *link, uint64_t owner)
{
    if (owner == OWNER_MESSAGE)
        link->messages++;
    else
        link->collectives[owner]++;
}

/* By another queue pair. */
static bool crossed_before(const struct fold *fold, const struct fold_connection *c, uint32_t hop)
{
    for (uint32_t h = c->first_hop; h < hop; h++)
        if (fold->hops[h] == fold->hops[hop])
            return true;
    return false;
}

static void owners_count_folded(const struct fold *fold, size_t n_links, int n, struct hot_link *links)
{
    uint8_t *place = memory_new(n_links, sizeof *place); /* 1 + its place among links[n] */

    for (int i = 0; i < n; i++)
        place[links[i].link] = (uint8_t)(i + 1);
    for (size_t i = 0; i < fold->n_connections; i++) {
        const struct fold_connection *c = &fold->connections[i];
        for (uint32_t h = c->first_hop; h < c->first_hop + c->n_hops; h++)
            if (place[fold->hops[h]] > 0 && !crossed_before(fold, c, h))
                owner_count(&links[place[fold->hops[h]] - 1], c->owner);
    }
    free(place);
}

/* Who is routed over the links that are reported. */
static void owners_count(const struct network_flow *n, int n_links, struct hot_link *links)
{
    uint32_t *routed = memory_new(n->n_flows, sizeof *routed);

    for (int i = 0; i < n_links; i++) {
        size_t n_routed = flows_routed(n->flows, links[i].link, routed, n->n_flows);
        for (size_t r = 0; r < n_routed; r++)
            owner_count(&links[i], flows_payload(n->flows, routed[r]));
    }
    free(routed);
}

static size_t candidates_list(const struct network_flow *n, const struct link_usage *usage, struct hot_candidate *all)
{
    const struct fabric *fabric = n->options.fabric;
    size_t found = 0;

    for (uint32_t l = 0; l < fabric_links(fabric); l++)
        if (usage[l].contended > 0)
            all[found++] = (struct hot_candidate){.link = {.link = l,
                                                           .alike = 1,
                                                           .contended = usage[l].contended,
                                                           .carried = usage[l].carried,
                                                           .most = usage[l].most},
                                                  .layer = fabric_layer_of(fabric, l)};
    qsort(all, found, sizeof *all, hotter_first);
    return found;
}

int network_flow_hottest(const struct network_flow *n, const struct link_usage *usage, int wanted, struct hot_link *hottest)
{
    uint32_t n_links = fabric_links(n->options.fabric);
    struct hot_candidate *all = memory_new(n_links, sizeof *all);
    size_t found = candidates_list(n, usage, all), first = 0;
    int listed = 0;

    wanted = wanted < HOTTEST_MAX ? wanted : HOTTEST_MAX;
    for (size_t i = 0; i < found; i++) {
        if (i > 0 && candidate_compare(&all[first], &all[i]) == 0) {
            hottest[listed - 1].alike++;
            continue;
        }
        if (listed == wanted)
            break;
        first = i;
        hottest[listed++] = all[i].link;
    }
    if (n->fold != NULL)
        owners_count_folded(n->fold, n_links, listed, hottest);
    else
        owners_count(n, listed, hottest);
    free(all);
    return listed;
}

void link_usage_by_layer(const struct fabric *fabric, const struct link_usage *usage, double seconds,
                         struct layer_use layers[N_FABRIC_LAYERS])
{
    for (int layer = 0; layer < N_FABRIC_LAYERS; layer++) {
        struct layer_use *use = &layers[layer];
        *use = (struct layer_use){.links = fabric_layer_links(fabric, (enum fabric_layer)layer)};
        for (uint32_t l = fabric->first[layer]; l < fabric->first[layer + 1]; l++) {
            double share = usage[l].carried / (fabric->rates[l] * seconds);
            use->used += share > 0;
            use->mean += share;
            use->most = share > use->most ? share : use->most;
        }
        use->mean /= use->used > 0 ? use->used : 1;
    }
}
