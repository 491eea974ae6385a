/*
 * reference.h - one plain C function per operation of kernels.h, fp32 on host memory: the definition that CUDA is checked
 * against.
 *
 * Written to be read, not to be fast: sums over a row run in double, nothing is blocked or vectorised by hand. Matrix products
 * are the exception (CBLAS). Each operates on the struct of its operation; shapes stand there, beside the pointers. `void`
 * operands are float here.
 */
#ifndef MSIM_KERNELS_REFERENCE_H
#define MSIM_KERNELS_REFERENCE_H

#include "kernels/kernels.h"

/* void norm_forward_reference(const struct norm_forward_call *call); and so on */
#define X(ID, stem, of) void stem##_reference(const struct of##_call *call);
KERNELS(X, X)
#undef X

/* An operand [rows, cols] in fp32: itself, or its bytes' numbers in *scratch, which then moves on. */
const float *narrow_widened(const void *data, const struct narrow_operand *as, int64_t rows, int64_t cols, float **scratch);

#endif
