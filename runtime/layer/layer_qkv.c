/* layer_qkv.c - queries, keys and values before the core of attention: packing, norms of heads, rotary embedding.
 *
 * They are packed in one tensor; latent attention has three. */
#include "runtime/layer/layer.h"

/* --- where queries, keys and values are, or their gradients */

static struct heads_view packed_view(const struct layer_context *c, struct tensor *qkv)
{
    const struct shape *s = c->shape;
    void *data = tensor_data(qkv);
    int64_t keys = s->query_width, values = keys + (int64_t)s->kv_heads * s->head_dim;
    return (struct heads_view){data,        layer_row(c, data, keys), layer_row(c, data, values), s->qkv_width, s->qkv_width,
                               s->qkv_width};
}

struct heads_view attention_heads(const struct layer_context *c, bool gradient)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    struct latent_state *t = &l->latent;
    if (!s->latent.used)
        return packed_view(c, gradient ? l->d_qkv : l->qkv);
    return (struct heads_view){tensor_data(gradient ? t->d_q : t->q),
                               tensor_data(gradient ? t->d_k : t->k),
                               tensor_data(gradient ? t->d_v : t->v),
                               s->query_width,
                               s->query_width,
                               s->context_width};
}

/* --- rotary embedding and norms of heads */

void attention_pack(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    if (s->latent.used)
        latent_pack(c);
    if (l->qkv || !l->apart[0])
        return;
    l->qkv = layer_tensor(c, s->tokens, s->qkv_width);
    struct heads_view to = packed_view(c, l->qkv);
    void *at[PARTS_MAX] = {to.q, to.k, to.v};
    for (int i = 0; i < PARTS_MAX; i++) {
        int64_t width = i == 0 ? s->query_width : shape_keys_width(s);
        layer_rows(c, (struct rows_call){.n = s->tokens,
                                         .width = width,
                                         .from_row = width,
                                         .to_row = s->qkv_width,
                                         .from = tensor_data(l->apart[i]),
                                         .to = at[i]});
        layer_drop(c, &l->apart[i]);
    }
}

static void rotary(const struct layer_context *c, bool backward)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    if (!backward) {
        attention_pack(c);
        layer_own(c, &l->qkv);
    }
    struct kernel_call call = {.kernel = KERNEL_ROTARY,
                               .rotary = {.t = s->tokens,
                                          .seq_len = s->seq_len,
                                          .heads = s->heads,
                                          .kv_heads = s->kv_heads,
                                          .head_dim = s->head_dim,
                                          .positions = s->at,
                                          .base = ROTARY_BASE,
                                          .inverse = backward,
                                          .qkv = backward ? l->d_qkv->data : l->qkv->data}};
    layer_launch(c, &call);
}

/* Before their norms. */
static struct heads_view raw_heads_of(const struct layer_context *c)
{
    struct heads_view view = attention_heads(c, false);
    if (!c->shape->latent.used)
        return packed_view(c, c->state->qkv_raw);
    view.q = tensor_data(c->state->latent.q_raw);
    view.k = tensor_data(c->state->latent.k_raw);
    return view;
}

/* Moves queries and keys to the tensors before the norms; values stay. */
static void renew_heads(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    if (s->latent.used) {
        l->latent.q_raw = l->latent.q;
        l->latent.k_raw = l->latent.k;
        l->latent.q = layer_tensor(c, s->tokens, s->query_width);
        l->latent.k = layer_tensor(c, s->tokens, s->query_width);
        return;
    }
    l->qkv_raw = l->qkv;
    l->qkv = layer_tensor(c, s->tokens, s->qkv_width);
    struct heads_view raw = raw_heads_of(c), made = attention_heads(c, false);
    layer_rows(c, (struct rows_call){.n = s->tokens,
                                     .width = shape_values_width(s),
                                     .from_row = raw.v_row,
                                     .to_row = made.v_row,
                                     .from = raw.v,
                                     .to = made.v});
}

static struct kernel_call head_norm_of(const struct layer_context *c, bool keys, enum kernel kernel)
{
    const struct shape *s = c->shape;
    enum parameter_kind gain = keys ? PARAMETER_K_GAIN : PARAMETER_Q_GAIN;
    struct heads_view raw = raw_heads_of(c);
    int64_t row = keys ? raw.k_row : raw.q_row;
    return (struct kernel_call){.kernel = kernel,
                                .head_norm = {.t = s->tokens,
                                              .heads = keys ? s->kv_heads : s->heads,
                                              .head_dim = s->head_dim,
                                              .rms = s->rms,
                                              .epsilon = NORM_EPSILON,
                                              .x_row = row,
                                              .y_row = row,
                                              .x = keys ? raw.k : raw.q,
                                              .gain = layer_weights(c, gain),
                                              .bias = s->rms ? NULL : layer_weights(c, gain + 1),
                                              .dgain = unit_gradients(c->unit, gain),
                                              .dbias = s->rms ? NULL : unit_gradients(c->unit, gain + 1)}};
}

static void norm_heads(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    attention_pack(c);
    renew_heads(c);
    struct heads_view made = attention_heads(c, false);
    for (int keys = 0; keys < 2; keys++) {
        struct kernel_call call = head_norm_of(c, keys, KERNEL_HEAD_NORM_FORWARD);
        call.head_norm.y = keys ? made.k : made.q;
        layer_launch(c, &call);
    }
    layer_forget(c, &l->qkv_raw, RECOMPUTE_FULL);
    layer_forget(c, &l->latent.q_raw, RECOMPUTE_MLA_UP_PROJ);
    layer_forget(c, &l->latent.k_raw, RECOMPUTE_MLA_UP_PROJ);
}

static void norm_heads_backward(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    struct heads_view d = attention_heads(c, true);
    for (int keys = 0; keys < 2; keys++) {
        struct kernel_call call = head_norm_of(c, keys, KERNEL_HEAD_NORM_BACKWARD);
        call.head_norm.dy = call.head_norm.dx = keys ? d.k : d.q;
        layer_launch(c, &call);
    }
    layer_drop(c, &l->qkv_raw);
    layer_drop(c, &l->latent.q_raw);
    layer_drop(c, &l->latent.k_raw);
}

bool heads_ready_step(const struct layer_context *c, const struct step *step)
{
    bool latent = c->shape->latent.used;
    switch (step->kind) {
    case STEP_ROTARY: latent ? latent_rotary(c, false) : rotary(c, false); break;
    case STEP_ROTARY_BACKWARD: latent ? latent_rotary(c, true) : rotary(c, true); break;
    case STEP_HEAD_NORMS: norm_heads(c); break;
    case STEP_HEAD_NORMS_BACKWARD: norm_heads_backward(c); break;
    default: return false;
    }
    return true;
}
