/* model_map.c - the place of each parameter in the whole model, its name and its initial values. */
#include <math.h>
#include <stdio.h>

#include "model/base/random.h"
#include "runtime/base/parameters.h"

static bool is_of_layer(enum parameter_kind kind)
{
    return kind >= PARAMETER_NORM1_GAIN && kind <= PARAMETER_PREDICTION_FINAL_BIAS;
}

struct matrix_size {
    int64_t rows, cols;
};

static int64_t up_width(const struct transformer *m, int64_t ffn)
{
    return m->gated_mlp ? 2 * ffn : ffn;
}

static int64_t qk_dim(const struct transformer *m)
{
    return m->attention == ATTENTION_LATENT ? m->latent.qk_nope_dim + m->latent.qk_rope_dim : m->head_dim;
}

static struct matrix_size latent_size(const struct transformer *m, enum parameter_kind kind)
{
    const struct latent_attention *l = &m->latent;
    int64_t h = m->hidden, a = m->heads, query = a * qk_dim(m), down = l->kv_lora_rank + l->qk_rope_dim;
    int64_t up = a * (l->qk_nope_dim + l->v_dim);
    switch (kind) {
    case PARAMETER_Q_DOWN: return (struct matrix_size){l->q_lora_rank, h};
    case PARAMETER_Q_DOWN_BIAS: return (struct matrix_size){l->q_lora_rank, 1};
    case PARAMETER_Q_LATENT_GAIN:
    case PARAMETER_Q_LATENT_BIAS: return (struct matrix_size){1, l->q_lora_rank};
    case PARAMETER_Q_UP: return (struct matrix_size){query, l->q_lora_rank ? l->q_lora_rank : h};
    case PARAMETER_Q_UP_BIAS: return (struct matrix_size){query, 1};
    case PARAMETER_KV_DOWN: return (struct matrix_size){down, h};
    case PARAMETER_KV_DOWN_BIAS: return (struct matrix_size){down, 1};
    case PARAMETER_KV_LATENT_GAIN:
    case PARAMETER_KV_LATENT_BIAS: return (struct matrix_size){1, l->kv_lora_rank};
    case PARAMETER_KV_UP: return (struct matrix_size){up, l->kv_lora_rank};
    default: return (struct matrix_size){up, 1}; /* PARAMETER_KV_UP_BIAS */
    }
}

static struct matrix_size mixture_size(const struct transformer *m, enum parameter_kind kind)
{
    const struct mixture *moe = &m->moe;
    int64_t h = m->hidden, n = moe->experts, f = moe->expert_ffn;
    int64_t shared = !n ? 0 : moe->shared_ffn ? moe->shared_ffn : moe->shared_experts * f;
    switch (kind) {
    case PARAMETER_ROUTER: return (struct matrix_size){n, h};
    case PARAMETER_ROUTER_BIAS: return (struct matrix_size){1, n};
    case PARAMETER_SHARED_UP: return (struct matrix_size){up_width(m, shared), h};
    case PARAMETER_SHARED_UP_BIAS: return (struct matrix_size){up_width(m, shared), 1};
    case PARAMETER_SHARED_DOWN: return (struct matrix_size){h, shared};
    case PARAMETER_SHARED_DOWN_BIAS: return (struct matrix_size){shared > 0, h};
    case PARAMETER_EXPERT_UP: return (struct matrix_size){n * up_width(m, f), h};
    case PARAMETER_EXPERT_UP_BIAS: return (struct matrix_size){n * up_width(m, f), 1};
    case PARAMETER_EXPERT_DOWN: return (struct matrix_size){n * h, f};
    default: return (struct matrix_size){n * h, 1}; /* PARAMETER_EXPERT_DOWN_BIAS */
    }
}

