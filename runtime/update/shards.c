/* shards.c - exchanges weights and gradients among the ranks that hold copies of them.
 *
 * An operation of the data-parallel stream concerns a run of layers of a chunk (with the embedding before the first and the head
 * after the last). Here it becomes one exchange per unit, all started together. shards_units.c decides which units. */
#include "runtime/update/update_internal.h"
#include "runtime/update/update_muon.h"

/* The group that holds copies of a unit. */
static enum group_kind group_of(const struct unit_state *u)
{
    return u->unit->is_experts ? GROUP_EXPERT_DP : GROUP_DP;
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
    struct shard_run run = shard_run_of(rank, chunk, op);
    bool gathers = op->collective == COLLECTIVE_ALL_GATHER;
    for (int i = 0; i < chunk->units.n_items && rank->status == STATUS_OK; i++) {
        struct unit_state *u = &chunk->states[i];
        if (!shard_run_has(chunk, &run, i) || (!adds_own(op) && op->role != group_of(u)))
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
