/*
 * collective_flows.h - the transfers that a collective puts on the fabric, as NCCL would lay it over the placement.
 *
 * A group of n GPUs in d NVLink domains, r of them in each, in group order. Inside a domain everything goes over NVLink and is
 * the business of the closed form (model/cost/collective.h); what follows is what leaves the domains.
 *
 *   ring        r channels, one per NIC. Channel i goes from the i-th member in one domain to the i-th in the next, domains in
 *               the order in which the group meets them, and around. Every edge carries V / r bytes, V = S (n - 1) / n, twice
 * that for an all-reduce. tree        two binary trees over the domains for each channel, an inner node of one being a leaf of
 * the other (NCCL's double binary trees; Sanders, Speck, Traff, Parallel Computing 35, 2009). Every edge carries S / 2r up and as
 * much down, so a NIC carries at most 2 S / r. all-to-all  every member to members of other domains. Above ALL_TO_ALL_PARTNERS
 * partners, so many at equal strides stand for all of them, with the same bytes in all.
 *
 * Detail. Edges are separate transfers that run for as long as the whole collective (steady state), not step by step, and the
 * collective ends with the slowest. That is what a pipelined ring does while rates do not change; where they do, a real ring
 * is slower, as the slowest edge of each moment holds all others back. The bytes are those that take exactly the closed form's
 * bandwidth term (with its ramp) on idle links; latency follows when the last edge has ended. So a collective that meets
 * nobody takes what the closed form says.
 */
#ifndef MSIM_SIM_COLLECTIVE_FLOWS_H
#define MSIM_SIM_COLLECTIVE_FLOWS_H

#include "model/cost/collective.h"
#include "sim/fabric/fabric.h"

enum { ALL_TO_ALL_PARTNERS = 16 };

enum collective_shape { SHAPE_NONE /* nothing leaves a domain */, SHAPE_RING, SHAPE_TREE, SHAPE_ALL_TO_ALL };

struct collective_edge {
    int from, to; /* GPUs */
};

struct collective_plan {
    enum collective_shape shape;
    double share; /* of what a GPU's NICs carry in the bandwidth term: bytes of each edge = share * bandwidth_s * rate */
    size_t n_edges;
    struct collective_edge *edges;
};

/* How a group lies on the fabric, for the closed form; `gpus` in group order. */
struct group_span collective_span(const struct fabric *fabric, const int *gpus, int n);
/* *plan is released with collective_plan_free. */
void collective_plan_create(const struct fabric *fabric, enum collective_shape shape, const int *gpus, int n,
                            struct collective_plan *plan);
void collective_plan_free(struct collective_plan *plan);
/* The shape that a collective of `bytes` takes over a group. */
enum collective_shape collective_shape_of(const struct cluster *cluster, enum collective collective, struct group_span span,
                                          double bytes);

#endif
