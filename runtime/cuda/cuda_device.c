/* cuda_device.c - memory, streams, events and waiting on a CUDA GPU. */
#include "runtime/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda_launch.h"
#include "kernels/gemm_library.h"
#include "model/base/clock.h"
#include "model/base/memory.h"
#include "runtime/cuda/cuda_comm.h"
#include "runtime/cuda/cuda_host.h"

enum { STAGING_BYTES = 1 << 20, STAGING_BUFFERS = 8, OLDEST_MAJOR = 8, SPIN_NS = 200000, SLEEP_NS = 50000 };

/* The most commands that are enqueued but have not run: MARKS * MARK_EVERY. If the driver's queue were full (about a thousand
 * launches), the driver would block, and no watch would notice that a rank is gone. */
enum { MARKS = 4, MARK_EVERY = 64 };

/* A page-locked buffer; free again once `passed` has. */
struct staging {
    void *memory;
    cudaEvent_t passed;
};

struct cuda_device {
    struct device base;
    int gpu, multiprocessors;
    bool portable; /* kernels for every architecture only: MSIM_PORTABLE_KERNELS is set */
    size_t limit;
    struct gemm_library *gemm;
    cudaStream_t zeroing; /* of new memory */
    cudaEvent_t epoch;
    struct staging staging[STAGING_BUFFERS];
    unsigned next_staging;
    struct cuda_device_watch watch;
    enum status failed; /* sticks */
};

struct cuda_stream {
    struct device_stream base;
    cudaStream_t stream;
    void *workspace;
    cudaEvent_t marks[MARKS]; /* behind every MARK_EVERY commands, in turn */
    uint64_t commands;
};

struct cuda_event {
    struct device_event base;
    cudaEvent_t event;
    bool recorded;
};

static struct cuda_device *cuda_of(const struct device *device)
{
    return (struct cuda_device *)device;
}

static cudaStream_t stream_of(struct device_stream *stream)
{
    return ((struct cuda_stream *)stream)->stream;
}

struct CUstream_st *cuda_device_stream(struct device_stream *stream)
{
    return stream_of(stream);
}

/* --- errors */

