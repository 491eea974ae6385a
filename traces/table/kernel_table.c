/* kernel_table.c - reads a table of measured kernels. */
#include "traces/table/kernel_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/hash.h"
#include "model/base/memory.h"

/* Columns, with the widest range a value can sensibly have. */
enum { DIMENSION_MAX = 1 << 28, HEADS_MAX = 1 << 16, RANKS_MAX = 1 << 24 };
#define KERNEL_COLUMNS(X)                                                                                                        \
    X(GPU, "gpu", true)                                                                                                          \
    X(OP, "op", true)                                                                                                            \
    X(DTYPE, "dtype", true)                                                                                                      \
    X(TIME_US, "time_us", true)                                                                                                  \
    X(M, "m", false)                                                                                                             \
    X(N, "n", false)                                                                                                             \
    X(K, "k", false)                                                                                                             \
    X(COUNT, "count", false)                                                                                                     \
    X(BATCH, "batch", false)                                                                                                     \
    X(SEQ_LEN, "seq_len", false)                                                                                                 \
    X(HEADS, "heads", false)                                                                                                     \
    X(KV_HEADS, "kv_heads", false)                                                                                               \
    X(HEAD_DIM, "head_dim", false)                                                                                               \
    X(WINDOW, "window", false)                                                                                                   \
    X(CAUSAL, "causal", false)                                                                                                   \
    X(RANKS, "ranks", false)                                                                                                     \
    X(NODES, "nodes", false)                                                                                                     \
    X(BYTES, "bytes", false)                                                                                                     \
    X(KERNEL, "kernel", false)                                                                                                   \
    X(NCCL, "nccl", false)                                                                                                       \
    X(SPREAD, "spread", false)

enum kernel_column {
#define X(id, name, required) KERNEL_##id##_COLUMN,
    KERNEL_COLUMNS(X)
#undef X
        N_KERNEL_COLUMNS
};

static const struct csv_column columns[N_KERNEL_COLUMNS] = {
#define X(id, name, required) {name, required},
    KERNEL_COLUMNS(X)
#undef X
};

struct parser {
    const struct csv_table *csv;
    int columns[N_KERNEL_COLUMNS];
    size_t row;
    const char **unknown; /* words warned of */
    size_t n_unknown, capacity;
    struct place unreported; /* the first word that no warning of its own names */
    struct diags *diags;
};

static const char *text_of(const struct parser *r, enum kernel_column column)
{
    return csv_cell(r->csv, r->row, r->columns[column]);
}

/* A whole number; `otherwise` where the cell is empty, unless that is below `low`: then it must be there. */
static int64_t whole(struct parser *r, enum kernel_column column, int64_t low, int64_t high, int64_t otherwise)
{
    int64_t value = otherwise;
    if (*text_of(r, column))
        return csv_cell_integer(r->csv, r->row, r->columns[column], low, high, &value, r->diags) == STATUS_OK ? value : low;
    if (otherwise < low)
        diag_error(r->diags,
                   csv_place(r->csv, r->row, r->columns[column] < 0 ? r->columns[KERNEL_OP_COLUMN] : r->columns[column]),
                   "'%s' of this %.40s is not given", columns[column].name, text_of(r, KERNEL_OP_COLUMN));
    return otherwise < low ? low : otherwise;
}

enum { WORDS_TOLD = 3 }; /* one by one */

/* A word nobody knows: a warning the first time, for the first of them. */
static void skip_word(struct parser *r, enum kernel_column column, const char *what)
{
    const char *word = text_of(r, column);
    for (size_t i = 0; i < r->n_unknown; i++)
        if (strcmp(r->unknown[i], word) == 0)
            return;
    r->unknown = memory_grow(r->unknown, &r->capacity, r->n_unknown + 1, sizeof *r->unknown);
    r->unknown[r->n_unknown++] = word;
    struct place at = csv_place(r->csv, r->row, r->columns[column]);
    if (r->n_unknown <= WORDS_TOLD)
        diag_warning(r->diags, at, "row skipped: unknown %s '%.40s' (all rows of it)", what, word);
    else if (r->n_unknown == WORDS_TOLD + 1)
        r->unreported = at;
}

