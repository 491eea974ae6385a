/*
 * network_flow.h - the network of flows: every message and every edge of a collective is a transfer over the links of a fabric,
 * and transfers share links max-min fairly (sim/fabric/flows.h).
 *
 * The times are those of the closed forms with one term replaced: the bandwidth term (ramp included) becomes bytes on links, so
 * it grows where links are shared or slow; base, hop and network latencies and the pipelining of the first chunk stay and
 * follow the transfer. On links that it has for itself a transfer takes what the analytic network says, to the nanosecond. The
 * share that groups of ranks take of one another's NICs, and over-subscription, are not assumed here: they happen.
 *
 * Links carry net_fraction of their rate: what NCCL sustains, headers and all.
 *
 * What stays inside an NVLink domain: messages use the GPUs' NVLink; collectives take the closed form's time.
 *
 * A connection between two ranks keeps its route, as a queue pair does. Collectives of a group meet the same links every time.
 *
 * Queue pairs. Between two GPUs NCCL has several: it doubles the rings that it finds, so two channels stand on every NIC
 * (ncclTopoPostset), each with NCCL_IB_QPS_PER_CONNECTION of them (1); Llama 3 made 16 (arXiv:2407.21783, section 3.3.1). Each is
 * hashed for itself, all carry an equal part, and none runs ahead, as a message is cut into slices that all of them carry and a
 * window of eight slices is under way: the slowest paces the others. So a connection is one transfer that crosses each link as
 * often as its queue pairs do, and costs about the same however many they are. How many decides what hashing costs: with ToRs of
 * two hosts, as many uplinks as NICs and one queue pair, three of eight edges of a ring meet on an uplink somewhere and the ring
 * is three times as slow; with 16 it loses 5 %.
 *
 * Packets. With `packets` what leaves a domain goes packet by packet over the same paths (network_packets.h).
 *
 * Turns. Where ranks of a domain send one after the other (replica_turns) a ring has one channel, through the first one's NIC.
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

/* What leaves NVLink domains packet by packet instead (network_packets.h). */
struct network_packets;
struct network_packets_options {
    struct packets_parameters with;
    struct network_packets *made; /* with these options, for this fabric at the cluster's net_fraction: the caller's, for one run;
                                   * NULL: the network makes its own */
    double total;                 /* bytes to come, for `progress` */
    void (*progress)(void *context, double done, double total); /* now and then, in bytes; NULL: nobody asks */
    void *context;
};

struct network_flow_options {
    const struct fabric *fabric;
    enum routing routing;
    bool polarised, rail_aware;
    bool per_step;                   /* rings move part by part (collective_flows.h); nothing folds then */
    int queue_pairs;                 /* per connection; 0: 1 */
    uint64_t seed;                   /* of the hash */
    const int *placement;            /* [ranks] the GPU of each rank; NULL: rank r on GPU r */
    const struct link_event *events; /* [n_events] links that change during the step, in order (link_event_compare) */
    int n_events;
    const struct network_packets_options *packets; /* NULL: flows alone. Links do not change then, and nothing folds */
};

/* For a program with all its ranks. `machine`, `program` and what `options` points to must outlive the network. Refused: more
 * ranks than the fabric has GPUs, packets with links that change. */
MUST_CHECK enum status network_flow_create(const struct machine *machine, const struct program *program,
                                           const struct network_flow_options *options, struct network_flow **network,
                                           struct diags *diags);
void network_flow_destroy(struct network_flow *network); /* NULL is allowed */

/* Let one of each class of ranks that are provably alike stand for all (fold.h), before the run. NULL: none are, and every rank
 * must be simulated. Otherwise the fold, which belongs to the network; the executor is to run its program. */
const struct fold *network_flow_fold(struct network_flow *network);

/* The table for the executor. */
struct network network_flow_table(struct network_flow *network);

/* STATUS_FAILED with a diagnostic when two ranks had no way to one another. */
MUST_CHECK enum status network_flow_status(const struct network_flow *network, struct diags *diags);

/* How a group of `kind` lies on the fabric, for the closed form; `gpus` in group order. Only turns share (machine.h): what groups
 * take of one another's NICs happens on the links. */
struct group_span network_flow_span(const struct fabric *fabric, const struct machine *machine, enum group_kind kind,
                                    const int *gpus, int n);

/* The fabric it was made for. */
const struct fabric *network_flow_fabric(const struct network_flow *network);

/* After a run: its packets; NULL: flows alone. */
const struct packets *network_flow_packets(const struct network_flow *network);

/* After a run: what was solved. */
struct flows_counts network_flow_counts(const struct network_flow *network);

/* After a run: what each link of the fabric has seen; usage[links]. */
struct link_usage {
    double carried;  /* bytes */
    nanos contended; /* time in which it held back one of at least two transfers */
    uint32_t most;   /* transfers at once, each by every queue pair of it that crosses the link; of a folded network only on
                      * links that could be full, else 0 */
};
void network_flow_usage(const struct network_flow *network, struct link_usage *usage);

/* The links that held transfers back the longest, longest first; fewer than n when fewer did. Links of one layer that have seen
 * the same are told once. At most HOTTEST_MAX. `usage` is what network_flow_usage has said. */
struct hot_link {
    uint32_t link;
    uint32_t alike;                      /* links, itself included */
    nanos contended;                     /* time in which it held back one of at least two transfers */
    double carried;                      /* bytes */
    uint32_t most;                       /* transfers at once, by their queue pairs */
    uint32_t messages;                   /* connections of messages that are routed over it ... */
    uint32_t collectives[N_GROUP_KINDS]; /* ... and edges of groups */
};
enum { HOTTEST_MAX = 255 };
int network_flow_hottest(const struct network_flow *network, const struct link_usage *usage, int n, struct hot_link *hottest);

#endif
