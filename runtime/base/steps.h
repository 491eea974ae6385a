/*
 * steps.h - what a pass of a model chunk does, step by step, and which steps each operation of a script stands for.
 *
 * The program says which pass of which chunk and micro-batch runs when, as one operation per pass, layer or kernel. The runtime
 * knows the transformer as a list of steps per pass: norm, gather, product, ... Binding lays the one over the other: leaf by leaf
 * of the operation's work, label by label, so a program that asks for something else than the runtime would do is refused before
 * it starts.
 *
 * A product and the exchange of its input or output (tp_overlap), or attention and the ring of context parallelism, are two steps
 * one behind the other, done in as many pieces as the cost model takes for the best (work_parts_of); see pipelined.c.
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
    STEP_HEADS_PACK, /* context parallelism that exchanges heads: what goes to a rank stands together; */
    STEP_HEADS_SWAP, /* heads for tokens, or back; */
    STEP_HEADS_PLACE,
    STEP_KV_GATHER, /* keys and values of the other context-parallel ranks */
    STEP_KV_ORDER,  /* where that is a step of its own: into the order of the sequence */
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
    STEP_CAST,        /* an operand to 8 bits, in front of the product `of` which it is read by */
    STEP_EXPERT_SORT, /* in front of that, in such a precision: copies in the order of experts */
    STEP_FINAL_NORM,
    STEP_HEAD_GATHER,
    STEP_LOGITS,
    STEP_LOGITS_GATHER, /* eager stacks: every rank takes the loss of the whole vocabulary */
    STEP_CROSS_ENTROPY,
    STEP_CHUNK_LOGITS, /* fused_linear_loss: of a piece of tokens logits, loss, and both gradients */
    STEP_CHUNK_LOSS,
    STEP_CHUNK_INPUT,
    STEP_CHUNK_WEIGHT,
    STEP_CUT_LOSS,         /* cut_loss: of all pieces; no logits stay */
    STEP_PREDICTION_NORMS, /* before the layer of a prediction module */
    STEP_PREDICTION_GATHER,
    STEP_PREDICTION_PROJECTION,
    STEP_PREDICTION_COLUMNS,
    /* backward: _INPUT and _WEIGHT are the gradients of a product's input and weights */
    STEP_CROSS_ENTROPY_BACKWARD,
    STEP_LOSS_SCALE, /* fused_linear_loss: what the forward pass made is handed on */
    STEP_CUT_AGAIN,  /* cut_loss: logits once more, and of each piece the gradients that the pass asks for; */
    STEP_CUT_DONE,   /* which stand for products of their own */
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
    STEP_QKV_SUM, /* of what matrices that stand apart give for their input's gradient */
    STEP_UP_SUM,
    STEP_GRADIENT_SUM, /* the weights' gradient of the product before is added to what there is */
    N_STEP_KINDS
};

struct step {
    enum step_kind kind;
    enum step_kind of;  /* of a cast */
    int layer;          /* within the chunk, prediction modules behind its layers; -1: embedding or head */
    int ahead;          /* of an embedding or a head: the number of the prediction module, from 1; 0: the model's own */
    bool recompute;     /* forward work of the backward pass */
    bool first, last;   /* of its layer (or of the embedding, the head) in this pass */
    bool repeated;      /* of a layer that the backward pass repeats */
    bool continues;     /* from what the layer before it gives then: of its input nothing is kept */
    bool hands_on;      /* and gives the layer behind it that */
    bool anew;          /* with weights that were gathered a second time */
    int part, parts;    /* of matrices that read one input, of pieces of tokens: which one of how many */
    bool input, weight; /* of a loss that makes gradients of its product: which ones */
    bool sums;          /* of a product for weights: its gradient is added up by a step of its own */
    bool alone;         /* of their exchanges: of this one's part, not of what all of them give */
    bool context;       /* of heads exchanged: what attention gives, not queries, keys and values */
    bool kept;          /* what the product (or the branch) gives is kept for the backward pass, which recomputes the rest;
                         * recomputing: is taken from there. No work stands for that, so no operation asks for it */
    int pieces;         /* of a product and of its exchange: both are cut into this number; 1: whole */
    bool leads;         /* the first of two steps in pieces, whose pieces the other one waits for one by one */
    const char *label;  /* of the work it belongs to */
    bool exchange;      /* then the label is not looked at, but what is exchanged */
    uint8_t collective, group;
};

struct step_list {
    struct step *items;
    size_t n_items, capacity;
};
/* Whether a step stands for no work of the program: it is done with the step that follows. */
static inline bool step_is_silent(const struct step *step)
{
    return step->kept && step->recompute && !step->exchange;
}
/* The steps of a pass over a whole virtual stage. */
void step_list_build(const struct layout *layout, const struct setting *setting, enum pass pass, struct layer_range range,
                     bool embedding, bool head, struct step_list *list);

/* What an operation of a script does: steps [first, first + n) of the pass it belongs to. Of a pipelined pair (a computation and,
 * as the next operation, its exchange) the one that reads what the other makes comes after it. */
enum pairing { PAIRING_NONE, PAIRING_AFTER_NEXT, PAIRING_AFTER_PREVIOUS };
struct bound_op {
    uint32_t first, n;
    enum pairing pairing;
    int pieces; /* of a pair's two operations; otherwise 0 */
};

struct binding {
    int vpp;
    int slices;              /* most pieces of any exchange of the tensor-parallel group, at least 1 */
    struct step_list *lists; /* [vpp][N_PASSES] */
    struct bound_op *ops;    /* [n_ops of the script] */
};

/* What the runtime cannot execute is refused with STATUS_MISSING and a sentence: jobs, and layouts of them that are else legal
 * (supported.c). */
MUST_CHECK enum status runtime_supports(const struct setting *setting, struct diags *diags);
MUST_CHECK enum status runtime_supports_layout(const struct layout *layout, const struct setting *setting, struct diags *diags);

/* The steps of each operation of a script; STATUS_MISSING where the layout is not supported or an operation has none. */
MUST_CHECK enum status binding_build(const struct program *program, int script, const struct setting *setting,
                                     struct binding *binding, struct diags *diags);
void binding_free(struct binding *binding);
static inline const struct step_list *binding_list(const struct binding *binding, int chunk, int pass)
{
    return &binding->lists[chunk * N_PASSES + pass];
}

#endif
