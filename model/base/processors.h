/*
 * processors.h - how many processors this process may run on.
 *
 *     int threads = processors_available();          8 under `taskset -c 0-7` on a machine of 64
 */
#ifndef MSIM_MODEL_BASE_PROCESSORS_H
#define MSIM_MODEL_BASE_PROCESSORS_H

/* Those of its affinity mask, at least 1. */
int processors_available(void);

#endif
