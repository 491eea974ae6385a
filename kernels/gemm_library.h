/*
 * gemm_library.h - matrix products on a CUDA device, through cuBLASLt.
 *
 * Example:
 *
 *     gemm_library_new(&library, &diags);                                         loads cuBLASLt
 *     struct cuda_launch launch = {.gemm = library, ...};
 *     linear_cuda(&launch, KERNEL_LINEAR_FORWARD, &call.linear, &diags);
 *     gemm_library_free(library);
 *
 * The library is loaded by gemm_library_new, not at program start: it has half a gigabyte, and a machine may not have it.
 *
 * The first product of a shape asks cuBLASLt's heuristics for the best algorithm and keeps it. Later products find it by a hash,
 * in well below a microsecond of host time. Epilogues (bias, GeLU) are fused if cuBLASLt has them.
 *
 * cuBLASLt is column-major, so a row-major product C = A B is passed as C^T = B^T A^T.
 */
#ifndef MSIM_KERNELS_GEMM_LIBRARY_H
#define MSIM_KERNELS_GEMM_LIBRARY_H

#include "kernels/cuda_launch.h"

/* For the current device. STATUS_MISSING with a message if cuBLASLt cannot be loaded. */
enum status gemm_library_new(struct gemm_library **library, struct diags *diags) MUST_CHECK;
void gemm_library_free(struct gemm_library *library);            /* may be NULL */
size_t gemm_library_version(const struct gemm_library *library); /* 130000 and so on */

/* KERNEL_LINEAR_*: bf16 operands, fp32 accumulation; weight gradients are added to fp32. */
enum status linear_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call,
                        struct diags *diags) MUST_CHECK;

/* The same with operands of 8 bits: sums in fp32, results in bf16 (weight gradients in fp32). sm_89 and later; with scales of
 * blocks sm_100 and later. linear_narrow_scratch: bytes of linear_call.scratch. */
enum status linear_narrow_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call,
                               struct diags *diags) MUST_CHECK;
size_t linear_narrow_scratch(enum kernel kernel, const struct linear_call *call);

/* y[m, n] = x[m, k] w[n, k]^T (+ bias[n]) (then GeLU), added to y with `accumulate`. Both operands are bf16, or both are 8 bits,
 * of which at most one is e5m2; scales of blocks are in the order of tile_blocks_cuda. `fast_sums` (8 bits): sums have about 14
 * bits, as the tensor cores of Ada and Hopper add (DeepSeek-V3, arXiv:2412.19437, 3.3.2). Without it, partial sums are added to
 * fp32 every few products. */
struct gemm_fused_call {
    int64_t m, n, k;
    const void *x, *w; /* [m, k], [n, k] */
    const void *bias;  /* [n] bf16, or NULL */
    void *y;           /* [m, n] bf16, or fp32 when `wide` */
    bool gelu, wide, accumulate, fast_sums;
    struct narrow_operand x_as, w_as;
};
enum status gemm_fused_cuda(const struct cuda_launch *launch, const struct gemm_fused_call *call, struct diags *diags) MUST_CHECK;

#endif
