/*
 * packets.h - transfers over a fabric packet by packet: queues, marks, pauses, and senders that react to them.
 *
 * Example: two senders on one link, as packets of 4 KiB:
 *
 *     struct packets_parameters with = packets_usual();
 *     status = packets_create(&fabric, &with, &packets, &diags);
 *     a = packets_open(packets, path_a.links, path_a.n, 0);     b = packets_open(packets, path_b.links, path_b.n, 0);
 *     packets_send(packets, a, 1e8);                            packets_send(packets, b, 1e8);
 *     while (packets_next(packets, &connection) == PACKETS_ENDED)  ... packets_now(packets) ...
 *
 * This is the third level of detail, after the closed forms and flows.h, over the same links and paths. It shows what flows.h
 * cannot: the depth of queues, which links priority flow control pauses and which transfers wait behind them, and how far from
 * fair congestion control settles. It costs one or two events per packet and hop, where flows.h has one per transfer.
 *
 * Packets. A transfer of B bytes is cut into packets of `packet_bytes`; the last one is shorter. Headers take no time (as in
 * flows.h), so a link carries at most its rate. Switches store and forward: a packet takes bytes / rate on each link, then the
 * link's delay, and continues when it has arrived completely. By default the delay of a network link is the fabric's latency of
 * each further switch (fabric.h): the cable and the forwarding of the switch behind it. Links inside hosts have no delay. The
 * user adds the time that hosts need before the first and after the last byte, as with flows. One transfer alone ends after
 *
 *     B / slowest rate + sum over its other links of (a packet / rate) + sum of the delays
 *
 * if all packets are whole, to within one nanosecond of rounding per hop, which does not accumulate over packets.
 *
 * Switches. Each link begins at an output port with one FIFO queue: one lossless traffic class. (Some have more, see below.) The
 * queues of a switch share its buffer. Each byte is also booked on the link over which it came. A packet leaves buffer and books
 * when its first bit leaves. Links that lead to a switch, or further inside a host, have such books; a packet at its end is
 * consumed at once.
 *
 * Pauses (IEEE 802.1Qbb). When the bytes booked on link l exceed its threshold, the switch tells the other end to stop (XOFF).
 * That takes the link's delay and the frame's 64 bytes; a packet being sent is finished. The sender resumes (XON) when the bytes
 * have fallen to the threshold minus `xon_gap`, or to 0. After the decision at most
 *
 *     headroom_l = 2 delay rate + 64 B + 3 packets
 *
 * can arrive (the packet that decides; those on the wire; those sent until the pause arrives, and the packet then begun). The
 * buffer B_s of a switch consists of headroom for each port, and a pool. The threshold is `xoff` bytes (then the sum of xoff +
 * headroom over its ports must fit), or varies with the free pool (Choudhury and Hahne, IEEE/ACM Transactions on Networking
 * 6(2), 1998; real switches do this):
 *
 *     threshold = pfc_alpha (pool - bytes in the switch)
 *
 * Nothing is ever lost. Once the pool is full each arrival is above its threshold, so no link brings more than its headroom
 * before there is room again. The maximum is buffer = pool + sum of headrooms. The switch compares at each arrival. When a
 * packet leaves, it compares the books of the link that brought it, and of one other port in turn.
 *
 * Inside hosts each link that leads on (PCIe lanes, NVLink to the NIC of another rail) has `nic_buffer` bytes of its own and the
 * same rules. This is an assumption: PCIe and NVLink count credits, to the same end.
 *
 * Up and down. If a GPU's NIC is behind another PCIe switch, its outgoing and incoming packets meet on the links between
 * switches and CPUs. In one queue, packets that wait for the network would block those that come from it. With such a host at
 * the other end too, both would wait for ever. So these links have two queues, each with its own buffer, books and pauses: one
 * for packets on their way to a NIC, one for those from a NIC. PCIe does the same: a NIC reads the data it sends, which travel
 * as completions, and writes the data it receives as posted requests. Each kind has its own credits on every link (PCI Express
 * Base Specification, transaction ordering and flow control; not checked against its text). The queues share the wire: of the
 * packets that may go, the one that has waited longest goes. Number the links NVLink, up to the NIC, up to the top switch, down,
 * down from the NIC. A packet only waits for buffers behind links of higher numbers, so waits cannot form a circle (Dally and
 * Seitz, IEEE Transactions on Computers C-36(5), 1987), and everything sent arrives.
 *
 * Virtual channels. Paths of a Clos go up and then down, so waits are ordered by height and form no circle. In a dragonfly they
 * can: of three switches of a group each may send to the next over the third. So its cables have virtual channels on one wire,
 * each with its own queue, books, headroom and pauses; the packet that has waited longest goes. Normally a packet moves to the
 * next channel at each cable, but stays in its own from a local to a global one. Number the links NIC up, channel 0 local,
 * channel 0 global, channel 1 local, ..., NIC down: numbers rise along each path, so again there is no circle (Dally and Seitz;
 * Kim et al. 2008, section 4.1: two channels for straight paths and three for Valiant's). A healthy dragonfly has three. With
 * failed cables it has one per cable of the longest possible path (DRAGONFLY_LONGEST, 12), even beyond the eight classes of PFC:
 * Slingshot's channels are not those classes, and its credits are assumed equivalent to pauses, as inside hosts. Paths are
 * chosen when connections open, not per packet.
 *
 * Senders. The first link of a path serves its connections in turn, one packet each. Packets that pass through it take turns
 * with all of these. With CONGESTION_NONE each sends as fast as the link allows. With CONGESTION_DCQCN a connection is a sender
 * of dcqcn.h whose line is the slowest link up to the first switch. Its next packet may start at (start of the last) + bytes /
 * Rc; a connection that waited for the link may catch up by one packet. Queues of switches mark packets. A CNP travels back
 * ahead of everything, with the delays of the path.
 *
 * Not modelled: loss and its consequences, headers, acknowledgements and windows (a connection may have any number of bytes
 * under way), more than one traffic class, pause frames that wait for the packet before them, NIC caches of connections.
 *
 * Order. Events at one nanosecond are ordered by class (pauses and CNPs, links that become free, arrivals, senders that become
 * ready), then by the order of scheduling. The only random choice, marking, uses one stream per link. So the same calls give the
 * same bytes on every compiler.
 *
 * Cost and memory: tests/bench/README.md; 16 bytes per packet under way, 56 and 96 per link and 56 per further channel of it,
 * 152 per connection, 4 per hop.
 */
