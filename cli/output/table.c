#include "cli/output/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/table/csv.h"

static const char *const tint_codes[] = {"", "\033[32m", "\033[33m", "\033[31m", "\033[2m", "\033[1m"};

const char *tint_start(enum tint tint, bool colour)
{
    return colour ? tint_codes[tint] : "";
}

const char *tint_end(enum tint tint, bool colour)
{
    return colour && tint != TINT_NONE ? "\033[0m" : "";
}

void table_column(struct table *table, const char *title, const char *unit, enum align align)
{
    table->columns = memory_grow(table->columns, &table->column_capacity, table->n_columns + 1, sizeof *table->columns);
    table->columns[table->n_columns++] =
        (struct table_column){memory_copy_text(title), unit ? memory_copy_text(unit) : NULL, align, VIEW_BOTH};
}

void table_column_view(struct table *table, enum column_view view)
{
    table->columns[table->n_columns - 1].view = view;
}

void drop_sign_of_zero(char *text, bool plus)
{
    size_t length = strlen(text);
    if (length < 2 || text[0] != '-' || text[1] != '0' || strspn(text + 1, "0.") + 1 != length)
        return;
    if (plus)
        text[0] = '+';
    else
        memmove(text, text + 1, length);
}

/* A line break of a user's text would tear the table. */
static void join_lines(char *text)
{
    for (; *text; text++)
        if (*text == '\n' || *text == '\r' || *text == '\t')
            *text = ' ';
}

void table_cell(struct table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n > 0) {
        drop_sign_of_zero(text, strncmp(format, "%+", 2) == 0);
        join_lines(text);
    }
    table->cells = memory_grow(table->cells, &table->cell_capacity, table->n_cells + 1, sizeof *table->cells);
    table->cells[table->n_cells++] = (struct table_cell){n < 0 ? memory_copy_text("") : text, table->next_tint};
    table->next_tint = TINT_NONE;
}

void difference_cell(struct table *table, double value, int digits)
{
    if (fabs(value) < 0.5 * pow(10, -digits))
        table_cell(table, "%.*f", digits, 0.0);
    else
        table_cell(table, "%+.*f", digits, value);
}

void table_tint(struct table *table, enum tint tint)
{
    table->next_tint = tint;
}

/* "step time" in "s" -> step_time_s; "MFU" in "%" -> mfu_pct. */
void csv_title_write(FILE *out, bool first, const char *title, const char *unit)
{
    char name[128];
    unit = unit && strcmp(unit, "%") == 0 ? "pct" : unit;
    snprintf(name, sizeof name, "%s%s%s", title, unit ? "_" : "", unit ? unit : "");
    for (char *p = name; *p; p++) {
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
        else if (*p == ' ' || *p == '-' || *p == '/')
            *p = '_';
    }
    csv_write_cell(out, first, name);
}

void table_write_csv(const struct table *table, FILE *out)
{
    for (size_t i = 0; i < table->n_columns; i++)
        csv_title_write(out, i == 0, table->columns[i].title, table->columns[i].unit);
    if (table->n_columns)
        fputc('\n', out);
    for (size_t i = 0; i < table->n_cells; i++) {
        csv_write_cell(out, i % table->n_columns == 0, table->cells[i].text);
        if ((i + 1) % table->n_columns == 0)
            fputc('\n', out);
    }
}

void table_free(struct table *table)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        free(table->columns[i].title);
        free(table->columns[i].unit);
    }
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i].text);
    free(table->columns);
    free(table->cells);
    *table = (struct table){0};
}

void table_value_row(struct table *table, const char *name, const char *meaning, const char *format, ...)
{
    char text[96];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    table_cell(table, "%s", name);
    table_tint(table, TINT_STRONG);
    table_cell(table, "%s", text);
    table_tint(table, TINT_DIM);
    table_cell(table, "%s", meaning);
}
