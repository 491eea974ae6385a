/*
 * closed_form_replicas.h - the exchanges among replicas and the optimizer step, for the closed form (private to it).
 *
 * Example: dp=8 with ZeRO-1 and dp_overlap; a stage holds four chunks.
 *
 *     gathers     whole.gather_s is cut into four pieces; the first pass of each chunk waits for its piece
 *     reductions  each chunk's gradients are reduced after its last backward pass; the last piece is exposed
 *     optimizer   all ranks wait for the slowest (gradient norm), then update
 *
 * Stages hold different amounts: token tables at the ends, and layers that do not divide evenly. So exchanges are computed for
 * the stages among which the fullest is (stage_load.h), with the times at which they can begin and end:
 *
 * - begin: parameters are gathered from the start of the step, one piece (bucket or chunk) after the other. The first pass of
 * each piece waits for it. Stage r has time until the first micro-batch arrives.
 * - end: the gradients of a piece are reduced after its last pass, one piece after the other. Stage r finishes its last pass
 * before the pipeline ends, by the passes from there back to the first stage.
 * - then all ranks wait for the slowest (the gradient norm). The step ends when the last rank has updated its parameters and,
 * without overlap, gathered them. Where steps roll into one another, no rank waits.
 */
#ifndef MSIM_MODEL_COST_STEP_CLOSED_FORM_REPLICAS_H
#define MSIM_MODEL_COST_STEP_CLOSED_FORM_REPLICAS_H

#include "model/cost/memory/stage_load.h"
#include "model/cost/step/closed_form_passes.h"

/* Seconds of one exchange: reduce-scatter (or all-reduce) of gradients, all-gather of parameters. */
struct exchange {
    double reduce_s, gather_s;
    double replicas_s; /* hybrid sharding: the all-reduce with the ranks that hold the same shard, once per step */
    double reduce_interference_s, gather_interference_s,
        replicas_interference_s;       /* by which they slow down computations that overlap with them */
    double reduce_nic_s, gather_nic_s; /* time during which they use the NIC, which messages share; 0 inside a node */
};

/* The exchanges of a stage, in one piece and in several. The first piece has the embedding, the last one the head, and those
 * between are equal. */
struct stage_exchanges {
    int stage, layers, pieces;
    double first_share, last_share; /* share of the stage's layers in the first and the last piece */
    bool embedding, head;
    struct exchange whole, first, middle, last;
    double owners_s; /* Muon: the owners of whole parameters broadcast the weights */
    struct cost update;
};

enum { REPLICA_STAGES = 4 };

/* The exchanges of one division of the model. Micro-batch size, recomputation, sequence parallelism and other overlaps do not
 * change them. */
struct replica_costs {
    int tp, cp, pp, vpp, dp, ep, expert_tp, shard; /* the key of the memo; tp 0: none */
    enum arrangement arrangement;
    struct offload offload;
    struct stage_exchanges at[REPLICA_STAGES];
    int n;
    struct exchange layer;            /* exchanges by layer: of one layer */
    struct exchange ends;             /* exchanges by layer, ZeRO-3: of the token tables */
    struct exchange first, last;      /* exchanges by layer, without ZeRO-3: of the first and the last layer with their tables */
    double copy_s;                    /* to copy the gradients of a layer to or from the host that keeps them */
    double copy_first_s, copy_last_s; /* of what is copied together with the first and the last layer */
    double fetch_s, ends_fetch_s;     /* to copy the parameters of a layer, and those of the tables, from the host */
    double all_gather_s;              /* of all parameters at once */
    double table_s;
    double shards_norm_s, model_norm_s; /* all-reduce of the gradient norm over shards, and over the ranks of one replica */
};

/* Number of ways to keep the states of a replica: whole; sharded in buckets; sharded by layer (gradients on the host); and with
 * weights sharded too, gathered in one piece or layer by layer. */
enum { N_SHARDINGS = 5 };

/* The last results. All zero is empty. */
struct replica_memo {
    struct full_stages full;
    struct replica_costs costs[N_SHARDINGS];
};
void replica_memo_free(struct replica_memo *memo);

struct replica_time {
    double exposed_s; /* seconds of exchanges that no pass hides */
    double
        host_s; /* seconds of copies that layers wait for (models in one stage), and of the host time of passes cut into pieces */
    double optimizer_s;
};
/* The time that replicas add to a step of m micro-batches. `message`: one message between stages. */
struct replica_time replica_time_of(struct replica_memo *memo, const struct setting *setting, const struct layout *l,
                                    const struct pass_costs *c, const struct stage_times *stages, double m,
                                    const struct cost *message);

/* --- closed_form_exposed.c: exchanges of stages (not layer by layer). */
struct replica_time replicas_of_stages(const struct replica_costs *costs, const struct layout *l, const struct pass_costs *c,
                                       const struct stage_times *stages, const struct transformer *model, double m,
                                       const struct cost *message);

/* --- closed_form_updates.c: the optimizer step of a stage of `layers` layers, and the seconds in which Muon's owners broadcast
 * weights. */
struct cost update_cost(const struct setting *setting, const struct layout *l, const struct stage_load *load, int layers,
                        struct gemm_memo *gemms);
double owners_seconds(const struct setting *setting, const struct layout *l, const struct stage_load *load);

/* --- closed_form_layers.c: waits of the layers of a model in one stage. */

/* The exchange of complete gradients: reduced over shards, then over the ranks that hold the same shard. */
struct exchange exchange_completing(const struct exchange *e);
/* Whether exchanges or copies go layer by layer: ZeRO-3 (each micro-batch gathers the weights of each layer for the forward and
 * again for the backward pass, and reduces its gradients), ZeRO-2 (reduces its gradients), or activations or gradients that
 * leave for the host. */
bool goes_layer_by_layer(const struct layout *l);
/* Whether these exchanges run in buckets of several layers that overlap with passes. */
bool exchanges_buckets(const struct layout *l);
/* Seconds that the embedding adds to a pass of the first layer, and the head to a pass of the last, for a model in one stage. */
void pass_ends(const struct pass_costs *costs, const struct layout *layout, const struct transformer *model, enum pass pass,
               double *embedding, double *head);
/* Seconds beyond the passes, over all micro-batches. */
struct layer_waits {
    double exchanges_s, copies_s;
};
struct layer_waits layer_waits_of(const struct layout *l, const struct transformer *model, const struct replica_costs *costs,
                                  const struct pass_costs *c, const struct stage_times *stages, double m);

#endif
