/*
 * world.h - the processes that work on one command: one, or the ranks that mpirun or srun started.
 *
 * Every rank reads the same command line and does the same work, except for its share of replicas, layouts or plans. The function
 * table of world_processes gives every rank the results of all. Only rank 0 writes. A rank that waits for others sleeps, and
 * leaves its core to them.
 *
 * Without MPI there is one process. If a launcher has numbered it all the same (runtime/cuda/cuda_comm.h: processes with GPUs
 * need no MPI), only number 0 writes.
 */
#ifndef MSIM_CLI_WORLD_WORLD_H
#define MSIM_CLI_WORLD_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/status.h"
#include "sim/base/processes.h"

/* Joins the ranks when a launcher started this process as one of several; otherwise nothing. Ranks above 0 fall silent. */
void world_open(void);
/* Before the process ends with `status`. A rank that failed waits a little for the others to come to their end by themselves, and
 * then takes them with it. */
void world_close(enum status status);

int world_rank(void);
int world_size(void);
bool world_writes(void); /* whether results are this process's to write */
/* Processors for the threads of this process: those it may run on, at most its part of its host's. 1 to 256. */
int world_processors(void);

/* These ranks, for computations that are divided among processes (sim/base/processes.h). */
struct processes world_processes(void);
/* all [world_size()][bytes]: what each rank has, in order of rank. Below 2 GiB a rank. */
void world_gather(const void *mine, size_t bytes, void *all);
/* All ranks get rank 0's bytes. */
void world_broadcast(void *bytes, size_t n);

#endif
