#include "cli/options/sweep_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 96, FIELDS = 4 };

/* The fields between separators; their number, FIELDS + 1 where there are more. A path's "../" and a leading ".." are no dots. */
static int split(const char *text, size_t length, const char *separator, const char *starts[FIELDS + 1], size_t sizes[FIELDS + 1])
{
    size_t width = strlen(separator), begin = 0;
    int n = 0;
    for (size_t i = 0; i + width <= length && n < FIELDS; i++)
        if (i > 0 && strncmp(text + i, separator, width) == 0 && (width == 1 || text[i + width] != '/')) {
            starts[n] = text + begin;
            sizes[n++] = i - begin;
            begin = i + width;
            i = begin - 1;
        }
    starts[n] = text + begin;
    sizes[n] = length - begin;
    return n + 1;
}

/* Count, or quantity with a unit: a colon in a name (optimizer:50%) stands behind a letter. */
static bool begins_number(const char *text, size_t length)
{
    bool sign = length > 1 && (text[0] == '-' || text[0] == '+');
    return length > 0 && strchr("0123456789.", text[sign]) != NULL;
}

/* The fields of what begins as A:B does, whatever follows; 0: it does not. */
static int colon_fields(const char *text, size_t length, const char *starts[FIELDS + 1], size_t sizes[FIELDS + 1])
{
    int n = split(text, length, ":", starts, sizes);
    bool numbers = n > 1 && begins_number(starts[0], sizes[0]) && (sizes[1] == 0 || begins_number(starts[1], sizes[1]));
    return numbers ? n : 0;
}

/* Are these the fields of A..B, A:B:N or A:B:N:log? */
static bool is_whole(bool doubling, int n, const char *const starts[], const size_t sizes[])
{
    for (int i = 0; i < n; i++)
        if (sizes[i] == 0)
            return false;
    if (doubling)
        return n == 2 && starts[1][0] != '.';
    return n == 3 || (n == 4 && sizes[3] == 3 && strncmp(starts[3], "log", 3) == 0);
}

bool sweep_is_range(const char *text, size_t length)
{
    const char *starts[FIELDS + 1];
    size_t sizes[FIELDS + 1];
    return split(text, length, "..", starts, sizes) > 1 || colon_fields(text, length, starts, sizes) > 0;
}

static bool read_number(const char *text, size_t length, enum dimension dimension, double *value, char *why, size_t size)
{
    char copy[TEXT];
    if (length >= sizeof copy) {
        snprintf(why, size, "'%.40s...' is not a number", text);
        return false;
    }
    snprintf(copy, sizeof copy, "%.*s", (int)length, text);
    return quantity_parse(copy, dimension, value, why, size) == STATUS_OK;
}

/* What stands behind the last digit. */
static void take_unit(const char *text, size_t length, struct sweep_range *range)
{
    size_t n = 0;
    while (n < length && !strchr("0123456789.", text[length - n - 1]))
        n++;
    snprintf(range->unit, sizeof range->unit, "%.*s", (int)n, text + length - n);
}

static enum status read_doubling(const char *const starts[], const size_t sizes[], int most, struct sweep_range *range, char *why,
                                 size_t size)
{
    double doublings = range->low > 0 ? floor(log2(range->high / range->low) + 1e-9) : -1;
    range->logarithmic = range->doubling = true;
    if (doublings < 0) {
        snprintf(why, size, "%.*s..%.*s: A..B doubles A up to B; A must be above 0 and below B", (int)sizes[0], starts[0],
                 (int)sizes[1], starts[1]);
        return STATUS_BAD_INPUT;
    }
    if (doublings + 1 > most) {
        snprintf(why, size, "%.*s..%.*s: more than %d values", (int)sizes[0], starts[0], (int)sizes[1], starts[1], most);
        return STATUS_BAD_INPUT;
    }
    range->n = (int)doublings + 1;
    range->high = ldexp(range->low, range->n - 1);
    return STATUS_OK;
}

enum status sweep_range_parse(const char *text, size_t length, enum dimension dimension, int most, struct sweep_range *range,
                              char *why, size_t size)
{
    const char *starts[FIELDS + 1];
    size_t sizes[FIELDS + 1];
    int n = split(text, length, "..", starts, sizes);
    bool doubling = n > 1;
    if (!doubling)
        n = colon_fields(text, length, starts, sizes);
    *range = (struct sweep_range){.logarithmic = n == 4};
    if (!is_whole(doubling, n, starts, sizes)) {
        snprintf(why, size, "'%.*s' is not a range; write A..B, A:B:N or A:B:N:log", length < 60 ? (int)length : 60, text);
        return STATUS_BAD_INPUT;
    }
    if (!read_number(starts[0], sizes[0], dimension, &range->low, why, size) ||
        !read_number(starts[1], sizes[1], dimension, &range->high, why, size))
        return STATUS_BAD_INPUT;
    take_unit(starts[0], sizes[0], range);
    if (doubling)
        return read_doubling(starts, sizes, most, range, why, size);
    char *end;
    long values = strtol(starts[2], &end, 10);
    range->n = values > 1 && values <= most ? (int)values : 0;
    if (end != starts[2] + sizes[2] || range->n == 0 || range->low >= range->high || (range->logarithmic && range->low <= 0)) {
        snprintf(why, size, "'%.*s': A:B:N and A:B:N:log need N from 2 to %d, and B larger than A (for log, A above 0)",
                 length < 60 ? (int)length : 60, text, most);
        return STATUS_BAD_INPUT;
    }
    return STATUS_OK;
}

double sweep_range_value(const struct sweep_range *range, int i)
{
    if (range->doubling)
        return ldexp(range->low, i);
    double t = range->n > 1 ? (double)i / (range->n - 1) : 0;
    return range->logarithmic ? range->low * pow(range->high / range->low, t) : range->low + t * (range->high - range->low);
}
