/* The settings the suites of this folder share: MegaScale's model on its GPUs, built from the catalog. */
#ifndef MSIM_TESTS_COST_SHAPES_H
#define MSIM_TESTS_COST_SHAPES_H

#include <check.h>

#include "model/cost/work/work.h"

struct shape {
    struct transformer model;
    struct cluster cluster;
    struct job job;
    struct layout layout;
    struct setting setting; /* points into this struct */
};

/* 175B on 256 A100, tp 8, pp 8, vpp 6, dp 4, micro-batch 1, sequence parallel, no feature. */
void shape_megascale(struct shape *shape);
/* A GPT of the given size on one 8-GPU node (Korthikanti et al. table 3). */
void shape_gpt(struct shape *shape, int layers, int64_t hidden, int heads, int tp, int pp, int vpp, int micro_batch);

/* One stage, fused operators and FlashAttention: 2,048 tokens of 12,288 on 8 tensor-parallel ranks, a feed-forward part of 4 h.
 */
void shape_layer(struct shape *shape);
/* DeepSeek-V3's widths on one rank. */
void shape_latent_mixture(struct shape *shape);

/* FLOPs of a pass over the first layers. */
double pass_flops(const struct shape *shape, enum pass pass, int layers);
/* Bytes that one layer more keeps, per token; leaves the model with two. */
double layer_bytes_a_token(struct shape *shape);

Suite *suite_kernels(void);
Suite *suite_collective(void);
Suite *suite_oversubscription(void);
Suite *suite_work(void);
Suite *suite_footprint(void);
Suite *suite_recompute(void);
Suite *suite_closed_form(void);
Suite *suite_pair(void);
Suite *suite_host_memory(void);
Suite *suite_energy(void);
Suite *suite_context(void);
Suite *suite_muon(void);
Suite *suite_mixer(void);
Suite *suite_heads(void);
Suite *suite_adapter(void);
Suite *suite_experts(void);
Suite *suite_documents(void);
Suite *suite_kept(void);

#endif
