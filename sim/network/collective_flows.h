/*
 * collective_flows.h - the transfers that a collective puts on the fabric, as NCCL would lay it over the placement.
 *
 * A group of n GPUs in d NVLink domains, r of them in each, in group order. Inside a domain everything goes over NVLink and is
 * the business of the closed form (model/cost/kernel/collective.h); what follows is what leaves the domains.
 *
 * Ring: r channels, one per NIC. Channel i goes from the i-th member in one domain to the i-th in the next, domains in the order
 * in which the group meets them, and around. Every edge carries V / r bytes, V = S (n - 1) / n, twice that for an all-reduce.
 *
 * Tree: two binary trees over the domains for each channel, an inner node of one being a leaf of the other (NCCL's double binary
 * trees; Sanders, Speck, Traff, Parallel Computing 35, 2009). Every edge carries S / 2r up and as much down; four leave the
 * busiest NIC, or as many as there are domains.
 *
 * Hierarchical: the edges of the ring, each rail by itself, so V = S (d - 1) / d (model/cost/kernel/collective.h); they begin
 * when what the ranks of a domain do first has taken its time.
 *
 * All-to-all: every member to every member of other domains. A group with more than ALL_TO_ALL_EDGES of them is sampled: each
 * member sends to as many partners as that leaves it, at least ALL_TO_ALL_PARTNERS, which stand for all, with the same bytes in
 * all. Partners are one from each of as many equal parts of the group, at a random place in it that is the same for all members,
 * so everybody also receives from as many. Where nothing is hashed the sample takes what all pairs take. On hashed uplinks fewer
 * and longer transfers meet more unevenly and the last one ends later: alone on a 1:1 fabric by 12 % with 128 partners of 512
 * ranks, by 23 % with 64, by 67 % with 16 (tests/sim/fabric/test_all_to_all.c). All pairs of 512 ranks take 20 s of processor
 * time for one exchange, 128 partners 1.3 s.
 *
 * Dispatch of token copies: a token goes to each domain that holds one of its experts once, to the member at its own place there,
 * and on over NVLink (dispatch_time; DeepEP sends to the GPU of the same number). So the i-th member in a domain sends to the
 * i-th in every other one, on its rail. What a rank combines comes back the same way.
 *
 * Detail. `steady`: edges are separate transfers that run for as long as the whole collective, and it ends with the slowest. That
 * is what a pipelined ring does while rates do not change; where they do, a real ring is slower, as the slowest edge of each
 * moment holds all others back. `per-step`: an edge of a ring sends in d - 1 parts (an all-reduce twice as many), each when the
 * one before has been sent and the one before that of its predecessor has arrived; NCCL, which passes on slices of a part, lies
 * between the two. The bytes are those that take exactly the closed form's bandwidth term (with its ramp) on idle links; latency
 * follows when the last edge has ended. So a collective that meets nobody takes what the closed form says (per step: to a
 * nanosecond each).
 */
#ifndef MSIM_SIM_NETWORK_COLLECTIVE_FLOWS_H
#define MSIM_SIM_NETWORK_COLLECTIVE_FLOWS_H

#include "model/cost/kernel/collective.h"
#include "model/program/program.h"
#include "sim/fabric/fabric.h"

/* 65,536 edges are all pairs of 256 ranks; 1,024 ranks have 64 partners, 4,096 and more 16. */
enum { ALL_TO_ALL_PARTNERS = 16, ALL_TO_ALL_EDGES = 1 << 16 };

enum collective_shape {
    SHAPE_NONE /* nothing leaves a domain */,
    SHAPE_RING,
    SHAPE_TREE,
    SHAPE_ALL_TO_ALL,
    SHAPE_DISPATCH,
    N_COLLECTIVE_SHAPES
};

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
/* *plan is released with collective_plan_free. `in_turn`: the members in a domain send one after the other (machine.h,
 * replica_turns), so a ring or a tree has one channel. */
void collective_plan_create(const struct fabric *fabric, enum collective_shape shape, const int *gpus, int n, bool in_turn,
                            struct collective_plan *plan);
/* An all-to-all with so many partners of each member, at least 1; all of them where there are no more. */
void collective_all_to_all_create(const struct fabric *fabric, const int *gpus, int n, int partners,
                                  struct collective_plan *plan);
void collective_plan_free(struct collective_plan *plan);
/* What a collective of a program exchanges: of a dispatch of token copies as its work says. */
struct work_collective op_exchange(const struct program *program, const struct op *op);
/* The shape that an exchange takes over a group. */
enum collective_shape collective_shape_of(const struct cluster *cluster, struct group_span span,
                                          const struct work_collective *exchange);
/* Its closed form: collective_phases, or dispatch_time. */
struct collective_phases exchange_phases(const struct cluster *cluster, struct group_span span,
                                         const struct work_collective *exchange);

#endif
