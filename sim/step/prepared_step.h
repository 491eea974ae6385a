/*
 * prepared_step.h - one step, timed again and again on a cluster whose speeds change.
 *
 * A fit asks how long a run takes under a thousand values of its cluster's parameters. The program, and what of it can be known
 * before anything is timed (step_tables.h), follow from layout, model and job: they are made once and kept, by whoever prepares
 * the step, until it is destroyed. Timing it costs what its operations do: their costs, then their execution, folded, at chunk
 * detail, over the analytic network. The time is that of step_simulate to the nanosecond.
 *
 * What operations lose to replicas' exchanges beside them (dp_overlap_contention.h) takes up to three executions more to find,
 * and hardly changes with speeds that hardly change. A search may hold it as it was for a while: up to four times as fast, and
 * without jumps of parts in a thousand, which a difference over a small step would take for a slope.
 *
 * Memory: about 130 bytes an operation, 138 where there are such exchanges. One thread at a time.
 */
#ifndef MSIM_SIM_STEP_PREPARED_STEP_H
#define MSIM_SIM_STEP_PREPARED_STEP_H

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
/* Can operations lose anything so? */
bool prepared_step_loses(const struct prepared_step *step);
/* The same with what operations lost when prepared_step_time last timed it; that time, where the setting is that one. Before, and
 * where nothing can be lost, it is prepared_step_time. */
MUST_CHECK enum status prepared_step_time_near(struct prepared_step *step, const struct setting *setting, double *seconds,
                                               struct diags *diags);

#endif
