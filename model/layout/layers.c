/* layers.c - the layers of a virtual stage, and the virtual stage of a chunk. */
#include <math.h>

#include "model/base/order.h"

#include "model/layout/layout.h"

bool schedule_rolls(enum schedule schedule)
{
    return schedule == SCHEDULE_ZB2P || schedule == SCHEDULE_ZBV;
}

bool schedule_is_folded(enum schedule schedule)
{
    return schedule == SCHEDULE_ZBV || schedule == SCHEDULE_DUALPIPE || schedule == SCHEDULE_DUALPIPEV;
}

bool schedule_divides(enum schedule schedule)
{
    return schedule == SCHEDULE_ZB1P || schedule == SCHEDULE_ZB2P || schedule == SCHEDULE_ZBV;
}

enum arrangement schedule_arrangement(enum schedule schedule)
{
    if (schedule == SCHEDULE_DUALPIPE)
        return ARRANGED_BOTH_WAYS;
    return schedule_is_folded(schedule) ? ARRANGED_IN_V : ARRANGED_AROUND;
}

int layout_virtual_stages(const struct layout *layout)
{
    return layout->schedule == SCHEDULE_DUALPIPE ? layout->pp : layout->pp * layout->vpp;
}

/* Layers that fit into a stage of weight `bottleneck` beside what weighs `end`. */
static int layers_within(double bottleneck, double end)
{
    return bottleneck < end ? 0 : (int)(bottleneck - end + 1e-9);
}

/*
 * The least weight, in layers, of the heaviest of n stages, contiguous ones, of which the first and the last have a token table
 * of `table` layers' weight beside their layers. It is whole where inner stages decide and `table` more than whole where the ends
 * do; below what the stages can hold on average there is nothing to try.
 */
static double least_bottleneck(int n, int layers, double table)
{
    double average = n > 2 ? fmin(layers / (n - 2.0), (layers + 2 * table) / n) : layers / 2.0 + table;
    for (double whole = fmax(1, floor(average));; whole++) {
        double with_table = whole - 1 + (table - floor(table)); /* between whole - 1 and whole */
        for (int i = 0; i < 2; i++) {
            double bottleneck = i ? whole : with_table;
            if ((n - 2) * layers_within(bottleneck, 0) + 2 * layers_within(bottleneck, table) >= layers)
                return bottleneck;
        }
    }
}

/* Stages are filled up to the bottleneck one after the other; each that is left keeps a layer. */
static struct layer_range balanced_layers(int n, int layers, double table, int v)
{
    double bottleneck = least_bottleneck(n, layers, table);
    struct layer_range range = {0, 0};
    for (int i = 0; i <= v; i++) {
        int left = layers - range.first - range.count;
        range.first += range.count;
        range.count = i == n - 1 ? left : int_min(layers_within(bottleneck, i ? 0 : table), left - (n - 1 - i));
    }
    return range;
}

/* A token table in layers, both as a rank of the pipeline holds them. Mixtures are most of a model that has any. */
static double table_weight(const struct layout *layout, const struct transformer *model)
{
    double dense = transformer_layer_parameters(model, model->layers - 1, false);
    double experts = transformer_layer_parameters(model, model->layers - 1, true) - dense;
    double share = (double)layout->tp / layout->ep / layout_expert_tp(layout); /* of experts, beside that of other matrices */
    return (double)model->vocab * (double)model->hidden / (dense + (experts > 0 ? experts * share : 0));
}

/* DeepSpeed's stages have one chunk; with more, and where each layer is a stage, layers count alike as in Megatron's line. So do
 * those of a pattern, which only that line divides. */
static bool divides_by_parameters(const struct layout *layout, const struct transformer *model)
{
    bool chunked = layout->vpp > 1 || layout->pp == 1;
    return !chunked && !transformer_is_hybrid(model) && layout->pp <= model->layers && !model->mtp_layers &&
           layout_follows_llama(layout, model);
}

struct layer_range layout_layers(const struct layout *layout, const struct transformer *model, int virtual_stage)
{
    int last = layout_virtual_stages(layout) - 1, v = virtual_stage, layers = model->layers, mtp = model->mtp_layers;
    if (divides_by_parameters(layout, model))
        return balanced_layers(last + 1, layers, table_weight(layout, model), v);
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

int layout_most_layers(const struct layout *layout, const struct transformer *model)
{
    int most = 0;
    for (int v = 0; v < layout_virtual_stages(layout); v++) {
        int count = layout_layers(layout, model, v).count;
        most = count > most ? count : most;
    }
    return most;
}

/* The last that begins at the layer or before it: those of no layer stand in front of others that begin there. */
static int virtual_stage_of(const struct layout *layout, const struct transformer *model, int layer)
{
    int low = 0, high = layout_virtual_stages(layout);
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (layout_layers(layout, model, middle).first <= layer)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct layer_range layout_repeated_with(const struct layout *layout, const struct transformer *model, int layer)
{
    struct recompute r = layout->recompute;
    if (r.of == RECOMPUTE_ALL || layer >= model->layers)
        return (struct layer_range){layer, r.of == RECOMPUTE_ALL && r.what != RECOMPUTE_NONE};
    struct layer_range stage = layout_layers(layout, model, virtual_stage_of(layout, model, layer));
    int first, count = recompute_group(r, stage.count, layer - stage.first, &first);
    return (struct layer_range){stage.first + first, count};
}

bool layers_divide(const struct transformer *model, int64_t parts)
{
    int64_t places = model->layers + model->mtp_layers;
    return places % parts == 0 || (places + 2) % parts == 0 || parts == model->layers + 2;
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
