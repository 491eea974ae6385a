#include "model/cost/kernel/collective.h"

#include <math.h>

#include "model/cost/kernel/oversubscription.h"

/* NCCL's tuning constants (src/graph/tuning.cc, 2.28): microseconds per network hop of the Simple protocol, ring and tree. */
#define NET_HOP_S 14e-6
/* The same table's NVLink hop of a ring in the Simple protocol: what a local step costs in a ring that also crosses the network
 * and so cannot use the protocols for short messages. */
#define LOCAL_HOP_S    3.4e-6
#define TREE_BANDWIDTH 0.92           /* ring bandwidth a tree reaches, ibid. */
#define NET_CHUNK      (512.0 * 1024) /* Simple protocol: 4 MiB buffer of 8 steps, ibid.; a hop pipelines chunks of this size */

static double steps_of(enum collective collective, double n)
{
    switch (collective) {
    case COLLECTIVE_ALL_REDUCE: return 2 * (n - 1);
    case COLLECTIVE_ALL_TO_ALL: return 1;
    default: return n - 1;
    }
}

/* Around a ring. */
static double passes_of(enum collective collective)
{
    return collective == COLLECTIVE_ALL_REDUCE ? 2 : 1;
}

double collective_ring_bytes(enum collective collective, struct group_span span, double bytes)
{
    return bytes * (span.ranks - 1.0) / span.ranks * passes_of(collective);
}

/* Bytes that the links would carry in the time in which a rank moves its own part: from input to output, or read for the sum. An
 * all-reduce does that once in its two rounds of transfers, and half of it hides; an all-to-all sends itself a message. */
static double own_bytes(const struct gpu *gpu, enum collective collective, double n, double bytes)
{
    switch (collective) {
    case COLLECTIVE_ALL_REDUCE: return 0.5 * gpu->nccl_own_part * bytes / n;
    case COLLECTIVE_ALL_TO_ALL: return gpu->nccl_own_message * bytes / n;
    case COLLECTIVE_BROADCAST: return 0;
    default: return gpu->nccl_own_part * bytes / n;
    }
}

/* What a crossing from one NVLink island of a node to another reaches of PCIe: each byte goes through host memory. The two
 * single-node runs of BigScience's chronicles (arXiv:2211.05100) with tp=8 over two boards of four A100 reduce at 58 and 59 GB/s,
 * a quarter of it by each GPU. */
#define HOST_CROSSING_FRACTION 0.47

/* How much longer `bytes` take because the first of them fill the ring. */
static double ramp_of(double filling, double bytes)
{
    return 1 + sqrt(filling / bytes);
}

/* Bus bandwidth inside a node or an NVLink domain. */
static double local_rate(const struct gpu *gpu, struct group_span span)
{
    if (span.islands <= 1)
        return gpu->nccl_rate;
    int crossing = span.ranks_per_domain / span.islands; /* GPUs of an island, each over its own PCIe */
    return fmin(gpu->nccl_rate, (crossing > 1 ? crossing : 1) * gpu->pcie_rate * HOST_CROSSING_FRACTION);
}

/* Whether the switch adds up what `ranks` of a domain have. */
static bool switch_reduces(const struct gpu *gpu, int ranks, struct group_span span)
{
    return gpu->nvls_rate > 0 && ranks >= 4 && span.islands <= 1;
}

static struct cost nvlink_time(const struct gpu *gpu, enum collective collective, struct group_span span, double bytes)
{
    double n = span.ranks;
    bool all_reduce = collective == COLLECTIVE_ALL_REDUCE;
    double ramp = ramp_of(gpu->nccl_ramp_bytes, bytes);
    double carried = collective_ring_bytes(collective, span, bytes) + own_bytes(gpu, collective, n, bytes);
    double seconds = carried / local_rate(gpu, span) * ramp;
    if (all_reduce && switch_reduces(gpu, span.ranks, span))
        seconds = fmin(seconds, bytes / gpu->nvls_rate * ramp);
    return (struct cost){.latency_s = gpu->nccl_base_s + gpu->nccl_hop_s * steps_of(collective, n), .bandwidth_s = seconds};
}

/* B/s of the NICs of a group's members in one domain, which share them; other groups may use them too. Where they would load the
 * links above leaves or pods beyond what these carry, their part of these. */
