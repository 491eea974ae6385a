/* cuda_host.c - the host's side of a CUDA device: page-locked memory, optimizers on its cores, error messages. */
#include "runtime/cuda/cuda_host.h"

#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "kernels/kernels.h"
#include "model/base/memory.h"
#include "runtime/base/cores.h"
#include "runtime/cuda/cuda_device.h"

enum status cuda_device_report(const struct device *device, const char *what, int error, struct diags *diags)
{
    (void)cudaGetLastError();
    diag_error(diags, PLACE_NONE, "rank %d: %s: %s (CUDA error %d)", device->rank, what, cudaGetErrorString((cudaError_t)error),
               error);
    return STATUS_FAILED;
}

enum status cuda_host_new(struct device *device, size_t bytes, void **memory, struct diags *diags)
{
    cudaError_t error = cudaMallocHost(memory, bytes ? bytes : 1);
    if (error != cudaSuccess)
        return cuda_device_report(device, "cudaMallocHost", error, diags);
    device_count_host(device, bytes);
    return STATUS_OK;
}

void cuda_host_free(struct device *device, void *memory, size_t bytes)
{
    if (!memory)
        return;
    device->host_in_use -= bytes;
    if (cudaFreeHost(memory) != cudaSuccess)
        (void)cudaGetLastError();
}

enum status cuda_host_copy(struct device *device, struct CUstream_st *stream, void *to, const void *from, size_t bytes,
                           struct diags *diags)
{
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
    return error == cudaSuccess ? STATUS_OK : cuda_device_report(device, "cudaMemcpyAsync", error, diags);
}

struct host_task {
    struct kernel_call call;
    int threads;
};

static void CUDART_CB run_task(void *argument)
{
    struct host_task *task = argument;
    optimizer_host_run(&task->call, task->threads);
    free(task);
}

static int threads_of_rank(void)
{
    int gpus = 0;
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus < 1)
        gpus = 1;
    int threads = cores_here() / gpus;
    return threads > 1 ? threads : 1;
}

/* A stream that has failed does not call back: its task is lost with it. */
enum status cuda_host_launch(struct device *device, struct CUstream_st *stream, const struct kernel_call *call,
                             struct diags *diags)
{
    struct host_task *task = memory_new(1, sizeof *task);
    *task = (struct host_task){*call, threads_of_rank()};
    cudaError_t error = cudaLaunchHostFunc(stream, run_task, task);
    if (error == cudaSuccess)
        return STATUS_OK;
    free(task);
    return cuda_device_report(device, "cudaLaunchHostFunc", error, diags);
}
