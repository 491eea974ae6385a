/* emit.c - the script of a stage: computations and messages in the order of its slots. */
#include "model/program/emit.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "model/cost/kernel/data_loading.h"
#include "model/program/host.h"

/* --- computation */

static struct op slot_op(const struct slot *slot, enum op_kind kind, enum stream stream, enum work_class class)
{
    return (struct op){
        .kind = (uint8_t)kind,
        .stream = (uint8_t)stream,
        .pass = slot->pass,
        .class = (uint8_t) class,
        .chunk = slot->chunk,
        .micro_batch = slot->micro_batch,
        .layer = -1,
        .work = -1,
    };
}

static struct op piece_op(const struct slot *slot, const struct piece *piece, int first_layer)
{
    struct op op = slot_op(slot, piece->exchange ? OP_COLLECTIVE : OP_COMPUTE, piece->exchange ? STREAM_TP : STREAM_COMPUTE,
                           (enum work_class)piece->class);
    op.layer = piece->layer < 0 ? -1 : first_layer + piece->layer;
    op.work = piece->work;
    op.collective = piece->collective;
    op.role = piece->group;
    op.bytes = piece->bytes;
    return op;
}

static struct passage passage_of(const struct stage *stage, const struct slot *slot)
{
    return (struct passage){stage->chunks[slot->chunk].whole, (enum pass)slot->pass};
}

/* The slot that slot i is paired with, NULL none. */
static const struct slot *partner_of(const struct stage *stage, size_t i)
{
    const struct slot *slots = stage->slots.items;
    if (slots[i].paired)
        return &slots[i + 1];
    return i > 0 && slots[i - 1].paired ? &slots[i - 1] : NULL;
}

/* Whether piece i of a pass is the first, or the last, of a layer. */
static bool enters_layer(const struct pass_pieces *pieces, size_t i)
{
    return pieces->items[i].layer >= 0 && (i == 0 || pieces->items[i - 1].layer != pieces->items[i].layer);
}

static bool leaves_layer(const struct pass_pieces *pieces, size_t i)
{
    return pieces->items[i].layer >= 0 && (i + 1 == pieces->n_items || pieces->items[i + 1].layer != pieces->items[i].layer);
}

static void emit_piece(struct stage *stage, const struct slot *slot, const struct piece *piece, int first_layer,
                       struct waits *before)
{
    struct op op = piece_op(slot, piece, first_layer);
    if (piece->beside) {
        waits_add(&stage->waits, stage_add(stage, op, before));
        return;
    }
    *before = stage->waits;
    uint32_t index = stage_add(stage, op, before);
    stage->waits.n = 0;
    waits_add(&stage->waits, index);
}

/* Of cut `at` of n of a slot's pass. */
static const struct pass_pieces *pieces_of(struct stage *stage, const struct slot *slot, struct segment segment, int at, int n,
                                           const struct slot *partner)
{
    struct emitted_pass *last = &stage->chunks[slot->chunk].last[slot->pass];
    int beside = partner ? partner->chunk * N_PASSES + partner->pass : -1;
    if (last->cuts == n && last->cut == at && last->partner == beside)
        return last->pieces;
    struct passage passage = {segment, (enum pass)slot->pass}, other = {0};
    if (partner)
        other = passage_of(stage, partner);
    *last = (struct emitted_pass){at, n, beside, passes_of(&stage->build->passes, passage, partner ? &other : NULL)};
    return last->pieces;
}

/* One pass of one segment of a slot; afterwards `waits` is what it ends with. */
static void emit_pass(struct stage *stage, const struct slot *slot, struct segment segment, const struct pass_pieces *pieces)
{
    struct waits before = stage->waits;
    for (size_t i = 0; i < pieces->n_items; i++) {
        int layer = segment.range.first + pieces->items[i].layer;
        if (enters_layer(pieces, i))
            host_before_layer(stage, slot, layer);
        emit_piece(stage, slot, &pieces->items[i], segment.range.first, &before);
        if (leaves_layer(pieces, i))
            host_after_layer(stage, slot, layer);
    }
    if (pieces->n_items == 0) { /* a stage without layers has no weight gradients */
        uint32_t join = stage_add(stage, slot_op(slot, OP_JOIN, STREAM_COMPUTE, CLASS_GEMM), &stage->waits);
        stage->waits.n = 0;
        waits_add(&stage->waits, join);
    }
}

