#include "sim/network_flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/network_flow_internal.h"

static int gpu_of(const struct network_flow *n, int rank)
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

static uint32_t transfer_new(struct network_flow *n, uint64_t what, nanos latency, uint32_t left)
{
    uint32_t t = n->free_transfer;

    if (t != NONE) {
        n->free_transfer = n->transfers[t].next_free;
    } else {
        if (n->n_transfers == n->transfer_capacity)
            n->transfers = memory_grow(n->transfers, &n->transfer_capacity, n->n_transfers + 1, sizeof *n->transfers);
        t = (uint32_t)n->n_transfers++;
    }
    n->transfers[t] = (struct transfer){.what = what, .latency = latency, .left = left};
    if (left == 0)
        ended_add(n, t);
    return t;
}

/* Is it carried packet by packet? */
static bool flow_is_packets(const struct network_flow *n, uint32_t flow)
{
    return n->packets != NULL && network_packets_carry(n->packets, flow);
}

static bool flow_busy(const struct network_flow *n, uint32_t flow)
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

static void flow_start(struct network_flow *n, uint32_t flow, uint32_t transfer, double bytes)
{
    n->flow_transfer[flow] = transfer;
    flow_send(n, flow, bytes);
}

/* The executor's time has come to `now`. */
static void network_reach(struct network_flow *n, nanos now)
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
static bool flow_open(struct network_flow *n, int from, int to, int owner)
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
static void flow_open_class(struct network_flow *n, int32_t class)
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

static void lose(struct network_flow *n, int from, int to)
{
    if (n->lost_from < 0) {
        n->lost_from = from;
        n->lost_to = to;
    }
}

/* ---- messages */

static uint32_t connection_open(struct network_flow *n, int from, int to)
{
    struct connection connection = {.to = to, .flow = (uint32_t)n->n_flows, .next = n->first_connection[from]};

    if (n->fold != NULL)
        flow_open_class(n, fold_message(n->fold, from, to));
    else if (!flow_open(n, gpu_of(n, from), gpu_of(n, to), OWNER_MESSAGE))
        return NONE;
    if (n->n_connections == n->connection_capacity)
        n->connections = memory_grow(n->connections, &n->connection_capacity, n->n_connections + 1, sizeof *n->connections);
    n->connections[n->n_connections] = connection;
    n->first_connection[from] = (uint32_t)n->n_connections;
    return (uint32_t)n->n_connections++;
}

/* An idle connection between two ranks; a message that is still under way keeps its own. */
static uint32_t connection_between(struct network_flow *n, int from, int to)
{
    for (uint32_t c = n->first_connection[from]; c != NONE; c = n->connections[c].next)
        if (n->connections[c].to == to && !flow_busy(n, n->connections[c].flow))
            return c;
    return connection_open(n, from, to);
}

static const struct known_message *message_known(struct network_flow *n, double bytes, bool same_domain)
{
    struct known_message *known = &n->known[same_domain][(uint64_t)bytes * UINT64_C(0x9E3779B97F4A7C15) >> 61];

    if (known->bytes == bytes && bytes > 0)
        return known;
    struct cost cost = message_time(&n->cluster, bytes, same_domain);
    cost.launch_s += p2p_cost(n->machine, bytes).launch_s; /* what the job's way of exchanging adds */
    known->bytes = bytes;
    known->latency = nanos_from_seconds(cost_seconds(cost)) - nanos_from_seconds(cost.bandwidth_s);
    known->carried = cost.bandwidth_s * (same_domain ? n->cluster.gpu.nccl_rate : n->nic_rate);
    return known;
}

/* Are two ranks, or the one that stands for a class and its peer, in one NVLink domain? */
static bool share_domain(const struct network_flow *n, int from, int to)
{
    int domain = fabric_domain_gpus(n->options.fabric);

    if (n->fold != NULL) {
        const struct program_rank *rank = &n->fold->program.ranks[from];
        enum peer role = rank->peers[PEER_PREVIOUS] == to ? PEER_PREVIOUS : PEER_NEXT;
        from = n->fold->rank_of[from];
        to = n->program->ranks[from].peers[role];
    }
    int a = gpu_of(n, from), b = gpu_of(n, to);
    return a == b || (domain > 1 && a / domain == b / domain);
}

