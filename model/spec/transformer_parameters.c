/* How many parameters a model has, in all and of each layer. */
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

/* Norms on queries and keys: of a head, which all share, or of all heads together. */
static double qk_norms(const struct transformer *m, double head)
{
    if (!m->qk_norm)
        return 0;
    return m->qk_norm_whole ? norm_parameters(m, m->heads * head) + norm_parameters(m, m->kv_heads * head)
                            : 2 * norm_parameters(m, head);
}

/* Keys and values of a layer; one that takes those of another layer has neither. */
static double keys_values(const struct transformer *m)
{
    double h = (double)m->hidden, keys = m->kv_heads * (double)m->head_dim,
           values = m->kv_heads * (double)transformer_value_dim(m);
    bool bias = m->qkv_bias || m->linear_bias;
    return linear(h, keys, bias) + (m->values_are_keys ? 0 : linear(h, values, bias));
}

static double query_down(const struct transformer *m)
{
    return m->query_rank ? (double)m->hidden * (double)m->query_rank + norm_parameters(m, (double)m->query_rank) : 0;
}

static double grouped_attention(const struct transformer *m)
{
    double h = (double)m->hidden, d = m->head_dim, v = transformer_value_dim(m);
    double in = m->query_rank ? (double)m->query_rank : h;
    double queries = linear(in, m->heads * (d + (m->output_gate ? v : 0)), m->qkv_bias || m->linear_bias);
    return query_down(m) + queries + keys_values(m) + linear(m->heads * v, h, m->linear_bias || m->output_bias) + qk_norms(m, d) +
           (m->attention_sinks ? m->heads : 0);
}

/* Queries from what queries come from, one key with a layer norm (two vectors), a weight of each head. */
static double indexer_parameters(const struct transformer *m)
{
    double h = (double)m->hidden, d = m->indexer.head_dim, n = m->indexer.heads;
    double in = m->latent.q_lora_rank ? m->latent.q_lora_rank : h;
    return n > 0 ? in * n * d + h * d + 2 * d + h * n : 0;
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
    return query + down + up + linear(a * l->v_dim, h, m->linear_bias || m->output_bias) + qk_norms(m, head) +
           indexer_parameters(m);
}

static bool shares_keys(const struct transformer *m, int layer)
{
    return m->shared_kv_layers > 0 && layer < m->layers && layer >= m->layers - m->shared_kv_layers;
}

static double attention_parameters(const struct transformer *model, int layer)
{
    struct transformer view;
    const struct transformer *m = transformer_view(model, layer_is_windowed(model, layer), &view);
    if (m->attention == ATTENTION_LATENT)
        return latent_attention(m);
    return grouped_attention(m) -
           (shares_keys(model, layer) ? keys_values(m) + (m->qk_norm ? norm_parameters(m, m->head_dim) : 0) : 0);
}

/* --- mixers with a state */

/* Weights that are no matrices. Convolution: taps, and Mamba's a bias. Heads: Mamba-2's A, D and the step's bias; the delta
 * rule's A and the step's bias, Kimi's bias for each row of a state. Norm: over all heads or, of the delta rule, one head. */
static double mixer_vectors(const struct state_mixer *mixer)
{
    struct mixer_width width = mixer_width_of(mixer);
    double heads = mixer->heads, whole = mixer->norm ? width.values : 0, one = mixer->norm ? mixer->head_dim : 0;
    switch (mixer->kind) {
    case MIXER_MAMBA2: return width.convolved * (mixer->conv + (mixer->conv > 0)) + 3 * heads + whole;
    case MIXER_GATED_DELTA: return width.convolved * mixer->conv + 2 * heads + one;
    case MIXER_KIMI_DELTA: return width.convolved * mixer->conv + heads + heads * mixer->state + one;
    default: return width.convolved * mixer->conv + whole;
    }
}