#define CUDA_RETURN(device, call)                                                                                                \
    do {                                                                                                                         \
        cudaError_t error_ = (call);                                                                                             \
        if (error_ != cudaSuccess)                                                                                               \
            return cuda_device_report(device, #call, error_, diags);                                                             \
    } while (0)

#define CUDA_GOTO(device, call, label)                                                                                           \
    do {                                                                                                                         \
        cudaError_t error_ = (call);                                                                                             \
        if (error_ != cudaSuccess) {                                                                                             \
            (void)cuda_device_report(device, #call, error_, diags);                                                              \
            goto label;                                                                                                          \
        }                                                                                                                        \
    } while (0)

/* --- waiting, watched over */

static void wait_a_little(nanos waited)
{
    const struct timespec nap = {.tv_nsec = SLEEP_NS};
    if (waited > SPIN_NS)
        nanosleep(&nap, NULL);
}

/* Until the event has passed, or without one all that is on the stream. */
static enum status wait_for(struct cuda_device *cuda, cudaStream_t stream, cudaEvent_t event, struct diags *diags)
{
    const nanos began = clock_monotonic();
    cudaError_t error;
    while ((error = event ? cudaEventQuery(event) : cudaStreamQuery(stream)) == cudaErrorNotReady && cuda->failed == STATUS_OK) {
        const nanos waited = clock_monotonic() - began;
        if (cuda->watch.look)
            cuda->failed = cuda->watch.look(cuda->watch.context, waited, diags);
        wait_a_little(waited);
    }
    if (error != cudaSuccess && error != cudaErrorNotReady) {
        cuda->failed = STATUS_FAILED;
        return cuda_device_report(&cuda->base, "a kernel or copy failed", error, diags);
    }
    (void)cudaGetLastError(); /* "not ready" may stick */
    if (error == cudaSuccess && cuda->failed == STATUS_OK)
        return STATUS_OK;
    if (diags->n_errors == 0)
        diag_error(diags, PLACE_NONE, "rank %d: an earlier failure ended the work on this device", cuda->base.rank);
    return STATUS_FAILED;
}

/* Before a command is put on the stream. */
static enum status keep_pace(struct device_stream *base, struct diags *diags)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    if (++stream->commands % MARK_EVERY)
        return STATUS_OK;
    cudaEvent_t mark = stream->marks[stream->commands / MARK_EVERY % MARKS];
    enum status status = wait_for(cuda_of(base->device), NULL, mark, diags);
    if (status == STATUS_OK)
        CUDA_RETURN(base->device, cudaEventRecord(mark, stream->stream));
    return status;
}

static enum status cuda_stream_synchronise(struct device_stream *stream, struct diags *diags)
{
    return wait_for(cuda_of(stream->device), stream_of(stream), NULL, diags);
}

/* --- memory */

static enum status cuda_memory_new(struct device *device, size_t bytes, void **memory, struct diags *diags)
{
    struct cuda_device *cuda = cuda_of(device);
    void *block = NULL;
    bool fits = !cuda->limit || device->in_use + bytes <= cuda->limit;
    cudaError_t error = fits ? cudaMalloc(&block, bytes ? bytes : 1) : cudaErrorMemoryAllocation;
    if (error == cudaErrorMemoryAllocation) {
        size_t available = 0, total = 0;
        (void)cudaGetLastError();
        (void)cudaMemGetInfo(&available, &total);
        diag_error(diags, PLACE_NONE,
                   "rank %d: out of device memory: %zu bytes asked for, %zu in use, %zu of the GPU's %zu free%s", device->rank,
                   bytes, device->in_use, available, total, fits ? "" : ", and a limit set");
        return STATUS_FAILED;
    }
    if (error != cudaSuccess)
        return cuda_device_report(device, "cudaMalloc", error, diags);
    error = cudaMemsetAsync(block, 0, bytes, cuda->zeroing);
    enum status status = error == cudaSuccess ? wait_for(cuda, cuda->zeroing, NULL, diags) /* which other streams do not do */
                                              : cuda_device_report(device, "cudaMemsetAsync", error, diags);
    if (status != STATUS_OK) {
        cudaFree(block);
        return status;
    }
    device->in_use += bytes;
    device->peak = device->in_use > device->peak ? device->in_use : device->peak;
    *memory = block;
    return STATUS_OK;
}

static void cuda_memory_free(struct device *device, void *memory, size_t bytes)
{
    if (!memory)
        return;
    device->in_use -= bytes;
    if (cudaFree(memory) != cudaSuccess)
        (void)cudaGetLastError();
}

static enum status staging_take(struct cuda_device *cuda, struct staging **result, struct diags *diags)
{
    struct staging *staging = &cuda->staging[cuda->next_staging++ % STAGING_BUFFERS];
    *result = staging;
    return wait_for(cuda, NULL, staging->passed, diags);
}

/* All at once: to lock pages may wait for what runs on the device. */
static enum status staging_make(struct cuda_device *cuda, struct diags *diags)
{
    for (int i = 0; i < STAGING_BUFFERS; i++) {
        CUDA_RETURN(&cuda->base, cudaEventCreateWithFlags(&cuda->staging[i].passed, cudaEventDisableTiming));
        CUDA_RETURN(&cuda->base, cudaMallocHost(&cuda->staging[i].memory, STAGING_BYTES));
    }
    return STATUS_OK;
}

static enum status cuda_copy_in(struct device_stream *stream, void *to, const void *host, size_t bytes, struct diags *diags)
{
    struct cuda_device *cuda = cuda_of(stream->device);
    for (size_t at = 0; at < bytes; at += STAGING_BYTES) {
        size_t part = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;
        struct staging *staging = NULL;
        enum status status = staging_take(cuda, &staging, diags);
        if (status != STATUS_OK)
            return status;
        memcpy(staging->memory, (const char *)host + at, part);
        CUDA_RETURN(stream->device,
                    cudaMemcpyAsync((char *)to + at, staging->memory, part, cudaMemcpyHostToDevice, stream_of(stream)));
        CUDA_RETURN(stream->device, cudaEventRecord(staging->passed, stream_of(stream)));
    }
    return STATUS_OK;
}

/* --- streams */

static void cuda_stream_free(struct device_stream *base)
{
    struct cuda_stream *stream = (struct cuda_stream *)base;
    if (!stream)
        return;
    if (stream->workspace)
        cudaFree(stream->workspace);
    for (int i = 0; i < MARKS; i++)
        if (stream->marks[i])
            cudaEventDestroy(stream->marks[i]);
    if (stream->stream)
        cudaStreamDestroy(stream->stream);
    (void)cudaGetLastError();
    free(stream);
}

static enum status cuda_stream_new(struct device *device, bool urgent, struct device_stream **result, struct diags *diags)
{
    struct cuda_stream *stream = memory_new(1, sizeof *stream);
    int least = 0, greatest = 0;
    stream->base.device = device;
    CUDA_GOTO(device, cudaDeviceGetStreamPriorityRange(&least, &greatest), failed);
    CUDA_GOTO(device, cudaStreamCreateWithPriority(&stream->stream, cudaStreamNonBlocking, urgent ? greatest : least), failed);
    CUDA_GOTO(device, cudaMalloc(&stream->workspace, CUDA_WORKSPACE_BYTES), failed);
    for (int i = 0; i < MARKS; i++)
        CUDA_GOTO(device, cudaEventCreateWithFlags(&stream->marks[i], cudaEventDisableTiming), failed);
    *result = &stream->base;
    return STATUS_OK;
failed:
    cuda_stream_free(&stream->base);
    return STATUS_FAILED;
}

/* Copies through page-locked memory: for other memory the driver would wait for the stream, without calling the watch. */
static enum status cuda_copy_out(struct device_stream *stream, void *host, const void *from, size_t bytes, struct diags *diags)
{
    for (size_t at = 0; at < bytes; at += STAGING_BYTES) {
        size_t part = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;
        struct staging *staging = NULL;
        enum status status = staging_take(cuda_of(stream->device), &staging, diags);
        if (status != STATUS_OK)
            return status;
        CUDA_RETURN(stream->device,
                    cudaMemcpyAsync(staging->memory, (const char *)from + at, part, cudaMemcpyDeviceToHost, stream_of(stream)));
        status = cuda_stream_synchronise(stream, diags);
        if (status != STATUS_OK)
            return status;
        memcpy((char *)host + at, staging->memory, part);
    }
    return STATUS_OK;
}

/* --- events */

static enum status cuda_event_new(struct device *device, struct device_event **result, struct diags *diags)
{
    cudaEvent_t made;
    CUDA_RETURN(device, cudaEventCreate(&made));
    struct cuda_event *event = memory_new(1, sizeof *event);
    event->base.device = device;
    event->event = made;
    *result = &event->base;
    return STATUS_OK;
}

static void cuda_event_free(struct device_event *base)
{
    struct cuda_event *event = (struct cuda_event *)base;
    if (event && cudaEventDestroy(event->event) != cudaSuccess)
        (void)cudaGetLastError();
    free(event);
}

static enum status cuda_event_record(struct device_event *base, struct device_stream *stream, struct diags *diags)
{
    struct cuda_event *event = (struct cuda_event *)base;
    enum status status = keep_pace(stream, diags);
    if (status != STATUS_OK)
        return status;
    CUDA_RETURN(stream->device, cudaEventRecord(event->event, stream_of(stream)));
    event->recorded = true;
    return STATUS_OK;
}

static enum status cuda_event_wait(struct device_event *base, struct device_stream *stream, struct diags *diags)
{
    struct cuda_event *event = (struct cuda_event *)base;
    if (event->recorded)
        CUDA_RETURN(stream->device, cudaStreamWaitEvent(stream_of(stream), event->event, 0));
    return STATUS_OK;
}

static enum status cuda_event_time(struct device_event *base, nanos *time, struct diags *diags)
{
    struct cuda_event *event = (struct cuda_event *)base;
    float milliseconds = 0;
    CUDA_RETURN(base->device, cudaEventElapsedTime(&milliseconds, cuda_of(base->device)->epoch, event->event));
    *time = (nanos)((double)milliseconds * 1e6);
    return STATUS_OK;
}

static enum status cuda_mark_epoch(struct device *device, struct device_stream *stream, struct diags *diags)
{
    CUDA_RETURN(device, cudaEventRecord(cuda_of(device)->epoch, stream_of(stream)));
    return STATUS_OK;
}

void cuda_device_set_watch(struct device *device, struct cuda_device_watch watch)
{
    cuda_of(device)->watch = watch;
}

/* --- kernels */

struct cuda_launch cuda_device_launch(struct device_stream *stream)
{
    const struct cuda_device *cuda = cuda_of(stream->device);
    return (struct cuda_launch){.stream = stream_of(stream),
                                .workspace = ((struct cuda_stream *)stream)->workspace,
                                .workspace_bytes = CUDA_WORKSPACE_BYTES,
                                .multiprocessors = cuda->multiprocessors,
                                .gemm = cuda->gemm,
                                .portable = cuda->portable};
}

static enum status cuda_launch_kernel(struct device_stream *stream, const struct kernel_call *call, struct diags *diags)
{
    const struct cuda_launch launch = cuda_device_launch(stream);
    enum status status = keep_pace(stream, diags);
    return status == STATUS_OK ? kernel_cuda_launch(&launch, call, diags) : status;
}

static size_t cuda_workspace(struct device *device, int64_t rows, bool backward)
{
    (void)device;
    return attention_cuda_workspace(rows, backward);
}

static size_t cuda_scan_workspace(struct device *device, const struct scan_call *call, bool backward)
{
    (void)device;
    return scan_cuda_workspace(call, backward);
}

static bool cuda_attention_fits(struct device *device, int head_dim)
{
    (void)device;
    return attention_cuda_fits(head_dim);
}

static size_t cuda_product_scratch(struct device *device, const struct kernel_call *call)
{
    const struct grouped_call *g = &call->grouped;
    (void)device;
    if (call->kernel == KERNEL_LINEAR_FORWARD || call->kernel == KERNEL_LINEAR_BACKWARD_INPUT ||
        call->kernel == KERNEL_LINEAR_BACKWARD_WEIGHT)
        return linear_narrow_scratch(call->kernel, &call->linear);
    return g->x_as.format || g->dy_as.format ? linear_reference_scratch(call) : 0; /* bf16 needs half of that */
}

/* Ada and Hopper are the first with products of bytes, Blackwell with scales of blocks. */
static enum status cuda_multiplies(struct device *device, enum precision precision, struct diags *diags)
{
    struct cuda_device *cuda = cuda_of(device);
    int major = 0, minor = 0, wanted = precision == PRECISION_MXFP8 ? 100 : 89;
    CUDA_RETURN(device, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, cuda->gpu));
    CUDA_RETURN(device, cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, cuda->gpu));
    if (10 * major + minor >= wanted)
        return STATUS_OK;
    diag_error(diags, PLACE_NONE,
               "this GPU, of compute capability %d.%d, has no products in %s, which come with %d.%d; set "
               "job.precision to bf16",
               major, minor, precision_name(precision), wanted / 10, wanted % 10);
    return STATUS_MISSING;
}