static void begin_message(void *state, nanos now, int from, int to, double bytes, uint64_t what)
{
    struct network_flow *n = state;
    const struct known_message *known = message_known(n, bytes, share_domain(n, from, to));

    network_reach(n, now);
    uint32_t c = connection_between(n, from, to);
    if (c == NONE) {
        lose(n, from, to);
        transfer_new(n, what, 0, 0);
        return;
    }
    uint32_t transfer = transfer_new(n, what, known->latency, 1);
    flow_start(n, n->connections[c].flow, transfer, known->carried / n->options.queue_pairs);
}

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
        gpus[i] = gpu_of(n, n->program->members[of->first_member + i]);
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
            flow_open_class(n, class);
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
        if (!flow_open(n, plan.edges[e].from, plan.edges[e].to, (int)of->kind))
            lose(n, plan.edges[e].from, plan.edges[e].to);
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

/* ---- rings part by part */

static void edge_go(struct network_flow *n, uint32_t flow)
{
    const struct ring_edge *edge = &n->rings[flow];

    if (edge->sent < edge->parts && edge->received >= edge->sent && !flow_busy(n, flow))
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

static void flows_begin(struct network_flow *n, const struct flows_start *start)
{
    if (start->length > 0) {
        ring_start(n, start->first, start->n, start->length, start->transfer, start->carried, start->parts);
        return;
    }
    for (uint32_t f = start->first; f < start->first + start->n; f++)
        flow_start(n, f, start->transfer, start->carried);
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

static void begin_collective(void *state, nanos now, const struct work_collective *exchange, int group, uint64_t what)
{
    struct network_flow *n = state;
    struct group_flows *flows = &n->groups[group];

    network_reach(n, now);
    if (!flows->known)
        group_know(n, group);
    struct collective_phases phases = exchange_phases(&n->cluster, flows->span, exchange);
    nanos total = nanos_from_seconds(cost_seconds(cost_add(cost_add(phases.before, phases.network), phases.after)));
    nanos delay = nanos_from_seconds(cost_seconds(phases.before));
    double seconds = phases.network.bandwidth_s;
    enum collective_shape shape = collective_shape_of(&n->cluster, flows->span, exchange);
    if (shape == SHAPE_NONE) {
        transfer_new(n, what, total, 0);
        return;
    }
    if (!flows->shapes[shape].known)
        group_shape_open(n, group, shape);
    struct flows_start start = {.first = flows->shapes[shape].first,
                                .n = flows->shapes[shape].n,
                                .carried = seconds * edge_rate(n, shape, &flows->span) * flows->shapes[shape].share /
                                           n->options.queue_pairs};
    if (n->options.per_step && shape == SHAPE_RING) {
        start.length = flows->shapes[shape].ring;
        start.parts = (exchange->collective == COLLECTIVE_ALL_REDUCE ? 2 : 1) * (start.length - 1);
    }
    start.transfer = transfer_new(n, what, total - delay - nanos_from_seconds(seconds), start.n);
    if (delay > 0)
        delayed_starts_add(&n->delayed, now + delay, start);
    else
        flows_begin(n, &start);
}

/* ---- ends */

/* What NCCL gets through a link. */
static double link_rate(const struct network_flow *n, const struct fabric *fabric, uint32_t link)
{
    return fabric_rate(fabric, link) * (link >= fabric->first[LAYER_GPU_OUT] ? n->cluster.net_fraction : 1);
}

static nanos next_end(void *state)
{
    struct network_flow *n = state;

    if (n->n_ended > 0 || (n->packets != NULL && network_packets_ended(n->packets)))
        return flows_now(n->flows);
    nanos next = flows_next(n->flows);
    if (n->next_event < n->options.n_events && n->options.events[n->next_event].at < next)
        next = n->options.events[n->next_event].at;
    nanos delayed = delayed_starts_next(&n->delayed);
    return delayed < next ? delayed : next;
}

/* Links whose time has come. */
static void events_apply(struct network_flow *n, nanos now)
{
    const struct fabric *fabric = n->options.fabric;

    for (; n->next_event < n->options.n_events && n->options.events[n->next_event].at <= now; n->next_event++) {
        const struct link_event *event = &n->options.events[n->next_event];
        uint32_t link = n->fold != NULL ? (uint32_t)n->fold->link_class[event->link] : event->link;
        flows_set_rate(n->flows, link, link_rate(n, fabric, event->link) * event->speed);
    }
}

/* What the cables have added to the way of packets is in the latency that follows: once for each part behind the other. */
static nanos cables_delay(const struct network_flow *n, uint32_t flow)
{
    bool in_parts = flow < n->ring_capacity && n->rings[flow].parts > 0;

    return flow_is_packets(n, flow) ? network_packets_delay(n->packets, flow) * (in_parts ? n->rings[flow].parts : 1) : 0;
}

static void flow_ended(struct network_flow *n, uint32_t flow, nanos now)
{
    struct transfer *transfer = &n->transfers[n->flow_transfer[flow]];

    if (flow < n->ring_capacity && n->rings[flow].parts > 0 && !part_ended(n, flow))
        return;
    transfer->carried = nanos_later(transfer->carried, now - cables_delay(n, flow));
    if (--transfer->left == 0)
        ended_add(n, n->flow_transfer[flow]);
    n->flow_transfer[flow] = NONE;
}

static uint32_t flow_take(struct network_flow *n)
{
    uint32_t flow = flows_take(n->flows);

    return flow == NO_FLOW && n->packets != NULL ? network_packets_take(n->packets) : flow;
}

/* What of a transfer's latency is still to come. */
static nanos latency_left(const struct transfer *transfer, nanos now)
{
    return transfer->carried > 0 ? nanos_later(0, transfer->carried + transfer->latency - now) : transfer->latency;
}

static bool take_ended(void *state, nanos now, uint64_t *what, nanos *latency)
{
    struct network_flow *n = state;
    struct flows_start start;
    uint32_t flow;

    network_reach(n, now);
    events_apply(n, now);
    while (delayed_starts_take(&n->delayed, now, &start))
        flows_begin(n, &start);
    while (n->n_ended == 0 && (flow = flow_take(n)) != NO_FLOW)
        flow_ended(n, flow, now);
    if (n->n_ended == 0)
        return false;
    uint32_t t = n->ended[--n->n_ended];
    *what = n->transfers[t].what;
    *latency = latency_left(&n->transfers[t], now);
    n->transfers[t].next_free = n->free_transfer;
    n->free_transfer = t;
    return true;
}

/* What a transfer takes alone: for senders whose receiver is late. */
static nanos message_alone(void *state, int from, int to, double bytes)
{
    const struct network_flow *n = state;

    (void)from;
    (void)to;
    return nanos_from_seconds(cost_seconds(p2p_cost(n->machine, bytes)));
}

static nanos collective_alone(void *state, enum collective collective, enum group_kind kind, int group, double bytes)
{
    const struct network_flow *n = state;

    (void)group;
    return nanos_from_seconds(cost_seconds(collective_cost(n->machine, collective, n->machine->spans[kind], bytes)));
}

static nanos packets_go_on(void *state, nanos until)
{
    return network_packets_advance(((struct network_flow *)state)->packets, until);
}

struct network network_flow_table(struct network_flow *network)
{
    return (struct network){.state = network,
                            .uniform = true,
                            .message = message_alone,
                            .collective = collective_alone,
                            .begin_message = begin_message,
                            .begin_collective = begin_collective,
                            .next = next_end,
                            .take = take_ended,
                            .advance = network->packets != NULL ? packets_go_on : NULL};
}

/* ---- before and after */

static double *link_rates(const struct network_flow *n)
{
    const struct fabric *fabric = n->options.fabric;
    uint32_t n_links = fabric_links(fabric);
    double *rates = memory_new(n_links, sizeof *rates);

    for (uint32_t l = 0; l < n_links; l++)
        rates[l] = link_rate(n, fabric, l);
    return rates;
}

static void links_create(struct network_flow *n)
{
    double *rates = link_rates(n);

    n->flows = flows_create(rates, fabric_links(n->options.fabric));
    free(rates);
}

static void links_fold(struct network_flow *n, const double *rates)
{
    const struct fold *fold = n->fold;
    size_t classes = (size_t)fold->n_link_classes, ways = (size_t)fold->n_connection_classes;
    double *folded = memory_new(classes + ways, sizeof *folded);

    for (size_t l = 0; l < classes; l++)
        folded[l] = rates[fold->link_of[l]];
    for (size_t w = 0; w < ways; w++)
        folded[classes + w] = fold->way_rates[w];
    flows_destroy(n->flows);
    n->flows = flows_create(folded, classes + ways);
    free(folded);
}

const struct fold *network_flow_fold(struct network_flow *n)
{
    double *rates = link_rates(n);
    const struct fold_network network = {.options = &n->options, .machine = n->machine, .cluster = &n->cluster, .rates = rates};
    struct fold *fold = memory_new(1, sizeof *fold);

    if (!n->options.per_step && n->packets == NULL && fold_create(n->program, &network, fold)) {
        n->fold = fold;
        links_fold(n, rates);
    } else {
        free(fold);
    }
    free(rates);
    return n->fold;
}

/* By destination all queue pairs go the same way, except from port to port. */
static int queue_pairs_of(const struct network_flow_options *options)
{
    int wanted = options->queue_pairs > 0 && options->routing != ROUTING_STATIC ? options->queue_pairs : 1;
    return wanted * fabric_gpu_ports(options->fabric);
}

enum status network_flow_create(const struct machine *machine, const struct program *program,
                                const struct network_flow_options *options, struct network_flow **network, struct diags *diags)
{
    const struct fabric *fabric = options->fabric;

    if (program->n_ranks > fabric->n_gpus) {
        diag_error(diags, (struct place){0}, "%d ranks do not fit on a fabric of %d GPUs", program->n_ranks, fabric->n_gpus);
        return STATUS_BAD_INPUT;
    }
    if (options->packets != NULL && options->n_events > 0) {
        diag_error(diags, (struct place){0}, "packets do not follow links that change during a step");
        return STATUS_BAD_INPUT;
    }
    struct network_flow *n = memory_new(1, sizeof *n);
    n->machine = machine;
    n->program = program;
    n->options = *options;
    n->options.queue_pairs = queue_pairs_of(options);
    n->links = memory_new((size_t)n->options.queue_pairs * PATH_HOPS + 1, sizeof *n->links);
    n->crossings = memory_new((size_t)n->options.queue_pairs * PATH_HOPS + 1, sizeof *n->crossings);
    n->cluster = *machine->cluster;
    n->cluster.topology = fabric->shape.topology;
    n->cluster.leaf_oversubscription = n->cluster.pod_oversubscription = 1;
    n->cluster.dragonfly = (struct dragonfly){0}; /* the same, of a dragonfly */
    n->nic_rate = cluster_gpu_nic_rate(&n->cluster) * n->cluster.net_fraction;
    n->free_transfer = NONE;
    n->lost_from = n->lost_to = -1;
    n->router = (struct router){.fabric = fabric,
                                .routing = options->routing,
                                .polarised = options->polarised,
                                .rail_aware = options->rail_aware,
                                .seed = options->seed};
    if (options->routing == ROUTING_ADAPTIVE)
        n->router.load = n->loads = memory_new(fabric_links(fabric), sizeof *n->loads);
    n->groups = memory_new((size_t)program->n_groups, sizeof *n->groups);
    n->first_connection = memory_new((size_t)program->n_ranks, sizeof *n->first_connection);
    for (int32_t r = 0; r < program->n_ranks; r++)
        n->first_connection[r] = NONE;
    links_create(n);
    enum status status = STATUS_OK;
    if (options->packets != NULL)
        status = network_packets_create(fabric, n->cluster.net_fraction, options->packets, &n->packets, diags);
    if (status != STATUS_OK)
        network_flow_destroy(n);
    else
        *network = n;
    return status;
}

void network_flow_destroy(struct network_flow *n)
{
    if (n == NULL)
        return;
    flows_destroy(n->flows);
    network_packets_destroy(n->packets);
    if (n->fold != NULL)
        fold_free(n->fold);
    free(n->fold);
    free(n->loads);
    free(n->links);
    free(n->crossings);
    free(n->connections);
    free(n->first_connection);
    free(n->groups);
    free(n->flow_transfer);
    free(n->rings);
    delayed_starts_free(&n->delayed);
    free(n->transfers);
    free(n->ended);
    free(n);
}

enum status network_flow_status(const struct network_flow *n, struct diags *diags)
{
    if (n->packets != NULL && network_packets_too_long(n->packets)) {
        diag_error(diags, (struct place){0},
                   "packets are followed for %lld hours at most, the step takes longer: take --network flow",
                   (long long)(PACKETS_LONGEST / NANOS_PER_SECOND / 3600));
        return STATUS_BAD_INPUT;
    }
    if (n->lost_from < 0)
        return STATUS_OK;
    diag_error(diags, (struct place){0}, "the fabric has no way from rank %d to rank %d", n->lost_from, n->lost_to);
    return STATUS_FAILED;
}

const struct fabric *network_flow_fabric(const struct network_flow *n)
{
    return n->options.fabric;
}

const struct packets *network_flow_packets(const struct network_flow *n)
{
    return n->packets != NULL ? network_packets_seen(n->packets) : NULL;
}

struct flows_counts network_flow_counts(const struct network_flow *n)
{
    return flows_counts(n->flows);
}
