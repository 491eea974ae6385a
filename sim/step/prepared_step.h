/*
 * prepared_step.h - one step, prepared once and timed many times under different speeds of its cluster.
 *
 * Example: a fit tries a thousand values of the kernel efficiency for one run.
 *
 *     status = prepared_step_create(&layout, &setting, &step, &diags);
 *     for (...) { cluster.gpu.hbm_rate = value;  status = prepared_step_time(step, &setting, &seconds, &diags); }
 *     prepared_step_destroy(step);
 *
 * The program, and everything that can be known before it is timed (step_tables.h), follow from layout, model and job. They are
 * made once and kept. Timing then costs the operations only: their costs and their execution, folded, at chunk detail, over the
 * analytic network. The time equals that of step_simulate to the nanosecond.
 *
 * The time that operations lose to exchanges between replicas (dp_overlap_contention.h) needs up to three more executions, and
 * hardly changes if speeds hardly change. A search may keep it for a while. That is up to four times as fast, and avoids jumps
 * of a few parts in a thousand, which a difference over a small step would mistake for a slope.
 *
 * Memory: about 130 bytes per operation, 138 with such exchanges. One thread at a time.
 */
#ifndef MSIM_SIM_STEP_PREPARED_STEP_H
#define MSIM_SIM_STEP_PREPARED_STEP_H

#include "model/base/diag.h"
#include "model/program/program.h"

struct prepared_step;

/* STATUS_BAD_INPUT as for program_build. *step is written on success; free it with prepared_step_destroy. */
MUST_CHECK enum status prepared_step_create(const struct layout *layout, const struct setting *setting,
                                            struct prepared_step **step, struct diags *diags);
void prepared_step_destroy(struct prepared_step *step); /* NULL is allowed */

/* Operations of one rank of every stage. */
uint32_t prepared_step_ops(const struct prepared_step *step);

/* Seconds of the step under a setting that differs from the prepared one only in quantities of its cluster. */
MUST_CHECK enum status prepared_step_time(struct prepared_step *step, const struct setting *setting, double *seconds,
                                          struct diags *diags);
/* Can operations lose time to exchanges between replicas? */
bool prepared_step_loses(const struct prepared_step *step);
/* The same with the loss of the last prepared_step_time; equal to that time for the same setting. Without a previous call or a
 * loss this is prepared_step_time. */
MUST_CHECK enum status prepared_step_time_near(struct prepared_step *step, const struct setting *setting, double *seconds,
                                               struct diags *diags);

#endif
