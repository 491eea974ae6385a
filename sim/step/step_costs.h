/*
 * step_costs.h - how long each operation of a program takes, in whole nanoseconds, and by class.
 *
 * A work is timed once (work_cost) however often it is executed, rounded to nanoseconds, and its nanoseconds are divided among
 * classes in the proportions of work_cost_by_class; the remainder of the rounding goes to the largest class, so that the split
 * sums exactly. Transfers are asked of the network, once per distinct (kind, role, bytes), when it is uniform. An exchange that
 * runs in pieces beside a computation (kernel detail) lasts as long as the pair does from their common start: what follows both
 * then starts when it would at chunk detail, and what the pair takes beyond the computation alone is the exchange's.
 *
 * Crowding. An exchange between replicas runs on a stream of its own, but on the same SMs and memory: what it takes from the
 * computations beside it (overlap_interference_s) makes the first computation longer that follows it and does not wait for it. In
 * a pipeline it hangs on what lies beside it (dp_overlap_contention.h).
 */
#ifndef MSIM_SIM_STEP_STEP_COSTS_H
#define MSIM_SIM_STEP_STEP_COSTS_H

#include "model/cost/kernel/machine.h"
#include "model/program/program.h"
#include "sim/network/network.h"

struct class_nanos {
    nanos ns[N_WORK_CLASSES];
};

struct step_costs {
    nanos *ops;                /* [program.n_ops]; 0 for transfers of a network that is not uniform, and for joins; a computation
                                * takes longer than its work by what interferes it */
    struct class_nanos *works; /* [program.works.n_items], of the works that compute operations name */
    double *flops;             /* [program.works.n_items], the same: executed */
    double *causal_flops;      /* the part of them that fused attention kernels count over causal (or windowed) pairs only */
};

/* FLOPs that all ranks of the job execute in one step. */
struct executed_flops {
    double total;
    double causal; /* of these, counted over causal pairs: about half of what the full-attention convention counts for them */
};

/* Of gradients or parameters, between data-parallel replicas: not what two stages add up that hold the same weights, nor what is
 * part of the optimizer's step. */
bool is_replica_exchange(const struct op *op);

/* Times everything the program names. Indices must be in range (program_verify, or step_tables_create). */
void step_costs_create(const struct program *program, const struct machine *machine, const struct network *network,
                       struct step_costs *costs);
void step_costs_free(struct step_costs *costs);

/* `total` divided in the proportions of `by`, exactly; all to `fallback` where `by` is empty. */
void class_nanos_split(nanos total, const struct cost_by_class *by, enum work_class fallback, struct class_nanos *split);

/* `replicas`: ranks of the job that each rank of the program stands for. */
struct executed_flops step_costs_flops(const struct program *program, const struct step_costs *costs, double replicas);

#endif
