/*
 * steps.h - the passes of a model chunk as lists of steps, and the steps that each operation of a script executes.
 *
 * Example: the forward pass of a dense layer with tp=2 and sequence parallelism is
 *
 *     norm, gather, qkv, rotary, attention, projection, reduce, residual, norm, gather, up, activation, down, reduce, residual
 *
 * A program of detail "layer" has one operation for this pass of this layer, and binding_build() gives it all fifteen steps. A
 * program of detail "kernel" has one operation for each of them.
 *
 * Binding compares the two descriptions leaf by leaf: the labels of the operation's work (model/cost/work) and the labels of the
 * steps. If they differ, the program is refused before it starts, so the runtime never executes something else than was
 * predicted.
 *
 * A product and the exchange of its input or output (tp_overlap), or attention and the ring of context parallelism, are two
 * consecutive steps in pieces. The number of pieces is the one that the cost model finds best (work_parts_of); see pipelined.c.
 */
#ifndef MSIM_RUNTIME_BASE_STEPS_H
#define MSIM_RUNTIME_BASE_STEPS_H

#include "model/program/program.h"
#include "runtime/base/parameters.h"

enum step_kind {
    STEP_NOTHING, /* part of another step: the pieces of unfused attention */
    STEP_EMBED,
    STEP_EMBED_REDUCE,
    STEP_NORM1,
    STEP_GATHER1,
    STEP_QKV,
    STEP_Q_DOWN, /* latent attention */
    STEP_Q_UP,
    STEP_KV_DOWN,
    STEP_KV_UP,
    STEP_HEAD_NORMS,
    STEP_ROTARY,
    STEP_HEADS_PACK, /* context parallelism that exchanges heads: sorts rows by the rank they go to, */
    STEP_HEADS_SWAP, /* exchanges heads for tokens, or back, */
    STEP_HEADS_PLACE,
    STEP_KV_GATHER, /* keys and values of the other context-parallel ranks */
    STEP_KV_ORDER,  /* puts them into the order of the sequence, where that is a separate step */
    STEP_ATTENTION,
    STEP_PROJECTION,
    STEP_MIXER_IN, /* a mixer with a state */
    STEP_MIXER_DOWN,
    STEP_MIXER_DECAYS_UP,
    STEP_MIXER_GATE_UP,
    STEP_MIXER_CONV,
    STEP_MIXER_GATES,
    STEP_MIXER_SCAN,
    STEP_MIXER_NORM,
    STEP_MIXER_OUT,
    STEP_REDUCE1,
    STEP_RESIDUAL1,
    STEP_NORM2,
    STEP_GATHER2,
    STEP_UP,
    STEP_ACTIVATION,
    STEP_DOWN,
    STEP_REDUCE2,
    STEP_ROUTER, /* a mixture of experts */
    STEP_TOP_K,
    STEP_PERMUTE,
    STEP_DISPATCH,
    STEP_DISPATCH_TP,
    STEP_EXPERT_UP,
    STEP_EXPERT_ACTIVATION,
    STEP_EXPERT_DOWN,
    STEP_COMBINE_TP,
    STEP_COMBINE,
    STEP_UNPERMUTE,
    STEP_MIXTURE_GATHER,
    STEP_SHARED_GATHER,
    STEP_SHARED_UP,
    STEP_SHARED_DOWN,
    STEP_SHARED_REDUCE,
    STEP_RESIDUAL2,
    STEP_CAST,        /* casts an operand to 8 bits, in front of the product `of` that reads it */
    STEP_EXPERT_SORT, /* before that: copies in the order of experts */
    STEP_FINAL_NORM,
    STEP_HEAD_GATHER,
    STEP_LOGITS,
    STEP_LOGITS_GATHER, /* eager stacks: every rank computes the loss over the whole vocabulary */
    STEP_CROSS_ENTROPY,
    STEP_CHUNK_LOGITS, /* fused_linear_loss: logits, loss and both gradients of a piece of tokens */
    STEP_CHUNK_LOSS,
    STEP_CHUNK_INPUT,
    STEP_CHUNK_WEIGHT,
    STEP_CUT_LOSS,         /* cut_loss: the loss of all pieces; logits are not kept */
    STEP_PREDICTION_NORMS, /* before the layer of a prediction module */
    STEP_PREDICTION_GATHER,
    STEP_PREDICTION_PROJECTION,
    STEP_PREDICTION_COLUMNS,
    /* backward: _INPUT and _WEIGHT are the gradients of a product's input and weights */
    STEP_CROSS_ENTROPY_BACKWARD,
    STEP_LOSS_SCALE, /* fused_linear_loss: passes on the gradients of the forward pass */
    STEP_CUT_AGAIN,  /* cut_loss: logits again, and the gradients of each piece; */
    STEP_CUT_DONE,   /* the products of the work that the step before has already computed */
    STEP_LOGITS_INPUT,
    STEP_LOGITS_WEIGHT,
    STEP_HEAD_REDUCE_BACKWARD,
    STEP_FINAL_NORM_BACKWARD,
    STEP_PREDICTION_GATHER_GRADIENT,
    STEP_PREDICTION_INPUT,
    STEP_PREDICTION_GATHER_AGAIN,
    STEP_PREDICTION_WEIGHT,
    STEP_PREDICTION_REDUCE,
    STEP_PREDICTION_NORMS_BACKWARD,
    STEP_RESIDUAL2_BACKWARD,
    STEP_GATHER_DOWN_GRADIENT,
    STEP_DOWN_INPUT,
    STEP_DOWN_WEIGHT,
    STEP_ACTIVATION_BACKWARD,
    STEP_UP_INPUT,
    STEP_GATHER2_AGAIN,
    STEP_REDUCE_UP_GRADIENT,
    STEP_UP_WEIGHT,
    STEP_CAST_GRADIENT,
    STEP_EXPERT_SORT_GRADIENT,
    STEP_UNPERMUTE_BACKWARD,
    STEP_COMBINE_GRADIENT,
    STEP_COMBINE_TP_GRADIENT,
    STEP_EXPERT_DOWN_INPUT,
    STEP_EXPERT_ACTIVATION_BACKWARD,
    STEP_EXPERT_UP_INPUT,
    STEP_SHARED_GATHER_GRADIENT,
    STEP_SHARED_DOWN_INPUT,
    STEP_SHARED_UP_INPUT,
    STEP_SHARED_GATHER_AGAIN,
    STEP_SHARED_REDUCE_GRADIENT,
    STEP_DISPATCH_TP_GRADIENT,
    STEP_DISPATCH_GRADIENT,
    STEP_PERMUTE_BACKWARD,
    STEP_ROUTER_BACKWARD,
    STEP_MIXTURE_GATHER_GRADIENT,
    STEP_EXPERT_DOWN_WEIGHT,
    STEP_EXPERT_UP_WEIGHT,
    STEP_SHARED_DOWN_WEIGHT,
    STEP_SHARED_UP_WEIGHT,
    STEP_NORM2_BACKWARD,
    STEP_RESIDUAL1_BACKWARD,
    STEP_GATHER_PROJECTION_GRADIENT,
    STEP_MIXER_OUT_INPUT,
    STEP_MIXER_OUT_WEIGHT,
    STEP_MIXER_NORM_BACKWARD,
    STEP_MIXER_CONV_AGAIN,
    STEP_MIXER_SCAN_BACKWARD,
    STEP_MIXER_GATES_BACKWARD,
    STEP_MIXER_CONV_BACKWARD,
    STEP_MIXER_GATE_UP_INPUT,
    STEP_MIXER_GATE_UP_WEIGHT,
    STEP_MIXER_DECAYS_UP_INPUT,
    STEP_MIXER_DECAYS_UP_WEIGHT,
    STEP_MIXER_DOWN_INPUT,
    STEP_MIXER_DOWN_WEIGHT,
    STEP_MIXER_IN_INPUT,
    STEP_MIXER_IN_WEIGHT,
    STEP_PROJECTION_INPUT,
    STEP_PROJECTION_WEIGHT,
    STEP_HEADS_PACK_GRADIENT,
    STEP_HEADS_SWAP_GRADIENT,
    STEP_HEADS_PLACE_GRADIENT,
    STEP_KV_GATHER_AGAIN,
    STEP_KV_ORDER_AGAIN,
    STEP_KV_ORDER_GRADIENT,
    STEP_KV_REDUCE,
    STEP_ATTENTION_BACKWARD,
    STEP_ROTARY_BACKWARD,
    STEP_HEAD_NORMS_BACKWARD,
    STEP_KV_UP_INPUT,
    STEP_KV_UP_WEIGHT,
    STEP_KV_DOWN_INPUT,
    STEP_KV_DOWN_WEIGHT,
    STEP_Q_UP_INPUT,
    STEP_Q_UP_WEIGHT,
    STEP_Q_DOWN_INPUT,
    STEP_Q_DOWN_WEIGHT,
    STEP_QKV_INPUT,
    STEP_GATHER1_AGAIN,
    STEP_REDUCE_QKV_GRADIENT,
    STEP_QKV_WEIGHT,
    STEP_NORM1_BACKWARD,
    STEP_EMBED_GATHER_BACKWARD,
    STEP_EMBED_BACKWARD,
    STEP_QKV_SUM, /* the input's gradients of separate matrices, added up */
    STEP_UP_SUM,
    STEP_GRADIENT_SUM, /* adds the weight gradient of the product before to the sum of earlier micro-batches */
    N_STEP_KINDS
};

