/*
 * step_executor_internal.h - the state of an execution in progress. Private to step_executor*.c.
 *
 * Four modes, which the entry points of step_executor.h set before the first event and which do not change after it:
 *
 *     contended   the network's transfers share links, so their ends are events  program_execute with such a network,
 *                 of the network; implies an engine                              program_execute_folded
 *     fold        each rank stands for a class of ranks that behave alike        program_execute_folded
 *     paces       ranks compute at different speeds                              program_execute_prepared
 *     ends_only   the caller wants totals: only ends that an operation of the    EXECUTE_TOTALS without a network
 *                 program reads are kept, in `ends` instead of `times`
 *
 * Without an engine ranks advance by data flow: the end of an operation is known when it starts. With one, events run in the
 * order of time. The modes are fields and no tables of functions: a mode is one test on the hot path, in code that is inlined.
 *
 * Calls go one way: step_executor.c (operations in their order) -> step_executor_contended.c (transfers that share a network) ->
 * step_executor_actors.c (ranks before, after, and in collectives); step_executor_accounts.c sums up where the time went.
 */
#ifndef MSIM_SIM_STEP_STEP_EXECUTOR_INTERNAL_H
#define MSIM_SIM_STEP_STEP_EXECUTOR_INTERNAL_H

#include "sim/base/engine.h"
#include "sim/network/fold.h"
#include "sim/step/step_executor.h"

/* Classes of events of one time: completions of operations before those of collectives. */
enum {
    EVENT_OP,
    EVENT_COLLECTIVE,
    EVENT_NETWORK, /* transfers leave the links; the word is none, or the first of those that arrive */
    EVENT_SETTLED  /* all that begins at this time has begun */
};
#define NO_WORD UINT64_MAX

/* A transfer that a network with contention carries. */
struct contended_transfer {
    int32_t from, to;       /* of a message; a collective: -1, group */
    uint32_t send, receive; /* operations; send NO_OP: it has ended before. A collective: ordinal in `receive` */
    uint32_t next;          /* that arrives with it, or in the list of free ones */
};

/* In time order, the times of one operation on this many neighbouring ranks of a script are contiguous: two cache lines. */
enum { RANKS_TOGETHER = 8 };

/* One rank: two cache lines. */
struct actor {
    const struct step_op *ops;
    struct op_times times;
    const uint32_t *match;    /* of its sends the receive at the peer, of its receives the send */
    nanos free_at[N_STREAMS]; /* end of the last operation */
    uint32_t head[N_STREAMS]; /* next operation */
    nanos before;             /* of a rolling step: waiting for other stages before its first computation, not part of it */
    int32_t peers[N_PEERS];
    int32_t account;  /* of the breakdown */
    uint8_t runnable; /* bit s: stream s may be able to go on */
    uint8_t busy;     /* bit s: its head has started, or entered its collective, and has not ended */
    bool queued;      /* in the list of actors to advance */
};

/* The collective that members of a group have entered and not ended; there is at most one. */
struct collective_entry {
    nanos latest; /* entry so far */
    int32_t entered;
};

/* One block in lockstep, entering its next pass. */
struct block {
    nanos latest;
    int32_t entered;
};

struct executor {
    const struct program *program;
    const struct fold *fold;         /* NULL: every rank stands for itself */
    struct class_nanos *accounts;    /* by stage; of a fold, by rank */
    const struct lockstep *lockstep; /* no blocks: nobody */
    struct block *blocks;
    const struct step_tables *tables;
    const struct network *network;  /* NULL: durations are in the tables */
    const struct step_watch *watch; /* NULL: nobody looks */
    const struct step_paces *paces; /* NULL: ranks are alike */
    uint64_t n_advanced;
    struct engine *engine; /* NULL: data flow */
    struct actor *actors;
    struct collective_entry *entries;
    bool ends_only; /* nobody looks at the times: only ends are kept that something here reads */
    nanos *ends;    /* of all ranks, where that is so */
    bool contended;
    struct contended_transfer *transfers; /* pool */
    size_t n_transfers, transfer_capacity;
    uint32_t free_transfer; /* NO_OP none */
    bool settling;          /* an EVENT_SETTLED is pending */
    bool stopped;           /* the network cannot go on */
    nanos wake;             /* time of the last EVENT_NETWORK scheduled */
    uint64_t *sends;        /* begun at this time: rank << 32 | operation */
    size_t n_sends, send_capacity;
    int32_t *queue; /* actors to advance, last in first out: a pipeline's ranks follow one another while they are in cache */
    size_t n_queued;
    struct execution *out;
};

static inline struct class_nanos *actor_account(struct executor *x, const struct actor *actor)
{
    return &x->accounts[actor->account];
}

