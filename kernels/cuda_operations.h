/*
 * cuda_operations.h - one launcher per operation, for kernel_cuda.cu; see cuda_launch.h for what they promise.
 *
 * Each returns CUDA's error code (0: none) with the sticky error cleared; cudaErrorInvalidValue for shapes it cannot do.
 */
#ifndef MSIM_KERNELS_CUDA_OPERATIONS_H
#define MSIM_KERNELS_CUDA_OPERATIONS_H

#include "kernels/cuda_launch.h"

int norm_forward_cuda(const struct cuda_launch *launch, const struct norm_forward_call *call);
int norm_backward_cuda(const struct cuda_launch *launch, const struct norm_backward_call *call);
int rotary_cuda(const struct cuda_launch *launch, const struct rotary_call *call);
int attention_forward_cuda(const struct cuda_launch *launch, const struct attention_call *call);
/* cudaErrorNotSupported: the device, its driver or the build has no such kernel. */
int attention_forward_hopper_cuda(const struct cuda_launch *launch, const struct attention_call *call);
int attention_backward_cuda(const struct cuda_launch *launch, const struct attention_call *call);
int attention_backward_hopper_cuda(const struct cuda_launch *launch, const struct attention_call *call); /* after delta */
int activation_forward_cuda(const struct cuda_launch *launch, const struct activation_call *call);
int activation_backward_cuda(const struct cuda_launch *launch, const struct activation_call *call);
int add_cuda(const struct cuda_launch *launch, const struct add_call *call);
int dropout_forward_cuda(const struct cuda_launch *launch, const struct dropout_call *call);
int dropout_backward_cuda(const struct cuda_launch *launch, const struct dropout_call *call);
int column_sum_cuda(const struct cuda_launch *launch, const struct column_sum_call *call);
int largest_cuda(const struct cuda_launch *launch, const struct largest_call *call);
int quantise_cuda(const struct cuda_launch *launch, const struct quantise_call *call);
int quantise_blocks_cuda(const struct cuda_launch *launch, const struct quantise_blocks_call *call);
int embedding_forward_cuda(const struct cuda_launch *launch, const struct embedding_call *call);
int embedding_backward_cuda(const struct cuda_launch *launch, const struct embedding_call *call);
int logits_max_cuda(const struct cuda_launch *launch, const struct logits_call *call);
int logits_sum_cuda(const struct cuda_launch *launch, const struct logits_call *call);
int logits_loss_cuda(const struct cuda_launch *launch, const struct logits_call *call);
int logits_backward_cuda(const struct cuda_launch *launch, const struct logits_call *call);
int square_sum_cuda(const struct cuda_launch *launch, const struct square_sum_call *call);
int adam_cuda(const struct cuda_launch *launch, const struct adam_call *call);
int lamb_cuda(const struct cuda_launch *launch, const struct lamb_call *call);
int cast_cuda(const struct cuda_launch *launch, const struct cast_call *call);
int rows_cuda(const struct cuda_launch *launch, const struct rows_call *call);
int route_forward_cuda(const struct cuda_launch *launch, const struct route_call *call);
int route_backward_cuda(const struct cuda_launch *launch, const struct route_call *call);
int expert_sort_cuda(const struct cuda_launch *launch, const struct expert_sort_call *call);
int expert_arrivals_cuda(const struct cuda_launch *launch, const struct expert_arrivals_call *call);
int combine_forward_cuda(const struct cuda_launch *launch, const struct combine_call *call);
int combine_backward_cuda(const struct cuda_launch *launch, const struct combine_call *call);
int grouped_forward_cuda(const struct cuda_launch *launch, const struct grouped_call *call);
int grouped_backward_input_cuda(const struct cuda_launch *launch, const struct grouped_call *call);
int grouped_backward_weight_cuda(const struct cuda_launch *launch, const struct grouped_call *call);
/* Those whose operands are bytes: widened to bf16 in grouped_call.scratch, then as they are. */
int grouped_narrow_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct grouped_call *call);
int stretch_forward_cuda(const struct cuda_launch *launch, const struct stretch_call *call);
int stretch_backward_cuda(const struct cuda_launch *launch, const struct stretch_call *call);
int head_norm_forward_cuda(const struct cuda_launch *launch, const struct head_norm_call *call);
int head_norm_backward_cuda(const struct cuda_launch *launch, const struct head_norm_call *call);
int lamb_update_cuda(const struct cuda_launch *launch, const struct lamb_part_call *call);
int lamb_apply_cuda(const struct cuda_launch *launch, const struct lamb_part_call *call);
int sgd_cuda(const struct cuda_launch *launch, const struct sgd_call *call);
int muon_update_cuda(const struct cuda_launch *launch, const struct muon_call *call);
int muon_combine_cuda(const struct cuda_launch *launch, const struct muon_call *call);
int muon_apply_cuda(const struct cuda_launch *launch, const struct muon_call *call);
int convolution_forward_cuda(const struct cuda_launch *launch, const struct convolution_call *call);
int convolution_backward_cuda(const struct cuda_launch *launch, const struct convolution_call *call);
int gates_forward_cuda(const struct cuda_launch *launch, const struct gates_call *call);
int gates_backward_cuda(const struct cuda_launch *launch, const struct gates_call *call);
int scan_forward_cuda(const struct cuda_launch *launch, const struct scan_call *call);
int scan_backward_cuda(const struct cuda_launch *launch, const struct scan_call *call);
int unit_forward_cuda(const struct cuda_launch *launch, const struct unit_call *call);
int unit_backward_cuda(const struct cuda_launch *launch, const struct unit_call *call);
int gated_norm_forward_cuda(const struct cuda_launch *launch, const struct gated_norm_call *call);
int gated_norm_backward_cuda(const struct cuda_launch *launch, const struct gated_norm_call *call);

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
