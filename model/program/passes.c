#include "model/program/passes.h"

#include <stdlib.h>

#include "model/base/memory.h"

enum { WORK_DEPTH_MAX = 16 }; /* of a work tree below a pass; layers hold kernels, overlapped pairs and little else */

struct segment segment_of_stage(const struct layout *layout, const struct setting *setting, int virtual_stage)
{
    return (struct segment){
        .range = layout_layers(layout, setting->model, virtual_stage),
        .embedding = virtual_stage == 0,
        .head = virtual_stage == layout_virtual_stages(layout) - 1,
    };
}

struct segment segment_cut(const struct segment *whole, int i, int n)
{
    int64_t count = whole->range.count;
    int begin = (int)(count * i / n), end = (int)(count * (i + 1) / n);
    return (struct segment){
        .range = {whole->range.first + begin, end - begin},
        .embedding = whole->embedding && i == 0,
        .head = whole->head && i == n - 1,
    };
}

/* The same works do for both. */
static bool same_shape(const struct layout *layout, const struct transformer *model, const struct segment *a,
                       const struct segment *b)
{
    if (a->embedding != b->embedding || a->head != b->head || a->range.count != b->range.count)
        return false;
    for (int i = 0; i < a->range.count; i++)
        if (work_repeats_before(layout, model, a->range.first + i) != work_repeats_before(layout, model, b->range.first + i) ||
            !layer_kind_equal(layer_kind_of(model, a->range.first + i), layer_kind_of(model, b->range.first + i)))
            return false;
    return true;
}

static struct piece *add_piece(struct pass_pieces *pieces)
{
    pieces->items = memory_grow(pieces->items, &pieces->capacity, pieces->n_items + 1, sizeof *pieces->items);
    return &pieces->items[pieces->n_items++];
}

static void add_computation(struct pass_pieces *pieces, const struct work_table *works, int32_t work, int32_t layer)
{
    *add_piece(pieces) = (struct piece){.work = work, .layer = layer, .class = (uint8_t)works->items[work].class};
}

/* `beside`: it runs beside the computation of `timed_as`, an overlapped pair; otherwise `timed_as` is itself or -1. */
static void add_exchange(struct pass_pieces *pieces, const struct work *work, int32_t layer, int32_t timed_as, bool beside)
{
    *add_piece(pieces) = (struct piece){
        .work = timed_as,
        .layer = layer,
        .bytes = work->collective.bytes,
        .class = (uint8_t)work->class,
        .collective = (uint8_t)work->collective.collective,
        .group = (uint8_t)work->collective.group,
        .exchange = true,
        .beside = beside,
    };
}

/* A leaf of the tree, or a pair that runs side by side. */
static void add_leaf(struct pass_pieces *pieces, const struct work_table *works, int32_t id, int32_t layer)
{
    const struct work *work = &works->items[id];
    if (work->kind == WORK_COLLECTIVE) {
        add_exchange(pieces, work, layer, work->collective.tokens.copies ? id : -1, false);
    } else if (work->kind == WORK_OVERLAPPED && work->sequence.n_children == 2) {
        const int32_t *children = &works->children[work->sequence.first_child];
        add_computation(pieces, works, children[0], layer);
        add_exchange(pieces, &works->items[children[1]], layer, id, true);
    } else {
        add_computation(pieces, works, id, layer);
    }
}

/* All leaves of one round of a sequence, in order. */
static void add_leaves(struct pass_pieces *pieces, const struct work_table *works, int32_t id, int32_t layer)
{
    struct {
        int32_t id, child, repeats_left;
    } stack[WORK_DEPTH_MAX];
    int depth = 0;
    stack[depth++].id = id;
    stack[0].child = 0;
    stack[0].repeats_left = 1;
    while (depth) {
        const struct work *work = &works->items[stack[depth - 1].id];
        bool inner = work->kind == WORK_SEQUENCE && depth < WORK_DEPTH_MAX;
        if (!inner) {
            add_leaf(pieces, works, stack[--depth].id, layer);
            continue;
        }
        if (stack[depth - 1].child == work->sequence.n_children && --stack[depth - 1].repeats_left > 0)
            stack[depth - 1].child = 0;
        if (stack[depth - 1].child == work->sequence.n_children) {
            depth--;
            continue;
        }
        int32_t child = works->children[work->sequence.first_child + stack[depth - 1].child++];
        const struct work *below = &works->items[child];
        stack[depth].id = child;
        stack[depth].child = 0;
        stack[depth].repeats_left = below->kind == WORK_SEQUENCE ? below->sequence.repeat : 1;
        depth++;
    }
}

/* One round of a sequence that is executed `repeat` times. The host paces it as it does the whole pass. */
static int32_t work_once(struct work_table *works, int32_t id, bool host_paced)
{
    struct work work = works->items[id];
    if (work.sequence.repeat == 1 && work.sequence.host_paced == host_paced)
        return id;
    work.flops /= work.sequence.repeat;
    work.sequence.repeat = 1;
    work.sequence.host_paced = host_paced;
    return work_add(works, work);
}

