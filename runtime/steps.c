/* steps.c - the transformer as lists of steps, in the order of model/cost/work_layer.c. */
#include "runtime/steps.h"

#include "model/base/memory.h"

struct builder {
    struct step_list *list;
    const struct layout *layout;
    const struct transformer *model;
    struct layer_range range;
    int layer, ahead; /* of the chunk; of a prediction module's embedding and head */
    bool recompute, sequence_parallel, parallel_block, fused;
    bool stops_early; /* recomputing: ends with what the down-projection reads */
};

static void add(struct builder *b, enum step_kind kind, const char *label)
{
    struct step_list *list = b->list;
    list->items = memory_grow(list->items, &list->capacity, list->n_items + 1, sizeof *list->items);
    list->items[list->n_items++] =
        (struct step){.kind = kind, .layer = b->layer, .ahead = b->ahead, .recompute = b->recompute, .label = label ? label : ""};
}

static void add_exchange_over(struct builder *b, enum step_kind kind, enum collective collective, enum group_kind group)
{
    add(b, kind, NULL);
    struct step *step = &b->list->items[b->list->n_items - 1];
    step->exchange = true;
    step->collective = (uint8_t)collective;
    step->group = (uint8_t)group;
}

static void add_exchange(struct builder *b, enum step_kind kind, enum collective collective)
{
    add_exchange_over(b, kind, collective, GROUP_TP);
}

static bool is_mixture(const struct builder *b)
{
    return layer_is_mixture(b->model, b->range.first + b->layer);
}

static bool is_parallel(const struct builder *b)
{
    return b->parallel_block && !is_mixture(b);
}

static bool is_latent(const struct builder *b)
{
    return b->model->attention == ATTENTION_LATENT;
}

/* Gather a sharded sequence; nothing where it is not sharded. */
static void gather(struct builder *b, enum step_kind kind)
{
    if (b->sequence_parallel)
        add_exchange(b, kind, COLLECTIVE_ALL_GATHER);
}

static void reduce(struct builder *b, enum step_kind kind)
{
    if (b->layout->tp > 1)
        add_exchange(b, kind, b->sequence_parallel ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE);
}

/* Keys and values of the whole sequence come from the other context-parallel ranks. */
static void gather_keys(struct builder *b, enum step_kind kind)
{
    if (b->layout->cp > 1)
        add_exchange_over(b, kind, COLLECTIVE_ALL_GATHER, GROUP_CP);
}

static void attention(struct builder *b)
{
    gather_keys(b, STEP_KV_GATHER);
    add(b, STEP_ATTENTION, b->fused ? "attention" : "scores");
    if (!b->fused) {
        add(b, STEP_NOTHING, "softmax");
        add(b, STEP_NOTHING, "context");
    }
}

static void attention_backward(struct builder *b)
{
    static const char *const rest[] = {"d_value", "softmax", "d_query", "d_key"};
    gather_keys(b, STEP_KV_GATHER_AGAIN);
    add(b, STEP_ATTENTION_BACKWARD, b->fused ? "attention" : "d_probabilities");
    for (int i = 0; !b->fused && i < 4; i++)
        add(b, STEP_NOTHING, rest[i]);
}

static bool compresses_queries(const struct builder *b)
{
    return b->model->latent.q_lora_rank > 0;
}

static void attention_inputs(struct builder *b)
{
    if (!is_latent(b)) {
        add(b, STEP_QKV, "qkv");
        return;
    }
    if (compresses_queries(b))
        add(b, STEP_Q_DOWN, "q_down");
    add(b, STEP_Q_UP, compresses_queries(b) ? "q_up" : "q");
    add(b, STEP_KV_DOWN, "kv_down");
    add(b, STEP_KV_UP, "kv_up");
}

