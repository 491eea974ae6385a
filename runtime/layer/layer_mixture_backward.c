/* layer_mixture_backward.c - the backward pass of a mixture of experts.
 *
 * Gradients of results go to the experts on the same way as tokens did; gradients of tokens come back on the way of results. */
#include "runtime/layer/layer_mixture.h"

static const struct mixture_shape *sizes(const struct layer_context *c)
{
    return &c->shape->moe;
}

static struct kernel_call combine_of(const struct layer_context *c, enum kernel kernel)
{
    const struct mixture_shape *m = sizes(c);
    return (struct kernel_call){
        .kernel = kernel, .combine = {.t = m->tokens, .h = c->shape->hidden, .top_k = m->top_k, .place = routing_of(c).place}};
}

static void unpermute_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    struct mixture_state *m = &l->mixture;
    struct kernel_call call = combine_of(c, KERNEL_COMBINE_BACKWARD);
    m->rows = layer_tensor(c, mixture_room(c), c->shape->hidden);
    m->d_gate = layer_floats(c, mixture_room(c));
    call.combine.rows = tensor_data(m->returned);
    call.combine.gate = tensor_data(m->gate);
    call.combine.dy = mixture_own(c, l->d_branch);
    call.combine.drows = tensor_data(m->rows);
    call.combine.dgate = tensor_data(m->d_gate);
    layer_launch(c, &call);
    layer_drop(c, &m->returned);
    if (sizes(c)->shared)
        layer_bias_gradient(c, PARAMETER_SHARED_DOWN_BIAS, l->d_branch);
}

static void expert_down_input_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    struct kernel_call call = expert_product_of(c, EXPERT_PRODUCT_DOWN, KERNEL_GROUPED_BACKWARD_INPUT);
    if (!m->d_y)
        m->d_y = mixture_sort(c);
    m->d_act = layer_tensor(c, sizes(c)->most, sizes(c)->ffn);
    expert_operands(&call, NULL, m->d_y);
    call.grouped.dx = tensor_data(m->d_act);
    expert_launch(c, &call);
}

static void expert_activation_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    m->d_up = layer_tensor(c, sizes(c)->most, sizes(c)->up_width);
    struct activation_call call = {.t = sizes(c)->most,
                                   .f = sizes(c)->ffn,
                                   .count = routing_rows(c),
                                   .u = tensor_data(m->up),
                                   .da = tensor_data(m->d_act),
                                   .du = tensor_data(m->d_up)};
    layer_activation(c, call, true);
    layer_drop(c, &m->d_act);
    layer_drop(c, &m->up);
}

static void expert_up_input_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    struct kernel_call call = expert_product_of(c, EXPERT_PRODUCT_UP, KERNEL_GROUPED_BACKWARD_INPUT);
    struct tensor *d_x = layer_tensor(c, sizes(c)->most, c->shape->hidden);
    expert_operands(&call, NULL, m->d_up);
    call.grouped.dx = tensor_data(d_x);
    expert_launch(c, &call);
    mixture_unsort(c, &d_x);
}

static void shared_down_input_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct mixture_state *m = &c->state->mixture;
    struct tensor *d_act = layer_tensor(c, s->tokens, sizes(c)->shared);
    m->d_shared_up = layer_tensor(c, s->tokens, sizes(c)->shared_up);
    product_input(c, shared_down_of(c), c->state->d_full, tensor_data(d_act), false);
    struct activation_call call = {.t = s->tokens,
                                   .f = sizes(c)->shared,
                                   .u = tensor_data(m->shared_up),
                                   .da = tensor_data(d_act),
                                   .du = tensor_data(m->d_shared_up)};
    layer_activation(c, call, true);
    layer_drop(c, &d_act);
    layer_drop(c, &m->shared_up);
}

static void shared_up_input_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    m->d_shared = layer_tensor(c, c->shape->tokens, c->shape->hidden);
    layer_cast_gradient(c, shared_up_of(c), &m->d_shared_up);
    product_input(c, shared_up_of(c), m->d_shared_up, tensor_data(m->d_shared), false);
}

static void permute_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    struct kernel_call call = combine_of(c, KERNEL_COMBINE_FORWARD);
    l->d_n2 = mixture_shares(c);
    call.combine.rows = tensor_data(l->mixture.rows);
    call.combine.y = mixture_own(c, l->d_n2);
    layer_launch(c, &call);
    layer_drop(c, &l->mixture.rows);
}

