/*
 * work.h - what there is to do, counted but not yet timed.
 *
 * A work is a kernel (a GEMM, an attention call, a memory-bound pass), a collective inside a pass, or a sequence of other
 * works. One pass of a model chunk is a sequence of layers, a layer is a sequence of kernels and exchanges:
 *
 *     chunk pass ── layer pass ── gemm | attention | memory-bound | collective ...
 *
 * so a program can be built at any detail by descending the same tree: chunk (the pass is one operation), layer, or kernel.
 * The simulator asks what a work costs (model/cost/kernel/machine.h); the runtime executes its leaves.
 *
 * Works live in a table and are named by their index. Equal layers share one sequence (`repeat`), so the table stays small.
 */
#ifndef MSIM_MODEL_COST_WORK_WORK_H
#define MSIM_MODEL_COST_WORK_WORK_H

#include <stdint.h>

#include "model/cost/work/cost.h"
#include "model/layout/layout.h"

enum collective {
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_BROADCAST,
    N_COLLECTIVES
};
const char *collective_name(enum collective collective);

enum work_kind {
    WORK_SEQUENCE,  /* children one after the other */
    WORK_GEMM,      /* C[m,n] += A[m,k] B[k,n], `count` times (grouped: experts) */
    WORK_ATTENTION, /* forward; [batch, heads, query, key, head_dim] */
    WORK_ATTENTION_BACKWARD,
    WORK_MEMORY_BOUND, /* bytes read + written by `count` kernels */
    WORK_COLLECTIVE,   /* bytes of the full buffer over a group */
    WORK_DATA,         /* a step's batch on its way from the host */
    WORK_COPY,         /* bytes between the GPU's memory and the host's, one way */
    WORK_HOST_UPDATE,  /* an optimizer step of the host's cores: bytes read + written in its memory */
    WORK_OVERLAPPED,   /* children [0] compute and [1] collective, pipelined with one another in chunks */
    WORK_PART,         /* children [0] a pass or a part of one, [1] that pass, and, where it runs side by side with another, [2]
                        * that other: what [0] takes of the whole, for which the host enqueues the pass as one, and the exchanges
                        * of either pass hide under the compute of the other */
};

struct work_gemm {
    int64_t m, n, k;
    int64_t largest;     /* of `count`: m of the one that has most, the shape above being the mean; 0: all alike */
    double output_bytes; /* per element of C: 2; 8 when a weight gradient is added to an fp32 buffer (read and written) */
    int32_t count;       /* GEMMs of the same shape: batched in one launch, or launched apart */
    enum precision precision;
    bool apart;     /* experts: each has a launch of its own, on a few streams */
    bool along_k;   /* of `largest`: k, not m */
    bool serial;    /* k is walked through in order (a state passed from chunk to chunk): no SMs share it */
    bool scan;      /* a part of a scan: see gpu.scan_flops */
    bool sliced;    /* operands are slices of larger matrices, one head's columns: not filled up to what tensor cores take */
    bool unused[3]; /* instead of padding, because gemm_memo.c compares all bytes */
};

/* Documents that a fused kernel attends to one by one, and the sequences they are packed into. */
struct work_documents {
    struct documents lengths; /* mean 0: none, sequences are attended to whole */
    double sequence, window;  /* tokens; window 0: none */
    double pairs;             /* of a sequence, all ranks together */
    double fullest;           /* pairs of the rank that has most among those that share sequences, relative to the mean */
    double own; /* of a rank's pairs those with its own keys, the first step of a ring; whole sequences: 1 / ranks */
};

struct work_attention {
    int64_t batch, query_tokens, key_tokens; /* per rank */
    double pairs; /* query-key pairs computed per batch element and head: half of s * s when causal, less with a window or
                   * documents; the mean of ranks that share a sequence */
    int32_t heads, kv_heads, head_dim, value_dim; /* per rank */
    enum precision precision;                     /* of the operands */
    int32_t steps;                                /* of a ring, of which this is one on average; 0: none */
    int32_t fused; /* 0: separate kernels with scores in memory, 1: FlashAttention, 2: FlashAttention-2, 3: -3 */
    bool alibi;    /* scores get a bias by distance */
    struct work_documents documents;
};

struct work_memory {
    double bytes;  /* read + written */
    int32_t count; /* kernels */
    bool apart;    /* launched in a loop of the framework's own code, as grouped GEMMs are */
    enum memory_kernel kernel;
};

/* What an all-to-all carries that dispatches tokens to experts, or brings them back: `copies` of each token, to experts in at
 * most top_groups of `groups` equal groups (0: anywhere). Where experts are not loaded alike the bytes are those of the busiest
 * rank, which receives (or returns) that many times the average, and the same of the busiest NVLink domain. */
