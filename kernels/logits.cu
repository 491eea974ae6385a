/*
 * logits.cu - vocabulary-parallel cross entropy in four steps, with exchanges between them (logits_call in kernels.h).
 *
 * Variants: 16-byte accesses where the columns are a multiple of 8, one element at a time otherwise. A block takes a row.
 * Bytes: max 2 t v, sum 2 t v, loss 8 t, backward 4 t v. FLOPs: an exponential per element in sum and backward.
 * Limiter: memory bandwidth; the loss is one block, a few microseconds.
 */
#include "kernels/vector.cuh"

enum { ROW_THREADS = 256, LOSS_THREADS = 1024 };
#define LOG2_E 1.4426950409f

template <int V> __global__ void __launch_bounds__(ROW_THREADS) logits_max_kernel(logits_call call)
{
    __shared__ float scratch[WARP];
    const bf16 *logits = (const bf16 *)call.logits + blockIdx.x * call.v;
    float max = -INFINITY, item[V];
    for (int64_t i = (int64_t)threadIdx.x * V; i < call.v; i += ROW_THREADS * V) {
        load<V>(item, logits + i);
        for (int j = 0; j < V; j++)
            max = fmaxf(max, item[j]);
    }
    max = block_max(max, scratch);
    if (threadIdx.x == 0)
        call.max[blockIdx.x] = max;
}

template <int V> __global__ void __launch_bounds__(ROW_THREADS) logits_sum_kernel(logits_call call)
{
    __shared__ float scratch[WARP];
    const int64_t row = blockIdx.x, target = call.targets[row] - call.first;
    const bf16 *logits = (const bf16 *)call.logits + row * call.v;
    const float max = call.max[row];
    float sum = 0, item[V];
    for (int64_t i = (int64_t)threadIdx.x * V; i < call.v; i += ROW_THREADS * V) {
        load<V>(item, logits + i);
        for (int j = 0; j < V; j++)
            sum += exp2_fast((item[j] - max) * LOG2_E);
    }
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) {
        call.sums[row] = sum;
        call.sums[call.t + row] = target >= 0 && target < call.v ? bf16_to_float(logits[target]) - max : 0;
    }
}

__global__ void __launch_bounds__(LOSS_THREADS) logits_loss_kernel(logits_call call)
{
    __shared__ double scratch[WARP];
    double sum = 0;
    for (int64_t row = threadIdx.x; row < call.t; row += LOSS_THREADS)
        sum += (double)(logf(call.sums[row]) - call.sums[call.t + row]);
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0)
        *call.loss += (double)call.scale * sum;
}

template <int V> __global__ void __launch_bounds__(ROW_THREADS) logits_backward_kernel(logits_call call)
{
    const int64_t row = blockIdx.x, target = call.targets[row] - call.first;
    bf16 *logits = (bf16 *)call.logits + row * call.v;
    const float max = call.max[row], factor = call.scale / call.sums[row];
    float item[V];
    for (int64_t i = (int64_t)threadIdx.x * V; i < call.v; i += ROW_THREADS * V) {
        load<V>(item, logits + i);
        for (int j = 0; j < V; j++)
            item[j] = factor * exp2_fast((item[j] - max) * LOG2_E) - (i + j == target ? call.scale : 0);
        store<V>(logits + i, item);
    }
}

static cudaError_t each_row(const struct cuda_launch *launch, const struct logits_call *call, void (*vector)(logits_call),
                            void (*scalar)(logits_call))
{
    if (call->t <= 0)
        return cudaSuccess;
    const bool wide = call->v % VECTOR == 0 && aligned(call->logits);
    return launch_kernel(wide ? vector : scalar, dim3((unsigned)call->t), dim3(ROW_THREADS), 0, launch->stream, *call);
}

int logits_max_cuda(const struct cuda_launch *launch, const struct logits_call *call)
{
    return each_row(launch, call, logits_max_kernel<VECTOR>, logits_max_kernel<1>);
}

int logits_sum_cuda(const struct cuda_launch *launch, const struct logits_call *call)
{
    return each_row(launch, call, logits_sum_kernel<VECTOR>, logits_sum_kernel<1>);
}

int logits_loss_cuda(const struct cuda_launch *launch, const struct logits_call *call)
{
    return launch_kernel(logits_loss_kernel, dim3(1), dim3(LOSS_THREADS), 0, launch->stream, *call);
}

int logits_backward_cuda(const struct cuda_launch *launch, const struct logits_call *call)
{
    return each_row(launch, call, logits_backward_kernel<VECTOR>, logits_backward_kernel<1>);
}
