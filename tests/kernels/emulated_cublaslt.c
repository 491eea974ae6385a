/*
 * emulated_cublaslt.c - as much of cuBLASLt as kernels/gemm_cublaslt.c loads, on the CPU. Built as libcublasLt.so of the
 * toolkit's version, for tests without a GPU: with emulated_product.c, which computes products, or with tests/gpu/null_product.c,
 * which does not.
 *
 * It is as strict as cuBLAS's documentation ("cublasLtMatmul", "cublasLtMatmulDescAttributes_t", "Narrow precision data types
 * usage"), and answers as cuBLASLt does: CUBLAS_STATUS_INVALID_VALUE for what contradicts itself, CUBLAS_STATUS_NOT_SUPPORTED for
 * what no kernel does. Products of bytes: the first operand transposed and the second not (compute capability 8.9 and 9.0), sizes
 * and distances between columns multiples of 16, pointers of 16 bytes, of two operands at most one e5m2, bf16 or fp32 out; scales
 * of blocks from capability 10.0 on, in tiles of 128 by 4. An algorithm is for what it was chosen for: operands that are aligned
 * less are refused. MSIM_EMULATED_CAPABILITY in the environment: 90 (Hopper) where it is not set, or 100.
 */
#include "tests/kernels/emulated_cublaslt.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/narrow.h"

enum { WORKSPACE_ALIGNMENT = 256, BYTES_ALIGNMENT = 16, BLACKWELL = 100 };

struct cublasLtContext {
    int nothing;
};

struct preference {
    uint64_t workspace;
    uint32_t alignments[4]; /* of a, b, c, d */
};

/* What an algorithm was chosen for. */
struct algorithm {
    uint64_t workspace;
    uint32_t alignments[4];
    int64_t m, n, k;
};

static int capability(void)
{
    const char *text = getenv("MSIM_EMULATED_CAPABILITY");
    return text ? (int)strtol(text, NULL, 10) : 90;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED   ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                                   : "emulated";
}