static void attention_forward_branch(struct builder *b, bool reduces)
{
    gather(b, STEP_GATHER1);
    attention_inputs(b);
    if (b->model->qk_norm)
        add(b, STEP_HEAD_NORMS, "query_key_norm");
    if (b->model->position == POSITION_ROTARY)
        add(b, STEP_ROTARY, "rotary");
    attention(b);
    add(b, STEP_PROJECTION, "projection");
    if (reduces)
        reduce(b, STEP_REDUCE1);
}

static void exchange_experts(struct builder *b, enum step_kind kind)
{
    if (b->layout->ep > 1)
        add_exchange_over(b, kind, COLLECTIVE_ALL_TO_ALL, GROUP_EP);
}

/* Experts that are split over the tensor-parallel group. */
static void exchange_split(struct builder *b, enum step_kind kind, enum collective collective)
{
    if (layout_expert_tp(b->layout) > 1)
        add_exchange(b, kind, collective);
}

static void gather_shares(struct builder *b, enum step_kind kind)
{
    if (b->layout->tp > 1 && !b->sequence_parallel)
        add_exchange(b, kind, COLLECTIVE_ALL_GATHER);
}

static bool has_shared(const struct builder *b)
{
    const struct mixture *moe = &b->model->moe;
    return (moe->shared_ffn ? moe->shared_ffn : moe->shared_experts * moe->expert_ffn) > 0;
}

/* Ours is added, and its gradient summed, beside the products. */
static void expert_bias(struct builder *b)
{
    if (b->model->linear_bias)
        add(b, STEP_NOTHING, "expert_bias");
}

static void mixture_forward_steps(struct builder *b)
{
    add(b, STEP_ROUTER, "router");
    add(b, STEP_TOP_K, "top_k");
    add(b, STEP_PERMUTE, "permute");
    exchange_experts(b, STEP_DISPATCH);
    exchange_split(b, STEP_DISPATCH_TP, COLLECTIVE_ALL_GATHER);
    add(b, STEP_EXPERT_UP, "expert_up");
    add(b, STEP_EXPERT_ACTIVATION, "expert_activation");
    add(b, STEP_EXPERT_DOWN, "expert_down");
    expert_bias(b);
    exchange_split(b, STEP_COMBINE_TP, COLLECTIVE_REDUCE_SCATTER);
    exchange_experts(b, STEP_COMBINE);
    add(b, STEP_UNPERMUTE, "unpermute");
    gather_shares(b, STEP_MIXTURE_GATHER);
    if (!has_shared(b))
        return;
    gather(b, STEP_SHARED_GATHER);
    add(b, STEP_SHARED_UP, "shared_up");
    add(b, STEP_NOTHING, "expert_activation"); /* with the step before */
    add(b, STEP_SHARED_DOWN, "shared_down");
    reduce(b, STEP_SHARED_REDUCE);
}

static void dense_forward_steps(struct builder *b)
{
    add(b, STEP_UP, "mlp_up");
    add(b, STEP_ACTIVATION, "activation");
    if (b->stops_early)
        return;
    add(b, STEP_DOWN, "mlp_down");
    reduce(b, STEP_REDUCE2);
}

static void layer_forward_steps(struct builder *b)
{
    add(b, STEP_NORM1, "norm");
    attention_forward_branch(b, !is_parallel(b));
    if (!is_parallel(b)) {
        add(b, STEP_RESIDUAL1, "residual");
        add(b, STEP_NORM2, "norm");
    }
    if (is_mixture(b)) {
        mixture_forward_steps(b);
    } else {
        if (!is_parallel(b))
            gather(b, STEP_GATHER2);
        dense_forward_steps(b);
    }
    if (!b->stops_early)
        add(b, STEP_RESIDUAL2, "residual");
}

/* A column-parallel product: the gathered input comes back beside the input's gradient, whose exchange runs beside the weights'.
 */
struct column_steps {
    enum step_kind input, gather, reduce, weight;
    const char *label;
};