static double nics_rate(const struct cluster *cluster, struct group_span span, double load)
{
    double nics = cluster_nics_of(cluster, span.ranks_per_domain) * cluster->nic_rate * cluster->net_fraction /
                  (span.sharing > 1 ? span.sharing : 1);
    return nics / fmax(1, load);
}

static double network_hop(const struct cluster *cluster, struct group_span span)
{
    bool dragonfly = cluster->topology == TOPOLOGY_DRAGONFLY;
    int far = dragonfly ? 3 : 4, near = dragonfly ? 1 : 2;           /* local, global, local cable; one local cable */
    int switches = span.pods > 1 ? far : span.leaves > 1 ? near : 0; /* beyond the first */
    return NET_HOP_S + cluster->nic_latency_s + switches * cluster->hop_latency_s;
}

/* R is what fills a ring of NVLink; one that also crosses the network is slower and filled by as much less, whoever else uses its
 * NICs and however full the fabric above is. */
static double network_ramp(const struct cluster *cluster, struct group_span span, double bytes)
{
    span.sharing = 1;
    double slower = fmin(nics_rate(cluster, span, 1), local_rate(&cluster->gpu, span)) / cluster->gpu.nccl_rate;
    return ramp_of(slower * cluster->gpu.nccl_ramp_bytes, bytes);
}

/* Seconds of a full ring on the NICs; of trees below, and inside domains, likewise. */
static double ring_outward(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes)
{
    return collective_ring_bytes(collective, span, bytes) / nics_rate(cluster, span, oversubscription_of_rings(cluster, span));
}

/* Where messages between nodes pass through host memory, the first of them fill more stages, each for as long as it takes one
 * buffer; a message shorter than all these buffers fills some. */
static double network_fill(const struct cluster *cluster, double bytes)
{
    return cluster->net_fill_s > 0 ? cluster->net_fill_s * fmin(1, bytes / cluster->net_fill_bytes) : 0;
}

/* Start and end of a collective between nodes. */
static double network_base(const struct cluster *cluster)
{
    return cluster->gpu.nccl_base_s + cluster->net_base_s;
}

static struct cost network_ring(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes)
{
    const struct gpu *gpu = &cluster->gpu;
    double n = span.ranks;
    double net_steps = passes_of(collective) * (span.domains > 1 ? span.domains - 1 : 0);
    double local_steps = fmax(0, steps_of(collective, n) - net_steps);
    double inward = collective_ring_bytes(collective, span, bytes) / local_rate(gpu, span);
    return (struct cost){
        .latency_s = network_base(cluster) + local_steps * LOCAL_HOP_S + net_steps * network_hop(cluster, span),
        .bandwidth_s = fmax(ring_outward(cluster, collective, span, bytes), inward) * network_ramp(cluster, span, bytes) +
                       network_fill(cluster, bytes),
    };
}

/* A ring on every rail, over one rank of each domain: each of r rails carries a part S / r. */
static struct cost network_rails(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes)
{
    double d = span.domains, passes = passes_of(collective);
    double rate = nics_rate(cluster, span, oversubscription_of_rings(cluster, span));
    return (struct cost){
        .latency_s = network_base(cluster) + passes * (d - 1) * network_hop(cluster, span),
        .bandwidth_s = bytes * (d - 1) / d * passes / rate * network_ramp(cluster, span, bytes) + network_fill(cluster, bytes),
    };
}

static struct collective_phases hierarchical(const struct cluster *cluster, enum collective collective, struct group_span span,
                                             double bytes)
{
    struct group_span inside = span;
    struct collective_phases phases = {.network = network_rails(cluster, collective, span, bytes)};

    inside.ranks = span.ranks_per_domain;
    inside.domains = 1;
    if (collective != COLLECTIVE_ALL_GATHER)
        phases.before = nvlink_time(&cluster->gpu, COLLECTIVE_REDUCE_SCATTER, inside, bytes);
    if (collective != COLLECTIVE_REDUCE_SCATTER)
        phases.after = nvlink_time(&cluster->gpu, COLLECTIVE_ALL_GATHER, inside, bytes);
    return phases;
}

/* The NICs of a domain carry min(d, 4) halves of the buffer out. */
static double tree_outward(const struct cluster *cluster, struct group_span span, double bytes)
{
    return fmin(span.domains, COLLECTIVE_TREE_LINKS) / 2 * bytes /
           (nics_rate(cluster, span, oversubscription_of_trees(cluster, span)) * TREE_BANDWIDTH);
}