/* One of a pass's children: a run of equal layers, or (layer -1) the embedding or the head. */
static void add_child(struct passes *passes, struct pass_pieces *pieces, int32_t id, int32_t layer, int step, bool host_paced)
{
    int32_t repeat = passes->works->items[id].sequence.repeat;
    int32_t once = passes->detail == DETAIL_LAYER ? work_once(passes->works, id, host_paced) : id;
    if (passes->detail == DETAIL_LAYER)
        for (int32_t i = 0; i < repeat; i++, layer += step)
            add_computation(pieces, passes->works, once, layer);
    else
        for (int32_t i = 0; i < repeat; i++, layer += step)
            add_leaves(pieces, passes->works, once, layer);
}

/*
 * The children of a pass are the embedding (if it has work to do), runs of layers, and the head; the other way round in a
 * backward pass. Which child is what follows from how many layers the runs count.
 */
static void add_children(struct passes *passes, struct pass_pieces *pieces, int32_t id)
{
    const struct segment *shape = &pieces->passage.segment;
    bool forward = pieces->passage.pass == PASS_FORWARD;
    int32_t first = passes->works->items[id].sequence.first_child, n = passes->works->items[id].sequence.n_children;
    bool host_paced = passes->works->items[id].sequence.host_paced;
    int executed = 0;
    for (int32_t i = 0; i < n; i++)
        executed += passes->works->items[passes->works->children[first + i]].sequence.repeat;
    bool has_embedding = executed - shape->range.count - shape->head > 0;
    int32_t leading = forward ? has_embedding : shape->head, trailing = forward ? shape->head : has_embedding;
    int32_t layer = forward ? 0 : shape->range.count - 1, step = forward ? 1 : -1;
    for (int32_t i = 0; i < n; i++) {
        int32_t child = passes->works->children[first + i];
        if (i < leading || i >= n - trailing) {
            add_child(passes, pieces, child, -1, 0, host_paced);
            continue;
        }
        add_child(passes, pieces, child, layer, step, host_paced);
        layer += step * passes->works->items[child].sequence.repeat;
    }
}

static int32_t add_pass(struct passes *passes, const struct passage *passage)
{
    const struct segment *segment = &passage->segment;
    return work_add_pass(passes->works, passes->layout, passes->setting, passage->pass, segment->range, segment->embedding,
                         segment->head);
}

/* Each piece takes what it does of the whole pass, or beside the other one. */
static void take_parts(struct passes *passes, struct pass_pieces *pieces, int32_t own)
{
    int32_t other = pieces->paired ? add_pass(passes, &pieces->beside) : -1, piece = -1, part = -1;
    for (size_t i = 0; i < pieces->n_items; i++) {
        if (pieces->items[i].work != piece) {
            piece = pieces->items[i].work;
            part = pieces->paired ? work_add_paired(passes->works, piece, own, other) : work_add_part(passes->works, piece, own);
        }
        pieces->items[i].work = part;
    }
}

static struct pass_pieces *make_pieces(struct passes *passes, struct passage passage, const struct passage *beside)
{
    struct pass_pieces *pieces = memory_new(1, sizeof *pieces);
    pieces->passage = passage;
    pieces->paired = beside != NULL;
    if (beside)
        pieces->beside = *beside;
    int32_t id = add_pass(passes, &passage);
    if (passes->detail == DETAIL_CHUNK)
        add_computation(pieces, passes->works, id, passage.segment.range.count ? 0 : -1);
    else
        add_children(passes, pieces, id);
    if (beside || passes->detail == DETAIL_LAYER)
        take_parts(passes, pieces, id);
    return pieces;
}

static bool same_passage(const struct layout *layout, const struct transformer *model, const struct passage *a,
                         const struct passage *b)
{
    return a->pass == b->pass && same_shape(layout, model, &a->segment, &b->segment);
}

const struct pass_pieces *passes_of(struct passes *passes, struct passage passage, const struct passage *beside)
{
    const struct transformer *model = passes->setting->model;
    if (passes->detail == DETAIL_KERNEL)
        beside = NULL;
    for (size_t i = 0; i < passes->n_known; i++) {
        const struct pass_pieces *known = passes->known[i];
        if (known->paired == (beside != NULL) && same_passage(passes->layout, model, &known->passage, &passage) &&
            (!beside || same_passage(passes->layout, model, &known->beside, beside)))
            return known;
    }
    passes->known = memory_grow(passes->known, &passes->capacity, passes->n_known + 1, sizeof(struct pass_pieces *));
    passes->known[passes->n_known] = make_pieces(passes, passage, beside);
    return passes->known[passes->n_known++];
}

void passes_free(struct passes *passes)
{
    for (size_t i = 0; i < passes->n_known; i++) {
        free(passes->known[i]->items);
        free(passes->known[i]);
    }
    free(passes->known);
    *passes = (struct passes){0};
}
