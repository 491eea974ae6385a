/*
 * kernels.h - the operations of training a transformer: one struct per operation, executed by the C reference or by CUDA.
 *
 * Example: a linear layer without bias, y[8, 32] = x[8, 16] w[32, 16]^T.
 *
 *     struct kernel_call call = {
 *         .kernel = KERNEL_LINEAR_FORWARD, .linear = {.t = 8, .in = 16, .out = 32, .x = x, .w = w, .y = y}};
 *     kernel_reference_run(&call);                       plain C on host memory, fp32: the definition of the operation
 *     kernel_cuda_launch(&launch, &call, &diags);        CUDA kernels on a stream, bf16 with fp32 sums (kernels/cuda_launch.h)
 *
 * A call is a value: sizes, numbers and pointers to buffers of the caller. A check fills one struct twice and compares the
 * results. Matrices are row-major without gaps.
 *
 * Types. `void` operands (activations, compute weights) have the device's precision: fp32 in the reference, bf16 on a GPU.
 * `float` operands (master weights, weight gradients, statistics, losses, optimizer states) are fp32 everywhere. Gradients of
 * weights are added to the present values. All other results overwrite, unless the field says otherwise.
 *
 * Same bits. The order of every sum depends only on the sizes, so two runs give the same bits. For matrix products this holds as
 * far as BLAS and cuBLASLt promise it.
 *
 * Symbols: t tokens of this rank, h hidden size, f feed-forward width on this rank, in/out widths of a linear layer on this
 * rank.
 */
#ifndef MSIM_KERNELS_KERNELS_H
#define MSIM_KERNELS_KERNELS_H

#include "kernels/experts.h"
#include "kernels/mixers.h"
#include "kernels/narrow.h"
#include "model/base/hash.h"

/* One row per operation: its KERNEL_ name; the stem of its functions (norm_forward_reference, norm_forward_cuda), which is also
 * the text of kernel_name(); its member of kernel_call (linear: struct linear_call). A PRODUCT is a matrix product, for which a
 * GPU has several implementations, depending on the types of the operands. */
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
#define KERNEL_SKIPPED(ID, stem, of) /* pass this as X or PRODUCT to leave out those rows */

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

/* dx = gradient of the norm's input. `add`, if not NULL, is added: the gradient of the residual path. It may be dx. */
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
 * Operands of 8 bits: both operands of a product are. Sums are fp32. Blocks with one scale lie along the dimension that is summed
 * over. `scratch` then has the bytes of linear_narrow_scratch or linear_reference_scratch, and the caller sums the gradient of
 * the bias. */
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

/* The position of a row in its sequence. A rank of context parallelism holds two ranges of every sequence, one early and one
 * late, so that causal attention is equal work on all ranks. Of `seq_len` local rows, row p has the position first + p in the
 * first half and first + p + jump in the second. All zero: the whole sequence, position p. */
struct positions {
    int64_t first, jump;
};

/* Rotary position embedding in place. Rows are `row` elements apart (0: packed queries, keys and values, (heads + 2 kv_heads) *
 * head_dim); the first heads + kv_heads heads of a row are rotated, `stride` elements apart (0: head_dim). Dimension i of a head
 * pairs with i + head_dim / 2; angle = position * base^(-2i / head_dim), position by row mod seq_len. `inverse` rotates back, for
 * the backward pass. */
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

/* GeLU (tanh form): a[t, f] from u[t, f]. Gated (SwiGLU): u is [t, 2f], gate then up; a = silu(gate) * up. If `gate` is not NULL,
 * the two are separate tensors [t, f]: gate and u, backward dgate and du.
 * Gated and clamped (gpt-oss, arXiv:2508.10925 and its reference code): limit > 0. With g = min(gate, limit) and x = up clamped
 * to
 * [-limit, limit]: a = g sigmoid(1.702 g) (x + 1). Clamped elements have no gradient. */
