/* executor_operation.c - enqueues one operation of a script: a pass, a message, an exchange, a copy or an update. */
#include "runtime/run/executor_internal.h"

/* The input of a pass comes in a message, or from another chunk of this rank (at the turning point of a folded schedule). */
static void take_over(struct rank *rank, const struct op *op)
{
    const struct layout *layout = rank->layout;
    bool forward = op->pass == PASS_FORWARD;
    struct chunk_state *chunk = &rank->chunks[op->chunk];
    int from = chunk->virtual_stage + (forward ? -1 : 1);
    if (op->pass == PASS_BACKWARD_WEIGHT || from < 0 || from >= layout_virtual_stages(layout) ||
        layout_stage_of(layout, from) != rank->stage)
        return;
    struct pass_state *other = rank->chunks[layout_chunk_of(layout, from)].passes[op->micro_batch];
    struct pass_state *pass = chunk->passes[op->micro_batch];
    struct tensor **to = forward ? &pass->x : &pass->d, **at = forward ? &other->x : &other->d;
    if (!*to && *at) {
        *to = *at;
        *at = NULL;
    }
}

static void enqueue_pass(struct rank *rank, uint32_t i, struct device_stream *stream)
{
    const struct op *op = &rank->program->ops[rank->program->scripts[rank->stage].first_op + i];
    const struct bound_op *bound = &rank->binding.ops[i];
    struct chunk_state *chunk = &rank->chunks[op->chunk];
    const struct step_list *list = binding_list(&rank->binding, op->chunk, op->pass);
    if (bound->first == 0 && bound->n)
        take_over(rank, op);
    struct step_context context = {.rank = rank,
                                   .chunk = chunk,
                                   .pass = chunk->passes[op->micro_batch],
                                   .stream = stream,
                                   .micro_batch = op->micro_batch,
                                   .marks = rank->pipeline.marks[i].n ? &rank->pipeline.marks[i] : NULL};
    for (uint32_t k = 0; k < bound->n && rank->status == STATUS_OK; k++)
        step_enqueue(&context, &list->items[bound->first + k]);
}

static void enqueue_message(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    struct pass_state *pass = rank->chunks[op->chunk].passes[op->micro_batch];
    struct tensor **at = op->pass == PASS_FORWARD ? &pass->x : &pass->d;
    int64_t elements = rank->shape.local_tokens * rank->shape.hidden;
    bool sends = op->kind == OP_SEND;
    if (!sends)
        *at = tensor_new_travelling(rank, (size_t)elements * device_element_bytes(rank->device), stream);
    if (!*at)
        return;
    struct exchange_call call = {.exchange = sends ? EXCHANGE_SEND : EXCHANGE_RECV,
                                 .element = rank_element(rank),
                                 .in = (*at)->data,
                                 .out = (*at)->data,
                                 .count = elements,
                                 .peer = sends ? 1 : 0,
                                 .what = op->pass == PASS_FORWARD ? "activations" : "gradients"};
    rank_exchange(rank, sends ? rank->sends[op->tag] : rank->receives[op->tag], stream, &call);
    if (sends)
        tensor_drop(rank, at, stream);
}

static void enqueue_alone(struct rank *rank, uint32_t i)
{
    const struct op *op = &rank->program->ops[rank->program->scripts[rank->stage].first_op + i];
    const struct bound_op *bound = &rank->binding.ops[i];
    struct device_stream *stream = rank->streams[op->stream];
    for (int d = 0; d < OP_DEPS; d++)
        if (op->deps[d] != NO_OP)
            rank_wait(rank, rank->end[op->deps[d]], stream);
    host_copies_awaited(rank, op);
    bool whole = bound->pieces <= 1; /* pieces wait one by one */
    if (whole && bound->pairing == PAIRING_AFTER_PREVIOUS)
        rank_wait(rank, rank->end[i - 1], stream);
    bool updates = op->pass >= N_PASSES && op->kind == OP_COMPUTE && op->class == CLASS_OPTIMIZER;
    if (updates && op->stream == STREAM_COMPUTE)
        update_settle_norm(rank, stream);
    rank_record(rank, rank->begin[i], stream);
    if (whole && bound->pairing == PAIRING_AFTER_NEXT)
        rank_wait(rank, rank->end[i + 1], stream);
    if (op->kind == OP_SEND || op->kind == OP_RECV)
        enqueue_message(rank, op, stream);
    else if (op->pass < N_PASSES)
        enqueue_pass(rank, i, stream);
    else if (op->kind == OP_COLLECTIVE)
        shards_exchange(rank, op, stream);
    else if (updates)
        update_enqueue(rank, op, stream);
    else if (op->stream == STREAM_DOWN || op->stream == STREAM_UP)
        host_copies_enqueue(rank, i, stream);
    rank_record(rank, rank->end[i], stream);
}

void rank_enqueue_operation(struct rank *rank, uint32_t i)
{
    if (i > 0 && rank->binding.ops[i - 1].pairing == PAIRING_AFTER_NEXT)
        return; /* enqueued with the one before, which waits for it */
    if (rank->binding.ops[i].pairing == PAIRING_AFTER_NEXT)
        enqueue_alone(rank, i + 1);
    enqueue_alone(rank, i);
}
