/*
 * embedding.cu - token and position lookup in this rank's part of the vocabulary, and its gradient.
 *
 * Variants: 16-byte accesses where the width is a multiple of 8, one element at a time otherwise.
 * Forward bytes: 4 t h, 6 t h with positions. Limiter: memory bandwidth.
 * Backward adds without atomics, so its bits do not change from run to run: the block of the first occurrence of a token adds the
 * gradients of all its occurrences, in order. Finding them reads the tokens once per block, 4 t^2 bytes from the second-level
 * cache (256 MiB at t = 8,192). Bytes: 2 t h, and 8 h per distinct token. Limiter: that scan at large t, a very frequent token's
 * chain.
 */
#include "kernels/vector.cuh"

enum { THREADS = 128 };

template <int V> __global__ void __launch_bounds__(THREADS) embedding_forward_kernel(embedding_call call)
{
    const int64_t row = blockIdx.x, token = call.tokens[row] - call.first;
    const bool held = token >= 0 && token < call.count;
    const bf16 *at = (const bf16 *)call.table + token * call.h;
    const bf16 *position = call.positions ? (const bf16 *)call.positions + row % call.seq_len * call.h : NULL;
    for (int64_t i = (int64_t)threadIdx.x * V; i < call.h; i += THREADS * V) {
        float x[V] = {}, more[V];
        if (held)
            load<V>(x, at + i);
        if (position) {
            load<V>(more, position + i);
            for (int j = 0; j < V; j++)
                x[j] += more[j];
        }
        store<V>((bf16 *)call.x + row * call.h + i, x);
    }
}

/* Adds dx[row] to `to` for the columns of this thread. */
template <int V> __device__ static void add_row(float *to, const embedding_call &call, int64_t row)
{
    for (int64_t i = (int64_t)threadIdx.x * V; i < call.h; i += THREADS * V) {
        float sum[V], dx[V];
        load<V>(sum, to + i);
        load<V>(dx, (const bf16 *)call.dx + row * call.h + i);
        for (int j = 0; j < V; j++)
            sum[j] += dx[j];
        store<V>(to + i, sum);
    }
}

template <int V> __global__ void __launch_bounds__(THREADS) embedding_backward_kernel(embedding_call call)
{
    __shared__ bool same[THREADS];
    const int64_t row = blockIdx.x;
    const int32_t token = call.tokens[row];
    if (token < call.first || token >= call.first + call.count)
        return;
    bool before = false;
    for (int64_t other = threadIdx.x; other < row; other += THREADS)
        before |= call.tokens[other] == token;
    if (any_thread(before))
        return;
    float *to = call.dtable + (token - call.first) * call.h;
    for (int64_t base = row; base < call.t; base += THREADS) {
        const int64_t mine = base + threadIdx.x;
        same[threadIdx.x] = mine < call.t && call.tokens[mine] == token;
        const bool some = any_thread(same[threadIdx.x]); /* a barrier too */
        for (int i = 0; some && i < THREADS; i++)
            if (same[i])
                add_row<V>(to, call, base + i);
        __syncthreads();
    }
}

template <int V> __global__ void __launch_bounds__(THREADS) position_backward_kernel(embedding_call call)
{
    for (int64_t row = blockIdx.x; row < call.t; row += call.seq_len)
        add_row<V>(call.dpositions + (int64_t)blockIdx.x * call.h, call, row);
}

int embedding_forward_cuda(const struct cuda_launch *launch, const struct embedding_call *call)
{
    if (call->t <= 0)
        return cudaSuccess;
    const bool vector = call->h % VECTOR == 0 && aligned(call->table) && aligned(call->positions) && aligned(call->x);
    return launch_kernel(vector ? embedding_forward_kernel<VECTOR> : embedding_forward_kernel<1>, dim3((unsigned)call->t),
                         dim3(THREADS), 0, launch->stream, *call);
}

int embedding_backward_cuda(const struct cuda_launch *launch, const struct embedding_call *call)
{
    if (call->t <= 0)
        return cudaSuccess;
    const bool vector = call->h % VECTOR == 0 && aligned(call->dx) && aligned(call->dtable) && aligned(call->dpositions);
    cudaError_t error = launch_kernel(vector ? embedding_backward_kernel<VECTOR> : embedding_backward_kernel<1>,
                                      dim3((unsigned)call->t), dim3(THREADS), 0, launch->stream, *call);
    if (error != cudaSuccess || !call->dpositions)
        return error;
    const int64_t positions = call->seq_len < call->t ? call->seq_len : call->t;
    return launch_kernel(vector ? position_backward_kernel<VECTOR> : position_backward_kernel<1>, dim3((unsigned)positions),
                         dim3(THREADS), 0, launch->stream, *call);
}
