/*
 * parameters.h - the weights of a rank: their shapes, their place in its memory, and their place in the whole model.
 *
 * Example: the matrix of queries, keys and values of a model with 4 heads of 64 and no grouped keys has 768 rows. With tp=2,
 * rank 1 holds 384 of them, in three pieces of 128 rows each, which begin at
 *
 *     local rows     0    128   256        in this rank's matrix
 *     whole rows   128    384   640        in the whole matrix: heads 2 and 3 of queries, keys and values
 *
 * Weights are kept in units: the embedding table, the position table, each layer, a layer's routed experts, the final norm, the
 * output matrix. A unit is one flat buffer. It is padded so that the ranks that divide it have equal slices: dp * cp ranks or
 * `shard` of them; for experts the expert-data-parallel group. ZeRO's shards are slices of units; gradients are reduced and
 * parameters gathered unit by unit. The embedding table is a unit of its own because two stages may hold it and must divide it
 * alike.
 *
 * A tensor-parallel rank holds rows of a matrix (column-parallel layers, the vocabulary) or columns (row-parallel layers).
 * `pieces` maps rows to the whole model. Initial values, and comparisons with another layout, use the position in the whole
 * model, so the initial value of a weight depends only on the seed and that position.
 */
#ifndef MSIM_RUNTIME_BASE_PARAMETERS_H
#define MSIM_RUNTIME_BASE_PARAMETERS_H

#include "kernels/kernels.h"
#include "model/layout/layout.h"
#include "runtime/base/device.h"
#include "runtime/base/mixer_form.h"

/* Constants of layers and optimizers, the same for every model and job: none of them changes the time of a kernel. */
#define NORM_EPSILON      1e-5f
#define UNIT_EPSILON      1e-6f    /* in unit_call: flash-linear-attention, l2norm.py */
#define ROTARY_BASE       10000.0f /* RoFormer (Su and others, 2021) and LLaMA */
#define OPTIMIZER_BETA1   0.9f     /* Adam and LAMB as large models are trained (GPT-3, appendix B); also SGD's momentum */
#define OPTIMIZER_BETA2   0.95f
#define OPTIMIZER_EPSILON 1e-8f

/* Every kind of parameter, in the order of the whole model: its PARAMETER_ name, its text, and its initial values
 * (parameter_initial() below; BRANCH: a matrix that ends a residual branch). */