/* Inside a domain the trees are chains over its r ranks, whose r - 1 edges carry all of the buffer up and all of it down, or the
 * switch reduces it (NVLSTree) where that is quicker. One rank alone sends what the NICs do. */
static double tree_inward(const struct gpu *gpu, struct group_span span, double bytes)
{
    double r = span.ranks_per_domain, carried = r > 1 ? 2 * (r - 1) / r : fmin(span.domains, COLLECTIVE_TREE_LINKS) / 2;
    double chains = carried * bytes / (local_rate(gpu, span) * TREE_BANDWIDTH);
    return switch_reduces(gpu, span.ranks_per_domain, span) ? fmin(chains, bytes / gpu->nvls_rate) : chains;
}

static struct cost network_tree(const struct cluster *cluster, struct group_span span, double bytes)
{
    const struct gpu *gpu = &cluster->gpu;
    double depth = ceil(log2(span.domains)), r = span.ranks_per_domain;
    return (struct cost){
        .latency_s = network_base(cluster) + 2 * ((r - 1) * gpu->nccl_hop_s + depth * network_hop(cluster, span)),
        .bandwidth_s =
            fmax(tree_outward(cluster, span, bytes), tree_inward(gpu, span, bytes)) * network_ramp(cluster, span, bytes) +
            network_fill(cluster, bytes),
    };
}

/* Every rank sends to every other: what leaves the domain goes through its own NIC, beside the NVLink part. `leaving` bytes
 * leave, which are `bytes` (n - r)/n unless copies are made on arrival. `mean`: what a rank has on average, by which messages are
 * long or short. */
static struct cost network_all_to_all(const struct cluster *cluster, struct group_span span, double bytes, double leaving,
                                      double mean)
{
    double n = span.ranks, inside = span.ranks_per_domain;
    double nic = cluster_gpu_nic_rate(cluster) * cluster->net_fraction;
    double outward = leaving / nic * fmax(1, oversubscription_of_all_to_all(cluster, span));
    double arriving = bytes * (n - inside) / n - leaving; /* copies made on arrival */
    double inward = (bytes * (inside - 1) / n + arriving) / local_rate(&cluster->gpu, span);
    return (struct cost){
        .latency_s = network_base(cluster) + network_hop(cluster, span),
        .bandwidth_s = fmax(outward, inward) * ramp_of(cluster->gpu.nccl_ramp_bytes, mean) + network_fill(cluster, mean),
    };
}

static struct cost pipelined_time(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes)
{
    if (span.ranks <= 1 || bytes <= 0)
        return (struct cost){0};
    if (span.domains <= 1)
        return nvlink_time(&cluster->gpu, collective, span, bytes);
    if (collective == COLLECTIVE_ALL_TO_ALL)
        return network_all_to_all(cluster, span, bytes, bytes * (span.ranks - span.ranks_per_domain) / span.ranks, bytes);
    return collective == COLLECTIVE_ALL_REDUCE && collective_takes_tree(cluster, span, bytes)
               ? network_tree(cluster, span, bytes)
               : network_ring(cluster, collective, span, bytes);
}

struct collective_phases collective_phases(const struct cluster *cluster, enum collective collective, struct group_span span,
                                           double bytes)
{
    bool in_phases =
        collective == COLLECTIVE_ALL_REDUCE || collective == COLLECTIVE_REDUCE_SCATTER || collective == COLLECTIVE_ALL_GATHER;

    if (cluster->collective_algorithm == ALGORITHM_HIERARCHICAL && in_phases && span.domains > 1 && span.ranks_per_domain > 1 &&
        bytes > 0)
        return hierarchical(cluster, collective, span, bytes);
    return (struct collective_phases){.network = pipelined_time(cluster, collective, span, bytes)};
}

struct group_span collective_span_of_nodes(const struct cluster *cluster, int ranks, int nodes)
{
    int per_node = ranks / nodes, hosts = cluster->nvlink_domain / cluster->gpus_per_node;
    int leaf = cluster_leaf_nodes(cluster), pod = cluster_pod_nodes(cluster);
    struct group_span span = {.ranks = ranks, .ranks_per_domain = ranks, .domains = 1, .leaves = 1, .pods = 1, .sharing = 1};
    if (nodes == 1)
        return span;
    hosts = hosts > 1 ? hosts : 1;
    span.domains = (nodes + hosts - 1) / hosts;
    span.ranks_per_domain = span.domains > 1 ? per_node * hosts : ranks;
    span.leaves = (nodes + leaf - 1) / leaf;
    span.pods = pod > 0 ? (nodes + pod - 1) / pod : 1;
    return span;
}

