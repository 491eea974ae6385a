/*
 * route.h - routing: the links that a transfer takes from GPU to GPU.
 *
 * Example: GPU 0 to GPU 9000 on MegaScale's fabric, queue pair 0:
 *
 *     struct router router = {.fabric = &fabric, .routing = ROUTING_ECMP, .seed = 1};
 *     if (route_gpus(&router, 0, 9000, 0, &path))      path.links: NIC up, ToR up, agg up, agg down, ToR down, NIC down
 *         flow = flows_open(flows, path.links, path.n, 1, 0);
 *
 * A path goes up to the lowest switch that reaches its destination, and down again. Going up, every port of a switch that leads
 * there is a candidate. Going down from the core, there is one candidate per cable to an aggregation switch of the destination's
 * pod. Candidates whose link is down, or from which the destination is unreachable, are left out, as routing protocols withdraw
 * them. The routing chooses among the rest:
 *
 *   ECMP       by a hash of the 5-tuple (source, destination, queue pair; ports and protocol are constant for RoCE) and the
 *              number of the switch. With `polarised` all switches use the same hash: transfers that a ToR sends to one uplink
 *              stay together at the next switch, which then uses a fraction of its ports.
 *   static     by destination (D-mod-K; Zahavi, Johnson, Kerbyson, Lang, Concurrency and Computation 2010): uplink d mod U_t,
 *              where d is the number of the destination on its rail; then uplink e mod U_a, where e is the number of its ToR in
 *              the pod; then down to the aggregation switch at the place of the one going up in its core group. Shifts do not
 *              collide.
 *   adaptive   the least loaded candidate, by the transfers on it and on the links down to the destination, as with switches
 *              that signal congestion downstream; ties by the hash. The caller keeps the loads.
 *
 * In a dragonfly (dragonfly.h) a straight path takes a local cable to the switch with a cable to the destination's group, that
 * cable, and a local cable to the destination; within a group one local cable. The routing chooses:
 *
 *   ECMP       among parallel cables, by hash.
 *   static     among parallel cables, by destination: number d mod L.
 *   Valiant    a third group by hash, straight to it and straight from there; within a group a third switch. This takes twice
 *              the cables, but spreads over all of them. In a Clos it is ECMP, which uses any top switch anyway.
 *   adaptive   UGAL (Kim et al. 2008), once per connection: the least loaded straight path, unless one of four paths over hashed
 *              third groups is less loaded (Slingshot's switches examine the same number, from memory). The load of a path is
 *              that of its most crowded cable, which decides a fair flow's rate. UGAL multiplies it by the number of cables,
 *              because packets wait at each. Flows that did so got at worst 0.09 of their NICs, not 0.17, when the 32 hosts of
 *              each of 33 groups send to the next group, and 0.23, not 0.33, in a permutation. A choice once per connection, in
 *              the order of opening, is worse than a choice per packet: an all-to-all that straight paths carry without loss
 *              gets 0.53 of it there.
 *
 * Around a failed cable a path takes a parallel one; then a third switch of the group; then a third group, or within a group out
 * to another one and back. It never needs more than one other group. So if two groups have one cable, two switches of a group
 * that nothing inside joins are not connected.
 *
 * Between GPUs: over NVLink in one NVLink domain. Otherwise from the NIC near the source to the NIC near the destination. With
 * `rail_aware`, and if the two are in different planes, the path first goes over NVLink to the GPU of the source's host whose
 * NIC is on the destination's rail, as NCCL's PXN does, so it enters the fabric on that rail.
 *
 * If all ports of a GPU's NIC are down, it uses the nearest NIC of its host that is up, as NCCL does, which sees no device there:
 * first one of its PCIe switch, then of its CPU, then any; over NVLink and the GPU beside that NIC, or over PCIe. A host without
 * any NIC that is up is cut off.
 *
 * Queue pairs of a connection differ in their hash, and in the port if a GPU has several, on one NIC or more: they use them in
 * turn. fabric.h describes the path inside a host.
 *
 * Cost: about 60 ns for a path of six hops without failed links. With failed links the candidates of each switch are tried.
 */
#ifndef MSIM_SIM_FABRIC_ROUTE_H
#define MSIM_SIM_FABRIC_ROUTE_H

#include "sim/fabric/fabric.h"

/* NVLink 2, host 6, to the ToR, network, from the ToR, host 6. Network: 2 up, 2 down; in a dragonfly three local and two global
 * cables, where a failed local cable becomes two over a third switch. */
enum { PATH_HOPS = 24 };

struct path {
    uint32_t links[PATH_HOPS];
    uint8_t n;        /* links */
    uint8_t switches; /* switches passed: 1 to 5, in a dragonfly up to 9; 0 over NVLink */
};

enum routing { ROUTING_ECMP, ROUTING_STATIC, ROUTING_ADAPTIVE, ROUTING_VALIANT, N_ROUTINGS };
const char *routing_name(enum routing routing); /* ecmp static adaptive valiant */

struct router {
    const struct fabric *fabric;
    enum routing routing;
    bool polarised;
    bool rail_aware;
    uint64_t seed;
    const uint32_t *load; /* [links] transfers on each link; for adaptive routing */
};

/* The path from NIC port to NIC port. Returns false if there is none; *path is written on success. */
MUST_CHECK bool route_ports(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path);
/* For messages about a missing path: " of at most 12 cables" if the search ends there (dragonflies), otherwise "". */
const char *route_limit_text(const struct fabric *fabric);
/* The path from GPU to GPU; empty from a GPU to itself. */
MUST_CHECK bool route_gpus(const struct router *router, int from, int to, uint32_t queue_pair, struct path *path);

/* Checks connectivity with the links that are down now: every GPU to and from the next host's, and every ToR to every other of
 * its plane. Otherwise names the first pair and returns STATUS_CHECK. O(ToRs^2) routes; none if all links are up. */
MUST_CHECK enum status route_check(const struct fabric *fabric, struct diags *diags);

#endif
