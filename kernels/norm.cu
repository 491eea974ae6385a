/*
 * norm.cu - layer norm and RMS norm, forward and backward, fused with the residual gradient. A block takes a row.
 *
 * Variants: rows whose width is a multiple of 8, up to 16,384, with 16-byte accesses: forward keeps the row in registers;
 * backward keeps the gradients of gain and bias of its columns there and copies its next row to shared memory while it works on
 * one. All other rows: passes after the first find the row in the first-level cache, and the gradients beyond a width of 2,048
 * have a kernel over columns of their own. Bytes: forward 4 t h (read x, write y); backward 6 t h, 8 t h with a gradient to add;
 * statistics and parameters are small. FLOPs: about 8 and 16 per element. Limiter: memory bandwidth; below a few hundred rows,
 * the latency of a block's sums. The blocks' gradients are added by partial_sum_cuda, so the bits do not change from run to run.
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

/* Eight bf16 as they come from memory. */
__device__ static inline void unpack(float values[VECTOR], const uint4 &packed)
{
    load<VECTOR>(values, (const bf16 *)&packed);
}

/* The same for rows of at most ITEMS vectors a thread. */
__global__ void __launch_bounds__(MOST_THREADS) norm_forward_held_kernel(norm_forward_call call)
{
    __shared__ float scratch[WARP];
    const int h = (int)call.h, first = (int)threadIdx.x * VECTOR, step = (int)blockDim.x * VECTOR;
    const int64_t row = blockIdx.x;
    const bf16 *x = (const bf16 *)call.x + row * h, *gain = (const bf16 *)call.gain, *bias = (const bf16 *)call.bias;
    uint4 held[ITEMS];
    float item[VECTOR], scale[VECTOR], shift[VECTOR] = {}, mean = 0, square = 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const uint4 zeros = {0, 0, 0, 0};
        held[i] = first + i * step < h ? *(const uint4 *)(x + first + i * step) : zeros;
    }
    if (!call.rms) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            unpack(item, held[i]);
            for (int j = 0; j < VECTOR; j++)
                mean += item[j];
        }
        mean = block_sum(mean, scratch) / (float)h;
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        unpack(item, held[i]);
        for (int j = 0; j < VECTOR && first + i * step < h; j++)
            square += (item[j] - mean) * (item[j] - mean);
    }
    const float rstd = 1 / sqrtf(block_sum(square, scratch) / (float)h + call.epsilon);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = first + i * step;
        if (at >= h)
            continue;
        unpack(item, held[i]);
        load<VECTOR>(scale, gain + at);
        if (bias)
            load<VECTOR>(shift, bias + at);
        for (int j = 0; j < VECTOR; j++)
            item[j] = (item[j] - mean) * rstd * scale[j] + shift[j];
        store<VECTOR>((bf16 *)call.y + row * h + at, item);
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

/* The sums of two numbers over the block with one barrier: `scratch` is not the one of the sum before. */
__device__ static inline void block_sums(float &a, float &b, float scratch[2][WARP])
{
    const int warps = blockDim.x / WARP, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    a = warp_sum(a);
    b = warp_sum(b);
    if (lane == 0)
        scratch[0][warp] = a, scratch[1][warp] = b;
    __syncthreads();
    a = warp_sum(lane < warps ? scratch[0][lane] : 0);
    b = warp_sum(lane < warps ? scratch[1][lane] : 0);
}

/* This thread's vectors of a row's dy, x and add to shared memory [3][h], as one group of copies. */
__device__ static inline void copy_row(const norm_backward_call &call, int64_t row, bf16 *to)
{
    const int h = (int)call.h;
    for (int at = (int)threadIdx.x * VECTOR; at < h && row < call.t; at += (int)blockDim.x * VECTOR) {
        copy_async(to + at, (const bf16 *)call.dy + row * h + at, true);
        copy_async(to + h + at, (const bf16 *)call.x + row * h + at, true);
        if (call.add)
            copy_async(to + 2 * h + at, (const bf16 *)call.add + row * h + at, true);
    }
    copy_async_commit();
}

