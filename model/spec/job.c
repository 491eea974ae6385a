#include "model/spec/job.h"

#include <string.h>

static const struct {
    const char *name, *purpose;
} features[N_FEATURES] = {
#define X(id, name, what) [FEATURE_##id] = {name, what},
    FEATURES(X)
#undef X
};

feature_set features_usual(const struct gpu *gpu)
{
    if (gpu_flash_attention(gpu) >= 2)
        return FEATURES_USUAL;
    return (FEATURES_USUAL & ~FEATURES_FLASH) | FEATURE_BIT(FLASH_ATTENTION);
}

const char *feature_name(enum feature feature)
{
    return features[feature].name;
}

const char *feature_purpose(enum feature feature)
{
    return features[feature].purpose;
}

int feature_parse(const char *name)
{
    for (int i = 0; i < N_FEATURES; i++)
        if (strcmp(name, features[i].name) == 0)
            return i;
    return -1;
}
