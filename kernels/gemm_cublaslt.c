/* gemm_cublaslt.c - matrix products through cuBLASLt, which is loaded at run time. */
#include "kernels/gemm_library.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda_operations.h"
#include "model/base/hash.h"
#include "model/base/memory.h"

/* The functions used, once: the table's fields, and what is looked up in the library. */
#define CUBLASLT_FUNCTIONS(X)                                                                                                    \
    X(cublasLtCreate)                                                                                                            \
    X(cublasLtDestroy)                                                                                                           \
    X(cublasLtGetVersion)                                                                                                        \
    X(cublasLtGetStatusString)                                                                                                   \
    X(cublasLtMatmul)                                                                                                            \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                                            \
    X(cublasLtMatmulDescCreate)                                                                                                  \
    X(cublasLtMatmulDescDestroy)                                                                                                 \
    X(cublasLtMatmulDescSetAttribute)                                                                                            \
    X(cublasLtMatmulPreferenceCreate)                                                                                            \
    X(cublasLtMatmulPreferenceDestroy)                                                                                           \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                                      \
    X(cublasLtMatrixLayoutCreate)                                                                                                \
    X(cublasLtMatrixLayoutDestroy)

#define FIELD(name) __typeof__(name) *name;
struct cublaslt {
    CUBLASLT_FUNCTIONS(FIELD)
};

enum { MAX_SHAPES = 1024, MAX_ALIGNMENT = 256 };

/* What an algorithm is chosen for. Compared by bytes: padding is zeroed. */
struct product_key {
    int64_t m, n, k;
    uint32_t workspace_kib;
    uint16_t alignment; /* of all pointers, up to 256 */
    bool transpose_a, transpose_b, wide_output, add, bias, gelu, blocks, fast_sums;
    uint8_t a_format, b_format; /* enum narrow_format */
};

struct product {
    struct product_key key;
    bool used;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c; /* as cuBLASLt sees them: ours transposed, so its A is our B */
    cublasLtMatmulAlgo_t algorithm;
};

struct gemm_library {
    void *handle; /* of dlopen */
    struct cublaslt lt;
    cublasLtHandle_t context;
    struct product products[MAX_SHAPES]; /* open addressing */
    int n_products;
};

static enum status library_load(struct gemm_library *library, struct diags *diags)
{
    char name[32];
    snprintf(name, sizeof name, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle) {
        diag_error(diags, PLACE_NONE, "cannot load cuBLASLt (%s); install CUDA %d's libraries or set LD_LIBRARY_PATH", dlerror(),
                   CUBLAS_VER_MAJOR);
        return STATUS_MISSING;
    }
#define LOOK_UP(name) *(void **)&library->lt.name = dlsym(library->handle, #name);
    CUBLASLT_FUNCTIONS(LOOK_UP)
#define IS_MISSING(name) || !library->lt.name
    if (false CUBLASLT_FUNCTIONS(IS_MISSING)) {
        diag_error(diags, PLACE_NONE, "%s lacks functions that this build of msim needs", name);
        return STATUS_MISSING;
    }
    return STATUS_OK;
}

enum status gemm_library_new(struct gemm_library **library, struct diags *diags)
{
    struct gemm_library *made = memory_new(1, sizeof *made);
    enum status status = library_load(made, diags);
    if (status == STATUS_OK) {
        cublasStatus_t error = made->lt.cublasLtCreate(&made->context);
        if (error != CUBLAS_STATUS_SUCCESS) {
            diag_error(diags, PLACE_NONE, "cuBLASLt does not start: %s (%d)", made->lt.cublasLtGetStatusString(error),
                       (int)error);
            status = STATUS_FAILED;
        }
    }
    if (status == STATUS_OK)
        *library = made;
    else
        gemm_library_free(made);
    return status;
}

static void product_free(const struct cublaslt *lt, struct product *product)
{
    if (product->a)
        lt->cublasLtMatrixLayoutDestroy(product->a);
    if (product->b)
        lt->cublasLtMatrixLayoutDestroy(product->b);
    if (product->c)
        lt->cublasLtMatrixLayoutDestroy(product->c);
    if (product->operation)
        lt->cublasLtMatmulDescDestroy(product->operation);
    memset(product, 0, sizeof *product);
}

