/*
 * kernel_call.h - what the runtime asks of a device: one kernel with its operands, as kernels/kernels.h defines them.
 *
 * A call is copied when it is enqueued; the buffers it points to are the device's and must stay until the stream has passed it.
 */
#ifndef MSIM_RUNTIME_BASE_KERNEL_CALL_H
#define MSIM_RUNTIME_BASE_KERNEL_CALL_H

#include "kernels/kernels.h"

#endif
