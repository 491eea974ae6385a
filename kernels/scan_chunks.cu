/*
 * scan_chunks.cu - the recurrence of mixers.h without the delta rule and with one decay a head, chunk by chunk on tensor cores.
 *
 * With L the sum of decays from a chunk's first token on, M_ij = exp(L_i - L_j) for j <= i, S the state in front of the chunk, S'
 * the one behind it (SSD, arXiv:2405.21060, section 6; lightning attention, arXiv:2405.17381):
 *
 *     y_i = scale (sum over j of M_ij w_j (q_i k_j) v_j + exp(L_i) q_i S) + skip v_i
 *     S'  = exp(L_end) S + sum over j of w_j exp(L_end - L_j) k_j v_j^T
 *
 * A block takes W columns of one head of one sequence through its chunks of 64 tokens, the next chunk arriving meanwhile where
 * there is room; a warp has 16 of the tokens, and N / 4 of the state's rows, which stay in registers in fp32. Products are of
 * bf16: weights, keys times what is left of them at the chunk's end, and the state are rounded once each, nothing else is.
 * Exponents are sums of decays between tokens, none above 0. Decays below LEAST_DECAY count as that, whose exponential is 0.
 *
 * Variants: states of up to 64, 128 and 256 rows (tiles of zeros beyond those there are), the last by 32 columns instead of 64,
 * the others too where half of the multiprocessors would have no block, the second where a block's shared memory holds no more;
 * 16-byte accesses where sizes and pointers allow. FLOPs
 * per token and head of N by P, padded: 2 (64 N + 64 P + 2 N P), on tensor cores; token by token 4 N P, on none. Bytes per
 * token: 4 P a head and 4 N a group (more where the L2 does not hold what its heads share), and for more columns than W again
 * 4 N. Expected limiter: mma.sync, then the blocks there are: heads times sequences times tiles of columns.
 */
#include "kernels/scan_chunks.cuh"

enum { CHUNK_THREADS = 128 };

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

