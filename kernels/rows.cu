/*
 * rows.cu - copies rows of activations: gathers, scatters, repeats or sums them.
 *
 * Variants: a block of threads per row and turn; 16-byte accesses if widths and pointers allow, else one element at a time.
 * Bytes: 4 per copied element, 6 per added element. Limiter: memory bandwidth.
 */
#include "kernels/vector.cuh"

enum { ROW_THREADS = 128 };

template <int V> __global__ void __launch_bounds__(ROW_THREADS) rows_kernel(rows_call call)
{
    const int64_t n = call.count && *call.count < call.n ? *call.count : call.n;
    const int64_t share = call.share ? call.share : 1, fold = call.fold ? call.fold : 1;
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        const int64_t other = call.index ? call.index[i] : i;
        const int64_t source = call.index && !call.scatter ? other : i / share * fold;
        const bf16 *from = (const bf16 *)call.from + source * call.from_row;
        bf16 *to = (bf16 *)call.to + (call.scatter ? other : i) * call.to_row;
        for (int64_t k = (int64_t)threadIdx.x * V; k < call.width; k += ROW_THREADS * V) {
            float sum[V] = {}, item[V];
            if (call.accumulate)
                load<V>(sum, to + k);
            for (int64_t j = 0; j < fold; j++) {
                load<V>(item, from + j * call.from_row + k);
                for (int e = 0; e < V; e++)
                    sum[e] += item[e];
            }
            store<V>(to + k, sum);
        }
    }
}

int rows_cuda(const struct cuda_launch *launch, const struct rows_call *call)
{
    if (call->n <= 0 || call->width <= 0)
        return cudaSuccess;
    const bool vector = call->width % VECTOR == 0 && call->from_row % VECTOR == 0 && call->to_row % VECTOR == 0 &&
                        aligned(call->from) && aligned(call->to);
    return launch_kernel(vector ? rows_kernel<VECTOR> : rows_kernel<1>,
                         dim3(blocks_for(launch, call->n * ROW_THREADS, ROW_THREADS, BLOCKS_IN_TURN)), dim3(ROW_THREADS), 0,
                         launch->stream, *call);
}
