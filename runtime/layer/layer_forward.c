/* layer_forward.c - the forward pass of a dense layer, also when the backward pass recomputes it. */
#include "model/cost/work/work.h"
#include "runtime/layer/layer.h"

/* --- norms */

/* Takes the output of the layer before, unless this layer's input was kept. */
static void take_input(const struct layer_context *c)
{
    struct pass_state *pass = c->step->pass;
    if (c->state->x)
        return;
    c->state->x = pass->x;
    pass->x = NULL;
}

static void norm1_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    take_input(c);
    step_norm_forward(c->step, c->unit, (struct norm_tensors){PARAMETER_NORM1_GAIN, l->x, &l->mean1, &l->rstd1, &l->n1});
    if (!c->shape->sequence_parallel)
        l->n1_full = tensor_share(l->n1);
}

static void norm2_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    if (c->kind.mixers == MIXES_NOT) { /* the layer's first */
        take_input(c);
        l->x2 = tensor_share(l->x);
    }
    step_norm_forward(c->step, c->unit, (struct norm_tensors){PARAMETER_NORM2_GAIN, l->x2, &l->mean2, &l->rstd2, &l->n2});
    if (!c->shape->sequence_parallel)
        l->n2_full = tensor_share(l->n2);
}

/* --- attention's products */

static void qkv_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    const struct step *step = c->step->step;
    struct tensor **y = step->parts > 1 ? &l->apart[step->part] : &l->qkv;
    *y = product_made(c, LAYER_QKV + step->part, qkv_product(c), l->n1_full);
    if (step->part == step->parts - 1)
        layer_input_read(c, MIXES_BY_ATTENTION);
}

/* Where the rest of the layer is recomputed and products are kept: what mixers gave in the end. */
static void take_branch(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    if (!l->kept[LAYER_PROJECTION])
        return;
    layer_drop(c, &l->branch);
    l->branch = tensor_take(&l->kept[LAYER_PROJECTION]);
}

static void projection_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    if (step_is_silent(c->step->step))
        return;
    struct product p = layer_product(c, PARAMETER_PROJECTION, s->context_width, s->hidden);
    /* The bias is added with the residual behind it; where that is the layer's last, which may have another one's, by one of the
     * ranks here. */
    p.bias = PARAMETER_PROJECTION_BIAS;
    p.biased = c->single && s->linear_bias && s->tp_rank == 0;
    l->branch = layer_tensor(c, s->tokens, s->hidden);
    product_forward(c, p, l->context_cast ? l->context_cast : l->context, l->branch->data, false);
    layer_forget(c, &l->context_cast, RECOMPUTE_FULL);
    layer_forget(c, &l->context, attention_recomputed(c));
    layer_forget(c, &l->log_sum_exp, RECOMPUTE_CORE_ATTN);
}

static const void *bias_of(const struct layer_context *c, enum parameter_kind kind)
{
    return c->shape->linear_bias ? layer_weights(c, kind) : NULL;
}

static void residual1_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    if (layer_recomputes(c))
        take_branch(c);
    l->x2 = layer_tensor(c, s->local_tokens, s->hidden);
    residual_forward(c, 0, l->x, l->branch, bias_of(c, PARAMETER_PROJECTION_BIAS), l->x2);
    if (c->step->step->kept)
        l->kept[LAYER_PROJECTION] = tensor_take(&l->branch);
    layer_drop(c, &l->branch);
}

/* --- feed-forward */

static void up_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    const struct step *step = c->step->step;
    bool gate = step->part < step->parts - 1;
    struct tensor **y = gate ? &l->gate : &l->up;
    *y = product_made(c, gate ? LAYER_GATE : LAYER_UP, up_product(c), c->parallel ? l->n1_full : l->n2_full);
    if (gate)
        return;
    if (c->parallel) { /* the gathered input is kept: its weights' gradient comes before it would be gathered again */
        if (!s->sequence_parallel || !work_keeps_products(c->rank->layout))
            layer_forget(c, &l->n1_full, s->sequence_parallel ? RECOMPUTE_FULL : RECOMPUTE_LAYERNORM);
        /* or gathered again for the first product that is not kept, if there is one */
        layer_forget(c, &l->n1, RECOMPUTE_LAYERNORM);
        return;
    }
    layer_drop_gathered(c, &l->n2_full);
    layer_forget(c, &l->n2, RECOMPUTE_LAYERNORM);
}

static void activation_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    l->act = layer_tensor(c, s->tokens, s->ffn);
    struct activation_call call = {
        .t = s->tokens, .f = s->ffn, .u = l->up->data, .gate = tensor_data(l->gate), .a = l->act->data};
    layer_activation(c, call, false);
    layer_forget(c, &l->up, RECOMPUTE_MLP);
    layer_forget(c, &l->gate, RECOMPUTE_MLP);
}

static void down_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    bool joins = c->parallel && l->branch; /* the other branch's sums, unless this one is repeated alone */
    if (!joins)
        l->branch = layer_tensor(c, s->tokens, s->hidden);
    product_forward(c, layer_product(c, PARAMETER_DOWN, s->ffn, s->hidden), l->act, l->branch->data, joins);
    layer_forget(c, &l->act, RECOMPUTE_MLP_ACT);
}

/* Drops tensors that only the backward pass needs, if it recomputes them. */
static void forget_norms(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    layer_forget(c, &l->mean1, RECOMPUTE_LAYERNORM);
    layer_forget(c, &l->rstd1, RECOMPUTE_LAYERNORM);
    layer_forget(c, &l->mean2, RECOMPUTE_LAYERNORM);
    layer_forget(c, &l->rstd2, RECOMPUTE_LAYERNORM);
    layer_forget(c, &l->x2, RECOMPUTE_FULL);
}

static void residual2_step(const struct layer_context *c, const struct step *step)
{
    struct layer_state *l = c->state;
    struct step_context *context = c->step;
    if (!step->recompute || step->hands_on) {
        bool last = step->layer == context->chunk->range.count - 1 && !context->chunk->head;
        struct tensor *y = output_new(context, true, last);
        residual_forward(c, 1, c->single ? l->x : l->x2, l->branch, c->experts ? NULL : bias_of(c, PARAMETER_DOWN_BIAS), y);
        context->pass->x = y;
    }
    layer_drop(c, &l->branch);
    forget_norms(c);
    if (step->continues)
        layer_forget(c, &l->x, RECOMPUTE_FULL);
}

void layer_forward_rest(const struct layer_context *c, const struct step *step)
{
    struct layer_state *l = c->state;
    switch (step->kind) {
    case STEP_NORM1: norm1_step(c); break;
    case STEP_GATHER1: layer_gather_input(c, l->n1, &l->n1_full, false, "input of attention"); break;
    case STEP_QKV: qkv_step(c); break;
    case STEP_PROJECTION: projection_step(c); break;
    case STEP_REDUCE1: tp_reduce(c->step, &l->branch, "output of attention"); break;
    case STEP_RESIDUAL1: residual1_step(c); break;
    case STEP_NORM2: norm2_step(c); break;
    case STEP_GATHER2: layer_gather_input(c, l->n2, &l->n2_full, false, "input of feed-forward"); break;
    case STEP_UP: up_step(c); break;
    case STEP_ACTIVATION: activation_step(c); break;
    case STEP_DOWN: down_step(c); break;
    case STEP_REDUCE2: tp_reduce(c->step, &l->branch, "output of feed-forward"); break;
    case STEP_RESIDUAL2: residual2_step(c, step); break;
    default: break;
    }
}
