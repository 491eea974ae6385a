/*
 * collective_flows.h - the transfers that a collective puts on the fabric, as NCCL lays it over the placement.
 *
 * Example: an all-reduce of 1 GB over 16 GPUs on two hosts of 8, as a ring. Of the 16 edges of each channel only two leave a
 * host. There are 8 channels, one per NIC, so each NIC carries 2 * 1 GB * 15/16 / 8 = 234 MB.
 *
 * A group has n GPUs in d NVLink domains, r of them in each, in group order. The closed form handles everything inside a domain,
 * over NVLink (model/cost/kernel/collective.h). The rest leaves the domains:
 *
 * Ring: r channels, one per NIC. Channel i goes from the i-th member in one domain to the i-th in the next, in the order in
 * which the group meets the domains, and around. Each edge carries V / r bytes, V = S (n - 1) / n; twice that for an all-reduce.
 *
 * Tree: two binary trees over the domains per channel. Inner nodes of one are leaves of the other (NCCL's double binary trees;
 * Sanders, Speck, Traff, Parallel Computing 35, 2009). Each edge carries S / 2r up and the same down. The busiest NIC has four
 * edges out, or one per domain if there are fewer.
 *
 * Hierarchical: the edges of the ring, each rail by itself, so V = S (d - 1) / d (model/cost/kernel/collective.h). They begin
 * when the ranks of a domain have finished their first part.
 *
 * All-to-all: each member to each member of other domains. A group with more than ALL_TO_ALL_EDGES of these is sampled. Each
 * member sends to the number of partners which that limit allows, at least ALL_TO_ALL_PARTNERS. These represent all, with the
 * same total bytes. The group is cut into as many equal parts as there are partners. One partner comes from each part, at a
 * random place that is the same for all members, so each member also receives from that number. Without hashing the sample takes
 * as long as all pairs. On hashed uplinks fewer and longer transfers meet more unevenly, and the last one ends later: alone on a
 * 1:1 fabric by 12 % with 128 partners of 512 ranks, by 23 % with 64, by 67 % with 16 (tests/sim/fabric/test_all_to_all.c). All
 * pairs of 512 ranks need 20 s of processor time per exchange, 128 partners 1.3 s.
 *
 * Dispatch of token copies: a token goes once to each domain that holds one of its experts, to the member at its own place
 * there, and on over NVLink (dispatch_time; DeepEP sends to the GPU of the same number). So the i-th member of a domain sends to
 * the i-th of every other one, on its rail. Combined results return the same way.
 *
 * Detail. `steady`: edges are separate transfers for as long as the whole collective, which ends with the slowest. A pipelined
 * ring does this while rates do not change. If they change, a real ring is slower, because at each moment the slowest edge holds
 * back all others. `per-step`: an edge of a ring sends d - 1 parts (an all-reduce twice that). Each starts when the previous one
 * has been sent and the predecessor's previous one has arrived. NCCL, which passes on slices of a part, lies between the two.
 * The bytes are those that take exactly the closed form's bandwidth term (with its ramp) on idle links; latency follows the end
 * of the last edge. So a collective that meets no other transfer takes the time of the closed form (per step: to a nanosecond
 * each).
 */
#ifndef MSIM_SIM_NETWORK_COLLECTIVE_FLOWS_H
#define MSIM_SIM_NETWORK_COLLECTIVE_FLOWS_H

#include "model/cost/kernel/collective.h"
#include "model/program/program.h"
#include "sim/fabric/fabric.h"

/* 65,536 edges are all pairs of 256 ranks; 1,024 ranks have 64 partners each, 4,096 and more have 16. */
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
    double share; /* bytes of each edge = share * bandwidth_s * rate of a GPU's NICs */
    int ring;     /* of a ring: edges per channel, contiguous and in order */
    size_t n_edges;
    struct collective_edge *edges;
};

/* The span of a group on the fabric, for the closed form; `gpus` in group order. */
struct group_span collective_span(const struct fabric *fabric, const int *gpus, int n);
/* Plans a collective; free *plan with collective_plan_free. `in_turn`: the members of a domain send one after the other
 * (machine.h, replica_turns), so a ring or tree has one channel. */
void collective_plan_create(const struct fabric *fabric, enum collective_shape shape, const int *gpus, int n, bool in_turn,
                            struct collective_plan *plan);
/* Plans an all-to-all with `partners` >= 1 per member, or all if there are fewer. */
void collective_all_to_all_create(const struct fabric *fabric, const int *gpus, int n, int partners,
                                  struct collective_plan *plan);
void collective_plan_free(struct collective_plan *plan);
/* The exchange of a collective operation; a dispatch of token copies takes it from its work. */
struct work_collective op_exchange(const struct program *program, const struct op *op);
/* The shape of an exchange over a group. */
enum collective_shape collective_shape_of(const struct cluster *cluster, struct group_span span,
                                          const struct work_collective *exchange);
/* Its closed form: collective_phases, or dispatch_time. */
struct collective_phases exchange_phases(const struct cluster *cluster, struct group_span span,
                                         const struct work_collective *exchange);

#endif
