/* constants.c - tables in device memory that are the same in every step: orders of rows, slopes, constant decays. */
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "runtime/base/rank.h"

void rank_upload(struct rank *rank, void *to, const void *from, size_t bytes)
{
    struct device_stream *stream = rank->streams[STREAM_COMPUTE];
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->copy_in(stream, to, from, bytes, &rank->diags);
    if (rank->status == STATUS_OK)
        rank->status = rank->device->api->stream_synchronise(stream, &rank->diags);
}

/* The place of a row of whole sequences among the concatenated rows of `n` ranks. Chunk j of 2 n is the first half of rank j's
 * rows, or the second half of rank 2 n - 1 - j's. */
static int32_t row_of_rank(const struct shape *s, int n, int64_t row)
{
    int64_t whole = s->seq_len * n, half = s->seq_len / 2, sequence = row / whole, chunk = row % whole / half;
    bool second = chunk >= n;
    int64_t owner = second ? 2 * n - 1 - chunk : chunk;
    return (int32_t)(((owner * s->micro_batch + sequence) * 2 + second) * half + row % half);
}

static size_t order_bytes(const struct shape *s, int n)
{
    return (size_t)(s->tokens * n) * sizeof(int32_t);
}

/* NULL among one. */
static int32_t *open_order(struct rank *rank, const struct shape *s, int n)
{
    if (n == 1)
        return NULL;
    int32_t *order = memory_new((size_t)(s->tokens * n), sizeof *order);
    for (int64_t row = 0; row < s->tokens * n; row++)
        order[row] = row_of_rank(s, n, row);
    int32_t *there = rank_memory(rank, order_bytes(s, n));
    rank_upload(rank, there, order, order_bytes(s, n));
    free(order);
    return there;
}

/* Press and others (arXiv:2108.12409): a geometric series from 2^(-8/n) for n a power of two; for other n that of the next lower
 * power of two, then every other one of the next higher. */
static float alibi_slope(int heads, int head)
{
    int power = 1;
    while (2 * power <= heads)
        power *= 2;
    if (head < power)
        return exp2f(-8.0f * (float)(head + 1) / (float)power);
    return exp2f(-4.0f * (float)(2 * (head - power) + 1) / (float)power);
}

static void open_slopes(struct rank *rank)
{
    const struct shape *s = &rank->core;
    if (!s->alibi)
        return;
    int parts = layout_cp_heads(rank->layout), part = rank->shape.cp_rank % parts;
    float *slopes = memory_new((size_t)s->heads, sizeof *slopes);
    for (int i = 0; i < s->heads; i++)
        slopes[i] = alibi_slope(s->model_heads, (s->tp_rank * parts + part) * s->heads + i);
    rank->slopes = rank_memory(rank, (size_t)s->heads * sizeof *slopes);
    rank_upload(rank, rank->slopes, slopes, (size_t)s->heads * sizeof *slopes);
    free(slopes);
}

static void open_decays(struct rank *rank)
{
    const struct mixer_shape *s = &rank->shape.mixer;
    if (!s->form || s->form->decay != DECAY_CONSTANT)
        return;
    float *decays = memory_new((size_t)s->heads, sizeof *decays);
    for (int i = 0; i < s->heads; i++)
        decays[i] = mixer_constant_decay(s->heads * rank->shape.tp, rank->shape.tp_rank * s->heads + i);
    rank->constant_decays = rank_memory(rank, (size_t)s->heads * sizeof *decays);
    rank_upload(rank, rank->constant_decays, decays, (size_t)s->heads * sizeof *decays);
    free(decays);
}

static bool adds_norm_over_replicas(const struct rank *rank)
{
    const struct script *script = &rank->program->scripts[rank->stage];
    for (uint32_t i = 0; i < script->n_ops; i++) {
        const struct op *op = &rank->program->ops[script->first_op + i];
        if (op->kind == OP_COLLECTIVE && op->class == CLASS_OPTIMIZER && op->role == GROUP_DP &&
            op->collective == COLLECTIVE_ALL_REDUCE)
            return true;
    }
    return false;
}

void rank_open_constants(struct rank *rank)
{
    rank->order = open_order(rank, &rank->core, rank->core.cp);
    rank->heads_order = open_order(rank, &rank->shape, layout_cp_heads(rank->layout));
    open_slopes(rank);
    open_decays(rank);
    rank->norm_over_replicas = adds_norm_over_replicas(rank);
}

void rank_close_constants(struct rank *rank)
{
    const struct device_api *api = rank->device->api;
    api->memory_free(rank->device, rank->order, order_bytes(&rank->core, rank->core.cp));
    api->memory_free(rank->device, rank->heads_order, order_bytes(&rank->shape, layout_cp_heads(rank->layout)));
    api->memory_free(rank->device, rank->slopes, (size_t)rank->core.heads * sizeof *rank->slopes);
    api->memory_free(rank->device, rank->constant_decays, (size_t)rank->shape.mixer.heads * sizeof *rank->constant_decays);
}
