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

/* Element i of a row of gate and of up among `u` and `gate`, or of their gradients. */
struct gated {
    float *gate, *up;
};

static struct gated gated_at(const struct activation_call *call, const void *u, const void *gate, int64_t row, int64_t i)
{
    float *packed = (float *)u + row * 2 * call->f + i;
    if (!call->gate)
        return (struct gated){packed, packed + call->f};
    return (struct gated){(float *)gate + row * call->f + i, (float *)u + row * call->f + i};
}

void activation_forward_reference(const struct activation_call *call)
{
    const float *u = call->u;
    float *a = call->a;
    for (int64_t row = 0; row < rows_of(call); row++)
        for (int64_t i = 0; i < call->f; i++) {
            int64_t at = row * call->f + i;
            if (!call->gated) {
                a[at] = (float)gelu(u[at]);
                continue;
            }
            struct gated g = gated_at(call, call->u, call->gate, row, i);
            a[at] = (float)(*g.gate * sigmoid(*g.gate) * *g.up);
        }
}

static void gated_backward(const struct activation_call *call, int64_t row, int64_t i)
{
    struct gated g = gated_at(call, call->u, call->gate, row, i), d = gated_at(call, call->du, call->dgate, row, i);
    double gate = *g.gate, up = *g.up, da = ((const float *)call->da)[row * call->f + i], s = sigmoid(gate);
    *d.gate = (float)(da * up * s * (1 + gate * (1 - s)));
    *d.up = (float)(da * gate * s);
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
