/*
 * null_cuda.c - CUDA's runtime of a GPU that computes nothing: it accepts each call, and checks it.
 *
 * Linked in place of CUDA's runtime, with the kernels as nvcc compiled them. So programs run at full size where there is no GPU:
 * what is checked is the host's side.
 *
 *   memory     address space that is never touched, as much as an H200 has; copies and fills must lie inside of an allocation.
 *              Copies of at most COPIED_BYTES are done, larger ones are not.
 *   launches   grid, block and shared memory against the limits of compute capability 9.0 (CUDA C++ Programming Guide, technical
 *              specifications); more than 48 KiB of shared memory has to be asked for
 *   streams    queues of what NCCL waits for (null_cuda.h), and of events of other streams; a stream with nothing to wait for is
 *              done at once
 *   times      each stream has a virtual clock; a launch takes KERNEL_MS, a copy its bytes over COPY_RATE
 *
 * What breaks a rule ends the process with a message ("null GPU: ...") and SIGABRT. MSIM_NULL_HANG, a part of a kernel's name: a
 * launch of it never ends. MSIM_NULL_BLOCKS: another limit of a grid's second and third dimension. MSIM_NULL_REPORT: a file to
 * which the numbers of calls are appended when the process ends.
 */
#include "tests/gpu/null_cuda.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/gpu/null_cuda_internal.h"

enum { PROCESSORS = 132, CLOCK_KHZ = 1980000, CAPABILITY_MAJOR = 9, VERSION = 13000, L2_BYTES = 60 << 20, NAP_NS = 50000 };
static const double EVENT_MS = 0.0005;

struct waiting {
    null_passes *passes;
    void *context;
};

struct CUstream_st {
    struct waiting *waiting; /* [put], those before `passed` are done */
    uint64_t put, passed, capacity;
    double ms;
    struct CUstream_st *next;
};

/* What has to pass, and when it did. */
struct CUevent_st {
    struct CUstream_st *stream;
    uint64_t put;
    double ms;
};

static struct CUstream_st *streams, default_stream;
struct null_counts null_counts;

void null_broken(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("error: null GPU: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

static void report(void)
{
    FILE *to = fopen(getenv("MSIM_NULL_REPORT"), "a");
    if (!to)
        return;
    fprintf(to,
            "cuda,launches=%ld,copies=%ld,event_records=%ld,stream_waits=%ld,queries=%ld,allocations=%ld,attribute_calls=%ld,"
            "tensor_maps=%ld\n",
            null_counts.launches, null_counts.copies, null_counts.records, null_counts.waits, null_counts.queries,
            null_counts.allocations, null_counts.attributes, null_counts.encodings);
    fclose(to);
}

/* --- errors and facts */

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : error == cudaErrorNotReady ? "not ready" : "null GPU";
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    static bool counted;
    if (!counted && getenv("MSIM_NULL_REPORT"))
        atexit(report);
    counted = true;
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    null_counts.attributes++;
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)device;
    null_counts.attributes++;
    *value = attribute == cudaDevAttrMultiProcessorCount      ? PROCESSORS
             : attribute == cudaDevAttrComputeCapabilityMajor ? CAPABILITY_MAJOR
             : attribute == cudaDevAttrClockRate              ? CLOCK_KHZ
                                                              : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    (void)device;
    *properties = (struct cudaDeviceProp){.name = "null GPU",
                                          .totalGlobalMem = NULL_MEMORY_BYTES,
                                          .major = CAPABILITY_MAJOR,
                                          .multiProcessorCount = PROCESSORS,
                                          .l2CacheSize = L2_BYTES};
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

/* --- streams: what can pass does so when it is asked for */

static struct CUstream_st *stream_of(cudaStream_t stream)
{
    return stream ? stream : &default_stream;
}

static bool has_passed(struct CUstream_st *stream, uint64_t put)
{
    while (stream->passed < put) { /* no further: what comes behind may be who asks */
        struct waiting *first = &stream->waiting[stream->passed];
        if (!first->passes(first->context))
            break;
        free(first->context);
        stream->passed++;
    }
    return stream->passed >= put;
}

void null_stream_expect(cudaStream_t handle, null_passes *passes, void *context)
{
    struct CUstream_st *stream = stream_of(handle);
    if (stream->passed == stream->put && passes(context)) {
        free(context);
        return;
    }
    if (stream->put == stream->capacity) {
        stream->capacity = 2 * stream->capacity + 64;
        stream->waiting = realloc(stream->waiting, stream->capacity * sizeof *stream->waiting);
    }
    stream->waiting[stream->put++] = (struct waiting){passes, context};
}

void null_stream_spend(cudaStream_t stream, double milliseconds)
{
    stream_of(stream)->ms += milliseconds;
}

static void wait_for(struct CUstream_st *stream, uint64_t put)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    while (!has_passed(stream, put))
        nanosleep(&nap, NULL);
}

cudaError_t cudaDeviceSynchronize(void)
{
    for (struct CUstream_st *s = streams; s; s = s->next)
        wait_for(s, s->put);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    (void)flags, (void)priority;
    *stream = calloc(1, sizeof **stream);
    (*stream)->next = streams;
    streams = *stream;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithPriority(stream, 0, 0);
}

/* It stays for its events. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    null_counts.queries++;
    return has_passed(stream_of(stream), stream_of(stream)->put) ? cudaSuccess : cudaErrorNotReady;
}

/* What a stream waits for of another one. */
static bool event_passed(void *context)
{
    const struct CUevent_st *of = context;
    return has_passed(of->stream, of->put);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned flags)
{
    struct CUstream_st *stream = stream_of(handle);
    (void)flags;
    null_counts.waits++;
    if (!event->stream)
        return cudaSuccess;
    struct CUevent_st *of = malloc(sizeof *of);
    *of = *event;
    stream->ms = stream->ms > of->ms ? stream->ms : of->ms;
    null_stream_expect(stream, event_passed, of);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    (void)stream;
    function(argument);
    return cudaSuccess;
}

/* --- events */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
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

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle)
{
    struct CUstream_st *stream = stream_of(handle);
    null_counts.records++;
    stream->ms += EVENT_MS;
    *event = (struct CUevent_st){stream, stream->put, stream->ms};
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    null_counts.queries++;
    return !event->stream || has_passed(event->stream, event->put) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (event->stream)
        wait_for(event->stream, event->put);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    if (!from->stream || !to->stream || !has_passed(to->stream, to->put))
        null_broken("the time of an event that was not recorded or has not passed");
    *milliseconds = (float)(to->ms - from->ms);
    return cudaSuccess;
}
