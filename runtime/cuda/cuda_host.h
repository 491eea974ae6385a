/*
 * cuda_host.h - the host's memory and cores beside a GPU (private to the CUDA backend; device.h says what each function does).
 */
#ifndef MSIM_RUNTIME_CUDA_CUDA_HOST_H
#define MSIM_RUNTIME_CUDA_CUDA_HOST_H

#include "runtime/base/device.h"

enum status cuda_host_new(struct device *device, size_t bytes, void **memory, struct diags *diags); /* page-locked */
void cuda_host_free(struct device *device, void *memory, size_t bytes);
enum status cuda_host_copy(struct device_stream *stream, void *to, const void *from, size_t bytes, struct diags *diags);
/* By a thread of the driver's and as many more as the machine has cores for each GPU: they share its memory's bandwidth. */
enum status cuda_host_launch(struct device_stream *stream, const struct kernel_call *call, struct diags *diags);

#endif
