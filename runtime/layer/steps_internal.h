/*
 * steps_internal.h - what the lists of steps of a layer and of a whole pass are made with (private to steps.c and
 * steps_*.c).
 */
#ifndef MSIM_RUNTIME_LAYER_STEPS_INTERNAL_H
#define MSIM_RUNTIME_LAYER_STEPS_INTERNAL_H

#include "runtime/base/steps.h"

struct builder {
    struct step_list *list;
    const struct layout *layout;
    const struct transformer *model;
    const struct job *job;
    struct layer_range range;
    int layer, ahead; /* of the chunk; of a prediction module's embedding and head */
    bool recompute, sequence_parallel, parallel_block, fused;
    bool casts;          /* operands of products to 8 bits */
    bool stops_early;    /* recomputing: ends with what the down-projection reads */
    bool keeps_products; /* recomputation by need, selective: attention and every second product are kept */
    int products;        /* of this layer, so far */
};

enum { GROUP_PRODUCTS_MAX = 4 };

/* A column-parallel product in all passes. */
struct column_product {
    enum step_kind forward, input, weight;
    const char *label;
    bool reads_input; /* of the layer; else what another product of the group gives */
};

/*
 * Column-parallel products of one input, in their order forward. One exchange gathers it and one reduces its gradient, or each
 * product that stands apart has its own. Where there are several in `sum` their gradients are added up in a step of their own.
 */
struct column_group {
    struct column_product items[GROUP_PRODUCTS_MAX];
    int n;
    enum step_kind gather, gather_again, reduce,
        sum; /* gather_again STEP_NOTHING: it was kept; sum STEP_NOTHING: the products add to what is there */
    bool each_exchanges;
};

/* A step behind those there are; the pointer holds until the next one. */
struct step *steps_add(struct builder *b, enum step_kind kind, const char *label);
struct step *steps_add_exchange(struct builder *b, enum step_kind kind, enum collective collective); /* of GROUP_TP */
struct step *steps_add_exchange_over(struct builder *b, enum step_kind kind, enum collective collective, enum group_kind group);
/* Operands of the product that follows, or a gradient, to 8 bits; nothing where the precision is not narrow. */
struct step *steps_cast(struct builder *b, enum step_kind of);
struct step *steps_cast_gradient(struct builder *b, enum step_kind of);
/* Gather a sequence; nothing where it is not sharded. Add up what tensor-parallel ranks have; nothing where there is one. */
void steps_gather(struct builder *b, enum step_kind kind);
void steps_reduce(struct builder *b, enum step_kind kind);
/* Where gradients are not added inside their products: `product`, a weight gradient's, leaves that to the step that follows. */
void steps_leave_sum(const struct builder *b, struct step *product);
void steps_add_sum(struct builder *b);
/* Whether what the layer's next product gives is kept: of the first, the third, ... */
bool steps_next_is_kept(struct builder *b);
/* The products of one input forward; `gathers`: the input is exchanged first. Backward, for the gradients asked for. */
void steps_group_forward(struct builder *b, const struct column_group *group, bool gathers);
void steps_group_backward(struct builder *b, const struct column_group *group, bool exchanges, bool input, bool weight);
/* A mixer with a state, between the products of its input and the one of its output. */
struct column_group steps_mixer_inputs(const struct builder *b);
void steps_mixer(struct builder *b);
void steps_mixer_backward(struct builder *b);
/* Experts, those that every token passes among them; `modules`: those of the set that a mixture has. */
void steps_attention(struct builder *b);
void steps_attention_backward(struct builder *b);
void steps_mixture_forward(struct builder *b);
void steps_mixture_modules(struct builder *b, enum recompute_what modules);
void steps_mixture_backward(struct builder *b, bool input, bool weight);
void steps_layer_forward(struct builder *b);
/* What of a layer the backward pass repeats; steps_layer_backward begins with it. */
void steps_layer_again(struct builder *b);
void steps_layer_backward(struct builder *b, bool input, bool weight);

#endif
