/*
 * footprint_layer.h - the memory of one layer; for footprint.c only.
 *
 * Example: a llama2-7b layer, 4,096 tokens, nothing recomputed and fused operators: footprint_layer_whole returns about 0.5
 * GiB.
 */
#ifndef MSIM_MODEL_COST_MEMORY_FOOTPRINT_LAYER_H
#define MSIM_MODEL_COST_MEMORY_FOOTPRINT_LAYER_H

#include "model/cost/memory/footprint.h"

/* Bytes that a layer keeps if nothing of it is recomputed. */
double footprint_layer_whole(const struct layout *layout, const struct setting *setting, struct layer_kind kind);
/* Bytes needed in addition while a layer is recomputed: all of it, or those of its recomputed modules that were not kept. */
double footprint_layer_repeated(const struct layout *layout, const struct setting *setting, struct layer_kind kind);

static inline bool has_any(const struct layout *layout, feature_set any)
{
    return (layout->features & any) != 0;
}

/*
 * Whether a stack is an eager pipeline: no fused operators, no compiler, and no FSDP (whose frameworks compute the loss in
 * place and free eagerly). While such a stack recomputes a layer, its activations exist twice for a moment, and the allocator
 * rounds and splits. These two properties, and that the loss uses gathered logits, were found with the 603 outcomes (263 ran,
 * 340 out of memory) of Hagemann et al. 2023: 97 % of the runs that ran out of memory are predicted so, and 5 % of those that
 * ran.
 */
static inline bool stack_is_eager(const struct layout *layout)
{
    return layout->zero < 3 && !has_any(layout, FEATURES_FUSING);
}

/* Tokens of a micro-batch on one rank. */
static inline double tokens_per_micro_batch(const struct layout *layout, const struct setting *setting)
{
    return (double)layout->micro_batch * (double)setting->job->seq_len / layout->cp;
}

#endif
