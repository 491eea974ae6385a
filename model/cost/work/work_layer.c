/* work_layer.c - the works of one layer, in order. Byte counts per element and pass are derived at each kernel. */
#include "model/cost/work/work_layer.h"

enum { BF16 = 2 };

static bool fused_norm(const struct layer_builder *b)
{
    if (b->model->norm ==
        NORM_LAYER) /* every framework's layer norm is one kernel; the best ones also keep the row in registers */
        return true;
    return builder_has(b, FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(FUSED_RMSNORM) | FEATURE_BIT(COMPILE));
}

static bool fused_elementwise(const struct layer_builder *b)
{
    return builder_has(b, FEATURES_FUSING);
}

/* Norm: forward reads x and writes y; backward reads dy and x twice (input and weight gradients are two sweeps) and writes dx. An
 * eager RMS norm is a chain of kernels over fp32 copies: cast (2+4), square (4+4), mean (4), scale (4+4), cast (4+2), weight
 * (2+2) = 36 bytes forward. Backward, as autograd writes it out: by the weight (2+2), the weight's gradient (4+2) and its sum
 * (2), cast (2+4), the scale's two gradients (4+4, 8+4) and a sum (4), the mean spread (4), the square's (4+4, 4+4, 8+4), the two
 * added (8+4), cast (4+2) = 92. A frozen weight has no gradient: one sweep, 92 - 8 bytes and two kernels fewer. */
static void norm_of(struct layer_builder *b, const char *label, double elements, bool backward)
{
    enum memory_kernel kernel = backward ? MEMORY_NORM_BACKWARD : MEMORY_NORM;
    bool frozen = b->frozen;
    if (fused_norm(b))
        builder_memory(b, CLASS_MEMORY_BOUND, kernel, label, elements * BF16 * (backward ? (frozen ? 3 : 5) : 2),
                       backward && !frozen ? 2 : 1);
    else
        builder_memory(b, CLASS_MEMORY_BOUND, kernel, label, elements * (backward ? (frozen ? 84 : 92) : 36),
                       backward ? (frozen ? 13 : 15) : 7);
}

/* Of a part of a layer: before it, and behind it where the model has four in a layer. */
static void norm(struct layer_builder *b, bool backward)
{
    for (int i = 0; i < (b->model->layer_norms == 4 ? 2 : 1); i++)
        norm_of(b, "norm", b->local_tokens * (double)b->model->hidden, backward);
}

/* Residual: forward reads the branch and the stream and writes the stream; backward adds two gradients. Bias and dropout come
 * with models of the GPT-2 line: fused they add a one-byte mask, unfused a read and a write each. A job that names dropout has it
 * in any model. */
static void residual(struct layer_builder *b, bool backward)
{
    double elements = b->local_tokens * (double)b->model->hidden;
    double bytes = 3 * BF16;
    int kernels = 1;
    if (b->model->linear_bias || b->job->dropout > 0) {
        bytes += backward ? 2 * BF16 + 1 : 1; /* mask; the gradient behind the dropout is a tensor of its own */
        if (!fused_elementwise(b)) {
            bytes += backward ? 2 * BF16 : 2 * 2 * BF16;
            kernels += 2;
        }
    }
    builder_memory(b, CLASS_MEMORY_BOUND, backward ? MEMORY_RESIDUAL_BACKWARD : MEMORY_RESIDUAL, "residual", elements * bytes,
                   kernels);
}

/* Activation over width f: GeLU reads one and writes one, backward reads two and writes one; gated ones read two and write one,
 * backward read three and write two. Unfused, the bias (GeLU) or the product (SwiGLU) is a pass of its own. */
static void activation(struct layer_builder *b, int64_t ffn, bool backward)
{
    double elements = b->tokens * (double)ffn / b->layout->tp;
    double passes = b->model->gated_mlp ? (backward ? 5 : 3) : (backward ? 3 : 2);
    int kernels = 1;
    if (!fused_elementwise(b)) {
        passes += b->model->gated_mlp ? (backward ? 3 : 2) : 2;
        kernels = 2;
    }
    builder_memory(b, CLASS_MEMORY_BOUND, backward ? MEMORY_ACTIVATION_BACKWARD : MEMORY_ACTIVATION, "activation",
                   elements * passes * BF16, kernels);
    kept_activation_input(b, CLASS_MEMORY_BOUND, elements);
}

static bool keeps_matrices_apart(const struct layer_builder *b)
{
    return work_keeps_matrices_apart(b->layout, b->model);
}

