/*
 * collective_flows.h - the transfers that a collective puts on the fabric, as NCCL would lay it over the placement.
 *
 * A group of n GPUs in d NVLink domains, r of them in each, in group order. Inside a domain everything goes over NVLink and is
 * the business of the closed form (model/cost/collective.h); what follows is what leaves the domains.
 *
 *   ring         r channels, one per NIC. Channel i goes from the i-th member in one domain to the i-th in the next, domains in
 * the order in which the group meets them, and around. Every edge carries V / r bytes, V = S (n - 1) / n, twice that for an
 * all-reduce. With the exchange inside the domains, over NVLink, this is the hierarchical schedule: what a rail carries has been
 * reduced among the GPUs of a host, or is handed out among them, next to it. tree         two binary trees over the domains for
 * each channel, an inner node of one being a leaf of the other (NCCL's double binary trees; Sanders, Speck, Traff, Parallel
 * Computing 35, 2009). Every edge carries S / 2r up and as much down, so a NIC carries at most 2 S / r. all-to-all   every member
 * to every member of other domains. Above ALL_TO_ALL_EDGES edges of a group, ALL_TO_ALL_PARTNERS at equal strides stand for the
 * others of each member, with the same bytes in all.
 *
 * Detail. `steady`: edges are separate transfers that run for as long as the whole collective, and it ends with the slowest. That
 * is what a pipelined ring does while rates do not change; where they do, a real ring is slower, as the slowest edge of each
 * moment holds all others back. `per-step`: an edge of a ring sends in d - 1 parts (an all-reduce twice as many), each when the
 * one before has been sent and the one before that of its predecessor has arrived; NCCL, which passes on slices of a part, lies
 * between the two. The bytes are those that take exactly the closed form's bandwidth term (with its ramp) on idle links; latency
 * follows when the last edge has ended. So a collective that meets nobody takes what the closed form says (per step: to a
 * nanosecond each).
 */
#ifndef MSIM_SIM_COLLECTIVE_FLOWS_H
#define MSIM_SIM_COLLECTIVE_FLOWS_H

#include "model/cost/collective.h"
#include "sim/fabric/fabric.h"

enum { ALL_TO_ALL_PARTNERS = 16, ALL_TO_ALL_EDGES = 1 << 16 };

enum collective_shape { SHAPE_NONE /* nothing leaves a domain */, SHAPE_RING, SHAPE_TREE, SHAPE_ALL_TO_ALL };

struct collective_edge {
    int from, to; /* GPUs */
};

struct collective_plan {
    enum collective_shape shape;
    double share; /* of what a GPU's NICs carry in the bandwidth term: bytes of each edge = share * bandwidth_s * rate */
    int ring;     /* of a ring: edges of a channel, which stand together and in order */
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
