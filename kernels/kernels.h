/*
 * kernels.h - the operations that training a transformer is made of: one struct each, run by the C reference or by CUDA.
 *
 * A call is a value: sizes, numbers, and pointers to buffers that belong to the caller. Two functions take it:
 *
 *     kernel_reference_run   plain C on host memory, fp32; the definition of what the operation computes (this header)
 *     kernel_cuda_launch     one or more CUDA kernels on a stream, bf16 with fp32 accumulation (kernels/cuda_launch.h)
 *
 * so a check fills one struct twice and compares, and a device backend is one line. Matrices are row-major without gaps.
 *
 * Types. `void` operands (activations, compute weights) hold elements of the device's precision: fp32 in the reference, bf16 on a
 * GPU. `float` operands (master weights, weight gradients, statistics, losses, optimizer states) are fp32 everywhere. Gradients
 * of weights are added to what is there; all else is overwritten unless the field says otherwise.
 *
 * Same bits. Every kernel adds in an order that depends on nothing but the sizes, so two runs give the same bits (matrix
 * products: as far as BLAS and cuBLASLt promise it).
 *
 * Symbols: t tokens of this rank, h hidden, f feed-forward width of this rank, in/out of a linear layer on this rank.
 */
#ifndef MSIM_KERNELS_KERNELS_H
#define MSIM_KERNELS_KERNELS_H

#include "kernels/experts.h"
#include "kernels/mixers.h"
#include "kernels/narrow.h"
#include "model/base/hash.h"

/* Every operation, one row each: its KERNEL_ name, the stem of the functions that do it (norm_forward_reference,
 * norm_forward_cuda), which is also what it is called, and its member of kernel_call, whose struct is named like it
 * (linear_call). A PRODUCT is a matrix product: one definition, but several ways to do it on a GPU, by the operands' types. */
#define KERNELS(X, PRODUCT)                                                                                                      \
    X(NORM_FORWARD, norm_forward, norm_forward)                                                                                  \
    X(NORM_BACKWARD, norm_backward, norm_backward)                                                                               \
    PRODUCT(LINEAR_FORWARD, linear_forward, linear)                                                                              \
    PRODUCT(LINEAR_BACKWARD_INPUT, linear_backward_input, linear)                                                                \
    PRODUCT(LINEAR_BACKWARD_WEIGHT, linear_backward_weight, linear)                                                              \
    X(ROTARY, rotary, rotary)                                                                                                    \
    X(ATTENTION_FORWARD, attention_forward, attention)                                                                           \
    X(ATTENTION_BACKWARD, attention_backward, attention)                                                                         \
    X(ACTIVATION_FORWARD, activation_forward, activation)                                                                        \
    X(ACTIVATION_BACKWARD, activation_backward, activation)                                                                      \
    X(ADD, add, add)                                                                                                             \
    X(DROPOUT_FORWARD, dropout_forward, dropout)                                                                                 \
    X(DROPOUT_BACKWARD, dropout_backward, dropout)                                                                               \
    X(COLUMN_SUM, column_sum, column_sum)                                                                                        \
    X(LARGEST, largest, largest)                                                                                                 \
    X(QUANTISE, quantise, quantise)                                                                                              \
    X(QUANTISE_BLOCKS, quantise_blocks, quantise_blocks)                                                                         \
    X(EMBEDDING_FORWARD, embedding_forward, embedding)                                                                           \
    X(EMBEDDING_BACKWARD, embedding_backward, embedding)                                                                         \
    X(LOGITS_MAX, logits_max, logits)                                                                                            \
    X(LOGITS_SUM, logits_sum, logits)                                                                                            \
    X(LOGITS_LOSS, logits_loss, logits)                                                                                          \
    X(LOGITS_BACKWARD, logits_backward, logits)                                                                                  \
    X(SQUARE_SUM, square_sum, square_sum)                                                                                        \
    X(ADAM, adam, adam)                                                                                                          \
    X(LAMB, lamb, lamb)                                                                                                          \
    X(ZERO, zero, zero)                                                                                                          \
    X(COPY, copy, copy)                                                                                                          \
    X(CAST, cast, cast)                                                                                                          \
    X(ROWS, rows, rows)                                                                                                          \
    X(ROUTE_FORWARD, route_forward, route)                                                                                       \
    X(ROUTE_BACKWARD, route_backward, route)                                                                                     \
    X(EXPERT_SORT, expert_sort, expert_sort)                                                                                     \
    X(EXPERT_ARRIVALS, expert_arrivals, expert_arrivals)                                                                         \
    X(COMBINE_FORWARD, combine_forward, combine)                                                                                 \
    X(COMBINE_BACKWARD, combine_backward, combine)                                                                               \
    PRODUCT(GROUPED_FORWARD, grouped_forward, grouped)                                                                           \
    PRODUCT(GROUPED_BACKWARD_INPUT, grouped_backward_input, grouped)                                                             \
    PRODUCT(GROUPED_BACKWARD_WEIGHT, grouped_backward_weight, grouped)                                                           \
    X(QUERY_RANGE_FORWARD, query_range_forward, query_range)                                                                     \
    X(QUERY_RANGE_BACKWARD, query_range_backward, query_range)                                                                   \
    X(HEAD_NORM_FORWARD, head_norm_forward, head_norm)                                                                           \
    X(HEAD_NORM_BACKWARD, head_norm_backward, head_norm)                                                                         \
    X(LAMB_UPDATE, lamb_update, lamb_part)                                                                                       \
    X(LAMB_APPLY, lamb_apply, lamb_part)                                                                                         \
    X(SGD, sgd, sgd)                                                                                                             \
    X(MUON_UPDATE, muon_update, muon)                                                                                            \
    X(MUON_COMBINE, muon_combine, muon)                                                                                          \
    X(MUON_APPLY, muon_apply, muon)                                                                                              \
    X(CONVOLUTION_FORWARD, convolution_forward, convolution)                                                                     \
    X(CONVOLUTION_BACKWARD, convolution_backward, convolution)                                                                   \
    X(GATES_FORWARD, gates_forward, gates)                                                                                       \
    X(GATES_BACKWARD, gates_backward, gates)                                                                                     \
    X(UNIT_FORWARD, unit_forward, unit)                                                                                          \
    X(UNIT_BACKWARD, unit_backward, unit)                                                                                        \
    X(SCAN_FORWARD, scan_forward, scan)                                                                                          \
    X(SCAN_BACKWARD, scan_backward, scan)                                                                                        \
    X(GATED_NORM_FORWARD, gated_norm_forward, gated_norm)                                                                        \
    X(GATED_NORM_BACKWARD, gated_norm_backward, gated_norm)