/* --- attention projections */

/* All of them, where the job adapts such matrices. */
static struct linear_group adapted_group(const struct layer_builder *b, enum adapter_target target, struct linear_group g)
{
    for (int i = 0; i < g.n; i++)
        g.items[i].adapted = job_adapts_target(b->job, target);
    return g;
}

/* Queries come by a product of low rank in some models, whose first matrix every rank has whole. */
static int add_queries(const struct transformer *m, int64_t out, struct linear *items)
{
    int n = 0;
    if (m->query_rank > 0)
        items[n++] = linear_of("q_down", m->hidden, m->query_rank, LINEAR_WHOLE);
    items[n] = linear_of(n ? "q_up" : "q", n ? m->query_rank : m->hidden, out, LINEAR_COLUMNS);
    return n + 1;
}

static struct linear_group qkv_of(const struct layer_builder *b)
{
    const struct transformer *m = b->model;
    int tp = b->layout->tp;
    int64_t kv = m->kv_heads >= tp ? m->kv_heads / tp : 1; /* key/value heads are replicated when there are fewer than ranks */
    int64_t h = m->hidden, gate = m->output_gate ? transformer_value_dim(m) : 0;
    int64_t q_out = (m->head_dim + gate) * m->heads / tp, k_out = m->head_dim * kv;
    int64_t v_out = m->values_are_keys ? 0 : transformer_value_dim(m) * kv;
    struct linear_group g = {.n = 0};
    if (keeps_matrices_apart(b)) {
        g.n = add_queries(m, q_out, g.items);
        g.items[g.n++] = linear_of("k", h, k_out, LINEAR_COLUMNS);
        if (v_out > 0)
            g.items[g.n++] = linear_of("v", h, v_out, LINEAR_COLUMNS);
        g.apart = true;
    } else if (m->query_rank > 0) {
        g.n = add_queries(m, q_out, g.items);
        g.items[g.n++] = linear_of("kv", h, k_out + v_out, LINEAR_COLUMNS);
    } else {
        g.items[g.n++] = linear_of("qkv", h, q_out + k_out + v_out, LINEAR_COLUMNS);
    }
    return g;
}

static struct linear projection_of(const struct layer_builder *b)
{
    const struct transformer *m = b->model;
    int64_t value = m->attention == ATTENTION_LATENT ? m->latent.v_dim : transformer_value_dim(m);
    return (struct linear){"projection", value * m->heads / b->layout->tp, m->hidden, LINEAR_ROWS,
                           job_adapts_target(b->job, ADAPT_PROJECTION)};
}

/* Latent attention compresses queries and keys/values: down-projections are replicated over tp, up-projections are split by
 * heads. */
static struct linear_group latent_of(const struct layer_builder *b)
{
    const struct transformer *m = b->model;
    const struct latent_attention *l = &m->latent;
    int64_t heads = m->heads / b->layout->tp;
    int64_t query = heads * (l->qk_nope_dim + l->qk_rope_dim);
    struct linear_group g = {.n = 0};
    if (l->q_lora_rank) {
        g.items[g.n++] = linear_of("q_down", m->hidden, l->q_lora_rank, LINEAR_WHOLE);
        g.items[g.n++] = linear_of("q_up", l->q_lora_rank, query, LINEAR_COLUMNS);
    } else {
        g.items[g.n++] = linear_of("q", m->hidden, query, LINEAR_COLUMNS);
    }
    g.items[g.n++] = linear_of("kv_down", m->hidden, l->kv_lora_rank + l->qk_rope_dim, LINEAR_WHOLE);
    g.items[g.n++] = linear_of("kv_up", l->kv_lora_rank, heads * (l->qk_nope_dim + l->v_dim), LINEAR_COLUMNS);
    return g;
}

static struct linear_group attention_inputs_of(const struct layer_builder *b)
{
    return adapted_group(b, ADAPT_QKV, b->model->attention == ATTENTION_LATENT ? latent_of(b) : qkv_of(b));
}

/* Those that end in heads: the matrices behind the down-projections, or reads the layer where queries have none. */
static struct linear_group latent_up_of(const struct layer_builder *b)
{
    struct linear_group all = attention_inputs_of(b), up = {.n = 0};
    bool compresses = b->model->latent.q_lora_rank > 0;
    up.items[up.n++] = all.items[compresses];
    up.items[up.n++] = all.items[all.n - 1];
    return up;
}

