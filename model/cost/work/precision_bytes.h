/*
 * precision_bytes.h - bytes of one element as it lies in memory, block scales included.
 */
#ifndef MSIM_MODEL_COST_WORK_PRECISION_BYTES_H
#define MSIM_MODEL_COST_WORK_PRECISION_BYTES_H

#include "model/spec/gpu.h"

/* The precision a GPU computes in where work asks for 16 bits: Volta has no bf16. */
static inline enum precision precision_there(const struct gpu *gpu, enum precision precision)
{
    return precision == PRECISION_BF16 && gpu->peak_flops[PRECISION_BF16] <= 0 ? PRECISION_FP16 : precision;
}

static inline double precision_bytes(enum precision precision)
{
    static const double bytes[N_PRECISIONS] = {
        [PRECISION_FP32] = 4,
        [PRECISION_BF16] = 2,
        [PRECISION_FP16] = 2,
        [PRECISION_FP8] = 1,
        [PRECISION_MXFP8] = 1 + 1.0 / 32,   /* one 8-bit scale per 32 elements */
        [PRECISION_NVFP4] = 0.5 + 1.0 / 16, /* one 8-bit scale per 16 elements */
    };
    return bytes[precision];
}

#endif
