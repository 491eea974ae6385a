/*
 * flows.h - transfers that share links: weighted max-min fair rates, kept up to date as transfers come and go.
 *
 * A transfer f follows a path of directed links and has a weight w_f. It takes c_fl = w_f * (times the path crosses l) of every
 * unit of its level x_f: rate = w_f x_f, load of link l = sum of c_fl x_f, at most the capacity C_l.
 *
 * Theory. Rates are max-min fair when no level can grow without another that is not larger shrinking. Equivalently (Bertsekas and
 * Gallager, Data Networks, 6.5.2): every transfer has a bottleneck, a saturated link on which nobody has a larger level. With y_l
 * the level at which link l is full (infinite if it never is), x_f is the smallest y on the path of f, and y_l is the "water
 * level" of l: those of its transfers that are held back elsewhere below y_l take what they get there, the others y_l each:
 *
 *     y_l = floor( (C_l - sum over m_fl < y_l of c_fl m_fl) / (sum over m_fl >= y_l of c_fl) ),
 *     m_fl = min of y over f's other links
 *
 * taken from below (start with all transfers in the divisor, remove those with m_fl < y_l until none is left to remove).
 *
 * Ceilings. No level exceeds what the transfer would have with all its links to itself, ceiling_f = min over its links of
 * floor(C_l / c_fl); min over f's other links above includes it. That constraint follows from the others, so it changes nothing,
 * but it tells which links matter: where the sum of c_fl ceiling_f is at most C_l, link l can hold nobody back, and y_l is
 * infinite. On a network that is mostly idle or wide enough (two transfers of 200 Gbps NICs on an uplink of 400 Gbps) those are
 * nearly all links, and a transfer that meets no other kind begins and ends with two additions per link and without a solve.
 *
 * Exactness. Levels are integers, in 1/256 B/s, so sums have no order. The equations above have exactly one solution: the lowest
 * level in the system is min floor(C_l / sum c_fl) whatever the rest, its transfers are thereby fixed, and so on upwards
 * (progressive filling, all links of one level at once). Rates are therefore a function of the set of transfers alone: the same
 * to the last bit in whatever order they came, and whether solved at once or piece by piece. No link is above its capacity, and a
 * saturated one has less than one unit of level left: an error below 1e-10 for links of 1 Gbps and more and up to 64 transfers.
 * Where the ceilings on a link just fit, the last unit that rounding would withhold is given out.
 *
 * What changes. y_l depends only on levels below it, so a change is followed upwards in the order of levels, like an incremental
 * shortest-path search: a link whose water level is no longer its level is moved there when the sweep comes to the smaller of the
 * two; then the links that its transfers share are looked at. A link that falls has its final level. One that rises goes to where
 * the present levels of the others put it: a guess, as these may still move, which the sweep corrects when it comes there. In the
 * end every link has its water level, and as the equations have one solution, which does not depend on the guesses.
 *
 * Books. To look at a link does not mean to go through its transfers. Each link that may be full keeps, for a pivot p,
 *
 *     left = C_l - sum over x_f < p of c_fl x_f,   sharing = sum over x_f >= p of c_fl,   below >= max of x_f < p,
 *
 * which a transfer's change moves by an addition. For any p not above y_l, left / sharing is within sum c_fl / sharing units of
 * a lower bound of the new level: enough to place the link in the sweep. It is the new level itself when it is p, and no transfer
 * lies so close below p that the same equation could hold there (p - below >= sum c_fl / sharing). Only where that does not
 * decide is the link surveyed, transfer by transfer, when its turn comes; p is then its water level.
 *
 * Cost of a solve: the transfers of the links whose level changes, and for each transfer whose level changes an addition at each
 * of its other links; independent of the size of the network and of how many transfers those links carry.
 *
 * Time. The clock is in whole nanoseconds. A transfer of B bytes at constant rate r ends round(B / r) after it began; what is
 * left is carried in doubles when the rate changes. All changes at one instant are solved together. The order in which transfers
 * that end at one instant come out is a function of the calls before.
 *
 * Not modelled: rates adapt at once, where congestion control takes some round trips (tens of us), so it is valid for transfers
 * that are long against that; no packets, no buffers, no loss, no head-of-line blocking, no unfairness of congestion control:
 * packets.h sees these. Latency is the user's to add.
 *
 * A connection is a path and a weight; it carries one transfer after another. One that begins again at the instant at which it
 * ended never left: nothing is solved.
 *
 * Memory: 100 bytes per connection, 24 per hop, 152 per link, 16 for each transfer on a link that may be full; the pool of these
 * grows by doubling, nothing else is allocated after the connections are open.
 */
