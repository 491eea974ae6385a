/*
 * min_recompute_layers.h - the smallest number of recomputed layers per virtual stage with which a layout fits into memory.
 *
 * Example: virtual stages of 12 layers; the layout fits with recompute=full (all layers), but not with recompute=none.
 *
 *     min_recompute_layers(form, &setting, &full, limit_bytes)     5: recompute=full:5 fits, full:4 does not
 *
 * Among the n for which full:n fits, the smallest takes the least time. It is found by bisection. The memory at the end of the
 * forward passes falls with n. The memory while layers are recomputed is for no n larger than for all layers, which fit. So if
 * n fits, every larger n fits too.
 */
#ifndef MSIM_MODEL_COST_STEP_MIN_RECOMPUTE_LAYERS_H
#define MSIM_MODEL_COST_STEP_MIN_RECOMPUTE_LAYERS_H

#include "model/cost/step/closed_form.h"

/* Bytes of GPU memory that a legal layout needs. Where it needs more memory of the host than there is, the result is
 * limit_bytes plus the missing bytes; it then does not fit. */
double memory_needed(struct closed_form *form, const struct setting *setting, const struct layout *layout, double limit_bytes);

/* The smallest n, below the number of layers of the largest virtual stage, for which full:n is legal and fits. `full` must be a
 * legal layout that recomputes whole layers and fits. 0: there is none. Cost: about log2(layers) footprints. */
int min_recompute_layers(struct closed_form *form, const struct setting *setting, const struct layout *full, double limit_bytes);

#endif
