/*
 * network_flow_internal.h - the state of a network of flows. Private to network_flow.c (messages, ends, before and after),
 * network_flow_transfers.c (transfers), network_flow_groups.c (collectives) and network_flow_usage.c (use of links).
 */
#ifndef MSIM_SIM_NETWORK_NETWORK_FLOW_INTERNAL_H
#define MSIM_SIM_NETWORK_NETWORK_FLOW_INTERNAL_H

#include "sim/network/collective_flows.h"
#include "sim/network/delayed_starts.h"
#include "sim/network/fold.h"
#include "sim/network/network_flow.h"
#include "sim/network/network_packets.h"

#define NONE UINT32_MAX

/* Owner of a connection: kinds of groups, then messages. */
enum { OWNER_MESSAGE = N_GROUP_KINDS };

/* A transfer of the executor; it has one or more flows. */
struct transfer {
    uint64_t payload;
    nanos latency;
    nanos carried; /* when the last flow so far was carried, without its cable delays */
    nanos until;   /* earliest end, from transfers inside the domains; 0: the flows alone count */
    uint32_t left; /* flows */
    uint32_t next_free;
};

/* A connection from rank to rank with all its queue pairs. */
struct connection {
    int to;
    uint32_t flow;
    uint32_t next; /* from the same rank */
};

/* Cached times of messages by size: a program has few sizes. */
enum { KNOWN_MESSAGES = 8 };
struct known_message {
    double bytes;   /* 0: unused */
    nanos latency;  /* after the transfer */
    double carried; /* bytes on the links */
};

/* An edge of a per-step ring. */
struct ring_edge {
    double bytes;                   /* of a part */
    uint32_t next;                  /* flow */
    uint32_t parts, sent, received; /* parts 0: not an edge */
};

/* The connections of a group, by shape of its collectives. */
struct group_flows {
    bool known;
    struct group_span span;
    struct {
        bool known;
        double share;
        uint32_t first, n; /* flows */
        uint32_t ring;     /* of a ring: edges per channel */
    } shapes[N_COLLECTIVE_SHAPES];
};

struct network_flow {
    const struct machine *machine;
    const struct program *program;
    struct network_flow_options options;
    struct cluster cluster; /* without over-subscription, which the links have */
    struct router router;
    struct flows *flows;
    struct network_packets *packets; /* NULL: flows only */
    struct fold *fold;               /* NULL: not folded; otherwise ranks, groups and links are classes */
    uint32_t *loads;                 /* for adaptive routing */
    double nic_rate;                 /* B/s of a GPU's share of its NICs, as NCCL sustains it */
    uint32_t *links, *crossings;     /* scratch for a connection: [queue pairs * PATH_HOPS + 1] */

    struct connection *connections;
    size_t n_connections, connection_capacity;
    uint32_t *first_connection;                    /* [ranks] */
    struct known_message known[2][KNOWN_MESSAGES]; /* between NVLink domains, within one */
    struct group_flows *groups;
    uint32_t *flow_transfer; /* [flows] the transfer that it carries now */
    size_t n_flows, flow_capacity;
    struct ring_edge *rings; /* [flows], with per_step */
    size_t ring_capacity;
    struct transfer *transfers;
    size_t n_transfers, transfer_capacity;
    uint32_t free_transfer;
    uint32_t *ended; /* transfers that left the links, to be taken */
    size_t n_ended, ended_capacity;
    struct delayed_starts delayed;
    int next_event;         /* of the options */
    int lost_from, lost_to; /* ranks that are not connected; -1: none */
};

/* --- network_flow_transfers.c */

/* The GPU of a rank. */
int network_flow_gpu(const struct network_flow *n, int rank);
/* Creates a transfer of `left` flows with a latency after them; with none it has ended. */
uint32_t network_flow_transfer(struct network_flow *n, uint64_t payload, nanos latency, uint32_t left);
/* The executor's time has reached `now`. */
void network_flow_reach(struct network_flow *n, nanos now);
/* Opens all queue pairs of a connection, which share a message evenly; returns false if there is no path. */
bool network_flow_open(struct network_flow *n, int from, int to, int owner);
/* Opens a connection that represents a class. */
void network_flow_open_class(struct network_flow *n, int32_t class);
/* Remembers the first two ranks that are not connected. */
void network_flow_lose(struct network_flow *n, int from, int to);
/* Does it carry a transfer? */
bool network_flow_busy(const struct network_flow *n, uint32_t flow);
void network_flow_start(struct network_flow *n, uint32_t flow, uint32_t transfer, double bytes);
/* Starts the flows of a collective: each by itself, or a ring part by part. */
void network_flow_begin(struct network_flow *n, const struct flows_start *start);
/* A flow has ended; the last one ends its transfer. */
void network_flow_ended(struct network_flow *n, uint32_t flow, nanos now);

/* --- network_flow_groups.c: begin_collective of the network's table (network.h). */
void network_flow_collective(void *state, nanos now, const struct work_collective *exchange, int group, uint64_t payload);

#endif
