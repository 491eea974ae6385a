/* device_cpu.c - the CPU as a device: a thread per stream, and events with times. */
#include "runtime/device/device_cpu.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/kernels.h"
#include "model/base/clock.h"
#include "model/base/memory.h"
#include "runtime/base/cores.h"

enum { QUEUE_TASKS = 512, FAILURE_SIZE = 320 };

struct task {
    void (*run)(void *argument);
    _Alignas(16) unsigned char argument[CPU_TASK_BYTES];
};

struct cpu_device {
    struct device base;
    const nanos *epoch; /* the world's, or its own */
    nanos own_epoch;
    size_t limit;
    pthread_mutex_t lock; /* of what follows */
    bool failed;
    char failure[FAILURE_SIZE];
};

struct cpu_stream {
    struct device_stream base;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct task *tasks; /* ring of QUEUE_TASKS */
    uint64_t enqueued, done;
    bool urgent, ending;
};

struct cpu_event {
    struct device_event base;
    uint64_t enqueued; /* by the host thread only */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t recorded;
    nanos time, work;
};

static struct cpu_device *cpu_of(struct device *device)
{
    return (struct cpu_device *)device;
}

/* --- failures */

bool device_cpu_failed(struct device *device)
{
    struct cpu_device *cpu = cpu_of(device);
    pthread_mutex_lock(&cpu->lock);
    bool failed = cpu->failed;
    pthread_mutex_unlock(&cpu->lock);
    return failed;
}

void device_cpu_fail(struct device *device, const char *format, ...)
{
    struct cpu_device *cpu = cpu_of(device);
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&cpu->lock);
    if (!cpu->failed)
        vsnprintf(cpu->failure, sizeof cpu->failure, format, arguments);
    cpu->failed = true;
    pthread_mutex_unlock(&cpu->lock);
    va_end(arguments);
}

char *device_cpu_failure(struct device *device, char *buffer, size_t size)
{
    struct cpu_device *cpu = cpu_of(device);
    pthread_mutex_lock(&cpu->lock);
    snprintf(buffer, size, "%s", cpu->failure);
    pthread_mutex_unlock(&cpu->lock);
    return buffer;
}

/* --- memory */

static enum status cpu_memory_new(struct device *device, size_t bytes, void **memory, struct diags *diags)
{
    struct cpu_device *cpu = cpu_of(device);
    size_t rounded = (bytes + 63) / 64 * 64 + 64;
    bool fits = !cpu->limit || device->in_use + bytes <= cpu->limit;
    void *block = fits ? aligned_alloc(64, rounded) : NULL;
    if (!block) {
        diag_error(diags, PLACE_NONE, "rank %d: out of memory: %zu bytes asked for, %zu in use, limit %zu", device->rank, bytes,
                   device->in_use, cpu->limit);
        return STATUS_FAILED;
    }
    memset(block, 0, rounded);
    device->in_use += bytes;
    device->peak = device->in_use > device->peak ? device->in_use : device->peak;
    *memory = block;
    return STATUS_OK;
}

static void cpu_memory_free(struct device *device, void *memory, size_t bytes)
{
    if (memory)
        device->in_use -= bytes;
    free(memory);
}

/* Beside what counts as the device's. */
static enum status cpu_host_new(struct device *device, size_t bytes, void **memory, struct diags *diags)
{
    *memory = malloc(bytes ? bytes : 1);
    if (*memory) {
        device_count_host(device, bytes);
        return STATUS_OK;
    }
    diag_error(diags, PLACE_NONE, "rank %d: the host has no %zu bytes left", device->rank, bytes);
    return STATUS_FAILED;
}

static void cpu_host_free(struct device *device, void *memory, size_t bytes)
{
    if (memory)
        device->host_in_use -= bytes;
    free(memory);
}

/* --- streams
 *
 * One thread enqueues, one executes. Who found the queue full goes on when half of it has been done, so that the two do not wake
 * each other for every task. */