#define KERNEL_SKIPPED(ID, stem, of) /* instead of X or PRODUCT: without these rows */

enum kernel {
#define X(ID, stem, of) KERNEL_##ID,
    KERNELS(X, X)
#undef X
        N_KERNELS
};
const char *kernel_name(enum kernel kernel); /* "norm_forward", ...; static text */

/* y = norm(x) * gain + bias over rows of h. Layer norm: (x - mean) * rstd; RMS norm (`rms`): x * rstd, no mean and no bias. */
struct norm_forward_call {
    int64_t t, h;
    bool rms;
    float epsilon;
    const void *x;           /* [t, h] */
    const void *gain, *bias; /* [h]; bias NULL: none */
    void *y;                 /* [t, h] */
    float *mean, *rstd;      /* [t], kept for the backward pass; mean may be NULL for RMS norm */
};

/* dx = gradient of the norm's input, + `add` where that is not NULL (the gradient that went around the branch; may be dx). */
struct norm_backward_call {
    int64_t t, h;
    bool rms;
    const void *dy, *x;       /* [t, h] */
    const void *gain;         /* [h] */
    const float *mean, *rstd; /* [t] */
    const void *add;          /* [t, h] or NULL */
    void *dx;                 /* [t, h]; may be dy */
    float *dgain, *dbias;     /* [h], added to; dbias NULL: none */
};

/* A linear layer. Weights are [out, in].
 *   forward          y[t, out] = x[t, in] w^T + bias[out], added to y when `accumulate`
 *   backward input   dx[t, in] = dy[t, out] w, added to dx when `accumulate`
 *   backward weight  dw[out, in] += dy^T x (`overwrite`: = dy^T x), dbias[out] += column sums of dy
 * Operands of 8 bits: both of a product are; products are of what the bytes mean and are summed in fp32. Blocks of scales lie
 * along what is summed over. `scratch` then has what linear_narrow_scratch or linear_reference_scratch asks for, and a
 * bias's gradient is summed elsewhere. */
