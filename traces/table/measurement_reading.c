#include "traces/table/measurement_reading.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "model/base/memory.h"
#include "model/base/units.h"

const struct csv_column measurement_columns[N_COLUMNS] = {
#define X(id, name, required) {name, required},
    MEASUREMENT_COLUMNS(X)
#undef X
};

/* Columns of the table's own words. */
static bool is_free_text(enum column column)
{
    return column == COLUMN_CASE || column == COLUMN_SOURCE || column == COLUMN_ASSUMED;
}

const char *reading_text(const struct measurement_reading *reading, enum column column)
{
    const char *text = csv_cell(reading->csv, reading->row, reading->columns[column]);
    return !is_free_text(column) && words_say_nothing(text) ? "" : text;
}

struct place reading_place(const struct measurement_reading *reading, enum column column)
{
    return csv_place(reading->csv, reading->row, reading->columns[column]);
}

/* The row is skipped for a cell that cannot be read. */
static void refuse_cell(struct measurement_reading *reading, enum column column, const char *what, const char *range)
{
    diag_warning(reading->diags, reading_place(reading, column), "row skipped: %s '%.40s' is not %s%s",
                 measurement_columns[column].name, reading_text(reading, column), what, range);
    reading->unusable = reading->bad_cell = true;
}

int64_t reading_whole(struct measurement_reading *reading, enum column column, int64_t low, int64_t high, int64_t unknown)
{
    char range[80] = "";
    double value = 0;
    if (*reading_text(reading, column) == '\0')
        return unknown;
    if (!cell_number(reading, column, true, &value) || value > floor(value)) {
        refuse_cell(reading, column, "a whole number", "");
        return unknown;
    }
    if (value >= (double)low && value <= (double)high)
        return (int64_t)value;
    if (high == INT_MAX)
        snprintf(range, sizeof range, " of at least %" PRId64, low);
    else
        snprintf(range, sizeof range, " from %" PRId64 " to %" PRId64, low, high);
    refuse_cell(reading, column, "a whole number", range);
    return unknown;
}

double reading_number(struct measurement_reading *reading, enum column column, double low, double high)
{
    char range[80] = "";
    double value = 0;
    if (*reading_text(reading, column) == '\0')
        return 0;
    if (!cell_number(reading, column, false, &value)) {
        bool ran = *reading_text(reading, COLUMN_OUTCOME) != '\0';
        refuse_cell(reading, column, "a number", column == COLUMN_NIC_GBPS ? "" : ran ? ", though it ran" : ", nor OOM");
        return 0;
    }
    if (value >= low && value <= high)
        return value;
    if (isinf(high))
        snprintf(range, sizeof range, " of at least %g", low);
    else
        snprintf(range, sizeof range, " from %g to %g", low, high);
    refuse_cell(reading, column, "a number", range);
    return 0;
}

const char *reading_hint(const char *text, const char *const *words, size_t n_words, char *hint, size_t size)
{
    const char *near = nearest_name(text, words, n_words);
    snprintf(hint, size, "%s%s%s", near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return hint;
}

int reading_word(const struct measurement_reading *reading, enum column column, const char *const *words, size_t n_words)
{
    const char *text = reading_text(reading, column), *ours = words_ours(column, text);
    for (size_t i = 0; i < n_words; i++)
        if (strcasecmp(ours ? ours : text, words[i]) == 0)
            return (int)i;
    return -1;
}

int reading_way(struct measurement_reading *reading, enum column column, const char *const *words, size_t n_words)
{
    char hint[96];
    const char *text = reading_text(reading, column);
    int word = reading_word(reading, column, words, n_words);
    if (word < 0 && *text)
        reading_skip(reading, column, "%s '%.40s' is unknown%s", measurement_columns[column].name, text,
                     reading_hint(text, words, n_words, hint, sizeof hint));
    return word;
}

void reading_skip(struct measurement_reading *reading, enum column column, const char *format, ...)
{
    char why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (!reading->bad_cell) /* otherwise the cause has been told */
        diag_warning(reading->diags, reading_place(reading, column), "row skipped: %s", why);
    reading->unusable = true;
}

void reading_tell_once(struct measurement_reading *reading, enum column column, const char *text, const char *format, ...)
{
    char what[512];
    for (size_t i = 0; i < reading->n_told; i++)
        if (reading->told[i].column == column && strcmp(reading->told[i].text, text) == 0)
            return;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    diag_warning(reading->diags, reading_place(reading, column), "%s", what);
    reading->told = memory_grow(reading->told, &reading->told_capacity, reading->n_told + 1, sizeof *reading->told);
    reading->told[reading->n_told++] = (struct told_text){.column = column, .text = memory_copy_text(text)};
}

void reading_tell_notes(struct measurement_reading *reading, enum column column, const struct diags *said)
{
    for (size_t i = 0; i < said->n_items; i++)
        if (said->items[i].severity == SEVERITY_NOTE)
            diag_note(reading->diags, reading_place(reading, column), "%s", said->items[i].text);
}
