#include <math.h>
#include <string.h>

#include "kernels/reference.h"

struct format {
    int mantissa, bias;           /* bits; of the exponent */
    float largest, normal, steps; /* the smallest normal number; how many of the smallest one make 1 */
};

static struct format format_of(enum narrow_format format)
{
    return format == NARROW_E5M2 ? (struct format){2, 15, 57344, 0x1p-14f, 0x1p16f} : (struct format){3, 7, 448, 0x1p-6f, 0x1p9f};
}

/* Below the smallest normal number they are multiples of the smallest one; above, a float's mantissa is cut from 23 bits. */
uint8_t narrow_from_float(float x, enum narrow_format format)
{
    struct format f = format_of(format);
    uint32_t bits, sign;
    float size = fminf(fabsf(x), f.largest);
    int cut = 23 - f.mantissa;
    memcpy(&sign, &x, sizeof sign);
    sign = sign >> 24 & 0x80;
    if (isnan(x))
        return (uint8_t)(sign | 0x7f);
    if (size < f.normal)
        return (uint8_t)(sign | (uint32_t)lrintf(size * f.steps));
    memcpy(&bits, &size, sizeof bits);
    bits += (1u << (cut - 1)) - 1 + (bits >> cut & 1);
    return (uint8_t)(sign | ((bits >> cut) - ((uint32_t)(127 - f.bias) << f.mantissa)));
}

float narrow_to_float(uint8_t byte, enum narrow_format format)
{
    struct format f = format_of(format);
    int mantissa = byte & ((1 << f.mantissa) - 1), exponent = (byte & 0x7f) >> f.mantissa;
    float size =
        exponent ? ldexpf((float)(mantissa + (1 << f.mantissa)), exponent - f.bias - f.mantissa) : (float)mantissa / f.steps;
    if (size > f.largest) /* of e5m2 the exponent 31, of e4m3 one byte */
        size = format == NARROW_E5M2 && !mantissa ? INFINITY : NAN;
    return byte & 0x80 ? -size : size;
}

static int64_t filled(int64_t rows, const int32_t *count)
{
    return count ? *count : rows;
}

static float larger(float most, float x)
{
    return fmaxf(most, fabsf(x));
}

static int exponent_of(float largest, enum narrow_format format)
{
    uint32_t bits;
    memcpy(&bits, &largest, sizeof bits);
    return narrow_exponent(bits, format);
}

void largest_reference(const struct largest_call *call)
{
    const float *x = call->x;
    float most = 0;
    for (int64_t i = 0; i < filled(call->rows, call->count) * call->cols; i++)
        most = larger(most, x[i]);
    *call->largest = most;
}

void quantise_reference(const struct quantise_call *call)
{
    const float *x = call->x;
    int64_t n = filled(call->rows, call->count) * call->cols;
    int exponent = exponent_of(*call->largest, call->format);
    float inverse = ldexpf(1, -exponent);
    *call->scale = ldexpf(1, exponent);
    for (int64_t i = 0; i < n; i++)
        call->y[i] = narrow_from_float(x[i] * inverse, call->format);
    memset(call->y + n, 0, (size_t)(call->rows * call->cols - n));
}

/* `n` numbers, `step` apart, of which the first `there` are there. */
static uint8_t quantise_block(const float *x, uint8_t *y, int64_t n, int64_t there, int64_t step, enum narrow_format format)
{
    float most = 0;
    for (int64_t i = 0; i < n && i < there; i++)
        most = larger(most, x[i * step]);
    int exponent = exponent_of(most, format);
    float inverse = ldexpf(1, -exponent);
    for (int64_t i = 0; i < n; i++)
        y[i * step] = i < there ? narrow_from_float(x[i * step] * inverse, format) : 0;
    return (uint8_t)(exponent + 127);
}

void quantise_blocks_reference(const struct quantise_blocks_call *call)
{
    const float *x = call->x;
    int64_t rows = filled(call->rows, call->count), across = call->down ? call->cols : narrow_blocks(1, call->cols, false);
    int64_t blocks = narrow_blocks(call->rows, call->cols, call->down);
    for (int64_t b = 0; b < blocks; b++) {
        int64_t row = b / across * (call->down ? NARROW_BLOCK : 1), col = b % across * (call->down ? 1 : NARROW_BLOCK);
        int64_t left = call->down ? call->rows - row : call->cols - col, n = left < NARROW_BLOCK ? left : NARROW_BLOCK;
        int64_t there = call->down ? rows - row : row < rows ? n : 0, at = row * call->cols + col;
        call->blocks[b] = quantise_block(x + at, call->y + at, n, there, call->down ? call->cols : 1, call->format);
    }
}

/* --- back again */

/* As the exponent of a float. */
static float power_of(uint8_t block)
{
    uint32_t bits = (uint32_t)block << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static void widen_row(const uint8_t *bytes, const struct narrow_operand *as, const float values[256], int64_t row, int64_t cols,
                      float *to)
{
    int64_t across = narrow_blocks(1, cols, false);
    for (int64_t j = 0; j < cols; j++)
        to[j] = values[bytes[j]];
    if (as->scale)
        return; /* in the table */
    for (int64_t j = 0; j < cols; j++)
        to[j] *= power_of(as->down ? as->blocks[row / NARROW_BLOCK * cols + j] : as->blocks[row * across + j / NARROW_BLOCK]);
}

const float *narrow_widened(const void *data, const struct narrow_operand *as, int64_t rows, int64_t cols, float **scratch)
{
    const uint8_t *bytes = data;
    float values[256], *to = *scratch;
    if (as->format == NARROW_NONE || !data)
        return data;
    for (int i = 0; i < 256; i++)
        values[i] = narrow_to_float((uint8_t)i, as->format) * (as->scale ? *as->scale : 1);
    for (int64_t i = 0; i < rows; i++)
        widen_row(bytes + i * cols, as, values, i, cols, to + i * cols);
    *scratch += rows * cols;
    return to;
}
