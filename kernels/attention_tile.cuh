/*
 * attention_tile.cuh - tiles of attention in shared memory, and products of tiles on tensor cores.
 *
 * A tile is rows of D elements of bf16 (one head at consecutive positions), in pieces of 16 bytes. Piece p of row r lies at
 * p xor (r mod 8), so the eight rows that ldmatrix reads at once fall into different banks without padding.
 */
#ifndef MSIM_KERNELS_ATTENTION_TILE_CUH
#define MSIM_KERNELS_ATTENTION_TILE_CUH

#include "kernels/vector.cuh"

enum { ATTENTION_THREADS = 128, ATTENTION_WARPS = ATTENTION_THREADS / WARP, PIECE = 8 };
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

template <int D> __device__ static inline bf16 *piece_at(bf16 *tile, int row, int piece)
{
    return tile + row * D + ((piece ^ (row & 7)) * PIECE);
}

template <int D> __device__ static inline const bf16 *piece_at(const bf16 *tile, int row, int piece)
{
    return tile + row * D + ((piece ^ (row & 7)) * PIECE);
}

/* ROWS rows from `from` on, the whole block copying; rows at and beyond `limit` become zeros. */
template <int D, int ROWS> __device__ static inline void load_tile(bf16 *tile, const bf16 *from, int64_t stride, int64_t limit)
{
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * (D / PIECE); i += ATTENTION_THREADS) {
        const int row = i / (D / PIECE), piece = i % (D / PIECE);
        const bool valid = row < limit;
        copy_async(piece_at<D>(tile, row, piece), from + (valid ? row * stride : 0) + piece * PIECE, valid);
    }
}

/* c[M][N][4] += A B^T over D: A is M tiles of 16 rows from a_row on, B is 8 N rows. */
template <int D, int M, int N>
__device__ static inline void multiply_rows(float (*c)[N][4], const bf16 *a_tile, int a_row, const bf16 *b_tile)
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        uint32_t a[M][4], b[4];
#pragma unroll
        for (int m = 0; m < M; m++)
            load_matrices(a[m], piece_at<D>(a_tile, a_row + 16 * m + lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            load_matrices(b, piece_at<D>(b_tile, 8 * n + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2));
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_16x8x16(c[m][n], a[m], b);
                mma_16x8x16(c[m][n + 1], a[m], b + 2);
            }
        }
    }
}

/* An accumulator of 16 x 8 N as the left operand of a product over its columns: a[N / 2][4]. */
template <int N> __device__ static inline void operand_of(uint32_t (*a)[4], const float (*c)[4])
{
#pragma unroll
    for (int k = 0; k < N / 2; k++) {
        a[k][0] = bf16_pair(c[2 * k][0], c[2 * k][1]);
        a[k][1] = bf16_pair(c[2 * k][2], c[2 * k][3]);
        a[k][2] = bf16_pair(c[2 * k + 1][0], c[2 * k + 1][1]);
        a[k][3] = bf16_pair(c[2 * k + 1][2], c[2 * k + 1][3]);
    }
}

/* c[M][D / 8][4] += A B over 16 K rows of B: A in registers, a[M][K][4]. */
template <int D, int M, int K>
__device__ static inline void multiply_columns(float (*c)[D / 8][4], const uint32_t (*a)[K][4], const bf16 *b_tile)
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            uint32_t b[4];
            load_matrices_transposed(b, piece_at<D>(b_tile, 16 * k + lane % 16, n + lane / 16));
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_16x8x16(c[m][n], a[m][k], b);
                mma_16x8x16(c[m][n + 1], a[m][k], b + 2);
            }
        }
}

/* -inf where the query may not see the key, in an accumulator of 16 queries x 8 N keys; `ahead`: the lane's first key minus its
 * first query. */
template <int N> __device__ static inline void mask_scores(float (*s)[4], int ahead, int window)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int distance = ahead + 8 * n + i % 2 - i / 2 * 8; /* key minus query */
            if (distance > 0 || (window > 0 && distance <= -window))
                s[n][i] = -INFINITY;
        }
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

template <int D> __device__ static inline void scale_rows(float (*c)[4], const float factor[2])
{
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            c[n][i] *= factor[i / 2];
}

