/*
 * measurement_internal.h - the parser of a measurement table: its columns, the current row, and what earlier rows looked up.
 *
 * Example: reading the sequence length of the current row.
 *
 *     int64_t seq_len = parser_whole(parser, COLUMN_SEQ_LEN, 1, INT32_MAX, 0);        0 if the cell is empty or cannot be read
 */
#ifndef MSIM_TRACES_TABLE_MEASUREMENT_INTERNAL_H
#define MSIM_TRACES_TABLE_MEASUREMENT_INTERNAL_H

#include "model/spec/catalog.h"
#include "traces/table/measurement.h"

/* Columns besides the layout's dimensions, and the largest sensible values. */
enum { MAX_WIDTH = 1 << 24, MAX_GPUS = 1 << 24, MAX_BATCH = 1 << 28 };
#define MEASUREMENT_COLUMNS(X)                                                                                                   \
    X(CASE, "case", false)                                                                                                       \
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
    X(GPUS, "gpus", false)                                                                                                       \
    X(GPUS_PER_NODE, "gpus_per_node", false)                                                                                     \
    X(NIC_GBPS, "nic_gbps", false)                                                                                               \
    X(GLOBAL_BATCH, "global_batch", false)                                                                                       \
    X(ACCUMULATION, "accumulation", false)                                                                                       \
    X(BATCH_TOKENS, "batch_tokens", false)                                                                                       \
    X(PRECISION, "precision", false)                                                                                             \
    X(GRADIENT_PRECISION, "gradient_precision", false)                                                                           \
    X(FEATURES, "features", false)                                                                                               \
    X(OUTCOME, "outcome", false)                                                                                                 \
    X(STEP_TIME_S, "step_time_s", false)                                                                                         \
    X(TOKENS_PER_S, "tokens_per_s", false)                                                                                       \
    X(TOKENS_PER_S_GPU, "tokens_per_s_gpu", false)                                                                               \
    X(SAMPLES_PER_S, "samples_per_s", false)                                                                                     \
    X(TFLOPS_GPU, "tflops_gpu", false)                                                                                           \
    X(MFU_PCT, "mfu_pct", false)                                                                                                 \
    X(ASSUMED, "assumed", false)                                                                                                 \
    X(SOURCE, "source", false)

enum column {
#define X(id, name, required) COLUMN_##id,
    MEASUREMENT_COLUMNS(X)
#undef X
#define COLUMN_IF_true(id) COLUMN_##id,
#define COLUMN_IF_false(id)
#define X(id, type, member, key, word, brief, long_name, least, most, usual, rare, in_tables, ...) COLUMN_IF_##in_tables(id)
        LAYOUT_DIMENSIONS(X)
#undef X
            N_COLUMNS
};

/* A catalog entry, looked up once: tables name few models and GPUs in many rows. */
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
    bool reported; /* and reported, once per GPU */
};

/* The columns in the order of enum column. */
extern const struct csv_column measurement_columns[N_COLUMNS];

/* A text of a column that was reported. */
struct reported_text {
    enum column column;
    char *text;
};

struct measurement_parser {
    const struct csv_table *csv;
    int columns[N_COLUMNS];
    double factors[N_COLUMNS]; /* one unit of a column, in the unit of its name */
    size_t row;
    bool unusable; /* the current row, for a reason already reported */
    bool bad_cell; /* the reason is a cell that cannot be read */
    struct known_model *models;
    size_t n_models, models_capacity;
    struct known_cluster *clusters;
    size_t n_clusters, clusters_capacity;
    bool plain_loss;                /* the current row has plain_loss */
    bool changes_usual;             /* its features change the usual ones */
    feature_set absent;             /* features that it takes away without having them */
    size_t n_changes;               /* rows with such changes */
    bool wide_gradients;            /* some row sums gradients in fp32 because it does not specify a stage of ZeRO */
    char point;                     /* the mark before fractions in this table: a point or a comma */
    bool point_known;               /* decided by cells that can be read in one way only */
    struct reported_text *reported; /* texts that were reported */
    size_t n_reported, reported_capacity;
    struct diags *diags;
};

