/*
 * measured.h - from marks on streams to a timeline (private to the runtime).
 *
 * A mark before an operation says when the stream got there, not when its partners did. So that measured and predicted spans mean
 * the same (sim/step/step_executor.h): a computation begins when it is ready, be there a core for it or not, a collective when
 * its last member is, a receive when its send has begun. Ready is when what comes before has ended, and an exchange is over when
 * what waited for it goes on: the time in which streams notice that belongs to the exchange.
 */
#ifndef MSIM_RUNTIME_RUN_MEASURED_H
#define MSIM_RUNTIME_RUN_MEASURED_H

#include "runtime/run/executor.h"
#include "traces/timeline/timeline.h"

/* `timings` [n_ranks]; the timeline is closed. */
void measured_timeline(const struct program *program, const struct rank_timing *timings, struct timeline *timeline);

#endif
