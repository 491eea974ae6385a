/* four_units.h - what the suites of replicas that fail alone run on. */
#ifndef MSIM_TESTS_SIM_RUN_FOUR_UNITS_H
#define MSIM_TESTS_SIM_RUN_FOUR_UNITS_H

#include "sim/weeks/failover.h"

/* Eight nodes of one GPU: two stages of four replicas, of which node n has n % 4. Times in seconds. */
enum { UNITS = 4, NODES = 8, STEP = 10, REGROUP = 5, REJOIN = 60 };
extern const struct run_failover four_units;

#endif
