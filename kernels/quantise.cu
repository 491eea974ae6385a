/*
 * quantise.cu - bf16 to e4m3 with a scale per tensor.
 *
 * Two kernels: the largest number, block by block; then each block finds the largest of those and rounds its part. Variants:
 * 16-byte loads where pointers allow, one element at a time otherwise.
 * Bytes per element: 2, then 3. FLOPs: 2. Limiter: memory bandwidth, or the second-level cache for what fits there.
 */
#include "kernels/vector.cuh"

enum { THREADS = 256 };
#define LARGEST 448.0f

template <int V> __global__ void __launch_bounds__(THREADS) largest_kernel(int64_t n, const bf16 *x, float *partial)
{
    __shared__ float scratch[WARP];
    const int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.x, threads = (int64_t)gridDim.x * THREADS;
    float most = 0, value[V];
    for (int64_t i = thread; i < n / V; i += threads) {
        load<V>(value, x + i * V);
        for (int j = 0; j < V; j++)
            most = fmaxf(most, fabsf(value[j]));
    }
    if (V > 1 && n / V * V + thread < n)
        most = fmaxf(most, fabsf(bf16_to_float(x[n / V * V + thread])));
    most = block_max(most, scratch);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = most;
}

template <int V> __device__ static inline void store_e4m3(uint8_t *to, const float values[V])
{
    if (V == 8) {
        uint32_t *words = (uint32_t *)to;
        words[0] = e4m3_pair(values[0], values[1 % V]) | e4m3_pair(values[2 % V], values[3 % V]) << 16;
        words[1] = e4m3_pair(values[4 % V], values[5 % V]) | e4m3_pair(values[6 % V], values[7 % V]) << 16;
    } else {
        for (int j = 0; j < V; j++)
            to[j] = (uint8_t)e4m3_pair(values[j], 0);
    }
}

template <int V> __global__ void __launch_bounds__(THREADS) quantise_kernel(quantise_call call, const float *partial, int parts)
{
    __shared__ float scratch[WARP];
    const int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.x, threads = (int64_t)gridDim.x * THREADS;
    const bf16 *x = (const bf16 *)call.x;
    float most = 0, value[V];
    for (int i = threadIdx.x; i < parts; i += THREADS)
        most = fmaxf(most, partial[i]);
    most = block_max(most, scratch);
    const float inverse = most > 0 ? fminf(LARGEST / most, 0x1p127f) : 1;
    if (thread == 0)
        *call.scale = most > 0 ? most / LARGEST : 1;
    for (int64_t i = thread; i < call.n / V; i += threads) {
        load<V>(value, x + i * V);
        for (int j = 0; j < V; j++)
            value[j] *= inverse;
        store_e4m3<V>(call.y + i * V, value);
    }
    const int64_t rest = call.n / V * V + thread;
    if (V > 1 && rest < call.n) {
        value[0] = bf16_to_float(x[rest]) * inverse;
        store_e4m3<1>(call.y + rest, value);
    }
}

template <int V> static cudaError_t quantise(const struct cuda_launch *launch, const struct quantise_call *call)
{
    const unsigned blocks = blocks_for(launch, (call->n + V - 1) / V, THREADS, BLOCKS_HELD);
    float *partial = (float *)launch->workspace;
    cudaError_t error =
        launch_kernel(largest_kernel<V>, dim3(blocks), dim3(THREADS), 0, launch->stream, call->n, (const bf16 *)call->x, partial);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(quantise_kernel<V>, dim3(blocks), dim3(THREADS), 0, launch->stream, *call, (const float *)partial,
                         (int)blocks);
}

int quantise_cuda(const struct cuda_launch *launch, const struct quantise_call *call)
{
    if (call->n <= 0)
        return cudaSuccess;
    return aligned(call->x) && aligned(call->y) ? quantise<VECTOR>(launch, call) : quantise<1>(launch, call);
}
