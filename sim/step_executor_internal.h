/*
 * step_executor_internal.h - what step_executor.c (operations, transfers, time), step_executor_actors.c (ranks before and after)
 * and step_executor_accounts.c (where the time went) share. Private to them.
 */
#ifndef MSIM_SIM_STEP_EXECUTOR_INTERNAL_H
#define MSIM_SIM_STEP_EXECUTOR_INTERNAL_H

#include "sim/engine.h"
#include "sim/fold.h"
#include "sim/step_executor.h"

/* A transfer that a network with contention carries. */
struct carriage {
    int32_t from, to;       /* of a message; a collective: -1, group */
    uint32_t send, receive; /* operations; send NO_OP: it has ended before. A collective: ordinal in `receive` */
    uint32_t next;          /* that arrives with it, or in the list of free ones */
};

/* In the order of time, so many neighbouring ranks of one script keep the times of one operation together: two cache lines. */
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
struct meeting {
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
    struct meeting *meetings;
    bool ends_only; /* nobody looks at the times: only ends are kept that something here reads */
    nanos *ends;    /* of all ranks, where that is so */
    bool contended;
    struct carriage *carriages; /* pool */
    size_t n_carriages, carriage_capacity;
    uint32_t free_carriage; /* NO_OP none */
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

/* The pipeline stage of a rank of the program, folded or not. */
int32_t executor_stage(const struct executor *x, int32_t rank);
/* Actors at the heads of their streams, room for the times of all their operations, meetings and accounts. */
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
