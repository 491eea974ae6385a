/*
 * op_kinds.h - operations of a program that cost the same, so that each kind is costed once.
 */
#ifndef MSIM_SIM_STEP_OP_KINDS_H
#define MSIM_SIM_STEP_OP_KINDS_H

#include "model/program/program.h"
#include "sim/step/step_tables.h"

struct op_kinds {
    struct op *ops; /* one of each kind; NULL: what is around an operation changes what it costs, and each is its own kind */
    uint32_t n;     /* kinds; of none the program's operations */
    uint32_t *kind; /* [program.n_ops]; NULL with ops */
};

/* There are few, works and transfers by their bytes, but where it hangs on what was issued before how long a computation takes
 * (step_costs.h), which is without a pipeline. */
void op_kinds_find(const struct program *program, struct op_kinds *kinds);
void op_kinds_free(struct op_kinds *kinds);

/* step_costs_create of one operation of each kind: costs->ops [kinds->n]. */
void op_kinds_cost(const struct op_kinds *kinds, const struct program *program, const struct machine *machine,
                   const struct network *network, struct step_costs *costs);
/* Give tables of the program these durations of kinds, by the analytic network, and what is lost beside replicas' exchanges
 * (dp_overlap_contention.h); of each operation in `lost` [program.n_ops], where there is any and it is not NULL. */
MUST_CHECK enum status op_kinds_time(const struct op_kinds *kinds, const struct program *program, const struct machine *machine,
                                     const struct step_costs *costs, struct step_tables *tables, nanos *lost,
                                     struct diags *diags);
/* The same where what is lost is known. */
MUST_CHECK enum status op_kinds_time_losing(const struct op_kinds *kinds, const struct program *program,
                                            const struct step_costs *costs, struct step_tables *tables, const nanos *lost,
                                            struct diags *diags);

#endif