template <int N, int W>
__device__ static inline void load_chunk(const forward_tiles<N, W> &tiles, const scan_call &call, const chunk_place &place,
                                         int64_t chunk, const chunk_vectors &vectors, bool queries)
{
    const int64_t first = chunk * CHUNK;
    if (queries)
        load_keys<N, CHUNK_THREADS>(tiles.q(chunk), call, place, call.q, first, vectors.keys);
    load_keys<N, CHUNK_THREADS>(tiles.k(chunk), call, place, call.k, first, vectors.keys);
    load_values<W, CHUNK_THREADS>(tiles.v(chunk), call, place, call.v, call.v_row, first, vectors.values);
    copy_async_commit();
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

/* y[W / 8][4] of a warp's tokens += skip v. */
template <int W> __device__ static inline void add_skip(float (*y)[4], const bf16 *v_tile, int row, float skip)
{
#pragma unroll
    for (int n = 0; n < W / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            y[n][i] += skip * element_of<W>(v_tile, row, n, i);
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
    const float ones[2] = {1, 1}, from_state[2] = {call.scale * exp2_fast(gates.sum[row + lane / 4]),
                                                   call.scale * exp2_fast(gates.sum[row + lane / 4 + 8])};
    float s[1][N_TILES][4] = {}, y[1][W / 8][4] = {};
    uint32_t operand[1][K_STEPS][4];
    multiply_tiles<N, W>(y[0], tiles.q(chunk), row, tiles.state);
    scale_rows<W>(y[0], from_state);
    multiply_rows<N, 1, N_TILES>(s, tiles.q(chunk), row, tiles.k(chunk));
    weigh_scores(s[0], gates, row, call.scale);
    operand_of<N_TILES>(operand[0], s[0]);
    multiply_columns<W, 1, K_STEPS>(y, operand, tiles.v(chunk));
    if (call.skip)
        add_skip<W>(y[0], tiles.v(chunk), row, bf16_to_float(((const bf16 *)call.skip)[place.head]));
    store_rows<W>((bf16 *)call.y + first * stride + place.head * call.head_dim + place.first_column, stride,
                  tokens_from(call, chunk * CHUNK) - row, place.columns, tiles.out, row, y[0], ones, vectors);
}

template <int N, int W> __device__ static inline void keep_state(kept_state<N, W> *to, const bf16 *tile)
{
    enum { PIECES = W / PIECE };
    for (int i = threadIdx.x; i < N * PIECES; i += CHUNK_THREADS)
        *(uint4 *)(to->at + i * PIECE) = *(const uint4 *)piece_at<W>(tile, i / PIECES, i % PIECES);
}

/* y, or with `begins` [blocks][chunks] the states in front of chunks instead. */
template <int N, int W>
__global__ void __launch_bounds__(CHUNK_THREADS)
    chunks_forward_kernel(scan_call call, int64_t chunks, chunk_vectors vectors, kept_state<N, W> *begins)
{
    enum { M = N / 64, STAGES = forward_tiles<N, W>::STAGES };
    const forward_tiles<N, W> tiles;
    const chunk_place place = place_in(call, W);
    const int64_t block = (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    gates_read next = {};
    state_part<M, W> state = {(int)threadIdx.x / WARP * 16 * M, 0, {}};
    load_chunk<N, W>(tiles, call, place, 0, vectors, !begins);
    put_state<W>(tiles.state, state);
    if (threadIdx.x < WARP) {
        next.read(call, place, 0);
        next.put(tiles.gates);
    }
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        const bool another = chunk + 1 < chunks;
        if (STAGES > 1 && another)
            load_chunk<N, W>(tiles, call, place, chunk + 1, vectors, !begins);
        if (threadIdx.x < WARP && another)
            next.read(call, place, (chunk + 1) * CHUNK);
        if (STAGES > 1 && another)
            copy_async_wait<1>();
        else
            copy_async_wait<0>();
        __syncthreads();
        if (begins)
            keep_state<N, W>(begins + block * chunks + chunk, tiles.state);
        else
            outputs_of_chunk<N, W>(tiles, call, place, chunk, vectors.packed);
        if (!another)
            break;
        const chunk_gates &gates = tiles.gates[chunk % tiles.GATES];
        decay_state(state, exp2_fast(gates.sum[CHUNK - 1]));
        add_tokens<N, W>(state, tiles.k(chunk), tiles.v(chunk), left_at_end{gates});
        if (threadIdx.x < WARP)
            next.put(&tiles.gates[(chunk + 1) % tiles.GATES]);
        __syncthreads(); /* before the state and the chunk's tiles are written anew */
        put_state<W>(tiles.state, state);
        if (STAGES == 1)
            load_chunk<N, W>(tiles, call, place, chunk + 1, vectors, !begins);
    }
}

/* --- launches */

template <int N, int W> static cudaError_t allow_forward(void)
{
    return allow_shared(chunks_forward_kernel<N, W>, forward_tiles<N, W>::BYTES);
}

/* Where a block has 99 KiB, states of 65 to 128 rows have room for 32 columns only. */
bool scan_chunks_fit(const struct scan_call *call)
{
    return !call->delta && call->rows == 1 && call->seq_len >= CHUNK && call->state <= 256 &&
           call->batch * call->heads <= UINT16_MAX &&
           (call->state <= 64    ? allow_forward<64, 64>()
            : call->state <= 128 ? allow_forward<128, 32>()
                                 : allow_forward<256, 32>()) == cudaSuccess;
}

template <int N, int W> static cudaError_t forward(const struct cuda_launch *launch, const struct scan_call *call, void *begins)
{
    const dim3 grid((unsigned)((call->head_dim + W - 1) / W), (unsigned)(call->batch * call->heads));
    const cudaError_t error = allow_forward<N, W>();
    return error != cudaSuccess
               ? error
               : launch_kernel(chunks_forward_kernel<N, W>, grid, dim3(CHUNK_THREADS), forward_tiles<N, W>::BYTES, launch->stream,
                               *call, (call->seq_len + CHUNK - 1) / CHUNK, vectors_of(call), (kept_state<N, W> *)begins);
}

/* Whether blocks of half as many columns find multiprocessors that have nothing to do otherwise. */
static bool many_are_idle(const struct cuda_launch *launch, const struct scan_call *call)
{
    return 2 * ((call->head_dim + 63) / 64) * call->batch * call->heads <= launch->multiprocessors;
}

int scan_chunks_forward_cuda(const struct cuda_launch *launch, const struct scan_call *call, void *begins)
{
    const bool idle = call->head_dim > 32 && many_are_idle(launch, call);
    const bool little_room = call->state > 64 && allow_forward<128, 64>() != cudaSuccess;
    if (!begins && (idle || little_room) && call->state <= 128)
        return call->state <= 64 ? forward<64, 32>(launch, call, NULL) : forward<128, 32>(launch, call, NULL);
    return call->state <= 64    ? forward<64, 64>(launch, call, begins)
           : call->state <= 128 ? forward<128, 64>(launch, call, begins)
                                : forward<256, 32>(launch, call, begins);
}
