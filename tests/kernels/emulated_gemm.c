/* What cuBLASLt does with operands of 8 bits, for the emulated kernels: the same numbers, scales of blocks in the order that
 * tensor cores read them. */
#include <stdlib.h>

#include "kernels/gemm_library.h"
#include "kernels/reference.h"
#include "model/base/memory.h"
#include "tests/kernels/kernel_case.h"

enum { TILE_ROWS = 128, TILE_BLOCKS = 4 };

static float power_of(const uint8_t *tiles, int64_t row, int64_t block, int64_t blocks)
{
    int64_t across = (blocks + TILE_BLOCKS - 1) / TILE_BLOCKS, inside = row % TILE_ROWS;
    const uint8_t *tile = tiles + (row / TILE_ROWS * across + block / TILE_BLOCKS) * TILE_ROWS * TILE_BLOCKS;
    struct narrow_operand one = {.format = NARROW_E4M3, .blocks = &tile[inside % 32 * 16 + inside / 32 * 4 + block % 4]};
    uint8_t unit = 0x38; /* 1 */
    float value, *at = &value;
    (void)narrow_widened(&unit, &one, 1, 1, &at);
    return value;
}

static float *widened(const void *data, const struct narrow_operand *as, int64_t rows, int64_t k)
{
    float *wide = memory_new((size_t)(rows * k), sizeof *wide);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < k; j++)
            wide[i * k + j] =
                narrow_to_float(((const uint8_t *)data)[i * k + j], as->format) *
                (as->scale ? *as->scale : power_of(as->blocks, i, j / NARROW_BLOCK, (k + NARROW_BLOCK - 1) / NARROW_BLOCK));
    return wide;
}

enum status gemm_fused_cuda(const struct cuda_launch *launch, const struct gemm_fused_call *call, struct diags *diags)
{
    (void)launch, (void)diags;
    int64_t n = call->m * call->n;
    float *x = widened(call->x, &call->x_as, call->m, call->k), *w = widened(call->w, &call->w_as, call->n, call->k);
    float *y = memory_new((size_t)n, sizeof *y);
    gemm_reference(&(struct gemm_call){.m = call->m, .n = call->n, .k = call->k, .transpose_b = true, .a = x, .b = w, .c = y});
    for (int64_t i = 0; i < n; i++) {
        uint16_t *narrow = call->y;
        float *wide = call->y, before = !call->accumulate ? 0 : call->wide ? wide[i] : float_of_bf16(narrow[i]);
        float sum = y[i] + before + (call->bias ? float_of_bf16(((const uint16_t *)call->bias)[i % call->n]) : 0);
        if (call->wide)
            wide[i] = sum;
        else
            narrow[i] = bf16_of_float(sum);
    }
    free(x), free(w), free(y);
    return STATUS_OK;
}
