/*
 * hopper.cuh - the instructions of sm_90a that kernels use: products by warpgroups, tensor copies, barriers in shared memory.
 *
 * Everything that is not C is here, as in primitives.cuh; tests/kernels/emulation_hopper.cuh takes its place on the CPU.
 * MSIM_HOPPER is defined where the instructions exist: a kernel is written between #ifdef MSIM_HOPPER, and is an empty one of
 * NO_THREADS elsewhere, which kernel_takes() tells from the real one at run time.
 *
 * wgmma (PTX ISA 8.0, asynchronous warpgroup level matrix instructions): four consecutive warps compute d += a b of 64 x N x 16.
 * Warp w holds rows 16 w to 16 w + 15 of d and, where it comes from registers, of a, in the fragment layouts of primitives.cuh.
 * b, and a where it does, come from shared memory as 64-bit descriptors say (matrix_descriptor). A product runs after it was
 * issued: its registers and tiles may not be touched before wgmma_wait. wgmma_fence stands before the first product after
 * registers of it were written; accumulators pass through in_order after the wait, since the compiler would else move their use
 * before it.
 *
 * A barrier (mbarrier) is 8 bytes of shared memory. A phase ends when `arrivals` have come and as many bytes as were expected;
 * barrier_wait(parity) goes on when the phase of that parity has ended, and at once for parity 1 of a new barrier.
 *
 * A tensor map describes bf16[planes][rows][columns] in global memory and a box of it; copy_box brings the box whose corner is at
 * (column, row, plane) to shared memory, zeros for what lies outside, and reports its bytes to a barrier.
 */
#ifndef MSIM_KERNELS_HOPPER_CUH
#define MSIM_KERNELS_HOPPER_CUH

#include <atomic>
#include <cuda.h>

#include "kernels/primitives.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define MSIM_HOPPER 1
#endif

enum { WARPGROUP = 128, NO_THREADS = 32 };

/* Bits 63-62 of a matrix descriptor. Pieces of 16 bytes are permuted by address: bits 4-6 (128B), 4-5 (64B), 4 (32B) xor those
 * three above. */
enum swizzle { SWIZZLE_NONE, SWIZZLE_128B, SWIZZLE_64B, SWIZZLE_32B };

typedef CUtensorMap tensor_map;

typedef decltype(&cuTensorMapEncodeTiled) tensor_map_encoder;

/* The driver's, looked up once; NULL where it has no tensor maps. */
static inline tensor_map_encoder tensor_map_encoder_of_driver(void)
{
    static std::atomic<void *> known;
    void *found = known.load(std::memory_order_relaxed);
    cudaDriverEntryPointQueryResult status;
    if (found)
        return (tensor_map_encoder)found;
#if CUDART_VERSION >= 12050 /* the other is deprecated since */
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status);
#else
    const cudaError_t error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &status);
#endif
    if (error != cudaSuccess || status != cudaDriverEntryPointSuccess) {
        (void)cudaGetLastError();
        return NULL;
    }
    known.store(found, std::memory_order_relaxed);
    return (tensor_map_encoder)found;
}

/* CUDA's error code; cudaErrorNotSupported where the driver has no tensor maps. Boxes are box_rows x box_columns of one plane. */
static inline cudaError_t tensor_map_make(tensor_map *map, const void *base, int64_t columns, int64_t rows, int64_t planes,
                                          int box_columns, int box_rows, enum swizzle swizzle)
{
    static const CUtensorMapSwizzle swizzles[] = {CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                                  CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_32B};
    const cuuint64_t sizes[3] = {(cuuint64_t)columns, (cuuint64_t)rows, (cuuint64_t)planes};
    const cuuint64_t strides[2] = {(cuuint64_t)columns * sizeof(bf16), (cuuint64_t)(columns * rows) * sizeof(bf16)};
    const cuuint32_t box[3] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows, 1}, steps[3] = {1, 1, 1};
    const tensor_map_encoder encode = tensor_map_encoder_of_driver();
    if (!encode)
        return cudaErrorNotSupported;
    const CUresult result =
        encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, (void *)base, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               swizzles[swizzle], CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

/* Whether a device has these instructions, its code of the kernel is the one that uses them, and a block may have that much
 * shared memory, which is asked for here. */
template <class... Parameters>
static bool device_takes(int device, void (*kernel)(Parameters...), int threads, size_t shared_bytes)
{
    cudaFuncAttributes attributes;
    int major = 0;
    cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error == cudaSuccess && major == 9)
        error = cudaFuncGetAttributes(&attributes, (const void *)kernel);
    if (error != cudaSuccess)
        (void)cudaGetLastError();
    return error == cudaSuccess && major == 9 && attributes.maxThreadsPerBlock >= threads &&
           allow_shared(kernel, shared_bytes) == cudaSuccess;
}

