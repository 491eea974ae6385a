/* work_attention.c - the core of attention: one fused kernel, or GEMMs and passes over the score matrix; and its exchanges for
 * context parallelism. */
#include "model/cost/work/documents.h"
#include "model/cost/work/work_layer.h"

double sliding_window_width(const struct setting *setting, feature_set features, int layer)
{
    const struct transformer *m = setting->model;
    double s = (double)setting->job->seq_len;
    if (features & FEATURE_BIT(SLIDING_WINDOW)) {
        if (setting->job->window > 0)
            return (double)setting->job->window;
        if (m->window == 0)
            return s * SLIDING_WINDOW_ASSUMED;
    }
    if (layer_is_windowed(m, layer))
        return (double)m->window;
    return m->indexer.heads > 0 ? m->indexer.top_k : 0; /* an indexer picks this number of keys */
}

double attended_pairs(double s, double window)
{
    if (window > 0 && window < s)
        return s * window - window * (window - 1) / 2;
    return s * (s + 1) / 2;
}

static double window_of(const struct layer_builder *b, bool windowed)
{
    if (!windowed && !builder_has(b, FEATURE_BIT(SLIDING_WINDOW)))
        return b->model->indexer.heads > 0 ? b->model->indexer.top_k : 0;
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

/* Chunks 0 to 2 k - 1 of a sequence go to k ranks, i and 2 k - 1 - i to one: with half a triangle each they have equally many
 * pairs. Documents leave late queries less than their share; what grows ever slower is most in the middle. */
static double fullest_rank(const struct documents *documents, double tokens, double window, int ranks, double all)
{
    double chunk = tokens / (2.0 * ranks);
    if (ranks == 1)
        return 1;
    double middle =
        documents_pairs(documents, (ranks + 1) * chunk, window) - documents_pairs(documents, (ranks - 1) * chunk, window);
    return ranks * middle / all;
}

/* Pairs inside the first and the last chunk, and from that to this: what a rank attends to in the first step of a ring. A span of
 * n tokens has H(n) pairs, two chunks D apart have H(D + chunk) - 2 H(D) + H(D - chunk) between them. */
static double own_share(const struct documents *documents, double tokens, double window, int ranks, double all)
{
    double chunk = tokens / (2.0 * ranks);
    if (ranks == 1)
        return 1;
    double between =
        all - 2 * documents_pairs(documents, tokens - chunk, window) + documents_pairs(documents, tokens - 2 * chunk, window);
    return ranks * (2 * documents_pairs(documents, chunk, window) + between) / all;
}

/* What masks between documents leave. Attention that is not fused computes the whole matrix and masks it. */
static void mask_documents(const struct layer_builder *b, double window, struct work_attention *shape)
{
    const struct documents *lengths = &b->job->documents;
    double s = (double)b->job->seq_len;
    int ranks = layout_cp_keys(b->layout);
    if (!job_masks_documents(b->job) || !builder_has(b, FEATURES_FLASH))
        return;
    double pairs = documents_pairs(lengths, s, window);
    shape->pairs = pairs / ranks;
    shape->documents = (struct work_documents){.lengths = *lengths,
                                               .sequence = s,
                                               .window = window,
                                               .pairs = pairs,
                                               .fullest = fullest_rank(lengths, s, window, ranks, pairs),
                                               .own = own_share(lengths, s, window, ranks, pairs)};
}

static struct work_attention attention_shape(const struct layer_builder *b, bool windowed)
{
    const struct transformer *m = b->model;
    const struct layout *l = b->layout;
    bool latent = m->attention == ATTENTION_LATENT;
    double s = (double)b->job->seq_len;
    int parts = layout_cp_heads(l), keys = layout_cp_keys(l);
    double window = window_of(b, windowed);
    struct work_attention shape = {
        .batch = l->micro_batch,
        .query_tokens = (int64_t)(s / keys),
        .key_tokens = (int64_t)s,
        .pairs = attended_pairs(s, window) / keys, /* two-chunk order balances the triangle among the ranks */
        .heads = m->heads / l->tp / parts,
        .kv_heads = layout_sent_kv_heads(l, m) / parts,
        .head_dim = latent ? m->latent.qk_nope_dim + m->latent.qk_rope_dim : m->head_dim,
        .value_dim = latent ? m->latent.v_dim : transformer_value_dim(m),
        .precision = PRECISION_BF16,
        .alibi = m->position == POSITION_ALIBI,
        .fused = generation_of(b),
    };
    mask_documents(b, window, &shape);
    return shape;
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

/* --- context parallelism: work_layer.h has what travels, and what each of its stacks does beside that */

enum { BF16 = 2, READ_WRITE = 2 * BF16 };

/* Elements of queries, keys and values (or of what attention gives) of a rank's own tokens as they are sent. */
static double sent_elements(const struct layer_builder *b, const struct work_attention *a, bool context)
{
    double heads = b->model->heads / b->layout->tp, kv_heads = layout_sent_kv_heads(b->layout, b->model);
    return b->tokens * (context ? heads * a->value_dim : heads * a->head_dim + kv_heads * (a->head_dim + a->value_dim));
}

/* Elements of all keys and values that a rank attends to. */
static double key_elements(const struct work_attention *a)
{
    return (double)a->batch * (double)a->key_tokens * a->kv_heads * (a->head_dim + a->value_dim);
}

/* Heads for tokens, or back: packed by the rank they go to, exchanged, put where they belong. */
static void swap_heads(struct layer_builder *b, const struct work_attention *a, bool context, const char *label)
{
    double elements = sent_elements(b, a, context);
    builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_STREAM, "pack_heads", elements * READ_WRITE, 1);
    builder_append(b, builder_exchange(b, CLASS_CP_COMM, label, COLLECTIVE_ALL_TO_ALL, GROUP_CP_HEADS, elements * BF16));
    builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_STREAM, "place_heads", elements * READ_WRITE, 1);
}