static void *stream_main(void *argument)
{
    struct cpu_stream *stream = argument;
    if (stream->urgent)
        cores_go_first();
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (stream->done == stream->enqueued && !stream->ending)
            pthread_cond_wait(&stream->changed, &stream->lock);
        if (stream->done == stream->enqueued)
            break;
        struct task *task = &stream->tasks[stream->done % QUEUE_TASKS];
        pthread_mutex_unlock(&stream->lock);
        task->run(task->argument);
        pthread_mutex_lock(&stream->lock);
        stream->done++;
        if (stream->done == stream->enqueued || stream->enqueued - stream->done == QUEUE_TASKS / 2)
            pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

void device_cpu_enqueue(struct device_stream *base, void (*run)(void *argument), const void *argument, size_t bytes)
{
    struct cpu_stream *stream = (struct cpu_stream *)base;
    if (bytes > CPU_TASK_BYTES) { /* the callers assert it */
        device_cpu_fail(base->device, "a task of %zu bytes does not fit the queue", bytes);
        return;
    }
    pthread_mutex_lock(&stream->lock);
    if (stream->enqueued - stream->done == QUEUE_TASKS)
        while (stream->enqueued - stream->done > QUEUE_TASKS / 2)
            pthread_cond_wait(&stream->changed, &stream->lock);
    struct task *task = &stream->tasks[stream->enqueued % QUEUE_TASKS];
    task->run = run;
    memcpy(task->argument, argument, bytes);
    if (stream->enqueued++ == stream->done)
        pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

static enum status cpu_stream_new(struct device *device, bool urgent, struct device_stream **result, struct diags *diags)
{
    struct cpu_stream *stream = memory_new(1, sizeof *stream);
    stream->urgent = urgent;
    stream->base.device = device;
    stream->tasks = memory_new(QUEUE_TASKS, sizeof *stream->tasks);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&stream->thread, NULL, stream_main, stream)) {
        diag_error(diags, PLACE_NONE, "rank %d: no thread for a stream; the machine's limit of threads is reached", device->rank);
        free(stream->tasks);
        free(stream);
        return STATUS_FAILED;
    }
    *result = &stream->base;
    return STATUS_OK;
}

static void cpu_stream_free(struct device_stream *base)
{
    struct cpu_stream *stream = (struct cpu_stream *)base;
    if (!stream)
        return;
    pthread_mutex_lock(&stream->lock);
    stream->ending = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->changed);
    free(stream->tasks);
    free(stream);
}

static enum status cpu_stream_synchronise(struct device_stream *base, struct diags *diags)
{
    struct cpu_stream *stream = (struct cpu_stream *)base;
    pthread_mutex_lock(&stream->lock);
    while (stream->done != stream->enqueued)
        pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    if (!device_cpu_failed(base->device))
        return STATUS_OK;
    char text[FAILURE_SIZE];
    diag_error(diags, PLACE_NONE, "%s", device_cpu_failure(base->device, text, sizeof text));
    return STATUS_FAILED;
}

/* --- events */

static enum status cpu_event_new(struct device *device, struct device_event **result, struct diags *diags)
{
    (void)diags;
    struct cpu_event *event = memory_new(1, sizeof *event);
    event->base.device = device;
    pthread_mutex_init(&event->lock, NULL);
    pthread_cond_init(&event->changed, NULL);
    *result = &event->base;
    return STATUS_OK;
}

static void cpu_event_free(struct device_event *base)
{
    struct cpu_event *event = (struct cpu_event *)base;
    if (!event)
        return;
    pthread_mutex_destroy(&event->lock);
    pthread_cond_destroy(&event->changed);
    free(event);
}

struct event_task {
    struct cpu_event *event;
    uint64_t count;
};

