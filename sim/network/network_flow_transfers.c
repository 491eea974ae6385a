/* network_flow_transfers.c - the transfers of a network of flows, and the flows and rings that carry them. */
#include "sim/network/network_flow_internal.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

int network_flow_gpu(const struct network_flow *n, int rank)
{
    return n->options.placement != NULL ? n->options.placement[rank] : rank;
}

/* ---- transfers */

static void ended_add(struct network_flow *n, uint32_t transfer)
{
    if (n->n_ended == n->ended_capacity)
        n->ended = memory_grow(n->ended, &n->ended_capacity, n->n_ended + 1, sizeof *n->ended);
    n->ended[n->n_ended++] = transfer;
}

uint32_t network_flow_transfer(struct network_flow *n, uint64_t payload, nanos latency, uint32_t left)
{
    uint32_t t = n->free_transfer;

    if (t != NONE) {
        n->free_transfer = n->transfers[t].next_free;
    } else {
        if (n->n_transfers == n->transfer_capacity)
            n->transfers = memory_grow(n->transfers, &n->transfer_capacity, n->n_transfers + 1, sizeof *n->transfers);
        t = (uint32_t)n->n_transfers++;
    }
    n->transfers[t] = (struct transfer){.payload = payload, .latency = latency, .left = left};
    if (left == 0)
        ended_add(n, t);
    return t;
}

/* Is it carried packet by packet? */
static bool flow_is_packets(const struct network_flow *n, uint32_t flow)
{
    return n->packets != NULL && network_packets_carry(n->packets, flow);
}

bool network_flow_busy(const struct network_flow *n, uint32_t flow)
{
    return flow_is_packets(n, flow) ? network_packets_busy(n->packets, flow) : flows_busy(n->flows, flow);
}

static void flow_send(struct network_flow *n, uint32_t flow, double bytes)
{
    if (flow_is_packets(n, flow))
        network_packets_send(n->packets, flow, bytes);
    else
        flows_send(n->flows, flow, bytes);
}

void network_flow_start(struct network_flow *n, uint32_t flow, uint32_t transfer, double bytes)
{
    n->flow_transfer[flow] = transfer;
    flow_send(n, flow, bytes);
}

/* The executor's time has come to `now`. */
void network_flow_reach(struct network_flow *n, nanos now)
{
    flows_advance(n->flows, now);
    if (n->packets != NULL)
        (void)network_packets_advance(n->packets, now); /* is there already, but before the first event */
}

static void flow_added(struct network_flow *n)
{
    if (n->n_flows == n->flow_capacity)
        n->flow_transfer = memory_grow(n->flow_transfer, &n->flow_capacity, n->n_flows + 1, sizeof *n->flow_transfer);
    n->flow_transfer[n->n_flows++] = NONE;
}

/* All queue pairs of a connection, which share a message evenly; false: no way. */
bool network_flow_open(struct network_flow *n, int from, int to, int owner)
{
    size_t n_links = 0;

    for (int q = 0; q < n->options.queue_pairs; q++) {
        struct path path;
        if (!route_gpus(&n->router, from, to, (uint32_t)q, &path))
            return false;
        for (int h = 0; h < path.n; h++) {
            n->links[n_links++] = path.links[h];
            if (n->loads != NULL)
                n->loads[path.links[h]]++;
        }
        if (n->packets != NULL)
            network_packets_open(n->packets, (uint32_t)n->n_flows, &path);
    }
    flows_open(n->flows, n->links, n_links, 1, (uint64_t)owner);
    flow_added(n);
    return true;
}

/* One that stands for a class: over its classes of links, and, where none of them is as slow as the whole way, over a link of its
 * own that is. */
void network_flow_open_class(struct network_flow *n, int32_t class)
{
    const struct fold *fold = n->fold;
    uint32_t n_links = 0;

    for (uint32_t w = fold->way_first[class]; w < fold->way_first[class + 1]; w++) {
        n->links[n_links] = fold->ways[w].link;
        n->crossings[n_links++] = fold->ways[w].crossings;
    }
    if (fold->way_rates[class] > 0) {
        n->links[n_links] = (uint32_t)(fold->n_link_classes + class);
        n->crossings[n_links++] = 1;
    }
    flows_open_counted(n->flows, n->links, n->crossings, n_links, 1, (uint64_t) class);
    flow_added(n);
}

void network_flow_lose(struct network_flow *n, int from, int to)
{
    if (n->lost_from < 0) {
        n->lost_from = from;
        n->lost_to = to;
    }
}

/* ---- rings part by part */

static void edge_go(struct network_flow *n, uint32_t flow)
{
    const struct ring_edge *edge = &n->rings[flow];

    if (edge->sent < edge->parts && edge->received >= edge->sent && !network_flow_busy(n, flow))
        flow_send(n, flow, edge->bytes);
}

/* The flows of a ring stand channel by channel, edge by edge. */
static void ring_start(struct network_flow *n, uint32_t first, uint32_t n_flows, uint32_t length, uint32_t transfer,
                       double carried, uint32_t parts)
{
    size_t before = n->ring_capacity;
    if (n->n_flows > before) {
        n->rings = memory_grow(n->rings, &n->ring_capacity, n->flow_capacity, sizeof *n->rings);
        memset(n->rings + before, 0, (n->ring_capacity - before) * sizeof *n->rings);
    }
    for (uint32_t f = 0; f < n_flows; f++) {
        uint32_t channel = f / length, next = channel * length + (f + 1) % length;
        n->rings[first + f] = (struct ring_edge){.bytes = carried / parts, .next = first + next, .parts = parts};
        n->flow_transfer[first + f] = transfer;
    }
    for (uint32_t f = first; f < first + n_flows; f++)
        edge_go(n, f);
}

/* True: the edge has sent its last part. */
static bool part_ended(struct network_flow *n, uint32_t flow)
{
    struct ring_edge *edge = &n->rings[flow];

    edge->sent++;
    n->rings[edge->next].received++;
    edge_go(n, flow);
    edge_go(n, edge->next);
    if (edge->sent < edge->parts)
        return false;
    return true;
}

void network_flow_begin(struct network_flow *n, const struct flows_start *start)
{
    if (start->length > 0) {
        ring_start(n, start->first, start->n, start->length, start->transfer, start->carried, start->parts);
        return;
    }
    for (uint32_t f = start->first; f < start->first + start->n; f++)
        network_flow_start(n, f, start->transfer, start->carried);
}

/* ---- ends */

/* What the cables have added to the way of packets is in the latency that follows: once for each part behind the other. */
static nanos cables_delay(const struct network_flow *n, uint32_t flow)
{
    bool in_parts = flow < n->ring_capacity && n->rings[flow].parts > 0;

    return flow_is_packets(n, flow) ? network_packets_delay(n->packets, flow) * (in_parts ? n->rings[flow].parts : 1) : 0;
}

void network_flow_ended(struct network_flow *n, uint32_t flow, nanos now)
{
    struct transfer *transfer = &n->transfers[n->flow_transfer[flow]];

    if (flow < n->ring_capacity && n->rings[flow].parts > 0 && !part_ended(n, flow))
        return;
    transfer->carried = nanos_later(transfer->carried, now - cables_delay(n, flow));
    if (--transfer->left == 0)
        ended_add(n, n->flow_transfer[flow]);
    n->flow_transfer[flow] = NONE;
}