static void column_backward(struct builder *b, struct column_steps s, bool exchanges, bool input, bool weight)
{
    if (input) {
        add(b, s.input, s.label);
        if (exchanges)
            gather(b, s.gather);
    }
    if (weight)
        add(b, s.weight, s.label);
    if (input && exchanges)
        reduce(b, s.reduce);
}

static void mlp_backward_steps(struct builder *b, bool input, bool weight)
{
    static const struct column_steps up = {STEP_UP_INPUT, STEP_GATHER2_AGAIN, STEP_REDUCE_UP_GRADIENT, STEP_UP_WEIGHT, "mlp_up"};
    if (input) {
        gather(b, STEP_GATHER_DOWN_GRADIENT);
        add(b, STEP_DOWN_INPUT, "mlp_down");
    }
    if (weight)
        add(b, STEP_DOWN_WEIGHT, "mlp_down");
    if (input)
        add(b, STEP_ACTIVATION_BACKWARD, "activation");
    column_backward(b, up, !is_parallel(b), input, weight);
}

static void experts_input_steps(struct builder *b)
{
    add(b, STEP_EXPERT_DOWN_INPUT, "expert_down");
    add(b, STEP_EXPERT_ACTIVATION_BACKWARD, "expert_activation");
    add(b, STEP_EXPERT_UP_INPUT, "expert_up");
    if (!has_shared(b))
        return;
    gather(b, STEP_SHARED_GATHER_GRADIENT);
    add(b, STEP_SHARED_DOWN_INPUT, "shared_down");
    add(b, STEP_NOTHING, "expert_activation"); /* with the step before */
    add(b, STEP_SHARED_UP_INPUT, "shared_up");
    gather(b, STEP_SHARED_GATHER_AGAIN);
    reduce(b, STEP_SHARED_REDUCE_GRADIENT);
}

static void experts_weight_steps(struct builder *b)
{
    add(b, STEP_EXPERT_DOWN_WEIGHT, "expert_down");
    add(b, STEP_EXPERT_UP_WEIGHT, "expert_up");
    if (!has_shared(b))
        return;
    add(b, STEP_SHARED_DOWN_WEIGHT, "shared_down");
    add(b, STEP_SHARED_UP_WEIGHT, "shared_up");
}

static void mixture_backward_steps(struct builder *b, bool input, bool weight)
{
    if (input) {
        add(b, STEP_UNPERMUTE_BACKWARD, "unpermute");
        exchange_experts(b, STEP_COMBINE_GRADIENT);
        exchange_split(b, STEP_COMBINE_TP_GRADIENT, COLLECTIVE_ALL_GATHER);
        expert_bias(b);
        experts_input_steps(b);
        exchange_split(b, STEP_DISPATCH_TP_GRADIENT, COLLECTIVE_REDUCE_SCATTER);
        exchange_experts(b, STEP_DISPATCH_GRADIENT);
        add(b, STEP_PERMUTE_BACKWARD, "permute");
        add(b, STEP_ROUTER_BACKWARD, "router");
        add(b, STEP_NOTHING, "top_k");
        gather_shares(b, STEP_MIXTURE_GATHER_GRADIENT);
    }
    if (weight)
        experts_weight_steps(b);
}

/* Products with one input: the exchanges are the first one's, which comes last. */
static void attention_inputs_backward(struct builder *b, bool input, bool weight)
{
    static const struct column_steps qkv = {STEP_QKV_INPUT, STEP_GATHER1_AGAIN, STEP_REDUCE_QKV_GRADIENT, STEP_QKV_WEIGHT, "qkv"};
    static const struct column_steps kv_up = {.input = STEP_KV_UP_INPUT, .weight = STEP_KV_UP_WEIGHT, .label = "kv_up"};
    static const struct column_steps kv_down = {.input = STEP_KV_DOWN_INPUT, .weight = STEP_KV_DOWN_WEIGHT, .label = "kv_down"};
    static const struct column_steps q_down = {STEP_Q_DOWN_INPUT, STEP_GATHER1_AGAIN, STEP_REDUCE_QKV_GRADIENT,
                                               STEP_Q_DOWN_WEIGHT, "q_down"};
    struct column_steps q_up = {STEP_Q_UP_INPUT, STEP_GATHER1_AGAIN, STEP_REDUCE_QKV_GRADIENT, STEP_Q_UP_WEIGHT, "q_up"};
    if (!is_latent(b)) {
        column_backward(b, qkv, true, input, weight);
        return;
    }
    column_backward(b, kv_up, false, input, weight);
    column_backward(b, kv_down, false, input, weight);
    q_up.label = compresses_queries(b) ? "q_up" : "q";
    column_backward(b, q_up, !compresses_queries(b), input, weight);
    if (compresses_queries(b))
        column_backward(b, q_down, true, input, weight);
}

