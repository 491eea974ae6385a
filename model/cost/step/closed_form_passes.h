/*
 * closed_form_passes.h - the times of forward and backward passes, for the closed form (private to it).
 *
 * Example: a stage of eight equal layers and the embedding.
 *
 *     device_s = embedding.device_s + 8 * layer.device_s
 *     host_s   = embedding.host_s + 8 * layer.host_s
 *     pass     = (device_s^3 + host_s^3)^(1/3)
 *
 * A pass of a virtual stage consists of layers and, at the ends of the model, the embedding or the head. Each part has a device
 * time and a host time (the time to enqueue it). The two sums are combined as in the works of programs (starved_seconds). Parts
 * are therefore computed once per distinct struct pass_key, and combined for any division of the layers.
 *
 * Kinds of layers. Where layers differ, by a pattern or because only some have a window, each stage's passes are computed from
 * its own layers. Elsewhere all layers count as the average one. Where only some layers are recomputed, all parts are computed
 * twice, as if every layer were recomputed and as if none were, and a pass takes the right number of each.
 *
 * Copies of activations to the host's memory (host_memory.h) use two buffers in each direction. In a pass of n layers of t
 * seconds each, the first k layers leave and each copy takes c seconds. The pass waits max(0, c - t) for k - 2 of them, because
 * two copies are under way while other layers compute. A forward and a backward pass together take at least k c.
 *
 * Symbols: F, B forward and backward pass; I and W the two parts of the backward pass where a schedule divides it; p stages of
 * v chunks; V virtual stages (layout_virtual_stages).
 */
#ifndef MSIM_MODEL_COST_STEP_CLOSED_FORM_PASSES_H
#define MSIM_MODEL_COST_STEP_CLOSED_FORM_PASSES_H

#include "model/cost/kernel/gemm_memo.h"
#include "model/cost/work/cost.h"
#include "model/cost/work/documents.h"
#include "model/cost/work/work.h"

/* One part of a pass, for one micro-batch. Seconds. */
struct part {
    struct cost_by_class device;
    double device_s; /* its total */
    double host_s;   /* to enqueue it */
};

/* The parts of a pass. PART_MEAN_LAYER is the average over all layers of the model. PART_LAYER is the average over the layers
 * after the dense ones with which a mixture model begins; every stage except the first has only these. */
enum pass_part { PART_MEAN_LAYER, PART_LAYER, PART_EMBEDDING, PART_HEAD, N_PASS_PARTS };

/* The two times of a part. */
struct part_seconds {
    double device_s, host_s;
};

struct pass_times {
    double s[N_PASSES]; /* by enum pass */
};

/* A number of layers: n in total, and `whole` of these keep all activations although others are recomputed. */
struct layer_count {
    double n, whole;
};

/* The times of a pipeline for one micro-batch: through one stage (all its chunks), one chunk, or all stages. Seconds. */
struct stage_times {
    bool complete; /* false: only the members that inner_times_of fills in are valid */
    int pp, vpp;   /* of the pipeline; these members to by_direction are the key of the memo */
    enum arrangement arrangement;
    struct recompute recompute;
    bool by_direction;     /* copies of all forward passes come before those of all backward passes */
    double whole;          /* share of the layers that keep all activations where others are recomputed */
    double checkpoints[3]; /* recomputed groups on the fullest stage, on the stage with the head, on all; where all layers are
                              recomputed: one per layer */
    double fullest; /* layers of the fullest stage. DualPipe: layers that a micro-batch meets on average. With a pattern: average
                       layers that take as long as the slowest stage */
    double head_layers;        /* layers of all chunks of the stage with the head */
    int first_full, last_full; /* one chunk per stage: first and last stage that are as full (with a pattern: as slow) */
    struct pass_times inner, head, first; /* the fullest stage without embedding and head; the stage with the head; that with the
                                             embedding (V-shaped: with both) */
    struct pass_times sum;                /* one micro-batch through all stages */
    struct pass_times chunk;              /* one chunk of the fullest stage */
    struct pass_times layers, layer;      /* all layers of the model; one layer on average */
    double least_chunks; /* number of `chunk`s that run before and after the fullest stage of an interleaved pipeline */
    double fill_chunks;  /* number of `chunk`s that fill and drain an interleaved pipeline */
    double copies;       /* time to copy what a chunk of the fullest stage keeps, to the host or back; 0: nothing is copied */
    double behind;       /* time that its passes wait because copies take longer than both passes; half in each */
    double lockstep;     /* one micro-batch through an interleaved pipeline whose stages keep step; 0 where chunks are equal */
    double rounds;       /* the same where stages keep step by rounds of p passes; 0 unless layers differ */
    bool uneven;         /* chunks of an interleaved pipeline take different times */
    bool follows;        /* and stage_times_follow has followed them, for these arguments: */
    double followed_m, followed_message, followed_s;
    bool followed_blocking;
};

