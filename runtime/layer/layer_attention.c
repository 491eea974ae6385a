/* layer_attention.c - the core of attention.
 *
 * There are two kernels. attention_call reads queries, keys and values packed in one tensor. query_range_call is for everything
 * else: context parallelism, ALiBi, latent attention, and head sizes that the device's packed kernel does not support.
 *
 * Context parallelism. A rank, or the ranks that exchange heads with it (layer_heads.c), holds two ranges of every sequence:
 * chunks r and 2 cp - 1 - r of 2 cp. Keys and values of all ranks are gathered (the program's exchange over the context-parallel
 * group) and put into the order of the sequence. Each range of queries then attends to the tokens before its end. In pieces
 * (pipelined.c), attention processes the keys that have arrived while the next ones are exchanged.
 *
 * Backward, keys and values are gathered again, and their gradients are reduced to the ranks they belong to. That reduction is
 * part of the computation here; the program counts its bytes in the exchange. */
#include "runtime/layer/layer.h"

/* --- keys and values of the whole sequence */

/* Keys and values of this rank's tokens between the view and a tensor of their own, either way. */
static void copy_own(const struct layer_context *c, const struct heads_view *view, struct tensor *own, bool out)
{
    const struct shape *s = c->shape;
    int64_t width[2] = {shape_keys_width(s), shape_values_width(s)}, row[2] = {view->k_row, view->v_row};
    void *apart[2] = {view->k, view->v}, *packed[2] = {own->data, layer_row(c, own->data, shape_keys_width(s))};
    for (int i = 0; i < 2; i++)
        layer_rows(c, (struct rows_call){.n = s->tokens,
                                         .width = width[i],
                                         .from_row = out ? shape_kv_width(s) : row[i],
                                         .to_row = out ? row[i] : shape_kv_width(s),
                                         .from = out ? packed[i] : apart[i],
                                         .to = out ? apart[i] : packed[i]});
}

/* Positions [begin, end) of every sequence. */
struct key_range {
    int64_t begin, end;
};

static int pieces_of(const struct layer_context *c)
{
    return c->step->step->pieces;
}

/* The first rank of a piece. */
static int piece_from(const struct layer_context *c, int piece)
{
    return piece * c->shape->cp / pieces_of(c);
}

/* Early and late chunks of a piece's ranks; of all together the whole, and nothing. */
static struct key_range range_of(const struct layer_context *c, int piece, bool late)
{
    const struct shape *s = c->shape;
    int64_t from = piece_from(c, piece), to = piece_from(c, piece + 1), chunk = s->seq_len / 2, chunks = 2 * s->cp;
    if (pieces_of(c) == 1)
        return late ? (struct key_range){0, 0} : (struct key_range){0, s->seq_len * s->cp};
    return late ? (struct key_range){(chunks - to) * chunk, (chunks - from) * chunk}
                : (struct key_range){from * chunk, to * chunk};
}

/* Rows of a range, from the order of ranks to that of sequences. */
static void arrange(const struct layer_context *c, struct tensor *all, struct tensor *kv, struct key_range range)
{
    const struct shape *s = c->shape;
    int64_t width = shape_kv_width(s), whole = s->seq_len * s->cp;
    bool everything = range.end - range.begin == whole;
    for (int64_t i = 0; i < (everything ? 1 : s->micro_batch) && range.end > range.begin; i++) {
        int64_t first = i * whole + range.begin;
        layer_rows(c, (struct rows_call){.n = everything ? s->micro_batch * whole : range.end - range.begin,
                                         .width = width,
                                         .from_row = width,
                                         .to_row = width,
                                         .index = c->rank->order + first,
                                         .from = tensor_data(all),
                                         .to = layer_row(c, kv->data, first * width)});
    }
}

/* Keys and values of the ranks of a piece, from each to all. */
static void exchange_piece(const struct layer_context *c, struct tensor *own, struct tensor *all, int piece)
{
    const struct shape *s = c->shape;
    struct exchange_call call = {.exchange = EXCHANGE_ALL_GATHER,
                                 .element = rank_element(c->rank),
                                 .in = tensor_data(own),
                                 .out = tensor_data(all),
                                 .count = s->tokens * shape_kv_width(s),
                                 .what = "keys and values"};
    if (pieces_of(c) == 1) {
        rank_exchange(c->rank, c->rank->groups[GROUP_CP], c->step->stream, &call);
        return;
    }
    call.exchange = EXCHANGE_BROADCAST;
    for (call.peer = piece_from(c, piece); call.peer < piece_from(c, piece + 1); call.peer++) {
        call.out = layer_row(c, tensor_data(all), call.peer * call.count);
        rank_exchange(c->rank, c->rank->groups[GROUP_CP], c->step->stream, &call);
    }
}

