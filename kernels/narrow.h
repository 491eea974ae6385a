/*
 * narrow.h - numbers of 8 bits, as operands of matrix products.
 *
 * Formats (Micikevicius and others 2022, arXiv:2209.05433): e4m3 has a sign, 4 bits of exponent (bias 7) and 3 of mantissa, its
 * largest number is 448 and it has no infinity; e5m2 has 5 bits of exponent (bias 15) and 2 of mantissa, its largest is 57344.
 * Rounding is to nearest even, and what is larger than the largest number becomes the largest.
 *
 * Scales are powers of two: the smallest by which the largest magnitude of the tensor, or of the block, does not become too
 * large. A power of two loses nothing, so how a number above the format's smallest normal one is rounded does not depend on the
 * scale, and so not on which other numbers share it: a part of a tensor becomes what it would have become in the whole, but for
 * numbers below 2^-15 (e4m3; e5m2: 2^-30) of the largest, which may be rounded in steps of 2^-18 (2^-32) of that.
 *
 *   per tensor   one fp32 scale in device memory (Transformer Engine's current scaling, with powers of two)
 *   in blocks    of 32 along the dimension that a product sums over, a byte each: 2^(byte - 127), "E8M0" (OCP Microscaling
 * formats 1.0; rounded up instead of down as Transformer Engine does, so that nothing is cut off)
 */
#ifndef MSIM_KERNELS_NARROW_H
#define MSIM_KERNELS_NARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum narrow_format { NARROW_NONE, NARROW_E4M3, NARROW_E5M2 };
enum { NARROW_BLOCK = 32 };

/* What the bytes of an operand [rows, cols] mean: number (i, j) is its byte's value times *scale, or where that is NULL times the
 * power of two of its block: blocks[i][j / 32], or with `down` blocks[i / 32][j]; the last block of a row or column may be
 * shorter. NARROW_NONE: the operand is in the device's precision. */
struct narrow_operand {
    enum narrow_format format;
    bool down;
    const float *scale;
    const uint8_t *blocks;
};

/* Blocks, and so bytes of scales, of an operand. */
static inline int64_t narrow_blocks(int64_t rows, int64_t cols, bool down)
{
    return down ? (rows + NARROW_BLOCK - 1) / NARROW_BLOCK * cols : rows * ((cols + NARROW_BLOCK - 1) / NARROW_BLOCK);
}

/* The exponent of the scale for a largest magnitude given as a float's bits: 2^e is at least largest / 448 (/ 57344), whose
 * mantissa is 1.75. Zero has the smallest; never below -126, where fp32 has its smallest normal number. */
static inline int narrow_exponent(uint32_t largest_bits, enum narrow_format format)
{
    int exponent = (int)(largest_bits >> 23 & 0xff) - 127, most = format == NARROW_E5M2 ? 15 : 8;
    int e = exponent - most + ((largest_bits & 0x7fffff) > 0x600000);
    return e < -126 ? -126 : e;
}

#endif
