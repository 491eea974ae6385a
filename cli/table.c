#include "cli/table.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "traces/csv.h"

static const char *const tint_codes[] = {"", "\033[32m", "\033[33m", "\033[31m", "\033[2m", "\033[1m"};

const char *tint_start(enum tint tint, bool colour)
{
    return colour ? tint_codes[tint] : "";
}

const char *tint_end(enum tint tint, bool colour)
{
    return colour && tint != TINT_NONE ? "\033[0m" : "";
}

/* The next code point, by the lead byte's length; a malformed byte counts as one character. */
static uint32_t next_character(const unsigned char **p)
{
    static const unsigned char masks[] = {0x7f, 0x1f, 0x0f, 0x07};
    unsigned char lead = *(*p)++;
    int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    uint32_t code = lead & masks[more];
    for (; more > 0 && (**p & 0xc0) == 0x80; more--)
        code = code << 6 | (*(*p)++ & 0x3fu);
    return code;
}

int text_width(const char *utf8)
{
    const unsigned char *p = (const unsigned char *)utf8;
    int width = 0;
    while (*p) {
        uint32_t c = next_character(&p);
        bool combining = c >= 0x300 && c <= 0x36f;
        bool wide = (c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) || (c >= 0xac00 && c <= 0xd7a3) ||
                    (c >= 0xf900 && c <= 0xfaff) || (c >= 0xff00 && c <= 0xff60) || (c >= 0x1f300 && c <= 0x1faff);
        width += combining ? 0 : wide ? 2 : 1;
    }
    return width;
}

void table_column(struct table *table, const char *title, const char *unit, enum align align)
{
    table->columns = memory_grow(table->columns, &table->column_capacity, table->n_columns + 1, sizeof *table->columns);
    table->columns[table->n_columns++] =
        (struct table_column){memory_copy_text(title), unit ? memory_copy_text(unit) : NULL, align};
}

void table_cell(struct table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = NULL;
    int n = vasprintf(&text, format, args);
    va_end(args);
    table->cells = memory_grow(table->cells, &table->cell_capacity, table->n_cells + 1, sizeof *table->cells);
    table->cells[table->n_cells++] = (struct table_cell){n < 0 ? memory_copy_text("") : text, table->next_tint};
    table->next_tint = TINT_NONE;
}

void table_tint(struct table *table, enum tint tint)
{
    table->next_tint = tint;
}

static int heading_width(const struct table_column *column)
{
    return text_width(column->title) + (column->unit ? text_width(column->unit) + 3 : 0);
}

static int *column_widths(const struct table *table)
{
    int *widths = memory_new(table->n_columns, sizeof *widths);
    for (size_t i = 0; i < table->n_columns; i++)
        widths[i] = heading_width(&table->columns[i]);
    for (size_t i = 0; i < table->n_cells; i++) {
        int width = text_width(table->cells[i].text);
        int *widest = &widths[i % table->n_columns];
        if (width > *widest)
            *widest = width;
    }
    return widths;
}

/* A line in the making: blanks are owed until a text follows, so that none stand at its end. */
struct line {
    FILE *out;
    int blanks;
    bool colour;
};

static void line_text(struct line *line, const char *text, int room, enum align align, enum tint tint)
{
    if (*text) {
        int before = line->blanks + (align == ALIGN_RIGHT ? room : 0);
        fprintf(line->out, "%*s%s%s%s", before, "", tint_start(tint, line->colour), text, tint_end(tint, line->colour));
        line->blanks = align == ALIGN_LEFT ? room : 0;
    } else {
        line->blanks += room;
    }
    line->blanks += 2; /* between columns */
}

static void line_end(struct line *line)
{
    fputc('\n', line->out);
    line->blanks = 0;
}

static void write_headings(const struct table *table, struct line *line, const int *widths)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        const struct table_column *column = &table->columns[i];
        const char *unit = column->unit;
        char heading[128];
        snprintf(heading, sizeof heading, "%s%s%s%s", column->title, unit ? " [" : "", unit ? unit : "", unit ? "]" : "");
        line_text(line, heading, widths[i] - heading_width(column), column->align, TINT_STRONG);
    }
    line_end(line);
}

void table_write_text(const struct table *table, FILE *out, bool colour)
{
    if (!table->n_columns)
        return;
    int *widths = column_widths(table);
    struct line line = {.out = out, .colour = colour};
    write_headings(table, &line, widths);
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t c = i % table->n_columns;
        const struct table_cell *cell = &table->cells[i];
        line_text(&line, cell->text, widths[c] - text_width(cell->text), table->columns[c].align, cell->tint);
        if (c + 1 == table->n_columns)
            line_end(&line);
    }
    free(widths);
}

/* "step time" in "s" -> step_time_s; "MFU" in "%" -> mfu_pct. */
static void write_csv_heading(FILE *out, bool first, const struct table_column *column)
{
    char name[128];
    const char *unit = column->unit && strcmp(column->unit, "%") == 0 ? "pct" : column->unit;
    snprintf(name, sizeof name, "%s%s%s", column->title, unit ? "_" : "", unit ? unit : "");
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
        write_csv_heading(out, i == 0, &table->columns[i]);
    if (table->n_columns)
        fputc('\n', out);
    for (size_t i = 0; i < table->n_cells; i++) {
        csv_write_cell(out, i % table->n_columns == 0, table->cells[i].text);
        if ((i + 1) % table->n_columns == 0)
            fputc('\n', out);
    }
}

void table_write(const struct table *table, const struct invocation *call)
{
    if (call->format == FORMAT_CSV)
        table_write_csv(table, call->out);
    else
        table_write_text(table, call->out, call->colour);
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
