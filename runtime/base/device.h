/*
 * device.h - a device as the executor sees it: memory, streams, events and kernels. One table of functions per backend.
 *
 * Example: one kernel on the compute stream, and a copy of its result on another stream.
 *
 *     api->memory_new(device, 4096, &y, &diags);
 *     api->launch(compute, &call, &diags);                      returns at once
 *     api->event_record(done, compute, &diags);
 *     api->event_wait(done, copies, &diags);                    copies starts when compute has passed `done`
 *     api->copy_out(copies, host, y, 4096, &diags);
 *     api->stream_synchronise(copies, &diags);                  waits on the host
 *
 * This is CUDA's model. A stream executes in the order of enqueueing; streams run concurrently. The CPU backend (device_cpu.c)
 * has one thread per stream. Only one thread enqueues on a device.
 *
 * Failure. Errors that are known at once are returned by the enqueueing function (STATUS_FAILED, with the backend's text and
 * code in diags). Later errors (a kernel, an exchange, a lost peer) are returned by stream_synchronise: work behind an error is
 * not executed. Every wait is bounded, so stream_synchronise always returns.
 *
 * Time. Events carry times in nanoseconds since the world's epoch (comm.h). All ranks use one clock, as far as the machine
 * allows. Times are valid after the stream has been synchronised.
 */
#ifndef MSIM_RUNTIME_BASE_DEVICE_H
#define MSIM_RUNTIME_BASE_DEVICE_H

#include "kernels/kernels.h"
#include "model/base/diag.h"
#include "model/base/units.h"
#include "model/spec/gpu.h"

struct device;
struct device_stream;
struct device_event;

struct device_api {
    const char *name; /* "cpu", "cuda" */

    void (*close)(struct device *device);

    /* Zeroed memory. STATUS_FAILED if there is not enough; the message has the requested and the free bytes. */
    enum status (*memory_new)(struct device *device, size_t bytes, void **memory, struct diags *diags);
    void (*memory_free)(struct device *device, void *memory, size_t bytes);
    /* Copies between host and device. Host memory must not change until the stream has passed the copy. copy_out may wait. */
    enum status (*copy_in)(struct device_stream *stream, void *to, const void *host, size_t bytes, struct diags *diags);
    enum status (*copy_out)(struct device_stream *stream, void *host, const void *from, size_t bytes, struct diags *diags);

    /* Host memory for direct copies that overlap with other streams (page-locked on GPUs); not zeroed. */
    enum status (*host_new)(struct device *device, size_t bytes, void **memory, struct diags *diags);
    void (*host_free)(struct device *device, void *memory, size_t bytes);
    enum status (*copy_between)(struct device_stream *stream, void *to, const void *from, size_t bytes, struct diags *diags);

    enum status (*stream_new)(struct device *device, bool urgent, struct device_stream **stream, struct diags *diags);
    void (*stream_free)(struct device_stream *stream);
    /* Waits until everything enqueued has run or an error has occurred. */
    enum status (*stream_synchronise)(struct device_stream *stream, struct diags *diags);

    enum status (*event_new)(struct device *device, struct device_event **event, struct diags *diags);
    void (*event_free)(struct device_event *event);
    enum status (*event_record)(struct device_event *event, struct device_stream *stream, struct diags *diags);
    /* Waits for the last event_record enqueued before this call; does nothing if there was none. */
    enum status (*event_wait)(struct device_event *event, struct device_stream *stream, struct diags *diags);
    enum status (*event_time)(struct device_event *event, nanos *time, struct diags *diags);
    /* Processor time that the stream has used up to the event. It is less than the time that has passed if the stream waited for
     * a core. NULL: no other rank uses the device, so the two are equal. */
    enum status (*event_work)(struct device_event *event, nanos *time, struct diags *diags);

    /* Copies the call. Buffers that it points to must stay until the stream has passed it. */
    enum status (*launch)(struct device_stream *stream, const struct kernel_call *call, struct diags *diags);
    /* Runs KERNEL_ADAM or KERNEL_SGD on the host's cores when the stream reaches it, on memory of host_new. */
    enum status (*launch_host)(struct device_stream *stream, const struct kernel_call *call, struct diags *diags);
    /* Bytes of the workspace of attention_call and query_range_call, for `rows` queries of all sequences and heads together. */
    size_t (*attention_workspace)(struct device *device, int64_t rows, bool backward);
    /* Bytes of scan_call.workspace. */
    size_t (*scan_workspace)(struct device *device, const struct scan_call *call, bool backward);
    /* Whether the kernels of packed attention support this head size; if not, use query_range_call. */
    bool (*attention_fits)(struct device *device, int head_dim);
    /* Bytes of linear_call.scratch or grouped_call.scratch. */
    size_t (*product_scratch)(struct device *device, const struct kernel_call *call);
    /* STATUS_MISSING with a message if the device cannot multiply in this precision, which has fewer than 16 bits. */
    enum status (*multiplies)(struct device *device, enum precision precision, struct diags *diags);

    /* Sets the epoch of event times to the present position of `stream`, for a world without a clock. */
    enum status (*mark_epoch)(struct device *device, struct device_stream *stream, struct diags *diags);

    /* Keeps a stream idle for `duration`, to simulate a straggler. May be NULL. */
    enum status (*pause)(struct device_stream *stream, nanos duration, struct diags *diags);
};

/* Backends embed this as their first member. */
struct device {
    const struct device_api *api;
    enum precision precision;      /* of activations and compute weights: fp32 (CPU) or bf16 */
    size_t in_use, peak;           /* bytes of memory_new */
    size_t host_in_use, host_peak; /* of host_new */
    int rank;
};
struct device_stream {
    struct device *device;
};
struct device_event {
    struct device *device;
};

/* Counts `bytes` more of host_new. */
static inline void device_count_host(struct device *device, size_t bytes)
{
    device->host_in_use += bytes;
    device->host_peak = device->host_in_use > device->host_peak ? device->host_in_use : device->host_peak;
}

static inline size_t device_element_bytes(const struct device *device)
{
    return device->precision == PRECISION_FP32 ? 4 : 2;
}

#endif