struct activation_call {
    int64_t t, f;
    bool gated;
    float limit; /* gated: 0: none */
    const void *u;
    void *a;              /* forward */
    const void *da;       /* backward */
    void *du;             /* backward; may not be u */
    const void *gate;     /* gated: a separate tensor, or NULL */
    void *dgate;          /* backward, with a separate gate */
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
 * keep(i) depends only on (seed, first + i), through a counter-based generator (dropout_keeps). So the backward pass, a
 * recomputation, and ranks that hold other parts of the tensor use the same mask. `first`: index of element 0 in the whole
 * tensor. */
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

/* *largest = the largest |x|; 0 without rows. `count` (device memory, NULL: all): only the first count rows. */
struct largest_call {
    int64_t rows, cols;
    const int32_t *count;
    const void *x; /* [rows, cols] */
    float *largest;
};

/* x in 8 bits with one scale: *scale = the power of two for *largest, y = x / *scale, rounded. Rows behind `count` become 0. */
struct quantise_call {
    int64_t rows, cols;
    enum narrow_format format;
    const int32_t *count; /* as above */
    const void *x;        /* [rows, cols] */
    const float *largest; /* of x, or of a tensor that x is a part of */
    uint8_t *y;           /* [rows, cols] */
    float *scale;
};

/* x in 8 bits with a scale for each block of 32 numbers of a row, or of a column (`down`). Rows behind `count` become 0. */
struct quantise_blocks_call {
    int64_t rows, cols;
    enum narrow_format format;
    bool down;
    const int32_t *count;
    const void *x;   /* [rows, cols] */
    uint8_t *y;      /* [rows, cols] */
    uint8_t *blocks; /* narrow_blocks(rows, cols, down) */
};

/* Lookup of tokens (and positions) in rows [first, first + count) of the vocabulary, which this rank holds; other tokens give 0.
 * `positions` may be NULL. Backward adds to the gradients; dpositions may be NULL. */
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

/* *sum += sum of x[i]^2. */
struct square_sum_call {
    int64_t n;
    const float *x;
    float *sum;
};

/* Gradient clipping: if `square` is not NULL, the optimizer multiplies gradients by min(1, most / sqrt(*square)). *square, in
 * device memory, is the squared norm of all gradients of the model. */
struct clipping {
    const float *square;
    float most;
};

/* Adam (Kingma and Ba, 2015) with decoupled weight decay: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
 * p -= rate * (m / c1 / (sqrt(v / c2) + epsilon) + decay * p), c = 1 - b^step. `compute`, if not NULL, receives p in the device's
 * precision. g is multiplied by gradient_scale first. */
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

/* LAMB (You and others, 2020) on one whole tensor: Adam's step u = m / c1 / (sqrt(v / c2) + epsilon) + decay * p, scaled to the
 * tensor's length: p -= rate * |p| / |u| * u (the ratio is 1 if either norm is 0). Norms are over the n elements of the call. */
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

/* LAMB on a tensor that is divided among ranks: two kernels with an exchange of norms between them.
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

/* The parts of Muon's step (K. Jordan and others, 2024) that are not products. `void` operands have the device's precision.
 *   update   m = momentum m + g; update = g + momentum m (Nesterov)
 *   combine  y = alpha x / (sqrt(*square) + 1e-7) + beta z; square NULL: no division; z NULL: no second term; y may be x or z
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

/* Copies n rows. Row i comes from row i / share and goes to row i. With `index` [n], it comes from row index[i], or with
 * `scatter` goes to row index[i]. `fold`: row i is the sum of rows [i fold, (i + 1) fold), without share and index. `count`
 * (device memory, NULL: n): only the first count rows. */
struct rows_call {
    int64_t n, width;         /* elements of a row */
    int64_t from_row, to_row; /* elements from one row to the next */
    int64_t share, fold;      /* result rows per source row; source rows per result row; 0 means 1 */
    bool scatter, accumulate; /* accumulate: added to the present values */
    const int32_t *index;
    const int32_t *count;
    const void *from;
    void *to;
};

/* Causal attention of a range of queries to a range of keys, in any memory order. Query i has the position first + i and key i
 * the position i; first may be negative or beyond the keys. Head sizes of keys and values may differ. For the rest, see
 * attention_call. Distances are in elements: `row` from one position to the next, `batch` from one sequence to the next; heads
 * are consecutive. slopes      [heads] in device memory: -slope * distance is added to a score (ALiBi, Press and others 2022);
 * NULL: none accumulate  the queries have seen other keys before: out and log_sum_exp hold the result so far and become the
 * result over all keys. Backward (with out and log_sum_exp over all keys): adds to dq A query that sees no key has out 0 and
 * log_sum_exp -inf. Backward writes dq and adds to dk and dv, in the layout of q, k, v. */
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

/* A norm over each head, with one gain (and bias) for all heads: y = norm(x) * gain + bias over head_dim elements. Rows are x_row
 * and y_row elements apart; the heads of a row are consecutive. Backward: dx may be dy. */
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

/* Executes the operation in plain C on host memory; `void` operands are fp32. Allocates nothing. Several threads may call it with
 * different outputs. */
void kernel_reference_run(const struct kernel_call *call);

/* Executes KERNEL_ADAM or KERNEL_SGD on host memory with `threads` threads, in the device's arithmetic with `compute` in bf16.
 * The bits do not depend on the number of threads. Each element equals that of the device's kernel up to a few roundings. */
void optimizer_host_run(const struct kernel_call *call, int threads);

/* Bytes of linear_call.scratch and grouped_call.scratch for the reference, which widens operands of 8 bits there. */
size_t linear_reference_scratch(const struct kernel_call *call);

/* The byte nearest to x, and the value of a byte. */
uint8_t narrow_from_float(float x, enum narrow_format format);
float narrow_to_float(uint8_t byte, enum narrow_format format);

/* Sets the number of threads of the BLAS library, process-wide; ignored if the library has no such setting. A program whose ranks
 * are threads sets 1. */
void gemm_reference_threads(int n_threads);

/* C[m, n] = A[m, k] B[k, n] + beta C, fp32, through CBLAS. Transposed operands are stored as [k, m] and [n, k]. With beta 0 the
 * present values of C are ignored. */
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

/* Whether dropout keeps element `index`: compares the upper 32 bits of a SplitMix64 mix of (seed, index) with p * 2^32. Host and
 * device give the same answer. */
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
