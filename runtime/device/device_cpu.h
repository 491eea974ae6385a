/*
 * device_cpu.h - the CPU as a device: a stream is a thread, memory is memory, everything is fp32.
 *
 * Streams really run beside each other, so a program whose dependencies do not cover its data flow is a data race here, which a
 * thread sanitizer finds. Ranks on one machine share its cores (cores.h): with more busy streams than cores, operations last
 * longer. Urgent streams get a core at once when they wake.
 *
 * The first failure on a device stays: what is enqueued afterwards is skipped, and stream_synchronise reports it.
 */
#ifndef MSIM_RUNTIME_DEVICE_DEVICE_CPU_H
#define MSIM_RUNTIME_DEVICE_DEVICE_CPU_H

#include "runtime/base/device.h"

/* `epoch` is where the clock of the world begins, and must outlive the device; NULL: where mark_epoch put it. `limit` bytes of
 * memory_new, 0: none. Release with device->api->close after its streams. */
MUST_CHECK enum status device_cpu_open(int rank, const nanos *epoch, size_t limit, struct device **device, struct diags *diags);

/* --- for the backend of exchanges (comm_threads.c) */

enum { CPU_TASK_BYTES = 256 };
/* Enqueue a function with a copy of its argument. It runs even after a failure: see device_cpu_failed. */
void device_cpu_enqueue(struct device_stream *stream, void (*run)(void *argument), const void *argument, size_t bytes);
bool device_cpu_failed(struct device *device);
/* The first failure's sentence is kept; others are dropped. */
void device_cpu_fail(struct device *device, const char *format, ...) PRINTF_LIKE(2, 3);
/* The sentence, "" when there was no failure. Returns buffer. */
char *device_cpu_failure(struct device *device, char *buffer, size_t size);

#endif
