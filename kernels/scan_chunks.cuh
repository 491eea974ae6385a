/*
 * scan_chunks.cuh - the parts that the passes of the scan by chunks share: addresses of tokens, tiles of them, states in
 * registers.
 *
 * scan_chunks.cu explains what they compute.
 */
#ifndef MSIM_KERNELS_SCAN_CHUNKS_CUH
#define MSIM_KERNELS_SCAN_CHUNKS_CUH

#include "kernels/tile.cuh"

enum { CHUNK = 64, N_TILES = CHUNK / 8, K_STEPS = CHUNK / 16 };
#define LOG2_E      1.4426950408889634f
#define LEAST_DECAY -104.0f /* exp(-104) is half of the smallest number */

/* --- where things are */

/* A block's head, sequence and columns. */
struct chunk_place {
    int64_t head, group, row; /* row: of the sequence's first token */
    int first_column, columns;
};

__device__ static inline chunk_place place_of_head(const scan_call &call)
{
    const int64_t head = blockIdx.y % call.heads;
    return {head, head / (call.heads / call.groups), blockIdx.y / call.heads * call.seq_len, 0, call.head_dim};
}

__device__ static inline chunk_place place_in(const scan_call &call, int wide)
{
    chunk_place place = place_of_head(call);
    place.first_column = (int)blockIdx.x * wide;
    place.columns = call.head_dim - place.first_column;
    return place;
}

/* Which operands are read and written 16 bytes at a time. */
struct chunk_vectors {
    bool keys, values, packed; /* k and q; v; y and dy */
};

/* Tokens of a chunk in shared memory: sums of decays, times log2 e, and strengths. */
struct chunk_gates {
    float sum[CHUNK], strength[CHUNK];
};

/* --- loading */

__device__ static inline int tokens_from(const scan_call &call, int64_t first)
{
    return call.seq_len - first < CHUNK ? (int)(call.seq_len - first) : (int)CHUNK;
}

/* Of a sequence's tokens from `first` on. */
template <int N, int THREADS>
__device__ static inline void load_keys(bf16 *tile, const scan_call &call, const chunk_place &place, const void *keys,
                                        int64_t first, bool vectors)
{
    const bf16 *at = (const bf16 *)keys + (place.row + first) * call.k_row + place.group * call.state;
    load_part<N, CHUNK, THREADS>(tile, {at, call.k_row, tokens_from(call, first), call.state}, vectors);
}

/* The same of values, or of what has their shape and stands `row` apart. */
template <int W, int THREADS>
__device__ static inline void load_values(bf16 *tile, const scan_call &call, const chunk_place &place, const void *values,
                                          int64_t row, int64_t first, bool vectors)
{
    const bf16 *at = (const bf16 *)values + (place.row + first) * row + place.head * call.head_dim + place.first_column;
    load_part<W, CHUNK, THREADS>(tile, {at, row, tokens_from(call, first), place.columns}, vectors);
}

/* A warp has two numbers a lane: what all before them sum to. */
__device__ static inline float sum_before(float first, float second)
{
    const int lane = threadIdx.x % WARP;
    float before = 0, total = first + second;
#pragma unroll
    for (int mask = 1; mask < WARP; mask *= 2) {
        const float other = shuffle_xor(total, mask);
        before += lane & mask ? other : 0;
        total += other;
    }
    return before;
}

/* Decays and strengths of a chunk on their way, by one warp, two tokens a lane. Beyond the sequence's end nothing decays. */
struct gates_read {
    float decay[2], strength[2];

    __device__ void read(const scan_call &call, const chunk_place &place, int64_t first)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int64_t t = first + threadIdx.x % WARP * 2 + i, row = place.row + t;
            const bool there = t < call.seq_len;
            decay[i] = there ? call.decay[row * call.decay_row + place.head] : 0;
            strength[i] = there && call.strength ? call.strength[row * call.heads + place.head] : 1;
        }
    }

    /* Later, when they have come. What is no number stays none. */
    __device__ void put(chunk_gates *gates)
    {
        const int token = threadIdx.x % WARP * 2;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            decay[i] = (decay[i] < LEAST_DECAY ? LEAST_DECAY : decay[i]) * LOG2_E;
            gates->strength[token + i] = strength[i];
        }
        const float before = sum_before(decay[0], decay[1]);
        gates->sum[token] = before + decay[0];
        gates->sum[token + 1] = before + (decay[0] + decay[1]);
    }
};

/* --- computing */

