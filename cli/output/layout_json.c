#include "cli/output/layout_json.h"

#include <string.h>

#include "model/base/units.h"
#include "model/layout/dimension_value.h"
#include "traces/table/csv.h"

const enum layout_dimension result_dimensions[N_RESULT_DIMENSIONS] = {
    DIMENSION_TP,
    DIMENSION_PP,
    DIMENSION_VPP,
    DIMENSION_CP,
    DIMENSION_DP,
    DIMENSION_EP,
    DIMENSION_ZERO,
    DIMENSION_MICRO_BATCH,
    DIMENSION_RECOMPUTE,
    DIMENSION_SCHEDULE,
    DIMENSION_SEQUENCE_PARALLEL,
};

static json_t *dimension_json(const struct layout *layout, enum layout_dimension dimension)
{
    char text[DIMENSION_TEXT];
    switch (layout_dimensions[dimension].type) {
    case DIMENSION_TYPE_NUMBER: return json_integer(dimension_number(layout, dimension));
    case DIMENSION_TYPE_FLAG: return json_boolean(dimension_number(layout, dimension));
    default: return json_string(dimension_text(layout, dimension, text));
    }
}

json_t *layout_json(const struct layout *layout)
{
    enum layout_dimension order[N_LAYOUT_DIMENSIONS];
    json_t *json = json_object();
    layout_dimension_order(result_dimensions, N_RESULT_DIMENSIONS, order);
    for (int i = 0; i < N_LAYOUT_DIMENSIONS; i++)
        if (dimension_is_shown(layout, order[i]))
            json_object_set_new(json, layout_dimensions[order[i]].key, dimension_json(layout, order[i]));
    return json;
}

void layout_csv_heading(bool first, FILE *out)
{
    for (int i = 0; i < N_RESULT_DIMENSIONS; i++)
        csv_write_cell(out, first && i == 0, layout_dimensions[result_dimensions[i]].key);
}

void layout_csv_cells(const struct layout *layout, bool first, FILE *out)
{
    char text[DIMENSION_TEXT];
    for (int i = 0; i < N_RESULT_DIMENSIONS; i++)
        csv_write_cell(out, first && i == 0, layout ? dimension_text(layout, result_dimensions[i], text) : "");
}

struct value as_layout(const struct layout *layout)
{
    char text[LAYOUT_TEXT];
    return as_text(layout_format(layout, text, sizeof text));
}

json_t *features_json(feature_set features)
{
    json_t *json = json_array();
    for (int i = 0; i < N_FEATURES; i++)
        if (features >> i & 1)
            json_array_append_new(json, json_string(feature_name((enum feature)i)));
    return json;
}

void memory_parts(const struct footprint *memory, struct memory_part parts[N_MEMORY_PARTS])
{
    const struct memory_part all[N_MEMORY_PARTS] = {{"weights", memory->weights},     {"gradients", memory->gradients},
                                                    {"optimizer", memory->optimizer}, {"activations", memory->activations},
                                                    {"buffers", memory->buffers},     {"framework", memory->framework}};
    memcpy(parts, all, sizeof all);
}

#define MEMORY_ROWS(ROW)                                                                                                         \
    ROW(footprint, weights, as_real(s->weights / GIB), "GiB", JSON, "weights")                                                   \
    ROW(footprint, gradients, as_real(s->gradients / GIB), "GiB", JSON, "gradients")                                             \
    ROW(footprint, optimizer, as_real(s->optimizer / GIB), "GiB", JSON, "optimizer states and master weights")                   \
    ROW(footprint, activations, as_real(s->activations / GIB), "GiB", JSON, "activations kept for backward passes")              \
    ROW(footprint, buffers, as_real(s->buffers / GIB), "GiB", JSON, "buffers of exchanges and of passes")                        \
    ROW(footprint, framework, as_real(s->framework / GIB), "GiB", JSON, "memory of the framework and its libraries")
RESULT_ROWS(memory_part_rows, MEMORY_ROWS)

json_t *memory_parts_json(const struct footprint *memory)
{
    return rows_object(memory_part_rows, memory);
}
