/* space_limits.c - parse and apply restrictions of the space. */
#include "model/plan/space.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/append.h"
#include "model/base/units.h"

struct space_row {
    const char *name, *values;
    enum dimension_type type;
    int of_layout; /* -1: an overlap */
};

#define OVERLAP_ROW(name)                                                                                                        \
    {                                                                                                                            \
        name, "0 or 1", DIMENSION_TYPE_FLAG, -1                                                                                  \
    }
static const struct space_row space_rows[N_SPACE_DIMENSIONS] = {
#define X(id, type, member, key, word, brief, long_name, least, most, usual, rare, in_tables, help, values)                      \
    [SPACE_##id] = {word, values, DIMENSION_TYPE_##type, DIMENSION_##id},
    LAYOUT_DIMENSIONS(X)
#undef X
        [SPACE_TP_OVERLAP] = OVERLAP_ROW("tp_overlap"),
    [SPACE_PP_OVERLAP] = OVERLAP_ROW("pp_overlap"),
    [SPACE_DP_OVERLAP] = OVERLAP_ROW("dp_overlap"),
};

const char *space_dimension_name(enum space_dimension dimension)
{
    return space_rows[dimension].name;
}

int space_dimension_of_layout(enum space_dimension dimension)
{
    return space_rows[dimension].of_layout;
}

bool space_limit_allows(const struct space_limit *limit, int value)
{
    if (limit->n == 0)
        return true;
    for (int i = 0; i < limit->n; i++)
        if (value >= limit->ranges[i].low && value <= limit->ranges[i].high)
            return true;
    return false;
}

/* A piece of the text under the reader. */
struct slice {
    const char *start;
    size_t length;
};

static int dimension_of(const char *name)
{
    int of_layout = layout_dimension_of(name);
    for (int i = 0; i < N_SPACE_DIMENSIONS; i++)
        if (of_layout < 0 ? strcmp(name, space_rows[i].name) == 0 : space_rows[i].of_layout == of_layout)
            return i;
    return -1;
}

static void report_unknown_key(const char *name, struct place at, struct diags *diags)
{
    const char *names[N_SPACE_DIMENSIONS];
    char words[128] = "there are", hint[160];
    for (int i = 0; i < N_SPACE_DIMENSIONS; i++) {
        names[i] = space_rows[i].name;
        if (i < N_SPACE_OF_LAYOUT)
            text_append(words, sizeof words, " %s", names[i]);
    }
    diag_error(diags, at, "'%s' is not a dimension of a layout; %s", name,
               name_hint(name, names, N_SPACE_DIMENSIONS, words, hint, sizeof hint));
}

/* The value of a dimension whose values have names, -1 when it is not one of them. */
static int named_value(enum space_dimension dimension, const char *text)
{
    struct offload set;
    struct recompute recompute;
    switch (space_rows[dimension].type) {
    case DIMENSION_TYPE_SCHEDULE: return schedule_parse(text);
    case DIMENSION_TYPE_RECOMPUTE: return recompute_parse(text, &recompute, NULL, 0) ? recompute_number(recompute) : -1;
    case DIMENSION_TYPE_OFFLOAD: return offload_parse(text, &set, NULL, 0) ? offload_number(&set) : -1;
    case DIMENSION_TYPE_CP_COMM: return cp_comm_parse(text, NULL, 0);
    case DIMENSION_TYPE_FLAG:
        if (strcmp(text, "on") == 0 || strcmp(text, "true") == 0)
            return 1;
        return strcmp(text, "off") == 0 || strcmp(text, "false") == 0 ? 0 : -1;
    case DIMENSION_TYPE_NUMBER: return -1;
    }
    return -1;
}

static bool value_in_bounds(enum space_dimension dimension, long value)
{
    const struct space_row *row = &space_rows[dimension];
    if (row->type == DIMENSION_TYPE_FLAG)
        return value == 0 || value == 1;
    if (row->type != DIMENSION_TYPE_NUMBER)
        return false; /* by name only */
    return value >= layout_dimensions[row->of_layout].least && value <= (dimension == SPACE_ZERO ? 3 : INT_MAX);
}

/* One number or name; *end is behind it. */
static bool parse_value(enum space_dimension dimension, const char *text, int *value, const char **end)
{
    int named = named_value(dimension, text);
    if (named >= 0) {
        *value = named;
        *end = text + strlen(text);
        return true;
    }
    char *after;
    errno = 0;
    long number = strtol(text, &after, 10);
    if (after == text || errno != 0 || !value_in_bounds(dimension, number))
        return false;
    *value = (int)number;
    *end = after;
    return true;
}

/* "8" or "8..64" or "full" into a range. */
static bool parse_range(enum space_dimension dimension, struct slice item, int *low, int *high)
{
    char text[RECOMPUTE_TEXT + 16];
    if (item.length == 0 || item.length >= sizeof text)
        return false;
    memcpy(text, item.start, item.length);
    text[item.length] = '\0';
    const char *end;
    if (!parse_value(dimension, text, low, &end))
        return false;
    *high = *low;
    if (strncmp(end, "..", 2) == 0 && !parse_value(dimension, end + 2, high, &end))
        return false;
    return *end == '\0' && *low <= *high;
}

static void report_value(enum space_dimension dimension, struct slice item, struct place at, struct diags *diags)
{
    const char *name = space_rows[dimension].name;
    char text[RECOMPUTE_TEXT + 16], why[RECOMPUTE_WHY] = "";
    struct offload set;
    struct recompute recompute;
    snprintf(text, sizeof text, "%.*s", (int)item.length, item.start);
    if (dimension == SPACE_RECOMPUTE && item.length > 0)
        (void)recompute_parse(text, &recompute, why, sizeof why);
    if (dimension == SPACE_OFFLOAD && item.length > 0 && strncmp(text, "auto", 4) != 0)
        (void)offload_parse(text, &set, why, sizeof why);
    if (dimension == SPACE_CP_COMM && item.length > 0)
        cp_comm_parse(text, why, sizeof why);
    if (*why)
        diag_error(diags, at, "%s: %s", name, why);
    else
        diag_error(diags, at, "%s: '%.*s' is not a value of %s; write %s", name, (int)item.length, item.start, name,
                   space_rows[dimension].values);
}

static void limit_add_range(struct space_limit *limit, enum space_dimension dimension, int low, int high, struct place at,
                            struct diags *diags)
{
    if (limit->n == SPACE_RANGES) {
        diag_error(diags, at, "%s: more than %d values; write a range such as 1..64 instead", space_rows[dimension].name,
                   SPACE_RANGES);
        return;
    }
    limit->ranges[limit->n].low = low;
    limit->ranges[limit->n].high = high;
    limit->n++;
}

/* "auto", "auto:25%": false where it is neither. */
static bool limit_add_automatic(struct space_limit *limit, struct slice item, struct place at, struct diags *diags)
{
    struct offload sets[OFFLOAD_SETS];
    char text[OFFLOAD_TEXT];
    int n;
    snprintf(text, sizeof text, "%.*s", (int)item.length, item.start);
    if (!offload_sets_of(text, sets, &n))
        return false;
    for (int i = 0; i < n; i++)
        limit_add_range(limit, SPACE_OFFLOAD, offload_number(&sets[i]), offload_number(&sets[i]), at, diags);
    return true;
}

static void limit_add(struct space_limit *limit, enum space_dimension dimension, struct slice item, struct place at,
                      struct diags *diags)
{
    int low, high;
    if (dimension == SPACE_OFFLOAD && limit_add_automatic(limit, item, at, diags))
        return;
    if (parse_range(dimension, item, &low, &high))
        limit_add_range(limit, dimension, low, high, at, diags);
    else
        report_value(dimension, item, at, diags);
}

/* The next item up to a comma; *cursor moves behind it, NULL at the end. */
static struct slice next_item(const char **cursor)
{
    const char *start = *cursor + strspn(*cursor, " \t");
    const char *comma = strchr(start, ',');
    size_t length = comma != NULL ? (size_t)(comma - start) : strlen(start);
    *cursor = comma != NULL ? comma + 1 : NULL;
    while (length > 0 && (start[length - 1] == ' ' || start[length - 1] == '\t'))
        length--;
    return (struct slice){start, length};
}

enum status space_restrict(struct space_limits *limits, const char *text, struct place at, struct diags *diags)
{
    struct space_limits found = *limits;
    size_t errors_before = diags->n_errors;
    int dimension = -1;
    bool skipping = false; /* values of a key that was reported already */
    for (const char *cursor = text; cursor != NULL;) {
        struct slice item = next_item(&cursor);
        const char *equals = memchr(item.start, '=', item.length);
        if (equals != NULL) {
            size_t length = (size_t)(equals - item.start);
            char key[32];
            snprintf(key, sizeof key, "%.*s", (int)length, item.start);
            dimension = length < sizeof key ? dimension_of(key) : -1;
            skipping = dimension < 0;
            if (skipping)
                report_unknown_key(key, at, diags);
            else
                found.dimensions[dimension].n = 0;
            item.length -= length + 1;
            item.start = equals + 1;
        } else if (dimension < 0 && !skipping) {
            diag_error(diags, at, "'%.*s' has no dimension; write for example tp=4,8 or pp=8..64", (int)item.length, item.start);
            skipping = true;
        }
        if (!skipping)
            limit_add(&found.dimensions[dimension], (enum space_dimension)dimension, item, at, diags);
    }
    if (diags->n_errors != errors_before)
        return STATUS_BAD_INPUT;
    *limits = found;
    return STATUS_OK;
}
