#include "model/cost/track_record.h"

#include <string.h>

static const struct track_record records[N_RUN_KINDS] = {
#define KIND(kind, runs_, sources_, low_, middle_, high_, gpus_)                                                                 \
    [RUN_##kind] = {.runs = (runs_), .sources = (sources_), .low = (low_), .middle = (middle_), .high = (high_), .gpus = (gpus_)},
#include "model/cost/track_record.inc"
#undef KIND
};

static const struct {
    const char *name, *text;
} kinds[N_RUN_KINDS] = {
    [RUN_FUSED] = {"fused", "dense, fused kernels"},
    [RUN_EAGER] = {"eager", "dense, one kernel an operator"},
    [RUN_SHARDED] = {"sharded", "dense, ZeRO-3"},
    [RUN_MIXTURE] = {"mixture", "mixture of experts"},
};

enum run_kind run_kind_of(const struct layout *layout, const struct transformer *model)
{
    if (model->moe.experts > 0)
        return RUN_MIXTURE;
    if (layout->zero == 3)
        return RUN_SHARDED;
    return layout->features & FEATURES_FUSING ? RUN_FUSED : RUN_EAGER;
}

const char *run_kind_name(enum run_kind kind)
{
    return kinds[kind].name;
}

const char *run_kind_text(enum run_kind kind)
{
    return kinds[kind].text;
}

const struct track_record *track_record_of(enum run_kind kind)
{
    return &records[kind];
}

bool track_record_has_gpu(const struct track_record *record, const char *gpu)
{
    size_t length = strlen(gpu);
    for (const char *at = record->gpus; (at = strstr(at, gpu)) != NULL; at += length)
        if ((at == record->gpus || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
            return true;
    return false;
}
