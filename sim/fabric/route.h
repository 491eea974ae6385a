/*
 * route.h - which links a transfer takes.
 *
 * A path goes up to the lowest switch from which its destination can be reached, and down again. Going up, every port of a
 * switch that leads there is a candidate; going down from the core there is one candidate per aggregation switch of the
 * destination's pod that the core switch has a cable to, and per cable. Candidates whose link is down, or from which the
 * destination can no longer be reached, are left out, as routing protocols withdraw them. Who chooses among the rest:
 *
 *   ECMP       a hash of the 5-tuple (source, destination, queue pair; ports and protocol are constant for RoCE) and of a number
 *              of the switch. With `polarised` all switches hash alike: those that a ToR sends to one uplink stay together at the
 *              next switch, which uses a fraction of its ports.
 *   static     by destination (D-mod-K; Zahavi, Johnson, Kerbyson, Lang, Concurrency and Computation 2010): uplink d mod U_t with
 *              d the number of the destination on its rail, then uplink e mod U_a with e the number of its ToR in the pod, and
 *              down to the aggregation switch at the place that the one going up has in its core group. Shifts do not collide.
 *   adaptive   the least loaded candidate, by transfers on it and, as switches that signal congestion downstream do, on the links
 *              down to the destination; ties by the hash. The caller keeps the loads.
 *
 * In a dragonfly (dragonfly.h) a straight path takes a local cable to the switch where a cable to the destination's group ends,
 * that cable, and a local cable to the destination; in one group a local cable. Who chooses:
 *
 *   ECMP       which of parallel cables, by hash.
 *   static     which of parallel cables, by destination: number d mod L.
 *   Valiant    a third group by hash, straight to it and straight from there; in one group a third switch. Twice the cables, but
 *              spread over all of them. In a Clos it is ECMP, which goes over any top switch anyhow.
 *   adaptive   UGAL of Kim et al. 2008, a connection at a time: the least loaded straight path, unless one of four over third
 *              groups chosen by hash (Slingshot's switches look at as many, from memory) is less loaded. The load of a path is
 *              that of its most crowded cable, which is what a fair flow's rate depends on. Packets wait at every cable, so UGAL
 *              multiplies by their number; flows that did so had 0.09 of their NICs at worst when the 32 hosts of each of 33
 *              groups send to the next, not 0.17, and 0.23 in a permutation, not 0.33. Chosen once, in the order of opening, it
 *              finds less than switches that choose for each packet: an all-to-all that straight ways carry without loss gets
 *              0.53 of it there.
 *
 * Around failed cables it takes another parallel one; then a third switch of a group; then a third group, in one group out to
 * another and back. Where more than one other group were needed there is no way: so where two groups have one cable, two switches
 * of a group that nothing inside joins have none.
 *
 * Between GPUs: in one NVLink domain, over NVLink. Otherwise from the NIC near the source to the NIC near the destination; with
 * `rail_aware`, and where the two are in different planes, through the GPU of the source's host (NVLink) whose NIC is on the
 * destination's rail, as NCCL's PXN does, so that the fabric is entered on that rail.
 *
 * Several queue pairs of a connection differ in their hash, and in the port where a GPU has several, of one NIC or of more: they
 * take one after the other. Through the host a transfer goes as fabric.h says.
 *
 * Cost: about 60 ns for a path of six hops without failed links. Failed links: the candidates of each switch are tried.
 */
#ifndef MSIM_SIM_FABRIC_ROUTE_H
#define MSIM_SIM_FABRIC_ROUTE_H

#include "sim/fabric/fabric.h"

/* NVLink 2, in the host 6, to the ToR, the network, from the ToR, in the host 6. The network: up 2, down 2; in a dragonfly three
 * local and two global cables, each local one over a third switch where it has failed. */
enum { PATH_HOPS = 24 };

struct path {
    uint32_t links[PATH_HOPS];
    uint8_t n;        /* links */
    uint8_t switches; /* of the network passed: 1 to 5, in a dragonfly to 9; 0 over NVLink */
};

enum routing { ROUTING_ECMP, ROUTING_STATIC, ROUTING_ADAPTIVE, ROUTING_VALIANT, N_ROUTINGS };
const char *routing_name(enum routing routing); /* ecmp static adaptive valiant */

struct router {
    const struct fabric *fabric;
    enum routing routing;
    bool polarised;
    bool rail_aware;
    uint64_t seed;
    const uint32_t *load; /* [links] transfers on each link; adaptive only */
};

/* From NIC port to NIC port; false: there is no way. *path is written on success. */
MUST_CHECK bool route_ports(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path);
/* For messages that there is no way: " of at most 12 cables" where a search for one ends there (dragonflies), "" elsewhere. */
const char *route_limit_text(const struct fabric *fabric);
/* From GPU to GPU. From a GPU to itself: an empty path. */
MUST_CHECK bool route_gpus(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path);

/* With the links that are down now: does every GPU reach the next host's and is reached, and every ToR every other of its plane?
 * Names the first who do not; STATUS_CHECK then. O(ToRs^2) routes, none where all links are up. */
MUST_CHECK enum status route_check(const struct fabric *fabric, struct diags *diags);

#endif
