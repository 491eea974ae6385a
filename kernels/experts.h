/*
 * experts.h - the kernel calls of mixtures of experts: routing, sorting copies of tokens, products per expert, combining.
 *
 * Example: two tokens, top_k 2, four experts. Token 0 chooses experts 2 and 0, token 1 experts 2 and 3. Copies 0 to 3 are then
 * for experts 2, 0, 2, 3. Sorted by expert they are copies 1, 0, 2, 3, so place = {1, 0, 2, 3} and counts = {1, 0, 2, 1}.
 *
 * A token goes to its top_k experts. Copy token * top_k + j is the one for its j-th expert. A rank sends its copies in the order
 * of their experts, and within an expert in the order of tokens; place[copy] is the row of a copy. No copy is dropped, so the
 * number of rows for an expert is known on the device only.
 */
#ifndef MSIM_KERNELS_EXPERTS_H
#define MSIM_KERNELS_EXPERTS_H

#include "kernels/narrow.h"

/* The top_k largest logits of a token, largest first (ties: the lower expert first), and the softmax over these top_k (Mixtral,
 * arXiv:2401.04088, section 2.1). With `groups` of experts, only the top_groups groups with the largest logits are candidates
 * (DeepSeek-V2, arXiv:2405.04434, section 2.2.2). Backward: dlogits from dgate; 0 for experts not chosen. */
struct route_call {
    int64_t t;
    int experts, top_k;
    int groups, top_groups; /* 0: no groups */
    const void *logits;     /* [t, experts] forward */
    float *gate;            /* [t, top_k]; backward: read */
    int32_t *expert;        /* [t, top_k]; backward: read */
    const float *dgate;     /* [t, top_k] backward */
    void *dlogits;          /* [t, experts] backward */
};

/* counts[e] = copies for expert e; place[copy] = its row in the order of experts. */
struct expert_sort_call {
    int64_t n; /* copies */
    int experts;
    const int32_t *expert; /* [n] */
    int32_t *counts;       /* [experts] */
    int32_t *place;        /* [n] */
};

/* The rows that arrive at a rank with `experts` experts: from the ranks of its expert-parallel group (ep), through the members of
 * its tensor-parallel group (tp; this rank is member `me`), in the order (member, source, expert).
 *   sent[ep], received[ep]   rows to and from every rank of the expert-parallel group
 *   members[tp]              rows that each member of the tensor-parallel group received
 *   offsets[experts + 1]     of the experts' rows, in expert order; the last is the number of rows
 *   order[rows]              place of an arriving row in expert order: (expert, member, source) */
struct expert_arrivals_call {
    int ep, tp, me, experts;
    const int32_t *counts;  /* [ep, experts] own copies by expert */
    const int32_t *arrived; /* [tp, ep, experts] copies from all sources */
    int32_t *sent, *received, *members, *offsets, *order;
};

/* Adds up the results of a token's copies in the order of j: y[t] = sum gate[t, j] * rows[place[t, j]]. gate NULL: 1.
 * Backward: drows[place[t, j]] = gate[t, j] * dy[t]; dgate[t, j] = dy[t] . rows[place[t, j]]. */
struct combine_call {
    int64_t t, h;
    int top_k;
    const void *rows;     /* [t * top_k, h] */
    const int32_t *place; /* [t, top_k] */
    const float *gate;    /* [t, top_k] */
    void *y;              /* [t, h] forward */
    const void *dy;       /* [t, h] backward */
    void *drows;          /* [t * top_k, h] backward */
    float *dgate;         /* [t, top_k] backward */
};

/* One linear layer per group of rows: rows [offsets[g], offsets[g + 1]) are multiplied by w[g]. For the rest, see linear_call.
 * With `overwrite`, a group without rows has gradients of 0. `most`: capacity of x and y, in rows. */
struct grouped_call {
    int groups;
    int64_t most, in, out;
    const int32_t *offsets; /* [groups + 1] in device memory */
    const void *x;          /* [most, in] */
    const void *w;          /* [groups, out, in] */
    const void *bias;       /* [groups, out]; NULL: none */
    void *y;                /* [most, out] */
    const void *dy;
    void *dx;
    float *dw, *dbias; /* dw NULL: only the gradients of the biases */
    bool overwrite;
    struct narrow_operand x_as, w_as, dy_as;
    void *scratch; /* as linear_call */
};

#endif