struct linear_call {
    int64_t t, in, out;
    const void *x;    /* forward, backward weight */
    const void *w;    /* forward, backward input */
    const void *bias; /* forward; NULL: none */
    void *y;          /* forward */
    const void *dy;   /* backward */
    void *dx;         /* backward input */
    float *dw;        /* backward weight */
    float *dbias;     /* backward weight; NULL: none */
    bool accumulate, overwrite;
    struct narrow_operand x_as, w_as, dy_as;
    void *scratch;
};

/* Where in its sequence a row is. A rank of context parallelism holds two ranges of every sequence, one early and one late,
 * which makes causal attention equal work on all of them: row p = row mod seq_len of `seq_len` local ones has the position
 * first + p, and in the second half of them + jump. All zero: the whole sequence, position p. */
struct positions {
    int64_t first, jump;
};

/* Rotary position embedding in place. Rows are `row` elements apart (0: packed queries, keys and values, (heads + 2 kv_heads) *
 * head_dim); the first heads + kv_heads heads of a row are turned, `stride` elements apart (0: head_dim). Dimension i of a head
 * pairs with i + head_dim / 2; angle = position * base^(-2i / head_dim), position by row mod seq_len. `inverse` turns back (the
 * backward pass). */
struct rotary_call {
    int64_t t, seq_len;
    int heads, kv_heads, head_dim;
    float base;
    bool inverse;
    void *qkv; /* [t, row] */
    int64_t row, stride;
    struct positions positions;
};

/* Causal attention over packed rows; row = batch * seq_len + position. Query head j uses key/value head j / (heads / kv_heads).
 * window > 0: a query sees the `window` positions up to its own, 0: all. Scale 1 / sqrt(head_dim).
 * Backward reads qkv, out, log_sum_exp and dout, writes dqkv. */
struct attention_call {
    int64_t batch, seq_len, window;
    int heads, kv_heads, head_dim;
    const void *qkv;    /* [batch * seq_len, (heads + 2 kv_heads) * head_dim] */
    void *out;          /* [batch * seq_len, heads * head_dim]; backward: read */
    float *log_sum_exp; /* [batch, heads, seq_len]; backward: read */
    const void *dout;   /* backward */
    void *dqkv;         /* backward */
    void *workspace;    /* attention_workspace bytes of the device; NULL when that is 0 */
};

/* GeLU (tanh form): a[t, f] from u[t, f]. Gated (SwiGLU): u is [t, 2f], gate then up; a = silu(gate) * up. Where `gate` is not
 * NULL the two are apart, [t, f] each: gate and u, backward dgate and du.
 * Gated and clamped (gpt-oss, arXiv:2508.10925 and its reference code): limit > 0. With g = gate where that is below the limit,
 * otherwise the limit, and x = up within plus and minus the limit: a = g sigmoid(1.702 g) (x + 1). What is clamped has no
 * gradient. */
struct activation_call {
    int64_t t, f;
    bool gated;
    float limit; /* gated: 0: none */
    const void *u;
    void *a;              /* forward */
    const void *da;       /* backward */
    void *du;             /* backward; may not be u */
    const void *gate;     /* gated: NULL, or apart */
    void *dgate;          /* backward, where gate is apart */
    const int32_t *count; /* one number in device memory: only the first count of the t rows; NULL: all */
};

/* y[i] = a[i] + b[i] (+ bias[i mod h] where not NULL); y may be a or b. Residual connections. `wide`: all operands
 * are fp32 on every device (sums of weight gradients). */
struct add_call {
    int64_t n, h;
    bool wide;
    const void *a, *b, *bias;
    void *y;
};

/* Bias, dropout, residual:
 *   forward   y[i] = residual[i] + keep(i) / (1 - p) * (x[i] + bias[i mod h])
 *   backward  dx[i] = keep(i) / (1 - p) * dy[i]; the residual's gradient is dy itself, the bias's is the column sum of dx
 * keep(i) is a function of (seed, first + i) alone: a generator by counter (dropout_keeps), so the backward pass, a recomputation
 * and a rank that holds another part of the same tensor (`first`: index of its first element in the whole) draw the same mask. */
struct dropout_call {
    int64_t n, h;
    float p; /* in [0, 1) */
    uint64_t seed;
    int64_t first;
    const void *x, *bias, *residual; /* forward: [n], [h] or NULL, [n] or NULL */
    void *y;                         /* forward: [n]; may be x or residual */
    const void *dy;                  /* backward: [n] */
    void *dx;                        /* backward: [n]; may be dy */
};

