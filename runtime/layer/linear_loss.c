/* linear_loss.c - output matrix and loss in pieces of tokens, so that the logits of all tokens are never in memory together.
 *
 * fused_linear_loss computes the gradients in the forward pass. For each piece: logits, their loss, the gradient of the logits
 * (which replaces them), then the gradients of the product's input and weights. These are summed in a tensor of the micro-batch,
 * and the backward pass adds it to those of other micro-batches. The gradient starts with the loss of the batch, so nothing
 * needs scaling.
 *
 * cut_loss keeps only the sum of exponentials of each row. The backward pass computes the logits again, and for each piece the
 * gradients that it needs. A fused kernel keeps only as many logits as fit on the chip; here a piece has the size of
 * fused_linear_loss. */
#include "model/cost/work/work.h"
#include "runtime/layer/ends.h"

static void drop(struct step_context *c, struct tensor **tensor)
{
    tensor_drop(c->rank, tensor, c->stream);
}

static struct tensor *tensor_of(struct step_context *c, int64_t rows, int64_t cols)
{
    return tensor_new(c->rank, (size_t)(rows * cols) * device_element_bytes(c->rank->device));
}

static int64_t piece_tokens(const struct step_context *c)
{
    return head_chunk_tokens(c->rank->layout, c->rank->setting);
}

static struct token_rows piece_of(const struct step_context *c, int64_t piece)
{
    int64_t tokens = c->rank->shape.tokens, first = piece * piece_tokens(c), left = tokens - first;
    return (struct token_rows){first, left < piece_tokens(c) ? left : piece_tokens(c)};
}

/* --- of a piece */

static void make_logits(struct step_context *c, struct head_state *h, struct token_rows rows)
{
    const struct shape *s = &c->rank->shape;
    struct kernel_call call = ends_output_call(c, rows.n, KERNEL_LINEAR_FORWARD);
    if (!h->logits) /* one for all pieces */
        h->logits = tensor_of(c, piece_tokens(c), s->vocab_count);
    call.linear.x = ends_row(c, h->n_full, rows.first, s->hidden);
    call.linear.y = tensor_data(h->logits);
    rank_launch(c->rank, c->stream, &call);
}

static void make_input_gradient(struct step_context *c, struct head_state *h, struct token_rows rows)
{
    const struct shape *s = &c->rank->shape;
    struct kernel_call call = ends_output_call(c, rows.n, KERNEL_LINEAR_BACKWARD_INPUT);
    if (!h->d_n)
        h->d_n = tensor_of(c, s->tokens, s->hidden);
    call.linear.dy = tensor_data(h->logits);
    call.linear.dx = ends_row(c, h->d_n, rows.first, s->hidden);
    rank_launch(c->rank, c->stream, &call);
}

/* Into `sum` [v, hidden], beginning with the first piece, or to what is there. */
static void make_weight_gradient(struct step_context *c, struct head_state *h, struct token_rows rows, float *sum, bool begins)
{
    struct kernel_call call = ends_output_call(c, rows.n, KERNEL_LINEAR_BACKWARD_WEIGHT);
    call.linear.w = NULL;
    call.linear.x = ends_row(c, h->n_full, rows.first, c->rank->shape.hidden);
    call.linear.dy = tensor_data(h->logits);
    call.linear.dw = sum;
    call.linear.overwrite = begins;
    rank_launch(c->rank, c->stream, &call);
}

static struct tensor *weight_sum_new(struct step_context *c)
{
    const struct shape *s = &c->rank->shape;
    return tensor_new(c->rank, (size_t)(s->vocab_count * s->hidden) * sizeof(float));
}

/* --- fused_linear_loss */

static void chunk_logits_step(struct step_context *c, struct head_state *h, const struct step *step)
{
    if (step->part == 0) {
        ends_sums_new(c, h);
        drop(c, &h->n);
    }
    make_logits(c, h, piece_of(c, step->part));
}

static void chunk_loss_step(struct step_context *c, struct head_state *h, const struct step *step)
{
    ends_loss(c, h, step->ahead, piece_of(c, step->part));
    ends_loss_backward(c, h, step->ahead, piece_of(c, step->part));
}

static void chunk_weight_step(struct step_context *c, struct head_state *h, const struct step *step)
{
    if (step->part == 0)
        h->d_w = weight_sum_new(c);
    make_weight_gradient(c, h, piece_of(c, step->part), tensor_data(h->d_w), step->part == 0);
    if (step->part + 1 < step->parts)
        return;
    drop(c, &h->logits);
    drop(c, &h->n_full);
    drop(c, &h->max);
    drop(c, &h->sums);
}

/* Adds the gradient of the forward pass to those of other micro-batches; a separate step does that if step->sums. */
static void scale_step(struct step_context *c, struct head_state *h, const struct step *step)
{
    if (!step->weight)
        return;
    c->pass->fresh = tensor_take(&h->d_w);
    c->pass->fresh_to = ends_output_gradient(c);
    if (!step->sums)
        gradient_sum_step(c);
}

/* --- cut_loss */

static void cut_step(struct step_context *c, struct head_state *h, const struct step *step)
{
    ends_sums_new(c, h);
    drop(c, &h->n);
    for (struct token_rows rows = piece_of(c, 0); rows.n > 0; rows = piece_of(c, rows.first / piece_tokens(c) + 1)) {
        make_logits(c, h, rows);
        ends_loss(c, h, step->ahead, rows);
    }
    drop(c, &h->logits);
}

/* Weight gradients of the piece at `first`: added up apart where that is a step of its own. */
static float *sum_of(struct step_context *c, const struct step *step, int64_t first)
{
    if (!step->sums)
        return ends_output_gradient(c);
    if (first == 0) {
        c->pass->fresh = weight_sum_new(c);
        c->pass->fresh_to = ends_output_gradient(c);
    }
    return tensor_data(c->pass->fresh);
}

static void cut_again_step(struct step_context *c, struct head_state *h, const struct step *step)
{
    for (struct token_rows rows = piece_of(c, 0); rows.n > 0; rows = piece_of(c, rows.first / piece_tokens(c) + 1)) {
        make_logits(c, h, rows);
        ends_loss_backward(c, h, step->ahead, rows);
        if (step->input)
            make_input_gradient(c, h, rows);
        if (step->weight)
            make_weight_gradient(c, h, rows, sum_of(c, step, rows.first), step->sums && rows.first == 0);
    }
    drop(c, &h->logits);
    if (!step->weight)
        return;
    drop(c, &h->n_full);
    drop(c, &h->max);
    drop(c, &h->sums);
}

bool linear_loss_step(struct step_context *c, struct head_state *h, const struct step *step)
{
    switch (step->kind) {
    case STEP_CHUNK_LOGITS: chunk_logits_step(c, h, step); return true;
    case STEP_CHUNK_LOSS: chunk_loss_step(c, h, step); return true;
    case STEP_CHUNK_INPUT: make_input_gradient(c, h, piece_of(c, step->part)); return true;
    case STEP_CHUNK_WEIGHT: chunk_weight_step(c, h, step); return true;
    case STEP_LOSS_SCALE: scale_step(c, h, step); return true;
    case STEP_CUT_LOSS: cut_step(c, h, step); return true;
    case STEP_CUT_AGAIN: cut_again_step(c, h, step); return true;
    case STEP_CUT_DONE: return true;
    default: return false;
    }
}