#ifndef MSIM_SIM_FABRIC_PACKETS_H
#define MSIM_SIM_FABRIC_PACKETS_H

#include "sim/fabric/dcqcn.h"
#include "sim/fabric/fabric.h"

enum congestion { CONGESTION_NONE, CONGESTION_DCQCN, N_CONGESTIONS };
const char *congestion_name(enum congestion congestion); /* none dcqcn */

/* The books of links count bytes in 32 bits. */
#define PACKETS_BUFFER_MAX 4e9
enum { PACKET_BYTES_MAX = 1 << 20 };
#define PACKETS_ALPHA_MAX 1e6 /* of pfc_alpha; at least its inverse */
/* Limit for a packet on a link, and for a link's delay. Pause frames take at most twice that, which fits 32 bits of nanoseconds.
 */
enum { PACKET_SECONDS_MAX = 1 };
/* Times on links are in fractions of a nanosecond: 64 bits suffice for 39 hours. */
#define PACKETS_LONGEST (INT64_C(16) * 3600 * NANOS_PER_SECOND)

struct packets_parameters {
    double packet_bytes;  /* 64 to PACKET_BYTES_MAX */
    double link_delay_s;  /* of each network link; below 0: the fabric's */
    double switch_buffer; /* bytes of each switch */
    double nic_buffer;    /* bytes of each link inside a host */
    double pfc_alpha;     /* fraction of the free pool, per port */
    double xoff;          /* bytes; 0: use pfc_alpha */
    double xon_gap;       /* bytes */
    enum congestion congestion;
    double kmin, kmax; /* bytes on a link of DCQCN_REFERENCE_RATE; scale with the rate */
    double pmax;
    struct dcqcn_parameters dcqcn;
    uint64_t seed; /* of marking */
};