struct row_moments {
    float mean, rstd;
};

__device__ static inline row_moments moments_at(const norm_backward_call &call, int64_t row)
{
    const int64_t at = row < call.t ? row : 0;
    return {call.rms ? 0 : call.mean[at], call.rstd[at]};
}

/* What of a row stands `h` elements from its dy on, x: this thread's part of the sums that its gradient needs. */
__device__ static inline void row_sums(const norm_backward_call &call, const bf16 *dy_row, row_moments of, float *mean_w,
                                       float *mean_wn)
{
    const int h = (int)call.h, first = (int)threadIdx.x * VECTOR, step = (int)blockDim.x * VECTOR;
    float gain[VECTOR], x[VECTOR], dy[VECTOR];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = first + i * step;
        if (at >= h)
            continue;
        load<VECTOR>(dy, dy_row + at);
        load<VECTOR>(x, dy_row + h + at);
        load<VECTOR>(gain, (const bf16 *)call.gain + at);
        for (int j = 0; j < VECTOR; j++) {
            *mean_w += dy[j] * gain[j];
            *mean_wn += dy[j] * gain[j] * ((x[j] - of.mean) * of.rstd);
        }
    }
}

/* As norm_backward_kernel<1, true>. A thread reads of shared memory what it has copied itself, so copies need no barrier. */
template <int THREADS>
__global__ void __launch_bounds__(THREADS) norm_backward_ahead_kernel(norm_backward_call call, float *partial)
{
    __shared__ float scratch[2][2][WARP];
    const int h = (int)call.h, first = (int)threadIdx.x * VECTOR, step = (int)blockDim.x * VECTOR;
    bf16 *stages = (bf16 *)dynamic_shared(); /* [2][3][h] */
    float dgain[ITEMS][VECTOR] = {}, dbias[ITEMS][VECTOR] = {}, gain[VECTOR], n[VECTOR], dy[VECTOR];
    row_moments next = moments_at(call, blockIdx.x);
    int turn = 0;
    copy_row(call, blockIdx.x, stages);
    for (int64_t row = blockIdx.x; row < call.t; row += gridDim.x, turn ^= 1) {
        const bf16 *here = stages + turn * 3 * h;
        const float mean = next.mean, rstd = next.rstd;
        float mean_w = 0, mean_wn = 0;
        copy_row(call, row + gridDim.x, stages + (turn ^ 1) * 3 * h);
        next = moments_at(call, row + gridDim.x);
        copy_async_wait<1>();
        row_sums(call, here, {mean, rstd}, &mean_w, &mean_wn);
        block_sums(mean_w, mean_wn, scratch[turn]);
        mean_w = call.rms ? 0 : mean_w / (float)h;
        mean_wn /= (float)h;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            const int at = first + i * step;
            float dx[VECTOR] = {};
            if (at >= h)
                continue;
            load<VECTOR>(dy, here + at);
            load<VECTOR>(n, here + h + at);
            load<VECTOR>(gain, (const bf16 *)call.gain + at);
            if (call.add)
                load<VECTOR>(dx, here + 2 * h + at);
            for (int j = 0; j < VECTOR; j++) {
                n[j] = (n[j] - mean) * rstd;
                dx[j] += rstd * (dy[j] * gain[j] - mean_w - n[j] * mean_wn);
                dgain[i][j] += dy[j] * n[j];
                dbias[i][j] += dy[j];
            }
            store<VECTOR>((bf16 *)call.dx + row * h + at, dx);
        }
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const int at = first + i * step;
        if (at >= h)
            continue;
        store<VECTOR>(partial + (2 * (int64_t)blockIdx.x) * h + at, dgain[i]);
        store<VECTOR>(partial + (2 * (int64_t)blockIdx.x + 1) * h + at, dbias[i]);
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

static int threads_for(int64_t h, int v, int items)
{
    int64_t threads = ((h + (int64_t)v * items - 1) / ((int64_t)v * items) + WARP - 1) / WARP * WARP;
    return (int)(threads < MOST_THREADS ? threads : (int64_t)MOST_THREADS);
}

int norm_forward_cuda(const struct cuda_launch *launch, const struct norm_forward_call *call)
{
    if (call->t <= 0)
        return cudaSuccess;
    const bool vector =
        call->h % VECTOR == 0 && aligned(call->x) && aligned(call->y) && aligned(call->gain) && aligned(call->bias);
    if (vector)
        return launch_kernel(call->h <= MOST_THREADS * ITEMS * VECTOR ? norm_forward_held_kernel : norm_forward_kernel<VECTOR>,
                             dim3((unsigned)call->t), dim3(threads_for(call->h, VECTOR, ITEMS)), 0, launch->stream, *call);
    return launch_kernel(norm_forward_kernel<1>, dim3((unsigned)call->t), dim3(threads_for(call->h, 1, ITEMS)), 0, launch->stream,
                         *call);
}

typedef void backward_kernel(norm_backward_call, float *);

/* `blocks` at most: each has partials of width 2 h. */
static cudaError_t backward_with_partials(const struct cuda_launch *launch, const struct norm_backward_call *call,
                                          backward_kernel *kernel, int64_t blocks, int threads, size_t shared_bytes)
{
    const int64_t fit = (int64_t)(launch->workspace_bytes / (2 * (size_t)call->h * sizeof(float)));
    blocks = blocks > call->t ? call->t : blocks;
    blocks = blocks > fit ? fit : blocks;
    if (blocks < 1)
        return cudaErrorInvalidValue;
    float *partial = (float *)launch->workspace;
    cudaError_t error =
        launch_kernel(kernel, dim3((unsigned)blocks), dim3(threads), shared_bytes, launch->stream, *call, partial);
    if (error == cudaSuccess)
        error = (cudaError_t)partial_sum_cuda(launch, partial, blocks, 2 * call->h, call->h, call->dgain);
    if (error == cudaSuccess && call->dbias)
        error = (cudaError_t)partial_sum_cuda(launch, partial + call->h, blocks, 2 * call->h, call->h, call->dbias);
    return error;
}

static cudaError_t backward_in_registers(const struct cuda_launch *launch, const struct norm_backward_call *call)
{
    const int threads = threads_for(call->h, 1, ITEMS);
    const int64_t each = threads < 512 ? 512 / threads : 1;
    return backward_with_partials(launch, call, norm_backward_kernel<1, true>, launch->multiprocessors * each, threads, 0);
}

/* A multiprocessor holds AHEAD_THREADS: their registers are what there is. */
enum { AHEAD_THREADS = 768 };

/* *fits: whether the GPU has the shared memory. */
static cudaError_t backward_ahead(const struct cuda_launch *launch, const struct norm_backward_call *call, bool *fits)
{
    const int threads = threads_for(call->h, VECTOR, ITEMS);
    const size_t shared_bytes = 2 * 3 * (size_t)call->h * sizeof(bf16);
    const int64_t each = threads < AHEAD_THREADS ? AHEAD_THREADS / threads : 1;
    backward_kernel *kernel =
        threads <= AHEAD_THREADS ? norm_backward_ahead_kernel<AHEAD_THREADS> : norm_backward_ahead_kernel<MOST_THREADS>;
    *fits = allow_shared(kernel, shared_bytes) == cudaSuccess;
    if (!*fits)
        return cudaSuccess;
    return backward_with_partials(launch, call, kernel, launch->multiprocessors * each, threads, shared_bytes);
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
    bool done = false;
    cudaError_t error = cudaSuccess;
    if (vector && call->h <= MOST_THREADS * ITEMS * VECTOR)
        error = backward_ahead(launch, call, &done);
    if (done)
        return error;
    return call->h <= MOST_THREADS * ITEMS ? backward_in_registers(launch, call) : backward_in_two(launch, call);
}
