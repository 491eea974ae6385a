/*
 * ends.h - what the output matrix and the loss are made of, of all tokens of a micro-batch or of some (private to ends.c and
 * linear_loss.c).
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
/* Row `row` of a tensor in the device's precision, each of `width` elements. */
void *ends_row(const struct step_context *c, const struct tensor *tensor, int64_t row, int64_t width);
/* The output matrix, for a product of `rows` rows; where its gradient is added up. */
struct kernel_call ends_output_call(const struct step_context *c, int64_t rows, enum kernel kernel);
float *ends_output_gradient(const struct step_context *c);
/* A head's tensors of a micro-batch: of each row its largest logit; the sum of exponentials, and the target's, rows apart. */
void ends_sums_new(struct step_context *c, struct head_state *h);
/* Of rows whose logits are h->logits [n, v]: their loss, adding to the step's; their gradient, which replaces the logits. */
void ends_loss(struct step_context *c, struct head_state *h, int ahead, struct token_rows rows);
void ends_loss_backward(struct step_context *c, struct head_state *h, int ahead, struct token_rows rows);

/* linear_loss.c: fused_linear_loss and cut_loss. False: not one of their steps. */
bool linear_loss_step(struct step_context *c, struct head_state *h, const struct step *step);

#endif
