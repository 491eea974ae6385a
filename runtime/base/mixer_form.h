/*
 * mixer_form.h - the properties that distinguish mixers with a state, and the sizes of such a mixer on a rank.
 *
 * Example: a Mamba-2 model with 64 heads in 8 groups, on one of tp=4 ranks.
 *
 *     const struct mixer_form *form = mixer_form_of(MIXER_MAMBA2);         one decay per head, strength by the step, skip
 *     struct mixer_shape shape = mixer_shape_of(model, 4);                 shape.heads 16, shape.groups 2
 *
 * All mixers are the same recurrence (kernels/mixers.h) between two products. The first product reads the layer's input through
 * one matrix, whose rows are stripes: values, keys, queries, gate, and numbers per head. Kimi's gate and decays come from two
 * narrow products instead. A tensor-parallel rank has the rows of its groups of heads.
 *
 *     mamba2       mamba_ssm, Mamba2 and its RMSNormGated (norm_before_gate false, one group of heads at a time)
 *     lightning    MiniMax-01's attention (arXiv:2501.08313): the decay of head h of H is exp(-2^(-8 h / H)), h from 1,
 *                  in every layer; the norm is over the heads of a group, and here every head has a group
 *     gated_delta  Qwen3-Next, Qwen3NextGatedDeltaNet
 *     kimi_delta   flash-linear-attention, KimiDeltaAttention
 */
#ifndef MSIM_RUNTIME_BASE_MIXER_FORM_H
#define MSIM_RUNTIME_BASE_MIXER_FORM_H

#include "kernels/mixers.h"
#include "model/layout/layout.h"

enum decay_kind { DECAY_CONSTANT, DECAY_OF_HEAD, DECAY_OF_ROW };
struct mixer_form {
    enum decay_kind decay;
    bool by_step; /* the strength of a write is the step that makes its decay; if not, a separate number or 1 */
    bool delta;   /* a key's value replaces the state's value for this key (delta rule) */
    bool unit;    /* keys and queries are normalised to length 1; the output is divided by the square root of the key's width */
    bool skips;   /* a head's values are added to its output */
    bool conv_bias;
    bool conv_again;                            /* the backward pass repeats the convolution */
    bool gate_first, gate_sigmoid, gain_shared; /* see gated_norm_call */
};
const struct mixer_form *mixer_form_of(enum mixer_kind kind);

/* Row ranges of the matrix that a mixer reads its input through. */
enum mixer_stripe { STRIPE_VALUES, STRIPE_KEYS, STRIPE_QUERIES, STRIPE_GATE, STRIPE_STEPS, STRIPE_STRENGTHS, N_MIXER_STRIPES };
enum { N_CONVOLVED_STRIPES = STRIPE_QUERIES + 1 };

struct mixer_shape {
    const struct mixer_form *form;      /* NULL: the model has none */
    int heads, groups, state, head_dim; /* on this rank: H, G, N, P */
    int taps, rows;                     /* of the convolution; decays of a head: 1 or N */
    int64_t chunk;
    bool norm;
    int64_t stripes[N_MIXER_STRIPES];    /* widths here; 0: not there */
    int64_t values, keys, convolved, in; /* widths here: H P, G N, all three that are convolved, all stripes */
    int64_t rank;                        /* of the narrow products; 0: there are none */
};
/* The sizes on one of `parts` tensor-parallel ranks. */
struct mixer_shape mixer_shape_of(const struct transformer *model, int parts);
/* The first row of a stripe. */
static inline int64_t mixer_stripe_at(const struct mixer_shape *s, enum mixer_stripe stripe)
{
    int64_t at = 0;
    for (int i = 0; i < (int)stripe; i++)
        at += s->stripes[i];
    return at;
}
/* The call for gate and norm of `tokens` tokens; the caller adds tensors and epsilon. */
struct gated_norm_call mixer_gated_norm(const struct mixer_shape *s, int64_t tokens);
/* The logarithm of the constant decay of head `h` of `heads`. */
float mixer_constant_decay(int heads, int h);

#endif
