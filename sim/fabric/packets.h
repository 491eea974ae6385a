/*
 * packets.h - transfers over a fabric packet by packet: queues, marks, pauses, and senders that react to them.
 *
 * The third fidelity beside the closed forms and flows.h, over the same links and paths. It sees what flows.h cannot: how deep
 * queues are, who is paused by priority flow control and who stands behind, how far from fair congestion control settles. It
 * costs an event or two for each packet and hop, where flows.h has one for each transfer.
 *
 * Packets. A transfer of B bytes is cut into packets of `packet_bytes`, the last one shorter. Headers take no time (flows.h has
 * none either), so what a link carries at most is its rate. A packet is stored and forwarded: it takes bytes / rate on each link,
 * then the link's delay, and goes on when it has arrived whole. The delay of a link of the network is one number, the fabric's
 * latency of each further switch (fabric.h) unless said: the cable and the forwarding of the switch behind it. Links inside hosts
 * have none. What hosts take before the first and after the last byte is the user's to add, as with flows. One transfer alone
 * ends after
 *
 *     B / slowest rate + sum over its other links of (a packet / rate) + sum of the delays
 *
 * where all packets are whole, up to a nanosecond a hop for rounding, which does not add up over packets.
 *
 * Switches. Every link begins at an output port with one queue, first in first out: one lossless traffic class. (Some have
 * more, below.) Queues of a switch share its buffer, and each byte is also booked on the link over which it came. A packet leaves
 * buffer and books when its first bit leaves. Links that lead to a switch, or on inside a host, have such books; what arrives at
 * its end is taken at once.
 *
 * Pauses (IEEE 802.1Qbb). When the bytes booked on link l exceed its threshold, the switch tells the other end to stop (XOFF).
 * That takes the link's delay and the frame's 64 bytes; a packet being sent is finished. They go on (XON) when the bytes are down
 * to the threshold less `xon_gap`, or none. What can arrive after the decision is at most
 *
 *     headroom_l = 2 delay rate + 64 B + 3 packets
 *
 * (the packet that decides; those on the wire; what is sent until the pause arrives, and the packet then begun). The
 * buffer B_s of a switch is a reserve of headroom for every port, and a pool of the rest. The threshold is either `xoff`
 * bytes (then the sum of xoff + headroom over its ports has to fit), or moves with what is free (Choudhury and Hahne, IEEE/ACM
 * Transactions on Networking 6(2), 1998; what switches do):
 *
 *     threshold = pfc_alpha (pool - bytes in the switch)
 *
 * Nothing is ever lost: from the moment at which the pool is full every arrival is above its threshold, so no link brings more
 * than its headroom before there is room again; the most is buffer = pool + sum of headrooms. The switch compares at each
 * arrival; as packets leave, the books of the link that brought each, and one other port in turn.
 *
 * Inside hosts each link that leads on (PCIe lanes, NVLink to the NIC of another rail) has `nic_buffer` bytes for itself and the
 * same rules: an assumption; PCIe and NVLink count credits, to the same end.
 *
 * Up and down. Where a GPU's NIC is behind another PCIe switch, what it sends and what it receives meet on the links between
 * switches and CPUs. In one queue what waits for the network would hold up what comes from it, and with a host at the other end
 * that does the same both wait for ever. So these links have two queues, each with a buffer, books and pauses of its own, one for
 * what is on its way to a NIC and one for what comes from one, as PCIe has: a NIC reads what it sends, which travels as
 * completions, and writes what it receives, which are posted requests, and each has its own credits on every link (PCI Express
 * Base Specification, transaction ordering and flow control; not checked against its text). They share the wire: of those that
 * may go the packet goes that has waited longest. Number the links NVLink, up to the NIC, up to the top switch, down, down from
 * the NIC: a packet only ever waits for buffers behind links of higher numbers, so no circle of waits can close (Dally and Seitz,
 * IEEE Transactions on Computers C-36(5), 1987), and everything that is sent arrives.
 *
 * Virtual channels. Ways of a Clos go up and then down, so that what waits for one another there stands in order of height and
 * no circle closes. Those of a dragonfly do not: of three switches of a group each may send to the next over the third. So its
 * cables have virtual channels, each with a queue, books, headroom and pauses of its own, on one wire, of which the packet goes
 * that has waited longest; as a rule a packet goes to the next channel at each cable, but stays in its own from a local to a
 * global one. Number the links NIC up, channel 0 local, channel 0 global, channel 1 local, ..., NIC down: numbers rise along
 * every way, so again no circle closes (Dally and Seitz; Kim et al. 2008, section 4.1: two channels for straight ways and three
 * for Valiant's). A whole dragonfly has three. Where cables have failed it has as many as the longest way could take
 * (DRAGONFLY_LONGEST, 12), also beyond the eight classes of PFC: Slingshot's channels are not those, and its credits are
 * taken to come to the same as pauses (assumption, as inside hosts). Ways are chosen when connections open, not for each packet.
 *
 * Senders. The first link of a path serves its connections in turn, a packet each; packets that only pass through it take turns
 * with all of these. With CONGESTION_NONE each sends as fast as the link takes it. With CONGESTION_DCQCN a connection is a sender
 * of dcqcn.h whose line is the slowest link up to the first switch: the next packet may begin at (start of the last) + bytes /
 * Rc, and who had to wait for the link may catch up by one packet. Queues of switches mark; a CNP travels back ahead of
 * everything, over the delays of the path.
 *
 * Not modelled: loss and what follows from it, headers, acknowledgements and windows (a connection may have any number of bytes
 * under way), more than one traffic class, pause frames that wait for the packet before them, NIC caches of connections.
 *
 * Order. Events at one nanosecond happen by class (pauses and CNPs, links that become free, arrivals, senders whose time has
 * come), then in the order in which they were scheduled. The one random choice, marking, draws from a stream of the link. So the
 * same calls give the same bytes on every compiler.
 *
 * Cost and memory: tests/bench/README.md; 16 bytes for each packet under way, 56 and 96 for each link and 56 for each further
 * channel of it, 152 for each connection, 4 for each hop.
 */
