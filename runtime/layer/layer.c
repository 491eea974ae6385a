/* layer.c - what the steps of a layer share. */
#include "runtime/layer/layer.h"

#include "model/cost/work/work.h"

struct tensor *layer_tensor(const struct layer_context *c, int64_t rows, int64_t cols)
{
    return tensor_new(c->rank, (size_t)(rows * cols) * device_element_bytes(c->rank->device));
}

struct tensor *layer_floats(const struct layer_context *c, int64_t n)
{
    return tensor_new(c->rank, (size_t)n * sizeof(float));
}

void layer_drop(const struct layer_context *c, struct tensor **tensor)
{
    tensor_drop(c->rank, tensor, c->step->stream);
}

void layer_launch(const struct layer_context *c, const struct kernel_call *call)
{
    rank_launch(c->rank, c->step->stream, call);
}

void *layer_row(const struct layer_context *c, void *data, int64_t elements)
{
    return data ? (char *)data + (size_t)elements * device_element_bytes(c->rank->device) : NULL;
}

const void *layer_weights(const struct layer_context *c, enum parameter_kind kind)
{
    return unit_weights(c->rank, c->unit, kind);
}

/* --- linear layers */

struct product layer_product(const struct layer_context *c, enum parameter_kind weights, int64_t in, int64_t out)
{
    return (struct product){.weights = weights, .tokens = c->shape->tokens, .in = in, .out = out};
}

/* Summed over its columns (forward), or `down`: over its rows. */
static struct operand product_weights(const struct layer_context *c, const struct product *p, bool down)
{
    const struct tensor *cast = p->wide ? NULL : narrow_weights_of(c->unit, p->weights);
    struct operand whole = cast ? operand_of(cast, down) : operand_wide(layer_weights(c, p->weights));
    return operand_from(whole, p->first, p->in, device_element_bytes(c->rank->device));
}

static void launch_product(const struct layer_context *c, struct kernel_call *call)
{
    call->linear.scratch = product_scratch(c->rank, call);
    if (call->kernel == KERNEL_LINEAR_BACKWARD_WEIGHT)
        weight_gradient(c->step, call->linear);
    else
        pipeline_launch(c->step, call);
}

void product_forward_of(const struct layer_context *c, struct product p, struct operand x, void *y, bool accumulate)
{
    struct operand w = product_weights(c, &p, false);
    struct kernel_call call = {.kernel = KERNEL_LINEAR_FORWARD,
                               .linear = {.t = p.tokens,
                                          .in = p.in,
                                          .out = p.out,
                                          .x = x.data,
                                          .x_as = x.as,
                                          .w = w.data,
                                          .w_as = w.as,
                                          .bias = p.biased ? layer_row(c, (void *)layer_weights(c, p.bias), p.first) : NULL,
                                          .y = y,
                                          .accumulate = accumulate}};
    launch_product(c, &call);
}

void product_input_of(const struct layer_context *c, struct product p, struct operand dy, void *dx, bool accumulate)
{
    struct operand w = product_weights(c, &p, true);
    struct kernel_call call = {.kernel = KERNEL_LINEAR_BACKWARD_INPUT,
                               .linear = {.t = p.tokens,
                                          .in = p.in,
                                          .out = p.out,
                                          .w = w.data,
                                          .w_as = w.as,
                                          .dy = dy.data,
                                          .dy_as = dy.as,
                                          .dx = dx,
                                          .accumulate = accumulate}};
    launch_product(c, &call);
}

/* The gradient of a bias that goes with a gradient in 8 bits was summed when that was cast. */
void product_weight_of(const struct layer_context *c, struct product p, struct operand dy, struct operand x)
{
    float *dw = unit_gradients(c->unit, p.weights);
    float *dbias = p.biased && !dy.as.format ? unit_gradients(c->unit, p.bias) : NULL;
    struct kernel_call call = {.kernel = KERNEL_LINEAR_BACKWARD_WEIGHT,
                               .linear = {.t = p.tokens,
                                          .in = p.in,
                                          .out = p.out,
                                          .x = x.data,
                                          .x_as = x.as,
                                          .dy = dy.data,
                                          .dy_as = dy.as,
                                          .dw = dw ? dw + p.first * p.in : NULL,
                                          .dbias = dbias ? dbias + p.first : NULL}};
    launch_product(c, &call);
}

/* A reference to the operand, cast where it has not been. */
static struct tensor *operand_cast(const struct layer_context *c, struct tensor *whole, int64_t cols, bool gradient)
{
    struct tensor *operand = tensor_share(whole);
    layer_cast(c, &operand, cols, (struct cast){.gradient = gradient});
    return operand;
}

void product_forward(const struct layer_context *c, struct product p, struct tensor *x, void *y, bool accumulate)
{
    struct tensor *operand = operand_cast(c, x, p.in, false);
    product_forward_of(c, p, operand_of(operand, false), y, accumulate);
    layer_drop(c, &operand);
}

