/*
 * measurement_reading.h - one pass over a measurement table: its columns, the current row, and what was looked up for rows
 * before. Private to the files measurement*.c.
 */
#ifndef MSIM_TRACES_MEASUREMENT_READING_H
#define MSIM_TRACES_MEASUREMENT_READING_H

#include "model/spec/catalog.h"
#include "traces/measurement.h"

/* Columns, with the widest range a value can sensibly have. */
enum { MAX_WIDTH = 1 << 24, MAX_GPUS = 1 << 24, MAX_BATCH = 1 << 28 };
#define MEASUREMENT_COLUMNS(X)                                                                                                   \
    X(CASE, "case", true)                                                                                                        \
    X(MODEL, "model", false)                                                                                                     \
    X(LAYERS, "layers", true)                                                                                                    \
    X(HIDDEN, "hidden", true)                                                                                                    \
    X(FFN_HIDDEN, "ffn_hidden", false)                                                                                           \
    X(GATED_MLP, "gated_mlp", false)                                                                                             \
    X(HEADS, "heads", true)                                                                                                      \
    X(KV_HEADS, "kv_heads", false)                                                                                               \
    X(SEQ_LEN, "seq_len", true)                                                                                                  \
    X(VOCAB, "vocab", false)                                                                                                     \
    X(GPU, "gpu", true)                                                                                                          \
    X(GPUS, "gpus", true)                                                                                                        \
    X(GPUS_PER_NODE, "gpus_per_node", false)                                                                                     \
    X(NIC_GBPS, "nic_gbps", false)                                                                                               \
    X(TP, "tp", true)                                                                                                            \
    X(PP, "pp", true)                                                                                                            \
    X(VPP, "vpp", false)                                                                                                         \
    X(CP, "cp", false)                                                                                                           \
    X(CP_COMM, "cp_comm", false)                                                                                                 \
    X(DP, "dp", true)                                                                                                            \
    X(EP, "ep", false)                                                                                                           \
    X(ZERO, "zero", false)                                                                                                       \
    X(SHARD, "shard", false)                                                                                                     \
    X(SEQUENCE_PARALLEL, "sequence_parallel", false)                                                                             \
    X(MICRO_BATCH, "micro_batch", true)                                                                                          \
    X(GLOBAL_BATCH, "global_batch", true)                                                                                        \
    X(RECOMPUTE, "recompute", true)                                                                                              \
    X(PRECISION, "precision", true)                                                                                              \
    X(SCHEDULE, "schedule", false)                                                                                               \
    X(FEATURES, "features", false)                                                                                               \
    X(OUTCOME, "outcome", false)                                                                                                 \
    X(STEP_TIME_S, "step_time_s", true)                                                                                          \
    X(MFU_PCT, "mfu_pct", false)                                                                                                 \
    X(ASSUMED, "assumed", false)                                                                                                 \
    X(SOURCE, "source", false)

enum column {
#define X(id, name, required) COLUMN_##id,
    MEASUREMENT_COLUMNS(X)
#undef X
        N_COLUMNS
};

/* A catalog entry asked for once: tables name few models and GPUs in many rows. */
struct known_model {
    const char *name;
    bool found;
    struct transformer model;
};
struct known_cluster {
    const char *gpu;
    int per_node;
    double nic_rate;
    bool found;
    struct cluster_kind kind;
    char why[256]; /* not found */
    bool told;     /* and said so: once a GPU is enough */
};

/* The columns in the order of enum column. */
extern const struct csv_column measurement_columns[N_COLUMNS];

struct measurement_reading {
    const struct csv_table *csv;
    int columns[N_COLUMNS];
    size_t row;
    bool unusable; /* the current row, for a reason already given */
    size_t errors_before_row;
    struct known_model *models;
    size_t n_models, models_capacity;
    struct known_cluster *clusters;
    size_t n_clusters, clusters_capacity;
    bool plain_loss;               /* the row at hand says so */
    const char **unknown_features; /* warned of */
    size_t n_unknown, unknown_capacity;
    struct diags *diags;
};

/* A cell of the current row, and where it stands. */
const char *reading_text(const struct measurement_reading *reading, enum column column);
struct place reading_place(const struct measurement_reading *reading, enum column column);
/* A whole number, or `unknown` where the cell is empty; a number, or 0. A bad cell is reported and reads as if empty. */
int64_t reading_whole(struct measurement_reading *reading, enum column column, int64_t low, int64_t high, int64_t unknown);
double reading_number(struct measurement_reading *reading, enum column column, double low, double high);
/* One of n words, in any case, by its index; -1 when the cell is empty or wrong (then reported). */
int reading_word(struct measurement_reading *reading, enum column column, const char *const *words, size_t n_words);
/* The same of a way to train: one that nobody here knows is no mistake, but its run cannot be predicted; the row is skipped. */
int reading_way(struct measurement_reading *reading, enum column column, const char *const *words, size_t n_words);
/* The current row can be read but not be used: a warning, unless an error of this row has told the cause. */
void reading_skip(struct measurement_reading *reading, enum column column, const char *format, ...) PRINTF_LIKE(3, 4);

/* What the catalog said beside an entry (a short name taken for the usual part), placed in the current row. */
void reading_tell_notes(struct measurement_reading *reading, enum column column, const struct diags *said);

/* The shape columns; 0 (gated -1) where a cell is empty. */
struct measurement_shape {
    int layers, heads, kv_heads, gated;
    int64_t hidden, ffn_hidden, seq_len, vocab;
};
struct measurement_shape reading_shape(struct measurement_reading *reading);
/* The model of the current row, from the catalog and its shape; skips the row when neither says enough. */
void reading_model(struct measurement_reading *reading, const struct measurement_shape *shape, struct transformer *model);
/* Says in msim's words what the row means by schedule, vpp, zero and global batch, with a warning for each that changes. */
void reading_adapt(struct measurement_reading *reading, struct layout *layout, struct job *job);

#endif
