/*
 * scan_delta_backward.cu - gradients of the delta rule by chunks, with the names of scan_chunks.cu and scan_chunks_backward.cu.
 *
 * The forward kernel leaves S in front of all chunks and u, what tokens write, in bf16, beside X (scan_solve.cu). What tokens
 * write is made of what their keys find, f_i = exp(L_i) k_i S + sum over j < i of M_ij (k_i k_j) u_j, as outputs are of what
 * queries find: u_i = w_i (v_i - f_i). With D_j the gradient of u_j and c = w D, the gradient of v and, negative, of f:
 *
 *     dU_j = sum over i of scale M_ij G_ij dy_i + exp(L_end - L_j) k_j dS
 *     C  = X^T dU               since (I + A)^T D = dU and X = (I + A)^-1 diag(w)
 *     dv = c + skip dy,  dw_j = D_j (v_j - f_j) = c_j u_j / w_j^2
 *     dq, and dk as the gradient of keys that are written for: as without the delta rule, with u for w v
 *     dk_j += sum over i > j of -M_ij (c_i u_j) k_i
 *     dk_i += sum over j < i of -M_ij (c_i u_j) k_j - exp(L_i) c_i S^T, as the gradient of keys that find
 *     dg: keys that find are queries whose outputs have the gradient -c, but for their own token
 *     dS  <- exp(L_end) dS + sum over i of exp(L_i) (scale q_i dy_i^T - k_i c_i^T)
 *
 * Four warps have 16 keys each, four 16 queries each, and all a part of dS. Those of the queries are done with them while those
 * of the keys make dU, then C, and what hangs on it. Workspace: that of scan_chunks_backward.cu, X, and W numbers of bf16 for
 * each token and W columns. FLOPs per token and head: 2 (448 N + 448 P + 8 N P) on tensor cores, states and X again among them.
 * Limiter: latency, of four products in turn and four barriers a chunk; mma.sync.
 * The next chunk arrives meanwhile for states of up to 64 rows, and of up to 128 where a block has 178 KiB of shared memory.
 */
#include "kernels/scan_chunks_backward.cuh"

/* --- a block's tiles */

template <int N, int W, int STAGES> struct delta_tiles {
    static constexpr int GATES = 2;
    static constexpr int KEYS = CHUNK * N, VALUES = CHUNK * W, STATE = N * W, SOLVED = CHUNK * CHUNK;
    static constexpr int STAGE = 2 * KEYS + 2 * VALUES + STATE + SOLVED;
    static constexpr size_t BYTES =
        (STAGES * STAGE + STATE + 2 * VALUES) * sizeof(bf16) + GATES * sizeof(chunk_gates) + sizeof(chunk_totals);
};

/* Those of one chunk. In all.v stands u, in all.out c. */
struct delta_operands {
    chunk_operands all;
    bf16 *solved, *du;
};

template <int N, int W, int STAGES> __device__ static inline delta_operands operands_of(int64_t chunk)
{
    using tiles = delta_tiles<N, W, STAGES>;
    bf16 *first = (bf16 *)dynamic_shared(), *d = first + STAGES * tiles::STAGE;
    bf16 *q = first + chunk % STAGES * tiles::STAGE, *k = q + tiles::KEYS, *u = k + tiles::KEYS, *dy = u + tiles::VALUES;
    bf16 *state = dy + tiles::VALUES, *solved = state + tiles::STATE, *c = d + tiles::STATE, *du = c + tiles::VALUES;
    chunk_gates *gates = (chunk_gates *)(du + tiles::VALUES);
    return {{q, k, u, dy, state, d, c, gates + chunk % tiles::GATES, (chunk_totals *)(gates + tiles::GATES)}, solved, du};
}

/* What the forward pass left of a block's head and columns. */
template <int N, int W> struct kept_chunks {
    const kept_state<N, W> *begins;
    const kept_values<W> *written;
    const solved_chunk *solved;
};

