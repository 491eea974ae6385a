/*
 * attention_backward.cu - gradients of causal attention from the saved log-sum-exp, on tensor cores.
 *
 * Three kernels. `delta` is the row sum of dout * out. Then keys and queries each take their own pass and compute the weights
 * anew:
 *
 *   keys     a block holds 64 keys and values, goes over the queries that see them, for each query head of the group:
 *            s = k q^T, p = exp(s - lse), dv += p dout, ds = p (v dout^T - delta), dk += ds q
 *   queries  a block holds 64 queries, goes over the keys they see: s, p, ds as above (transposed), dq += ds k
 *
 * So nothing is added by two blocks: no atomics, the same bits each run, no fp32 copy of dq. The price is 14 head_dim FLOPs per
 * query-key pair where one pass needs 10. A warp owns 16 rows; p and ds stay in registers. The next tiles arrive while the
 * current are used, 64 rows at a time, of heads wider than 128 32. Heads of 256 have the gradients of keys and of values made one
 * after the other, in two passes: the registers of a warp do not hold both. Variants and bytes are those of attention_forward.cu.
 * Expected limiter: shared-memory reads of operands (each is used for one 16-row product), then mma.sync issue. On sm_90
 * attention_backward_hopper.cu takes the two passes of packed heads of 64 and 128, unless the launch asks for portable kernels.
 */
#include "kernels/attention_tile.cuh"

enum { ROWS = 64, STAGES = 2 };

/* The tiles of a block: two that it keeps, two that pass by, of keys' width (queries' too) and of values' (dout's too). */
template <int DK, int DV> struct tiles {
    static constexpr int PASSING = DK + DV <= 256 ? 64 : 32, N_TILES = PASSING / 8; /* rows that pass at a time */
    static constexpr int WIDE_K = tile_row<DK>::STRIDE, WIDE_V = tile_row<DV>::STRIDE;
    static constexpr int ELEMENTS = (ROWS + STAGES * PASSING) * (WIDE_K + WIDE_V);
    static constexpr size_t BYTES = ELEMENTS * sizeof(bf16) + 2 * STAGES * PASSING * sizeof(float);
    bf16 *kept[2], *passing[2];
    float *lse, *delta; /* STAGES * PASSING, of passing queries */
    __device__ tiles()
    {
        bf16 *at = (bf16 *)dynamic_shared();
        kept[0] = at, kept[1] = at + ROWS * WIDE_K;
        passing[0] = kept[1] + ROWS * WIDE_V, passing[1] = passing[0] + STAGES * PASSING * WIDE_K;
        lse = (float *)(at + ELEMENTS), delta = lse + STAGES * PASSING;
    }
    __device__ bf16 *stage(int which, int i) const
    {
        return passing[which] + i % STAGES * PASSING * (which ? WIDE_V : WIDE_K);
    }
};

/* delta[batch, heads, queries]; a row of LANES lanes, 8 elements each. */
template <int LANES> __global__ void __launch_bounds__(ATTENTION_THREADS) delta_kernel(query_range_call call, bool vectors)
{
    const int64_t item = ((int64_t)blockIdx.x * ATTENTION_THREADS + threadIdx.x) / LANES;
    const int64_t n = call.batch * call.queries * call.heads; /* [batch, queries, heads], as out mostly is */
    const int column = threadIdx.x % LANES * VECTOR;
    const int64_t head = item % call.heads, query = item / call.heads % call.queries, batch = item / call.heads / call.queries;
    const int64_t at = batch * call.out_at.batch + query * call.out_at.row + head * call.value_dim + column;
    const bf16 *out_at = (const bf16 *)call.out + at, *dout_at = (const bf16 *)call.dout + at;
    float out[VECTOR], dout[VECTOR], sum = 0;
    if (item < n && vectors && column < call.value_dim) {
        load<VECTOR>(out, out_at);
        load<VECTOR>(dout, dout_at);
        for (int j = 0; j < VECTOR; j++)
            sum += out[j] * dout[j];
    }
    for (int j = 0; j < VECTOR && item < n && !vectors; j++)
        if (column + j < call.value_dim)
            sum += bf16_to_float(out_at[j]) * bf16_to_float(dout_at[j]);
    for (int mask = LANES / 2; mask > 0; mask /= 2)
        sum += shuffle_xor(sum, mask);
    if (item < n && column == 0)
        ((float *)call.workspace)[(batch * call.heads + head) * call.queries + query] = sum;
}

__device__ static inline int64_t statistics_at(const query_range_call &call, int head)
{
    return ((int64_t)blockIdx.z * call.heads + head) * call.queries;
}

