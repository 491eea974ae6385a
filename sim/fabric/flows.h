/*
 * flows.h - transfers that share links: weighted max-min fair rates, updated as transfers come and go.
 *
 * Example: two links, A of 100 MB/s and B of 30 MB/s. Transfer f1 uses A, f2 uses A and B, f3 uses B:
 *
 *     const double rates[] = {100e6, 30e6};
 *     struct flows *flows = flows_create(rates, 2);
 *     f1 = flows_open(flows, (uint32_t[]){0}, 1, 1, 0);     f2 = flows_open(flows, (uint32_t[]){0, 1}, 2, 1, 0);   ...
 *     flows_send(flows, f1, 1e9);   flows_send(flows, f2, 1e9);   flows_send(flows, f3, 1e9);
 *
 * B is the tightest link: f2 and f3 get 15 MB/s each. A has 85 MB/s left for f1. Each transfer has a bottleneck, a full link on
 * which no other transfer is faster: B for f2 and f3, A for f1. When f3 ends, f2 gets 30 MB/s and f1 70 MB/s.
 *
 * Definitions. A transfer f follows a path of directed links and has a weight w_f. Its rate is w_f x_f, where x_f is its level.
 * Link l carries c_fl x_f of it, with c_fl = w_f * (number of times the path crosses l). The load of a link, the sum of c_fl
 * x_f, is at most its capacity C_l.
 *
 * Theory. Rates are max-min fair if no level can grow without reducing another level that is not larger. Equivalently (Bertsekas
 * and Gallager, Data Networks, 6.5.2) each transfer has a bottleneck: a saturated link on which no transfer has a larger level.
 * Let y_l be the level at which link l is full (infinite if it never is). x_f is the smallest y on the path of f, and y_l is the
 * "water level" of l. Transfers that another link holds back below y_l take their level there, and the others take y_l each:
 *
 *     y_l = floor( (C_l - sum over m_fl < y_l of c_fl m_fl) / (sum over m_fl >= y_l of c_fl) ),
 *     m_fl = min of y over f's other links
 *
 * solved from below: start with all transfers in the divisor, and remove those with m_fl < y_l until none is left to remove.
 *
 * Ceilings. No level exceeds ceiling_f = min over its links of floor(C_l / c_fl), the level of the transfer with all its links
 * to itself. The minimum over f's other links above includes it. This constraint follows from the others, so it changes nothing,
 * but it shows which links matter: if the sum of c_fl ceiling_f is at most C_l, link l can hold nobody back, and y_l is
 * infinite. In a network that is mostly idle or wide enough (two transfers of 200 Gbps NICs on an uplink of 400 Gbps) nearly all
 * links are like that. A transfer that meets no other kind begins and ends with two additions per link and no solve.
 *
 * Exactness. Levels are integers, in 1/256 B/s, so the order of summation does not matter. The equations above have exactly one
 * solution: the lowest level in the system is min floor(C_l / sum c_fl) in any case, which fixes its transfers, and so on
 * upwards (progressive filling, all links of one level at once). So rates are a function of the set of transfers alone. They are
 * equal to the last bit in whatever order the transfers came, and whether solved at once or piece by piece. No link is above its
 * capacity, and a saturated link has less than one unit of level left: a relative error below 1e-10 for links of at least 1 Gbps
 * and up to 64 transfers. If the ceilings on a link just fit, the last unit that rounding would withhold is given out.
 *
 * Incremental solve. y_l depends only on lower levels. So a change is followed upwards in the order of levels, like an
 * incremental shortest-path search (the sweep). A link whose water level differs from its level moves when the sweep reaches the
 * smaller of the two; then the links that its transfers share are examined. A falling link gets its final level. A rising link
 * goes to the level that the present levels of others give: a guess, since these may still move, which the sweep corrects when
 * it gets there. In the end each link has its water level. The solution is unique, so it does not depend on the guesses.
 *
 * Books. Examining a link should not mean visiting all of its transfers. So each link that may be full keeps, for a pivot level
 * p,
 *
 *     left = C_l - sum over x_f < p of c_fl x_f,   sharing = sum over x_f >= p of c_fl,   below >= max of x_f < p,
 *
 * which a change of one transfer updates by an addition. For any p <= y_l, left / sharing is a lower bound of the new level to
 * within sum c_fl / sharing units: enough to place the link in the sweep. It is the new level itself if it equals p and no
 * transfer lies so close below p that the same equation could hold there (p - below >= sum c_fl / sharing). Only if this does
 * not decide is the link surveyed, transfer by transfer, at its turn; p is then its water level.
 *
 * Cost of a solve: the transfers of the links whose level changes, and, per transfer whose level changes, an addition at each of
 * its other links. It does not depend on the size of the network or the number of transfers on those other links.
 *
 * Time. The clock counts whole nanoseconds. A transfer of B bytes at constant rate r ends round(B / r) after it began. If the
 * rate changes, the rest is carried as a double. All changes at one instant are solved together. The order of transfers that end
 * at one instant is a function of the earlier calls.
 *
 * Not modelled. Rates adapt at once, while congestion control needs some round trips (tens of us): valid for transfers that are
 * long compared to that. There are no packets, buffers, losses, head-of-line blocking or unfair congestion control; packets.h
 * has these. The caller adds latency.
 *
 * A connection is a path and a weight. It carries one transfer after another. If one begins at the instant at which the previous
 * one ended, nothing is solved.
 *
 * Memory: 100 bytes per connection, 24 per hop, 152 per link, 16 per transfer on a link that may be full. The pool of the latter
 * grows by doubling; nothing else is allocated once the connections are open.
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
enum { FLOW_UNITS = 256 }; /* unit of levels: 1 / FLOW_UNITS B/s */

