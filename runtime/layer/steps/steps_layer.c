/* steps_layer.c - a layer as a list of steps, in the order of model/cost/work/work_layer.c. */
#include "model/base/memory.h"
#include "model/cost/work/work.h"
#include "runtime/layer/steps/steps_internal.h"

static struct layer_kind kind_of(const struct builder *b)
{
    return layer_kind_of(b->model, b->range.first + b->layer);
}

static bool is_mixture(const struct builder *b)
{
    return kind_of(b).feed == FEEDS_EXPERTS;
}

static bool is_parallel(const struct builder *b)
{
    struct layer_kind kind = kind_of(b);
    return b->parallel_block && kind.feed == FEEDS_DENSE && kind.mixers != MIXES_NOT;
}

static bool is_latent(const struct builder *b)
{
    return b->model->attention == ATTENTION_LATENT;
}

/* --- products of one input */

static bool stand_apart(const struct builder *b)
{
    return work_keeps_matrices_apart(b->layout, b->model);
}

static bool compresses_queries(const struct builder *b)
{
    return b->model->latent.q_lora_rank > 0;
}

/* `labels` of a matrix in parts. */
static struct column_group parts_of(struct column_group group, const char *const *labels, int n)
{
    for (group.n = 0; group.n < n; group.n++) {
        group.items[group.n] = group.items[0];
        group.items[group.n].label = labels[group.n];
    }
    return group;
}

static struct column_group latent_group(const struct builder *b)
{
    struct column_group g = {.gather = STEP_GATHER1, .gather_again = STEP_GATHER1_AGAIN, .reduce = STEP_REDUCE_QKV_GRADIENT};
    bool compresses = compresses_queries(b);
    if (compresses)
        g.items[g.n++] = (struct column_product){STEP_Q_DOWN, STEP_Q_DOWN_INPUT, STEP_Q_DOWN_WEIGHT, "q_down", true};
    g.items[g.n++] =
        (struct column_product){STEP_Q_UP, STEP_Q_UP_INPUT, STEP_Q_UP_WEIGHT, compresses ? "q_up" : "q", !compresses};
    g.items[g.n++] = (struct column_product){STEP_KV_DOWN, STEP_KV_DOWN_INPUT, STEP_KV_DOWN_WEIGHT, "kv_down", true};
    g.items[g.n++] = (struct column_product){STEP_KV_UP, STEP_KV_UP_INPUT, STEP_KV_UP_WEIGHT, "kv_up", false};
    return g;
}

static struct column_group attention_group(const struct builder *b)
{
    static const char *const apart[] = {"q", "k", "v"};
    static const struct column_group packed = {.items = {{STEP_QKV, STEP_QKV_INPUT, STEP_QKV_WEIGHT, "qkv", true}},
                                               .n = 1,
                                               .gather = STEP_GATHER1,
                                               .gather_again = STEP_GATHER1_AGAIN,
                                               .reduce = STEP_REDUCE_QKV_GRADIENT,
                                               .sum = STEP_QKV_SUM};
    if (is_latent(b))
        return latent_group(b);
    return stand_apart(b) ? parts_of(packed, apart, 3) : packed;
}

static struct column_group mlp_group(const struct builder *b)
{
    static const char *const apart[] = {"mlp_gate", "mlp_up"};
    static const struct column_group packed = {.items = {{STEP_UP, STEP_UP_INPUT, STEP_UP_WEIGHT, "mlp_up", true}},
                                               .n = 1,
                                               .gather = STEP_GATHER2,
                                               .gather_again = STEP_GATHER2_AGAIN,
                                               .reduce = STEP_REDUCE_UP_GRADIENT,
                                               .sum = STEP_UP_SUM};
    if (!stand_apart(b))
        return packed;
    struct column_group group = parts_of(packed, apart, 2);
    group.each_exchanges = layout_follows_llama(b->layout, b->model);
    return group;
}

/* Eager stacks keep what was gathered. */
static struct column_group gathered_as(const struct builder *b, struct column_group group)
{
    if (layout_follows_llama(b->layout, b->model))
        group.gather_again = STEP_NOTHING;
    return group;
}

static struct column_group attention_inputs(const struct builder *b)
{
    return gathered_as(b, attention_group(b));
}

static struct column_group mlp_inputs(const struct builder *b)
{
    return gathered_as(b, mlp_group(b));
}

static void add_weight(struct builder *b, enum step_kind kind, const char *label)
{
    steps_leave_sum(b, steps_add(b, kind, label));
    steps_add_sum(b);
}

/* --- the halves of a layer */

/* The product that ends a mixer; whether what it gives is kept. */
static bool projection(struct builder *b, enum step_kind kind, const char *label)
{
    bool kept = steps_next_is_kept(b);
    steps_cast(b, kind);
    steps_add(b, kind, label)->kept = kept;
    return kept;
}