/* Pairs are of whole chunks: where there are any, a stage has several of them, and those are not cut. */
static void emit_slot(struct stage *stage, size_t i)
{
    const struct slot *slot = &stage->slots.items[i], *partner = partner_of(stage, i);
    const struct chunk_plan *chunk = &stage->chunks[slot->chunk];
    int n = replicas_segments(stage, i);
    for (int k = 0; k < n; k++) {
        int at = slot->pass == PASS_FORWARD ? k : n - 1 - k;
        replicas_before(stage, i, at);
        struct segment segment = n == 1 ? chunk->whole : segment_cut(&chunk->whole, at, n);
        emit_pass(stage, slot, segment, pieces_of(stage, slot, segment, at, n, partner));
        replicas_after(stage, i, at);
    }
    stage->ends[i] = stage->waits;
}

/* --- messages
 *
 * The boundary between virtual stages v and v + 1 has the tags 2v (activations, forward) and 2v + 1 (gradients, backward); those
 * of DualPipe's second direction follow after the first's. Between the arms of a V nothing is sent: both ends of the boundary are
 * one stage.
 */

/* Do micro-batches in this chunk of this stage go down the stages, away from stage 0, in their forward pass? */
static bool goes_down(const struct stage *stage, int chunk)
{
    const struct layout *layout = stage->build->layout;
    if (layout->schedule == SCHEDULE_DUALPIPE)
        return (chunk == 0) == (2 * stage->index < layout->pp);
    return !schedule_is_folded(layout->schedule) || chunk == 0;
}

/* The message over the boundary after virtual stage `boundary`; `before`: this chunk's stage stands before it. */
static struct message message_over(const struct stage *stage, int chunk, enum pass pass, int boundary, bool before)
{
    const struct layout *layout = stage->build->layout;
    int n = layout_virtual_stages(layout);
    bool down = goes_down(stage, chunk), forward = pass == PASS_FORWARD;
    bool folds = layout->schedule != SCHEDULE_DUALPIPE && schedule_is_folded(layout->schedule) && boundary == layout->pp - 1;
    if (pass == PASS_BACKWARD_WEIGHT || folds || boundary < 0 || boundary >= n - 1)
        return (struct message){.exists = false};
    bool second = layout->schedule == SCHEDULE_DUALPIPE && !down;
    return (struct message){.exists = true,
                            .peer = before == down ? PEER_NEXT : PEER_PREVIOUS,
                            .tag = 2 * (uint32_t)(boundary + (second ? n : 0)) + !forward};
}

static void plan_messages(const struct stage *stage, int chunk, struct chunk_plan *plan)
{
    int v = layout_virtual_stage(stage->build->layout, stage->index, chunk);
    for (int pass = 0; pass < N_PASSES; pass++) {
        bool forward = pass == PASS_FORWARD;
        plan->into[pass] = message_over(stage, chunk, (enum pass)pass, forward ? v - 1 : v, !forward);
        plan->out[pass] = message_over(stage, chunk, (enum pass)pass, forward ? v : v - 1, forward);
    }
}

static struct message message_into(const struct stage *stage, const struct slot *slot)
{
    return stage->chunks[slot->chunk].into[slot->pass];
}

static struct message message_out_of(const struct stage *stage, const struct slot *slot)
{
    return stage->chunks[slot->chunk].out[slot->pass];
}

static uint32_t emit_message(struct stage *stage, const struct slot *slot, enum op_kind kind, struct message message,
                             const struct waits *waits)
{
    if (!message.exists)
        return NO_OP;
    struct op op = slot_op(slot, kind, kind == OP_SEND ? STREAM_SEND : STREAM_RECV, CLASS_PP_COMM);
    op.role = (uint8_t)message.peer;
    op.tag = message.tag;
    op.bytes = stage->build->message_bytes;
    return stage_add(stage, op, waits);
}

/* Exchanges run beside computation: a message leaves when its pass (a pair: when both) ends, and the one a slot needs may arrive
 * while the slot before it is computed (two buffers per direction). */
static void emit_beside(struct stage *stage)
{
    static const struct waits nothing = {.n = 0};
    const struct slot *slots = stage->slots.items;
    size_t next;
    for (size_t i = 0; i < stage->slots.n_items; i = next) {
        const struct waits *room = i >= 2 ? &stage->ends[i - 2] : &nothing;
        next = i + 1 + slots[i].paired;
        for (size_t k = i; k < next; k++)
            waits_add(&stage->waits, emit_message(stage, &slots[k], OP_RECV, message_into(stage, &slots[k]), room));
        for (size_t k = i; k < next; k++)
            emit_slot(stage, k);
        for (size_t k = i; k < next; k++)
            emit_message(stage, &slots[k], OP_SEND, message_out_of(stage, &slots[k]), &stage->ends[next - 1]);
    }
}

