/* layer_mixture.c - the forward pass of a mixture of experts. */
#include "runtime/layer/layer_mixture.h"

static void router_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    m->logits = layer_tensor(c, mixture_sizes(c)->share, mixture_sizes(c)->experts);
    product_forward_of(c, router_of(c), operand_wide(mixture_own(c, c->state->n2)), tensor_data(m->logits), false);
}

static void top_k_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    m->gate = layer_floats(c, mixture_room(c));
    m->plan = routing_new(c);
    struct kernel_call call = {.kernel = KERNEL_ROUTE_FORWARD,
                               .route = {.t = mixture_sizes(c)->tokens,
                                         .experts = mixture_sizes(c)->experts,
                                         .top_k = mixture_sizes(c)->top_k,
                                         .groups = mixture_sizes(c)->groups,
                                         .top_groups = mixture_sizes(c)->top_groups,
                                         .logits = tensor_data(m->logits),
                                         .gate = tensor_data(m->gate),
                                         .expert = routing_of(c).expert}};
    layer_launch(c, &call);
    layer_drop(c, &m->logits);
}

static void permute_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    int64_t h = c->shape->hidden;
    mixture_route(c);
    m->rows = layer_tensor(c, mixture_room(c), h);
    layer_rows(c, (struct rows_call){.n = mixture_copies(c),
                                     .width = h,
                                     .from_row = h,
                                     .to_row = h,
                                     .share = mixture_sizes(c)->top_k,
                                     .scatter = true,
                                     .index = routing_of(c).place,
                                     .from = mixture_own(c, c->state->n2),
                                     .to = tensor_data(m->rows)});
}

static void expert_up_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    struct kernel_call call = expert_product_of(c, EXPERT_PRODUCT_UP, KERNEL_GROUPED_FORWARD);
    if (!m->x)
        m->x = mixture_sort(c);
    m->up = layer_tensor(c, mixture_sizes(c)->most, mixture_sizes(c)->up_width);
    expert_operands(&call, m->x, NULL);
    call.grouped.y = tensor_data(m->up);
    expert_launch(c, &call);
    layer_forget(c, &m->x, RECOMPUTE_MOE);
}

static void expert_activation_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    m->act = layer_tensor(c, mixture_sizes(c)->most, mixture_sizes(c)->ffn);
    struct activation_call call = {.t = mixture_sizes(c)->most,
                                   .f = mixture_sizes(c)->ffn,
                                   .count = routing_rows(c),
                                   .u = tensor_data(m->up),
                                   .a = tensor_data(m->act)};
    layer_activation(c, call, false);
    layer_forget(c, &m->up, RECOMPUTE_MOE);
}

static void expert_down_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    struct kernel_call call = expert_product_of(c, EXPERT_PRODUCT_DOWN, KERNEL_GROUPED_FORWARD);
    struct tensor *y = layer_tensor(c, mixture_sizes(c)->most, c->shape->hidden);
    expert_operands(&call, m->act, NULL);
    call.grouped.y = tensor_data(y);
    expert_launch(c, &call);
    layer_forget(c, &m->act, RECOMPUTE_MOE_ACT);
    mixture_unsort(c, &y);
}

static void unpermute_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct mixture_state *m = &c->state->mixture;
    m->returned = m->rows;
    m->rows = NULL;
    c->state->branch = mixture_shares(c);
    struct kernel_call call = {.kernel = KERNEL_COMBINE_FORWARD,
                               .combine = {.t = mixture_sizes(c)->tokens,
                                           .h = s->hidden,
                                           .top_k = mixture_sizes(c)->top_k,
                                           .rows = tensor_data(m->returned),
                                           .place = routing_of(c).place,
                                           .gate = tensor_data(m->gate),
                                           .y = mixture_own(c, c->state->branch)}};
    layer_launch(c, &call);
    layer_forget(c, &m->returned, RECOMPUTE_MOE);
    layer_forget(c, &m->gate, RECOMPUTE_MOE);
    layer_forget(c, &m->plan, RECOMPUTE_MOE);
}

static void shared_up_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct mixture_state *m = &c->state->mixture;
    m->shared_up = layer_tensor(c, s->tokens, mixture_sizes(c)->shared_up);
    m->shared_act = layer_tensor(c, s->tokens, mixture_sizes(c)->shared);
    product_forward(c, shared_up_of(c), c->state->n2_full, tensor_data(m->shared_up), false);
    struct activation_call call = {
        .t = s->tokens, .f = mixture_sizes(c)->shared, .u = tensor_data(m->shared_up), .a = tensor_data(m->shared_act)};
    layer_activation(c, call, false);
    layer_forget(c, &m->shared_up, RECOMPUTE_SHARED_EXPERTS);
    if (s->sequence_parallel) /* gathered again in the backward pass */
        layer_drop(c, &c->state->n2_full);
}

static void shared_down_step(const struct layer_context *c)
{
    struct mixture_state *m = &c->state->mixture;
    m->shared = layer_tensor(c, c->shape->tokens, c->shape->hidden);
    product_forward(c, shared_down_of(c), m->shared_act, tensor_data(m->shared), false);
    layer_forget(c, &m->shared_act, RECOMPUTE_SHARED_EXPERTS);
}

/* The sum of both branches, with the shared experts' bias; then the residual connection as for any other layer. */
static void add_shared(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    const void *bias = s->linear_bias ? layer_weights(c, PARAMETER_SHARED_DOWN_BIAS) : NULL;
    layer_add(c, l->branch, l->mixture.shared, bias, l->branch);
    layer_drop(c, &l->mixture.shared);
    layer_forget(c, &l->n2_full, RECOMPUTE_LAYERNORM);
    layer_forget(c, &l->n2, RECOMPUTE_LAYERNORM);
}

bool mixture_forward_step(const struct layer_context *c, const struct step *step)
{
    struct layer_state *l = c->state;
    switch (step->kind) {
    case STEP_ROUTER: router_step(c); break;
    case STEP_TOP_K: top_k_step(c); break;
    case STEP_PERMUTE: permute_step(c); break;
    case STEP_DISPATCH: mixture_dispatch(c, "tokens to experts"); break;
    case STEP_DISPATCH_TP: mixture_dispatch_tp(c, "tokens of split experts"); break;
    case STEP_EXPERT_UP: expert_up_step(c); break;
    case STEP_EXPERT_ACTIVATION: expert_activation_step(c); break;
    case STEP_EXPERT_DOWN: expert_down_step(c); break;
    case STEP_COMBINE_TP: mixture_combine_tp(c, "results of split experts"); break;
    case STEP_COMBINE: mixture_combine(c, "results of experts"); break;
    case STEP_UNPERMUTE: unpermute_step(c); break;
    case STEP_MIXTURE_GATHER: mixture_gather_shares(c, l->branch, "results of all tokens"); break;
    case STEP_SHARED_GATHER: tp_gather(c->step, l->n2, &l->n2_full, "input of shared experts"); break;
    case STEP_SHARED_UP: shared_up_step(c); break;
    case STEP_SHARED_DOWN: shared_down_step(c); break;
    case STEP_SHARED_REDUCE: tp_reduce(c->step, &l->mixture.shared, "output of shared experts"); break;
    case STEP_RESIDUAL2:
        if (c->experts)
            add_shared(c);
        return false; /* the rest is as everywhere */
    default: return false;
    }
    return true;
}
