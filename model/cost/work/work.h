/*
 * work.h - the work of a pass: kernels, exchanges and copies, counted in FLOPs and bytes but not yet timed.
 *
 * Example: the forward pass of one llama2-7b layer, micro-batch of 4,096 tokens.
 *
 *     work = work_add_pass(&table, &layout, &setting, PASS_FORWARD, range, false, false)
 *     children: norm, qkv (4096 x 12288 x 4096), rotary, attention, projection, residual, norm, mlp_up, activation, mlp_down,
 * residual work_cost(&machine, &table, work)       model/cost/kernel/machine.h gives the time
 *
 * A work is a kernel (a GEMM, an attention call, a memory-bound pass), a collective inside a pass, or a sequence of other
 * works. One pass of a model chunk is a sequence of layers, a layer is a sequence of kernels and exchanges:
 *
 *     chunk pass ── layer pass ── gemm | attention | memory-bound | collective ...
 *
 * A program can be built at any detail by descending this tree: chunk (the pass is one operation), layer, or kernel. The
 * simulator asks for the cost of a work; the runtime executes its leaves.
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
    WORK_DATA,         /* a step's batch, copied from the host */
    WORK_COPY,         /* bytes between GPU memory and host memory, in one direction */
    WORK_HOST_UPDATE,  /* an optimizer step on the host's cores: bytes read + written in host memory */
    WORK_OVERLAPPED,   /* children [0] compute and [1] collective, pipelined in chunks */
    WORK_PART, /* children [0] a pass or a part of it, [1] that pass, and [2] the pass with which it is paired, if any. The time
                  of [0] is its share of the whole. The host enqueues the pass as one, and the exchanges of either pass hide under
                  the computation of the other */
};

struct work_gemm {
    int64_t m, n, k;
    int64_t largest;     /* m of the largest of `count`, where the shape above is the mean; 0: all are equal */
    double output_bytes; /* per element of C: 2; 8 when a weight gradient is added to an fp32 buffer (read and written) */
    int32_t count;       /* GEMMs of the same shape: batched in one launch, or launched apart */
    enum precision precision;
    bool apart;     /* experts: each has its own launch, on a few streams */
    bool along_k;   /* `largest` is k, not m */
    bool serial;    /* k is processed in order (a state passed from chunk to chunk), so SMs cannot share it */
    bool scan;      /* a part of a scan: see gpu.scan_flops */
    bool sliced;    /* operands are slices of larger matrices (columns of one head), not padded to the size of tensor cores */
    bool unused[3]; /* instead of padding, because gemm_memo.c compares all bytes */
};

/* Packed documents that a fused kernel attends to one by one. */
struct work_documents {
    struct documents lengths; /* mean 0: no documents, attention sees whole sequences */
    double sequence, window;  /* tokens; window 0: none */
    double pairs;             /* query-key pairs of a sequence, all ranks together */
    double fullest;           /* pairs of the rank with the most, among ranks that share sequences, relative to the mean */
    double own; /* fraction of a rank's pairs with its own keys, the first step of a ring; whole sequences: 1 / ranks */
};

struct work_attention {
    int64_t batch, query_tokens, key_tokens; /* per rank */
    double pairs; /* query-key pairs computed per batch element and head: half of s * s when causal, less with a window or
                     documents; the mean over ranks that share a sequence */
    int32_t heads, kv_heads, head_dim, value_dim; /* per rank */
    enum precision precision;                     /* of the operands */
    int32_t steps;                                /* steps of a ring; the work is one average step; 0: no ring */
    int32_t fused; /* 0: separate kernels with scores in memory; 1, 2, 3: version of FlashAttention */
    bool alibi;    /* scores get a bias by distance */
    struct work_documents documents;
};

struct work_memory {
    double bytes;  /* read + written */
    int32_t count; /* kernels */
    bool apart;    /* launched in a loop of Python code, like grouped GEMMs */
    enum memory_kernel kernel;
};

/* The payload of an all-to-all that dispatches tokens to experts or returns them: `copies` of each token, to experts in at most
 * top_groups of `groups` equal groups (0: anywhere). Where experts have unequal loads, `bytes` are those of the busiest rank,
 * which receives (or returns) rank_load times the average; domain_load is the same for the busiest NVLink domain. */
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

