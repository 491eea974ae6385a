/*
 * job.h - the training job: batch, sequence length, precisions, optimizer, and software features.
 *
 * Example: {global_batch: 6144, seq_len: 2048, precision: bf16, optimizer: adam, features: [flash_attention2, tp_overlap]}
 *
 * A feature changes the program or a cost for a physical reason, which the list below gives. A search may use any of the job's
 * features; a step uses all of them.
 */
#ifndef MSIM_MODEL_SPEC_JOB_H
#define MSIM_MODEL_SPEC_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/spec/expert_load.h"
#include "model/spec/gpu.h"

/* The largest accepted batch of a step, in sequences and in tokens. */
#define JOB_SEQUENCES_MAX 1000000000
#define JOB_TOKENS_MAX    1e12
/* The largest number of GPUs that an option accepts. */
#define JOB_GPUS_MAX 10000000

/* Muon (K. Jordan and others, 2024) updates the matrices of the layers with their momentum, made orthogonal. The rest (tables,
 * the output matrix, norms, biases) uses Adam, as in every published use. */
enum optimizer { OPTIMIZER_ADAM, OPTIMIZER_LAMB, OPTIMIZER_SGD, OPTIMIZER_MUON, N_OPTIMIZERS };
extern const char *const optimizer_names[N_OPTIMIZERS + 1]; /* by enum optimizer; NULL after the last */

/* Muon with a matrix that tensor parallelism divides: each rank treats its block as a matrix of its own, or all ranks gather
 * the blocks and each computes the whole (Megatron-LM, --muon-tp-mode). */
enum muon_tp { MUON_BLOCKWISE, MUON_DUPLICATED, N_MUON_TP };
extern const char *const muon_tp_names[N_MUON_TP + 1];

/* How replicas divide the states of Muon: each has a share of the elements of a parameter, as in FSDP2 and ZeRO, or one of
 * them, its owner, has the whole (Megatron-Core's layer-wise distributed optimizer, --optimizer dist_muon). */
enum muon_shard { MUON_ELEMENTS, MUON_LAYER_WISE, N_MUON_SHARDS };
extern const char *const muon_shard_names[N_MUON_SHARDS + 1];

/*
 * Low-rank adapters (LoRA; Hu and others, arXiv:2106.09685): the weights of the model are frozen, and next to each target
 * matrix W [out, in] two thin matrices are trained, A [rank, in] and B [out, rank]:
 *
 *     y = W x + scale B (A x)
 *
 * The scale (alpha / rank) costs no time. Targets are matrices of a layer: those for queries, keys and values (in latent
 * attention its down- and up-projections); the output projection of attention; the gate and up matrices of a dense feed-forward
 * part; its down matrix. Matrices that the stack fuses (queries, keys and values; gate and up) share one adapter.
 *
 * The token table and the output matrix may be trained whole as well (peft's modules_to_save), as new tokens need it. If they
 * are one table, either name means both.
 */
enum adapter_target { ADAPT_QKV, ADAPT_PROJECTION, ADAPT_MLP_UP, ADAPT_MLP_DOWN, N_ADAPTER_TARGETS };
extern const char *const adapter_target_names[N_ADAPTER_TARGETS + 1]; /* by enum adapter_target; NULL after the last */
enum adapter_whole { WHOLE_EMBEDDING, WHOLE_HEAD, N_ADAPTER_WHOLES };
extern const char *const adapter_whole_names[N_ADAPTER_WHOLES + 1]; /* by enum adapter_whole; NULL after the last */

struct adapter {
    int64_t rank;     /* 0: no adapters, all weights are trained */
    uint32_t targets; /* bit i is enum adapter_target i */
    uint32_t whole;   /* bit i is enum adapter_whole i */
};

/*
 * Documents that are packed into sequences, with attention masked between them. They follow one another and the stream is cut
 * into sequences, so a sequence may begin and end inside a document. Lengths are log-normal.
 */
