/*
 * flops.c - model FLOPs of a step: the numerator of MFU.
 *
 * Derivation: each weight of a matrix needs 2 FLOPs per token forward and 4 backward. So does the state of a mixer, whichever
 * way a kernel computes it: a key times a value is added to it, a query reads it, and the delta rule first reads it by the key;
 * 2 N P FLOPs per head each, forward. Convolutions, decays, gates and norms are not counted. A frozen matrix needs 2 backward,
 * for the gradient of its input; the matrices of its adapter need 2 and 4. The pairs of attention, which has no weights, count
 * as usual.
 */
#include "model/cost/work/adapter.h"
#include "model/cost/work/documents.h"
#include "model/cost/work/work.h"

/* Of an indexer, forward, one token. */
static double index_matrix_flops(const struct transformer *m)
{
    double h = (double)m->hidden, n = m->indexer.heads, d = m->indexer.head_dim;
    double from = m->latent.q_lora_rank ? m->latent.q_lora_rank : h;
    return 2 * (from * n * d + (n > 0 ? h * (d + n) : 0));
}

static double attention_matrix_flops(const struct transformer *m) /* forward, one token */
{
    double h = (double)m->hidden, a = m->heads, d = m->head_dim, v = transformer_value_dim(m), rank = (double)m->query_rank;
    if (m->attention == ATTENTION_GROUPED) {
        double queries = a * (d + (m->output_gate ? v : 0));
        return 2 *
               ((rank > 0 ? rank * (h + queries) : h * queries) + h * (m->kv_heads * (d + (m->values_are_keys ? 0 : v)) + a * v));
    }
    const struct latent_attention *l = &m->latent;
    double query = a * (l->qk_nope_dim + l->qk_rope_dim);
    double q = l->q_lora_rank ? (h + query) * l->q_lora_rank : h * query;
    double kv = h * (l->kv_lora_rank + l->qk_rope_dim) + l->kv_lora_rank * a * (l->qk_nope_dim + l->v_dim);
    return 2 * (q + kv + a * l->v_dim * h) + index_matrix_flops(m);
}

static double mixer_flops(const struct transformer *m) /* forward, one token */
{
    const struct state_mixer *mixer = &m->mixer;
    struct mixer_columns columns = mixer_columns_of(mixer);
    double h = (double)m->hidden, values = mixer_width_of(mixer).values, rows = (double)mixer->heads * mixer->state;
    double in = h * (columns.mixed + columns.gate + columns.scalars);
    double ranks = columns.ranks * (h * mixer->head_dim) + (columns.ranks ? mixer->head_dim * (rows + values) : 0);
    bool delta = mixer->kind == MIXER_GATED_DELTA || mixer->kind == MIXER_KIMI_DELTA;
    return 2 * (in + ranks + values * h + (delta ? 3 : 2) * rows * mixer->head_dim);
}

static double ffn_flops(const struct transformer *m, enum layer_feed feed)
{
    double h = (double)m->hidden, matrices = m->gated_mlp ? 3 : 2;
    if (feed == FEEDS_NOT)
        return 0;
    if (feed == FEEDS_DENSE)
        return 2 * h * (double)m->ffn_hidden * matrices;
    const struct mixture *moe = &m->moe;
    double shared = moe->shared_ffn ? (double)moe->shared_ffn : (double)moe->shared_experts * (double)moe->expert_ffn;
    return 2 * h * (((double)moe->expert_ffn * moe->top_k + shared) * matrices + moe->experts);
}

static double attention_pair_flops(const struct setting *setting, feature_set features, int layer,
                                   enum flop_convention convention)
{
    struct transformer view;
    const struct transformer *m = transformer_view(setting->model, layer_is_windowed(setting->model, layer), &view);
    bool latent = m->attention == ATTENTION_LATENT;
    double dims =
        latent ? m->latent.qk_nope_dim + m->latent.qk_rope_dim + m->latent.v_dim : (double)m->head_dim + transformer_value_dim(m);
    double s = (double)setting->job->seq_len;
    double window = sliding_window_width(setting, features, layer), pairs = attended_pairs(s, window);
    if (convention == FLOPS_MASKED && job_masks_documents(setting->job))
        pairs = documents_pairs(&setting->job->documents, s, window);
    if (convention == FLOPS_FULL) /* the square; of a band, twice the causal part */
        pairs = pairs * 2 * s / (s + 1);
    double picks = 2.0 * m->indexer.heads * m->indexer.head_dim * attended_pairs(s, 0);
    return (2 * dims * m->heads * pairs + picks) / s; /* per token */
}

/* Forward, one token: of matrices that are frozen where adapters are trained. Mixers with a state are not adapted. */
static double frozen_flops(const struct job *job, const struct transformer *m)
{
    double flops = adapter_trains(job, m, WHOLE_HEAD) ? 0 : 2 * (double)m->hidden * (double)m->vocab;
    for (int i = 0; i < m->layers; i++) {
        struct transformer view;
        struct layer_kind kind = layer_kind_of(m, i);
        flops += (kind.mixers & MIXES_BY_ATTENTION ? attention_matrix_flops(transformer_view(m, kind.windowed, &view)) : 0) +
                 ffn_flops(m, kind.feed);
    }
    return flops;
}

static double layer_flops(const struct setting *setting, feature_set features, int layer, enum flop_convention convention)
{
    const struct transformer *m = setting->model;
    struct transformer view;
    struct layer_kind kind = layer_kind_of(m, layer);
    bool attends = kind.mixers & MIXES_BY_ATTENTION;
    return (attends ? attention_matrix_flops(transformer_view(m, kind.windowed, &view)) : 0) + ffn_flops(m, kind.feed) +
           (attends ? attention_pair_flops(setting, features, layer, convention) : 0) +
           (kind.mixers & MIXES_BY_STATE ? mixer_flops(m) : 0);
}

double model_flops_per_step(const struct setting *setting, feature_set features, enum flop_convention convention)
{
    const struct transformer *m = setting->model;
    double logits = 2 * (double)m->hidden * (double)m->vocab, per_token = logits;
    for (int i = 0; i < m->layers + m->mtp_layers; i++) {
        int layer = i < m->layers ? i : m->layers - 1;
        per_token += layer_flops(setting, features, layer, convention);
        per_token += i < m->layers ? 0 : logits + 4 * (double)m->hidden * (double)m->hidden;
    }
    per_token *= 3;
    if (job_adapts(setting->job))
        per_token += 3 * 2 * adapter_parameters_of_model(setting, features) - frozen_flops(setting->job, m);
    return per_token * (double)setting->job->global_batch * (double)setting->job->seq_len;
}