template <int N, int W>
__device__ static inline void load_chunk(const delta_operands &to, const scan_call &call, const chunk_place &place, int64_t chunk,
                                         const kept_chunks<N, W> &kept, const chunk_vectors &vectors)
{
    const int64_t first = chunk * CHUNK;
    load_keys<N, THREADS>(to.all.q, call, place, call.q, first, vectors.keys);
    load_keys<N, THREADS>(to.all.k, call, place, call.k, first, vectors.keys);
    load_part<W, CHUNK, THREADS>(to.all.v, {kept.written[chunk].at, W, CHUNK, W}, true);
    load_values<W, THREADS>(to.all.dy, call, place, call.dy, (int64_t)call.heads * call.head_dim, first, vectors.packed);
    load_part<W, N, THREADS>(to.all.state, {kept.begins[chunk].at, W, N, W}, true);
    load_part<CHUNK, CHUNK, THREADS>(to.solved, {kept.solved[chunk].at, CHUNK, CHUNK, CHUNK}, true);
    copy_async_commit();
}

/* --- a warp's 16 keys, from `row` on */

struct key_rows {
    int row;
    uint32_t ds[K_STEPS][4];
    float taken[2],
        found[2]; /* of these rows: what they are in sums over pairs and with dS; with the state, as those that find */
};

/* du, and ds of queries. */
template <int N, int W>
__device__ static inline void gradients_written(const chunk_operands &o, bf16 *to, float scale, key_rows &keys)
{
    const int row = keys.row, mine = row + threadIdx.x % WARP / 4;
    const left_at_end left = {*o.gates};
    const float decays[2] = {left.decay(mine), left.decay(mine + 8)};
    float g[1][N_TILES][4] = {}, d[1][N_TILES][4] = {};
    state_part<1, W> du = {row, 0, {}};
    uint32_t p[1][K_STEPS][4];
    multiply_rows<N, 1, N_TILES>(g, o.k, row, o.q);
    multiply_rows<W, 1, N_TILES>(d, o.v, row, o.dy);
    pairs_of_keys(g[0], d[0], *o.gates, row, scale, keys.taken);
    operand_of<N_TILES>(p[0], g[0]);
    operand_of<N_TILES>(keys.ds, d[0]);
    multiply_tiles<N, W>(du.at[0], o.k, row, o.d);
    scale_rows<W>(du.at[0], decays);
    multiply_columns<W, 1, K_STEPS>(du.at, p, o.dy);
    put_state<W>(to, du);
}

/* c of `row`s, to its tile; dv and dw. */
template <int W>
__device__ static inline void gradients_of_values(const delta_operands &o, const scan_call &call, const chunk_place &place,
                                                  const token_sums &to, const float *strength, int64_t first, int row,
                                                  bool vectors)
{
    const int lane = threadIdx.x % WARP, mine = row + lane / 4;
    const float skip = call.skip ? bf16_to_float(((const bf16 *)call.skip)[place.head]) : 0, ones[2] = {1, 1};
    state_part<1, W> c = {row, 0, {}};
    float dv[W / 8][4], dstrength[2] = {};
#pragma unroll
    for (int k = 0; k < K_STEPS; k++) {
        uint32_t a[4], b[4];
        left_of_columns<CHUNK>(a, o.solved, row, k);
#pragma unroll
        for (int n = 0; n < W / 8; n += 2) {
            right_of_columns<W>(b, o.du, 8 * n, k);
            mma_16x8x16(c.at[0][n], a, b);
            mma_16x8x16(c.at[0][n + 1], a, b + 2);
        }
    }
#pragma unroll
    for (int n = 0; n < W / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            dstrength[i / 2] += c.at[0][n][i] * element_of<W>(o.all.v, row, n, i);
            dv[n][i] = c.at[0][n][i] + skip * element_of<W>(o.all.dy, row, n, i);
        }
    store_rows<W>((bf16 *)call.dv + (first + row) * call.v_row + place.head * call.head_dim + place.first_column, call.v_row,
                  to.tokens - row, place.columns, o.all.out, row, dv, ones, vectors);
    warp_barrier(); /* before the rows are written anew */
    put_state<W>(o.all.out, c);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float sum = row_sum(dstrength[half]);
        const int token = mine + 8 * half;
        if (lane % 4 == 0 && token < to.tokens) {
            const float w = some_strength(strength ? strength[(first + token) * call.heads + place.head] : 1);
            to.at[(int64_t)token * to.size + 2 * to.state + 1] = sum / w / w;
        }
    }
}

