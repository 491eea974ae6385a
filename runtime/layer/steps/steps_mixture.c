/* steps_mixture.c - the experts of a layer as steps, in both passes and when recomputed. */
#include "runtime/layer/steps/steps_internal.h"

static void exchange_experts(struct builder *b, enum step_kind kind)
{
    if (b->layout->ep > 1)
        steps_add_exchange_over(b, kind, COLLECTIVE_ALL_TO_ALL, GROUP_EP);
}

/* Experts that are split over the tensor-parallel group. */
static void exchange_split(struct builder *b, enum step_kind kind, enum collective collective)
{
    if (layout_expert_tp(b->layout) > 1)
        steps_add_exchange(b, kind, collective);
}

static void gather_shares(struct builder *b, enum step_kind kind)
{
    if (b->layout->tp > 1 && !b->sequence_parallel)
        steps_add_exchange(b, kind, COLLECTIVE_ALL_GATHER);
}

static bool has_shared(const struct builder *b)
{
    const struct mixture *moe = &b->model->moe;
    return (moe->shared_ffn ? moe->shared_ffn : moe->shared_experts * moe->expert_ffn) > 0;
}

/* The runtime adds biases, and sums their gradients, in the products. */
static void expert_bias(struct builder *b)
{
    if (b->model->linear_bias)
        steps_add(b, STEP_NOTHING, "expert_bias");
}

/* Clamping is part of our activation. */
static void expert_activation(struct builder *b, enum step_kind kind)
{
    if (b->model->gated_mlp && b->model->mlp_limit > 0)
        steps_add(b, STEP_NOTHING, "expert_clamp");
    steps_add(b, kind, "expert_activation");
}

static void shared_forward_steps(struct builder *b)
{
    if (!has_shared(b))
        return;
    steps_gather(b, STEP_SHARED_GATHER);
    steps_cast(b, STEP_SHARED_UP);
    steps_add(b, STEP_SHARED_UP, "shared_up");
    expert_activation(b, STEP_NOTHING); /* with the step before */
    steps_cast(b, STEP_SHARED_DOWN);
    steps_add(b, STEP_SHARED_DOWN, "shared_down");
    steps_reduce(b, STEP_SHARED_REDUCE);
}

/* Rows of an expert are not filled up here; the copy that does it puts them in order, which others do with the product. */
static void pad(struct builder *b, enum step_kind kind, const char *label)
{
    if (b->casts)
        steps_add(b, kind, label);
}

void steps_mixture_forward(struct builder *b)
{
    steps_add(b, STEP_ROUTER, "router");
    steps_add(b, STEP_TOP_K, "top_k");
    steps_add(b, STEP_PERMUTE, "permute");
    exchange_experts(b, STEP_DISPATCH);
    exchange_split(b, STEP_DISPATCH_TP, COLLECTIVE_ALL_GATHER);
    pad(b, STEP_EXPERT_SORT, "pad");
    steps_cast(b, STEP_EXPERT_UP);
    steps_add(b, STEP_EXPERT_UP, "expert_up");
    expert_activation(b, STEP_EXPERT_ACTIVATION);
    steps_cast(b, STEP_EXPERT_DOWN);
    steps_add(b, STEP_EXPERT_DOWN, "expert_down");
    pad(b, STEP_NOTHING, "unpad"); /* with the step before */
    expert_bias(b);
    exchange_split(b, STEP_COMBINE_TP, COLLECTIVE_REDUCE_SCATTER);
    exchange_experts(b, STEP_COMBINE);
    steps_add(b, STEP_UNPERMUTE, "unpermute");
    gather_shares(b, STEP_MIXTURE_GATHER);
    shared_forward_steps(b);
}

void steps_mixture_modules(struct builder *b, enum recompute_what modules)
{
    if (modules & RECOMPUTE_MOE) {
        steps_mixture_forward(b);
        return;
    }
    if (modules & RECOMPUTE_MOE_ACT) {
        expert_activation(b, STEP_EXPERT_ACTIVATION);
        steps_cast(b, STEP_EXPERT_DOWN);
    }
    if (modules & RECOMPUTE_SHARED_EXPERTS)
        shared_forward_steps(b);
}

static void experts_input_steps(struct builder *b)
{
    pad(b, STEP_EXPERT_SORT_GRADIENT, "unpad");
    steps_cast_gradient(b, STEP_EXPERT_DOWN_INPUT);
    steps_add(b, STEP_EXPERT_DOWN_INPUT, "expert_down");
    expert_activation(b, STEP_EXPERT_ACTIVATION_BACKWARD);
    steps_cast_gradient(b, STEP_EXPERT_UP_INPUT);
    steps_add(b, STEP_EXPERT_UP_INPUT, "expert_up");
    if (!has_shared(b))
        return;
    steps_gather(b, STEP_SHARED_GATHER_GRADIENT);
    steps_cast_gradient(b, STEP_SHARED_DOWN_INPUT);
    steps_add(b, STEP_SHARED_DOWN_INPUT, "shared_down");
    expert_activation(b, STEP_NOTHING); /* with the step before */
    steps_cast_gradient(b, STEP_SHARED_UP_INPUT);
    steps_add(b, STEP_SHARED_UP_INPUT, "shared_up");
    steps_gather(b, STEP_SHARED_GATHER_AGAIN);
    steps_reduce(b, STEP_SHARED_REDUCE_GRADIENT);
}

/* Ours are added up inside the products of each expert, also where others do it after them: of all experts, then shared ones. */
static void experts_sums(struct builder *b)
{
    if (!work_sums_gradients(b->layout, b->job))
        return;
    steps_add(b, STEP_NOTHING, "gradient_sum");
    if (has_shared(b))
        steps_add(b, STEP_NOTHING, "gradient_sum");
}

static void experts_weight_steps(struct builder *b)
{
    steps_add(b, STEP_EXPERT_DOWN_WEIGHT, "expert_down");
    steps_add(b, STEP_EXPERT_UP_WEIGHT, "expert_up");
    if (has_shared(b)) {
        steps_add(b, STEP_SHARED_DOWN_WEIGHT, "shared_down");
        steps_add(b, STEP_SHARED_UP_WEIGHT, "shared_up");
    }
    experts_sums(b);
}

void steps_mixture_backward(struct builder *b, bool input, bool weight)
{
    if (input) {
        steps_add(b, STEP_UNPERMUTE_BACKWARD, "unpermute");
        exchange_experts(b, STEP_COMBINE_GRADIENT);
        exchange_split(b, STEP_COMBINE_TP_GRADIENT, COLLECTIVE_ALL_GATHER);
        expert_bias(b);
        experts_input_steps(b);
        pad(b, STEP_NOTHING, "pad");
        exchange_split(b, STEP_DISPATCH_TP_GRADIENT, COLLECTIVE_REDUCE_SCATTER);
        exchange_experts(b, STEP_DISPATCH_GRADIENT);
        steps_add(b, STEP_PERMUTE_BACKWARD, "permute");
        steps_add(b, STEP_ROUTER_BACKWARD, "router");
        steps_add(b, STEP_NOTHING, "top_k");
        gather_shares(b, STEP_MIXTURE_GATHER_GRADIENT);
    }
    if (weight)
        experts_weight_steps(b);
}
