/* layer_product.c - the linear layers of a layer: products, their operands, and the inputs that several products share. */
#include "runtime/layer/layer.h"

#include "model/cost/work/work.h"

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

/* --- inputs that several products read */

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
