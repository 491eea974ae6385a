/*
 * breakdown.h - assigns every nanosecond of a step to one class: compute, exchanges, bubble.
 *
 * Example: a rank computes from 0 to 10, waits for a receive whose transfer runs from 14 to 16, and computes from 16 to 26:
 *
 *     compute 20, bubble 4 (10 to 14: the other stage was not ready), pp_comm 2 (14 to 16)          sum 26
 *
 * Each instant of a rank's step belongs to one class (enum work_class). Let p be the end of one operation of the compute stream
 * and t the start of the next:
 *
 *   1. While the compute stream executes a work, its nanoseconds are split among classes like its cost (step_costs.h). While it
 *      executes an exchange (a transfer that does not overlap compute), they belong to the class of the exchange.
 *   2. The gap [p, t) is walked backwards from the operation that ended it. While such an operation executed in the gap, that
 *      time belongs to its class: a transfer is pp_comm, dp_comm, and so on. Before its transfer began, when the rank's own
 *      inputs were ready, it waited for partners. That is the bubble if these are of another pipeline stage (a receive; a
 *      collective across stages), and the exchange's own class if they are peers of the same stage. The rest belongs to the
 *      operation for which the waiting one had waited itself, and so on back to p.
 *   3. After its last operation a rank waits for the slowest one until the step ends: bubble.
 *   4. If steps roll into one another (program.rolling), a rank's step begins with its first computation. Waiting for its first
 *      pipeline input is not part of it, and the step is the longest time that any rank spends in it.
 *
 * So the classes of each rank sum to the step time exactly, in integer nanoseconds. Sums over ranks are integers too, and the
 * reported mean divides once.
 */
#ifndef MSIM_SIM_STEP_BREAKDOWN_H
#define MSIM_SIM_STEP_BREAKDOWN_H

#include "sim/step/step_tables.h"

/* When an operation was executed; 0: not yet. The executor's clock starts at STEP_EPOCH, so zeroed memory means "not yet". */
struct op_time {
    nanos start, end;
};
enum { STEP_EPOCH = 1 };

/*
 * The times of one rank: those of operation i are at first[i * stride]. Stride 0: nobody reads the times afterwards, and each
 * operation lasts its duration. Then only ends are stored, and only for operations that have a slot (step_tables_slots); starts
 * follow from them. Before its end an operation stores its known start there, negated: when data began to flow to a receive, or
 * when a collective was entered.
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

/* When operation i ended; 0: it has not. The operation must have a slot. */
static inline nanos op_end(struct op_times times, const struct step_op *ops, uint32_t i)
{
    return times.stride ? op_time_at(times, i)->end : nanos_later(times.ends[ops[i].slot], 0);
}

/* When operation i started; it must have ended. */
static inline nanos op_start(struct op_times times, const struct step_op *ops, uint32_t i)
{
    return times.stride ? op_time_at(times, i)->start : times.ends[ops[i].slot] - ops[i].duration;
}

/* One pipeline stage. */
struct stage_breakdown {
    int64_t ranks;               /* simulated ranks */
    struct class_nanos by_class; /* summed over them */
};

struct breakdown {
    nanos step;
    int n_stages;
    struct stage_breakdown *stages;
};
void breakdown_free(struct breakdown *breakdown);

/* Mean over the ranks of a stage (-1: of all stages), in seconds; sums to the step time. */
struct cost_by_class breakdown_mean(const struct breakdown *breakdown, int stage);

/* Check: do the classes of every stage sum to ranks * step? */
bool breakdown_sums(const struct breakdown *breakdown);

/* Adds the gap [from, end of `awaited`) of one rank to `by`, by rule 2. `times` and `ops` are the rank's. */
void gap_attribute(const struct step_op *ops, struct op_times times, uint32_t awaited, nanos from, struct class_nanos *by);

#endif