/* Queries, dout and their statistics of one step of the pass over queries. */
template <int DK, int DV>
__device__ static inline void load_queries(const query_range_call &call, const tiles<DK, DV> &t, int step, int head, int query,
                                           bool vectors)
{
    enum { PASSING = tiles<DK, DV>::PASSING };
    load_head<DK, PASSING>(t.stage(0, step), call.q, call.q_at, query, call.queries, head, call.head_dim, vectors);
    load_head<DV, PASSING>(t.stage(1, step), call.dout, call.out_at, query, call.queries, head, call.value_dim, vectors);
    for (int i = threadIdx.x; i < PASSING; i += ATTENTION_THREADS) {
        const bool valid = query + i < call.queries; /* beyond the end every weight is exp(-inf) */
        const int64_t at = statistics_at(call, head) + query + i;
        t.lse[step % STAGES * PASSING + i] = valid ? base_2(call.log_sum_exp[at]) : INFINITY;
        t.delta[step % STAGES * PASSING + i] = valid ? ((const float *)call.workspace)[at] : 0;
    }
}

/* One head's slope, of scores before they are scaled. */
__device__ static inline float slope_of(const query_range_call &call, int head, float plain_scale)
{
    return call.slopes ? call.slopes[head] / plain_scale : 0;
}

/* A warp's 16 rows of a gradient, times a factor, to global memory, or added to what is there. */
template <int D>
__device__ static inline void put_gradient(void *tensor, const strided &at, int row, int64_t rows, int head, int width,
                                           bf16 *tile, int row0, float (*c)[4], float factor, bool add, bool vectors)
{
    bf16 *to = (bf16 *)tensor + blockIdx.z * at.batch + row * at.row + (int64_t)head * width;
    const float factors[2] = {factor, factor}, ones[2] = {1, 1}, rest[2] = {add ? 1 : factor, add ? 1 : factor};
    if (add)
        add_rows<D>(c, factors, to, at.row, rows - row, width, ones);
    store_rows<D>(to, at.row, rows - row, width, tile, row0, c, rest, vectors);
}

/* Queries that see a block's keys, PASSING at a time from `first` to `end`, for every head of the group. */
struct query_step {
    int first, end, head, query;
    __device__ bool exists(int last_head) const
    {
        return first < end && head < last_head;
    }
};

template <int PASSING> __device__ static inline query_step first_queries(const query_range_call &call, int key, int head)
{
    const int64_t last = key + ROWS - 1 + call.window - call.first;
    const int begin = key > call.first ? (int)(key - call.first) / PASSING * PASSING : 0;
    return {begin, (int)(call.window > 0 && last < call.queries ? last : call.queries), head, begin};
}

template <int PASSING> __device__ static inline query_step after(query_step step)
{
    step.query += PASSING;
    if (step.query >= step.end)
        step.query = step.first, step.head++;
    return step;
}

/* WANT_K, WANT_V: which gradients; `add`: to what is there. */
template <int DK, int DV, bool WANT_K, bool WANT_V>
__global__ void __launch_bounds__(ATTENTION_THREADS)
    keys_kernel(query_range_call call, bool vectors, bool add, float scale, float plain_scale)
{
    enum { PASSING = tiles<DK, DV>::PASSING, N_TILES = PASSING / 8 };
    const tiles<DK, DV> t;
    const int group = call.heads / call.kv_heads, last_head = (int)(blockIdx.y + 1) * group, first_key = (int)blockIdx.x * ROWS;
    const int lane = threadIdx.x % WARP, warp_row = threadIdx.x / WARP * 16;
    query_step here = first_queries<PASSING>(call, first_key, last_head - group);
    float dk[1][DK / 8][4] = {}, dv[1][DV / 8][4] = {};

    load_head<DK, ROWS>(t.kept[0], call.k, call.k_at, first_key, call.keys, blockIdx.y, call.head_dim, vectors);
    load_head<DV, ROWS>(t.kept[1], call.v, call.v_at, first_key, call.keys, blockIdx.y, call.value_dim, vectors);
    if (here.exists(last_head))
        load_queries<DK, DV>(call, t, 0, here.head, here.query, vectors);
    copy_async_commit();
    for (int i = 0; here.exists(last_head); i++, here = after<PASSING>(here)) {
        const query_step next = after<PASSING>(here);
        if (next.exists(last_head))
            load_queries<DK, DV>(call, t, i + 1, next.head, next.query, vectors);
        copy_async_commit();
        copy_async_wait<1>();
        __syncthreads();
        const bf16 *q_tile = t.stage(0, i), *dout_tile = t.stage(1, i);
        const float *lse = t.lse + i % STAGES * PASSING, *delta = t.delta + i % STAGES * PASSING;
        const int ahead = first_key - (int)call.first - here.query + warp_row + lane / 4 - lane % 4 * 2; /* key minus query */
        const float slope = slope_of(call, here.head, plain_scale);
        float p[1][N_TILES][4] = {}, ds[1][N_TILES][4] = {};
        uint32_t operand[1][PASSING / 16][4];
        multiply_rows<DK, 1, N_TILES>(p, t.kept[0], warp_row, q_tile);
        if (WANT_K)
            multiply_rows<DV, 1, N_TILES>(ds, t.kept[1], warp_row, dout_tile);
        if (slope != 0)
            lean_scores<N_TILES>(p[0], slope, ahead, 1);
        mask_keys<N_TILES>(p[0], ahead, (int)call.window);
        weights_of_keys<N_TILES>(p[0], ds[0], lse, delta, scale);
        if (WANT_V) {
            operand_of<N_TILES>(operand[0], p[0]);
            multiply_columns<DV, 1, PASSING / 16>(dv, operand, dout_tile);
        }
        if (WANT_K) {
            operand_of<N_TILES>(operand[0], ds[0]);
            multiply_columns<DK, 1, PASSING / 16>(dk, operand, q_tile);
        }
        __syncthreads(); /* before this stage is filled again */
    }
    copy_async_wait<0>();
    __syncthreads(); /* without a step the kept tiles, which give room to gradients, are still on their way */
    if (WANT_K)
        put_gradient<DK>(call.dk, call.k_at, first_key + warp_row, call.keys, blockIdx.y, call.head_dim, t.kept[0], warp_row,
                         dk[0], plain_scale, add, vectors);
    if (WANT_V)
        put_gradient<DV>(call.dv, call.v_at, first_key + warp_row, call.keys, blockIdx.y, call.value_dim, t.kept[1], warp_row,
                         dv[0], 1, add, vectors);
}

