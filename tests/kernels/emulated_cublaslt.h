/*
 * emulated_cublaslt.h - a product as the emulated cuBLASLt understands it, and what computes it.
 *
 * emulated_cublaslt.c checks that a product is legal, then calls product_compute: emulated_product.c does it on the CPU,
 * tests/gpu/null_product.c only lets its time pass.
 */
#ifndef MSIM_TESTS_KERNELS_EMULATED_CUBLASLT_H
#define MSIM_TESTS_KERNELS_EMULATED_CUBLASLT_H

#include <cuda_runtime_api.h>
#include <library_types.h>
#include <stdint.h>

struct layout {
    cudaDataType_t type;
    int64_t rows, cols, ld; /* columns first */
};

struct operation {
    int32_t transpose_a, transpose_b, bias_type, a_mode, b_mode;
    uint32_t epilogue;
    int8_t fast;
    const void *bias, *a_scale, *b_scale;
};

struct product {
    const struct operation *operation;
    const struct layout *a, *b, *c, *d;
    int64_t m, n, k;
};

/* d = epilogue(alpha a b + beta c), all of it legal. */
void product_compute(const struct product *product, float alpha, const void *a, const void *b, float beta, const void *c, void *d,
                     cudaStream_t stream);

#endif
