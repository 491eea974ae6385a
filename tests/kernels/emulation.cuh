/*
 * emulation.cuh - kernels/primitives.cuh for a machine without a GPU: the kernels' own source, executed thread by thread on the
 * CPU.
 *
 * Put before a .cu file with -include, it takes the place of primitives.cuh. Blocks run one after the other; the threads of a
 * block are coroutines that run until they wait for their warp or block. What it shows: indices, fragment layouts, masks, tails,
 * barriers that not all threads reach, asynchronous copies that are used before they are waited for (a copy happens when it is
 * waited for and no earlier), launches that CUDA would refuse, vectors that are not aligned (compiled with -fsanitize=alignment),
 * and where it is asked to watch, accesses that nothing orders (emulation_races.cuh). What it cannot show: memory consistency
 * beyond that, registers, speed.
 */
#ifndef MSIM_TESTS_KERNELS_EMULATION_CUH
#define MSIM_TESTS_KERNELS_EMULATION_CUH
#define MSIM_KERNELS_PRIMITIVES_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <tuple>

#include "tests/kernels/emulation_races.cuh"

#define __global__
#define __device__
#define __shared__ static thread_local /* a range of memory that can be told from others: emulation_races.cu */
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned nx = 1, unsigned ny = 1, unsigned nz = 1) : x(nx), y(ny), z(nz)
    {
    }
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct bf16 {
    uint16_t bits;
};

typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
enum {
    cudaSuccess,
    cudaErrorInvalidValue,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorNotSupported = 801,
    cudaMemcpyDeviceToDevice = 3
};

namespace emulation
{
enum { MOST_SHARED = 256 * 1024, SHARED_START = 128 }; /* the block's begins there: aligned no better than it is declared */
enum { SLOT_BYTES = 32, LANES = 32, WARPS = 32 };
/* What is the emulation's own of what kernels' code reads. */
struct own_memory {
    dim3 thread, block, block_size, grid_size;
    unsigned char slots[WARPS][2][LANES][SLOT_BYTES]; /* what lanes exchange */
};
extern own_memory own;
extern unsigned char *shared;

/* What CUDA answers to a launch, and to one that asks for shared memory for those that follow: CUDA C++ Programming Guide,
 * technical specifications. A block has as much as sm_80's, no kernel asks for more, made for sm_90 or not; or as little as
 * sm_86, sm_89 and sm_120 have. */
enum { SHARED_OF_SM_80 = 163 << 10, SHARED_OF_SM_89 = 99 << 10, SHARED_OF_SM_90 = 227 << 10 };
extern size_t most_shared;
cudaError_t launch_answer(const void *kernel, dim3 grid, dim3 block, size_t shared_bytes);
cudaError_t allow_answer(const void *kernel, size_t shared_bytes);
void run(dim3 grid, dim3 block, size_t shared_bytes, void (*body)(void *), void *argument);
void block_wait(site here);
void warp_wait(site here);
/* Every lane brings `bytes`; the 32 lanes' in return, SLOT_BYTES apart, until the next exchange but one. Orders nothing. */
const unsigned char *warp_exchange(const void *mine, size_t bytes);
bool block_or(bool condition, site here);
void copy_begin(void *to, const void *from);
void copy_commit(site here);
void copy_wait(int pending, site here);
void wait_until(bool (*ready)(const void *), const void *what);
/* Barrier `id` of the block opens when `threads` threads have arrived; with `wait` this one waits there. */
void named_meet(int id, int threads, bool wait, site here);
[[noreturn]] void fail(const char *what);
} // namespace emulation

#define threadIdx emulation::own.thread
#define blockIdx  emulation::own.block
#define blockDim  emulation::own.block_size
#define gridDim   emulation::own.grid_size

static inline void __syncthreads(emulation::site here = emulation::site::here())
{
    emulation::block_wait(here);
}

static inline void warp_barrier(emulation::site here = emulation::site::here())
{
    emulation::warp_wait(here);
}

static inline bool any_thread(bool condition, emulation::site here = emulation::site::here())
{
    return emulation::block_or(condition, here);
}

static inline cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

static inline const char *cudaGetErrorString(cudaError_t)
{
    return "emulated";
}

static inline cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t)
{
    memset(at, value, bytes);
    return cudaSuccess;
}

static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int, cudaStream_t)
{
    memmove(to, from, bytes);
    return cudaSuccess;
}

template <class... Parameters> struct launch_record {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
    static void call(void *record)
    {
        launch_record *self = (launch_record *)record;
        std::apply(self->kernel, self->arguments);
    }
};

template <class... Parameters, class... Arguments>
static cudaError_t launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t,
                                 Arguments... arguments)
{
    const cudaError_t error = emulation::launch_answer((const void *)kernel, grid, block, shared_bytes);
    if (error != cudaSuccess)
        return error;
    launch_record<Parameters...> record = {kernel, std::tuple<Parameters...>(arguments...)};
    emulation::run(grid, block, shared_bytes, launch_record<Parameters...>::call, &record);
    return cudaSuccess;
}

template <class... Parameters> static cudaError_t allow_shared(void (*kernel)(Parameters...), size_t bytes)
{
    return emulation::allow_answer((const void *)kernel, bytes);
}