void gemm_library_free(struct gemm_library *library)
{
    if (!library)
        return;
    for (int i = 0; i < MAX_SHAPES; i++)
        if (library->products[i].used)
            product_free(&library->lt, &library->products[i]);
    if (library->context)
        library->lt.cublasLtDestroy(library->context);
    free(library); /* cuBLASLt stays loaded: CUDA's driver knows its kernels */
}

size_t gemm_library_version(const struct gemm_library *library)
{
    return library->lt.cublasLtGetVersion();
}

/* --- one product */

struct product_call {
    struct product_key key;
    const void *a, *b, *bias;
    void *c;
    const void *a_scale, *b_scale; /* of operands of 8 bits: a number each, or of blocks */
};

/* Scales for blocks of 32 of both operands: known to cuBLASLt from CUDA 12.8 on. */
static cublasStatus_t blocks_describe(const struct cublaslt *lt, cublasLtMatmulDesc_t operation)
{
#if CUBLAS_VER_MAJOR > 12 || (CUBLAS_VER_MAJOR == 12 && CUBLAS_VER_MINOR >= 8)
    const cublasLtMatmulMatrixScale_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    cublasStatus_t error = lt->cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &mode, sizeof mode);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = lt->cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &mode, sizeof mode);
    return error;
#else
    (void)lt, (void)operation;
    return CUBLAS_STATUS_NOT_SUPPORTED;
#endif
}

static cudaDataType_t type_of(uint8_t format)
{
    return format == NARROW_E4M3 ? CUDA_R_8F_E4M3 : format == NARROW_E5M2 ? CUDA_R_8F_E5M2 : CUDA_R_16BF;
}

