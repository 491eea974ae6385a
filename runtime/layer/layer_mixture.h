/*
 * layer_mixture.h - what the two passes of a mixture of experts share (private to the runtime).
 *
 * Copies of tokens go to the ranks that hold their experts and come back; no copy is dropped, so how many go where is known on
 * the device only. Rows in memory at each place:
 *
 *     [n]     n = tokens * top_k copies in the order of experts, on the rank that sends them
 *     [most]  copies as they arrive: by member of the tensor-parallel group, source, expert; then in the order of experts. As
 * many as there are; room for the case that all choose this rank's experts
 *
 * Experts that are split over the tensor-parallel group work on the copies of all of its ranks: what one received is gathered,
 * and the partial results are reduced before they go back.
 */
#ifndef MSIM_RUNTIME_LAYER_LAYER_MIXTURE_H
#define MSIM_RUNTIME_LAYER_LAYER_MIXTURE_H

#include "runtime/layer/layer.h"

/* Integers of one layer and micro-batch, in one tensor. */
struct routing {
    int32_t *counts;   /* [experts] own copies for each */
    int32_t *arrived;  /* [tp, ep, local] copies from all sources */
    int32_t *sent;     /* [ep] rows to each rank of the expert-parallel group */
    int32_t *received; /* [ep] rows from each */
    int32_t *members;  /* [tp] rows that each rank of the tensor-parallel group received */
    int32_t *offsets;  /* [local + 1] of experts among the rows; the last: how many rows */
    int32_t *expert;   /* [n] */
    int32_t *place;    /* [n] */
    int32_t *order;    /* [most] */
};
struct routing routing_of(const struct layer_context *c);
const int32_t *routing_rows(const struct layer_context *c); /* number of rows, in device memory */

/* Shares. Of the tokens that all tensor-parallel ranks have each sends a share to experts: tokens [rank * share, (rank + 1) *
 * share), where tp does not divide them fewer on the last ranks. A tensor of all tokens with room for every rank's whole share;
 * this rank's rows in one of all tokens. */
struct tensor *mixture_shares(const struct layer_context *c);
void *mixture_own(const struct layer_context *c, struct tensor *tensor);
int64_t mixture_room(const struct layer_context *c); /* the most copies of tokens that a rank sends */

/* `rows` to the experts and back: over the expert-parallel, over the tensor-parallel group. */
void mixture_dispatch(const struct layer_context *c, const char *what);
void mixture_dispatch_tp(const struct layer_context *c, const char *what);
void mixture_combine_tp(const struct layer_context *c, const char *what);
void mixture_combine(const struct layer_context *c, const char *what);
/* `rows` as they arrived -> a tensor in the order of experts, and the other way round. */
struct tensor *mixture_sort(const struct layer_context *c);
void mixture_unsort(const struct layer_context *c, struct tensor **sorted);
/* Shares of the tokens become all tokens, where each rank worked on its own, in a tensor of mixture_shares. */
void mixture_gather_shares(const struct layer_context *c, struct tensor *tensor, const char *what);

enum expert_product { EXPERT_PRODUCT_UP, EXPERT_PRODUCT_DOWN };
/* The product of all local experts without operands: sizes, weights, biases, gradients of them. */
struct kernel_call expert_product_of(const struct layer_context *c, enum expert_product product, enum kernel kernel);
/* Operands of such a call: both may be NULL. */
void expert_operands(struct kernel_call *call, const struct tensor *x, const struct tensor *dy);
/* Launched with room for its operands' numbers. */
void expert_launch(const struct layer_context *c, struct kernel_call *call);
/* *dy becomes its cast, the bias's gradient comes with it. */
void expert_cast_gradient(const struct layer_context *c, enum expert_product product, struct tensor **dy);
struct product shared_up_of(const struct layer_context *c);
struct product shared_down_of(const struct layer_context *c);
struct product router_of(const struct layer_context *c);

#endif
