/*
 * scan_chunks.cu - the recurrence of mixers.h with one decay a head, chunk by chunk on tensor cores.
 *
 * With L the sum of decays from a chunk's first token on, M_ij = exp(L_i - L_j) for j <= i, S the state in front of the chunk, S'
 * the one behind it, u what tokens write (SSD, arXiv:2405.21060, section 6; lightning attention, arXiv:2405.17381):
 *
 *     y_i = scale (sum over j of M_ij (q_i k_j) u_j + exp(L_i) q_i S) + skip v_i
 *     S'  = exp(L_end) S + sum over j of exp(L_end - L_j) k_j u_j^T
 *     u_j = w_j v_j;  of the delta rule u = X (V - diag(exp(L)) K S), X being there beforehand (scan_solve.cu)
 *
 * A block takes W columns of one head of one sequence through its chunks of 64 tokens, the next chunk arriving meanwhile where
 * there is room; a warp has 16 of the tokens, and N / 4 of the state's rows, which stay in registers in fp32. Products are of
 * bf16: weights, keys times what is left of them at the chunk's end, and the state are rounded once each, of the delta rule also
 * X, what it is multiplied by, and u; nothing else is. Exponents are sums of decays between tokens, none above 0. Decays below
 * LEAST_DECAY count as that, whose exponential is 0.
 *
 * Variants: states of up to 64, 128 and 256 rows (tiles of zeros beyond those there are), the last by 32 columns instead of 64,
 * the others too where half of the multiprocessors would have no block, the second where a block's shared memory holds no more;
 * 16-byte accesses where sizes and pointers allow; with the delta rule or without. FLOPs per token and head of N by P, padded:
 * 2 (64 N + 64 P + 2 N P), of the delta rule 2 (64 N + 128 P + 3 N P), on tensor cores; token by token 4 N P and 6 N P, on none.
 * Bytes per token: 4 P a head and 4 N a group (more where the L2 does not hold what its heads share), and for more columns than W
 * again 4 N; of the delta rule 128 a head and W columns. Expected limiter: mma.sync, then the blocks there are: heads times
 * sequences times tiles of columns; of the delta rule latency, of three products in turn and four barriers a chunk.
 */
#include "kernels/scan_chunks.cuh"

enum { CHUNK_THREADS = 128 };

