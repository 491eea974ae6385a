/*
 * table.h - aligned tables for people, the same rows as CSV for programs.
 *
 *     struct table table = {0};
 *     table_column(&table, "layout", NULL, ALIGN_LEFT);
 *     table_column(&table, "step", "s", ALIGN_RIGHT);
 *     table_cell(&table, "tp=8");
 *     table_cell(&table, "%.2f", seconds);
 *     table_write(&table, call);         text or CSV, as call->format says
 *     table_free(&table);
 *
 * Cells come row by row. Text: columns two blanks apart, units behind the titles in brackets, widths counted in characters of
 * UTF-8, colour only where the call has it, no wider than the terminal where that can be (table_text.c). CSV: a title and its
 * unit become the column name "step_s" (RFC 4180 quoting).
 */
#ifndef MSIM_CLI_OUTPUT_TABLE_H
#define MSIM_CLI_OUTPUT_TABLE_H

#include "cli/options/command.h"
#include "model/base/number_text.h"

enum align { ALIGN_LEFT, ALIGN_RIGHT };
enum tint { TINT_NONE, TINT_GOOD, TINT_WARN, TINT_BAD, TINT_DIM, TINT_STRONG };

/* In which of two views of a text table a column is: both, the usual one, or the one with all columns. */
enum column_view { VIEW_BOTH, VIEW_USUAL, VIEW_ALL };
struct table_column {
    char *title, *unit;
    enum align align;
    enum column_view view;
};
struct table_cell {
    char *text;
    enum tint tint;
};
struct table {
    struct table_column *columns;
    size_t n_columns, column_capacity;
    struct table_cell *cells;
    size_t n_cells, cell_capacity;
    enum tint next_tint;
    bool all; /* show the view with all columns; a table with two views otherwise fits TABLE_WIDTH columns of text */
};
enum { TABLE_WIDTH = 96 };

void table_column(struct table *table, const char *title, const char *unit, enum align align);
void table_column_view(struct table *table, enum column_view view); /* of the column added last */
void table_cell(struct table *table, const char *format, ...) PRINTF_LIKE(2, 3);
void table_tint(struct table *table, enum tint tint); /* of the next cell */
/* "+1.25", and "0.00" for what the digits shown make none. */
void difference_cell(struct table *table, double value, int digits);
/* Three cells: a quantity, its value (formatted, at most 95 characters), what it means. */
void table_value_row(struct table *table, const char *name, const char *meaning, const char *format, ...) PRINTF_LIKE(4, 5);
void table_write(const struct table *table, const struct invocation *call);
void table_write_text(const struct table *table, const struct invocation *call);
void table_write_csv(const struct table *table, FILE *out);
void table_free(struct table *table);
/* The name of a column of CSV: "step time" in "s" (NULL: no unit) is step_time_s. */
void csv_title_write(FILE *out, bool first, const char *title, const char *unit);

/* ANSI code that starts a tint ("" when !colour), and the one that ends it. */
const char *tint_start(enum tint tint, bool colour);
const char *tint_end(enum tint tint, bool colour);

/* Takes the sign from "-0.0", a small negative number rounded; makes it a plus where signs are shown. */
void drop_sign_of_zero(char *text, bool plus);

#endif
