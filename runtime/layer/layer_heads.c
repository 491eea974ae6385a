/* layer_heads.c - context parallelism that exchanges heads for tokens.
 *
 * Example: two ranks with 8 heads each. Before attention rank 0 gets heads 0 to 3 of the tokens of both ranks, rank 1 heads 4 to
 * 7. After attention each gets all heads of its own tokens back.
 *
 * A rank has T tokens of n heads. With h ranks it sends and receives queries, keys and values so that it has n / h heads of h T
 * tokens; attention's output goes the other way. Backward the gradients take the opposite ways.
 *
 *     to heads     exchanges the columns of each rank's heads, [h][T, width]; then sorts rows into the order of sequences
 *     to tokens    exchanges rows in the order of ranks, [h][T, width]; then moves columns to the places of their heads
 *
 * If there are fewer key/value heads than ranks, several ranks get the same head, and their gradients are added up. Attention's
 * tensors of other ranks' tokens are in layer_states.swapped. */
#include "runtime/layer/layer.h"

/* Queries, or keys, ... on both sides. */
struct side {
    void *data;
    int64_t row; /* elements from one token to the next */
};
struct swapped_part {
    struct side own, core;
    int heads, core_heads;
    int64_t dim;
};
enum { SWAPPED_MAX = 3 };
struct swapping {
    struct swapped_part parts[SWAPPED_MAX];
    int n, ranks;
    int64_t width; /* of a token, to or from one neighbour */
};

static int64_t part_width(const struct swapped_part *part)
{
    return part->core_heads * part->dim;
}

static struct swapping swapping_new(const struct layer_context *c)
{
    return (struct swapping){.ranks = layout_cp_heads(c->rank->layout)};
}

static void add_part(struct swapping *s, struct swapped_part part)
{
    s->parts[s->n++] = part;
    s->width += part_width(&part);
}

static struct layer_context core_of(const struct layer_context *c)
{
    struct layer_context core = *c;
    core.shape = &c->rank->core;
    core.state = c->swapped;
    return core;
}

static int64_t value_dim(const struct shape *s)
{
    return s->context_width / s->heads;
}

static struct swapping qkv_swapping(const struct layer_context *c, bool gradient)
{
    const struct shape *s = c->shape, *core = &c->rank->core;
    struct layer_context there = core_of(c);
    struct heads_view a = attention_heads(c, gradient), b = attention_heads(&there, gradient);
    struct swapping swapping = swapping_new(c);
    add_part(&swapping, (struct swapped_part){{a.q, a.q_row}, {b.q, b.q_row}, s->heads, core->heads, s->head_dim});
    add_part(&swapping, (struct swapped_part){{a.k, a.k_row}, {b.k, b.k_row}, s->kv_heads, core->kv_heads, s->head_dim});
    add_part(&swapping, (struct swapped_part){{a.v, a.v_row}, {b.v, b.v_row}, s->kv_heads, core->kv_heads, value_dim(s)});
    return swapping;
}

static struct swapping context_swapping(const struct layer_context *c, bool gradient)
{
    const struct shape *s = c->shape, *core = &c->rank->core;
    struct layer_state *here = c->state, *there = c->swapped;
    struct side own = {tensor_data(gradient ? here->d_context : here->context), s->context_width};
    struct side other = {tensor_data(gradient ? there->d_context : there->context), core->context_width};
    struct swapping swapping = swapping_new(c);
    add_part(&swapping, (struct swapped_part){own, other, s->heads, core->heads, value_dim(s)});
    return swapping;
}

/* Where heads of neighbour `rank` begin, among one's own. */
static int first_head(const struct swapping *s, const struct swapped_part *part, int rank)
{
    return rank * part->heads / s->ranks;
}