static double mixer_parameters(const struct transformer *m)
{
    const struct state_mixer *mixer = &m->mixer;
    struct mixer_columns columns = mixer_columns_of(mixer);
    double h = (double)m->hidden, values = mixer_width_of(mixer).values, rank = mixer->head_dim;
    double in = linear(h, columns.mixed + columns.gate + columns.scalars, m->linear_bias);
    double ranks = columns.ranks ? 2 * h * rank + rank * ((double)mixer->heads * mixer->state + values) : 0;
    return in + ranks + mixer_vectors(mixer) + linear(values, h, m->linear_bias);
}

/* --- layers */

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

/* With its balancing bias, and the gate of shared experts. */
static double router_parameters(const struct transformer *m)
{
    double choices = m->moe.experts + m->moe.zero_experts;
    return linear((double)m->hidden, choices, m->linear_bias) + (m->moe.router_bias ? choices : 0) +
           (m->moe.shared_gate ? (double)m->hidden : 0);
}

/* A token's vector for a layer: what gates it, what leads back, and a norm; what makes all of them from the embedding; the table.
 */
static double layer_embedding_parameters(const struct transformer *m)
{
    double h = (double)m->hidden, width = (double)m->layer_embedding;
    return width > 0 ? 2 * h * width + norm_parameters(m, h) : 0;
}

static double layer_embedding_tables(const struct transformer *m)
{
    double width = (double)m->layer_embedding, rows = (double)(m->layer_embedding_vocab ? m->layer_embedding_vocab : m->vocab);
    return width > 0 ? m->layers * width * (rows + (double)m->hidden) + norm_parameters(m, width) : 0;
}

static double mixers_parameters(const struct transformer *model, int layer, enum layer_mixers mixers)
{
    return (mixers & MIXES_BY_ATTENTION ? attention_parameters(model, layer) : 0) +
           (mixers & MIXES_BY_STATE ? mixer_parameters(model) : 0);
}

static double layer_norms(const struct transformer *model, struct layer_kind kind)
{
    return transformer_norms(model, layer_kind_parts(kind)) * norm_parameters(model, (double)model->hidden);
}

double transformer_layer_parameters(const struct transformer *model, int layer, bool experts)
{
    struct layer_kind kind = layer_kind_of(model, layer);
    double common = mixers_parameters(model, layer, kind.mixers) + layer_norms(model, kind) + layer_embedding_parameters(model);
    if (kind.feed == FEEDS_NOT)
        return common;
    if (kind.feed == FEEDS_DENSE)
        return common + ffn_parameters(model, (double)model->ffn_hidden);
    double routed = experts ? model->moe.experts * ffn_parameters(model, (double)model->moe.expert_ffn) : 0;
    return common + shared_ffn_parameters(model) + router_parameters(model) + routed;
}

/* Behind a product whose rows are divided stands a whole bias. */
static double attention_undivided(const struct transformer *m)
{
    const struct latent_attention *l = &m->latent;
    double h = (double)m->hidden, output_bias = m->linear_bias || m->output_bias ? h : 0;
    bool bias = m->qkv_bias || m->linear_bias, latent = m->attention == ATTENTION_LATENT;
    double norms = qk_norms(m, latent ? l->qk_nope_dim + l->qk_rope_dim : m->head_dim);
    if (!latent)
        return norms + output_bias + query_down(m);
    double query = l->q_lora_rank ? linear(h, l->q_lora_rank, bias) + norm_parameters(m, l->q_lora_rank) : 0;
    return query + linear(h, l->kv_lora_rank + l->qk_rope_dim, bias) + norm_parameters(m, l->kv_lora_rank) + norms + output_bias +
           indexer_parameters(m);
}

/* Down-projections of what goes by rank; the delta rules' norm, of one head, which all heads share. */
static double mixer_undivided(const struct transformer *m)
{
    const struct state_mixer *mixer = &m->mixer;
    bool delta = mixer->kind == MIXER_GATED_DELTA || mixer->kind == MIXER_KIMI_DELTA;
    double h = (double)m->hidden, norm = delta && mixer->norm ? mixer->head_dim : 0;
    return mixer_columns_of(mixer).ranks * h * mixer->head_dim + norm + (m->linear_bias ? h : 0);
}

