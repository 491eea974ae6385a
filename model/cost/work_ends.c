/* What stands before the first layer and after the last one. */
#include "model/cost/work_layer.h"

/* Token lookup writes T h (a gather reads as much), learned positions add a read; dropout of the GPT line a mask. The table is
 * split over tp by vocabulary: partial rows are summed by an exchange. Backward scatters into the table's gradient. */
void embedding_works(struct layer_builder *b, bool backward)
{
    double elements = b->tokens * (double)b->model->hidden;
    double bytes = elements * (backward ? 2 + 8 : 2 * 2 + (b->model->position == POSITION_LEARNED ? 4 : 0));
    bool sharded = b->layout->sequence_parallel, exchanges = b->layout->tp > 1 && (sharded || !backward);
    enum collective c = sharded ? (backward ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER) : COLLECTIVE_ALL_REDUCE;
    int32_t exchange = exchanges ? builder_exchange(b, CLASS_TP_COMM, "embedding_exchange", c, GROUP_TP, elements * 2) : -1;
    if (exchanges && backward) /* the gradient of all tokens is gathered before it is scattered into the table */
        builder_append(b, exchange);
    builder_memory(b, CLASS_EMBEDDING, backward ? MEMORY_EMBEDDING_BACKWARD : MEMORY_EMBEDDING, "embedding", bytes,
                   backward ? 2 : 3);
    if (exchanges && !backward)
        builder_append(b, exchange);
}

/* Cross entropy over T x V/tp logits. Vocabulary-parallel in fp32: cast (2 + 4), maximum (4), subtract and exponentiate (4 + 4),
 * sum (4), divide (4 + 4); fused: read twice, write once. Backward: scale the probabilities (4 + 4) and cast (4 + 2), fused in
 * one. Eager code on a whole vocabulary, gathered or never split, has PyTorch's: cast, log-softmax (4 + 4); backward a gradient
 * of zeros (4), log-softmax (4 + 4 + 4), cast. */
static void cross_entropy(struct layer_builder *b, bool backward)
{
    /* Megatron fused its loss years after its layers: stacks of the age of overlapped exchanges have it. */
    bool fused = builder_has(b, FEATURE_BIT(COMPILE)) ||
                 (builder_has(b, FEATURE_BIT(FUSED_OPS)) && builder_has(b, FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(ASYNC_TP)));
    enum memory_kernel kernel = backward ? MEMORY_LOSS_BACKWARD : MEMORY_LOSS;
    double logits = b->tokens * (double)b->model->vocab;
    bool whole = b->layout->tp == 1 && !builder_has(b, FEATURES_FUSING);
    if (whole || head_gathers(b->layout, b->model)) {
        builder_memory(b, CLASS_HEAD, kernel, "cross_entropy", logits * (backward ? 22 : 14), 3);
        return;
    }
    double bytes = backward ? (fused ? 6 : 14) : (fused ? 12 : 30);
    builder_memory(b, CLASS_HEAD, kernel, "cross_entropy", logits / b->layout->tp * bytes, fused ? 2 : 7);
}

bool head_gathers(const struct layout *layout, const struct transformer *model)
{
    return layout_follows_llama(layout, model);
}

static int32_t head_exchange(struct layer_builder *b, bool backward)
{
    const struct layout *l = b->layout;
    if (l->tp == 1)
        return -1;
    double bytes = b->tokens * (double)b->model->hidden * 2;
    if (backward)
        return builder_exchange(b, CLASS_TP_COMM, "head_exchange",
                                l->sequence_parallel ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE, GROUP_TP, bytes);
    return l->sequence_parallel ? builder_exchange(b, CLASS_TP_COMM, "head_exchange", COLLECTIVE_ALL_GATHER, GROUP_TP, bytes)
                                : -1;
}

void head_works(struct layer_builder *b, bool backward, bool input, bool weight)
{
    int64_t h = b->model->hidden, v = b->model->vocab / b->layout->tp;
    double norm_bytes = b->local_tokens * (double)h * 2 * (backward ? 5 : 2);
    int32_t exchange = input || !backward ? head_exchange(b, backward) : -1;
    if (!backward) {
        builder_memory(b, CLASS_HEAD, MEMORY_NORM, "final_norm", norm_bytes, 1);
        if (exchange >= 0)
            builder_append(b, exchange);
        builder_append(b, builder_linear(b, CLASS_HEAD, "logits", b->tokens, h, v, PASS_FORWARD));
        if (b->layout->tp > 1 && head_gathers(b->layout, b->model))
            builder_append(b, builder_exchange(b, CLASS_TP_COMM, "gather_logits", COLLECTIVE_ALL_GATHER, GROUP_TP,
                                               b->tokens * (double)b->model->vocab * 2));
        cross_entropy(b, false);
        return;
    }
    if (input) {
        cross_entropy(b, true);
        builder_append(b, builder_linear(b, CLASS_HEAD, "logits", b->tokens, h, v, PASS_BACKWARD_INPUT));
    }
    if (weight)
        builder_weight_gradient(b, builder_linear(b, CLASS_HEAD, "logits", b->tokens, h, v, PASS_BACKWARD_WEIGHT), exchange,
                                (double)h * (double)v);
    else if (exchange >= 0)
        builder_append(b, exchange);
    if (input)
        builder_memory(b, CLASS_HEAD, MEMORY_NORM_BACKWARD, "final_norm", norm_bytes, 2);
}
