/*
 * grouped.cu - linear layers of experts: a product per group of rows, the groups' sizes known on the device only.
 *
 * Variants: one. A block computes tiles of 32 x 32 of one group's product in shared memory, fp32 throughout; blocks of a group
 * share its tiles. Bytes: 2 (m k + k n) per 32 columns and rows of the result. FLOPs: 2 m n k. Limiter: fp32 multiply-adds;
 * tensor cores would be faster and are the next step.
 */
#include "kernels/vector.cuh"

enum { TILE = 32, GROUPED_THREADS = 256, OUTPUTS = TILE * TILE / GROUPED_THREADS, ROW_BLOCKS = 8 };

/* c[m, n] = a[m, k] b[k, n] of one group. */
struct group_size {
    int64_t first, rows;
};

__device__ static inline group_size size_of(const grouped_call &call, int group)
{
    return {call.offsets[group], call.offsets[group + 1] - call.offsets[group]};
}

/* y = x w^T + bias */
struct forward_product {
    grouped_call call;
    group_size size;
    const bf16 *w;
    __device__ forward_product(const grouped_call &c, int group)
        : call(c), size(size_of(c, group)), w((const bf16 *)c.w + group * c.out * c.in), bias(NULL)
    {
        if (c.bias)
            bias = (const bf16 *)c.bias + group * c.out;
    }
    const bf16 *bias;
    __device__ int64_t m() const
    {
        return size.rows;
    }
    __device__ int64_t n() const
    {
        return call.out;
    }
    __device__ int64_t k() const
    {
        return call.in;
    }
    __device__ float a(int64_t i, int64_t k) const
    {
        return bf16_to_float(((const bf16 *)call.x)[(size.first + i) * call.in + k]);
    }
    __device__ float b(int64_t k, int64_t j) const
    {
        return bf16_to_float(w[j * call.in + k]);
    }
    __device__ void put(int64_t i, int64_t j, float sum) const
    {
        ((bf16 *)call.y)[(size.first + i) * call.out + j] = bf16_from_float(sum + (bias ? bf16_to_float(bias[j]) : 0));
    }
};

/* dx = dy w */
struct input_product {
    grouped_call call;
    group_size size;
    const bf16 *w;
    __device__ input_product(const grouped_call &c, int group)
        : call(c), size(size_of(c, group)), w((const bf16 *)c.w + group * c.out * c.in)
    {
    }
    __device__ int64_t m() const
    {
        return size.rows;
    }
    __device__ int64_t n() const
    {
        return call.in;
    }
    __device__ int64_t k() const
    {
        return call.out;
    }
    __device__ float a(int64_t i, int64_t k) const
    {
        return bf16_to_float(((const bf16 *)call.dy)[(size.first + i) * call.out + k]);
    }
    __device__ float b(int64_t k, int64_t j) const
    {
        return bf16_to_float(w[k * call.in + j]);
    }
    __device__ void put(int64_t i, int64_t j, float sum) const
    {
        ((bf16 *)call.dx)[(size.first + i) * call.in + j] = bf16_from_float(sum);
    }
};

/* dw += dy^T x */
struct weight_product {
    grouped_call call;
    group_size size;
    float *dw;
    __device__ weight_product(const grouped_call &c, int group)
        : call(c), size(size_of(c, group)), dw(c.dw + group * c.out * c.in)
    {
    }
    __device__ int64_t m() const
    {
        return call.out;
    }
    __device__ int64_t n() const
    {
        return call.in;
    }
    __device__ int64_t k() const
    {
        return size.rows;
    }
    __device__ float a(int64_t i, int64_t k) const
    {
        return bf16_to_float(((const bf16 *)call.dy)[(size.first + k) * call.out + i]);
    }
    __device__ float b(int64_t k, int64_t j) const
    {
        return bf16_to_float(((const bf16 *)call.x)[(size.first + k) * call.in + j]);
    }
    __device__ void put(int64_t i, int64_t j, float sum) const
    {
        dw[i * call.in + j] += sum;
    }
};

template <class Product> __global__ void __launch_bounds__(GROUPED_THREADS) grouped_kernel(grouped_call call)
{
    __shared__ float a[TILE][TILE + 1], b[TILE][TILE + 1];
    const Product product(call, (int)blockIdx.y);
    const int64_t j0 = (int64_t)blockIdx.x * TILE;
    const int row = threadIdx.x / TILE, column = threadIdx.x % TILE;
    for (int64_t i0 = (int64_t)blockIdx.z * TILE; i0 < product.m(); i0 += (int64_t)gridDim.z * TILE) {
        float sum[OUTPUTS] = {};
        for (int64_t k0 = 0; k0 < product.k(); k0 += TILE) {
            __syncthreads();
            for (int r = row; r < TILE; r += TILE / OUTPUTS) {
                const bool inside_a = i0 + r < product.m() && k0 + column < product.k();
                const bool inside_b = k0 + r < product.k() && j0 + column < product.n();
                a[r][column] = inside_a ? product.a(i0 + r, k0 + column) : 0;
                b[r][column] = inside_b ? product.b(k0 + r, j0 + column) : 0;
            }
            __syncthreads();
            for (int k = 0; k < TILE; k++)
                for (int o = 0; o < OUTPUTS; o++)
                    sum[o] += a[row + o * (TILE / OUTPUTS)][k] * b[k][column];
        }
        for (int o = 0; o < OUTPUTS; o++) {
            const int64_t i = i0 + row + o * (TILE / OUTPUTS), j = j0 + column;
            if (i < product.m() && j < product.n())
                product.put(i, j, sum[o]);
        }
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

template <class Product>
static cudaError_t launch_grouped(const struct cuda_launch *launch, const struct grouped_call *call, int64_t n)
{
    if (call->most <= 0 || call->groups <= 0)
        return cudaSuccess;
    return launch_kernel(grouped_kernel<Product>, dim3((unsigned)((n + TILE - 1) / TILE), (unsigned)call->groups, ROW_BLOCKS),
                         dim3(GROUPED_THREADS), 0, launch->stream, *call);
}

int grouped_forward_cuda(const struct cuda_launch *launch, const struct grouped_call *call)
{
    return launch_grouped<forward_product>(launch, call, call->out);
}

int grouped_backward_input_cuda(const struct cuda_launch *launch, const struct grouped_call *call)
{
    return launch_grouped<input_product>(launch, call, call->in);
}

int grouped_backward_weight_cuda(const struct cuda_launch *launch, const struct grouped_call *call)
{
    cudaError_t error = launch_grouped<weight_product>(launch, call, call->in);
    if (error != cudaSuccess || !call->dbias || call->most <= 0)
        return error;
    return launch_each(launch, call->groups * call->out, false, grouped_bias{*call});
}
