/*
 * scan_chunks_backward.cuh - the parts that the backward passes of the scan by chunks share, with and without the delta rule.
 *
 * scan_chunks_backward.cu explains what they compute.
 */
#ifndef MSIM_KERNELS_SCAN_CHUNKS_BACKWARD_CUH
#define MSIM_KERNELS_SCAN_CHUNKS_BACKWARD_CUH

#include "kernels/scan_chunks.cuh"

enum { THREADS = 256, WARPS = THREADS / WARP, KEYS_WARPS = CHUNK / 16, SPAN_CHUNKS = 4, SPAN = SPAN_CHUNKS * CHUNK };

/* --- the workspace */

struct chunks_room {
    void *begins;         /* kept_state[blocks][chunks] */
    solved_chunk *solved; /* [batch * heads][chunks], of the delta rule */
    void *written;        /* kept_values[blocks][chunks], of the delta rule */
    float *d;             /* [blocks][N W], as threads hold it */
    float *sums;          /* [blocks][SPAN][2 state + 2] */
    float *skips;         /* [tiles][batch][heads] */
    int64_t chunks, tiles;
};

/* Chunks from `end` - 1 down to `begin` of the delta rule; those behind have left dS (scan_delta_backward.cu). */
int scan_delta_span_cuda(const struct cuda_launch *launch, const struct scan_call *call, const struct chunks_room *room,
                         int64_t begin, int64_t end);
bool scan_delta_fit_backward(const struct scan_call *call);

/* --- a block's tiles */

/* What tokens are in sums over pairs and with states: for gradients of decays. */
struct chunk_totals {
    float taken[CHUNK]; /* as keys: by later queries, and of dS */
    float given[CHUNK]; /* as queries: of earlier keys, and of the state */
    float first[CHUNK]; /* of these what is the state's */
    float found[CHUNK]; /* the same as keys that find what there was (the delta rule) */
    float kept[WARPS];  /* what dS takes of the state, by warps */
    float scratch[WARP];
};

/* Those of one chunk. */
struct chunk_operands {
    bf16 *q, *k, *v, *dy, *state, *d, *out;
    chunk_gates *gates;
    chunk_totals *totals;
};

/* --- a warp's 16 tokens */

/* The sum over the lanes that share rows. */
__device__ static inline float row_sum(float value)
{
    value += shuffle_xor(value, 1);
    return value + shuffle_xor(value, 2);
}

/* Where a block leaves what it has of tokens: those of a chunk. */
struct token_sums {
    float *at;
    int size, state, tokens;
};

/* 16 x 64 numbers from `row` on and from `column` on of a part of the sums that begins at `part`. */
__device__ static inline void put_sums(const token_sums &to, int row, int part, int column, const float (*c)[4])
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int n = 0; n < N_TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int token = row + lane / 4 + i / 2 * 8, at = column + 8 * n + lane % 4 * 2 + i % 2;
            if (token < to.tokens && at < to.state)
                to.at[(int64_t)token * to.size + part + at] = c[n][i];
        }
}

/* c[N_TILES][4] += ds by 64 columns of a tile of N, from `column` on. */
template <int N> __device__ static inline void add_columns(float (*c)[4], const uint32_t (*ds)[4], const bf16 *tile, int column)
{
#pragma unroll
    for (int k = 0; k < K_STEPS; k++)
#pragma unroll
        for (int n = 0; n < N_TILES; n += 2) {
            uint32_t b[4];
            right_of_columns<N>(b, tile, column + 8 * n, k);
            mma_16x8x16(c[n], ds[k], b);
            mma_16x8x16(c[n + 1], ds[k], b + 2);
        }
}

/* Gradients of a warp's keys or queries, `mine`, by 64 columns: of `others` through ds, and of a state through its tile and
 * values (or dy) times factor. with_state[2] += what they are in products with the state. */
