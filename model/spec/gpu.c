#include "model/spec/gpu.h"

#include <string.h>

const char *const precision_names[N_PRECISIONS + 1] = {
    [PRECISION_FP32] = "fp32", [PRECISION_BF16] = "bf16",   [PRECISION_FP16] = "fp16",
    [PRECISION_FP8] = "fp8",   [PRECISION_MXFP8] = "mxfp8", [PRECISION_NVFP4] = "nvfp4",
};

int gpu_flash_attention(const struct gpu *gpu)
{
    static const int newest[N_ARCHITECTURES] = {
        [ARCHITECTURE_VOLTA] = 1,  [ARCHITECTURE_TURING] = 1,    [ARCHITECTURE_AMPERE] = 2,        [ARCHITECTURE_ADA] = 2,
        [ARCHITECTURE_HOPPER] = 3, [ARCHITECTURE_BLACKWELL] = 3, [ARCHITECTURE_BLACKWELL_RTX] = 2, [ARCHITECTURE_CDNA] = 1,
        [ARCHITECTURE_CDNA2] = 2,  [ARCHITECTURE_CDNA3] = 2,     [ARCHITECTURE_CDNA4] = 2,         [ARCHITECTURE_GAUDI] = 2,
        [ARCHITECTURE_TPU] = 2,    [ARCHITECTURE_TRAINIUM] = 2,
    };
    if (gpu->architecture == ARCHITECTURE_UNKNOWN)
        return gpu->peak_flops[PRECISION_FP8] > 0 ? 3 : 2;
    return newest[gpu->architecture];
}

const char *precision_name(enum precision precision)
{
    return precision_names[precision];
}

int precision_parse(const char *name)
{
    for (int i = 0; i < N_PRECISIONS; i++)
        if (strcmp(name, precision_names[i]) == 0)
            return i;
    return -1;
}
