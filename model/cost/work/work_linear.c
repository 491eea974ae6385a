/* work_linear.c - column-parallel and row-parallel linear layers: products, casts, exchanges, adapters. */
#include "model/cost/work/work_layer.h"

enum { BF16 = 2 };

/* Whether the output of the next product was kept: when every second one is, of the first, third, ... */
static bool product_kept(struct layer_builder *b)
{
    return b->keeps_products && b->products++ % 2 == 0;
}

/* Forward of a column-parallel layer: its input is gathered first (-1: it already is). Returns the exchange that is left. */
static int32_t column_forward(struct layer_builder *b, const struct linear *l, int32_t gather)
{
    if (l->in == b->model->hidden)
        builder_cast_operand(b, "cast", l->in);
    else
        builder_cast(b, "cast", b->tokens * (double)l->in);
    if (product_kept(b))
        return gather;
    builder_pipelined(b, builder_linear(b, CLASS_GEMM, l->label, b->tokens, l->in, l->out, PASS_FORWARD), gather, true);
    if (l->adapted)
        adapter_forward(b, l, false);
    return -1;
}

/* The reduced output is kept with the products. */
void row_forward(struct layer_builder *b, const struct linear *l, int32_t reduce)
{
    builder_cast(b, "cast", b->tokens * (double)l->in);
    if (product_kept(b))
        return;
    int32_t exchange = b->keeps_products ? -1 : reduce;
    builder_pipelined(b, builder_linear(b, CLASS_GEMM, l->label, b->tokens, l->in, l->out, PASS_FORWARD), exchange, false);
    if (l->adapted)
        adapter_forward(b, l, false);
}

void row_forward_needed(struct layer_builder *b, const struct linear *l, int32_t reduce)
{
    if (!b->stops_early)
        row_forward(b, l, reduce);
    else if (l->adapted)
        adapter_forward(b, l, true);
}

/* Gradients of the weights, or of a frozen layer's adapter; an exchange (-1: none) may overlap with the first. */
static void weight_gradients(struct layer_builder *b, const struct linear *l, int32_t exchange, bool weight)
{
    if (weight && !b->frozen)
        builder_weight_gradient(b, builder_linear(b, CLASS_GEMM, l->label, b->tokens, l->in, l->out, PASS_BACKWARD_WEIGHT),
                                exchange, (double)l->in * (double)l->out);
    else if (weight && l->adapted)
        adapter_backward_weights(b, l, exchange);
    else if (exchange >= 0)
        builder_append(b, exchange);
}

/* Work of a column-parallel layer besides its products in the backward pass: whether it gathers the input again, whether it
 * exchanges the input's gradient (another layer may do either for both), and how many gradients of that input from other layers
 * it adds to its own. */
struct column_duties {
    bool gathers, reduces;
    int sums;
};

/* The sum of gradients of one input, two at a time: read, read, write. */
static void sum_inputs(struct layer_builder *b, int sums)
{
    if (sums > 0)
        builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_STREAM, "input_gradients",
                       sums * b->tokens * (double)b->model->hidden * 3 * BF16, sums);
}

/* Backward of a column-parallel layer. The saved input is sharded, so it is gathered again while the input gradient is computed.
 * The exchange of the input gradient overlaps with the weight gradient. */
static void column_backward(struct layer_builder *b, const struct linear *l, struct column_duties duties, bool input, bool weight)
{
    if (input) {
        builder_cast(b, "cast_gradient", b->tokens * (double)l->out);
        int32_t dgrad = builder_linear(b, CLASS_GEMM, l->label, b->tokens, l->in, l->out, PASS_BACKWARD_INPUT);
        builder_side_by_side(b, dgrad, duties.gathers ? builder_tp_gather_operand(b, "gather_input_again", false) : -1);
        if (l->adapted)
            adapter_backward_input(b, l);
        sum_inputs(b, duties.sums);
    }
    int32_t reduce = duties.reduces && input ? builder_tp_reduce(b, "reduce_input_gradient") : -1;
    weight_gradients(b, l, reduce, weight);
}

void row_backward(struct layer_builder *b, const struct linear *l, bool exchanges, bool input, bool weight)
{
    if (input) {
        if (exchanges)
            builder_cast_operand(b, "cast_gradient", l->out);
        else
            builder_cast(b, "cast_gradient", b->tokens * (double)l->out);
        int32_t dgrad = builder_linear(b, CLASS_GEMM, l->label, b->tokens, l->in, l->out, PASS_BACKWARD_INPUT);
        builder_pipelined(b, dgrad, exchanges ? builder_tp_gather_operand(b, "gather_output_gradient", true) : -1, true);
        if (l->adapted)
            adapter_backward_input(b, l);
    }
    weight_gradients(b, l, -1, weight);
}

/* Up-projections of latent attention read the output of the down-projections, which every rank has; others the gathered input. */
void group_forward(struct layer_builder *b, const struct linear_group *g, int32_t gather)
{
    for (int i = 0; i < g->n; i++) {
        if (g->items[i].in == b->model->hidden)
            gather = column_forward(b, &g->items[i], gather);
        else
            column_forward(b, &g->items[i], -1);
    }
}

/* Eager stacks and adapters keep the gathered input; others gather it again for the first weight gradient. Gradients of the input
 * are added up before they are exchanged, unless each is exchanged by itself. */
void group_backward(struct layer_builder *b, const struct linear_group *g, bool exchanges, bool input, bool weight)
{
    int sums = g->apart ? g->n - 1 : 0;
    for (int i = g->n - 1; i >= 0; i--)
        column_backward(b, &g->items[i],
                        (struct column_duties){.gathers = exchanges && !layer_keeps_gathered(b) && !b->frozen && i == g->n - 1,
                                               .reduces = exchanges && (g->each_exchanges || i == 0),
                                               .sums = i == 0 && !g->each_exchanges ? sums : 0},
                        input, weight);
    if (input && g->each_exchanges)
        sum_inputs(b, sums);
}
