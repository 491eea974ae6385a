#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"

#include "cli/options/options.h"

static size_t count_choices(const struct option_row *row)
{
    size_t n = 0;
    while (row->choices[n])
        n++;
    return n;
}

static enum status check_choice(const struct option_row *row, const char *text, double *number, char *why, size_t size)
{
    size_t n = count_choices(row);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(text, row->choices[i]) == 0) {
            *number = (double)i;
            return STATUS_OK;
        }
    }
    const char *near = nearest_name(text, row->choices, n);
    snprintf(why, size, "'%.40s' is not one of", text);
    for (size_t i = 0; i < n; i++)
        text_append(why, size, "%s %s", i ? "," : "", row->choices[i]);
    if (near)
        text_append(why, size, "; did you mean '%s'?", near);
    return STATUS_BAD_INPUT;
}

/* A bound as the user would write it. */
static const char *bound_text(const struct option_row *row, double bound, char *buffer, size_t size)
{
    if (row->type == OPTION_QUANTITY)
        return quantity_write(bound, row->dimension, buffer, size);
    snprintf(buffer, size, "%.0f", bound);
    return buffer;
}

#define COUNT_MAX 0x1p53 /* whole numbers up to there are exact in a double */

static enum status check_bounds(const struct option_row *row, const char *text, double value, char *why, size_t size)
{
    bool whole = row->type == OPTION_COUNT;
    char bound[48];
    double high = whole && (row->high <= 0 || row->high > COUNT_MAX) ? COUNT_MAX : row->high;
    if (whole && fabs(value) <= COUNT_MAX && value != floor(value)) {
        snprintf(why, size, "'%.40s' is not a whole number", text);
    } else if (value < row->low) {
        snprintf(why, size, "'%.40s' is too small; at least %s", text, bound_text(row, row->low, bound, sizeof bound));
    } else if (high > 0 && value > high) {
        snprintf(why, size, "'%.40s' is too large; at most %s", text, bound_text(row, high, bound, sizeof bound));
    } else {
        return STATUS_OK;
    }
    return STATUS_BAD_INPUT;
}

static enum status check_number(const struct option_row *row, const char *text, double *number, char *why, size_t size)
{
    enum dimension dimension = row->type == OPTION_COUNT ? DIM_COUNT : row->dimension;
    enum status status = quantity_parse(text, dimension, number, why, size);
    return status == STATUS_OK ? check_bounds(row, text, *number, why, size) : status;
}

enum status option_check(const struct option_row *row, const char *text, double *number, char *why, size_t size)
{
    double value = 0;
    enum status status = STATUS_OK;
    if (row->type == OPTION_COUNT || row->type == OPTION_QUANTITY) {
        status = check_number(row, text, &value, why, size);
    } else if (row->type == OPTION_CHOICE || (row->type == OPTION_LIST && row->choices)) {
        bool sign = row->changes && (text[0] == '+' || text[0] == '-');
        status = check_choice(row, text + sign, &value, why, size);
    } else if (!*text) {
        snprintf(why, size, "the value is empty");
        status = STATUS_BAD_INPUT;
    } else if (row->type == OPTION_TEXT && row->high > 0 && (double)strlen(text) > row->high) {
        snprintf(why, size, "'%.40s...' is longer than %.0f bytes", text, row->high);
        status = STATUS_BAD_INPUT;
    }
    if (status == STATUS_OK && row->check)
        status = row->check(text, why, size);
    if (status == STATUS_OK && number)
        *number = value;
    return status;
}

static const struct option_value *value_of(const struct invocation *call, const char *name)
{
    for (int i = 0; i < call->n_values; i++) {
        if (strcmp(call->values[i].row->name, name) == 0)
            return &call->values[i];
    }
    fprintf(stderr, "msim: no option row '%s' in command '%s'\n", name, call->command->name);
    abort();
}

enum status option_check_number(const struct invocation *call, const char *name, double value, char *why, size_t size)
{
    const struct option_row *row = value_of(call, name)->row;
    char text[48];
    if (row->type == OPTION_QUANTITY)
        quantity_write(value, row->dimension, text, sizeof text);
    else
        snprintf(text, sizeof text, "%.10g", value);
    return check_bounds(row, text, value, why, size);
}

bool option_given(const struct invocation *call, const char *name)
{
    return value_of(call, name)->given;
}

bool option_flag(const struct invocation *call, const char *name)
{
    return value_of(call, name)->n_texts > 0;
}

const char *option_text(const struct invocation *call, const char *name)
{
    const struct option_value *value = value_of(call, name);
    return value->n_texts ? value->texts[value->n_texts - 1] : NULL;
}

int64_t option_count(const struct invocation *call, const char *name)
{
    return (int64_t)value_of(call, name)->number;
}

double option_quantity(const struct invocation *call, const char *name)
{
    return value_of(call, name)->number;
}

int option_choice(const struct invocation *call, const char *name)
{
    return (int)value_of(call, name)->number;
}

const char *const *option_list(const struct invocation *call, const char *name, int *n)
{
    const struct option_value *value = value_of(call, name);
    *n = value->n_texts;
    return value->texts;
}

void info(const struct invocation *call, int level, const char *format, ...)
{
    if (call->verbosity < level)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}
