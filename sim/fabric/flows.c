#include "sim/fabric/flows.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/order.h"
#include "sim/fabric/flows_internal.h"

/* Capacities up to here cannot overflow the sums of flows_solve.c. */
#define CAPACITY_MAX (INT64_C(1) << 61)

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
    flows->free_group = flows->last_group = NO_PLACE;
    books_create(flows);
    flows->loads = memory_new(n_links, sizeof *flows->loads);
    flows->links = memory_new(n_links, sizeof *flows->links);
    flows->uses = memory_new(n_links, sizeof *flows->uses);
    for (size_t l = 0; l < n_links; l++) {
        flows->loads[l].level = LEVEL_NONE;
        flows->loads[l].room = flows->links[l].capacity = capacity_of(rates[l]);
        flows->links[l].first = NO_HOP;
        flows->links[l].key = LEVEL_NONE;
        flows->uses[l].since = -1;
    }
    return flows;
}

void flows_destroy(struct flows *flows)
{
    if (flows == NULL)
        return;
    free(flows->loads);
    free(flows->links);
    free(flows->uses);
    free(flows->items);
    free(flows->payloads);
    free(flows->places);
    free(flows->hops);
    free(flows->listings);
    free(flows->book_places);
    free(flows->closed);
    free(flows->ends);
    free(flows->groups);
    free(flows->idle);
    free(flows->starting);
    free(flows->dirty);
    free(flows->sweep);
    free(flows->changes);
    free(flows->touched);
    free(flows->noted);
    free(flows->entries);
    free(flows);
}

static void list_reserve(uint32_t **list, size_t *capacity, size_t n)
{
    if (n > *capacity)
        *list = memory_grow(*list, capacity, n, sizeof **list);
}

static void items_reserve(struct flows *flows, size_t n)
{
    if (n > flows->item_capacity)
        flows->items = memory_grow(flows->items, &flows->item_capacity, n, sizeof *flows->items);
    if (n > flows->payload_capacity)
        flows->payloads = memory_grow(flows->payloads, &flows->payload_capacity, n, sizeof *flows->payloads);
    if (n > flows->place_capacity)
        flows->places = memory_grow(flows->places, &flows->place_capacity, n, sizeof *flows->places);
}

static void hops_reserve(struct flows *flows, size_t n)
{
    if (n > flows->hop_capacity)
        flows->hops = memory_grow(flows->hops, &flows->hop_capacity, n, sizeof *flows->hops);
    if (n > flows->listing_capacity)
        flows->listings = memory_grow(flows->listings, &flows->listing_capacity, n, sizeof *flows->listings);
    list_reserve(&flows->book_places, &flows->book_place_capacity, n);
}

void flows_reserve(struct flows *flows, size_t n_connections, size_t n_hops)
{
    size_t n_links = n_hops < flows->n_links ? n_hops : flows->n_links;

    items_reserve(flows, n_connections);
    hops_reserve(flows, n_hops);
    if (n_connections > flows->ends_capacity)
        flows->ends = memory_grow(flows->ends, &flows->ends_capacity, n_connections, sizeof *flows->ends);
    if (n_connections > flows->group_capacity)
        flows->groups = memory_grow(flows->groups, &flows->group_capacity, n_connections, sizeof *flows->groups);
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
    return a.time != b.time ? a.time < b.time : a.group < b.group;
}

