/* parameters.c - the sizes of a rank, and the parameters of its units. */
#include "runtime/base/parameters.h"

#include <stdlib.h>

#include "model/base/memory.h"

/* --- parameters of a unit */

static struct parameter *add(struct unit *unit, enum parameter_kind kind, int64_t rows, int64_t cols)
{
    struct parameter *p = &unit->parameters[unit->n_parameters++];
    *p = (struct parameter){.kind = kind, .layer = unit->layer, .rows = rows, .cols = cols, .offset = unit->elements};
    p->n_pieces = 1;
    p->pieces[0].count = rows;
    p->pieces[0].counted = true;
    p->block = rows;
    unit->elements += rows * cols;
    return p;
}

/* A vector that every tensor-parallel rank holds. Where the sequence is sharded each rank sees some of the tokens only. */
static void add_replicated(struct unit *unit, const struct shape *s, enum parameter_kind kind)
{
    struct parameter *p = add(unit, kind, 1, s->hidden);
    p->partial = s->sequence_parallel;
    p->pieces[0].counted = s->tp_rank == 0;
}

/* A parameter that every tensor-parallel rank holds, with a partial gradient: of its own heads or tokens. */
static void add_shared(struct unit *unit, const struct shape *s, enum parameter_kind kind, int64_t rows, int64_t cols)
{
    struct parameter *p = add(unit, kind, rows, cols);
    p->partial = s->tp > 1;
    p->pieces[0].counted = s->tp_rank == 0;
}

static void add_shared_norm(struct unit *unit, const struct shape *s, enum parameter_kind gain, int64_t width)
{
    add_shared(unit, s, gain, 1, width);
    if (!s->rms)
        add_shared(unit, s, gain + 1, 1, width);
}

static void add_norm(struct unit *unit, const struct shape *s, enum parameter_kind gain)
{
    add_replicated(unit, s, gain);
    if (!s->rms)
        add_replicated(unit, s, gain + 1);
}

/* Rows [first, first + rows) of the whole. */
static void add_rows(struct unit *unit, enum parameter_kind kind, int64_t first, int64_t rows, int64_t cols)
{
    add(unit, kind, rows, cols)->pieces[0].whole = first;
}

/* Queries, keys, values of this rank's heads. Key/value heads that several ranks share have a part of their gradient on each. */
static void add_qkv(struct unit *unit, const struct shape *s, enum parameter_kind kind, int64_t cols)
{
    struct parameter *p = add(unit, kind, s->qkv_width, cols);
    int64_t d = s->head_dim, kv_rows = s->kv_heads * d;
    int64_t kv_first = (int64_t)s->tp_rank * s->model_kv_heads / s->tp * d, queries = s->model_heads * d;
    int sharers = s->model_kv_heads < s->tp ? s->tp / s->model_kv_heads : 1;
    p->n_pieces = 3;
    for (int i = 0; i < 3; i++) {
        p->pieces[i].local = i == 0 ? 0 : s->query_width + (i - 1) * kv_rows;
        p->pieces[i].whole = i == 0 ? s->tp_rank * s->query_width : queries + (i - 1) * s->model_kv_heads * d + kv_first;
        p->pieces[i].count = i == 0 ? s->query_width : kv_rows;
        p->pieces[i].counted = i == 0 || s->tp_rank % sharers == 0;
    }
    p->partial = s->model_kv_heads < s->tp;
}

/* Rows of the first product of a feed-forward part that is `whole` wide in the model and `width` on this one of its tp ranks. */
static void add_up(struct unit *unit, const struct shape *s, enum parameter_kind kind, int64_t cols, int64_t width, int64_t whole)
{
    struct parameter *p = add(unit, kind, s->gated ? 2 * width : width, cols);
    p->n_pieces = s->gated ? 2 : 1;
    for (int i = 0; i < p->n_pieces; i++) {
        p->pieces[i].local = i * width;
        p->pieces[i].whole = i * whole + s->tp_rank * width;
        p->pieces[i].count = width;
        p->pieces[i].counted = true;
    }
}

static void add_columns(struct unit *unit, enum parameter_kind kind, int64_t rows, int64_t first, int64_t cols)
{
    add(unit, kind, rows, cols)->first_col = first;
}

static void add_attention(struct unit *u, const struct shape *s)
{
    add_qkv(u, s, PARAMETER_QKV, s->hidden);
    if (s->qkv_bias)
        add_qkv(u, s, PARAMETER_QKV_BIAS, 1);
}

