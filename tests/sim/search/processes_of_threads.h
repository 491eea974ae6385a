/*
 * processes_of_threads.h - several processes (sim/base/processes.h), played by threads of one test.
 */
#ifndef MSIM_TESTS_SIM_SEARCH_PROCESSES_OF_THREADS_H
#define MSIM_TESTS_SIM_SEARCH_PROCESSES_OF_THREADS_H

#include "sim/base/processes.h"

enum { PLAYED_MAX = 8 };
/* Runs work(context, processes) on n threads at a time, each with its own rank. Ends when all have. */
void play_processes(int n, void (*work)(void *context, const struct processes *processes), void *context);

#endif
