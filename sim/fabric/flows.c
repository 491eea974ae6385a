#include "sim/fabric/flows.h"

#include <stdlib.h>
#include <string.h>

#include "sim/fabric/flows_internal.h"

/* Capacities up to here cannot overflow the sums of flows_solve.c. */
#define CAPACITY_MAX (INT64_C(1) << 61)
#define FRESH        INT64_C(-1) /* the level before of a transfer that has just begun */

static int64_t capacity_of(double rate)
{
    double units = rate * FLOW_UNITS;

    if (!(units > 0))
        return 0;
    return units < (double)CAPACITY_MAX ? (int64_t)units : CAPACITY_MAX;
}

struct flows *flows_create(const double *rates, size_t n_links)
{
    struct flows *flows = memory_new(1, sizeof *flows);

    flows->n_links = n_links;
    flows->levels = memory_new(n_links, sizeof *flows->levels);
    flows->links = memory_new(n_links, sizeof *flows->links);
    flows->uses = memory_new(n_links, sizeof *flows->uses);
    for (size_t l = 0; l < n_links; l++) {
        flows->levels[l] = LEVEL_NONE;
        flows->links[l].capacity = capacity_of(rates[l]);
        flows->links[l].first = NO_HOP;
        flows->uses[l].since = -1;
    }
    return flows;
}

void flows_destroy(struct flows *flows)
{
    if (flows == NULL)
        return;
    free(flows->levels);
    free(flows->links);
    free(flows->uses);
    free(flows->items);
    free(flows->hops);
    free(flows->closed);
    free(flows->ends);
    free(flows->idle);
    free(flows->starting);
    free(flows->dirty);
    free(flows->sweep);
    free(flows->changes);
    free(flows->touched);
    free(flows->noted);
    free(flows->held);
    free(flows->shares);
    free(flows);
}

static void list_reserve(uint32_t **list, size_t *capacity, size_t n)
{
    if (n > *capacity)
        *list = memory_grow(*list, capacity, n, sizeof **list);
}

void flows_reserve(struct flows *flows, size_t n_connections, size_t n_hops)
{
    size_t n_links = n_hops < flows->n_links ? n_hops : flows->n_links;

    if (n_connections > flows->item_capacity)
        flows->items = memory_grow(flows->items, &flows->item_capacity, n_connections, sizeof *flows->items);
    if (n_hops > flows->hop_capacity)
        flows->hops = memory_grow(flows->hops, &flows->hop_capacity, n_hops, sizeof *flows->hops);
    if (n_connections > flows->ends_capacity)
        flows->ends = memory_grow(flows->ends, &flows->ends_capacity, n_connections, sizeof *flows->ends);
    if (n_connections > flows->change_capacity)
        flows->changes = memory_grow(flows->changes, &flows->change_capacity, n_connections, sizeof *flows->changes);
    list_reserve(&flows->idle, &flows->idle_capacity, n_connections);
    list_reserve(&flows->starting, &flows->starting_capacity, n_connections);
    list_reserve(&flows->dirty, &flows->dirty_capacity, n_links);
    list_reserve(&flows->noted, &flows->noted_capacity, n_links);
}

/* ---- the queue of ends */

static bool end_before(struct flow_end a, struct flow_end b)
{
    return a.time != b.time ? a.time < b.time : a.flow < b.flow;
}

static void end_put(struct flows *flows, size_t at, struct flow_end end)
{
    flows->ends[at] = end;
    flows->items[end.flow].place = (uint32_t)at;
}

static size_t end_rise(struct flows *flows, size_t at, struct flow_end end)
{
    while (at > 0) {
        size_t parent = (at - 1) / 4;
        if (!end_before(end, flows->ends[parent]))
            break;
        end_put(flows, at, flows->ends[parent]);
        at = parent;
    }
    return at;
}

static size_t end_sink(struct flows *flows, size_t at, struct flow_end end)
{
    for (;;) {
        size_t first = 4 * at + 1, best = first;
        if (first >= flows->n_ends)
            return at;
        size_t last = first + 4 < flows->n_ends ? first + 4 : flows->n_ends;
        for (size_t child = first + 1; child < last; child++)
            if (end_before(flows->ends[child], flows->ends[best]))
                best = child;
        if (!end_before(flows->ends[best], end))
            return at;
        end_put(flows, at, flows->ends[best]);
        at = best;
    }
}

static void end_set(struct flows *flows, uint32_t which, nanos time)
{
    struct flow_end end = {.time = time, .flow = which};
    size_t at = flows->items[which].place;

    if (at == NO_PLACE) {
        if (flows->n_ends == flows->ends_capacity)
            flows->ends = memory_grow(flows->ends, &flows->ends_capacity, flows->n_ends + 1, sizeof *flows->ends);
        end_put(flows, end_rise(flows, flows->n_ends++, end), end);
        return;
    }
    bool earlier = end_before(end, flows->ends[at]);
    end_put(flows, earlier ? end_rise(flows, at, end) : end_sink(flows, at, end), end);
}

