/*
 * device_cpu.h - the CPU as a device: each stream is a thread, and everything is fp32.
 *
 * Example:
 *
 *     device_cpu_open(0, hub_epoch(hub), 0, &device, &diags);
 *     device->api->stream_new(device, false, &stream, &diags);         starts a thread
 *     device->api->launch(stream, &call, &diags);                      the thread calls kernel_reference_run(&call)
 *
 * Streams really run concurrently. So if a program's dependencies do not cover its data flow, there is a data race, which a
 * thread sanitizer finds. Ranks on one machine share its cores (cores.h): with more busy streams than cores, operations take
 * longer. Urgent streams get a core as soon as they wake.
 *
 * The first failure of a device is kept. Later work is skipped, and stream_synchronise reports the failure.
 */
#ifndef MSIM_RUNTIME_DEVICE_DEVICE_CPU_H
#define MSIM_RUNTIME_DEVICE_DEVICE_CPU_H

#include "runtime/base/device.h"

/* `epoch`: start of the world's clock, must outlive the device; NULL: set by mark_epoch. `limit`: bytes that memory_new may give,
 * 0: no limit. Close with device->api->close after freeing its streams. */
MUST_CHECK enum status device_cpu_open(int rank, const nanos *epoch, size_t limit, struct device **device, struct diags *diags);

/* --- for the backends of exchanges (comm_threads.c, comm_processes.c) */

enum { CPU_TASK_BYTES = 256 };
/* Enqueues a function with a copy of its argument. It runs even after a failure: see device_cpu_failed. */
void device_cpu_enqueue(struct device_stream *stream, void (*run)(void *argument), const void *argument, size_t bytes);
bool device_cpu_failed(struct device *device);
/* Reports a failure. The message of the first is kept; later ones are dropped. */
void device_cpu_fail(struct device *device, const char *format, ...) PRINTF_LIKE(2, 3);
/* The message of the first failure; "" without one. Returns buffer. */
char *device_cpu_failure(struct device *device, char *buffer, size_t size);

#endif
