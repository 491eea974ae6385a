/*
 * validate_shared.c - the prediction for ranks, and streams of a rank, that share the cores of one machine.
 *
 * A simulator's ranks have a device each, whose streams run beside each other. Here at most `cores` operations are under way at
 * one time, and the others wait for a core: operations are much shorter than what a scheduler gives a thread at a time, so one
 * that has begun is taken to run to its end at full speed, and cores go to operations in the order in which they become ready.
 * While some ranks wait for others (the ends of a pipeline) those that work have the cores to themselves.
 *
 * Every member of a collective, and both sides of a message, need a core for the time in which bytes move; it has ended when the
 * last of them has. Before that nobody needs a core for what an exchange takes whatever it carries: threads are being woken. An
 * operation's times follow from those that became ready before it, so one pass in the order of readiness gives them all.
 */
#include <stdlib.h>

#include "cli/validating.h"
#include "model/base/memory.h"
#include "sim/network_analytic.h"
#include "sim/step_tables.h"

static const nanos NEVER = INT64_MAX;

struct queue {
    uint32_t head[N_STREAMS]; /* next operation, NO_OP after the last */
    nanos free_at[N_STREAMS];
    nanos *start, *end; /* [n_ops]; end NEVER: has not ended */
};

struct sharing {
    const struct program *program;
    struct step_tables tables;
    struct queue *queues; /* [n_ranks] */
    nanos *cores;         /* [n_cores] free from then on */
    nanos waking;         /* of an exchange: nobody works */
    int n_cores;
};

static const struct step_script *script_of(const struct sharing *s, int rank)
{
    return &s->tables.scripts[s->program->ranks[rank].script];
}

static nanos later(nanos a, nanos b)
{
    return a > b ? a : b;
}

/* When the head of a stream could begin as far as its own rank is concerned; NEVER: not known yet. */
static nanos own_ready(const struct sharing *s, int rank, int stream)
{
    const struct queue *q = &s->queues[rank];
    if (q->head[stream] == NO_OP)
        return NEVER;
    const struct step_op *op = &script_of(s, rank)->ops[q->head[stream]];
    nanos ready = q->free_at[stream];
    for (int d = 0; d < OP_DEPS && op->deps[d] != NO_OP; d++)
        ready = later(ready, q->end[op->deps[d]]);
    return ready;
}

static const struct rank_group *group_of(const struct sharing *s, int rank, const struct step_op *op)
{
    return &s->program->groups[s->program->ranks[rank].groups[op->role]];
}

/* The operation of another member that is the same collective. */
static uint32_t same_collective(const struct sharing *s, int member, const struct step_op *op)
{
    return script_of(s, member)->collectives[op->role][op->ordinal];
}

/* A collective begins when its last member is ready: its first member answers for all. */
static nanos collective_ready(const struct sharing *s, int rank, const struct step_op *op, nanos ready)
{
    const struct rank_group *group = group_of(s, rank, op);
    const int32_t *members = &s->program->members[group->first_member];
    if (members[0] != rank)
        return NEVER;
    for (int i = 1; i < group->n_members; i++) {
        uint32_t same = same_collective(s, members[i], op);
        int stream = script_of(s, members[i])->ops[same].stream;
        nanos own = s->queues[members[i]].head[stream] == same ? own_ready(s, members[i], stream) : NEVER;
        ready = later(ready, own);
    }
    return ready;
}

/* A receive needs the message on its way. */
static nanos receive_ready(const struct sharing *s, int rank, uint32_t i, const struct step_op *op, nanos ready)
{
    const struct neighbourhood *near = &s->tables.neighbourhoods[s->tables.rank_neighbourhood[rank]];
    const struct queue *from = &s->queues[s->program->ranks[rank].peers[op->role]];
    uint32_t send = near->match[i];
    return from->end[send] == NEVER ? NEVER : later(ready, from->start[send]);
}

static nanos ready_at(const struct sharing *s, int rank, int stream)
{
    nanos ready = own_ready(s, rank, stream);
    if (ready == NEVER)
        return NEVER;
    uint32_t i = s->queues[rank].head[stream];
    const struct step_op *op = &script_of(s, rank)->ops[i];
    if (op->kind == OP_COLLECTIVE)
        return collective_ready(s, rank, op, ready);
    return op->kind == OP_RECV ? receive_ready(s, rank, i, op, ready) : ready;
}

/* --- cores */

/* The end of work that is ready and takes `duration` on the core that is free first. */
static nanos occupy(struct sharing *s, nanos ready, nanos duration, nanos *start)
{
    int first = 0;
    for (int c = 1; c < s->n_cores; c++)
        if (s->cores[c] < s->cores[first])
            first = c;
    *start = duration > 0 ? later(ready, s->cores[first]) : ready;
    if (duration > 0)
        s->cores[first] = *start + duration;
    return *start + duration;
}

