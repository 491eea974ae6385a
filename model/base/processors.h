/*
 * processors.h - the number of processors on which this process may run.
 *
 * Example: int threads = processors_available();          8 under `taskset -c 0-7` on a machine of 64
 */
#ifndef MSIM_MODEL_BASE_PROCESSORS_H
#define MSIM_MODEL_BASE_PROCESSORS_H

/* The processors in the affinity mask of the process, at least 1. */
int processors_available(void);

#endif