struct step {
    enum step_kind kind;
    enum step_kind of;  /* of a cast */
    int layer;          /* within the chunk, prediction modules behind its layers; -1: embedding or head */
    int ahead;          /* embedding or head: number of the prediction module, from 1; 0: the model's own */
    bool recompute;     /* forward work in the backward pass */
    bool first, last;   /* first or last step of its layer (or of the embedding, the head) in this pass */
    bool repeated;      /* the backward pass repeats this layer's forward pass */
    bool continues;     /* repeated: its input is the output of the repeated layer before it, so no input is kept */
    bool hands_on;      /* repeated: passes its output to the repeated layer behind it */
    bool anew;          /* uses weights that were gathered a second time */
    int part, parts;    /* this is part `part` of `parts`: matrices that read one input, or pieces of tokens */
    bool input, weight; /* a loss that makes gradients of its product: which of the two */
    bool sums;          /* weight gradient: a separate step adds it up */
    bool alone;         /* exchange of an input's gradient: of one part, not of the sum of all parts */
    bool context;       /* exchange of heads: attention's output, not queries, keys and values */
    bool kept;          /* forward: the result is kept for the backward pass, which recomputes the rest; recomputing: the kept
                         * result is used. This costs no work, so no operation contains it */
    int pieces;         /* number of pieces of a product and of its exchange; 1: whole */
    bool leads;         /* the first of two steps in pieces; the second waits for its pieces one by one */
    const char *label;  /* of its work */
    bool exchange;      /* an exchange: compared by collective and group instead of the label */
    uint8_t collective, group;
};

