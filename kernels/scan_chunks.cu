/*
 * scan_chunks.cu - the recurrence of mixers.h without the delta rule and with one decay a head, chunk by chunk on tensor cores.
 *
 * With L the sum of decays from a chunk's first token on, M_ij = exp(L_i - L_j) for j <= i, S the state in front of the chunk and
 * S' the one behind it (SSD, arXiv:2405.21060, section 6; lightning attention, arXiv:2405.17381):
 *
 *     y_i = scale (sum over j of M_ij w_j (q_i k_j) v_j + exp(L_i) q_i S) + skip v_i
 *     S'  = exp(L_end) S + sum over j of w_j exp(L_end - L_j) k_j v_j^T
 *
 * A block takes W columns of one head of one sequence through its chunks of 64 tokens, the next chunk arriving meanwhile where
 * there is room; a warp has 16 of the tokens, and N / 4 of the state's rows, which stay in registers in fp32. Products are of
 * bf16: weights, keys times what is left of them at the chunk's end, and the state are rounded once each, nothing else is.
 * Exponents are sums of decays between two tokens, none above 0. Decays below LEAST_DECAY count as that, whose exponential is 0.
 *
 * Variants: states of up to 64, 128 and 256 rows (tiles of zeros beyond those there are), the last by 32 columns instead of 64;
 * 16-byte accesses where sizes and pointers allow. FLOPs per token and head of N by P, padded: 2 (64 N + 64 P + 2 N P), on tensor
 * cores; token by token 4 N P, on none. Bytes per token: 4 P a head and 4 N a group (more where the L2 does not hold what its
 * heads share), and for more columns than W again 4 N. Expected limiter: mma.sync, then the blocks there are: heads times
 * sequences times tiles of columns.
 */
#include "kernels/tile.cuh"

enum { CHUNK = 64, CHUNK_THREADS = 128, N_TILES = CHUNK / 8, K_STEPS = CHUNK / 16 };
#define LOG2_E      1.4426950408889634f
#define LEAST_DECAY -104.0f /* exp(-104) is half of the smallest number */

/* --- where things are */

/* A block's head, sequence and columns. */
struct chunk_place {
    int64_t head, group, row; /* row: of the sequence's first token */
    int first_column, columns;
};

