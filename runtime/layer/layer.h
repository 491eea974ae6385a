/*
 * layer.h - what the steps of a layer share (private to the runtime).
 *
 * [T] tokens of a micro-batch, [L] of them on this rank (T / tp with sequence parallelism), h hidden, q widths of this rank.
 */
#ifndef MSIM_RUNTIME_LAYER_LAYER_H
#define MSIM_RUNTIME_LAYER_LAYER_H

#include "runtime/layer/casts.h"

/* A layer under way: its state and its weights. */
struct layer_context {
    struct step_context *step;
    struct rank *rank;
    const struct shape *shape;
    struct layer_state *state, *swapped;     /* see layer_states */
    const struct unit_state *unit, *experts; /* experts NULL: dense */
    int layer;                               /* of the model */
    struct layer_kind kind;
    bool parallel; /* mixers and feed-forward side by side */
    bool single;   /* one residual: they are, or there is no feed-forward part */
    bool shared;   /* several branches read what the first norm gives */
};

struct tensor *layer_tensor(const struct layer_context *c, int64_t rows, int64_t cols); /* an activation */
struct tensor *layer_floats(const struct layer_context *c, int64_t n);
void layer_drop(const struct layer_context *c, struct tensor **tensor);
/* When the backward pass will compute it again, with the whole layer or with this module. */
static inline void layer_forget(const struct layer_context *c, struct tensor **tensor, enum recompute_what module)
{
    if (c->step->forgets & module)
        layer_drop(c, tensor);
}
void layer_launch(const struct layer_context *c, const struct kernel_call *call);
/* `rows` rows into a tensor whose rows are `cols` wide. */
void *layer_row(const struct layer_context *c, void *data, int64_t elements);

/* A linear layer, or some rows of its matrix. */
struct product {
    enum parameter_kind weights, bias;
    bool biased; /* the bias and its gradient belong to this product */
    bool wide;   /* in the device's precision, whatever the job's */
    int64_t tokens, in, out;
    int64_t first; /* row */
};
struct product layer_product(const struct layer_context *c, enum parameter_kind weights, int64_t in, int64_t out);
void product_forward(const struct layer_context *c, struct product p, struct tensor *x, void *y, bool accumulate);
void product_input(const struct layer_context *c, struct product p, struct tensor *dy, void *dx, bool accumulate);
void product_weight(const struct layer_context *c, struct product p, struct tensor *dy, struct tensor *x);
/* The same of operands that are not whole tensors. */
void product_forward_of(const struct layer_context *c, struct product p, struct operand x, void *y, bool accumulate);
void product_input_of(const struct layer_context *c, struct product p, struct operand dy, void *dx, bool accumulate);
void product_weight_of(const struct layer_context *c, struct product p, struct operand dy, struct operand x);

/* After the last product that reads the layer's gathered input: it goes where it will be gathered, or computed, again. */
/* The input of column-parallel products for the forward pass, or `again` for the weights' gradient. What stays from one to the
 * other serves both. */
void layer_gather_input(const struct layer_context *c, struct tensor *in, struct tensor **out, bool again, const char *what);
void layer_drop_gathered(const struct layer_context *c, struct tensor **gathered);
/* The branch has read it; behind the last one of the layer it goes. */
void layer_input_read(const struct layer_context *c, enum layer_mixers by);
/* The gradient of what the first norm gives is there: made here, or (true) by another branch, to whose this one's is added. */
bool layer_d_input(const struct layer_context *c);
/* Of the step under way: queries, keys and values or one of them; gate and up or one of them. */
struct product qkv_product(const struct layer_context *c);
struct product up_product(const struct layer_context *c);
/* What a product gives, or what was kept of it where the layer is recomputed without it. */
struct tensor *product_made(const struct layer_context *c, enum layer_product which, struct product p, struct tensor *x);
/* Before a tensor is changed in place: where it is kept too, *tensor becomes a copy. */
void layer_own(const struct layer_context *c, struct tensor **tensor);
static inline bool layer_recomputes(const struct layer_context *c)
{
    return c->step->step->recompute;
}
/* The gradient of an input that several matrices read: each one's part, and their sum, which is the first one's tensor. In a
 * parallel block the last one's is added to `others`, what the other branch gave. */
