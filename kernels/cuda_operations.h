/*
 * cuda_operations.h - one CUDA launcher per operation, which kernel_cuda.cu calls (cuda_launch.h has the rules for all).
 *
 * Example: kernel_cuda_launch() of KERNEL_NORM_FORWARD calls norm_forward_cuda(launch, &call->norm_forward).
 *
 * Each returns CUDA's error code (0: none) with the sticky error cleared; cudaErrorInvalidValue for unsupported shapes.
 */
#ifndef MSIM_KERNELS_CUDA_OPERATIONS_H
#define MSIM_KERNELS_CUDA_OPERATIONS_H

#include "kernels/cuda_launch.h"

/* int norm_forward_cuda(const struct cuda_launch *launch, const struct norm_forward_call *call); and so on */
#define X(ID, stem, of) int stem##_cuda(const struct cuda_launch *launch, const struct of##_call *call);
KERNELS(X, KERNEL_SKIPPED)
#undef X

/* STATUS_OK for code 0, else STATUS_FAILED with the kernel and CUDA's text in `diags`; clears the sticky error. */
enum status kernel_cuda_status(enum kernel kernel, int code, struct diags *diags) MUST_CHECK;

/* Products of experts; gemm_library.h has those of linear layers. */
int grouped_forward_cuda(const struct cuda_launch *launch, const struct grouped_call *call);
int grouped_backward_input_cuda(const struct cuda_launch *launch, const struct grouped_call *call);
int grouped_backward_weight_cuda(const struct cuda_launch *launch, const struct grouped_call *call);
/* The same with operands of 8 bits, which are widened to bf16 in grouped_call.scratch. */
int grouped_narrow_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct grouped_call *call);

/* Attention with the instructions of sm_90a. cudaErrorNotSupported: the device, its driver or the build lacks this kernel. */
int attention_forward_hopper_cuda(const struct cuda_launch *launch, const struct attention_call *call);
int attention_backward_hopper_cuda(const struct cuda_launch *launch, const struct attention_call *call); /* after delta */

/* Memory of the scan by chunks. `solved`: for the delta rule, scan_chunks_forward_workspace bytes, filled by scan_solve_cuda.
 * With `begins` the scan writes the states in front of chunks, and no y; for the delta rule also `written`, the writes of tokens.
 */
struct chunks_memory {
    void *solved, *begins, *written;
};

/* The scan by chunks, for calls that it supports and devices whose blocks have enough shared memory. */
bool scan_chunks_fit(const struct scan_call *call);
bool scan_chunks_fit_backward(const struct scan_call *call);
int scan_chunks_forward_cuda(const struct cuda_launch *launch, const struct scan_call *call, const struct chunks_memory *memory);
int scan_chunks_backward_cuda(const struct cuda_launch *launch, const struct scan_call *call);
int scan_solve_cuda(const struct cuda_launch *launch, const struct scan_call *call, void *solved);
size_t scan_chunks_forward_workspace(const struct scan_call *call); /* bytes */
size_t scan_chunks_backward_workspace(const struct scan_call *call);

/* Adds up the parts of gradients that several columns and heads share, for tokens [first, first + tokens) of every sequence. From
 * sums [batch][heads][tiles][span][dq, dk: state each; ddecay: rows; dstrength] to the gradients of the call. */
int scan_sums_cuda(const struct cuda_launch *launch, const struct scan_call *call, const float *sums, int64_t tiles, int64_t span,
                   int64_t first, int64_t tokens);

/* sum[i] += the sum of column i over `parts` rows that are `stride` apart, for n columns, in a fixed order: the second half of
 * every sum over rows. */
int partial_sum_cuda(const struct cuda_launch *launch, const float *partial, int64_t parts, int64_t stride, int64_t n,
                     float *sum);

/* `to` (bf16) = the exact values of an operand [rows, cols] of 8 bits; only its first *count rows if `count` is not NULL. */
int widen_cuda(const struct cuda_launch *launch, const void *data, const struct narrow_operand *as, int64_t rows, int64_t cols,
               const int32_t *count, void *to);
/* to [cols, rows] = from [rows, cols], bytes. */
int transpose_bytes_cuda(const struct cuda_launch *launch, const uint8_t *from, int64_t rows, int64_t cols, uint8_t *to);

/* Reorders the scales of blocks of [n, k] along k for tensor cores: tiles of 128 rows and 4 blocks, 512 bytes each, row by row.
 * Row r and block b of a tile are at byte 16 (r % 32) + 4 (r / 32) + b; bytes beyond the matrix are 0 (cuBLAS documentation, 1D
 * block scaling factors layout). `from` is [n][blocks], or with `down` [blocks][n]. */
int tile_blocks_cuda(const struct cuda_launch *launch, const uint8_t *from, int64_t n, int64_t blocks, bool down, uint8_t *to);

#endif
