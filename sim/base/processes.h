/*
 * processes.h - the processes that share one computation: a small table of functions.
 *
 * Example: each of four processes simulates every fourth plan, then all of them know every result:
 *
 *     for (int i = processes->rank; i < n; i += processes->size)
 *         own[i / processes->size] = simulate(i);
 *     processes->gather(processes->context, own, bytes, all);
 *
 * Each process makes the same calls in the same order. Results do not depend on the number of processes: what they add up are
 * whole numbers, and what they gather comes in the order of ranks.
 *
 * `one_process` is one process alone. The command line has a table whose functions call MPI (cli/world).
 */
#ifndef MSIM_SIM_BASE_PROCESSES_H
#define MSIM_SIM_BASE_PROCESSES_H

#include <stddef.h>
#include <stdint.h>

struct processes {
    int rank, size; /* of this process, from 0; number of processes */
    void *context;
    /* words[i] becomes the sum over all processes. */
    void (*sum)(void *context, int64_t *words, size_t n);
    /* all[size][bytes]: the bytes of each process, in the order of ranks. Less than 2 GiB a process. */
    void (*gather)(void *context, const void *own, size_t bytes, void *all);
    /* Every process gets the bytes of rank 0. */
    void (*broadcast)(void *context, void *bytes, size_t n);
};

extern const struct processes one_process;

#endif