static void CUDART_CB sleep_on_host(void *argument)
{
    nanos duration = (nanos)(intptr_t)argument;
    const struct timespec nap = {.tv_sec = duration / NANOS_PER_SECOND, .tv_nsec = duration % NANOS_PER_SECOND};
    nanosleep(&nap, NULL);
}

static enum status cuda_pause(struct device_stream *stream, nanos duration, struct diags *diags)
{
    CUDA_RETURN(stream->device, cudaLaunchHostFunc(stream_of(stream), sleep_on_host, (void *)(intptr_t)duration));
    return STATUS_OK;
}

/* --- the device */

static void cuda_close(struct device *device)
{
    struct cuda_device *cuda = cuda_of(device);
    if (!cuda)
        return;
    for (int i = 0; i < STAGING_BUFFERS; i++) {
        if (cuda->staging[i].memory)
            cudaFreeHost(cuda->staging[i].memory);
        if (cuda->staging[i].passed)
            cudaEventDestroy(cuda->staging[i].passed);
    }
    if (cuda->epoch)
        cudaEventDestroy(cuda->epoch);
    if (cuda->zeroing)
        cudaStreamDestroy(cuda->zeroing);
    gemm_library_free(cuda->gemm);
    (void)cudaGetLastError();
    free(cuda);
}