/* Without rows where the model has none, or none such. */
static struct matrix_size mixer_size(const struct transformer *m, enum parameter_kind kind)
{
    const struct mixer_shape s = mixer_shape_of(m, 1);
    const int64_t h = m->hidden, decays = (int64_t)s.heads * s.rows;
    if (!s.form)
        return (struct matrix_size){0, 1};
    switch (kind) {
    case PARAMETER_MIXER_IN: return (struct matrix_size){s.in, h};
    case PARAMETER_MIXER_IN_BIAS: return (struct matrix_size){s.in, 1};
    case PARAMETER_MIXER_DOWN: return (struct matrix_size){2 * s.rank, h};
    case PARAMETER_MIXER_DECAYS_UP: return (struct matrix_size){decays, s.rank};
    case PARAMETER_MIXER_GATE_UP: return (struct matrix_size){s.values, s.rank};
    case PARAMETER_MIXER_CONV: return (struct matrix_size){s.convolved, s.taps};
    case PARAMETER_MIXER_CONV_BIAS: return (struct matrix_size){s.convolved, 1};
    case PARAMETER_MIXER_RATES:
    case PARAMETER_MIXER_SKIP: return (struct matrix_size){s.heads, 1};
    case PARAMETER_MIXER_STEP_BIAS: return (struct matrix_size){decays, 1};
    case PARAMETER_MIXER_GAIN: return (struct matrix_size){s.form->gain_shared ? s.head_dim : s.values, 1};
    case PARAMETER_MIXER_OUT: return (struct matrix_size){h, s.values};
    default: return (struct matrix_size){1, h}; /* PARAMETER_MIXER_OUT_BIAS */
    }
}

/* Beside the layer of a prediction module. */
static struct matrix_size prediction_size(const struct transformer *m, enum parameter_kind kind)
{
    int64_t h = m->hidden;
    if (!m->mtp_layers)
        return (struct matrix_size){0, h};
    return kind == PARAMETER_PREDICTION_PROJECTION ? (struct matrix_size){h, 2 * h} : (struct matrix_size){1, h};
}

/* Of the whole model; of something that a model does not have, any. */
static struct matrix_size whole_size(const struct transformer *m, enum parameter_kind kind)
{
    int64_t h = m->hidden, qkv = (int64_t)(m->heads + 2 * m->kv_heads) * m->head_dim, up = up_width(m, m->ffn_hidden);
    bool latent = m->attention == ATTENTION_LATENT;
    if (kind >= PARAMETER_Q_DOWN && kind <= PARAMETER_KV_UP_BIAS)
        return latent_size(m, kind);
    if (kind >= PARAMETER_MIXER_IN && kind <= PARAMETER_MIXER_OUT_BIAS)
        return mixer_size(m, kind);
    if (kind >= PARAMETER_ROUTER && kind <= PARAMETER_EXPERT_DOWN_BIAS)
        return mixture_size(m, kind);
    if (kind >= PARAMETER_PREDICTION_EMBEDDING_GAIN && kind <= PARAMETER_PREDICTION_FINAL_BIAS)
        return prediction_size(m, kind);
    switch (kind) {
    case PARAMETER_TABLE:
    case PARAMETER_HEAD: return (struct matrix_size){m->vocab, h};
    case PARAMETER_POSITIONS: return (struct matrix_size){m->max_seq_len + m->position_offset, h};
    case PARAMETER_QKV: return (struct matrix_size){qkv, h};
    case PARAMETER_QKV_BIAS: return (struct matrix_size){qkv, 1};
    case PARAMETER_Q_GAIN:
    case PARAMETER_Q_BIAS:
    case PARAMETER_K_GAIN:
    case PARAMETER_K_BIAS: return (struct matrix_size){1, qk_dim(m)};
    case PARAMETER_PROJECTION: return (struct matrix_size){h, (int64_t)m->heads * (latent ? m->latent.v_dim : m->head_dim)};
    case PARAMETER_UP: return (struct matrix_size){up, h};
    case PARAMETER_UP_BIAS: return (struct matrix_size){up, 1};
    case PARAMETER_DOWN: return (struct matrix_size){h, m->ffn_hidden};
    default: return (struct matrix_size){1, h};
    }
}

