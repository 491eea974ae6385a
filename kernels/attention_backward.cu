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
 * current are used. Variants: head dimension 64 and 128; grouped queries; a window. Bytes: qkv, out, dout, dqkv once, and tiles
 * again from the second-level cache. Expected limiter: shared-memory reads of operands (each is used for one 16-row product),
 * then mma.sync issue. On sm_90 attention_backward_hopper.cu takes the two passes, unless the launch asks for portable kernels.
 */
#include "kernels/attention_tile.cuh"

enum { ROWS = 64, N_TILES = ROWS / 8, STAGES = 2 };

/* The tiles of a block: two that it keeps, two that pass by. */
template <int D> struct tiles {
    bf16 *kept[2], *passing[2]; /* passing: STAGES tiles each */
    float *lse, *delta;         /* STAGES * ROWS, of passing queries */
    __device__ tiles()
    {
        bf16 *at = (bf16 *)dynamic_shared();
        kept[0] = at, kept[1] = at + ROWS * D;
        passing[0] = at + 2 * ROWS * D, passing[1] = at + (2 + STAGES) * ROWS * D;
        lse = (float *)(at + (2 + 2 * STAGES) * ROWS * D), delta = lse + STAGES * ROWS;
    }
};

template <int D> static size_t shared_bytes(void)
{
    return (2 + 2 * STAGES) * ROWS * D * sizeof(bf16) + 2 * STAGES * ROWS * sizeof(float);
}