static void norms_and_rotation(struct builder *b)
{
    if (b->model->qk_norm)
        steps_add(b, STEP_HEAD_NORMS, "query_key_norm");
    if (b->model->position == POSITION_ROTARY)
        steps_add(b, STEP_ROTARY, "rotary");
}

/* `ends`: without the product behind it. */
static bool attention_forward_branch(struct builder *b, bool ends)
{
    struct column_group inputs = attention_inputs(b);
    steps_group_forward(b, &inputs, true);
    norms_and_rotation(b);
    steps_attention(b);
    return !ends && projection(b, STEP_PROJECTION, "projection");
}

static bool state_forward_branch(struct builder *b, bool gathers, bool ends)
{
    struct column_group inputs = gathered_as(b, steps_mixer_inputs(b));
    steps_group_forward(b, &inputs, gathers);
    steps_mixer(b);
    return !ends && projection(b, STEP_MIXER_OUT, "mixer_out");
}

/* Mixers side by side read one input, which the first gathers, and add up before they are reduced. The reduced output is kept
 * whatever becomes of the products. */
static void mixers_forward(struct builder *b)
{
    struct layer_kind kind = kind_of(b);
    bool both = kind.mixers == MIXES_BY_BOTH, ends = b->stops_early && kind.feed == FEEDS_NOT, kept = false;
    if (kind.mixers & MIXES_BY_ATTENTION)
        kept = attention_forward_branch(b, ends && !both);
    if (kind.mixers & MIXES_BY_STATE)
        kept = state_forward_branch(b, !both, ends) || kept;
    if (is_parallel(b))
        return;
    if (!ends && !(b->recompute && b->keeps_products))
        steps_reduce(b, STEP_REDUCE1);
    if (kind.feed != FEEDS_NOT)
        steps_add(b, STEP_RESIDUAL1, "residual")->kept = !b->recompute && b->keeps_products && (kept || b->layout->tp > 1);
}

static void dense_forward_steps(struct builder *b, bool gathers, bool reduces)
{
    struct column_group inputs = mlp_inputs(b);
    if (is_parallel(b)) /* the other branch's; gathered here where this one is repeated alone */
        inputs.gather = STEP_GATHER1;
    steps_group_forward(b, &inputs, gathers);
    steps_add(b, STEP_ACTIVATION, "activation");
    if (b->stops_early)
        return;
    steps_cast(b, STEP_DOWN);
    steps_add(b, STEP_DOWN, "mlp_down");
    if (reduces)
        steps_reduce(b, STEP_REDUCE2);
}

void steps_layer_forward(struct builder *b)
{
    struct layer_kind kind = kind_of(b);
    b->products = 0;
    if (kind.mixers != MIXES_NOT) {
        steps_add(b, STEP_NORM1, "norm");
        mixers_forward(b);
    }
    if (kind.feed != FEEDS_NOT && !is_parallel(b))
        steps_add(b, STEP_NORM2, "norm");
    if (kind.feed == FEEDS_EXPERTS)
        steps_mixture_forward(b);
    else if (kind.feed == FEEDS_DENSE)
        dense_forward_steps(b, !is_parallel(b), true);
    if (!b->stops_early)
        steps_add(b, STEP_RESIDUAL2, "residual");
}

/* --- modules that are repeated one by one */

static bool keeps_gathered(const struct builder *b)
{
    return layout_follows_llama(b->layout, b->model);
}

static void norm_module(struct builder *b, enum step_kind norm, enum step_kind gather, enum step_kind reader)
{
    steps_add(b, norm, "norm");
    if (keeps_gathered(b) && gather != STEP_NOTHING)
        steps_gather(b, gather);
    if (reader != STEP_NOTHING)
        steps_cast(b, reader);
}

/* The products behind the latents. */
static void latent_up_module(struct builder *b)
{
    struct column_group all = latent_group(b), up = all;
    up.n = 0;
    for (int i = 0; i < all.n; i++)
        if (all.items[i].forward == STEP_Q_UP || all.items[i].forward == STEP_KV_UP)
            up.items[up.n++] = all.items[i];
    steps_group_forward(b, &up, !keeps_gathered(b));
    norms_and_rotation(b);
}

static void mlp_module(struct builder *b)
{
    dense_forward_steps(b, !keeps_gathered(b), !is_parallel(b));
}

static void feed_modules(struct builder *b, enum recompute_what modules)
{
    if (modules & RECOMPUTE_LAYERNORM && !is_parallel(b))
        norm_module(b, STEP_NORM2, is_mixture(b) ? STEP_NOTHING : STEP_GATHER2, is_mixture(b) ? STEP_NOTHING : STEP_UP);
    if (is_mixture(b))
        steps_mixture_modules(b, modules);
    else if (modules & RECOMPUTE_MLP)
        mlp_module(b);
    else if (modules & RECOMPUTE_MLP_ACT) {
        steps_add(b, STEP_ACTIVATION, "activation");
        steps_cast(b, STEP_DOWN);
    }
}

