/*
 * rows.cu - rows of activations from one place to another: gathered, spread, shared, folded.
 *
 * Variants: a block of threads per row, one element per thread and turn.
 * Bytes: 4 per element moved, 6 where it is added. Limiter: memory bandwidth; accesses are of 2 bytes (neighbours coalesce).
 */
#include "kernels/vector.cuh"

enum { ROW_THREADS = 128 };

__global__ void __launch_bounds__(ROW_THREADS) rows_kernel(rows_call call)
{
    const int64_t n = call.count && *call.count < call.n ? *call.count : call.n;
    const int64_t share = call.share ? call.share : 1, fold = call.fold ? call.fold : 1;
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        const int64_t other = call.index ? call.index[i] : i;
        const int64_t source = call.index && !call.scatter ? other : i / share * fold;
        const bf16 *from = (const bf16 *)call.from + source * call.from_row;
        bf16 *to = (bf16 *)call.to + (call.scatter ? other : i) * call.to_row;
        for (int64_t k = threadIdx.x; k < call.width; k += ROW_THREADS) {
            float sum = call.accumulate ? bf16_to_float(to[k]) : 0;
            for (int64_t j = 0; j < fold; j++)
                sum += bf16_to_float(from[j * call.from_row + k]);
            to[k] = bf16_from_float(sum);
        }
    }
}

int rows_cuda(const struct cuda_launch *launch, const struct rows_call *call)
{
    if (call->n <= 0 || call->width <= 0)
        return cudaSuccess;
    return launch_kernel(rows_kernel, dim3(blocks_for(launch, call->n * ROW_THREADS, ROW_THREADS)), dim3(ROW_THREADS), 0,
                         launch->stream, *call);
}
