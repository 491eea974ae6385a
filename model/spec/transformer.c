#include "model/spec/transformer.h"

#include <string.h>

const char layer_letters[] = "am*M-Ep";

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
    double qkv = linear(h, (m->output_gate ? 2 : 1) * m->heads * d, bias) + 2 * linear(h, m->kv_heads * d, bias);
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

/* --- mixers with a state */

struct mixer_width mixer_width_of(const struct state_mixer *mixer)
{
    double values = (double)mixer->heads * mixer->head_dim, keys = (double)mixer->groups * mixer->state;
    return (struct mixer_width){.values = values, .keys = keys, .convolved = values + 2 * keys};
}

struct mixer_columns mixer_columns_of(const struct state_mixer *mixer)
{
    struct mixer_width width = mixer_width_of(mixer);
    struct mixer_columns columns = {.mixed = width.convolved, .gate = width.values};
    switch (mixer->kind) {
    case MIXER_MAMBA2: columns.scalars = mixer->heads; break;            /* the step, dt */
    case MIXER_GATED_DELTA: columns.scalars = 2.0 * mixer->heads; break; /* decay and strength */
    case MIXER_KIMI_DELTA:                                               /* strength; decays and gate by rank */
        columns.scalars = mixer->heads;
        columns.gate = 0;
        columns.ranks = 2;
        break;
    case MIXER_LIGHTNING: break;
    }
    return columns;
}

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

static double router_parameters(const struct transformer *m)
{
    return linear((double)m->hidden, m->moe.experts, m->linear_bias);
}

static int like_layer(const struct transformer *model, int layer)
{
    return layer < model->layers || !model->mtp_layers ? layer : model->layers - 1;
}

void layer_pattern_shorten(char *pattern)
{
    size_t n = strlen(pattern);
    for (size_t period = 1; period < n; period++) {
        size_t same = period;
        while (n % period == 0 && same < n && pattern[same] == pattern[same - period])
            same++;
        if (same == n) {
            pattern[period] = '\0';
            return;
        }
    }
}

/* 'a' where there is no pattern. */
static char letter_of(const struct transformer *model, int layer)
{
    size_t period = strlen(model->layer_pattern);
    return period > 0 ? model->layer_pattern[(size_t)layer % period] : 'a';
}

/* Of the layers with a feed-forward part by `moe`. */
static bool feeds_experts(const struct transformer *model, int layer)
{
    int after = layer - model->moe.first_dense_layers;
    int every = model->moe.every > 1 ? model->moe.every : 1;
    return model->moe.experts > 0 && after >= 0 && (after + 1) % every == 0;
}

bool layer_is_mixture(const struct transformer *model, int layer)
{
    return layer_kind_of(model, layer).feed == FEEDS_EXPERTS;
}

struct layer_kind layer_kind_of(const struct transformer *model, int layer)
{
    int like = like_layer(model, layer);
    struct layer_kind kind = {.windowed = layer_is_windowed(model, layer)};
    switch (letter_of(model, like)) {
    case '-': return (struct layer_kind){.feed = FEEDS_DENSE};
    case 'E': return (struct layer_kind){.feed = FEEDS_EXPERTS};
    case 'M': return (struct layer_kind){.mixers = MIXES_BY_STATE};
    case '*': kind.mixers = MIXES_BY_ATTENTION; return kind;
    case 'm': kind.mixers = MIXES_BY_STATE, kind.windowed = false; break;
    case 'p': kind.mixers = MIXES_BY_BOTH; break;
    default: kind.mixers = MIXES_BY_ATTENTION; break;
    }
    kind.feed = feeds_experts(model, like) ? FEEDS_EXPERTS : FEEDS_DENSE;
    return kind;
}

int layer_kind_index(struct layer_kind kind)
{
    return ((int)kind.mixers * 3 + (int)kind.feed) * 2 + kind.windowed;
}

bool layer_is_windowed(const struct transformer *model, int layer)
{
    if (model->window <= 0)
        return false;
    return model->window_every <= 0 || (like_layer(model, layer) + 1) % model->window_every != 0;
}

struct layer_kind layer_kind_at(int index)
{
    return (struct layer_kind){
        .mixers = (enum layer_mixers)(index / 6), .feed = (enum layer_feed)(index / 2 % 3), .windowed = index % 2};
}