struct model_map model_map_of(const struct setting *setting)
{
    struct model_map map = {.layers = setting->model->layers + setting->model->mtp_layers, .depth = setting->model->layers};
    for (int kind = 0; kind < N_PARAMETER_KINDS; kind++) {
        struct matrix_size size = whole_size(setting->model, (enum parameter_kind)kind);
        map.rows[kind] = size.rows;
        map.cols[kind] = size.cols;
        if (!is_of_layer((enum parameter_kind)kind))
            continue;
        map.offsets_first[kind] = map.layer_stride;
        map.layer_stride += map.rows[kind] * map.cols[kind];
    }
    map.total = map.layer_stride * map.layers;
    for (int kind = 0; kind < N_PARAMETER_KINDS; kind++) {
        if (is_of_layer((enum parameter_kind)kind))
            continue;
        map.offsets_first[kind] = map.total;
        map.total += map.rows[kind] * map.cols[kind];
    }
    return map;
}

int64_t model_map_index(const struct model_map *map, const struct parameter *p, int64_t i)
{
    int64_t block = i / p->cols / p->block, row = i / p->cols % p->block, col = i % p->cols;
    int piece = 0;
    while (piece + 1 < p->n_pieces && row >= p->pieces[piece].local + p->pieces[piece].count)
        piece++;
    int64_t whole_row = (p->first_block + block) * p->whole_block + p->pieces[piece].whole + row - p->pieces[piece].local;
    int64_t base = map->offsets_first[p->kind] + (p->layer >= 0 ? p->layer * map->layer_stride : 0);
    return base + whole_row * map->cols[p->kind] + p->first_col + col;
}

static const char *kind_name(enum parameter_kind kind)
{
    static const char *const names[N_PARAMETER_KINDS] = {
#define X(ID, name, begins) name,
        PARAMETER_KINDS(X)
#undef X
    };
    return names[kind];
}

struct model_tensor model_map_tensor(const struct model_map *map, int64_t index)
{
    struct model_tensor tensor = {.begin = index, .end = index + 1, .name = "nothing"};
    const bool inside = index < map->layer_stride * map->layers;
    const int64_t layer = inside ? index / map->layer_stride : 0;
    for (int kind = 0; kind < N_PARAMETER_KINDS; kind++) {
        int64_t first = map->offsets_first[kind] + layer * map->layer_stride, end = first + map->rows[kind] * map->cols[kind];
        if (is_of_layer((enum parameter_kind)kind) != inside || index < first || index >= end)
            continue;
        tensor.begin = first;
        tensor.end = end;
        const char *name = kind_name((enum parameter_kind)kind);
        if (inside)
            snprintf(tensor.name, sizeof tensor.name, "layer %lld %s", (long long)layer, name);
        else
            snprintf(tensor.name, sizeof tensor.name, "%s", name);
        break;
    }
    return tensor;
}

enum beginning { WEIGHT, BRANCH, FILTER, STEP, RATE, ONE, ZERO };

/* The number whose softplus is a step from 0.001 to 0.1, with a uniform logarithm (mamba_ssm, Mamba2; flash-linear-attention). */
static float initial_step(double uniform)
{
    double step = 0.001 * pow(100, uniform);
    return (float)(step + log(-expm1(-step)));
}

/* Uniform around 0 with this deviation. */
static float initial_weight(double uniform, double deviation)
{
    return (float)((2 * uniform - 1) * deviation * sqrt(3.0));
}

float parameter_initial(const struct model_map *map, enum parameter_kind kind, int64_t index, uint64_t seed)
{
    static const enum beginning beginnings[N_PARAMETER_KINDS] = {
#define X(ID, name, begins) begins,
        PARAMETER_KINDS(X)
#undef X
    };
    if (beginnings[kind] == ONE || beginnings[kind] == ZERO)
        return beginnings[kind] == ONE ? 1 : 0;
    struct random_stream stream = random_stream_named(seed, UINT64_C(0x77656967687473), (uint64_t)index);
    double uniform = random_uniform(&stream);
    switch (beginnings[kind]) {
    case BRANCH: return initial_weight(uniform, 0.02 / sqrt(2.0 * map->depth));
    case FILTER: return initial_weight(uniform, 1 / sqrt(3.0 * (double)map->cols[kind]));
    case STEP: return initial_step(uniform);
    case RATE: return (float)log(1 + 15 * uniform);
    default: return initial_weight(uniform, 0.02);
    }
}