#ifndef MSIM_SIM_FABRIC_PACKETS_H
#define MSIM_SIM_FABRIC_PACKETS_H

#include "sim/fabric/dcqcn.h"
#include "sim/fabric/fabric.h"

enum congestion { CONGESTION_NONE, CONGESTION_DCQCN, N_CONGESTIONS };
const char *congestion_name(enum congestion congestion); /* none dcqcn */

/* Bytes are counted in 32 bits in the books of links. */
#define PACKETS_BUFFER_MAX 4e9
enum { PACKET_BYTES_MAX = 1 << 20 };
#define PACKETS_ALPHA_MAX 1e6 /* of pfc_alpha; at least its inverse */
/* Of a packet over a link, and of a link's delay: pause frames take at most twice that, which 32 bits of nanoseconds hold. */
enum { PACKET_SECONDS_MAX = 1 };
/* Times on links are kept in parts of a nanosecond, which 64 bits hold for 39 hours. */
#define PACKETS_LONGEST (INT64_C(16) * 3600 * NANOS_PER_SECOND)

struct packets_parameters {
    double packet_bytes;  /* 64 to PACKET_BYTES_MAX */
    double link_delay_s;  /* of each link of the network; below 0: the fabric's */
    double switch_buffer; /* bytes of each switch */
    double nic_buffer;    /* bytes of each link inside a host */
    double pfc_alpha;     /* of the free pool, for each port */
    double xoff;          /* bytes; 0: by pfc_alpha */
    double xon_gap;       /* bytes */
    enum congestion congestion;
    double kmin, kmax; /* bytes on a link of DCQCN_REFERENCE_RATE, in proportion for others */
    double pmax;
    struct dcqcn_parameters dcqcn;
    uint64_t seed; /* of marking */
};

/* What is sent by unless something else is said, as users write it; which of it is published where, and what is assumed, stands
 * in the help of the options (cli/fabric/fabric_packets.h). */