static enum status cuda_copy_between(struct device_stream *stream, void *to, const void *from, size_t bytes, struct diags *diags)
{
    return cuda_host_copy(stream->device, stream_of(stream), to, from, bytes, diags);
}

static enum status cuda_launch_host(struct device_stream *stream, const struct kernel_call *call, struct diags *diags)
{
    return cuda_host_launch(stream->device, stream_of(stream), call, diags);
}

static const struct device_api cuda_api = {
    .name = "cuda",
    .close = cuda_close,
    .memory_new = cuda_memory_new,
    .memory_free = cuda_memory_free,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .host_new = cuda_host_new,
    .host_free = cuda_host_free,
    .copy_between = cuda_copy_between,
    .stream_new = cuda_stream_new,
    .stream_free = cuda_stream_free,
    .stream_synchronise = cuda_stream_synchronise,
    .event_new = cuda_event_new,
    .event_free = cuda_event_free,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_time = cuda_event_time,
    .launch_host = cuda_launch_host,
    .launch = cuda_launch_kernel,
    .attention_workspace = cuda_workspace,
    .scan_workspace = cuda_scan_workspace,
    .attention_fits = cuda_attention_fits,
    .product_scratch = cuda_product_scratch,
    .multiplies = cuda_multiplies,
    .mark_epoch = cuda_mark_epoch,
    .pause = cuda_pause,
};

