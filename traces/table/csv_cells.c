/* csv_cells.c - columns by name, cells by type, and writing of cells. */
#include <csv.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/memory.h"
#include "model/base/units.h"
#include "model/base/utf8.h"
#include "traces/table/csv.h"

/* --- columns ------------------------------------------------------------------------------------------------------- */

int csv_table_column(const struct csv_table *table, const char *name)
{
    for (int i = 0; i < table->n_columns; i++)
        if (strcmp(table->header[i], name) == 0)
            return i;
    return -1;
}

static bool is_expected(const struct csv_column *expected, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(expected[i].name, name) == 0)
            return true;
    return false;
}

/* The header names that are none of those expected: the misspelt and the unknown. The caller frees the list. */
static const char **unexpected_names(const struct csv_table *table, const struct csv_column *expected, size_t n, size_t *n_names)
{
    const char **names = memory_new((size_t)table->n_columns, sizeof *names);
    *n_names = 0;
    for (int i = 0; i < table->n_columns; i++)
        if (table->header[i][0] && !is_expected(expected, n, table->header[i]))
            names[(*n_names)++] = table->header[i];
    return names;
}

enum status csv_table_columns(const struct csv_table *table, const struct csv_column *expected, size_t n, int *columns,
                              struct diags *diags)
{
    char missing[1024] = "";
    int n_missing = 0;
    size_t n_names;
    const char **names = unexpected_names(table, expected, n, &n_names);
    for (size_t i = 0; i < n; i++) {
        columns[i] = csv_table_column(table, expected[i].name);
        if (columns[i] >= 0 || !expected[i].required)
            continue;
        const char *near = nearest_name(expected[i].name, names, n_names);
        text_append(missing, sizeof missing, "%s'%s'", n_missing++ ? ", " : "", expected[i].name);
        if (near)
            text_append(missing, sizeof missing, " (did you mean '%.40s'?)", near);
    }
    free(names);
    if (n_missing == 0)
        return STATUS_OK;
    diag_error(diags, csv_header_place(table, 0), "missing column%s %s", n_missing == 1 ? "" : "s", missing);
    return STATUS_BAD_INPUT;
}

void csv_table_note_unknown_columns(const struct csv_table *table, const struct csv_column *expected, size_t n,
                                    struct diags *diags)
{
    char unknown[1024] = "";
    size_t n_names;
    const char **names = unexpected_names(table, expected, n, &n_names), **absent = memory_new(n, sizeof *absent);
    size_t n_absent = 0;
    for (size_t i = 0; i < n; i++)
        if (csv_table_column(table, expected[i].name) < 0)
            absent[n_absent++] = expected[i].name;
    for (size_t i = 0; i < n_names; i++) {
        const char *near = nearest_name(names[i], absent, n_absent);
        text_append(unknown, sizeof unknown, "%s'%.40s'", i ? ", " : "", names[i]);
        if (near)
            text_append(unknown, sizeof unknown, " (did you mean '%s'?)", near);
    }
    free(absent);
    if (n_names)
        diag_warning(diags, csv_header_place(table, csv_table_column(table, names[0])), "unknown column%s %s ignored",
                     n_names == 1 ? "" : "s", unknown);
    free(names);
}

/* --- cells --------------------------------------------------------------------------------------------------------- */

static enum status cell_refuse(const struct csv_table *table, size_t row, int column, const char *what, const char *range,
                               struct diags *diags)
{
    const char *text = csv_cell(table, row, column);
    const char *name = column < 0 ? "?" : table->header[column];
    if (*text == '\0')
        diag_error(diags, csv_place(table, row, column), "%.40s is empty; %s is needed here", name, what);
    else
        diag_error(diags, csv_place(table, row, column), "%.40s '%.40s' is not %s%s", name, text, what, range);
    return STATUS_BAD_INPUT;
}

enum status csv_cell_integer(const struct csv_table *table, size_t row, int column, int64_t low, int64_t high, int64_t *value,
                             struct diags *diags)
{
    const char *text = csv_cell(table, row, column);
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (end == text || *end)
        return cell_refuse(table, row, column, "a whole number", "", diags);
    if (errno || parsed < low || parsed > high) {
        char range[80];
        snprintf(range, sizeof range, " from %" PRId64 " to %" PRId64, low, high);
        if (high == INT64_MAX || high == INT_MAX)
            snprintf(range, sizeof range, " of at least %" PRId64, low);
        return cell_refuse(table, row, column, "a whole number", range, diags);
    }
    *value = parsed;
    return STATUS_OK;
}

enum status csv_cell_number(const struct csv_table *table, size_t row, int column, double low, double high, double *value,
                            struct diags *diags)
{
    const char *text = csv_cell(table, row, column);
    char *end;
    double parsed = strtod(text, &end);
    if (end == text || *end || !isfinite(parsed))
        return cell_refuse(table, row, column, "a number", "", diags);
    if (parsed < low || parsed > high) {
        char range[80];
        snprintf(range, sizeof range, " from %g to %g", low, high);
        if (isinf(high))
            snprintf(range, sizeof range, " of at least %g", low);
        return cell_refuse(table, row, column, "a number", range, diags);
    }
    *value = parsed;
    return STATUS_OK;
}

/* --- writing ------------------------------------------------------------------------------------------------------- */

static void write_text(FILE *out, bool first, const char *text)
{
    size_t n = strlen(text);
    bool blank_edge = n > 0 && (text[0] == ' ' || text[0] == '\t' || text[n - 1] == ' ' || text[n - 1] == '\t');
    if (!first)
        putc(',', out);
    bool comment = first && text[0] == '#';
    if (blank_edge || comment || strpbrk(text, ",\"\r\n"))
        csv_fwrite(out, text, n); /* libcsv quotes and doubles */
    else
        fwrite(text, 1, n, out);
}

void csv_write_cell(FILE *out, bool first, const char *text)
{
    if (utf8_is_text(text)) {
        write_text(out, first, text);
        return;
    }
    char *copy = utf8_copy(text);
    write_text(out, first, copy);
    free(copy);
}

void csv_write_number(FILE *out, bool first, double value)
{
    char text[40] = "";
    bool whole = fabs(value) < 1e15 && value == trunc(value); /* for people too: 2566120, not 2.56612e+06 */
    if (whole)
        snprintf(text, sizeof text, "%.0f", value);
    for (int digits = 6; !whole && !isnan(value) && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    csv_write_cell(out, first, text);
}

void csv_write_integer(FILE *out, bool first, int64_t value)
{
    fprintf(out, "%s%" PRId64, first ? "" : ",", value);
}

void csv_write_row(FILE *out, const char *const *cells, size_t n)
{
    bool blank = true; /* a row of empty cells would read as a blank line, unless the first has quotes */
    for (size_t i = 0; i < n; i++)
        blank = blank && !*cells[i];
    bool split = n == 1 && strpbrk(cells[0], ";\t"); /* without a comma it would read as a row between semicolons or tabs */
    if (split)
        csv_fwrite(out, cells[0], strlen(cells[0]));
    if (blank)
        fputs("\"\"", out);
    for (size_t i = blank; i < n && !split; i++)
        csv_write_cell(out, i == 0, cells[i]);
    fputc('\n', out);
}
