/*
 * prepared_step.h - one step, timed again and again on a cluster whose speeds change.
 *
 * A fit asks how long a run takes under a thousand values of its cluster's parameters. The program, and what of it can be known
 * before anything is timed (step_tables.h), follow from layout, model and job: they are made once and kept, by whoever prepares
 * the step, until it is destroyed. Timing it costs what its operations do: their costs, then their execution, folded, at chunk
 * detail, over the analytic network. The time is that of step_simulate to the nanosecond.
 *
 * Memory: about 130 bytes an operation. One thread at a time.
 */
#ifndef MSIM_SIM_PREPARED_STEP_H
#define MSIM_SIM_PREPARED_STEP_H

#include "model/base/diag.h"
#include "model/program/program.h"

struct prepared_step;

/* STATUS_BAD_INPUT as program_build has it. *step is written on success; destroy it with prepared_step_destroy. */
MUST_CHECK enum status prepared_step_create(const struct layout *layout, const struct setting *setting,
                                            struct prepared_step **step, struct diags *diags);
void prepared_step_destroy(struct prepared_step *step); /* NULL: nothing */

/* Operations of one rank of every stage. */
uint32_t prepared_step_ops(const struct prepared_step *step);

/* How long it takes, in seconds, under a setting that differs from the one it was prepared for in nothing but the quantities of
 * its cluster. */
MUST_CHECK enum status prepared_step_time(struct prepared_step *step, const struct setting *setting, double *seconds,
                                          struct diags *diags);

#endif