template <int DK, int DV>
__device__ static inline void load_keys(const query_range_call &call, const tiles<DK, DV> &t, int step, int head, int key,
                                        bool vectors)
{
    enum { PASSING = tiles<DK, DV>::PASSING };
    load_head<DK, PASSING>(t.stage(0, step), call.k, call.k_at, key, call.keys, head, call.head_dim, vectors);
    load_head<DV, PASSING>(t.stage(1, step), call.v, call.v_at, key, call.keys, head, call.value_dim, vectors);
}

template <int DK, int DV>
__global__ void __launch_bounds__(ATTENTION_THREADS)
    queries_kernel(query_range_call call, bool vectors, float scale, float plain_scale)
{
    enum { PASSING = tiles<DK, DV>::PASSING, N_TILES = PASSING / 8 };
    const tiles<DK, DV> t;
    const int head = blockIdx.y, kv = head / (call.heads / call.kv_heads), window = (int)call.window, keys = (int)call.keys;
    const int first_query = (int)(gridDim.x - 1 - blockIdx.x) * ROWS, position = (int)call.first + first_query;
    const int end = position + ROWS < keys ? position + ROWS : keys;
    const int first_key = window > 0 && position + 1 > window ? (position + 1 - window) / PASSING * PASSING : 0;
    const int lane = threadIdx.x % WARP, warp_row = threadIdx.x / WARP * 16;
    const float slope = slope_of(call, head, plain_scale);
    float dq[1][DK / 8][4] = {}, lse[2], delta[2];
    statistics_of_rows(call.log_sum_exp + statistics_at(call, head), (const float *)call.workspace + statistics_at(call, head),
                       first_query + warp_row + lane / 4, call.queries, lse, delta);

    load_head<DK, ROWS>(t.kept[0], call.q, call.q_at, first_query, call.queries, head, call.head_dim, vectors);
    load_head<DV, ROWS>(t.kept[1], call.dout, call.out_at, first_query, call.queries, head, call.value_dim, vectors);
    if (first_key < end)
        load_keys<DK, DV>(call, t, 0, kv, first_key, vectors);
    copy_async_commit();
    for (int key = first_key, i = 0; key < end; key += PASSING, i++) {
        if (key + PASSING < end)
            load_keys<DK, DV>(call, t, i + 1, kv, key + PASSING, vectors);
        copy_async_commit();
        copy_async_wait<1>();
        __syncthreads();
        const int ahead = key - position - warp_row - lane / 4 + lane % 4 * 2;
        float s[1][N_TILES][4] = {}, ds[1][N_TILES][4] = {};
        uint32_t operand[1][PASSING / 16][4];
        multiply_rows<DK, 1, N_TILES>(s, t.kept[0], warp_row, t.stage(0, i));
        multiply_rows<DV, 1, N_TILES>(ds, t.kept[1], warp_row, t.stage(1, i));
        if (slope != 0)
            lean_scores<N_TILES>(s[0], slope, ahead, -1);
        mask_scores<N_TILES>(s[0], ahead, window, keys - key - lane % 4 * 2);
        weights_of_queries<N_TILES>(s[0], ds[0], lse, delta, scale);
        operand_of<N_TILES>(operand[0], ds[0]);
        multiply_columns<DK, 1, PASSING / 16>(dq, operand, t.stage(0, i));
        __syncthreads();
    }
    copy_async_wait<0>();
    __syncthreads(); /* without a step the kept tiles, which give room to gradients, are still on their way */
    put_gradient<DK>(call.dq, call.q_at, first_query + warp_row, call.queries, head, call.head_dim, t.kept[0], warp_row, dq[0],
                     plain_scale, call.accumulate, vectors);
}

