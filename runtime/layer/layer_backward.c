/* layer_backward.c - the backward pass of a layer, whole or in its two parts (gradients of inputs, gradients of weights).
 *
 * Names: d_<tensor> is the gradient of the loss with respect to that tensor; d is that of the layer's output, d2 that of the
 * input of the second half of the layer. Inputs of weight gradients are kept until these are computed, in the same pass or in a
 * later one. */
#include "runtime/layer/layer.h"

static struct product projection_of(const struct layer_context *c)
{
    return layer_product(c, PARAMETER_PROJECTION, c->shape->context_width, c->shape->hidden);
}

static struct product down_of(const struct layer_context *c)
{
    return layer_product(c, PARAMETER_DOWN, c->shape->ffn, c->shape->hidden);
}

static void mixers_bias_gradients(const struct layer_context *c)
{
    layer_bias_gradient(c, PARAMETER_PROJECTION_BIAS, c->state->d_branch);
    layer_bias_gradient(c, PARAMETER_MIXER_OUT_BIAS, c->state->d_branch);
}

/* The gradient of the layer's input by way of its first norm; `around` is what went around the branch behind that. */
static void end_layer(const struct layer_context *c, struct norm_gradients n, struct tensor **around)
{
    struct pass_state *pass = c->step->pass;
    bool first = c->step->step->layer == 0 && c->step->chunk->range.count > 0; /* and not a prediction module's */
    pass->d = output_new(c->step, false, first && !c->step->chunk->embedding);
    n.add = *around;
    n.dx = pass->d;
    step_norm_backward(c->step, c->unit, n);
    layer_drop(c, around);
    layer_drop(c, &c->state->x);
}

/* --- the feed-forward half */

static void residual2_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    l->d = c->step->pass->d;
    c->step->pass->d = NULL;
    layer_drop(c, &l->branch); /* computed again for what follows it in the layer, and added to nothing */
    layer_drop(c, &l->mixture.shared);
    l->d_branch = residual_backward(c, 1, l->d);
    if (!c->experts)
        layer_bias_gradient(c, PARAMETER_DOWN_BIAS, l->d_branch);
    if (c->single)
        mixers_bias_gradients(c);
    if (!c->shape->sequence_parallel)
        *(c->kind.feed == FEEDS_NOT ? &l->d2_full : &l->d_full) = tensor_share(l->d_branch);
}

static void down_input_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    l->d_act = layer_tensor(c, c->shape->tokens, c->shape->ffn);
    product_input(c, down_of(c), l->d_full, l->d_act->data, false);
    layer_drop(c, &l->d_branch);
    if (c->parallel)
        l->d2_full = tensor_share(l->d_full); /* the attention branch gets the same gradient */
}

static void down_weight_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    product_weight(c, down_of(c), l->d_full, l->act);
    layer_drop(c, &l->d_full);
    layer_drop(c, &l->act);
}

static void activation_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    l->d_up = layer_tensor(c, s->tokens, l->gate ? s->ffn : s->up_width);
    l->d_gate = l->gate ? layer_tensor(c, s->tokens, s->ffn) : NULL;
    struct activation_call call = {.t = s->tokens,
                                   .f = s->ffn,
                                   .u = l->up->data,
                                   .gate = tensor_data(l->gate),
                                   .da = l->d_act->data,
                                   .du = l->d_up->data,
                                   .dgate = tensor_data(l->d_gate)};
    layer_activation(c, call, true);
    layer_drop(c, &l->d_act);
    layer_drop(c, &l->up);
    layer_drop(c, &l->gate);
}

/* Of the step's product: both halves, or one. */
struct tensor **layer_d_up(const struct layer_context *c)
{
    const struct step *step = c->step->step;
    return step->part < step->parts - 1 ? &c->state->d_gate : &c->state->d_up;
}

/* The gradient of the feed-forward part's input. */
static struct tensor **d_input_of(const struct layer_context *c)
{
    return c->parallel ? &c->state->d_n1 : &c->state->d_n2;
}

static void up_input_step(const struct layer_context *c)
{
    struct tensor **d = d_input_of(c);
    layer_cast_gradient(c, up_product(c), layer_d_up(c));
    if (c->step->step->parts > 1) {
        part_input(c, up_product(c), *layer_d_up(c), d);
        return;
    }
    *d = layer_tensor(c, c->shape->tokens, c->shape->hidden);
    product_input(c, up_product(c), *layer_d_up(c), (*d)->data, false);
}

static void up_weight_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    product_weight(c, up_product(c), *layer_d_up(c), c->parallel ? l->n1_full : l->n2_full);
    layer_drop(c, layer_d_up(c));
    if (c->parallel || c->step->step->part > 0)
        return;
    layer_drop(c, &l->n2_full);
    layer_drop(c, &l->n2);
}

static void norm2_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    struct norm_gradients n = {PARAMETER_NORM2_GAIN, l->d_n2, l->x2, l->mean2, l->rstd2, NULL, NULL};
    if (c->kind.mixers == MIXES_NOT) {
        end_layer(c, n, &l->d);
    } else {
        l->d_x2 = n.dx = layer_tensor(c, c->shape->local_tokens, c->shape->hidden);
        step_norm_backward(c->step, c->unit, n);
    }
    layer_drop(c, &l->d_n2);
    layer_drop(c, &l->x2);
    layer_drop(c, &l->mean2);
    layer_drop(c, &l->rstd2);
}

