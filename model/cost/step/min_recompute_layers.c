/* The fewest repeated layers that fit. */
#include "model/cost/step/min_recompute_layers.h"

#include <math.h>

#include "model/cost/work/host_memory.h"

double memory_needed(struct closed_form *form, const struct setting *setting, const struct layout *layout, double limit_bytes)
{
    double bytes = closed_form_memory(form, layout);
    if (offload_is_none(&layout->offload))
        return bytes;
    double host = closed_form_host_memory(form, layout), capacity = host_capacity(setting->cluster, layout);
    return capacity > 0 && host > capacity ? fmax(bytes, limit_bytes * host / capacity) : bytes;
}

int min_recompute_layers(struct closed_form *form, const struct setting *setting, const struct layout *full, double limit_bytes)
{
    struct layout layout = *full;
    int low = 1, high = layout_most_layers(full, setting->model) - 1;
    if (high < low)
        return 0;
    layout.recompute = (struct recompute){RECOMPUTE_FULL, RECOMPUTE_FIRST, high};
    if (layout_check(&layout, setting, NULL, 0) != LAYOUT_LEGAL ||
        memory_needed(form, setting, &layout, limit_bytes) > limit_bytes)
        return 0;
    while (low < high) {
        layout.recompute.layers = low + (high - low) / 2;
        if (memory_needed(form, setting, &layout, limit_bytes) > limit_bytes)
            low = layout.recompute.layers + 1;
        else
            high = layout.recompute.layers;
    }
    return low;
}