/* CUDA reads these variables when it starts. Streams share the queues of the device's front end, eight by default. Work behind
 * another stream's command in a queue waits with that command: perhaps for an exchange that waits for another rank, which waits
 * for this work. 32 queues are the most there are (CUDA C++ Programming Guide, environment variables). For the same reason one
 * rank among others loads its kernels when CUDA starts: loading one at its first launch may wait for what runs on the device
 * (there, lazy loading, concurrent execution). The user's own settings stay. */
static void cuda_variables(void)
{
    struct cuda_place place;
    struct diags nobody = {0}; /* who opens the device reads the place himself, and says what is wrong with it */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    if (cuda_place_read(&place, &nobody) == STATUS_OK && place.n_ranks > 1)
        setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    diags_free(&nobody);
}

int cuda_device_count(void)
{
    int count = 0;
    cuda_variables();
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        (void)cudaGetLastError();
        return 0;
    }
    return count;
}

static enum status check_gpu(int rank, int gpu, struct diags *diags)
{
    int count = 0, major = 0, minor = 0;
    cuda_variables();
    cudaError_t error = cudaGetDeviceCount(&count);
    (void)cudaGetLastError();
    if (error != cudaSuccess || count == 0) {
        diag_error(diags, PLACE_NONE, "this machine has no usable NVIDIA GPU: %s",
                   error == cudaSuccess ? "none is visible" : cudaGetErrorString(error));
        return STATUS_MISSING;
    }
    if (gpu < 0 || gpu >= count) {
        diag_error(diags, PLACE_NONE, "rank %d: GPU %d is asked for, but this machine has %d", rank, gpu, count);
        return STATUS_MISSING;
    }
    (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu);
    (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu);
    if (major >= OLDEST_MAJOR)
        return STATUS_OK;
    diag_error(diags, PLACE_NONE, "rank %d: GPU %d has compute capability %d.%d; the kernels need 8.0 (Ampere) or later", rank,
               gpu, major, minor);
    return STATUS_MISSING;
}

enum status cuda_device_open(int rank, int gpu, size_t limit, struct device **device, struct diags *diags)
{
    enum status status = check_gpu(rank, gpu, diags);
    if (status != STATUS_OK)
        return status;
    struct cuda_device *cuda = memory_new(1, sizeof *cuda);
    cuda->base = (struct device){.api = &cuda_api, .precision = PRECISION_BF16, .rank = rank};
    cuda->gpu = gpu;
    cuda->limit = limit;
    status = STATUS_FAILED;
    CUDA_GOTO(&cuda->base, cudaSetDevice(gpu), failed);
    cuda->portable = getenv("MSIM_PORTABLE_KERNELS") != NULL;
    CUDA_GOTO(&cuda->base, cudaDeviceGetAttribute(&cuda->multiprocessors, cudaDevAttrMultiProcessorCount, gpu), failed);
    CUDA_GOTO(&cuda->base, cudaStreamCreateWithFlags(&cuda->zeroing, cudaStreamNonBlocking), failed);
    CUDA_GOTO(&cuda->base, cudaEventCreate(&cuda->epoch), failed);
    CUDA_GOTO(&cuda->base, cudaEventRecord(cuda->epoch, cuda->zeroing), failed);
    status = staging_make(cuda, diags);
    if (status == STATUS_OK)
        status = gemm_library_new(&cuda->gemm, diags);
    if (status != STATUS_OK)
        goto failed;
    *device = &cuda->base;
    return STATUS_OK;
failed:
    cuda_close(&cuda->base);
    return status;
}

bool cuda_device_is_portable(const struct device *device)
{
    return cuda_of(device)->portable;
}

void cuda_device_use_portable(struct device *device)
{
    cuda_of(device)->portable = true;
}

enum status cuda_device_facts(const struct device *device, struct cuda_device_facts *facts, struct diags *diags)
{
    struct cudaDeviceProp properties;
    struct cuda_device_facts read = {0};
    CUDA_RETURN(device, cudaGetDeviceProperties(&properties, cuda_of(device)->gpu));
    CUDA_RETURN(device, cudaDriverGetVersion(&read.driver));
    CUDA_RETURN(device, cudaRuntimeGetVersion(&read.runtime));
    snprintf(read.name, sizeof read.name, "%s", properties.name);
    read.major = properties.major;
    read.minor = properties.minor;
    read.multiprocessors = properties.multiProcessorCount;
    read.memory_bytes = properties.totalGlobalMem;
    read.l2_bytes = (size_t)properties.l2CacheSize;
    *facts = read;
    return STATUS_OK;
}
