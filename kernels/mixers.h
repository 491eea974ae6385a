/*
 * mixers.h - the kernel calls of mixers with a state (Mamba-2, linear attention, delta rule): the recurrence and its
 * surroundings.
 *
 * Example: one head with N = 1 and P = 1, decay g = 0, scale 1, and three tokens with k = q = 1 and values 1, 2, 3. The state
 * adds up the values, so the results y are 1, 3, 6. With the delta rule the state is replaced by each value: y = 1, 2, 3.
 *
 * All mixers use one recurrence. For each head: a state S[N, P]. For each token t: a key k and a query q [N], a value v [P], a
 * strength w, and a decay g, which is one number per head or one per row of the state.
 *
 *     S_t = diag(exp(g_t)) S_(t-1) + k_t u_t^T,    y_t = scale S_t^T q_t + skip v_t
 *     u_t = w_t v_t                                          (SSD, arXiv:2405.21060; linear attention, arXiv:2501.08313)
 *     u_t = w_t (v_t - (diag(exp(g_t)) S_(t-1))^T k_t)       (`delta`: arXiv:2412.06464, arXiv:2510.26692)
 *
 * Its gradients, with dS that of all later tokens and S' = diag(exp(g_t)) S_(t-1):
 *
 *     dS += scale q dy^T;  dq = scale S dy;  du = dS^T k;  dk = dS u;  dv = w du + skip dy;  dw = du . u / w
 *     delta: dk -= S' (w du);  dS -= k (w du)^T;     dg = row sums of dS * S';     dS_(t-1) = diag(exp(g_t)) dS
 *
 * The backward pass keeps only the state at the beginning of each chunk of tokens. It goes through the chunks from the last to
 * the first and repeats the tokens of each chunk. (A device that computes chunks by products chooses its own chunk length.) No
 * exponent is above 0, so nothing overflows, whatever the decays.
 *
 * Around the recurrence, for each token: `convolution` in front of keys, queries and values; `gates`, which make decays and
 * strengths; `unit`, which normalises keys and queries to length 1; `gated_norm` behind it.
 */
#ifndef MSIM_KERNELS_MIXERS_H
#define MSIM_KERNELS_MIXERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* y[t, c] = silu(bias[c] + sum over k of w[c, k] x[t - taps + 1 + k, c]), within each sequence; taps 0: silu(x). */
struct convolution_call {
    int64_t batch, seq_len, channels;
    int taps;
    int64_t x_row;     /* elements from one token to the next, of x and dx; those of y are packed */
    const void *x;     /* [batch * seq_len, x_row]: the first `channels` of a row */
    const void *w;     /* [channels, taps]; NULL without taps */
    const void *bias;  /* [channels]; NULL: none */
    void *y;           /* [batch * seq_len, channels] forward */
    const void *dy;    /* backward */
    void *dx;          /* backward, as x */
    float *dw, *dbias; /* backward, added to; dbias NULL: none */
};

/* Decays and strengths of tokens: with s = softplus(steps + bias), decay = -exp(rates) s. The strength is s (`by_step`, one
 * number per head), or the sigmoid of `strengths`. */
struct gates_call {
    int64_t t;
    int heads, rows; /* numbers of a head: 1, or the rows of a state */
    bool by_step;
    int64_t steps_row, strengths_row; /* elements from one token to the next, also of their gradients */
    const void *steps;                /* [t, heads, rows] */
    const void *strengths;            /* [t, heads]; NULL by step */
    const void *rates;                /* [heads] */
    const void *bias;                 /* [heads, rows] */
    float *decay;                     /* [t, heads, rows] forward */
    float *strength;                  /* [t, heads] forward */
    const float *ddecay, *dstrength;  /* backward */
    void *dsteps, *dstrengths;        /* backward */
    float *drates, *dbias;            /* backward, added to */
};

/* y = x rsqrt(sum of x^2 + epsilon) for each of the n vectors of a token: vectors of length 1. */
struct unit_call {
    int64_t t, n, width;
    float epsilon;
    int64_t x_row;  /* elements from one token to the next, of x and dx; those of y are packed */
    const void *x;  /* [t, n, width] */
    void *y;        /* [t, n, width] forward */
    const void *dy; /* backward */
    void *dx;       /* backward */
};

/* The recurrence. The heads of a group share keys and queries, whose gradients are sums over these heads. Rows of tokens are
 * `v_row` and `k_row` elements apart, also those of gradients; y is packed. The heads of a row are consecutive. */
struct scan_call {
    int64_t batch, seq_len, chunk;
    int heads, groups, state, head_dim; /* H, G, N, P */
    int rows;                           /* decays of a head: 1 or N */
    bool delta;
    float scale;
    int64_t v_row, k_row;
    int64_t decay_row;         /* from one token to the next; 0: all tokens have the same */
    const void *v;             /* [batch * seq_len, H, P] */
    const void *k, *q;         /* [batch * seq_len, G, N] */
    const float *decay;        /* [batch * seq_len, H, rows], none above 0 */
    const float *strength;     /* [batch * seq_len, H]; NULL: 1 */
    const void *skip;          /* [H]; NULL: 0 */
    void *y;                   /* [batch * seq_len, H, P] forward */
    const void *dy;            /* backward */
    void *dv, *dk, *dq;        /* backward */
    float *ddecay, *dstrength; /* backward, packed; NULL where decays or strengths are constant */
    float *dskip;              /* backward, added to */
    void *workspace;           /* scan_workspace bytes of the device */
};

/*
 * Gate and norm between the recurrence and the output projection. z is silu of the gate or, with `sigmoid`, its sigmoid:
 *   y = norm(x z) gain       with `gate_first` (Mamba-2)
 *   y = norm(x) gain z       without
 * norm(x) = x rsqrt(mean of x^2 + epsilon) over each of n segments of `width` elements; without `gain` there is none.
 */
struct gated_norm_call {
    int64_t t, n, width;
    bool gate_first, sigmoid;
    bool shared; /* one gain [width] for all segments; otherwise [n, width] */
    float epsilon;
    int64_t gate_row; /* elements from one token to the next, also of dgate */
    const void *x, *gate, *gain;
    void *y; /* [t, n, width] forward */
    const void *dy;
    void *dx, *dgate;
    float *dgain; /* added to; NULL without gain */
};

/* Bytes of scan_call.workspace for the reference. */
size_t scan_reference_workspace(const struct scan_call *call, bool backward);

#endif