/* One point of exchange: what slots [begin, at) made is sent, what slots [at, next) need is received, and the next computation
 * waits for both. Both lists stand in the order of the slots, so the last of each stands for all. */
static void emit_exchange(struct stage *stage, size_t begin, size_t at)
{
    static const struct waits nothing = {.n = 0};
    const struct slot *slots = stage->slots.items;
    const struct waits *done = at ? &stage->ends[at - 1] : &nothing;
    uint32_t last_send = NO_OP, last_recv = NO_OP;
    for (size_t i = begin; i < at; i++) {
        uint32_t send = emit_message(stage, &slots[i], OP_SEND, message_out_of(stage, &slots[i]), done);
        last_send = send != NO_OP ? send : last_send;
    }
    for (size_t i = at; i < stage->slots.n_items; i++) {
        uint32_t recv = emit_message(stage, &slots[i], OP_RECV, message_into(stage, &slots[i]), done);
        last_recv = recv != NO_OP ? recv : last_recv;
        if (slots[i].exchanges)
            break;
    }
    waits_add(&stage->waits, last_send);
    waits_add(&stage->waits, last_recv);
}

static void emit_blocking(struct stage *stage)
{
    size_t begin = 0, n = stage->slots.n_items;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || stage->slots.items[i - 1].exchanges) {
            emit_exchange(stage, begin, i);
            begin = i;
        }
        emit_slot(stage, i);
    }
    emit_exchange(stage, begin, n);
}

/* --- data: the stages that hold the ends of the model read tokens and labels before they begin */

static void emit_data(struct stage *stage)
{
    const struct build *build = stage->build;
    static const struct waits nothing = {.n = 0};
    bool at_end = false;
    for (int c = 0; c < build->layout->vpp; c++)
        at_end = at_end || stage->chunks[c].whole.embedding || stage->chunks[c].whole.head;
    if (!at_end || stage_has(stage, FEATURE_BIT(ASYNC_DATA)))
        return;
    struct op op = step_op(OP_COMPUTE, STREAM_HOST, CLASS_HOST);
    op.work = work_add_data(&build->program->works, build->layout, build->setting);
    waits_add(&stage->waits, stage_add(stage, op, &nothing));
}

/* --- the whole script */

static void plan_chunks(struct stage *stage)
{
    const struct layout *layout = stage->build->layout;
    stage->chunks = memory_new((size_t)layout->vpp, sizeof *stage->chunks);
    for (int c = 0; c < layout->vpp; c++) {
        stage->chunks[c] = (struct chunk_plan){
            .whole = segment_of_stage(layout, stage->build->setting, layout_virtual_stage(layout, stage->index, c)),
            .n_segments = 1,
            .first_forward = SIZE_MAX,
        };
        plan_messages(stage, c, &stage->chunks[c]);
    }
    for (size_t i = 0; i < stage->slots.n_items; i++) {
        const struct slot *slot = &stage->slots.items[i];
        struct chunk_plan *chunk = &stage->chunks[slot->chunk];
        if (slot->pass == PASS_FORWARD && chunk->first_forward == SIZE_MAX)
            chunk->first_forward = i;
        if (slot->pass == PASS_BACKWARD || slot->pass == PASS_BACKWARD_WEIGHT)
            chunk->last_gradient = i;
    }
}

void stage_emit(struct stage *stage)
{
    const struct layout *layout = stage->build->layout;
    stage->first_op = stage->build->program->n_ops;
    stage->gathered = NO_OP;
    schedule_slots(layout, stage->build->micro_batches, stage->index, &stage->slots);
    stage->ends = memory_new(stage->slots.n_items, sizeof *stage->ends);
    plan_chunks(stage);
    host_begin(stage);
    emit_data(stage);
    replicas_begin(stage);
    /* Zero-bubble frameworks never let a weight-gradient pass wait for a message. */
    if (stage_has(stage, FEATURE_BIT(PP_OVERLAP)) || schedule_splits_backward(layout->schedule))
        emit_beside(stage);
    else
        emit_blocking(stage);
    replicas_end(stage);
    for (int c = 0; c < layout->vpp; c++)
        free(stage->chunks[c].gathered);
    host_end(stage);
    free(stage->chunks);
    free(stage->ends);
    slots_free(&stage->slots);
}
