/*
 * mixer_form.h - what tells one mixer with a state from another, and its sizes on a rank.
 *
 * All are one recurrence (kernels/mixers.h) between two products. A mixer reads the layer's input through one matrix whose rows
 * are, one below the other, those of values, keys, queries, the gate, and numbers of a head; Kimi's gate and decays come by way
 * of two narrow products instead. A tensor-parallel rank has the rows of its groups of heads.
 *
 *     mamba2       mamba_ssm, Mamba2 and its RMSNormGated (norm_before_gate false, a group of heads at a time)
 *     lightning    MiniMax-01's attention (arXiv:2501.08313): decays exp(-2^(-8 h / H)) of head h from 1,
 *                  the same in every layer; its norm is over the heads of a group here, of which it has one for each head
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
    bool by_step; /* what is written is as strong as the step that makes its decay; otherwise by a number of its own, or 1 */
    bool delta;   /* a key's value replaces what the state had for it */
    bool unit;    /* keys and queries have length 1, and what is read is divided by the square root of it */
    bool skips;   /* a head's values are added to what is read */
    bool conv_bias;
    bool conv_again;                            /* the backward pass repeats the convolution */
    bool gate_first, gate_sigmoid, gain_shared; /* see gated_norm_call */
};
const struct mixer_form *mixer_form_of(enum mixer_kind kind);

/* Row stretches of the matrix that a mixer reads its input through. */
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
/* Divided among `parts`. */
struct mixer_shape mixer_shape_of(const struct transformer *model, int parts);
/* Where a stripe begins. */
static inline int64_t mixer_stripe_at(const struct mixer_shape *s, enum mixer_stripe stripe)
{
    int64_t at = 0;
    for (int i = 0; i < (int)stripe; i++)
        at += s->stripes[i];
    return at;
}
/* Gate and norm of that many tokens, without tensors and epsilon. */
struct gated_norm_call mixer_gated_norm(const struct mixer_shape *s, int64_t tokens);
/* The constant decay of head `h` of `heads`, as a logarithm. */
float mixer_constant_decay(int heads, int h);

#endif
