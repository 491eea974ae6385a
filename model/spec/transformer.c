#include "model/spec/transformer.h"

static double norm_parameters(const struct transformer *m, double width)
{
    return m->norm == NORM_LAYER ? 2 * width : width;
}

/* One weight matrix and, where the model has them, its bias. */
static double linear(double in, double out, bool bias)
{
    return in * out + (bias ? out : 0);
}

static double grouped_attention(const struct transformer *m)
{
    double h = (double)m->hidden, d = m->head_dim;
    bool bias = m->qkv_bias || m->linear_bias;
    double qkv = linear(h, m->heads * d, bias) + 2 * linear(h, m->kv_heads * d, bias);
    double qk_norms = m->qk_norm ? 2 * norm_parameters(m, d) : 0;
    return qkv + linear(m->heads * d, h, m->linear_bias) + qk_norms;
}

/* DeepSeek-V2 section 2.1: down-projections to the latent ranks, a norm on each latent, up-projections per head. */
static double latent_attention(const struct transformer *m)
{
    const struct latent_attention *l = &m->latent;
    double h = (double)m->hidden, a = m->heads;
    double head = l->qk_nope_dim + l->qk_rope_dim, query_width = a * head;
    bool bias = m->qkv_bias || m->linear_bias;
    double query = l->q_lora_rank ? linear(h, l->q_lora_rank, bias) + norm_parameters(m, l->q_lora_rank) +
                                        linear(l->q_lora_rank, query_width, bias)
                                  : linear(h, query_width, bias);
    double down = linear(h, l->kv_lora_rank + l->qk_rope_dim, bias) + norm_parameters(m, l->kv_lora_rank);
    double up = linear(l->kv_lora_rank, a * (l->qk_nope_dim + l->v_dim), bias);
    double qk_norms = m->qk_norm ? 2 * norm_parameters(m, head) : 0;
    return query + down + up + linear(a * l->v_dim, h, m->linear_bias) + qk_norms;
}

static double attention_parameters(const struct transformer *m)
{
    return m->attention == ATTENTION_LATENT ? latent_attention(m) : grouped_attention(m);
}

static double ffn_parameters(const struct transformer *m, double width)
{
    double h = (double)m->hidden;
    return (m->gated_mlp ? 2 : 1) * linear(h, width, m->linear_bias) + linear(width, h, m->linear_bias);
}

static double shared_width(const struct mixture *moe)
{
    return moe->shared_ffn ? (double)moe->shared_ffn : (double)moe->shared_experts * (double)moe->expert_ffn;
}

static double shared_ffn_parameters(const struct transformer *m)
{
    return shared_width(&m->moe) > 0 ? ffn_parameters(m, shared_width(&m->moe)) : 0;
}

static double router_parameters(const struct transformer *m)
{
    return linear((double)m->hidden, m->moe.experts, m->linear_bias);
}

static int like_layer(const struct transformer *model, int layer)
{
    return layer < model->layers || !model->mtp_layers ? layer : model->layers - 1;
}

bool layer_is_mixture(const struct transformer *model, int layer)
{
    int after = like_layer(model, layer) - model->moe.first_dense_layers;
    int every = model->moe.every > 1 ? model->moe.every : 1;
    return model->moe.experts > 0 && after >= 0 && (after + 1) % every == 0;
}

bool layer_is_windowed(const struct transformer *model, int layer)
{
    if (model->window <= 0)
        return false;
    return model->window_every <= 0 || (like_layer(model, layer) + 1) % model->window_every != 0;
}

double transformer_layer_parameters(const struct transformer *model, int layer, bool experts)
{
    double common = attention_parameters(model) + 2 * norm_parameters(model, (double)model->hidden);
    if (!layer_is_mixture(model, layer))
        return common + ffn_parameters(model, (double)model->ffn_hidden);
    double routed = experts ? model->moe.experts * ffn_parameters(model, (double)model->moe.expert_ffn) : 0;
    return common + shared_ffn_parameters(model) + router_parameters(model) + routed;
}

/* DeepSeek-V3 section 2.2: each module is a layer, a projection of two concatenated states, and three norms. Its embedding and
 * head are the main model's. */
static double mtp_parameters(const struct transformer *m)
{
    double h = (double)m->hidden;
    double module = transformer_layer_parameters(m, m->layers - 1, true) + 2 * h * h + 3 * norm_parameters(m, h);
    return m->mtp_layers * module;
}

void transformer_parameters(const struct transformer *model, struct parameter_count *count)
{
    double h = (double)model->hidden;
    struct parameter_count c = {0};
    int mixtures = 0;
    for (int layer = 0; layer < model->layers; layer++)
        mixtures += layer_is_mixture(model, layer);
    c.embedding = (double)model->vocab * h + (model->position == POSITION_LEARNED ? (double)model->max_seq_len * h : 0);
    c.head = model->tied_embeddings ? 0 : (double)model->vocab * h;
    c.attention = model->layers * attention_parameters(model);
    c.dense_ffn = (model->layers - mixtures) * ffn_parameters(model, (double)model->ffn_hidden);
    c.norms = (2.0 * model->layers + 1) * norm_parameters(model, h);
    double one_expert = 0;
    if (mixtures) {
        one_expert = ffn_parameters(model, (double)model->moe.expert_ffn);
        c.dense_ffn += mixtures * shared_ffn_parameters(model);
        c.experts = mixtures * model->moe.experts * one_expert;
        c.router = mixtures * router_parameters(model);
    }
    c.mtp = mtp_parameters(model);
    c.total = c.embedding + c.head + c.attention + c.dense_ffn + c.experts + c.router + c.norms;
    c.active = c.total - c.experts + mixtures * model->moe.top_k * one_expert;
    *count = c;
}
