/*
 * layer_mixture.h - the functions that both passes of a mixture of experts share (private to the runtime).
 *
 * Example: the forward pass of one layer, in the order of its steps.
 *
 *     router, top_k          logits [tokens, experts]; each token's top_k experts
 *     permute                [n] rows, sorted by expert, on the rank that sends them
 *     dispatch               [most] rows on the ranks that have the experts; sorted by expert again
 *     up, activation, down   one product per local expert
 *     combine, unpermute     rows go back and are added up, weighted
 *
 * Copies of tokens go to the ranks that hold their experts and come back. No copy is dropped, so the numbers of rows are known
 * on the device only. Rows in memory:
 *
 *     [n]     n = tokens * top_k copies in the order of experts, on the rank that sends them
 *     [most]  copies that arrive, in the order (member of the tensor-parallel group, source, expert), later in the order of
 *             experts. The capacity is for the case that all tokens choose this rank's experts
 *
 * If experts are split over the tensor-parallel group, each of its ranks computes with the copies of all: received rows are
 * gathered, and partial results are reduced before they go back.
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
/* Allocates them; mixture_route then fills in the members that depend on all ranks' choices. */
struct tensor *routing_new(const struct layer_context *c);
void mixture_route(const struct layer_context *c);
/* The sizes of the mixture, and the number of copies of tokens that this rank sends. */
const struct mixture_shape *mixture_sizes(const struct layer_context *c);
int64_t mixture_copies(const struct layer_context *c);
const int32_t *routing_rows(const struct layer_context *c); /* number of rows, in device memory */

/* Shares. All tensor-parallel ranks have the same tokens, and each sends a share of them to experts: tokens [rank * share, (rank
 * + 1) * share), fewer on the last ranks if tp does not divide the tokens. mixture_shares: a tensor for all tokens, with room for
 * a whole share of every rank. mixture_own: this rank's rows in such a tensor. */
struct tensor *mixture_shares(const struct layer_context *c);
void *mixture_own(const struct layer_context *c, struct tensor *tensor);
int64_t mixture_room(const struct layer_context *c); /* the most copies of tokens that a rank sends */

/* Send `rows` to the experts and back, over the expert-parallel group and (_tp) over the tensor-parallel group. */
void mixture_dispatch(const struct layer_context *c, const char *what);
void mixture_dispatch_tp(const struct layer_context *c, const char *what);
void mixture_combine_tp(const struct layer_context *c, const char *what);
void mixture_combine(const struct layer_context *c, const char *what);
/* Sorts `rows`, as they arrived, into a tensor in the order of experts; mixture_unsort sorts back. */
struct tensor *mixture_sort(const struct layer_context *c);
void mixture_unsort(const struct layer_context *c, struct tensor **sorted);
/* Gathers the shares of all ranks in a tensor of mixture_shares. */
void mixture_gather_shares(const struct layer_context *c, struct tensor *tensor, const char *what);

enum expert_product { EXPERT_PRODUCT_UP, EXPERT_PRODUCT_DOWN };
/* A product of all local experts: sizes, weights, biases and their gradients, without operands. */
struct kernel_call expert_product_of(const struct layer_context *c, enum expert_product product, enum kernel kernel);
/* Sets the operands of such a call; both may be NULL. */
void expert_operands(struct kernel_call *call, const struct tensor *x, const struct tensor *dy);
/* Launches such a call, with scratch memory for its operands. */
void expert_launch(const struct layer_context *c, struct kernel_call *call);
/* Casts *dy, after adding it to the gradient of the bias. */
void expert_cast_gradient(const struct layer_context *c, enum expert_product product, struct tensor **dy);
struct product shared_up_of(const struct layer_context *c);
struct product shared_down_of(const struct layer_context *c);
struct product router_of(const struct layer_context *c);

#endif
