#include "traces/table/node_list.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char between[] = ",;+ |\t";

/* Where the item at `text` ends: at a separator outside of brackets. NULL: a bracket does not close. */
static const char *item_end(const char *text)
{
    for (; *text && !strchr(between, *text); text++)
        if (*text == '[') {
            text = strchr(text, ']');
            if (!text)
                return NULL;
        }
    return text;
}

/* One "001-003" or "7" of a bracket, up to the comma or the bracket; digits are kept in number. */
struct range {
    int64_t first, last;
    int digits;
    const char *end;
};

static bool read_range(const char *text, const char *close, struct range *range)
{
    enum { DIGITS_MAX = 9 };
    size_t n = strspn(text, "0123456789"), m = 0;
    if (n == 0 || n > DIGITS_MAX)
        return false;
    range->first = range->last = strtol(text, NULL, 10);
    range->digits = (int)n;
    text += n;
    if (*text == '-') {
        m = strspn(text + 1, "0123456789");
        if (m == 0 || m > DIGITS_MAX)
            return false;
        range->last = strtol(text + 1, NULL, 10);
        text += 1 + m;
    }
    range->end = text;
    return range->last >= range->first && text <= close && (*text == ',' || text == close);
}

/* How many numbers a bracket has that opens at `text`; 0: it is wrong. */
static int64_t bracket_count(const char *text)
{
    const char *close = strchr(text, ']');
    int64_t n = 0;
    for (const char *at = text + 1; close && at <= close; at++) {
        struct range range;
        if (!read_range(at, close, &range))
            return 0;
        n += range.last - range.first + 1;
        if (n > NODE_LIST_MOST)
            return NODE_LIST_MOST;
        at = range.end;
    }
    return n;
}

static int64_t item_count(const char *text, const char *end)
{
    int64_t n = 1;
    for (; text < end; text++)
        if (*text == '[') {
            int64_t numbers = bracket_count(text);
            n = numbers > 0 && n > NODE_LIST_MOST / numbers ? NODE_LIST_MOST : n * numbers;
            text = strchr(text, ']');
        }
    return n;
}

static bool names_nothing(const char *text)
{
    return !*text || strncmp(text, "None", 4) == 0 || strcmp(text, "(null)") == 0 || strcmp(text, "n/a") == 0;
}

int64_t node_list_count(const char *text)
{
    int64_t n = 0;
    if (names_nothing(text))
        return 0;
    while (*text) {
        text += strspn(text, between);
        const char *end = item_end(text);
        if (!end)
            return 0;
        if (end > text)
            n += item_count(text, end);
        if (n > NODE_LIST_MOST)
            return NODE_LIST_MOST;
        text = end;
    }
    return n;
}

/* Number `index` of a bracket as text. */
static void bracket_number(const char *text, int64_t index, char *number, size_t size)
{
    const char *close = strchr(text, ']');
    struct range range = {0};
    *number = '\0';
    for (const char *at = text + 1; at <= close && read_range(at, close, &range); at = range.end + 1) {
        int64_t n = range.last - range.first + 1;
        if (index < n) {
            snprintf(number, size, "%0*lld", range.digits, (long long)(range.first + index));
            return;
        }
        index -= n;
    }
}

/* The last bracket turns fastest. */
static bool item_name(const char *text, const char *end, int64_t index, char name[NODE_NAME_SIZE])
{
    int64_t behind = item_count(text, end);
    size_t n = 0;
    char number[24];
    for (; text < end; text++) {
        if (*text == '[') {
            behind /= bracket_count(text);
            bracket_number(text, index / behind, number, sizeof number);
            index %= behind;
            size_t digits = strlen(number);
            if (n + digits >= NODE_NAME_SIZE)
                return false;
            memcpy(name + n, number, digits);
            n += digits;
            text = strchr(text, ']');
        } else if (n + 1 < NODE_NAME_SIZE) {
            name[n++] = *text;
        } else {
            return false;
        }
    }
    name[n] = '\0';
    return n > 0;
}

bool node_list_name(const char *text, int64_t index, char name[NODE_NAME_SIZE])
{
    if (index < 0 || index >= node_list_count(text))
        return false;
    while (*text) {
        text += strspn(text, between);
        const char *end = item_end(text);
        int64_t n = end > text ? item_count(text, end) : 0;
        if (index < n)
            return n < NODE_LIST_MOST && item_name(text, end, index, name);
        index -= n;
        text = end;
    }
    return false;
}
