/*
 * null_kernels.c - launches on the null GPU: checked against the limits of compute capability 9.0, not executed.
 *
 * The functions with two underscores are what nvcc's code calls for <<< >>>.
 */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/null_cuda.h"
#include "tests/gpu/null_cuda_internal.h"

enum {
    SHARED_BYTES = 48 << 10,       /* without asking */
    MOST_SHARED_BYTES = 227 << 10, /* when asked for */
    MOST_THREADS = 1024,
    MOST_THREADS_Z = 64,
    MOST_BLOCKS_YZ = 65535,
    MOST_KERNELS = 1024
};
static const double KERNEL_MS = 0.02;

struct kernel {
    const void *host; /* the function that stands for it */
    const char *name;
    size_t most_shared;
};

static struct kernel kernels[MOST_KERNELS];
static int n_kernels;

/* Names of the CUDA runtime. */
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
void **__cudaRegisterFatBinary(void *code);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, uint3 *thread,
                            uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp_size);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream);
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)

void **__cudaRegisterFatBinary(void *code)
{
    static void *nothing;
    (void)code;
    return &nothing;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, uint3 *thread,
                            uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp_size)
{
    (void)handle, (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp_size;
    if (n_kernels == MOST_KERNELS)
        null_broken("more than %d kernels", MOST_KERNELS);
    kernels[n_kernels++] = (struct kernel){host, name, SHARED_BYTES};
}

static struct kernel *kernel_of(const void *host)
{
    for (int i = 0; i < n_kernels; i++)
        if (kernels[i].host == host)
            return &kernels[i];
    null_broken("%p is no kernel", host);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    null_counts.attributes++;
    *attributes = (struct cudaFuncAttributes){.maxDynamicSharedSizeBytes = (int)kernel_of(function)->most_shared,
                                              .maxThreadsPerBlock = MOST_THREADS};
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    null_counts.attributes++;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > MOST_SHARED_BYTES)
        return cudaErrorInvalidValue;
    kernel_of(function)->most_shared = (size_t)value;
    return cudaSuccess;
}

/* cuTensorMapEncodeTiled, the only one asked for. */
static int encode(void)
{
    null_counts.encodings++;
    return 0;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status)
{
    (void)version, (void)flags;
    null_counts.attributes++;
    *(int (**)(void))function = strcmp(symbol, "cuTensorMapEncodeTiled") == 0 ? encode : NULL;
    *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

static _Thread_local struct {
    dim3 grid, block;
    size_t shared;
    struct CUstream_st *stream;
} configuration;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
    configuration.grid = grid, configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = configuration.grid, *block = configuration.block;
    *shared = configuration.shared;
    *(struct CUstream_st **)stream = configuration.stream;
    return cudaSuccess;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static uint64_t most_blocks_yz(void)
{
    const char *set = getenv("MSIM_NULL_BLOCKS");
    return set ? strtoull(set, NULL, 10) : MOST_BLOCKS_YZ;
}

static bool is_legal(const struct kernel *kernel, dim3 grid, dim3 block, size_t shared)
{
    const uint64_t most = most_blocks_yz();
    return grid.x >= 1 && grid.y >= 1 && grid.z >= 1 && grid.x <= INT32_MAX && grid.y <= most && grid.z <= most && block.x >= 1 &&
           block.y >= 1 && block.z >= 1 && block.z <= MOST_THREADS_Z && (uint64_t)block.x * block.y * block.z <= MOST_THREADS &&
           shared <= kernel->most_shared;
}

static cudaError_t launch(struct kernel *kernel, dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    const char *hung = getenv("MSIM_NULL_HANG");
    if (!is_legal(kernel, grid, block, shared))
        null_broken("bad launch of %s: grid %u %u %u, block %u %u %u, %zu bytes of shared memory where %zu were asked for",
                    kernel->name, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, kernel->most_shared);
    null_counts.launches++;
    null_stream_spend(stream, KERNEL_MS);
    if (hung && *hung && strstr(kernel->name, hung))
        null_stream_expect(stream, never, NULL);
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    *kernel = (cudaKernel_t)kernel_of(host);
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
    (void)arguments;
    return launch((struct kernel *)kernel, grid, block, shared, stream);
}

/* Before CUDA 13. */
cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
    (void)arguments;
    return launch(kernel_of(host), grid, block, shared, stream);
}