/* A cell of the current row, "" if it says that the value is unknown (n/a, -), and its place. */
const char *parser_text(const struct measurement_parser *parser, enum column column);
struct place parser_place(const struct measurement_parser *parser, enum column column);
/* A whole number, or `unknown` for an empty cell; a number, or 0. A bad cell reads as empty, and its row is skipped. */
int64_t parser_whole(struct measurement_parser *parser, enum column column, int64_t low, int64_t high, int64_t unknown);
double parser_number(struct measurement_parser *parser, enum column column, double low, double high);
/* One of n words, in any case and spelling, by its index; -1 if the cell is empty or has none of them. */
int parser_word(const struct measurement_parser *parser, enum column column, const char *const *words, size_t n_words);
/* The same; an unknown word skips the row. */
int parser_way(struct measurement_parser *parser, enum column column, const char *const *words, size_t n_words);
/* "; did you mean 'full'?", or nothing. Returns hint. */
const char *parser_hint(const char *text, const char *const *words, size_t n_words, char *hint, size_t size);
/* Skips the current row, with a warning, unless a cell that cannot be read is the cause and was reported. */
void parser_skip(struct measurement_parser *parser, enum column column, const char *format, ...) PRINTF_LIKE(3, 4);
/* Warns of a text of a column, once per table. */
void parser_warn_once(struct measurement_parser *parser, enum column column, const char *text, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* --- other people's spelling (measurement_words.c, measurement_columns.c, measurement_cells.c) --- */

/* Letters and digits in lower case, with an underscore for everything between them. Returns buffer. */
char *words_plain(const char *text, char *buffer, size_t size);
/* n/a, -, unknown: words for an unknown value. */
bool words_say_nothing(const char *text);
/* msim's word for a way to train; NULL: the text is no other spelling of one. */
const char *words_ours(enum column column, const char *text);
/* Renames columns with other names to the names that they have here, with a note. */
void words_rename_columns(struct measurement_parser *parser, struct csv_table *csv);
/* Decides whether points or commas precede fractions in this table: by its cells, else commas between semicolons and points
 * otherwise. */
void cells_find_point(struct measurement_parser *parser);
/* One of a unit ("ms", "k tokens"; "" none) in the unit of a column's name; 0: the column has no such unit. */
double cell_unit(enum column column, const char *word);
/* Is a name among several between blanks? */
bool words_list(const char *names, const char *name);
/* The number of a cell in the unit of its column's name; false if it has none. A warning reports a reading that nothing in the
 * table decides. */
bool cell_number(struct measurement_parser *parser, enum column column, bool whole, double *value);

/* Passes on notes of the catalog (a short name taken for the usual part), with the place of the current row. */
void parser_pass_notes(struct measurement_parser *parser, enum column column, const struct diags *said);

/* The shape columns; 0 (gated -1) where a cell is empty. */
struct measurement_shape {
    int layers, heads, kv_heads, gated;
    int64_t hidden, ffn_hidden, seq_len, vocab;
};
struct measurement_shape parser_shape(struct measurement_parser *parser);
/* The model of the current row, from the catalog and its shape; skips the row when neither says enough. */
void parser_model(struct measurement_parser *parser, const struct measurement_shape *shape, struct transformer *model);
/* The cluster of the current row, whose number of GPUs is known: by GPU or system, GPUs per node, and network. Skips the row if
 * there is none. */
void parser_cluster(struct measurement_parser *parser, struct measurement *row);
/* The measurement of the current row, whose job, layout and cluster are known: outcome, step time, MFU. Warns of columns that
 * contradict each other and of unlikely steps; skips a row with an impossible step. */
void parser_outcome(struct measurement_parser *parser, struct measurement *row);
/* Does a row leave a column open? The vocabulary of a model of the catalog is never open. */
bool parser_left_open(const struct measurement_parser *parser, size_t row, enum column column);
/* The features of the current row; `usual` where the table or the cell leaves them open. */
feature_set parser_features(struct measurement_parser *parser, feature_set usual);
/* What stacks of its kind have and rows rarely say: ALiBi, cut messages, a fused loss. */
void parser_assume_stack(struct measurement_parser *parser, struct measurement *row);
/* The usual features of the row's GPU, which is known by then, and a FlashAttention that it has kernels of. */
void parser_settle_features(struct measurement_parser *parser, struct measurement *row);
/* The job; the layout with the number of GPUs; a batch by the micro-batches of each replica. */
void parser_job(struct measurement_parser *parser, const struct measurement_shape *shape, int zero, struct job *job);
void parser_layout(struct measurement_parser *parser, int zero, feature_set features, struct layout *layout, int *gpus);
void parser_accumulation(struct measurement_parser *parser, struct layout *layout, struct job *job);
/* Adapts schedule, vpp, zero and global batch of a row to msim's meaning, with a warning for each change. */
void parser_adapt(struct measurement_parser *parser, struct layout *layout, struct job *job);

#endif
