/* Model FLOPs of a step: what MFU divides. Derivation: each weight of a matrix is used by 2 FLOPs a token forward and 4 backward.
 */
#include "model/cost/work.h"

static double attention_matrix_flops(const struct transformer *m) /* forward, one token */
{
    double h = (double)m->hidden, a = m->heads;
    if (m->attention == ATTENTION_GROUPED)
        return 2 * h * m->head_dim * (2 * a + 2 * m->kv_heads);
    const struct latent_attention *l = &m->latent;
    double query = a * (l->qk_nope_dim + l->qk_rope_dim);
    double q = l->q_lora_rank ? (h + query) * l->q_lora_rank : h * query;
    double kv = h * (l->kv_lora_rank + l->qk_rope_dim) + l->kv_lora_rank * a * (l->qk_nope_dim + l->v_dim);
    return 2 * (q + kv + a * l->v_dim * h);
}

static double ffn_flops(const struct transformer *m, int layer)
{
    double h = (double)m->hidden, matrices = m->gated_mlp ? 3 : 2;
    if (!layer_is_mixture(m, layer))
        return 2 * h * (double)m->ffn_hidden * matrices;
    const struct mixture *moe = &m->moe;
    double shared = moe->shared_ffn ? (double)moe->shared_ffn : (double)moe->shared_experts * (double)moe->expert_ffn;
    return 2 * h * (((double)moe->expert_ffn * moe->top_k + shared) * matrices + moe->experts);
}

double sliding_window_width(const struct setting *setting, feature_set features, int layer)
{
    const struct transformer *m = setting->model;
    double s = (double)setting->job->seq_len;
    if (features & FEATURE_BIT(SLIDING_WINDOW)) {
        if (setting->job->window > 0)
            return (double)setting->job->window;
        if (m->window == 0)
            return s * SLIDING_WINDOW_ASSUMED;
    }
    return layer_is_windowed(m, layer) ? (double)m->window : 0;
}

double attended_pairs(double s, double window)
{
    if (window > 0 && window < s)
        return s * window - window * (window - 1) / 2;
    return s * (s + 1) / 2;
}

static double attention_pair_flops(const struct setting *setting, feature_set features, int layer,
                                   enum flop_convention convention)
{
    const struct transformer *m = setting->model;
    bool latent = m->attention == ATTENTION_LATENT;
    double dims = latent ? m->latent.qk_nope_dim + m->latent.qk_rope_dim + m->latent.v_dim : 2.0 * m->head_dim;
    double s = (double)setting->job->seq_len;
    double pairs = attended_pairs(s, sliding_window_width(setting, features, layer));
    if (convention == FLOPS_FULL) /* the square; of a band, twice the causal part */
        pairs = pairs * 2 * s / (s + 1);
    return 2 * dims * m->heads * pairs / s; /* per token */
}

double model_flops_per_step(const struct setting *setting, feature_set features, enum flop_convention convention)
{
    const struct transformer *m = setting->model;
    double logits = 2 * (double)m->hidden * (double)m->vocab, per_token = logits;
    for (int i = 0; i < m->layers + m->mtp_layers; i++) {
        int layer = i < m->layers ? i : m->layers - 1;
        per_token += attention_matrix_flops(m) + ffn_flops(m, layer) + attention_pair_flops(setting, features, layer, convention);
        per_token += i < m->layers ? 0 : logits + 4 * (double)m->hidden * (double)m->hidden;
    }
    return 3 * per_token * (double)setting->job->global_batch * (double)setting->job->seq_len;
}
