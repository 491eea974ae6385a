#include "runtime/parameters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/random.h"

struct shape shape_of(const struct layout *layout, const struct setting *setting, int rank)
{
    const struct transformer *m = setting->model;
    struct coordinates at = layout_coordinates(layout, rank);
    int tp = layout->tp;
    struct shape s = {
        .tp = tp,
        .tp_rank = at.tp,
        .shards = layout->dp * layout->cp,
        .shard = at.dp * layout->cp + at.cp,
        .sequence_parallel = layout->sequence_parallel && tp > 1,
        .parallel_block = layout->features & FEATURE_BIT(PARALLEL_BLOCK),
        .rms = m->norm == NORM_RMS,
        .gated = m->gated_mlp,
        .tied = m->tied_embeddings,
        .rotary = m->position == POSITION_ROTARY,
        .learned_positions = m->position == POSITION_LEARNED,
        .linear_bias = m->linear_bias,
        .qkv_bias = m->linear_bias || m->qkv_bias,
        .layers = m->layers,
        .hidden = m->hidden,
        .seq_len = setting->job->seq_len,
        .micro_batch = layout->micro_batch,
        .heads = m->heads / tp,
        .kv_heads = m->kv_heads >= tp ? m->kv_heads / tp : 1,
        .head_dim = m->head_dim,
        .ffn = m->ffn_hidden / tp,
        .vocab = m->vocab,
        .max_positions = m->max_seq_len,
        .model_heads = m->heads,
        .model_kv_heads = m->kv_heads,
        .model_ffn = m->ffn_hidden,
    };
    s.tokens = s.micro_batch * s.seq_len;
    s.local_tokens = s.sequence_parallel ? s.tokens / tp : s.tokens;
    s.query_width = (int64_t)s.heads * s.head_dim;
    s.qkv_width = s.query_width + 2 * (int64_t)s.kv_heads * s.head_dim;
    s.up_width = s.gated ? 2 * s.ffn : s.ffn;
    s.vocab_first = s.vocab * at.tp / tp;
    s.vocab_count = s.vocab * (at.tp + 1) / tp - s.vocab_first;
    return s;
}

/* --- parameters of a unit */