struct documents {
    double mean;   /* tokens; 0: attention sees whole sequences */
    double spread; /* standard deviation of the logarithm of a length; 0: equal lengths */
};

#define FEATURES(X)                                                                                                              \
    X(FLASH_ATTENTION, "flash_attention", "compute attention in one kernel, without an s x s matrix in memory")                  \
    X(FLASH_ATTENTION2, "flash_attention2", "the same, with better work division among warps")                                   \
    X(FLASH_ATTENTION3, "flash_attention3", "the same, with asynchronous tensor cores (Hopper and later)")                       \
    X(FUSED_SOFTMAX, "fused_softmax", "scale, mask and normalise the scores in one pass")                                        \
    X(FUSED_OPS, "fused_ops", "fuse bias, dropout, residual and activation; fuse norms")                                         \
    X(FUSED_RMSNORM, "fused_rmsnorm", "compute RMS norm in one pass over memory instead of several")                             \
    X(PARALLEL_BLOCK, "parallel_block", "compute attention and MLP in parallel: one norm, half the TP exchanges")                \
    X(SLIDING_WINDOW, "sliding_window", "limit attention to a window of tokens")                                                 \
    X(TP_OVERLAP, "tp_overlap", "overlap TP exchanges with their GEMMs, in chunks")                                              \
    X(ASYNC_TP, "async_tp", "the same, as compilers implement it")                                                               \
    X(PP_OVERLAP, "pp_overlap", "overlap pipeline messages with computation")                                                    \
    X(DP_OVERLAP, "dp_overlap", "overlap gradient and parameter exchanges with computation")                                     \
    X(SCATTER_GATHER_P2P, "scatter_gather_p2p", "send each activation once per TP group between stages")                         \
    X(ASYNC_DATA, "async_data", "prepare the next batch during the step")                                                        \
    X(COMPILE, "compile", "fuse element-wise kernels with a graph compiler")                                                     \
    X(CUDA_GRAPHS, "cuda_graphs", "remove the launch cost of each kernel")                                                       \
    X(EP_OVERLAP, "ep_overlap", "pair forward and backward passes; each hides the exchanges of the other")                       \
    X(FUSED_LOSS, "fused_loss", "compute cross entropy in two passes over the logits")                                           \
    X(FUSED_LINEAR_LOSS, "fused_linear_loss",                                                                                    \
      "compute logits, loss and gradients in chunks of tokens; keep one chunk of logits")                                        \
    X(CUT_LOSS, "cut_loss", "keep no logits in memory; recompute them in the backward pass")                                     \
    X(EAGER_LOSS, "eager_loss",                                                                                                  \
      "compute cross entropy from an fp32 copy of the logits, even in a fused, compiled or sharded stack")                       \
    X(FP8_ACTIVATION_INPUT, "fp8_activation_input", "keep the input of activation functions in 8 bits for the backward pass")    \
    X(FP12_ATTENTION_OUTPUT, "fp12_attention_output", "keep the output of attention once, in 12 bits, for the backward pass")

enum feature {
#define X(id, name, what) FEATURE_##id,
    FEATURES(X)
#undef X
        N_FEATURES
};

/* A set of features: bit i is enum feature i. */
typedef uint32_t feature_set;
#define FEATURE_BIT(id) ((feature_set)1 << FEATURE_##id)

/* The default features of current training stacks (Megatron-Core, NeMo). A job that names no features has these, with the
 * generation of attention that features_usual() finds for its GPU. */
#define FEATURES_USUAL                                                                                                           \
    (FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(PP_OVERLAP) |                \
     FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA) | FEATURE_BIT(FUSED_LOSS))

