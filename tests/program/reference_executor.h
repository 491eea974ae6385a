/*
 * reference_executor.h - the times of a program whose computations take what a table says and whose exchanges take nothing.
 *
 * Written from the semantics in program.h and nothing else, without regard for speed: every operation is looked at again until
 * nothing changes.
 */
#ifndef MSIM_TESTS_PROGRAM_REFERENCE_EXECUTOR_H
#define MSIM_TESTS_PROGRAM_REFERENCE_EXECUTOR_H

#include "model/program/program.h"

struct reference_run {
    int64_t **start, **end; /* [n_ranks][n_ops of the rank], -1 where an operation never ends */
    int n_ranks;
    int64_t makespan;
};

/* pass_time[N_PASSES] is that of a pass that is one operation; what belongs to no pass takes none. */
struct reference_run reference_execute(const struct program *program, const int64_t pass_time[N_PASSES]);
void reference_free(struct reference_run *run);

/* First start to last end of a rank's computations of passes. */
int64_t reference_busy_span(const struct reference_run *run, const struct program *program, int rank);

#endif
