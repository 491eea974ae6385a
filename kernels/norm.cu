/*
 * norm.cu - layer norm and RMS norm, forward and backward, fused with the residual gradient.
 *
 * Variants: width a multiple of 8 (16-byte accesses) and any other (one element at a time). A block takes a row; passes after the
 * first find it in the first-level cache. Backward keeps the gradients of gain and bias of its columns in registers while it goes
 * through its rows (h up to 16,384, or 2,048 one at a time), and in a kernel over columns of their own beyond.
 * Bytes: forward 4 t h (read x, write y); backward 6 t h, 8 t h with a gradient to add; statistics and parameters are small.
 * FLOPs: about 8 and 16 per element. Limiter: memory bandwidth; below a few hundred rows, the latency of a block's sums.
 * The blocks' gradients are added by a second kernel in the blocks' order, so the bits do not change from run to run.
 */
#include "kernels/vector.cuh"

enum { ITEMS = 2, MOST_THREADS = 1024 };

template <int V> __global__ void __launch_bounds__(MOST_THREADS) norm_forward_kernel(norm_forward_call call)
{
    __shared__ float scratch[WARP];
    const int64_t row = blockIdx.x, first = (int64_t)threadIdx.x * V, step = (int64_t)blockDim.x * V;
    const bf16 *x = (const bf16 *)call.x + row * call.h, *gain = (const bf16 *)call.gain, *bias = (const bf16 *)call.bias;
    bf16 *y = (bf16 *)call.y + row * call.h;
    float item[V], scale[V], shift[V], mean = 0, square = 0;
    for (int64_t at = first; !call.rms && at < call.h; at += step) {
        load<V>(item, x + at);
        for (int j = 0; j < V; j++)
            mean += item[j];
    }
    if (!call.rms)
        mean = block_sum(mean, scratch) / (float)call.h;
    for (int64_t at = first; at < call.h; at += step) {
        load<V>(item, x + at);
        for (int j = 0; j < V; j++)
            square += (item[j] - mean) * (item[j] - mean);
    }
    const float rstd = 1 / sqrtf(block_sum(square, scratch) / (float)call.h + call.epsilon);
    for (int64_t at = first; at < call.h; at += step) {
        load<V>(item, x + at);
        load<V>(scale, gain + at);
        if (bias)
            load<V>(shift, bias + at);
        for (int j = 0; j < V; j++)
            item[j] = (item[j] - mean) * rstd * scale[j] + (bias ? shift[j] : 0);
        store<V>(y + at, item);
    }
    if (threadIdx.x == 0) {
        if (call.mean)
            call.mean[row] = mean;
        call.rstd[row] = rstd;
    }
}

/* A row's dy, x and what both passes make of them: n = (x - mean) rstd, w = dy gain. */
template <int V> struct backward_vector {
    float dy[V], n[V], w[V];
    __device__ void read(const norm_backward_call &call, int64_t row, int64_t at, float mean, float rstd)
    {
        float gain[V];
        load<V>(dy, (const bf16 *)call.dy + row * call.h + at);
        load<V>(n, (const bf16 *)call.x + row * call.h + at);
        load<V>(gain, (const bf16 *)call.gain + at);
        for (int j = 0; j < V; j++) {
            n[j] = (n[j] - mean) * rstd;
            w[j] = dy[j] * gain[j];
        }
    }
    __device__ void write(const norm_backward_call &call, int64_t row, int64_t at, float rstd, float mean_w, float mean_wn) const
    {
        float dx[V], add[V];
        if (call.add)
            load<V>(add, (const bf16 *)call.add + row * call.h + at);
        for (int j = 0; j < V; j++)
            dx[j] = rstd * (w[j] - mean_w - n[j] * mean_wn) + (call.add ? add[j] : 0);
        store<V>((bf16 *)call.dx + row * call.h + at, dx);
    }
};