static void end_put(struct flows *flows, size_t at, struct flow_end end)
{
    flows->ends[at] = end;
    flows->groups[end.group].place = (uint32_t)at;
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

static uint32_t group_new(struct flows *flows, nanos time)
{
    uint32_t group = flows->free_group;

    if (group != NO_PLACE) {
        flows->free_group = flows->groups[group].next_free;
    } else {
        if (flows->n_groups == flows->group_capacity)
            flows->groups = memory_grow(flows->groups, &flows->group_capacity, flows->n_groups + 1, sizeof *flows->groups);
        group = (uint32_t)flows->n_groups++;
    }
    if (flows->n_ends == flows->ends_capacity)
        flows->ends = memory_grow(flows->ends, &flows->ends_capacity, flows->n_ends + 1, sizeof *flows->ends);
    flows->groups[group] = (struct flow_ends){.time = time, .first = NO_FLOW, .last = NO_FLOW};
    struct flow_end end = {.time = time, .group = group};
    end_put(flows, end_rise(flows, flows->n_ends++, end), end);
    return group;
}

static void group_remove(struct flows *flows, uint32_t group)
{
    size_t at = flows->groups[group].place;
    struct flow_end last = flows->ends[--flows->n_ends];

    if (at < flows->n_ends) {
        bool rises = at > 0 && end_before(last, flows->ends[(at - 1) / 4]);
        end_put(flows, rises ? end_rise(flows, at, last) : end_sink(flows, at, last), last);
    }
    flows->groups[group].next_free = flows->free_group;
    flows->free_group = group;
    if (flows->last_group == group)
        flows->last_group = NO_PLACE;
}

static void end_remove(struct flows *flows, uint32_t flow_id)
{
    struct flow_place *place = &flows->places[flow_id];
    struct flow_ends *group = &flows->groups[place->group];

    if (place->previous != NO_FLOW)
        flows->places[place->previous].next = place->next;
    else
        group->first = place->next;
    if (place->next != NO_FLOW)
        flows->places[place->next].previous = place->previous;
    else
        group->last = place->previous;
    if (group->first == NO_FLOW)
        group_remove(flows, place->group);
    place->group = NO_PLACE;
}

static void end_set(struct flows *flows, uint32_t flow_id, nanos time)
{
    struct flow_place *place = &flows->places[flow_id];

    if (place->group != NO_PLACE) {
        if (flows->groups[place->group].time == time)
            return;
        end_remove(flows, flow_id);
    }
    if (flows->last_group == NO_PLACE || flows->groups[flows->last_group].time != time)
        flows->last_group = group_new(flows, time);
    struct flow_ends *group = &flows->groups[flows->last_group];
    *place = (struct flow_place){.group = flows->last_group, .next = NO_FLOW, .previous = group->last};
    if (group->last != NO_FLOW)
        flows->places[group->last].next = flow_id;
    else
        group->first = flow_id;
    group->last = flow_id;
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
    double lasts = flow->bytes_left / rate_at(flow, flow->level) * (double)NANOS_PER_SECOND + 0.5; /* rounded where it is cut */
    return lasts < 0x1p62 && (nanos)lasts < NEVER_ENDS - flows->now ? flows->now + (nanos)lasts : NEVER_ENDS;
}

/* What is left now of a transfer that has gone on at `level`. */
static void flow_advance(const struct flows *flows, struct flow *flow, int64_t level)
{
    if (level != LEVEL_NONE)
        flow->bytes_left -= rate_at(flow, level) * ((double)(flows->now - flow->since) / (double)NANOS_PER_SECOND);
    flow->since = flows->now;
}

static void changes_apply(struct flows *flows)
{
    for (size_t i = 0; i < flows->n_changes; i++) {
        struct flow_change change = flows->changes[i];
        struct flow *flow = &flows->items[change.flow];
        flow->change = 0;
        if (!flow->sending || flow->level == change.before)
            continue;
        flow_advance(flows, flow, change.before);
        end_set(flows, change.flow, end_time(flows, flow));
        flows->counts.changed++;
    }
    flows->n_changes = 0;
}

/* ---- on and off the links */

static void flow_attach(struct flows *flows, uint32_t flow_id)
{
    struct flow *flow = &flows->items[flow_id];
    const uint32_t end = flow->first_hop + flow->n_hops;
    int64_t level = flow->ceiling;
    bool books = false;

    for (uint32_t h = flow->first_hop; h < end; h++) {
        struct flow_hop *hop = &flows->hops[h];
        struct link_load *load = &flows->loads[hop->link];
        hop->active = 1;
        load->room -= (wide)flow->ceiling * hop->share;
        load->n_flows += hop_crossings(flow, hop);
        if (load->n_flows > load->most)
            load->most = load->n_flows & INT32_MAX;
        if (load->level < level)
            level = load->level;
        books |= load->booked || load->room < 0;
    }
    flow->level = level;
    flow->attached = true;
    for (uint32_t h = flow->first_hop; books && h < end; h++) {
        uint32_t link = flows->hops[h].link;
        if (flows->loads[link].booked)
            book_join(flows, h);
        else if (link_tight(flows, link))
            link_book(flows, link);
        if (link_tight(flows, link))
            link_touch(flows, link);
    }
}

static void flow_detach(struct flows *flows, uint32_t flow_id)
{
    struct flow *flow = &flows->items[flow_id];

    for (uint32_t h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++) {
        struct flow_hop *hop = &flows->hops[h];
        struct link_load *load = &flows->loads[hop->link];
        if (load->room < 0)
            link_touch(flows, hop->link);
        hop->active = 0;
        load->room += (wide)flow->ceiling * hop->share;
        load->n_flows -= hop_crossings(flow, hop);
        if (!load->booked)
            continue;
        hop->booked = 0;
        if (load->n_flows == 0)
            link_unbook(flows, hop->link);
        else
            book_leave(flows, h);
    }
    flow->attached = false;
}

static void starting_add(struct flows *flows, uint32_t flow_id)
{
    list_push(&flows->starting, &flows->n_starting, &flows->starting_capacity, flow_id);
    flows->items[flow_id].fresh = true;
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
    for (size_t i = 0; i < flows->n_starting; i++)
        flow_attach(flows, flows->starting[i]);
    flows_solve(flows);
    changes_apply(flows);
    for (size_t i = 0; i < flows->n_starting; i++) {
        struct flow *flow = &flows->items[flows->starting[i]];
        flow->fresh = false;
        end_set(flows, flows->starting[i], end_time(flows, flow));
        flows->counts.changed++;
    }
    flows->n_starting = 0;
}

/* ---- connections */

/* ---- the lists of links */

static void hop_list(struct flows *flows, uint32_t h, uint32_t flow_id)
{
    struct flow_link *link = &flows->links[flows->hops[h].link];

    flows->listings[h] = (struct flow_listing){.next = link->first, .previous = NO_HOP, .flow = flow_id};
    if (link->first != NO_HOP)
        flows->listings[link->first].previous = h;
    link->first = h;
}

/* What the connection has carried over the link stays in the link's books. */
static void hop_unlist(struct flows *flows, uint32_t h)
{
    const struct flow_hop *hop = &flows->hops[h];
    const struct flow_listing *listing = &flows->listings[h];
    const struct flow *flow = &flows->items[listing->flow];

    if (listing->next != NO_HOP)
        flows->listings[listing->next].previous = listing->previous;
    if (listing->previous != NO_HOP)
        flows->listings[listing->previous].next = listing->next;
    else
        flows->links[hop->link].first = listing->next;
    flows->uses[hop->link].closed += flow->carried * hop_crossings(flow, hop);
}

static void hops_unlist(struct flows *flows, struct flow *flow)
{
    for (uint32_t h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++)
        hop_unlist(flows, h);
    flow->carried = 0;
    flow->n_hops = 0;
}

/* Its level with all its links to itself. */
static int64_t ceiling_of(const struct flows *flows, const struct flow *flow)
{
    int64_t ceiling = LEVEL_NONE;

    for (uint32_t h = flow->first_hop; h < flow->first_hop + flow->n_hops; h++) {
        int64_t alone = hop_ceiling(flows, flow, &flows->hops[h]);
        ceiling = alone < ceiling ? alone : ceiling;
    }
    return ceiling;
}

/* Hops of a path; a link that stands there several times becomes one hop with a larger share. `crossings` NULL: 1 each. */
static void hops_set(struct flows *flows, uint32_t flow_id, const uint32_t *links, const uint32_t *crossings, size_t n)
{
    struct flow *flow = &flows->items[flow_id];
    struct flow_hop *hops = flows->hops + flow->first_hop;
    uint32_t *sorted = NULL, n_hops = 0;
    const size_t few = 16; /* up to here searching is quicker than sorting */

    if (n > few && crossings == NULL) {
        sorted = memory_new(n, sizeof *sorted);
        memcpy(sorted, links, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, uint32_compare);
        links = sorted;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t h = sorted != NULL && n_hops > 0 ? n_hops - 1 : 0;
        while (h < n_hops && hops[h].link != links[i])
            h++;
        if (h == n_hops)
            hops[n_hops++] = (struct flow_hop){.link = links[i]};
        hops[h].share += flow->weight * (crossings != NULL ? crossings[i] : 1);
    }
    free(sorted);
    flow->n_hops = n_hops;
    for (uint32_t h = 0; h < n_hops; h++)
        hop_list(flows, flow->first_hop + h, flow_id);
    flow->ceiling = ceiling_of(flows, flow);
}

/* A closed connection with room for n hops, or a new one. */
static uint32_t flow_find_room(struct flows *flows, size_t n)
{
    if (flows->n_closed > 0) {
        uint32_t flow_id = flows->closed[flows->n_closed - 1];
        if (flows->items[flow_id].room >= n && n < UINT8_MAX) {
            flows->n_closed--;
            return flow_id;
        }
    }
    items_reserve(flows, flows->n_items + 1);
    hops_reserve(flows, flows->n_hops + n);
    struct flow *flow = &flows->items[flows->n_items];
    *flow = (struct flow){.first_hop = (uint32_t)flows->n_hops, .room = (uint8_t)(n < UINT8_MAX ? n : UINT8_MAX)};
    flows->n_hops += n;
    return (uint32_t)flows->n_items++;
}

uint32_t flows_open_counted(struct flows *flows, const uint32_t *links, const uint32_t *crossings, size_t n, uint32_t weight,
                            uint64_t payload)
{
    uint32_t flow_id = flow_find_room(flows, n);
    struct flow *flow = &flows->items[flow_id];

    flows->places[flow_id].group = NO_PLACE;
    flow->weight = (uint16_t)weight;
    flow->level = LEVEL_NONE;
    flow->open = true;
    flow->counted = crossings != NULL;
    flows->payloads[flow_id] = payload;
    hops_set(flows, flow_id, links, crossings, n);
    return flow_id;
}

uint32_t flows_open(struct flows *flows, const uint32_t *links, size_t n, uint32_t weight, uint64_t payload)
{
    return flows_open_counted(flows, links, NULL, n, weight, payload);
}

void flows_close(struct flows *flows, uint32_t flow_id)
{
    struct flow *flow = &flows->items[flow_id];

    if (flow->attached)
        flow_detach(flows, flow_id);
    hops_unlist(flows, flow);
    flow->open = false;
    list_push(&flows->closed, &flows->n_closed, &flows->closed_capacity, flow_id);
}

/* Off the links; if a transfer is under way, on again at this instant's solve. */
static void flow_restart(struct flows *flows, uint32_t flow_id)
{
    struct flow *flow = &flows->items[flow_id];

    if (!flow->attached)
        return;
    flow_detach(flows, flow_id);
    if (!flow->sending)
        return;
    flow_advance(flows, flow, flow->level);
    starting_add(flows, flow_id);
}

void flows_reroute(struct flows *flows, uint32_t flow_id, const uint32_t *links, size_t n)
{
    struct flow *flow = &flows->items[flow_id];

    flows_settle(flows); /* it is attached now if it is sending */
    flow_restart(flows, flow_id);
    double carried = flow->sending ? flow->bytes_left : 0; /* over the new way */
    flow->carried -= carried;
    hops_unlist(flows, flow);
    flow->carried = carried;
    hops_set(flows, flow_id, links, NULL, n);
}

void flows_send(struct flows *flows, uint32_t flow_id, double bytes)
{
    struct flow *flow = &flows->items[flow_id];

    flow->bytes_left = bytes > 0 ? bytes : 0;
    flow->carried += flow->bytes_left;
    flow->since = flows->now;
    flow->sending = true;
    if (flow->attached)
        end_set(flows, flow_id, end_time(flows, flow));
    else
        starting_add(flows, flow_id);
}

void flows_set_rate(struct flows *flows, uint32_t link, double rate)
{
    flows_settle(flows);
    for (uint32_t h = flows->links[link].first; h != NO_HOP; h = flows->listings[h].next)
        flow_restart(flows, flows->listings[h].flow);
    int64_t capacity = capacity_of(rate);
    flows->loads[link].room += (wide)capacity - flows->links[link].capacity;
    flows->links[link].capacity = capacity;
    for (uint32_t h = flows->links[link].first; h != NO_HOP; h = flows->listings[h].next) {
        struct flow *flow = &flows->items[flows->listings[h].flow];
        flow->ceiling = ceiling_of(flows, flow);
    }
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
    uint32_t flow_id = flows->groups[flows->ends[0].group].first;
    struct flow *flow = &flows->items[flow_id];
    end_remove(flows, flow_id);
    flow->sending = false;
    flow->bytes_left = 0;
    list_push(&flows->idle, &flows->n_idle, &flows->idle_capacity, flow_id);
    flows->counts.transfers++;
    return flow_id;
}