/* The default parameters, as users write them. The help of the options (cli/fabric/fabric_packets.h) says which value is
 * published where, and which is assumed. */
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
/* The same as numbers. Links have the fabric's delay, and thresholds vary with the free pool. */
struct packets_parameters packets_usual(void);

struct packets;

/* Uses the fabric's present rates, and not the fabric after the call. STATUS_BAD_INPUT with a diagnostic if parameters are out of
 * bounds or the buffer of a switch is too small for its headroom. */
MUST_CHECK enum status packets_create(const struct fabric *fabric, const struct packets_parameters *with, struct packets **out,
                                      struct diags *diags);
void packets_destroy(struct packets *packets); /* NULL is allowed */

/* Opens a connection over links[n], which are all up. Numbers count up from 0; `payload` is the caller's. */
uint32_t packets_open(struct packets *packets, const uint32_t *links, size_t n, uint64_t payload);
/* Begins a transfer on an idle connection, now. `bytes` is rounded up to a whole number, at least 1. */
void packets_send(struct packets *packets, uint32_t connection, double bytes);
/* Makes packets_next stop at `time`, which is not in the past. */
void packets_alarm(struct packets *packets, nanos time);

enum packets_event {
    PACKETS_ENDED,    /* a transfer has arrived completely */
    PACKETS_ALARM,    /* the time of packets_alarm */
    PACKETS_BUSY,     /* nothing yet after about 50,000 events: a chance to report progress */
    PACKETS_IDLE,     /* nothing is under way */
    PACKETS_TOO_LONG, /* the next event is after PACKETS_LONGEST: cannot continue */
};
/* Advances to the next of these; *connection is the one whose transfer ended. */
enum packets_event packets_next(struct packets *packets, uint32_t *connection);

nanos packets_now(const struct packets *packets);
uint64_t packets_payload(const struct packets *packets, uint32_t connection);
/* Bytes that have arrived so far, of one connection and of all. */
int64_t packets_arrived(const struct packets *packets, uint32_t connection);
int64_t packets_bytes_arrived(const struct packets *packets);
/* Delay of a packet by the cables of a connection's path. */
nanos packets_delay(const struct packets *packets, uint32_t connection);

/* Statistics of a link so far. */
struct packets_link {
    int64_t bytes;   /* sent over it */
    int64_t deepest; /* largest queue, in bytes */
    uint64_t marks;  /* packets marked in its queue */
    uint64_t pauses; /* number of times that its sender was paused */
    nanos paused;    /* total time paused */
};
struct packets_link packets_link(const struct packets *packets, uint32_t link);

/* Totals, for reports. */
struct packets_totals {
    uint64_t events, packets; /* packets: number that arrived */
    uint64_t hops;            /* packets over links */
    uint64_t marks, cnps, pauses;
    nanos paused;          /* summed over links */
    uint32_t paused_links; /* links that were ever paused */
    int64_t bytes_sent, bytes_arrived;
    double fullest; /* largest fraction of its buffer that any switch or host link used */
};
struct packets_totals packets_totals(const struct packets *packets);

/* Checks that bytes in queues, books and buffers agree, no buffer overflows, and bytes sent are arrived plus under way. Returns
 * NULL, or a sentence about the first violation (static text). O(links + packets). */
const char *packets_check(const struct packets *packets);

#endif
