/*
 * scan_chunks_backward.cu - gradients of the scan by chunks (scan_chunks.cu) without the delta rule, with its names and its
 * rounding.
 *
 * The forward kernel leaves the states in front of all chunks, in bf16. Then a block takes W columns of one head of one
 * sequence from its last chunk to the first, with dS, the gradient of the state behind a chunk, in registers. With D_ij = dy_i
 * v_j and G_ij = q_i k_j, ds_ij = scale M_ij w_j D_ij:
 *
 *     dv_j = w_j dv'_j + skip dy_j,  dv'_j = sum over i of scale M_ij G_ij dy_i + exp(L_end - L_j) k_j dS,  dw_j = dv'_j v_j
 *     dk_j = sum over i of ds_ij q_i + w_j exp(L_end - L_j) v_j dS^T
 *     dq_i = sum over j of ds_ij k_j + scale exp(L_i) dy_i S^T
 *     dg_t = sum over j < t <= i of ds_ij G_ij, and of what keys before t add to dS, queries from t on take of S, S adds to dS
 *     dS  <- exp(L_end) dS + sum over i of scale exp(L_i) q_i dy_i^T
 *
 * Four warps have 16 keys each, four 16 queries each, and all a part of dS. The sum of dg over pairs is one over tokens, of
 * what they are in pairs as queries less what they are as keys; both are sums of the same fp32 numbers, so little is lost. Of
 * states, S and dS are in bf16: where decays hardly are, so that states grow over chunks, dg is off by 2.5e-3 of its norm in the
 * mean of many cases and up to 6e-3 in one (2e-3 token by token). What columns and heads add to together is left in the
 * workspace, for SPAN tokens a launch, and added by scan_sums_cuda in an order of its own, so the bits do not change from run to
 * run.
 *
 * Workspace: N W numbers of bf16 for each chunk of 64 tokens and W columns, N W of fp32 for each W columns, 2 N + 2 for each of
 * SPAN tokens. FLOPs per token and head: 2 (256 N + 192 P + 5 N P) on tensor cores, states again among them. Limiter: mma.sync.
 */
#include "kernels/scan_chunks_backward.cuh"

/* --- the workspace */

static size_t room_of(const struct scan_call *call, struct chunks_room *room)
{
    const int64_t n = call->state <= 64 ? 64 : call->state <= 128 ? 128 : 256, w = n == 256 ? 32 : 64;
    const int64_t tiles = (call->head_dim + w - 1) / w, chunks = (call->seq_len + CHUNK - 1) / CHUNK;
    const int64_t blocks = tiles * call->batch * call->heads;
    const size_t solved = (size_t)(blocks * chunks * n * w) * sizeof(bf16),
                 written = solved + scan_chunks_forward_workspace(call);
    const size_t d = written + (call->delta ? (size_t)(blocks * chunks * CHUNK * w) * sizeof(bf16) : 0);
    const size_t sums = d + (size_t)(blocks * n * w) * sizeof(float);
    const size_t skips = sums + (size_t)(blocks * SPAN * (2 * (int64_t)call->state + 2)) * sizeof(float);
    char *at = (char *)call->workspace;
    *room = {};
    room->chunks = chunks, room->tiles = tiles;
    if (at) {
        room->begins = at, room->solved = (solved_chunk *)(at + solved), room->written = at + written;
        room->d = (float *)(at + d), room->sums = (float *)(at + sums), room->skips = (float *)(at + skips);
    }
    return skips + (size_t)blocks * sizeof(float);
}

size_t scan_chunks_backward_workspace(const struct scan_call *call)
{
    struct scan_call sizes = *call;
    struct chunks_room room;
    sizes.workspace = NULL;
    return room_of(&sizes, &room);
}

/* --- a block's tiles */

template <int N, int W> struct backward_tiles {
    static constexpr int STAGES = N <= 128 ? 2 : 1, GATES = 2;
    static constexpr int KEYS = CHUNK * N, VALUES = CHUNK * W, STATE = N * W, STAGE = 2 * KEYS + 2 * VALUES + STATE;
    static constexpr size_t BYTES =
        (STAGES * STAGE + STATE + VALUES) * sizeof(bf16) + GATES * sizeof(chunk_gates) + sizeof(chunk_totals);
    bf16 *first, *d, *out;
    chunk_gates *gates;
    chunk_totals *totals;
    __device__ backward_tiles()
    {
        first = (bf16 *)dynamic_shared();
        d = first + STAGES * STAGE;
        out = d + STATE;
        gates = (chunk_gates *)(out + VALUES);
        totals = (chunk_totals *)(gates + GATES);
    }
};