/* Elements of a token's keys and values that latent attention moves to put them together: the up-projection gives each head its
 * key without position beside its value; attention takes keys, with the rotated part that all heads share, and values apart
 * (Megatron-Core, fused_apply_mla_rope_for_kv: one kernel, which rotates as well). */
static double latent_pieces(const struct transformer *m)
{
    const struct latent_attention *l = &m->latent;
    return 2.0 * (l->qk_nope_dim + l->v_dim) + l->qk_rope_dim;
}

/* The same both ways: backward rotates by the opposite angle, and takes apart what was put together. */
static void rotary(struct layer_builder *b)
{
    if (b->model->position != POSITION_ROTARY)
        return;
    const struct transformer *m = b->model;
    int heads = m->heads / b->layout->tp;
    bool latent = m->attention == ATTENTION_LATENT, fused = fused_elementwise(b);
    double dims =
        latent ? (double)(heads + 1) * m->latent.qk_rope_dim : (double)(m->heads + m->kv_heads) * m->head_dim / b->layout->tp;
    double moved =
        dims * (fused ? 2 : 8) + (latent ? heads * latent_pieces(m) : 0); /* unfused: rotate-half, two products, a sum */
    builder_memory(b, CLASS_MEMORY_BOUND, MEMORY_ROTARY, "rotary", b->tokens * moved * BF16, (fused ? 1 : 6) + latent);
}

/* Norms of queries and keys, per head: like the layer's own, of fewer elements. */
static void query_key_norm(struct layer_builder *b, bool backward)
{
    const struct transformer *m = b->model;
    double grouped = (double)(m->heads + m->kv_heads) * m->head_dim;
    double latent = 2.0 * m->heads * (m->latent.qk_nope_dim + m->latent.qk_rope_dim);
    double elements = b->tokens * (m->attention == ATTENTION_LATENT ? latent : grouped) / b->layout->tp;
    if (m->qk_norm)
        norm_of(b, "query_key_norm", elements, backward);
}

/* --- dense feed-forward */

static int64_t dense_width(const struct layer_builder *b)
{
    return b->model->ffn_hidden / b->layout->tp;
}

static struct linear_group mlp_up_of(const struct layer_builder *b)
{
    int64_t f = dense_width(b), h = b->model->hidden;
    struct linear_group g = {.items = {linear_of("mlp_up", h, b->model->gated_mlp ? 2 * f : f, LINEAR_COLUMNS)}, .n = 1};
    if (keeps_matrices_apart(b))
        g = (struct linear_group){
            .items = {linear_of("mlp_gate", h, f, LINEAR_COLUMNS), linear_of("mlp_up", h, f, LINEAR_COLUMNS)},
            .n = 2,
            .apart = true,
            .each_exchanges = layout_follows_llama(b->layout, b->model)};
    return adapted_group(b, ADAPT_MLP_UP, g);
}

static struct linear mlp_down_of(const struct layer_builder *b)
{
    return (struct linear){"mlp_down", dense_width(b), b->model->hidden, LINEAR_ROWS, job_adapts_target(b->job, ADAPT_MLP_DOWN)};
}

/* --- linear layers with adapters */

static int add_adapted(const struct linear *items, int n_items, struct linear *adapted, int n)
{
    for (int i = 0; i < n_items; i++)
        if (items[i].adapted)
            adapted[n++] = items[i];
    return n;
}

int layer_adapted(const struct layer_builder *b, struct layer_kind kind, struct linear adapted[ADAPTED_MAX])
{
    int n = 0;
    if (kind.mixers & MIXES_BY_ATTENTION) {
        struct linear_group inputs = attention_inputs_of(b);
        struct linear projection = projection_of(b);
        n = add_adapted(inputs.items, inputs.n, adapted, n);
        n = add_adapted(&projection, 1, adapted, n);
    }
    if (kind.feed == FEEDS_DENSE) {
        struct linear_group up = mlp_up_of(b);
        struct linear down = mlp_down_of(b);
        n = add_adapted(up.items, up.n, adapted, n);
        n = add_adapted(&down, 1, adapted, n);
    }
    return n;
}

static void dense_forward(struct layer_builder *b, int32_t gather, int32_t reduce)
{
    struct linear_group up = mlp_up_of(b);
    struct linear down = mlp_down_of(b);
    group_forward(b, &up, gather);
    activation(b, b->model->ffn_hidden, false);
    row_forward_needed(b, &down, reduce);
}

