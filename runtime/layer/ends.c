/* ends.c - the parts before the first layer and after the last: embedding, output matrix, loss. */
#include "runtime/layer/ends.h"
#include "model/cost/work/work.h"

static struct tensor *activation_new(struct step_context *c, int64_t rows, int64_t cols)
{
    return tensor_new(c->rank, (size_t)(rows * cols) * device_element_bytes(c->rank->device));
}

static void drop(struct step_context *c, struct tensor **tensor)
{
    tensor_drop(c->rank, tensor, c->stream);
}

/* --- embedding */

/* The result of an embedding, and its gradient: of the model's own, or of a prediction module's. */
static struct tensor **embedded(const struct step_context *c, int ahead)
{
    return ahead ? &c->pass->predictions[ahead - 1].x[0] : &c->pass->x;
}

static struct tensor **embedded_gradient(const struct step_context *c, int ahead)
{
    return ahead ? &c->pass->predictions[ahead - 1].d : &c->pass->d;
}

static struct kernel_call embedding_call_of(const struct step_context *c, int ahead, enum kernel kernel)
{
    const struct shape *s = &c->rank->shape;
    return (struct kernel_call){.kernel = kernel,
                                .embedding = {.t = s->tokens,
                                              .h = s->hidden,
                                              .seq_len = s->seq_len,
                                              .first = s->vocab_first,
                                              .count = s->vocab_count,
                                              .at = s->at,
                                              .tokens = ends_tokens(c, ahead)}};
}

/* A chunk without layers sends what the embedding made. */
static void embedding_leave(struct step_context *c)
{
    if (c->chunk->range.count || c->chunk->head)
        return;
    struct tensor *made = c->pass->x;
    c->pass->x = output_new(c, true, true);
    struct kernel_call copy = {.kernel = KERNEL_COPY, .copy = {c->pass->x->data, made->data, made->bytes}};
    rank_launch(c->rank, c->stream, &copy);
    drop(c, &made);
}

/* Positions are the model's own embedding's: the state that a prediction module reads has them. */
static const struct unit_state *positions_of(const struct step_context *c, int ahead)
{
    return ahead ? NULL : ends_unit(c, c->chunk->units.positions);
}

static void embed_step(struct step_context *c, int ahead)
{
    const struct shape *s = &c->rank->shape;
    const struct unit_state *positions = positions_of(c, ahead);
    struct kernel_call call = embedding_call_of(c, ahead, KERNEL_EMBEDDING_FORWARD);
    struct tensor *x = *embedded(c, ahead) = activation_new(c, s->tokens, s->hidden);
    call.embedding.table = unit_weights(c->rank, rank_table(c->rank), PARAMETER_TABLE);
    if (positions && s->tp_rank == 0) /* rows are added up over the tensor-parallel group */
        call.embedding.positions = unit_weights(c->rank, positions, PARAMETER_POSITIONS);
    call.embedding.x = x->data;
    rank_launch(c->rank, c->stream, &call);
}

static void embed_gather_backward_step(struct step_context *c, int ahead)
{
    struct tensor *whole = NULL, **d = embedded_gradient(c, ahead);
    tp_gather(c, *d, &whole, "gradient of the embedding");
    drop(c, d);
    *d = whole;
}

static void embed_backward_step(struct step_context *c, int ahead)
{
    const struct unit_state *positions = positions_of(c, ahead);
    struct kernel_call call = embedding_call_of(c, ahead, KERNEL_EMBEDDING_BACKWARD);
    struct tensor **d = embedded_gradient(c, ahead);
    call.embedding.dx = (*d)->data;
    call.embedding.dtable = unit_gradients(rank_table(c->rank), PARAMETER_TABLE);
    call.embedding.dpositions = positions ? unit_gradients(positions, PARAMETER_POSITIONS) : NULL;
    rank_launch(c->rank, c->stream, &call);
    drop(c, d);
}