static double feed_undivided(const struct transformer *m, enum layer_feed feed, bool experts)
{
    double bias = m->linear_bias ? (double)m->hidden : 0;
    switch (feed) {
    case FEEDS_DENSE: return bias;
    case FEEDS_EXPERTS:
        return router_parameters(m) + (shared_width(&m->moe) > 0 ? bias : 0) + (experts ? m->moe.experts * bias : 0);
    default: return 0;
    }
}

double transformer_layer_undivided(const struct transformer *model, int layer, bool experts)
{
    struct layer_kind kind = layer_kind_of(model, layer);
    struct transformer view;
    return layer_norms(model, kind) + layer_embedding_parameters(model) +
           (kind.mixers & MIXES_BY_ATTENTION ? attention_undivided(transformer_view(model, kind.windowed, &view)) : 0) +
           (kind.mixers & MIXES_BY_STATE ? mixer_undivided(model) : 0) + feed_undivided(model, kind.feed, experts);
}

double transformer_key_value_head(const struct transformer *model, int layer)
{
    struct layer_kind kind = layer_kind_of(model, layer);
    struct transformer view;
    const struct transformer *m = transformer_view(model, kind.windowed, &view);
    bool grouped = m->attention != ATTENTION_LATENT && kind.mixers & MIXES_BY_ATTENTION && !shares_keys(model, layer);
    return grouped ? keys_values(m) / m->kv_heads : 0;
}

int transformer_largest_layer(const struct transformer *model)
{
    int largest = model->layers - 1;
    double most = 0;
    for (int layer = 0; transformer_is_hybrid(model) && layer < model->layers; layer++) {
        double parameters = transformer_layer_parameters(model, layer, true);
        if (parameters > most)
            most = parameters, largest = layer;
    }
    return largest;
}

/* DeepSeek-V3 section 2.2: each module is a layer, a projection of two concatenated states, and three norms. Its embedding and
 * head are the main model's. */
static double mtp_parameters(const struct transformer *m)
{
    double h = (double)m->hidden;
    double module = transformer_layer_parameters(m, m->layers - 1, true) + 2 * h * h + 3 * norm_parameters(m, h);
    return m->mtp_layers * module;
}

/* One layer's share of each line of the count. */
static void count_layer(const struct transformer *m, int layer, struct parameter_count *c)
{
    struct layer_kind kind = layer_kind_of(m, layer);
    if (kind.mixers & MIXES_BY_ATTENTION)
        c->attention += attention_parameters(m, layer);
    if (kind.mixers & MIXES_BY_STATE)
        c->mixers += mixer_parameters(m);
    c->norms += layer_norms(m, kind);
    c->embedding += layer_embedding_parameters(m);
    if (kind.feed == FEEDS_DENSE)
        c->dense_ffn += ffn_parameters(m, (double)m->ffn_hidden);
    if (kind.feed != FEEDS_EXPERTS)
        return;
    c->dense_ffn += shared_ffn_parameters(m);
    c->experts += m->moe.experts * ffn_parameters(m, (double)m->moe.expert_ffn);
    c->router += router_parameters(m);
}

void transformer_parameters(const struct transformer *model, struct parameter_count *count)
{
    double h = (double)model->hidden;
    struct parameter_count c = {0};
    c.embedding = ((double)model->vocab + (double)transformer_position_rows(model)) * h + layer_embedding_tables(model);
    c.head = model->tied_embeddings ? 0 : (double)model->vocab * h;
    c.norms = norm_parameters(model, h);
    for (int layer = 0; layer < model->layers; layer++)
        count_layer(model, layer, &c);
    c.mtp = mtp_parameters(model);
    c.total = c.embedding + c.head + c.attention + c.mixers + c.dense_ffn + c.experts + c.router + c.norms;
    c.active = c.total - c.experts + (model->moe.experts ? c.experts / model->moe.experts * model->moe.top_k : 0);
    *count = c;
}
