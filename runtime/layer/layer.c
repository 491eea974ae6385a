/* layer.c - what all steps of a layer use: activations, rows of tensors, norms, sums and gradients of biases. */
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

void layer_own(const struct layer_context *c, struct tensor **at)
{
    if (!*at || (*at)->references == 1)
        return;
    struct tensor *copy = tensor_new(c->rank, (*at)->bytes);
    layer_launch(c, &(struct kernel_call){.kernel = KERNEL_COPY, .copy = {copy->data, (*at)->data, (*at)->bytes}});
    layer_drop(c, at);
    *at = copy;
}

/* --- norms, activations, sums */

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
