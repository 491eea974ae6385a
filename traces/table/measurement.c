/* measurement.c - reads a table of measured runs. */
#include "traces/table/measurement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/file.h"
#include "model/base/memory.h"
#include "model/base/units.h"
#include "model/cost/work/work.h"
#include "traces/table/measurement_internal.h"
#include "traces/table/nccl_log.h"
#include "traces/table/reconcile.h"

/* Where sliding windows were used and nobody published how wide. */
static void assume_window(struct measurement *row)
{
    bool sliding = row->job.features & FEATURE_BIT(SLIDING_WINDOW);
    if (sliding && row->model.window == 0)
        row->job.window = (int64_t)((double)row->job.seq_len * SLIDING_WINDOW_ASSUMED + 0.5);
}

/* Is a column among those that the source does not state, between semicolons? */
static bool is_named(const char *columns, const char *column)
{
    size_t length = strlen(column);
    for (const char *at = columns; (at = strstr(at, column)) != NULL; at += length) {
        bool begins = at == columns || at[-1] == ';', ends = at[length] == '\0' || at[length] == ';';
        if (begins && ends)
            return true;
    }
    return false;
}

static unsigned read_open(const struct measurement_parser *parser, const char *assumed)
{
    static const struct {
        enum column column;
        enum measurement_open bit;
    } columns[] = {{COLUMN_VOCAB, OPEN_VOCAB}, {COLUMN_MICRO_BATCH, OPEN_MICRO_BATCH}, {COLUMN_RECOMPUTE, OPEN_RECOMPUTE}};
    unsigned open = 0;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (is_named(assumed, measurement_columns[columns[i].column].name) ||
            parser_left_open(parser, parser->row, columns[i].column))
            open |= columns[i].bit;
    bool counted = *parser_text(parser, COLUMN_ACCUMULATION) && !parser_left_open(parser, parser->row, COLUMN_ACCUMULATION);
    return counted ? open & ~(unsigned)OPEN_MICRO_BATCH : open; /* accumulation determines it */
}

/* One row; false when it cannot be used. */
static bool read_row(struct measurement_parser *parser, struct measurement *row)
{
    *row = (struct measurement){.at = csv_place(parser->csv, parser->row, -1),
                                .name = parser_text(parser, COLUMN_CASE),
                                .source = parser_text(parser, COLUMN_SOURCE),
                                .assumed = parser_text(parser, COLUMN_ASSUMED)};
    parser->unusable = parser->bad_cell = false;
    struct measurement_shape shape = parser_shape(parser);
    int zero = (int)parser_whole(parser, COLUMN_ZERO, 0, 3, layout_defaults.zero);
    parser_model(parser, &shape, &row->model);
    row->named = *row->name;
    row->name = *row->name ? row->name : parser_text(parser, COLUMN_MODEL);
    parser_job(parser, &shape, zero, &row->job);
    assume_window(row);
    parser_layout(parser, zero, row->job.features, &row->layout, &row->gpus);
    parser_accumulation(parser, &row->layout, &row->job);
    if (row->model.moe.experts && row->gpus > 1 && *parser_text(parser, COLUMN_EP) == '\0')
        parser_warn_once(parser, COLUMN_EP, measurement_columns[COLUMN_EP].name,
                         "no ep is given for a mixture of experts; msim assumes 1: every rank has all experts");
    parser_assume_stack(parser, row);
    parser_adapt(parser, &row->layout, &row->job);
    parser_cluster(parser, row);
    parser_settle_features(parser, row);
    row->open = read_open(parser, row->assumed);
    parser_outcome(parser, row);
    return !parser->unusable;
}

static bool any_empty(const struct measurement_parser *parser, enum column column)
{
    for (size_t row = 0; row < parser->csv->n_rows; row++)
        if (parser_left_open(parser, row, column))
            return true;
    return false;
}