static cublasStatus_t operation_describe(const struct cublaslt *lt, const struct product_key *key,
                                         cublasLtMatmulDesc_t *operation)
{
    cublasOperation_t first = key->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, second = key->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = key->bias ? (key->gelu ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_BIAS)
                                            : (key->gelu ? CUBLASLT_EPILOGUE_GELU : CUBLASLT_EPILOGUE_DEFAULT);
    cudaDataType_t bias_type = CUDA_R_16BF;
    int8_t fast = key->fast_sums;
    cublasStatus_t error = lt->cublasLtMatmulDescCreate(operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const struct {
        cublasLtMatmulDescAttributes_t attribute;
        const void *value;
        size_t bytes;
    } settings[] = {{CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first},
                    {CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second},
                    {CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue},
                    {CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast},
                    {CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type}};
    int n = key->bias ? 5 : 4;
    for (int i = 0; i < n && error == CUBLAS_STATUS_SUCCESS; i++)
        error = lt->cublasLtMatmulDescSetAttribute(*operation, settings[i].attribute, settings[i].value, settings[i].bytes);
    return error == CUBLAS_STATUS_SUCCESS && key->blocks ? blocks_describe(lt, *operation) : error;
}

/* A row-major [rows, columns] is column-major columns x rows with `columns` between its columns. */
static cublasStatus_t layout_describe(const struct cublaslt *lt, cudaDataType_t type, int64_t rows, int64_t columns,
                                      cublasLtMatrixLayout_t *layout)
{
    return lt->cublasLtMatrixLayoutCreate(layout, type, (uint64_t)columns, (uint64_t)rows, columns);
}

static cublasStatus_t algorithm_choose(const struct gemm_library *library, struct product *product)
{
    const struct cublaslt *lt = &library->lt;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    size_t workspace = (size_t)product->key.workspace_kib * 1024;
    uint32_t alignment = product->key.alignment;
    const cublasLtMatmulPreferenceAttributes_t of[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasStatus_t error = lt->cublasLtMatmulPreferenceCreate(&preference);
    if (error != CUBLAS_STATUS_SUCCESS)
        return error;
    error = lt->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                     sizeof workspace);
    for (int i = 0; i < 4 && error == CUBLAS_STATUS_SUCCESS; i++)
        error = lt->cublasLtMatmulPreferenceSetAttribute(preference, of[i], &alignment, sizeof alignment);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = lt->cublasLtMatmulAlgoGetHeuristic(library->context, product->operation, product->a, product->b, product->c,
                                                   product->c, preference, 1, &best, &found);
    if (error == CUBLAS_STATUS_SUCCESS && (found < 1 || best.state != CUBLAS_STATUS_SUCCESS))
        error = CUBLAS_STATUS_NOT_SUPPORTED;
    if (error == CUBLAS_STATUS_SUCCESS)
        product->algorithm = best.algo;
    lt->cublasLtMatmulPreferenceDestroy(preference);
    return error;
}

static cublasStatus_t pointers_set(const struct cublaslt *lt, cublasLtMatmulDesc_t operation, const struct product_call *call)
{
    const struct {
        cublasLtMatmulDescAttributes_t attribute;
        const void *pointer;
    } pointers[] = {{CUBLASLT_MATMUL_DESC_BIAS_POINTER, call->bias},
                    {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, call->b_scale},
                    {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, call->a_scale}};
    cublasStatus_t error = CUBLAS_STATUS_SUCCESS;
    for (int i = 0; i < 3 && error == CUBLAS_STATUS_SUCCESS; i++)
        if (pointers[i].pointer)
            error = lt->cublasLtMatmulDescSetAttribute(operation, pointers[i].attribute, &pointers[i].pointer, sizeof(void *));
    return error;
}

/* The pointers come before the choice: cuBLASLt looks at them when it chooses. */
static cublasStatus_t product_describe(const struct gemm_library *library, const struct product_call *call,
                                       struct product *product)
{
    const struct product_key *key = &call->key;
    const cudaDataType_t out = key->wide_output ? CUDA_R_32F : CUDA_R_16BF;
    cublasStatus_t error = operation_describe(&library->lt, key, &product->operation);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = layout_describe(&library->lt, type_of(key->b_format), key->transpose_b ? key->n : key->k,
                                key->transpose_b ? key->k : key->n, &product->a);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = layout_describe(&library->lt, type_of(key->a_format), key->transpose_a ? key->k : key->m,
                                key->transpose_a ? key->m : key->k, &product->b);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = layout_describe(&library->lt, out, key->m, key->n, &product->c);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = pointers_set(&library->lt, product->operation, call);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = algorithm_choose(library, product);
    return error;
}

/* The product's description, made at its first use. When the table is full its oldest neighbours make room. */
static cublasStatus_t product_find(struct gemm_library *library, const struct product_call *call, struct product **product)
{
    const struct product_key *key = &call->key;
    size_t at = hash_bytes(HASH_BEGIN, key, sizeof *key) % MAX_SHAPES;
    for (int probes = 0; library->products[at].used && probes < MAX_SHAPES; probes++, at = (at + 1) % MAX_SHAPES)
        if (memcmp(&library->products[at].key, key, sizeof *key) == 0) {
            *product = &library->products[at];
            return CUBLAS_STATUS_SUCCESS;
        }
    if (library->products[at].used)
        product_free(&library->lt, &library->products[at]);
    library->products[at].key = *key;
    cublasStatus_t error = product_describe(library, call, &library->products[at]);
    if (error != CUBLAS_STATUS_SUCCESS) {
        product_free(&library->lt, &library->products[at]);
        return error;
    }
    library->products[at].used = true;
    *product = &library->products[at];
    return error;
}

static uint16_t common_alignment(const struct product_call *call)
{
    uintptr_t bits = (uintptr_t)call->a | (uintptr_t)call->b | (uintptr_t)call->c | (uintptr_t)call->bias | MAX_ALIGNMENT;
    return (uint16_t)(bits & (~bits + 1));
}

static enum status product_launch(const struct cuda_launch *launch, const char *name, struct product_call *call,
                                  struct diags *diags)
{
    struct gemm_library *library = launch->gemm;
    if (!library) {
        diag_error(diags, PLACE_NONE, "%s: no cuBLASLt was opened for this device", name);
        return STATUS_MISSING;
    }
    struct product *product = NULL;
    const float one = 1, beta = call->key.add ? 1 : 0;
    call->key.workspace_kib = (uint32_t)(launch->workspace_bytes / 1024);
    call->key.alignment = common_alignment(call);
    cublasStatus_t error = product_find(library, call, &product);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = pointers_set(&library->lt, product->operation, call);
    if (error == CUBLAS_STATUS_SUCCESS)
        error = library->lt.cublasLtMatmul(library->context, product->operation, &one, call->b, product->a, call->a, product->b,
                                           &beta, call->c, product->c, call->c, product->c, &product->algorithm,
                                           launch->workspace, launch->workspace_bytes, launch->stream);
    if (error == CUBLAS_STATUS_SUCCESS)
        return STATUS_OK;
    diag_error(diags, PLACE_NONE, "%s: %lld x %lld x %lld: %s (cuBLASLt error %d)", name, (long long)call->key.m,
               (long long)call->key.n, (long long)call->key.k, library->lt.cublasLtGetStatusString(error), (int)error);
    return STATUS_FAILED;
}

/* A key is compared by its bytes, so it starts from zeros. */
static struct product_call product_new(int64_t m, int64_t n, int64_t k, const void *a, const void *b, void *c)
{
    struct product_call call;
    memset(&call, 0, sizeof call);
    call.key.m = m, call.key.n = n, call.key.k = k;
    call.a = a, call.b = b, call.c = c;
    return call;
}

static enum status backward_weight(const struct cuda_launch *launch, const struct linear_call *call, struct diags *diags)
{
    struct product_call product = product_new(call->out, call->in, call->t, call->dy, call->x, call->dw);
    product.key.transpose_a = product.key.wide_output = true;
    product.key.add = !call->overwrite;
    enum status status = product_launch(launch, kernel_name(KERNEL_LINEAR_BACKWARD_WEIGHT), &product, diags);
    if (status != STATUS_OK || !call->dbias)
        return status;
    struct column_sum_call sum = {.t = call->t, .h = call->out, .x = call->dy, .sum = call->dbias};
    return kernel_cuda_status(KERNEL_COLUMN_SUM, column_sum_cuda(launch, &sum), diags);
}

enum status linear_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call, struct diags *diags)
{
    if (call->t <= 0 || call->in <= 0 || call->out <= 0)
        return STATUS_OK;
    if (kernel == KERNEL_LINEAR_BACKWARD_WEIGHT)
        return backward_weight(launch, call, diags);
    struct product_call product;
    if (kernel == KERNEL_LINEAR_FORWARD) {
        product = product_new(call->t, call->out, call->in, call->x, call->w, call->y);
        product.key.transpose_b = true;
        product.bias = call->bias;
        product.key.bias = call->bias != NULL;
    } else {
        product = product_new(call->t, call->in, call->out, call->dy, call->w, call->dx);
    }
    product.key.add = call->accumulate;
    return product_launch(launch, kernel_name(kernel), &product, diags);
}

static const void *scale_of(const struct narrow_operand *as)
{
    return as->format == NARROW_NONE ? NULL : as->scale ? (const void *)as->scale : as->blocks;
}

enum status gemm_fused_cuda(const struct cuda_launch *launch, const struct gemm_fused_call *call, struct diags *diags)
{
    struct product_call product = product_new(call->m, call->n, call->k, call->x, call->w, call->y);
    product.key.transpose_b = true;
    product.key.bias = call->bias != NULL;
    product.key.gelu = call->gelu;
    product.key.wide_output = call->wide;
    product.key.add = call->accumulate;
    product.key.a_format = (uint8_t)call->x_as.format;
    product.key.b_format = (uint8_t)call->w_as.format;
    product.key.blocks = call->x_as.format && !call->x_as.scale;
    product.key.fast_sums = call->fast_sums;
    product.bias = call->bias;
    product.a_scale = scale_of(&call->x_as);
    product.b_scale = scale_of(&call->w_as);
    return product_launch(launch, call->x_as.format ? "gemm of 8 bits" : "gemm", &product, diags);
}
