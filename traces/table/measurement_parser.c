/* measurement_parser.c - cells of the current row, and messages about them. */
#include "traces/table/measurement_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "model/base/memory.h"
#include "model/base/units.h"

/* Columns of the table's own words. */
static bool is_free_text(enum column column)
{
    return column == COLUMN_CASE || column == COLUMN_SOURCE || column == COLUMN_ASSUMED;
}

const char *parser_text(const struct measurement_parser *parser, enum column column)
{
    const char *text = csv_cell(parser->csv, parser->row, parser->columns[column]);
    return !is_free_text(column) && words_say_nothing(text) ? "" : text;
}

struct place parser_place(const struct measurement_parser *parser, enum column column)
{
    return csv_place(parser->csv, parser->row, parser->columns[column]);
}

const char *parser_hint(const char *text, const char *const *words, size_t n_words, char *hint, size_t size)
{
    const char *near = nearest_name(text, words, n_words);
    snprintf(hint, size, "%s%s%s", near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return hint;
}

int parser_word(const struct measurement_parser *parser, enum column column, const char *const *words, size_t n_words)
{
    const char *text = parser_text(parser, column), *ours = words_ours(column, text);
    for (size_t i = 0; i < n_words; i++)
        if (strcasecmp(ours ? ours : text, words[i]) == 0)
            return (int)i;
    return -1;
}

int parser_way(struct measurement_parser *parser, enum column column, const char *const *words, size_t n_words)
{
    char hint[96];
    const char *text = parser_text(parser, column);
    int word = parser_word(parser, column, words, n_words);
    if (word < 0 && *text)
        parser_skip(parser, column, "%s '%.40s' is unknown%s", measurement_columns[column].name, text,
                    parser_hint(text, words, n_words, hint, sizeof hint));
    return word;
}

void parser_skip(struct measurement_parser *parser, enum column column, const char *format, ...)
{
    char why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (!parser->bad_cell) /* otherwise the cause has been told */
        diag_warning(parser->diags, parser_place(parser, column), "row skipped: %s", why);
    parser->unusable = true;
}

void parser_warn_once(struct measurement_parser *parser, enum column column, const char *text, const char *format, ...)
{
    char what[512];
    for (size_t i = 0; i < parser->n_reported; i++)
        if (parser->reported[i].column == column && strcmp(parser->reported[i].text, text) == 0)
            return;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    diag_warning(parser->diags, parser_place(parser, column), "%s", what);
    parser->reported =
        memory_grow(parser->reported, &parser->reported_capacity, parser->n_reported + 1, sizeof *parser->reported);
    parser->reported[parser->n_reported++] = (struct reported_text){.column = column, .text = memory_copy_text(text)};
}

void parser_pass_notes(struct measurement_parser *parser, enum column column, const struct diags *said)
{
    for (size_t i = 0; i < said->n_items; i++)
        if (said->items[i].severity == SEVERITY_NOTE)
            diag_note(parser->diags, parser_place(parser, column), "%s", said->items[i].text);
}

/* Whether the catalog says what the shape columns of a row leave open. */
static bool is_of_catalog(const struct measurement_parser *parser, size_t row)
{
    const char *name = csv_cell(parser->csv, row, parser->columns[COLUMN_MODEL]);
    for (size_t i = 0; i < parser->n_models; i++)
        if (strcmp(parser->models[i].name, name) == 0)
            return parser->models[i].found;
    return false;
}

/* Does a row leave a column's value to us? Of the vocabulary none of a model that the catalog has. */
bool parser_left_open(const struct measurement_parser *parser, size_t row, enum column column)
{
    const char *text = csv_cell(parser->csv, row, parser->columns[column]);
    return (*text == '\0' || words_say_nothing(text)) && !(column == COLUMN_VOCAB && is_of_catalog(parser, row));
}