/* Of 16 keys: u c of later keys that find and c u of earlier ones become ds, in `later`. */
__device__ static inline void pairs_that_find(float (*later)[4], const float (*earlier)[4], const chunk_gates &gates, int row)
{
    const int lane = threadIdx.x % WARP;
    row += lane / 4;
    const float sums[2] = {gates.sum[row], gates.sum[row + 8]};
#pragma unroll
    for (int n = 0; n < N_TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int other = 8 * n + lane % 4 * 2 + i % 2, mine = row + i / 2 * 8;
            const float apart = sums[i / 2] - gates.sum[other], kept = exp2_fast(other > mine ? -apart : apart);
            later[n][i] = other == mine ? 0 : -kept * (other > mine ? later[n][i] : earlier[n][i]);
        }
}

/* changes[2] += ds G of later keys less that of earlier ones. */
__device__ static inline void add_changes(const float (*ds)[4], const float (*g)[4], int row, float changes[2])
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int n = 0; n < N_TILES; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const bool is_later = 8 * n + lane % 4 * 2 + i % 2 > row + lane / 4 + i / 2 * 8;
            changes[i / 2] += is_later ? ds[n][i] * g[n][i] : -ds[n][i] * g[n][i];
        }
}

/* dk, by 64 columns. */
template <int N, int W>
__device__ static inline void gradients_of_keys(const chunk_operands &o, const token_sums &to, key_rows &keys)
{
    const int row = keys.row, mine = row + threadIdx.x % WARP / 4;
    const left_at_end left = {*o.gates};
    const float decays[2] = {left.decay(mine), left.decay(mine + 8)};
    const float from_state[2] = {-exp2_fast(o.gates->sum[mine]), -exp2_fast(o.gates->sum[mine + 8])};
    float g[1][N_TILES][4] = {}, later[1][N_TILES][4] = {}, earlier[1][N_TILES][4] = {};
    uint32_t both[K_STEPS][4];
    multiply_rows<W, 1, N_TILES>(later, o.v, row, o.out);
    multiply_rows<W, 1, N_TILES>(earlier, o.out, row, o.v);
    pairs_that_find(later[0], earlier[0], *o.gates, row);
    multiply_rows<N, 1, N_TILES>(g, o.k, row, o.k);
    add_changes(later[0], g[0], row, keys.taken);
    operand_of<N_TILES>(both, later[0]);
#pragma unroll 1
    for (int column = 0; column < N; column += 64) {
        float c[1][N_TILES][4] = {}, found[1][N_TILES][4] = {};
        multiply_rows<W, 1, N_TILES>(c, o.v, row, o.d + column * tile_row<W>::STRIDE);
        scale_rows<64>(c[0], decays);
        multiply_rows<W, 1, N_TILES>(found, o.out, row, o.state + column * tile_row<W>::STRIDE);
        scale_rows<64>(found[0], from_state);
#pragma unroll
        for (int n = 0; n < N_TILES; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float k = element_of<N>(o.k, row, column / 8 + n, i);
                keys.taken[i / 2] += c[0][n][i] * k;
                keys.found[i / 2] += found[0][n][i] * k;
                c[0][n][i] += found[0][n][i];
            }
        add_columns<N>(c[0], keys.ds, o.q, column);
        add_columns<N>(c[0], both, o.k, column);
        put_sums(to, row, to.state, column, c[0]);
    }
}

