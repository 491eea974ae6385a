/*
 * rank_alone.h - one rank's step when the other ranks' messages are replaced by local copies.
 *
 * Example: `msim validate --alone 3` runs rank 3 of a large job on one device. Every exchange becomes a copy of its full buffer:
 * it takes base_s + bytes / rate and waits for no other rank. Computations take what they take in the whole job.
 *
 * Each operation of the rank's script starts when its stream and its dependencies are ready.
 */
#ifndef MSIM_SIM_STEP_RANK_ALONE_H
#define MSIM_SIM_STEP_RANK_ALONE_H

#include "model/base/units.h"
#include "model/cost/kernel/machine.h"
#include "model/program/program.h"
#include "traces/timeline/timeline.h"

struct copy_cost {
    double base_s, rate; /* bytes a second */
};

/* Returns the seconds of the step. Appends the rank's spans to `timeline` and closes it. */
double rank_alone_predict(const struct program *program, const struct machine *machine, int rank, const struct copy_cost *copy,
                          struct timeline *timeline);

/* The time that each half of an overlapped pair takes without the other. own[program->n_ops]; for exchanges less `waking_s` per
 * piece; -1 for all other operations.
 *
 * Example: a product of 10 ms and its all-gather of 4 ms run in four pieces and last 12 ms together. At kernel detail both last
 * from 0 to 12 ms (step_costs.h). That gives correct start and end times, but not the time that the exchange itself needs, which
 * the runtime measures piece by piece. Here the product takes 4 x 2.5 ms and the all-gather 4 x 1 ms. */
void overlapped_pair_times(const struct program *program, const struct machine *machine, double waking_s, nanos *own);

#endif
