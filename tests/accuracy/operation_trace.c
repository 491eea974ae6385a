#include "operation_trace.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/table/csv.h"

enum column { STEP, DP, PP, OP, MB, START, DURATION, N_COLUMNS };

static const struct csv_column expected[N_COLUMNS] = {{"step", true}, {"dp", true},       {"pp", true},    {"op", true},
                                                      {"mb", true},   {"start_us", true}, {"dur_us", true}};

static const char *const kind_names[N_TRACED_KINDS] = {
#define X(id, name) [TRACED_##id] = name,
    TRACED_KINDS(X)
#undef X
};

struct row {
    int64_t cells[N_COLUMNS];
};

static enum status read_row(const struct csv_table *table, const int *columns, size_t i, struct row *row, struct diags *diags)
{
    for (int c = 0; c < N_COLUMNS; c++) {
        if (c == OP)
            continue;
        enum status status = csv_cell_integer(table, i, columns[c], -1000000, INT64_MAX / 2, &row->cells[c], diags);
        if (status != STATUS_OK)
            return status;
    }
    for (int k = 0; k < N_TRACED_KINDS; k++)
        if (strcmp(csv_cell(table, i, columns[OP]), kind_names[k]) == 0) {
            row->cells[OP] = k;
            return STATUS_OK;
        }
    diag_error(diags, csv_place(table, i, columns[OP]), "unknown operation");
    return STATUS_BAD_INPUT;
}

/* The numbers of steps and the extents of the other dimensions. */
static void measure(struct operation_trace *trace, const struct row *rows, size_t n)
{
    trace->steps = memory_new(n, sizeof *trace->steps);
    for (size_t i = 0; i < n; i++) {
        const int64_t *cells = rows[i].cells;
        if (i == 0 || cells[STEP] != rows[i - 1].cells[STEP])
            trace->steps[trace->n_steps++] = cells[STEP];
        trace->dp = cells[DP] >= trace->dp ? (int)cells[DP] + 1 : trace->dp;
        trace->pp = cells[PP] >= trace->pp ? (int)cells[PP] + 1 : trace->pp;
        trace->micro_batches = cells[MB] >= trace->micro_batches ? (int)cells[MB] + 1 : trace->micro_batches;
    }
}

static void fill(struct operation_trace *trace, const struct row *rows, size_t n)
{
    int32_t counts[N_TRACED_KINDS] = {0};
    int64_t end = 0;
    int step = -1;
    struct traced_rank *rank = NULL;
    for (size_t i = 0; i < n; i++) {
        const int64_t *cells = rows[i].cells, *before = i ? rows[i - 1].cells : NULL;
        bool same_step = i > 0 && cells[STEP] == before[STEP];
        step += !same_step;
        if (!same_step || cells[DP] != before[DP] || cells[PP] != before[PP]) {
            rank = &trace->ranks[((size_t)step * (size_t)trace->pp + (size_t)cells[PP]) * (size_t)trace->dp + (size_t)cells[DP]];
            rank->ops = &trace->ops[i];
            end = cells[START];
            memset(counts, 0, sizeof counts);
        }
        trace->ops[i] = (struct traced_op){.kind = (enum traced_kind)cells[OP],
                                           .micro_batch = (int32_t)cells[MB],
                                           .ordinal = counts[cells[OP]]++,
                                           .start_us = cells[START],
                                           .dur_us = cells[DURATION] > 0 ? cells[DURATION] : 0,
                                           .idle_us = cells[START] > end ? cells[START] - end : 0};
        end = cells[START] + cells[DURATION] > end ? cells[START] + cells[DURATION] : end;
        rank->n_ops++;
    }
}

enum status operation_trace_read(const char *path, struct operation_trace *trace, struct diags *diags)
{
    struct csv_table table = {0};
    int columns[N_COLUMNS];
    enum status status = csv_table_read(path, &table, diags);
    if (status == STATUS_OK)
        status = csv_table_columns(&table, expected, N_COLUMNS, columns, diags);
    struct row *rows = status == STATUS_OK ? memory_new(table.n_rows, sizeof *rows) : NULL;
    for (size_t i = 0; status == STATUS_OK && i < table.n_rows; i++)
        status = read_row(&table, columns, i, &rows[i], diags);
    if (status == STATUS_OK) {
        struct operation_trace built = {0};
        measure(&built, rows, table.n_rows);
        built.ranks = memory_new((size_t)built.n_steps * (size_t)built.dp * (size_t)built.pp, sizeof *built.ranks);
        built.ops = memory_new(table.n_rows, sizeof *built.ops);
        fill(&built, rows, table.n_rows);
        *trace = built;
    }
    free(rows);
    csv_table_free(&table);
    return status;
}

void operation_trace_free(struct operation_trace *trace)
{
    free(trace->steps);
    free(trace->ranks);
    free(trace->ops);
    *trace = (struct operation_trace){0};
}

const struct traced_op *traced_rank_find(const struct traced_rank *rank, enum traced_kind kind, int32_t ordinal)
{
    for (size_t i = 0; i < rank->n_ops; i++)
        if (rank->ops[i].kind == kind && rank->ops[i].ordinal == ordinal)
            return &rank->ops[i];
    return NULL;
}
