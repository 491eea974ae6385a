/*
 * fold.h - ranks that are provably alike on a fabric, and the small program and network that stand for all of them.
 *
 * Theory. Take everything that the flow network and the executor look at: ranks (their script, who their peers are, the groups
 * they are in, the block they are in lockstep with), groups (their members and edges), connections (their links, in order) and
 * links (their rate, what happens to them during the step, the connections over them). Divide each kind into classes so that any
 * two of a class have neighbours of the same classes, and as many of each: an equitable partition. Then at every instant any two
 * of a class are in the same state. By induction over instants: the max-min fair level of a link is a function of the levels
 * elsewhere of the transfers on it (flows.h), of which two links of a class see the same collection, so solving by level meets
 * them together; a rank's next operation depends on its own past, and on when its peers, groups and block were ready. Nothing
 * depends on the order of what happens at one instant (step_executor.h). So one of each class is simulated, and a link of the
 * small network counts a transfer as often as transfers of its class cross the link it stands for. The times are the same to the
 * nanosecond.
 *
 * The coarsest such partition is found by refinement (1-dimensional Weisfeiler-Leman; Cardon and Crochemore, Theoretical Computer
 * Science 19, 1982): classes are split by what their members see until none splits. Splitting compares hashes; the result is then
 * checked exactly, member by member.
 *
 * Links that can never be full, for which the ceilings of all connections that may be busy at once sum to no more than the rate,
 * are left out of it: they hold nobody back and need not be alike.
 *
 * What folds. Routing by destination over a regular placement folds thousands of ranks into some dozens. ECMP gives every
 * connection its own luck: nothing folds, and fold_create says so. Nor with adaptive routing, where a path depends on what was
 * opened before.
 *
 * Cost: O(rounds * (connections * hops + ranks)), about a tenth of a second for 12,288 ranks; 24 bytes per hop of a connection.
 */
#ifndef MSIM_SIM_NETWORK_FOLD_H
#define MSIM_SIM_NETWORK_FOLD_H

#include "sim/network/collective_flows.h"
#include "sim/network/lockstep.h"
#include "sim/network/network_flow.h"

enum { FOLD_NO_CLASS = -1 };

/* One way over the fabric that the program will use: of messages between two ranks, or an edge of a group's collectives; over
 * all its queue pairs. */
struct fold_connection {
    double rate;                /* of a queue pair that has the links to itself and its siblings */
    uint32_t first_hop, n_hops; /* in fold.hops: links, queue pair after queue pair */
    int32_t class;
    int32_t from, to; /* ranks; of an edge the group, and its shape */
    uint8_t owner;    /* enum group_kind, or N_GROUP_KINDS: a message */
};

struct fold {
    const struct program *whole;
    struct program program;   /* a rank per class, a group per class; operations and works are those of the whole */
    struct lockstep lockstep; /* of these ranks */
    int32_t *rank_class;      /* [whole ranks] */
    int32_t *rank_of;         /* [ranks] one of each class ... */
    int32_t *rank_count;      /* [ranks] ... and how many it stands for */
    int32_t *group_of;        /* [groups] one of each class */

    struct fold_connection *connections;
    size_t n_connections, connection_capacity;
    uint32_t *hops;
    size_t n_hops, hop_capacity;
    uint32_t *message_first; /* [whole ranks * N_PEERS] their connection, UINT32_MAX none */
    struct fold_edges {
        uint32_t first, n;
    } * edges; /* [whole groups * N_COLLECTIVE_SHAPES] */

    /* The small network: links [0, n_link_classes) stand for classes of links, n_link_classes + c is the way of connection class
     * c alone, as fast as its slowest link. */
    int32_t n_link_classes, n_connection_classes;
    int32_t *link_class; /* [links] FOLD_NO_CLASS: never full, or never used */
    uint32_t *link_of;   /* [n_link_classes] */
    double *way_rates;   /* [n_connection_classes] */
    uint32_t *way_first; /* [n_connection_classes + 1] in ways */
    struct fold_way {
        uint32_t link, crossings;
    } * ways;
};

/* What a fold needs to know of the network. */
struct fold_network {
    const struct network_flow_options *options; /* queue_pairs at least 1 */
    const struct machine *machine;
    const struct cluster *cluster; /* as collectives are costed on it */
    const double *rates;           /* [links] as flows get them */
};

/* False: no ranks are alike, or none provably; nothing is to be freed. */
bool fold_create(const struct program *whole, const struct fold_network *network, struct fold *fold);
void fold_free(struct fold *fold);

/* The class of the connection that carries messages from a class of ranks to a class of peers. */
int32_t fold_message(const struct fold *fold, int from, int to);

#endif
