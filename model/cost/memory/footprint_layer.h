/*
 * footprint_layer.h - memory of one layer, for footprint.c only; see footprint_layer_bytes.
 */
#ifndef MSIM_MODEL_COST_MEMORY_FOOTPRINT_LAYER_H
#define MSIM_MODEL_COST_MEMORY_FOOTPRINT_LAYER_H

#include "model/cost/memory/footprint.h"

/* Bytes that a layer keeps where nothing of it is repeated. */
double footprint_layer_whole(const struct layout *layout, const struct setting *setting, struct layer_kind kind);
/* Memory besides what is kept while a layer is recomputed: all of it, or of its modules alone what they had not kept. */
double footprint_layer_repeated(const struct layout *layout, const struct setting *setting, struct layer_kind kind);

static inline bool has_any(const struct layout *layout, feature_set any)
{
    return (layout->features & any) != 0;
}

/*
 * An eager pipeline stack: no fused operators, no compiler, and no FSDP (whose frameworks compute the loss in place and free
 * eagerly). Recomputing a layer, its activations stand twice for a moment, and the allocator rounds and splits. These two, and
 * that the loss is taken of gathered logits, were found with the 603 outcomes (263 that ran, 340 out of memory) of Hagemann et
 * al. 2023: 97 % of those that ran out of memory are found and 5 % of those that ran are taken for too large.
 */
static inline bool stack_is_eager(const struct layout *layout)
{
    return layout->zero < 3 && !has_any(layout, FEATURES_FUSING);
}

/* Of a rank. */
static inline double tokens_per_micro_batch(const struct layout *layout, const struct setting *setting)
{
    return (double)layout->micro_batch * (double)setting->job->seq_len / layout->cp;
}

#endif
