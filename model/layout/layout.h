/*
 * layout.h - how a job divides its work over GPUs (tensor, pipeline, data parallelism, ...), and where each rank sits.
 *
 * Example: 1,024 GPUs with tp=8, cp=1, pp=8, vpp=2, micro_batch=1 and a global batch of 512 sequences.
 *   dp = 1024 / (8 * 1 * 8) = 16 replicas, each with 512 / (16 * 1) = 32 micro-batches per step
 *   rank 0 shares its layers with ranks 1-7 (tp: one node), its gradients with ranks 8, 16, ... 120 (dp)
 *   and sends activations to rank 128 (the next stage); with 32 layers each of the 16 virtual stages has two
 *
 * World size N = tp * cp * pp * dp. Data parallelism dp excludes cp; gradients are reduced over dp * cp ranks. Micro-batches per
 * replica m = global_batch / (dp * micro_batch).
 *
 * ZeRO divides states among all dp * cp ranks, or among `shard` neighbours of them (hybrid sharding: PyTorch's HSDP, MiCS,
 * Megatron-LM's several instances of the distributed optimizer). Hybrid sharding keeps all-gathers and reduce-scatters among
 * neighbours. In return each rank keeps more, and the dp * cp / shard ranks that hold the same shard add up its gradients once
 * per step. The copies of an expert's weights are divided in the same way; the neighbours must hold all experts (etp * ep divides
 * tp * shard).
 *
 * Expert parallelism ep divides the experts of a mixture layer among ep ranks of one stage. Expert tensor parallelism etp splits
 * each expert, over 1 rank or over tp.
 *   etp = 1   the ep ranks are neighbours anywhere in the stage (ep divides tp * cp * dp; Megatron's parallel folding). An expert
 *             is whole on its rank and has tp * cp * dp / ep copies. Recipes for many small experts do this; it is the default.
 *   etp = tp  the ep ranks are among the dp * cp ranks with the same tp index (ep divides dp * cp). An expert has dp * cp / ep
 *             copies. This is the default without expert parallelism (ep = 1).
 *
 * Context parallelism cuts every sequence into 2 cp chunks. Rank r has an early one, r, and a late one, 2 cp - 1 - r, which
 * balances causal attention. Where n neighbours exchange heads (cp_comm=a2a:n), their chunks together are an early and a late
 * chunk of 2 cp / n; the other exchanges are those of context parallelism over cp / n ranks.
 *
 * Layers. Stage i of pp holds vpp chunks; chunk c of stage i is virtual stage v = c * pp + i (as Megatron interleaves). ZB-V and
 * DualPipe-V fold the model into a V of two chunks: chunk 1 of stage i is virtual stage 2 * pp - 1 - i, so stage 0 has both ends.
 * DualPipe has two chunks too, but only pp virtual stages, each held twice: stages i and pp - 1 - i both hold virtual stages
 * min(i, pp - 1 - i), their chunk 0, and its mirror image, their chunk 1, and micro-batches enter from both ends.
 *
 * The embedding comes before virtual stage 0, the loss head after the last one. The L layers are divided over the virtual stages
 * (layout_virtual_stages: pp * vpp of them, except for DualPipe):
 *   pp * vpp divides L       evenly
 *   pp * vpp divides L + 2   the embedding and the head each count as one layer; with pp * vpp = L + 2 each has a virtual stage
 *                            of its own, without a layer
 *   neither                  virtual stages differ by one layer; the first and last are the lighter ones (only the last, when
 * just one is lighter). The heavier ones come together just before the last virtual stage, which spreads them evenly over the
 * stages and away from the early ones, whose activations live longest. Pipelines with one chunk per stage in eager stacks
 * (layout_follows_llama) divide by parameters instead, as DeepSpeed's do by default: they find the least weight that the heaviest
 * stage can have, then fill one stage after the other up to it. A token table weighs its parameters divided by those of a layer.
 */
#ifndef MSIM_MODEL_LAYOUT_LAYOUT_H
#define MSIM_MODEL_LAYOUT_LAYOUT_H

#include "model/base/diag.h"
#include "model/spec/cluster.h"
#include "model/spec/cp_comm.h"
#include "model/spec/job.h"
#include "model/spec/layout_dimensions.h"
#include "model/spec/offload.h"
#include "model/spec/recompute.h"
#include "model/spec/transformer.h"

