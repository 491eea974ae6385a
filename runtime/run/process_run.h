/*
 * process_run.h - runs this process as one rank of a program; the others are processes too, or copies on this device.
 *
 * Example: in each of four processes that mpirun started
 *
 *     run_as_rank(&program, &setting, &options, device, world, &result, &diags);       result is the same in all four
 *
 * run_as_rank    run_on_threads, as one rank of it. After the last step ranks exchange their measurements through the world, so
 * every
 *                process has the whole result.
 * run_alone      one rank whose exchanges are copies (comm_alone.h). The result has this rank's timeline, durations and memory;
 *                losses are NAN and there are no gradients.
 *
 * Both take ownership of the device and the world and close them. After a failure diags have this rank's message. The peak of
 * device memory does not include the exchange of results.
 */
#ifndef MSIM_RUNTIME_RUN_PROCESS_RUN_H
#define MSIM_RUNTIME_RUN_PROCESS_RUN_H

#include "runtime/run/thread_run.h"

MUST_CHECK enum status run_as_rank(const struct program *program, const struct setting *setting,
                                   const struct thread_run_options *options, struct device *device, struct world *world,
                                   struct thread_run *result, struct diags *diags);
MUST_CHECK enum status run_alone(const struct program *program, const struct setting *setting,
                                 const struct thread_run_options *options, int rank, struct device *device,
                                 struct thread_run *result, struct diags *diags);

#endif
