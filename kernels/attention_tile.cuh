/*
 * attention_tile.cuh - the parts that the kernels of attention share: addresses of heads, scores, weights, results on tensor
 * cores.
 *
 * A tile is rows of D elements (one head at consecutive positions; tile.cuh). If a head is narrower than D, its tile has columns
 * of zeros, which add nothing to a product and are not written.
 */
#ifndef MSIM_KERNELS_ATTENTION_TILE_CUH
#define MSIM_KERNELS_ATTENTION_TILE_CUH

#include "kernels/tile.cuh"

enum { MOST_BLOCKS_YZ = 65535 }; /* of a grid, in its second and third dimension */
enum { ATTENTION_THREADS = 128, ATTENTION_WARPS = ATTENTION_THREADS / WARP, ATTENTION_MOST_DIM = 256 };
#define LOG2_E 1.4426950408889634f
#define LN_2   0.6931471805599453f

/* Where one head's rows stand in packed tensors, in elements. */
struct head_rows {
    int64_t q, k, v, out;       /* of position 0 */
    int64_t stride, out_stride; /* between positions */
    int64_t statistics;         /* in [batch, heads, seq_len] */
};

__device__ static inline head_rows rows_of(const attention_call &call, int64_t batch, int head)
{
    const int64_t d = call.head_dim;
    head_rows rows;
    rows.stride = (call.heads + 2 * (int64_t)call.kv_heads) * d;
    rows.out_stride = call.heads * d;
    const int64_t first = batch * call.seq_len * rows.stride;
    const int kv = call.heads + head / (call.heads / call.kv_heads);
    rows.q = first + head * d;
    rows.k = first + kv * d;
    rows.v = rows.k + call.kv_heads * d;
    rows.out = batch * call.seq_len * rows.out_stride + head * d;
    rows.statistics = (batch * call.heads + head) * call.seq_len;
    return rows;
}

/* Rows from `row` on of one head, of `rows` there are, whose columns begin at `column`; the block's sequence. */
__device__ static inline matrix_part part_of(const void *tensor, const strided &at, int row, int64_t rows, int64_t column,
                                             int width)
{
    return {(const bf16 *)tensor + blockIdx.z * at.batch + row * at.row + column, at.row, (int)rows - row, width};
}

/* ROWS rows of one head to a tile, as part_of says. */
template <int D, int ROWS>
__device__ static inline void load_head(bf16 *tile, const void *tensor, const strided &at, int row, int64_t rows, int head,
                                        int width, bool vectors)
{
    load_part<D, ROWS, ATTENTION_THREADS>(tile, part_of(tensor, at, row, rows, (int64_t)head * width, width), vectors);
}

/* -inf where the query may not see the key, in an accumulator of 16 queries x 8 N keys; `ahead`: the lane's first key minus its
 * first query; `left`: keys that there are from the lane's first on. */
template <int N> __device__ static inline void mask_scores(float (*s)[4], int ahead, int window, int left)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = 8 * n + i % 2, distance = ahead + key - i / 2 * 8; /* key minus query */
            if (distance > 0 || (window > 0 && distance <= -window) || key >= left)
                s[n][i] = -INFINITY;
        }
}

/* ALiBi: `slope` times key minus query is added to scores. ahead: the lane's first key minus its first query; `down`: 1 where
 * rows are keys, -1 where columns are. */
template <int N> __device__ static inline void lean_scores(float (*s)[4], float slope, int ahead, int down)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[n][i] += slope * (float)(ahead + down * (i / 2 * 8 - 8 * n - i % 2));
}

/* Scores of 16 queries x 8 N keys become weights; the running maximum and this lane's part of the running sum follow. shrink[2]:
 * what becomes of outputs summed before. */
template <int N>
__device__ static inline void softmax_scores(float (*s)[4], float max[2], float sum[2], float shrink[2], float scale)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top = max[half];
#pragma unroll
        for (int n = 0; n < N; n++)
            top = fmaxf(top, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
        top = fmaxf(top, shuffle_xor(top, 1));
        top = fmaxf(top, shuffle_xor(top, 2));
        const float base = top == -INFINITY ? 0 : top * scale; /* nothing seen so far: all weights are exp(-inf) */
        shrink[half] = exp2_fast(max[half] * scale - base);
        max[half] = top;
        sum[half] *= shrink[half];
#pragma unroll
        for (int n = 0; n < N; n++)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                s[n][i] = exp2_fast(s[n][i] * scale - base);
                sum[half] += s[n][i];
            }
    }
}

