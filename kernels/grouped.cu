/*
 * grouped.cu - linear layers of experts: a product per group of rows, the groups' sizes known on the device only.
 *
 * Variants: one. A block computes tiles of 32 x 32 of one group's product in shared memory, fp32 throughout; blocks of a group
 * share its tiles. Bytes: 2 (m k + k n) per 32 columns and rows of the result. FLOPs: 2 m n k. Limiter: fp32 multiply-adds;
 * tensor cores would be faster and are the next step.
 */
#include "kernels/vector.cuh"

enum { TILE = 32, GROUPED_THREADS = 256, OUTPUTS = TILE * TILE / GROUPED_THREADS, ROW_BLOCKS = 8 };

/* Element (i, j) of a matrix stands at at[i row + j column]; one of the two is 1. */
struct operand {
    const bf16 *at;
    int64_t row, column;
};

/* Of one group: the product a[m, k] b[k, n] goes to y, with a row `bias` beside, or is added to `sum`. */
struct grouped_product {
    int64_t m, n, k;
    operand a, b;
    bf16 *y;
    const bf16 *bias;
    float *sum;
};

enum grouped_kind { GROUPED_FORWARD, GROUPED_INPUT, GROUPED_WEIGHT };

__device__ static inline grouped_product product_of(const grouped_call &call, grouped_kind kind, int group)
{
    const int64_t first = call.offsets[group], rows = call.offsets[group + 1] - first, in = call.in, out = call.out;
    const bf16 *x = (const bf16 *)call.x + first * in, *dy = (const bf16 *)call.dy + first * out;
    const bf16 *w = (const bf16 *)call.w + group * out * in;
    if (kind == GROUPED_FORWARD) /* x w^T */
        return {rows,
                out,
                in,
                {x, in, 1},
                {w, 1, in},
                (bf16 *)call.y + first * out,
                call.bias ? (const bf16 *)call.bias + group * out : NULL,
                NULL};
    if (kind == GROUPED_INPUT) /* dy w */
        return {rows, in, out, {dy, out, 1}, {w, in, 1}, (bf16 *)call.dx + first * in, NULL, NULL};
    return {out, in, rows, {dy, 1, out}, {x, in, 1}, NULL, NULL, call.dw + group * out * in}; /* dy^T x */
}

/* The tile at (i0, j0) of a matrix of m by n, zeros beyond; neighbouring threads read neighbouring elements. */
__device__ static inline void fill_tile(float tile[TILE][TILE + 1], const operand &o, int64_t i0, int64_t j0, int64_t m,
                                        int64_t n)
{
    const int fast = threadIdx.x % TILE;
    const bool down = o.row == 1;
    for (int slow = threadIdx.x / TILE; slow < TILE; slow += GROUPED_THREADS / TILE) {
        const int i = down ? fast : slow, j = down ? slow : fast;
        const bool inside = i0 + i < m && j0 + j < n;
        tile[i][j] = inside ? bf16_to_float(o.at[(i0 + i) * o.row + (j0 + j) * o.column]) : 0;
    }
}

__device__ static inline void put(const grouped_product &p, int64_t i, int64_t j, float sum)
{
    if (i >= p.m || j >= p.n)
        return;
    if (p.sum)
        p.sum[i * p.n + j] += sum;
    else
        p.y[i * p.n + j] = bf16_from_float(sum + (p.bias ? bf16_to_float(p.bias[j]) : 0));
}

__global__ void __launch_bounds__(GROUPED_THREADS) grouped_kernel(grouped_call call, grouped_kind kind)
{
    __shared__ float a[TILE][TILE + 1], b[TILE][TILE + 1];
    const grouped_product p = product_of(call, kind, (int)blockIdx.y);
    const int64_t j0 = (int64_t)blockIdx.x * TILE;
    const int row = threadIdx.x / TILE, column = threadIdx.x % TILE;
    for (int64_t i0 = (int64_t)blockIdx.z * TILE; i0 < p.m; i0 += (int64_t)gridDim.z * TILE) {
        float sum[OUTPUTS] = {};
        for (int64_t k0 = 0; k0 < p.k; k0 += TILE) {
            __syncthreads();
            fill_tile(a, p.a, i0, k0, p.m, p.k);
            fill_tile(b, p.b, k0, j0, p.k, p.n);
            __syncthreads();
            for (int k = 0; k < TILE; k++)
                for (int o = 0; o < OUTPUTS; o++)
                    sum[o] += a[row + o * (TILE / OUTPUTS)][k] * b[k][column];
        }
        for (int o = 0; o < OUTPUTS; o++)
            put(p, i0 + row + o * (TILE / OUTPUTS), j0 + column, sum[o]);
    }
}

struct grouped_bias {
    grouped_call call;
    template <int V> __device__ void run(int64_t i) const
    {
        const int group = (int)(i / call.out);
        float sum = 0;
        for (int64_t row = call.offsets[group]; row < call.offsets[group + 1]; row++)
            sum += bf16_to_float(((const bf16 *)call.dy)[row * call.out + i % call.out]);
        call.dbias[i] += sum;
    }
};

/* `n` columns of the result. */
static cudaError_t launch_grouped(const struct cuda_launch *launch, const struct grouped_call *call, grouped_kind kind, int64_t n)
{
    if (call->most <= 0 || call->groups <= 0)
        return cudaSuccess;
    return launch_kernel(grouped_kernel, dim3((unsigned)((n + TILE - 1) / TILE), (unsigned)call->groups, ROW_BLOCKS),
                         dim3(GROUPED_THREADS), 0, launch->stream, *call, kind);
}

int grouped_forward_cuda(const struct cuda_launch *launch, const struct grouped_call *call)
{
    return launch_grouped(launch, call, GROUPED_FORWARD, call->out);
}

int grouped_backward_input_cuda(const struct cuda_launch *launch, const struct grouped_call *call)
{
    return launch_grouped(launch, call, GROUPED_INPUT, call->in);
}

int grouped_backward_weight_cuda(const struct cuda_launch *launch, const struct grouped_call *call)
{
    cudaError_t error = launch_grouped(launch, call, GROUPED_WEIGHT, call->in);
    if (error != cudaSuccess || !call->dbias || call->most <= 0)
        return error;
    return launch_each(launch, call->groups * call->out, false, grouped_bias{*call});
}
