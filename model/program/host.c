#include "model/program/host.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/work/precision_bytes.h"

static bool keeps(const struct stage *stage, enum offload_part part)
{
    return layout_offloads(stage->build->layout, part);
}

static double share_of(const struct stage *stage, enum offload_part part)
{
    return offload_share(&stage->build->layout->offload, part);
}

/* A copy of `bytes`; equal ones share their work. */
static int32_t copy_work(struct build *build, const char *label, double bytes)
{
    const struct work_table *works = &build->program->works;
    for (int32_t i = 0; i < build->n_copies; i++) {
        const struct work *work = &works->items[build->copies[i]];
        if (work->label == label && work->host.bytes == bytes)
            return build->copies[i];
    }
    build->copies = memory_grow(build->copies, &build->copies_capacity, (size_t)build->n_copies + 1, sizeof *build->copies);
    return build->copies[build->n_copies++] = work_add_copy(&build->program->works, label, bytes);
}

static struct op compute_op(enum stream stream, enum work_class class, int32_t work)
{
    struct op op = step_op(OP_COMPUTE, stream, class);
    op.work = work;
    return op;
}

static const char COPY_DOWN[] = "copy_down", COPY_UP[] = "copy_up";

/* What a copy is of: a chunk's layers from `layer` on (-1: none of them), of a micro-batch or (-1) of the whole step. */
struct copied_part {
    enum copied what;
    int chunk, micro_batch, layer;
};

static struct copied_part part_of(enum copied what, const struct slot *slot, int layer)
{
    return (struct copied_part){what, slot->chunk, slot->micro_batch, layer};
}

static uint32_t add_copy(struct stage *stage, struct copied_part part, enum stream stream, double bytes,
                         const struct waits *waits)
{
    struct op op = compute_op(stream, CLASS_HOST, copy_work(stage->build, stream == STREAM_DOWN ? COPY_DOWN : COPY_UP, bytes));
    op.role = (uint8_t)part.what;
    op.chunk = (int16_t)part.chunk;
    op.micro_batch = part.micro_batch;
    op.layer = part.layer;
    return stage_add(stage, op, waits);
}

/* The next computation waits for an operation: by itself, or, where it waits for enough others, by a join before it. */
static void wait_for(struct stage *stage, uint32_t op)
{
    if (op == NO_OP)
        return;
    if (stage->waits.n < OP_DEPS) {
        waits_add(&stage->waits, op);
        return;
    }
    struct waits alone = {.ops = {op}, .n = 1};
    stage_add(stage, step_op(OP_JOIN, STREAM_COMPUTE, CLASS_HOST), &alone);
}

static void divide_layers(struct stage *stage)
{
    const struct layout *layout = stage->build->layout;
    struct host_plan *host = &stage->host;
    int all = 0, before = 0;
    for (int c = 0; c < layout->vpp; c++) {
        int layers = stage->chunks[c].whole.range.count;
        host->layers = layers > host->layers ? layers : host->layers;
        all += layers;
    }
    host->leaving_layers = memory_new((size_t)layout->vpp, sizeof *host->leaving_layers);
    for (int c = 0; c < layout->vpp; c++) {
        int layers = stage->chunks[c].whole.range.count;
        host->leaving_layers[c] = offload_layers_among(&layout->offload, all, before, layers);
        before += layers;
    }
}

void host_begin(struct stage *stage)
{
    const struct layout *layout = stage->build->layout;
    struct host_plan *host = &stage->host;
    ops_clear(host->leaving, OFFLOAD_BUFFERS);
    ops_clear(host->buckets, OFFLOADED_GRADIENT_BUCKETS);
    ops_clear(host->gathers, FETCHED_UNITS);
    divide_layers(stage);
    if (keeps(stage, OFFLOAD_ACTIVATIONS)) {
        size_t n = (size_t)layout->vpp * (size_t)stage->build->micro_batches * (size_t)host->layers;
        host->left = memory_new(n, sizeof *host->left);
    }
    if (layout_offloads_gradients(layout)) {
        host->sent = memory_new((size_t)layout->vpp * ((size_t)host->layers + 1), sizeof *host->sent);
        ops_clear(host->sent, layout->vpp * (host->layers + 1));
    }
}

void host_end(struct stage *stage)
{
    free(stage->host.leaving_layers);
    free(stage->host.left);
    free(stage->host.sent);
}

/* --- activations */

