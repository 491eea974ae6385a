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
 * down to the aggregation switch at the place that the one going up has in its core group. Shifts do not collide. adaptive   the
 * least loaded candidate, by transfers on it and, as switches that signal congestion downstream do, on the links down to the
 * destination; ties by the hash. The caller keeps the loads.
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

enum { PATH_HOPS = 20 }; /* NVLink 2, in the host 6, up 3, down 3, in the host 6 */

struct path {
    uint32_t links[PATH_HOPS];
    uint8_t n;        /* links */
    uint8_t switches; /* of the network passed: 1 to 5; 0 over NVLink */
};

enum routing { ROUTING_ECMP, ROUTING_STATIC, ROUTING_ADAPTIVE, N_ROUTINGS };
const char *routing_name(enum routing routing); /* ecmp static adaptive */

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
/* From GPU to GPU. From a GPU to itself: an empty path. */
MUST_CHECK bool route_gpus(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path);

/* With the links that are down now: does every GPU reach the next host's and is reached, and every ToR every other of its plane?
 * Names the first who do not; STATUS_CHECK then. O(ToRs^2) routes, none where all links are up. */
MUST_CHECK enum status route_check(const struct fabric *fabric, struct diags *diags);

#endif
