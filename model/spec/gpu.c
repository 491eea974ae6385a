#include "model/spec/gpu.h"

#include <string.h>

static const char *const names[N_PRECISIONS] = {
    [PRECISION_FP32] = "fp32", [PRECISION_BF16] = "bf16",   [PRECISION_FP16] = "fp16",
    [PRECISION_FP8] = "fp8",   [PRECISION_MXFP8] = "mxfp8", [PRECISION_NVFP4] = "nvfp4",
};

const char *precision_name(enum precision precision)
{
    return names[precision];
}

int precision_parse(const char *name)
{
    for (int i = 0; i < N_PRECISIONS; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}
