/*
 * attention.h - time of softmax(Q K^T) V, forward and backward.
 *
 * Fused kernels (FlashAttention and its kin) keep scores on chip. Each query-key pair costs 2 (head_dim + value_dim) FLOPs per
 * head forward, 2.5 times that backward (five products instead of two). With span = mean attended tokens, d the head dimension, p
 * the peak,
 *
 *     time = fixed + pairs FLOPs / (p f d/(d + d_half) (128 + d_half)/128) (1 + half_tokens / span) waves(x) / x
 *
 * x = thread blocks (batch, heads, blocks of 128 queries) per SM. The span term is what masked parts of diagonal blocks, prologue
 * and softmax cost on short sequences. Generations of fused kernels differ by their published speeds: FlashAttention-2 is the
 * fitted one; the first reached about 0.6 of it (Dao 2023, arXiv:2307.08691, figures 4-6: 1.7 to 3 times faster).
 *
 * Unfused attention writes and reads the score matrix: two GEMMs per head batch plus passes over batch * heads * s * s elements;
 * it is built from GEMM and memory-bound works (work_layer.c), not here.
 */
#ifndef MSIM_MODEL_COST_ATTENTION_H
#define MSIM_MODEL_COST_ATTENTION_H

#include "model/cost/cost.h"
#include "model/cost/work.h"

struct cost attention_cost(const struct gpu *gpu, const struct work_attention *attention, bool backward);

#endif
