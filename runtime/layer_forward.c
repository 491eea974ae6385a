/* layer_forward.c - the forward pass of a layer; also what is recomputed of it.
 *
 * [T] tokens of a micro-batch, [L] of them on this rank (T / tp with sequence parallelism), h hidden, q widths of this rank. */
#include "runtime/rank.h"

#define ROTARY_BASE 10000.0f

static size_t bytes_of(const struct step_context *c, int64_t rows, int64_t cols)
{
    return (size_t)(rows * cols) * device_element_bytes(c->rank->device);
}

static struct tensor *activation_new(struct step_context *c, int64_t rows, int64_t cols)
{
    return tensor_new(c->rank, bytes_of(c, rows, cols));
}

static void drop(struct step_context *c, struct tensor **tensor)
{
    tensor_drop(c->rank, tensor, c->stream);
}

/* --- exchanges */

void tp_gather(struct step_context *c, struct tensor *in, struct tensor **out, const char *what)
{
    const struct shape *s = &c->rank->shape;
    if (!*out)
        *out = activation_new(c, s->tokens, s->hidden);
    struct exchange_call call = {.exchange = EXCHANGE_ALL_GATHER,
                                 .element = rank_element(c->rank),
                                 .in = in->data,
                                 .out = (*out)->data,
                                 .count = s->local_tokens * s->hidden,
                                 .what = what};
    rank_exchange(c->rank, c->rank->groups[GROUP_TP], c->stream, &call);
}

void tp_reduce(struct step_context *c, struct tensor **tensor, const char *what)
{
    const struct shape *s = &c->rank->shape;
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = rank_element(c->rank),
                                 .in = (*tensor)->data,
                                 .out = (*tensor)->data,
                                 .count = s->tokens * s->hidden,
                                 .what = what};
    struct tensor *kept = NULL;
    if (s->sequence_parallel) {
        kept = activation_new(c, s->local_tokens, s->hidden);
        call.exchange = EXCHANGE_REDUCE_SCATTER;
        call.out = kept->data;
        call.count = s->local_tokens * s->hidden;
    }
    rank_exchange(c->rank, c->rank->groups[GROUP_TP], c->stream, &call);
    if (kept) {
        drop(c, tensor);
        *tensor = kept;
    }
}

struct tensor *output_new(struct step_context *c, bool forward, bool last_of_chunk)
{
    const struct layout *layout = c->rank->layout;
    int last = layout->pp * layout->vpp - 1, v = c->chunk->virtual_stage;
    size_t bytes = bytes_of(c, c->rank->shape.local_tokens, c->rank->shape.hidden);
    bool sent = last_of_chunk && (forward ? v < last : v > 0);
    return sent ? tensor_new_travelling(c->rank, bytes, c->stream) : tensor_new(c->rank, bytes);
}

/* --- kernels */

struct norm_parts {
    enum parameter_kind gain;
    struct tensor *x, **mean, **rstd, **y;
};

static void norm_forward(struct step_context *c, const struct unit_state *unit, struct norm_parts n)
{
    const struct shape *s = &c->rank->shape;
    *n.mean = tensor_new(c->rank, (size_t)s->local_tokens * sizeof(float));
    *n.rstd = tensor_new(c->rank, (size_t)s->local_tokens * sizeof(float));
    *n.y = activation_new(c, s->local_tokens, s->hidden);
    struct kernel_call call = {.kernel = KERNEL_NORM_FORWARD,
                               .norm_forward = {.t = s->local_tokens,
                                                .h = s->hidden,
                                                .rms = s->rms,
                                                .epsilon = NORM_EPSILON,
                                                .x = n.x->data,
                                                .gain = unit_weights(c->rank, unit, n.gain),
                                                .bias = s->rms ? NULL : unit_weights(c->rank, unit, n.gain + 1),
                                                .y = (*n.y)->data,
                                                .mean = (*n.mean)->data,
                                                .rstd = (*n.rstd)->data}};
    rank_launch(c->rank, c->stream, &call);
}

struct linear_parts {
    enum parameter_kind weights, bias;
    bool biased, accumulate;
    int64_t in, out;
};

static void linear_forward(struct step_context *c, const struct unit_state *unit, struct linear_parts l, struct tensor *x,
                           struct tensor *y)
{
    struct kernel_call call = {.kernel = KERNEL_LINEAR_FORWARD,
                               .linear = {.t = c->rank->shape.tokens,
                                          .in = l.in,
                                          .out = l.out,
                                          .x = x->data,
                                          .w = unit_weights(c->rank, unit, l.weights),
                                          .bias = l.biased ? unit_weights(c->rank, unit, l.bias) : NULL,
                                          .y = y->data,
                                          .accumulate = l.accumulate}};
    rank_launch(c->rank, c->stream, &call);
}

