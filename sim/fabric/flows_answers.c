/* flows_answers.c - answers about the state of flows, and the check of all invariants. */
#include <stdlib.h>

#include "sim/fabric/flows_internal.h"

double flows_rate(struct flows *flows, uint32_t flow_id)
{
    const struct flow *flow = &flows->items[flow_id];

    flows_next(flows);
    return flow->sending ? (double)flow->level * flow->weight / FLOW_UNITS : 0;
}

int64_t flows_level(struct flows *flows, uint32_t flow_id)
{
    flows_next(flows);
    return flows->items[flow_id].level;
}

static int64_t link_units(const struct flows *flows, uint32_t link)
{
    int64_t sum = 0;

    for (uint32_t h = flows->links[link].first; h != NO_HOP; h = flows->listings[h].next)
        if (flows->hops[h].active)
            sum += flows->items[flows->listings[h].flow].level * flows->hops[h].share;
    return sum;
}

double flows_load(struct flows *flows, uint32_t link)
{
    flows_next(flows);
    return (double)link_units(flows, link) / FLOW_UNITS;
}

uint64_t flows_payload(const struct flows *flows, uint32_t flow)
{
    return flows->payloads[flow];
}

bool flows_busy(const struct flows *flows, uint32_t flow)
{
    return flows->items[flow].sending;
}

size_t flows_routed(const struct flows *flows, uint32_t link, uint32_t *flow_ids, size_t size)
{
    size_t n = 0;

    for (uint32_t h = flows->links[link].first; h != NO_HOP; h = flows->listings[h].next, n++)
        if (n < size)
            flow_ids[n] = flows->listings[h].flow;
    return n;
}

/* Connection by connection, as their hops stand together; the latest first. */
void flows_carried(const struct flows *flows, double *bytes)
{
    for (size_t l = 0; l < flows->n_links; l++)
        bytes[l] = flows->uses[l].closed;
    for (size_t f = flows->n_items; f-- > 0;) {
        const struct flow *flow = &flows->items[f];
        for (uint32_t h = flow->first_hop; flow->carried > 0 && h < flow->first_hop + flow->n_hops; h++)
            bytes[flows->hops[h].link] += flow->carried * hop_crossings(flow, &flows->hops[h]);
    }
}

double flows_sent(const struct flows *flows, uint32_t flow)
{
    return flows->items[flow].carried;
}

nanos flows_contended(const struct flows *flows, uint32_t link)
{
    const struct link_use *use = &flows->uses[link];
    return use->contended + (use->since >= 0 ? flows->now - use->since : 0);
}

uint32_t flows_most(const struct flows *flows, uint32_t link)
{
    return flows->loads[link].most;
}

struct flows_counts flows_counts(const struct flows *flows)
{
    return flows->counts;
}

/* ---- the defining properties */

static const char *link_check(const struct flows *flows, uint32_t link_id)
{
    const struct flow_link *link = &flows->links[link_id];
    const struct link_load *load = &flows->loads[link_id];
    int64_t sum = 0, held_here = 0;
    wide room = link->capacity;
    uint32_t n = 0;

    for (uint32_t h = link->first; h != NO_HOP; h = flows->listings[h].next) {
        const struct flow *flow = &flows->items[flows->listings[h].flow];
        int64_t share = flows->hops[h].share;
        if (flows->hops[h].active != flow->attached)
            return "a hop and its transfer disagree";
        if (!flow->attached)
            continue;
        if (flow->level > flows->loads[link_id].level)
            return "a transfer has a larger level than its link";
        n += hop_crossings(flow, &flows->hops[h]);
        sum += flow->level * share;
        room -= (wide)flow->ceiling * share;
        if (flow->level == flows->loads[link_id].level)
            held_here += share;
    }
    if (n != load->n_flows || room != load->room)
        return "a link's list and its books differ";
    if (sum > link->capacity)
        return "a link is above its capacity";
    if (flows->loads[link_id].level != LEVEL_NONE && (!link_tight(flows, link_id) || link->capacity - sum >= held_here))
        return "a link that holds transfers back is not saturated";
    if (load->room < 0 && !load->booked)
        return "a link that may be full has no books";
    return link->dirty || link->key != LEVEL_NONE ? "a link was left unsettled" : NULL;
}

/* A link's books against its transfers. */
static const char *books_check(const struct flows *flows, uint32_t link_id)
{
    const struct flow_link *link = &flows->links[link_id];
    int64_t sharing = 0, shares = 0;
    wide left = link->capacity;

    for (uint32_t e = 0; e < link->n_entries; e++) {
        const struct book_entry *entry = &flows->entries[link->block + e];
        if (entry->level != flows->items[entry->flow].level)
            return "the books of a link give a transfer another level";
        shares += entry->share;
        if (entry->level >= link->pivot)
            sharing += entry->share;
        else
            left -= (wide)entry->level * entry->share;
        if (entry->level < link->pivot && entry->level > link->below)
            return "a transfer lies above those that the books of its link put below the pivot";
    }
    return left != link->left || sharing != link->sharing || shares != link->shares ? "the sums in the books of a link differ"
                                                                                    : NULL;
}

static const char *flow_check(const struct flows *flows, const struct flow *flow)
{
    int64_t level = flow->ceiling;

    for (uint32_t h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++) {
        uint32_t link = flows->hops[h].link;
        if (flows->loads[link].level < level)
            level = flows->loads[link].level;
        if (flow->ceiling > hop_ceiling(flows, flow, &flows->hops[h]))
            return "a transfer's ceiling lies above one of its links";
    }
    if (flow->level != level)
        return "a transfer's level is not the smallest of its path";
    return flow->change != 0 || flow->fresh ? "a change was left unapplied" : NULL;
}

const char *flows_check(struct flows *flows)
{
    const char *wrong = NULL;

    flows_next(flows);
    for (uint32_t l = 0; l < flows->n_links && wrong == NULL; l++)
        wrong = link_check(flows, l);
    for (uint32_t l = 0; l < flows->n_links && wrong == NULL; l++)
        if (flows->loads[l].booked)
            wrong = books_check(flows, l);
    for (size_t f = 0; f < flows->n_items && wrong == NULL; f++)
        if (flows->items[f].attached)
            wrong = flow_check(flows, &flows->items[f]);
    for (size_t i = 1; i < flows->n_ends && wrong == NULL; i++)
        if (flows->ends[i].time < flows->ends[(i - 1) / 4].time)
            wrong = "the queue of ends is out of order";
    return wrong;
}
