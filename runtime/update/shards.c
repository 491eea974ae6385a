/* shards.c - weights and gradients between ranks that hold copies of them.
 *
 * An operation of the data-parallel stream concerns a run of layers of a chunk (with the embedding before the first and the head
 * after the last); here it becomes one exchange per unit, started together. Which layers: from the operation's first layer to
 * that of the next operation of its kind in the same chunk. */
#include "runtime/update/update_muon.h"

/* Weights are gathered for each pass. */
static bool is_sharded(const struct rank *rank)
{
    const struct layout *layout = rank->layout;
    return layout->zero == 3 && (layout_group_size(layout, GROUP_DP) > 1 || layout_group_size(layout, GROUP_EXPERT_DP) > 1);
}

/* The group that holds copies of a unit. */
static enum group_kind group_of(const struct unit_state *u)
{
    return u->unit->is_experts ? GROUP_EXPERT_DP : GROUP_DP;
}

/* --- which units */

struct run {
    int first, end; /* layers, of the whole model */
    bool embedding, head, layers;
};

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

static struct run run_of(const struct rank *rank, const struct chunk_state *chunk, const struct op *op)
{
    int first = chunk->range.first, end = first + chunk->range.count;
    if (is_sharded(rank)) /* layers one by one, and the ends together */
        return op->layer < 0 ? (struct run){.embedding = true, .head = true}
                             : (struct run){.first = op->layer, .end = op->layer + 1, .layers = true};
    if (op->layer < 0)
        return (struct run){first, end, true, true, true};
    struct run run = {.first = op->layer, .end = run_end(rank, chunk, op), .layers = true};
    run.embedding = run.first == first;
    run.head = run.end == end;
    return run;
}

/* Of copies to the host and back and its updates: single layers, the embedding with the first and the head with the last; where
 * weights are gathered both ends are a unit of their own, whose gradients are complete with the first layer's. */
static struct run copied_run(const struct rank *rank, const struct chunk_state *chunk, const struct op *op)
{
    int first = chunk->range.first, last = first + chunk->range.count - 1;
    bool in_pass = op->micro_batch >= 0;
    if (is_sharded(rank) && in_pass && op->role == COPIED_WEIGHTS)
        return run_of(rank, chunk, op);
    if (op->layer < 0)
        return (struct run){.embedding = true, .head = true};
    bool ends_first = is_sharded(rank) && in_pass;
    return (struct run){.first = op->layer,
                        .end = op->layer + 1,
                        .embedding = op->layer == first,
                        .head = op->layer == (ends_first ? first : last),
                        .layers = true};
}

static bool run_has(const struct chunk_state *chunk, const struct run *run, int unit)
{
    const struct unit *u = &chunk->units.items[unit];
    if (u->layer >= 0 && !u->is_head)
        return run->layers && u->layer >= run->first && u->layer < run->end;
    bool before = unit < chunk->units.first_layer && chunk->embedding;
    return before ? run->embedding : run->head;
}

/* --- exchanges */

/* Where gradients come and go every micro-batch's part is added to what is there: here, or when the rest leaves. */
static void add_travelling(struct rank *rank, struct unit_state *u, const float *own, struct device_stream *stream)
{
    struct kernel_call add = {
        .kernel = KERNEL_ADD,
        .add = {.n = u->owned, .h = u->owned, .wide = true, .a = u->owned_gradients, .b = own, .y = u->owned_gradients}};
    rank_launch(rank, stream, &add);
    tensor_drop(rank, &u->gradients_tensor, stream);
    u->gradients = NULL;
}

static void reduce_unit(struct rank *rank, struct unit_state *u, struct device_stream *stream)
{
    float *own = rank->layout->zero ? u->gradients + u->first : u->gradients;
    struct exchange_call call = {.exchange = rank->layout->zero ? EXCHANGE_REDUCE_SCATTER : EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP32,
                                 .in = u->gradients,
                                 .out = own,
                                 .count = u->owned,
                                 .what = "gradients"};
    rank_exchange(rank, rank->groups[group_of(u)], stream, &call);
    if (unit_gradients_travel(rank, u) && !rank_gradients_leave(rank))
        add_travelling(rank, u, own, stream);
}

