/*
 * oracle.h - the replay rules once more, in the slowest way that cannot be wrong: one nanosecond at a time, looking through the
 * whole trace at each. Shares nothing with sim/ but the trace and the options.
 */
#ifndef MSIM_TESTS_SIM_RUN_ORACLE_H
#define MSIM_TESTS_SIM_RUN_ORACLE_H

#include "sim/weeks/run.h"

struct oracle_answer {
    int64_t training, slow, checkpoint, lost, idle;
    int64_t interruptions, checkpoints;
};

struct oracle_answer oracle_replay(const struct run_options *options, const struct fault_trace *trace);

#endif
