/* shards.c - weights and gradients between data-parallel replicas, and the end of the step.
 *
 * An operation of the data-parallel stream concerns a run of layers of a chunk (with the embedding before the first and the head
 * after the last); here it becomes one exchange per unit, started together. Which layers: from the operation's first layer to
 * that of the next operation of its kind in the same chunk. */
#include "runtime/rank.h"

static bool is_sharded(const struct rank *rank)
{
    return rank->layout->zero == 3;
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
            other->collective == op->collective && other->layer > op->layer && other->layer < end)
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

static bool run_has(const struct chunk_state *chunk, const struct run *run, int unit)
{
    const struct unit *u = &chunk->units.items[unit];
    if (u->layer >= 0)
        return run->layers && u->layer >= run->first && u->layer < run->end;
    bool before = unit < chunk->units.first_layer && chunk->embedding;
    return before ? run->embedding : run->head;
}

/* --- exchanges */

static void reduce_unit(struct rank *rank, struct unit_state *u, struct device_stream *stream)
{
    struct exchange_call call = {.exchange = rank->layout->zero ? EXCHANGE_REDUCE_SCATTER : EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP32,
                                 .in = u->gradients,
                                 .out = rank->layout->zero ? u->gradients + u->first : u->gradients,
                                 .count = u->owned,
                                 .what = "gradients"};
    rank_exchange(rank, rank->groups[GROUP_DP], stream, &call);
}

/* ZeRO-3: every micro-batch's part is added to what is there. */
static void reduce_travelling(struct rank *rank, struct unit_state *u, struct device_stream *stream)
{
    float *own = u->gradients + u->first;
    struct exchange_call call = {.exchange = EXCHANGE_REDUCE_SCATTER,
                                 .element = ELEMENT_FP32,
                                 .in = u->gradients,
                                 .out = own,
                                 .count = u->owned,
                                 .what = "gradients"};
    rank_exchange(rank, rank->groups[GROUP_DP], stream, &call);
    struct kernel_call add = {
        .kernel = KERNEL_ADD,
        .add = {.n = u->owned, .h = u->owned, .wide = true, .a = u->owned_gradients, .b = own, .y = u->owned_gradients}};
    rank_launch(rank, stream, &add);
    tensor_drop(rank, &u->gradients_tensor, stream);
    u->gradients = NULL;
}

static void gather_unit(struct rank *rank, struct unit_state *u, struct device_stream *stream)
{
    void *whole = u->weights;
    if (is_sharded(rank)) {
        if (u->n_gathered == GATHERED_MAX)
            return; /* no program fetches so far ahead */
        struct tensor *tensor =
            tensor_new_travelling(rank, (size_t)u->unit->elements * device_element_bytes(rank->device), stream);
        u->gathered[u->n_gathered++] = tensor;
        whole = tensor->data;
    }
    struct exchange_call call = {.exchange = EXCHANGE_ALL_GATHER,
                                 .element = rank_element(rank),
                                 .in = u->shard,
                                 .out = whole,
                                 .count = u->unit->slice,
                                 .what = "parameters"};
    rank_exchange(rank, rank->groups[GROUP_DP], stream, &call);
}

static void exchange_run(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    struct chunk_state *chunk = &rank->chunks[op->chunk];
    struct run run = run_of(rank, chunk, op);
    bool gathers = op->collective == COLLECTIVE_ALL_GATHER;
    for (int i = 0; i < chunk->units.n_items && rank->status == STATUS_OK; i++) {
        struct unit_state *u = &chunk->states[i];
        if (!run_has(chunk, &run, i))
            continue;
        if (gathers)
            gather_unit(rank, u, stream);
        else if (is_sharded(rank))
            reduce_travelling(rank, u, stream);
        else
            reduce_unit(rank, u, stream);
    }
}

/* The first and the last stage hold the same table and divide it alike, so owned parts match. */
static void exchange_embedding(struct rank *rank, struct device_stream *stream)
{
    for (int c = 0; c < rank->layout->vpp; c++) {
        struct chunk_state *chunk = &rank->chunks[c];
        if (chunk->units.table < 0)
            continue;
        struct unit_state *u = &chunk->states[chunk->units.table];
        struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                     .element = ELEMENT_FP32,
                                     .in = u->owned_gradients,
                                     .out = u->owned_gradients,
                                     .count = u->owned,
                                     .what = "gradients of the tied embedding"};
        rank_exchange(rank, rank->groups[GROUP_EMBEDDING], stream, &call);
    }
}

/* --- gradients of which each tensor-parallel rank has a part
 *
 * All such parameters stand one after the other in a buffer by their place in the whole model, each rank puts in what it has
 * (owned elements), the rest is zero, and the sums come back. */

static void copy(struct rank *rank, struct device_stream *stream, float *to, const float *from, int64_t n)
{
    struct kernel_call call = {.kernel = KERNEL_COPY, .copy = {to, from, (size_t)n * sizeof(float)}};
    rank_launch(rank, stream, &call);
}

