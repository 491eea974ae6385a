/* names.c - the names of groups and reasons; properties of training stacks. */
#include <string.h>

#include "model/layout/layout.h"

static const char *const GROUP_NAMES[N_GROUP_KINDS] = {
    [GROUP_TP] = "tp",
    [GROUP_CP] = "cp",
    [GROUP_DP] = "dp",
    [GROUP_EP] = "ep",
    [GROUP_EXPERT_DP] = "expert_dp",
    [GROUP_PP] = "pp",
    [GROUP_EMBEDDING] = "embedding",
    [GROUP_MODEL] = "model",
    [GROUP_REPLICA] = "replica",
    [GROUP_MIRROR] = "mirror",
    [GROUP_CP_HEADS] = "cp_heads",
};

const char *group_kind_name(enum group_kind kind)
{
    return GROUP_NAMES[kind];
}

const char *layout_reason_text(enum layout_reason reason)
{
    static const char *const texts[N_LAYOUT_REASONS] = {
#define X(id, text) [LAYOUT_##id] = text,
        LAYOUT_REASONS(X)
#undef X
    };
    return texts[reason];
}

const char *layout_reason_key(enum layout_reason reason)
{
    static const char *const keys[N_LAYOUT_REASONS] = {
        [LAYOUT_LEGAL] = "legal",           [LAYOUT_RANGE] = "range",         [LAYOUT_WORLD] = "world",
        [LAYOUT_HEADS] = "heads",           [LAYOUT_KV_HEADS] = "kv_heads",   [LAYOUT_MIXER] = "mixer",
        [LAYOUT_HIDDEN] = "hidden",         [LAYOUT_VOCAB] = "vocab",         [LAYOUT_SEQUENCE] = "sequence",
        [LAYOUT_LAYERS] = "layers",         [LAYOUT_BATCH] = "batch",         [LAYOUT_SCHEDULE] = "schedule",
        [LAYOUT_INTERLEAVE] = "interleave", [LAYOUT_EXPERTS] = "experts",     [LAYOUT_ZERO] = "zero",
        [LAYOUT_FEATURE] = "feature",       [LAYOUT_PRECISION] = "precision", [LAYOUT_RECOMPUTE] = "recompute",
        [LAYOUT_OFFLOAD] = "offload",       [LAYOUT_SHARD] = "shard",         [LAYOUT_OWNERS] = "owners",
        [LAYOUT_CP_COMM] = "cp_comm",       [LAYOUT_ADAPTER] = "adapter",
    };
    return keys[reason];
}

int layout_kv_heads(const struct layout *layout, const struct transformer *model)
{
    int heads = model->attention == ATTENTION_LATENT ? model->heads : model->kv_heads;
    return heads >= layout->tp ? heads / layout->tp : 1;
}

int layout_sent_kv_heads(const struct layout *layout, const struct transformer *model)
{
    int heads = layout_kv_heads(layout, model), parts = layout_cp_heads(layout);
    return heads > parts ? heads : parts;
}

bool layout_offloads_gradients(const struct layout *layout)
{
    bool here = layout_scatters_gradients(layout) || (layout->dp * layout->cp == 1 && layout->pp == 1);
    return layout_offloads(layout, OFFLOAD_OPTIMIZER) && here;
}

bool layout_recomputes_by_need(const struct layout *layout)
{
    bool by_module = layout->zero == 3 || (layout->features & FEATURE_BIT(COMPILE));
    return by_module && !(layout->features & FEATURE_BIT(FUSED_OPS));
}

enum recompute_what layout_recomputed_modules(const struct layout *layout)
{
    if (layout->recompute.what == RECOMPUTE_SELECTIVE)
        return layout_recomputes_by_need(layout) ? RECOMPUTE_NONE : RECOMPUTE_CORE_ATTN;
    int modules = layout->recompute.what == RECOMPUTE_FULL ? RECOMPUTE_NONE : (int)layout->recompute.what;
    if (modules & RECOMPUTE_MLP)
        modules |= RECOMPUTE_MLP_ACT;
    if (modules & RECOMPUTE_MOE)
        modules |= RECOMPUTE_MOE_ACT | RECOMPUTE_SHARED_EXPERTS;
    return (enum recompute_what)modules;
}

/* Has any layer such a part? `otherwise`: of a model without a pattern. */
static bool has_letter(const struct transformer *model, const char *letters, bool otherwise)
{
    return transformer_is_hybrid(model) ? strpbrk(model->layer_pattern, letters) != NULL : otherwise;
}

enum recompute_what layout_modules_of(const struct transformer *model)
{
    const struct mixture *moe = &model->moe;
    int modules = RECOMPUTE_LAYERNORM;
    bool feeds = has_letter(model, "amp", true), attends = has_letter(model, "a*p", true);
    bool dense = has_letter(model, "-", false) || (feeds && (!moe->experts || moe->first_dense_layers > 0 || moe->every > 1));
    if (attends)
        modules |= RECOMPUTE_CORE_ATTN;
    if (attends && model->attention == ATTENTION_LATENT)
        modules |= RECOMPUTE_MLA_UP_PROJ;
    if (dense)
        modules |= RECOMPUTE_MLP_ACT | RECOMPUTE_MLP;
    if (moe->experts)
        modules |= RECOMPUTE_MOE_ACT | RECOMPUTE_MOE;
    if (moe->experts && (moe->shared_ffn || moe->shared_experts))
        modules |= RECOMPUTE_SHARED_EXPERTS;
    return (enum recompute_what)modules;
}

enum recompute_what layout_light_modules(const struct transformer *model)
{
    enum { CHEAP = RECOMPUTE_LAYERNORM | RECOMPUTE_MLA_UP_PROJ | RECOMPUTE_MLP_ACT | RECOMPUTE_MOE_ACT };
    return (enum recompute_what)((int)layout_modules_of(model) & CHEAP);
}

bool layout_follows_llama(const struct layout *layout, const struct transformer *model)
{
    return model->gated_mlp && !(layout->features & FEATURES_FUSING);
}

bool layout_checkpoints_in_python(const struct layout *layout, const struct transformer *model)
{
    return layout->recompute.what == RECOMPUTE_FULL && layout_follows_llama(layout, model) && !layout_recomputes_by_need(layout);
}

bool layout_fuses_softmax(const struct layout *layout, int heads)
{
    enum { MATRICES_OF_A_BLOCK = 4 };
    if (layout->features & FEATURE_BIT(COMPILE))
        return true;
    bool fusing = layout->features & (FEATURE_BIT(FUSED_SOFTMAX) | FEATURE_BIT(FUSED_OPS));
    return fusing && (int64_t)layout->micro_batch * (heads / layout->tp / layout_cp_heads(layout)) % MATRICES_OF_A_BLOCK == 0;
}