#define PARAMETER_KINDS(X)                                                                                                       \
    X(TABLE, "token table", WEIGHT)                                                                                              \
    X(POSITIONS, "position table", WEIGHT)                                                                                       \
    X(NORM1_GAIN, "norm 1 gain", ONE)                                                                                            \
    X(NORM1_BIAS, "norm 1 bias", ZERO)                                                                                           \
    X(QKV, "qkv", WEIGHT)                                                                                                        \
    X(QKV_BIAS, "qkv bias", ZERO)                                                                                                \
    X(PROJECTION, "projection", BRANCH)                                                                                          \
    X(PROJECTION_BIAS, "projection bias", ZERO)                                                                                  \
    X(NORM2_GAIN, "norm 2 gain", ONE)                                                                                            \
    X(NORM2_BIAS, "norm 2 bias", ZERO)                                                                                           \
    X(UP, "mlp up", WEIGHT)                                                                                                      \
    X(UP_BIAS, "mlp up bias", ZERO)                                                                                              \
    X(DOWN, "mlp down", BRANCH)                                                                                                  \
    X(DOWN_BIAS, "mlp down bias", ZERO)                                                                                          \
    X(Q_GAIN, "query norm gain", ONE) /* norms of query and key heads */                                                         \
    X(Q_BIAS, "query norm bias", ZERO)                                                                                           \
    X(K_GAIN, "key norm gain", ONE)                                                                                              \
    X(K_BIAS, "key norm bias", ZERO)                                                                                             \
    X(Q_DOWN, "query down", WEIGHT) /* latent attention; a product's bias follows its weights, a norm's its gain */              \
    X(Q_DOWN_BIAS, "query down bias", ZERO)                                                                                      \
    X(Q_LATENT_GAIN, "query latent gain", ONE)                                                                                   \
    X(Q_LATENT_BIAS, "query latent bias", ZERO)                                                                                  \
    X(Q_UP, "query up", WEIGHT)                                                                                                  \
    X(Q_UP_BIAS, "query up bias", ZERO)                                                                                          \
    X(KV_DOWN, "key-value down", WEIGHT)                                                                                         \
    X(KV_DOWN_BIAS, "key-value down bias", ZERO)                                                                                 \
    X(KV_LATENT_GAIN, "key-value latent gain", ONE)                                                                              \
    X(KV_LATENT_BIAS, "key-value latent bias", ZERO)                                                                             \
    X(KV_UP, "key-value up", WEIGHT)                                                                                             \
    X(KV_UP_BIAS, "key-value up bias", ZERO)                                                                                     \
    X(MIXER_IN, "mixer in", WEIGHT) /* a mixer with a state */                                                                   \
    X(MIXER_IN_BIAS, "mixer in bias", ZERO)                                                                                      \
    X(MIXER_DOWN, "mixer down", WEIGHT)                                                                                          \
    X(MIXER_DECAYS_UP, "mixer decays up", WEIGHT)                                                                                \
    X(MIXER_GATE_UP, "mixer gate up", WEIGHT)                                                                                    \
    X(MIXER_CONV, "mixer convolution", FILTER)                                                                                   \
    X(MIXER_CONV_BIAS, "mixer convolution bias", ZERO)                                                                           \
    X(MIXER_RATES, "mixer rates", RATE) /* A's logarithm */                                                                      \
    X(MIXER_STEP_BIAS, "mixer step bias", STEP)                                                                                  \
    X(MIXER_SKIP, "mixer skip", ONE) /* D */                                                                                     \
    X(MIXER_GAIN, "mixer gain", ONE)                                                                                             \
    X(MIXER_OUT, "mixer out", BRANCH)                                                                                            \
    X(MIXER_OUT_BIAS, "mixer out bias", ZERO)                                                                                    \
    X(ROUTER, "router", WEIGHT)                                                                                                  \
    X(ROUTER_BIAS, "router bias", ZERO)                                                                                          \
    X(SHARED_UP, "shared up", WEIGHT)                                                                                            \
    X(SHARED_UP_BIAS, "shared up bias", ZERO)                                                                                    \
    X(SHARED_DOWN, "shared down", BRANCH)                                                                                        \
    X(SHARED_DOWN_BIAS, "shared down bias", ZERO)                                                                                \
    X(EXPERT_UP, "expert up", WEIGHT)                                                                                            \
    X(EXPERT_UP_BIAS, "expert up bias", ZERO)                                                                                    \
    X(EXPERT_DOWN, "expert down", BRANCH)                                                                                        \
    X(EXPERT_DOWN_BIAS, "expert down bias", ZERO)                                                                                \
    X(PREDICTION_EMBEDDING_GAIN, "prediction embedding gain", ONE) /* a module of multi-token prediction */                      \
    X(PREDICTION_EMBEDDING_BIAS, "prediction embedding bias", ZERO)                                                              \
    X(PREDICTION_STATE_GAIN, "prediction state gain", ONE)                                                                       \
    X(PREDICTION_STATE_BIAS, "prediction state bias", ZERO)                                                                      \
    X(PREDICTION_PROJECTION, "prediction projection", WEIGHT)                                                                    \
    X(PREDICTION_FINAL_GAIN, "prediction final gain", ONE)                                                                       \
    X(PREDICTION_FINAL_BIAS, "prediction final bias", ZERO)                                                                      \
    X(FINAL_GAIN, "final norm gain", ONE)                                                                                        \
    X(FINAL_BIAS, "final norm bias", ZERO)                                                                                       \
    X(HEAD, "output matrix", WEIGHT)