/* In a step of its own. */
static bool orders_apart(const struct layer_context *c)
{
    return cp_comm_gathers(c->rank->layout->cp_comm);
}

static void gather_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    int64_t width = shape_kv_width(s);
    l->kv_own = layer_tensor(c, s->tokens, width);
    l->kv_all = layer_tensor(c, s->tokens * s->cp, width);
    attention_pack(c);
    struct heads_view view = attention_heads(c, false);
    copy_own(c, &view, l->kv_own, false);
    l->kv = layer_tensor(c, s->tokens * s->cp, width);
    for (int piece = 0; piece < pieces_of(c); piece++) {
        pipeline_piece_begin(c->step, piece);
        exchange_piece(c, l->kv_own, l->kv_all, piece);
        for (int late = 0; late < 2 && !orders_apart(c); late++)
            arrange(c, l->kv_all, l->kv, range_of(c, piece, late));
        pipeline_piece_end(c->step, piece);
    }
    if (pieces_of(c) == 1) {
        layer_drop(c, &l->kv_own);
        if (!orders_apart(c))
            layer_drop(c, &l->kv_all);
    }
}

static void order_step(const struct layer_context *c)
{
    arrange(c, c->state->kv_all, c->state->kv, range_of(c, 0, false));
    layer_drop(c, &c->state->kv_all);
}

/* Drops keys and values after attention. */
static void drop_keys(const struct layer_context *c)
{
    layer_drop(c, &c->state->kv_own);
    layer_drop(c, &c->state->kv_all);
    layer_drop(c, &c->state->kv);
}

/* Gradients of all keys and values to the ranks they belong to: first into their order. */
static void order_gradients(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    int64_t width = shape_kv_width(s);
    l->d_kv_all = layer_tensor(c, s->tokens * s->cp, width);
    layer_rows(c, (struct rows_call){.n = s->tokens * s->cp,
                                     .width = width,
                                     .from_row = width,
                                     .to_row = width,
                                     .index = c->rank->order,
                                     .scatter = true,
                                     .from = tensor_data(l->d_kv),
                                     .to = tensor_data(l->d_kv_all)});
    layer_drop(c, &l->d_kv);
}

static void reduce_gradients(const struct layer_context *c, struct communicator *communicator)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    int64_t width = shape_kv_width(s);
    struct tensor *own = layer_tensor(c, s->tokens, width);
    struct exchange_call call = {.exchange = EXCHANGE_REDUCE_SCATTER,
                                 .element = rank_element(c->rank),
                                 .in = tensor_data(l->d_kv_all),
                                 .out = tensor_data(own),
                                 .count = s->tokens * width,
                                 .what = "gradients of keys and values"};
    rank_exchange(c->rank, communicator, c->step->stream, &call);
    struct heads_view view = attention_heads(c, true);
    copy_own(c, &view, own, true);
    layer_drop(c, &own);
    layer_drop(c, &l->d_kv_all);
}

/* --- the core */

static bool is_packed(const struct layer_context *c)
{
    return shape_is_packed(c->shape, c->rank->device);
}

static int64_t window_of(const struct layer_context *c)
{
    return (int64_t)sliding_window_width(c->rank->setting, c->rank->layout->features, c->layer);
}

/* `workspace`: its member in the call; for that many queries of all sequences and heads. */
static void launch_attention(const struct layer_context *c, struct kernel_call *call, void **workspace, int64_t rows,
                             bool backward)
{
    size_t bytes = c->rank->device->api->attention_workspace(c->rank->device, rows, backward);
    struct tensor *scratch = bytes ? tensor_new(c->rank, bytes) : NULL;
    *workspace = tensor_data(scratch);
    layer_launch(c, call);
    layer_drop(c, &scratch);
}

static void launch_packed(const struct layer_context *c, bool backward)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    struct kernel_call call = {.kernel = backward ? KERNEL_ATTENTION_BACKWARD : KERNEL_ATTENTION_FORWARD,
                               .attention = {.batch = s->micro_batch,
                                             .seq_len = s->seq_len,
                                             .window = window_of(c),
                                             .heads = s->heads,
                                             .kv_heads = s->kv_heads,
                                             .head_dim = s->head_dim,
                                             .qkv = l->qkv->data,
                                             .out = l->context->data,
                                             .log_sum_exp = l->log_sum_exp->data,
                                             .dout = tensor_data(l->d_context),
                                             .dqkv = tensor_data(l->d_qkv)}};
    launch_attention(c, &call, &call.attention.workspace, s->tokens * s->heads, backward);
}