struct cost collective_time(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes)
{
    struct collective_phases phases = collective_phases(cluster, collective, span, bytes);
    return cost_add(cost_add(phases.before, phases.network), phases.after);
}

/* Tokens of which a copy reaches the busiest of n domains, over the mean of the domains. */
static double busiest_reached(double open, struct token_copies tokens)
{
    double share = fmin(1, tokens.domain_load / open);
    return (1 - pow(1 - share, tokens.copies)) / (1 - pow(1 - 1 / open, tokens.copies));
}

struct cost dispatch_time(const struct cluster *cluster, struct group_span span, double bytes, struct token_copies tokens)
{
    if (span.domains <= 1 || tokens.copies <= 1 || bytes <= 0)
        return collective_time(cluster, COLLECTIVE_ALL_TO_ALL, span, bytes);
    double domains = span.domains, open = domains;
    if (tokens.groups > 0 && tokens.top_groups > 0)
        open = fmin(domains, tokens.top_groups * fmax(1, domains / tokens.groups));
    double reached = open * (1 - pow(1 - 1 / open, tokens.copies));
    double mean = tokens.rank_load > 0 ? bytes / tokens.rank_load : bytes;
    if (tokens.rank_load > 0)
        reached *= busiest_reached(open, tokens);
    /* Copying on arrival does not pay over links that are no faster than NICs, as those of PCIe are. */
    struct cost once = network_all_to_all(cluster, span, bytes, mean / tokens.copies * reached * (domains - 1) / domains, mean);
    struct cost each = network_all_to_all(cluster, span, bytes, bytes * (span.ranks - span.ranks_per_domain) / span.ranks, mean);
    return cost_seconds(each) < cost_seconds(once) ? each : once;
}

bool collective_takes_tree(const struct cluster *cluster, struct group_span span, double bytes)
{
    if (span.domains <= 1 || bytes <= 0 || cluster->collective_algorithm == ALGORITHM_RING ||
        cluster->collective_algorithm == ALGORITHM_HIERARCHICAL)
        return false;
    span.leaf_exits = span.pod_exits = (struct group_exits){0}; /* NCCL knows its NICs' rate, not what is above the leaves */
    return cluster->collective_algorithm == ALGORITHM_TREE ||
           cost_seconds(network_tree(cluster, span, bytes)) <
               cost_seconds(network_ring(cluster, COLLECTIVE_ALL_REDUCE, span, bytes));
}

double collective_nics_s(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes)
{
    if (span.domains <= 1 || bytes <= 0)
        return 0;
    bool tree = collective == COLLECTIVE_ALL_REDUCE && collective_takes_tree(cluster, span, bytes);
    double outward = tree ? tree_outward(cluster, span, bytes) : ring_outward(cluster, collective, span, bytes);
    return outward * network_ramp(cluster, span, bytes) + network_fill(cluster, bytes);
}

double collective_sending_s(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes,
                            struct cost exchange)
{
    if (span.domains <= 1)
        return 0;
    double sent = collective_ring_bytes(collective, span, bytes) * fmax(1, span.sharing);
    span.sharing = 1;
    return fmin(exchange.bandwidth_s, sent / nics_rate(cluster, span, 1));
}

struct cost message_time(const struct cluster *cluster, double bytes, bool same_domain)
{
    const struct gpu *gpu = &cluster->gpu;
    if (bytes <= 0)
        return (struct cost){0};
    if (same_domain)
        return (struct cost){.latency_s = gpu->nccl_base_s,
                             .bandwidth_s = bytes / gpu->nccl_rate * ramp_of(gpu->nccl_ramp_bytes, bytes)};
    double rate = cluster_gpu_nic_rate(cluster) * cluster->net_fraction;
    double ramp = 1 + NET_CHUNK / bytes; /* the first chunk fills the pipeline GPU to NIC to GPU */
    return (struct cost){.latency_s = gpu->nccl_base_s + cluster->nic_latency_s, .bandwidth_s = bytes / rate * ramp};
}