/* Creates links 0 to n_links - 1 with capacities in B/s (0: down; at most 1e16) and a clock at 0. */
struct flows *flows_create(const double *rates, size_t n_links);
void flows_destroy(struct flows *flows); /* NULL is allowed */
/* Makes room for this many connections and hops in total, so that nothing is allocated later. */
void flows_reserve(struct flows *flows, size_t n_connections, size_t n_hops);

/* Opens a connection over links[n], in which a link may be repeated. An empty path takes no time. The weight is 1 to 65,535;
 * `payload` is the caller's. Numbers count up from 0, and those of closed connections are reused. */
uint32_t flows_open(struct flows *flows, const uint32_t *links, size_t n, uint32_t weight, uint64_t payload);
/* The same over distinct links[n], where each unit of level crosses links[i] crossings[i] times: a connection that represents
 * many equal ones. */
uint32_t flows_open_counted(struct flows *flows, const uint32_t *links, const uint32_t *crossings, size_t n, uint32_t weight,
                            uint64_t payload);
/* Closes an idle connection. */
void flows_close(struct flows *flows, uint32_t flow);
/* Changes the path to one of at most the same length, also during a transfer. */
void flows_reroute(struct flows *flows, uint32_t flow, const uint32_t *links, size_t n);
/* Begins a transfer on an idle connection, now. */
void flows_send(struct flows *flows, uint32_t flow, double bytes);
/* Sets the capacity of a link (B/s) from now on. */
void flows_set_rate(struct flows *flows, uint32_t link, double rate);

nanos flows_now(const struct flows *flows);
/* When the next transfer ends if nothing else happens; NEVER_ENDS: none. Solves pending changes. */
nanos flows_next(struct flows *flows);
/* Moves the clock forward, not beyond flows_next. */
void flows_advance(struct flows *flows, nanos time);
/* Takes a transfer that ends at the present time; its connection is then idle. NO_FLOW: no more. */
uint32_t flows_take(struct flows *flows);

/* Answers about the present. They solve pending changes. */
double flows_rate(struct flows *flows, uint32_t flow);   /* B/s; 0: idle */
int64_t flows_level(struct flows *flows, uint32_t flow); /* in units; INT64_MAX: nothing holds it back */
double flows_load(struct flows *flows, uint32_t link);   /* B/s used */
uint64_t flows_payload(const struct flows *flows, uint32_t flow);
bool flows_busy(const struct flows *flows, uint32_t flow);
/* Lists up to `size` open connections that cross a link; returns the number of all. */
size_t flows_routed(const struct flows *flows, uint32_t link, uint32_t *flow_ids, size_t size);
/* Bytes of all transfers that have begun so far, for each link: bytes[links]. */
void flows_carried(const struct flows *flows, double *bytes);
/* Bytes of all transfers that a connection has begun. */
double flows_sent(const struct flows *flows, uint32_t flow);
/* Nanoseconds in which a link with at least two transfers held one back: time in which a faster link would have helped. */
nanos flows_contended(const struct flows *flows, uint32_t link);
/* The largest number of simultaneous crossings of the link by transfers. */
uint32_t flows_most(const struct flows *flows, uint32_t link);

/* Counters for reports. */
struct flows_counts {
    uint64_t transfers; /* ended */
    uint64_t solves;    /* instants at which something was solved */
    uint64_t settled;   /* links settled in all sweeps */
    uint64_t evaluated; /* water levels computed */
    uint64_t changed;   /* rates of transfers changed */
};
struct flows_counts flows_counts(const struct flows *flows);

/* Checks the defining properties, exactly, and the books. Returns NULL, or a sentence about the first violation (static text). */
const char *flows_check(struct flows *flows);

#endif
