/* layer_latent.c - the products of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).
 *
 * Queries, and keys and values, are computed through narrow latents, each with a norm. The rotary embedding applies to a part of
 * every query head and to one key part that all heads share.
 *
 *     q_down  [T, q_rank]  norm  q_up  [T, heads, nope + rope]
 *     kv_down [T, kv_rank + rope]  norm of kv_rank  kv_up [T, heads, nope + value]
 *     key = the nope part of kv_up's result, then the rope part of kv_down's
 *
 * Without compression of queries, q_up reads the layer's input. Norms of heads come before the rotary embedding and cover both
 * parts. */
#include "runtime/layer/layer.h"

static const struct latent_shape *sizes(const struct layer_context *c)
{
    return &c->shape->latent;
}

static bool compresses(const struct layer_context *c)
{
    return sizes(c)->q_rank > 0;
}

static int64_t kv_up_width(const struct layer_context *c)
{
    return c->shape->heads * (sizes(c)->nope + sizes(c)->value);
}

static struct product latent_product(const struct layer_context *c, enum parameter_kind weights, int64_t in, int64_t out)
{
    struct product p = layer_product(c, weights, in, out);
    p.bias = weights + 1;
    p.biased = c->shape->qkv_bias;
    return p;
}

static struct product q_down_of(const struct layer_context *c)
{
    return latent_product(c, PARAMETER_Q_DOWN, c->shape->hidden, sizes(c)->q_rank);
}

static struct product q_up_of(const struct layer_context *c)
{
    return latent_product(c, PARAMETER_Q_UP, compresses(c) ? sizes(c)->q_rank : c->shape->hidden, c->shape->query_width);
}

static struct product kv_down_of(const struct layer_context *c)
{
    return latent_product(c, PARAMETER_KV_DOWN, c->shape->hidden, sizes(c)->kv_rank + sizes(c)->rope);
}

static struct product kv_up_of(const struct layer_context *c)
{
    return latent_product(c, PARAMETER_KV_UP, sizes(c)->kv_rank, kv_up_width(c));
}

/* --- norms of latents: one "head" as wide as the latent */

static struct kernel_call norm_of(const struct layer_context *c, bool queries, enum kernel kernel)
{
    const struct latent_shape *s = sizes(c);
    enum parameter_kind gain = queries ? PARAMETER_Q_LATENT_GAIN : PARAMETER_KV_LATENT_GAIN;
    int64_t width = queries ? s->q_rank : s->kv_rank;
    struct layer_state *l = c->state;
    return (struct kernel_call){.kernel = kernel,
                                .head_norm = {.t = c->shape->tokens,
                                              .heads = 1,
                                              .head_dim = (int)width,
                                              .rms = c->shape->rms,
                                              .epsilon = NORM_EPSILON,
                                              .x_row = queries ? width : s->kv_rank + s->rope,
                                              .y_row = width,
                                              .x = tensor_data(queries ? l->latent.q_down : l->latent.kv_down),
                                              .gain = layer_weights(c, gain),
                                              .bias = c->shape->rms ? NULL : layer_weights(c, gain + 1),
                                              .dgain = unit_gradients(c->unit, gain),
                                              .dbias = c->shape->rms ? NULL : unit_gradients(c->unit, gain + 1)}};
}

static void norm_forward(const struct layer_context *c, bool queries, struct tensor *y)
{
    struct kernel_call call = norm_of(c, queries, KERNEL_HEAD_NORM_FORWARD);
    call.head_norm.y = tensor_data(y);
    layer_launch(c, &call);
}

static void norm_backward(const struct layer_context *c, bool queries, struct tensor *d)
{
    struct kernel_call call = norm_of(c, queries, KERNEL_HEAD_NORM_BACKWARD);
    call.head_norm.dy = call.head_norm.dx = tensor_data(d);
    layer_launch(c, &call);
}

/* --- forward */

static void q_down_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    t->q_down = product_made(c, LAYER_Q_DOWN, q_down_of(c), c->state->n1_full);
    t->q_latent = layer_tensor(c, c->shape->tokens, sizes(c)->q_rank);
    norm_forward(c, true, t->q_latent);
    layer_forget(c, &t->q_down, RECOMPUTE_FULL);
}

static void q_up_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    t->q = product_made(c, LAYER_Q_UP, q_up_of(c), compresses(c) ? t->q_latent : c->state->n1_full);
    layer_forget(c, &t->q_latent, RECOMPUTE_FULL);
}

