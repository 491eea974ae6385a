/*
 * parameters.h - which weights a rank holds, where they lie in its memory, and which part of the whole model each one is.
 *
 * Weights are kept in units: the embedding table, the position table, each layer, the final norm, the output matrix. A unit is
 * one flat buffer, padded so that the ranks of its data-parallel group (dp * cp of them, `shards`) can divide it into equal
 * slices: ZeRO shards are slices of units, gradients are reduced and parameters gathered unit by unit. The embedding table is a
 * unit of its own because two stages may hold it and must divide it alike.
 *
 * A tensor-parallel rank holds rows of a matrix (column-parallel layers, the vocabulary) or columns (row-parallel layers). Rows
 * may come from several places of the whole matrix: queries, keys and values; gate and up. Each parameter says so in `pieces`,
 * and both the initial values and comparisons with another layout go by the position in the whole model. A weight's initial value
 * depends on the seed and that position alone.
 */
#ifndef MSIM_RUNTIME_PARAMETERS_H
#define MSIM_RUNTIME_PARAMETERS_H

#include "model/layout/layout.h"

enum parameter_kind {
    PARAMETER_TABLE,
    PARAMETER_POSITIONS,
    PARAMETER_NORM1_GAIN,
    PARAMETER_NORM1_BIAS,
    PARAMETER_QKV,
    PARAMETER_QKV_BIAS,
    PARAMETER_PROJECTION,
    PARAMETER_PROJECTION_BIAS,
    PARAMETER_NORM2_GAIN,
    PARAMETER_NORM2_BIAS,
    PARAMETER_UP,
    PARAMETER_UP_BIAS,
    PARAMETER_DOWN,
    PARAMETER_DOWN_BIAS,
    PARAMETER_FINAL_GAIN,
    PARAMETER_FINAL_BIAS,
    PARAMETER_HEAD,
    N_PARAMETER_KINDS
};

/* What one rank of a layout computes with: widths of its matrices, its part of the sequence and of the vocabulary. */
struct shape {
    int tp, tp_rank, shards, shard; /* shards: dp * cp ranks */
    bool sequence_parallel, parallel_block, rms, gated, tied, rotary, learned_positions;
    bool linear_bias, qkv_bias;
    int layers;
    int64_t hidden, seq_len, micro_batch;
    int64_t tokens, local_tokens; /* of a micro-batch; of this rank where the sequence is sharded */
    int heads, kv_heads, head_dim;
    int64_t query_width, qkv_width; /* heads * head_dim; with keys and values */
    int64_t ffn, up_width;          /* ffn, or twice that when gated */
    int64_t vocab, vocab_first, vocab_count;
    int64_t max_positions;
    int model_heads, model_kv_heads;
    int64_t model_ffn;
};
struct shape shape_of(const struct layout *layout, const struct setting *setting, int rank);

enum { PIECES_MAX = 3 };
struct parameter {
    enum parameter_kind kind;
    int layer; /* -1: of no layer */
    int64_t rows, cols, offset;
    struct {
        int64_t local, whole, count;
        bool counted;     /* in the gradient norm: once over the tensor-parallel group and, when tied, over stages */
    } pieces[PIECES_MAX]; /* of rows */
    int n_pieces;
    int64_t first_col; /* of the whole matrix */
    bool partial;      /* each tensor-parallel rank has a part of the gradient: they are added up at the end of the step */
};

enum { UNIT_PARAMETERS_MAX = 12 };
struct unit {
    int layer; /* -1: embedding, final norm or head */
    bool is_table, is_head;
    struct parameter parameters[UNIT_PARAMETERS_MAX];
    int n_parameters;
    int64_t elements, slice; /* padded; elements / shards */
};

/* The units of one virtual stage: [table, positions], layers in order, [final norm, head or tied table]. A stage that has both
 * the embedding and the head of a tied model has the table once. */
enum { STAGE_ENDS_MAX = 4 };
struct stage_units {
    struct unit *items;
    int n_items;
    int table, positions, first_layer, final_norm, head; /* indices, -1 none */
    int n_layers;
};
void stage_units_build(const struct shape *shape, struct layer_range range, bool embedding, bool head, struct stage_units *units);
void stage_units_free(struct stage_units *units);

/* --- the whole model as one list of numbers */

struct model_map {
    int layers;
    int64_t offsets_first[N_PARAMETER_KINDS]; /* of layer 0, or of the only one */
    int64_t cols[N_PARAMETER_KINDS], rows[N_PARAMETER_KINDS];
    int64_t layer_stride, total;
};
struct model_map model_map_of(const struct setting *setting);
/* Index in the list of element i of a parameter. */
int64_t model_map_index(const struct model_map *map, const struct parameter *parameter, int64_t i);
/* Which tensor an index belongs to, for error messages: "layer 3 qkv". Returns buffer. */
char *model_map_name(const struct model_map *map, int64_t index, char *buffer, size_t size);
const char *parameter_kind_name(enum parameter_kind kind);

/* The initial value at an index. Matrices are uniform with standard deviation 0.02 (those that end a branch divided by
 * sqrt(2 L), as GPT-2 is), gains 1, biases 0. */
float parameter_initial(const struct model_map *map, enum parameter_kind kind, int64_t index, uint64_t seed);

#endif
