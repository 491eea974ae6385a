/*
 * null_product.c - the matrix product of the null cuBLASLt (tests/kernels/emulated_cublaslt.h): nothing but time on a stream.
 */
#include "tests/gpu/null_cuda.h"
#include "tests/kernels/emulated_cublaslt.h"

static const double START_MS = 0.003, RATE = 7e11; /* FLOPs per ms */

void product_compute(const struct product *p, float alpha, const void *a, const void *b, float beta, const void *c, void *d,
                     cudaStream_t stream)
{
    (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)d;
    null_stream_spend(stream, START_MS + 2.0 * (double)p->m * (double)p->n * (double)p->k / RATE);
}
