#include "model/base/clock.h"

#include <time.h>

static nanos clock_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (nanos)t.tv_sec * NANOS_PER_SECOND + t.tv_nsec;
}

nanos clock_monotonic(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

double clock_seconds(void)
{
    return (double)clock_monotonic() * 1e-9;
}

nanos clock_thread_work(void)
{
    return clock_of(CLOCK_THREAD_CPUTIME_ID);
}
