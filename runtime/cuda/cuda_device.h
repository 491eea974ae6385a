/*
 * cuda_device.h - a CUDA GPU as a device (interface: device.h): bf16 activations, CUDA streams and events,
 * kernels/cuda_launch.h.
 *
 * Example:
 *
 *     if (cuda_device_count() > 0)
 *         cuda_device_open(rank, 0, 0, &device, &diags);                   GPU 0, no memory limit
 *     cuda_device_try_kernels(device, &portable, &diags);                  compares two implementations of attention
 *     if (portable)
 *         cuda_device_use_portable(device);
 *
 * Memory is plain cudaMalloc, zeroed on a stream of its own. It may be allocated while exchanges wait for other ranks, and the
 * default stream could block these. For the same reason, unless the user has set them: CUDA_DEVICE_MAX_CONNECTIONS is set to its
 * maximum, and with several ranks CUDA_MODULE_LOADING makes CUDA load all kernels at the start (which takes seconds, and device
 * memory that memory_new does not count). Page-locked buffers are allocated when the device is opened. Each stream has a
 * workspace, allocated with the stream. Urgent streams get the highest priority of the device, so that exchanges start while the
 * blocks of a long kernel end.
 *
 * Copies of ordinary host memory go through a ring of page-locked buffers, so copy_in does not wait for the device.
 *
 * Waiting. stream_synchronise polls the stream (busy for 200 us, then with sleeps of 50 us) and calls a watch in between, which
 * may end the wait; the communication backend sets it (cuda_comm.c). Enqueueing waits in the same way if a stream is a few
 * hundred commands behind. The driver's queue holds about a thousand; when it is full, the driver would block without calling
 * the watch.
 *
 * Time. event_time counts from the epoch mark, with CUDA's resolution of about half a microsecond.
 */
#ifndef MSIM_RUNTIME_CUDA_CUDA_DEVICE_H
#define MSIM_RUNTIME_CUDA_CUDA_DEVICE_H

#include "runtime/base/device.h"

/* GPUs this process can use; 0 without a driver, or in a build without CUDA. */
int cuda_device_count(void);

/* `gpu`: from 0 to cuda_device_count() - 1. `limit`: bytes that memory_new may give, 0: no limit. STATUS_MISSING with a message
 * if this build or this machine has no CUDA, if the GPU is older than sm_80, or if cuBLASLt cannot be loaded. */
MUST_CHECK enum status cuda_device_open(int rank, int gpu, size_t limit, struct device **device, struct diags *diags);

/* Computes small cases of attention with the kernels for this GPU's architecture and with the portable ones. If they disagree, it
 * warns and sets *portable: the caller should then call cuda_device_use_portable. (MSIM_PORTABLE_KERNELS in the environment has
 * the same effect from the beginning.) If a kernel fails or does not end, this process cannot use the GPU any more: STATUS_FAILED
 * with a message that names the variable; closing the device might then block. Takes milliseconds; does nothing on a GPU that has
 * only portable kernels. */
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
/* The argument for launches on a stream (kernels/cuda_launch.h). */
struct cuda_launch;
struct cuda_launch cuda_device_launch(struct device_stream *stream);
bool cuda_device_is_portable(const struct device *device);
/* Reports a CUDA error and clears it. Returns STATUS_FAILED. */
enum status cuda_device_report(const struct device *device, const char *what, int error, struct diags *diags);
/* Called with `context` again and again during a wait. A result other than STATUS_OK ends the wait, and stream_synchronise
 * returns it from then on. */
struct cuda_device_watch {
    enum status (*look)(void *context, nanos waited, struct diags *diags);
    void *context;
};
void cuda_device_set_watch(struct device *device, struct cuda_device_watch watch);

#endif