static void residual(struct step_context *c, struct tensor *a, struct tensor *b, const void *bias, struct tensor *y)
{
    const struct shape *s = &c->rank->shape;
    struct kernel_call call = {
        .kernel = KERNEL_ADD,
        .add = {.n = s->local_tokens * s->hidden, .h = s->hidden, .a = a->data, .b = b->data, .bias = bias, .y = y->data}};
    rank_launch(c->rank, c->stream, &call);
}

/* --- steps */

static void norm1_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit, bool recompute)
{
    if (!recompute) {
        l->x = c->pass->x;
        c->pass->x = NULL;
    }
    norm_forward(c, unit, (struct norm_parts){PARAMETER_NORM1_GAIN, l->x, &l->mean1, &l->rstd1, &l->n1});
    if (!c->rank->shape.sequence_parallel)
        l->n1_full = tensor_share(l->n1);
}

static void qkv_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    l->qkv = activation_new(c, s->tokens, s->qkv_width);
    linear_forward(
        c, unit,
        (struct linear_parts){
            .weights = PARAMETER_QKV, .bias = PARAMETER_QKV_BIAS, .biased = s->qkv_bias, .in = s->hidden, .out = s->qkv_width},
        l->n1_full, l->qkv);
    if (s->parallel_block)
        return;                           /* the feed-forward part reads the same input */
    if (!c->keep || s->sequence_parallel) /* gathered again in the backward pass */
        drop(c, &l->n1_full);
    if (!c->keep)
        drop(c, &l->n1);
}

static void rotary_step(struct step_context *c, struct layer_state *l)
{
    const struct shape *s = &c->rank->shape;
    struct kernel_call call = {.kernel = KERNEL_ROTARY,
                               .rotary = {.t = s->tokens,
                                          .seq_len = s->seq_len,
                                          .heads = s->heads,
                                          .kv_heads = s->kv_heads,
                                          .head_dim = s->head_dim,
                                          .base = ROTARY_BASE,
                                          .qkv = l->qkv->data}};
    rank_launch(c->rank, c->stream, &call);
}

static void attention_step(struct step_context *c, struct layer_state *l, int layer)
{
    const struct shape *s = &c->rank->shape;
    l->context = activation_new(c, s->tokens, s->query_width);
    l->log_sum_exp = tensor_new(c->rank, (size_t)(s->tokens * s->heads) * sizeof(float));
    struct kernel_call call = {
        .kernel = KERNEL_ATTENTION_FORWARD,
        .attention = {.batch = s->micro_batch,
                      .seq_len = s->seq_len,
                      .window = (int64_t)sliding_window_width(c->rank->setting, c->rank->layout->features, layer),
                      .heads = s->heads,
                      .kv_heads = s->kv_heads,
                      .head_dim = s->head_dim,
                      .qkv = l->qkv->data,
                      .out = l->context->data,
                      .log_sum_exp = l->log_sum_exp->data}};
    size_t bytes = c->rank->device->api->attention_workspace(c->rank->device, &call.attention, false);
    struct tensor *workspace = bytes ? tensor_new(c->rank, bytes) : NULL;
    call.attention.workspace = tensor_data(workspace);
    rank_launch(c->rank, c->stream, &call);
    drop(c, &workspace);
    if (!c->keep)
        drop(c, &l->qkv);
}

static void projection_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    l->branch = activation_new(c, s->tokens, s->hidden);
    /* The bias is added with the residual; in a parallel block, which has one residual for two biases, by one of the ranks here.
     */
    linear_forward(c, unit,
                   (struct linear_parts){.weights = PARAMETER_PROJECTION,
                                         .bias = PARAMETER_PROJECTION_BIAS,
                                         .biased = s->parallel_block && s->linear_bias && s->tp_rank == 0,
                                         .in = s->query_width,
                                         .out = s->hidden},
                   l->context, l->branch);
    if (c->keep && c->rank->layout->recompute != RECOMPUTE_SELECTIVE)
        return;
    drop(c, &l->context); /* the core of attention is computed again, or all of the layer */
    drop(c, &l->log_sum_exp);
}

static const void *bias_of(struct step_context *c, const struct unit_state *unit, enum parameter_kind kind)
{
    return c->rank->shape.linear_bias ? unit_weights(c->rank, unit, kind) : NULL;
}

