/*
 * null_cuda.h - what the null GPU offers to the null NCCL and the null cuBLASLt: work on its streams.
 *
 * The null GPU (null_cuda.c) computes nothing. A stream is a queue of things to wait for, and a clock of its own. Example: NCCL
 * puts an exchange on a stream, which passes when all ranks have come to it; a product takes virtual time:
 *
 *     null_stream_expect(stream, all_have_come, exchange);
 *     null_stream_spend(stream, 1e3 * flops / 7e14);
 *
 * The program defines these functions, and the libraries that it loads find them there.
 */
#ifndef MSIM_TESTS_GPU_NULL_CUDA_H
#define MSIM_TESTS_GPU_NULL_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

/* `passes` is called with `context` once all that was put on the stream before has passed, and again until it returns true;
 * `context` is freed then. */
typedef bool null_passes(void *context);
__attribute__((visibility("default"))) void null_stream_expect(cudaStream_t stream, null_passes *passes, void *context);
/* Moves the stream's clock. */
__attribute__((visibility("default"))) void null_stream_spend(cudaStream_t stream, double milliseconds);

#endif