static void end_pop(struct flows *flows)
{
    struct flow_end last = flows->ends[--flows->n_ends];

    flows->items[flows->ends[0].flow].place = NO_PLACE;
    if (flows->n_ends > 0)
        end_put(flows, end_sink(flows, 0, last), last);
}

/* ---- rates and ends */

static double rate_at(const struct flow *flow, int64_t level)
{
    return (double)level * flow->weight / FLOW_UNITS;
}

static nanos end_time(const struct flows *flows, const struct flow *flow)
{
    if (flow->level == LEVEL_NONE || flow->bytes_left <= 0)
        return flows->now;
    if (flow->level == 0)
        return NEVER_ENDS;
    nanos lasts = nanos_from_seconds(flow->bytes_left / rate_at(flow, flow->level));
    return lasts < NEVER_ENDS - flows->now ? flows->now + lasts : NEVER_ENDS;
}

/* The transfer goes on at another rate than `before`. */
static void flow_change_rate(struct flows *flows, uint32_t which, int64_t before)
{
    struct flow *flow = &flows->items[which];

    if (before != FRESH && before != LEVEL_NONE)
        flow->bytes_left -= rate_at(flow, before) * ((double)(flows->now - flow->since) / (double)NANOS_PER_SECOND);
    flow->since = flows->now;
    end_set(flows, which, end_time(flows, flow));
    flows->counts.changed++;
}

static void changes_apply(struct flows *flows)
{
    for (size_t i = 0; i < flows->n_changes; i++) {
        struct flow_change change = flows->changes[i];
        struct flow *flow = &flows->items[change.flow];
        flow->change = 0;
        if (flow->sending && flow->level != change.before)
            flow_change_rate(flows, change.flow, change.before);
    }
    flows->n_changes = 0;
}

/* ---- on and off the links */

static void flow_attach(struct flows *flows, uint32_t which)
{
    struct flow *flow = &flows->items[which];
    int64_t level = LEVEL_NONE;

    for (uint32_t h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++) {
        struct flow_hop *hop = &flows->hops[h];
        struct flow_link *link = &flows->links[hop->link];
        hop->next = link->first;
        hop->previous = NO_HOP;
        if (link->first != NO_HOP)
            flows->hops[link->first].previous = h;
        link->first = h;
        if (++link->n_flows > link->most)
            link->most = link->n_flows;
        if (flows->levels[hop->link] < level)
            level = flows->levels[hop->link];
        link_touch(flows, hop->link);
    }
    flow->level = level;
    flow->attached = true;
}

static void flow_detach(struct flows *flows, uint32_t which)
{
    struct flow *flow = &flows->items[which];

    for (uint32_t h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++) {
        struct flow_hop *hop = &flows->hops[h];
        if (hop->next != NO_HOP)
            flows->hops[hop->next].previous = hop->previous;
        if (hop->previous != NO_HOP)
            flows->hops[hop->previous].next = hop->next;
        else
            flows->links[hop->link].first = hop->next;
        flows->links[hop->link].n_flows--;
        link_touch(flows, hop->link);
    }
    flow->attached = false;
}

/* Whatever happened at this instant, in one solve. */
static void flows_settle(struct flows *flows)
{
    for (size_t i = 0; i < flows->n_idle; i++) {
        const struct flow *flow = &flows->items[flows->idle[i]];
        if (flow->attached && !flow->sending)
            flow_detach(flows, flows->idle[i]);
    }
    flows->n_idle = 0;
    for (size_t i = 0; i < flows->n_starting; i++) {
        uint32_t which = flows->starting[i];
        flow_attach(flows, which);
        if (flows->n_changes == flows->change_capacity)
            flows->changes = memory_grow(flows->changes, &flows->change_capacity, flows->n_changes + 1, sizeof *flows->changes);
        flows->changes[flows->n_changes++] = (struct flow_change){which, FRESH};
        flows->items[which].change = (uint32_t)flows->n_changes;
    }
    flows->n_starting = 0;
    flows_solve(flows);
    changes_apply(flows);
}

/* ---- connections */

static int link_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Hops of a path; a link that stands there several times becomes one hop with a larger share. Returns how many. */
static uint32_t hops_set(struct flows *flows, uint32_t which, const uint32_t *links, size_t n)
{
    const struct flow *flow = &flows->items[which];
    struct flow_hop *hops = flows->hops + flow->first_hop;
    uint32_t *sorted = NULL, n_hops = 0;
    const size_t few = 16; /* up to here searching is quicker than sorting */

    if (n > few) {
        sorted = memory_new(n, sizeof *sorted);
        memcpy(sorted, links, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, link_compare);
        links = sorted;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t h = n > few && n_hops > 0 ? n_hops - 1 : 0;
        while (h < n_hops && hops[h].link != links[i])
            h++;
        if (h == n_hops)
            hops[n_hops++] = (struct flow_hop){.link = links[i], .next = NO_HOP, .previous = NO_HOP, .flow = which};
        hops[h].share += flow->weight;
    }
    free(sorted);
    return n_hops;
}

