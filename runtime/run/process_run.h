/*
 * process_run.h - this process as one rank of a program: the others are processes too, on any backend, or copies on this device.
 *
 * run_as_rank    what run_on_threads does, seen from one rank. When all steps are done, ranks exchange what they measured through
 *                their world, so that every process has the whole result.
 * run_alone      one rank whose messages are copies (comm_alone.h). The result has this rank's timeline, durations and memory;
 *                losses are NAN, gradients are not given.
 *
 * Both take over a device and a world, and close them. After a failure diags have this rank's sentence; the other ranks have
 * theirs. Device memory of the peak does not count what the exchange of results needs.
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