static void kv_down_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    t->kv_down = product_made(c, LAYER_KV_DOWN, kv_down_of(c), c->state->n1_full);
    t->kv_latent = layer_tensor(c, c->shape->tokens, sizes(c)->kv_rank);
    norm_forward(c, false, t->kv_latent);
    layer_input_read(c, MIXES_BY_ATTENTION);
}

/* Parts of heads between tensors, a row for each head of each token. */
static void copy_part(const struct layer_context *c, int64_t width, const void *from, int64_t from_row, void *to, int64_t to_row)
{
    layer_rows(c, (struct rows_call){.n = c->shape->tokens * c->shape->heads,
                                     .width = width,
                                     .from_row = from_row,
                                     .to_row = to_row,
                                     .from = from,
                                     .to = to});
}

static void kv_up_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    t->kv_up = product_made(c, LAYER_KV_UP, kv_up_of(c), t->kv_latent);
    layer_forget(c, &t->kv_latent, RECOMPUTE_FULL);
}

void latent_pack(const struct layer_context *c)
{
    const struct latent_shape *s = sizes(c);
    struct latent_state *t = &c->state->latent;
    int64_t heads = c->shape->heads, up = s->nope + s->value, head = s->nope + s->rope;
    if (!t->kv_up)
        return;
    t->k = layer_tensor(c, c->shape->tokens, c->shape->query_width);
    t->v = layer_tensor(c, c->shape->tokens, c->shape->context_width);
    copy_part(c, s->nope, tensor_data(t->kv_up), up, tensor_data(t->k), head);
    copy_part(c, s->value, layer_row(c, tensor_data(t->kv_up), s->nope), up, tensor_data(t->v), s->value);
    layer_rows(c, (struct rows_call){.n = c->shape->tokens * heads,
                                     .width = s->rope,
                                     .share = heads,
                                     .from_row = s->kv_rank + s->rope,
                                     .to_row = head,
                                     .from = layer_row(c, tensor_data(t->kv_down), s->kv_rank),
                                     .to = layer_row(c, tensor_data(t->k), s->nope)});
    layer_drop(c, &t->kv_up);
}

/* Their gradients; the shared part's is the sum over the heads. */
static void unpack_gradients(const struct layer_context *c)
{
    const struct latent_shape *s = sizes(c);
    struct latent_state *t = &c->state->latent;
    int64_t up = s->nope + s->value, head = s->nope + s->rope, down = s->kv_rank + s->rope;
    t->d_kv_up = layer_tensor(c, c->shape->tokens, kv_up_width(c));
    t->d_kv_down = layer_tensor(c, c->shape->tokens, down);
    copy_part(c, s->nope, tensor_data(t->d_k), head, tensor_data(t->d_kv_up), up);
    copy_part(c, s->value, tensor_data(t->d_v), s->value, layer_row(c, tensor_data(t->d_kv_up), s->nope), up);
    layer_rows(c, (struct rows_call){.n = c->shape->tokens,
                                     .width = s->rope,
                                     .fold = c->shape->heads,
                                     .from_row = head,
                                     .to_row = down,
                                     .from = layer_row(c, tensor_data(t->d_k), s->nope),
                                     .to = layer_row(c, tensor_data(t->d_kv_down), s->kv_rank)});
    layer_drop(c, &t->d_k);
    layer_drop(c, &t->d_v);
}

static void turn(const struct layer_context *c, struct tensor *heads, bool backward)
{
    const struct shape *s = c->shape;
    struct kernel_call call = {.kernel = KERNEL_ROTARY,
                               .rotary = {.t = s->tokens,
                                          .seq_len = s->seq_len,
                                          .heads = s->heads,
                                          .head_dim = (int)s->latent.rope,
                                          .row = s->query_width,
                                          .stride = s->head_dim,
                                          .positions = s->at,
                                          .base = ROTARY_BASE,
                                          .inverse = backward,
                                          .qkv = layer_row(c, tensor_data(heads), s->latent.nope)}};
    layer_launch(c, &call);
}

/* The keys' turned part is one for all heads before their norms and before it is turned; it is turned in each of them. */
void latent_rotary(const struct layer_context *c, bool backward)
{
    struct latent_state *t = &c->state->latent;
    if (!backward) {
        latent_pack(c);
        layer_own(c, &t->q);
    }
    turn(c, backward ? t->d_q : t->q, backward);
    turn(c, backward ? t->d_k : t->k, backward);
}