/* Where the copy of what a layer keeps of a micro-batch is noted. */
static uint32_t *left_at(const struct stage *stage, const struct slot *slot, int layer)
{
    const struct host_plan *host = &stage->host;
    size_t at = (size_t)slot->chunk * (size_t)stage->build->micro_batches + (size_t)slot->micro_batch;
    return &host->left[at * (size_t)host->layers + (size_t)(layer - stage->chunks[slot->chunk].whole.range.first)];
}

/* It is not among the first of its chunk that leave, or one of the last of a pass that goes backward at once. */
static bool stays(const struct stage *stage, const struct slot *slot, int layer)
{
    const struct slot *next = slot + 1, *end = stage->slots.items + stage->slots.n_items;
    const struct layer_range *range = &stage->chunks[slot->chunk].whole.range;
    bool turns = next < end && next->pass != PASS_FORWARD && next->chunk == slot->chunk && next->micro_batch == slot->micro_batch;
    return layer >= range->first + stage->host.leaving_layers[slot->chunk] ||
           (turns && layer >= range->first + range->count - OFFLOAD_BUFFERS);
}

static double kept_bytes(const struct stage *stage, int layer)
{
    const struct build *build = stage->build;
    return footprint_layer_bytes(build->layout, build->setting, layer_kind_of(build->setting->model, layer));
}

void host_before_layer(struct stage *stage, const struct slot *slot, int layer)
{
    struct host_plan *host = &stage->host;
    if (!keeps(stage, OFFLOAD_ACTIVATIONS))
        return;
    if (slot->pass == PASS_FORWARD) {
        if (!stays(stage, slot, layer))
            wait_for(stage, host->leaving[0]);
        return;
    }
    uint32_t left = *left_at(stage, slot, layer);
    if (left == NO_OP)
        return;
    struct waits waits = host->read[0];
    waits_add(&waits, left);
    wait_for(stage, add_copy(stage, part_of(COPIED_ACTIVATIONS, slot, layer), STREAM_UP, kept_bytes(stage, layer), &waits));
}

void host_after_layer(struct stage *stage, const struct slot *slot, int layer)
{
    struct host_plan *host = &stage->host;
    if (!keeps(stage, OFFLOAD_ACTIVATIONS))
        return;
    uint32_t *left = left_at(stage, slot, layer);
    if (slot->pass == PASS_FORWARD) {
        *left = NO_OP;
        if (stays(stage, slot, layer))
            return;
        *left = add_copy(stage, part_of(COPIED_ACTIVATIONS, slot, layer), STREAM_DOWN, kept_bytes(stage, layer), &stage->waits);
        ops_push(host->leaving, OFFLOAD_BUFFERS, *left);
    } else if (*left != NO_OP) {
        host->read[0] = host->read[1];
        host->read[1] = stage->waits;
    }
}

/* --- gradients */

static uint32_t *sent_at(const struct stage *stage, const struct slot *slot, int i)
{
    return &stage->host.sent[slot->chunk * (stage->host.layers + 1) + i];
}

/* The gradients of segment i. */
static struct copied_part gradients_part(const struct stage *stage, const struct slot *slot, int i)
{
    const struct chunk_plan *chunk = &stage->chunks[slot->chunk];
    const struct layer_range range = segment_cut(&chunk->whole, i, chunk->n_segments).range;
    return part_of(COPIED_GRADIENTS, slot, range.count ? range.first : -1);
}

/* Of the gradients of that many parameters, the part whose states the host has. */
static double leaving_bytes(const struct stage *stage, struct stage_parameters parameters)
{
    double own = work_own_parameters(stage->build->layout, parameters);
    return own * stage_gradient_bytes(stage) * share_of(stage, OFFLOAD_OPTIMIZER);
}

void host_before_gradients(struct stage *stage, const struct slot *slot, int i, struct stage_parameters parameters)
{
    uint32_t room = stage->host.buckets[0], sent = *sent_at(stage, slot, i);
    if (sent == NO_OP) {
        wait_for(stage, room);
        return;
    }
    struct waits waits = {.n = 0};
    waits_add(&waits, sent > room || room == NO_OP ? sent : room); /* both are on one stream */
    wait_for(stage, add_copy(stage, gradients_part(stage, slot, i), STREAM_UP, leaving_bytes(stage, parameters), &waits));
}

void host_after_gradients(struct stage *stage, const struct slot *slot, int i, struct stage_parameters parameters,
                          uint32_t reduced)
{
    struct waits waits = stage->waits;
    if (reduced != NO_OP)
        waits = (struct waits){.ops = {reduced}, .n = 1};
    uint32_t down = add_copy(stage, gradients_part(stage, slot, i), STREAM_DOWN, leaving_bytes(stage, parameters), &waits);
    ops_push(stage->host.buckets, OFFLOADED_GRADIENT_BUCKETS, down);
    *sent_at(stage, slot, i) = down;
}