static void finish(struct sharing *s, int rank, uint32_t i, nanos start, nanos end)
{
    struct queue *q = &s->queues[rank];
    const struct step_op *op = &script_of(s, rank)->ops[i];
    q->start[i] = start;
    q->end[i] = q->free_at[op->stream] = end;
    q->head[op->stream] = op->next;
}

/* Of an exchange that takes `duration`; what is left of it needs a core. */
static nanos woken(const struct sharing *s, nanos ready, nanos *duration)
{
    nanos waking = s->waking < *duration ? s->waking : *duration;
    *duration -= waking;
    return ready + waking;
}

static void execute_collective(struct sharing *s, int rank, const struct step_op *op, nanos ready)
{
    const struct rank_group *group = group_of(s, rank, op);
    const int32_t *members = &s->program->members[group->first_member];
    nanos work = op->duration, awake = woken(s, ready, &work), end = ready, start;
    for (int i = 0; i < group->n_members; i++)
        end = later(end, occupy(s, awake, work, &start));
    for (int i = 0; i < group->n_members; i++)
        finish(s, members[i], same_collective(s, members[i], op), ready, end);
}

static void execute(struct sharing *s, int rank, int stream, nanos ready)
{
    uint32_t i = s->queues[rank].head[stream];
    const struct step_op *op = &script_of(s, rank)->ops[i];
    nanos start, work = op->duration;
    if (op->kind == OP_COLLECTIVE) {
        execute_collective(s, rank, op, ready);
        return;
    }
    bool message = op->kind == OP_SEND || op->kind == OP_RECV;
    nanos begin = message ? woken(s, ready, &work) : ready, end = occupy(s, begin, work, &start);
    finish(s, rank, i, message ? ready : start, end);
}

/* One operation, or one collective; false when there is none left. */
static bool advance(struct sharing *s)
{
    int rank = -1, stream = 0;
    nanos first = NEVER;
    for (int r = 0; r < s->program->n_ranks; r++)
        for (int k = 0; k < N_STREAMS; k++) {
            nanos ready = ready_at(s, r, k);
            if (ready >= first)
                continue;
            first = ready;
            rank = r;
            stream = k;
        }
    if (rank >= 0)
        execute(s, rank, stream, first);
    return rank >= 0;
}

/* --- all of it */

static void queues_open(struct sharing *s)
{
    s->queues = memory_new((size_t)s->program->n_ranks, sizeof *s->queues);
    for (int r = 0; r < s->program->n_ranks; r++) {
        const struct step_script *script = script_of(s, r);
        struct queue *q = &s->queues[r];
        q->start = memory_new(script->n_ops, sizeof *q->start);
        q->end = memory_new(script->n_ops, sizeof *q->end);
        for (uint32_t i = 0; i < script->n_ops; i++)
            q->end[i] = NEVER;
        for (int k = 0; k < N_STREAMS; k++)
            q->head[k] = script->first[k];
    }
}

static void queues_close(struct sharing *s)
{
    for (int r = 0; r < s->program->n_ranks; r++) {
        free(s->queues[r].start);
        free(s->queues[r].end);
    }
    free(s->queues);
    free(s->cores);
    step_tables_free(&s->tables);
}

static void record(const struct sharing *s, struct validation *v)
{
    nanos last = 0;
    for (int r = 0; r < s->program->n_ranks; r++)
        for (uint32_t i = 0; i < script_of(s, r)->n_ops; i++) {
            nanos start = s->queues[r].start[i], end = s->queues[r].end[i];
            timeline_record(&v->predicted, (struct span){.rank = r, .op = i, .start = start, .end = end});
            last = later(last, end);
        }
    timeline_close(&v->predicted);
    v->predicted_s = (double)last * 1e-9;
}

enum status validate_predict_shared(struct validation *v, int n_cores, struct diags *diags)
{
    struct machine machine = machine_of(&v->setup->layout, &v->setup->setting);
    struct network network = network_analytic(&machine);
    struct step_costs costs;
    struct sharing s = {
        .program = &v->program, .n_cores = n_cores, .waking = nanos_from_seconds(machine.cluster->gpu.nccl_base_s)};
    step_costs_create(&v->program, &machine, &network, &costs);
    enum status status = step_tables_create(&v->program, costs.ops, &s.tables, diags);
    if (status == STATUS_OK) {
        s.cores = memory_new((size_t)n_cores, sizeof *s.cores);
        queues_open(&s);
        while (advance(&s))
            ;
        record(&s, v);
        queues_close(&s);
    }
    step_costs_free(&costs);
    return status;
}
