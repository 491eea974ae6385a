/*
 * A table for people. One that is wider than the terminal is made narrower, as far as it needs to be, in this order: headings go
 * over several lines; columns that say the same in every row are said once, below; columns of texts are wrapped.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/options/terminal.h"
#include "cli/output/table.h"
#include "model/base/memory.h"

enum { GAP = 2, NARROWEST_TEXT = 12, HEADING_SIZE = 128 };

/* How a table is shown. Arrays are [n_columns]. */
struct view {
    const struct table *table;
    FILE *out;
    bool colour;
    int width;     /* of the terminal; 0 unknown */
    char **titles; /* with units */
    int *widths;
    bool *hidden; /* said below */
    bool *absent; /* of the other view */
};

/* --- pieces of texts -------------------------------------------------------------------------------------------------------- */

static int width_of(const char *text, size_t n)
{
    char *copy = strndup(text, n);
    int width = copy ? text_width(copy) : 0;
    free(copy);
    return width;
}

/* Bytes of `text` that stand on a line of `width`: all, or up to the last blank or comma, or else to the first. */
static size_t piece_length(const char *text, int width)
{
    size_t best = 0, n = strlen(text);
    if (text_width(text) <= width)
        return n;
    for (size_t i = 0; i < n; i++) {
        size_t end = text[i] == ' ' ? i : i + 1; /* a comma stays */
        if (text[i] != ' ' && text[i] != ',')
            continue;
        if (best > 0 && width_of(text, end) > width)
            break;
        best = end;
    }
    return best > 0 ? best : n;
}

static int longest_piece(const char *text)
{
    int longest = 0;
    while (*text) {
        size_t n = piece_length(text, 0);
        int width = width_of(text, n);
        longest = width > longest ? width : longest;
        text += n;
        text += strspn(text, " ");
    }
    return longest;
}

static int count_pieces(const char *text, int width)
{
    int n = 0;
    for (; *text; n++) {
        text += piece_length(text, width);
        text += strspn(text, " ");
    }
    return n;
}

/* --- how wide --- */

static const char *cell_text(const struct table *table, size_t row, size_t column)
{
    return table->cells[row * table->n_columns + column].text;
}

static size_t count_rows(const struct table *table)
{
    return table->n_cells / table->n_columns;
}

static int widest_cell(const struct table *table, size_t column)
{
    int widest = 0;
    for (size_t row = 0; row < count_rows(table); row++) {
        int width = text_width(cell_text(table, row, column));
        widest = width > widest ? width : widest;
    }
    return widest;
}

static int total_width(const struct view *view)
{
    int width = -GAP;
    for (size_t c = 0; c < view->table->n_columns; c++)
        width += view->hidden[c] || view->absent[c] ? 0 : view->widths[c] + GAP;
    return width;
}

static bool says_the_same(const struct table *table, size_t column)
{
    bool same = count_rows(table) > 1;
    for (size_t row = 1; row < count_rows(table); row++)
        same &= strcmp(cell_text(table, row, column), cell_text(table, 0, column)) == 0;
    return same;
}

static bool too_wide(const struct view *view)
{
    return view->width > 0 && total_width(view) > view->width;
}

/* The narrowest that a column of texts may be: no word is taken apart. */
static int least_width(const struct view *view, size_t column)
{
    int least = longest_piece(view->titles[column]);
    for (size_t row = 0; row < count_rows(view->table); row++) {
        int width = longest_piece(cell_text(view->table, row, column));
        least = width > least ? width : least;
    }
    return least > NARROWEST_TEXT ? least : NARROWEST_TEXT;
}

/* The column of texts that can give most; SIZE_MAX: none can give any. */
static size_t most_generous(const struct view *view)
{
    size_t best = SIZE_MAX;
    int most = 0;
    for (size_t c = 0; c < view->table->n_columns; c++) {
        bool texts = !view->hidden[c] && !view->absent[c] && view->table->columns[c].align == ALIGN_LEFT;
        int spare = texts ? view->widths[c] - least_width(view, c) : 0;
        if (spare > most) {
            most = spare;
            best = c;
        }
    }
    return best;
}

/* One column of texts after another gives what is too much, as far as it can. */
static void squeeze_texts(struct view *view)
{
    for (size_t c; too_wide(view) && (c = most_generous(view)) != SIZE_MAX;) {
        int least = least_width(view, c), wanted = view->widths[c] - (total_width(view) - view->width);
        view->widths[c] = wanted > least ? wanted : least;
    }
}

static void fit(struct view *view)
{
    const struct table *table = view->table;
    for (size_t c = 0; c < table->n_columns && too_wide(view); c++) {
        int heading = longest_piece(view->titles[c]), cells = widest_cell(table, c);
        view->widths[c] = heading > cells ? heading : cells;
    }
    for (size_t c = 1; c < table->n_columns && too_wide(view); c++)
        view->hidden[c] = !view->absent[c] && says_the_same(table, c);
    squeeze_texts(view);
}

static char *title_with_unit(const struct table_column *column)
{
    char *title = memory_new(HEADING_SIZE, 1);
    const char *unit = column->unit;
    snprintf(title, HEADING_SIZE, "%s%s%s%s", column->title, unit ? " [" : "", unit ? unit : "", unit ? "]" : "");
    return title;
}

