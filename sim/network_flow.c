#include "sim/network_flow.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/collective_flows.h"

#define NONE UINT32_MAX

/* Messages in the words of connections: kinds of groups come before. */
enum { OWNER_MESSAGE = N_GROUP_KINDS };

/* A transfer of the executor: several flows. */
struct transfer {
    uint64_t what;
    nanos latency;
    uint32_t left; /* flows */
    uint32_t next_free;
};

/* Queue pairs from a rank to a rank, numbered one after the other. */
struct connection {
    int to;
    uint32_t first;
    uint32_t next; /* from the same rank */
};

/* What a message of a size takes: a program has few sizes. */
enum { KNOWN_MESSAGES = 8 };
struct known_message {
    double bytes;   /* 0: none yet */
    nanos latency;  /* that follows the transfer */
    double carried; /* bytes on the links */
};

/* A group's collectives of one shape. */
struct group_flows {
    bool known;
    struct group_span span;
    struct {
        bool known;
        double share;
        uint32_t first, n; /* flows */
    } shapes[SHAPE_ALL_TO_ALL + 1];
};

struct network_flow {
    const struct machine *machine;
    const struct program *program;
    struct network_flow_options options;
    struct cluster cluster; /* without over-subscription: the links have that */
    struct router router;
    struct flows *flows;
    uint32_t *loads; /* for adaptive routing */
    double nic_rate; /* B/s of a GPU's share of its NICs, as NCCL sustains it */

    struct connection *connections;
    size_t n_connections, connection_capacity;
    uint32_t *first_connection;                    /* [ranks] */
    struct known_message known[2][KNOWN_MESSAGES]; /* between NVLink domains, within one */
    struct group_flows *groups;
    uint32_t *flow_transfer; /* [flows] what it carries now */
    size_t n_flows, flow_capacity;
    struct transfer *transfers;
    size_t n_transfers, transfer_capacity;
    uint32_t free_transfer;
    uint32_t *ended; /* transfers that left the links and wait to be taken */
    size_t n_ended, ended_capacity;
    int next_event;         /* of the options */
    int lost_from, lost_to; /* ranks without a way, -1 none */
};

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

static void flow_start(struct network_flow *n, uint32_t flow, uint32_t transfer, double bytes)
{
    n->flow_transfer[flow] = transfer;
    flows_send(n->flows, flow, bytes);
}

/* One more queue pair; false: no way. */
static bool flow_open(struct network_flow *n, int from, int to, uint32_t queue_pair, int owner)
{
    struct path path;

    if (!route_gpus(&n->router, from, to, queue_pair, &path))
        return false;
    if (n->loads != NULL)
        for (int h = 0; h < path.n; h++)
            n->loads[path.links[h]]++;
    flows_open(n->flows, path.links, path.n, 1, (uint64_t)owner);
    if (n->n_flows == n->flow_capacity)
        n->flow_transfer = memory_grow(n->flow_transfer, &n->flow_capacity, n->n_flows + 1, sizeof *n->flow_transfer);
    n->flow_transfer[n->n_flows++] = NONE;
    return true;
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
    struct connection connection = {.to = to, .first = (uint32_t)n->n_flows, .next = n->first_connection[from]};

    for (int q = 0; q < n->options.queue_pairs; q++)
        if (!flow_open(n, gpu_of(n, from), gpu_of(n, to), (uint32_t)q, OWNER_MESSAGE))
            return NONE;
    if (n->n_connections == n->connection_capacity)
        n->connections = memory_grow(n->connections, &n->connection_capacity, n->n_connections + 1, sizeof *n->connections);
    n->connections[n->n_connections] = connection;
    n->first_connection[from] = (uint32_t)n->n_connections;
    return (uint32_t)n->n_connections++;
}

static bool connection_busy(const struct network_flow *n, const struct connection *connection)
{
    for (int q = 0; q < n->options.queue_pairs; q++)
        if (flows_busy(n->flows, connection->first + (uint32_t)q))
            return true;
    return false;
}

