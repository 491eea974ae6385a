/*
 * network_flow.h - a network of flows: each message and each edge of a collective is a transfer over the links of a fabric, and
 * transfers share links max-min fairly (sim/fabric/flows.h).
 *
 * Example: the network for one step, and the hottest links after it.
 *
 *     const struct network_flow_options options = {.fabric = &fabric, .routing = ROUTING_ECMP, .queue_pairs = 2};
 *     status = network_flow_create(&machine, &program, &options, &network, &diags);
 *     struct network table = network_flow_table(network);          for program_execute
 *     n = network_flow_hottest(network, usage, 5, hottest);
 *
 * The times are those of the closed forms with one term replaced. The bandwidth term (with its ramp) becomes bytes on links, so
 * it grows if links are shared or slow. Base, hop and network latencies and the pipelining of the first chunk stay, and follow
 * the transfer. With all links to itself a transfer takes the time of the analytic network, to the nanosecond. Contention
 * between groups for NICs and over-subscription are not assumed here: they result from the links.
 *
 * Links carry net_fraction of their rate: the rate that NCCL sustains, with headers.
 *
 * Inside an NVLink domain messages use the GPUs' NVLink, and collectives take the closed form's time.
 *
 * A connection between two ranks keeps its route, like a queue pair. The collectives of a group use the same links every time.
 *
 * Queue pairs. NCCL has several between two GPUs. It doubles the rings that it finds, so each NIC has two channels
 * (ncclTopoPostset), each with NCCL_IB_QPS_PER_CONNECTION queue pairs (1). Llama 3 used 16 (arXiv:2407.21783, section 3.3.1).
 * Each is hashed by itself. All carry an equal part, and none runs ahead: a message is cut into slices that all of them carry,
 * with a window of eight slices under way. So the slowest sets the pace of the others. A connection is therefore one transfer
 * that crosses each link once per queue pair on it, and costs about the same for any number of them. The number decides the cost
 * of hashing. With ToRs of two hosts, one uplink per NIC and one queue pair, three of eight edges of a ring meet on an uplink
 * somewhere, and the ring is three times as slow; with 16 it loses 5 %.
 *
 * Packets. With `packets`, transfers that leave a domain go packet by packet over the same paths (network_packets.h).
 *
 * Turns. If the ranks of a domain send one after the other (replica_turns), a ring has one channel, through the first one's NIC.
 */
#ifndef MSIM_SIM_NETWORK_NETWORK_FLOW_H
#define MSIM_SIM_NETWORK_NETWORK_FLOW_H

#include "model/cost/kernel/machine.h"
#include "model/program/program.h"
#include "sim/fabric/flows.h"
#include "sim/fabric/packets.h"
#include "sim/fabric/route.h"
#include "sim/network/link_fault.h"
#include "sim/network/network.h"

struct network_flow;
struct fold;

/* For transfers that leave NVLink domains: packets (network_packets.h). */
struct network_packets;
struct network_packets_options {
    struct packets_parameters with;
    struct network_packets *made; /* made by the caller with these options, for this fabric at the cluster's net_fraction, for one
                                   * run; NULL: the network makes its own */
    double total;                 /* total bytes, for `progress` */
    void (*progress)(void *context, double done, double total); /* called now and then, in bytes; NULL: none */
    void *context;
};

struct network_flow_options {
    const struct fabric *fabric;
    enum routing routing;
    bool polarised, rail_aware;
    bool per_step;                   /* rings move part by part (collective_flows.h); nothing folds */
    int queue_pairs;                 /* per connection; 0: 1 */
    uint64_t seed;                   /* of the hash */
    const int *placement;            /* [ranks] the GPU of each rank; NULL: rank r on GPU r */
    const struct link_event *events; /* [n_events] links that change during the step, in order (link_event_compare) */
    int n_events;
    const struct network_packets_options *packets; /* NULL: flows only. With packets links cannot change, and nothing folds */
};

/* Creates the network for a program with all its ranks. `machine`, `program` and the targets of pointers in `options` must
 * outlive it. Errors: more ranks than the fabric has GPUs; packets with links that change. */
MUST_CHECK enum status network_flow_create(const struct machine *machine, const struct program *program,
                                           const struct network_flow_options *options, struct network_flow **network,
                                           struct diags *diags);
void network_flow_destroy(struct network_flow *network); /* NULL is allowed */

/* Folds ranks that are provably alike (fold.h), before the run. Returns the fold, which belongs to the network and whose program
 * the executor must run; NULL: no ranks are alike, and every rank must be simulated. */
const struct fold *network_flow_fold(struct network_flow *network);

/* The table for the executor. */
struct network network_flow_table(struct network_flow *network);

/* STATUS_FAILED with a diagnostic if two ranks were not connected. */
MUST_CHECK enum status network_flow_status(const struct network_flow *network, struct diags *diags);

/* The span of a group of `kind` on the fabric, for the closed form; `gpus` in group order. It shares NICs only for turns
 * (machine.h), because contention between groups happens on the links. */
struct group_span network_flow_span(const struct fabric *fabric, const struct machine *machine, enum group_kind kind,
                                    const int *gpus, int n);

/* The fabric for which it was made. */
const struct fabric *network_flow_fabric(const struct network_flow *network);

/* After a run: its packets; NULL: flows only. */
const struct packets *network_flow_packets(const struct network_flow *network);

/* After a run: counters of the solver. */
struct flows_counts network_flow_counts(const struct network_flow *network);

/* After a run: the use of each link of the fabric; usage[links]. */
struct link_usage {
    double carried;  /* bytes */
    nanos contended; /* time in which it held back one of at least two transfers */
    uint32_t most;   /* simultaneous transfers, counted once per queue pair that crosses the link; in a folded network 0
                      * for links that cannot be full */
};
void network_flow_usage(const struct network_flow *network, struct link_usage *usage);

/* The links of each layer after a step of `seconds`: how many, how many carried anything, and the mean and the highest
 * utilisation of the latter: bytes carried over what they could have carried. */
struct layer_use {
    uint32_t links, used;
    double mean, most;
};
void link_usage_by_layer(const struct fabric *fabric, const struct link_usage *usage, double seconds,
                         struct layer_use layers[N_FABRIC_LAYERS]);

/* The links that delayed transfers longest, longest first; fewer than n if fewer delayed any, at most HOTTEST_MAX. Links of one
 * layer with the same use are listed once. `usage` comes from network_flow_usage. */
struct hot_link {
    uint32_t link;
    uint32_t alike;                      /* number of links with the same use, including itself */
    nanos contended;                     /* time in which it held back one of at least two transfers */
    double carried;                      /* bytes */
    uint32_t most;                       /* simultaneous transfers, by queue pairs */
    uint32_t messages;                   /* message connections routed over it ... */
    uint32_t collectives[N_GROUP_KINDS]; /* ... and edges of groups */
};
enum { HOTTEST_MAX = 255 };
int network_flow_hottest(const struct network_flow *network, const struct link_usage *usage, int n, struct hot_link *hottest);

#endif