/* Columns of one's own tokens, from (`out`) or to where they are exchanged. */
static void move_columns(const struct layer_context *c, const struct swapping *s, void *exchanged, bool out)
{
    int64_t tokens = c->shape->tokens;
    for (int rank = 0; rank < s->ranks; rank++) {
        int64_t at = rank * tokens * s->width;
        for (const struct swapped_part *part = s->parts; part < s->parts + s->n; part++) {
            int head = first_head(s, part, rank);
            void *own = layer_row(c, part->own.data, head * part->dim), *there = layer_row(c, exchanged, at);
            bool again = rank > 0 && head == first_head(s, part, rank - 1);
            layer_rows(c, (struct rows_call){.n = tokens,
                                             .width = part_width(part),
                                             .from_row = out ? part->own.row : s->width,
                                             .to_row = out ? s->width : part->own.row,
                                             .accumulate = !out && again,
                                             .from = out ? own : there,
                                             .to = out ? there : own});
            at += part_width(part);
        }
    }
}

/* Rows of all tokens, between the order of neighbours and that of sequences. */
static void move_rows(const struct layer_context *c, const struct swapping *s, void *exchanged, bool out)
{
    int64_t at = 0;
    for (const struct swapped_part *part = s->parts; part < s->parts + s->n; part++) {
        void *there = layer_row(c, exchanged, at);
        layer_rows(c, (struct rows_call){.n = c->rank->core.tokens,
                                         .width = part_width(part),
                                         .from_row = out ? part->core.row : s->width,
                                         .to_row = out ? s->width : part->core.row,
                                         .scatter = out,
                                         .index = c->rank->heads_order,
                                         .from = out ? part->core.data : there,
                                         .to = out ? there : part->core.data});
        at += part_width(part);
    }
}

static int64_t width_of(const struct layer_context *c, bool context)
{
    const struct shape *core = &c->rank->core;
    return context ? core->context_width : core->query_width + shape_kv_width(core);
}

static void exchange(const struct layer_context *c, bool context)
{
    struct layer_state *l = c->state;
    int64_t width = width_of(c, context);
    l->arrived = layer_tensor(c, c->rank->core.tokens, width);
    struct exchange_call call = {.exchange = EXCHANGE_ALL_TO_ALL,
                                 .element = rank_element(c->rank),
                                 .in = tensor_data(l->sent),
                                 .out = tensor_data(l->arrived),
                                 .count = c->shape->tokens * width,
                                 .what = context ? "what attention gives" : "queries, keys and values"};
    rank_exchange(c->rank, c->rank->groups[GROUP_CP_HEADS], c->step->stream, &call);
    layer_drop(c, &l->sent);
}

/* --- forward */

/* Those of this rank's tokens: once sent only recomputation reads them, of attention alone. */
static void forget_own(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    int forgets = c->step->forgets;
    bool stays = (forgets & RECOMPUTE_CORE_ATTN) && !(forgets & RECOMPUTE_FULL);
    layer_forget(c, &l->latent.kv_down, RECOMPUTE_FULL);
    if (!stays)
        layer_drop(c, &l->qkv);
    if (stays && !(forgets & RECOMPUTE_MLA_UP_PROJ))
        return;
    layer_drop(c, &l->latent.q);
    layer_drop(c, &l->latent.k);
    layer_drop(c, &l->latent.v);
}

static void pack_qkv(const struct layer_context *c)
{
    attention_pack(c);
    c->state->sent = layer_tensor(c, c->rank->core.tokens, width_of(c, false));
    struct swapping s = qkv_swapping(c, false);
    move_columns(c, &s, tensor_data(c->state->sent), true);
    forget_own(c);
}

/* New tensors for what comes, or its gradients. */
static void new_qkv(const struct layer_context *c, bool gradient)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    struct latent_state *t = &l->latent;
    if (!s->latent.used) {
        *(gradient ? &l->d_qkv : &l->qkv) = layer_tensor(c, s->tokens, s->qkv_width);
        return;
    }
    *(gradient ? &t->d_q : &t->q) = layer_tensor(c, s->tokens, s->query_width);
    *(gradient ? &t->d_k : &t->k) = layer_tensor(c, s->tokens, s->query_width);
    *(gradient ? &t->d_v : &t->v) = layer_tensor(c, s->tokens, s->context_width);
}

