/*
 * network_flow_internal.h - what network_flow.c (transfers) and network_flow_usage.c (what the links have seen) share. Private to
 * them.
 */
#ifndef MSIM_SIM_NETWORK_FLOW_INTERNAL_H
#define MSIM_SIM_NETWORK_FLOW_INTERNAL_H

#include "sim/collective_flows.h"
#include "sim/delayed_starts.h"
#include "sim/fold.h"
#include "sim/network_flow.h"
#include "sim/network_packets.h"

#define NONE UINT32_MAX

/* Messages in the words of connections: kinds of groups come before. */
enum { OWNER_MESSAGE = N_GROUP_KINDS };

/* A transfer of the executor: several flows. */
struct transfer {
    uint64_t what;
    nanos latency;
    nanos carried; /* when the last flow so far was carried, but for the delays of its cables */
    uint32_t left; /* flows */
    uint32_t next_free;
};

/* From a rank to a rank, over all its queue pairs. */
struct connection {
    int to;
    uint32_t flow;
    uint32_t next; /* from the same rank */
};

/* What a message of a size takes: a program has few sizes. */
enum { KNOWN_MESSAGES = 8 };
struct known_message {
    double bytes;   /* 0: none yet */
    nanos latency;  /* that follows the transfer */
    double carried; /* bytes on the links */
};

/* An edge of a ring that moves part by part. */
struct ring_edge {
    double bytes;                   /* of a part */
    uint32_t next;                  /* flow */
    uint32_t parts, sent, received; /* parts 0: it is none */
};

/* A group's collectives of one shape. */
struct group_flows {
    bool known;
    struct group_span span;
    struct {
        bool known;
        double share;
        uint32_t first, n; /* flows */
        uint32_t ring;     /* of a ring: edges of a channel */
    } shapes[N_COLLECTIVE_SHAPES];
};

struct network_flow {
    const struct machine *machine;
    const struct program *program;
    struct network_flow_options options;
    struct cluster cluster; /* without over-subscription: the links have that */
    struct router router;
    struct flows *flows;
    struct network_packets *packets; /* NULL: flows alone */
    struct fold *fold;               /* NULL: ranks, groups and links are themselves, otherwise classes of them */
    uint32_t *loads;                 /* for adaptive routing */
    double nic_rate;                 /* B/s of a GPU's share of its NICs, as NCCL sustains it */
    uint32_t *links, *crossings;     /* scratch for a connection: [queue pairs * PATH_HOPS + 1] */

    struct connection *connections;
    size_t n_connections, connection_capacity;
    uint32_t *first_connection;                    /* [ranks] */
    struct known_message known[2][KNOWN_MESSAGES]; /* between NVLink domains, within one */
    struct group_flows *groups;
    uint32_t *flow_transfer; /* [flows] what it carries now */
    size_t n_flows, flow_capacity;
    struct ring_edge *rings; /* [flows], with per_step */
    size_t ring_capacity;
    struct transfer *transfers;
    size_t n_transfers, transfer_capacity;
    uint32_t free_transfer;
    uint32_t *ended; /* transfers that left the links and wait to be taken */
    size_t n_ended, ended_capacity;
    struct delayed_starts delayed;
    int next_event;         /* of the options */
    int lost_from, lost_to; /* ranks without a way, -1 none */
};

#endif