/* Of gradients of decays what these rows are. */
__device__ static inline void put_totals(const chunk_operands &o, const key_rows &keys)
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int token = keys.row + lane / 4 + 8 * half;
        const float taken = row_sum(keys.taken[half]), found = row_sum(keys.found[half]);
        if (lane % 4 == 0) {
            o.totals->taken[token] = taken - found;
            o.totals->found[token] = found;
        }
    }
}

/* The skip's gradient, of 16 tokens: v is not among the tiles. */
template <int W>
__device__ static inline float skip_gradient(const chunk_operands &o, const scan_call &call, const chunk_place &place,
                                             int64_t first, int row)
{
    const int64_t token = first + row + threadIdx.x % WARP / 4;
    const bf16 *v = (const bf16 *)call.v + (place.row + token) * call.v_row + place.head * call.head_dim + place.first_column;
    float sum = 0;
    for (int n = 0; n < W / 8; n++)
        for (int i = 0; i < 4; i++) {
            const int column = 8 * n + threadIdx.x % 4 * 2 + i % 2;
            if (token + i / 2 * 8 < call.seq_len && column < place.columns)
                sum += element_of<W>(o.dy, row, n, i) * bf16_to_float(v[i / 2 * 8 * call.v_row + column]);
        }
    return sum;
}

/* --- the kernel */

/* A chunk that has come, of whose tokens the first is number `first`: d becomes the gradient of the state in front of it. Gives
 * back this thread's part of the skip's. */
template <int N, int W>
__device__ static inline float chunk_backward(const delta_operands &here, const scan_call &call, const chunk_place &place,
                                              const token_sums &to, const float *strength, int64_t first, block_gradient<N, W> &d,
                                              bool vectors)
{
    const int warp = threadIdx.x / WARP, row = warp % KEYS_WARPS * 16;
    const bool has_keys = warp < KEYS_WARPS;
    key_rows keys = {row, {}, {}, {}};
    float dskip = 0;
    if (has_keys)
        gradients_written<N, W>(here.all, here.du, call.scale, keys);
    else {
        (void)queries_of_chunk<N, W>(here.all, call, to, row);
        dskip = call.skip ? skip_gradient<W>(here.all, call, place, first, row) : 0;
    }
    __syncthreads();
    if (has_keys)
        gradients_of_values<W>(here, call, place, to, strength, place.row + first, row, vectors);
    __syncthreads();
    if (has_keys) {
        gradients_of_keys<N, W>(here.all, to, keys);
        put_totals(here.all, keys);
    }
    d.pass(here.all, call.scale);
    add_tokens<N, W>(d.part, here.all.k, here.all.out, taken_of_state{*here.all.gates, -1});
    return dskip;
}

