/*
 * footprint.h - memory of one rank. Bytes, by what they are for.
 */
#ifndef MSIM_MODEL_COST_MEMORY_FOOTPRINT_H
#define MSIM_MODEL_COST_MEMORY_FOOTPRINT_H

#include "model/cost/memory/stage_load.h"

struct footprint {
    double weights, gradients, optimizer, activations, buffers, framework;
    double total;
    double frozen; /* of the weights those that are not trained */
    double host;   /* in the memory of the host; not in the total */
};

/* Features that no footprint depends on: the search asks once for layouts that differ in these alone. */
#define FOOTPRINT_IGNORES (FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP))

/* Bytes that a layer keeps of a micro-batch from its forward to its backward pass. */
double footprint_layer_bytes(const struct layout *layout, const struct setting *setting, struct layer_kind kind);

/*
 * Bytes of what context parallelism has under way at the most, in a layer's backward pass; 0 without it.
 *
 *   ring        two blocks of keys and values, the one in use and the one that comes, and of their gradients: four ranks' worth
 *   gathered    all keys and values of the micro-batch; their gradients; these in the order of ranks; the rank's own: 3 k + 1
 *               for k ranks
 *   heads       (all-to-all) the gradients of queries, keys and values as attention gives them, as they are sent, as they arrive
 *
 * The second is for elements of element_bytes bytes, and of the runtime, which executes a ring by gathering.
 */
double footprint_context_bytes(const struct layout *layout, const struct setting *setting);
double footprint_executed_context_bytes(const struct layout *layout, const struct setting *setting, double element_bytes);

/* Bytes of what a layer that mixes by state has of its chunks' states while its backward pass runs: the states, in half
 * precision, and their gradients in fp32. They are computed again, not kept. 0 of a model without such layers. */
double footprint_states_bytes(const struct layout *layout, const struct setting *setting);

/*
 * Whether a pipeline of ZeRO 2 shards a chunk's gradients while others are still at work. Where an interleaved schedule has one
 * round, m <= p micro-batches, all forward passes come before all backward ones, and those of a chunk follow one another. Behind
 * the last of them its gradients are complete and can be reduced to the rank's share, so that at the most those of two chunks are
 * whole, the one under way and the one being reduced. Otherwise every chunk's add up until the last round. Source: Llama 3's
 * pre-training (from memory: arXiv:2407.21783, section 3.3.2, which shards gradients within its pipeline; Chu et al., "Scaling
 * Llama 3 Training with Efficient Parallelism Strategies", ISCA 2025, which draws both life times); PyTorch's pipeline stages
 * over FSDP do the same (from memory: they hold back the reduction until a stage's last backward pass). Megatron-LM's distributed
 * optimizer keeps gradients whole: zero=1.
 */
bool footprint_shards_gradients_in_turn(const struct layout *layout, const struct setting *setting);

/* Peak of the pipeline stage that needs most (`host`: of the one that needs most of that), or of one stage. */
void footprint_of_stage(const struct layout *layout, const struct setting *setting, int stage, struct footprint *out);
void footprint_peak(const struct layout *layout, const struct setting *setting, struct footprint *out, int *stage);

/*
 * What was found of one layout and holds for the next: what stages hold; their states, which neither micro-batch nor
 * recomputation change, by ZeRO stage; what their layers keep, which sharding changes no further than that weights are sharded or
 * not. All zero: nothing yet.
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
    struct stage_footprint *stages; /* of each full stage */
    size_t capacity;
    double buffers;
    struct layout states[FOOTPRINT_ZEROS], activations; /* whose they are; tp 0: nobody's */
    struct footprint peak;                              /* of the layout asked for last */
    int peak_zero, peak_stage;
};
void footprint_memo_free(struct footprint_memo *memo);
/* footprint_peak, of many layouts of one setting; good until the next one is asked for. */
const struct footprint *footprint_peak_of(struct footprint_memo *memo, const struct layout *layout,
                                          const struct setting *setting);
/* What fits: the GPU's memory less what the driver and fragmentation take. */
double footprint_capacity(const struct cluster *cluster);

#endif
