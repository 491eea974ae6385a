/*
 * work_prediction.c - the part of a module of multi-token prediction before its layer (DeepSeek-V3, arXiv:2412.19437, section
 * 2.2).
 *
 * It consists of two norms, of the state of the depth before and of the embedding of a later token, and a product that maps
 * both, concatenated, to the model's width. As in Megatron-Core, the embedding is looked up like the model's first one, the
 * product is column-parallel, and its columns are gathered.
 */
#include "model/cost/work/work_layer.h"

enum { BF16 = 2 };

static int32_t product(struct layer_builder *b, enum pass pass)
{
    int64_t h = b->model->hidden;
    return builder_linear(b, CLASS_GEMM, "mtp_projection", b->tokens, 2 * h, h / b->layout->tp, pass);
}

/* An exchange of [T, width] over the tensor-parallel group. */
static int32_t exchange(struct layer_builder *b, const char *label, enum collective collective, double width)
{
    return builder_exchange(b, CLASS_TP_COMM, label, collective, GROUP_TP, b->tokens * width * BF16);
}

static int32_t gather_input(struct layer_builder *b, const char *label)
{
    bool sharded = b->layout->tp > 1 && b->layout->sequence_parallel;
    return sharded ? exchange(b, label, COLLECTIVE_ALL_GATHER, 2 * (double)b->model->hidden) : -1;
}

/* Both norms; side by side. A norm moves what a layer's does, and its result once more. */
static void norms(struct layer_builder *b, bool backward)
{
    double elements = 2 * b->local_tokens * (double)b->model->hidden;
    builder_memory(b, CLASS_MEMORY_BOUND, backward ? MEMORY_NORM_BACKWARD : MEMORY_NORM, "mtp_norms",
                   elements * BF16 * (backward ? 7 : 4), backward ? 6 : 4);
}

static void append(struct layer_builder *b, int32_t work)
{
    if (work >= 0)
        builder_append(b, work);
}

void prediction_forward(struct layer_builder *b)
{
    double h = (double)b->model->hidden;
    embedding_works(b, false);
    norms(b, false);
    append(b, gather_input(b, "gather_mtp_input"));
    builder_cast(b, "cast", b->tokens * 2 * h);
    builder_append(b, product(b, PASS_FORWARD));
    if (b->layout->tp > 1)
        builder_append(b, exchange(b, "gather_mtp_output", COLLECTIVE_ALL_GATHER, h));
}

void prediction_backward(struct layer_builder *b, bool input, bool weight)
{
    double h = (double)b->model->hidden;
    int tp = b->layout->tp;
    int32_t reduce = -1;
    if (input) {
        append(b, builder_tp_gather(b, "gather_mtp_gradient"));
        builder_cast(b, "cast_gradient", b->tokens * h / tp);
        builder_side_by_side(b, product(b, PASS_BACKWARD_INPUT), gather_input(b, "gather_mtp_input_again"));
        if (tp > 1)
            reduce = exchange(b, "reduce_mtp_gradient",
                              b->layout->sequence_parallel ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE, 2 * h);
    }
    if (weight)
        builder_weight_gradient(b, product(b, PASS_BACKWARD_WEIGHT), reduce, 2 * h * h / tp);
    else
        append(b, reduce);
    if (!input)
        return;
    norms(b, true);
    embedding_works(b, true);
}