/* Chunks from `end` - 1 down to `begin`; those behind have left dS. The call has no strengths: they are in X, and beside it. */
template <int N, int W, int STAGES>
__global__ void __launch_bounds__(THREADS) delta_backward_kernel(scan_call call, const float *strength, chunks_room room,
                                                                 int64_t begin, int64_t end, chunk_vectors vectors)
{
    const chunk_place place = place_in(call, W);
    const int64_t block = (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    const kept_chunks<N, W> kept = {(const kept_state<N, W> *)room.begins + block * room.chunks,
                                    (const kept_values<W> *)room.written + block * room.chunks,
                                    room.solved + blockIdx.y * room.chunks};
    const int warp = threadIdx.x / WARP, size = 2 * call.state + 2;
    const bool is_last = end == room.chunks;
    float *left = room.d + block * N * W, dskip = 0;
    block_gradient<N, W> d(is_last ? NULL : left);
    gates_read gates = {};
    load_chunk<N, W>(operands_of<N, W, STAGES>(end - 1), call, place, end - 1, kept, vectors);
    put_state<W>(operands_of<N, W, STAGES>(end - 1).all.d, d.part);
    if (warp == 0) {
        gates.read(call, place, (end - 1) * CHUNK);
        gates.put(operands_of<N, W, STAGES>(end - 1).all.gates);
    }
    for (int64_t chunk = end - 1; chunk >= begin; chunk--) {
        const bool another = chunk > begin;
        const delta_operands here = operands_of<N, W, STAGES>(chunk);
        const int64_t first = chunk * CHUNK;
        const token_sums to = {room.sums + (block * SPAN + first - begin * CHUNK) * size, size, call.state,
                               tokens_from(call, first)};
        if (STAGES > 1 && another)
            load_chunk<N, W>(operands_of<N, W, STAGES>(chunk - 1), call, place, chunk - 1, kept, vectors);
        if (warp == 0 && another)
            gates.read(call, place, first - CHUNK);
        if (STAGES > 1 && another)
            copy_async_wait<1>();
        else
            copy_async_wait<0>();
        __syncthreads();
        dskip += chunk_backward<N, W>(here, call, place, to, strength, first, d, vectors.values);
        if (warp == 0 && another)
            gates.put(operands_of<N, W, STAGES>(chunk - 1).all.gates);
        __syncthreads();
        if (warp == 0)
            decays_of_chunk<true>(*here.all.totals, to);
        if (another)
            put_state<W>(here.all.d, d.part);
        if (STAGES == 1 && another)
            load_chunk<N, W>(operands_of<N, W, STAGES>(chunk - 1), call, place, chunk - 1, kept, vectors);
    }
    d.leave(left);
    dskip = block_sum(dskip, operands_of<N, W, STAGES>(0).all.totals->scratch);
    float *skip = room.skips + (int64_t)blockIdx.x * gridDim.y + blockIdx.y;
    if (threadIdx.x == 0)
        *skip = dskip + (is_last ? 0 : *skip);
}

/* --- launches */

template <int N, int W, int STAGES> static cudaError_t allow_backward(void)
{
    return allow_shared(delta_backward_kernel<N, W, STAGES>, delta_tiles<N, W, STAGES>::BYTES);
}

bool scan_delta_fit_backward(const struct scan_call *call)
{
    return (call->state <= 64    ? allow_backward<64, 64, 2>()
            : call->state <= 128 ? allow_backward<128, 64, 1>()
                                 : allow_backward<256, 32, 1>()) == cudaSuccess;
}

template <int N, int W, int STAGES>
static int span_backward(const struct cuda_launch *launch, const struct scan_call *call, const struct chunks_room *room,
                         int64_t begin, int64_t end)
{
    const dim3 grid((unsigned)room->tiles, (unsigned)(call->batch * call->heads));
    const cudaError_t error = allow_backward<N, W, STAGES>();
    struct scan_call rest = *call;
    rest.strength = NULL;
    return error != cudaSuccess
               ? error
               : launch_kernel(delta_backward_kernel<N, W, STAGES>, grid, dim3(THREADS), delta_tiles<N, W, STAGES>::BYTES,
                               launch->stream, rest, call->strength, *room, begin, end, vectors_of(call));
}

int scan_delta_span_cuda(const struct cuda_launch *launch, const struct scan_call *call, const struct chunks_room *room,
                         int64_t begin, int64_t end)
{
    if (call->state <= 64)
        return span_backward<64, 64, 2>(launch, call, room, begin, end);
    if (call->state > 128)
        return span_backward<256, 32, 1>(launch, call, room, begin, end);
    return allow_backward<128, 64, 2>() == cudaSuccess ? span_backward<128, 64, 2>(launch, call, room, begin, end)
                                                       : span_backward<128, 64, 1>(launch, call, room, begin, end);
}