struct pass_key {
    int tp, cp, cp_comm, ep, micro_batch, by_need, sequence_parallel, expert_tp;
    enum recompute_what recompute;
    int partial;                    /* only some layers are recomputed */
    int accumulates;                /* more than one micro-batch: gradients are accumulated */
    struct offload_amount offloads; /* of activations */
    feature_set features;
};

/* How much of the parts is computed. PARTS_LEAST is a lower bound: layers without host time, on GPUs at full clock. It rules
 * out most layouts at a small part of the cost. Models with a pattern skip it. Where layers differ by windows, the average
 * stage is the bound of the slowest one. */
enum parts_known { PARTS_UNKNOWN, PARTS_LEAST, PARTS_ALL };

struct pass_costs {
    struct pass_key key;
    enum parts_known known;
    double pace;                  /* machine_pace of this key */
    struct gemm_memo *gemms;      /* owned by the cache */
    struct documents_memo *walks; /* owned by the cache */
    struct pass_costs *repeated,
        *whole; /* partial: parts of recomputed layers (these parts, except the head) and of the others */
    struct part parts[N_PASSES][N_PASS_PARTS];
    bool differ;                                 /* layers differ, by a pattern or because only some have a window */
    struct part_seconds (*kinds)[N_LAYER_KINDS]; /* where layers differ and all parts are known: [N_PASSES], one layer of each
                                                    kind; NULL elsewhere */
    struct part_seconds *before[N_PASSES];       /* [layers + 1] per pass: the sum of all layers before each one */
    double copy_s;      /* time to copy what an average layer keeps, to the host or back; 0: nothing is copied */
    bool divided_known; /* the two parts of the backward pass are computed */
    bool pairs_known;
    struct cost_by_class layer_pair; /* one layer forward and backward in a pair of passes */
    double pair_s;                   /* its total */
    struct stage_times stages;       /* the last result of stage_times_of or inner_times_of; pp 0: none */
    double *chunks;  /* times of the chunks where they are uneven: forward passes of all virtual stages with their ends, then
                        backward ones */
    size_t n_chunks; /* capacity */
};

struct pass_cache {
    struct pass_costs **slots; /* open addressing; NULL: free */
    size_t n_slots, n_used;
    struct gemm_memo gemms;
    struct documents_memo walks;
};
void pass_cache_init(struct pass_cache *cache);
void pass_cache_free(struct pass_cache *cache);

/* The passes of a layout. The result stays valid as long as the cache. */
struct pass_costs *pass_costs_of(struct pass_cache *cache, const struct setting *setting, const struct layout *layout);
/* Compute the parts at least to PARTS_LEAST or PARTS_ALL. `layout` must have the key of `costs`. */
void pass_costs_know_least(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);
void pass_costs_know_all(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);
/* Computes layer_pair and pair_s. All parts must be known. */
void pass_costs_pair(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);

/* Computes the two parts of the backward pass, to the degree that parts are known. */
void pass_costs_divide(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);

/* The number of layers, among `layers` of a stage with `stage_layers`, whose activations leave for the host; and the number of
 * those that wait for their copies where copies are slower than passes. */
double pass_leaving_layers(const struct layout *layout, double stage_layers, double layers);
double pass_waiting_layers(double leaving);

/* closed_form_layers.c: seconds, by pass, that the passes of the last chunk of a model wait for copies of its first `leaving`
 * layers. Each micro-batch turns from its forward to its backward pass at once. `once`: there is one micro-batch. The last two
 * layers stay on the GPU, and the last layer to leave is the first to return. */
void turning_copies(const struct pass_costs *costs, int layers, int leaving, bool once, double waited[PASS_BACKWARD + 1]);

/* The average number of layers of each kind in one of `chunks` equal chunks that have `layers` layers together. */
struct layer_count pass_layers(struct recompute recompute, double layers, double chunks);
/* Seconds of a pass of `layers` layers (of kind `layer`), with or without the embedding and the head. */
double pass_seconds(const struct pass_costs *costs, enum pass pass, enum pass_part layer, struct layer_count layers,
                    bool embedding, bool head);
/* Seconds of a pass whose layers take `layers` together, with or without the embedding and the head. */
double pass_with_ends(const struct part *parts, struct part_seconds layers, bool embedding, bool head);

/* closed_form_stages.c. The result is valid until the next call for another pipeline. inner_times_of costs much less. It fills
 * in `inner`, `chunk`, `layers`, `layer`, `fullest`, `last_full`, `whole`, `least_chunks` and `fill_chunks`: nothing about ends
 * and copies. For a pipeline of one stage it fills in everything. */
const struct stage_times *inner_times_of(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);
const struct stage_times *stage_times_of(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);

#endif
