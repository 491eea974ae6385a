/*
 * clock.h - the clocks of the host, to measure how long something takes.
 *
 * Example: nanos start = clock_monotonic(); work(); printf("%f s", nanos_to_seconds(clock_monotonic() - start));
 */
#ifndef MSIM_MODEL_BASE_CLOCK_H
#define MSIM_MODEL_BASE_CLOCK_H

#include "model/base/units.h"

/* Nanoseconds since a fixed moment in the past; never decreases. */
nanos clock_monotonic(void);
/* The same in seconds. */
double clock_seconds(void);
/* Processor time that the calling thread has used. */
nanos clock_thread_work(void);

#endif