static void modules_forward(struct builder *b, enum recompute_what modules)
{
    struct layer_kind kind = kind_of(b);
    bool attends = kind.mixers & MIXES_BY_ATTENTION;
    if (modules & RECOMPUTE_LAYERNORM && kind.mixers != MIXES_NOT)
        norm_module(b, STEP_NORM1, STEP_GATHER1, STEP_QKV);
    if (modules & RECOMPUTE_MLA_UP_PROJ && attends)
        latent_up_module(b);
    if (modules & RECOMPUTE_CORE_ATTN && attends)
        steps_attention(b);
    if (kind.feed != FEEDS_NOT)
        feed_modules(b, modules);
}

static void mlp_backward_steps(struct builder *b, bool input, bool weight)
{
    struct column_group inputs = mlp_inputs(b);
    if (input) {
        steps_cast_gradient(b, STEP_DOWN_INPUT);
        steps_gather(b, STEP_GATHER_DOWN_GRADIENT);
        steps_add(b, STEP_DOWN_INPUT, "mlp_down");
    }
    if (weight)
        add_weight(b, STEP_DOWN_WEIGHT, "mlp_down");
    if (input)
        steps_add(b, STEP_ACTIVATION_BACKWARD, "activation");
    steps_group_backward(b, &inputs, !is_parallel(b), input, weight);
}

/* Of the product that ends a mixer, whose output's gradient is gathered first. */
static void projection_backward(struct builder *b, enum step_kind input_kind, const char *label, bool gathers, bool input,
                                bool weight)
{
    if (input) {
        steps_cast_gradient(b, input_kind);
        if (gathers)
            steps_gather(b, STEP_GATHER_PROJECTION_GRADIENT);
        steps_add(b, input_kind, label);
    }
    if (weight)
        add_weight(b, input_kind + 1, label);
}

static void attention_backward_steps(struct builder *b, bool gathers, bool input, bool weight)
{
    struct column_group inputs = attention_inputs(b);
    projection_backward(b, STEP_PROJECTION_INPUT, "projection", gathers, input, weight);
    if (input) {
        steps_attention_backward(b);
        if (b->model->position == POSITION_ROTARY)
            steps_add(b, STEP_ROTARY_BACKWARD, "rotary");
        if (b->model->qk_norm)
            steps_add(b, STEP_HEAD_NORMS_BACKWARD, "query_key_norm");
    }
    steps_group_backward(b, &inputs, true, input, weight);
}

/* The first gathers the output's gradient for both, the last exchanges the input's. */
static void mixers_backward(struct builder *b, bool input, bool weight)
{
    struct layer_kind kind = kind_of(b);
    bool both = kind.mixers == MIXES_BY_BOTH, gathers = !is_parallel(b);
    if (kind.mixers & MIXES_BY_STATE) {
        struct column_group inputs = gathered_as(b, steps_mixer_inputs(b));
        projection_backward(b, STEP_MIXER_OUT_INPUT, "mixer_out", gathers, input, weight);
        if (input)
            steps_mixer_backward(b);
        steps_group_backward(b, &inputs, !both, input, weight);
    }
    if (kind.mixers & MIXES_BY_ATTENTION)
        attention_backward_steps(b, gathers && !both, input, weight);
}

void steps_layer_again(struct builder *b)
{
    b->recompute = true;
    b->stops_early = layout_recomputes_by_need(b->layout);
    if (b->layout->recompute.what == RECOMPUTE_FULL || b->keeps_products)
        steps_layer_forward(b);
    else
        modules_forward(b, layout_recomputed_modules(b->layout));
    b->recompute = b->stops_early = false;
}

void steps_layer_backward(struct builder *b, bool input, bool weight)
{
    struct layer_kind kind = kind_of(b);
    if (input && work_repeats_before(b->layout, b->model, b->range.first + b->layer) > 0)
        steps_layer_again(b);
    if (input) /* the weights of a prediction module stay with the head's */
        steps_add(b, STEP_RESIDUAL2_BACKWARD, "residual")->anew =
            work_gathers_to_recompute(b->layout, b->model, b->range.first + b->layer) && !b->ahead;
    if (kind.feed == FEEDS_EXPERTS)
        steps_mixture_backward(b, input, weight);
    else if (kind.feed == FEEDS_DENSE)
        mlp_backward_steps(b, input, weight);
    if (input && kind.feed != FEEDS_NOT && !is_parallel(b))
        steps_add(b, STEP_NORM2_BACKWARD, "norm");
    if (kind.mixers == MIXES_NOT)
        return;
    if (input && kind.feed != FEEDS_NOT && !is_parallel(b))
        steps_add(b, STEP_RESIDUAL1_BACKWARD, "residual");
    mixers_backward(b, input, weight);
    if (input)
        steps_add(b, STEP_NORM1_BACKWARD, "norm");
}
