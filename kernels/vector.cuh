/*
 * vector.cuh - loads and stores of V elements at once, sums over a block, loops over elements.
 *
 * An access has 16 bytes: V = 8 for bf16, V = 4 for fp32. Neighbouring threads access neighbouring 16 bytes. If one thread
 * accessed two neighbours, each access of a warp would touch only every other half of a 32-byte sector.
 */
#ifndef MSIM_KERNELS_VECTOR_CUH
#define MSIM_KERNELS_VECTOR_CUH

extern "C" {
#include "kernels/cuda_operations.h"
}
#include "kernels/primitives.cuh"

enum { VECTOR = 8, WIDE_VECTOR = 4, WARP = 32 };

__device__ static inline float bf16_to_float(bf16 value)
{
    return float_from_bits((uint32_t)value.bits << 16);
}

__device__ static inline bf16 bf16_from_float(float value)
{
    bf16 result = {(uint16_t)bf16_pair(value, 0)};
    return result;
}

/* What a byte stands for (narrow.h). Moved to where fp32 has its exponent and mantissa it is too small by a power of two, below
 * the smallest normal number, too. */
__device__ static inline float narrow_value(uint32_t byte, narrow_format format)
{
    const uint32_t sign = byte << 24 & 0x80000000u, size = byte & 0x7f;
    const float value = format == NARROW_E5M2 ? float_from_bits(size << 21) * 0x1p112f : float_from_bits(size << 20) * 0x1p120f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (format == NARROW_E5M2 ? size >= 0x7c : size == 0x7f)
        bits = size == 0x7c ? 0x7f800000u : 0x7fffffffu;
    return float_from_bits(sign | bits);
}

template <int V> __device__ static inline void load(float values[V], const bf16 *from)
{
    if (V == 8) {
        uint4 packed = *(const uint4 *)from;
        const uint32_t pairs[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
        for (int i = 0; i < V / 2; i++) {
            values[2 * i] = float_from_bits(pairs[i] << 16);
            values[2 * i + 1] = float_from_bits(pairs[i] & 0xffff0000u);
        }
    } else if (V == 4) {
        const uint64_t packed = *(const uint64_t *)from;
#pragma unroll
        for (int i = 0; i < V; i++)
            values[i] = float_from_bits((uint32_t)(packed >> 16 * i) << 16);
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            values[i] = bf16_to_float(from[i]);
    }
}

template <int V> __device__ static inline void load(float values[V], const float *from)
{
    if (V % 4 == 0) {
#pragma unroll
        for (int i = 0; i < V / 4; i++) {
            float4 part = ((const float4 *)from)[i];
            values[4 * i] = part.x, values[4 * i + 1] = part.y, values[4 * i + 2] = part.z, values[4 * i + 3] = part.w;
        }
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            values[i] = from[i];
    }
}

template <int V> __device__ static inline void store(bf16 *to, const float values[V])
{
    if (V == 8) {
        uint4 packed;
        packed.x = bf16_pair(values[0], values[1 % V]), packed.y = bf16_pair(values[2 % V], values[3 % V]);
        packed.z = bf16_pair(values[4 % V], values[5 % V]), packed.w = bf16_pair(values[6 % V], values[7 % V]);
        *(uint4 *)to = packed;
    } else if (V == 4) {
        *(uint64_t *)to = bf16_pair(values[0], values[1 % V]) | (uint64_t)bf16_pair(values[2 % V], values[3 % V]) << 32;
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            to[i] = bf16_from_float(values[i]);
    }
}

template <int V> __device__ static inline void store(float *to, const float values[V])
{
    if (V % 4 == 0) {
#pragma unroll
        for (int i = 0; i < V / 4; i++) {
            float4 part = {values[(4 * i) % V], values[(4 * i + 1) % V], values[(4 * i + 2) % V], values[(4 * i + 3) % V]};
            ((float4 *)to)[i] = part;
        }
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            to[i] = values[i];
    }
}

template <class Number> __device__ static inline Number warp_sum(Number value)
{
#pragma unroll
    for (int mask = WARP / 2; mask > 0; mask /= 2)
        value += shuffle_xor(value, mask);
    return value;
}

/* The sum over the block, for every thread; `scratch` is WARP numbers of shared memory. Blocks are multiples of WARP. */
template <class Number> __device__ static inline Number block_sum(Number value, Number *scratch)
{
    int warps = blockDim.x / WARP, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    value = warp_sum(value);
    if (warps == 1)
        return value;
    __syncthreads(); /* scratch may still be read from the time before */
    if (lane == 0)
        scratch[warp] = value;
    __syncthreads();
    return warp_sum(lane < warps ? scratch[lane] : (Number)0);
}

__device__ static inline float block_max(float value, float *scratch)
{
    int warps = blockDim.x / WARP, warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
#pragma unroll
    for (int mask = WARP / 2; mask > 0; mask /= 2)
        value = fmaxf(value, shuffle_xor(value, mask));
    __syncthreads();
    if (lane == 0)
        scratch[warp] = value;
    __syncthreads();
    value = scratch[lane < warps ? lane : 0];
#pragma unroll
    for (int mask = WARP / 2; mask > 0; mask /= 2)
        value = fmaxf(value, shuffle_xor(value, mask));
    return value;
}

/* op.run<V>(i) for every i in [0, n) that V divides, op.run<1>(i) for the rest. */
template <int V, class Operation> __global__ void __launch_bounds__(256) each_element(int64_t n, Operation op)
{
    int64_t thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, threads = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = thread; i < n / V; i += threads)
        op.template run<V>(i * V);
    if (V > 1 && n / V * V + thread < n)
        op.template run<1>(n / V * V + thread);
}

static inline bool aligned(const void *a)
{
    return (uintptr_t)a % 16 == 0; /* NULL is */
}

/* Blocks per multiprocessor. BLOCKS_HELD: the number that it holds at once, where each leaves a partial sum. BLOCKS_IN_TURN:
 * more, where blocks are unequal, so that few end last (how many it holds depends on the registers of a kernel). */
enum { BLOCKS_HELD = 8, BLOCKS_IN_TURN = 64 };

/* Blocks for `n` threads' work, and no more than `most` for each multiprocessor. */
static inline unsigned blocks_for(const struct cuda_launch *launch, int64_t n, int threads, int most)
{
    const int64_t needed = (n + threads - 1) / threads, all = (int64_t)launch->multiprocessors * most;
    return (unsigned)(needed < 1 ? 1 : needed < all ? needed : all);
}

template <int V = VECTOR, class Operation>
static cudaError_t launch_each(const struct cuda_launch *launch, int64_t n, bool vector, Operation op)
{
    enum { THREADS = 256 };
    if (n <= 0)
        return cudaSuccess;
    if (vector)
        return launch_kernel(each_element<V, Operation>, blocks_for(launch, (n + V - 1) / V, THREADS, BLOCKS_IN_TURN), THREADS, 0,
                             launch->stream, n, op);
    return launch_kernel(each_element<1, Operation>, blocks_for(launch, n, THREADS, BLOCKS_IN_TURN), THREADS, 0, launch->stream,
                         n, op);
}

#endif