static void gather_unit(struct rank *rank, struct unit_state *u, struct device_stream *stream)
{
    struct tensor *arrived = u->host.fetched ? host_states_arrived(rank, u) : NULL;
    void *whole = u->weights;
    if (unit_weights_travel(rank, u)) {
        if (u->n_gathered == GATHERED_MAX) {
            diag_error(&rank->diags, PLACE_NONE, "weights of layer %d are gathered %d times before anything uses them",
                       u->unit->layer, GATHERED_MAX);
            rank->status = STATUS_FAILED;
            return;
        }
        struct tensor *tensor =
            tensor_new_travelling(rank, (size_t)u->unit->elements * device_element_bytes(rank->device), stream);
        u->gathered[u->n_gathered++] = tensor;
        whole = tensor->data;
    }
    struct exchange_call call = {.exchange = EXCHANGE_ALL_GATHER,
                                 .element = rank_element(rank),
                                 .in = arrived ? arrived->data : u->shard,
                                 .out = whole,
                                 .count = u->unit->slice,
                                 .what = "parameters"};
    rank_exchange(rank, rank->groups[group_of(u)], stream, &call);
    tensor_drop(rank, &arrived, stream);
}

/* Those who hold the same part of these weights: other replicas under hybrid sharding, DualPipe's other stage, which divides them
 * alike. */
static bool adds_own(const struct op *op)
{
    return op->role == GROUP_REPLICA || op->role == GROUP_MIRROR;
}

static void add_own(struct rank *rank, const struct op *op, struct unit_state *u, struct device_stream *stream)
{
    float *own = rank_gradients_leave(rank) ? u->gradients + u->first : u->owned_gradients; /* of this micro-batch, of all */
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP32,
                                 .in = own,
                                 .out = own,
                                 .count = u->owned,
                                 .what = op->role == GROUP_MIRROR ? "gradients of mirrored weights" : "gradients of shards"};
    rank_exchange(rank, rank->groups[op->role], stream, &call);
}

static void exchange_run(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    struct chunk_state *chunk = &rank->chunks[op->chunk];
    struct run run = run_of(rank, chunk, op);
    bool gathers = op->collective == COLLECTIVE_ALL_GATHER;
    for (int i = 0; i < chunk->units.n_items && rank->status == STATUS_OK; i++) {
        struct unit_state *u = &chunk->states[i];
        if (!run_has(chunk, &run, i) || (!adds_own(op) && op->role != group_of(u)))
            continue;
        if (adds_own(op))
            add_own(rank, op, u, stream);
        else if (gathers)
            gather_unit(rank, u, stream);
        else
            reduce_unit(rank, u, stream);
    }
}

/* The first and the last stage hold the same table and divide it alike, so owned parts match. */
static void exchange_embedding(struct rank *rank, struct device_stream *stream)
{
    struct unit_state *u = rank_table(rank);
    if (!u)
        return;
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP32,
                                 .in = u->owned_gradients,
                                 .out = u->owned_gradients,
                                 .count = u->owned,
                                 .what = "gradients of the tied embedding"};
    rank_exchange(rank, rank->groups[GROUP_EMBEDDING], stream, &call);
}

void shards_visit(struct rank *rank, const struct op *op, visit_unit *visit, struct device_stream *stream)
{
    struct chunk_state *chunk = &rank->chunks[op->chunk];
    struct run run = copied_run(rank, chunk, op);
    bool returns = op->stream == STREAM_UP && op->role == COPIED_GRADIENTS;
    for (int i = 0; i < chunk->units.n_items && rank->status == STATUS_OK; i++)
        if (run_has(chunk, &run, i) || (returns && run.head && chunk_shares_table(rank, chunk, i)))
            visit(rank, op, &chunk->states[i], stream);
}

void shards_exchange(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    if (op->class == CLASS_OPTIMIZER && op->collective == COLLECTIVE_ALL_TO_ALL)
        muon_exchange(rank, op, stream);
    else if (op->class == CLASS_OPTIMIZER)
        update_exchange_norm(rank, op, stream);
    else if (op->role == GROUP_EMBEDDING)
        exchange_embedding(rank, stream);
    else
        exchange_run(rank, op, stream);
}
