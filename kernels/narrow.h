/*
 * narrow.h - numbers of 8 bits as operands of matrix products: formats, scales, and where they are stored.
 *
 * Example: the tensor {3, -1000, 0.02} in e4m3 with one scale. The largest magnitude is 1000, the largest e4m3 number 448, so
 * the scale is 4. The bytes hold 0.75, -256 and 0.005 (rounded to 0.00586); with the scale they mean 3, -1024 and 0.0234.
 *
 * Formats (Micikevicius and others 2022, arXiv:2209.05433): e4m3 has a sign, 4 bits of exponent (bias 7) and 3 of mantissa; its
 * largest number is 448 and it has no infinity. e5m2 has 5 bits of exponent (bias 15) and 2 of mantissa; its largest is 57344.
 * Rounding is to nearest even. Values beyond the largest number become the largest.
 *
 * Scales are powers of two: the smallest that brings the largest magnitude of the tensor, or of the block, into the format's
 * range. Dividing by a power of two is exact, so rounding a number in the format's normal range does not depend on the scale,
 * nor on the other numbers that share it. A part of a tensor therefore gets the same bytes as within the whole. The exception
 * are numbers below 2^-15 (e4m3; e5m2: 2^-30) of the largest, which may be rounded in steps of 2^-18 (2^-32) of it.
 *
 *   per tensor   one fp32 scale in device memory (Transformer Engine's current scaling, but powers of two)
 *   in blocks    one byte per block of 32 numbers along the dimension that a product sums over: 2^(byte - 127), "E8M0" (OCP
 *                Microscaling formats 1.0; rounded up as in Transformer Engine, so that no number exceeds the range)
 */
#ifndef MSIM_KERNELS_NARROW_H
#define MSIM_KERNELS_NARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum narrow_format { NARROW_NONE, NARROW_E4M3, NARROW_E5M2 };
enum { NARROW_BLOCK = 32 };

/* The meaning of the bytes of an operand [rows, cols]. Number (i, j) is the value of its byte times *scale. With scale NULL, it
 * is times the power of two of its block: blocks[i][j / 32], or with `down` blocks[i / 32][j]. The last block of a row or column
 * may be shorter. NARROW_NONE: the operand has the device's precision. */
struct narrow_operand {
    enum narrow_format format;
    bool down;
    const float *scale;
    const uint8_t *blocks;
};

/* Number of blocks of an operand, which is also the bytes of their scales. */
static inline int64_t narrow_blocks(int64_t rows, int64_t cols, bool down)
{
    return down ? (rows + NARROW_BLOCK - 1) / NARROW_BLOCK * cols : rows * ((cols + NARROW_BLOCK - 1) / NARROW_BLOCK);
}

/* The exponent e of the scale for the largest magnitude, given as the bits of a float: the smallest 2^e >= largest / 448 (e5m2:
 * / 57344; both have the mantissa 1.75). At least -126, the exponent of the smallest normal fp32 number. */
static inline int narrow_exponent(uint32_t largest_bits, enum narrow_format format)
{
    int exponent = (int)(largest_bits >> 23 & 0xff) - 127, most = format == NARROW_E5M2 ? 15 : 8;
    int e = exponent - most + ((largest_bits & 0x7fffff) > 0x600000);
    return e < -126 ? -126 : e;
}

#endif