struct layout {
    int tp, cp, pp, vpp, dp, ep;
    int etp;   /* 0: what the comment above says; read it through layout_expert_tp */
    int zero;  /* 0 replicated, 1 optimizer states, 2 and gradients, 3 and weights sharded over dp * cp */
    int shard; /* over this many neighbours of them; 0: all */
    enum cp_comm cp_comm;
    bool sequence_parallel;
    int micro_batch;
    struct recompute recompute; /* what, and of which layers */
    struct offload offload;     /* what the host keeps, and how much of it */
    enum schedule schedule;
    feature_set features; /* those used; a subset of what the job allows */
};

/* The initial values before a text is parsed: dimensions to be completed, and the defaults of current stacks. */
extern const struct layout layout_defaults;

/* Why a layout is not legal; the order is that of the checks, and one layout has one reason. */
#define LAYOUT_REASONS(X)                                                                                                        \
    X(LEGAL, "legal")                                                                                                            \
    X(RANGE, "a dimension is out of range")                                                                                      \
    X(WORLD, "tp * cp * pp * dp is not the number of GPUs")                                                                      \
    X(HEADS, "tp does not divide the attention heads")                                                                           \
    X(KV_HEADS, "tp and the key/value heads do not divide one another")                                                          \
    X(MIXER, "tp does not divide the groups of the mixers with a state, or tp * cp their heads")                                 \
    X(HIDDEN, "tp does not divide the hidden or feed-forward width")                                                             \
    X(VOCAB, "tp is larger than the vocabulary can be split")                                                                    \
    X(CP_COMM, "the ranks that exchange heads (cp_comm) do not divide cp, or the heads that tp leaves a rank")                   \
    X(SEQUENCE, "cp (twice, for balanced causal attention) or tp with sequence parallelism does not divide the sequence")        \
    X(LAYERS, "more virtual stages than layers")                                                                                 \
    X(BATCH, "dp * micro_batch does not divide the global batch")                                                                \
    X(SCHEDULE, "the schedule does not fit pp and vpp")                                                                          \
    X(INTERLEAVE, "too few micro-batches for the schedule, or an odd number")                                                    \
    X(EXPERTS, "ep does not divide the experts or the ranks of a stage")                                                         \
    X(ZERO, "this ZeRO stage does not work with this pipeline")                                                                  \
    X(SHARD, "shard does not divide the replicas, or there is no ZeRO to shard by")                                              \
    X(OWNERS, "owners of whole parameters, which Muon may have, go with ZeRO-1 without shard")                                   \
    X(RECOMPUTE, "what is recomputed is not there, or does not work with the rest")                                              \
    X(OFFLOAD, "what is offloaded does not work with this schedule or ZeRO stage")                                               \
    X(ADAPTER, "tp does not divide the rank of the adapters")                                                                    \
    X(FEATURE, "a feature needs what the layout, model or GPU does not have")                                                    \
    X(PRECISION, "the GPU does not have this precision")

enum layout_reason {
#define X(id, text) LAYOUT_##id,
    LAYOUT_REASONS(X)
#undef X
        N_LAYOUT_REASONS
};
const char *layout_reason_text(enum layout_reason reason);
const char *layout_reason_key(enum layout_reason reason); /* snake_case, for JSON: "heads", "interleave" */

/* Everything a layout is judged against. */
struct setting {
    const struct transformer *model;
    const struct cluster *cluster;
    const struct job *job;
    int gpus; /* used, <= cluster_gpus */
};
/* That of an experiment; points into it. */
struct experiment;
struct setting experiment_setting(const struct experiment *experiment);

/* The first reason why the layout is not legal, else LAYOUT_LEGAL. `why` (may be NULL) gets a sentence with the numbers.
 * Without `why` it costs a few tens of nanoseconds. A feature that has nothing to act upon (tp_overlap with tp = 1) is legal. */
enum layout_reason layout_check(const struct layout *layout, const struct setting *setting, char *why, size_t size);

/* The same in two parts, for searches. The first checks how the work is divided: for a layout in range its result does not depend
 * on zero, shard, recomputation, offloading or features. The second checks these, for a legal division. */
enum layout_reason layout_check_division(const struct layout *layout, const struct setting *setting);
enum layout_reason layout_check_states(const struct layout *layout, const struct setting *setting);

