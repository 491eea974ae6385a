/*
 * network_flow_internal.h - what the parts of a network of flows share: network_flow.c (messages, ends, before and after),
 * network_flow_transfers.c (what is carried), network_flow_groups.c (collectives), network_flow_usage.c (what the links have
 * seen). Private to them.
 */
#ifndef MSIM_SIM_NETWORK_NETWORK_FLOW_INTERNAL_H
#define MSIM_SIM_NETWORK_NETWORK_FLOW_INTERNAL_H

#include "sim/network/collective_flows.h"
#include "sim/network/delayed_starts.h"
#include "sim/network/fold.h"
#include "sim/network/network_flow.h"
#include "sim/network/network_packets.h"

#define NONE UINT32_MAX

/* Messages in the words of connections: kinds of groups come before. */
enum { OWNER_MESSAGE = N_GROUP_KINDS };

/* A transfer of the executor: several flows. */
struct transfer {
    uint64_t payload;
    nanos latency;
    nanos carried; /* when the last flow so far was carried, but for the delays of its cables */
    nanos until;   /* before which what moves inside the domains is not done, whatever the flows; 0 they alone count */
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

/* --- network_flow_transfers.c */

/* Where a rank sits. */
int network_flow_gpu(const struct network_flow *n, int rank);
/* A transfer of so many flows, with the latency that follows them; of none it has ended. */
uint32_t network_flow_transfer(struct network_flow *n, uint64_t payload, nanos latency, uint32_t left);
/* The executor's time has come to `now`. */
void network_flow_reach(struct network_flow *n, nanos now);
/* All queue pairs of a connection, which share a message evenly; false: no way. */
bool network_flow_open(struct network_flow *n, int from, int to, int owner);
/* One that stands for a class. */
void network_flow_open_class(struct network_flow *n, int32_t class);
/* The first ranks without a way are remembered. */
void network_flow_lose(struct network_flow *n, int from, int to);
/* Is it carrying anything? */
bool network_flow_busy(const struct network_flow *n, uint32_t flow);
void network_flow_start(struct network_flow *n, uint32_t flow, uint32_t transfer, double bytes);
/* Of a collective: each by itself, or a ring part by part. */
void network_flow_begin(struct network_flow *n, const struct flows_start *start);
/* A flow has carried what it was given; the last one ends its transfer. */
void network_flow_ended(struct network_flow *n, uint32_t flow, nanos now);

/* --- network_flow_groups.c: begin_collective of the network's table (network.h). */
void network_flow_collective(void *state, nanos now, const struct work_collective *exchange, int group, uint64_t payload);

#endif