template <int N, int W, bool DELTA> struct forward_tiles {
    static constexpr int STAGES = N <= 128 ? 2 : 1, GATES = 2;
    static constexpr int KEYS = CHUNK * N, VALUES = CHUNK * W, STATE = N * W, STAGE = 2 * KEYS + VALUES;
    static constexpr int SOLVED = DELTA ? CHUNK * CHUNK : 0;
    static constexpr size_t BYTES = (STAGES * STAGE + STATE + VALUES + SOLVED) * sizeof(bf16) + GATES * sizeof(chunk_gates);
    bf16 *first, *state, *other, *solved;
    chunk_gates *gates;
    __device__ forward_tiles()
    {
        first = (bf16 *)dynamic_shared();
        state = first + STAGES * STAGE;
        other = state + STATE;
        solved = other + VALUES;
        gates = (chunk_gates *)(solved + SOLVED);
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
    /* What tokens write, and where rows are put in order to be stored. */
    __device__ bf16 *written(int64_t chunk) const
    {
        return DELTA ? other : v(chunk);
    }
    __device__ bf16 *out(int64_t chunk) const
    {
        return DELTA ? v(chunk) : other;
    }
};

/* X of a chunk, [batch * heads][chunks] of which are `solved`. There is room for one; with the delta rule only. */
template <int N, int W>
__device__ static inline void load_solved(const forward_tiles<N, W, true> &tiles, const solved_chunk *solved, int64_t chunks,
                                          int64_t chunk)
{
    load_part<CHUNK, CHUNK, CHUNK_THREADS>(tiles.solved, {solved[blockIdx.y * chunks + chunk].at, CHUNK, CHUNK, CHUNK}, true);
    copy_async_commit();
}

template <int N, int W, bool DELTA>
__device__ static inline void load_chunk(const forward_tiles<N, W, DELTA> &tiles, const scan_call &call, const chunk_place &place,
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

/* The same where the tile of values holds others by now. */
template <int W>
__device__ static inline void add_skip_again(float (*y)[4], const scan_call &call, const chunk_place &place, int64_t first,
                                             float skip)
{
    const int64_t token = first + threadIdx.x % WARP / 4;
    const int column = threadIdx.x % 4 * 2;
    const bf16 *v = (const bf16 *)call.v + (place.row + token) * call.v_row + place.head * call.head_dim + place.first_column;
#pragma unroll
    for (int n = 0; n < W / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int at = 8 * n + column + i % 2;
            if (token + i / 2 * 8 < call.seq_len && at < place.columns)
                y[n][i] += skip * bf16_to_float(v[i / 2 * 8 * call.v_row + at]);
        }
}

/* --- forward */

/* The delta rule: what is new in a chunk's values becomes what its tokens write. A warp has the 16 tokens from `row` on. */
template <int N, int W> __device__ static inline void write_chunk(const forward_tiles<N, W, true> &tiles, int64_t chunk)
{
    const chunk_gates &gates = tiles.gates[chunk % tiles.GATES];
    const int row = threadIdx.x / WARP * 16, lane = threadIdx.x % WARP;
    const float left[2] = {exp2_fast(gates.sum[row + lane / 4]), exp2_fast(gates.sum[row + lane / 4 + 8])};
    state_part<1, W> found = {row, 0, {}}, written = {row, 0, {}};
    multiply_tiles<N, W>(found.at[0], tiles.k(chunk), row, tiles.state);
#pragma unroll
    for (int n = 0; n < W / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            found.at[0][n][i] = element_of<W>(tiles.v(chunk), row, n, i) - left[i / 2] * found.at[0][n][i];
    put_state<W>(tiles.v(chunk), found); /* each lane where it has read */
    __syncthreads();
    multiply_tiles<CHUNK, W>(written.at[0], tiles.solved, row, tiles.v(chunk));
    put_state<W>(tiles.other, written);
    __syncthreads();
}

/* What a chunk gives: a warp's tokens, from `row` on. */
template <int N, int W, bool DELTA>
__device__ static inline void outputs_of_chunk(const forward_tiles<N, W, DELTA> &tiles, const scan_call &call,
                                               const chunk_place &place, int64_t chunk, bool vectors)
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
    multiply_columns<W, 1, K_STEPS>(y, operand, tiles.written(chunk));
    if (call.skip) {
        const float skip = bf16_to_float(((const bf16 *)call.skip)[place.head]);
        if (DELTA)
            add_skip_again<W>(y[0], call, place, chunk * CHUNK + row, skip);
        else
            add_skip<W>(y[0], tiles.v(chunk), row, skip);
    }
    store_rows<W>((bf16 *)call.y + first * stride + place.head * call.head_dim + place.first_column, stride,
                  tokens_from(call, chunk * CHUNK) - row, place.columns, tiles.out(chunk), row, y[0], ones, vectors);
}

/* To [ROWS][W] in memory. */
template <int ROWS, int W> __device__ static inline void keep_tile(bf16 *to, const bf16 *tile)
{
    enum { PIECES = W / PIECE };
    for (int i = threadIdx.x; i < ROWS * PIECES; i += CHUNK_THREADS)
        *(uint4 *)(to + i * PIECE) = *(const uint4 *)piece_at<W>(tile, i / PIECES, i % PIECES);
}

/* What a launch has beside its call. `solved`: of the delta rule, X. begins [blocks][chunks]: states in front of chunks, which
 * are made instead of y where there is room for them, and beside them, of the delta rule, what tokens write. */
template <int N, int W> struct chunks_launch {
    int64_t chunks;
    chunk_vectors vectors;
    const solved_chunk *solved;
    kept_state<N, W> *begins;
    kept_values<W> *written;
};

template <int N, int W, bool DELTA>
__global__ void __launch_bounds__(CHUNK_THREADS) chunks_forward_kernel(scan_call call, chunks_launch<N, W> launch)
{
    enum { M = N / 64, STAGES = forward_tiles<N, W, DELTA>::STAGES };
    const forward_tiles<N, W, DELTA> tiles;
    const chunk_place place = place_in(call, W);
    const chunk_vectors vectors = launch.vectors;
    const int64_t block = (int64_t)blockIdx.y * gridDim.x + blockIdx.x, chunks = launch.chunks;
    const bool gives = !launch.begins;
    gates_read next = {};
    state_part<M, W> state = {(int)threadIdx.x / WARP * 16 * M, 0, {}};
    if constexpr (DELTA)
        load_solved<N, W>(tiles, launch.solved, chunks, 0);
    load_chunk(tiles, call, place, 0, vectors, gives);
    put_state<W>(tiles.state, state);
    if (threadIdx.x < WARP) {
        next.read(call, place, 0);
        next.put(tiles.gates);
    }
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        const bool another = chunk + 1 < chunks;
        if (STAGES > 1 && another)
            load_chunk(tiles, call, place, chunk + 1, vectors, gives);
        if (threadIdx.x < WARP && another)
            next.read(call, place, (chunk + 1) * CHUNK);
        if (STAGES > 1 && another)
            copy_async_wait<1>();
        else
            copy_async_wait<0>();
        __syncthreads();
        if constexpr (DELTA) {
            write_chunk<N, W>(tiles, chunk);
            if (another)
                load_solved<N, W>(tiles, launch.solved, chunks, chunk + 1);
        }
        if (gives)
            outputs_of_chunk(tiles, call, place, chunk, vectors.packed);
        else
            keep_tile<N, W>(launch.begins[block * chunks + chunk].at, tiles.state);
        if (DELTA && !gives)
            keep_tile<CHUNK, W>(launch.written[block * chunks + chunk].at, tiles.other);
        if (!another)
            break;
        const chunk_gates &gates = tiles.gates[chunk % tiles.GATES];
        decay_state(state, exp2_fast(gates.sum[CHUNK - 1]));
        add_tokens<N, W>(state, tiles.k(chunk), tiles.written(chunk), left_at_end{gates});
        if (threadIdx.x < WARP)
            next.put(&tiles.gates[(chunk + 1) % tiles.GATES]);
        __syncthreads(); /* before the state and the chunk's tiles are written anew */
        put_state<W>(tiles.state, state);
        if (STAGES == 1)
            load_chunk(tiles, call, place, chunk + 1, vectors, gives);
    }
}

/* --- launches */

template <int N, int W> static cudaError_t allow_forward(const struct scan_call *call)
{
    return call->delta ? allow_shared(chunks_forward_kernel<N, W, true>, forward_tiles<N, W, true>::BYTES)
                       : allow_shared(chunks_forward_kernel<N, W, false>, forward_tiles<N, W, false>::BYTES);
}

/* Where a block has 99 KiB, states of 65 to 128 rows have room for 32 columns only. */
bool scan_chunks_fit(const struct scan_call *call)
{
    return call->rows == 1 && call->seq_len >= CHUNK && call->state <= 256 && call->batch * call->heads <= UINT16_MAX &&
           (call->state <= 64    ? allow_forward<64, 64>(call)
            : call->state <= 128 ? allow_forward<128, 32>(call)
                                 : allow_forward<256, 32>(call)) == cudaSuccess;
}

static int64_t chunks_of(const struct scan_call *call)
{
    return (call->seq_len + CHUNK - 1) / CHUNK;
}

size_t scan_chunks_forward_workspace(const struct scan_call *call)
{
    return call->delta ? (size_t)(call->batch * call->heads * chunks_of(call)) * sizeof(struct solved_chunk) : 0;
}

template <int N, int W>
static int forward(const struct cuda_launch *launch, const struct scan_call *call, const struct chunks_memory *memory)
{
    const dim3 grid((unsigned)((call->head_dim + W - 1) / W), (unsigned)(call->batch * call->heads)), block(CHUNK_THREADS);
    const chunks_launch<N, W> rest = {chunks_of(call), vectors_of(call), (const solved_chunk *)memory->solved,
                                      (kept_state<N, W> *)memory->begins, (kept_values<W> *)memory->written};
    const cudaError_t error = allow_forward<N, W>(call);
    if (error != cudaSuccess)
        return error;
    return call->delta ? launch_kernel(chunks_forward_kernel<N, W, true>, grid, block, forward_tiles<N, W, true>::BYTES,
                                       launch->stream, *call, rest)
                       : launch_kernel(chunks_forward_kernel<N, W, false>, grid, block, forward_tiles<N, W, false>::BYTES,
                                       launch->stream, *call, rest);
}

/* Whether blocks of half as many columns find multiprocessors that have nothing to do otherwise. */
static bool many_are_idle(const struct cuda_launch *launch, const struct scan_call *call)
{
    return 2 * ((call->head_dim + 63) / 64) * call->batch * call->heads <= launch->multiprocessors;
}

static int all_chunks(const struct cuda_launch *launch, const struct scan_call *call, const struct chunks_memory *memory)
{
    const bool idle = call->head_dim > 32 && many_are_idle(launch, call);
    const bool little_room = call->state > 64 && allow_forward<128, 64>(call) != cudaSuccess;
    if (!memory->begins && (idle || little_room) && call->state <= 128)
        return call->state <= 64 ? forward<64, 32>(launch, call, memory) : forward<128, 32>(launch, call, memory);
    return call->state <= 64    ? forward<64, 64>(launch, call, memory)
           : call->state <= 128 ? forward<128, 64>(launch, call, memory)
                                : forward<256, 32>(launch, call, memory);
}

/* Strengths are in X. */
int scan_chunks_forward_cuda(const struct cuda_launch *launch, const struct scan_call *call, const struct chunks_memory *memory)
{
    struct scan_call rest = *call;
    if (!call->delta)
        return all_chunks(launch, call, memory);
    const int error = scan_solve_cuda(launch, call, memory->solved);
    rest.strength = NULL;
    return error != cudaSuccess ? error : all_chunks(launch, &rest, memory);
}
