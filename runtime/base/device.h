/*
 * device.h - what the executor needs of a device: memory, streams, events, kernels. One table of functions per backend.
 *
 * Model. Work is enqueued on streams. A stream runs what was enqueued in order and returns to the caller at once; streams run
 * beside each other. An event marks a point of a stream; another stream can wait for it. This is CUDA's model; the CPU backend
 * (device_cpu.c) has a thread per stream. All enqueueing of one device is done by one thread.
 *
 * Failure. Enqueueing fails at once for what is known at once (STATUS_FAILED with the backend's text and code in diags). What
 * fails later (a kernel, an exchange, a lost peer) is reported by stream_synchronise: work behind a failure is not executed, and
 * every wait is bounded, so synchronising always returns.
 *
 * Time. Events carry times, in nanoseconds since the epoch of the world (comm.h), one clock for all ranks as well as the machine
 * can tell it. Valid after the stream was synchronised.
 */
#ifndef MSIM_RUNTIME_BASE_DEVICE_H
#define MSIM_RUNTIME_BASE_DEVICE_H

#include "model/base/diag.h"
#include "model/base/units.h"
#include "model/spec/gpu.h"
#include "runtime/base/kernel_call.h"

struct device;
struct device_stream;
struct device_event;

struct device_api {
    const char *name; /* "cpu", "cuda" */

    void (*close)(struct device *device);

    /* Memory, zeroed. STATUS_FAILED when there is not enough, with the bytes asked for and free. */
    enum status (*memory_new)(struct device *device, size_t bytes, void **memory, struct diags *diags);
    void (*memory_free)(struct device *device, void *memory, size_t bytes);
    /* Between host and device; host memory must stay as it is until the stream has passed. copy_out may wait for that. */
    enum status (*copy_in)(struct device_stream *stream, void *to, const void *host, size_t bytes, struct diags *diags);
    enum status (*copy_out)(struct device_stream *stream, void *host, const void *from, size_t bytes, struct diags *diags);

    /* Memory of the host that copies go to and come from directly, beside what runs on other streams; not zeroed. */
    enum status (*host_new)(struct device *device, size_t bytes, void **memory, struct diags *diags);
    void (*host_free)(struct device *device, void *memory, size_t bytes);
    enum status (*copy_between)(struct device_stream *stream, void *to, const void *from, size_t bytes, struct diags *diags);

    enum status (*stream_new)(struct device *device, bool urgent, struct device_stream **stream, struct diags *diags);
    void (*stream_free)(struct device_stream *stream);
    /* Until everything enqueued has run or something failed. */
    enum status (*stream_synchronise)(struct device_stream *stream, struct diags *diags);

    enum status (*event_new)(struct device *device, struct device_event **event, struct diags *diags);
    void (*event_free)(struct device_event *event);
    enum status (*event_record)(struct device_event *event, struct device_stream *stream, struct diags *diags);
    /* Waits for the latest record enqueued before; an event never recorded is waited for by nobody. */
    enum status (*event_wait)(struct device_event *event, struct device_stream *stream, struct diags *diags);
    enum status (*event_time)(struct device_event *event, nanos *time, struct diags *diags);
    /* Processor time that the stream has used up to the event: what went by without what it waited for a core. NULL where a
     * device is shared with nobody. */
    enum status (*event_work)(struct device_event *event, nanos *time, struct diags *diags);

    enum status (*launch)(struct device_stream *stream, const struct kernel_call *call, struct diags *diags);
    /* An optimizer's kernel by the host's cores, when the stream gets there, on memory of host_new: KERNEL_ADAM, KERNEL_SGD. */
    enum status (*launch_host)(struct device_stream *stream, const struct kernel_call *call, struct diags *diags);
    /* Bytes of the workspace of attention_call and stretch_call, forward or backward, for `rows` queries of all sequences and
     * heads. */
    size_t (*attention_workspace)(struct device *device, int64_t rows, bool backward);
    /* Bytes of scan_call.workspace. */
    size_t (*scan_workspace)(struct device *device, const struct scan_call *call, bool backward);
    /* Whether the kernels of packed attention have heads of this size; those for stretches of queries do others. */
    bool (*attention_fits)(struct device *device, int head_dim);
    /* Bytes of linear_call.scratch or grouped_call.scratch. */
    size_t (*product_scratch)(struct device *device, const struct kernel_call *call);
    /* STATUS_MISSING with a sentence where it has no products of this precision, one of less than 16 bits. */
    enum status (*multiplies)(struct device *device, enum precision precision, struct diags *diags);

    /* Times of events count from where `stream` is now, for a world without a clock of its own. */
    enum status (*mark_epoch)(struct device *device, struct device_stream *stream, struct diags *diags);

    /* Do nothing on a stream for so long: a straggler on request. May be NULL. */
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

/* So many bytes of host_new more. */
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