enum parameter_kind {
#define X(ID, name, begins) PARAMETER_##ID,
    PARAMETER_KINDS(X)
#undef X
        N_PARAMETER_KINDS
};

/* Number of ranks that hold copies of the same weights, and this rank's index among them. */
struct copies {
    int n, index;
};

/* Sizes of a mixture-of-experts layer on this rank. */
struct mixture_shape {
    int experts, top_k;        /* of the model; experts 0: none */
    int groups, top_groups;    /* of experts */
    int local, first;          /* experts on this rank */
    int tp, ep;                /* ranks an expert is split over; expert-parallel ranks */
    struct copies copies;      /* of expert weights */
    int64_t ffn, up_width;     /* of one expert on this rank */
    int64_t model_ffn;         /* of one expert */
    int64_t shared, shared_up; /* width of the shared experts on this rank; of their first product */
    int64_t model_shared;
    int64_t tokens, share; /* tokens of a micro-batch that this rank sends to experts; the most that any rank sends (the last
                            * ranks send fewer if tp does not divide the tokens) */
    int64_t most;          /* the most rows that this rank's experts may receive */
};

/* Sizes of latent attention on this rank: a head's queries and keys are `nope` and then `rope` wide. */
struct latent_shape {
    bool used;
    int64_t q_rank, kv_rank, nope, rope, value; /* q_rank 0: queries are not compressed */
};

/* The sizes of one rank of a layout: widths of its matrices, its part of the sequence and of the vocabulary. */
struct shape {
    int tp, tp_rank, cp, cp_rank;
    struct copies copies; /* of dense weights, among those that divide them: dp * cp ranks, or `shard` */
    bool sequence_parallel, parallel_block, rms, gated, tied, rotary, learned_positions, alibi, qk_norm;
    bool linear_bias, qkv_bias;
    float mlp_limit;                      /* activation_call.limit; 0: none */
    bool gathers_again;                   /* a sharded input is gathered again for the backward pass; false: kept gathered */
    bool apart;                           /* queries, keys and values have separate products; also gate and up */
    bool mirrored;                        /* DualPipe: another rank holds the same weights and counts them */
    int layers, predictions;              /* of the model, with those of its prediction modules; modules */
    int64_t hidden, seq_len, micro_batch; /* seq_len: of a sequence on this rank */
    int64_t tokens, local_tokens; /* of a micro-batch on this context-parallel rank; on this rank where the sequence is sharded */
    struct positions at;          /* of this rank's rows in a sequence */
    struct mixture_shape moe;
    struct latent_shape latent;
    struct mixer_shape mixer;
    int heads, kv_heads, head_dim;
    int64_t query_width, qkv_width; /* heads * head_dim; with keys and values */
    int64_t context_width;          /* heads * (head_dim of values) */
    int64_t ffn, up_width;          /* ffn, or twice that when gated */
    int64_t vocab, vocab_first, vocab_count;
    int64_t max_positions;
    int model_heads, model_kv_heads;
    int64_t model_ffn;
};
struct shape shape_of(const struct layout *layout, const struct setting *setting, int rank);
/* The sizes of attention on that rank. They equal shape_of(), except when context parallelism exchanges heads: then n times the
 * tokens and 1/n of the heads, and cp_rank counts only the ranks that exchange keys and values. */
struct shape shape_of_core(const struct layout *layout, const struct setting *setting, int rank);
/* Whether the device's kernels of packed attention (attention_call) support this shape; if not, use query_range_call. */
bool shape_is_packed(const struct shape *shape, struct device *device);

