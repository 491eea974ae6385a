/*
 * packets_internal.h - the state of packets. Private to packets.c (connections and time), packets_ports.c (links and switches),
 * packets_senders.c (when a connection may send) and packets_answers.c (statistics and the check).
 *
 * Calls go both ways between ports and senders: a free port takes a packet from a sender, and a sender that becomes ready kicks
 * its port.
 */
#ifndef MSIM_SIM_FABRIC_PACKETS_INTERNAL_H
#define MSIM_SIM_FABRIC_PACKETS_INTERNAL_H

#include "model/base/random.h"
#include "sim/base/engine.h"
#include "sim/fabric/packets.h"

#define NONE UINT32_MAX
/* Links count time in 2^-16 ns, so that packet after packet does not round. Good for 39 hours of 2^63: PACKETS_LONGEST and what
 * is scheduled by then. */
enum { TICK_BITS = 16, PAUSE_FRAME_BYTES = 64, BUSY_EVENTS = 1 << 16 };

/* Classes of events at one time, in their order. */
enum { CLASS_CONTROL, CLASS_FREE, CLASS_ARRIVE, CLASS_SEND };
/* An event's payload: its kind in the low bits, and its port, packet or connection above them. */
enum kind { KIND_PAUSE, KIND_RESUME, KIND_CNP, KIND_ALARM, KIND_FREE, KIND_ARRIVE, KIND_SEND };
enum { KIND_BITS = 3 };

struct packet {
    uint32_t next; /* in its queue, or in the free list */
    uint32_t connection;
    uint32_t stamp;      /* order of arrival in the queue; wraps around */
    uint32_t bytes : 21; /* PACKET_BYTES_MAX */
    uint32_t hop : 10;   /* of its path: on it, or waiting for it */
    uint32_t marked : 1;
};

/* What every packet over a link touches: one cache line. Port l is that of link l. Links between PCIe switches and CPUs have
 * another for what comes from NICs, cables between switches of a dragonfly one for each further virtual channel (packets.h): with
 * its own queue, book and pauses, on the wire of the first. */
struct port {
    int64_t free_at; /* ticks; of the wire, so of the first port */
    double ticks_per_byte;
    uint32_t queued;            /* bytes that wait for it */
    uint32_t held;              /* bytes where it leads to that came over it */
    uint32_t first, last;       /* packets that wait */
    uint32_t ready, ready_last; /* connections that begin here and may send */
    uint32_t place;             /* whose buffer it leads to; NONE: an end of everything */
    uint32_t delay;             /* ns */
    uint32_t mark_above;        /* bytes queued; UINT32_MAX: never marks */
    bool scheduled;             /* an event will come when the wire is free: of the first port */
    bool paused;                /* stands still */
    bool asked;                 /* where it leads to has asked it to stop */
    bool turn;                  /* of connections, where packets wait too: of the first port */
};

/* Statistics of a link, over all its ports. */
struct port_seen {
    int64_t bytes;
    uint64_t hops, marks, pauses;
    nanos paused, paused_since;
    uint32_t stopped; /* ports of it that stand still now */
    uint32_t deepest;
    uint32_t control; /* ns that a pause frame takes back to its sender */
    double kmin, kmax;
    struct random_stream stream; /* of marking */
};

/* A buffer of a switch, or of a port inside a host. */
struct place_of_packets {
    int64_t used, most, buffer;   /* bytes */
    int64_t pool;                 /* without headroom */
    uint32_t first_port, n_ports; /* in place_ports: ports that lead here */
    uint32_t cursor;              /* among these: which is looked at next */
};

struct connection {
    uint32_t first_hop; /* in hops, which are ports */
    uint32_t next;      /* in a port's list of the ready, or among the ended */
    uint8_t n_hops;
    nanos back;      /* of a CNP */
    int64_t left;    /* bytes to be sent */
    int64_t missing; /* bytes sent or left that have not arrived */
    int64_t arrived; /* of all transfers */
    nanos cnp_from;  /* from then on the receiver may send a CNP */
    nanos at;        /* when `due` was true */
    double unpaced;  /* B/s from which on only its first link holds it back */
    double due;      /* bytes that the rate has yet to pay before the next packet */
    struct dcqcn sender;
    uint64_t payload;
};

