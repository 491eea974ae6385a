/*
 * column_sum.cu - sums over the rows of a matrix: gradients of biases.
 *
 * Two kernels: each block sums a stripe of columns over a part of the rows, then the parts are added in order, so the bits do
 * not change from run to run. Variants: 8 columns per thread (width a multiple of 8) or one.
 * Bytes: 2 t h. FLOPs: t h. Limiter: memory bandwidth.
 */
#include "kernels/vector.cuh"

enum { ROWS_AT_ONCE = 8 }; /* warps of a block, each a row */

template <int V>
__global__ void __launch_bounds__(WARP *ROWS_AT_ONCE) column_sum_kernel(column_sum_call call, int64_t part_rows, float *partial)
{
    __shared__ float sums[ROWS_AT_ONCE][WARP * V];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int64_t column = ((int64_t)blockIdx.x * WARP + lane) * V;
    const int64_t end = (blockIdx.y + 1) * part_rows < call.t ? (blockIdx.y + 1) * part_rows : call.t;
    float sum[V] = {}, item[V];
    if (column < call.h)
        for (int64_t row = blockIdx.y * part_rows + warp; row < end; row += ROWS_AT_ONCE) {
            load<V>(item, (const bf16 *)call.x + row * call.h + column);
            for (int j = 0; j < V; j++)
                sum[j] += item[j];
        }
    for (int j = 0; j < V; j++)
        sums[warp][j * WARP + lane] = sum[j];
    __syncthreads();
    if (warp > 0 || column >= call.h)
        return;
    for (int j = 0; j < V; j++) {
        for (int other = 1; other < ROWS_AT_ONCE; other++)
            sum[j] += sums[other][j * WARP + lane];
        partial[blockIdx.y * call.h + column + j] = sum[j];
    }
}

/* A column per lane; each warp of a block adds up every PARTS_AT_ONCEth part, then the first adds up theirs. */
enum { PARTS_AT_ONCE = 8 };
__global__ void __launch_bounds__(WARP *PARTS_AT_ONCE)
    partial_sum_kernel(const float *partial, int64_t parts, int64_t stride, int64_t n, float *sum)
{
    __shared__ float sums[PARTS_AT_ONCE][WARP];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int64_t i = (int64_t)blockIdx.x * WARP + lane;
    float total = 0;
    for (int64_t part = warp; part < parts && i < n; part += PARTS_AT_ONCE)
        total += partial[part * stride + i];
    sums[warp][lane] = total;
    __syncthreads();
    if (warp > 0 || i >= n)
        return;
    for (int other = 1; other < PARTS_AT_ONCE; other++)
        total += sums[other][lane];
    sum[i] += total;
}

int partial_sum_cuda(const struct cuda_launch *launch, const float *partial, int64_t parts, int64_t stride, int64_t n, float *sum)
{
    return launch_kernel(partial_sum_kernel, dim3((unsigned)((n + WARP - 1) / WARP)), dim3(WARP * PARTS_AT_ONCE), 0,
                         launch->stream, partial, parts, stride, n, sum);
}

int column_sum_cuda(const struct cuda_launch *launch, const struct column_sum_call *call)
{
    if (call->t <= 0 || call->h <= 0)
        return cudaSuccess;
    const bool vector = call->h % VECTOR == 0 && aligned(call->x);
    const int64_t stripe = WARP * (vector ? VECTOR : 1), stripes = (call->h + stripe - 1) / stripe;
    const int64_t fit = (int64_t)(launch->workspace_bytes / ((size_t)call->h * sizeof(float)));
    int64_t parts = 2 * BLOCKS_HELD * launch->multiprocessors / stripes + 1;
    parts = parts > (call->t + 63) / 64 ? (call->t + 63) / 64 : parts;
    parts = parts > fit ? fit : parts;
    if (parts < 1)
        return cudaErrorInvalidValue;
    const int64_t part_rows = (call->t + parts - 1) / parts;
    float *partial = (float *)launch->workspace;
    cudaError_t error =
        launch_kernel(vector ? column_sum_kernel<VECTOR> : column_sum_kernel<1>, dim3((unsigned)stripes, (unsigned)parts),
                      dim3(WARP * ROWS_AT_ONCE), 0, launch->stream, *call, part_rows, partial);
    return error != cudaSuccess ? error : (cudaError_t)partial_sum_cuda(launch, partial, parts, call->h, call->h, call->sum);
}
