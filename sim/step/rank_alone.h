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

#include "model/cost/kernel/machine.h"
#include "model/program/program.h"
#include "traces/timeline/timeline.h"

struct copy_cost {
    double base_s, rate; /* bytes a second */
};

/* Returns the seconds of the step. Appends the rank's spans to `timeline` and closes it. */
double rank_alone_predict(const struct program *program, const struct machine *machine, int rank, const struct copy_cost *copy,
                          struct timeline *timeline);

#endif