static inline unsigned char *dynamic_shared(void)
{
    return emulation::shared + emulation::SHARED_START;
}

static inline float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounded to nearest even e4m3 (largest 448, no infinity): below 2^-6 multiples of 2^-9, above three bits of mantissa. */
static inline uint32_t e4m3_bits(float x)
{
    const float size = fminf(fabsf(x), 448.0f), moved = size * 512.0f + 12582912.0f; /* 1.5 * 2^23: the sum is whole */
    uint32_t bits, sign, whole;
    memcpy(&sign, &x, sizeof sign);
    memcpy(&bits, &size, sizeof bits);
    memcpy(&whole, &moved, sizeof whole);
    sign = sign >> 24 & 0x80;
    if (x != x)
        return sign | 0x7f;
    return sign | (size < 0.015625f ? whole & 0xff : ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - (120 << 3));
}

static inline uint32_t e4m3_pair(float low, float high)
{
    return e4m3_bits(low) | e4m3_bits(high) << 8;
}

/* The same of e5m2 (largest 57344): below 2^-14 multiples of 2^-16, above two bits of mantissa. */
static inline uint32_t e5m2_bits(float x)
{
    const float size = fminf(fabsf(x), 57344.0f), moved = size * 65536.0f + 12582912.0f;
    uint32_t bits, sign, whole;
    memcpy(&sign, &x, sizeof sign);
    memcpy(&bits, &size, sizeof bits);
    memcpy(&whole, &moved, sizeof whole);
    sign = sign >> 24 & 0x80;
    if (x != x)
        return sign | 0x7f;
    return sign | (size < 0x1p-14f ? whole & 0xff : ((bits + 0xfffff + (bits >> 21 & 1)) >> 21) - (112 << 2));
}

static inline uint32_t e5m2_pair(float low, float high)
{
    return e5m2_bits(low) | e5m2_bits(high) << 8;
}

static inline uint32_t bf16_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return 0x7fff;
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

static inline uint32_t bf16_pair(float low, float high)
{
    return bf16_bits(low) | bf16_bits(high) << 16;
}

static inline float exp2_fast(float x)
{
    return exp2f(x);
}

static inline float reciprocal_fast(float x)
{
    return 1 / x;
}

template <class Number> static inline Number shuffle_xor(Number value, int mask)
{
    const unsigned char *lanes = emulation::warp_exchange(&value, sizeof value);
    memcpy(&value, lanes + ((threadIdx.x % 32) ^ (unsigned)mask) * emulation::SLOT_BYTES, sizeof value);
    return value;
}

static inline float half_of(const unsigned char *lanes, int lane, int reg, int half)
{
    uint32_t pair;
    memcpy(&pair, lanes + lane * emulation::SLOT_BYTES + 4 * reg, sizeof pair);
    return float_from_bits(half ? pair & 0xffff0000u : pair << 16);
}

static inline void mma_16x8x16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    const unsigned char *lanes = emulation::warp_exchange(mine, sizeof mine);
    const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    for (int i = 0; i < 4; i++) {
        const int row = g + i / 2 * 8, column = 2 * q + i % 2;
        for (int k = 0; k < 16; k++)
            d[i] += half_of(lanes, row % 8 * 4 + k % 8 / 2, row / 8 + k / 8 * 2, k % 2) *
                    half_of(lanes, column * 4 + k % 8 / 2, 4 + k / 8, k % 2);
    }
}

static inline const uint16_t *matrix_row(const unsigned char *lanes, int lane)
{
    const uint16_t *row;
    memcpy(&row, lanes + lane * emulation::SLOT_BYTES, sizeof row);
    return row;
}

static inline void load_matrices(uint32_t r[4], const void *row)
{
    if ((uintptr_t)row % 16)
        emulation::fail("ldmatrix: a row is not aligned to 16 bytes");
    const unsigned char *lanes = emulation::warp_exchange(&row, sizeof row);
    const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    for (int m = 0; m < 4; m++) {
        const uint16_t *from = matrix_row(lanes, 8 * m + g);
        r[m] = from[2 * q] | (uint32_t)from[2 * q + 1] << 16;
    }
}

static inline void load_matrices_transposed(uint32_t r[4], const void *row)
{
    if ((uintptr_t)row % 16)
        emulation::fail("ldmatrix: a row is not aligned to 16 bytes");
    const unsigned char *lanes = emulation::warp_exchange(&row, sizeof row);
    const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
    for (int m = 0; m < 4; m++)
        r[m] = matrix_row(lanes, 8 * m + 2 * q)[g] | (uint32_t)matrix_row(lanes, 8 * m + 2 * q + 1)[g] << 16;
}

static inline void copy_async(void *to, const void *from, bool valid)
{
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16)
        emulation::fail("cp.async: not aligned to 16 bytes");
    emulation::copy_begin(to, valid ? from : NULL);
}

static inline void copy_async_commit(emulation::site here = emulation::site::here())
{
    emulation::copy_commit(here);
}

template <int pending> static inline void copy_async_wait(emulation::site here = emulation::site::here())
{
    emulation::copy_wait(pending, here);
}

#include "tests/kernels/emulation_hopper.cuh"

#endif
