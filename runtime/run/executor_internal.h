/*
 * executor_internal.h - the function that the files of the executor share (private to executor*.c).
 *
 * Example: the operation "layer 3 forward" of micro-batch 0 becomes the kernels and exchanges of its fifteen steps (steps.h).
 */
#ifndef MSIM_RUNTIME_RUN_EXECUTOR_INTERNAL_H
#define MSIM_RUNTIME_RUN_EXECUTOR_INTERNAL_H

#include "runtime/run/executor.h"

/* Enqueues operation `i` of the rank's script on its stream. Of a pipelined pair, the operation that reads is enqueued after the
 * other.
 */
void rank_enqueue_operation(struct rank *rank, uint32_t i);

#endif