static void place_qkv(const struct layer_context *c)
{
    struct layer_context core = core_of(c);
    new_qkv(&core, false);
    struct swapping s = qkv_swapping(c, false);
    move_rows(c, &s, tensor_data(c->state->arrived), false);
    layer_drop(c, &c->state->arrived);
}

static void pack_context(const struct layer_context *c)
{
    c->state->sent = layer_tensor(c, c->rank->core.tokens, width_of(c, true));
    struct swapping s = context_swapping(c, false);
    move_rows(c, &s, tensor_data(c->state->sent), true);
    layer_forget(c, &c->swapped->context, RECOMPUTE_CORE_ATTN);
    layer_forget(c, &c->swapped->log_sum_exp, RECOMPUTE_CORE_ATTN);
}

static void place_context(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    layer_drop(c, &l->context); /* if it was kept although it is recomputed */
    l->context = layer_tensor(c, c->shape->tokens, c->shape->context_width);
    struct swapping s = context_swapping(c, false);
    move_columns(c, &s, tensor_data(l->arrived), false);
    layer_drop(c, &l->arrived);
}

/* --- backward */

static void pack_context_gradient(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    l->sent = layer_tensor(c, c->rank->core.tokens, width_of(c, true));
    struct swapping s = context_swapping(c, true);
    move_columns(c, &s, tensor_data(l->sent), true);
    layer_drop(c, &l->d_context);
    layer_drop(c, &l->context); /* the weights' gradient has a share of it */
}

static void place_context_gradient(const struct layer_context *c)
{
    struct layer_context core = core_of(c);
    core.state->d_context = layer_tensor(c, core.shape->tokens, core.shape->context_width);
    struct swapping s = context_swapping(c, true);
    move_rows(c, &s, tensor_data(c->state->arrived), false);
    layer_drop(c, &c->state->arrived);
}

static void pack_qkv_gradient(const struct layer_context *c)
{
    struct layer_state *l = c->swapped;
    c->state->sent = layer_tensor(c, c->rank->core.tokens, width_of(c, false));
    struct swapping s = qkv_swapping(c, true);
    move_rows(c, &s, tensor_data(c->state->sent), true);
    layer_drop(c, &l->d_qkv);
    layer_drop(c, &l->latent.d_q);
    layer_drop(c, &l->latent.d_k);
    layer_drop(c, &l->latent.d_v);
}

/* Also drops queries, keys and values that a recomputed module left and no step reads. */
static void place_qkv_gradient(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    new_qkv(c, true);
    struct swapping s = qkv_swapping(c, true);
    move_columns(c, &s, tensor_data(l->arrived), false);
    layer_drop(c, &l->arrived);
    layer_drop(c, &l->qkv);
    layer_drop(c, &l->latent.kv_up);
    layer_drop(c, &l->latent.q);
    layer_drop(c, &l->latent.k);
    layer_drop(c, &l->latent.v);
}

bool heads_step(const struct layer_context *c, const struct step *step)
{
    switch (step->kind) {
    case STEP_HEADS_PACK: step->context ? pack_context(c) : pack_qkv(c); break;
    case STEP_HEADS_PLACE: step->context ? place_context(c) : place_qkv(c); break;
    case STEP_HEADS_PACK_GRADIENT: step->context ? pack_context_gradient(c) : pack_qkv_gradient(c); break;
    case STEP_HEADS_PLACE_GRADIENT: step->context ? place_context_gradient(c) : place_qkv_gradient(c); break;
    case STEP_HEADS_SWAP:
    case STEP_HEADS_SWAP_GRADIENT: exchange(c, step->context); break;
    default: return false;
    }
    return true;
}
