#include "sim/network/network_flow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/hash.h"
#include "model/base/memory.h"
#include "sim/network/network_flow_internal.h"

/* ---- messages */

static uint32_t connection_open(struct network_flow *n, int from, int to)
{
    struct connection connection = {.to = to, .flow = (uint32_t)n->n_flows, .next = n->first_connection[from]};

    if (n->fold != NULL)
        network_flow_open_class(n, fold_message(n->fold, from, to));
    else if (!network_flow_open(n, network_flow_gpu(n, from), network_flow_gpu(n, to), OWNER_MESSAGE))
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
        if (n->connections[c].to == to && !network_flow_busy(n, n->connections[c].flow))
            return c;
    return connection_open(n, from, to);
}

static const struct known_message *message_known(struct network_flow *n, double bytes, bool same_domain)
{
    struct known_message *known = &n->known[same_domain][(uint64_t)bytes * HASH_GOLDEN >> 61];

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
    int a = network_flow_gpu(n, from), b = network_flow_gpu(n, to);
    return a == b || (domain > 1 && a / domain == b / domain);
}

static void begin_message(void *state, nanos now, int from, int to, double bytes, uint64_t payload)
{
    struct network_flow *n = state;
    const struct known_message *known = message_known(n, bytes, share_domain(n, from, to));

    network_flow_reach(n, now);
    uint32_t c = connection_between(n, from, to);
    if (c == NONE) {
        network_flow_lose(n, from, to);
        network_flow_transfer(n, payload, 0, 0);
        return;
    }
    uint32_t transfer = network_flow_transfer(n, payload, known->latency, 1);
    network_flow_start(n, n->connections[c].flow, transfer, known->carried / n->options.queue_pairs);
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

static uint32_t flow_take(struct network_flow *n)
{
    uint32_t flow = flows_take(n->flows);

    return flow == NO_FLOW && n->packets != NULL ? network_packets_take(n->packets) : flow;
}

/* What of a transfer's latency is still to come. */
static nanos latency_left(const struct transfer *transfer, nanos now)
{
    nanos done = nanos_later(transfer->carried > 0 ? transfer->carried : now, transfer->until);
    return nanos_later(0, done + transfer->latency - now);
}

static bool take_ended(void *state, nanos now, uint64_t *payload, nanos *latency)
{
    struct network_flow *n = state;
    struct flows_start start;
    uint32_t flow;

    network_flow_reach(n, now);
    events_apply(n, now);
    while (delayed_starts_take(&n->delayed, now, &start))
        network_flow_begin(n, &start);
    while (n->n_ended == 0 && (flow = flow_take(n)) != NO_FLOW)
        network_flow_ended(n, flow, now);
    if (n->n_ended == 0)
        return false;
    uint32_t t = n->ended[--n->n_ended];
    *payload = n->transfers[t].payload;
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
                            .begin_collective = network_flow_collective,
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
        diag_error(diags, PLACE_NONE, "%d ranks do not fit on a fabric of %d GPUs", program->n_ranks, fabric->n_gpus);
        return STATUS_BAD_INPUT;
    }
    if (options->packets != NULL && options->n_events > 0) {
        diag_error(diags, PLACE_NONE, "packets do not follow links that change during a step");
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
        n->packets = options->packets->made;
    if (options->packets != NULL && n->packets == NULL)
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
    if (n->options.packets != NULL && n->packets != n->options.packets->made)
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
        diag_error(diags, PLACE_NONE, "packets are followed for %lld hours at most, the step takes longer: take --network flow",
                   (long long)(PACKETS_LONGEST / NANOS_PER_SECOND / 3600));
        return STATUS_BAD_INPUT;
    }
    if (n->lost_from < 0)
        return STATUS_OK;
    diag_error(diags, PLACE_NONE, "the fabric has no way%s from rank %d to rank %d", route_limit_text(n->options.fabric),
               n->lost_from, n->lost_to);
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
