/*
 * footprint.h - the memory of one rank, in bytes, by use.
 *
 * Example: llama2-7b on 8 H100 with ZeRO-3, micro-batch 1 of 4,096 tokens.
 *
 *     footprint_peak(&layout, &setting, &out, &stage);
 *     out: weights 1.57, gradients 3.14, optimizer 9.41, activations 16.63, buffers 1.48, framework 1.25, total 33.5 GiB
 *     footprint_capacity(cluster)       76.7 GiB: it fits
 *
 * MEMORY.md explains the terms.
 */
#ifndef MSIM_MODEL_COST_MEMORY_FOOTPRINT_H
#define MSIM_MODEL_COST_MEMORY_FOOTPRINT_H

#include "model/cost/memory/stage_load.h"

struct footprint {
    double weights, gradients, optimizer, activations, buffers, framework;
    double total;
    double frozen; /* frozen weights, a part of `weights` */
    double host;   /* in host memory; not in the total */
};

/* Features that do not change footprints. The search computes one footprint for layouts that differ only in these. */
#define FOOTPRINT_IGNORES (FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP))

/* Bytes that a layer keeps for one micro-batch from its forward to its backward pass. */
double footprint_layer_bytes(const struct layout *layout, const struct setting *setting, struct layer_kind kind);

/*
 * Peak bytes in transit for context parallelism, in a layer's backward pass; 0 without it.
 *
 *     ring        two blocks of keys and values (the one in use and the next) and two of their gradients: four ranks' worth
 *     gathered    all keys and values of the micro-batch; their gradients; these in the order of ranks; the rank's own: 3 k + 1
 *                 ranks' worth for k ranks
 *     heads       (all-to-all) the gradients of queries, keys and values as attention produces them, as sent, and as received
 *
 * The second function is for elements of element_bytes bytes, and for the runtime, which executes a ring by gathering.
 */
double footprint_context_bytes(const struct layout *layout, const struct setting *setting);
double footprint_executed_context_bytes(const struct layout *layout, const struct setting *setting, double element_bytes);

/* Peak bytes of the chunk states of a layer with a state mixer, in its backward pass: the states, in half precision, and their
 * gradients in fp32. States are recomputed and not kept. 0 for models without such layers. */
double footprint_states_bytes(const struct layout *layout, const struct setting *setting);

/*
 * Whether a pipeline with ZeRO-2 shards the gradients of a chunk while others still compute.
 *
 * Where an interleaved schedule has one round, m <= p micro-batches, all forward passes come before all backward ones, and the
 * backward passes of a chunk follow one another. After the last of them the chunk's gradients are complete and can be reduced
 * to the rank's share. So at most two chunks have whole gradients: the current one and the one being reduced. With more rounds
 * the gradients of every chunk accumulate until the last round. Source: Llama 3's pre-training (from memory: arXiv:2407.21783,
 * section 3.3.2, which shards gradients within its pipeline; Chu et al., "Scaling Llama 3 Training with Efficient Parallelism
 * Strategies", ISCA 2025, which draws both life times). PyTorch's pipeline stages over FSDP do the same (from memory: they
 * delay the reduction until a stage's last backward pass). Megatron-LM's distributed optimizer keeps gradients whole: zero=1.
 */
bool footprint_shards_gradients_in_turn(const struct layout *layout, const struct setting *setting);

/* The peak of one stage, or of the stage that needs most. The member `host` is that of the stage that needs most host memory. */
void footprint_of_stage(const struct layout *layout, const struct setting *setting, int stage, struct footprint *out);
void footprint_peak(const struct layout *layout, const struct setting *setting, struct footprint *out, int *stage);

/*
 * A memo of parts of footprints, for many layouts of one setting. All zero is empty.
 *
 * It keeps the contents of stages; their states by ZeRO stage, which neither micro-batch nor recomputation change; and the
 * activations of their layers, for which only matters whether weights are sharded.
 */
enum { FOOTPRINT_ZEROS = 4 };
struct kept_of_stage {
    double activations, host;
};
struct stage_footprint {
    struct footprint states[FOOTPRINT_ZEROS];
    struct kept_of_stage kept;
};
struct footprint_memo {
    struct full_stages full;
    struct stage_footprint *stages; /* one per full stage */
    size_t capacity;
    double buffers;
    struct layout states[FOOTPRINT_ZEROS], activations; /* the layouts of these results; tp 0: none */
    struct footprint peak;                              /* of the last layout */
    int peak_zero, peak_stage;
};
void footprint_memo_free(struct footprint_memo *memo);
/* Like footprint_peak. The result is valid until the next call. */
const struct footprint *footprint_peak_of(struct footprint_memo *memo, const struct layout *layout,
                                          const struct setting *setting);
/* Usable bytes: the memory of the GPU minus that of the driver and fragmentation. */
double footprint_capacity(const struct cluster *cluster);

#endif