/* sum[h] += column sums of x[t, h]: gradients of biases. */
struct column_sum_call {
    int64_t t, h;
    const void *x;
    float *sum;
};

/* *largest = the largest |x|, 0 where there is none. `count` (device memory, NULL: all): only the first count rows. */
struct largest_call {
    int64_t rows, cols;
    const int32_t *count;
    const void *x; /* [rows, cols] */
    float *largest;
};

/* x in 8 bits with one scale for all: *scale = the power of two for *largest, y = x / *scale rounded. Rows behind `count` become
 * 0. */
struct quantise_call {
    int64_t rows, cols;
    enum narrow_format format;
    const int32_t *count; /* as above */
    const void *x;        /* [rows, cols] */
    const float *largest; /* of x, or of a tensor that x is a part of */
    uint8_t *y;           /* [rows, cols] */
    float *scale;
};

/* x in 8 bits with a scale for each block of 32 numbers of a row, or of a column (`down`). Rows behind `count` are 0. */
struct quantise_blocks_call {
    int64_t rows, cols;
    enum narrow_format format;
    bool down;
    const int32_t *count;
    const void *x;   /* [rows, cols] */
    uint8_t *y;      /* [rows, cols] */
    uint8_t *blocks; /* narrow_blocks(rows, cols, down) */
};

/* Token (and position) lookup in the rows [first, first + count) of the vocabulary that this rank holds; other tokens give zero.
 * `positions` is NULL for none. Backward adds into the gradients; dpositions may be NULL. */
struct embedding_call {
    int64_t t, h, seq_len, first, count;
    const int32_t *tokens; /* [t] */
    const void *table;     /* [count, h] */
    const void *positions; /* [seq_len and more, h] */
    void *x;               /* [t, h] forward */
    const void *dx;        /* [t, h] backward */
    float *dtable, *dpositions;
    struct positions at; /* of rows */
};

/* Vocabulary-parallel cross entropy, in four kernels with exchanges over the tensor-parallel group between them:
 *   max       max[t] = max over this rank's columns                                         (then all-reduce, maximum)
 *   sum       sums[t] = sum of exp(logit - max), sums[t + n] = logit of the target - max, 0 where another rank holds it
 *                                                                                            (then all-reduce, sum, of 2 n)
 *   loss      *loss += scale * sum over tokens of log(sums[t]) - sums[t + n]
 *   backward  logits[t, v] becomes scale * (exp(logit - max) / sums[t] - [v is the target]), in place */
struct logits_call {
    int64_t t, v, first;    /* this rank holds columns [first, first + v) of the vocabulary */
    const int32_t *targets; /* [t] */
    void *logits;           /* [t, v] */
    float *max;             /* [t] */
    float *sums;            /* [2 t] */
    float scale;
    double *loss; /* one number in device memory */
};

/* *sum += sum of x[i]^2, in an order that does not change from run to run. */
struct square_sum_call {
    int64_t n;
    const float *x;
    float *sum;
};

/* Gradients above a length are shortened to it: an optimizer multiplies them by min(1, most / sqrt(*square)) where `square` is
 * not NULL: one number in device memory, the squared norm of all gradients of the model. */
struct clipping {
    const float *square;
    float most;
};

/* Adam (Kingma and Ba, 2015) with decoupled weight decay: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
 * p -= rate * (m / c1 / (sqrt(v / c2) + epsilon) + decay * p), c = 1 - b^step. `compute` gets p in the device's precision when it
 * is not NULL. g is multiplied by gradient_scale first. */
struct adam_call {
    int64_t n;
    float *p, *m, *v;
    const float *g;
    void *compute;
    float rate, beta1, beta2, epsilon, decay, gradient_scale;
    struct clipping clip;
    int64_t step; /* from 1 */
};

/* Stochastic gradient descent with momentum: m = momentum m + g; p -= rate * (m + decay p). */
struct sgd_call {
    int64_t n;
    float *p, *m;
    const float *g;
    void *compute; /* [n] in the device's precision, or NULL */
    float rate, momentum, decay;
    struct clipping clip;
};