/* delta[batch, heads, seq_len]; a row of D / 8 lanes, 8 elements each. */
template <int D> __global__ void __launch_bounds__(ATTENTION_THREADS) delta_kernel(attention_call call)
{
    enum { LANES = D / VECTOR };
    const int64_t item = ((int64_t)blockIdx.x * ATTENTION_THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    const int64_t n = call.batch * call.seq_len * call.heads; /* [batch, seq_len, heads], as out is */
    float out[VECTOR], dout[VECTOR], sum = 0;
    if (item < n) {
        load<VECTOR>(out, (const bf16 *)call.out + item * D + lane * VECTOR);
        load<VECTOR>(dout, (const bf16 *)call.dout + item * D + lane * VECTOR);
        for (int j = 0; j < VECTOR; j++)
            sum += out[j] * dout[j];
    }
    for (int mask = LANES / 2; mask > 0; mask /= 2)
        sum += shuffle_xor(sum, mask);
    const int64_t head = item % call.heads, row = item / call.heads;
    if (item < n && lane == 0)
        ((float *)call.workspace)[(row / call.seq_len * call.heads + head) * call.seq_len + row % call.seq_len] = sum;
}

/* Queries, dout and their statistics of one step of the pass over queries. */
template <int D>
__device__ static inline void load_queries(const attention_call &call, const tiles<D> &t, int stage, int head, int64_t query)
{
    const head_rows rows = rows_of(call, blockIdx.z, head);
    load_tile<D, ROWS>(t.passing[0] + stage * ROWS * D, (const bf16 *)call.qkv + rows.q + query * rows.stride, rows.stride,
                       call.seq_len - query);
    load_tile<D, ROWS>(t.passing[1] + stage * ROWS * D, (const bf16 *)call.dout + rows.out + query * rows.out_stride,
                       rows.out_stride, call.seq_len - query);
    for (int i = threadIdx.x; i < ROWS; i += ATTENTION_THREADS) {
        const bool valid = query + i < call.seq_len; /* beyond the end every weight is exp(-inf) */
        t.lse[stage * ROWS + i] = valid ? call.log_sum_exp[rows.statistics + query + i] * LOG2_E : INFINITY;
        t.delta[stage * ROWS + i] = valid ? ((const float *)call.workspace)[rows.statistics + query + i] : 0;
    }
}

template <int D>
__global__ void __launch_bounds__(ATTENTION_THREADS) keys_kernel(attention_call call, float scale, float plain_scale)
{
    const tiles<D> t;
    const int group = call.heads / call.kv_heads, head0 = blockIdx.y * group;
    const head_rows rows = rows_of(call, blockIdx.z, head0);
    const int64_t first_key = (int64_t)blockIdx.x * ROWS, limit = call.seq_len - first_key;
    int64_t end = call.seq_len;
    if (call.window > 0 && first_key + ROWS + call.window - 1 < end)
        end = first_key + ROWS + call.window - 1;
    const int64_t steps = (end - first_key + ROWS - 1) / ROWS;
    const int lane = threadIdx.x % WARP, warp_row = threadIdx.x / WARP * 16;
    float dk[1][D / 8][4] = {}, dv[1][D / 8][4] = {};

    load_tile<D, ROWS>(t.kept[0], (const bf16 *)call.qkv + rows.k + first_key * rows.stride, rows.stride, limit);
    load_tile<D, ROWS>(t.kept[1], (const bf16 *)call.qkv + rows.v + first_key * rows.stride, rows.stride, limit);
    load_queries<D>(call, t, 0, head0, first_key);
    copy_async_commit();
    for (int64_t i = 0; i < group * steps; i++) {
        const int stage = (int)(i % STAGES);
        const int64_t next = i + 1, query = first_key + i % steps * ROWS;
        if (next < group * steps)
            load_queries<D>(call, t, (int)(next % STAGES), head0 + (int)(next / steps), first_key + next % steps * ROWS);
        copy_async_commit();
        copy_async_wait<1>();
        __syncthreads();
        const bf16 *q_tile = t.passing[0] + stage * ROWS * D, *dout_tile = t.passing[1] + stage * ROWS * D;
        float p[1][N_TILES][4] = {}, ds[1][N_TILES][4] = {};
        uint32_t operand[1][ROWS / 16][4];
        multiply_rows<D, 1, N_TILES>(p, t.kept[0], warp_row, q_tile);
        multiply_rows<D, 1, N_TILES>(ds, t.kept[1], warp_row, dout_tile);
        weights_of_keys<N_TILES>(p[0], ds[0], t.lse + stage * ROWS, t.delta + stage * ROWS,
                                 (int)(first_key - query) + warp_row + lane / 4 - lane % 4 * 2, (int)call.window, scale);
        operand_of<N_TILES>(operand[0], p[0]);
        multiply_columns<D, 1, ROWS / 16>(dv, operand, dout_tile);
        operand_of<N_TILES>(operand[0], ds[0]);
        multiply_columns<D, 1, ROWS / 16>(dk, operand, q_tile);
        __syncthreads(); /* before this stage is filled again */
    }
    const float scales[2] = {plain_scale, plain_scale}, ones[2] = {1, 1};
    bf16 *dqkv = (bf16 *)call.dqkv;
    const int64_t at = (first_key + warp_row) * rows.stride;
    store_rows<D>(dqkv + rows.k + at, rows.stride, limit - warp_row, t.kept[0], warp_row, dk[0], scales);
    store_rows<D>(dqkv + rows.v + at, rows.stride, limit - warp_row, t.kept[1], warp_row, dv[0], ones);
}

template <int D>
__device__ static inline void load_keys(const attention_call &call, const tiles<D> &t, const head_rows &rows, int stage,
                                        int64_t key)
{
    const bf16 *qkv = (const bf16 *)call.qkv + key * rows.stride;
    load_tile<D, ROWS>(t.passing[0] + stage * ROWS * D, qkv + rows.k, rows.stride, call.seq_len - key);
    load_tile<D, ROWS>(t.passing[1] + stage * ROWS * D, qkv + rows.v, rows.stride, call.seq_len - key);
}

template <int D>
__global__ void __launch_bounds__(ATTENTION_THREADS) queries_kernel(attention_call call, float scale, float plain_scale)
{
    const tiles<D> t;
    const head_rows rows = rows_of(call, blockIdx.z, blockIdx.y);
    const int64_t first_query = (int64_t)(gridDim.x - 1 - blockIdx.x) * ROWS, limit = call.seq_len - first_query;
    const int64_t end = limit < ROWS ? call.seq_len : first_query + ROWS;
    const int64_t seen = call.window > 0 && first_query + 1 > call.window ? first_query + 1 - call.window : 0;
    const int64_t first_key = seen / ROWS * ROWS, steps = (end - first_key + ROWS - 1) / ROWS;
    const int lane = threadIdx.x % WARP, warp_row = threadIdx.x / WARP * 16;
    float dq[1][D / 8][4] = {}, lse[2], delta[2];
    statistics_of_rows(call, rows.statistics, first_query + warp_row + lane / 4, lse, delta);

    load_tile<D, ROWS>(t.kept[0], (const bf16 *)call.qkv + rows.q + first_query * rows.stride, rows.stride, limit);
    load_tile<D, ROWS>(t.kept[1], (const bf16 *)call.dout + rows.out + first_query * rows.out_stride, rows.out_stride, limit);
    load_keys<D>(call, t, rows, 0, first_key);
    copy_async_commit();
    for (int64_t i = 0; i < steps; i++) {
        const int stage = (int)(i % STAGES);
        const int64_t key = first_key + i * ROWS;
        if (i + 1 < steps)
            load_keys<D>(call, t, rows, (int)((i + 1) % STAGES), key + ROWS);
        copy_async_commit();
        copy_async_wait<1>();
        __syncthreads();
        const bf16 *k_tile = t.passing[0] + stage * ROWS * D, *v_tile = t.passing[1] + stage * ROWS * D;
        float s[1][N_TILES][4] = {}, ds[1][N_TILES][4] = {};
        uint32_t operand[1][ROWS / 16][4];
        multiply_rows<D, 1, N_TILES>(s, t.kept[0], warp_row, k_tile);
        multiply_rows<D, 1, N_TILES>(ds, t.kept[1], warp_row, v_tile);
        weights_of_queries<N_TILES>(s[0], ds[0], lse, delta, (int)(key - first_query) - warp_row - lane / 4 + lane % 4 * 2,
                                    (int)call.window, scale);
        operand_of<N_TILES>(operand[0], ds[0]);
        multiply_columns<D, 1, ROWS / 16>(dq, operand, k_tile);
        __syncthreads();
    }
    const float scales[2] = {plain_scale, plain_scale};
    store_rows<D>((bf16 *)call.dqkv + rows.q + (first_query + warp_row) * rows.stride, rows.stride, limit - warp_row, t.kept[0],
                  warp_row, dq[0], scales);
}

template <int D> static cudaError_t backward(const struct cuda_launch *launch, const struct attention_call *call)
{
    const int64_t n = call->batch * call->seq_len * call->heads, items = ATTENTION_THREADS / (D / VECTOR);
    const unsigned blocks = (unsigned)((call->seq_len + ROWS - 1) / ROWS);
    const float plain_scale = 1 / sqrtf((float)D), scale = LOG2_E * plain_scale;
    const size_t shared = shared_bytes<D>();
    const dim3 threads(ATTENTION_THREADS);
    cudaError_t error =
        launch_kernel(delta_kernel<D>, dim3((unsigned)((n + items - 1) / items)), threads, 0, launch->stream, *call);
    if (error == cudaSuccess && !launch->portable) {
        error = (cudaError_t)attention_backward_hopper_cuda(launch, call);
        if (error != cudaErrorNotSupported)
            return error;
        error = cudaSuccess;
    }
    if (error == cudaSuccess)
        error = allow_shared(keys_kernel<D>, shared);
    if (error == cudaSuccess)
        error = allow_shared(queries_kernel<D>, shared);
    if (error == cudaSuccess)
        error = launch_kernel(keys_kernel<D>, dim3(blocks, (unsigned)call->kv_heads, (unsigned)call->batch), threads, shared,
                              launch->stream, *call, scale, plain_scale);
    if (error == cudaSuccess)
        error = launch_kernel(queries_kernel<D>, dim3(blocks, (unsigned)call->heads, (unsigned)call->batch), threads, shared,
                              launch->stream, *call, scale, plain_scale);
    return error;
}

int attention_backward_cuda(const struct cuda_launch *launch, const struct attention_call *call)
{
    if (!attention_fits(call) || !call->workspace)
        return cudaErrorInvalidValue;
    if (call->batch <= 0 || call->seq_len <= 0)
        return cudaSuccess;
    return call->head_dim == 64 ? backward<64>(launch, call) : backward<128>(launch, call);
}

bool attention_cuda_fits(int head_dim)
{
    return head_dim == 64 || head_dim == 128;
}

size_t attention_cuda_workspace(const struct attention_call *call, bool backward_pass)
{
    return backward_pass ? (size_t)(call->batch * call->seq_len * call->heads) * sizeof(float) : 0;
}
