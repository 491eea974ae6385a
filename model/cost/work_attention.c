/* The core of attention: fused into one kernel, or as GEMMs and passes over the score matrix; and the ring of context
 * parallelism. */
#include "model/cost/work_layer.h"

static double window_of(const struct layer_builder *b, bool windowed)
{
    if (!windowed && !builder_has(b, FEATURE_BIT(SLIDING_WINDOW)))
        return 0;
    const struct setting setting = {.model = b->model, .job = b->job};
    int layer = 0; /* any layer that has a window, when this one has */
    while (windowed && layer + 1 < b->model->layers && !layer_is_windowed(b->model, layer))
        layer++;
    return sliding_window_width(&setting, b->layout->features, layer);
}

/* Stacks with fused operators (Transformer Engine) call the vendor's best kernel by the name of FlashAttention-2; others mean it.
 */
static int generation_of(const struct layer_builder *b)
{
    if (builder_has(b, FEATURE_BIT(FLASH_ATTENTION3)))
        return 3;
    if (builder_has(b, FEATURE_BIT(FLASH_ATTENTION2)))
        return builder_has(b, FEATURE_BIT(FUSED_OPS)) ? 3 : 2;
    return builder_has(b, FEATURE_BIT(FLASH_ATTENTION)) ? 1 : 0;
}

static struct work_attention attention_shape(const struct layer_builder *b, bool windowed)
{
    const struct transformer *m = b->model;
    const struct layout *l = b->layout;
    bool latent = m->attention == ATTENTION_LATENT;
    double s = (double)b->job->seq_len;
    return (struct work_attention){
        .batch = l->micro_batch,
        .query_tokens = (int64_t)(s / l->cp),
        .key_tokens = (int64_t)s,
        .pairs = attended_pairs(s, window_of(b, windowed)) / l->cp, /* two-chunk order balances the triangle among cp ranks */
        .heads = m->heads / l->tp,
        .kv_heads = m->kv_heads >= l->tp ? m->kv_heads / l->tp : 1,
        .head_dim = latent ? m->latent.qk_nope_dim + m->latent.qk_rope_dim : m->head_dim,
        .value_dim = latent ? m->latent.v_dim : m->head_dim,
        .precision = PRECISION_BF16,
        .alibi = m->position == POSITION_ALIBI,
        .fused = generation_of(b),
    };
}

static int32_t fused_kernel(struct layer_builder *b, struct work_attention shape, bool backward)
{
    double flops =
        2.0 * (shape.head_dim + shape.value_dim) * shape.pairs * (double)shape.batch * shape.heads * (backward ? 2.5 : 1);
    struct work work = {.kind = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION,
                        .class = b->recomputing ? CLASS_RECOMPUTE : CLASS_ATTENTION,
                        .label = "attention",
                        .flops = flops,
                        .attention = shape};
    return work_add(b->table, work);
}

/* Batched GEMMs over heads, the whole square (the mask saves nothing). */
static void score_gemm(struct layer_builder *b, const struct work_attention *a, const char *label, bool inner)
{
    struct work_gemm gemm = {
        .m = a->query_tokens, .n = a->key_tokens, .k = a->head_dim, .precision = PRECISION_BF16, .output_bytes = 2};
    if (!inner) {
        gemm.n = a->head_dim;
        gemm.k = a->key_tokens;
    }
    gemm.count = (int32_t)(a->batch * a->heads);
    gemm.sliced = true;
    double flops = 2.0 * gemm.count * (double)gemm.m * (double)gemm.n * (double)gemm.k;
    struct work work = {.kind = WORK_GEMM,
                        .class = b->recomputing ? CLASS_RECOMPUTE : CLASS_ATTENTION,
                        .label = label,
                        .flops = flops,
                        .gemm = gemm};
    builder_append(b, work_add(b->table, work));
}

/* Passes over the score matrix, bytes an element. Fused: scale, mask and softmax read 2 and write 2; backward reads 2 + 2 and
 * writes 2. Eager: scale (2 + 2), mask (2 + 1 + 2), to fp32 (2 + 4), softmax (4 + 4), back (4 + 2) = 27; backward the same five
 * with their gradients: 6 + 12 + 6 + 4 + 4 = 32. Dropout, where there is any, 2 + 2 + 1 (mask) each way. */
static void score_passes(struct layer_builder *b, const struct work_attention *a, bool backward)
{
    double elements = (double)a->batch * a->heads * (double)a->query_tokens * (double)a->key_tokens;
    bool fused = layout_fuses_softmax(b->layout, b->model->heads);
    double dropout = b->model->linear_bias ? 5 : 0; /* the Llama line trains without */
    double bytes = backward ? (fused ? 6 : 32) : (fused ? 4 : 27);
    builder_memory(b, CLASS_ATTENTION, MEMORY_STREAM, "softmax", elements * (bytes + dropout), fused ? 2 : 5);
}

static void unfused(struct layer_builder *b, const struct work_attention *a, bool backward)
{
    if (!backward) {
        score_gemm(b, a, "scores", true);
        score_passes(b, a, false);
        score_gemm(b, a, "context", false);
        return;
    }
    score_gemm(b, a, "d_probabilities", true);
    score_gemm(b, a, "d_value", false);
    score_passes(b, a, true);
    score_gemm(b, a, "d_query", false);
    score_gemm(b, a, "d_key", false);
}

/* Ring attention: keys and values travel around the cp ranks while blocks are computed; gradients travel with them on the way
 * back. */
static int32_t ring_exchange(struct layer_builder *b, const struct work_attention *a, bool backward)
{
    double kv = (double)a->batch * (double)a->key_tokens * a->kv_heads * (a->head_dim + a->value_dim) * 2;
    return builder_exchange(b, CLASS_CP_COMM, "ring", COLLECTIVE_ALL_GATHER, GROUP_CP, kv * (backward ? 2 : 1));
}

void attention_core(struct layer_builder *b, bool windowed, bool backward)
{
    struct work_attention shape = attention_shape(b, windowed);
    if (!builder_has(b, FEATURES_FLASH)) {
        if (b->layout->cp > 1)
            builder_append(b, ring_exchange(b, &shape, backward));
        unfused(b, &shape, backward);
        return;
    }
    int32_t kernel = fused_kernel(b, shape, backward);
    int pieces = b->layout->cp < WORK_RING_PIECES_MAX ? b->layout->cp : WORK_RING_PIECES_MAX;
    if (b->layout->cp > 1)
        builder_append(b, work_add_overlapped(b->table, kernel, ring_exchange(b, &shape, backward), pieces));
    else
        builder_append(b, kernel);
}
