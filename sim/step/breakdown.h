/*
 * breakdown.h - where every nanosecond of a step goes.
 *
 * Each instant of a rank's step belongs to one class (enum work_class). With p the end of one operation of the compute stream
 * and t the start of the next:
 *
 *   1. While the compute stream executes a work, its nanoseconds are split among classes as its cost is (step_costs.h). While
 *      it executes an exchange (a transfer not overlapped with compute) they belong to the exchange's class.
 *   2. The gap [p, t) is walked backwards from the operation that ended it. An operation that was being executed in the gap
 *      takes that part for its class: the transfer itself is pp_comm, dp_comm, ... Time before its transfer began, when all
 *      the rank itself had to do was done, was spent waiting for partners: the bubble where those are of another pipeline
 *      stage (a receive; a collective across stages), the exchange's own class where they are peers of the same stage. What
 *      remains belongs to the operation that the waiting one had waited for itself, and so on back to p.
 *   3. After its last operation a rank waits for the slowest one until the step ends: bubble.
 *   4. Where steps roll into one another (program.rolling) a rank's step begins with its first computation: waiting for its
 *      first pipeline input is not part of it, and the step is the longest that a rank is in it.
 *
 * So for each rank the classes sum to the step time exactly, in integer nanoseconds; the sums over ranks are kept as integers
 * too, and the reported mean divides once.
 */
#ifndef MSIM_SIM_STEP_BREAKDOWN_H
#define MSIM_SIM_STEP_BREAKDOWN_H

#include "sim/step/step_tables.h"

/* When an operation was executed; both 0 while unknown: the executor's clock starts at STEP_EPOCH so that zeroed memory says
 * "not yet". */
struct op_time {
    nanos start, end;
};
enum { STEP_EPOCH = 1 };

/*
 * Where the times of one rank are: those of its operation i at first[i * stride]. Where nobody looks at them afterwards and every
 * operation lasts what its table says, stride 0: only ends, of the operations that have a slot (step_tables_slots), and starts
 * follow from them. An operation that has not ended has there, below zero, the start that is known of it: when data began to
 * flow to a receive, when a collective was entered.
 */
struct op_times {
    union {
        struct op_time *first;
        nanos *ends;
    };
    size_t stride;
};
static inline struct op_time *op_time_at(struct op_times times, uint32_t i)
{
    return &times.first[i * times.stride];
}

/* When operation i ended; 0: it has not. It has a slot. */
static inline nanos op_end(struct op_times times, const struct step_op *ops, uint32_t i)
{
    return times.stride ? op_time_at(times, i)->end : nanos_later(times.ends[ops[i].slot], 0);
}

/* When it started, of one that has ended. */
static inline nanos op_start(struct op_times times, const struct step_op *ops, uint32_t i)
{
    return times.stride ? op_time_at(times, i)->start : times.ends[ops[i].slot] - ops[i].duration;
}

/* One pipeline stage. */
struct stage_breakdown {
    int64_t ranks;               /* actors simulated */
    struct class_nanos by_class; /* summed over them */
};

struct breakdown {
    nanos step;
    int n_stages;
    struct stage_breakdown *stages;
};
void breakdown_free(struct breakdown *breakdown);

/* Mean over ranks in seconds, of one stage or (stage -1) of all; sums to the step time. */
struct cost_by_class breakdown_mean(const struct breakdown *breakdown, int stage);

/* Do the classes of every stage sum to ranks * step? */
bool breakdown_sums(const struct breakdown *breakdown);

/* The gap [from, end of `awaited`) of one rank, rule 2; `times` and `ops` are the rank's. Added to `by`. */
void gap_attribute(const struct step_op *ops, struct op_times times, uint32_t awaited, nanos from, struct class_nanos *by);

#endif
