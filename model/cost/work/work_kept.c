/*
 * work_kept.c - tensors that a layer keeps for the backward pass in fewer bits than it computes in: a kernel that writes the
 * narrow copy, and one that restores it before it is read.
 *
 *     fp8_activation_input    the inputs of an activation (both halves of a gated one) as E4M3: 2 bytes read and 1 written per
 *                             element, and 1 and 2 to restore. Megatron-Core's activation_func_fp8_input_store, separate kernels;
 *                             DeepSeek-V3 casts inside the neighbouring kernels (arXiv:2412.19437, section 3.3.3)
 *     fp12_attention_output   the output of attention as E5M6 (the same section): 2 read and 1.5 written, and 1.5 and 2 to
 * restore. It is kept once: the operand of the projection's weight gradient, which has a narrow copy elsewhere, is cast from it
 * again
 *
 * Scales, one per 128 elements there, are not counted.
 */
#include "model/cost/work/precision_bytes.h"
#include "model/cost/work/work_layer.h"

void kept_activation_input(struct layer_builder *b, enum work_class class, double elements)
{
    double halves = b->model->gated_mlp ? 2 : 1;
    if (builder_has(b, FEATURE_BIT(FP8_ACTIVATION_INPUT)))
        builder_memory(b, class, MEMORY_STREAM, "kept_input", elements * halves * (2 + 1), 1);
}

void kept_attention_output(struct layer_builder *b, bool backward)
{
    const struct transformer *m = b->model;
    int64_t width = m->heads * (m->attention == ATTENTION_LATENT ? m->latent.v_dim : m->head_dim) / b->layout->tp;
    double elements = b->tokens * (double)width;
    if (!builder_has(b, FEATURE_BIT(FP12_ATTENTION_OUTPUT)))
        return;
    builder_memory(b, CLASS_ATTENTION, MEMORY_STREAM, "kept_output", elements * (2 + 1.5), 1);
    if (backward)
        builder_cast(b, "cast", elements);
}
