/* steps_attention.c - the core of attention and the exchanges of context parallelism, as steps, in the order of
 * model/cost/work/work_attention.c. */
#include "runtime/layer/steps/steps_internal.h"

/* Packed, exchanged, put in place: queries, keys and values, or what attention gives. */
static void swap_heads(struct builder *b, bool context, bool gradient)
{
    if (layout_cp_heads(b->layout) == 1)
        return;
    enum step_kind swap = gradient ? STEP_HEADS_SWAP_GRADIENT : STEP_HEADS_SWAP;
    steps_add(b, gradient ? STEP_HEADS_PACK_GRADIENT : STEP_HEADS_PACK, "pack_heads")->context = context;
    steps_add_exchange_over(b, swap, COLLECTIVE_ALL_TO_ALL, GROUP_CP_HEADS)->context = context;
    steps_add(b, gradient ? STEP_HEADS_PLACE_GRADIENT : STEP_HEADS_PLACE, "place_heads")->context = context;
}

static bool gathers(const struct builder *b)
{
    return layout_cp_keys(b->layout) > 1 && cp_comm_gathers(b->layout->cp_comm);
}

/* Keys and values of the whole sequence come from the other ranks: all of them before attention begins, or piece by piece. */
static void gather_keys(struct builder *b, bool again)
{
    if (layout_cp_keys(b->layout) > 1)
        steps_add_exchange_over(b, again ? STEP_KV_GATHER_AGAIN : STEP_KV_GATHER, COLLECTIVE_ALL_GATHER, GROUP_CP);
    if (gathers(b))
        steps_add(b, again ? STEP_KV_ORDER_AGAIN : STEP_KV_ORDER, "order_keys");
}

/* The additions of a ring's steps are part of attention here. */
static void merge_steps(struct builder *b)
{
    if (b->fused && layout_cp_keys(b->layout) > 1 && !gathers(b))
        steps_add(b, STEP_NOTHING, "merge_steps");
}

static void core(struct builder *b)
{
    gather_keys(b, false);
    steps_add(b, STEP_ATTENTION, b->fused ? "attention" : "scores");
    if (!b->fused) {
        steps_add(b, STEP_NOTHING, "softmax");
        steps_add(b, STEP_NOTHING, "context");
    }
    merge_steps(b);
}

void steps_attention(struct builder *b)
{
    swap_heads(b, false, false);
    if (!(b->recompute && b->keeps_products))
        core(b);
    swap_heads(b, true, false);
}

void steps_attention_backward(struct builder *b)
{
    static const char *const rest[] = {"d_value", "softmax", "d_query", "d_key"};
    swap_heads(b, true, true);
    gather_keys(b, true);
    steps_add(b, STEP_ATTENTION_BACKWARD, b->fused ? "attention" : "d_probabilities");
    for (int i = 0; !b->fused && i < 4; i++)
        steps_add(b, STEP_NOTHING, rest[i]);
    merge_steps(b);
    if (gathers(b)) {
        steps_add(b, STEP_KV_ORDER_GRADIENT, "order_keys");
        steps_add_exchange_over(b, STEP_KV_REDUCE, COLLECTIVE_REDUCE_SCATTER, GROUP_CP);
    }
    swap_heads(b, false, true);
}