__device__ static inline chunk_place place_in(const scan_call &call, int wide)
{
    chunk_place place;
    place.head = blockIdx.y % call.heads;
    place.group = place.head / (call.heads / call.groups);
    place.row = blockIdx.y / call.heads * call.seq_len;
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

template <int N, int W> struct forward_tiles {
    static constexpr int STAGES = N <= 128 ? 2 : 1, GATES = 2;
    static constexpr int KEYS = CHUNK * N, VALUES = CHUNK * W, STATE = N * W, STAGE = 2 * KEYS + VALUES;
    static constexpr size_t BYTES = (STAGES * STAGE + STATE + VALUES) * sizeof(bf16) + GATES * sizeof(chunk_gates);
    bf16 *first, *state, *out;
    chunk_gates *gates;
    __device__ forward_tiles()
    {
        first = (bf16 *)dynamic_shared();
        state = first + STAGES * STAGE;
        out = state + STATE;
        gates = (chunk_gates *)(out + VALUES);
    }
    __device__ bf16 *q(int64_t chunk) const
    {
        return first + chunk % STAGES * STAGE;
    }
    __device__ bf16 *k(int64_t chunk) const
    {
        return q(chunk) + KEYS;
    }
    __device__ bf16 *v(int64_t chunk) const
    {
        return q(chunk) + 2 * KEYS;
    }
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

/* By one warp, two tokens a lane. Beyond the sequence's end nothing decays. */
__device__ static inline void load_gates(chunk_gates *gates, const scan_call &call, const chunk_place &place, int64_t first)
{
    const int lane = threadIdx.x % WARP;
    float decay[2], before = 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int64_t t = first + 2 * lane + i, row = place.row + t;
        const bool there = t < call.seq_len;
        decay[i] = there ? fmaxf(call.decay[row * call.decay_row + place.head], LEAST_DECAY) * LOG2_E : 0;
        gates->strength[2 * lane + i] = there && call.strength ? call.strength[row * call.heads + place.head] : 1;
    }
    float total = decay[0] + decay[1];
#pragma unroll
    for (int mask = 1; mask < WARP; mask *= 2) {
        const float other = shuffle_xor(total, mask);
        before += lane & mask ? other : 0;
        total += other;
    }
    gates->sum[2 * lane] = before + decay[0];
    gates->sum[2 * lane + 1] = before + (decay[0] + decay[1]);
}

template <int N, int W>
__device__ static inline void load_chunk(const forward_tiles<N, W> &tiles, const scan_call &call, const chunk_place &place,
                                         int64_t chunk, const chunk_vectors &vectors)
{
    const int64_t first = chunk * CHUNK;
    load_keys<N, CHUNK_THREADS>(tiles.q(chunk), call, place, call.q, first, vectors.keys);
    load_keys<N, CHUNK_THREADS>(tiles.k(chunk), call, place, call.k, first, vectors.keys);
    load_values<W, CHUNK_THREADS>(tiles.v(chunk), call, place, call.v, call.v_row, first, vectors.values);
    if (threadIdx.x < WARP)
        load_gates(&tiles.gates[chunk % tiles.GATES], call, place, first);
    copy_async_commit();
}

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

/* Scores q k of 16 tokens from `row` on become what these take of all tokens' values. */
__device__ static inline void weigh_scores(float (*s)[4], const chunk_gates &gates, int row, float scale)
{
    const int lane = threadIdx.x % WARP;
    row += lane / 4;
    const float sums[2] = {gates.sum[row], gates.sum[row + 8]};
#pragma unroll
    for (int n = 0; n < N_TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int column = 8 * n + lane % 4 * 2 + i % 2;
            const float kept = exp2_fast(sums[i / 2] - gates.sum[column]) * gates.strength[column];
            s[n][i] = column <= row + i / 2 * 8 ? s[n][i] * (scale * kept) : 0;
        }
}

/* Two numbers of bf16, each times its factor. */
__device__ static inline uint32_t scaled_pair(uint32_t pair, float low, float high)
{
    return bf16_pair(float_from_bits(pair << 16) * low, float_from_bits(pair & 0xffff0000u) * high);
}

/* state[M][W / 8][4] += A^T diag(factors) B: 16 M columns of a tile A of N from `column` on, and B, over a chunk's tokens.
 * factor(t): of token t. */
template <int N, int W, int M, class Factor>
__device__ static inline void add_tokens(float (*state)[W / 8][4], const bf16 *a_tile, int column, const bf16 *b_tile,
                                         const Factor &factor)
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
            left_of_columns<N>(a[m], a_tile, column + 16 * m, k);
#pragma unroll
            for (int r = 0; r < 4; r++)
                a[m][r] = scaled_pair(a[m][r], factors[r / 2 * 2], factors[r / 2 * 2 + 1]);
        }
#pragma unroll
        for (int n = 0; n < W / 8; n += 2) {
            right_of_columns<W>(b, b_tile, 8 * n, k);
#pragma unroll
            for (int m = 0; m < M; m++) {
                mma_16x8x16(state[m][n], a[m], b);
                mma_16x8x16(state[m][n + 1], a[m], b + 2);
            }
        }
    }
}

/* What is left at the chunk's end of what a token writes. */
struct left_at_end {
    const chunk_gates &gates;
    __device__ float operator()(int token) const
    {
        return gates.strength[token] * exp2_fast(gates.sum[CHUNK - 1] - gates.sum[token]);
    }
};

template <int W, int M> __device__ static inline void decay_state(float (*state)[W / 8][4], float factor)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < W / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                state[m][n][i] *= factor;
}

/* A warp's rows of the state, from `row` on, to a tile. */
template <int W, int M> __device__ static inline void put_state(bf16 *tile, int row, const float (*state)[W / 8][4])
{
    const int lane = threadIdx.x % WARP;
    row += lane / 4;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int n = 0; n < W / 8; n++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                uint32_t *at = (uint32_t *)piece_at<W>(tile, row + 16 * m + 8 * half, n) + lane % 4;
                *at = bf16_pair(state[m][n][2 * half], state[m][n][2 * half + 1]);
            }
}

/* y[W / 8][4] of a warp's tokens += skip v. */
template <int W> __device__ static inline void add_skip(float (*y)[4], const bf16 *v_tile, int row, float skip)
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int n = 0; n < W / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            y[n][i] += skip * bf16_to_float(piece_at<W>(v_tile, row + lane / 4 + i / 2 * 8, n)[lane % 4 * 2 + i % 2]);
}

/* --- forward */

