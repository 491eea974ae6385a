/* shape.c - the sizes of one rank of a layout. */
#include "runtime/base/parameters.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "model/cost/work/work.h"

static struct copies copies_in(const struct layout *layout, enum group_kind kind, int rank)
{
    struct copies copies = {.n = layout_group_size(layout, kind)};
    int *members = memory_new((size_t)copies.n, sizeof *members);
    layout_group_members(layout, kind, rank, members);
    while (members[copies.index] != rank)
        copies.index++;
    free(members);
    return copies;
}

static struct mixture_shape mixture_shape_of(const struct layout *layout, const struct transformer *m, int rank, int64_t tokens)
{
    const struct mixture *moe = &m->moe;
    int expert_tp = layout_expert_tp(layout), tp = layout->tp;
    if (!moe->experts)
        return (struct mixture_shape){0};
    int64_t shared = moe->shared_ffn ? moe->shared_ffn : moe->shared_experts * moe->expert_ffn;
    struct mixture_shape s = {
        .experts = moe->experts,
        .top_k = moe->top_k,
        .groups = moe->groups,
        .top_groups = moe->top_groups,
        .local = moe->experts / layout->ep,
        .tp = expert_tp,
        .ep = layout->ep,
        .copies = copies_in(layout, GROUP_EXPERT_DP, rank),
        .ffn = moe->expert_ffn / expert_tp,
        .model_ffn = moe->expert_ffn,
        .shared = shared / tp,
        .model_shared = shared,
        .share = (tokens + tp - 1) / tp,
    };
    int64_t left = tokens - layout_coordinates(layout, rank).tp * s.share;
    s.tokens = left < 0 ? 0 : left < s.share ? left : s.share;
    s.first = copies_in(layout, GROUP_EP, rank).index * s.local;
    s.up_width = m->gated_mlp ? 2 * s.ffn : s.ffn;
    s.shared_up = m->gated_mlp ? 2 * s.shared : s.shared;
    s.most = s.share * s.tp * s.ep * (s.top_k < s.local ? s.top_k : s.local); /* all choose this rank's */
    return s;
}

static struct latent_shape latent_shape_of(const struct transformer *m)
{
    const struct latent_attention *l = &m->latent;
    if (m->attention != ATTENTION_LATENT)
        return (struct latent_shape){0};
    return (struct latent_shape){.used = true,
                                 .q_rank = l->q_lora_rank,
                                 .kv_rank = l->kv_lora_rank,
                                 .nope = l->qk_nope_dim,
                                 .rope = l->qk_rope_dim,
                                 .value = l->v_dim};
}

static void set_heads(struct shape *s, const struct transformer *m, int heads, int kv_heads)
{
    s->heads = heads;
    s->kv_heads = kv_heads;
    s->head_dim = m->head_dim;
    s->query_width = (int64_t)s->heads * s->head_dim;
    s->qkv_width = s->query_width + 2 * (int64_t)s->kv_heads * s->head_dim;
    s->context_width = s->query_width;
    s->latent = latent_shape_of(m);
    if (!s->latent.used)
        return;
    s->kv_heads = s->heads;
    s->head_dim = (int)(s->latent.nope + s->latent.rope);
    s->query_width = (int64_t)s->heads * s->head_dim;
    s->context_width = (int64_t)s->heads * s->latent.value;
    s->qkv_width = 2 * s->query_width + s->context_width;
}

/* Chunks cp_rank and 2 cp - 1 - cp_rank of 2 cp. */
static void set_positions(struct shape *s)
{
    int64_t half = s->seq_len / 2;
    s->at = s->cp > 1 ? (struct positions){.first = s->cp_rank * half, .jump = (2 * s->cp - 2 - 2 * s->cp_rank) * half}
                      : (struct positions){0};
}

struct shape shape_of(const struct layout *layout, const struct setting *setting, int rank)
{
    const struct transformer *m = setting->model;
    struct coordinates at = layout_coordinates(layout, rank);
    int tp = layout->tp;
    struct shape s = {
        .tp = tp,
        .tp_rank = at.tp,
        .cp = layout->cp,
        .cp_rank = at.cp,
        .copies = copies_in(layout, GROUP_DP, rank),
        .sequence_parallel = layout->sequence_parallel && tp > 1,
        .parallel_block = layout->features & FEATURE_BIT(PARALLEL_BLOCK),
        .rms = m->norm == NORM_RMS,
        .gated = m->gated_mlp,
        .tied = m->tied_embeddings,
        .rotary = m->position == POSITION_ROTARY,
        .learned_positions = m->position == POSITION_LEARNED,
        .alibi = m->position == POSITION_ALIBI,
        .qk_norm = m->qk_norm,
        .linear_bias = m->linear_bias,
        .mlp_limit = (float)m->mlp_limit,
        .gathers_again = layout->sequence_parallel && tp > 1 && !layout_follows_llama(layout, m),
        .apart = work_keeps_matrices_apart(layout, m),
        .qkv_bias = m->linear_bias || m->qkv_bias,
        .mirrored = layout->schedule == SCHEDULE_DUALPIPE && 2 * at.pp >= layout->pp,
        .layers = m->layers + m->mtp_layers,
        .predictions = m->mtp_layers,
        .hidden = m->hidden,
        .seq_len = setting->job->seq_len / layout->cp,
        .micro_batch = layout->micro_batch,
        .ffn = m->ffn_hidden / tp,
        .vocab = m->vocab,
        .max_positions = m->max_seq_len + m->position_offset,
        .model_heads = m->heads,
        .model_kv_heads = m->kv_heads,
        .model_ffn = m->ffn_hidden,
    };
    set_heads(&s, m, m->heads / tp, layout_kv_heads(layout, m));
    s.tokens = s.micro_batch * s.seq_len;
    s.local_tokens = s.sequence_parallel ? s.tokens / tp : s.tokens;
    s.up_width = s.gated ? 2 * s.ffn : s.ffn;
    s.vocab_first = s.vocab * at.tp / tp;
    s.vocab_count = s.vocab * (at.tp + 1) / tp - s.vocab_first;
    set_positions(&s);
    s.moe = mixture_shape_of(layout, m, rank, s.tokens);
    s.mixer = mixer_shape_of(m, tp);
    return s;
}

struct shape shape_of_core(const struct layout *layout, const struct setting *setting, int rank)
{
    struct shape s = shape_of(layout, setting, rank);
    int parts = layout_cp_heads(layout);
    set_heads(&s, setting->model, s.heads / parts, layout_sent_kv_heads(layout, setting->model) / parts);
    s.cp /= parts;
    s.cp_rank /= parts;
    s.seq_len *= parts;
    s.tokens *= parts;
    set_positions(&s);
    return s;
}

bool shape_is_packed(const struct shape *s, struct device *device)
{
    return s->cp == 1 && !s->alibi && !s->latent.used && device->api->attention_fits(device, s->head_dim);
}
