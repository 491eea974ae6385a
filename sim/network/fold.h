/*
 * fold.h - folding: finds ranks that are provably alike on a fabric, and builds the small program and network that represent
 * all.
 *
 * Example: 12,288 ranks of MegaScale on rails, routed by destination, fold into 1,536. The small step has the same times to the
 * nanosecond.
 *
 *     if (fold_create(&program, &network, &fold))        false: no ranks are alike
 *         ... execute fold.program (1,536 ranks); fold.rank_class[r] is the rank that represents rank r ...
 *
 * Theory. Take everything that the flow network and the executor look at: ranks (script, peers, groups, lockstep block), groups
 * (members and edges), connections (their links, in order) and links (rate, changes during the step, connections). Divide each
 * kind into classes so that any two members of a class have the same number of neighbours in each class: an equitable partition.
 * Then at every instant any two members of a class are in the same state. The proof is by induction over instants. The max-min
 * fair level of a link is a function of the levels elsewhere of its transfers (flows.h). Two links of a class see the same
 * collection of these, so solving by level reaches them together. The next operation of a rank depends on its own past, and on
 * when its peers, groups and block were ready. Nothing depends on the order of events at one instant (step_executor.h). So one
 * member of each class is simulated. A link of the small network counts a transfer once per transfer of its class that crosses
 * the represented link. The times are equal to the nanosecond.
 *
 * The coarsest such partition is found by refinement (1-dimensional Weisfeiler-Leman; Cardon and Crochemore, Theoretical
 * Computer Science 19, 1982): classes are split by what their members see until none splits. Splitting compares hashes; then the
 * result is checked exactly, member by member.
 *
 * Links that can never be full are left out: links on which the ceilings of all connections that may be busy at once sum to no
 * more than the rate. They hold nobody back and need not be alike.
 *
 * What folds. Routing by destination over a regular placement folds thousands of ranks into some dozens. ECMP hashes every
 * connection differently, so nothing folds, and fold_create reports that. Adaptive routing does not fold either, because a path
 * depends on what was opened before.
 *
 * Cost: O(rounds * (connections * hops + ranks)), about 0.1 s for 12,288 ranks; 24 bytes per hop of a connection.
 */
#ifndef MSIM_SIM_NETWORK_FOLD_H
#define MSIM_SIM_NETWORK_FOLD_H

#include "sim/network/collective_flows.h"
#include "sim/network/lockstep.h"
#include "sim/network/network_flow.h"

enum { FOLD_NO_CLASS = -1 };

/* A path over the fabric that the program will use, with all its queue pairs: for messages between two ranks, or an edge of a
 * group's collectives. */
struct fold_connection {
    double rate;                /* of a queue pair that shares the links only with its siblings */
    uint32_t first_hop, n_hops; /* in fold.hops: the links of each queue pair in turn */
    int32_t class;
    int32_t from, to; /* ranks; for an edge: the group and its shape */
    uint8_t owner;    /* enum group_kind; N_GROUP_KINDS: a message */
};

struct fold {
    const struct program *whole;
    struct program program;   /* one rank and one group per class; shares operations and works with the whole */
    struct lockstep lockstep; /* blocks of these ranks */
    int32_t *rank_class;      /* [whole ranks] */
    int32_t *rank_of;         /* [ranks] one of each class ... */
    int32_t *rank_count;      /* [ranks] ... and its size */
    int32_t *group_of;        /* [groups] one of each class */

    struct fold_connection *connections;
    size_t n_connections, connection_capacity;
    uint32_t *hops;
    size_t n_hops, hop_capacity;
    uint32_t *message_first; /* [whole ranks * N_PEERS] connection; UINT32_MAX: none */
    struct fold_edges {
        uint32_t first, n;
    } * edges; /* [whole groups * N_COLLECTIVE_SHAPES] */

    /* The small network: links [0, n_link_classes) represent classes of links. n_link_classes + c represents the other links of
     * connection class c: as fast as its slowest link. */
    int32_t n_link_classes, n_connection_classes;
    int32_t *link_class; /* [links] FOLD_NO_CLASS: never full or never used */
    uint32_t *link_of;   /* [n_link_classes] */
    double *way_rates;   /* [n_connection_classes] */
    uint32_t *way_first; /* [n_connection_classes + 1] in ways */
    struct fold_way {
        uint32_t link, crossings;
    } * ways;
};

/* The network to fold for. */
struct fold_network {
    const struct network_flow_options *options; /* queue_pairs at least 1 */
    const struct machine *machine;
    const struct cluster *cluster; /* that costs collectives */
    const double *rates;           /* [links] as for flows_create */
};

/* Returns false if no ranks are provably alike; then there is nothing to free. */
bool fold_create(const struct program *whole, const struct fold_network *network, struct fold *fold);
void fold_free(struct fold *fold);

/* The class of the connection that carries messages from a class of ranks to a class of peers. */
int32_t fold_message(const struct fold *fold, int from, int to);

#endif