/* --- backward */

static void kv_up_input_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    unpack_gradients(c);
    t->d_kv_latent = layer_tensor(c, c->shape->tokens, sizes(c)->kv_rank);
    layer_cast_gradient(c, kv_up_of(c), &t->d_kv_up);
    product_input(c, kv_up_of(c), t->d_kv_up, t->d_kv_latent->data, false);
}

static void kv_up_weight_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    product_weight(c, kv_up_of(c), t->d_kv_up, t->kv_latent);
    layer_drop(c, &t->d_kv_up);
    layer_drop(c, &t->kv_latent);
}

static void kv_down_input_step(const struct layer_context *c)
{
    const struct latent_shape *s = sizes(c);
    struct latent_state *t = &c->state->latent;
    norm_backward(c, false, t->d_kv_latent);
    layer_rows(c, (struct rows_call){.n = c->shape->tokens,
                                     .width = s->kv_rank,
                                     .from_row = s->kv_rank,
                                     .to_row = s->kv_rank + s->rope,
                                     .from = t->d_kv_latent->data,
                                     .to = t->d_kv_down->data});
    layer_drop(c, &t->d_kv_latent);
    layer_drop(c, &t->kv_down);
    bool joins = layer_d_input(c);
    layer_cast_gradient(c, kv_down_of(c), &t->d_kv_down);
    product_input(c, kv_down_of(c), t->d_kv_down, c->state->d_n1->data, joins);
}

static void kv_down_weight_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    product_weight(c, kv_down_of(c), t->d_kv_down, c->state->n1_full);
    layer_drop(c, &t->d_kv_down);
}

static void q_up_input_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    layer_cast_gradient(c, q_up_of(c), &t->d_q);
    if (!compresses(c)) {
        product_input(c, q_up_of(c), t->d_q, c->state->d_n1->data, true);
        return;
    }
    t->d_q_latent = layer_tensor(c, c->shape->tokens, sizes(c)->q_rank);
    product_input(c, q_up_of(c), t->d_q, t->d_q_latent->data, false);
}

/* The last use of the layer's input. */
static void drop_input(const struct layer_context *c)
{
    layer_drop(c, &c->state->n1_full);
    layer_drop(c, &c->state->n1);
}

static void q_up_weight_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    product_weight(c, q_up_of(c), t->d_q, compresses(c) ? t->q_latent : c->state->n1_full);
    layer_drop(c, &t->d_q);
    layer_drop(c, &t->q_latent);
    if (!compresses(c))
        drop_input(c);
}

static void q_down_input_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    norm_backward(c, true, t->d_q_latent);
    layer_drop(c, &t->q_down);
    layer_cast_gradient(c, q_down_of(c), &t->d_q_latent);
    product_input(c, q_down_of(c), t->d_q_latent, c->state->d_n1->data, true);
}

static void q_down_weight_step(const struct layer_context *c)
{
    struct latent_state *t = &c->state->latent;
    product_weight(c, q_down_of(c), t->d_q_latent, c->state->n1_full);
    layer_drop(c, &t->d_q_latent);
    drop_input(c);
}

bool latent_step(const struct layer_context *c, const struct step *step)
{
    switch (step->kind) {
    case STEP_Q_DOWN: q_down_step(c); break;
    case STEP_Q_UP: q_up_step(c); break;
    case STEP_KV_DOWN: kv_down_step(c); break;
    case STEP_KV_UP: kv_up_step(c); break;
    case STEP_KV_UP_INPUT: kv_up_input_step(c); break;
    case STEP_KV_UP_WEIGHT: kv_up_weight_step(c); break;
    case STEP_KV_DOWN_INPUT: kv_down_input_step(c); break;
    case STEP_KV_DOWN_WEIGHT: kv_down_weight_step(c); break;
    case STEP_Q_UP_INPUT: q_up_input_step(c); break;
    case STEP_Q_UP_WEIGHT: q_up_weight_step(c); break;
    case STEP_Q_DOWN_INPUT: q_down_input_step(c); break;
    case STEP_Q_DOWN_WEIGHT: q_down_weight_step(c); break;
    default: return false;
    }
    return true;
}