/* LAMB (You and others, 2020) on one tensor: Adam's step u = m / c1 / (sqrt(v / c2) + epsilon) + decay * p, its length scaled to
 * the tensor's: p -= rate * |p| / |u| * u (the ratio is 1 where either norm is 0). Norms over the n elements of the call, so
 * a tensor is updated whole. */
struct lamb_call {
    int64_t n;
    float *p, *m, *v; /* [n] */
    const float *g;   /* [n] */
    float *update;    /* [n] scratch: u */
    float *norms;     /* [2]: |p|^2, |u|^2, written */
    void *compute;    /* [n] in the device's precision, or NULL */
    float rate, beta1, beta2, epsilon, decay, gradient_scale;
    int64_t step; /* from 1 */
};

/* LAMB where a tensor is divided among ranks, in two kernels with an exchange of norms between them:
 *   update   m, v and u of n elements; norms[0] += |p|^2, norms[1] += |u|^2
 *   apply    p -= rate * sqrt(norms[0] / norms[1]) * u (the ratio is 1 where either is 0) */
struct lamb_part_call {
    int64_t n;
    float *p, *m, *v; /* [n] */
    const float *g;   /* [n] update */
    float *update;    /* [n] u */
    float *norms;     /* [2] */
    void *compute;    /* [n] apply: in the device's precision, or NULL */
    float rate, beta1, beta2, epsilon, decay;
    struct clipping clip;
    int64_t step; /* from 1 */
};

/* Muon (K. Jordan and others, 2024), what its step does beside products. `void` operands are of the device's precision.
 *   update   m = momentum m + g; update = g + momentum m (Nesterov)
 *   combine  y = alpha x / (sqrt(*square) + 1e-7) + beta z, without the quotient where square is NULL, without z where that is;
 *            y may be x or z
 *   apply    p -= rate (update + decay p) */
struct muon_call {
    int64_t n;
    float *m;            /* [n] update */
    const float *g;      /* [n] update */
    void *update;        /* [n] update: written; apply: read */
    const void *x;       /* [n] combine */
    const void *z;       /* [n] combine, or NULL */
    const float *square; /* combine: one number in device memory, or NULL */
    void *y;             /* [n] combine */
    float *p;            /* [n] apply */
    void *compute;       /* [n] apply: in the device's precision, or NULL */
    float momentum, alpha, beta, rate, decay;
    struct clipping clip;
};

struct zero_call {
    void *at;
    size_t bytes;
};

struct copy_call {
    void *to;
    const void *from;
    size_t bytes;
};

/* to (device precision) = from (fp32), or the other way round. */
struct cast_call {
    int64_t n;
    const void *from;
    void *to;
    bool widen; /* device precision to fp32 */
};

/* Rows moved. Row i of n comes from row i / share and goes to row i; `index` [n] says where instead: it comes from row index[i],
 * or with `scatter` goes there. `fold`: row i is the sum of rows [i fold, (i + 1) fold), without share and index. `count` (device
 * memory, NULL: n): only the first count rows. */
struct rows_call {
    int64_t n, width;         /* elements of a row */
    int64_t from_row, to_row; /* elements from one row to the next */
    int64_t share, fold;      /* rows made of one, of many one; 0 is 1 */
    bool scatter, accumulate; /* added to what is there */
    const int32_t *index;
    const int32_t *count;
    const void *from;
    void *to;
};

/* Causal attention of a range of queries to a range of keys, in any memory order: query i has the position first + i where
 * key i has the position i, so first may be anything; head sizes of keys and values may differ; the rest as attention_call.
 * Distances in elements: `row` from one position to the next, `batch` from one sequence to the next; heads stand side by side.
 *   slopes      [heads] in device memory: -slope * distance is added to a score (ALiBi, Press and others 2022); NULL: none
 *   accumulate  the keys are more of those that the queries see: out and log_sum_exp hold what they gave so far, and become
 *               those of all; backward (out and log_sum_exp of all) dq is added to
 * A query that sees no key has out 0 and log_sum_exp -inf. Backward writes dq and adds to dk and dv, which lie as q, k, v do. */
struct strided {
    int64_t row, batch;
};
struct query_range_call {
    int64_t batch, queries, keys, first, window;
    int heads, kv_heads, head_dim, value_dim;
    const float *slopes;
    struct strided q_at, k_at, v_at, out_at; /* out_at: of out and dout */
    const void *q, *k, *v;
    void *out;          /* backward: read */
    float *log_sum_exp; /* [batch, heads, queries]; backward: read */
    const void *dout;
    void *dq, *dk, *dv;
    bool accumulate;
    void *workspace; /* backward: as attention_call's, of batch * heads * queries rows */
};