struct token_copies {
    int copies, groups, top_groups;
    double rank_load, domain_load; /* 0: 1 */
};

struct work_collective {
    enum collective collective;
    enum group_kind group;
    double bytes;               /* of the full buffer, as nccl-tests counts it */
    struct token_copies tokens; /* copies 0: all bytes differ */
};

struct work_data {
    double bytes, samples; /* of one replica */
};

struct work_host {
    double bytes;
};

/* Pieces that a product and its exchange are cut into; a power of two. Assumption: MegaScale does not publish its chunk count;
 * the best of up to this many is taken (work_parts_of). */
enum { WORK_PIECES_MAX = 4 };

/* Of attention and the ring of context parallelism: one of each rank, and no more than this. */
enum { WORK_RING_PIECES_MAX = 16 };

struct work_sequence {
    int32_t first_child, n_children; /* in work_table.children */
    int32_t repeat;
    /* Of a WORK_OVERLAPPED: most equal pieces the pair is cut into so that one piece is exchanged while another is computed; 0:
     * the two are independent and simply run side by side. */
    int32_t pieces;
    bool host_forward; /* and enqueued by Python, not by the framework's backward engine */
    bool host_paced;   /* a pass as the host enqueues it: it cannot be shorter than its kernels' enqueueing */
    bool pauses;       /* a layer whose checkpoint Python keeps: the host collects its objects now and then */
};

struct work {
    enum work_kind kind;
    enum work_class class;
    const char *label; /* static text: "qkv", "mlp_up", ... */
    double flops;      /* arithmetic this work executes (model and recomputed), for HFU */
    union {
        struct work_gemm gemm;
        struct work_attention attention;
        struct work_memory memory;
        struct work_collective collective;
        struct work_data data;
        struct work_host host;         /* WORK_COPY and WORK_HOST_UPDATE */
        struct work_sequence sequence; /* WORK_SEQUENCE, WORK_OVERLAPPED and WORK_PART */
    };
};

struct work_table {
    struct work *items;
    int32_t n_items;
    size_t capacity;
    int32_t *children;
    int32_t n_children;
    size_t children_capacity;
};
void work_table_free(struct work_table *table);
int32_t work_add(struct work_table *table, struct work work); /* its index */
/* Compute and exchange side by side; see work_sequence.pieces. */
int32_t work_add_overlapped(struct work_table *table, int32_t compute, int32_t exchange, int32_t pieces);
/* `part` of pass `own`, which runs side by side with pass `other`, or by itself; all works of the table. */
int32_t work_add_paired(struct work_table *table, int32_t part, int32_t own, int32_t other);
int32_t work_add_part(struct work_table *table, int32_t part, int32_t own);
int32_t work_add_sequence(struct work_table *table, enum work_class class, const char *label, const int32_t *children, int32_t n,
                          int32_t repeat);

/* FLOPs a work executes, recomputation included. */
double work_flops(const struct work_table *table, int32_t work);

enum pass { PASS_FORWARD, PASS_BACKWARD, PASS_BACKWARD_INPUT, PASS_BACKWARD_WEIGHT, N_PASSES };
const char *pass_name(enum pass pass);

/* One micro-batch through layers [range.first, +count), with the embedding before and the loss head after when asked; the index
 * of a sequence whose children are [embedding], layers (equal neighbours folded by `repeat`), [head]. PASS_BACKWARD includes the
 * recomputation the layout asks for; PASS_BACKWARD_INPUT (with recomputation) + PASS_BACKWARD_WEIGHT make up the same. */
int32_t work_add_pass(struct work_table *table, const struct layout *layout, const struct setting *setting, enum pass pass,
                      struct layer_range range, bool embedding, bool head);

/* Whether matrices that read the same input stand apart: queries, keys and values (but in latent attention, whose never are one);
 * the gate and the up matrix. LLaMA-style code has them so where nothing is fused by hand. */
bool work_keeps_matrices_apart(const struct layout *layout, const struct transformer *model);
/* Whether recomputation is PyTorch's selective policy: attention and every second product are kept; see
 * layout_recomputes_by_need. */
bool work_keeps_products(const struct layout *layout);
/* Layers, up to this one, that are run again before its backward pass: itself, a group whose last it is, or none. */
int work_repeats_before(const struct layout *layout, const struct transformer *model, int layer);
/* Whether ZeRO-3 gathers a layer's weights once more for its recomputation: hooks around modules do, without dp_overlap. */
bool work_gathers_to_recompute(const struct layout *layout, const struct transformer *model, int layer);
/* Whether linear layers are today's: the weight gradient is added to its buffer inside the GEMM. Megatron has that since 2022,
 * with sequence parallelism; a stack with neither sequence parallelism nor fused operators beside a FlashAttention adds gradients
 * in a pass of their own. */