void product_input(const struct layer_context *c, struct product p, struct tensor *dy, void *dx, bool accumulate)
{
    struct tensor *operand = operand_cast(c, dy, p.out, true);
    product_input_of(c, p, operand_of(operand, false), dx, accumulate);
    layer_drop(c, &operand);
}

void product_weight(const struct layer_context *c, struct product p, struct tensor *dy, struct tensor *x)
{
    struct tensor *left = operand_cast(c, dy, p.out, true), *right = operand_cast(c, x, p.in, false);
    product_weight_of(c, p, operand_of(left, true), operand_of(right, true));
    layer_drop(c, &left);
    layer_drop(c, &right);
}

/* --- products of one input */

struct product qkv_product(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    const struct step *step = c->step->step;
    int64_t keys = (int64_t)s->kv_heads * s->head_dim;
    struct product p = layer_product(c, PARAMETER_QKV, s->hidden, s->qkv_width);
    p.bias = PARAMETER_QKV_BIAS;
    p.biased = s->qkv_bias;
    if (step->parts == 1)
        return p;
    p.out = step->part == 0 ? s->query_width : keys;
    p.first = step->part == 0 ? 0 : s->query_width + (step->part - 1) * keys;
    return p;
}

struct product up_product(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    const struct step *step = c->step->step;
    struct product p = layer_product(c, PARAMETER_UP, s->hidden, s->up_width / step->parts);
    p.bias = PARAMETER_UP_BIAS;
    p.biased = s->linear_bias;
    p.first = step->part * s->ffn;
    return p;
}

void layer_drop_gathered(const struct layer_context *c, struct tensor **gathered)
{
    bool sharded = c->shape->sequence_parallel;
    /* Where every product of it is kept the recomputation gathers nothing. */
    bool needed = sharded && !c->shape->gathers_again && work_keeps_products(c->rank->layout);
    if (c->shape->gathers_again || (c->step->forgets & RECOMPUTE_LAYERNORM && !needed))
        layer_drop(c, gathered);
}

void layer_input_read(const struct layer_context *c, enum layer_mixers by)
{
    struct layer_state *l = c->state;
    if (c->parallel || (by == MIXES_BY_ATTENTION && c->kind.mixers == MIXES_BY_BOTH))
        return;
    if (!c->shared)
        layer_drop_gathered(c, &l->n1_full);
    else if (!c->shape->sequence_parallel) /* it is the norm's; otherwise weights' gradients come before it is gathered again */
        layer_forget(c, &l->n1_full, RECOMPUTE_LAYERNORM);
    else if (!work_keeps_products(c->rank->layout))
        layer_forget(c, &l->n1_full, RECOMPUTE_FULL);
    layer_forget(c, &l->n1, RECOMPUTE_LAYERNORM);
}

bool layer_d_input(const struct layer_context *c)
{
    struct tensor **d = &c->state->d_n1;
    bool joins = *d != NULL;
    if (!joins)
        *d = layer_tensor(c, c->shape->tokens, c->shape->hidden);
    return joins;
}

struct tensor *product_made(const struct layer_context *c, enum layer_product which, struct product p, struct tensor *x)
{
    struct tensor **kept = &c->state->kept[which];
    if (step_is_silent(c->step->step))
        return tensor_take(kept);
    struct tensor *y = layer_tensor(c, p.tokens, p.out);
    product_forward(c, p, x, tensor_data(y), false);
    if (c->step->step->kept)
        *kept = tensor_share(y);
    return y;
}

void layer_own(const struct layer_context *c, struct tensor **at)
{
    if (!*at || (*at)->references == 1)
        return;
    struct tensor *copy = tensor_new(c->rank, (*at)->bytes);
    layer_launch(c, &(struct kernel_call){.kernel = KERNEL_COPY, .copy = {copy->data, (*at)->data, (*at)->bytes}});
    layer_drop(c, at);
    *at = copy;
}

void part_input(const struct layer_context *c, struct product p, struct tensor *dy, struct tensor **others)
{
    const struct step *step = c->step->step;
    bool joins = *others && step->part == step->parts - 1;
    struct tensor **d = &c->state->d_parts[step->part];
    *d = joins ? tensor_take(others) : layer_tensor(c, p.tokens, p.in);
    product_input(c, p, dy, tensor_data(*d), joins);
}

struct tensor *parts_sum(const struct layer_context *c)
{
    struct tensor **parts = c->state->d_parts;
    int64_t n = (int64_t)(parts[0]->bytes / device_element_bytes(c->rank->device));
    for (int i = 1; i < c->step->step->parts; i++) {
        struct kernel_call call = {
            .kernel = KERNEL_ADD,
            .add = {.n = n, .h = n, .a = tensor_data(parts[0]), .b = tensor_data(parts[i]), .y = tensor_data(parts[0])}};
        layer_launch(c, &call);
        layer_drop(c, &parts[i]);
    }
    return tensor_take(&parts[0]);
}