/* Of 16 queries from `query` on: their log-sum-exp, where they are before `limit`, and what their outputs are to be multiplied
 * by. A query that has seen nothing has -inf and 0. */
__device__ static inline void finish_rows(float *log_sum_exp, int64_t query, int64_t limit, const float max[2],
                                          const float sum[2], float scale, float inverse[2])
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float total = sum[half];
        total += shuffle_xor(total, 1);
        total += shuffle_xor(total, 2);
        inverse[half] = total > 0 ? 1 / total : 0;
        const int64_t row = query + lane / 4 + 8 * half;
        if (lane % 4 == 0 && row < limit)
            log_sum_exp[row] = max[half] * scale * LN_2 + logf(total);
    }
}

/* The same of queries that have seen other keys before, whose log-sum-exp stands where the one of all goes: kept[2] is what the
 * outputs before are to be multiplied by. */
__device__ static inline void join_rows(float *log_sum_exp, int64_t query, int64_t limit, const float max[2], const float sum[2],
                                        float scale, float inverse[2], float kept[2])
{
    const int lane = threadIdx.x % WARP;
    float before[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t row = query + lane / 4 + 8 * half;
        before[half] = row < limit ? log_sum_exp[row] : -INFINITY;
    }
    warp_barrier(); /* all lanes have read it */
    finish_rows(log_sum_exp, query, limit, max, sum, scale, inverse);
    warp_barrier();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t row = query + lane / 4 + 8 * half;
        const float here = row < limit ? log_sum_exp[row] : -INFINITY, top = fmaxf(here, before[half]);
        const float base = top == -INFINITY ? 0 : top;
        const float old = exp2_fast(LOG2_E * (before[half] - base)), own = exp2_fast(LOG2_E * (here - base));
        kept[half] = old + own > 0 ? old / (old + own) : 0;
        inverse[half] *= old + own > 0 ? own / (old + own) : 0;
        before[half] = base + logf(old + own);
    }
    warp_barrier();
#pragma unroll
    for (int half = 0; half < 2; half++)
        if (lane % 4 == 0 && query + lane / 4 + 8 * half < limit)
            log_sum_exp[query + lane / 4 + 8 * half] = before[half];
}

/* c = factor c + kept times the values in global memory, by rows 0-7 and 8-15 of 16; `at`, `limit`, `columns` as in store_rows.
 */
template <int D>
__device__ static inline void add_rows(float (*c)[4], const float factor[2], const bf16 *at, int64_t stride, int64_t limit,
                                       int64_t columns, const float kept[2])
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + i / 2 * 8, column = 8 * n + lane % 4 * 2 + i % 2;
            const float before = row < limit && column < columns ? bf16_to_float(at[row * stride + column]) : 0;
            c[n][i] = factor[i / 2] * c[n][i] + kept[i / 2] * before;
        }
}

/* `distance`: key minus query. */
__device__ static inline bool sees(int distance, int window)
{
    return distance <= 0 && (window <= 0 || distance > -window);
}

/* -inf where the query does not see the key, in an accumulator of 16 keys x 8 N queries. distance: this lane's first key minus
 * its first query. */
template <int N> __device__ static inline void mask_keys(float (*s)[4], int distance, int window)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (!sees(distance + i / 2 * 8 - 8 * n - i % 2, window))
                s[n][i] = -INFINITY;
}

/* Scores of 16 keys x 8 N queries, -inf where they are masked, become weights p, and dp becomes ds. No query's log-sum-exp may be
 * -inf: one that sees nothing, or is not there, has infinity. */
template <int N>
__device__ static inline void weights_of_keys(float (*p)[4], float (*ds)[4], const float *lse, const float *delta, float scale)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int column = 8 * n + threadIdx.x % 4 * 2 + i % 2;
            p[n][i] = exp2_fast(p[n][i] * scale - lse[column]);
            ds[n][i] = p[n][i] * (ds[n][i] - delta[column]);
        }
}

/* The same of 16 queries x 8 N keys: scores s and dp become ds, in place of dp. */
template <int N>
__device__ static inline void weights_of_queries(float (*s)[4], float (*ds)[4], const float lse[2], const float delta[2],
                                                 float scale)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            ds[n][i] = exp2_fast(s[n][i] * scale - lse[i / 2]) * (ds[n][i] - delta[i / 2]);
}

