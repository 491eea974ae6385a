/* shards_units.c - the units of a chunk that an exchange, a copy or an update concerns.
 *
 * Example: a chunk of layers 4 to 7 whose gradients are reduced in two operations, with layers 6 and 4. The first reduces layers
 * 6 and 7, the second 4 and 5: an operation covers the layers from its own to that of the next operation of its kind. The
 * embedding goes with the first layer and the head with the last. */
#include "runtime/update/update_internal.h"

static bool gathers_weights(const struct rank *rank)
{
    const struct layout *layout = rank->layout;
    return layout->zero == 3 && (layout_group_size(layout, GROUP_DP) > 1 || layout_group_size(layout, GROUP_EXPERT_DP) > 1);
}

/* The smallest first layer above `layer` of operations like this one, or the chunk's end. */
static int run_end(const struct rank *rank, const struct chunk_state *chunk, const struct op *op)
{
    const struct script *script = &rank->program->scripts[rank->stage];
    int end = chunk->range.first + chunk->range.count;
    for (uint32_t i = 0; i < script->n_ops; i++) {
        const struct op *other = &rank->program->ops[script->first_op + i];
        if (other->kind == OP_COLLECTIVE && other->pass == N_PASSES && other->chunk == op->chunk &&
            other->collective == op->collective && other->role == op->role && other->layer > op->layer && other->layer < end)
            end = other->layer;
    }
    return end;
}

struct shard_run shard_run_of(const struct rank *rank, const struct chunk_state *chunk, const struct op *op)
{
    int first = chunk->range.first, end = first + chunk->range.count;
    if (gathers_weights(rank)) /* layers one by one, and the ends together */
        return op->layer < 0 ? (struct shard_run){.embedding = true, .head = true}
                             : (struct shard_run){.first = op->layer, .end = op->layer + 1, .layers = true};
    if (op->layer < 0)
        return (struct shard_run){first, end, true, true, true};
    struct shard_run run = {.first = op->layer, .end = run_end(rank, chunk, op), .layers = true};
    run.embedding = run.first == first;
    run.head = run.end == end;
    return run;
}

/* Of copies to the host and back and its updates: single layers, the embedding with the first and the head with the last; where
 * weights are gathered both ends are a unit of their own, whose gradients are complete with the first layer's. */
static struct shard_run copied_run(const struct rank *rank, const struct chunk_state *chunk, const struct op *op)
{
    int first = chunk->range.first, last = first + chunk->range.count - 1;
    bool in_pass = op->micro_batch >= 0;
    if (gathers_weights(rank) && in_pass && op->role == COPIED_WEIGHTS)
        return shard_run_of(rank, chunk, op);
    if (op->layer < 0)
        return (struct shard_run){.embedding = true, .head = true};
    bool ends_first = gathers_weights(rank) && in_pass;
    return (struct shard_run){.first = op->layer,
                              .end = op->layer + 1,
                              .embedding = op->layer == first,
                              .head = op->layer == (ends_first ? first : last),
                              .layers = true};
}

bool shard_run_has(const struct chunk_state *chunk, const struct shard_run *run, int unit)
{
    const struct unit *u = &chunk->units.items[unit];
    if (u->layer >= 0 && !u->is_head)
        return run->layers && u->layer >= run->first && u->layer < run->end;
    bool before = unit < chunk->units.first_layer && chunk->embedding;
    return before ? run->embedding : run->head;
}

void shards_visit(struct rank *rank, const struct op *op, visit_unit *visit, struct device_stream *stream)
{
    struct chunk_state *chunk = &rank->chunks[op->chunk];
    struct shard_run run = copied_run(rank, chunk, op);
    bool returns = op->stream == STREAM_UP && op->role == COPIED_GRADIENTS;
    for (int i = 0; i < chunk->units.n_items && rank->status == STATUS_OK; i++)
        if (shard_run_has(chunk, &run, i) || (returns && run.head && chunk_shares_table(rank, chunk, i)))
            visit(rank, op, &chunk->states[i], stream);
}