static void residual1_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    l->x2 = activation_new(c, s->local_tokens, s->hidden);
    residual(c, l->x, l->branch, bias_of(c, unit, PARAMETER_PROJECTION_BIAS), l->x2);
    drop(c, &l->branch);
}

static void norm2_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    norm_forward(c, unit, (struct norm_parts){PARAMETER_NORM2_GAIN, l->x2, &l->mean2, &l->rstd2, &l->n2});
    if (!c->rank->shape.sequence_parallel)
        l->n2_full = tensor_share(l->n2);
}

static void up_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    l->up = activation_new(c, s->tokens, s->up_width);
    linear_forward(
        c, unit,
        (struct linear_parts){
            .weights = PARAMETER_UP, .bias = PARAMETER_UP_BIAS, .biased = s->linear_bias, .in = s->hidden, .out = s->up_width},
        s->parallel_block ? l->n1_full : l->n2_full, l->up);
    if (s->parallel_block) { /* the gathered input is kept: its weights' gradient comes before it would be gathered again */
        if (!c->keep) {
            drop(c, &l->n1_full);
            drop(c, &l->n1);
        }
        return;
    }
    if (!c->keep || s->sequence_parallel)
        drop(c, &l->n2_full);
    if (!c->keep)
        drop(c, &l->n2);
}

static void activation_step(struct step_context *c, struct layer_state *l)
{
    const struct shape *s = &c->rank->shape;
    l->act = activation_new(c, s->tokens, s->ffn);
    struct kernel_call call = {
        .kernel = KERNEL_ACTIVATION_FORWARD,
        .activation = {.t = s->tokens, .f = s->ffn, .gated = s->gated, .u = l->up->data, .a = l->act->data}};
    rank_launch(c->rank, c->stream, &call);
    if (!c->keep)
        drop(c, &l->up);
}

static void down_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit)
{
    const struct shape *s = &c->rank->shape;
    if (!s->parallel_block)
        l->branch = activation_new(c, s->tokens, s->hidden);
    linear_forward(
        c, unit,
        (struct linear_parts){.weights = PARAMETER_DOWN, .in = s->ffn, .out = s->hidden, .accumulate = s->parallel_block}, l->act,
        l->branch);
    if (!c->keep)
        drop(c, &l->act);
}

/* What only the backward pass needs goes when that pass will compute it again. */
static void forget_norms(struct step_context *c, struct layer_state *l)
{
    if (c->keep)
        return;
    drop(c, &l->mean1);
    drop(c, &l->rstd1);
    drop(c, &l->mean2);
    drop(c, &l->rstd2);
    drop(c, &l->x2);
}

static void residual2_step(struct step_context *c, struct layer_state *l, const struct unit_state *unit, const struct step *step)
{
    const struct shape *s = &c->rank->shape;
    if (!step->recompute) {
        bool last = step->layer == c->chunk->range.count - 1 && !c->chunk->head;
        struct tensor *y = output_new(c, true, last);
        residual(c, s->parallel_block ? l->x : l->x2, l->branch, bias_of(c, unit, PARAMETER_DOWN_BIAS), y);
        c->pass->x = y;
    }
    drop(c, &l->branch);
    forget_norms(c, l);
}

void layer_forward_step(struct step_context *c, const struct step *step)
{
    struct layer_state *l = &c->pass->layers[step->layer];
    const struct unit_state *unit = chunk_layer_unit(c->chunk, step->layer);
    switch (step->kind) {
    case STEP_NORM1: norm1_step(c, l, unit, step->recompute); break;
    case STEP_GATHER1: tp_gather(c, l->n1, &l->n1_full, "input of attention"); break;
    case STEP_QKV: qkv_step(c, l, unit); break;
    case STEP_ROTARY: rotary_step(c, l); break;
    case STEP_ATTENTION: attention_step(c, l, c->chunk->range.first + step->layer); break;
    case STEP_PROJECTION: projection_step(c, l, unit); break;
    case STEP_REDUCE1: tp_reduce(c, &l->branch, "output of attention"); break;
    case STEP_RESIDUAL1: residual1_step(c, l, unit); break;
    case STEP_NORM2: norm2_step(c, l, unit); break;
    case STEP_GATHER2: tp_gather(c, l->n2, &l->n2_full, "input of feed-forward"); break;
    case STEP_UP: up_step(c, l, unit); break;
    case STEP_ACTIVATION: activation_step(c, l); break;
    case STEP_DOWN: down_step(c, l, unit); break;
    case STEP_REDUCE2: tp_reduce(c, &l->branch, "output of feed-forward"); break;
    case STEP_RESIDUAL2: residual2_step(c, l, unit, step); break;
    default: break;
    }
}
