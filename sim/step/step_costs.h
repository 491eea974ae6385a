/*
 * step_costs.h - the time of each operation of a program, in whole nanoseconds and by class.
 *
 * Example: a forward pass of 10 ms appears 192 times in a program. It is timed once and split once: compute 8 ms, exposed
 * tensor-parallel exchange 2 ms.
 *
 *     step_costs_create(&program, &machine, &network, &costs);     ... costs.ops[i], costs.works[op->work].ns[CLASS_TP_COMM] ...
 *
 * Each work is timed once (work_cost), however often it is executed, and rounded to nanoseconds. Its nanoseconds are split among
 * classes in the proportions of work_cost_by_class; the largest class gets the remainder of the rounding, so the split sums
 * exactly. If the network is uniform, it is asked once per distinct transfer (kind, role, bytes). At kernel detail an exchange
 * in pieces that overlaps a computation lasts as long as the pair, from their common start. So operations after both start when
 * they would at chunk detail, and the exchange is charged with the time that the pair takes beyond the computation alone.
 *
 * Interference. An exchange between replicas has its own stream, but uses the same SMs and memory. It lengthens the first
 * computation that follows it and does not wait for it (overlap_interference_s). In a pipeline this depends on the operations
 * that overlap it (dp_overlap_contention.h).
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
    nanos *ops;                /* [program.n_ops]; 0 for joins, and for transfers of a network that is not uniform; computations
                                * include interference */
    struct class_nanos *works; /* [program.works.n_items], for works of compute operations */
    double *flops;             /* [program.works.n_items], likewise: executed FLOPs */
    double *causal_flops;      /* the part that fused attention kernels execute over causal (or windowed) pairs only */
};

/* FLOPs that all ranks of the job execute in one step. */
struct executed_flops {
    double total;
    double causal; /* the part over causal pairs: about half of what the full-attention convention counts for it */
};

/* Is it an exchange of gradients or parameters between data-parallel replicas? Not the sum of weights shared by two stages, nor
 * exchanges of the optimizer's step. */
bool is_replica_exchange(const struct op *op);

/* Times all operations of the program. Its indices must be in range (program_verify, or step_tables_create). */
void step_costs_create(const struct program *program, const struct machine *machine, const struct network *network,
                       struct step_costs *costs);
void step_costs_free(struct step_costs *costs);

/* Splits `total` in the proportions of `by`, exactly; all goes to `fallback` if `by` is empty. */
void class_nanos_split(nanos total, const struct cost_by_class *by, enum work_class fallback, struct class_nanos *split);

/* `replicas`: ranks of the job that each rank of the program represents. */
struct executed_flops step_costs_flops(const struct program *program, const struct step_costs *costs, double replicas);

#endif
