/* rows_reference.c - copies of rows, in plain C. */
#include "kernels/reference.h"

static void fold_row(const struct rows_call *call, int64_t i)
{
    const float *from = (const float *)call->from + i * call->fold * call->from_row;
    float *to = (float *)call->to + i * call->to_row;
    for (int64_t k = 0; k < call->width; k++) {
        double sum = call->accumulate ? to[k] : 0;
        for (int64_t j = 0; j < call->fold; j++)
            sum += from[j * call->from_row + k];
        to[k] = (float)sum;
    }
}

static void move_row(const struct rows_call *call, int64_t i)
{
    int64_t share = call->share ? call->share : 1, other = call->index ? call->index[i] : i;
    const float *from = (const float *)call->from + (call->index && !call->scatter ? other : i / share) * call->from_row;
    float *to = (float *)call->to + (call->scatter ? other : i) * call->to_row;
    for (int64_t k = 0; k < call->width; k++)
        to[k] = from[k] + (call->accumulate ? to[k] : 0);
}

void rows_reference(const struct rows_call *call)
{
    int64_t n = call->count && *call->count < call->n ? *call->count : call->n;
    for (int64_t i = 0; i < n; i++) {
        if (call->fold > 1)
            fold_row(call, i);
        else
            move_row(call, i);
    }
}