static void attention_backward_steps(struct builder *b, bool input, bool weight)
{
    if (input) {
        if (!is_parallel(b))
            gather(b, STEP_GATHER_PROJECTION_GRADIENT);
        add(b, STEP_PROJECTION_INPUT, "projection");
    }
    if (weight)
        add(b, STEP_PROJECTION_WEIGHT, "projection");
    if (input) {
        attention_backward(b);
        if (b->model->position == POSITION_ROTARY)
            add(b, STEP_ROTARY_BACKWARD, "rotary");
        if (b->model->qk_norm)
            add(b, STEP_HEAD_NORMS_BACKWARD, "query_key_norm");
    }
    attention_inputs_backward(b, input, weight);
}

static void layer_backward_steps(struct builder *b, bool input, bool weight)
{
    if (input && b->layout->recompute != RECOMPUTE_NONE) {
        b->recompute = true;
        b->stops_early = layout_recomputes_by_need(b->layout);
        if (b->layout->recompute == RECOMPUTE_FULL)
            layer_forward_steps(b);
        else
            attention(b);
        b->recompute = b->stops_early = false;
    }
    if (input)
        add(b, STEP_RESIDUAL2_BACKWARD, "residual");
    if (is_mixture(b))
        mixture_backward_steps(b, input, weight);
    else
        mlp_backward_steps(b, input, weight);
    if (input && !is_parallel(b)) {
        add(b, STEP_NORM2_BACKWARD, "norm");
        add(b, STEP_RESIDUAL1_BACKWARD, "residual");
    }
    attention_backward_steps(b, input, weight);
    if (input)
        add(b, STEP_NORM1_BACKWARD, "norm");
}

/* --- ends */

static void embedding_forward_steps(struct builder *b)
{
    add(b, STEP_EMBED, "embedding");
    reduce(b, STEP_EMBED_REDUCE);
}

static void embedding_backward_steps(struct builder *b)
{
    gather(b, STEP_EMBED_GATHER_BACKWARD);
    add(b, STEP_EMBED_BACKWARD, "embedding");
}

static void head_forward_steps(struct builder *b)
{
    add(b, STEP_FINAL_NORM, "final_norm");
    gather(b, STEP_HEAD_GATHER);
    add(b, STEP_LOGITS, "logits");
    add(b, STEP_CROSS_ENTROPY, "cross_entropy");
}

static void head_backward_steps(struct builder *b, bool input, bool weight)
{
    if (input) {
        add(b, STEP_CROSS_ENTROPY_BACKWARD, "cross_entropy");
        add(b, STEP_LOGITS_INPUT, "logits");
    }
    if (weight)
        add(b, STEP_LOGITS_WEIGHT, "logits");
    if (input) {
        reduce(b, STEP_HEAD_REDUCE_BACKWARD);
        add(b, STEP_FINAL_NORM_BACKWARD, "final_norm");
    }
}

/* --- modules of multi-token prediction */