static struct parameter *add(struct unit *unit, enum parameter_kind kind, int64_t rows, int64_t cols)
{
    struct parameter *p = &unit->parameters[unit->n_parameters++];
    *p = (struct parameter){.kind = kind, .layer = unit->layer, .rows = rows, .cols = cols, .offset = unit->elements};
    p->n_pieces = 1;
    p->pieces[0].count = rows;
    p->pieces[0].counted = true;
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

static void add_up(struct unit *unit, const struct shape *s, enum parameter_kind kind, int64_t cols)
{
    struct parameter *p = add(unit, kind, s->up_width, cols);
    p->n_pieces = s->gated ? 2 : 1;
    for (int i = 0; i < p->n_pieces; i++) {
        p->pieces[i].local = i * s->ffn;
        p->pieces[i].whole = i * s->model_ffn + s->tp_rank * s->ffn;
        p->pieces[i].count = s->ffn;
        p->pieces[i].counted = true;
    }
}

static void add_columns(struct unit *unit, enum parameter_kind kind, int64_t rows, int64_t first, int64_t cols)
{
    add(unit, kind, rows, cols)->first_col = first;
}

static struct unit layer_unit(const struct shape *s, int layer)
{
    struct unit u = {.layer = layer};
    add_norm(&u, s, PARAMETER_NORM1_GAIN);
    add_qkv(&u, s, PARAMETER_QKV, s->hidden);
    if (s->qkv_bias)
        add_qkv(&u, s, PARAMETER_QKV_BIAS, 1);
    add_columns(&u, PARAMETER_PROJECTION, s->hidden, s->tp_rank * s->query_width, s->query_width);
    if (s->linear_bias)
        add_replicated(&u, s, PARAMETER_PROJECTION_BIAS);
    if (!s->parallel_block)
        add_norm(&u, s, PARAMETER_NORM2_GAIN);
    add_up(&u, s, PARAMETER_UP, s->hidden);
    if (s->linear_bias)
        add_up(&u, s, PARAMETER_UP_BIAS, 1);
    add_columns(&u, PARAMETER_DOWN, s->hidden, s->tp_rank * s->ffn, s->ffn);
    if (s->linear_bias)
        add_replicated(&u, s, PARAMETER_DOWN_BIAS);
    return u;
}

static struct unit *add_unit(struct stage_units *units, const struct shape *s, struct unit unit, int *index)
{
    unit.slice = (unit.elements + s->shards - 1) / s->shards;
    unit.slice = (unit.slice + 3) / 4 * 4; /* slices begin at multiples of 16 bytes */
    unit.elements = unit.slice * s->shards;
    if (index)
        *index = units->n_items;
    units->items[units->n_items] = unit;
    return &units->items[units->n_items++];
}

void stage_units_build(const struct shape *s, struct layer_range range, bool embedding, bool head, struct stage_units *units)
{
    *units = (struct stage_units){.table = -1, .positions = -1, .first_layer = 0, .final_norm = -1, .head = -1};
    units->items = memory_new((size_t)range.count + STAGE_ENDS_MAX, sizeof *units->items);
    units->n_layers = range.count;
    bool table = embedding || (head && s->tied);
    if (table) {
        struct unit u = {.layer = -1, .is_table = true};
        add_rows(&u, PARAMETER_TABLE, s->vocab_first, s->vocab_count, s->hidden);
        u.parameters[0].pieces[0].counted = embedding;
        add_unit(units, s, u, &units->table);
    }
    if (embedding && s->learned_positions) {
        struct unit u = {.layer = -1};
        add(&u, PARAMETER_POSITIONS, s->max_positions, s->hidden)->pieces[0].counted = s->tp_rank == 0;
        add_unit(units, s, u, &units->positions);
    }
    units->first_layer = units->n_items;
    for (int i = 0; i < range.count; i++)
        add_unit(units, s, layer_unit(s, range.first + i), NULL);
    if (head) {
        struct unit u = {.layer = -1, .is_head = true};
        add_norm(&u, s, PARAMETER_FINAL_GAIN);
        add_unit(units, s, u, &units->final_norm);
    }
    if (head && !s->tied) {
        struct unit u = {.layer = -1, .is_head = true};
        add_rows(&u, PARAMETER_HEAD, s->vocab_first, s->vocab_count, s->hidden);
        add_unit(units, s, u, &units->head);
    }
}

void stage_units_free(struct stage_units *units)
{
    free(units->items);
    *units = (struct stage_units){0};
}

/* --- the whole model */

static bool is_of_layer(enum parameter_kind kind)
{
    return kind >= PARAMETER_NORM1_GAIN && kind <= PARAMETER_DOWN_BIAS;
}

static void whole_size(const struct transformer *m, enum parameter_kind kind, int64_t *rows, int64_t *cols)
{
    int64_t h = m->hidden, qkv = (int64_t)(m->heads + 2 * m->kv_heads) * m->head_dim;
    int64_t up = m->gated_mlp ? 2 * m->ffn_hidden : m->ffn_hidden;
    *rows = 1;
    *cols = h;
    switch (kind) {
    case PARAMETER_TABLE:
    case PARAMETER_HEAD: *rows = m->vocab; break;
    case PARAMETER_POSITIONS: *rows = m->max_seq_len; break;
    case PARAMETER_QKV: *rows = qkv; break;
    case PARAMETER_QKV_BIAS: *rows = qkv, *cols = 1; break;
    case PARAMETER_PROJECTION: *rows = h, *cols = (int64_t)m->heads * m->head_dim; break;
    case PARAMETER_UP: *rows = up; break;
    case PARAMETER_UP_BIAS: *rows = up, *cols = 1; break;
    case PARAMETER_DOWN: *rows = h, *cols = m->ffn_hidden; break;
    default: break;
    }
}

struct model_map model_map_of(const struct setting *setting)
{
    struct model_map map = {.layers = setting->model->layers};
    for (int kind = 0; kind < N_PARAMETER_KINDS; kind++) {
        whole_size(setting->model, (enum parameter_kind)kind, &map.rows[kind], &map.cols[kind]);
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
    int64_t row = i / p->cols, col = i % p->cols;
    int piece = 0;
    while (piece + 1 < p->n_pieces && row >= p->pieces[piece].local + p->pieces[piece].count)
        piece++;
    int64_t whole_row = p->pieces[piece].whole + row - p->pieces[piece].local;
    int64_t base = map->offsets_first[p->kind] + (p->layer >= 0 ? p->layer * map->layer_stride : 0);
    return base + whole_row * map->cols[p->kind] + p->first_col + col;
}

const char *parameter_kind_name(enum parameter_kind kind)
{
    static const char *const names[N_PARAMETER_KINDS] = {
        "token table", "position table",  "norm 1 gain",     "norm 1 bias",     "qkv",           "qkv bias",
        "projection",  "projection bias", "norm 2 gain",     "norm 2 bias",     "mlp up",        "mlp up bias",
        "mlp down",    "mlp down bias",   "final norm gain", "final norm bias", "output matrix",
    };
    return names[kind];
}

char *model_map_name(const struct model_map *map, int64_t index, char *buffer, size_t size)
{
    bool inside = index < map->layer_stride * map->layers;
    int64_t at = inside ? index % map->layer_stride : index;
    for (int kind = 0; kind < N_PARAMETER_KINDS; kind++) {
        int64_t first = map->offsets_first[kind];
        if (is_of_layer((enum parameter_kind)kind) != inside || at < first || at >= first + map->rows[kind] * map->cols[kind])
            continue;
        if (inside)
            snprintf(buffer, size, "layer %lld %s", (long long)(index / map->layer_stride),
                     parameter_kind_name((enum parameter_kind)kind));
        else
            snprintf(buffer, size, "%s", parameter_kind_name((enum parameter_kind)kind));
        return buffer;
    }
    snprintf(buffer, size, "nothing");
    return buffer;
}

float parameter_initial(const struct model_map *map, enum parameter_kind kind, int64_t index, uint64_t seed)
{
    switch (kind) {
    case PARAMETER_NORM1_GAIN:
    case PARAMETER_NORM2_GAIN:
    case PARAMETER_FINAL_GAIN: return 1.0f;
    case PARAMETER_NORM1_BIAS:
    case PARAMETER_NORM2_BIAS:
    case PARAMETER_FINAL_BIAS:
    case PARAMETER_QKV_BIAS:
    case PARAMETER_PROJECTION_BIAS:
    case PARAMETER_UP_BIAS:
    case PARAMETER_DOWN_BIAS: return 0.0f;
    default: break;
    }
    struct random_stream stream = random_stream_named(seed, UINT64_C(0x77656967687473), (uint64_t)index);
    double deviation = 0.02;
    if (kind == PARAMETER_PROJECTION || kind == PARAMETER_DOWN)
        deviation /= sqrt(2.0 * map->layers);
    return (float)((2 * random_uniform(&stream) - 1) * deviation * sqrt(3.0));
}
