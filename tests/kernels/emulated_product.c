/*
 * emulated_product.c - the matrix product of the emulated cuBLASLt, in fp32 on the CPU.
 */
#include <cublasLt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "tests/kernels/emulated_cublaslt.h"

enum { TILE_ROWS = 128, TILE_BLOCKS = 4 };

static float bf16_value(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t bf16_nearest(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? 0x7fff : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float number_at(const void *data, cudaDataType_t type, int64_t i)
{
    if (type == CUDA_R_32F)
        return ((const float *)data)[i];
    if (type == CUDA_R_16BF)
        return bf16_value(((const uint16_t *)data)[i]);
    return narrow_to_float(((const uint8_t *)data)[i], type == CUDA_R_8F_E5M2 ? NARROW_E5M2 : NARROW_E4M3);
}

/* cuBLAS documentation, 1D block scaling factors layout: tiles of 128 rows by 4 blocks of 32 k, rows of tiles one after the
 * other; row r and block b of a tile stand at 16 (r % 32) + 4 (r / 32) + b. */
static float scale_at(const void *scale, int32_t mode, int64_t row, int64_t at, int64_t k)
{
    if (!scale)
        return 1;
    if (mode != CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0)
        return *(const float *)scale;
    const int64_t across = (k / NARROW_BLOCK + TILE_BLOCKS - 1) / TILE_BLOCKS, block = at / NARROW_BLOCK, r = row % TILE_ROWS;
    const uint8_t *tile = (const uint8_t *)scale + (row / TILE_ROWS * across + block / TILE_BLOCKS) * TILE_ROWS * TILE_BLOCKS;
    return ldexpf(1, tile[16 * (r % 32) + 4 * (r / 32) + block % TILE_BLOCKS] - 127);
}

/* An operand with k side by side, scaled: [rows][k]. */
static float *operand_of(const void *data, const struct layout *layout, bool k_first, int64_t rows, int64_t k, const void *scale,
                         int32_t mode)
{
    float *wide = malloc((size_t)(rows * k) * sizeof *wide);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < k; j++)
            wide[i * k + j] =
                number_at(data, layout->type, k_first ? i * layout->ld + j : j * layout->ld + i) * scale_at(scale, mode, i, j, k);
    return wide;
}

static float gelu_of(float x)
{
    return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

static void finish(const struct product *p, float sum, int64_t row, int64_t col, float beta, const void *c, void *d)
{
    const int64_t at = col * p->d->ld + row;
    const uint32_t epilogue = p->operation->epilogue;
    if (beta != 0)
        sum += beta * number_at(c, p->c->type, col * p->c->ld + row);
    if (epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS)
        sum += bf16_value(((const uint16_t *)p->operation->bias)[row]);
    if (epilogue == CUBLASLT_EPILOGUE_GELU || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS)
        sum = gelu_of(sum);
    if (p->d->type == CUDA_R_32F)
        ((float *)d)[at] = sum;
    else
        ((uint16_t *)d)[at] = bf16_nearest(sum);
}

void product_compute(const struct product *p, float alpha, const void *a, const void *b, float beta, const void *c, void *d,
                     cudaStream_t stream)
{
    const struct operation *o = p->operation;
    float *left = operand_of(a, p->a, o->transpose_a == CUBLAS_OP_T, p->m, p->k, o->a_scale, o->a_mode);
    float *right = operand_of(b, p->b, o->transpose_b == CUBLAS_OP_N, p->n, p->k, o->b_scale, o->b_mode);
    (void)stream;
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t i = 0; i < p->m; i++) {
            float sum = 0;
            for (int64_t l = 0; l < p->k; l++)
                sum += left[i * p->k + l] * right[j * p->k + l];
            finish(p, alpha * sum, i, j, beta, c, d);
        }
    free(left);
    free(right);
}