template <int N, int W> __device__ static inline chunk_operands operands_of(const backward_tiles<N, W> &tiles, int64_t chunk)
{
    bf16 *q = tiles.first + chunk % tiles.STAGES * tiles.STAGE, *k = q + tiles.KEYS, *v = k + tiles.KEYS, *dy = v + tiles.VALUES;
    return {q, k, v, dy, dy + tiles.VALUES, tiles.d, tiles.out, tiles.gates + chunk % tiles.GATES, tiles.totals};
}

template <int N, int W>
__device__ static inline void load_chunk(const chunk_operands &to, const scan_call &call, const chunk_place &place, int64_t chunk,
                                         const kept_state<N, W> *begin, const chunk_vectors &vectors)
{
    const int64_t first = chunk * CHUNK;
    load_keys<N, THREADS>(to.q, call, place, call.q, first, vectors.keys);
    load_keys<N, THREADS>(to.k, call, place, call.k, first, vectors.keys);
    load_values<W, THREADS>(to.v, call, place, call.v, call.v_row, first, vectors.values);
    load_values<W, THREADS>(to.dy, call, place, call.dy, (int64_t)call.heads * call.head_dim, first, vectors.packed);
    load_part<W, N, THREADS>(to.state, {begin->at, W, N, W}, true);
    copy_async_commit();
}

/* A warp's keys: dv, dk, dw. */
template <int N, int W>
__device__ static inline void keys_of_chunk(const chunk_operands &o, const scan_call &call, const chunk_place &place,
                                            const token_sums &to, int64_t first, int row, bool vectors)
{
    const int lane = threadIdx.x % WARP, mine = row + lane / 4;
    const left_at_end left = {*o.gates};
    const float skip = call.skip ? bf16_to_float(((const bf16 *)call.skip)[place.head]) : 0, ones[2] = {1, 1};
    float g[1][N_TILES][4] = {}, d[1][N_TILES][4] = {}, dv[1][W / 8][4] = {}, taken[2] = {}, dstrength[2] = {};
    uint32_t p[1][K_STEPS][4], ds[K_STEPS][4];
    multiply_rows<N, 1, N_TILES>(g, o.k, row, o.q);
    multiply_rows<W, 1, N_TILES>(d, o.v, row, o.dy);
    pairs_of_keys(g[0], d[0], *o.gates, row, call.scale, taken);
    operand_of<N_TILES>(p[0], g[0]);
    operand_of<N_TILES>(ds, d[0]);
    multiply_tiles<N, W>(dv[0], o.k, row, o.d);
    const float decays[2] = {left.decay(mine), left.decay(mine + 8)};
    scale_rows<W>(dv[0], decays);
    multiply_columns<W, 1, K_STEPS>(dv, p, o.dy);
    const float strengths[2] = {o.gates->strength[mine], o.gates->strength[mine + 8]};
#pragma unroll
    for (int n = 0; n < W / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            dstrength[i / 2] += dv[0][n][i] * element_of<W>(o.v, row, n, i);
            dv[0][n][i] = strengths[i / 2] * dv[0][n][i] + skip * element_of<W>(o.dy, row, n, i);
        }
    store_rows<W>((bf16 *)call.dv + (first + row) * call.v_row + place.head * call.head_dim + place.first_column, call.v_row,
                  to.tokens - row, place.columns, o.out, row, dv[0], ones, vectors);
    const float left_of_rows[2] = {left(mine), left(mine + 8)};
    keys_gradients<N, W>(to, to.state, row, o.k, o.q, ds, o.v, o.d, left_of_rows, taken);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float sum = row_sum(dstrength[half]), pairs = row_sum(taken[half]);
        const int token = mine + 8 * half;
        if (lane % 4 == 0)
            o.totals->taken[token] = pairs;
        if (lane % 4 == 0 && token < to.tokens)
            to.at[(int64_t)token * to.size + 2 * to.state + 1] = sum;
    }
}

/* --- the kernel */

