/*
 * op_kinds.h - groups operations of a program that cost the same, so that each kind is costed once.
 *
 * Example: a stage with 32 micro-batches has 64 passes, but two kinds of them: forward and backward.
 */
#ifndef MSIM_SIM_STEP_OP_KINDS_H
#define MSIM_SIM_STEP_OP_KINDS_H

#include "model/program/program.h"
#include "sim/step/step_tables.h"

struct op_kinds {
    struct op *ops; /* one of each kind; NULL: neighbours change costs, and each operation is its own kind */
    uint32_t n;     /* number of kinds; without kinds, of operations */
    uint32_t *kind; /* [program.n_ops]; NULL with ops */
};

/* There are few kinds: works, and transfers by their bytes. Without a pipeline the time of a computation depends on the
 * operations issued before (step_costs.h), and there are no kinds. */
void op_kinds_find(const struct program *program, struct op_kinds *kinds);
void op_kinds_free(struct op_kinds *kinds);

/* step_costs_create for one operation of each kind: costs->ops [kinds->n]. */
void op_kinds_cost(const struct op_kinds *kinds, const struct program *program, const struct machine *machine,
                   const struct network *network, struct step_costs *costs);
/* Sets the durations in tables of the program: those of kinds, by the analytic network, plus the time lost to exchanges between
 * replicas (dp_overlap_contention.h). If `lost` [program.n_ops] is not NULL and there is such a loss, it receives each
 * operation's. */
MUST_CHECK enum status op_kinds_time(const struct op_kinds *kinds, const struct program *program, const struct machine *machine,
                                     const struct step_costs *costs, struct step_tables *tables, nanos *lost,
                                     struct diags *diags);
/* The same with a known loss. */
MUST_CHECK enum status op_kinds_time_losing(const struct op_kinds *kinds, const struct program *program,
                                            const struct step_costs *costs, struct step_tables *tables, const nanos *lost,
                                            struct diags *diags);

#endif
