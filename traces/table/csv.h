/*
 * csv.h - comma-separated tables in memory, with a place for every cell.
 *
 * A table is a header line and rows of as many cells (RFC 4180, read by libcsv in strict mode). Cells may be quoted; a quoted
 * cell may contain commas, doubled quotes and line breaks. Accepted besides: semicolons, tabs or bars between cells where the
 * header has no comma, lines that begin with # as comments, a UTF-8 byte-order mark, CRLF or CR line ends, blank lines, rows of
 * empty cells (as spreadsheets write them), blanks around unquoted cells, a last line without its end. Refused, each with file,
 * line and column: an empty file, bytes that are no UTF-8 text, a quote where none can be, a quoted cell that never ends, rows
 * with too few or too many cells, a column named twice.
 *
 * Cells are texts until asked for otherwise; "" is an unknown value. Column -1 stands for a column the table does not have: its
 * cells are "". Rows and columns count from 0, the lines and columns of diagnostics from 1; a cell's diagnostic column is that of
 * its first character in its line.
 *
 * Cost: one pass, memory about twice the text; 300,000 rows of 7 cells take about 0.1 s. Places are found only when something is
 * wrong, by reading that row again.
 */
#ifndef MSIM_TRACES_TABLE_CSV_H
#define MSIM_TRACES_TABLE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/base/diag.h"
#include "model/base/watch.h"

struct csv_record; /* where a row stands in the text */

struct csv_table {
    char *name; /* of the file, for diagnostics */
    size_t n_rows;
    int n_columns;
    const char **header; /* [n_columns] */
    const char **cells;  /* [n_rows][n_columns] */
    bool open_end;       /* no line end behind the last row: perhaps the file was cut short */
    char separator;      /* of cells: a comma, a semicolon, a tab or a bar */
    /* private */
    char *text, *pool;
    size_t n_text;
    struct csv_record *records; /* header, then rows */
};

/* A whole file: ".gz" is decompressed, "-" is standard input. *table is written only on success; free it with csv_table_free. */
MUST_CHECK enum status csv_table_read(const char *path, struct csv_table *table, struct diags *diags);
/* The same from memory (copied); `name` is what diagnostics call it. */
MUST_CHECK enum status csv_table_parse(const char *name, const char *bytes, size_t n_bytes, struct csv_table *table,
                                       struct diags *diags);
/* The same; the watch is told how many of the bytes have been read. */
MUST_CHECK enum status csv_table_parse_watched(const char *name, const char *bytes, size_t n_bytes, const struct watch *watch,
                                               struct csv_table *table, struct diags *diags);
void csv_table_free(struct csv_table *table); /* an all-zero table is empty */

/* The column of that name, -1 when there is none. Names are compared exactly. */
int csv_table_column(const struct csv_table *table, const char *name);

/* What a reader expects of a table. */
struct csv_column {
    const char *name;
    bool required;
};
/* Find n columns; columns[i] becomes the index of expected[i], -1 for an absent optional one. Missing required columns are
 * reported together, with the nearest names the header has. */
MUST_CHECK enum status csv_table_columns(const struct csv_table *table, const struct csv_column *expected, size_t n, int *columns,
                                         struct diags *diags);
/* A warning that names the columns which are none of the n expected and are therefore ignored; nothing when there are none. */
void csv_table_note_unknown_columns(const struct csv_table *table, const struct csv_column *expected, size_t n,
                                    struct diags *diags);

static inline const char *csv_cell(const struct csv_table *table, size_t row, int column)
{
    return column < 0 ? "" : table->cells[row * (size_t)table->n_columns + (size_t)column];
}

/* Where a cell, a row (column < 0) or a header name stands. The file name belongs to the table. */
struct place csv_place(const struct csv_table *table, size_t row, int column);
struct place csv_header_place(const struct csv_table *table, int column);

/* A cell as a whole number in [low, high] or as a finite number in [low, high]. An empty cell, another text or a number outside
 * is reported with its place; *value is written only on success. Floating point accepts what strtod does but inf and nan. */
MUST_CHECK enum status csv_cell_integer(const struct csv_table *table, size_t row, int column, int64_t low, int64_t high,
                                        int64_t *value, struct diags *diags);
MUST_CHECK enum status csv_cell_number(const struct csv_table *table, size_t row, int column, double low, double high,
                                       double *value, struct diags *diags);

/* Writing: cells of one line one after the other, quoted where they need it, with U+FFFD in place of what could not be read
 * again. Errors stay in the stream (ferror). */
void csv_write_cell(FILE *out, bool first, const char *text);
void csv_write_number(
    FILE *out, bool first,
    double value); /* a whole number as one, or the shortest of %.6g .. %.17g that reads back equal; nan: empty */
void csv_write_integer(FILE *out, bool first, int64_t value);
void csv_write_row(FILE *out, const char *const *cells, size_t n);

#endif
