/*
 * closed_form_replicas.h - what replicas exchange and the optimizer's step, for the closed form (private to it).
 *
 * Stages hold different amounts: token tables at the ends, and layers that do not divide. So what each exchanges is asked of the
 * stages one of which is the fullest (stage_load.h), with the times at which they can begin and end:
 *
 * - begin: parameters are gathered from the step's first instant on, a piece (bucket or chunk) after the other, and each piece's
 *   first pass waits for it. Stage r has until the first micro-batch arrives there.
 * - end: the gradients of a piece are reduced after its last pass, one after the other. Stage r has done its last pass before the
 *   pipeline ends, by the passes that lead from there back to the first stage.
 * - then all wait for the slowest (the norm of the gradients), and the step ends when the last has updated its parameters and,
 *   without overlap, gathered them. Where steps roll into one another nobody waits.
 */
#ifndef MSIM_MODEL_COST_STEP_CLOSED_FORM_REPLICAS_H
#define MSIM_MODEL_COST_STEP_CLOSED_FORM_REPLICAS_H

#include "model/cost/memory/stage_load.h"
#include "model/cost/step/closed_form_passes.h"

struct exchange {
    double reduce_s, gather_s;
    double replicas_s; /* of hybrid sharding: what each gets is added up with those who hold the same; once a step */
    double reduce_interference_s, gather_interference_s,
        replicas_interference_s;       /* that they take from computations beside them */
    double reduce_nic_s, gather_nic_s; /* and from messages: the NIC's share of their time, where they leave nodes */
};

/* A stage's exchanges, in one piece and in several: the first has the embedding, the last the head, those between are even. */
struct stage_exchanges {
    int stage, layers, pieces;
    double first_share, last_share; /* of the stage's layers, those of these buckets */
    bool embedding, head;
    struct exchange whole, first, middle, last;
    double owners_s; /* Muon's owners of whole parameters give the weights to everybody */
    struct cost update;
};

enum { REPLICA_STAGES = 4 };

/*
 * Replicas of stages of one content, on as many ranks: micro-batch, recomputation, sequence parallelism and the other overlaps do
 * not change what they exchange.
 */
struct replica_costs {
    int tp, cp, pp, vpp, dp, ep, expert_tp, shard; /* whose: the memo's key; tp 0: none */
    enum arrangement arrangement;
    struct offload offload;
    struct stage_exchanges at[REPLICA_STAGES];
    int n;
    struct exchange layer;            /* where they are of layers: of one */
    struct exchange ends;             /* ZeRO-3's of the tables */
    struct exchange first, last;      /* otherwise: of the layers at the ends, with the tables there */
    double copy_s;                    /* of a layer's gradients to or from the host that keeps them */
    double copy_first_s, copy_last_s; /* of what else goes with the first and the last layer's */
    double fetch_s, ends_fetch_s;     /* of a layer's parameters, and the tables', from there */
    double all_gather_s;              /* of all parameters at once */
    double table_s;
    double shards_norm_s, model_norm_s; /* the norm of the gradients, over shards and over what one replica is divided into */
};

/* Ways to keep a replica's states: whole, sharded in buckets or, with gradients that the host keeps, by layer, and weights too,
 * gathered in one piece or each by itself. */
enum { N_SHARDINGS = 5 };

/* What was asked for last. All zero is empty. */
struct replica_memo {
    struct full_stages full;
    struct replica_costs costs[N_SHARDINGS];
};
void replica_memo_free(struct replica_memo *memo);

struct replica_time {
    double exposed_s; /* of the exchanges, what passes do not hide */
    double host_s; /* copies to and from it that the layers of a model in one stage wait for; passes that it starves in pieces */
    double optimizer_s;
};
/* `message`: one between stages. */
struct replica_time replica_time_of(struct replica_memo *memo, const struct setting *setting, const struct layout *l,
                                    const struct pass_costs *c, const struct stage_times *stages, double m,
                                    const struct cost *message);

/* --- closed_form_exposed.c: of the stages, but for exchanges of layers. */
struct replica_time replicas_of_stages(const struct replica_costs *costs, const struct layout *l, const struct pass_costs *c,
                                       const struct stage_times *stages, const struct transformer *model, double m,
                                       const struct cost *message);

/* --- closed_form_updates.c: the optimizer's step of a stage of n layers; what Muon's owners then gather. */
struct cost update_cost(const struct setting *setting, const struct layout *l, const struct stage_load *load, int layers,
                        struct gemm_memo *gemms);
double owners_seconds(const struct setting *setting, const struct layout *l, const struct stage_load *load);

/* --- closed_form_layers.c: what layers of a model in one stage wait for. */

/* Once they are complete, gradients are exchanged in both ways. */
struct exchange exchange_completing(const struct exchange *e);
/* ZeRO-3, where every micro-batch gathers each layer's weights for the forward and again for the backward pass and reduces its
 * gradients, as ZeRO-2 does; activations that leave for the host's memory, or gradients. */
bool goes_layer_by_layer(const struct layout *l);
/* Of these, exchanges of several layers at once beside passes. */
bool exchanges_buckets(const struct layout *l);
/* What the embedding adds to a pass of the first layer, and the head to one of the last: of a model in one stage. */
void pass_ends(const struct pass_costs *costs, const struct layout *layout, const struct transformer *model, enum pass pass,
               double *embedding, double *head);
struct layer_waits {
    double exchanges_s, copies_s;
};
/* Of all micro-batches, beyond their passes. */
struct layer_waits layer_waits_of(const struct layout *l, const struct transformer *model, const struct replica_costs *costs,
                                  const struct pass_costs *c, const struct stage_times *stages, double m);

#endif
