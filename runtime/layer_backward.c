/* layer_backward.c - the backward pass of a layer, whole or in its two parts.
 *
 * Names: d_<tensor> is the gradient of the loss by that tensor; d is that of the layer's output, d2 that of what the second half
 * of the layer reads. What the weights' gradients need is kept until they have been computed, in the same pass or in another. */
#include "runtime/rank.h"

static struct tensor *activation_new(struct step_context *c, int64_t rows, int64_t cols)
{
    return tensor_new(c->rank, (size_t)(rows * cols) * device_element_bytes(c->rank->device));
}

static void drop(struct step_context *c, struct tensor **tensor)
{
    tensor_drop(c->rank, tensor, c->stream);
}

/* --- kernels */

struct product {
    enum parameter_kind weights, bias;
    bool biased; /* the bias's gradient belongs to this product */
    int64_t in, out;
};

static void product_input(struct step_context *c, const struct unit_state *unit, struct product p, struct tensor *dy,
                          struct tensor *dx, bool accumulate)
{
    struct kernel_call call = {.kernel = KERNEL_LINEAR_BACKWARD_INPUT,
                               .linear = {.t = c->rank->shape.tokens,
                                          .in = p.in,
                                          .out = p.out,
                                          .w = unit_weights(c->rank, unit, p.weights),
                                          .dy = dy->data,
                                          .dx = dx->data,
                                          .accumulate = accumulate}};
    rank_launch(c->rank, c->stream, &call);
}

static void product_weight(struct step_context *c, const struct unit_state *unit, struct product p, struct tensor *dy,
                           struct tensor *x)
{
    struct kernel_call call = {.kernel = KERNEL_LINEAR_BACKWARD_WEIGHT,
                               .linear = {.t = c->rank->shape.tokens,
                                          .in = p.in,
                                          .out = p.out,
                                          .x = x->data,
                                          .dy = dy->data,
                                          .dw = unit_gradients(unit, p.weights),
                                          .dbias = p.biased ? unit_gradients(unit, p.bias) : NULL}};
    rank_launch(c->rank, c->stream, &call);
}

static struct product qkv_of(const struct shape *s)
{
    return (struct product){PARAMETER_QKV, PARAMETER_QKV_BIAS, s->qkv_bias, s->hidden, s->qkv_width};
}

static struct product projection_of(const struct shape *s)
{
    return (struct product){.weights = PARAMETER_PROJECTION, .in = s->query_width, .out = s->hidden};
}

static struct product up_of(const struct shape *s)
{
    return (struct product){PARAMETER_UP, PARAMETER_UP_BIAS, s->linear_bias, s->hidden, s->up_width};
}

static struct product down_of(const struct shape *s)
{
    return (struct product){.weights = PARAMETER_DOWN, .in = s->ffn, .out = s->hidden};
}

static void bias_gradient(struct step_context *c, const struct unit_state *unit, enum parameter_kind kind, struct tensor *d)
{
    const struct shape *s = &c->rank->shape;
    if (!s->linear_bias)
        return;
    struct kernel_call call = {
        .kernel = KERNEL_COLUMN_SUM,
        .column_sum = {.t = s->local_tokens, .h = s->hidden, .x = d->data, .sum = unit_gradients(unit, kind)}};
    rank_launch(c->rank, c->stream, &call);
}

struct norm_parts {
    enum parameter_kind gain;
    struct tensor *dy, *x, *mean, *rstd, *add, *dx;
};

static void norm_backward(struct step_context *c, const struct unit_state *unit, struct norm_parts n)
{
    const struct shape *s = &c->rank->shape;
    struct kernel_call call = {.kernel = KERNEL_NORM_BACKWARD,
                               .norm_backward = {.t = s->local_tokens,
                                                 .h = s->hidden,
                                                 .rms = s->rms,
                                                 .dy = n.dy->data,
                                                 .x = n.x->data,
                                                 .gain = unit_weights(c->rank, unit, n.gain),
                                                 .mean = n.mean->data,
                                                 .rstd = n.rstd->data,
                                                 .add = tensor_data(n.add),
                                                 .dx = n.dx->data,
                                                 .dgain = unit_gradients(unit, n.gain),
                                                 .dbias = s->rms ? NULL : unit_gradients(unit, n.gain + 1)}};
    rank_launch(c->rank, c->stream, &call);
}

/* --- the feed-forward half */