/* Every rank has all of a down-projection, and the rows of its heads of an up-projection. */
static void add_latent_down(struct unit *u, const struct shape *s, enum parameter_kind kind, int64_t rows)
{
    add_shared(u, s, kind, rows, s->hidden);
    if (s->qkv_bias)
        add_shared(u, s, kind + 1, rows, 1);
}

static void add_latent_up(struct unit *u, const struct shape *s, enum parameter_kind kind, int64_t rows, int64_t cols)
{
    add_rows(u, kind, s->tp_rank * rows, rows, cols);
    if (s->qkv_bias)
        add_rows(u, kind + 1, s->tp_rank * rows, rows, 1);
}

static void add_latent_attention(struct unit *u, const struct shape *s)
{
    const struct latent_shape *l = &s->latent;
    if (l->q_rank) {
        add_latent_down(u, s, PARAMETER_Q_DOWN, l->q_rank);
        add_shared_norm(u, s, PARAMETER_Q_LATENT_GAIN, l->q_rank);
    }
    add_latent_up(u, s, PARAMETER_Q_UP, s->query_width, l->q_rank ? l->q_rank : s->hidden);
    add_latent_down(u, s, PARAMETER_KV_DOWN, l->kv_rank + l->rope);
    add_shared_norm(u, s, PARAMETER_KV_LATENT_GAIN, l->kv_rank);
    add_latent_up(u, s, PARAMETER_KV_UP, s->heads * (l->nope + l->value), l->kv_rank);
}

/* Two products, `width` between them on this rank. `up` is the first of four kinds: up, its bias, down, its bias. */
static void add_mlp(struct unit *u, const struct shape *s, enum parameter_kind up, int64_t width, int64_t whole)
{
    const enum parameter_kind down = up + 2;
    add_up(u, s, up, s->hidden, width, whole);
    if (s->linear_bias)
        add_up(u, s, up + 1, 1, width, whole);
    add_columns(u, down, s->hidden, s->tp_rank * width, width);
    if (s->linear_bias)
        add_replicated(u, s, down + 1);
}

/* The router sees this rank's tokens only, so its gradient is partial. */
static void add_mixture(struct unit *u, const struct shape *s)
{
    const struct mixture_shape *moe = &s->moe;
    add_shared(u, s, PARAMETER_ROUTER, moe->experts, s->hidden);
    if (s->linear_bias)
        add_shared(u, s, PARAMETER_ROUTER_BIAS, 1, moe->experts);
    if (moe->shared)
        add_mlp(u, s, PARAMETER_SHARED_UP, moe->shared, moe->model_shared);
}

/* Rows of stripes, each divided among the tensor-parallel ranks. */
static void add_stripes(struct unit *u, const struct shape *s, enum parameter_kind kind, int n, int64_t cols)
{
    struct parameter *p = add(u, kind, 0, cols);
    p->n_pieces = 0;
    for (int i = 0; i < n; i++) {
        int64_t width = s->mixer.stripes[i];
        if (!width)
            continue;
        p->pieces[p->n_pieces].local = p->rows;
        p->pieces[p->n_pieces].whole = p->rows * s->tp + s->tp_rank * width;
        p->pieces[p->n_pieces].count = width;
        p->pieces[p->n_pieces++].counted = true;
        p->rows += width;
    }
    p->block = p->rows;
    u->elements += p->rows * cols;
}

/* Of this rank's heads, `width` numbers each. */
static void add_of_heads(struct unit *u, const struct shape *s, enum parameter_kind kind, int64_t width)
{
    int64_t n = s->mixer.heads * width;
    add_rows(u, kind, s->tp_rank * n, n, 1);
}

static void add_mixer_vectors(struct unit *u, const struct shape *s)
{
    const struct mixer_shape *m = &s->mixer;
    if (m->taps)
        add_stripes(u, s, PARAMETER_MIXER_CONV, N_CONVOLVED_STRIPES, m->taps);
    if (m->taps && m->form->conv_bias)
        add_stripes(u, s, PARAMETER_MIXER_CONV_BIAS, N_CONVOLVED_STRIPES, 1);
    if (m->form->decay != DECAY_CONSTANT) {
        add_of_heads(u, s, PARAMETER_MIXER_RATES, 1);
        add_of_heads(u, s, PARAMETER_MIXER_STEP_BIAS, m->rows);
    }
    if (m->form->skips)
        add_of_heads(u, s, PARAMETER_MIXER_SKIP, 1);
    if (m->norm && m->form->gain_shared)
        add_shared(u, s, PARAMETER_MIXER_GAIN, 1, m->head_dim);
    else if (m->norm)
        add_of_heads(u, s, PARAMETER_MIXER_GAIN, m->head_dim);
}

