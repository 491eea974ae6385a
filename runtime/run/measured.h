/*
 * measured.h - turns the times of events on streams into a timeline (private to the runtime).
 *
 * Example: rank 0 enters an all-reduce at 3.0 ms and rank 1 at 3.4 ms; both leave at 3.9 ms. The timeline shows it from 3.4 to
 * 3.9 ms on both ranks, as a prediction does.
 *
 * The event before an operation has the time when this rank's stream reached it, not when its partners did. Measured and
 * predicted spans must mean the same (sim/step/step_executor.h), so spans begin
 *
 *     a computation    when it is ready, even if it waits for a core
 *     a collective     when its last member is ready
 *     a receive        when its send has begun
 *
 * An operation is ready when those before it have ended. An exchange ends when the operation that waited for it begins: the time
 * in which streams notice its end belongs to the exchange.
 */
#ifndef MSIM_RUNTIME_RUN_MEASURED_H
#define MSIM_RUNTIME_RUN_MEASURED_H

#include "runtime/run/executor.h"
#include "traces/timeline/timeline.h"

/* `timings` [n_ranks]. The timeline is complete when this returns (timeline_close). */
void measured_timeline(const struct program *program, const struct rank_timing *timings, struct timeline *timeline);

#endif
