/* layers.c - which layers a virtual stage holds, and which virtual stage a chunk is. */
#include "model/layout/layout.h"

bool schedule_is_folded(enum schedule schedule)
{
    return schedule == SCHEDULE_ZBV || schedule == SCHEDULE_DUALPIPE || schedule == SCHEDULE_DUALPIPEV;
}

int layout_virtual_stages(const struct layout *layout)
{
    return layout->schedule == SCHEDULE_DUALPIPE ? layout->pp : layout->pp * layout->vpp;
}

struct layer_range layout_layers(const struct layout *layout, const struct transformer *model, int virtual_stage)
{
    int last = layout_virtual_stages(layout) - 1, v = virtual_stage, layers = model->layers, mtp = model->mtp_layers;
    /* Multi-token-prediction layers are the last ones, with the head, and take layers' places. Where they are more than a stage's
     * share they fill the last one, and the layers share the others. */
    bool filled = last > 0 && (layers + mtp) / (last + 1) < mtp;
    int places = filled ? layers : layers + mtp, sharing = filled ? last : last + 1;
    if (filled && v == last)
        return (struct layer_range){.first = layers};
    int each = places / sharing, heavier = places % sharing;
    /* Virtual stages [start, last) hold one layer more. When their number divides L + 2 this is all but the first and last. */
    int start = last - heavier;
    int before = v < start ? 0 : v - start < heavier ? v - start : heavier;
    int first = v * each + before, count = each + (v >= start && v < last);
    if (first > layers)
        first = layers;
    return (struct layer_range){.first = first, .count = first + count > layers ? layers - first : count};
}

int layout_virtual_stage(const struct layout *layout, int stage, int chunk)
{
    int mirror = layout->pp - 1 - stage;
    if (layout->schedule == SCHEDULE_DUALPIPE)
        return (chunk == 0) == (stage < mirror) ? stage : mirror;
    if (schedule_is_folded(layout->schedule) && chunk == 1)
        return layout->pp + mirror;
    return chunk * layout->pp + stage;
}

int layout_chunk_of(const struct layout *layout, int virtual_stage)
{
    if (layout->schedule == SCHEDULE_DUALPIPE)
        return 2 * virtual_stage >= layout->pp;
    return virtual_stage / layout->pp;
}

int layout_stage_of(const struct layout *layout, int virtual_stage)
{
    if (schedule_is_folded(layout->schedule) && virtual_stage >= layout->pp)
        return 2 * layout->pp - 1 - virtual_stage;
    return virtual_stage % layout->pp;
}