/* The same of the current device. Each device is asked once for each kernel, not at each launch: its answers do not change. */
template <auto kernel> static bool kernel_takes(int threads, size_t shared_bytes)
{
    enum { MOST_DEVICES = 64, UNKNOWN = 0, NO, YES };
    static std::atomic<signed char> known[MOST_DEVICES];
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    if (device >= MOST_DEVICES)
        return device_takes(device, kernel, threads, shared_bytes);
    signed char answer = known[device].load(std::memory_order_relaxed);
    if (answer == UNKNOWN) {
        answer = device_takes(device, kernel, threads, shared_bytes) ? YES : NO;
        known[device].store(answer, std::memory_order_relaxed);
    }
    return answer == YES;
}

#ifdef MSIM_HOPPER

__device__ static inline uint32_t shared_address(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* The first lane's value: what the compiler may keep in registers that a warp shares. */
__device__ static inline int warp_uniform(int value)
{
    return __shfl_sync(0xffffffffu, value, 0);
}

/* Registers per thread of the whole warpgroup, from now on; all its warps say so. */
template <int registers> __device__ static inline void registers_shrink(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers> __device__ static inline void registers_grow(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

/* Barriers 1 to 15 of the block, of `threads` that wait or arrive. */
__device__ static inline void named_wait(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ static inline void named_arrive(int id, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ static inline void barrier_init(uint64_t *barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

/* By the thread that made the barriers, before the block meets: copies may then report to them. */
__device__ static inline void barrier_init_fence(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
}

__device__ static inline void barrier_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

/* Arrives, and expects that many more bytes in this phase. */
__device__ static inline void barrier_expect(uint64_t *barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}

__device__ static inline void barrier_wait(uint64_t *barrier, int parity)
{
    const uint32_t address = shared_address(barrier);
    int done = 0;
    while (!done)
        asm volatile("{\n.reg .pred done;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                     "selp.b32 %0, 1, 0, done;\n}"
                     : "=r"(done)
                     : "r"(address), "r"(parity)
                     : "memory");
}

__device__ static inline void copy_box(void *shared, const tensor_map *map, int column, int row, int plane, uint64_t *barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
            shared_address(shared)),
        "l"(map), "r"(column), "r"(row), "r"(plane), "r"(shared_address(barrier))
        : "memory");
}

__device__ static inline void wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ static inline void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Until at most `pending` of the warpgroup's groups are under way. */
template <int pending> __device__ static inline void wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/* What computes d comes before this place, and what uses it after, among waits, barriers and products. */
template <int N> __device__ static inline void in_order(float (*d)[4])
{
#pragma unroll
    for (int n = 0; n < N; n++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            asm volatile("" : "+f"(d[n][i])::"memory");
}

/* What `value` is made of is computed before this place and not after the next wait: left alone, the assembler puts a wait before
 * arithmetic that does not need it. A store to a place that nobody reads stays where it is, and what it stores comes before. */
__device__ static inline void computed(float *place, float value)
{
    asm volatile("st.volatile.shared.f32 [%0], %1;" ::"r"(shared_address(place)), "f"(value) : "memory");
}

#define ACCUMULATOR(n)  "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define ACCUMULATORS(n) ACCUMULATOR(n), ACCUMULATOR(n + 1), ACCUMULATOR(n + 2), ACCUMULATOR(n + 3)

/* d[N / 8][4] (+)= a b, both from shared memory with k contiguous: rows of a, columns of b. */
template <int N> __device__ void wgmma_shared(float (*d)[4], uint64_t a, uint64_t b, bool accumulate);
/* d[N / 8][4] += a b: a from registers, b from shared memory with its N columns contiguous. */
template <int N> __device__ void wgmma_registers(float (*d)[4], const uint32_t a[4], uint64_t b);

template <> __device__ inline void wgmma_shared<64>(float (*d)[4], uint64_t a, uint64_t b, bool accumulate)
{
    asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
                 "%32, %33, accumulate, 1, 1, 0, 0;\n}"
                 : ACCUMULATORS(0), ACCUMULATORS(4)
                 : "l"(a), "l"(b), "r"((int)accumulate));
}

template <> __device__ inline void wgmma_shared<128>(float (*d)[4], uint64_t a, uint64_t b, bool accumulate)
{
    asm volatile("{\n.reg .pred accumulate;\nsetp.ne.b32 accumulate, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
                 "%64, %65, accumulate, 1, 1, 0, 0;\n}"
                 : ACCUMULATORS(0), ACCUMULATORS(4), ACCUMULATORS(8), ACCUMULATORS(12)
                 : "l"(a), "l"(b), "r"((int)accumulate));
}

template <> __device__ inline void wgmma_registers<64>(float (*d)[4], const uint32_t a[4], uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
                 "{%32,%33,%34,%35}, %36, 1, 1, 1, 1;"
                 : ACCUMULATORS(0), ACCUMULATORS(4)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

template <> __device__ inline void wgmma_registers<128>(float (*d)[4], const uint32_t a[4], uint64_t b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
                 "{%64,%65,%66,%67}, %68, 1, 1, 1, 1;"
                 : ACCUMULATORS(0), ACCUMULATORS(4), ACCUMULATORS(8), ACCUMULATORS(12)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef ACCUMULATOR
#undef ACCUMULATORS

#endif
#endif