struct step_list {
    struct step *items;
    size_t n_items, capacity;
};
/* Whether a step has no work in the program: it belongs to the operation of the step that follows. */
static inline bool step_is_silent(const struct step *step)
{
    return step->kept && step->recompute && !step->exchange;
}
/* The steps of a pass over a whole virtual stage. */
void step_list_build(const struct layout *layout, const struct setting *setting, enum pass pass, struct layer_range range,
                     bool embedding, bool head, struct step_list *list);

/* The steps of an operation: [first, first + n) of its pass. In a pipelined pair (a computation and, as the next operation, its
 * exchange), the operation that reads the other's result runs after it. */
enum pairing { PAIRING_NONE, PAIRING_AFTER_NEXT, PAIRING_AFTER_PREVIOUS };
struct bound_op {
    uint32_t first, n;
    enum pairing pairing;
    int pieces; /* of a pair's two operations; 0: no pair */
};

struct binding {
    int vpp;
    int slices;              /* largest number of pieces of an exchange of the tensor-parallel group, at least 1 */
    struct step_list *lists; /* [vpp][N_PASSES] */
    struct bound_op *ops;    /* [n_ops of the script] */
};

/* STATUS_MISSING with a message for jobs, and for legal layouts, that the runtime cannot execute (supported.c). */
MUST_CHECK enum status runtime_supports(const struct setting *setting, struct diags *diags);
MUST_CHECK enum status runtime_supports_layout(const struct layout *layout, const struct setting *setting, struct diags *diags);

/* Finds the steps of each operation of a script. STATUS_MISSING if the layout is not supported or the two descriptions differ. */
MUST_CHECK enum status binding_build(const struct program *program, int script, const struct setting *setting,
                                     struct binding *binding, struct diags *diags);
void binding_free(struct binding *binding);
static inline const struct step_list *binding_list(const struct binding *binding, int chunk, int pass)
{
    return &binding->lists[chunk * N_PASSES + pass];
}

#endif