/* Rows blockIdx, + gridDim, ...; partial[block][0..1][h] get the block's dgain and dbias when COLUMNS. */
template <int V, bool COLUMNS>
__global__ void __launch_bounds__(MOST_THREADS) norm_backward_kernel(norm_backward_call call, float *partial)
{
    __shared__ float scratch[WARP];
    const int64_t first = (int64_t)threadIdx.x * V, step = (int64_t)blockDim.x * V;
    float dgain[ITEMS][V] = {}, dbias[ITEMS][V] = {};
    for (int64_t row = blockIdx.x; row < call.t; row += gridDim.x) {
        const float mean = call.rms ? 0 : call.mean[row], rstd = call.rstd[row];
        backward_vector<V> item;
        float sum_w = 0, sum_wn = 0;
        for (int64_t at = first; at < call.h; at += step) {
            item.read(call, row, at, mean, rstd);
            for (int j = 0; j < V; j++) {
                sum_w += item.w[j];
                sum_wn += item.w[j] * item.n[j];
            }
        }
        const float mean_w = call.rms ? 0 : block_sum(sum_w, scratch) / (float)call.h;
        const float mean_wn = block_sum(sum_wn, scratch) / (float)call.h;
        if constexpr (!COLUMNS) {
            for (int64_t at = first; at < call.h; at += step) {
                item.read(call, row, at, mean, rstd);
                item.write(call, row, at, rstd, mean_w, mean_wn);
            }
        } else {
#pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                if (first + i * step >= call.h)
                    continue;
                item.read(call, row, first + i * step, mean, rstd);
                item.write(call, row, first + i * step, rstd, mean_w, mean_wn);
                for (int j = 0; j < V; j++) {
                    dgain[i][j] += item.dy[j] * item.n[j];
                    dbias[i][j] += item.dy[j];
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int64_t at = first + i * step;
        if (!COLUMNS || at >= call.h)
            continue;
        store<V>(partial + (2 * (int64_t)blockIdx.x) * call.h + at, dgain[i]);
        store<V>(partial + (2 * (int64_t)blockIdx.x + 1) * call.h + at, dbias[i]);
    }
}

/* dgain and dbias of one column per thread, rows in order: for widths that do not fit the registers of a block. */
__global__ void norm_columns_kernel(norm_backward_call call)
{
    const int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    float dgain = 0, dbias = 0;
    if (column >= call.h)
        return;
    for (int64_t row = 0; row < call.t; row++) {
        const float dy = bf16_to_float(((const bf16 *)call.dy)[row * call.h + column]);
        const float x = bf16_to_float(((const bf16 *)call.x)[row * call.h + column]);
        dgain += dy * (x - (call.rms ? 0 : call.mean[row])) * call.rstd[row];
        dbias += dy;
    }
    call.dgain[column] += dgain;
    if (call.dbias)
        call.dbias[column] += dbias;
}

/* partial[parts][2][h] to dgain and dbias, parts in order. */
__global__ void norm_partial_kernel(norm_backward_call call, const float *partial, int parts)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    float *to = i < call.h ? call.dgain : call.dbias;
    float sum = 0;
    if (i >= 2 * call.h || !to)
        return;
    for (int part = 0; part < parts; part++)
        sum += partial[part * 2 * call.h + i];
    to[i % call.h] += sum;
}

static int threads_for(int64_t h, int v, int items)
{
    int64_t threads = ((h + (int64_t)v * items - 1) / ((int64_t)v * items) + WARP - 1) / WARP * WARP;
    return (int)(threads < MOST_THREADS ? threads : (int64_t)MOST_THREADS);
}

int norm_forward_cuda(const struct cuda_launch *launch, const struct norm_forward_call *call)
{
    if (call->t <= 0)
        return cudaSuccess;
    if (call->h % VECTOR == 0 && aligned(call->x) && aligned(call->y) && aligned(call->gain) && aligned(call->bias))
        return launch_kernel(norm_forward_kernel<VECTOR>, dim3((unsigned)call->t), dim3(threads_for(call->h, VECTOR, ITEMS)), 0,
                             launch->stream, *call);
    return launch_kernel(norm_forward_kernel<1>, dim3((unsigned)call->t), dim3(threads_for(call->h, 1, ITEMS)), 0, launch->stream,
                         *call);
}

template <int V> static cudaError_t backward_in_registers(const struct cuda_launch *launch, const struct norm_backward_call *call)
{
    const int threads = threads_for(call->h, V, ITEMS);
    const int64_t fit = (int64_t)(launch->workspace_bytes / (2 * (size_t)call->h * sizeof(float)));
    int64_t blocks =
        (int64_t)launch->multiprocessors * (threads < 512 ? 512 / threads : 1); /* few: each has partials of width 2 h */
    blocks = blocks > call->t ? call->t : blocks;
    blocks = blocks > fit ? fit : blocks;
    if (blocks < 1)
        return cudaErrorInvalidValue;
    float *partial = (float *)launch->workspace;
    cudaError_t error =
        launch_kernel(norm_backward_kernel<V, true>, dim3((unsigned)blocks), dim3(threads), 0, launch->stream, *call, partial);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(norm_partial_kernel, dim3((unsigned)((2 * call->h + 255) / 256)), dim3(256), 0, launch->stream, *call,
                         (const float *)partial, (int)blocks);
}

/* Columns first: dx may overwrite dy. */
static cudaError_t backward_in_two(const struct cuda_launch *launch, const struct norm_backward_call *call)
{
    cudaError_t error =
        launch_kernel(norm_columns_kernel, dim3((unsigned)((call->h + 63) / 64)), dim3(64), 0, launch->stream, *call);
    if (error != cudaSuccess)
        return error;
    return launch_kernel(norm_backward_kernel<1, false>, dim3((unsigned)call->t), dim3(threads_for(call->h, 1, ITEMS)), 0,
                         launch->stream, *call, (float *)NULL);
}

int norm_backward_cuda(const struct cuda_launch *launch, const struct norm_backward_call *call)
{
    if (call->t <= 0)
        return cudaSuccess;
    bool vector = call->h % VECTOR == 0 && aligned(call->x) && aligned(call->dy) && aligned(call->dx) && aligned(call->gain) &&
                  aligned(call->add);
    if (vector && call->h <= MOST_THREADS * ITEMS * VECTOR)
        return backward_in_registers<VECTOR>(launch, call);
    if (call->h <= MOST_THREADS * ITEMS)
        return backward_in_registers<1>(launch, call);
    return backward_in_two(launch, call);
}
