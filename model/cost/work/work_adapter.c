/* work_adapter.c - works that adapters add to a layer; see adapter.h for the theory. */
#include "model/cost/work/work_layer.h"

enum { BF16 = 2 };

/* The shapes of A and B on a rank. */
struct thin {
    int64_t a_in, a_out, b_in, b_out;
};

static struct thin thin_of(const struct layer_builder *b, const struct linear *l)
{
    int64_t rank = b->job->adapter.rank, tp = b->layout->tp;
    return (struct thin){.a_in = l->in,
                         .a_out = l->split == LINEAR_COLUMNS ? rank / tp : rank,
                         .b_in = rank,
                         .b_out = l->split == LINEAR_ROWS ? l->out / tp : l->out};
}

static int32_t product(struct layer_builder *b, const char *label, int64_t in, int64_t out, enum pass pass)
{
    return builder_linear(b, CLASS_GEMM, label, b->tokens, in, out, pass);
}

/* `width` elements a token of this rank, over the tensor-parallel ranks. */
static void exchange(struct layer_builder *b, const char *label, enum collective collective, int64_t width)
{
    if (b->layout->tp > 1)
        builder_append(b, builder_exchange(b, CLASS_TP_COMM, label, collective, GROUP_TP, b->tokens * (double)width * BF16));
}

static bool fuses(const struct layer_builder *b)
{
    return builder_has(b, FEATURES_FUSING);
}

/* Scaled and added: fused with the scale 3 passes (read, read, write), otherwise 2 more. What a row-parallel layer gives is
 * divided by sequence parallelism. */
static void add_output(struct layer_builder *b, const struct linear *l)
{
    double elements = (l->split == LINEAR_ROWS ? b->local_tokens : b->tokens) * (double)l->out;
    builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_STREAM, "adapter_sum", elements * BF16 * (fuses(b) ? 3 : 5), fuses(b) ? 1 : 2);
}

void adapter_forward(struct layer_builder *b, const struct linear *l, bool needs)
{
    struct thin t = thin_of(b, l);
    builder_append(b, product(b, "adapter_a", t.a_in, t.a_out, PASS_FORWARD));
    if (l->split != LINEAR_WHOLE)
        exchange(b, "adapter_exchange", l->split == LINEAR_ROWS ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_ALL_GATHER, t.b_in);
    if (needs)
        return;
    builder_append(b, product(b, "adapter_b", t.b_in, t.b_out, PASS_FORWARD));
    if (l->split == LINEAR_ROWS)
        exchange(b, "adapter_gather", COLLECTIVE_ALL_GATHER, l->out);
    add_output(b, l);
}

void adapter_backward_input(struct layer_builder *b, const struct linear *l)
{
    struct thin t = thin_of(b, l);
    if (!fuses(b)) /* the scale's */
        builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_STREAM, "adapter_scale", b->tokens * (double)t.b_out * BF16 * 2, 1);
    if (l->split == LINEAR_ROWS && b->layout->sequence_parallel)
        exchange(b, "adapter_gather", COLLECTIVE_ALL_GATHER, l->out);
    builder_append(b, product(b, "adapter_b", t.b_in, t.b_out, PASS_BACKWARD_INPUT));
    if (l->split != LINEAR_WHOLE)
        exchange(b, "adapter_exchange", COLLECTIVE_ALL_REDUCE, t.b_in);
    builder_append(b, product(b, "adapter_a", t.a_in, t.a_out, PASS_BACKWARD_INPUT));
    builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_STREAM, "adapter_sum", b->tokens * (double)l->in * BF16 * 3, 1);
}

void adapter_backward_weights(struct layer_builder *b, const struct linear *l, int32_t exchange)
{
    struct thin t = thin_of(b, l);
    builder_weight_gradient(b, product(b, "adapter_b", t.b_in, t.b_out, PASS_BACKWARD_WEIGHT), exchange,
                            (double)t.b_in * (double)t.b_out);
    builder_weight_gradient(b, product(b, "adapter_a", t.a_in, t.a_out, PASS_BACKWARD_WEIGHT), -1,
                            (double)t.a_in * (double)t.a_out);
}

double adapter_elements(const struct layer_builder *b, const struct linear *l)
{
    struct thin t = thin_of(b, l);
    return (double)(t.a_in * t.a_out) + (double)(t.b_in * t.b_out);
}
