/* logits_reference.c - the four steps of vocabulary-parallel cross entropy, in plain C. */
#include <math.h>

#include "kernels/reference.h"

static int64_t target_column(const struct logits_call *call, int64_t row)
{
    int64_t column = call->targets[row] - call->first;
    return column >= 0 && column < call->v ? column : -1;
}

void logits_max_reference(const struct logits_call *call)
{
    for (int64_t row = 0; row < call->t; row++) {
        const float *logits = (const float *)call->logits + row * call->v;
        float max = -INFINITY;
        for (int64_t i = 0; i < call->v; i++)
            max = logits[i] > max ? logits[i] : max;
        call->max[row] = max;
    }
}

void logits_sum_reference(const struct logits_call *call)
{
    for (int64_t row = 0; row < call->t; row++) {
        const float *logits = (const float *)call->logits + row * call->v;
        double sum = 0;
        for (int64_t i = 0; i < call->v; i++)
            sum += exp((double)logits[i] - call->max[row]);
        int64_t target = target_column(call, row);
        call->sums[row] = (float)sum;
        call->sums[call->t + row] = target < 0 ? 0 : logits[target] - call->max[row];
    }
}

void logits_loss_reference(const struct logits_call *call)
{
    double loss = 0;
    for (int64_t row = 0; row < call->t; row++)
        loss += log(call->sums[row]) - call->sums[call->t + row];
    *call->loss += call->scale * loss;
}

void logits_backward_reference(const struct logits_call *call)
{
    for (int64_t row = 0; row < call->t; row++) {
        float *logits = (float *)call->logits + row * call->v;
        int64_t target = target_column(call, row);
        for (int64_t i = 0; i < call->v; i++)
            logits[i] = (float)(call->scale * (exp((double)logits[i] - call->max[row]) / call->sums[row] - (i == target)));
    }
}
