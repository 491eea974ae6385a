/*
 * comm_processes.h - ranks as processes that mpirun or srun started, exchanging through MPI; devices are CPUs.
 *
 * An exchange is a set of messages between its members: a collective of n members sends and receives n - 1 parts and each member
 * adds up its slice in the order of members, so sums have the same bits as among threads (comm_threads.h).
 *
 * MPI must be initialised with at least MPI_THREAD_SERIALIZED: streams are threads, and one of them at a time talks to MPI. Waits
 * ask MPI again and again, sleeping in between, up to the world's timeout.
 *
 * Failure. A rank that gives up sends everybody its reason; whoever waits finds it and ends. A process that dies is the
 * launcher's business, which ends the job.
 *
 * The clock of the world is that of rank 0 where all ranks are on one machine, and otherwise begins on each where it left the
 * barrier.
 */
#ifndef MSIM_RUNTIME_COMM_COMM_PROCESSES_H
#define MSIM_RUNTIME_COMM_COMM_PROCESSES_H

#include "runtime/base/comm.h"

/* All processes of the job, at the same time. STATUS_MISSING in a build without MPI. */
MUST_CHECK enum status comm_processes_open(nanos timeout, struct world **world, struct diags *diags);
/* Where a device of this world has its epoch. */
const nanos *comm_processes_epoch(const struct world *world);

#endif