bool work_is_current(const struct layout *layout);
/* Whether there is such a pass: the first of several micro-batches has nothing to add to. */
bool work_sums_gradients(const struct layout *layout, const struct job *job);

/* Does the loss take the logits of the whole vocabulary on every tensor-parallel rank? Eager LLaMA-style code gathers them;
 * Megatron's line and everything fused exchanges maxima and sums instead. */
bool head_gathers(const struct layout *layout, const struct transformer *model);
/* Tokens of a chunk over which fused_linear_loss projects and takes the loss. */
int64_t head_chunk_tokens(const struct layout *layout, const struct setting *setting);

/* Optimizer step of one rank: gradient norm, update and casts of the parameters it has the states of; in narrow precision also,
 * once per step, the casts of n parameters of products' weights. */
int32_t work_add_optimizer(struct work_table *table, const struct setting *setting, double updated, double cast);

/* What the GPU does of it where the states are in the host's memory: the norm, zeroing the gradients; the casts. Their labels. */
#define WORK_NORM_LABEL "gradient_norm"
#define WORK_CAST_LABEL "weight_cast"
int32_t work_add_device_optimizer(struct work_table *table, const struct setting *setting, double updated, double cast);

/* And the update of n parameters whose states stay there, without what the work above does for all. */
int32_t work_add_kept_update(struct work_table *table, const struct setting *setting, double updated);

/* Parameters (elements) one rank holds of a virtual stage before ZeRO: dense part and routed-expert part. */
struct stage_parameters {
    double dense, experts;
};
/* Of those the ones whose optimizer states ZeRO leaves the rank; of the layers' those whose weights it casts where products are
 * narrow: what it holds, with ZeRO-3 before they are gathered. */
double work_own_parameters(const struct layout *layout, struct stage_parameters parameters);
double work_cast_parameters(const struct layout *layout, struct stage_parameters layers);
/* Whether every replica is left with all gradients, added up: no state is divided, or by whole parameters (job.muon_shard). */
bool work_reduces_whole(const struct layout *layout, const struct job *job);
/* Buckets in which a stage of one chunk of n layers exchanges gradients beside its passes: 40 million parameters
 * (Megatron-LM's default), or a million per replica where that is more, as small messages over many ranks are all latency; at
 * least four, so that most of the exchange is under the last pass. */
int work_gradient_buckets(const struct layout *layout, struct stage_parameters trained, int layers);
/* Of those parameters the ones whose gradients a rank is left with. */
double work_reduced_parameters(const struct layout *layout, const struct job *job, struct stage_parameters parameters);
/* A rank's parameters of the token table, or of the output matrix; how many of these a virtual stage holds. */
double work_table_parameters(const struct layout *layout, const struct transformer *model);
int work_tables(const struct layout *layout, const struct transformer *model, bool embedding, bool head);
/* Whether the last stage holds a copy of the first one's token table: it is the output matrix too, or prediction modules read it.
 */
bool work_shares_table(const struct layout *layout, const struct transformer *model);
struct stage_parameters work_stage_parameters(const struct layout *layout, const struct setting *setting,
                                              struct layer_range range, bool embedding, bool head);
/* Of these the ones that are trained, and so have gradients and optimizer states: all, or the adapters' and tables beside
 * them. */
struct stage_parameters work_trained_parameters(const struct layout *layout, const struct setting *setting,
                                                struct layer_range range, bool embedding, bool head);

/* FLOPs the model needs for one step of the whole job, forward and backward, no recomputation: the numerator of MFU. */
enum flop_convention {
    FLOPS_FULL,   /* attention counted over all s * s pairs (MegaScale, Megatron papers); a window's pairs where one is used */
    FLOPS_CAUSAL, /* attention counted over the causal half (current Megatron-LM) */
    FLOPS_MASKED, /* over what masks between documents leave of that, which the others count */
};
/* Width of the attention window of a layer, 0: full. MegaScale does not publish its window; the FLOP counts it prints imply that
 * two causal windows cover about 1,230 of 2,048 tokens, which 3/8 of the sequence gives. Used when FEATURE_SLIDING_WINDOW is on
 * and neither job nor model says. */
#define SLIDING_WINDOW_ASSUMED 0.375
double sliding_window_width(const struct setting *setting, feature_set features, int layer);
/* Query-key pairs of one head and sequence under the causal mask, in a band of `window` tokens if that is above 0. */
double attended_pairs(double seq_len, double window);
double model_flops_per_step(const struct setting *setting, feature_set features, enum flop_convention convention);

#endif