void part_input(const struct layer_context *c, struct product p, struct tensor *dy, struct tensor **others);
struct tensor *parts_sum(const struct layer_context *c);
/* Part or sum, whichever the exchange under way is of. */
struct tensor **part_reduced(const struct layer_context *c, struct tensor **sum);

void layer_activation(const struct layer_context *c, struct activation_call call, bool backward);
/* y = a + b, with a row `bias` (NULL: none) beside; [L, h]. Nothing where there is no b. */
void layer_add(const struct layer_context *c, struct tensor *a, struct tensor *b, const void *bias, struct tensor *y);
/* Rows of activations from one place to another; see rows_call. */
void layer_rows(const struct layer_context *c, struct rows_call call);
/* sum += column sums of d [L, h]: the gradient of a bias that is added to a branch. */
void layer_bias_gradient(const struct layer_context *c, enum parameter_kind kind, struct tensor *d);
const void *layer_weights(const struct layer_context *c, enum parameter_kind kind);

/* --- layer_residual.c: x + dropout(branch + bias), where `branch_number` tells a layer's two apart */
void residual_forward(const struct layer_context *c, int branch_number, struct tensor *x, struct tensor *branch, const void *bias,
                      struct tensor *y);
/* The gradient of the branch from that of the sum: another tensor, or the same shared. */
struct tensor *residual_backward(const struct layer_context *c, int branch_number, struct tensor *d);

/* --- layer_cast.c: operands in 8 bits; nothing where the job's precision is not narrow, or where they are already */
struct cast {
    bool gradient, shared; /* its format; see narrow_cast */
    const int32_t *count;
};
/* A cast of `wide` [rows, cols]. */
struct tensor *layer_cast_of(const struct layer_context *c, const struct tensor *wide, int64_t cols, struct cast cast);
/* *at [rows, cols] becomes its cast. */
void layer_cast(const struct layer_context *c, struct tensor **at, int64_t cols, struct cast cast);
/* Of the gradient of what `p` gives; its bias's gradient comes with that. */
void layer_cast_gradient(const struct layer_context *c, struct product p, struct tensor **at);
bool cast_layer_step(const struct layer_context *c, const struct step *step);
/* layer_backward.c: the gradients of the step's part of what queries, keys and values, and of what gate and up come from. */
struct tensor **layer_d_qkv(const struct layer_context *c);
struct tensor **layer_d_up(const struct layer_context *c);
void layer_take_columns(const struct layer_context *c);

/* --- who does a step: layer_attention.c, layer_qkv.c, layer_heads.c, layer_latent.c, layer_mixer.c, layer_mixture.c,
 * layer_mixture_backward.c and prediction.c say whether it is theirs; the rest is layer_forward.c's and layer_backward.c's */
void layer_forward_rest(const struct layer_context *c, const struct step *step);
void layer_backward_rest(const struct layer_context *c, const struct step *step);
bool attention_step(const struct layer_context *c, const struct step *step);
bool heads_ready_step(const struct layer_context *c, const struct step *step);
bool heads_step(const struct layer_context *c, const struct step *step);
/* Queries, keys and values that come from products of their own are packed, latent ones put together, before anything reads them.
 */
void attention_pack(const struct layer_context *c);
/* Where they are, or their gradients. */
struct heads_view {
    void *q, *k, *v;
    int64_t q_row, k_row, v_row; /* elements from one token to the next */
};
/* Keys of a token; its values; both. */
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
/* What makes what attention gives come again: with heads exchanged, all but what leaves a layer's attention alone. */
static inline enum recompute_what attention_recomputed(const struct layer_context *c)
{
    bool swaps = layout_cp_heads(c->rank->layout) > 1;
    return (enum recompute_what)((int)RECOMPUTE_CORE_ATTN | (swaps ? (int)RECOMPUTE_FULL : 0));
}
/* Keys and values of all heads from what the products gave, where they are not there yet. */
void latent_pack(const struct layer_context *c);
void latent_rotary(const struct layer_context *c, bool backward);
bool latent_step(const struct layer_context *c, const struct step *step);
bool mixer_step(const struct layer_context *c, const struct step *step);
bool mixture_forward_step(const struct layer_context *c, const struct step *step);
bool mixture_backward_step(const struct layer_context *c, const struct step *step);
bool prediction_step(const struct layer_context *c, const struct step *step);

#endif
