/*
 * closed_form_passes.h - what passes take, for the closed form (private to it).
 *
 * A pass of a virtual stage is layers, and at the ends the embedding or the head. Each of these has a time of the device and a
 * time of the host; both add up, and the two sums make the pass: (device^3 + host^3)^(1/3), as the programs' works do
 * (starved_seconds). So parts are costed once for each distinct (tp, cp, ep, sp, micro-batch, recomputation and who does it, one
 * micro-batch or more, features) and put together for any division of the layers. Where a pattern, or windows that only some
 * have, give layers kinds that take different times, a stage's passes are those of the layers that it has; otherwise of a number
 * average ones. Where some layers are repeated and others keep everything, both are costed as if all were such, and a pass has so
 * many of each.
 *
 * Copies. Of what layers keep in the host's memory (host_memory.h), with two buffers in each direction, a pass of n layers of t
 * seconds of which the first k leave, and whose copies take c, waits max(0, c - t) for k - 2 of them, as two are under way while
 * others are at work; a forward and a backward pass together take not less than k c.
 *
 * Symbols: F, B forward and backward pass, I and W the backward pass's two parts where a schedule divides it; p stages of v
 * chunks, V virtual stages (layout_virtual_stages).
 */
#ifndef MSIM_MODEL_COST_STEP_CLOSED_FORM_PASSES_H
#define MSIM_MODEL_COST_STEP_CLOSED_FORM_PASSES_H

#include "model/cost/kernel/gemm_memo.h"
#include "model/cost/work/cost.h"
#include "model/cost/work/documents.h"
#include "model/cost/work/work.h"

/* Seconds of one pass of one micro-batch. */
struct part {
    struct cost_by_class device;
    double device_s; /* its total */
    double host_s;   /* to enqueue it */
};

/* What a pass is made of. Layers are means over the model's: over all of them, and over those behind the dense ones that a
 * mixture begins with, which is what every stage but the first has. */
enum pass_part { PART_MEAN_LAYER, PART_LAYER, PART_EMBEDDING, PART_HEAD, N_PASS_PARTS };

/* The two times of a part. */
struct part_seconds {
    double device_s, host_s;
};

struct pass_times {
    double s[N_PASSES]; /* by enum pass */
};

/* Layers, and those among them that keep everything where others are repeated. */
struct layer_count {
    double n, whole;
};

/* The stages of one pipeline, a micro-batch through each: all of a stage's chunks. */
struct stage_times {
    bool complete;                /* not only what inner_times_of fills in */
    int pp, vpp;                  /* whose: the memo's key */
    enum arrangement arrangement; /* of it too */
    struct recompute recompute;   /* and that */
    bool by_direction;            /* and whether copies of all forward passes come before those of all backward ones */
    double whole;                 /* the share of the model's layers that keep everything where others are repeated */
    double checkpoints[3];        /* repetitions on the fullest stage, on that with the head, on all; where all layers are
                                   * repeated, one per layer of these */
    double fullest;               /* layers of the fullest stage; of DualPipe's, that a micro-batch meets on average;
                                   * by a pattern, average layers that take as long as the slowest stage */
    double head_layers;           /* of the stage with the head, its other chunks included */
    int first_full, last_full;    /* of stages of one chunk the first and the last that are as full (by a pattern: as slow) */
    struct pass_times inner, head, first; /* the fullest stage without ends; with the head; with the embedding (V-shaped: both) */
    struct pass_times sum;                /* over all stages, of one micro-batch's whole way */
    struct pass_times chunk;              /* a chunk of the fullest stage */
    struct pass_times layers, layer;      /* the model's, and one of them on average */
    double least_chunks; /* number of `chunk`s that come before and behind the fullest stage of an interleaved one */
    double fill_chunks;  /* number of these that fill an interleaved pipeline and drain it */
    double copies;       /* of what a chunk of the fullest stage keeps, to the host or back; 0: it stays */
    double behind;       /* of its passes what they wait for as their copies take longer than both, half in each */
    double lockstep;     /* a micro-batch through an interleaved pipeline whose stages keep step; 0 where chunks are equal */
    double rounds;       /* the same where they keep step by rounds of p passes; 0 but where layers differ */
    bool uneven;         /* chunks of an interleaved pipeline take different times */
    bool follows;        /* and are followed (stage_times_follow): */
    double followed_m, followed_message, followed_s;
    bool followed_blocking;
};