#define PACKETS_USUAL_BYTES         "4KiB"
#define PACKETS_USUAL_SWITCH_BUFFER "64MB"
#define PACKETS_USUAL_NIC_BUFFER    "2MB"
#define PACKETS_USUAL_PFC_ALPHA     "0.125"
#define PACKETS_USUAL_XON_GAP       "8KiB"
#define PACKETS_USUAL_CONGESTION    "dcqcn"
#define PACKETS_USUAL_KMIN          "50KB"
#define PACKETS_USUAL_KMAX          "2MB"
#define PACKETS_USUAL_PMAX          "1%"
#define PACKETS_USUAL_CNP_INTERVAL  "50us"
#define PACKETS_USUAL_GAIN          "0.00390625"
#define PACKETS_USUAL_ALPHA_TIMER   "55us"
#define PACKETS_USUAL_RATE_TIMER    "55us"
#define PACKETS_USUAL_BYTE_COUNTER  "10MB"
#define PACKETS_USUAL_FAST_ROUNDS   "5"
#define PACKETS_USUAL_ADDITIVE      "400Mbps"
#define PACKETS_USUAL_HYPER         "4Gbps"
#define PACKETS_USUAL_LEAST         "1Mbps"
/* These as numbers; links have the fabric's delay, thresholds move with what is free. */
struct packets_parameters packets_usual(void);

struct packets;

/* The fabric with its rates of now; it is not used after the call. STATUS_BAD_INPUT, said in `diags`, where parameters are out of
 * their bounds or a switch's buffer is too small for its headroom. */
MUST_CHECK enum status packets_create(const struct fabric *fabric, const struct packets_parameters *with, struct packets **out,
                                      struct diags *diags);
void packets_destroy(struct packets *packets); /* NULL is allowed */

/* A connection over links[n], all up. Numbers count up from 0; `what` is the caller's word. */
uint32_t packets_open(struct packets *packets, const uint32_t *links, size_t n, uint64_t payload);
/* Begin a transfer of so many bytes (rounded up to a whole one, at least 1) on an idle connection, now. */
void packets_send(struct packets *packets, uint32_t connection, double bytes);
/* Let packets_next stop at `time`, not before the present. */
void packets_alarm(struct packets *packets, nanos time);

enum packets_event {
    PACKETS_ENDED,    /* a transfer has arrived whole */
    PACKETS_ALARM,    /* the time of packets_alarm */
    PACKETS_BUSY,     /* nothing yet, after some 50,000 events: a chance to say how far it is */
    PACKETS_IDLE,     /* nothing is under way */
    PACKETS_TOO_LONG, /* what happens next does so after PACKETS_LONGEST: there is no going on */
};
/* Go on to the next of these; *connection is whose transfer has ended. */
enum packets_event packets_next(struct packets *packets, uint32_t *connection);

nanos packets_now(const struct packets *packets);
uint64_t packets_payload(const struct packets *packets, uint32_t connection);
/* Bytes of a connection that have arrived so far. */
int64_t packets_arrived(const struct packets *packets, uint32_t connection);
/* And of all. */
int64_t packets_bytes_arrived(const struct packets *packets);
/* What the cables of its way delay a packet. */
nanos packets_delay(const struct packets *packets, uint32_t connection);

/* What a link has seen so far. */
struct packets_link {
    int64_t bytes;   /* that began over it */
    int64_t deepest; /* bytes that ever waited for it at once */
    uint64_t marks;  /* packets marked as they came to wait */
    uint64_t pauses; /* times that its sender was told to stop */
    nanos paused;    /* for which it stood still in all */
};
struct packets_link packets_link(const struct packets *packets, uint32_t link);

/* All of them, for reports. */
struct packets_totals {
    uint64_t events, packets; /* packets: that arrived at their end */
    uint64_t hops;            /* packets over links */
    uint64_t marks, cnps, pauses;
    nanos paused;          /* summed over links */
    uint32_t paused_links; /* that were paused at all */
    int64_t bytes_sent, bytes_arrived;
    double fullest; /* the largest share of its buffer that any switch or host link used */
};
struct packets_totals packets_totals(const struct packets *packets);

/* Invariants: bytes in queues, books and buffers agree, nothing is above its buffer, sent is arrived plus under way. NULL, or a
 * sentence about the first violation (static text). O(links + packets). */
const char *packets_check(const struct packets *packets);

#endif
