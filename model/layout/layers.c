/* layers.c - which layers a virtual stage holds, and which virtual stage a chunk is. */
#include "model/layout/layout.h"

struct layer_range layout_layers(const struct layout *layout, int layers, int virtual_stage)
{
    int n = layout->pp * layout->vpp, v = virtual_stage;
    int each = layers / n, heavier = layers % n;
    /* Virtual stages [start, n - 1) hold one layer more. When n divides L + 2 this is all but the first and last. */
    int start = n - 1 - heavier;
    int before = v < start ? 0 : v - start < heavier ? v - start : heavier;
    return (struct layer_range){.first = v * each + before, .count = each + (v >= start && v < n - 1)};
}

static bool is_v_shaped(enum schedule schedule)
{
    return schedule == SCHEDULE_ZBV || schedule == SCHEDULE_DUALPIPE;
}

int layout_virtual_stage(const struct layout *layout, int stage, int chunk)
{
    if (is_v_shaped(layout->schedule) && chunk == 1)
        return 2 * layout->pp - 1 - stage;
    return chunk * layout->pp + stage;
}

int layout_chunk_of(const struct layout *layout, int virtual_stage)
{
    return virtual_stage / layout->pp;
}

int layout_stage_of(const struct layout *layout, int virtual_stage)
{
    if (is_v_shaped(layout->schedule) && virtual_stage >= layout->pp)
        return 2 * layout->pp - 1 - virtual_stage;
    return virtual_stage % layout->pp;
}
