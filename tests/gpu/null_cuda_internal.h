/*
 * null_cuda_internal.h - what the parts of the null GPU share: null_cuda.c, null_memory.c, null_kernels.c.
 */
#ifndef MSIM_TESTS_GPU_NULL_CUDA_INTERNAL_H
#define MSIM_TESTS_GPU_NULL_CUDA_INTERNAL_H

#include <stddef.h>

#define NULL_MEMORY_BYTES ((size_t)150754820096) /* an H200's */

/* Calls, for the report. */
struct null_counts {
    long launches, copies, records, waits, queries, allocations, attributes, encodings;
};
extern struct null_counts null_counts;

/* Ends the process: a rule was broken. */
void null_broken(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
