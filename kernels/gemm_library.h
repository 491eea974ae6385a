/*
 * gemm_library.h - matrix products on a CUDA device, by cuBLASLt.
 *
 * The library is loaded when it is asked for, not when the program starts: it is half a gigabyte, and a machine may not have it.
 *
 * A product is described once: the first call with a shape asks cuBLASLt's heuristics for its best algorithm and keeps it; later
 * calls find it by hashing (host time well below a microsecond). Epilogues are fused where they exist: the bias of a linear
 * layer, GeLU behind it.
 *
 * cuBLASLt counts columns first, so a row-major product C = A B is asked for as C^T = B^T A^T.
 */
#ifndef MSIM_KERNELS_GEMM_LIBRARY_H
#define MSIM_KERNELS_GEMM_LIBRARY_H

#include "kernels/cuda_launch.h"

/* For the current device. STATUS_MISSING with a sentence where cuBLASLt cannot be loaded. */
enum status gemm_library_new(struct gemm_library **library, struct diags *diags) MUST_CHECK;
void gemm_library_free(struct gemm_library *library);            /* NULL is nothing */
size_t gemm_library_version(const struct gemm_library *library); /* 130000 and so on */

/* KERNEL_LINEAR_*: bf16 operands, fp32 accumulation; weight gradients are added to fp32. */
enum status linear_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call,
                        struct diags *diags) MUST_CHECK;

/* The same where operands are bytes: sums in fp32, bf16 out (weight gradients fp32). sm_89 and later; with scales of blocks
 * sm_100 and later. Bytes of linear_call.scratch. */
enum status linear_narrow_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call,
                               struct diags *diags) MUST_CHECK;
size_t linear_narrow_scratch(enum kernel kernel, const struct linear_call *call);

/* y[m, n] = x[m, k] w[n, k]^T (+ bias[n]) (then GeLU), added to y when `accumulate`. Operands in bf16, or both in bytes, of which
 * at most one is e5m2; their blocks' scales in the order of tile_blocks_cuda. `fast_sums`: of bytes, as the tensor cores of Ada
 * and Hopper add them up by themselves, with about 14 bits (DeepSeek-V3, arXiv:2412.19437, 3.3.2); else added to fp32 every few
 * products. */
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
