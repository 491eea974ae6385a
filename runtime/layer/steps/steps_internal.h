/*
 * steps_internal.h - the functions that build lists of steps (private to steps.c and steps_*.c).
 *
 * Example: the end of a dense layer's forward pass.
 *
 *     steps_cast(b, STEP_DOWN);                    adds a cast if the precision has 8 bits
 *     steps_add(b, STEP_DOWN, "mlp_down");
 *     steps_reduce(b, STEP_REDUCE2);               adds an exchange if tp > 1
 *     steps_add(b, STEP_RESIDUAL2, "residual");
 */
#ifndef MSIM_RUNTIME_LAYER_STEPS_STEPS_INTERNAL_H
#define MSIM_RUNTIME_LAYER_STEPS_STEPS_INTERNAL_H

#include "runtime/base/steps.h"

struct builder {
    struct step_list *list;
    const struct layout *layout;
    const struct transformer *model;
    const struct job *job;
    struct layer_range range;
    int layer, ahead; /* layer within the chunk; step.ahead */
    bool recompute, sequence_parallel, parallel_block, fused;
    bool casts;          /* operands of products have 8 bits */
    bool stops_early;    /* recomputing by need: ends with the input of the down-projection */
    bool keeps_products; /* selective recomputation by need: attention and every second product are kept */
    int products;        /* number of products of this layer so far */
};

enum { GROUP_PRODUCTS_MAX = 4 };

/* A column-parallel product in all passes. */
struct column_product {
    enum step_kind forward, input, weight;
    const char *label;
    bool reads_input; /* reads the layer's input; false: the result of another product of the group */
};

/*
 * Column-parallel products of one input, in the order of the forward pass. One exchange gathers the input and one reduces its
 * gradient; with each_exchanges, one per product. If `sum` is a step, it adds up the products' gradients of the input.
 */
struct column_group {
    struct column_product items[GROUP_PRODUCTS_MAX];
    int n;
    enum step_kind gather, gather_again, reduce,
        sum; /* gather_again STEP_NOTHING: the gathered input is kept; sum STEP_NOTHING: each product adds to the gradient */
    bool each_exchanges;
};

/* Appends a step; the pointer is valid until the next append. */
struct step *steps_add(struct builder *b, enum step_kind kind, const char *label);
struct step *steps_add_exchange(struct builder *b, enum step_kind kind, enum collective collective); /* over GROUP_TP */
struct step *steps_add_exchange_over(struct builder *b, enum step_kind kind, enum collective collective, enum group_kind group);
/* Casts the operands of the next product, or a gradient, to 8 bits. Adds nothing and returns NULL in other precisions. */
struct step *steps_cast(struct builder *b, enum step_kind of);
struct step *steps_cast_gradient(struct builder *b, enum step_kind of);
/* Gathers a sequence, if it is sharded. Sums over tensor-parallel ranks, if there are several. */
void steps_gather(struct builder *b, enum step_kind kind);
void steps_reduce(struct builder *b, enum step_kind kind);
/* If weight gradients are not added inside their products: marks `product`, and adds the step that follows it and adds. */
void steps_leave_sum(const struct builder *b, struct step *product);
void steps_add_sum(struct builder *b);
/* Whether what the layer's next product gives is kept: of the first, the third, ... */
bool steps_next_is_kept(struct builder *b);
/* The products of one input, forward (`gathers`: the input is gathered first) and backward (gradients of input and weights). */
void steps_group_forward(struct builder *b, const struct column_group *group, bool gathers);
void steps_group_backward(struct builder *b, const struct column_group *group, bool exchanges, bool input, bool weight);
/* A mixer with a state, between the products of its input and the one of its output. */
struct column_group steps_mixer_inputs(const struct builder *b);
void steps_mixer(struct builder *b);
void steps_mixer_backward(struct builder *b);
/* The core of attention; a mixture of experts, including shared ones; `modules`: set of modules to recompute. */
void steps_attention(struct builder *b);
void steps_attention_backward(struct builder *b);
void steps_mixture_forward(struct builder *b);
void steps_mixture_modules(struct builder *b, enum recompute_what modules);
void steps_mixture_backward(struct builder *b, bool input, bool weight);
void steps_layer_forward(struct builder *b);
/* The part of a layer that the backward pass recomputes; steps_layer_backward begins with it. */
void steps_layer_again(struct builder *b);
void steps_layer_backward(struct builder *b, bool input, bool weight);

#endif