static void add_mixer(struct unit *u, const struct shape *s)
{
    const struct mixer_shape *m = &s->mixer;
    add_stripes(u, s, PARAMETER_MIXER_IN, N_MIXER_STRIPES, s->hidden);
    if (s->linear_bias)
        add_stripes(u, s, PARAMETER_MIXER_IN_BIAS, N_MIXER_STRIPES, 1);
    if (m->rank) {
        add_shared(u, s, PARAMETER_MIXER_DOWN, 2 * m->rank, s->hidden);
        int64_t decays = (int64_t)m->heads * m->rows;
        add_rows(u, PARAMETER_MIXER_DECAYS_UP, s->tp_rank * decays, decays, m->rank);
        add_rows(u, PARAMETER_MIXER_GATE_UP, s->tp_rank * m->values, m->values, m->rank);
    }
    add_mixer_vectors(u, s);
    add_columns(u, PARAMETER_MIXER_OUT, s->hidden, s->tp_rank * m->values, m->values);
    if (s->linear_bias)
        add_replicated(u, s, PARAMETER_MIXER_OUT_BIAS);
}

static void add_attention_part(struct unit *u, const struct shape *s)
{
    if (s->latent.used)
        add_latent_attention(u, s);
    else
        add_attention(u, s);
    if (s->qk_norm) {
        add_shared_norm(u, s, PARAMETER_Q_GAIN, s->head_dim);
        add_shared_norm(u, s, PARAMETER_K_GAIN, s->head_dim);
    }
    add_columns(u, PARAMETER_PROJECTION, s->hidden, s->tp_rank * s->context_width, s->context_width);
    if (s->linear_bias)
        add_replicated(u, s, PARAMETER_PROJECTION_BIAS);
}

static struct unit layer_unit(const struct shape *s, int layer, struct layer_kind kind)
{
    struct unit u = {.layer = layer, .copies = s->copies, .is_mixture = kind.feed == FEEDS_EXPERTS};
    bool parallel = s->parallel_block && kind.feed == FEEDS_DENSE && kind.mixers != MIXES_NOT;
    if (kind.mixers != MIXES_NOT)
        add_norm(&u, s, PARAMETER_NORM1_GAIN);
    if (kind.mixers & MIXES_BY_ATTENTION)
        add_attention_part(&u, s);
    if (kind.mixers & MIXES_BY_STATE)
        add_mixer(&u, s);
    if (kind.feed != FEEDS_NOT && !parallel)
        add_norm(&u, s, PARAMETER_NORM2_GAIN);
    if (kind.feed == FEEDS_EXPERTS)
        add_mixture(&u, s);
    else if (kind.feed == FEEDS_DENSE)
        add_mlp(&u, s, PARAMETER_UP, s->ffn, s->model_ffn);
    return u;
}

/* Norms of the state and of the embedding, the product that joins them (column-parallel), the norm before the output matrix. */
static void add_prediction(struct unit *u, const struct shape *s)
{
    int64_t rows = s->hidden / s->tp;
    u->is_head = true;
    add_norm(u, s, PARAMETER_PREDICTION_EMBEDDING_GAIN);
    add_norm(u, s, PARAMETER_PREDICTION_STATE_GAIN);
    add_rows(u, PARAMETER_PREDICTION_PROJECTION, s->tp_rank * rows, rows, 2 * s->hidden);
    add_norm(u, s, PARAMETER_PREDICTION_FINAL_GAIN);
}

/* All experts of this rank, one below the other: a parameter that was added for one becomes that of all. */
static void repeat_for_experts(struct unit *u, const struct shape *s, int64_t whole_block)
{
    struct parameter *p = &u->parameters[u->n_parameters - 1];
    p->block = p->rows;
    p->whole_block = whole_block;
    p->first_block = s->moe.first;
    p->rows *= s->moe.local;
    u->elements += (p->rows - p->block) * p->cols;
}