/* A closed connection with room for n hops, or a new one. */
static uint32_t flow_find_room(struct flows *flows, size_t n)
{
    if (flows->n_closed > 0) {
        uint32_t which = flows->closed[flows->n_closed - 1];
        if (flows->items[which].room >= n && n < UINT8_MAX) {
            flows->n_closed--;
            return which;
        }
    }
    if (flows->n_items == flows->item_capacity)
        flows->items = memory_grow(flows->items, &flows->item_capacity, flows->n_items + 1, sizeof *flows->items);
    if (flows->n_hops + n > flows->hop_capacity)
        flows->hops = memory_grow(flows->hops, &flows->hop_capacity, flows->n_hops + n, sizeof *flows->hops);
    struct flow *flow = &flows->items[flows->n_items];
    *flow = (struct flow){.first_hop = (uint32_t)flows->n_hops, .room = (uint8_t)(n < UINT8_MAX ? n : UINT8_MAX)};
    flows->n_hops += n;
    return (uint32_t)flows->n_items++;
}

uint32_t flows_open(struct flows *flows, const uint32_t *links, size_t n, uint32_t weight, uint64_t what)
{
    uint32_t which = flow_find_room(flows, n);
    struct flow *flow = &flows->items[which];

    flow->place = NO_PLACE;
    flow->weight = (uint16_t)weight;
    flow->what = what;
    flow->level = LEVEL_NONE;
    flow->open = true;
    flow->n_hops = hops_set(flows, which, links, n);
    return which;
}

void flows_close(struct flows *flows, uint32_t which)
{
    struct flow *flow = &flows->items[which];

    if (flow->attached)
        flow_detach(flows, which);
    flow->open = false;
    list_push(&flows->closed, &flows->n_closed, &flows->closed_capacity, which);
}

void flows_reroute(struct flows *flows, uint32_t which, const uint32_t *links, size_t n)
{
    struct flow *flow = &flows->items[which];

    flows_settle(flows); /* it is attached now if it is sending */
    if (flow->attached)
        flow_detach(flows, which);
    for (uint32_t h = 0; h < flow->n_hops; h++)
        flows->hops[flow->first_hop + h] = (struct flow_hop){0};
    int64_t before = flow->level;
    flow->n_hops = hops_set(flows, which, links, n);
    if (!flow->sending)
        return;
    if (before != LEVEL_NONE)
        flow->bytes_left -= rate_at(flow, before) * ((double)(flows->now - flow->since) / (double)NANOS_PER_SECOND);
    flow->since = flows->now;
    list_push(&flows->starting, &flows->n_starting, &flows->starting_capacity, which);
}

void flows_send(struct flows *flows, uint32_t which, double bytes)
{
    struct flow *flow = &flows->items[which];

    flow->bytes = flow->bytes_left = bytes > 0 ? bytes : 0;
    flow->since = flows->now;
    flow->sending = true;
    if (flow->attached)
        end_set(flows, which, end_time(flows, flow));
    else
        list_push(&flows->starting, &flows->n_starting, &flows->starting_capacity, which);
}

void flows_set_rate(struct flows *flows, uint32_t link, double rate)
{
    flows->links[link].capacity = capacity_of(rate);
    link_touch(flows, link);
}

/* ---- time */

nanos flows_now(const struct flows *flows)
{
    return flows->now;
}

nanos flows_next(struct flows *flows)
{
    flows_settle(flows);
    return flows->n_ends > 0 ? flows->ends[0].time : NEVER_ENDS;
}

void flows_advance(struct flows *flows, nanos time)
{
    if (time == flows->now)
        return;
    flows_settle(flows);
    flows->now = time;
}

uint32_t flows_take(struct flows *flows)
{
    if (flows->n_starting > 0)
        flows_settle(flows); /* a transfer without length or path ends at once */
    if (flows->n_ends == 0 || flows->ends[0].time > flows->now)
        return NO_FLOW;
    uint32_t which = flows->ends[0].flow;
    struct flow *flow = &flows->items[which];
    end_pop(flows);
    flow->sending = false;
    flow->bytes_left = 0;
    for (uint32_t h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++) {
        uint32_t share = flows->hops[h].share;
        flows->uses[flows->hops[h].link].carried += share == flow->weight ? flow->bytes : flow->bytes * (share / flow->weight);
    }
    list_push(&flows->idle, &flows->n_idle, &flows->idle_capacity, which);
    flows->counts.transfers++;
    return which;
}
