/*
 * emulated_cuda.c - as much of CUDA's runtime as runtime/cuda/cuda_device.c asks for, on the CPU. With the kernels' emulation
 * (tests/kernels/emulation.cuh), cuBLASLt's (tests/kernels/emulated_cublaslt.c) and NCCL's (emulated_nccl.c) the whole CUDA
 * backend executes where there is no GPU.
 *
 * Everything enqueued is done at once, by the thread that enqueues it: the order of enqueueing respects a program's dependencies.
 * What it shows: wiring, sizes, element types, order, numbers. What it cannot show: anything about time or about streams that
 * really run beside each other.
 */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/gemm_library.h"
#include "model/base/memory.h"

/* linear_cuda of kernels/gemm_cublaslt.c, which is compiled under this name. */
enum status linear_by_library(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call,
                              struct diags *diags) MUST_CHECK;

enum { PROCESSORS = 2, CAPABILITY_MAJOR = 9, MEMORY_BYTES = 1 << 30, VERSION = 13000 };

struct CUevent_st {
    double milliseconds;
    bool pending;
};

struct CUstream_st {
    bool busy;
};

/* The first query of whether work is done returns "not ready", and that stays the last error until a call reads it. */
static _Thread_local cudaError_t last_error = cudaSuccess;

static cudaError_t answer(bool *pending)
{
    const bool wait = pending && *pending;
    if (!wait)
        return cudaSuccess;
    *pending = false;
    return last_error = cudaErrorNotReady;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "emulated";
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)device;
    *value = attribute == cudaDevAttrMultiProcessorCount      ? PROCESSORS
             : attribute == cudaDevAttrComputeCapabilityMajor ? CAPABILITY_MAJOR
                                                              : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    (void)device;
    *properties = (struct cudaDeviceProp){.name = "emulated GPU",
                                          .totalGlobalMem = MEMORY_BYTES,
                                          .major = CAPABILITY_MAJOR,
                                          .multiProcessorCount = PROCESSORS,
                                          .l2CacheSize = 1 << 16};
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

/* --- memory: 0xff where it has not been written */

/* Of a block so much: what toys have of a stream's workspace of 64 MiB begins there, and its pages cost more than the toys. */
enum { POISONED_BYTES = 8 << 20 };

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*memory)
        return cudaErrorMemoryAllocation;
    memset(*memory, 0xff, bytes < POISONED_BYTES ? bytes : POISONED_BYTES);
    return cudaSuccess;
}

/* What cudaMemsetAsync promises: to happen on its stream, which others do not wait for. So as late as may be. */
static _Thread_local struct {
    void *memory;
    int value;
    size_t bytes;
    cudaStream_t stream;
} late;

static void happen(cudaStream_t stream)
{
    if (late.memory && late.stream == stream)
        memset(late.memory, late.value, late.bytes);
    late.memory = late.stream == stream ? NULL : late.memory;
}

cudaError_t cudaFree(void *memory)
{
    happen(late.stream); /* waits for the whole device */
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    return cudaMalloc(memory, bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
    return cudaFree(memory);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = *total = MEMORY_BYTES;
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    happen(late.stream);
    late.memory = memory;
    late.value = value;
    late.bytes = bytes;
    late.stream = stream;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    (void)kind;
    if (stream)
        stream->busy = true;
    memmove(to, from, bytes);
    return cudaSuccess;
}

/* --- streams and events */

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -1;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    (void)flags, (void)priority;
    *stream = memory_new(1, sizeof **stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    happen(stream);
    return answer(stream ? &stream->busy : NULL);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    (void)stream;
    function(argument);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = memory_new(1, sizeof **event);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    struct timespec t;
    (void)stream;
    event->pending = true;
    clock_gettime(CLOCK_MONOTONIC, &t);
    event->milliseconds = (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return answer(&event->pending);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    *milliseconds = (float)(to->milliseconds - from->milliseconds);
    return cudaSuccess;
}

/* --- matrix products: kernels/gemm_cublaslt.c, in front of which stands what every launch of a kernel is followed by */

enum status linear_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call, struct diags *diags)
{
    if (cudaGetLastError() == cudaSuccess)
        return linear_by_library(launch, kernel, call, diags);
    diag_error(diags, PLACE_NONE, "an error of before was left to be found");
    return STATUS_FAILED;
}