/* Of 16 queries from `query` on: their log-sum-exp, where they are before `limit`, and what their outputs are to be multiplied
 * by. */
__device__ static inline void finish_rows(float *log_sum_exp, int64_t query, int64_t limit, const float max[2],
                                          const float sum[2], float scale, float inverse[2])
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float total = sum[half];
        total += shuffle_xor(total, 1);
        total += shuffle_xor(total, 2);
        inverse[half] = 1 / total;
        const int64_t row = query + lane / 4 + 8 * half;
        if (lane % 4 == 0 && row < limit)
            log_sum_exp[row] = max[half] * scale * LN_2 + logf(total);
    }
}

/* `distance`: key minus query. */
__device__ static inline bool sees(int distance, int window)
{
    return distance <= 0 && (window <= 0 || distance > -window);
}

/* Scores of 16 keys x 8 N queries become weights p, and dp becomes ds. distance: this lane's first key minus its first query. */
template <int N>
__device__ static inline void weights_of_keys(float (*p)[4], float (*ds)[4], const float *lse, const float *delta, int distance,
                                              int window, float scale)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int column = 8 * n + threadIdx.x % 4 * 2 + i % 2;
            const bool seen = sees(distance + i / 2 * 8 - 8 * n - i % 2, window);
            p[n][i] = seen ? exp2_fast(p[n][i] * scale - lse[column]) : 0;
            ds[n][i] = p[n][i] * (ds[n][i] - delta[column]);
        }
}

/* Scores s of 16 queries x 8 N keys and dp become ds, in place of dp. distance: this lane's first key minus its first query. */
template <int N>
__device__ static inline void weights_of_queries(float (*s)[4], float (*ds)[4], const float lse[2], const float delta[2],
                                                 int distance, int window, float scale)
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const bool seen = sees(distance + 8 * n + i % 2 - i / 2 * 8, window);
            const float p = seen ? exp2_fast(s[n][i] * scale - lse[i / 2]) : 0;
            ds[n][i] = p * (ds[n][i] - delta[i / 2]);
        }
}

/* Log-sum-exp, in base 2, and delta of a lane's queries, `query` and 8 on. Beyond the end every weight is exp(-inf). */
__device__ static inline void statistics_of_rows(const attention_call &call, int64_t statistics, int64_t query, float lse[2],
                                                 float delta[2])
{
    for (int half = 0; half < 2; half++) {
        const int64_t row = query + 8 * half;
        lse[half] = row < call.seq_len ? call.log_sum_exp[statistics + row] * LOG2_E : INFINITY;
        delta[half] = row < call.seq_len ? ((const float *)call.workspace)[statistics + row] : 0;
    }
}

/* 16 rows of an accumulator, times factor[0] (rows 0-7) and factor[1] (8-15) of this lane's rows, to global memory in 16-byte
 * pieces by way of `tile` rows that no other warp uses. Rows at and beyond `limit` are not written. */
template <int D>
__device__ static inline void store_rows(bf16 *to, int64_t stride, int64_t limit, bf16 *tile, int row0, const float (*c)[4],
                                         const float factor[2])
{
    const int lane = threadIdx.x % WARP, g = lane / 4, q = lane % 4;
    warp_barrier(); /* the rows may still be read as an operand */
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t *at = (uint32_t *)piece_at<D>(tile, row0 + g + 8 * half, n) + q;
            *at = bf16_pair(c[n][2 * half] * factor[half], c[n][2 * half + 1] * factor[half]);
        }
    warp_barrier();
#pragma unroll
    for (int i = lane; i < 16 * (D / PIECE); i += WARP) {
        const int row = i / (D / PIECE), piece = i % (D / PIECE);
        if (row < limit)
            *(uint4 *)(to + row * stride + piece * PIECE) = *(const uint4 *)piece_at<D>(tile, row0 + row, piece);
    }
}

static inline bool attention_fits(const struct attention_call *call)
{
    return attention_cuda_fits(call->head_dim) && call->kv_heads > 0 && call->heads % call->kv_heads == 0 &&
           call->seq_len < INT32_MAX && call->window < INT32_MAX && aligned(call->qkv) && aligned(call->out) &&
           aligned(call->dout) && aligned(call->dqkv);
}

#endif