/* Layers of the model, or of a chunk: the first and how many. */
struct layer_range {
    int first, count;
};

/*
 * What is recomputed depends on who does it. Megatron's own checkpointing repeats a whole layer (full) or the core of attention
 * (selective). PyTorch's (torch.utils.checkpoint, not reentrant), which stacks that shard by module (FSDP) use, repeats a layer
 * until the last tensor that the backward pass needs is there again: the down-projection's product, from which only the next
 * layer reads, is not repeated. Its selective policy (torchtitan's) keeps what attention and every second product of a layer give
 * and repeats the rest, experts whole.
 */
bool layout_recomputes_by_need(const struct layout *layout);

/* Modules of a layer that are repeated one by one: the named ones with their parts, or the core of attention where `selective`
 * means that. Empty where nothing or all of the layer is repeated, and under PyTorch's policy. */
enum recompute_what layout_recomputed_modules(const struct layout *layout);
/* The layers that are repeated together with this one, itself among them; count 0: it keeps everything. Layers of prediction
 * modules, which follow the model's, are repeated where all layers are. */
struct layer_range layout_repeated_with(const struct layout *layout, const struct transformer *model, int layer);
/* Whether it is one by one (or not at all), as modules are, or in larger groups. */
static inline bool layout_recomputes_groups(const struct layout *layout)
{
    return layout->recompute.of == RECOMPUTE_GROUPS;
}
/* Modules that some layer of a model has. */
enum recompute_what layout_modules_of(const struct transformer *model);
/* Those that cost little for what they give: norms and activations, passes that memory bounds, and latent attention's
 * up-projections, whose products are small beside queries, keys and values. DeepSeek-V3 was trained with them (arXiv:2412.19437,
 * section 3.2.3). */
enum recompute_what layout_light_modules(const struct transformer *model);

/*
 * Stacks that are not derived from Megatron but follow LLaMA's code: they have a gated feed-forward part and no fused operators.
 * They divide layers over stages by parameters, token tables among them (layout_layers); the layer behind an all-gather keeps
 * what was gathered; and whole layers are checkpointed by autograd functions in Python, whose objects live from the forward to
 * the backward pass, but for stacks that recompute by need.
 */
bool layout_follows_llama(const struct layout *layout, const struct transformer *model);
bool layout_checkpoints_in_python(const struct layout *layout, const struct transformer *model);

/*
 * Whether scale, mask and softmax of attention scores that are held in memory run as one kernel, for a model with `heads` heads.
 * torch.compile's takes any shape; Megatron's gives each of a block's four warps a row of one score matrix, so it runs only where
 * the score matrices of a rank (micro_batch * heads / tp) are a multiple of four (fused_softmax.py, is_kernel_available).
 */
bool layout_fuses_softmax(const struct layout *layout, int heads);

/* Whether a rank keeps only its share of the gradients, and so scatters each layer's after every backward pass. ZeRO-2 and ZeRO-3
 * do, except in pipelines, whose micro-batches add up whole gradients until the step ends. Under ZeRO-2, SCATTERED_UNITS layers
 * have whole gradients at a time: one computes them, one scatters them (FSDP has one reduce-scatter in flight, DeepSpeed two
 * buckets). */
enum { SCATTERED_UNITS = 2 };
static inline bool layout_scatters_gradients(const struct layout *layout)
{
    return layout->zero >= 2 && layout->pp == 1;
}

/* Whether the host keeps any of that part. */
static inline bool layout_offloads(const struct layout *layout, enum offload_part part)
{
    return offload_has(&layout->offload, part);
}
/* Whether a rank sends its gradients to the host during each micro-batch, bucket by bucket as they are computed and reduced. It
 * does so where the host keeps the optimizer's states and ZeRO shards gradients, or there is one replica (DeepSpeed); elsewhere
 * gradients stay on the GPU until the step ends. Only gradients whose states are on the host leave. */
bool layout_offloads_gradients(const struct layout *layout);
/* Either way gradients leave layer by layer with every backward pass. */
static inline bool layout_gradients_leave_rank(const struct layout *layout)
{
    return layout_scatters_gradients(layout) || layout_offloads_gradients(layout);
}

/* A shard over all replicas is the same as none: 0. */
static inline void layout_settle_shard(struct layout *layout)
{
    if (layout->shard == layout->dp * layout->cp)
        layout->shard = 0;
}