/* Attention as one kernel, any generation. */
#define FEATURES_FLASH (FEATURE_BIT(FLASH_ATTENTION) | FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FLASH_ATTENTION3))
/* Element-wise kernels are fused, by hand or by a compiler; a stack with neither is eager. */
#define FEATURES_FUSING (FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(COMPILE))
/* The projection to the vocabulary and the loss are one operation: the logits are never in memory together. */
#define FEATURES_LINEAR_LOSS (FEATURE_BIT(FUSED_LINEAR_LOSS) | FEATURE_BIT(CUT_LOSS))
/* The features that describe the loss. */
#define FEATURES_LOSS (FEATURE_BIT(FUSED_LOSS) | FEATURE_BIT(EAGER_LOSS) | FEATURES_LINEAR_LOSS)

/* Adds a feature to a set. A generation of FlashAttention replaces the one that the set has. */
feature_set features_with(feature_set features, enum feature feature);

/* FEATURES_USUAL on a GPU: flash_attention instead of flash_attention2 where the GPU has no kernels for the latter. */
feature_set features_usual(const struct gpu *gpu);

extern const char *const feature_names[N_FEATURES + 1]; /* by enum feature; NULL after the last */
const char *feature_name(enum feature feature);
/* Their names in order; "" for none. Returns buffer. */
enum { FEATURES_TEXT = 512 }; /* room for them */
char *features_text(feature_set features, const char *separator, char *buffer, size_t size);
int feature_parse(const char *name); /* -1: unknown */

/* The margin of a job that does not specify one. */
#define MEMORY_MARGIN 0.1

/*
 * Moments. Besides the fp32 master weight Adam and LAMB keep two moments, SGD and Muon's matrices one. They are read and
 * written in the format in which they are kept: fp32; 2 bytes (DeepSeek-V3: both of AdamW's in bf16, arXiv:2412.19437, section
 * 3.3.3; Megatron-Core,
 * --exp-avg-dtype and --exp-avg-sq-dtype); or 1 byte (fp8; 8-bit Adam, arXiv:2110.02861), without the scales of blocks of
 * hundreds or thousands of elements; all from memory. Arithmetic is in fp32. The time of an update is the streaming of its bytes.
 */
struct job {
    int64_t global_batch; /* sequences per step */
    int64_t batch_tokens; /* the same in tokens, while the file is read; 0 afterwards */
    int64_t seq_len;      /* tokens per sequence */
    enum precision precision;
    enum precision gradient_precision; /* of the gradient reduction among replicas: fp32, bf16 or fp16 */
    enum precision moment_precision;   /* of the optimizer's moments in memory: fp32, bf16, fp16 or fp8; see above */
    enum optimizer optimizer;
    enum muon_tp muon_tp;
    enum muon_shard muon_shard;
    feature_set features;
    int64_t window;       /* sliding-window width that FEATURE_SLIDING_WINDOW uses, 0: the model's own */
    double memory_margin; /* share of a GPU's memory that a search for layouts leaves free; 0: it ranks by time alone */
    double tokens;        /* training budget, for days and GPU-hours; 0 not given */
    double clip;          /* largest norm of the gradients; 0: any */
    double dropout;       /* probability that an element of a branch is dropped before the residual sum */
    struct adapter adapter;
    struct expert_load load; /* load of experts, and capacity */
    struct documents documents;
};

/* Whether attention is masked between documents. */
static inline bool job_masks_documents(const struct job *job)
{
    return job->documents.mean > 0;
}

/* Number of moments per parameter, besides the master weight. */
static inline int optimizer_moments(enum optimizer optimizer)
{
    return optimizer == OPTIMIZER_SGD ? 1 : 2;
}

/* Whether adapters are trained and the model's own weights are frozen. */
static inline bool job_adapts(const struct job *job)
{
    return job->adapter.rank > 0;
}
static inline bool job_adapts_target(const struct job *job, enum adapter_target target)
{
    return job_adapts(job) && (job->adapter.targets >> target & 1);
}
/* "qkv, projection"; "embedding and head". Return buffer. */
char *adapter_targets_text(uint32_t targets, const char *separator, char *buffer, size_t size);
char *adapter_wholes_text(uint32_t wholes, const char *separator, char *buffer, size_t size);

#endif
