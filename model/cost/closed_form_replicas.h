/*
 * closed_form_replicas.h - what replicas exchange and the optimizer's step, for the closed form (private to it).
 */
#ifndef MSIM_MODEL_COST_CLOSED_FORM_REPLICAS_H
#define MSIM_MODEL_COST_CLOSED_FORM_REPLICAS_H

#include "model/cost/closed_form_passes.h"

struct exchange {
    double reduce_s, gather_s;
    double replicas_s; /* of hybrid sharding: what each gets is added up with those who hold the same; once a step */
    double reduce_crowding_s, gather_crowding_s, replicas_crowding_s; /* that they take from computations beside them */
};

/*
 * Replicas of stages of one content, on as many ranks: micro-batch, recomputation, sequence parallelism and the other overlaps do
 * not change what they exchange.
 */
struct replica_costs {
    int tp, cp, pp, vpp, dp, ep, expert_tp, shard; /* whose: the memo's key; tp 0: none */
    enum arrangement arrangement;
    struct offload offload;
    int layers;               /* of the fullest stage */
    struct exchange exchange; /* of a stage; ZeRO-3, and where the host keeps gradients: of a layer */
    struct exchange ends;     /* ZeRO-3's of tables trained beside adapters, which outweigh what layers reduce; none of others */
    double copy_s;            /* of a layer's gradients to or from the host that keeps them */
    double fetch_s;           /* of a layer's parameters from there */
    double pieces;            /* that a stage exchanges its gradients in */
    double table_s;
    double owners_s; /* Muon's owners of whole parameters give the weights to everybody */
    struct cost optimizer;
};

/* Ways to keep a replica's states: whole, sharded, and weights too, gathered in one piece or each by itself. */
enum { N_SHARDINGS = 4 };

/* What was asked for last. All zero is empty. */
struct replica_memo {
    struct replica_costs costs[N_SHARDINGS];
};

struct replica_time {
    double exposed_s; /* of the exchanges, what passes do not hide */
    double optimizer_s;
};
struct replica_time replica_time_of(struct replica_memo *memo, const struct setting *setting, const struct layout *l,
                                    const struct pass_costs *c, const struct stage_times *stages, double m);

#endif