/* What is assumed for empty cells must be said: in one line a table. */
static void note_defaults(const struct measurement_parser *parser)
{
    static const struct {
        enum column column;
        const char *taken;
    } defaults[] = {
        {COLUMN_VOCAB, "51,200 (32,000 for LLaMA-like models)"},
        {COLUMN_GPUS_PER_NODE, "usual for the GPU"},
        {COLUMN_NIC_GBPS, "usual for the GPU"},
        {COLUMN_TP, "1"},
        {COLUMN_PP, "1"},
        {COLUMN_VPP, "1"},
        {COLUMN_CP, "1"},
        {COLUMN_ZERO, "1"},
        {COLUMN_SEQUENCE_PARALLEL, "1 if tp > 1"},
        {COLUMN_MICRO_BATCH, "1 or a likely value"},
        {COLUMN_RECOMPUTE, "none if it fits"},
        {COLUMN_PRECISION, "bf16"},
        {COLUMN_FEATURES, "none (eager code)"},
    };
    char text[512] = "";
    bool usual_features = parser->columns[COLUMN_FEATURES] < 0; /* no column is not a column of empty cells */
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        if (defaults[i].column == COLUMN_FEATURES && usual_features)
            continue;
        if (any_empty(parser, defaults[i].column))
            text_append(text, sizeof text, "%s%s %s%s", *text ? ", " : "", measurement_columns[defaults[i].column].name,
                        defaults[i].taken,
                        defaults[i].column == COLUMN_ZERO && parser->wide_gradients
                            ? " with gradients in fp32 (in bf16 if the cell contains 1)"
                            : "");
    }
    struct place table = {.file = parser->csv->name};
    if (*text)
        diag_note(parser->diags, table, "values assumed for empty cells: %s", text);
    if (parser->n_changes)
        diag_note(parser->diags, table, "features of %zu row%s, which begin with a sign, change those of current training stacks",
                  parser->n_changes, parser->n_changes == 1 ? "" : "s");
    if (usual_features)
        diag_note(parser->diags, table, "there is no column 'features': those of current training stacks are assumed");
}

static void parser_free(struct measurement_parser *parser)
{
    for (size_t i = 0; i < parser->n_reported; i++)
        free(parser->reported[i].text);
    free(parser->reported);
    free(parser->models);
    free(parser->clusters);
}

/* Where there is a column of models, the catalog can stand for the columns of their shape. */
static enum status find_columns(struct measurement_parser *parser)
{
    struct csv_column expected[N_COLUMNS];
    memcpy(expected, measurement_columns, sizeof expected);
    if (csv_table_column(parser->csv, measurement_columns[COLUMN_MODEL].name) >= 0)
        expected[COLUMN_LAYERS].required = expected[COLUMN_HIDDEN].required = expected[COLUMN_HEADS].required = false;
    return csv_table_columns(parser->csv, expected, N_COLUMNS, parser->columns, parser->diags);
}

enum status measurement_table_build(struct csv_table *csv, struct measurement_table *table, struct diags *diags)
{
    struct measurement_parser parser = {.csv = csv, .diags = diags};
    struct measurement_table built = {0};
    size_t errors_before = diags->n_errors, capacity = 0;
    words_rename_columns(&parser, csv);
    if (find_columns(&parser) == STATUS_OK) {
        csv_table_note_unknown_columns(csv, measurement_columns, N_COLUMNS, diags);
        cells_find_point(&parser);
        for (parser.row = 0; parser.row < csv->n_rows; parser.row++) {
            built.items = memory_grow(built.items, &capacity, built.n_items + 1, sizeof *built.items);
            if (read_row(&parser, &built.items[built.n_items]))
                built.n_items++;
            else
                built.n_skipped++;
        }
        if (diags->n_errors == errors_before) {
            note_defaults(&parser);
            measurement_reconcile(&built, diags);
        }
    }
    parser_free(&parser);
    built.csv = *csv;
    *csv = (struct csv_table){0};
    if (diags->n_errors > errors_before) {
        measurement_table_free(&built);
        return STATUS_BAD_INPUT;
    }
    *table = built;
    return STATUS_OK;
}

enum status measurement_table_read(const char *path, struct measurement_table *table, struct diags *diags)
{
    struct csv_table csv;
    char *text;
    size_t n;
    enum status status = file_read(path, FILE_TEXT_MAX, &text, &n, diags);
    if (status != STATUS_OK)
        return status;
    if (nccl_log_is(text, n)) {
        diag_error(diags, (struct place){.file = path}, "this is a log of nccl-tests; msim calibrate reads it");
        status = STATUS_BAD_INPUT;
    } else {
        status = csv_table_parse(path, text, n, &csv, diags);
    }
    free(text);
    return status == STATUS_OK ? measurement_table_build(&csv, table, diags) : status;
}

void measurement_table_free(struct measurement_table *table)
{
    free(table->items);
    csv_table_free(&table->csv);
    *table = (struct measurement_table){0};
}
