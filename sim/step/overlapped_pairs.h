/*
 * overlapped_pairs.h - how long the two halves of an overlapped pair take without each other.
 *
 * Example: a product of 10 ms and its all-gather of 4 ms run in four pieces and last 12 ms together. The simulator then says
 * that both last from 0 to 12 ms. This file says that the product takes 4 x 2.5 ms and the all-gather 4 x 1 ms.
 *
 * At kernel detail the simulated exchange of such a pair lasts as long as the pair does (step_costs.h). That gives correct start
 * and end times, but not the time that the exchange itself needs. The runtime measures the latter, piece by piece.
 */
#ifndef MSIM_SIM_STEP_OVERLAPPED_PAIRS_H
#define MSIM_SIM_STEP_OVERLAPPED_PAIRS_H

#include "model/base/units.h"
#include "model/cost/kernel/machine.h"
#include "model/program/program.h"

/* own[program->n_ops]: the time of each half of a pair, for exchanges less `waking_s` per piece; -1 for all other operations. */
void overlapped_pair_times(const struct program *program, const struct machine *machine, double waking_s, nanos *own);

#endif
