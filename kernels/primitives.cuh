/*
 * primitives.cuh - everything in the kernels that is not C: launches, tensor-core instructions, asynchronous copies, conversions.
 *
 * The kernels use only what is declared here and threadIdx, blockIdx, blockDim, gridDim, __syncthreads. So they can be executed
 * by something else that offers the same: tests/kernels/emulation.cuh runs their source on the CPU, thread by thread.
 *
 * Instructions: mma.sync.m16n8k16, ldmatrix and cp.async of PTX ISA 7.0 (sm_80 and later). Fragment layouts, with g = lane / 4
 * and q = lane % 4:
 *
 *   A 16x16, a[0..3]: (row g, columns 2q 2q+1), (row g+8, same), (row g, columns 2q+8 2q+9), (row g+8, same)
 *   B 16x8,  b[0..1]: (rows 2q 2q+1, column g), (rows 2q+8 2q+9, column g)
 *   C 16x8,  c[0..3]: (row g, columns 2q, 2q+1), (row g+8, columns 2q, 2q+1)
 */
#ifndef MSIM_KERNELS_PRIMITIVES_CUH
#define MSIM_KERNELS_PRIMITIVES_CUH

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

struct bf16 {
    uint16_t bits;
};

template <class... Parameters, class... Arguments>
static cudaError_t launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                                 Arguments... arguments)
{
    kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
    return cudaGetLastError(); /* and clear it */
}

/* More than 48 KiB of dynamic shared memory has to be asked for, per kernel. */
template <class... Parameters> static cudaError_t allow_shared(void (*kernel)(Parameters...), size_t bytes)
{
    cudaError_t error = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return error;
}

__device__ static inline unsigned char *dynamic_shared(void)
{
    extern __shared__ __align__(128) unsigned char dynamic_shared_memory[];
    return dynamic_shared_memory;
}

__device__ static inline float float_from_bits(uint32_t bits)
{
    return __uint_as_float(bits);
}

/* Two floats rounded to nearest even, `low` in the lower half. */
__device__ static inline uint32_t bf16_pair(float low, float high)
{
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

/* Rounded to nearest even, to the largest at most: below 2^(1 - BIAS) to multiples of the smallest, above to that many mantissa
 * bits. */
template <int MANTISSA, int BIAS> __device__ static inline uint32_t narrow_bits(float x, float largest)
{
    constexpr int SHIFT = 23 - MANTISSA;
    constexpr float WHOLE = 12582912.0f; /* 1.5 * 2^23: added to it a number is rounded to a whole one */
    constexpr float SMALLEST_NORMAL = 1.0f / (1 << (BIAS - 1)), STEPS = 1 << (BIAS - 1 + MANTISSA);
    const float size = fminf(fabsf(x), largest), moved = size * STEPS + WHOLE;
    uint32_t bits, sign, whole;
    memcpy(&sign, &x, sizeof sign);
    memcpy(&bits, &size, sizeof bits);
    memcpy(&whole, &moved, sizeof whole);
    sign = sign >> 24 & 0x80;
    if (x != x)
        return sign | 0x7f;
    const uint32_t half = (1u << (SHIFT - 1)) - 1 + (bits >> SHIFT & 1);
    return sign | (size < SMALLEST_NORMAL ? whole & 0xff : ((bits + half) >> SHIFT) - ((127 - BIAS) << MANTISSA));
}

/* e4m3: no infinity. */
__device__ static inline uint32_t e4m3_bits(float x)
{
    return narrow_bits<3, 7>(x, 448.0f);
}

__device__ static inline uint32_t e5m2_bits(float x)
{
    return narrow_bits<2, 15>(x, 57344.0f);
}

/* Two of them, `low` in the lower byte. */
__device__ static inline uint32_t e4m3_pair(float low, float high)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 890
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return e4m3_bits(low) | e4m3_bits(high) << 8;
#endif
}

__device__ static inline uint32_t e5m2_pair(float low, float high)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 890
    uint16_t pair;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return e5m2_bits(low) | e5m2_bits(high) << 8;
#endif
}

__device__ static inline float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); /* ex2(-inf) = 0; relative error 2^-22 (PTX ISA) */
    return y;
}

/* 1 / x within one unit in the last place (PTX ISA); 1 / inf = 0. */
__device__ static inline float reciprocal_fast(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ static inline float shuffle_xor(float value, int mask)
{
    return __shfl_xor_sync(0xffffffffu, value, mask);
}

__device__ static inline double shuffle_xor(double value, int mask)
{
    return __shfl_xor_sync(0xffffffffu, value, mask);
}

/* The warp's accesses to shared memory before come before those after. */
__device__ static inline void warp_barrier(void)
{
    __syncwarp();
}

__device__ static inline bool any_thread(bool condition)
{
    return __syncthreads_or(condition) != 0;
}

/* d += a b on a tile of 16 x 8 x 16. */
__device__ static inline void mma_16x8x16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four 8x8 matrices; lane i names row i % 8 of matrix i / 8 (16 bytes of shared memory). Register m gets of matrix m: row lane /
 * 4, columns 2 (lane % 4) and the next; transposed: column lane / 4, rows 2 (lane % 4) and the next. */
__device__ static inline void load_matrices(uint32_t r[4], const void *row)
{
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ static inline void load_matrices_transposed(uint32_t r[4], const void *row)
{
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

/* 16 bytes from global to shared memory without registers; zeros when not `valid`. */
__device__ static inline void copy_async(void *shared, const void *global, bool valid)
{
    uint32_t address = (uint32_t)__cvta_generic_to_shared(shared);
    int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global), "r"(bytes) : "memory");
}

__device__ static inline void copy_async_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until at most `pending` of this thread's groups are under way. */
template <int pending> __device__ static inline void copy_async_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

#endif
