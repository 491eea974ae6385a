/* norm_reference.c - layer norm and RMS norm, in plain C. */
#include <math.h>

#include "kernels/reference.h"

static void row_forward(const struct norm_forward_call *call, int64_t row)
{
    const float *x = (const float *)call->x + row * call->h, *gain = call->gain, *bias = call->bias;
    float *y = (float *)call->y + row * call->h;
    double mean = 0, square = 0;
    if (!call->rms) {
        for (int64_t i = 0; i < call->h; i++)
            mean += x[i];
        mean /= (double)call->h;
    }
    for (int64_t i = 0; i < call->h; i++)
        square += (x[i] - mean) * (x[i] - mean);
    double rstd = 1 / sqrt(square / (double)call->h + call->epsilon);
    for (int64_t i = 0; i < call->h; i++)
        y[i] = (float)((x[i] - mean) * rstd * gain[i] + (bias ? bias[i] : 0));
    if (call->mean)
        call->mean[row] = (float)mean;
    call->rstd[row] = (float)rstd;
}

void norm_forward_reference(const struct norm_forward_call *call)
{
    for (int64_t row = 0; row < call->t; row++)
        row_forward(call, row);
}

/* With n = (x - mean) rstd and w = dy gain:  dx = rstd (w - mean(w) - n mean(w n)); RMS norm drops mean(w). */
static void row_backward(const struct norm_backward_call *call, int64_t row)
{
    const float *x = (const float *)call->x + row * call->h, *dy = (const float *)call->dy + row * call->h, *gain = call->gain;
    const float *add = call->add ? (const float *)call->add + row * call->h : NULL;
    float *dx = (float *)call->dx + row * call->h;
    double mean = call->rms ? 0 : call->mean[row], rstd = call->rstd[row];
    double sum_w = 0, sum_wn = 0;
    for (int64_t i = 0; i < call->h; i++) {
        double n = (x[i] - mean) * rstd, w = (double)dy[i] * gain[i];
        sum_w += w;
        sum_wn += w * n;
        call->dgain[i] += (float)(dy[i] * n);
        if (call->dbias)
            call->dbias[i] += dy[i];
    }
    double mean_w = call->rms ? 0 : sum_w / (double)call->h, mean_wn = sum_wn / (double)call->h;
    for (int64_t i = 0; i < call->h; i++) {
        double n = (x[i] - mean) * rstd, w = (double)dy[i] * gain[i];
        dx[i] = (float)(rstd * (w - mean_w - n * mean_wn) + (add ? add[i] : 0));
    }
}

void norm_backward_reference(const struct norm_backward_call *call)
{
    for (int64_t row = 0; row < call->t; row++)
        row_backward(call, row);
}