/* --- the whole vocabulary on every rank, for stacks that compute the loss so
 *
 * Shares of the vocabulary may differ by one word. Each rank sends as many elements as the largest share has; its own come first.
 */

static int64_t largest_share(const struct shape *s)
{
    return (s->vocab + s->tp - 1) / s->tp;
}

/* A rank's columns between its part [t, n] and the whole [t, vocab]. */
static void move_columns(struct step_context *c, int member, void *part, struct tensor *whole, bool out)
{
    const struct shape *s = &c->rank->shape;
    int64_t first = s->vocab * member / s->tp, n = s->vocab * (member + 1) / s->tp - first;
    void *columns = (char *)whole->data + (size_t)first * device_element_bytes(c->rank->device);
    struct kernel_call call = {.kernel = KERNEL_ROWS,
                               .rows = {.n = s->tokens,
                                        .width = n,
                                        .from_row = out ? s->vocab : n,
                                        .to_row = out ? n : s->vocab,
                                        .from = out ? columns : part,
                                        .to = out ? part : columns}};
    rank_launch(c->rank, c->stream, &call);
}

static void logits_gather_step(struct step_context *c, struct head_state *h)
{
    const struct shape *s = &c->rank->shape;
    int64_t share = s->tokens * largest_share(s);
    struct tensor *all = activation_new(c, s->tp, share), *whole = activation_new(c, s->tokens, s->vocab);
    struct exchange_call call = {.exchange = EXCHANGE_ALL_GATHER,
                                 .element = rank_element(c->rank),
                                 .in = h->logits->data,
                                 .out = all->data,
                                 .count = share,
                                 .what = "logits"};
    rank_exchange(c->rank, c->rank->groups[GROUP_TP], c->stream, &call);
    for (int i = 0; i < s->tp; i++)
        move_columns(c, i, (char *)all->data + (size_t)(i * share) * device_element_bytes(c->rank->device), whole, false);
    drop(c, &all);
    drop(c, &h->logits);
    h->logits = whole;
}

/* Keeps this rank's columns of the gradient of all logits, for its products. */
static void take_columns(struct step_context *c, struct head_state *h)
{
    const struct shape *s = &c->rank->shape;
    struct tensor *own = activation_new(c, s->tokens, largest_share(s));
    move_columns(c, s->tp_rank, own->data, h->logits, true);
    drop(c, &h->logits);
    h->logits = own;
}

/* --- output matrix */

/* The norm before the output matrix: the model's, or a prediction module's. */
struct final_norm {
    const struct unit_state *unit;
    enum parameter_kind gain;
};

static struct final_norm final_norm_of(const struct step_context *c, int ahead)
{
    struct final_norm own = {ends_unit(c, c->chunk->units.final_norm), PARAMETER_FINAL_GAIN};
    if (ahead)
        own = (struct final_norm){chunk_layer_unit(c->chunk, c->chunk->range.count + ahead - 1), PARAMETER_PREDICTION_FINAL_GAIN};
    return own;
}

static void final_norm_step(struct step_context *c, struct head_state *h, int ahead)
{
    const struct final_norm norm = final_norm_of(c, ahead);
    h->x = c->pass->x;
    c->pass->x = NULL;
    step_norm_forward(c, norm.unit, (struct norm_tensors){norm.gain, h->x, &h->mean, &h->rstd, &h->n});
    if (!c->rank->shape.sequence_parallel)
        h->n_full = tensor_share(h->n);
}

static void logits_step(struct step_context *c, struct head_state *h)
{
    const struct shape *s = &c->rank->shape;
    h->logits = activation_new(c, s->tokens, ends_gather_logits(c->rank) ? largest_share(s) : s->vocab_count);
    struct kernel_call call = ends_output_call(c, s->tokens, KERNEL_LINEAR_FORWARD);
    call.linear.x = h->n_full->data;
    call.linear.y = h->logits->data;
    rank_launch(c->rank, c->stream, &call);
    drop(c, &h->n);
}