/* An idle connection between two ranks; a message that is still under way keeps its own. */
static uint32_t connection_between(struct network_flow *n, int from, int to)
{
    for (uint32_t c = n->first_connection[from]; c != NONE; c = n->connections[c].next)
        if (n->connections[c].to == to && !connection_busy(n, &n->connections[c]))
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

static void begin_message(void *state, nanos now, int from, int to, double bytes, uint64_t what)
{
    struct network_flow *n = state;
    int a = gpu_of(n, from), b = gpu_of(n, to), domain = n->options.fabric->shape.nvlink_domain;
    const struct known_message *known = message_known(n, bytes, a == b || (domain > 1 && a / domain == b / domain));

    flows_advance(n->flows, now);
    uint32_t c = connection_between(n, from, to);
    if (c == NONE) {
        lose(n, from, to);
        transfer_new(n, what, 0, 0);
        return;
    }
    uint32_t transfer = transfer_new(n, what, known->latency, (uint32_t)n->options.queue_pairs);
    for (int q = 0; q < n->options.queue_pairs; q++)
        flow_start(n, n->connections[c].first + (uint32_t)q, transfer, known->carried / n->options.queue_pairs);
}

/* ---- collectives */

static int *group_gpus(const struct network_flow *n, int group)
{
    const struct rank_group *of = &n->program->groups[group];
    int *gpus = memory_new((size_t)of->n_members, sizeof *gpus);

    for (int i = 0; i < of->n_members; i++)
        gpus[i] = gpu_of(n, n->program->members[of->first_member + i]);
    return gpus;
}

static void group_shape_open(struct network_flow *n, int group, enum collective_shape shape)
{
    struct group_flows *flows = &n->groups[group];
    const struct rank_group *of = &n->program->groups[group];
    struct collective_plan plan;
    int *gpus = group_gpus(n, group);

    collective_plan_create(n->options.fabric, shape, gpus, of->n_members, &plan);
    flows->shapes[shape].known = true;
    flows->shapes[shape].share = plan.share;
    flows->shapes[shape].first = (uint32_t)n->n_flows;
    for (size_t e = 0; e < plan.n_edges; e++)
        for (int q = 0; q < n->options.queue_pairs; q++)
            if (!flow_open(n, plan.edges[e].from, plan.edges[e].to, (uint32_t)q, (int)of->kind))
                lose(n, plan.edges[e].from, plan.edges[e].to);
    flows->shapes[shape].n = (uint32_t)n->n_flows - flows->shapes[shape].first;
    collective_plan_free(&plan);
    free(gpus);
}

static void group_know(struct network_flow *n, int group)
{
    int *gpus = group_gpus(n, group);

    n->groups[group].span = collective_span(n->options.fabric, gpus, n->program->groups[group].n_members);
    n->groups[group].known = true;
    free(gpus);
}

static void begin_collective(void *state, nanos now, enum collective collective, enum group_kind kind, int group, double bytes,
                             uint64_t what)
{
    struct network_flow *n = state;
    struct group_flows *flows = &n->groups[group];

    (void)kind;
    flows_advance(n->flows, now);
    if (!flows->known)
        group_know(n, group);
    struct cost cost = collective_time(&n->cluster, collective, flows->span, bytes);
    nanos total = nanos_from_seconds(cost_seconds(cost));
    enum collective_shape shape = collective_shape_of(&n->cluster, collective, flows->span, bytes);
    if (shape == SHAPE_NONE) {
        transfer_new(n, what, total, 0);
        return;
    }
    if (!flows->shapes[shape].known)
        group_shape_open(n, group, shape);
    uint32_t first = flows->shapes[shape].first, n_flows = flows->shapes[shape].n;
    uint32_t transfer = transfer_new(n, what, total - nanos_from_seconds(cost.bandwidth_s), n_flows);
    double carried = cost.bandwidth_s * n->nic_rate * flows->shapes[shape].share / n->options.queue_pairs;
    for (uint32_t f = first; f < first + n_flows; f++)
        flow_start(n, f, transfer, carried);
}

/* ---- ends */

/* What NCCL gets through a link. */
static double link_rate(const struct network_flow *n, const struct fabric *fabric, uint32_t link)
{
    return fabric_rate(fabric, link) * (link >= fabric->first[LAYER_PCIE_OUT] ? n->cluster.net_fraction : 1);
}

static nanos next_end(void *state)
{
    struct network_flow *n = state;

    if (n->n_ended > 0)
        return flows_now(n->flows);
    nanos next = flows_next(n->flows);
    if (n->next_event < n->options.n_events && n->options.events[n->next_event].at < next)
        next = n->options.events[n->next_event].at;
    return next;
}

/* Links whose time has come. */
static void events_apply(struct network_flow *n, nanos now)
{
    const struct fabric *fabric = n->options.fabric;

    for (; n->next_event < n->options.n_events && n->options.events[n->next_event].at <= now; n->next_event++) {
        const struct link_event *event = &n->options.events[n->next_event];
        flows_set_rate(n->flows, event->link, link_rate(n, fabric, event->link) * event->speed);
    }
}

static void flow_ended(struct network_flow *n, uint32_t flow)
{
    uint32_t transfer = n->flow_transfer[flow];

    n->flow_transfer[flow] = NONE;
    if (--n->transfers[transfer].left == 0)
        ended_add(n, transfer);
}

static bool take_ended(void *state, nanos now, uint64_t *what, nanos *latency)
{
    struct network_flow *n = state;
    uint32_t flow;

    flows_advance(n->flows, now);
    events_apply(n, now);
    while (n->n_ended == 0 && (flow = flows_take(n->flows)) != NO_FLOW)
        flow_ended(n, flow);
    if (n->n_ended == 0)
        return false;
    uint32_t t = n->ended[--n->n_ended];
    *what = n->transfers[t].what;
    *latency = n->transfers[t].latency;
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

struct network network_flow_table(struct network_flow *network)
{
    return (struct network){.state = network,
                            .uniform = true,
                            .message = message_alone,
                            .collective = collective_alone,
                            .begin_message = begin_message,
                            .begin_collective = begin_collective,
                            .next = next_end,
                            .take = take_ended};
}

/* ---- before and after */

static void links_create(struct network_flow *n)
{
    const struct fabric *fabric = n->options.fabric;
    uint32_t n_links = fabric_links(fabric);
    double *rates = memory_new(n_links, sizeof *rates);

    for (uint32_t l = 0; l < n_links; l++)
        rates[l] = link_rate(n, fabric, l);
    n->flows = flows_create(rates, n_links);
    free(rates);
}

enum status network_flow_create(const struct machine *machine, const struct program *program,
                                const struct network_flow_options *options, struct network_flow **network, struct diags *diags)
{
    const struct fabric *fabric = options->fabric;

    if (program->n_ranks > fabric->n_gpus) {
        diag_error(diags, (struct place){0}, "%d ranks do not fit on a fabric of %d GPUs", program->n_ranks, fabric->n_gpus);
        return STATUS_BAD_INPUT;
    }
    struct network_flow *n = memory_new(1, sizeof *n);
    n->machine = machine;
    n->program = program;
    n->options = *options;
    n->options.queue_pairs = options->queue_pairs > 0 ? options->queue_pairs : 1;
    n->cluster = *machine->cluster;
    n->cluster.leaf_oversubscription = n->cluster.pod_oversubscription = 1;
    n->nic_rate = n->cluster.nic_rate * n->cluster.nics_per_node / n->cluster.gpus_per_node * n->cluster.net_fraction;
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
    *network = n;
    return STATUS_OK;
}

void network_flow_destroy(struct network_flow *n)
{
    if (n == NULL)
        return;
    flows_destroy(n->flows);
    free(n->loads);
    free(n->connections);
    free(n->first_connection);
    free(n->groups);
    free(n->flow_transfer);
    free(n->transfers);
    free(n->ended);
    free(n);
}

enum status network_flow_status(const struct network_flow *n, struct diags *diags)
{
    if (n->lost_from < 0)
        return STATUS_OK;
    diag_error(diags, (struct place){0}, "the fabric has no way from rank %d to rank %d", n->lost_from, n->lost_to);
    return STATUS_FAILED;
}

struct flows *network_flow_links(struct network_flow *n)
{
    return n->flows;
}

static int hotter_first(const void *a, const void *b)
{
    const struct hot_link *x = a, *y = b;

    if (x->contended != y->contended)
        return x->contended > y->contended ? -1 : 1;
    return x->link < y->link ? -1 : x->link > y->link;
}

/* Who is routed over the links that are reported. */
static void owners_count(struct network_flow *n, int n_links, struct hot_link *links)
{
    for (int i = 0; i < n_links; i++)
        for (uint32_t f = 0; f < n->n_flows; f++) {
            if (!flows_crosses(n->flows, f, links[i].link))
                continue;
            uint64_t owner = flows_what(n->flows, f);
            if (owner == OWNER_MESSAGE)
                links[i].messages++;
            else
                links[i].collectives[owner]++;
        }
}

int network_flow_hottest(struct network_flow *n, int wanted, struct hot_link *hottest)
{
    uint32_t n_links = fabric_links(n->options.fabric);
    struct hot_link *all = memory_new(n_links, sizeof *all);
    int found = 0;

    for (uint32_t l = 0; l < n_links; l++)
        if (flows_contended(n->flows, l) > 0)
            all[found++] = (struct hot_link){.link = l,
                                             .contended = flows_contended(n->flows, l),
                                             .carried = flows_carried(n->flows, l),
                                             .most = flows_most(n->flows, l)};
    qsort(all, (size_t)found, sizeof *all, hotter_first);
    found = found < wanted ? found : wanted;
    for (int i = 0; i < found; i++)
        hottest[i] = all[i];
    owners_count(n, found, hottest);
    free(all);
    return found;
}
