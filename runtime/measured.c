#include "runtime/measured.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

static const struct op *ops_of(const struct program *program, int rank, uint32_t *n)
{
    const struct script *script = &program->scripts[program->ranks[rank].script];
    *n = script->n_ops;
    return &program->ops[script->first_op];
}

/* The k-th operation over groups of a kind; NO_OP: there are fewer. */
static uint32_t nth_collective(const struct op *ops, uint32_t n, int kind, uint32_t k)
{
    for (uint32_t i = 0; i < n; i++)
        if (ops[i].kind == OP_COLLECTIVE && ops[i].role == kind && k-- == 0)
            return i;
    return NO_OP;
}

/* Members with the same script have the same operation at the same place, which is nearly every case. */
static uint32_t same_collective(const struct program *program, int rank, uint32_t op, uint32_t k, int other)
{
    uint32_t n;
    if (program->ranks[rank].script == program->ranks[other].script)
        return op;
    const struct op *ops = ops_of(program, other, &n);
    return nth_collective(ops, n, ops_of(program, rank, &n)[op].role, k);
}

static nanos collective_start(const struct program *program, const struct rank_timing *timings, int rank, uint32_t op, uint32_t k)
{
    uint32_t n;
    const struct op *ops = ops_of(program, rank, &n);
    int group = program->ranks[rank].groups[ops[op].role];
    nanos start = timings[rank].start[op];
    for (int m = 0; group >= 0 && m < program->groups[group].n_members; m++) {
        int other = program->members[program->groups[group].first_member + m];
        uint32_t same = same_collective(program, rank, op, k, other);
        if (same != NO_OP && timings[other].start[same] > start)
            start = timings[other].start[same];
    }
    return start;
}

static nanos receive_start(const struct program *program, const struct rank_timing *timings, int rank, const struct op *op,
                           nanos start)
{
    uint32_t n;
    int from = program->ranks[rank].peers[op->role];
    if (from < 0)
        return start;
    const struct op *ops = ops_of(program, from, &n);
    for (uint32_t i = 0; i < n; i++)
        if (ops[i].kind == OP_SEND && ops[i].tag == op->tag && ops[i].micro_batch == op->micro_batch &&
            timings[from].start[i] > start)
            start = timings[from].start[i];
    return start;
}

static void record_rank(const struct program *program, const struct rank_timing *timings, int rank, struct timeline *timeline)
{
    uint32_t n, seen[N_GROUP_KINDS] = {0};
    const struct op *ops = ops_of(program, rank, &n);
    for (uint32_t i = 0; i < n; i++) {
        struct span span = {.rank = rank, .op = i, .start = timings[rank].start[i], .end = timings[rank].end[i]};
        if (ops[i].kind == OP_COLLECTIVE)
            span.start = collective_start(program, timings, rank, i, seen[ops[i].role]++);
        if (ops[i].kind == OP_RECV)
            span.start = receive_start(program, timings, rank, &ops[i], span.start);
        span.start = span.start < span.end ? span.start : span.end; /* the others' marks are a little late */
        timeline_record(timeline, span);
    }
}

void measured_timeline(const struct program *program, const struct rank_timing *timings, struct timeline *timeline)
{
    for (int rank = 0; rank < program->n_ranks; rank++)
        record_rank(program, timings, rank, timeline);
    timeline_close(timeline);
}