static inline void actor_wake(struct executor *x, int32_t rank, unsigned streams)
{
    struct actor *actor = &x->actors[rank];

    actor->runnable |= (uint8_t)streams;
    if (!actor->queued) {
        actor->queued = true;
        x->queue[x->n_queued++] = rank;
    }
}

static inline void op_end_set(struct actor *actor, uint32_t i, nanos end)
{
    if (actor->times.stride)
        op_time_at(actor->times, i)->end = end;
    else if (actor->ops[i].slot != NO_OP)
        actor->times.ends[actor->ops[i].slot] = end;
}

/* Where only ends are kept it follows from that. */
static inline void op_start_set(struct actor *actor, uint32_t i, nanos start)
{
    if (actor->times.stride)
        op_time_at(actor->times, i)->start = start;
}

/* A start that is needed before the end is there. */
static inline void op_know_start(struct actor *actor, uint32_t i, nanos start)
{
    if (actor->times.stride)
        op_time_at(actor->times, i)->start = start;
    else
        actor->times.ends[actor->ops[i].slot] = -start;
}

/* The start, of an operation that has not ended; 0: none is known. */
static inline nanos op_known_start(const struct actor *actor, uint32_t i)
{
    return actor->times.stride ? op_time_at(actor->times, i)->start : -actor->times.ends[actor->ops[i].slot];
}

/* The end of an operation. */
static inline void op_complete(struct executor *x, struct actor *actor, uint32_t i, nanos end)
{
    const struct step_op *op = &actor->ops[i];
    unsigned stream = 1u << op->stream;

    op_end_set(actor, i, end);
    actor->free_at[op->stream] = end;
    actor->head[op->stream] = op->next;
    actor->busy &= (uint8_t)~stream;
    actor->runnable |= (uint8_t)(stream | op->dependents);
    x->out->events++;
}
/* Tells the receiver of a send when the data began to flow; its receive may wait for just that. */
static inline void message_deliver(struct executor *x, int32_t rank, uint32_t i, nanos start)
{
    int32_t to = x->actors[rank].peers[x->actors[rank].ops[i].role];
    struct actor *receiver = &x->actors[to];
    uint32_t receive = x->actors[rank].match[i];
    unsigned stream = receiver->ops[receive].stream;

    op_know_start(receiver, receive, start);
    if (receiver->head[stream] == receive)
        actor_wake(x, to, 1u << stream);
}

/* --- step_executor_contended.c: with a network whose transfers share links */

/* All members have come, the last, this rank with its operation i, at `start`. */
void contended_collective_begin(struct executor *x, int32_t rank, uint32_t i, nanos start);
/* A message whose receiver is ready begins now, and both ends have it until it ends. One whose receiver comes later leaves its
 * sender after the time it takes alone: it lies in buffers then. Which it is shows when all that happens at this time has
 * happened, whatever the order. */
void contended_send_begin(struct executor *x, int32_t rank, uint32_t i, nanos start);
void contended_receive_begin(struct executor *x, int32_t rank, uint32_t i, nanos start);
/* The end of a message at one of its ends; what it took on the compute stream is known only now. */
void contended_message_end(struct executor *x, int32_t rank, uint32_t i, nanos end);
/* A pass of ranks in lockstep begins when the last of its block has come. */
void block_enter(struct executor *x, int32_t rank, uint32_t i, nanos ready);
void block_end(struct executor *x, int32_t block, uint32_t i, nanos end);
/* An event of EVENT_NETWORK or EVENT_SETTLED. */
void contended_event(struct executor *x, const struct event *event);
/* A network that only finds out by going on goes on to the next event first; false: it cannot. */
MUST_CHECK bool contended_go_on(struct executor *x);

/* --- step_executor_actors.c, step_executor_accounts.c */

/* Collective `ordinal` of a group is over; all of its members have entered it. */
void collective_end(struct executor *x, int32_t group, uint32_t ordinal, nanos start, nanos end);
/* The pipeline stage of a rank of the program, folded or not. */
int32_t executor_stage(const struct executor *x, int32_t rank);
/* Actors at the heads of their streams, room for the times of all their operations, entries and accounts. */
void actors_create(struct executor *x);
/* Did every stream reach its end? Otherwise say who waits where. */
MUST_CHECK bool actors_finished(const struct executor *x, struct diags *diags);
/* How long a rank is in the step, and the longest that any is. */
nanos actor_span(const struct actor *actor);
nanos actors_end(const struct executor *x);
/* The stream on which a rank ends last; the compute stream among equals. */
int actor_last_stream(const struct actor *actor);
/* After the last event, the end being known: every nanosecond of every rank in its class. */
void breakdown_finish(struct executor *x, const struct step_costs *costs);

#endif
