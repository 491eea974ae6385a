/*
 * csv.h - comma-separated tables in memory, with a place for every cell.
 *
 *     case,gpus,step_time_s          header
 *     monday,1024,9.2                row 0: csv_cell(table, 0, 2) is "9.2", at line 2, column 13
 *
 * A table is a header and rows with the same number of cells (RFC 4180, read by libcsv in strict mode). A quoted cell may contain
 * commas, doubled quotes and line breaks. Accepted as well: semicolons, tabs or bars between cells if the header has no comma,
 * comment lines that begin with #, a UTF-8 byte-order mark, CRLF or CR line ends, blank lines, rows of empty cells (as
 * spreadsheets write them), blanks around unquoted cells, a last line without its end. Refused, each with file, line and column:
 * an empty file, bytes that are no UTF-8 text, a misplaced quote, a quoted cell that never ends, rows with too few or too many
 * cells, a column named twice.
 *
 * Cells are texts; "" is an unknown value. Column -1 stands for a column that the table does not have: its cells are "". Rows and
 * columns count from 0, lines and columns of diagnostics from 1. The column of a cell in a diagnostic is that of its first
 * character.
 *
 * Cost: one pass, memory about twice the text; 300,000 rows of 7 cells take about 0.1 s. Places are computed only when something
 * is wrong, by reading that row again.
 */
#ifndef MSIM_TRACES_TABLE_CSV_H
#define MSIM_TRACES_TABLE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/base/diag.h"
#include "model/base/watch.h"

struct csv_record; /* position of a row in the text */

struct csv_table {
    char *name; /* of the file, for diagnostics */
    size_t n_rows;
    int n_columns;
    const char **header; /* [n_columns] */
    const char **cells;  /* [n_rows][n_columns] */
    bool open_end;       /* no line end after the last row: the file may be cut short */
    char separator;      /* between cells: a comma, a semicolon, a tab or a bar */
    /* private */
    char *text, *pool;
    size_t n_text;
    struct csv_record *records; /* header, then rows */
};

/* Reads a whole file: ".gz" is decompressed, "-" is standard input. *table is written only on success; free it with
 * csv_table_free. */
MUST_CHECK enum status csv_table_read(const char *path, struct csv_table *table, struct diags *diags);
/* The same from memory (copied); `name` is the name of the table in diagnostics. */
MUST_CHECK enum status csv_table_parse(const char *name, const char *bytes, size_t n_bytes, struct csv_table *table,
                                       struct diags *diags);
/* The same; the watch gets the number of bytes read so far. */
MUST_CHECK enum status csv_table_parse_watched(const char *name, const char *bytes, size_t n_bytes, const struct watch *watch,
                                               struct csv_table *table, struct diags *diags);
/* The same; `header`, a line of column names with its end, stands above a table that has none (NULL: it has one). */
MUST_CHECK enum status csv_table_parse_headed(const char *name, const char *header, const char *bytes, size_t n_bytes,
                                              struct csv_table *table, struct diags *diags);
void csv_table_free(struct csv_table *table); /* an all-zero table is empty */

/* The column of that name, -1: none. Names are compared exactly. */
int csv_table_column(const struct csv_table *table, const char *name);

/* A column that a reader expects. */
struct csv_column {
    const char *name;
    bool required;
};
/* Finds n columns; columns[i] becomes the index of expected[i], -1 for a missing optional one. One error names all missing
 * required columns, with the nearest names of the header. */
MUST_CHECK enum status csv_table_columns(const struct csv_table *table, const struct csv_column *expected, size_t n, int *columns,
                                         struct diags *diags);
/* Warns of the columns that are none of the n expected ones and are therefore ignored. */
void csv_table_note_unknown_columns(const struct csv_table *table, const struct csv_column *expected, size_t n,
                                    struct diags *diags);

static inline const char *csv_cell(const struct csv_table *table, size_t row, int column)
{
    return column < 0 ? "" : table->cells[row * (size_t)table->n_columns + (size_t)column];
}

/* The place of a cell, a row (column < 0) or a header name. The file name belongs to the table. */
struct place csv_place(const struct csv_table *table, size_t row, int column);
struct place csv_header_place(const struct csv_table *table, int column);

/* A cell as a whole number or a finite number in [low, high]. An empty cell, another text or a number outside is reported with
 * its place; *value is written only on success. Floating point accepts what strtod does except inf and nan. */
MUST_CHECK enum status csv_cell_integer(const struct csv_table *table, size_t row, int column, int64_t low, int64_t high,
                                        int64_t *value, struct diags *diags);
MUST_CHECK enum status csv_cell_number(const struct csv_table *table, size_t row, int column, double low, double high,
                                       double *value, struct diags *diags);

/* Writing: the cells of a line one after the other, quoted where needed, with U+FFFD for characters that could not be read
 * again. Errors stay in the stream (ferror). */
void csv_write_cell(FILE *out, bool first, const char *text);
void csv_write_number(
    FILE *out, bool first,
    double value); /* as a whole number if it is one, else the shortest of %.6g .. %.17g that reads back equal; nan: empty */
void csv_write_integer(FILE *out, bool first, int64_t value);
void csv_write_row(FILE *out, const char *const *cells, size_t n);

#endif