void host_await_gradients(struct stage *stage)
{
    if (layout_offloads_gradients(stage->build->layout))
        wait_for(stage, stage->host.buckets[OFFLOADED_GRADIENT_BUCKETS - 1]);
}

/* --- parameters */

uint32_t host_fetch(struct stage *stage, const struct slot *slot, struct segment segment)
{
    double own = work_own_parameters(stage->build->layout, stage_parameters_of(stage, segment));
    double bytes = own * offloaded_weight_bytes(stage->build->setting->job) * share_of(stage, OFFLOAD_PARAMETERS);
    int layer = segment.range.count ? segment.range.first : -1;
    struct waits waits = {.n = 0};
    waits_add(&waits, stage->host.gathers[0]);
    return bytes > 0 ? add_copy(stage, part_of(COPIED_WEIGHTS, slot, layer), STREAM_UP, bytes, &waits) : NO_OP;
}

void host_gathered(struct stage *stage, uint32_t gather)
{
    ops_push(stage->host.gathers, FETCHED_UNITS, gather);
}

/* --- the update */

static uint32_t add_on_device(struct stage *stage, int32_t work, const struct waits *waits)
{
    return stage_add(stage, compute_op(STREAM_COMPUTE, CLASS_OPTIMIZER, work), waits);
}

/* One layer's parameters, as far as the host has their states: down, updated, up (unless they stay there). The last operation. */
static uint32_t update_segment(struct stage *stage, int chunk, struct segment segment, uint32_t norm, const struct waits *reduced)
{
    struct build *build = stage->build;
    struct stage_parameters parameters = stage_parameters_of(stage, segment);
    double own = work_own_parameters(build->layout, parameters), states = share_of(stage, OFFLOAD_OPTIMIZER);
    double fetched = share_of(stage, OFFLOAD_PARAMETERS);
    struct waits waits = {.ops = {norm}, .n = 1};
    struct copied_part part = {COPIED_GRADIENTS, chunk, -1, segment.range.count ? segment.range.first : -1};
    if (layout_offloads_gradients(build->layout))
        waits_add(&waits, stage->host.buckets[OFFLOADED_GRADIENT_BUCKETS - 1]);
    else
        waits_add(&waits, add_copy(stage, part, STREAM_DOWN, leaving_bytes(stage, parameters), reduced));
    int32_t work = work_add_host_update(&build->program->works, build->setting, own * states);
    struct op update = compute_op(STREAM_HOST, CLASS_OPTIMIZER, work);
    update.chunk = (int16_t)part.chunk;
    update.layer = part.layer;
    struct waits updated = {.ops = {stage_add(stage, update, &waits)}, .n = 1};
    if (fetched >= states)
        return updated.ops[0];
    double bytes = own * (states - fetched) * offloaded_weight_bytes(build->setting->job);
    part.what = COPIED_WEIGHTS;
    return add_copy(stage, part, STREAM_UP, bytes, &updated);
}

void host_optimize(struct stage *stage, double updated, double cast, uint32_t exchanged)
{
    struct work_table *works = &stage->build->program->works;
    const struct setting *setting = stage->build->setting;
    double kept = updated * (1 - share_of(stage, OFFLOAD_OPTIMIZER));
    waits_add(&stage->waits, exchanged);
    struct waits reduced = stage->waits;
    uint32_t norm = add_on_device(stage, work_add_device_optimizer(works, setting, updated, 0), &reduced), last = norm;
    if (kept > 0)
        add_on_device(stage, work_add_kept_update(works, setting, kept), &(struct waits){.n = 0});
    for (int c = 0; c < stage->build->layout->vpp; c++) {
        const struct segment *whole = &stage->chunks[c].whole;
        int n = whole->range.count > 0 ? whole->range.count : 1;
        for (int i = 0; i < n; i++)
            last = update_segment(stage, c, segment_cut(whole, i, n), norm, &reduced);
    }
    struct waits waits = {.ops = {last}, .n = 1};
    const struct op join = step_op(OP_JOIN, STREAM_COMPUTE, CLASS_OPTIMIZER);
    uint32_t done = precision_is_narrow(setting->job->precision)
                        ? add_on_device(stage, work_add_device_optimizer(works, setting, 0, cast), &waits)
                        : stage_add(stage, join, &waits);
    stage->waits = (struct waits){.ops = {done}, .n = 1};
}