static void residual1_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    l->d2 = layer_tensor(c, s->local_tokens, s->hidden);
    layer_add(c, l->d, l->d_x2, NULL, l->d2);
    layer_drop(c, &l->d);
    layer_drop(c, &l->d_x2);
    l->d_branch = residual_backward(c, 0, l->d2);
    mixers_bias_gradients(c);
    if (!s->sequence_parallel)
        l->d2_full = tensor_share(l->d_branch);
}

/* --- the attention half */

static void projection_input_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    l->d_context = layer_tensor(c, c->shape->tokens, c->shape->context_width);
    product_input(c, projection_of(c), l->d2_full, l->d_context->data, false);
    layer_drop(c, &l->d_branch);
    l->context_again = l->context_cast ? tensor_take(&l->context_cast) : tensor_share(l->context); /* the core's backward pass and
                                                                                         the weights' gradient both read it */
}

static void projection_weight_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    product_weight(c, projection_of(c), l->d2_full, l->context_again);
    layer_drop(c, &l->d2_full);
    layer_drop(c, &l->context_again);
}

/* Queries, keys and values that come from products of their own: the step's columns of their gradients. */
void layer_take_columns(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    struct product p = qkv_product(c);
    struct tensor **d = &l->d_apart[c->step->step->part];
    if (c->step->step->parts == 1 || *d)
        return;
    *d = layer_tensor(c, p.tokens, p.out);
    layer_rows(c, (struct rows_call){.n = p.tokens,
                                     .width = p.out,
                                     .from_row = c->shape->qkv_width,
                                     .to_row = p.out,
                                     .from = layer_row(c, l->d_qkv->data, p.first),
                                     .to = tensor_data(*d)});
    if (c->step->step->part == 0)
        layer_drop(c, &l->d_qkv);
}

struct tensor **layer_d_qkv(const struct layer_context *c)
{
    const struct step *step = c->step->step;
    return step->parts > 1 ? &c->state->d_apart[step->part] : &c->state->d_qkv;
}

static void qkv_input_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    const struct step *step = c->step->step;
    struct product p = qkv_product(c);
    if (step->parts > 1) {
        layer_take_columns(c);
        part_input(c, p, l->d_apart[step->part], &l->d_n1);
        return;
    }
    bool joins = layer_d_input(c);
    product_input(c, p, l->d_qkv, l->d_n1->data, joins);
}

static void qkv_weight_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    const struct step *step = c->step->step;
    struct tensor **d = layer_d_qkv(c);
    product_weight(c, qkv_product(c), *d, l->n1_full);
    layer_drop(c, d);
    if (step->part > 0)
        return;
    layer_drop(c, &l->n1_full);
    layer_drop(c, &l->n1);
}

static void norm1_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    struct norm_gradients n = {PARAMETER_NORM1_GAIN, l->d_n1, l->x, l->mean1, l->rstd1, NULL, NULL};
    end_layer(c, n, c->single ? &l->d : &l->d2);
    layer_drop(c, &l->d_n1);
    layer_drop(c, &l->mean1);
    layer_drop(c, &l->rstd1);
}

void layer_backward_rest(const struct layer_context *c, const struct step *step)
{
    struct layer_state *l = c->state;
    switch (step->kind) {
    case STEP_RESIDUAL2_BACKWARD: residual2_step(c); break;
    case STEP_GATHER_DOWN_GRADIENT: tp_gather(c->step, l->d_branch, &l->d_full, "gradient of feed-forward"); break;
    case STEP_DOWN_INPUT: down_input_step(c); break;
    case STEP_DOWN_WEIGHT: down_weight_step(c); break;
    case STEP_ACTIVATION_BACKWARD: activation_step(c); break;
    case STEP_UP_INPUT: up_input_step(c); break;
    case STEP_GATHER2_AGAIN: layer_gather_input(c, l->n2, &l->n2_full, true, "input of feed-forward again"); break;
    case STEP_UP_SUM: *d_input_of(c) = parts_sum(c); break;
    case STEP_REDUCE_UP_GRADIENT: tp_reduce(c->step, part_reduced(c, &l->d_n2), "gradient of feed-forward's input"); break;
    case STEP_UP_WEIGHT: up_weight_step(c); break;
    case STEP_NORM2_BACKWARD: norm2_step(c); break;
    case STEP_RESIDUAL1_BACKWARD: residual1_step(c); break;
    case STEP_GATHER_PROJECTION_GRADIENT: tp_gather(c->step, l->d_branch, &l->d2_full, "gradient of attention"); break;
    case STEP_PROJECTION_INPUT: projection_input_step(c); break;
    case STEP_PROJECTION_WEIGHT: projection_weight_step(c); break;
    case STEP_QKV_INPUT: qkv_input_step(c); break;
    case STEP_GATHER1_AGAIN: layer_gather_input(c, l->n1, &l->n1_full, true, "input of attention again"); break;
    case STEP_QKV_SUM: l->d_n1 = parts_sum(c); break;
    case STEP_REDUCE_QKV_GRADIENT: tp_reduce(c->step, part_reduced(c, &l->d_n1), "gradient of attention's input"); break;
    case STEP_QKV_WEIGHT: qkv_weight_step(c); break;
    case STEP_NORM1_BACKWARD: norm1_step(c); break;
    default: break;
    }
}