/* A norm of every head for itself, with one gain (and bias) for all: y = norm(x) * gain + bias over head_dim elements. Rows are
 * x_row and y_row elements apart, heads stand side by side. Backward: dx may be dy. */
struct head_norm_call {
    int64_t t;
    int heads, head_dim;
    bool rms;
    float epsilon;
    int64_t x_row, y_row; /* y_row: of y, dy and dx */
    const void *x, *gain, *bias;
    void *y;
    const void *dy;
    void *dx;
    float *dgain, *dbias;
};

struct kernel_call {
    enum kernel kernel;
    union {
        struct norm_forward_call norm_forward;
        struct norm_backward_call norm_backward;
        struct linear_call linear;
        struct rotary_call rotary;
        struct attention_call attention;
        struct activation_call activation;
        struct add_call add;
        struct dropout_call dropout;
        struct column_sum_call column_sum;
        struct largest_call largest;
        struct quantise_call quantise;
        struct quantise_blocks_call quantise_blocks;
        struct embedding_call embedding;
        struct logits_call logits;
        struct square_sum_call square_sum;
        struct adam_call adam;
        struct lamb_call lamb;
        struct zero_call zero;
        struct copy_call copy;
        struct cast_call cast;
        struct rows_call rows;
        struct route_call route;
        struct expert_sort_call expert_sort;
        struct expert_arrivals_call expert_arrivals;
        struct combine_call combine;
        struct grouped_call grouped;
        struct query_range_call query_range;
        struct head_norm_call head_norm;
        struct lamb_part_call lamb_part;
        struct sgd_call sgd;
        struct muon_call muon;
        struct convolution_call convolution;
        struct gates_call gates;
        struct unit_call unit;
        struct scan_call scan;
        struct gated_norm_call gated_norm;
    };
};

/* The operation in plain C on host memory, `void` operands fp32. Allocates nothing and needs no workspace. Safe to call
 * from several threads on different outputs. */
void kernel_reference_run(const struct kernel_call *call);

/* KERNEL_ADAM or KERNEL_SGD on host memory with the device's arithmetic, `compute` bf16, by `threads` threads: the same bits for
 * any number of them, and element by element what the device's kernel gives to a few roundings. */
void optimizer_host_run(const struct kernel_call *call, int threads);

/* Bytes of linear_call.scratch and grouped_call.scratch for the reference: operands of 8 bits are widened there. */
size_t linear_reference_scratch(const struct kernel_call *call);

/* One number of 8 bits: the nearest to x, and what a byte stands for. */
uint8_t narrow_from_float(float x, enum narrow_format format);
float narrow_to_float(uint8_t byte, enum narrow_format format);

/* Threads of the BLAS library under the reference's matrix products, process-wide; ignored where it has no such switch. A program
 * that runs many ranks as threads wants 1. */
void gemm_reference_threads(int n_threads);

/* C[m, n] = A[m, k] B[k, n] + beta C, fp32, through CBLAS; transposed operands are stored as [k, m] and [n, k]. beta 0 ignores
 * what C held. */
struct gemm_call {
    int64_t m, n, k;
    bool transpose_a, transpose_b;
    const float *a, *b;
    float *c;
    float beta;
};
void gemm_reference(const struct gemm_call *call);

static inline int64_t position_of(const struct positions *at, int64_t seq_len, int64_t row)
{
    int64_t p = row % seq_len;
    return at->first + p + (2 * p >= seq_len ? at->jump : 0);
}

/* Whether dropout keeps element `index`: the upper 32 bits of a SplitMix64 mix of (seed, index), compared with p * 2^32. Cheap in
 * integer registers, the same on host and device. */
static inline uint32_t dropout_bits(uint64_t seed, uint64_t index)
{
    return (uint32_t)(hash_mix(seed + (index + 1) * HASH_GOLDEN) >> 32);
}
static inline uint32_t dropout_threshold(float p)
{
    return p <= 0 ? 0 : (uint32_t)((double)p * 4294967296.0);
}
static inline bool dropout_keeps(uint64_t seed, uint64_t index, uint32_t threshold)
{
    return dropout_bits(seed, index) >= threshold;
}

#endif
