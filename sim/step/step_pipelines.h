/*
 * step_pipelines.h - one step of all pipelines of a job whose GPUs differ in speed, timed many times.
 *
 * Example: 64 GPUs, arithmetic with 2 % standard deviation between GPUs. GPU 17 is 3 deviations slow, so its team of 8 is 6 %
 * slower.
 *
 *     status = pipelines_create(&layout, &setting, 0.02, false, &pipelines, &diags);
 *     z[pipelines_team_of(pipelines, 17)] = 3;
 *     status = pipelines_time(pipelines, z, NULL, &step, &diags);
 *
 * Theory. Ranks that exchange inside passes (tensor, context and expert parallelism) advance only together. Such a *team* is as
 * fast as its slowest GPU. One rank per stage and replica then represents its tp * cp peers, and the step is executed with
 * these. Stages wait for one another's messages, and replicas at their exchange of gradients (with ZeRO-3 of weights, layer by
 * layer), wherever the program says so. The speed of a GPU is that of its arithmetic, the pace of machine.h; memory, links and
 * hosts do not change. Relative to the average GPU, arithmetic takes 1 + jitter z, with z in standard deviations.
 *
 * Durations of operations are computed at whole z from -4 to 8, including the overlap that follows from them, and interpolated
 * in between. GPUs faster than -4 count as -4, because nobody waits for them.
 *
 * Micro-batches of documents (model/cost/step/packing.h) have more or fewer query-key pairs than the average one, equally for
 * all stages of a replica. The extra time of a pass is proportional to that: above the average by the extra time of twice the
 * pairs, below it by the time saved with half of them.
 *
 * Analytic network, chunk detail. Cost: about 20 ns per operation of dp * pp ranks. Memory: 8 bytes per operation whose end is
 * read, per caller of pipelines_time; and a program with all ranks during creation.
 */
#ifndef MSIM_SIM_STEP_STEP_PIPELINES_H
#define MSIM_SIM_STEP_STEP_PIPELINES_H

#include "model/base/diag.h"
#include "model/base/units.h"
#include "model/layout/layout.h"

struct pipelines;

/* `jitter`: standard deviation of arithmetic time between GPUs, relative to the mean; 0 to 0.2. It replaces the cluster's
 * clock_spread. `every_rank` folds nothing (same times, for tests). STATUS_BAD_INPUT as for program_build. *pipelines is written
 * on success; free it with pipelines_destroy. */
MUST_CHECK enum status pipelines_create(const struct layout *layout, const struct setting *setting, double jitter,
                                        bool every_rank, struct pipelines **pipelines, struct diags *diags);
void pipelines_destroy(struct pipelines *pipelines); /* NULL is allowed */

int pipelines_teams(const struct pipelines *pipelines);
int pipelines_team_of(const struct pipelines *pipelines, int rank);
/* Operations of all executed ranks. */
uint64_t pipelines_ops(const struct pipelines *pipelines);

/* Number of micro-batches of the job; those of a replica are consecutive. */
size_t pipelines_draws(const struct pipelines *pipelines);

/* Time of the step if the slowest GPU of each team is at z[team], and micro-batch i has (1 + draws[i]) times the average pairs
 * (draws[i] >= -1; NULL: all average). Threads may call this at the same time. */
MUST_CHECK enum status pipelines_time(const struct pipelines *pipelines, const double *z, const double *draws, nanos *step,
                                      struct diags *diags);

#endif