static struct view view_of(const struct table *table, const struct invocation *call)
{
    size_t n = table->n_columns;
    bool two_views = false;
    struct view view = {.table = table, .out = call->out, .colour = call->colour, .width = call->width};
    view.titles = memory_new(n, sizeof *view.titles);
    view.widths = memory_new(n, sizeof *view.widths);
    view.hidden = memory_new(n, sizeof *view.hidden);
    view.absent = memory_new(n, sizeof *view.absent);
    for (size_t c = 0; c < n; c++) {
        view.titles[c] = title_with_unit(&table->columns[c]);
        int heading = text_width(view.titles[c]), cells = widest_cell(table, c);
        view.widths[c] = heading > cells ? heading : cells;
        view.absent[c] = table->columns[c].view == (table->all ? VIEW_USUAL : VIEW_ALL);
        two_views |= table->columns[c].view != VIEW_BOTH;
    }
    if (two_views && !table->all && view.width == 0)
        view.width = TABLE_WIDTH;
    fit(&view);
    return view;
}

static void view_free(struct view *view)
{
    for (size_t c = 0; c < view->table->n_columns; c++)
        free(view->titles[c]);
    free(view->titles);
    free(view->widths);
    free(view->hidden);
    free(view->absent);
}

/* --- lines --- */

/* A line in the making: blanks are owed until a text follows, so that none stand at its end. */
struct line {
    FILE *out;
    int blanks;
    bool colour;
};

static void line_text(struct line *line, const char *text, size_t n, int width, enum align align, enum tint tint)
{
    int room = width - width_of(text, n);
    if (room < 0)
        room = 0;
    if (n > 0) {
        int before = line->blanks + (align == ALIGN_RIGHT ? room : 0);
        fprintf(line->out, "%*s%s%.*s%s", before, "", tint_start(tint, line->colour), (int)n, text, tint_end(tint, line->colour));
        line->blanks = align == ALIGN_LEFT ? room : 0;
    } else {
        line->blanks += room;
    }
    line->blanks += GAP;
}

/* One row over as many lines as its texts need: rest [n_columns], those of a heading end on the same line. */
static void write_row(const struct view *view, const char **rest, const enum tint *tints, bool heading)
{
    size_t n = view->table->n_columns;
    int *pieces = memory_new(n, sizeof *pieces), most = 1;
    for (size_t c = 0; c < n; c++) {
        pieces[c] = view->hidden[c] || view->absent[c] ? 0 : count_pieces(rest[c], view->widths[c]);
        most = pieces[c] > most ? pieces[c] : most;
    }
    for (int k = 0; k < most; k++) {
        struct line line = {.out = view->out, .colour = view->colour};
        for (size_t c = 0; c < n; c++) {
            bool waits = heading && k < most - pieces[c];
            size_t length = waits ? 0 : piece_length(rest[c], view->widths[c]);
            if (view->hidden[c] || view->absent[c])
                continue;
            line_text(&line, rest[c], length, view->widths[c], view->table->columns[c].align, tints[c]);
            rest[c] += length;
            rest[c] += waits ? 0 : strspn(rest[c], " ");
        }
        fputc('\n', view->out);
    }
    free(pieces);
}

/* "in every row: cp 1, schedule interleaved" */
static void write_hidden(const struct view *view)
{
    static const char lead[] = "in every row:";
    int at = 0;
    for (size_t c = 0; c < view->table->n_columns; c++) {
        const char *text = view->hidden[c] ? cell_text(view->table, 0, c) : "";
        if (!*text)
            continue;
        int width = text_width(view->titles[c]) + 1 + text_width(text) + 2;
        if (at == 0) {
            at = fprintf(view->out, "%s", lead);
        } else if (at + width > view->width) {
            fputs(",\n ", view->out);
            at = 1;
        } else {
            fputc(',', view->out);
        }
        at += width;
        fprintf(view->out, " %s %s", view->titles[c], text);
    }
    if (at > 0)
        fputc('\n', view->out);
}

void table_write_text(const struct table *table, const struct invocation *call)
{
    size_t n = table->n_columns;
    if (!n)
        return;
    struct view view = view_of(table, call);
    const char **rest = memory_new(n, sizeof *rest);
    enum tint *tints = memory_new(n, sizeof *tints);
    for (size_t c = 0; c < n; c++) {
        rest[c] = view.titles[c];
        tints[c] = TINT_STRONG;
    }
    write_row(&view, rest, tints, true);
    for (size_t row = 0; row < count_rows(table); row++) {
        for (size_t c = 0; c < n; c++) {
            rest[c] = cell_text(table, row, c);
            tints[c] = table->cells[row * n + c].tint;
        }
        write_row(&view, rest, tints, false);
    }
    write_hidden(&view);
    free(rest);
    free(tints);
    view_free(&view);
}

void table_write(const struct table *table, const struct invocation *call)
{
    if (call->format == FORMAT_CSV)
        table_write_csv(table, call->out);
    else
        table_write_text(table, call);
}