static void prediction_forward_steps(struct builder *b)
{
    embedding_forward_steps(b);
    b->layer = b->range.count + b->ahead - 1;
    add(b, STEP_PREDICTION_NORMS, "mtp_norms");
    gather(b, STEP_PREDICTION_GATHER);
    add(b, STEP_PREDICTION_PROJECTION, "mtp_projection");
    if (b->layout->tp > 1)
        add_exchange(b, STEP_PREDICTION_COLUMNS, COLLECTIVE_ALL_GATHER);
    layer_forward_steps(b);
    b->layer = -1;
    head_forward_steps(b);
}

static void prediction_backward_steps(struct builder *b, bool input, bool weight)
{
    static const struct column_steps joined = {STEP_PREDICTION_INPUT, STEP_PREDICTION_GATHER_AGAIN, STEP_PREDICTION_REDUCE,
                                               STEP_PREDICTION_WEIGHT, "mtp_projection"};
    head_backward_steps(b, input, weight);
    b->layer = b->range.count + b->ahead - 1;
    layer_backward_steps(b, input, weight);
    if (input)
        gather(b, STEP_PREDICTION_GATHER_GRADIENT);
    column_backward(b, joined, true, input, weight);
    if (input)
        add(b, STEP_PREDICTION_NORMS_BACKWARD, "mtp_norms");
    b->layer = -1;
    if (input)
        embedding_backward_steps(b);
}

/* --- a pass */

/* Steps since `begin` are one layer, or one end. */
static void mark(struct step_list *list, size_t begin)
{
    if (begin == list->n_items)
        return;
    list->items[begin].first = true;
    list->items[list->n_items - 1].last = true;
}

static void add_layer(struct builder *b, enum pass pass, int layer)
{
    size_t begin = b->list->n_items;
    b->layer = layer;
    if (pass == PASS_FORWARD)
        layer_forward_steps(b);
    else
        layer_backward_steps(b, pass != PASS_BACKWARD_WEIGHT, pass != PASS_BACKWARD_INPUT);
    mark(b->list, begin);
    b->layer = -1;
}

static void add_embedding(struct builder *b, enum pass pass)
{
    size_t begin = b->list->n_items;
    if (pass == PASS_FORWARD)
        embedding_forward_steps(b);
    else if (pass != PASS_BACKWARD_WEIGHT)
        embedding_backward_steps(b);
    mark(b->list, begin);
}

/* The model's own prediction, then those of the modules; backward the other way round. */
static void add_head(struct builder *b, enum pass pass)
{
    size_t begin = b->list->n_items;
    bool input = pass != PASS_BACKWARD_WEIGHT, weight = pass != PASS_BACKWARD_INPUT;
    if (pass == PASS_FORWARD)
        head_forward_steps(b);
    for (int i = 1; i <= b->model->mtp_layers; i++) {
        b->ahead = pass == PASS_FORWARD ? i : b->model->mtp_layers + 1 - i;
        if (pass == PASS_FORWARD)
            prediction_forward_steps(b);
        else
            prediction_backward_steps(b, input, weight);
    }
    b->ahead = 0;
    if (pass != PASS_FORWARD)
        head_backward_steps(b, input, weight);
    mark(b->list, begin);
}

void step_list_build(const struct layout *layout, const struct setting *setting, enum pass pass, struct layer_range range,
                     bool embedding, bool head, struct step_list *list)
{
    struct builder b = {.list = list,
                        .layout = layout,
                        .model = setting->model,
                        .range = range,
                        .layer = -1,
                        .sequence_parallel = layout->sequence_parallel && layout->tp > 1,
                        .parallel_block = layout->features & FEATURE_BIT(PARALLEL_BLOCK),
                        .fused = layout->features & FEATURES_FLASH};
    bool forward = pass == PASS_FORWARD;
    if (forward && embedding)
        add_embedding(&b, pass);
    if (!forward && head)
        add_head(&b, pass);
    for (int i = 0; i < range.count; i++)
        add_layer(&b, pass, forward ? i : range.count - 1 - i);
    if (forward && head)
        add_head(&b, pass);
    if (!forward && embedding)
        add_embedding(&b, pass);
}
