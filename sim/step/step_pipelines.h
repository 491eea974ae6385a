/*
 * step_pipelines.h - one step of all pipelines of a job whose GPUs are not equally fast, timed again and again.
 *
 * Theory. Ranks that exchange inside passes (tensor, context and expert parallelism) can only go on together: such a *team* is as
 * fast as its slowest GPU. What one rank of each stage and replica does then stands for its tp * cp peers, and the step is
 * executed with those: stages wait for one another's messages, replicas at their exchange of gradients (with ZeRO-3 of weights,
 * layer by layer), wherever the program says so. A GPU's speed is that of its arithmetic, as the pace of machine.h: what memory,
 * links and hosts take stays as it is. Relative to the average GPU arithmetic takes 1 + jitter z, z in standard deviations.
 *
 * What operations take is worked out at whole z from -4 to 8, with all that follows (what hides what); between two of them it is
 * taken in proportion. Faster ones than -4 count as -4: nobody waits for them.
 *
 * Micro-batches of documents (model/cost/step/packing.h) have more or fewer query-key pairs than the average one, the same for
 * all stages of a replica. What a pass takes beyond the average is in proportion to that: above by what twice the pairs would
 * take more, below by what half of them would take less.
 *
 * The analytic network, chunk detail. Cost: about 20 ns an operation of dp * pp ranks; 8 bytes each of those whose ends are read,
 * by caller of pipelines_time, and what a program with all ranks takes while it is created.
 */
#ifndef MSIM_SIM_STEP_STEP_PIPELINES_H
#define MSIM_SIM_STEP_STEP_PIPELINES_H

#include "model/base/diag.h"
#include "model/base/units.h"
#include "model/layout/layout.h"

struct pipelines;

/* `jitter`: standard deviation between GPUs of the time that arithmetic takes, relative to the mean; 0 to 0.2. The cluster's own
 * clock_spread does not count. `every_rank` folds nothing: the same times, for tests. STATUS_BAD_INPUT as program_build has it.
 * *pipelines is written on success; destroy it with pipelines_destroy. */
MUST_CHECK enum status pipelines_create(const struct layout *layout, const struct setting *setting, double jitter,
                                        bool every_rank, struct pipelines **pipelines, struct diags *diags);
void pipelines_destroy(struct pipelines *pipelines); /* NULL: nothing */

int pipelines_teams(const struct pipelines *pipelines);
int pipelines_team_of(const struct pipelines *pipelines, int rank);
/* Operations of all ranks that are executed. */
uint64_t pipelines_ops(const struct pipelines *pipelines);

/* Micro-batches of the job, those of one replica behind another. */
size_t pipelines_draws(const struct pipelines *pipelines);

/* How long the step takes with teams whose slowest GPU is at z[team], and micro-batches whose pairs are draws[i] (at least -1) of
 * the mean above it; NULL: all have the mean. Threads may ask at the same time. */
MUST_CHECK enum status pipelines_time(const struct pipelines *pipelines, const double *z, const double *draws, nanos *step,
                                      struct diags *diags);

#endif
