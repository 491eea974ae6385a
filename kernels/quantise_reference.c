#include <math.h>
#include <string.h>

#include "kernels/reference.h"

static const float LARGEST = 448;

/* Below 2^-6 numbers are multiples of 2^-9; above, a float's mantissa is cut from 23 bits to 3. */
static uint8_t e4m3_of(float x)
{
    uint32_t bits, sign;
    float size = fminf(fabsf(x), LARGEST);
    memcpy(&sign, &x, sizeof sign);
    sign = sign >> 24 & 0x80;
    if (isnan(x))
        return (uint8_t)(sign | 0x7f);
    if (size < 0x1p-6f)
        return (uint8_t)(sign | (uint32_t)lrintf(size * 0x1p9f));
    memcpy(&bits, &size, sizeof bits);
    bits += 0x7ffff + (bits >> 20 & 1);
    return (uint8_t)(sign | ((bits >> 20) - ((127 - 7) << 3)));
}

void quantise_reference(const struct quantise_call *call)
{
    const float *x = call->x;
    float most = 0;
    for (int64_t i = 0; i < call->n; i++)
        most = fmaxf(most, fabsf(x[i]));
    float inverse = most > 0 ? fminf(LARGEST / most, 0x1p127f) : 1;
    *call->scale = most > 0 ? most / LARGEST : 1;
    for (int64_t i = 0; i < call->n; i++)
        call->y[i] = e4m3_of(x[i] * inverse);
}