struct packets {
    struct packets_parameters with;
    struct engine *engine;
    nanos now;
    uint32_t n_links;
    uint32_t first_shared, n_shared;    /* links with two ports */
    uint32_t first_network;             /* the first link behind a NIC */
    uint32_t first_cable, first_global; /* of a dragonfly, local then global: all links from the first on; n_links: none */
    uint32_t n_channels;                /* ports of each of these */
    uint32_t n_ports;
    uint32_t stamps;
    struct port *ports;     /* [n_ports]: of links, then the further ones, link by link */
    struct port_seen *seen; /* [n_links] */
    struct place_of_packets *places;
    uint32_t n_places, n_switches; /* switches come first */
    uint32_t *place_ports;
    struct packet *pool;
    size_t capacity, used;
    uint32_t free;
    struct connection *connections;
    size_t n_connections, connection_capacity;
    uint32_t *hops;
    size_t n_hops, hop_capacity;
    uint32_t ended, ended_last;
    bool rang;
    int64_t under_way; /* bytes sent that have not arrived */
    struct packets_totals totals;
};

/* packets_senders.c: a connection has bytes to send, now or as its rate allows. Returns its first link, whose port the caller
 * kicks. */
uint32_t sender_settle(struct packets *p, uint32_t connection);
/* Takes the next packet of a connection that is ready on this link; the packet is not yet on any link. */
uint32_t sender_packet(struct packets *p, uint32_t link);
void sender_notified(struct packets *p, uint32_t connection);

/* packets_ports.c: a port may have something to send. */
void port_kick(struct packets *p, uint32_t port);
void port_pause(struct packets *p, uint32_t port);
void port_resume(struct packets *p, uint32_t port);
/* The wire of a link has become free. */
void link_free(struct packets *p, uint32_t link);
/* A packet has arrived at the end of its link. */
void packet_arrive(struct packets *p, uint32_t packet);
/* `bytes` of a transfer have arrived at its end. */
void bytes_arrive(struct packets *p, uint32_t connection, int64_t bytes);

static inline uint64_t packets_word(enum kind kind, uint64_t whom)
{
    return whom << KIND_BITS | (uint64_t)kind;
}

/* Events are never scheduled before the present, so this cannot fail. */
static inline void packets_schedule(struct packets *p, nanos time, uint32_t class, enum kind kind, uint64_t whom)
{
    (void)engine_schedule(p->engine, time, class, packets_word(kind, whom));
}

/* Number of ports of a link. */
static inline uint32_t link_ports(const struct packets *p, uint32_t link)
{
    if (link >= p->first_cable)
        return p->n_channels;
    return link - p->first_shared < p->n_shared ? 2 : 1; /* wraps below the first */
}

/* Port number i of a link. */
static inline uint32_t port_of(const struct packets *p, uint32_t link, uint32_t i)
{
    if (i == 0)
        return link;
    if (link < p->first_cable)
        return p->n_links + (link - p->first_shared);
    return p->n_links + p->n_shared + (link - p->first_cable) * (p->n_channels - 1) + i - 1;
}

static inline uint32_t link_of(const struct packets *p, uint32_t port)
{
    if (port < p->n_links)
        return port;
    uint32_t further = port - p->n_links;
    return further < p->n_shared ? p->first_shared + further : p->first_cable + (further - p->n_shared) / (p->n_channels - 1);
}

/* Bytes queued for a link. */
static inline uint32_t link_queued(const struct packets *p, uint32_t link)
{
    uint32_t sum = p->ports[link].queued, n = link_ports(p, link);

    for (uint32_t i = 1; i < n; i++)
        sum += p->ports[port_of(p, link, i)].queued;
    return sum;
}

static inline nanos ticks_ceiling(int64_t ticks)
{
    return (ticks + (1 << TICK_BITS) - 1) >> TICK_BITS;
}

#endif
