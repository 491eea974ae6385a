/*
 * cuda_operations.h - one launcher per operation, for kernel_cuda.cu; see cuda_launch.h for what they promise.
 *
 * Each returns CUDA's error code (0: none) with the sticky error cleared; cudaErrorInvalidValue for shapes it cannot do.
 */
#ifndef MSIM_KERNELS_CUDA_OPERATIONS_H
#define MSIM_KERNELS_CUDA_OPERATIONS_H

#include "kernels/cuda_launch.h"

/* int norm_forward_cuda(const struct cuda_launch *launch, const struct norm_forward_call *call); and so on */
#define X(ID, stem, of) int stem##_cuda(const struct cuda_launch *launch, const struct of##_call *call);
KERNELS(X, KERNEL_SKIPPED)
#undef X

/* Products; those of linear layers stand in gemm_library.h. */
int grouped_forward_cuda(const struct cuda_launch *launch, const struct grouped_call *call);
int grouped_backward_input_cuda(const struct cuda_launch *launch, const struct grouped_call *call);
int grouped_backward_weight_cuda(const struct cuda_launch *launch, const struct grouped_call *call);
/* Those whose operands are bytes: widened to bf16 in grouped_call.scratch, then as they are. */
int grouped_narrow_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct grouped_call *call);

/* Attention by the instructions of sm_90a. cudaErrorNotSupported: the device, its driver or the build has no such kernel. */
int attention_forward_hopper_cuda(const struct cuda_launch *launch, const struct attention_call *call);
int attention_backward_hopper_cuda(const struct cuda_launch *launch, const struct attention_call *call); /* after delta */

/* Memory of the scan by chunks. `solved`: of the delta rule, scan_chunks_forward_workspace bytes, which scan_solve_cuda fills.
 * With `begins` only the states in front of chunks are made, and no y; of the delta rule also what tokens write. */
struct chunks_memory {
    void *solved, *begins, *written;
};

/* The scan by chunks, where its call is one of those and a block has the shared memory. */
bool scan_chunks_fit(const struct scan_call *call);
bool scan_chunks_fit_backward(const struct scan_call *call);
int scan_chunks_forward_cuda(const struct cuda_launch *launch, const struct scan_call *call, const struct chunks_memory *memory);
int scan_chunks_backward_cuda(const struct cuda_launch *launch, const struct scan_call *call);
int scan_solve_cuda(const struct cuda_launch *launch, const struct scan_call *call, void *solved);
size_t scan_chunks_forward_workspace(const struct scan_call *call); /* bytes */
size_t scan_chunks_backward_workspace(const struct scan_call *call);

/* Gradients that columns and heads add to together, of tokens [first, first + tokens) of every sequence: sums [batch][heads]
 * [tiles][span][dq, dk: state each; ddecay: rows; dstrength] of these tokens become those of the call. */
int scan_sums_cuda(const struct cuda_launch *launch, const struct scan_call *call, const float *sums, int64_t tiles, int64_t span,
                   int64_t first, int64_t tokens);

/* sum[i] += the sum of i of n columns over `parts` rows, `stride` apart, in an order of their own: the second half of every sum
 * over rows. */
int partial_sum_cuda(const struct cuda_launch *launch, const float *partial, int64_t parts, int64_t stride, int64_t n,
                     float *sum);

/* `to` (bf16) = the numbers of the bytes of an operand [rows, cols], exactly; of its first *count rows where that is not NULL. */
int widen_cuda(const struct cuda_launch *launch, const void *data, const struct narrow_operand *as, int64_t rows, int64_t cols,
               const int32_t *count, void *to);
/* to [cols, rows] = from [rows, cols], bytes. */
int transpose_bytes_cuda(const struct cuda_launch *launch, const uint8_t *from, int64_t rows, int64_t cols, uint8_t *to);

/* Scales of blocks of [n, k] along k as tensor cores read them: tiles of 128 rows and 4 blocks, 512 bytes, rows of tiles one
 * after the other; row r and block b of a tile stand at 16 (r % 32) + 4 (r / 32) + b; beyond the matrix 0 (cuBLAS documentation,
 * 1D block scaling factors layout). `from` is [n][blocks], or with `down` [blocks][n]. */
int tile_blocks_cuda(const struct cuda_launch *launch, const uint8_t *from, int64_t n, int64_t blocks, bool down, uint8_t *to);

#endif