static struct token_rows all_rows(const struct step_context *c)
{
    return (struct token_rows){0, c->rank->shape.tokens};
}

static void cross_entropy_step(struct step_context *c, struct head_state *h, int ahead)
{
    ends_sums_new(c, h);
    ends_loss(c, h, ahead, all_rows(c));
}

/* --- backward */

static void cross_entropy_backward_step(struct step_context *c, struct head_state *h, int ahead)
{
    ends_loss_backward(c, h, ahead, all_rows(c));
    drop(c, &h->max);
    drop(c, &h->sums);
    if (ends_gather_logits(c->rank))
        take_columns(c, h);
}

static void logits_input_step(struct step_context *c, struct head_state *h)
{
    const struct shape *s = &c->rank->shape;
    h->d_n = activation_new(c, s->tokens, s->hidden);
    struct kernel_call call = ends_output_call(c, s->tokens, KERNEL_LINEAR_BACKWARD_INPUT);
    call.linear.dy = h->logits->data;
    call.linear.dx = h->d_n->data;
    rank_launch(c->rank, c->stream, &call);
}

static void logits_weight_step(struct step_context *c, struct head_state *h)
{
    struct linear_call call = ends_output_call(c, c->rank->shape.tokens, KERNEL_LINEAR_BACKWARD_WEIGHT).linear;
    call.w = NULL;
    call.x = h->n_full->data;
    call.dy = h->logits->data;
    call.dw = ends_output_gradient(c);
    weight_gradient(c, call);
    drop(c, &h->logits);
    drop(c, &h->n_full);
}

static void final_norm_backward_step(struct step_context *c, struct head_state *h, int ahead)
{
    const struct final_norm norm = final_norm_of(c, ahead);
    c->pass->d = output_new(c, false, !ahead && c->chunk->range.count == 0 && !c->chunk->embedding);
    step_norm_backward(c, norm.unit,
                       (struct norm_gradients){norm.gain, h->d_n, h->x, h->mean, h->rstd, c->pass->d_state, c->pass->d});
    drop(c, &c->pass->d_state);
    drop(c, &h->d_n);
    drop(c, &h->x);
    drop(c, &h->mean);
    drop(c, &h->rstd);
}

void ends_step(struct step_context *c, const struct step *step)
{
    int ahead = step->ahead;
    struct head_state *h = ahead ? &c->pass->predictions[ahead - 1].head : &c->pass->head;
    if (linear_loss_step(c, h, step))
        return;
    switch (step->kind) {
    case STEP_EMBED: embed_step(c, ahead); break;
    case STEP_EMBED_REDUCE: tp_reduce(c, embedded(c, ahead), "embedding"); break;
    case STEP_EMBED_GATHER_BACKWARD: embed_gather_backward_step(c, ahead); break;
    case STEP_EMBED_BACKWARD: embed_backward_step(c, ahead); break;
    case STEP_FINAL_NORM: final_norm_step(c, h, ahead); break;
    case STEP_HEAD_GATHER: tp_gather(c, h->n, &h->n_full, "input of the output matrix"); break;
    case STEP_LOGITS: logits_step(c, h); break;
    case STEP_LOGITS_GATHER: logits_gather_step(c, h); break;
    case STEP_CROSS_ENTROPY: cross_entropy_step(c, h, ahead); break;
    case STEP_CROSS_ENTROPY_BACKWARD: cross_entropy_backward_step(c, h, ahead); break;
    case STEP_LOGITS_INPUT: logits_input_step(c, h); break;
    case STEP_LOGITS_WEIGHT: logits_weight_step(c, h); break;
    case STEP_HEAD_REDUCE_BACKWARD: tp_reduce(c, &h->d_n, "gradient of the output matrix's input"); break;
    case STEP_FINAL_NORM_BACKWARD: final_norm_backward_step(c, h, ahead); break;
    default: break;
    }
    if (step->last && (step->kind == STEP_EMBED || step->kind == STEP_EMBED_REDUCE))
        embedding_leave(c);
}
