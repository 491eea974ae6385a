/*
 * layer.h - the functions that the steps of a layer share (private to runtime/layer).
 *
 * Example: the down-projection of a dense layer (layer_forward.c).
 *
 *     struct tensor *y = layer_tensor(c, s->tokens, s->hidden);
 *     product_forward(c, layer_product(c, PARAMETER_DOWN, s->ffn, s->hidden), l->act, y->data, false);        y = act w^T
 *     layer_forget(c, &l->act, RECOMPUTE_MLP_ACT);          frees the input if the backward pass recomputes it
 *
 * layer_step.c passes each step to the file that executes it. Sizes: [T] tokens of a micro-batch, [L] of them on this rank (T /
 * tp with sequence parallelism, else T), h hidden size, q widths of this rank.
 */
#ifndef MSIM_RUNTIME_LAYER_LAYER_H
#define MSIM_RUNTIME_LAYER_LAYER_H

#include "runtime/layer/casts.h"

/* The layer of the current step: its tensors and its weights. */
struct layer_context {
    struct step_context *step;
    struct rank *rank;
    const struct shape *shape;
    struct layer_state *state, *swapped;     /* see layer_states */
    const struct unit_state *unit, *experts; /* experts NULL: dense */
    int layer;                               /* of the model */
    struct layer_kind kind;
    bool parallel; /* mixers and feed-forward part read the same input and are added */
    bool single;   /* one residual: a parallel block, or no feed-forward part */
    bool shared;   /* several branches read the result of the first norm */
};

struct tensor *layer_tensor(const struct layer_context *c, int64_t rows, int64_t cols); /* an activation */
struct tensor *layer_floats(const struct layer_context *c, int64_t n);
void layer_drop(const struct layer_context *c, struct tensor **tensor);
/* Drops a tensor if the backward pass will recompute it, with the whole layer or with this module. */
static inline void layer_forget(const struct layer_context *c, struct tensor **tensor, enum recompute_what module)
{
    if (c->step->forgets & module)
        layer_drop(c, tensor);
}
void layer_launch(const struct layer_context *c, const struct kernel_call *call);
/* The address `elements` elements of the device's precision behind `data`; NULL stays NULL. */
void *layer_row(const struct layer_context *c, void *data, int64_t elements);

/* A linear layer, or some rows of its matrix. */
struct product {
    enum parameter_kind weights, bias;
    bool biased; /* the bias and its gradient belong to this product */
    bool wide;   /* in the device's precision, even if the job's is 8 bits */
    int64_t tokens, in, out;
    int64_t first; /* row */
};
struct product layer_product(const struct layer_context *c, enum parameter_kind weights, int64_t in, int64_t out);
void product_forward(const struct layer_context *c, struct product p, struct tensor *x, void *y, bool accumulate);
void product_input(const struct layer_context *c, struct product p, struct tensor *dy, void *dx, bool accumulate);
void product_weight(const struct layer_context *c, struct product p, struct tensor *dy, struct tensor *x);
/* The same for operands that are not whole tensors. */
void product_forward_of(const struct layer_context *c, struct product p, struct operand x, void *y, bool accumulate);
void product_input_of(const struct layer_context *c, struct product p, struct operand dy, void *dx, bool accumulate);
void product_weight_of(const struct layer_context *c, struct product p, struct operand dy, struct operand x);

/* Gathers the input of column-parallel products: for the forward pass, or `again` for the weights' gradient. If the gathered
 * input is kept, the casts for both are gathered at once. */
void layer_gather_input(const struct layer_context *c, struct tensor *in, struct tensor **out, bool again, const char *what);
/* Call after the last product that reads a gathered input: drops it if it will be gathered or computed again. */
void layer_drop_gathered(const struct layer_context *c, struct tensor **gathered);
/* Call when a branch has read the result of the first norm; after the layer's last branch the tensor is dropped if possible. */
void layer_input_read(const struct layer_context *c, enum layer_mixers by);
/* Makes the gradient of the first norm's result, if no other branch has. Returns true if one has: then add to it. */
bool layer_d_input(const struct layer_context *c);
/* The products of the current step: queries, keys and values or one of them; gate and up or one of them. */
struct product qkv_product(const struct layer_context *c);
struct product up_product(const struct layer_context *c);
/* The result of a product; if the layer is recomputed and this result was kept, the kept one. */
struct tensor *product_made(const struct layer_context *c, enum layer_product which, struct product p, struct tensor *x);
/* Call before a tensor is changed in place: if it is also kept elsewhere, *tensor becomes a copy. */
void layer_own(const struct layer_context *c, struct tensor **tensor);
static inline bool layer_recomputes(const struct layer_context *c)
{
    return c->step->step->recompute;
}
/* The gradient of an input that several matrices read: part_input computes the part of one matrix, parts_sum adds up all parts in
 * the tensor of the first. In a parallel block the last part is added to `others`, the gradient from the other branch. */
