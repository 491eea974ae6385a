/* head_norm_reference.c - a norm over each head, in plain C. */
#include <math.h>

#include "kernels/reference.h"

struct moments {
    double mean, rstd;
};

static struct moments moments_of(const struct head_norm_call *call, const float *x)
{
    double mean = 0, square = 0;
    for (int i = 0; i < call->head_dim && !call->rms; i++)
        mean += x[i];
    mean /= call->head_dim;
    for (int i = 0; i < call->head_dim; i++)
        square += (x[i] - mean) * (x[i] - mean);
    return (struct moments){mean, 1 / sqrt(square / call->head_dim + call->epsilon)};
}

static void head_forward(const struct head_norm_call *call, const float *x, float *y)
{
    const float *gain = call->gain, *bias = call->bias;
    struct moments m = moments_of(call, x);
    for (int i = 0; i < call->head_dim; i++)
        y[i] = (float)((x[i] - m.mean) * m.rstd * gain[i] + (bias ? bias[i] : 0));
}

/* As norm_backward_reference: dx = rstd (w - mean(w) - n mean(w n)) with n the normalised x and w = dy gain. */
static void head_backward(const struct head_norm_call *call, const float *x, const float *dy, float *dx)
{
    const float *gain = call->gain;
    struct moments m = moments_of(call, x);
    double sum_w = 0, sum_wn = 0;
    for (int i = 0; i < call->head_dim; i++) {
        double n = (x[i] - m.mean) * m.rstd, w = (double)dy[i] * gain[i];
        sum_w += w;
        sum_wn += w * n;
        call->dgain[i] += (float)(dy[i] * n);
        if (call->dbias)
            call->dbias[i] += dy[i];
    }
    double mean_w = call->rms ? 0 : sum_w / call->head_dim, mean_wn = sum_wn / call->head_dim;
    for (int i = 0; i < call->head_dim; i++)
        dx[i] = (float)(m.rstd * ((double)dy[i] * gain[i] - mean_w - (x[i] - m.mean) * m.rstd * mean_wn));
}

void head_norm_forward_reference(const struct head_norm_call *call)
{
    for (int64_t row = 0; row < call->t; row++)
        for (int64_t at = 0; at < (int64_t)call->heads * call->head_dim; at += call->head_dim)
            head_forward(call, (const float *)call->x + row * call->x_row + at, (float *)call->y + row * call->y_row + at);
}

void head_norm_backward_reference(const struct head_norm_call *call)
{
    for (int64_t row = 0; row < call->t; row++)
        for (int64_t at = 0; at < (int64_t)call->heads * call->head_dim; at += call->head_dim)
            head_backward(call, (const float *)call->x + row * call->x_row + at, (const float *)call->dy + row * call->y_row + at,
                          (float *)call->dx + row * call->y_row + at);
}
