/*
 * comm_processes.h - ranks as processes that mpirun or srun started, with CPUs as devices and MPI as the network.
 *
 * Example: in each of four processes of `mpirun -n 4`
 *
 *     comm_processes_open(10 * NANOS_PER_SECOND, &world, &diags);                  world->rank is 0, 1, 2 or 3
 *     device_cpu_open(world->rank, comm_processes_epoch(world), 0, &device, &diags);
 *
 * An exchange is a set of messages between its members. In a collective of n members each sends and receives n - 1 parts and
 * adds up its slice in the order of members, so sums have the same bits as among threads (comm_threads.h).
 *
 * MPI must be initialised with at least MPI_THREAD_SERIALIZED: each stream is a thread, and one thread at a time calls MPI. A
 * wait polls MPI, with sleeps between the calls, up to the world's timeout.
 *
 * Failure. A rank that gives up sends its reason to all ranks, and their waits end. If a process dies, the launcher ends the
 * job.
 *
 * Clock. If all ranks are on one machine, the clock is that of rank 0. If not, each rank's clock starts when it leaves the
 * barrier.
 */
#ifndef MSIM_RUNTIME_COMM_COMM_PROCESSES_H
#define MSIM_RUNTIME_COMM_COMM_PROCESSES_H

#include "runtime/base/comm.h"

/* Joins the world; all processes of the job call it at the same time. `timeout`: of any wait for another rank. STATUS_MISSING in
 * a build without MPI, or if MPI is not initialised. */
MUST_CHECK enum status comm_processes_open(nanos timeout, struct world **world, struct diags *diags);
/* The epoch for devices of this world. */
const nanos *comm_processes_epoch(const struct world *world);

#endif
