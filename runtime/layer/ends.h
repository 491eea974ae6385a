/*
 * ends.h - the output matrix and the loss, for all tokens of a micro-batch or for some rows (private to ends*.c and
 * linear_loss.c).
 *
 * Example: the loss of tokens 256 to 383, whose logits are in h->logits.
 *
 *     struct token_rows rows = {256, 128};
 *     ends_loss(c, h, 0, rows);                  adds their loss to the step's
 *     ends_loss_backward(c, h, 0, rows);         h->logits becomes the gradient of the logits
 */
#ifndef MSIM_RUNTIME_LAYER_ENDS_H
#define MSIM_RUNTIME_LAYER_ENDS_H

#include "runtime/base/rank.h"

/* Tokens [first, first + n) of a micro-batch. */
struct token_rows {
    int64_t first, n;
};

/* A unit of the chunk; NULL where `index` is negative. */
const struct unit_state *ends_unit(const struct step_context *c, int index);
/* Tokens of this micro-batch, each `ahead` positions later in its sequence. */
const int32_t *ends_tokens(const struct step_context *c, int ahead);
/* Whether each rank of the tensor-parallel group computes the loss of the whole vocabulary. */
bool ends_gather_logits(const struct rank *rank);
/* The address of row `row` of a tensor in the device's precision, whose rows have `width` elements. */
void *ends_row(const struct step_context *c, const struct tensor *tensor, int64_t row, int64_t width);
/* A product of `rows` rows with the output matrix, without operands; the sum of the matrix's gradient, in fp32. */
struct kernel_call ends_output_call(const struct step_context *c, int64_t rows, enum kernel kernel);
float *ends_output_gradient(const struct step_context *c);
/* Allocates a head's statistics of a micro-batch: h->max [rows], the largest logits; h->sums [2, rows], the sums of exponentials
 * and the logits of targets. */
void ends_sums_new(struct step_context *c, struct head_state *h);
/* For rows whose logits are h->logits [n, v]: adds their loss to the step's; replaces the logits by their gradient. */
void ends_loss(struct step_context *c, struct head_state *h, int ahead, struct token_rows rows);
void ends_loss_backward(struct step_context *c, struct head_state *h, int ahead, struct token_rows rows);

/* linear_loss.c: fused_linear_loss and cut_loss. False: not one of their steps. */
bool linear_loss_step(struct step_context *c, struct head_state *h, const struct step *step);

#endif