/* Range `i` of the queries against the keys of the whole sequence. */
static struct kernel_call query_range_of(const struct layer_context *c, int i, enum kernel kernel)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    struct heads_view own = attention_heads(c, false);
    int64_t n = s->cp > 1 ? s->seq_len / 2 : s->seq_len, whole = s->seq_len * s->cp, width = shape_kv_width(s);
    struct kernel_call call = {.kernel = kernel,
                               .query_range = {.batch = s->micro_batch,
                                               .queries = n,
                                               .keys = whole,
                                               .first = position_of(&s->at, s->seq_len, i * n),
                                               .window = window_of(c),
                                               .heads = s->heads,
                                               .kv_heads = s->kv_heads,
                                               .head_dim = s->head_dim,
                                               .value_dim = (int)(s->context_width / s->heads),
                                               .slopes = c->rank->slopes,
                                               .q_at = {own.q_row, s->seq_len * own.q_row},
                                               .k_at = {own.k_row, s->seq_len * own.k_row},
                                               .v_at = {own.v_row, s->seq_len * own.v_row},
                                               .out_at = {s->context_width, s->seq_len * s->context_width},
                                               .q = layer_row(c, own.q, i * n * own.q_row),
                                               .k = own.k,
                                               .v = own.v,
                                               .out = layer_row(c, l->context->data, i * n * s->context_width),
                                               .log_sum_exp = (float *)l->log_sum_exp->data + i * n * s->micro_batch * s->heads}};
    if (s->cp > 1) {
        call.query_range.k_at = call.query_range.v_at = (struct strided){width, whole * width};
        call.query_range.k = tensor_data(l->kv);
        call.query_range.v = layer_row(c, tensor_data(l->kv), shape_keys_width(s));
    }
    return call;
}

static int query_ranges(const struct shape *s)
{
    return s->cp > 1 ? 2 : 1;
}

/* Gradients of range `i`, and where those of its keys and values are added up. */
static void add_gradients(const struct layer_context *c, struct query_range_call *call, int i, const struct heads_view *d,
                          struct tensor *d_kv)
{
    const struct shape *s = c->shape;
    int64_t row = i * call->queries;
    call->dout = layer_row(c, c->state->d_context->data, row * s->context_width);
    call->dq = layer_row(c, d->q, row * d->q_row);
    call->dk = d_kv ? d_kv->data : d->k;
    call->dv = d_kv ? layer_row(c, d_kv->data, shape_keys_width(s)) : d->v;
}

/* Limits a call to the keys of a range. */
static void limit_keys(struct query_range_call *call, struct key_range range, size_t element_bytes)
{
    call->keys = range.end - range.begin;
    call->first -= range.begin;
    call->accumulate = range.begin > 0;
    call->k = (const char *)call->k + (size_t)(range.begin * call->k_at.row) * element_bytes;
    call->v = (const char *)call->v + (size_t)(range.begin * call->v_at.row) * element_bytes;
    call->dk = call->dk ? (char *)call->dk + (size_t)(range.begin * call->k_at.row) * element_bytes : NULL;
    call->dv = call->dv ? (char *)call->dv + (size_t)(range.begin * call->v_at.row) * element_bytes : NULL;
}

static bool sees_any(const struct query_range_call *call)
{
    return call->keys > 0 && call->first + call->queries > 0;
}

/* Range `i` of the queries to keys of a range. d, d_kv: backward, gradients. */
static void attend(const struct layer_context *c, int i, struct key_range range, const struct heads_view *d, struct tensor *d_kv)
{
    const struct shape *s = c->shape;
    struct kernel_call call = query_range_of(c, i, d ? KERNEL_QUERY_RANGE_BACKWARD : KERNEL_QUERY_RANGE_FORWARD);
    if (d)
        add_gradients(c, &call.query_range, i, d, d_kv);
    limit_keys(&call.query_range, range, device_element_bytes(c->rank->device));
    if (sees_any(&call.query_range) && c->rank->status == STATUS_OK)
        launch_attention(c, &call, &call.query_range.workspace, s->micro_batch * call.query_range.queries * s->heads, d != NULL);
}

