/*
 * head_norm.cu - a norm of every head for itself, forward and backward.
 *
 * Variants: a warp per head. Bytes: 4 per element forward, 6 backward and 4 once more for the gain's gradient, which a thread per
 * column adds up over rows and heads in order. Limiter: memory bandwidth forward; the columns' few threads backward.
 */
#include "kernels/vector.cuh"

struct head_moments {
    float mean, rstd;
};

__device__ static inline head_moments moments_of(const head_norm_call &call, const bf16 *x)
{
    float mean = 0, square = 0;
    for (int i = threadIdx.x; i < call.head_dim && !call.rms; i += WARP)
        mean += bf16_to_float(x[i]);
    mean = warp_sum(mean) / (float)call.head_dim;
    for (int i = threadIdx.x; i < call.head_dim; i += WARP) {
        const float d = bf16_to_float(x[i]) - mean;
        square += d * d;
    }
    return {mean, 1 / sqrtf(warp_sum(square) / (float)call.head_dim + call.epsilon)};
}

__global__ void __launch_bounds__(WARP) head_norm_forward_kernel(head_norm_call call)
{
    const int64_t head = (int64_t)blockIdx.y * call.head_dim;
    const bf16 *x = (const bf16 *)call.x + blockIdx.x * call.x_row + head, *gain = (const bf16 *)call.gain;
    const bf16 *bias = (const bf16 *)call.bias;
    bf16 *y = (bf16 *)call.y + blockIdx.x * call.y_row + head;
    const head_moments m = moments_of(call, x);
    for (int i = threadIdx.x; i < call.head_dim; i += WARP)
        y[i] = bf16_from_float((bf16_to_float(x[i]) - m.mean) * m.rstd * bf16_to_float(gain[i]) +
                               (bias ? bf16_to_float(bias[i]) : 0));
}

/* rstd (and mean) of every row and head go to `moments` for the columns. */
__global__ void __launch_bounds__(WARP) head_norm_moments_kernel(head_norm_call call, float *moments)
{
    const bf16 *x = (const bf16 *)call.x + blockIdx.x * call.x_row + (int64_t)blockIdx.y * call.head_dim;
    const head_moments m = moments_of(call, x);
    float *at = moments + 2 * ((int64_t)blockIdx.x * call.heads + blockIdx.y);
    if (threadIdx.x == 0)
        at[0] = m.mean, at[1] = m.rstd;
}

__global__ void head_norm_columns_kernel(head_norm_call call, const float *moments)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    float dgain = 0, dbias = 0;
    if (i >= call.head_dim)
        return;
    for (int64_t row = 0; row < call.t; row++)
        for (int head = 0; head < call.heads; head++) {
            const float *m = moments + 2 * (row * call.heads + head);
            const float dy = bf16_to_float(((const bf16 *)call.dy)[row * call.y_row + head * call.head_dim + i]);
            const float x = bf16_to_float(((const bf16 *)call.x)[row * call.x_row + head * call.head_dim + i]);
            dgain += dy * (x - m[0]) * m[1];
            dbias += dy;
        }
    call.dgain[i] += dgain;
    if (call.dbias)
        call.dbias[i] += dbias;
}

__global__ void __launch_bounds__(WARP) head_norm_backward_kernel(head_norm_call call)
{
    const int64_t head = (int64_t)blockIdx.y * call.head_dim;
    const bf16 *x = (const bf16 *)call.x + blockIdx.x * call.x_row + head, *gain = (const bf16 *)call.gain;
    const bf16 *dy = (const bf16 *)call.dy + blockIdx.x * call.y_row + head;
    bf16 *dx = (bf16 *)call.dx + blockIdx.x * call.y_row + head;
    const head_moments m = moments_of(call, x);
    float sum_w = 0, sum_wn = 0;
    for (int i = threadIdx.x; i < call.head_dim; i += WARP) {
        const float w = bf16_to_float(dy[i]) * bf16_to_float(gain[i]);
        sum_w += w;
        sum_wn += w * (bf16_to_float(x[i]) - m.mean) * m.rstd;
    }
    const float mean_w = call.rms ? 0 : warp_sum(sum_w) / (float)call.head_dim, mean_wn = warp_sum(sum_wn) / (float)call.head_dim;
    for (int i = threadIdx.x; i < call.head_dim; i += WARP) {
        const float n = (bf16_to_float(x[i]) - m.mean) * m.rstd;
        dx[i] = bf16_from_float(m.rstd * (bf16_to_float(dy[i]) * bf16_to_float(gain[i]) - mean_w - n * mean_wn));
    }
}

int head_norm_forward_cuda(const struct cuda_launch *launch, const struct head_norm_call *call)
{
    if (call->t <= 0)
        return cudaSuccess;
    return launch_kernel(head_norm_forward_kernel, dim3((unsigned)call->t, (unsigned)call->heads), dim3(WARP), 0, launch->stream,
                         *call);
}

/* Columns first: dx may overwrite dy. */
int head_norm_backward_cuda(const struct cuda_launch *launch, const struct head_norm_call *call)
{
    float *moments = (float *)launch->workspace;
    const dim3 heads((unsigned)call->t, (unsigned)call->heads);
    if (call->t <= 0)
        return cudaSuccess;
    if (launch->workspace_bytes < 2 * sizeof(float) * (size_t)(call->t * call->heads))
        return cudaErrorInvalidValue;
    cudaError_t error = launch_kernel(head_norm_moments_kernel, heads, dim3(WARP), 0, launch->stream, *call, moments);
    if (error == cudaSuccess)
        error = launch_kernel(head_norm_columns_kernel, dim3((unsigned)((call->head_dim + 31) / 32)), dim3(WARP), 0,
                              launch->stream, *call, (const float *)moments);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(head_norm_backward_kernel, heads, dim3(WARP), 0, launch->stream, *call);
}