static void record_run(void *argument)
{
    struct event_task *task = argument;
    struct cpu_event *event = task->event;
    nanos now = clock_monotonic() - *cpu_of(event->base.device)->epoch, work = clock_thread_work();
    pthread_mutex_lock(&event->lock);
    event->recorded = task->count;
    event->time = now;
    event->work = work;
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

/* Bounded because whatever records the event is enqueued already, and streams get through their queues also after a failure. */
static void wait_run(void *argument)
{
    struct event_task *task = argument;
    struct cpu_event *event = task->event;
    pthread_mutex_lock(&event->lock);
    while (event->recorded < task->count)
        pthread_cond_wait(&event->changed, &event->lock);
    pthread_mutex_unlock(&event->lock);
}

static enum status cpu_event_record(struct device_event *base, struct device_stream *stream, struct diags *diags)
{
    (void)diags;
    struct cpu_event *event = (struct cpu_event *)base;
    struct event_task task = {event, ++event->enqueued};
    device_cpu_enqueue(stream, record_run, &task, sizeof task);
    return STATUS_OK;
}

static enum status cpu_event_wait(struct device_event *base, struct device_stream *stream, struct diags *diags)
{
    (void)diags;
    struct cpu_event *event = (struct cpu_event *)base;
    struct event_task task = {event, event->enqueued};
    if (task.count)
        device_cpu_enqueue(stream, wait_run, &task, sizeof task);
    return STATUS_OK;
}

static enum status cpu_event_time(struct device_event *base, nanos *time, struct diags *diags)
{
    (void)diags;
    struct cpu_event *event = (struct cpu_event *)base;
    pthread_mutex_lock(&event->lock);
    *time = event->time;
    pthread_mutex_unlock(&event->lock);
    return STATUS_OK;
}

static enum status cpu_event_work(struct device_event *base, nanos *time, struct diags *diags)
{
    (void)diags;
    struct cpu_event *event = (struct cpu_event *)base;
    pthread_mutex_lock(&event->lock);
    *time = event->work;
    pthread_mutex_unlock(&event->lock);
    return STATUS_OK;
}

/* --- kernels */

struct kernel_task {
    struct device *device;
    struct kernel_call call;
};
_Static_assert(sizeof(struct kernel_task) <= CPU_TASK_BYTES, "a kernel call fits a task");

static void kernel_run(void *argument)
{
    struct kernel_task *task = argument;
    if (!device_cpu_failed(task->device))
        kernel_reference_run(&task->call);
}

static enum status cpu_launch(struct device_stream *stream, const struct kernel_call *call, struct diags *diags)
{
    (void)diags;
    struct kernel_task task = {stream->device, *call};
    device_cpu_enqueue(stream, kernel_run, &task, sizeof task);
    return STATUS_OK;
}

static enum status cpu_copy(struct device_stream *stream, void *to, const void *from, size_t bytes, struct diags *diags)
{
    struct kernel_call call = {.kernel = KERNEL_COPY, .copy = {to, from, bytes}};
    return cpu_launch(stream, &call, diags);
}

static size_t cpu_workspace(struct device *device, int64_t rows, bool backward)
{
    (void)device, (void)rows, (void)backward;
    return 0;
}

static size_t cpu_scan_workspace(struct device *device, const struct scan_call *call, bool backward)
{
    (void)device;
    return scan_reference_workspace(call, backward);
}

static bool cpu_attention_fits(struct device *device, int head_dim)
{
    (void)device;
    return head_dim > 0;
}

static size_t cpu_product_scratch(struct device *device, const struct kernel_call *call)
{
    (void)device;
    return linear_reference_scratch(call);
}

static enum status cpu_multiplies(struct device *device, enum precision precision, struct diags *diags)
{
    (void)device, (void)precision, (void)diags;
    return STATUS_OK;
}

static enum status cpu_mark_epoch(struct device *device, struct device_stream *stream, struct diags *diags)
{
    enum status status = cpu_stream_synchronise(stream, diags);
    cpu_of(device)->own_epoch = clock_monotonic();
    return status;
}

static void pause_run(void *argument)
{
    nanos duration;
    memcpy(&duration, argument, sizeof duration);
    struct timespec t = {.tv_sec = duration / NANOS_PER_SECOND, .tv_nsec = duration % NANOS_PER_SECOND};
    nanosleep(&t, NULL);
}

static enum status cpu_pause(struct device_stream *stream, nanos duration, struct diags *diags)
{
    (void)diags;
    device_cpu_enqueue(stream, pause_run, &duration, sizeof duration);
    return STATUS_OK;
}

/* --- the device */

static void cpu_close(struct device *device)
{
    if (device)
        pthread_mutex_destroy(&cpu_of(device)->lock);
    free(device);
}

static const struct device_api cpu_api = {
    .name = "cpu",
    .close = cpu_close,
    .memory_new = cpu_memory_new,
    .memory_free = cpu_memory_free,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .host_new = cpu_host_new,
    .host_free = cpu_host_free,
    .copy_between = cpu_copy,
    .stream_new = cpu_stream_new,
    .stream_free = cpu_stream_free,
    .stream_synchronise = cpu_stream_synchronise,
    .event_new = cpu_event_new,
    .event_free = cpu_event_free,
    .event_record = cpu_event_record,
    .event_wait = cpu_event_wait,
    .event_time = cpu_event_time,
    .event_work = cpu_event_work,
    .launch = cpu_launch,
    .launch_host = cpu_launch,
    .attention_workspace = cpu_workspace,
    .scan_workspace = cpu_scan_workspace,
    .attention_fits = cpu_attention_fits,
    .product_scratch = cpu_product_scratch,
    .multiplies = cpu_multiplies,
    .mark_epoch = cpu_mark_epoch,
    .pause = cpu_pause,
};

enum status device_cpu_open(int rank, const nanos *epoch, size_t limit, struct device **result, struct diags *diags)
{
    (void)diags;
    gemm_reference_threads(1); /* ranks are threads already */
    struct cpu_device *cpu = memory_new(1, sizeof *cpu);
    cpu->base = (struct device){.api = &cpu_api, .precision = PRECISION_FP32, .rank = rank};
    cpu->epoch = epoch ? epoch : &cpu->own_epoch;
    cpu->limit = limit;
    pthread_mutex_init(&cpu->lock, NULL);
    *result = &cpu->base;
    return STATUS_OK;
}
