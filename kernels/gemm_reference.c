/* gemm_reference.c - matrix products through CBLAS, also with operands of 8 bits. */
#include <dlfcn.h>
#include <gsl/gsl_cblas.h>
#include <pthread.h>
#include <string.h>

#include "kernels/reference.h"

/* OpenBLAS, loaded by the first product: it starts its threads when it is loaded. sgemm_ is its Fortran name. */
struct openblas {
    void (*sgemm)(const char *transpose_a, const char *transpose_b, const int *m, const int *n, const int *k, const float *alpha,
                  const float *a, const int *lda, const float *b, const int *ldb, const float *beta, float *c, const int *ldc);
    void (*set_threads)(int n_threads);
};

/* Written once, before anybody reads it. */
static struct openblas openblas;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

#ifdef MSIM_OPENBLAS
static void load(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *sgemm = library ? dlsym(library, "sgemm_") : NULL,
         *threads = library ? dlsym(library, "openblas_set_num_threads") : NULL;
    if (!sgemm || !threads)
        return;
    memcpy(&openblas.sgemm, &sgemm, sizeof sgemm); /* ISO C has no conversion from an object to a function */
    memcpy(&openblas.set_threads, &threads, sizeof threads);
}
#else
static void load(void)
{
}
#endif

static const struct openblas *get_openblas(void)
{
    pthread_once(&loaded, load);
    return openblas.sgemm ? &openblas : NULL;
}

void gemm_reference_threads(int n_threads)
{
    const struct openblas *blas = get_openblas();
    if (blas)
        blas->set_threads(n_threads);
}

/* Rows are Fortran's columns: C' = B' A'. */
static void product(const struct gemm_call *call, int m, int n, int k)
{
    const struct openblas *blas = get_openblas();
    int lda = call->transpose_a ? m : k, ldb = call->transpose_b ? k : n;
    if (blas)
        blas->sgemm(call->transpose_b ? "T" : "N", call->transpose_a ? "T" : "N", &n, &m, &k, &(float){1}, call->b, &ldb, call->a,
                    &lda, &call->beta, call->c, &n);
    else
        cblas_sgemm(CblasRowMajor, call->transpose_a ? CblasTrans : CblasNoTrans, call->transpose_b ? CblasTrans : CblasNoTrans,
                    m, n, k, 1, call->a, lda, call->b, ldb, call->beta, call->c, n);
}

void gemm_reference(const struct gemm_call *call)
{
    if (call->m > 0 && call->n > 0)
        product(call, (int)call->m, (int)call->n, (int)call->k);
}

static void add_bias(float *y, const float *bias, int64_t t, int64_t out)
{
    for (int64_t row = 0; row < t; row++)
        for (int64_t i = 0; i < out; i++)
            y[row * out + i] += bias[i];
}

/* --- operands of 8 bits */

size_t linear_reference_scratch(const struct kernel_call *call)
{
    const struct linear_call *l = &call->linear;
    const struct grouped_call *g = &call->grouped;
    int64_t x = l->t * l->in, w = l->out * l->in, dy = l->t * l->out;
    switch (call->kernel) {
    case KERNEL_LINEAR_FORWARD: return l->x_as.format ? (size_t)(x + w) * sizeof(float) : 0;
    case KERNEL_LINEAR_BACKWARD_INPUT: return l->dy_as.format ? (size_t)(dy + w) * sizeof(float) : 0;
    case KERNEL_LINEAR_BACKWARD_WEIGHT: return l->dy_as.format ? (size_t)(dy + x) * sizeof(float) : 0;
    default: break;
    }
    x = g->most * g->in, w = g->groups * g->out * g->in, dy = g->most * g->out;
    switch (call->kernel) {
    case KERNEL_GROUPED_FORWARD: return g->x_as.format ? (size_t)(x + w) * sizeof(float) : 0;
    case KERNEL_GROUPED_BACKWARD_INPUT: return g->dy_as.format ? (size_t)(dy + w) * sizeof(float) : 0;
    case KERNEL_GROUPED_BACKWARD_WEIGHT: return g->dy_as.format ? (size_t)(dy + x) * sizeof(float) : 0;
    default: return 0;
    }
}

/* --- linear layers */

void linear_forward_reference(const struct linear_call *call)
{
    float *scratch = call->scratch;
    const float *x = narrow_widened(call->x, &call->x_as, call->t, call->in, &scratch);
    const float *w = narrow_widened(call->w, &call->w_as, call->out, call->in, &scratch);
    gemm_reference(&(struct gemm_call){.m = call->t,
                                       .n = call->out,
                                       .k = call->in,
                                       .transpose_b = true,
                                       .a = x,
                                       .b = w,
                                       .c = call->y,
                                       .beta = call->accumulate ? 1 : 0});
    if (call->bias)
        add_bias(call->y, call->bias, call->t, call->out);
}

void linear_backward_input_reference(const struct linear_call *call)
{
    float *scratch = call->scratch;
    const float *dy = narrow_widened(call->dy, &call->dy_as, call->t, call->out, &scratch);
    const float *w = narrow_widened(call->w, &call->w_as, call->out, call->in, &scratch);
    gemm_reference(&(struct gemm_call){
        .m = call->t, .n = call->in, .k = call->out, .a = dy, .b = w, .c = call->dx, .beta = call->accumulate ? 1 : 0});
}

void linear_backward_weight_reference(const struct linear_call *call)
{
    float *scratch = call->scratch;
    const float *dy = narrow_widened(call->dy, &call->dy_as, call->t, call->out, &scratch);
    const float *x = narrow_widened(call->x, &call->x_as, call->t, call->in, &scratch);
    if (call->dw)
        gemm_reference(&(struct gemm_call){.m = call->out,
                                           .n = call->in,
                                           .k = call->t,
                                           .transpose_a = true,
                                           .a = dy,
                                           .b = x,
                                           .c = call->dw,
                                           .beta = call->overwrite ? 0 : 1});
    if (call->dbias)
        column_sum_reference(&(struct column_sum_call){.t = call->t, .h = call->out, .x = call->dy, .sum = call->dbias});
}
