/*
 * step_executor.h - executes a program in virtual time.
 *
 * Example: two ranks of a pipeline. Rank 0 computes for 10 ns and sends for 2 ns; rank 1 receives and computes for 10 ns.
 *
 *     rank 0   compute 0-10, send 10-12
 *     rank 1   receive 10-12 (both sides are ready at 10), compute 12-22              execution.end = 22
 *
 *     status = program_execute(&program, &costs, NULL, 0, NULL, &execution, &diags);
 *
 * Semantics. Each stream of each rank is an in-order queue. An operation is ready when its predecessor on the stream and its
 * dependencies have ended. Then:
 *
 *   compute, join   starts when ready and lasts its duration (a join: 0).
 *   send            starts when ready and holds its stream for the duration of the transfer. It does not wait for the receiver.
 *   receive         its transfer starts when both sides are ready, at max(own ready, start of the matching send), and lasts
 *                   equally long. So nothing is received before the receiver is there (rendezvous), and a late receiver pays the
 *                   whole transfer.
 *   collective      starts when its last member is ready, and ends for all after its duration.
 *
 * Why sends do not wait. NCCL moves a message through buffers of the receiver's channel. Pipeline frameworks put the sends and
 * receives between neighbours into one group (batched isend/irecv), which NCCL runs as one kernel in which each makes progress
 * by itself. A send that held the stream until its receiver came would deadlock programs that run: two neighbours that each send
 * before they receive (the steady phase of 1F1B). The model leaves out a sender that waits because its receiver posts later than
 * the buffers last (some MiB). The receiver's side of that wait is counted.
 *
 * With a network that has contention, a send and a receive that become ready at the same time share the transfer, in whatever
 * order that became known. Ranks that cannot begin a pass without one another wait for one another (lockstep.h).
 *
 * Two ways to run, with the same times (a test compares them):
 *
 *   data flow       Without contention an operation's times follow from those of earlier operations, in any order of evaluation.
 *                   Each rank advances as far as its received messages allow, then waits until a partner delivers more. There is
 *                   no event queue, and each operation is handled once. This is the default.
 *   time order      Each end is an event of the engine (engine.h), and operations start in the order of virtual time. A network
 *                   with contention needs this.
 *
 * Memory: 16 bytes per operation of each rank, plus about 150 per rank. If the caller wants totals only and nothing contends: 8
 * bytes, and none for a computation that no other stream waits for. In time order the times of neighbouring ranks are
 * interleaved, operation by operation, in the order of use. Nothing is allocated while operations run.
 */
#ifndef MSIM_SIM_STEP_STEP_EXECUTOR_H
#define MSIM_SIM_STEP_STEP_EXECUTOR_H

#include "sim/step/breakdown.h"
#include "traces/timeline/timeline.h"

struct fold;

/* Progress: called now and then with the number of finished operations of all ranks. */
struct step_watch {
    void (*tell)(void *context, double done, double total);
    void *context;
};

enum {
    EXECUTE_TIME_ORDER = 1, /* use the event queue */
    EXECUTE_TOTALS = 2,     /* the caller does not need the times of operations: they may be missing */
};

struct execution {
    const struct program *program; /* the executed program */
    const struct fold *fold;       /* the fold whose program this is; NULL: none */
    nanos end;                     /* duration of the step (all ranks start at 0 unless the program is rolling) */
    uint64_t events;               /* operations completed, over all ranks */
    struct op_time *times; /* times of all ranks, see execution_time(); those of rank r begin at offsets[r], strides[r] apart.
                            * May be NULL with EXECUTE_TOTALS */
    size_t *offsets;       /* [n_ranks] */
    uint8_t *strides;      /* [n_ranks] */
    uint64_t n_ops;        /* of all ranks */
    struct breakdown breakdown;
};

/*
 * Runs `program` with the durations of `costs`. `network` is asked per transfer if it is not uniform; if it is, or is NULL, the
 * durations in `costs` hold. STATUS_BAD_INPUT: the program is malformed. STATUS_FAILED: it waits in a circle; the diagnostics
 * name ranks and operations. `how`: a set of EXECUTE_. `watch` may be NULL. *execution is written on success; the caller frees
 * it.
 */
MUST_CHECK enum status program_execute(const struct program *program, const struct step_costs *costs,
                                       const struct network *network, unsigned how, const struct step_watch *watch,
                                       struct execution *execution, struct diags *diags);
/* Speeds of ranks that are not alike. A computation of rank r takes its time in the tables, plus the difference between its
 * durations at level[r] and at `level_of_tables`. Between levels, and outside of them, durations are linear. */
struct step_paces {
    const nanos *durations; /* [n_levels][n_kinds], without interference */
    const uint32_t *kind;   /* [program.n_ops]; NULL: each operation is its own kind */
    uint32_t n_kinds;
    int n_levels;        /* at least 2 */
    int level_of_tables; /* one of them */
    const double *level; /* [n_ranks] */
    /* If micro-batches differ: added time of an operation per unit of its micro-batch's draw, above 0 and below 0. NULL: they are
     * alike. */
    const nanos *more, *less;  /* [n_kinds] */
    const double *draws;       /* [replicas][n_micro_batches] */
    const int32_t *first_draw; /* [n_ranks], index of the first draw of the rank's replica */
};

/* Runs a program by data flow with prepared tables, which hold the durations; without a breakdown. Tables are only read, so
 * threads may share them. `paces` NULL: ranks are alike. `how`: 0 or EXECUTE_TOTALS. */
MUST_CHECK enum status program_execute_prepared(const struct program *program, const struct step_tables *tables,
                                                const struct step_paces *paces, unsigned how, struct execution *execution,
                                                struct diags *diags);
/* Runs a fold over the network for which it was made. Breakdown and record count every rank of a class. */
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

/* Records the operations of `rank` (of the whole program). The span of a receive is its transfer, without the wait before it. */
void execution_record(const struct execution *execution, int rank, struct timeline *timeline);

#endif
