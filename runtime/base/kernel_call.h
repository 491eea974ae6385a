/*
 * kernel_call.h - the kernel calls that a device executes; the runtime gets them from kernels/kernels.h through this header.
 *
 * Example: zero 4096 bytes of a device.
 *
 *     struct kernel_call call = {.kernel = KERNEL_ZERO, .zero = {.at = y, .bytes = 4096}};
 *     device->api->launch(stream, &call, &diags);
 *
 * Enqueueing copies the call. The buffers it points to belong to the device and must stay until the stream has passed it.
 */
#ifndef MSIM_RUNTIME_BASE_KERNEL_CALL_H
#define MSIM_RUNTIME_BASE_KERNEL_CALL_H

#include "kernels/kernels.h"

#endif
