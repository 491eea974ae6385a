/*
 * clock.h - the host's clock: how long something takes, not what time it is.
 */
#ifndef MSIM_MODEL_BASE_CLOCK_H
#define MSIM_MODEL_BASE_CLOCK_H

#include "model/base/units.h"

/* Since some moment in the past; never goes back. */
nanos clock_monotonic(void);
/* The same in seconds. */
double clock_seconds(void);
/* What the calling thread had a processor for. */
nanos clock_thread_work(void);

#endif
