#include "model/spec/job.h"

#include <string.h>

#include "model/base/append.h"

const char *const feature_names[N_FEATURES + 1] = {
#define X(id, name, what) [FEATURE_##id] = name,
    FEATURES(X)
#undef X
};

const char *const optimizer_names[N_OPTIMIZERS + 1] = {
    [OPTIMIZER_ADAM] = "adam",
    [OPTIMIZER_LAMB] = "lamb",
    [OPTIMIZER_SGD] = "sgd",
    [OPTIMIZER_MUON] = "muon",
};
const char *const muon_tp_names[N_MUON_TP + 1] = {[MUON_BLOCKWISE] = "blockwise", [MUON_DUPLICATED] = "duplicated"};
const char *const muon_shard_names[N_MUON_SHARDS + 1] = {[MUON_ELEMENTS] = "elements", [MUON_LAYER_WISE] = "layer_wise"};

const char *const adapter_target_names[N_ADAPTER_TARGETS + 1] = {
    [ADAPT_QKV] = "qkv",
    [ADAPT_PROJECTION] = "projection",
    [ADAPT_MLP_UP] = "mlp_up",
    [ADAPT_MLP_DOWN] = "mlp_down",
};

const char *const adapter_whole_names[N_ADAPTER_WHOLES + 1] = {[WHOLE_EMBEDDING] = "embedding", [WHOLE_HEAD] = "head"};

static char *set_text(uint32_t set, const char *const *names, const char *separator, char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (int i = 0; names[i]; i++)
        if (set >> i & 1)
            text_append(buffer, size, "%s%s", *buffer ? separator : "", names[i]);
    return buffer;
}

char *adapter_targets_text(uint32_t targets, const char *separator, char *buffer, size_t size)
{
    return set_text(targets, adapter_target_names, separator, buffer, size);
}

char *adapter_wholes_text(uint32_t wholes, const char *separator, char *buffer, size_t size)
{
    return set_text(wholes, adapter_whole_names, separator, buffer, size);
}

feature_set features_with(feature_set features, enum feature feature)
{
    feature_set bit = (feature_set)1 << feature;
    return (features & ~(bit & FEATURES_FLASH ? FEATURES_FLASH : 0)) | bit;
}

feature_set features_usual(const struct gpu *gpu)
{
    if (gpu_flash_attention(gpu) >= 2)
        return FEATURES_USUAL;
    return (FEATURES_USUAL & ~FEATURES_FLASH) | FEATURE_BIT(FLASH_ATTENTION);
}

const char *feature_name(enum feature feature)
{
    return feature_names[feature];
}

char *features_text(feature_set features, const char *separator, char *buffer, size_t size)
{
    buffer[0] = '\0';
    for (int i = 0; i < N_FEATURES; i++)
        if (features >> i & 1)
            text_append(buffer, size, "%s%s", *buffer ? separator : "", feature_name((enum feature)i));
    return buffer;
}

int feature_parse(const char *name)
{
    for (int i = 0; i < N_FEATURES; i++)
        if (strcmp(name, feature_names[i]) == 0)
            return i;
    return -1;
}