/* c[D / 8][4] += A B: A is 16 rows of a tile of K from `row` on, B a tile of K rows. */
template <int K, int D>
__device__ static inline void multiply_tiles(float (*c)[4], const bf16 *a_tile, int row, const bf16 *b_tile)
{
#pragma unroll
    for (int k = 0; k < K / 16; k++) {
        uint32_t a[4], b[4];
        left_of_rows<K>(a, a_tile, row, k);
#pragma unroll
        for (int n = 0; n < D / 8; n += 2) {
            right_of_columns<D>(b, b_tile, 8 * n, k);
            mma_16x8x16(c[n], a, b);
            mma_16x8x16(c[n + 1], a, b + 2);
        }
    }
}

/* Two numbers of bf16, each times its factor. */
__device__ static inline uint32_t scaled_pair(uint32_t pair, float low, float high)
{
    return bf16_pair(float_from_bits(pair << 16) * low, float_from_bits(pair & 0xffff0000u) * high);
}

/* A warp's part of a state of N by W: 16 M rows from `row` on, C columns from `column` on. */
template <int M, int C> struct state_part {
    int row, column;
    float at[M][C / 8][4];
};

/* state += A^T diag(factors) B over a chunk's tokens, A a tile of N, B one of W. factor(t): of token t. */
template <int N, int W, int M, int C, class Factor>
__device__ static inline void add_tokens(state_part<M, C> &state, const bf16 *a_tile, const bf16 *b_tile, const Factor &factor)
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int k = 0; k < K_STEPS; k++) {
        uint32_t a[M][4], b[4];
        float factors[4]; /* of this lane's tokens */
#pragma unroll
        for (int i = 0; i < 4; i++)
            factors[i] = factor(16 * k + lane % 4 * 2 + i / 2 * 8 + i % 2);
#pragma unroll
        for (int m = 0; m < M; m++) {
            left_of_columns<N>(a[m], a_tile, state.row + 16 * m, k);
#pragma unroll
            for (int r = 0; r < 4; r++)
                a[m][r] = scaled_pair(a[m][r], factors[r / 2 * 2], factors[r / 2 * 2 + 1]);
        }
#pragma unroll
        for (int n = 0; n < C / 8; n += 2) {
            right_of_columns<W>(b, b_tile, state.column + 8 * n, k);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_16x8x16(state.at[m][n], a[m], b);
                mma_16x8x16(state.at[m][n + 1], a[m], b + 2);
            }
        }
    }
}

/* What is left at the chunk's end of what a token writes. */
struct left_at_end {
    const chunk_gates &gates;
    __device__ float decay(int token) const
    {
        return exp2_fast(gates.sum[CHUNK - 1] - gates.sum[token]);
    }
    __device__ float operator()(int token) const
    {
        return gates.strength[token] * decay(token);
    }
};

template <int M, int C> __device__ static inline void decay_state(state_part<M, C> &state, float factor)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < C / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                state.at[m][n][i] *= factor;
}

/* To a tile of W. */
template <int W, int M, int C> __device__ static inline void put_state(bf16 *tile, const state_part<M, C> &state)
{
    const int lane = threadIdx.x % WARP, row = state.row + lane / 4, piece = state.column / PIECE;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < C / 8; n++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                uint32_t *at = (uint32_t *)piece_at<W>(tile, row + 16 * m + 8 * half, piece + n) + lane % 4;
                *at = bf16_pair(state.at[m][n][2 * half], state.at[m][n][2 * half + 1]);
            }
}

/* This lane's element of a tile of D: of accumulator n's number i, where row 0 is `row`. */
template <int D> __device__ static inline float element_of(const bf16 *tile, int row, int n, int i)
{
    const int lane = threadIdx.x % WARP;
    const uint32_t pair = ((const uint32_t *)piece_at<D>(tile, row + lane / 4 + i / 2 * 8, n))[lane % 4];
    return float_from_bits(i % 2 ? pair & 0xffff0000u : pair << 16);
}

/* A state's tile, rows without spaces between them. */
template <int N, int W> struct kept_state {
    bf16 at[N * W];
};

/* The same of a chunk's values. */
template <int W> struct kept_values {
    bf16 at[CHUNK * W];
};

/* X of scan_solve.cu: what a chunk's tokens write of what they find new, [CHUNK][CHUNK]. */
struct solved_chunk {
    bf16 at[CHUNK * CHUNK];
};

/* A strength that what it multiplied can be divided by again: nearly none for none. */
__device__ static inline float some_strength(float strength)
{
    return fabsf(strength) < 0x1p-40f ? 0x1p-40f : strength;
}

/* --- launches */

static inline chunk_vectors vectors_of(const struct scan_call *call)
{
    const bool values = call->head_dim % VECTOR == 0;
    chunk_vectors vectors;
    vectors.keys = call->state % VECTOR == 0 && call->k_row % VECTOR == 0 && aligned(call->k) && aligned(call->q);
    vectors.values = values && call->v_row % VECTOR == 0 && aligned(call->v) && aligned(call->dv);
    vectors.packed = values && aligned(call->y) && aligned(call->dy);
    return vectors;
}

#endif
