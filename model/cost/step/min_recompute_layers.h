/*
 * min_recompute_layers.h - how few layers of each virtual stage must be repeated for a layout to fit.
 *
 * Where keeping all activations takes too much memory and repeating all layers (full) leaves some of it, the first n layers of
 * each virtual stage (full:n) are enough. Among the n that fit the least takes the least time. They are found by bisection: what
 * stages hold at the end of their forward passes falls with n, and what they hold while layers are repeated is at no n more than
 * at all of them, which fit; so of the n below full those that fit are the largest ones.
 */
#ifndef MSIM_MODEL_COST_STEP_MIN_RECOMPUTE_LAYERS_H
#define MSIM_MODEL_COST_STEP_MIN_RECOMPUTE_LAYERS_H

#include "model/cost/step/closed_form.h"

/* What a layout needs of a GPU's memory, or, where it needs more of the host's than there is, so much more than limit_bytes, what
 * there is of the GPU's. The layout must be legal. */
double memory_needed(struct closed_form *form, const struct setting *setting, const struct layout *layout, double limit_bytes);

/* The least n below the layers of the largest virtual stage at which `full`, a legal layout that recomputes whole layers and
 * fits, fits as full:n; 0: there is none, or none is legal. About log2 of the layers footprints. */
int min_recompute_layers(struct closed_form *form, const struct setting *setting, const struct layout *full, double limit_bytes);

#endif
