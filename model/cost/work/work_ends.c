/* work_ends.c - the work before the first layer and after the last one. */
#include "model/cost/work/adapter.h"
#include "model/cost/work/work_layer.h"

double work_table_parameters(const struct layout *layout, const struct transformer *model)
{
    return (double)model->vocab * (double)model->hidden / layout->tp;
}

bool work_shares_table(const struct layout *layout, const struct transformer *model)
{
    bool apart = layout_virtual_stages(layout) > 1 && !schedule_is_folded(layout->schedule);
    return apart && (model->tied_embeddings || model->mtp_layers);
}

int work_tables(const struct layout *layout, const struct transformer *model, bool embedding, bool head)
{
    bool copy = head && !embedding && work_shares_table(layout, model);
    return embedding + (head && !model->tied_embeddings) + copy;
}

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

/*
 * Cross entropy over T x V/tp logits. Vocabulary-parallel in fp32: cast (2 + 4), maximum (4), subtract and exponentiate (4 + 4),
 * sum (4), divide (4 + 4); fused (fused_loss, or by a compiler): read twice, write once. Backward: scale the probabilities (4 +
 * 4) and cast (4 + 2), fused in one. Eager code on a whole vocabulary, gathered or never split, has PyTorch's: cast, log-softmax
 * (4 + 4); backward a gradient of zeros (4), log-softmax (4 + 4 + 4), cast; so does a loss that is left eager (eager_loss).
 */
static void cross_entropy(struct layer_builder *b, bool backward)
{
    bool left_eager = builder_has(b, FEATURE_BIT(EAGER_LOSS)), compiled = builder_has(b, FEATURE_BIT(COMPILE)) && !left_eager;
    bool fused = builder_has(b, FEATURE_BIT(FUSED_LOSS)) || compiled, eager = left_eager || !builder_has(b, FEATURES_FUSING);
    bool whole = head_gathers(b->layout, b->model) || (b->layout->tp == 1 && eager);
    enum memory_kernel kernel = backward ? MEMORY_LOSS_BACKWARD : MEMORY_LOSS;
    double logits = b->tokens * (double)b->model->vocab / (whole ? 1 : b->layout->tp), bytes;
    if (fused)
        bytes = backward ? 6 : 12;
    else if (whole)
        bytes = backward ? 22 : 14;
    else
        bytes = backward ? 14 : 30;
    builder_memory(b, CLASS_HEAD, kernel, "cross_entropy", logits * bytes, fused ? 2 : whole ? 3 : 7);
}

bool head_gathers(const struct layout *layout, const struct transformer *model)
{
    return layout_follows_llama(layout, model) && !(layout->features & FEATURES_LINEAR_LOSS);
}

/* As Liger's kernel chooses them: the number of logits of a chunk is about that of the elements of what the head reads, in a
 * power of two of tokens (fused_linear_cross_entropy_forward). */
