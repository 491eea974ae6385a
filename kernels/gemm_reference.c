#ifdef MSIM_GSL_CBLAS
#include <gsl_cblas.h>
#else
#include <cblas.h>
#endif

#include "kernels/reference.h"

void gemm_reference_threads(int n_threads)
{
#ifdef MSIM_OPENBLAS
    openblas_set_num_threads(n_threads);
#else
    (void)n_threads;
#endif
}

void gemm_reference(const struct gemm_call *call)
{
    if (call->m <= 0 || call->n <= 0)
        return;
    int m = (int)call->m, n = (int)call->n, k = (int)call->k;
    cblas_sgemm(CblasRowMajor, call->transpose_a ? CblasTrans : CblasNoTrans, call->transpose_b ? CblasTrans : CblasNoTrans, m, n,
                k, 1, call->a, call->transpose_a ? m : k, call->b, call->transpose_b ? k : n, call->beta, call->c, n);
}

static void add_bias(float *y, const float *bias, int64_t t, int64_t out)
{
    for (int64_t row = 0; row < t; row++)
        for (int64_t i = 0; i < out; i++)
            y[row * out + i] += bias[i];
}

void linear_forward_reference(const struct linear_call *call)
{
    gemm_reference(&(struct gemm_call){.m = call->t,
                                       .n = call->out,
                                       .k = call->in,
                                       .transpose_b = true,
                                       .a = call->x,
                                       .b = call->w,
                                       .c = call->y,
                                       .beta = call->accumulate ? 1 : 0});
    if (call->bias)
        add_bias(call->y, call->bias, call->t, call->out);
}

void linear_backward_input_reference(const struct linear_call *call)
{
    gemm_reference(&(struct gemm_call){.m = call->t,
                                       .n = call->in,
                                       .k = call->out,
                                       .a = call->dy,
                                       .b = call->w,
                                       .c = call->dx,
                                       .beta = call->accumulate ? 1 : 0});
}

void linear_backward_weight_reference(const struct linear_call *call)
{
    gemm_reference(&(struct gemm_call){.m = call->out,
                                       .n = call->in,
                                       .k = call->t,
                                       .transpose_a = true,
                                       .a = call->dy,
                                       .b = call->x,
                                       .c = call->dw,
                                       .beta = call->overwrite ? 0 : 1});
    if (call->dbias)
        column_sum_reference(&(struct column_sum_call){.t = call->t, .h = call->out, .x = call->dy, .sum = call->dbias});
}
