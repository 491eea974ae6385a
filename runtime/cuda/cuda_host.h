/*
 * cuda_host.h - the memory and cores of the host, as a CUDA device uses them (private to the CUDA backend; device.h explains
 * each).
 *
 * Example: device_api.host_new of a CUDA device is cuda_host_new; its launch_host calls cuda_host_launch.
 */
#ifndef MSIM_RUNTIME_CUDA_CUDA_HOST_H
#define MSIM_RUNTIME_CUDA_CUDA_HOST_H

#include "runtime/base/device.h"

struct CUstream_st; /* cudaStream_t is a pointer to it */

enum status cuda_host_new(struct device *device, size_t bytes, void **memory, struct diags *diags); /* page-locked */
void cuda_host_free(struct device *device, void *memory, size_t bytes);
enum status cuda_host_copy(struct device *device, struct CUstream_st *stream, void *to, const void *from, size_t bytes,
                           struct diags *diags);
/* Runs on a thread of the driver and one thread for each core of this GPU's share of the host. */
enum status cuda_host_launch(struct device *device, struct CUstream_st *stream, const struct kernel_call *call,
                             struct diags *diags);

#endif