/* Of the cp ranks: the number that exchange heads, 1 where none do; and the number among which keys and values then travel. */
static inline int layout_cp_heads(const struct layout *layout)
{
    return cp_comm_heads(layout->cp_comm, layout->cp);
}
static inline int layout_cp_keys(const struct layout *layout)
{
    return layout->cp / layout_cp_heads(layout);
}
/* Whether the ranks that exchange heads divide cp and the heads of a rank; a key/value head may go to several ranks. If not,
 * `why` (may be NULL) gets a sentence. */
bool layout_head_exchange_legal(const struct layout *layout, const struct transformer *model, char *why, size_t size);
/* Key/value heads of a tensor-parallel rank, at least one; and the number per token that a rank sends to those with which it
 * exchanges heads, at least one to each. */
int layout_kv_heads(const struct layout *layout, const struct transformer *model);
int layout_sent_kv_heads(const struct layout *layout, const struct transformer *model);

static inline int64_t layout_micro_batches(const struct layout *layout, const struct job *job)
{
    return job->global_batch / ((int64_t)layout->dp * layout->micro_batch);
}

/* One text form everywhere: "tp=8,cp=1,pp=8,vpp=6,dp=192,ep=1,mb=1,zero=2,sp=1,recompute=none,schedule=interleaved".
 * Three keys appear only if they are not the default: ",cp_comm=a2a" after cp, ",shard=8" after zero, and
 * ",offload=optimizer:50%+activations" at the end. Parsing accepts any subset, in the long or short form
 * (model/spec/layout_items.h), and keeps the other values of *layout. For an unknown key the error suggests the nearest one.
 * `features` is not part of the text. */
MUST_CHECK enum status layout_parse(const char *text, struct layout *layout, struct diags *diags);
enum { LAYOUT_TEXT = 320 }; /* room for it */
char *layout_format(const struct layout *layout, char *buffer, size_t size);
/* For a table's cell, "tp8 pp8 vpp6 mb1 z2": the dimensions above one except dp, which follows from the number of GPUs;
 * micro-batch and ZeRO; and other values that layout_complete would not choose, or that are not usual: exchanges of context
 * parallelism, "sp0" for tensor parallelism without sequence parallelism, recomputation, schedule, offloading. Parsing it over
 * layout_defaults and completing it for the same number of GPUs gives the same layout. Returns buffer. */
char *layout_brief(const struct layout *layout, char *buffer, size_t size);
/* Replaces 0 dimensions: dp follows from the number of GPUs, the rest become 1 (vpp 2 for the V-shaped schedules). A shard over
 * all replicas becomes 0, and cp_comm the simplest value, with the same meaning. Schedule "none" becomes 1f1b or interleaved in a
 * pipeline; no features become the job's. */
void layout_complete(struct layout *layout, const struct setting *setting);

/* Two chunks per stage by construction: ZB-V, DualPipe, DualPipe-V. */
bool schedule_is_folded(enum schedule schedule);
/* Every backward pass has two parts: gradients for the input, later those for the weights. DualPipe divides only some. */
bool schedule_divides(enum schedule schedule);
/* Steps roll into one another: a stage begins the next one without waiting for the others (post-validation of the optimizer's
 * step; Qi and others, arXiv:2401.10241, section 4). */
bool schedule_rolls(enum schedule schedule);
/* Where chunks are. Two schedules of one arrangement, with equal stages and chunks, put the same layers on the same stage. */
enum arrangement {
    ARRANGED_AROUND,    /* chunk by chunk around all stages */
    ARRANGED_IN_V,      /* down and back up */
    ARRANGED_BOTH_WAYS, /* each stage has a copy of its mirror image's layers (DualPipe) */
};
enum arrangement schedule_arrangement(enum schedule schedule);
int layout_virtual_stages(const struct layout *layout);
/* Layers of virtual stage v, divided as the head of this file says. The share of the last one includes the model's
 * multi-token-prediction layers, which `count` leaves out. */
struct layer_range layout_layers(const struct layout *layout, const struct transformer *model, int virtual_stage);
/* Layers of the virtual stage that has most of them. */
int layout_most_layers(const struct layout *layout, const struct transformer *model);
/* Whether `parts` virtual stages hold equal numbers of layers, multi-token-prediction layers included; the embedding and the head
 * count as a layer each where that helps. Other divisions need a split that names each stage's layers. */
