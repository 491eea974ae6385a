#include <math.h>

#include "kernels/reference.h"

#define SQRT_2_OVER_PI 0.7978845608028654
#define GELU_CUBIC     0.044715 /* Hendrycks and Gimpel, 2016 */

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x)));
}

static double gelu_slope(double x)
{
    double t = tanh(SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * GELU_CUBIC * x * x);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static int64_t rows_of(const struct activation_call *call)
{
    return call->count ? *call->count : call->t;
}

void activation_forward_reference(const struct activation_call *call)
{
    const float *u = call->u;
    float *a = call->a;
    for (int64_t row = 0; row < rows_of(call); row++)
        for (int64_t i = 0; i < call->f; i++) {
            const float *at = u + row * call->f * (call->gated ? 2 : 1) + i;
            a[row * call->f + i] = (float)(call->gated ? at[0] * sigmoid(at[0]) * at[call->f] : gelu(at[0]));
        }
}

static void gated_backward(const struct activation_call *call, int64_t row, int64_t i)
{
    const float *at = (const float *)call->u + row * 2 * call->f + i;
    float *du = (float *)call->du + row * 2 * call->f + i;
    double gate = at[0], up = at[call->f], da = ((const float *)call->da)[row * call->f + i], s = sigmoid(gate);
    du[0] = (float)(da * up * s * (1 + gate * (1 - s)));
    du[call->f] = (float)(da * gate * s);
}

void activation_backward_reference(const struct activation_call *call)
{
    for (int64_t row = 0; row < rows_of(call); row++)
        for (int64_t i = 0; i < call->f; i++) {
            if (call->gated) {
                gated_backward(call, row, i);
                continue;
            }
            int64_t at = row * call->f + i;
            ((float *)call->du)[at] = (float)(((const float *)call->da)[at] * gelu_slope(((const float *)call->u)[at]));
        }
}