#ifndef MSIM_SIM_FABRIC_FLOWS_H
#define MSIM_SIM_FABRIC_FLOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/units.h"

struct flows;

#define NEVER_ENDS INT64_MAX
#define NO_FLOW    UINT32_MAX
enum { FLOW_UNITS = 256 }; /* levels are in B/s / FLOW_UNITS */

/* Links 0 to n_links - 1 with their capacities in B/s (0: down; at most 1e16). The clock is at 0. */
struct flows *flows_create(const double *rates, size_t n_links);
void flows_destroy(struct flows *flows); /* NULL is allowed */
/* Room for so many connections and hops in all, so that nothing is allocated later. */
void flows_reserve(struct flows *flows, size_t n_connections, size_t n_hops);

/* A connection over links[n]; a link may stand there several times. An empty path takes no time. Weight 1 to 65,535; `what` is
 * the caller's word. Numbers count up from 0, those of closed connections are given again. */
uint32_t flows_open(struct flows *flows, const uint32_t *links, size_t n, uint32_t weight, uint64_t payload);
/* The same, over links[n] that are all different, each crossed crossings[n] times by every unit of level: a connection that
 * stands for many alike. */
uint32_t flows_open_counted(struct flows *flows, const uint32_t *links, const uint32_t *crossings, size_t n, uint32_t weight,
                            uint64_t payload);
/* An idle connection is given back. */
void flows_close(struct flows *flows, uint32_t flow);
/* Another path of the same length or shorter, also for a transfer under way. */
void flows_reroute(struct flows *flows, uint32_t flow, const uint32_t *links, size_t n);
/* Begin a transfer on an idle connection, now. */
void flows_send(struct flows *flows, uint32_t flow, double bytes);
/* From now on a link has this capacity (B/s). */
void flows_set_rate(struct flows *flows, uint32_t link, double rate);

nanos flows_now(const struct flows *flows);
/* When the next transfer ends if nothing else happens; NEVER_ENDS: none will. Solves what has changed. */
nanos flows_next(struct flows *flows);
/* Move the clock, not beyond flows_next and not backwards. */
void flows_advance(struct flows *flows, nanos time);
/* The next transfer that ends at the present time; its connection is idle now. NO_FLOW: no more. */
uint32_t flows_take(struct flows *flows);

/* Answers about the present; they solve what has changed. */
double flows_rate(struct flows *flows, uint32_t flow);   /* B/s; 0 when idle */
int64_t flows_level(struct flows *flows, uint32_t flow); /* in units; INT64_MAX when nothing holds it back */
double flows_load(struct flows *flows, uint32_t link);   /* B/s taken */
uint64_t flows_payload(const struct flows *flows, uint32_t flow);
bool flows_busy(const struct flows *flows, uint32_t flow);
/* The open connections that are routed over a link, up to `size` of them; returns how many there are. */
size_t flows_routed(const struct flows *flows, uint32_t link, uint32_t *which, size_t size);
/* Bytes of the transfers that have begun over each link so far: bytes[links]. */
void flows_carried(const struct flows *flows, double *bytes);
/* Bytes of the transfers that a connection has begun. */
double flows_sent(const struct flows *flows, uint32_t flow);
/* Nanoseconds for which a link held back a transfer of at least two, up to now: time in which more of it would have helped. */
nanos flows_contended(const struct flows *flows, uint32_t link);
/* The largest number of transfers that were on the link at once, counted as often as they cross it. */
uint32_t flows_most(const struct flows *flows, uint32_t link);

/* What has been done so far, for reports. */
struct flows_counts {
    uint64_t transfers; /* ended */
    uint64_t solves;    /* instants at which something was solved */
    uint64_t settled;   /* links settled in all sweeps */
    uint64_t evaluated; /* water levels worked out */
    uint64_t changed;   /* rates of transfers changed */
};
struct flows_counts flows_counts(const struct flows *flows);

/* The defining properties, exactly, and that books agree: NULL, or a sentence about the first violation (static text). */
const char *flows_check(struct flows *flows);

#endif