static int32_t keys_exchange(struct layer_builder *b, const struct work_attention *a, const char *label,
                             enum collective collective, double times)
{
    return builder_exchange(b, CLASS_CP_COMM, label, collective, GROUP_CP, key_elements(a) * BF16 * times);
}

/* What ranks bring stands in their order, attention wants that of the sequence. */
static void order_keys(struct layer_builder *b, const struct work_attention *a)
{
    builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_STREAM, "order_keys", key_elements(a) * READ_WRITE, 1);
}

/* Each step of a ring but the first adds to what there is: forward the output, by the log-sum-exp of either; backward the
 * gradients of the queries. A step whose keys all come before the queries has all of them and half the keys, another half of the
 * queries and all keys of the block: three quarters on average (Transformer Engine; read, read, write). */
static void merge_steps(struct layer_builder *b, const struct work_attention *a, bool backward)
{
    int steps = layout_cp_keys(b->layout) - 1;
    double elements = (double)a->batch * (double)a->query_tokens * a->heads * (backward ? a->head_dim : a->value_dim);
    builder_memory(b, CLASS_ATTENTION, MEMORY_STREAM, "merge_steps", steps * 0.75 * elements * 3 * BF16, steps);
}

static void attend(struct layer_builder *b, const struct work_attention *a, bool backward)
{
    if (builder_has(b, FEATURES_FLASH))
        builder_append(b, fused_kernel(b, *a, backward));
    else
        unfused(b, a, backward);
}

/* Keys and values travel around the ranks while blocks are computed; gradients travel with them on the way back. */
static void attend_around(struct layer_builder *b, const struct work_attention *a, bool backward)
{
    int steps = layout_cp_keys(b->layout), pieces = steps < WORK_RING_PIECES_MAX ? steps : WORK_RING_PIECES_MAX;
    int32_t exchange = keys_exchange(b, a, "ring", COLLECTIVE_ALL_GATHER, backward ? 2 : 1);
    if (builder_has(b, FEATURES_FLASH)) {
        builder_append(b, work_add_overlapped(b->table, fused_kernel(b, *a, backward), exchange, pieces));
        merge_steps(b, a, backward);
    } else {
        builder_append(b, exchange);
        unfused(b, a, backward);
    }
}

/* Keys and values are gathered first, backward once more, and the gradients of all reduced to the ranks they belong to. */
static void attend_gathered(struct layer_builder *b, const struct work_attention *a, bool backward)
{
    builder_append(b, keys_exchange(b, a, "gather_keys", COLLECTIVE_ALL_GATHER, 1));
    order_keys(b, a);
    attend(b, a, backward);
    if (!backward)
        return;
    order_keys(b, a);
    builder_append(b, keys_exchange(b, a, "reduce_keys", COLLECTIVE_REDUCE_SCATTER, 1));
}

static void attend_to_all(struct layer_builder *b, const struct work_attention *a, bool backward)
{
    if (layout_cp_keys(b->layout) == 1)
        attend(b, a, backward);
    else if (cp_comm_gathers(b->layout->cp_comm))
        attend_gathered(b, a, backward);
    else
        attend_around(b, a, backward);
}

/* An indexer's part: queries from the compressed query, a key and weights from the input, on every rank whole; and scores of all
 * pairs, half of the square. Its own loss is not counted; backward, each product is two. */
static void pick_keys(struct layer_builder *b, const struct work_attention *a, bool backward)
{
    const struct transformer *m = b->model;
    const struct key_indexer *x = &m->indexer;
    int64_t from = m->latent.q_lora_rank ? m->latent.q_lora_rank : m->hidden, width = (int64_t)x->heads * x->head_dim;
    struct work_gemm scores = {.m = a->query_tokens,
                               .n = a->key_tokens / 2,
                               .k = x->head_dim,
                               .precision = PRECISION_BF16,
                               .output_bytes = 2,
                               .count = (int32_t)a->batch * x->heads,
                               .sliced = true};
    for (int pass = 0; pass < (backward ? 2 : 1) && x->heads > 0; pass++) {
        enum pass kind = !backward ? PASS_FORWARD : pass ? PASS_BACKWARD_WEIGHT : PASS_BACKWARD_INPUT;
        builder_append(b, builder_linear(b, CLASS_GEMM, "index_query", b->tokens, from, width, kind));
        builder_append(b, builder_linear(b, CLASS_GEMM, "index_key", b->tokens, m->hidden, x->head_dim + x->heads, kind));
        double flops = 2.0 * scores.count * (double)scores.m * (double)scores.n * (double)scores.k;
        struct work work = {.kind = WORK_GEMM,
                            .class = b->recomputing ? CLASS_RECOMPUTE : CLASS_ATTENTION,
                            .label = "index_scores",
                            .flops = flops,
                            .gemm = scores};
        builder_append(b, work_add(b->table, work));
    }
}

void attention_core(struct layer_builder *b, bool windowed, bool backward)
{
    struct work_attention shape = attention_shape(b, windowed);
    bool swaps = layout_cp_heads(b->layout) > 1;
    if (swaps)
        swap_heads(b, &shape, backward, backward ? "context_gradient_to_heads" : "qkv_to_heads");
    pick_keys(b, &shape, backward);
    if (backward || !b->keeps_products)
        attend_to_all(b, &shape, backward);
    if (swaps)
        swap_heads(b, &shape, !backward, backward ? "qkv_gradient_to_tokens" : "context_to_tokens");
}