enum { PIECES_MAX = N_MIXER_STRIPES };
struct parameter {
    enum parameter_kind kind;
    int layer; /* -1: none */
    int64_t rows, cols, offset;
    struct {
        int64_t local, whole, count;
        bool counted;     /* in norms: true on one rank of the tensor-parallel group */
    } pieces[PIECES_MAX]; /* ranges of rows, of one block */
    int n_pieces;
    int64_t block, whole_block,
        first_block; /* experts: rows of one expert here and in the model, and the first expert here; others: block is all rows */
    int64_t first_col; /* column of the whole matrix where this rank's begin */
    bool partial;      /* each tensor-parallel rank has a part of the gradient; the parts are summed at the end of the step */
};

enum { UNIT_PARAMETERS_MAX = 56 };
struct unit {
    int layer; /* -1: embedding, final norm or head */
    bool is_table, is_mixture, is_experts;
    bool is_head;   /* used with the head: final norm, output matrix, prediction modules */
    bool elsewhere; /* a copy (the tied table) that another stage counts in the gradient norm */
    struct copies copies;
    struct parameter parameters[UNIT_PARAMETERS_MAX];
    int n_parameters;
    int64_t elements, slice; /* padded; elements / shards */
};

/* The units of one virtual stage: [table, positions], layers in order and behind them prediction modules (a layer and the parts
 * before it, as layers L, L + 1, ... of the model), [final norm, head or tied table], experts of layers. A stage that has both
 * the embedding and the head has the table once. */
enum { STAGE_ENDS_MAX = 4 };
struct stage_units {
    struct unit *items;
    int n_items;
    int table, positions, first_layer, final_norm, head; /* indices, -1 none */
    int n_layers;                                        /* with prediction modules */
    int *experts;                                        /* [n_layers] indices, -1 none */
};
/* The content of a virtual stage. `holds_table`: the head needs the token table, and no other chunk of the rank has it. */
struct stage_content {
    struct layer_range range;
    bool embedding, head, holds_table;
};
void stage_units_build(const struct shape *shape, const struct transformer *model, struct stage_content content,
                       struct stage_units *units);
void stage_units_free(struct stage_units *units);

/* Bytes of the tensors for gathered weights and gradients, with elements of that size: weights and gradients under ZeRO-3,
 * gradients under ZeRO-2 without a pipeline, and those that are in the memory of the host; 0 without these. */
double gathered_bytes(const struct layout *layout, const struct setting *setting, size_t element_bytes);
/* Bytes, in fp32, of the largest part of a unit that a rank updates. */
double largest_owned_bytes(const struct layout *layout, const struct setting *setting);
/* Bytes of the buffer in which a stage's tensor-parallel group sums partial gradients (parameter.partial). */
double partial_gradients_bytes(const struct layout *layout, const struct setting *setting, int stage);

/* --- the whole model as one list of numbers */

struct model_map {
    int layers, depth;                        /* with prediction modules, without */
    int64_t offsets_first[N_PARAMETER_KINDS]; /* in layer 0; or of a parameter of no layer */
    int64_t cols[N_PARAMETER_KINDS], rows[N_PARAMETER_KINDS];
    int64_t layer_stride, total;
};
struct model_map model_map_of(const struct setting *setting);
/* Index in the list of element i of a parameter; a row's columns follow one another. */
int64_t model_map_index(const struct model_map *map, const struct parameter *parameter, int64_t i);
/* The tensor that an index belongs to: "layer 3 qkv". */
struct model_tensor {
    int64_t begin, end;
    char name[64];
};
struct model_tensor model_map_tensor(const struct model_map *map, int64_t index);

/* The initial value at an index. Matrices are uniform with standard deviation 0.02 (those that end a branch divided by
 * sqrt(2 L), as in GPT-2), gains 1, biases 0. Mixers with a state, as in their sources: rates (stored as logarithms) from 1 to
 * 16, steps from 0.001 to 0.1, taps uniform within 1 / sqrt(taps). */
float parameter_initial(const struct model_map *map, enum parameter_kind kind, int64_t index, uint64_t seed);

#endif