static void router_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    struct mixture_state *m = &l->mixture;
    struct tensor *d_logits = layer_tensor(c, sizes(c)->share, sizes(c)->experts);
    struct kernel_call call = {.kernel = KERNEL_ROUTE_BACKWARD,
                               .route = {.t = sizes(c)->tokens,
                                         .experts = sizes(c)->experts,
                                         .top_k = sizes(c)->top_k,
                                         .gate = tensor_data(m->gate),
                                         .expert = routing_of(c).expert,
                                         .dgate = tensor_data(m->d_gate),
                                         .dlogits = tensor_data(d_logits)}};
    layer_launch(c, &call);
    product_input_of(c, router_of(c), operand_wide(tensor_data(d_logits)), mixture_own(c, l->d_n2), true);
    product_weight_of(c, router_of(c), operand_wide(tensor_data(d_logits)), operand_wide(mixture_own(c, l->n2)));
    layer_drop(c, &d_logits);
    layer_drop(c, &m->gate);
    layer_drop(c, &m->d_gate);
    layer_drop(c, &l->d_branch);
    layer_drop(c, &l->n2);
    if (sizes(c)->shared)
        return;
    layer_drop(c, &l->n2_full);
    layer_drop(c, &l->d_full);
}

/* Before the norm's backward pass: the gradient that came through the shared experts. */
static void add_shared(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    layer_add(c, l->d_n2, l->mixture.d_shared, NULL, l->d_n2);
    layer_drop(c, &l->mixture.d_shared);
}

/* --- weights */

static void expert_weight(const struct layer_context *c, enum expert_product product, struct tensor **dy, struct tensor **x)
{
    struct kernel_call call = expert_product_of(c, product, KERNEL_GROUPED_BACKWARD_WEIGHT);
    expert_operands(&call, *x, *dy);
    expert_launch(c, &call);
    layer_drop(c, dy);
    layer_drop(c, x);
}

static void expert_up_weight_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    expert_weight(c, EXPERT_PRODUCT_UP, &m->d_up, &m->x);
    layer_drop(c, &m->plan);
}

static void shared_down_weight_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    product_weight(c, shared_down_of(c), l->d_full, l->mixture.shared_act);
    layer_drop(c, &l->d_full);
    layer_drop(c, &l->mixture.shared_act);
}

static void shared_up_weight_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    product_weight(c, shared_up_of(c), l->mixture.d_shared_up, l->n2_full);
    layer_drop(c, &l->mixture.d_shared_up);
    layer_drop(c, &l->n2_full);
}

bool mixture_backward_step(const struct layer_context *c, const struct step *step)
{
    struct layer_state *l = c->state;
    struct mixture_state *m = &l->mixture;
    switch (step->kind) {
    case STEP_UNPERMUTE_BACKWARD: unpermute_step(c); break;
    case STEP_COMBINE_GRADIENT: mixture_dispatch(c, "gradients of results"); break;
    case STEP_COMBINE_TP_GRADIENT: mixture_dispatch_tp(c, "gradients of split experts' results"); break;
    case STEP_EXPERT_DOWN_INPUT: expert_down_input_step(c); break;
    case STEP_EXPERT_ACTIVATION_BACKWARD: expert_activation_step(c); break;
    case STEP_EXPERT_UP_INPUT: expert_up_input_step(c); break;
    case STEP_SHARED_GATHER_GRADIENT: tp_gather(c->step, l->d_branch, &l->d_full, "gradient of shared experts"); break;
    case STEP_SHARED_DOWN_INPUT: shared_down_input_step(c); break;
    case STEP_SHARED_UP_INPUT: shared_up_input_step(c); break;
    case STEP_SHARED_GATHER_AGAIN: tp_gather(c->step, l->n2, &l->n2_full, "input of shared experts again"); break;
    case STEP_SHARED_REDUCE_GRADIENT: tp_reduce(c->step, &m->d_shared, "gradient of shared experts' input"); break;
    case STEP_DISPATCH_TP_GRADIENT: mixture_combine_tp(c, "gradients of split experts' tokens"); break;
    case STEP_DISPATCH_GRADIENT: mixture_combine(c, "gradients of tokens"); break;
    case STEP_PERMUTE_BACKWARD: permute_step(c); break;
    case STEP_ROUTER_BACKWARD: router_step(c); break;
    case STEP_MIXTURE_GATHER_GRADIENT: mixture_gather_shares(c, l->d_n2, "gradients of all tokens"); break;
    case STEP_EXPERT_DOWN_WEIGHT: expert_weight(c, EXPERT_PRODUCT_DOWN, &m->d_y, &m->act); break;
    case STEP_EXPERT_UP_WEIGHT: expert_up_weight_step(c); break;
    case STEP_SHARED_DOWN_WEIGHT: shared_down_weight_step(c); break;
    case STEP_SHARED_UP_WEIGHT: shared_up_weight_step(c); break;
    case STEP_NORM2_BACKWARD: add_shared(c); return false; /* the rest is as everywhere */
    default: return false;
    }
    return true;
}
