/* measured.c - turns the times of events on streams into a timeline. */
#include "runtime/run/measured.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/units.h"

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

/* --- one rank's part of an exchange
 *
 * Its stream notices a little after the operation before it has ended that it may begin, and the stream that waits for it a
 * little after it has ended: a program knows only operations, so both belong to the exchange. */

static uint32_t before_on_stream(const struct op *ops, uint32_t i)
{
    for (uint32_t before = i; before > 0; before--)
        if (ops[before - 1].stream == ops[i].stream)
            return before - 1;
    return NO_OP;
}

/* The latest of the ends of what operation i waits for, dependencies and the one before it on its stream; its own mark where that
 * is nothing. */
static nanos behind(const struct op *ops, const nanos *ends, const struct rank_timing *timing, uint32_t i)
{
    uint32_t before = before_on_stream(ops, i);
    nanos ready = before == NO_OP ? INT64_MIN : ends[before];
    for (int d = 0; d < OP_DEPS; d++)
        if (ops[i].deps[d] != NO_OP)
            ready = nanos_later(ready, ends[ops[i].deps[d]]);
    return ready == INT64_MIN ? timing->start[i] : nanos_earlier(ready, timing->start[i]);
}

static nanos ready_at(const struct op *ops, const struct rank_timing *timing, uint32_t i)
{
    return behind(ops, timing->end, timing, i);
}

static bool is_received(const struct op *op)
{
    return op->kind == OP_COLLECTIVE || op->kind == OP_RECV;
}

/* Operation i begins after waiting for `awaited`: if that is an exchange, it ends then. at[] is 0 while no operation has waited.
 */
static void goes_on(const struct op *ops, const struct rank_timing *timing, uint32_t i, uint32_t awaited, nanos *at)
{
    nanos ready = ready_at(ops, timing, i), on = is_received(&ops[i]) ? ready : timing->start[i];
    if (awaited == NO_OP || !is_received(&ops[awaited]) || timing->end[awaited] < ready)
        return;
    at[awaited] = at[awaited] ? nanos_earlier(at[awaited], on) : on;
}

/* When operations are over: exchanges when the first of what waited for them, and for nothing longer, goes on. */
static void find_ends(const struct op *ops, uint32_t n, const struct rank_timing *timing, nanos *at)
{
    for (uint32_t i = 0; i < n; i++) {
        goes_on(ops, timing, i, before_on_stream(ops, i), at);
        for (int d = 0; d < OP_DEPS; d++)
            goes_on(ops, timing, i, ops[i].deps[d], at);
    }
    for (uint32_t i = 0; i < n; i++)
        at[i] = nanos_later(at[i], timing->end[i]);
}

/* --- exchanges of several ranks */

static nanos collective_start(const struct program *program, const struct rank_timing *timings, int rank, uint32_t op, uint32_t k)
{
    uint32_t n;
    const struct op *ops = ops_of(program, rank, &n);
    int group = program->ranks[rank].groups[ops[op].role];
    nanos start = ready_at(ops, &timings[rank], op);
    for (int m = 0; group >= 0 && m < program->groups[group].n_members; m++) {
        int other = program->members[program->groups[group].first_member + m];
        uint32_t same = same_collective(program, rank, op, k, other);
        if (same != NO_OP)
            start = nanos_later(start, ready_at(ops_of(program, other, &n), &timings[other], same));
    }
    return start;
}

static nanos receive_start(const struct program *program, const struct rank_timing *timings, int rank, uint32_t op)
{
    uint32_t n;
    const struct op *own = &ops_of(program, rank, &n)[op];
    nanos start = ready_at(ops_of(program, rank, &n), &timings[rank], op);
    int from = program->ranks[rank].peers[own->role];
    if (from < 0)
        return start;
    const struct op *ops = ops_of(program, from, &n);
    for (uint32_t i = 0; i < n; i++)
        if (ops[i].kind == OP_SEND && ops[i].tag == own->tag && ops[i].micro_batch == own->micro_batch)
            start = nanos_later(start, timings[from].start[i]);
    return start;
}

static void record_rank(const struct program *program, const struct rank_timing *timings, int rank, struct timeline *timeline)
{
    uint32_t n, seen[N_GROUP_KINDS] = {0};
    const struct op *ops = ops_of(program, rank, &n);
    nanos *ends = memory_new(n, sizeof *ends);
    find_ends(ops, n, &timings[rank], ends);
    for (uint32_t i = 0; i < n; i++) {
        struct span span = {.rank = rank, .op = i, .start = timings[rank].start[i], .end = ends[i]};
        if (ops[i].kind == OP_COMPUTE)
            span.start = behind(ops, ends, &timings[rank], i);
        if (ops[i].kind == OP_COLLECTIVE)
            span.start = collective_start(program, timings, rank, i, seen[ops[i].role]++);
        if (ops[i].kind == OP_RECV)
            span.start = receive_start(program, timings, rank, i);
        span.start = nanos_earlier(span.start, span.end); /* the others' marks are a little late */
        timeline_record(timeline, span);
    }
    free(ends);
}

void measured_timeline(const struct program *program, const struct rank_timing *timings, struct timeline *timeline)
{
    for (int rank = 0; rank < program->n_ranks; rank++)
        record_rank(program, timings, rank, timeline);
    timeline_close(timeline);
}