static void residual2_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    l->d = c->pass->d;
    c->pass->d = NULL;
    bias_gradient(c, unit, PARAMETER_DOWN_BIAS, l->d);
    if (c->rank->shape.parallel_block)
        bias_gradient(c, unit, PARAMETER_PROJECTION_BIAS, l->d);
    if (!c->rank->shape.sequence_parallel)
        l->d_full = tensor_share(l->d);
}

static void down_input_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    l->d_act = activation_new(c, s->tokens, s->ffn);
    product_input(c, unit, down_of(s), l->d_full, l->d_act, false);
    if (s->parallel_block)
        l->d2_full = tensor_share(l->d_full); /* the attention branch gets the same gradient */
}

static void down_weight_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    product_weight(c, unit, down_of(&c->rank->shape), l->d_full, l->act);
    drop(c, &l->d_full);
    drop(c, &l->act);
}

static void activation_step(struct step_context *c, struct layer_state *l)
{
    const struct shape *s = &c->rank->shape;
    l->d_up = activation_new(c, s->tokens, s->up_width);
    struct kernel_call call = {
        .kernel = KERNEL_ACTIVATION_BACKWARD,
        .activation = {
            .t = s->tokens, .f = s->ffn, .gated = s->gated, .u = l->up->data, .da = l->d_act->data, .du = l->d_up->data}};
    rank_launch(c->rank, c->stream, &call);
    drop(c, &l->d_act);
    drop(c, &l->up);
}

static void up_input_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    struct tensor **d = s->parallel_block ? &l->d_n1 : &l->d_n2;
    *d = activation_new(c, s->tokens, s->hidden);
    product_input(c, unit, up_of(s), l->d_up, *d, false);
}

static void up_weight_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    product_weight(c, unit, up_of(s), l->d_up, s->parallel_block ? l->n1_full : l->n2_full);
    drop(c, &l->d_up);
    if (s->parallel_block)
        return;
    drop(c, &l->n2_full);
    drop(c, &l->n2);
}

static void norm2_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    l->d_x2 = activation_new(c, s->local_tokens, s->hidden);
    norm_backward(c, unit, (struct norm_parts){PARAMETER_NORM2_GAIN, l->d_n2, l->x2, l->mean2, l->rstd2, NULL, l->d_x2});
    drop(c, &l->d_n2);
    drop(c, &l->x2);
    drop(c, &l->mean2);
    drop(c, &l->rstd2);
}

static void residual1_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    l->d2 = activation_new(c, s->local_tokens, s->hidden);
    struct kernel_call call = {
        .kernel = KERNEL_ADD,
        .add = {.n = s->local_tokens * s->hidden, .h = s->hidden, .a = l->d->data, .b = l->d_x2->data, .y = l->d2->data}};
    rank_launch(c->rank, c->stream, &call);
    bias_gradient(c, unit, PARAMETER_PROJECTION_BIAS, l->d2);
    drop(c, &l->d);
    drop(c, &l->d_x2);
    if (!s->sequence_parallel)
        l->d2_full = tensor_share(l->d2);
}

/* --- the attention half */

static void projection_input_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    l->d_context = activation_new(c, s->tokens, s->query_width);
    product_input(c, unit, projection_of(s), l->d2_full, l->d_context, false);
    l->context_again = tensor_share(l->context); /* the core's backward pass and the weights' gradient both read it */
}

static void projection_weight_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    product_weight(c, unit, projection_of(&c->rank->shape), l->d2_full, l->context_again);
    drop(c, &l->d2_full);
    drop(c, &l->context_again);
}

static void attention_step(struct step_context *c, struct layer_state *l, int layer)
{
    const struct shape *s = &c->rank->shape;
    l->d_qkv = activation_new(c, s->tokens, s->qkv_width);
    struct kernel_call call = {
        .kernel = KERNEL_ATTENTION_BACKWARD,
        .attention = {.batch = s->micro_batch,
                      .seq_len = s->seq_len,
                      .window = (int64_t)sliding_window_width(c->rank->setting, c->rank->layout->features, layer),
                      .heads = s->heads,
                      .kv_heads = s->kv_heads,
                      .head_dim = s->head_dim,
                      .qkv = l->qkv->data,
                      .out = l->context->data,
                      .log_sum_exp = l->log_sum_exp->data,
                      .dout = l->d_context->data,
                      .dqkv = l->d_qkv->data}};
    size_t bytes = c->rank->device->api->attention_workspace(c->rank->device, &call.attention, true);
    struct tensor *workspace = bytes ? tensor_new(c->rank, bytes) : NULL;
    call.attention.workspace = tensor_data(workspace);
    rank_launch(c->rank, c->stream, &call);
    drop(c, &workspace);
    drop(c, &l->d_context);
    drop(c, &l->qkv);
    drop(c, &l->log_sum_exp);
    drop(c, &l->context);
}