/* Piece by piece as keys and values come; the first one is here. */
static void each_range(const struct layer_context *c, const struct heads_view *d, struct tensor *d_kv)
{
    for (int piece = 0; piece < pieces_of(c); piece++) {
        if (piece > 0)
            pipeline_piece_begin(c->step, piece);
        for (int late = 0; late < 2; late++)
            for (int i = 0; i < query_ranges(c->shape); i++)
                attend(c, i, range_of(c, piece, late), d, d_kv);
        pipeline_piece_end(c->step, piece);
    }
}

/* Queries, keys and values that came from other ranks come again with them. */
static void forget_input(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    bool swapped = c->state == c->swapped;
    enum recompute_what again =
        swapped ? (enum recompute_what)((int)RECOMPUTE_FULL | (int)RECOMPUTE_CORE_ATTN) : RECOMPUTE_MLA_UP_PROJ;
    layer_forget(c, &l->qkv, swapped ? again : RECOMPUTE_FULL);
    layer_forget(c, &l->latent.q, again);
    layer_forget(c, &l->latent.k, again);
    layer_forget(c, &l->latent.v, again);
}

static void forward_step(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    pipeline_piece_begin(c->step, 0); /* what the exchange read before may be written from here on */
    attention_pack(c);
    l->context = layer_tensor(c, s->tokens, s->context_width);
    l->log_sum_exp = layer_floats(c, s->tokens * s->heads);
    if (is_packed(c))
        launch_packed(c, false);
    else
        each_range(c, NULL, NULL);
    drop_keys(c);
    forget_input(c);
    layer_forget(c, &l->latent.kv_down, RECOMPUTE_FULL); /* its norm has been, and the part that heads share been given to them */
}

static void clear(const struct layer_context *c, struct tensor *tensor)
{
    struct kernel_call zero = {.kernel = KERNEL_ZERO, .zero = {tensor->data, tensor->bytes}};
    layer_launch(c, &zero);
}

/* Gradients of keys and values are added up over ranges. */
static void ranges_backward(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    struct heads_view d = attention_heads(c, true);
    l->d_kv = s->cp > 1 ? layer_tensor(c, s->tokens * s->cp, shape_kv_width(s)) : NULL;
    if (l->d_kv)
        clear(c, l->d_kv);
    each_range(c, &d, l->d_kv);
    if (l->d_kv && !orders_apart(c)) {
        order_gradients(c);
        reduce_gradients(c, c->rank->side[GROUP_CP]);
    }
    drop_keys(c);
}

static void new_gradients(const struct layer_context *c)
{
    const struct shape *s = c->shape;
    struct layer_state *l = c->state;
    if (!s->latent.used) {
        l->d_qkv = layer_tensor(c, s->tokens, s->qkv_width);
        if (!is_packed(c))
            clear(c, l->d_qkv);
        return;
    }
    l->latent.d_q = layer_tensor(c, s->tokens, s->query_width);
    l->latent.d_k = layer_tensor(c, s->tokens, s->query_width);
    l->latent.d_v = layer_tensor(c, s->tokens, s->context_width);
    clear(c, l->latent.d_k);
    clear(c, l->latent.d_v);
}

static void backward_step(const struct layer_context *c)
{
    struct layer_state *l = c->state;
    pipeline_piece_begin(c->step, 0);
    attention_pack(c);
    new_gradients(c);
    if (is_packed(c))
        launch_packed(c, true);
    else
        ranges_backward(c);
    layer_drop(c, &l->d_context);
    layer_drop(c, &l->qkv);
    layer_drop(c, &l->latent.q);
    layer_drop(c, &l->latent.k);
    layer_drop(c, &l->latent.v);
    layer_drop(c, &l->log_sum_exp);
    layer_drop(c, &l->context);
}

static bool core_step(const struct layer_context *c, const struct step *step)
{
    switch (step->kind) {
    case STEP_KV_GATHER:
    case STEP_KV_GATHER_AGAIN: gather_step(c); break;
    case STEP_KV_ORDER:
    case STEP_KV_ORDER_AGAIN: order_step(c); break;
    case STEP_KV_ORDER_GRADIENT: order_gradients(c); break;
    case STEP_KV_REDUCE: reduce_gradients(c, c->rank->groups[GROUP_CP]); break;
    case STEP_ATTENTION: forward_step(c); break;
    case STEP_ATTENTION_BACKWARD: backward_step(c); break;
    default: return false;
    }
    return true;
}

bool attention_step(const struct layer_context *c, const struct step *step)
{
    struct layer_context core = *c;
    core.shape = &c->rank->core;
    core.state = layout_cp_heads(c->rank->layout) > 1 ? c->swapped : c->state;
    return core_step(&core, step);
}