/* Chunks from `end` - 1 down to `begin`; those behind have left dS. */
template <int N, int W>
__global__ void __launch_bounds__(THREADS)
    chunks_backward_kernel(scan_call call, chunks_room room, int64_t begin, int64_t end, chunk_vectors vectors)
{
    enum { STAGES = backward_tiles<N, W>::STAGES };
    const backward_tiles<N, W> tiles;
    const chunk_place place = place_in(call, W);
    const int64_t block = (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    const kept_state<N, W> *begins = (const kept_state<N, W> *)room.begins + block * room.chunks;
    const int warp = threadIdx.x / WARP, size = 2 * call.state + 2;
    const bool is_last = end == room.chunks;
    float *left = room.d + block * N * W, dskip = 0;
    block_gradient<N, W> d(is_last ? NULL : left);
    gates_read gates = {};
    load_chunk<N, W>(operands_of<N, W>(tiles, end - 1), call, place, end - 1, begins + end - 1, vectors);
    put_state<W>(tiles.d, d.part);
    if (warp == 0) {
        gates.read(call, place, (end - 1) * CHUNK);
        gates.put(operands_of<N, W>(tiles, end - 1).gates);
    }
    for (int64_t chunk = end - 1; chunk >= begin; chunk--) {
        const bool another = chunk > begin;
        const chunk_operands here = operands_of<N, W>(tiles, chunk);
        const int64_t first = chunk * CHUNK;
        const token_sums to = {room.sums + (block * SPAN + first - begin * CHUNK) * size, size, call.state,
                               tokens_from(call, first)};
        if (STAGES > 1 && another)
            load_chunk<N, W>(operands_of<N, W>(tiles, chunk - 1), call, place, chunk - 1, begins + chunk - 1, vectors);
        if (warp == 0 && another)
            gates.read(call, place, first - CHUNK);
        if (STAGES > 1 && another)
            copy_async_wait<1>();
        else
            copy_async_wait<0>();
        __syncthreads();
        if (warp < KEYS_WARPS)
            keys_of_chunk<N, W>(here, call, place, to, place.row + first, warp * 16, vectors.values);
        else
            dskip += queries_of_chunk<N, W>(here, call, to, (warp - KEYS_WARPS) * 16);
        d.pass(here, call.scale);
        if (warp == 0 && another)
            gates.put(operands_of<N, W>(tiles, chunk - 1).gates);
        __syncthreads();
        if (warp == 0)
            decays_of_chunk<false>(*tiles.totals, to);
        if (another)
            put_state<W>(tiles.d, d.part);
        if (STAGES == 1 && another)
            load_chunk<N, W>(operands_of<N, W>(tiles, chunk - 1), call, place, chunk - 1, begins + chunk - 1, vectors);
    }
    d.leave(left);
    dskip = block_sum(dskip, tiles.totals->scratch);
    float *skip = room.skips + (int64_t)blockIdx.x * gridDim.y + blockIdx.y;
    if (threadIdx.x == 0)
        *skip = dskip + (is_last ? 0 : *skip);
}

/* --- launches */

template <int N, int W> static cudaError_t allow_backward(void)
{
    return allow_shared(chunks_backward_kernel<N, W>, backward_tiles<N, W>::BYTES);
}

bool scan_chunks_fit_backward(const struct scan_call *call)
{
    if (!scan_chunks_fit(call) || call->delta)
        return call->delta && scan_chunks_fit(call) && scan_delta_fit_backward(call);
    return (call->state <= 64    ? allow_backward<64, 64>()
            : call->state <= 128 ? allow_backward<128, 64>()
                                 : allow_backward<256, 32>()) == cudaSuccess;
}

template <int N, int W>
static int span_backward(const struct cuda_launch *launch, const struct scan_call *call, const struct chunks_room *room,
                         int64_t begin, int64_t end)
{
    const dim3 grid((unsigned)room->tiles, (unsigned)(call->batch * call->heads));
    const cudaError_t error = allow_backward<N, W>();
    return error != cudaSuccess ? error
                                : launch_kernel(chunks_backward_kernel<N, W>, grid, dim3(THREADS), backward_tiles<N, W>::BYTES,
                                                launch->stream, *call, *room, begin, end, vectors_of(call));
}

int scan_chunks_backward_cuda(const struct cuda_launch *launch, const struct scan_call *call)
{
    struct chunks_room room;
    (void)room_of(call, &room);
    const struct chunks_memory memory = {room.solved, room.begins, room.written};
    int error = scan_chunks_forward_cuda(launch, call, &memory);
    for (int64_t end = room.chunks, begin; end > 0 && error == cudaSuccess; end = begin) {
        begin = (end - 1) / SPAN_CHUNKS * SPAN_CHUNKS;
        error = call->delta          ? scan_delta_span_cuda(launch, call, &room, begin, end)
                : call->state <= 64  ? span_backward<64, 64>(launch, call, &room, begin, end)
                : call->state <= 128 ? span_backward<128, 64>(launch, call, &room, begin, end)
                                     : span_backward<256, 32>(launch, call, &room, begin, end);
        const int64_t last = end * CHUNK < call->seq_len ? end * CHUNK : call->seq_len;
        if (error == cudaSuccess)
            error = scan_sums_cuda(launch, call, room.sums, room.tiles, SPAN, begin * CHUNK, last - begin * CHUNK);
    }
    if (error == cudaSuccess && call->dskip)
        error = partial_sum_cuda(launch, room.skips, room.tiles * call->batch, call->heads, call->heads, call->dskip);
    return error;
}