/* `gathers`: the output gradient is gathered here; `reduces`: the input gradient is exchanged here (parallel block: by the
 * attention branch). */
static void dense_backward(struct layer_builder *b, bool gathers, bool reduces, bool input, bool weight)
{
    struct linear_group up = mlp_up_of(b);
    struct linear down = mlp_down_of(b);
    row_backward(b, &down, gathers, input, weight);
    if (input)
        activation(b, b->model->ffn_hidden, true);
    group_backward(b, &up, reduces, input, weight);
}

/* --- the layer */

/* Reads what attention gives and the gate, writes one; backward reads three and writes two. */
static void output_gate(struct layer_builder *b, bool backward)
{
    const struct transformer *m = b->model;
    double elements = b->tokens * (double)m->heads * transformer_value_dim(m) / b->layout->tp;
    if (m->output_gate)
        builder_memory(b, CLASS_MEMORY_BOUND, backward ? MEMORY_ACTIVATION_BACKWARD : MEMORY_ACTIVATION, "output_gate",
                       elements * (backward ? 5 : 3) * BF16, 1);
}

/* Layers with a window may have heads of their own: the model as this one sees it. Returns what to put back. */
static const struct transformer *see_layer(struct layer_builder *b, bool windowed, struct transformer *view)
{
    const struct transformer *whole = b->model;
    b->model = transformer_view(whole, windowed, view);
    return whole;
}

/* `ends`: without the output projection. */
static void attention_forward_branch(struct layer_builder *b, bool windowed, int32_t gather, int32_t reduce, bool ends)
{
    struct transformer view;
    const struct transformer *whole = see_layer(b, windowed, &view);
    struct linear_group inputs = attention_inputs_of(b);
    struct linear projection = projection_of(b);
    group_forward(b, &inputs, gather);
    query_key_norm(b, false);
    rotary(b);
    attention_core(b, windowed, false);
    kept_attention_output(b, false);
    output_gate(b, false);
    if (!ends)
        row_forward(b, &projection, reduce);
    b->model = whole;
}

/* Mixers side by side read one input, which the first gathers, and add up before they are reduced, behind the last. */
static void mixers_forward(struct layer_builder *b, struct layer_kind kind, int32_t gather, int32_t reduce)
{
    bool both = kind.mixers == MIXES_BY_BOTH, ends = b->stops_early && kind.feed == FEEDS_NOT;
    if (kind.mixers & MIXES_BY_ATTENTION)
        attention_forward_branch(b, kind.windowed, gather, both ? -1 : reduce, ends && !both);
    if (kind.mixers & MIXES_BY_STATE)
        mixer_forward(b, both ? -1 : gather, reduce, ends);
}

static void last_residual(struct layer_builder *b)
{
    if (!b->stops_early)
        residual(b, false);
}

/* Megatron's line gathers what the first product of a repeated module reads, as ever; others have kept it gathered, or repeated
 * that with the norm. */
static int32_t gather_for_module(struct layer_builder *b)
{
    return layer_keeps_gathered(b) ? -1 : builder_tp_gather_operand(b, "gather", false);
}

/* With the exchange and the cast for the products behind it; a mixture has its own. */
static void norm_module(struct layer_builder *b, bool mixture)
{
    norm(b, false);
    int32_t gather = layer_keeps_gathered(b) && !mixture ? builder_tp_gather_operand(b, "gather", true) : -1;
    if (gather >= 0)
        builder_append(b, gather);
    if (!mixture)
        builder_cast(b, "cast", b->tokens * (double)b->model->hidden);
}

static void latent_up_module(struct layer_builder *b)
{
    struct linear_group up = latent_up_of(b);
    bool reads_layer = b->model->latent.q_lora_rank == 0;
    group_forward(b, &up, reads_layer ? gather_for_module(b) : -1);
    query_key_norm(b, false);
    rotary(b);
}

static void activation_module(struct layer_builder *b)
{
    activation(b, b->model->ffn_hidden, false);
    builder_cast(b, "cast", b->tokens * (double)dense_width(b));
}

/* Megatron's parallel block: a dense feed-forward part reads what the mixers read. */
static bool runs_parallel(const struct layer_builder *b, struct layer_kind kind)
{
    return builder_has(b, FEATURE_BIT(PARALLEL_BLOCK)) && kind.feed == FEEDS_DENSE && kind.mixers != MIXES_NOT;
}

