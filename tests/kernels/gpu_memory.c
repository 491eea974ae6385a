#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/gemm_library.h"
#include "tests/kernels/gpu_memory.h"

void gpu_must(int error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "error: %s: %s (CUDA error %d)\n", what, cudaGetErrorString((cudaError_t)error), error);
    exit(EXIT_BROKEN);
}

static void *gpu_new(size_t bytes)
{
    void *memory = NULL;
    gpu_must(cudaMalloc(&memory, bytes), "cudaMalloc");
    return memory;
}

static void gpu_free(void *memory)
{
    gpu_must(cudaFree(memory), "cudaFree");
}

static void gpu_in(void *device, const void *host, size_t bytes)
{
    gpu_must(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copy to the device");
}

/* Synchronises with every stream, so a kernel's failure shows here. */
static void gpu_out(void *host, const void *device, size_t bytes)
{
    gpu_must(cudaDeviceSynchronize(), "a kernel");
    gpu_must(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "copy from the device");
}

const struct kernel_device gpu_memory = {.memory_new = gpu_new, .memory_free = gpu_free, .copy_in = gpu_in, .copy_out = gpu_out};

bool gpu_open(struct cuda_launch *launch, char *name, size_t name_size)
{
    int count = 0;
    struct cudaDeviceProp properties;
    struct diags diags = {0};
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        fprintf(stderr, "skipped: this machine has no usable NVIDIA GPU\n");
        return false;
    }
    gpu_must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    struct cuda_launch made = {.workspace_bytes = CUDA_WORKSPACE_BYTES,
                               .multiprocessors = properties.multiProcessorCount,
                               .portable = getenv("MSIM_PORTABLE_KERNELS") != NULL};
    if (gemm_library_new(&made.gemm, &diags) != STATUS_OK)
        fprintf(stderr, "error: %s\n", diags.items[0].text);
    diags_free(&diags);
    gpu_must(cudaStreamCreate(&made.stream), "cudaStreamCreate"); /* in one order with cudaMemcpy, which may return early */
    made.workspace = gpu_new(made.workspace_bytes);
    snprintf(name, name_size, "%s (sm_%d%d; cuBLASLt %zu)", properties.name, properties.major, properties.minor,
             made.gemm ? gemm_library_version(made.gemm) : 0);
    *launch = made;
    return true;
}

int gpu_capability(void)
{
    int major = 0, minor = 0;
    gpu_must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
    gpu_must(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "cudaDeviceGetAttribute");
    return 10 * major + minor;
}

void gpu_close(struct cuda_launch *launch)
{
    gpu_free(launch->workspace);
    gpu_must(cudaStreamDestroy(launch->stream), "cudaStreamDestroy");
    gemm_library_free(launch->gemm);
}