static void rotary_step(struct step_context *c, struct layer_state *l)
{
    const struct shape *s = &c->rank->shape;
    struct kernel_call call = {.kernel = KERNEL_ROTARY,
                               .rotary = {.t = s->tokens,
                                          .seq_len = s->seq_len,
                                          .heads = s->heads,
                                          .kv_heads = s->kv_heads,
                                          .head_dim = s->head_dim,
                                          .base = ROTARY_BASE,
                                          .inverse = true,
                                          .qkv = l->d_qkv->data}};
    rank_launch(c->rank, c->stream, &call);
}

static void qkv_input_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    if (!s->parallel_block)
        l->d_n1 = activation_new(c, s->tokens, s->hidden);
    product_input(c, unit, qkv_of(s), l->d_qkv, l->d_n1, s->parallel_block);
}

static void qkv_weight_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    product_weight(c, unit, qkv_of(&c->rank->shape), l->d_qkv, l->n1_full);
    drop(c, &l->d_qkv);
    drop(c, &l->n1_full);
    drop(c, &l->n1);
}

static void norm1_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit, const struct step *step)
{
    struct tensor **around = c->rank->shape.parallel_block ? &l->d : &l->d2;
    c->pass->d = output_new(c, false, step->layer == 0 && !c->chunk->embedding);
    norm_backward(c, unit, (struct norm_parts){PARAMETER_NORM1_GAIN, l->d_n1, l->x, l->mean1, l->rstd1, *around, c->pass->d});
    drop(c, &l->d_n1);
    drop(c, around);
    drop(c, &l->x);
    drop(c, &l->mean1);
    drop(c, &l->rstd1);
}

void layer_backward_step(struct step_context *c, const struct step *step)
{
    struct layer_state *l = &c->pass->layers[step->layer];
    const struct unit_state *unit = chunk_layer_unit(c->chunk, step->layer);
    switch (step->kind) {
    case STEP_RESIDUAL2_BACKWARD: residual2_step(c, l, unit); break;
    case STEP_GATHER_DOWN_GRADIENT: tp_gather(c, l->d, &l->d_full, "gradient of feed-forward"); break;
    case STEP_DOWN_INPUT: down_input_step(c, l, unit); break;
    case STEP_DOWN_WEIGHT: down_weight_step(c, l, unit); break;
    case STEP_ACTIVATION_BACKWARD: activation_step(c, l); break;
    case STEP_UP_INPUT: up_input_step(c, l, unit); break;
    case STEP_GATHER2_AGAIN: tp_gather(c, l->n2, &l->n2_full, "input of feed-forward again"); break;
    case STEP_REDUCE_UP_GRADIENT: tp_reduce(c, &l->d_n2, "gradient of feed-forward's input"); break;
    case STEP_UP_WEIGHT: up_weight_step(c, l, unit); break;
    case STEP_NORM2_BACKWARD: norm2_step(c, l, unit); break;
    case STEP_RESIDUAL1_BACKWARD: residual1_step(c, l, unit); break;
    case STEP_GATHER_PROJECTION_GRADIENT: tp_gather(c, l->d2, &l->d2_full, "gradient of attention"); break;
    case STEP_PROJECTION_INPUT: projection_input_step(c, l, unit); break;
    case STEP_PROJECTION_WEIGHT: projection_weight_step(c, l, unit); break;
    case STEP_ATTENTION_BACKWARD: attention_step(c, l, c->chunk->range.first + step->layer); break;
    case STEP_ROTARY_BACKWARD: rotary_step(c, l); break;
    case STEP_QKV_INPUT: qkv_input_step(c, l, unit); break;
    case STEP_GATHER1_AGAIN: tp_gather(c, l->n1, &l->n1_full, "input of attention again"); break;
    case STEP_REDUCE_QKV_GRADIENT: tp_reduce(c, &l->d_n1, "gradient of attention's input"); break;
    case STEP_QKV_WEIGHT: qkv_weight_step(c, l, unit); break;
    case STEP_NORM1_BACKWARD: norm1_step(c, l, unit, step); break;
    default: break;
    }
}
