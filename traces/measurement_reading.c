#include "traces/measurement_reading.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "model/base/units.h"

const struct csv_column measurement_columns[N_COLUMNS] = {
#define X(id, name, required) {name, required},
    MEASUREMENT_COLUMNS(X)
#undef X
};

const char *reading_text(const struct measurement_reading *reading, enum column column)
{
    return csv_cell(reading->csv, reading->row, reading->columns[column]);
}

static bool is_empty(const struct measurement_reading *reading, enum column column)
{
    return *reading_text(reading, column) == '\0';
}

struct place reading_place(const struct measurement_reading *reading, enum column column)
{
    return csv_place(reading->csv, reading->row, reading->columns[column]);
}

int64_t reading_whole(struct measurement_reading *reading, enum column column, int64_t low, int64_t high, int64_t unknown)
{
    int64_t value = unknown;
    if (!is_empty(reading, column) &&
        csv_cell_integer(reading->csv, reading->row, reading->columns[column], low, high, &value, reading->diags) != STATUS_OK)
        return unknown;
    return value;
}

double reading_number(struct measurement_reading *reading, enum column column, double low, double high)
{
    double value = 0;
    if (!is_empty(reading, column) &&
        csv_cell_number(reading->csv, reading->row, reading->columns[column], low, high, &value, reading->diags) != STATUS_OK)
        return 0;
    return value;
}

static int word_index(const char *text, const char *const *words, size_t n_words)
{
    for (size_t i = 0; i < n_words; i++)
        if (strcasecmp(text, words[i]) == 0)
            return (int)i;
    return -1;
}

/* "; did you mean 'full'?", or nothing. */
static const char *word_hint(const char *text, const char *const *words, size_t n_words, char *hint, size_t size)
{
    const char *near = nearest_name(text, words, n_words);
    snprintf(hint, size, "%s%s%s", near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return hint;
}

int reading_word(struct measurement_reading *reading, enum column column, const char *const *words, size_t n_words)
{
    char hint[96];
    const char *text = reading_text(reading, column);
    int word = word_index(text, words, n_words);
    if (word < 0 && *text)
        diag_error(reading->diags, reading_place(reading, column), "%s '%.40s' is unknown%s", measurement_columns[column].name,
                   text, word_hint(text, words, n_words, hint, sizeof hint));
    return word;
}

int reading_way(struct measurement_reading *reading, enum column column, const char *const *words, size_t n_words)
{
    char hint[96];
    const char *text = reading_text(reading, column);
    int word = word_index(text, words, n_words);
    if (word < 0 && *text)
        reading_skip(reading, column, "%s '%.40s' is unknown%s", measurement_columns[column].name, text,
                     word_hint(text, words, n_words, hint, sizeof hint));
    return word;
}

void reading_skip(struct measurement_reading *reading, enum column column, const char *format, ...)
{
    char why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (reading->diags->n_errors == reading->errors_before_row) /* otherwise the cause has been told */
        diag_warning(reading->diags, reading_place(reading, column), "row skipped: %s", why);
    reading->unusable = true;
}

void reading_tell_notes(struct measurement_reading *reading, enum column column, const struct diags *said)
{
    for (size_t i = 0; i < said->n_items; i++)
        if (said->items[i].severity == SEVERITY_NOTE)
            diag_note(reading->diags, reading_place(reading, column), "%s", said->items[i].text);
}