static int64_t copy_partial(struct rank *rank, struct device_stream *stream, const struct unit_state *u,
                            const struct parameter *p, int64_t at, bool back)
{
    int64_t rows = 0;
    for (int i = 0; i < p->n_pieces; i++) {
        int64_t first = p->offset + p->pieces[i].local * p->cols, n = p->pieces[i].count * p->cols;
        int64_t begin = first > u->first ? first : u->first;
        int64_t end = first + n < u->first + u->owned ? first + n : u->first + u->owned;
        if (end <= begin || !rank->partial)
            continue;
        float *whole = rank->partial + at + p->pieces[i].whole * p->cols + (begin - first);
        float *own = u->owned_gradients + (begin - u->first);
        copy(rank, stream, back ? own : whole, back ? whole : own, end - begin);
    }
    bool qkv = p->kind == PARAMETER_QKV || p->kind == PARAMETER_QKV_BIAS;
    rows = qkv ? (int64_t)(rank->shape.model_heads + 2 * rank->shape.model_kv_heads) * rank->shape.head_dim : p->rows;
    return rows * p->cols;
}

static int64_t copy_partials(struct rank *rank, struct device_stream *stream, bool back)
{
    int64_t at = 0;
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            const struct unit_state *u = &rank->chunks[c].states[i];
            for (int k = 0; k < u->unit->n_parameters; k++)
                if (u->unit->parameters[k].partial)
                    at += copy_partial(rank, stream, u, &u->unit->parameters[k], at, back);
        }
    return at;
}

static void add_up_partials(struct rank *rank, struct device_stream *stream)
{
    if (!rank->n_partial) { /* the first time only counts */
        rank->n_partial = copy_partials(rank, stream, false);
        if (rank->n_partial)
            rank->partial = rank_memory(rank, (size_t)rank->n_partial * sizeof(float));
    }
    if (!rank->partial || rank->status != STATUS_OK)
        return;
    struct kernel_call zero = {.kernel = KERNEL_ZERO, .zero = {rank->partial, (size_t)rank->n_partial * sizeof(float)}};
    rank_launch(rank, stream, &zero);
    copy_partials(rank, stream, false);
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP32,
                                 .in = rank->partial,
                                 .out = rank->partial,
                                 .count = rank->n_partial,
                                 .what = "gradients of norms and biases"};
    rank_exchange(rank, rank->tp_side, stream, &call);
    copy_partials(rank, stream, true);
}

/* --- the gradient norm */

/* What is owned of the elements [first, first + n) of a unit. */
static void square_sum_of(struct rank *rank, struct device_stream *stream, const struct unit_state *u, int64_t first, int64_t n)
{
    int64_t begin = first > u->first ? first : u->first;
    int64_t end = first + n < u->first + u->owned ? first + n : u->first + u->owned;
    if (end <= begin)
        return;
    struct kernel_call call = {.kernel = KERNEL_SQUARE_SUM,
                               .square_sum = {.n = end - begin, .x = u->owned_gradients + (begin - u->first), .sum = rank->norm}};
    rank_launch(rank, stream, &call);
}

static void square_sum(struct rank *rank, struct device_stream *stream, const struct unit_state *u)
{
    for (int k = 0; k < u->unit->n_parameters; k++) {
        const struct parameter *p = &u->unit->parameters[k];
        for (int i = 0; i < p->n_pieces; i++)
            if (p->pieces[i].counted)
                square_sum_of(rank, stream, u, p->offset + p->pieces[i].local * p->cols, p->pieces[i].count * p->cols);
    }
}

/* Once per step, before the norm is exchanged or, where it is not, before the update. */
static void finish_gradients(struct rank *rank, struct device_stream *stream)
{
    if (rank->gradients_finished)
        return;
    rank->gradients_finished = true;
    if (rank->shape.tp > 1)
        add_up_partials(rank, stream);
    struct kernel_call zero = {.kernel = KERNEL_ZERO, .zero = {rank->norm, sizeof *rank->norm}};
    rank_launch(rank, stream, &zero);
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++)
            square_sum(rank, stream, &rank->chunks[c].states[i]);
}

static void exchange_norm(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    finish_gradients(rank, stream);
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = ELEMENT_FP32,
                                 .in = rank->norm,
                                 .out = rank->norm,
                                 .count = 1,
                                 .what = "gradient norm"};
    rank_exchange(rank, rank->groups[op->role], stream, &call);
}

void shards_exchange(struct rank *rank, const struct op *op, struct device_stream *stream)
{
    if (op->class == CLASS_OPTIMIZER)
        exchange_norm(rank, op, stream);
    else if (op->role == GROUP_EMBEDDING)
        exchange_embedding(rank, stream);
    else
        exchange_run(rank, op, stream);
}

/* --- the update */

void shards_optimize(struct rank *rank, struct device_stream *stream)
{
    finish_gradients(rank, stream);
    for (int c = 0; c < rank->layout->vpp; c++)
        for (int i = 0; i < rank->chunks[c].units.n_items; i++) {
            struct unit_state *u = &rank->chunks[c].states[i];
            struct kernel_call call = {.kernel = KERNEL_ADAM,
                                       .adam = {.n = u->owned,
                                                .p = u->master,
                                                .m = u->m,
                                                .v = u->v,
                                                .g = u->owned_gradients,
                                                .compute = (void *)u->master == u->shard ? NULL : u->shard,
                                                .rate = rank->rate,
                                                .beta1 = 0.9f,
                                                .beta2 = 0.95f,
                                                .epsilon = 1e-8f,
                                                .gradient_scale = 1,
                                                .step = rank->step + 1}};
            rank_launch(rank, stream, &call);
        }
}
