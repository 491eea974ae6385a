/* activation_reference.c - GeLU, SwiGLU and its clamped form, in plain C. */
#include <math.h>

#include "kernels/reference.h"

#define SQRT_2_OVER_PI 0.7978845608028654
#define GELU_CUBIC     0.044715 /* Hendrycks and Gimpel, 2016 */
#define GELU_SIGMOID   1.702    /* there too: x sigmoid(1.702 x) is about GeLU */

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

/* What both kinds of gate are made of: a = g sigmoid(steepness g) (x + offset) of a gate g and an x within limits. */
struct gate_form {
    double limit, steepness, offset;
};

static struct gate_form gate_form_of(const struct activation_call *call)
{
    if (call->limit > 0)
        return (struct gate_form){call->limit, GELU_SIGMOID, 1};
    return (struct gate_form){INFINITY, 1, 0};
}

/* Element i of a row within the limits, and whether it was. */
struct clamped {
    double gate, up;
    bool gate_inside, up_inside;
};

static struct clamped clamped_at(const struct activation_call *call, double limit, int64_t row, int64_t i)
{
    struct gated at = gated_at(call, call->u, call->gate, row, i);
    struct clamped c = {*at.gate, *at.up, !(*at.gate > limit), !(fabs(*at.up) > limit)}; /* a NaN stays one */
    c.gate = c.gate_inside ? c.gate : limit;
    c.up = c.up_inside ? c.up : copysign(limit, c.up);
    return c;
}

static void gated_forward(const struct activation_call *call, int64_t row, int64_t i)
{
    struct gate_form form = gate_form_of(call);
    struct clamped c = clamped_at(call, form.limit, row, i);
    ((float *)call->a)[row * call->f + i] = (float)(c.gate * sigmoid(form.steepness * c.gate) * (c.up + form.offset));
}

void activation_forward_reference(const struct activation_call *call)
{
    const float *u = call->u;
    float *a = call->a;
    for (int64_t row = 0; row < rows_of(call); row++)
        for (int64_t i = 0; i < call->f; i++) {
            int64_t at = row * call->f + i;
            if (call->gated) {
                gated_forward(call, row, i);
                continue;
            }
            a[at] = (float)gelu(u[at]);
        }
}

static void gated_backward(const struct activation_call *call, int64_t row, int64_t i)
{
    struct gate_form form = gate_form_of(call);
    struct clamped c = clamped_at(call, form.limit, row, i);
    struct gated d = gated_at(call, call->du, call->dgate, row, i);
    double da = ((const float *)call->da)[row * call->f + i], s = sigmoid(form.steepness * c.gate);
    *d.gate = c.gate_inside ? (float)(da * (c.up + form.offset) * s * (1 + form.steepness * c.gate * (1 - s))) : 0;
    *d.up = c.up_inside ? (float)(da * c.gate * s) : 0;
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
