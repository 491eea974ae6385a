/*
 * step_executor.h - executes a program in virtual time.
 *
 * Semantics. Every stream of every rank is an in-order queue. An operation is ready when its predecessor on the stream and its
 * dependencies have ended. Then:
 *
 *   compute, join   starts when ready, lasts its duration (a join: none).
 *   send            starts when ready and holds its stream for the duration of the transfer. It does not wait for the receiver.
 *   receive         its transfer starts when both sides are ready, max(own ready, start of the matching send), and lasts the
 *                   same duration. So nothing is received before the receiver is there (rendezvous), and a receiver that comes
 *                   late pays the whole transfer.
 *   collective      starts when the last member is ready, ends for all after its duration.
 *
 * Why sends do not wait. NCCL moves a message through buffers of the receiver's channel, and pipeline frameworks put the sends
 * and receives between neighbours into one group (batched isend/irecv), which NCCL runs as one kernel in which each makes
 * progress by itself. A send that waited for its receiver while it held the stream would stop, and with two neighbours that
 * each send before they receive (the steady phase of 1F1B) lock up, programs that run. What the model leaves out is a sender
 * held up by a receiver that posts later than the buffers last (some MiB); the receiver's side of that wait is counted.
 *
 * With a network that has contention a send and a receive that are ready at the same time share the transfer, whatever the order
 * in which that became known; and ranks that cannot begin a pass without one another do not (lockstep.h).
 *
 * Two ways to run, which give the same times (a test holds them to that):
 *
 *   data flow       As long as transfers do not contend, an operation's times follow from those of the operations before it,
 *                   whatever order they are worked out in. Each rank is advanced as far as what it has received allows, then
 *                   left until a partner delivers more. No event queue; every operation is touched once. This is the default.
 *   time order      Every end is an event of the engine (engine.h) and operations start in the order of virtual time, as a
 *                   network with contention needs it.
 *
 * Memory: 16 bytes per operation of every rank, plus about 150 per rank. Where only totals are asked for and nothing contends, 8,
 * and none for a computation that no other stream waits for. In the order of time the times of neighbouring ranks lie
 * beside one another, operation by operation, as they are met. Nothing is allocated while operations run.
 */
#ifndef MSIM_SIM_STEP_STEP_EXECUTOR_H
#define MSIM_SIM_STEP_STEP_EXECUTOR_H

#include "sim/step/breakdown.h"
#include "traces/timeline/timeline.h"

struct fold;

/* Told now and then how many of all ranks' operations are done; tell(context, done, total). */
struct step_watch {
    void (*tell)(void *context, double done, double total);
    void *context;
};

enum {
    EXECUTE_TIME_ORDER = 1, /* through the event queue */
    EXECUTE_TOTALS = 2,     /* the caller looks at no operation's times: they may be missing */
};

struct execution {
    const struct program *program; /* that was executed */
    const struct fold *fold;       /* NULL, or of which program this is the fold */
    nanos end;                     /* of the step: how long it takes (all ranks start at 0 unless steps roll into one another) */
    uint64_t events;               /* operations completed, over all ranks */
    struct op_time *times; /* NULL where only totals were asked for; of all ranks: execution_time(); those of rank r in order from
                              offsets[r] where strides[r] is 1 */
    size_t *offsets;       /* [n_ranks] */
    uint8_t *strides;      /* [n_ranks] */
    uint64_t n_ops;        /* of all ranks */
    struct breakdown breakdown;
};

/*
 * Run `program` with the durations of `costs`; `network` is asked per transfer unless it is uniform (then, or with NULL, the
 * durations in `costs` hold). STATUS_BAD_INPUT when the program is malformed, STATUS_FAILED when it waits in a circle; the
 * diagnostics name the ranks and operations. `how`: any of EXECUTE_. `watch` may be NULL. *execution is written on success; the
 * caller frees it.
 */
MUST_CHECK enum status program_execute(const struct program *program, const struct step_costs *costs,
                                       const struct network *network, unsigned how, const struct step_watch *watch,
                                       struct execution *execution, struct diags *diags);
/* How long computations take where ranks are not alike: those of rank r as much more or less than their tables say as at
 * level[r], counted from 0, than at `level_of_tables`; between two levels, and before the first and behind the last, in
 * proportion. */
struct step_paces {
    const nanos *durations; /* [n_levels][n_kinds], alone */
    const uint32_t *kind;   /* [program.n_ops], of an operation; NULL: every operation is its own */
    uint32_t n_kinds;
    int n_levels;        /* at least 2 */
    int level_of_tables; /* one of them */
    const double *level; /* [n_ranks] */
    /* Where micro-batches are not alike either: what an operation takes beyond that for each unit of its micro-batch's draw,
     * above 0 and below. NULL: they are. */
    const nanos *more, *less;  /* [n_kinds] */
    const double *draws;       /* [replicas][n_micro_batches] */
    const int32_t *first_draw; /* [n_ranks], the index of the replica's first */
};

/* The same by data flow with tables made before, in which the durations are; without a breakdown. Tables are only read: threads
 * may share them. `paces` may be NULL: ranks are alike. Of `how` EXECUTE_TOTALS counts. */
MUST_CHECK enum status program_execute_prepared(const struct program *program, const struct step_tables *tables,
                                                const struct step_paces *paces, unsigned how, struct execution *execution,
                                                struct diags *diags);
/* The same for a fold, over the network that made it: every rank of a class counts in breakdown and record. */
MUST_CHECK enum status program_execute_folded(const struct fold *fold, const struct step_costs *costs,
                                              const struct network *network, const struct step_watch *watch,
                                              struct execution *execution, struct diags *diags);
void execution_free(struct execution *execution);

/* Start and end of operation i of a rank. */
static inline struct op_times execution_times(const struct execution *execution, int rank)
{
    return (struct op_times){.first = execution->times + execution->offsets[rank], .stride = execution->strides[rank]};
}
static inline const struct op_time *execution_time(const struct execution *execution, int rank, uint32_t i)
{
    return op_time_at(execution_times(execution, rank), i);
}

/* Record what `rank` (of the whole program) did, operation by operation. A receive's span is its transfer; the wait before it is
 * not part of it. */
void execution_record(const struct execution *execution, int rank, struct timeline *timeline);

#endif