/* Largest number of pieces into which a product and its exchange are cut; a power of two. Assumption: MegaScale does not
 * publish its chunk count; the best number up to this one is used (work_parts_of). */
enum { WORK_PIECES_MAX = 4 };

/* The same for attention and the ring of context parallelism: one piece per rank, up to this number. */
enum { WORK_RING_PIECES_MAX = 16 };

struct work_sequence {
    int32_t first_child, n_children; /* in work_table.children */
    int32_t repeat;
    /* WORK_OVERLAPPED: the largest number of equal pieces into which the pair is cut so that one piece is exchanged while
     * another is computed; 0: the two are independent and overlap as a whole. */
    int32_t pieces;
    bool host_forward; /* a pass (host_paced) enqueued by Python, not by the framework's backward engine */
    bool host_paced;   /* a pass as the host enqueues it: it cannot be shorter than the time to enqueue its kernels */
    bool pauses;       /* a layer whose checkpoint is a Python object, so garbage collection pauses the host from time to time */
};

struct work {
    enum work_kind kind;
    enum work_class class;
    const char *label; /* static text: "qkv", "mlp_up", ... */
    double flops;      /* FLOPs this work executes (model and recomputed), for HFU */
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
int32_t work_add(struct work_table *table, struct work work); /* returns its index */
/* Adds a computation and an exchange that overlap; see work_sequence.pieces. */
int32_t work_add_overlapped(struct work_table *table, int32_t compute, int32_t exchange, int32_t pieces);
/* Adds `part` of the pass `own`, which is paired with the pass `other` (work_add_paired) or runs alone (work_add_part). All are
 * works of the table. */
int32_t work_add_paired(struct work_table *table, int32_t part, int32_t own, int32_t other);
int32_t work_add_part(struct work_table *table, int32_t part, int32_t own);
int32_t work_add_sequence(struct work_table *table, enum work_class class, const char *label, const int32_t *children, int32_t n,
                          int32_t repeat);

/* FLOPs that a work executes, recomputation included. */
double work_flops(const struct work_table *table, int32_t work);

enum pass { PASS_FORWARD, PASS_BACKWARD, PASS_BACKWARD_INPUT, PASS_BACKWARD_WEIGHT, N_PASSES };
const char *pass_name(enum pass pass);

/* Adds one micro-batch through the layers of `range`, with the embedding before and the loss head after them if requested.
 * Returns the index of a sequence with the children [embedding], layers (equal neighbours folded by `repeat`), [head].
 * PASS_BACKWARD includes the recomputation of the layout. PASS_BACKWARD_INPUT (with recomputation) and PASS_BACKWARD_WEIGHT
 * together are the same work. */
int32_t work_add_pass(struct work_table *table, const struct layout *layout, const struct setting *setting, enum pass pass,
                      struct layer_range range, bool embedding, bool head);

/* Whether matrices with the same input are separate: queries, keys and values (in latent attention they always are); the gate
 * and the up matrix. LLaMA-style code has separate ones unless it is fused by hand. */
bool work_keeps_matrices_apart(const struct layout *layout, const struct transformer *model);
/* Whether recomputation follows PyTorch's selective policy, which keeps attention and every second product; see
 * layout_recomputes_by_need. */
bool work_keeps_products(const struct layout *layout);
/* Number of layers, up to this one, that are run again before its backward pass: this one, a group of which it is the last, or
 * 0. */
int work_repeats_before(const struct layout *layout, const struct transformer *model, int layer);
/* Whether ZeRO-3 gathers a layer's weights again for its recomputation. Hooks around modules do, without dp_overlap. */
bool work_gathers_to_recompute(const struct layout *layout, const struct transformer *model, int layer);
/* Whether linear layers add the weight gradient to its buffer inside the GEMM. Megatron does so since 2022, with sequence
 * parallelism. A stack with FlashAttention but neither sequence parallelism nor fused operators adds gradients in a separate
 * pass. */
bool work_is_current(const struct layout *layout);
/* Whether there is such a separate pass. The first of several micro-batches has nothing to add to. */
bool work_sums_gradients(const struct layout *layout, const struct job *job);

/* Whether every tensor-parallel rank computes the loss on the logits of the whole vocabulary. Eager LLaMA-style code gathers
 * them; Megatron and all fused code exchange maxima and sums instead. */
bool head_gathers(const struct layout *layout, const struct transformer *model);
/* Tokens per chunk in which fused_linear_loss projects and computes the loss. */
int64_t head_chunk_tokens(const struct layout *layout, const struct setting *setting);

/* Adds the optimizer step of one rank: gradient norm, then update and casts of the `updated` parameters whose states it holds.
 * In narrow precision it also casts `cast` weights of products, once per step. */
int32_t work_add_optimizer(struct work_table *table, const struct setting *setting, double updated, double cast);

/* Adds the GPU's part of an optimizer step whose states are in host memory: the norm, zeroing the gradients, and the casts.
 * These are their labels. */
#define WORK_NORM_LABEL "gradient_norm"
#define WORK_CAST_LABEL "weight_cast"
int32_t work_add_device_optimizer(struct work_table *table, const struct setting *setting, double updated, double cast);

/* Adds the update of `updated` parameters whose states stay on the GPU, without the parts of the work above. */
int32_t work_add_kept_update(struct work_table *table, const struct setting *setting, double updated);

/* Parameters (elements) that one rank holds of a virtual stage before ZeRO: dense part and routed-expert part. */
struct stage_parameters {
    double dense, experts;
};
/* The number of these parameters whose optimizer states ZeRO leaves on a rank; and the number of a layer's weights that a rank
 * casts where products are narrow: those it holds, with ZeRO-3 before they are gathered. */
double work_own_parameters(const struct layout *layout, struct stage_parameters parameters);
double work_cast_parameters(const struct layout *layout, struct stage_parameters layers);
/* Whether every replica ends with all gradients summed: states are not divided, or are divided by whole parameters
 * (job.muon_shard). */
bool work_reduces_whole(const struct layout *layout, const struct job *job);
/* Number of buckets in which a stage of one chunk of `layers` layers exchanges gradients during its passes. A bucket has 40
 * million parameters (Megatron-LM's default), or a million per replica if that is more, because small messages over many ranks
 * are all latency. There are at least four, so that most of the exchange overlaps with the last pass. */
int work_gradient_buckets(const struct layout *layout, struct stage_parameters trained, int layers);
/* The number of these parameters whose reduced gradients a rank holds. */
double work_reduced_parameters(const struct layout *layout, const struct job *job, struct stage_parameters parameters);
/* A rank's parameters of the token table, or of the output matrix; and the number of these tables that a virtual stage holds. */
double work_table_parameters(const struct layout *layout, const struct transformer *model);
int work_tables(const struct layout *layout, const struct transformer *model, bool embedding, bool head);
/* Whether the last stage holds a copy of the first stage's token table, because it is also the output matrix or because
 * prediction modules read it. */
bool work_shares_table(const struct layout *layout, const struct transformer *model);
struct stage_parameters work_stage_parameters(const struct layout *layout, const struct setting *setting,
                                              struct layer_range range, bool embedding, bool head);
/* The trained ones among these, which have gradients and optimizer states: all, or those of adapters and of tables trained with
 * them. */
struct stage_parameters work_trained_parameters(const struct layout *layout, const struct setting *setting,
                                                struct layer_range range, bool embedding, bool head);

/* Conventions for the FLOPs that a model needs for one step of the whole job: forward and backward, no recomputation. This is
 * the numerator of MFU. */
enum flop_convention {
    FLOPS_FULL,   /* attention over all s * s pairs (MegaScale, Megatron papers), or the pairs of a window where one is used */
    FLOPS_CAUSAL, /* attention over the causal half (current Megatron-LM) */
    FLOPS_MASKED, /* attention over the pairs that masks between documents leave; the others ignore these masks */
};
/* Width of the attention window of a layer in tokens, 0: full. MegaScale does not publish its window. The FLOP counts it prints
 * imply that two causal windows cover about 1,230 of 2,048 tokens, which 3/8 of the sequence gives. This default applies when
 * FEATURE_SLIDING_WINDOW is on and neither job nor model specifies a window. */
#define SLIDING_WINDOW_ASSUMED 0.375
double sliding_window_width(const struct setting *setting, feature_set features, int layer);
/* Query-key pairs of one head and sequence under the causal mask, in a band of `window` tokens if that is above 0. */
double attended_pairs(double seq_len, double window);
double model_flops_per_step(const struct setting *setting, feature_set features, enum flop_convention convention);

#endif
