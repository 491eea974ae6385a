#include "model/cost/step/track_record.h"

#include <math.h>
#include <string.h>

#define KIND(kind, ...) [RUN_##kind] = {__VA_ARGS__},
#define OUTCOMES(...)
static const struct track_record records[N_RUN_KINDS] = {
#include "model/cost/step/track_record.inc"
};
#undef KIND
#undef OUTCOMES

#define KIND(...)
#define OUTCOMES(...) __VA_ARGS__
static const struct memory_record outcomes = {
#include "model/cost/step/track_record.inc"
};
#undef KIND
#undef OUTCOMES

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

const struct memory_record *memory_record(void)
{
    return &outcomes;
}

double memory_record_share(double use)
{
    return use > 0 ? 1 / (1 + pow(outcomes.median * use, -1 / outcomes.scale)) : 0;
}

double memory_quantile(double median, double scale, double below)
{
    return median * pow(below / (1 - below), scale);
}

double memory_record_use(double share)
{
    return 1 / memory_quantile(outcomes.median, outcomes.scale, 1 - share);
}

double memory_record_margin(void)
{
    return ceil(100 * (1 - memory_record_use(SHARE_WITH_MARGIN))) / 100;
}

const char *record_gap_key(enum record_gap gap)
{
#define X(id, key) [GAP_##id] = key,
    static const char *const keys[] = {RECORD_GAPS(X)};
#undef X
    return keys[gap];
}

unsigned track_record_gaps(const struct layout *layout, const struct setting *setting)
{
    const struct job *job = setting->job;
    const struct track_record *record = track_record_of(run_kind_of(layout, setting->model));
    const bool there[N_RECORD_GAPS] = {
        [GAP_GPU] = !track_record_has_gpu(record, setting->cluster->gpu.name),
        [GAP_HYBRID] = transformer_is_hybrid(setting->model),
        [GAP_MUON] = job->optimizer == OPTIMIZER_MUON,
        [GAP_ADAPTER] = job_adapts(job),
        [GAP_DOCUMENTS] = job_masks_documents(job),
        [GAP_EXPERT_LOAD] = job->load.busiest > 1,
        [GAP_CAPACITY] = job->load.capacity > 0,
        [GAP_OFFLOAD] = !offload_is_none(&layout->offload),
        [GAP_CP_COMM] = layout->cp > 1 && layout->cp_comm != CP_RING,
        [GAP_RECOMPUTE] = layout->recompute.of != RECOMPUTE_ALL,
    };
    unsigned gaps = 0;
    for (int gap = 0; gap < N_RECORD_GAPS; gap++)
        gaps |= (unsigned)there[gap] << gap;
    return gaps;
}