static struct unit experts_unit(const struct shape *s, int layer)
{
    const struct mixture_shape *moe = &s->moe;
    struct unit u = {.layer = layer, .copies = moe->copies, .is_experts = true};
    struct shape split = *s; /* as an expert is divided */
    if (moe->tp == 1)
        split.tp_rank = 0;
    int64_t up = s->gated ? 2 * moe->model_ffn : moe->model_ffn;
    add_up(&u, &split, PARAMETER_EXPERT_UP, s->hidden, moe->ffn, moe->model_ffn);
    repeat_for_experts(&u, s, up);
    add_columns(&u, PARAMETER_EXPERT_DOWN, s->hidden, split.tp_rank * moe->ffn, moe->ffn);
    repeat_for_experts(&u, s, s->hidden);
    if (!s->linear_bias)
        return u;
    add_up(&u, &split, PARAMETER_EXPERT_UP_BIAS, 1, moe->ffn, moe->model_ffn);
    repeat_for_experts(&u, s, up);
    add(&u, PARAMETER_EXPERT_DOWN_BIAS, s->hidden, 1)->pieces[0].counted = split.tp_rank == 0;
    repeat_for_experts(&u, s, s->hidden);
    return u;
}

static struct unit *add_unit(struct stage_units *units, struct unit unit, int *index)
{
    unit.slice = (unit.elements + unit.copies.n - 1) / unit.copies.n;
    unit.slice = (unit.slice + 7) / 8 * 8; /* slices begin at multiples of 16 bytes */
    unit.elements = unit.slice * unit.copies.n;
    if (index)
        *index = units->n_items;
    units->items[units->n_items] = unit;
    return &units->items[units->n_items++];
}

static struct unit end_unit(const struct shape *s)
{
    return (struct unit){.layer = -1, .copies = s->copies};
}

static void add_embedding_units(struct stage_units *units, const struct shape *s, const struct stage_content *content)
{
    if (content->embedding || content->holds_table) {
        struct unit u = end_unit(s);
        u.is_table = true;
        u.elsewhere = !content->embedding;
        add_rows(&u, PARAMETER_TABLE, s->vocab_first, s->vocab_count, s->hidden);
        add_unit(units, u, &units->table);
    }
    if (content->embedding && s->learned_positions) {
        struct unit u = end_unit(s);
        add(&u, PARAMETER_POSITIONS, s->max_positions, s->hidden)->pieces[0].counted = s->tp_rank == 0;
        add_unit(units, u, &units->positions);
    }
}

static void add_head_units(struct stage_units *units, const struct shape *s)
{
    struct unit norm = end_unit(s), matrix = end_unit(s);
    norm.is_head = matrix.is_head = true;
    add_norm(&norm, s, PARAMETER_FINAL_GAIN);
    add_unit(units, norm, &units->final_norm);
    if (s->tied)
        return;
    add_rows(&matrix, PARAMETER_HEAD, s->vocab_first, s->vocab_count, s->hidden);
    add_unit(units, matrix, &units->head);
}

void stage_units_build(const struct shape *s, const struct transformer *model, struct stage_content content,
                       struct stage_units *units)
{
    int first = content.range.first, count = content.range.count + (content.head ? s->predictions : 0);
    *units = (struct stage_units){.table = -1, .positions = -1, .first_layer = 0, .final_norm = -1, .head = -1};
    units->items = memory_new(2 * (size_t)count + STAGE_ENDS_MAX, sizeof *units->items);
    units->experts = memory_new((size_t)count, sizeof *units->experts);
    units->n_layers = count;
    add_embedding_units(units, s, &content);
    units->first_layer = units->n_items;
    for (int i = 0; i < count; i++) {
        struct unit u = layer_unit(s, first + i, layer_kind_of(model, first + i));
        if (i >= content.range.count)
            add_prediction(&u, s);
        add_unit(units, u, NULL);
    }
    if (content.head)
        add_head_units(units, s);
    for (int i = 0; i < count; i++) {
        units->experts[i] = -1;
        if (!layer_is_mixture(model, first + i))
            continue;
        struct unit u = experts_unit(s, first + i);
        u.is_head = i >= content.range.count;
        add_unit(units, u, &units->experts[i]);
    }
}

void stage_units_free(struct stage_units *units)
{
    free(units->items);
    free(units->experts);
    *units = (struct stage_units){0};
}
