/*
 * cuda_device.h - a CUDA GPU as a device (device.h): bf16 activations, streams and events of CUDA, kernels of
 * kernels/cuda_launch.h.
 *
 * Memory is plain cudaMalloc, zeroed on a stream of its own: it is taken while exchanges wait for other ranks, whom the default
 * stream might hold up. For the same reason CUDA is asked for as many queues as there are (CUDA_DEVICE_MAX_CONNECTIONS, unless it
 * is set) and, by one of several ranks, to load all kernels when it starts (CUDA_MODULE_LOADING, unless it is set: seconds, and
 * device memory that memory_new does not count), and page-locked buffers are made when the device is opened. Each stream has its
 * own workspace, taken when the stream is made. Urgent streams get the highest priority the device offers, so that exchanges
 * start while a long kernel's blocks drain.
 *
 * Host copies of ordinary memory go through a ring of page-locked buffers, so copy_in does not wait for the device.
 *
 * Waiting. stream_synchronise asks the stream again and again (spinning 200 us, then sleeping 50 us at a time) and in between
 * lets a watch look after what else may end the wait: the communication backend sets it (cuda_comm.c).
 * Enqueueing waits in the same way for a stream that is a few hundred commands behind: the driver, whose queue is full at about a
 * thousand, would keep the host where nobody watches.
 *
 * Time. event_time counts from the epoch mark, with CUDA's resolution of about half a microsecond.
 */
#ifndef MSIM_RUNTIME_CUDA_CUDA_DEVICE_H
#define MSIM_RUNTIME_CUDA_CUDA_DEVICE_H

#include "runtime/base/device.h"

/* GPUs this process can use; 0 without a driver, or in a build without CUDA. */
int cuda_device_count(void);

/* `gpu` of cuda_device_count; `limit` bytes of memory_new, 0: none. STATUS_MISSING with a sentence where this build or this
 * machine has no CUDA, where the GPU is older than sm_80, or where cuBLASLt cannot be loaded. */
MUST_CHECK enum status cuda_device_open(int rank, int gpu, size_t limit, struct device **device, struct diags *diags);

/* Computes small cases of attention by the kernels made for this GPU's architecture and by the portable ones. Where they do not
 * agree a warning says so and *portable becomes true: cuda_device_use_portable then keeps a device to the portable ones, as
 * MSIM_PORTABLE_KERNELS in the environment does from the beginning. Where they cannot be compared, because one fails or does not
 * end, the GPU is of no use to this process any more: STATUS_FAILED with a sentence that names the variable; closing the
 * device might then wait for ever. On a GPU with portable kernels only this does nothing, else it takes milliseconds. */
MUST_CHECK enum status cuda_device_try_kernels(struct device *device, bool *portable, struct diags *diags);
void cuda_device_use_portable(struct device *device);

struct cuda_device_facts {
    char name[256];
    int major, minor, multiprocessors;
    size_t memory_bytes, l2_bytes;
    int driver, runtime; /* 13000: CUDA 13.0 */
};
MUST_CHECK enum status cuda_device_facts(const struct device *device, struct cuda_device_facts *facts, struct diags *diags);

/* --- for the communication backend and the trial */

struct CUstream_st;
struct CUstream_st *cuda_device_stream(struct device_stream *stream);
/* What kernels are launched with on a stream (kernels/cuda_launch.h). */
struct cuda_launch;
struct cuda_launch cuda_device_launch(struct device_stream *stream);
bool cuda_device_is_portable(const struct device *device);
/* The sentence of a CUDA error, which is cleared; STATUS_FAILED. */
enum status cuda_device_report(const struct device *device, const char *what, int error, struct diags *diags);
/* Called with `context` while a wait lasts; anything but STATUS_OK ends the wait and stays the device's answer. */
struct cuda_device_watch {
    enum status (*look)(void *context, nanos waited, struct diags *diags);
    void *context;
};
void cuda_device_set_watch(struct device *device, struct cuda_device_watch watch);

#endif