static void feed_modules(struct layer_builder *b, struct layer_kind kind, enum recompute_what modules, bool parallel)
{
    if (modules & RECOMPUTE_LAYERNORM && !parallel)
        norm_module(b, kind.feed == FEEDS_EXPERTS);
    if (kind.feed == FEEDS_EXPERTS)
        mixture_modules(b, modules);
    else if (modules & RECOMPUTE_MLP)
        dense_forward(b, gather_for_module(b), parallel ? -1 : builder_tp_reduce(b, "reduce"));
    else if (modules & RECOMPUTE_MLP_ACT)
        activation_module(b);
}

/* In a parallel block what the module gives is partial sums, which are reduced behind the other branch. */
void layer_modules(struct layer_builder *b, struct layer_kind kind, enum recompute_what modules)
{
    bool attends = kind.mixers & MIXES_BY_ATTENTION;
    if (modules & RECOMPUTE_LAYERNORM && kind.mixers != MIXES_NOT)
        norm_module(b, false);
    if (modules & RECOMPUTE_MLA_UP_PROJ && attends)
        latent_up_module(b);
    if (modules & RECOMPUTE_CORE_ATTN && attends) {
        struct transformer view;
        const struct transformer *whole = see_layer(b, kind.windowed, &view);
        attention_core(b, kind.windowed, false);
        b->model = whole;
    }
    if (kind.feed != FEEDS_NOT)
        feed_modules(b, kind, modules, runs_parallel(b, kind));
}

void layer_forward(struct layer_builder *b, struct layer_kind kind)
{
    norm(b, false);
    if (runs_parallel(b, kind)) {
        /* one norm, one gather and one reduction serve both branches (MegaScale, figure 3a) */
        mixers_forward(b, kind, builder_tp_gather_operand(b, "gather", true), -1);
        dense_forward(b, -1, builder_tp_reduce(b, "reduce"));
        last_residual(b);
        return;
    }
    if (kind.mixers != MIXES_NOT)
        mixers_forward(b, kind, builder_tp_gather_operand(b, "gather", false), builder_tp_reduce(b, "reduce"));
    if (layer_kind_parts(kind) == LAYER_PARTS_MAX) {
        residual(b, false);
        norm(b, false);
    }
    if (kind.feed == FEEDS_EXPERTS)
        mixture_forward(b);
    else if (kind.feed == FEEDS_DENSE)
        dense_forward(b, builder_tp_gather_operand(b, "gather", false), builder_tp_reduce(b, "reduce"));
    last_residual(b);
}

static void attention_backward_branch(struct layer_builder *b, bool windowed, bool gathers, bool exchanges, bool input,
                                      bool weight)
{
    struct transformer view;
    const struct transformer *whole = see_layer(b, windowed, &view);
    struct linear_group inputs = attention_inputs_of(b);
    struct linear projection = projection_of(b);
    if (input || !b->frozen)
        kept_attention_output(b, true);
    row_backward(b, &projection, gathers, input, weight);
    if (input) {
        output_gate(b, true);
        attention_core(b, windowed, true);
        rotary(b);
        query_key_norm(b, true);
    }
    group_backward(b, &inputs, exchanges, input, weight);
    b->model = whole;
}

/* `gathers`: the output's gradient, the first branch for both; the input's gradient is exchanged by the last one. */
static void mixers_backward(struct layer_builder *b, struct layer_kind kind, bool gathers, bool input, bool weight)
{
    bool both = kind.mixers == MIXES_BY_BOTH;
    if (kind.mixers & MIXES_BY_STATE)
        mixer_backward(b, gathers, !both, input, weight);
    if (kind.mixers & MIXES_BY_ATTENTION)
        attention_backward_branch(b, kind.windowed, gathers && !both, true, input, weight);
}

void layer_backward(struct layer_builder *b, struct layer_kind kind, bool input, bool weight)
{
    bool parallel = runs_parallel(b, kind);
    if (input)
        residual(b, true);
    if (kind.feed == FEEDS_EXPERTS)
        mixture_backward(b, input, weight);
    else if (kind.feed == FEEDS_DENSE)
        dense_backward(b, true, !parallel, input, weight);
    if (input && !parallel && layer_kind_parts(kind) == LAYER_PARTS_MAX) {
        norm(b, true);
        residual(b, true);
    }
    if (kind.mixers != MIXES_NOT)
        mixers_backward(b, kind, !parallel, input, weight);
    if (input)
        norm(b, true);
}
