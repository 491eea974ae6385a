/*
 * kernel_device.h - a kernel case in a device's memory: operands in the device's format between guards, and the comparison after.
 *
 * The device is four functions, so the same check serves a GPU and the emulation of one.
 */
#ifndef MSIM_TESTS_KERNELS_KERNEL_DEVICE_H
#define MSIM_TESTS_KERNELS_KERNEL_DEVICE_H

#include "tests/kernels/kernel_case.h"

struct kernel_device {
    void *(*memory_new)(size_t bytes); /* aligned to 256 bytes */
    void (*memory_free)(void *memory);
    void (*copy_in)(void *device, const void *host, size_t bytes); /* synchronous */
    void (*copy_out)(void *host, const void *device, size_t bytes);
};

/* The CPU's own memory, where emulated kernels run; a test ends when there is none left. */
extern const struct kernel_device kernel_device_host;

struct kernel_run {
    const struct kernel_device *device;
    const struct kernel_case *c;
    struct kernel_call call; /* bound to the device's buffers */
    void *blocks[MAX_OPERANDS];
    char *fetched[MAX_OPERANDS];
};

/* Before the reference ran on the case: what is in and out must still hold its first values. */
void kernel_run_prepare(struct kernel_run *run, const struct kernel_case *c, const struct kernel_device *device);
void kernel_run_fetch(struct kernel_run *run);
/* After the reference ran: values, guards, inputs untouched. */
bool kernel_run_check(const struct kernel_run *run, char *why, size_t size);
double kernel_run_error(const struct kernel_run *run); /* the largest of its operands */
double kernel_run_error_of(const struct kernel_run *run, const char *operand);
bool kernel_run_equal(const struct kernel_run *a, const struct kernel_run *b);
void kernel_run_free(struct kernel_run *run);

#endif