struct tensor **part_reduced(const struct layer_context *c, struct tensor **sum)
{
    return c->step->step->alone ? &c->state->d_parts[c->step->step->part] : sum;
}

/* --- kernels beside them */

void step_norm_forward(struct step_context *c, const struct unit_state *unit, struct norm_tensors n)
{
    const struct shape *s = &c->rank->shape;
    size_t floats = (size_t)s->local_tokens * sizeof(float);
    *n.mean = tensor_new(c->rank, floats);
    *n.rstd = tensor_new(c->rank, floats);
    *n.y = tensor_new(c->rank, (size_t)(s->local_tokens * s->hidden) * device_element_bytes(c->rank->device));
    struct kernel_call call = {.kernel = KERNEL_NORM_FORWARD,
                               .norm_forward = {.t = s->local_tokens,
                                                .h = s->hidden,
                                                .rms = s->rms,
                                                .epsilon = NORM_EPSILON,
                                                .x = n.x->data,
                                                .gain = unit_weights(c->rank, unit, n.gain),
                                                .bias = s->rms ? NULL : unit_weights(c->rank, unit, n.gain + 1),
                                                .y = (*n.y)->data,
                                                .mean = (*n.mean)->data,
                                                .rstd = (*n.rstd)->data}};
    rank_launch(c->rank, c->stream, &call);
}

void step_norm_backward(struct step_context *c, const struct unit_state *unit, struct norm_gradients n)
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

void layer_activation(const struct layer_context *c, struct activation_call activation, bool backward)
{
    struct kernel_call call = {.kernel = backward ? KERNEL_ACTIVATION_BACKWARD : KERNEL_ACTIVATION_FORWARD,
                               .activation = activation};
    call.activation.gated = c->shape->gated;
    call.activation.limit = c->shape->mlp_limit;
    layer_launch(c, &call);
}

void layer_add(const struct layer_context *c, struct tensor *a, struct tensor *b, const void *bias, struct tensor *y)
{
    const struct shape *s = c->shape;
    struct kernel_call call = {.kernel = KERNEL_ADD,
                               .add = {.n = s->local_tokens * s->hidden,
                                       .h = s->hidden,
                                       .a = tensor_data(a),
                                       .b = tensor_data(b),
                                       .bias = bias,
                                       .y = tensor_data(y)}};
    if (b)
        layer_launch(c, &call);
}

void layer_rows(const struct layer_context *c, struct rows_call rows)
{
    layer_launch(c, &(struct kernel_call){.kernel = KERNEL_ROWS, .rows = rows});
}

void layer_bias_gradient(const struct layer_context *c, enum parameter_kind kind, struct tensor *d)
{
    const struct shape *s = c->shape;
    if (!s->linear_bias || !d || !unit_gradients(c->unit, kind))
        return;
    struct kernel_call call = {
        .kernel = KERNEL_COLUMN_SUM,
        .column_sum = {.t = s->local_tokens, .h = s->hidden, .x = d->data, .sum = unit_gradients(c->unit, kind)}};
    layer_launch(c, &call);
}

/* --- who does a step */

static struct layer_context layer_context_of(struct step_context *c, const struct step *step)
{
    const struct unit_state *unit = chunk_layer_unit(c->chunk, step->layer);
    const int layer = c->chunk->range.first + step->layer;
    const struct layer_kind kind = layer_kind_of(c->rank->setting->model, layer);
    const bool parallel = c->rank->shape.parallel_block && kind.feed == FEEDS_DENSE && kind.mixers != MIXES_NOT;
    return (struct layer_context){.step = c,
                                  .rank = c->rank,
                                  .shape = &c->rank->shape,
                                  .state = &c->pass->layers[step->layer].own,
                                  .swapped = &c->pass->layers[step->layer].swapped,
                                  .unit = unit,
                                  .experts = chunk_experts_unit(c->chunk, step->layer),
                                  .layer = layer,
                                  .kind = kind,
                                  .parallel = parallel,
                                  .single = parallel || kind.feed == FEEDS_NOT,
                                  .shared = parallel || kind.mixers == MIXES_BY_BOTH};
}

void layer_forward_step(struct step_context *context, const struct step *step)
{
    struct layer_context c = layer_context_of(context, step);
    if (!cast_layer_step(&c, step) && !attention_step(&c, step) && !heads_step(&c, step) && !heads_ready_step(&c, step) &&
        !latent_step(&c, step) && !mixer_step(&c, step) && !mixture_forward_step(&c, step) && !prediction_step(&c, step))
        layer_forward_rest(&c, step);
}

void layer_backward_step(struct step_context *context, const struct step *step)
{
    struct layer_context c = layer_context_of(context, step);
    if (!cast_layer_step(&c, step) && !attention_step(&c, step) && !heads_step(&c, step) && !heads_ready_step(&c, step) &&
        !latent_step(&c, step) && !mixer_step(&c, step) && !mixture_backward_step(&c, step) && !prediction_step(&c, step))
        layer_backward_rest(&c, step);
}