void part_input(const struct layer_context *c, struct product p, struct tensor *dy, struct tensor **others);
struct tensor *parts_sum(const struct layer_context *c);
/* The part or the sum, depending on what the current exchange reduces. */
struct tensor **part_reduced(const struct layer_context *c, struct tensor **sum);

void layer_activation(const struct layer_context *c, struct activation_call call, bool backward);
/* y = a + b + bias, [L, h]; bias is a row [h] or NULL. Does nothing if b is NULL. */
void layer_add(const struct layer_context *c, struct tensor *a, struct tensor *b, const void *bias, struct tensor *y);
/* Copies rows of activations; see rows_call. */
void layer_rows(const struct layer_context *c, struct rows_call call);
/* sum += column sums of d [L, h]: the gradient of a bias that is added to a branch. */
void layer_bias_gradient(const struct layer_context *c, enum parameter_kind kind, struct tensor *d);
const void *layer_weights(const struct layer_context *c, enum parameter_kind kind);

/* --- layer_residual.c: x + dropout(branch + bias); `branch_number`: 0 or 1 within the layer */
void residual_forward(const struct layer_context *c, int branch_number, struct tensor *x, struct tensor *branch, const void *bias,
                      struct tensor *y);
/* The gradient of the branch, given that of the sum: a new tensor, or without dropout a reference to `d`. */
struct tensor *residual_backward(const struct layer_context *c, int branch_number, struct tensor *d);

/* --- layer_cast.c: operands in 8 bits; these do nothing if the job's precision has 16 bits, or if the tensor is cast already */
struct cast {
    bool gradient, shared; /* the format is that of gradients; `shared` of narrow_cast */
    const int32_t *count;  /* rows that exist, in device memory; NULL: all */
};
/* A cast of `wide` [rows, cols]. */
struct tensor *layer_cast_of(const struct layer_context *c, const struct tensor *wide, int64_t cols, struct cast cast);
/* *at [rows, cols] becomes its cast. */
void layer_cast(const struct layer_context *c, struct tensor **at, int64_t cols, struct cast cast);
/* Casts *at, the gradient of the result of `p`, after adding it to the gradient of the bias of `p`. */
void layer_cast_gradient(const struct layer_context *c, struct product p, struct tensor **at);
bool cast_layer_step(const struct layer_context *c, const struct step *step);
/* layer_backward.c: the gradients of the results of qkv_product and up_product; layer_take_columns copies the step's part of
 * queries, keys and values to a tensor of its own. */
struct tensor **layer_d_qkv(const struct layer_context *c);
struct tensor **layer_d_up(const struct layer_context *c);
void layer_take_columns(const struct layer_context *c);

/* --- execution of a step: each of these returns false if the step belongs to another file; layer_forward_rest (layer_forward.c)
 * and layer_backward_rest (layer_backward.c) execute the others */
void layer_forward_rest(const struct layer_context *c, const struct step *step);
void layer_backward_rest(const struct layer_context *c, const struct step *step);
bool attention_step(const struct layer_context *c, const struct step *step);
bool heads_ready_step(const struct layer_context *c, const struct step *step);
bool heads_step(const struct layer_context *c, const struct step *step);
/* Call before queries, keys or values are read: packs those that come from separate products, and assembles latent ones. */
void attention_pack(const struct layer_context *c);
/* The addresses of queries, keys and values, or of their gradients. */
struct heads_view {
    void *q, *k, *v;
    int64_t q_row, k_row, v_row; /* elements from one token to the next */
};
/* Elements per token of keys, of values, of both. */
static inline int64_t shape_keys_width(const struct shape *s)
{
    return (int64_t)s->kv_heads * s->head_dim;
}
static inline int64_t shape_values_width(const struct shape *s)
{
    return s->latent.used ? s->context_width : shape_keys_width(s);
}
static inline int64_t shape_kv_width(const struct shape *s)
{
    return shape_keys_width(s) + shape_values_width(s);
}
struct heads_view attention_heads(const struct layer_context *c, bool gradient);
/* The modules whose recomputation recomputes attention's output. If heads are exchanged, recomputing the whole layer also does.
 */
static inline enum recompute_what attention_recomputed(const struct layer_context *c)
{
    bool swaps = layout_cp_heads(c->rank->layout) > 1;
    return (enum recompute_what)((int)RECOMPUTE_CORE_ATTN | (swaps ? (int)RECOMPUTE_FULL : 0));
}
/* Assembles keys and values of all heads from the results of the products, if they are not there yet. */
void latent_pack(const struct layer_context *c);
void latent_rotary(const struct layer_context *c, bool backward);
bool latent_step(const struct layer_context *c, const struct step *step);
bool mixer_step(const struct layer_context *c, const struct step *step);
bool mixture_forward_step(const struct layer_context *c, const struct step *step);
bool mixture_backward_step(const struct layer_context *c, const struct step *step);
bool prediction_step(const struct layer_context *c, const struct step *step);

#endif