/* Log-sum-exp in base 2, as weights_of_keys needs it. */
__device__ static inline float base_2(float log_sum_exp)
{
    return log_sum_exp == -INFINITY ? INFINITY : log_sum_exp * LOG2_E;
}

/* Log-sum-exp, in base 2, and delta of a lane's queries, `query` and 8 on. Beyond the end every weight is exp(-inf). */
__device__ static inline void statistics_of_rows(const float *log_sum_exp, const float *deltas, int64_t query, int64_t limit,
                                                 float lse[2], float delta[2])
{
    for (int half = 0; half < 2; half++) {
        const int64_t row = query + 8 * half;
        lse[half] = row < limit ? base_2(log_sum_exp[row]) : INFINITY;
        delta[half] = row < limit ? deltas[row] : 0;
    }
}

/* Packed attention as one of all queries. */
static inline struct query_range_call query_range_of(const struct attention_call *call)
{
    const int64_t d = call->head_dim, keys = call->heads * d, values = keys + call->kv_heads * d,
                  row = values + call->kv_heads * d;
    const struct strided packed = {row, call->seq_len * row}, apart = {keys, call->seq_len * keys};
    const bf16 *qkv = (const bf16 *)call->qkv;
    bf16 *dqkv = (bf16 *)call->dqkv;
    struct query_range_call s = {};
    s.batch = call->batch, s.queries = s.keys = call->seq_len, s.window = call->window;
    s.heads = call->heads, s.kv_heads = call->kv_heads, s.head_dim = s.value_dim = call->head_dim;
    s.q_at = s.k_at = s.v_at = packed, s.out_at = apart;
    s.q = qkv, s.k = qkv + keys, s.v = qkv + values;
    s.out = call->out, s.log_sum_exp = call->log_sum_exp, s.dout = call->dout;
    s.dq = dqkv, s.dk = dqkv ? dqkv + keys : NULL, s.dv = dqkv ? dqkv + values : NULL;
    s.workspace = call->workspace;
    return s;
}

static inline bool query_range_fits(const struct query_range_call *call)
{
    return call->head_dim <= ATTENTION_MOST_DIM && call->value_dim <= ATTENTION_MOST_DIM && call->kv_heads > 0 &&
           call->heads % call->kv_heads == 0 && call->queries < INT32_MAX && call->keys < INT32_MAX && call->window < INT32_MAX &&
           call->heads <= MOST_BLOCKS_YZ && call->batch <= MOST_BLOCKS_YZ;
}

static inline bool strided_in_vectors(const struct strided &at, const void *a, const void *b)
{
    return at.row % VECTOR == 0 && at.batch % VECTOR == 0 && aligned(a) && aligned(b);
}

static inline bool query_range_in_vectors(const struct query_range_call *call)
{
    return call->head_dim % VECTOR == 0 && call->value_dim % VECTOR == 0 && strided_in_vectors(call->q_at, call->q, call->dq) &&
           strided_in_vectors(call->k_at, call->k, call->dk) && strided_in_vectors(call->v_at, call->v, call->dv) &&
           strided_in_vectors(call->out_at, call->out, call->dout);
}

/* pass.run<DK, DV>() with the narrowest tiles that hold the call's keys and values. */
template <class Pass> static cudaError_t with_widths(const struct query_range_call *call, const Pass &pass)
{
    const int k = call->head_dim, v = call->value_dim;
    if (k <= 64 && v <= 64)
        return pass.template run<64, 64>();
    if (k <= 96 && v <= 96)
        return pass.template run<96, 96>();
    if (k <= 128 && v <= 128)
        return pass.template run<128, 128>();
    if (k <= 192 && v <= 128)
        return pass.template run<192, 128>();
    return pass.template run<256, 256>();
}

/* What the kernels for sm_90a do. */
static inline bool hopper_fits(const struct attention_call *call)
{
    return (call->head_dim == 64 || call->head_dim == 128) && call->kv_heads > 0 && call->heads % call->kv_heads == 0 &&
           call->seq_len < INT32_MAX && call->window < INT32_MAX && call->heads <= MOST_BLOCKS_YZ &&
           call->batch <= MOST_BLOCKS_YZ && aligned(call->qkv) && aligned(call->out) && aligned(call->dout) &&
           aligned(call->dqkv);
}

#endif