bool layers_divide(const struct transformer *model, int64_t parts);
int layout_virtual_stage(const struct layout *layout, int stage, int chunk);
/* The inverse: where virtual stage v runs (DualPipe: where the micro-batches that enter at stage 0 meet it). */
int layout_stage_of(const struct layout *layout, int virtual_stage);
int layout_chunk_of(const struct layout *layout, int virtual_stage);
/* Ranks over which one expert is split: 1 or tp. */
int layout_expert_tp(const struct layout *layout);
/* Ranks that ZeRO divides the dense weights' states among: `shard`, or dp * cp. */
int layout_shard_ranks(const struct layout *layout);

/* A rank's index in each dimension. Rank order is Megatron's and MegaScale's: tp fastest, then cp, then dp, then pp slowest, so
 * that TP stays inside a node and data-parallel groups stay near each other. */
struct coordinates {
    int tp, cp, dp, pp;
};
struct coordinates layout_coordinates(const struct layout *layout, int rank);
int layout_rank(const struct layout *layout, struct coordinates at);

/* The kinds of rank groups that exchange data. */
enum group_kind {
    GROUP_TP,
    GROUP_CP,        /* cp ranks of one (tp, dp, pp), or the layout_cp_keys of these that exchange keys and values */
    GROUP_DP,        /* dp * cp ranks of one (tp, pp), or `shard` of them: gradients and ZeRO shards of the dense weights */
    GROUP_EP,        /* ep ranks: expert dispatch and combine */
    GROUP_EXPERT_DP, /* tp * cp * dp / (ep * expert tp) ranks, or tp * shard / (...) of them: gradients of expert weights */
    GROUP_PP,        /* pp ranks of one (tp, cp, dp) */
    GROUP_EMBEDDING, /* first and last stage of one (tp, cp, dp): tied embedding gradients */
    GROUP_MODEL,     /* tp * pp ranks: gradient norm */
    GROUP_REPLICA,   /* dp * cp / shard ranks that hold the same shards: their gradients */
    GROUP_MIRROR,    /* DualPipe: the two ranks, in stages i and pp - 1 - i, that hold copies of the same weights */
    GROUP_CP_HEADS,  /* neighbours among the cp ranks that exchange heads for tokens */
    N_GROUP_KINDS
};
const char *group_kind_name(enum group_kind kind);

/*
 * The traffic that leaves a ToR set or a pod while all groups of a kind exchange at once and every GPU sends to other NVLink
 * domains of its group as fast as it can: the fraction of the GPUs of a set or pod that send beyond it, in the set or pod with
 * the largest fraction. 0: no group reaches beyond one.
 */
struct group_exits {
    double to_next; /* each domain to the group's next one, in order and around (pipeline: each rank to the next stage) */
    double to_all;  /* each rank to all others alike */
    int units;      /* sets or pods that the job lies in */
};

/*
 * How a group lies on the machine: what a collective's cost depends on. Rank r sits on GPU r of the cluster, nodes filled in
 * order. Where groups of one kind lie differently (tp = 6 on nodes of 8), the counts are those of the worst placed one.
 *
 * A job that needs several NVLink domains larger than a node (NVL72) takes the same number of whole nodes from each, as
 * schedulers do: the largest number, at least half a domain, that divides the job (256 GPUs: 64 of each 72).
 */
struct group_span {
    int ranks;
    int ranks_per_domain; /* members in one NVLink domain (the largest such number) */
    int domains;          /* NVLink domains touched */
    int leaves;           /* ToR sets touched */
    int pods;             /* aggregation blocks touched */
    int sharing;          /* groups of this kind that use one NIC at the same time (1: alone, or no NIC needed) */
    int islands; /* parts of one node touched that NVLink does not join (1: a node is one NVLink domain, or part of one) */
    struct group_exits leaf_exits, pod_exits;
};
struct group_span layout_span(const struct layout *layout, const struct cluster *cluster, enum group_kind kind);
int layout_group_size(const struct layout *layout, enum group_kind kind);
/* Members of the group of `kind` that `rank` is in, in group order; `ranks` has room for layout_group_size. */
void layout_group_members(const struct layout *layout, enum group_kind kind, int rank, int *ranks);

#endif