/* The others together: a table of msim probe has many kernels that nothing is fitted to here. */
static void tell_other_words(const struct parser *r)
{
    if (r->n_unknown > WORDS_TOLD)
        diag_warning(r->diags, r->unreported, "rows of %zu more unknown words skipped, from '%.40s' on",
                     r->n_unknown - WORDS_TOLD, r->unknown[WORDS_TOLD]);
}

static bool read_gemm(struct parser *r, struct kernel_measurement *kernel)
{
    int precision = precision_parse(text_of(r, KERNEL_DTYPE_COLUMN));
    if (precision < 0) {
        skip_word(r, KERNEL_DTYPE_COLUMN, "precision");
        return false;
    }
    kernel->gemm = (struct work_gemm){
        .m = whole(r, KERNEL_M_COLUMN, 1, DIMENSION_MAX, 0),
        .n = whole(r, KERNEL_N_COLUMN, 1, DIMENSION_MAX, 0),
        .k = whole(r, KERNEL_K_COLUMN, 1, DIMENSION_MAX, 0),
        .count = (int32_t)whole(r, KERNEL_COUNT_COLUMN, 1, HEADS_MAX, 1),
        .output_bytes = 2,
        .precision = (enum precision)precision,
    };
    return true;
}

static double pairs_of(int64_t tokens, int64_t window, bool causal)
{
    double s = (double)tokens;
    if (causal)
        return attended_pairs(s, (double)window);
    return window > 0 && window < tokens ? s * (double)window : s * s;
}

static bool read_attention(struct parser *r, struct kernel_measurement *kernel)
{
    enum { BEST_KERNEL = 3 }; /* entries are of the fastest kernel that the GPU has, whatever its library calls it */
    int64_t tokens = whole(r, KERNEL_SEQ_LEN_COLUMN, 1, DIMENSION_MAX, 0);
    int64_t window = whole(r, KERNEL_WINDOW_COLUMN, 0, DIMENSION_MAX, 0);
    bool causal = whole(r, KERNEL_CAUSAL_COLUMN, 0, 1, 1);
    int32_t head_dim = (int32_t)whole(r, KERNEL_HEAD_DIM_COLUMN, 1, HEADS_MAX, 0);
    kernel->attention = (struct work_attention){
        .batch = whole(r, KERNEL_BATCH_COLUMN, 1, DIMENSION_MAX, 0),
        .query_tokens = tokens,
        .key_tokens = tokens,
        .pairs = pairs_of(tokens, window, causal),
        .heads = (int32_t)whole(r, KERNEL_HEADS_COLUMN, 1, HEADS_MAX, 0),
        .kv_heads = (int32_t)whole(r, KERNEL_KV_HEADS_COLUMN, 1, HEADS_MAX, 0),
        .head_dim = head_dim,
        .value_dim = head_dim,
        .precision = strcmp(text_of(r, KERNEL_DTYPE_COLUMN), "fp8") == 0 ? PRECISION_FP8 : PRECISION_BF16,
        .fused = BEST_KERNEL,
    };
    return true;
}

static bool read_collective(struct parser *r, struct kernel_measurement *kernel, enum collective collective)
{
    kernel->collective = (struct kernel_collective){
        .collective = collective,
        .ranks = (int)whole(r, KERNEL_RANKS_COLUMN, 2, RANKS_MAX, 0),
        .nodes = (int)whole(r, KERNEL_NODES_COLUMN, 1, RANKS_MAX, 1),
    };
    (void)!csv_cell_number(r->csv, r->row, r->columns[KERNEL_BYTES_COLUMN], 1, 1e15, &kernel->collective.bytes, r->diags);
    return true;
}

