/*
 * reference.h - one plain C function per operation of kernels.h, fp32 on host memory; tests compare CUDA with these.
 *
 * Example: norm_forward_reference(&call.norm_forward) computes y, mean and rstd of struct norm_forward_call.
 *
 * The functions are written for readers: sums over a row are in double, and nothing is blocked or vectorised by hand. Only matrix
 * products use a library (CBLAS). Shapes are in the comments of the structs. `void` operands are float here.
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
