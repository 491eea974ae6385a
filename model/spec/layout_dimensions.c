#include "model/spec/layout_dimensions.h"

#include <string.h>

const struct layout_dimension_row layout_dimensions[N_LAYOUT_DIMENSIONS] = {
#define X(id, type_, member, key_, word_, brief_, long_name_, least_, most, usual_, rare_, in_tables_, help_, values_)           \
    [DIMENSION_##id] = {.key = key_,                                                                                             \
                        .word = word_,                                                                                           \
                        .brief = brief_,                                                                                         \
                        .long_name = long_name_,                                                                                 \
                        .type = DIMENSION_TYPE_##type_,                                                                          \
                        .least = least_,                                                                                         \
                        .usual = usual_,                                                                                         \
                        .rare = rare_,                                                                                           \
                        .in_tables = in_tables_,                                                                                 \
                        .help = help_,                                                                                           \
                        .values = values_},
    LAYOUT_DIMENSIONS(X)
#undef X
};

int layout_dimension_of(const char *name)
{
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++) {
        const struct layout_dimension_row *row = &layout_dimensions[i];
        if (strcmp(name, row->key) == 0 || strcmp(name, row->word) == 0 || (row->long_name && strcmp(name, row->long_name) == 0))
            return i;
    }
    return -1;
}

void layout_dimension_order(const enum layout_dimension *first, int n, enum layout_dimension order[N_LAYOUT_DIMENSIONS])
{
    bool named[N_LAYOUT_DIMENSIONS] = {false};
    int filled = 0;
    for (int i = 0; i < n; i++) {
        order[filled++] = first[i];
        named[first[i]] = true;
    }
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++)
        if (!named[i])
            order[filled++] = (enum layout_dimension)i;
}

const char *const schedule_names[N_SCHEDULES + 1] = {
    [SCHEDULE_NONE] = "none",
    [SCHEDULE_GPIPE] = "gpipe",
    [SCHEDULE_1F1B] = "1f1b",
    [SCHEDULE_INTERLEAVED] = "interleaved",
    [SCHEDULE_ZB1P] = "zb-1p",
    [SCHEDULE_ZB2P] = "zb-2p",
    [SCHEDULE_ZBV] = "zb-v",
    [SCHEDULE_DUALPIPE] = "dualpipe",
    [SCHEDULE_DUALPIPEV] = "dualpipe-v",
};

const char *schedule_name(enum schedule schedule)
{
    return schedule_names[schedule];
}

int schedule_parse(const char *name)
{
    for (int i = 0; i < N_SCHEDULES; i++)
        if (strcmp(schedule_names[i], name) == 0)
            return i;
    return -1;
}