struct pass_key {
    int tp, cp, cp_comm, ep, micro_batch, by_need, sequence_parallel, expert_tp;
    enum recompute_what recompute;
    int partial;                    /* not of all layers */
    int accumulates;                /* more than one micro-batch: gradients are added up */
    struct offload_amount offloads; /* of activations */
    feature_set features;
};

/* How far parts are known. At first nothing is; then what layers take at least, without a host and on GPUs at full clock, which
 * rules most layouts out at a small part of the cost (models with a pattern skip this; of layers that differ by windows the mean
 * stage is what the slowest takes at least); at last all. */
enum parts_known { PARTS_UNKNOWN, PARTS_LEAST, PARTS_ALL };

struct pass_costs {
    struct pass_key key;
    enum parts_known known;
    double pace;                         /* of the machine under this key */
    struct gemm_memo *gemms;             /* the cache's */
    struct documents_memo *walks;        /* and this */
    struct pass_costs *repeated, *whole; /* partial: layers that are repeated (these parts but for the head), and the others */
    struct part parts[N_PASSES][N_PASS_PARTS];
    bool differ;                                 /* layers: by a pattern, or by windows that some have and others not */
    struct part_seconds (*kinds)[N_LAYER_KINDS]; /* by pass: where they differ and all is known, one of each; otherwise NULL */
    struct part_seconds *before[N_PASSES];       /* and all layers before each, and before the end */
    double copy_s;      /* what a layer keeps, to the host or back, on average over the model's; 0: it stays */
    bool divided_known; /* the backward pass's two parts are there */
    bool pairs_known;
    struct cost_by_class layer_pair; /* one layer forward and backward in a pair of passes */
    double pair_s;                   /* its total */
    struct stage_times stages;       /* asked for last; pp 0: none */
    double *chunks;  /* theirs where they are uneven: forward passes of all virtual stages with their ends, then backward ones */
    size_t n_chunks; /* room for */
};

struct pass_cache {
    struct pass_costs **slots; /* open addressing; NULL: free */
    size_t n_slots, n_used;
    struct gemm_memo gemms;
    struct documents_memo walks;
};
void pass_cache_init(struct pass_cache *cache);
void pass_cache_free(struct pass_cache *cache);

/* The passes of a layout. Valid as long as the cache. */
struct pass_costs *pass_costs_of(struct pass_cache *cache, const struct setting *setting, const struct layout *layout);
/* Their parts, at least so far; `layout` is one that they are of. */
void pass_costs_know_least(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);
void pass_costs_know_all(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);
/* Fills in, once all parts are known, what pairs of a forward and a backward pass take. */
void pass_costs_pair(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);

/* The two parts of backward passes, as far as parts are known. */
void pass_costs_divide(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);

/* Of `layers` of a stage's layers those whose activations leave; and of these those that wait for copies where copies are the
 * slower. */
double pass_leaving_layers(const struct layout *layout, double stage_layers, double layers);
double pass_waiting_layers(double leaving);

/* closed_form_layers.c: what the passes of the last of a model's chunks wait for copies of its first `leaving` layers, where each
 * micro-batch turns round at once, one (of one: `once`) after the other: the last two layers stay, and the last to leave is the
 * first to come. */
void turning_copies(const struct pass_costs *costs, int layers, int leaving, bool once, double waited[PASS_BACKWARD + 1]);

/* Of `chunks` equal chunks that have `layers` layers together, on average. */
struct layer_count pass_layers(struct recompute recompute, double layers, double chunks);
/* A pass of n layers (of kind `layer`), with or without an end. */
double pass_seconds(const struct pass_costs *costs, enum pass pass, enum pass_part layer, struct layer_count layers,
                    bool embedding, bool head);
/* Layers that take so long, with or without an end. */
double pass_with_ends(const struct part *parts, struct part_seconds layers, bool embedding, bool head);

/* closed_form_stages.c; valid until asked for another pipeline. The first, which costs much less, fills in `inner`, `chunk`,
 * `layers`, `layer`, `fullest`, `last_full`, `whole`, `least_chunks` and `fill_chunks`: nothing of ends and copies, all of a
 * pipeline of one stage. */
const struct stage_times *inner_times_of(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);
const struct stage_times *stage_times_of(struct pass_costs *costs, const struct setting *setting, const struct layout *layout);

#endif