struct layer_kinds layer_kinds_of(const struct transformer *model, int first, int count)
{
    struct layer_kinds kinds = {0};
    for (int layer = first; layer < first + count; layer++) {
        int kind = layer_kind_index(layer_kind_of(model, layer));
        kinds.count[kind]++;
        kinds.one[kind] = layer;
    }
    return kinds;
}

static double mixers_parameters(const struct transformer *model, enum layer_mixers mixers)
{
    return (mixers & MIXES_BY_ATTENTION ? attention_parameters(model) : 0) +
           (mixers & MIXES_BY_STATE ? mixer_parameters(model) : 0);
}

double transformer_layer_parameters(const struct transformer *model, int layer, bool experts)
{
    struct layer_kind kind = layer_kind_of(model, layer);
    double norms = layer_kind_parts(kind) * norm_parameters(model, (double)model->hidden);
    double common = mixers_parameters(model, kind.mixers) + norms;
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
    double h = (double)m->hidden, output_bias = m->linear_bias ? h : 0;
    bool bias = m->qkv_bias || m->linear_bias, latent = m->attention == ATTENTION_LATENT;
    double head = latent ? l->qk_nope_dim + l->qk_rope_dim : m->head_dim;
    double norms = m->qk_norm ? 2 * norm_parameters(m, head) : 0;
    if (!latent)
        return norms + output_bias;
    double query = l->q_lora_rank ? linear(h, l->q_lora_rank, bias) + norm_parameters(m, l->q_lora_rank) : 0;
    return query + linear(h, l->kv_lora_rank + l->qk_rope_dim, bias) + norm_parameters(m, l->kv_lora_rank) + norms + output_bias;
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
    return layer_kind_parts(kind) * norm_parameters(model, (double)model->hidden) +
           (kind.mixers & MIXES_BY_ATTENTION ? attention_undivided(model) : 0) +
           (kind.mixers & MIXES_BY_STATE ? mixer_undivided(model) : 0) + feed_undivided(model, kind.feed, experts);
}

double transformer_key_value_head(const struct transformer *model, int layer)
{
    bool grouped = model->attention != ATTENTION_LATENT && layer_kind_of(model, layer).mixers & MIXES_BY_ATTENTION;
    return grouped ? 2 * linear((double)model->hidden, model->head_dim, model->qkv_bias || model->linear_bias) : 0;
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

/* How many layers have which parts. */
struct part_count {
    int attention, state, dense, mixtures, norms;
};

static struct part_count parts_of(const struct transformer *model)
{
    struct part_count n = {0};
    for (int layer = 0; layer < model->layers; layer++) {
        struct layer_kind kind = layer_kind_of(model, layer);
        n.attention += (kind.mixers & MIXES_BY_ATTENTION) != 0;
        n.state += (kind.mixers & MIXES_BY_STATE) != 0;
        n.dense += kind.feed == FEEDS_DENSE;
        n.mixtures += kind.feed == FEEDS_EXPERTS;
        n.norms += layer_kind_parts(kind);
    }
    return n;
}

void transformer_parameters(const struct transformer *model, struct parameter_count *count)
{
    double h = (double)model->hidden;
    struct parameter_count c = {0};
    struct part_count n = parts_of(model);
    c.embedding = ((double)model->vocab + (double)transformer_position_rows(model)) * h;
    c.head = model->tied_embeddings ? 0 : (double)model->vocab * h;
    c.attention = n.attention * attention_parameters(model);
    c.mixers = n.state > 0 ? n.state * mixer_parameters(model) : 0;
    c.dense_ffn = n.dense * ffn_parameters(model, (double)model->ffn_hidden);
    c.norms = (n.norms + 1.0) * norm_parameters(model, h);
    double one_expert = 0;
    if (n.mixtures) {
        one_expert = ffn_parameters(model, (double)model->moe.expert_ffn);
        c.dense_ffn += n.mixtures * shared_ffn_parameters(model);
        c.experts = n.mixtures * model->moe.experts * one_expert;
        c.router = n.mixtures * router_parameters(model);
    }
    c.mtp = mtp_parameters(model);
    c.total = c.embedding + c.head + c.attention + c.mixers + c.dense_ffn + c.experts + c.router + c.norms;
    c.active = c.total - c.experts + n.mixtures * model->moe.top_k * one_expert;
    *count = c;
}

size_t model_name_length(const char *name)
{
    size_t n = strlen(name), end = sizeof MODEL_CHANGED - 1;
    return n > end && strcmp(name + n - end, MODEL_CHANGED) == 0 ? n - end : n;
}