static bool read_op(struct parser *r, struct kernel_measurement *kernel)
{
    const char *op = text_of(r, KERNEL_OP_COLUMN);
    if (strcmp(op, "gemm") == 0 || strcmp(op, "grouped_gemm") == 0) {
        kernel->op = MEASURED_GEMM;
        bool read = read_gemm(r, kernel);
        kernel->gemm.apart = strcmp(op, "grouped_gemm") == 0;
        return read;
    }
    if (strcmp(op, "attention_forward") == 0 || strcmp(op, "attention_backward") == 0) {
        kernel->op = strcmp(op, "attention_forward") == 0 ? MEASURED_ATTENTION : MEASURED_ATTENTION_BACKWARD;
        return read_attention(r, kernel);
    }
    for (int c = 0; c < N_COLLECTIVES; c++) {
        if (strcmp(op, collective_name((enum collective)c)) == 0) {
            kernel->op = MEASURED_COLLECTIVE;
            return read_collective(r, kernel, (enum collective)c);
        }
    }
    skip_word(r, KERNEL_OP_COLUMN, "op");
    return false;
}

static bool read_row(struct parser *r, struct kernel_measurement *kernel)
{
    *kernel = (struct kernel_measurement){.row = r->row, .gpu = text_of(r, KERNEL_GPU_COLUMN)};
    double us = 0;
    if (csv_cell_number(r->csv, r->row, r->columns[KERNEL_TIME_US_COLUMN], 0, 1e15, &us, r->diags) == STATUS_OK && us <= 0)
        diag_error(r->diags, csv_place(r->csv, r->row, r->columns[KERNEL_TIME_US_COLUMN]), "time_us has to be above 0");
    kernel->seconds = us * 1e-6;
    return read_op(r, kernel);
}

bool kernel_table_is(const struct csv_table *csv)
{
    return csv_table_column(csv, "op") >= 0 && csv_table_column(csv, "time_us") >= 0;
}

enum status kernel_table_build(struct csv_table *csv, struct kernel_table *table, struct diags *diags)
{
    struct parser parser = {.csv = csv, .diags = diags};
    struct kernel_table built = {0};
    size_t errors_before = diags->n_errors;
    if (csv_table_columns(csv, columns, N_KERNEL_COLUMNS, parser.columns, diags) == STATUS_OK) {
        csv_table_note_unknown_columns(csv, columns, N_KERNEL_COLUMNS, diags);
        built.items = memory_new(csv->n_rows, sizeof *built.items);
        for (parser.row = 0; parser.row < csv->n_rows; parser.row++) {
            if (read_row(&parser, &built.items[built.n_items]))
                built.n_items++;
            else
                built.n_skipped++;
        }
    }
    tell_other_words(&parser);
    free(parser.unknown);
    built.csv = *csv;
    *csv = (struct csv_table){0};
    if (diags->n_errors > errors_before) {
        kernel_table_free(&built);
        return STATUS_BAD_INPUT;
    }
    *table = built;
    return STATUS_OK;
}

void kernel_table_free(struct kernel_table *table)
{
    free(table->items);
    csv_table_free(&table->csv);
    *table = (struct kernel_table){0};
}

static uint64_t hash_numbers(uint64_t hash, const double *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) /* whole, and below 2^53 */
        hash = hash_number(hash, (uint64_t)numbers[i]);
    return hash;
}

uint64_t kernel_case(const struct kernel_measurement *kernel)
{
    uint64_t hash = hash_number(HASH_BEGIN, (uint64_t)kernel->op);
    if (kernel->op == MEASURED_GEMM) {
        const struct work_gemm *g = &kernel->gemm;
        if (g->apart)
            hash = hash_number(hash, 1);
        return hash_numbers(hash, (double[]){g->precision, (double)g->m, (double)g->n, (double)g->k, g->count}, 5);
    }
    if (kernel->op == MEASURED_COLLECTIVE) {
        const struct kernel_collective *c = &kernel->collective;
        return hash_numbers(hash, (double[]){c->collective, c->ranks, c->nodes, c->bytes}, 4);
    }
    const struct work_attention *a = &kernel->attention;
    return hash_numbers(
        hash,
        (double[]){(double)a->batch, (double)a->query_tokens, a->heads, a->kv_heads, a->head_dim, 2 * a->pairs, a->precision}, 7);
}
