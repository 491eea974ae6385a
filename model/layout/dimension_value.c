#include "model/layout/dimension_value.h"

#include <stdio.h>

static const size_t offsets[N_LAYOUT_DIMENSIONS] = {
#define X(id, type, member, ...) [DIMENSION_##id] = offsetof(struct layout, member),
    LAYOUT_DIMENSIONS(X)
#undef X
};

static const void *value_of(const struct layout *layout, enum layout_dimension dimension)
{
    return (const char *)layout + offsets[dimension];
}

int dimension_number(const struct layout *layout, enum layout_dimension dimension)
{
    const void *value = value_of(layout, dimension);
    switch (layout_dimensions[dimension].type) {
    case DIMENSION_TYPE_NUMBER: return *(const int *)value;
    case DIMENSION_TYPE_FLAG: return *(const bool *)value;
    case DIMENSION_TYPE_CP_COMM: return (int)*(const enum cp_comm *)value;
    case DIMENSION_TYPE_RECOMPUTE: return recompute_number(*(const struct recompute *)value);
    case DIMENSION_TYPE_OFFLOAD: return offload_number(value);
    case DIMENSION_TYPE_SCHEDULE: return (int)*(const enum schedule *)value;
    }
    return 0;
}

void dimension_set(struct layout *layout, enum layout_dimension dimension, int value)
{
    void *at = (char *)layout + offsets[dimension];
    if (layout_dimensions[dimension].type == DIMENSION_TYPE_NUMBER)
        *(int *)at = value;
    else if (layout_dimensions[dimension].type == DIMENSION_TYPE_FLAG)
        *(bool *)at = value;
}

const char *dimension_text(const struct layout *layout, enum layout_dimension dimension, char text[DIMENSION_TEXT])
{
    const void *value = value_of(layout, dimension);
    switch (layout_dimensions[dimension].type) {
    case DIMENSION_TYPE_CP_COMM: return cp_comm_format(*(const enum cp_comm *)value, text, DIMENSION_TEXT);
    case DIMENSION_TYPE_RECOMPUTE: return recompute_format(*(const struct recompute *)value, text, DIMENSION_TEXT);
    case DIMENSION_TYPE_OFFLOAD: return offload_format(value, text, DIMENSION_TEXT);
    case DIMENSION_TYPE_SCHEDULE: return schedule_name(*(const enum schedule *)value);
    default: snprintf(text, DIMENSION_TEXT, "%d", dimension_number(layout, dimension)); return text;
    }
}

bool dimension_is_usual(const struct layout *layout, enum layout_dimension dimension)
{
    switch (layout_dimensions[dimension].type) {
    case DIMENSION_TYPE_NUMBER:
    case DIMENSION_TYPE_FLAG: return dimension_number(layout, dimension) == layout_dimensions[dimension].usual;
    case DIMENSION_TYPE_CP_COMM: return layout->cp_comm == CP_RING;
    case DIMENSION_TYPE_RECOMPUTE: return layout->recompute.what == RECOMPUTE_NONE;
    case DIMENSION_TYPE_OFFLOAD: return offload_is_none(&layout->offload);
    case DIMENSION_TYPE_SCHEDULE: return layout->schedule == SCHEDULE_NONE;
    }
    return false;
}