/* What a chunk gives: a warp's tokens, from `row` on. */
template <int N, int W>
__device__ static inline void outputs_of_chunk(const forward_tiles<N, W> &tiles, const scan_call &call, const chunk_place &place,
                                               int64_t chunk, bool vectors)
{
    const chunk_gates &gates = tiles.gates[chunk % tiles.GATES];
    const int row = threadIdx.x / WARP * 16, lane = threadIdx.x % WARP;
    const int64_t first = place.row + chunk * CHUNK + row, stride = (int64_t)call.heads * call.head_dim;
    float s[1][N_TILES][4] = {}, y[1][W / 8][4] = {};
    uint32_t operand[1][K_STEPS][4];
    const float ones[2] = {1, 1};
    multiply_rows<N, 1, N_TILES>(s, tiles.q(chunk), row, tiles.k(chunk));
    weigh_scores(s[0], gates, row, call.scale);
    operand_of<N_TILES>(operand[0], s[0]);
    multiply_tiles<N, W>(y[0], tiles.q(chunk), row, tiles.state);
    const float from_state[2] = {call.scale * exp2_fast(gates.sum[row + lane / 4]),
                                 call.scale * exp2_fast(gates.sum[row + lane / 4 + 8])};
#pragma unroll
    for (int n = 0; n < W / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            y[0][n][i] *= from_state[i / 2];
    multiply_columns<W, 1, K_STEPS>(y, operand, tiles.v(chunk));
    if (call.skip)
        add_skip<W>(y[0], tiles.v(chunk), row, bf16_to_float(((const bf16 *)call.skip)[place.head]));
    store_rows<W>((bf16 *)call.y + first * stride + place.head * call.head_dim + place.first_column, stride,
                  tokens_from(call, chunk * CHUNK) - row, place.columns, tiles.out, row, y[0], ones, vectors);
}

template <int N, int W>
__global__ void __launch_bounds__(CHUNK_THREADS)
    chunks_forward_kernel(scan_call call, int64_t chunks, chunk_vectors vectors)
{
    enum { M = N / 64, STAGES = forward_tiles<N, W>::STAGES };
    const forward_tiles<N, W> tiles;
    const chunk_place place = place_in(call, W);
    const int state_row = threadIdx.x / WARP * 16 * M;
    float state[M][W / 8][4] = {};
    load_chunk<N, W>(tiles, call, place, 0, vectors);
    put_state<W, M>(tiles.state, state_row, state);
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        const bool another = chunk + 1 < chunks;
        if (STAGES > 1 && another)
            load_chunk<N, W>(tiles, call, place, chunk + 1, vectors);
        if (STAGES > 1 && another)
            copy_async_wait<1>();
        else
            copy_async_wait<0>();
        __syncthreads();
        outputs_of_chunk<N, W>(tiles, call, place, chunk, vectors.packed);
        if (!another)
            break;
        const chunk_gates &gates = tiles.gates[chunk % tiles.GATES];
        decay_state<W, M>(state, exp2_fast(gates.sum[CHUNK - 1]));
        add_tokens<N, W, M>(state, tiles.k(chunk), state_row, tiles.v(chunk), left_at_end{gates});
        __syncthreads(); /* before the state and the chunk's tiles are written anew */
        put_state<W, M>(tiles.state, state_row, state);
        if (STAGES == 1)
            load_chunk<N, W>(tiles, call, place, chunk + 1, vectors);
    }
}

/* --- launches */

bool scan_chunks_fit(const struct scan_call *call)
{
    return !call->delta && call->rows == 1 && call->seq_len >= CHUNK && call->state <= 256 &&
           call->batch * call->heads <= UINT16_MAX;
}

static chunk_vectors vectors_of(const struct scan_call *call)
{
    const bool values = call->head_dim % VECTOR == 0;
    chunk_vectors vectors;
    vectors.keys = call->state % VECTOR == 0 && call->k_row % VECTOR == 0 && aligned(call->k) && aligned(call->q);
    vectors.values = values && call->v_row % VECTOR == 0 && aligned(call->v);
    vectors.packed = values && aligned(call->y) && aligned(call->dy);
    return vectors;
}

template <int N, int W> static cudaError_t forward(const struct cuda_launch *launch, const struct scan_call *call)
{
    const dim3 grid((unsigned)((call->head_dim + W - 1) / W), (unsigned)(call->batch * call->heads));
    constexpr size_t bytes = forward_tiles<N, W>::BYTES;
    const cudaError_t error = allow_shared(chunks_forward_kernel<N, W>, bytes);
    return error != cudaSuccess ? error
                                : launch_kernel(chunks_forward_kernel<N, W>, grid, dim3(CHUNK_THREADS), bytes, launch->stream,
                                                *call, (call->seq_len + CHUNK - 1) / CHUNK, vectors_of(call));
}

int scan_chunks_forward_cuda(const struct cuda_launch *launch, const struct scan_call *call)
{
    return call->state <= 64    ? forward<64, 64>(launch, call)
           : call->state <= 128 ? forward<128, 64>(launch, call)
                                : forward<256, 32>(launch, call);
}