template <int N, int W>
__device__ static inline void keys_gradients(const token_sums &to, int part, int row, const bf16 *mine, const bf16 *others,
                                             const uint32_t (*ds)[4], const bf16 *values, const bf16 *state,
                                             const float factor[2], float with_state[2])
{
#pragma unroll 1
    for (int column = 0; column < N; column += 64) {
        float c[1][N_TILES][4] = {};
        multiply_rows<W, 1, N_TILES>(c, values, row, state + column * tile_row<W>::STRIDE);
        scale_rows<64>(c[0], factor);
#pragma unroll
        for (int n = 0; n < N_TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                with_state[i / 2] += c[0][n][i] * element_of<N>(mine, row, column / 8 + n, i);
        add_columns<N>(c[0], ds, others, column);
        put_sums(to, row, part, column, c[0]);
    }
}

/* G and D of 16 keys become scale M G and ds; pairs[2] += ds G of later queries. */
__device__ static inline void pairs_of_keys(float (*g)[4], float (*d)[4], const chunk_gates &gates, int row, float scale,
                                            float pairs[2])
{
    const int lane = threadIdx.x % WARP;
    row += lane / 4;
    const float sums[2] = {gates.sum[row], gates.sum[row + 8]}, strengths[2] = {gates.strength[row], gates.strength[row + 8]};
#pragma unroll
    for (int n = 0; n < N_TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int query = 8 * n + lane % 4 * 2 + i % 2, key = row + i / 2 * 8;
            const float kept = query >= key ? scale * exp2_fast(gates.sum[query] - sums[i / 2]) : 0;
            d[n][i] *= kept * strengths[i / 2];
            pairs[i / 2] += query > key ? d[n][i] * g[n][i] : 0;
            g[n][i] *= kept;
        }
}

/* G and D of 16 queries: D becomes ds; pairs[2] += ds G of earlier keys; *same += dy v of tokens themselves. */
__device__ static inline void pairs_of_queries(const float (*g)[4], float (*d)[4], const chunk_gates &gates, int row, float scale,
                                               float pairs[2], float *same)
{
    const int lane = threadIdx.x % WARP;
    row += lane / 4;
    const float sums[2] = {gates.sum[row], gates.sum[row + 8]};
#pragma unroll
    for (int n = 0; n < N_TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = 8 * n + lane % 4 * 2 + i % 2, query = row + i / 2 * 8;
            *same += query == key ? d[n][i] : 0;
            d[n][i] *= query >= key ? scale * exp2_fast(sums[i / 2] - gates.sum[key]) * gates.strength[key] : 0;
            pairs[i / 2] += query > key ? d[n][i] * g[n][i] : 0;
        }
}

/* A warp's queries: dq, and of the skip's gradient what these tokens are. */
template <int N, int W>
__device__ static inline float queries_of_chunk(const chunk_operands &o, const scan_call &call, const token_sums &to, int row)
{
    const int lane = threadIdx.x % WARP, mine = row + lane / 4;
    const float factor[2] = {call.scale * exp2_fast(o.gates->sum[mine]), call.scale * exp2_fast(o.gates->sum[mine + 8])};
    float g[1][N_TILES][4] = {}, d[1][N_TILES][4] = {}, pairs[2] = {}, first[2] = {}, same = 0;
    uint32_t ds[K_STEPS][4];
    multiply_rows<N, 1, N_TILES>(g, o.q, row, o.k);
    multiply_rows<W, 1, N_TILES>(d, o.dy, row, o.v);
    pairs_of_queries(g[0], d[0], *o.gates, row, call.scale, pairs, &same);
    operand_of<N_TILES>(ds, d[0]);
    keys_gradients<N, W>(to, 0, row, o.q, o.k, ds, o.dy, o.state, factor, first);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float of_state = row_sum(first[half]), all = of_state + row_sum(pairs[half]);
        if (lane % 4 == 0) {
            o.totals->first[mine + 8 * half] = of_state;
            o.totals->given[mine + 8 * half] = all;
        }
    }
    return same;
}

/* --- the gradient of the state */

/* What a query adds to it. */
struct taken_of_state {
    const chunk_gates &gates;
    float scale;
    __device__ float operator()(int token) const
    {
        return scale * exp2_fast(gates.sum[token]);
    }
};

template <int N, int W> struct block_gradient {
    static constexpr int ROW_PARTS = N / 16 < WARPS ? N / 16 : WARPS, M = N / 16 / ROW_PARTS, C = W * ROW_PARTS / WARPS;
    static constexpr int NUMBERS = M * (C / 8) * 4; /* a thread's */
    state_part<M, C> part;

    /* As the launch before left it. */
    __device__ block_gradient(const float *from)
    {
        const int warp = threadIdx.x / WARP;
        part.row = warp % ROW_PARTS * 16 * M;
        part.column = warp / ROW_PARTS * C;
        float *to = &part.at[0][0][0];
#pragma unroll
        for (int i = 0; i < NUMBERS; i++)
            to[i] = from ? from[i * THREADS + (int)threadIdx.x] : 0;
    }

    __device__ void leave(float *to) const
    {
        const float *from = &part.at[0][0][0];
#pragma unroll
        for (int i = 0; i < NUMBERS; i++)
            to[i * THREADS + (int)threadIdx.x] = from[i];
    }

    /* That of the state behind a chunk becomes that of the one in front. */
    __device__ void pass(const chunk_operands &o, float scale)
    {
        const float decay = exp2_fast(o.gates->sum[CHUNK - 1]);
        float sum = 0;
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < C / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    sum += part.at[m][n][i] * element_of<W>(o.state, part.row + 16 * m, part.column / 8 + n, i);
        sum = warp_sum(sum);
        if (threadIdx.x % WARP == 0)
            o.totals->kept[threadIdx.x / WARP] = decay * sum;
        decay_state(part, decay);
        add_tokens<N, W>(part, o.q, o.dy, taken_of_state{*o.gates, scale});
    }
};

/* By one warp: gradients of a chunk's decays. */
template <bool DELTA> __device__ static inline void decays_of_chunk(const chunk_totals &t, const token_sums &to)
{
    const int lane = threadIdx.x % WARP;
    float change[2];
    for (int i = 0; i < 2; i++)
        change[i] = t.taken[2 * lane + i] - t.given[2 * lane + i];
    const float found = DELTA ? t.found[2 * lane] + t.found[2 * lane + 1] : 0;
    const float all = warp_sum(t.first[2 * lane] + t.first[2 * lane + 1] + found + (lane < WARPS ? t.kept[lane] : 0)),
                before = all + sum_before(change[0], change[1]);
    for (int i = 0; i < 2; i++) {
        const int token = 2 * lane + i;
        if (token < to.tokens)
            to.at[(int64_t)token * to.size + 2 * to.state] = before + (i ? change[0] : 0);
    }
}

#endif
