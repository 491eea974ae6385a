/* pointwise_reference.c - sums, dropout and casts, in plain C. */
#include <string.h>

#include "kernels/reference.h"

void add_reference(const struct add_call *call)
{
    const float *a = call->a, *b = call->b, *bias = call->bias;
    float *y = call->y;
    for (int64_t i = 0; i < call->n; i++)
        y[i] = a[i] + b[i] + (bias ? bias[i % call->h] : 0);
}

void dropout_forward_reference(const struct dropout_call *call)
{
    const float *x = call->x, *bias = call->bias, *residual = call->residual;
    float *y = call->y, scale = 1 / (1 - call->p);
    uint32_t threshold = dropout_threshold(call->p);
    for (int64_t i = 0; i < call->n; i++) {
        float value = x[i] + (bias ? bias[i % call->h] : 0);
        bool keep = dropout_keeps(call->seed, (uint64_t)(call->first + i), threshold);
        y[i] = (residual ? residual[i] : 0) + (keep ? scale * value : 0);
    }
}

void dropout_backward_reference(const struct dropout_call *call)
{
    const float *dy = call->dy;
    float *dx = call->dx, scale = 1 / (1 - call->p);
    uint32_t threshold = dropout_threshold(call->p);
    for (int64_t i = 0; i < call->n; i++)
        dx[i] = dropout_keeps(call->seed, (uint64_t)(call->first + i), threshold) ? scale * dy[i] : 0;
}

void column_sum_reference(const struct column_sum_call *call)
{
    const float *x = call->x;
    for (int64_t i = 0; i < call->h; i++) {
        double sum = 0;
        for (int64_t row = 0; row < call->t; row++)
            sum += x[row * call->h + i];
        call->sum[i] += (float)sum;
    }
}

void cast_reference(const struct cast_call *call)
{
    memmove(call->to, call->from, (size_t)call->n * sizeof(float)); /* the reference's precision is fp32 on both sides */
}
