/* pipelined.c - overlaps a product with the exchange of its input or output, or attention with that of keys and values, in
 * pieces.
 *
 *     gather, then product     exchange  [0][1][2][3]          product, then reduce     compute   [0][1][2][3]
 *                              compute      [0][1][2][3]                                exchange     [0][1][2][3]
 *
 * The first of the two steps leads: after each of its pieces it records an event, and the other step waits for that event before
 * the same piece. Both are enqueued whole, one after the other, each on its own stream, so the host does not wait. While one
 * piece is exchanged, another one is computed.
 *
 * If one operation of the compute stream contains both steps (programs of less than kernel detail), it enqueues the exchange on
 * the stream for such exchanges, which nothing else uses then, and waits for it at the end. Earlier work of the compute stream
 * may still read the buffer that the exchange writes, so the exchange begins after that work.
 *
 * The next pair uses the same events again. That is safe: a wait refers to the last record enqueued before it, and each event is
 * recorded on one stream only. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "runtime/layer/casts.h"

/* --- opening */

static void open_event(struct rank *rank, struct device_event **event)
{
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->event_new(rank->device, event, &rank->diags);
}

void pipeline_open(struct rank *rank)
{
    struct pipeline *p = &rank->pipeline;
    uint32_t n = rank->program->scripts[rank->stage].n_ops;
    p->slices = rank->binding.slices;
    p->marks = memory_new(n, sizeof *p->marks);
    open_event(rank, &p->fork);
    open_event(rank, &p->join);
    for (int k = 0; k < WORK_RING_PIECES_MAX; k++) {
        open_event(rank, &p->made[k]);
        open_event(rank, &p->arrived[k]);
    }
    for (uint32_t i = 0; i < n; i++) {
        int pieces = rank->binding.ops[i].pieces;
        p->marks[i].n = pieces > 1 ? pieces : 0;
        p->marks[i].begin = memory_new((size_t)p->marks[i].n, sizeof *p->marks[i].begin);
        p->marks[i].end = memory_new((size_t)p->marks[i].n, sizeof *p->marks[i].end);
        for (int k = 0; k < p->marks[i].n; k++) {
            open_event(rank, &p->marks[i].begin[k]);
            open_event(rank, &p->marks[i].end[k]);
        }
    }
}

void pipeline_close(struct rank *rank)
{
    struct pipeline *p = &rank->pipeline;
    const struct device_api *api = rank->device->api;
    uint32_t n = rank->program->scripts[rank->stage].n_ops;
    api->event_free(p->fork);
    api->event_free(p->join);
    for (int k = 0; k < WORK_RING_PIECES_MAX; k++) {
        api->event_free(p->made[k]);
        api->event_free(p->arrived[k]);
    }
    for (uint32_t i = 0; p->marks && i < n; i++) {
        for (int k = 0; k < p->marks[i].n; k++) {
            api->event_free(p->marks[i].begin[k]);
            api->event_free(p->marks[i].end[k]);
        }
        free(p->marks[i].begin);
        free(p->marks[i].end);
    }
    free(p->marks);
}

int64_t pipeline_row(const struct rank *rank, int k)
{
    const struct shape *s = &rank->shape;
    return s->sequence_parallel ? (k * s->tp + s->tp_rank) * (s->local_tokens / rank->pipeline.slices) : 0;
}

/* --- around a step */

static bool is_handed_over(const struct step_context *c, const struct step *step)
{
    return step->exchange && step->pieces > 1 && c->stream == c->rank->streams[STREAM_COMPUTE];
}

struct device_stream *pipeline_enter(struct step_context *c, const struct step *step)
{
    struct rank *rank = c->rank;
    struct device_stream *stream = rank->streams[STREAM_TP];
    if (!is_handed_over(c, step))
        return c->stream;
    if (step->leads) { /* otherwise its pieces wait for those of the product, which came behind all that */
        rank_record(rank, rank->pipeline.fork, c->stream);
        rank_wait(rank, rank->pipeline.fork, stream);
    }
    return stream;
}

void pipeline_leave(struct step_context *c, const struct step *step)
{
    struct rank *rank = c->rank;
    if (!is_handed_over(c, step) || step->leads) /* the product waits for every piece */
        return;
    rank_record(rank, rank->pipeline.join, rank->streams[STREAM_TP]);
    rank_wait(rank, rank->pipeline.join, c->stream);
}

/* --- a piece of the step under way */

void pipeline_piece_begin(const struct step_context *c, int piece)
{
    struct pipeline *p = &c->rank->pipeline;
    if (c->step->pieces == 1)
        return;
    if (!c->step->leads)
        rank_wait(c->rank, c->step->exchange ? p->made[piece] : p->arrived[piece], c->stream);
    if (c->marks)
        rank_record(c->rank, c->marks->begin[piece], c->stream);
}

void pipeline_piece_end(const struct step_context *c, int piece)
{
    struct pipeline *p = &c->rank->pipeline;
    if (c->step->pieces == 1)
        return;
    if (c->marks)
        rank_record(c->rank, c->marks->end[piece], c->stream);
    if (c->step->leads)
        rank_record(c->rank, c->step->exchange ? p->arrived[piece] : p->made[piece], c->stream);
}

/* `row` elements of the device's precision to a row; NULL stays NULL. */
static void *at_row(const struct step_context *c, const void *data, int64_t row, int64_t elements)
{
    return data ? (char *)data + (size_t)(row * elements) * device_element_bytes(c->rank->device) : NULL;
}

void pipeline_launch(struct step_context *c, const struct kernel_call *whole)
{
    int pieces = c->step->pieces;
    int64_t rows = whole->linear.t / pieces;
    size_t element = device_element_bytes(c->rank->device);
    for (int p = 0; p < pieces; p++) {
        struct kernel_call call = *whole;
        struct linear_call *linear = &call.linear;
        struct operand x = {whole->linear.x, whole->linear.x_as}, dy = {whole->linear.dy, whole->linear.dy_as};
        x = operand_from(x, p * rows, linear->in, element);
        dy = operand_from(dy, p * rows, linear->out, element);
        linear->t = rows;
        linear->x = x.data;
        linear->x_as = x.as;
        linear->dy = dy.data;
        linear->dy_as = dy.as;
        linear->y = at_row(c, whole->linear.y, p * rows, linear->out);
        linear->dx = at_row(c, whole->linear.dx, p * rows, linear->in);
        pipeline_piece_begin(c, p);
        rank_launch(c->rank, c->stream, &call);
        pipeline_piece_end(c, p);
    }
}

void pipeline_exchange(struct step_context *c, const struct exchange_call *whole)
{
    int pieces = c->step->pieces;
    bool gathers = whole->exchange == EXCHANGE_ALL_GATHER;
    struct exchange_call call = *whole;
    call.count = whole->count / pieces;
    call.blocks = c->rank->pipeline.slices / pieces;
    size_t own = (size_t)call.count * element_bytes(call.element), all = own * (size_t)c->rank->shape.tp;
    for (int p = 0; p < pieces; p++) {
        call.in = (const char *)whole->in + (size_t)p * (gathers ? own : all);
        call.out = (char *)whole->out + (size_t)p * (gathers ? all : own);
        pipeline_piece_begin(c, p);
        rank_exchange(c->rank, c->rank->groups[GROUP_TP], c->stream, &call);
        pipeline_piece_end(c, p);
    }
}