/* --- descriptions */

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type, uint64_t rows, uint64_t cols,
                                          int64_t ld)
{
    const struct layout layout = {type, (int64_t)rows, (int64_t)cols, ld};
    _Static_assert(sizeof layout <= sizeof **made, "a layout fits");
    if (ld < layout.rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *made = calloc(1, sizeof **made);
    memcpy(*made, &layout, sizeof layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    free(layout);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute, cudaDataType_t scale)
{
    const struct operation operation = {.bias_type = -1, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    _Static_assert(sizeof operation <= sizeof **made, "an operation fits");
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *made = calloc(1, sizeof **made);
    memcpy(*made, &operation, sizeof operation);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation)
{
    free(operation);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t put(void *field, size_t wanted, const void *value, size_t bytes)
{
    if (bytes != wanted)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

#define PUT(field) put(&(field), sizeof(field), value, bytes)

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    struct operation *operation = (struct operation *)description;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return PUT(operation->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB: return PUT(operation->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return PUT(operation->epilogue);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: return PUT(operation->fast);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return PUT(operation->bias_type);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return PUT(operation->bias);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER: return PUT(operation->a_scale);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: return PUT(operation->b_scale);
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE: return PUT(operation->a_mode);
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE: return PUT(operation->b_mode);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made)
{
    const struct preference preference = {.alignments = {256, 256, 256, 256}}; /* the documented defaults */
    _Static_assert(sizeof preference <= sizeof **made, "a preference fits");
    *made = calloc(1, sizeof **made);
    memcpy(*made, &preference, sizeof preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    free(preference);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t description,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t bytes)
{
    struct preference *preference = (struct preference *)description;
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return PUT(preference->workspace);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return PUT(preference->alignments[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return PUT(preference->alignments[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return PUT(preference->alignments[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return PUT(preference->alignments[3]);
    default: return CUBLAS_STATUS_INVALID_VALUE;
    }
}

/* --- what there are kernels for */

static bool is_narrow(cudaDataType_t type)
{
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

static int64_t element_bytes(cudaDataType_t type)
{
    return is_narrow(type) ? 1 : type == CUDA_R_16BF ? 2 : 4;
}

/* Sizes agree. */
static bool product_of(cublasLtMatmulDesc_t operation, const struct layout *a, const struct layout *b, const struct layout *c,
                       const struct layout *d, struct product *product)
{
    const struct operation *o = (const struct operation *)operation;
    const bool at = o->transpose_a == CUBLAS_OP_T, bt = o->transpose_b == CUBLAS_OP_T;
    *product = (struct product){o, a, b, c, d, at ? a->cols : a->rows, bt ? b->rows : b->cols, at ? a->rows : a->cols};
    return (bt ? b->cols : b->rows) == product->k && d->rows == product->m && d->cols == product->n && c->rows == product->m &&
           c->cols == product->n && c->type == d->type && product->m > 0 && product->n > 0 && product->k > 0;
}

/* Of operands of bytes. */
static bool has_narrow(const struct product *p, const uint32_t alignments[4])
{
    const struct operation *o = p->operation;
    const bool blocks = o->a_mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    const int64_t multiple = blocks ? NARROW_BLOCK : BYTES_ALIGNMENT;
    const struct layout *all[] = {p->a, p->b, p->c, p->d};
    if (o->transpose_a != CUBLAS_OP_T || o->transpose_b != CUBLAS_OP_N)
        return false;
    if (p->a->type == CUDA_R_8F_E5M2 && p->b->type == CUDA_R_8F_E5M2)
        return false;
    if (o->a_mode != o->b_mode || (blocks && capability() < BLACKWELL))
        return false;
    for (int i = 0; i < 4; i++)
        if (all[i]->rows % BYTES_ALIGNMENT || all[i]->ld * element_bytes(all[i]->type) % BYTES_ALIGNMENT ||
            alignments[i] % BYTES_ALIGNMENT)
            return false;
    return p->k % multiple == 0 && p->n % BYTES_ALIGNMENT == 0;
}

static bool has_epilogue(const struct product *p)
{
    const struct operation *o = p->operation;
    const bool bias = o->epilogue == CUBLASLT_EPILOGUE_BIAS || o->epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
    if (!bias)
        return o->epilogue == CUBLASLT_EPILOGUE_DEFAULT || o->epilogue == CUBLASLT_EPILOGUE_GELU;
    return o->bias && (o->bias_type == CUDA_R_16BF || (o->bias_type == -1 && p->d->type == CUDA_R_16BF)) &&
           (p->d->type == CUDA_R_16BF || is_narrow(p->a->type));
}

static bool is_supported(const struct product *p, const uint32_t alignments[4])
{
    if (p->d->type != CUDA_R_16BF && p->d->type != CUDA_R_32F)
        return false;
    if (is_narrow(p->a->type) != is_narrow(p->b->type) || !has_epilogue(p))
        return false;
    if (is_narrow(p->a->type))
        return has_narrow(p, alignments);
    return p->a->type == CUDA_R_16BF && p->b->type == CUDA_R_16BF && !p->operation->a_scale && !p->operation->b_scale;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t description, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *found)
{
    const struct preference *preference = (const struct preference *)description;
    struct product p;
    *found = 0;
    if (!handle || requested < 1 ||
        !product_of(operation, (const struct layout *)a, (const struct layout *)b, (const struct layout *)c,
                    (const struct layout *)d, &p))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_supported(&p, preference->alignments))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    struct algorithm algorithm = {.workspace = preference->workspace, .m = p.m, .n = p.n, .k = p.k};
    memcpy(algorithm.alignments, preference->alignments, sizeof algorithm.alignments);
    _Static_assert(sizeof algorithm <= sizeof results->algo, "an algorithm fits");
    memset(results, 0, sizeof *results);
    memcpy(&results->algo, &algorithm, sizeof algorithm);
    results->state = CUBLAS_STATUS_SUCCESS;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* --- the product itself */

static bool is_aligned(const void *at, uint32_t alignment)
{
    return alignment > 0 && (uintptr_t)at % alignment == 0;
}

/* The algorithm was chosen for this, and the workspace is as promised. */
static bool is_for(const struct algorithm *algorithm, const struct product *p, const void *const pointers[4],
                   const void *workspace, size_t workspace_bytes)
{
    for (int i = 0; i < 4; i++)
        if (!is_aligned(pointers[i], algorithm->alignments[i]))
            return false;
    return algorithm->m == p->m && algorithm->n == p->n && algorithm->k == p->k && workspace_bytes >= algorithm->workspace &&
           is_aligned(workspace, WORKSPACE_ALIGNMENT) && is_supported(p, algorithm->alignments);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_is, const void *b, cublasLtMatrixLayout_t b_is, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_is, void *d, cublasLtMatrixLayout_t d_is,
                              const cublasLtMatmulAlgo_t *chosen, void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    struct product p;
    const void *const pointers[] = {a, b, c, d};
    if (!handle || !product_of(operation, (const struct layout *)a_is, (const struct layout *)b_is, (const struct layout *)c_is,
                               (const struct layout *)d_is, &p))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_for((const struct algorithm *)chosen, &p, pointers, workspace, workspace_bytes))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    product_compute(&p, *(const float *)alpha, a, b, *(const float *)beta, c, d, stream);
    return CUBLAS_STATUS_SUCCESS;
}