static cudaError_t launch_delta(const struct cuda_launch *launch, const struct query_range_call *call)
{
    const int lanes = call->value_dim <= 64 ? 8 : call->value_dim <= 128 ? 16 : 32;
    const int64_t n = call->batch * call->queries * call->heads, items = ATTENTION_THREADS / lanes;
    return launch_kernel(lanes == 8    ? delta_kernel<8>
                         : lanes == 16 ? delta_kernel<16>
                                       : delta_kernel<32>,
                         dim3((unsigned)((n + items - 1) / items)), dim3(ATTENTION_THREADS), 0, launch->stream, *call,
                         query_range_in_vectors(call));
}

/* The two passes, behind delta; `add`: the gradients of keys and values to what is there. */
struct backward_passes {
    const struct cuda_launch *launch;
    const struct query_range_call *call;
    bool add;

    static unsigned blocks(int64_t rows)
    {
        return (unsigned)((rows + ROWS - 1) / ROWS);
    }

    float plain_scale(void) const
    {
        return 1 / sqrtf((float)call->head_dim);
    }

    template <int DK, int DV, bool WANT_K, bool WANT_V> cudaError_t run_keys(void) const
    {
        constexpr size_t bytes = tiles<DK, DV>::BYTES;
        const dim3 grid(blocks(call->keys), (unsigned)call->kv_heads, (unsigned)call->batch);
        const cudaError_t error = allow_shared(keys_kernel<DK, DV, WANT_K, WANT_V>, bytes);
        if (error != cudaSuccess || call->keys <= 0)
            return error;
        return launch_kernel(keys_kernel<DK, DV, WANT_K, WANT_V>, grid, dim3(ATTENTION_THREADS), bytes, launch->stream, *call,
                             query_range_in_vectors(call), add, (float)LOG2_E * plain_scale(), plain_scale());
    }

    template <int DK, int DV> cudaError_t run(void) const
    {
        constexpr size_t bytes = tiles<DK, DV>::BYTES;
        constexpr bool both = DK + DV <= 320;
        const dim3 grid(blocks(call->queries), (unsigned)call->heads, (unsigned)call->batch);
        cudaError_t error = run_keys<DK, DV, true, both>();
        if (error == cudaSuccess && !both)
            error = run_keys<DK, DV, both, true>();
        if (error == cudaSuccess)
            error = allow_shared(queries_kernel<DK, DV>, bytes);
        if (error == cudaSuccess)
            error = launch_kernel(queries_kernel<DK, DV>, grid, dim3(ATTENTION_THREADS), bytes, launch->stream, *call,
                                  query_range_in_vectors(call), (float)LOG2_E * plain_scale(), plain_scale());
        return error;
    }
};

int query_range_backward_cuda(const struct cuda_launch *launch, const struct query_range_call *call)
{
    if (!query_range_fits(call) || !call->workspace)
        return cudaErrorInvalidValue;
    if (call->queries <= 0 || call->batch <= 0)
        return cudaSuccess;
    const cudaError_t error = launch_delta(launch, call);
    return error != cudaSuccess ? error : with_widths(call, backward_passes{launch, call, true});
}

int attention_backward_cuda(const struct cuda_launch *launch, const struct attention_call *call)
{
    const struct query_range_call range = query_range_of(call);
    if (!query_range_fits(&range) || !call->workspace)
        return cudaErrorInvalidValue;
    if (call->batch <= 0 || call->seq_len <= 0)
        return cudaSuccess;
    cudaError_t error = launch_delta(launch, &range);
    if (error == cudaSuccess && !launch->portable && hopper_fits(call)) {
        error = (cudaError_t)attention_backward_hopper_cuda(launch, call);
        if (error != cudaErrorNotSupported)
            return error;
        error = cudaSuccess;
    }
    return error != cudaSuccess ? error : with_widths(&range, backward_passes{launch, &range, false});
}

bool attention_cuda_fits(int head_dim)
{
    return head_dim <= ATTENTION_MOST_DIM;
}

size_t attention_cuda_workspace(int64_t rows, bool backward_pass)
{
    return backward_pass ? (size_t)rows * sizeof(float) : 0;
}