int64_t head_chunk_tokens(const struct layout *layout, const struct setting *setting)
{
    const struct transformer *m = setting->model;
    int64_t tokens = layout->micro_batch * setting->job->seq_len / layout->cp, words = m->vocab / layout->tp;
    int64_t chunks = words < 1 ? 1 : (words + m->hidden - 1) / m->hidden, least = (tokens + chunks - 1) / chunks, chunk = 1;
    while (chunk < least)
        chunk *= 2;
    return chunk < tokens ? chunk : tokens;
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

static int32_t logits_product(struct layer_builder *b, double tokens, enum pass pass)
{
    return builder_linear(b, CLASS_HEAD, "logits", tokens, b->model->hidden, b->model->vocab / b->layout->tp, pass);
}

/* --- projection and loss in one ------------------------------------------------------------------------------------------- */

/* `repeat` chunks of `tokens` tokens: logits in bf16, of which the loss reads them twice and writes their gradient in their place
 * (2 + 2 + 2), and both gradients of the product at once, that of the weights added to a sum in bf16 (2 + 2); frozen ones have
 * none. */
static void append_chunks(struct layer_builder *b, int64_t tokens, int64_t repeat)
{
    struct layer_builder chunk = *b;
    double words = (double)b->model->vocab / b->layout->tp;
    if (repeat == 0 || tokens == 0)
        return;
    chunk.n = 0;
    builder_append(&chunk, logits_product(b, (double)tokens, PASS_FORWARD));
    builder_memory(&chunk, CLASS_HEAD, MEMORY_LOSS, "cross_entropy", (double)tokens * words * 6, 1);
    builder_append(&chunk, logits_product(b, (double)tokens, PASS_BACKWARD_INPUT));
    if (adapter_trains(b->job, b->model, WHOLE_HEAD)) {
        int32_t weight = logits_product(b, (double)tokens, PASS_BACKWARD_WEIGHT);
        b->table->items[weight].gemm.output_bytes = 2 + 2;
        builder_append(&chunk, weight);
    }
    builder_append(b, work_add_sequence(b->table, CLASS_HEAD, "loss_chunk", chunk.ids, chunk.n, (int32_t)repeat));
}

static void chunked_forward(struct layer_builder *b)
{
    const struct setting setting = {.model = b->model, .job = b->job};
    int64_t chunk = head_chunk_tokens(b->layout, &setting), tokens = (int64_t)b->tokens;
    append_chunks(b, chunk, tokens / chunk);
    append_chunks(b, tokens % chunk, 1);
}

/* What is left for the backward pass: both gradients by that of the loss (2 + 2), and the weights' added to the other
 * micro-batches'. */
static void chunked_backward(struct layer_builder *b, bool input, bool weight)
{
    double matrix = (double)b->model->hidden * (double)b->model->vocab / b->layout->tp;
    double scaled = (input ? b->tokens * (double)b->model->hidden : 0) + (weight ? matrix : 0);
    builder_memory(b, CLASS_HEAD, MEMORY_STREAM, "loss_scale", scaled * (2 + 2), input + weight);
    if (weight)
        builder_gradient_sum(b, matrix);
}

/* The product's epilogue keeps of a row its maximum and sum: no logit is written. */
static void cut_forward(struct layer_builder *b)
{
    int32_t product = logits_product(b, b->tokens, PASS_FORWARD);
    b->table->items[product].gemm.output_bytes = 0;
    builder_append(b, product);
}

/* Logits once more; their gradients leave as tiles in bf16 that both products read. */
static void cut_again(struct layer_builder *b)
{
    b->recomputing = true;
    builder_append(b, logits_product(b, b->tokens, PASS_FORWARD));
    b->recomputing = false;
}

/* --- the head ------------------------------------------------------------------------------------------------------------- */

static double final_norm_bytes(const struct layer_builder *b, bool backward)
{
    return b->local_tokens * (double)b->model->hidden * 2 * (backward ? (b->frozen ? 3 : 5) : 2);
}

static void head_forward(struct layer_builder *b)
{
    int32_t exchange = head_exchange(b, false);
    builder_memory(b, CLASS_HEAD, MEMORY_NORM, "final_norm", final_norm_bytes(b, false), 1);
    if (exchange >= 0)
        builder_append(b, exchange);
    if (builder_has(b, FEATURE_BIT(CUT_LOSS))) {
        cut_forward(b);
        return;
    }
    if (builder_has(b, FEATURE_BIT(FUSED_LINEAR_LOSS))) {
        chunked_forward(b);
        return;
    }
    builder_append(b, logits_product(b, b->tokens, PASS_FORWARD));
    if (b->layout->tp > 1 && head_gathers(b->layout, b->model))
        builder_append(b, builder_exchange(b, CLASS_TP_COMM, "gather_logits", COLLECTIVE_ALL_GATHER, GROUP_TP,
                                           b->tokens * (double)b->model->vocab * 2));
    cross_entropy(b, false);
}

static void head_backward(struct layer_builder *b, bool input, bool weight)
{
    bool cut = builder_has(b, FEATURE_BIT(CUT_LOSS)), chunked = !cut && builder_has(b, FEATURE_BIT(FUSED_LINEAR_LOSS));
    int32_t exchange = input ? head_exchange(b, true) : -1;
    if (chunked)
        chunked_backward(b, input, weight);
    else if (cut) /* a weight gradient that comes later has its tiles made once more */
        cut_again(b);
    else if (input)
        cross_entropy(b, true);
    if (input && !chunked)
        builder_append(b, logits_product(b, b->tokens, PASS_BACKWARD_INPUT));
    if (weight && !chunked)
        builder_weight_gradient(b, logits_product(b, b->tokens, PASS_BACKWARD_WEIGHT), exchange,
                                (double)b->model->hidden * (double)(b->model->vocab / b->layout->tp));
    else if (exchange >= 0)
        builder_append(b, exchange);
    if (input)
        builder_memory(b, CLASS_HEAD, MEMORY_NORM_BACKWARD, "final_norm", final_norm_bytes(b, true), b->frozen ? 1 : 2);
}

void head_works(struct layer_builder *b, bool backward, bool input, bool weight)
{
    if (backward)
        head_backward(b, input, weight);
    else
        head_forward(b);
}
