/*
 * engine.h - the virtual clock and the queue of events to come.
 *
 * Events leave in the order of (time, priority class, sequence number), the sequence number being the order in which they were
 * scheduled: equal times have one order, on every compiler and machine. Time never runs backwards: an event may be scheduled
 * at the present or later, never earlier.
 *
 * The queue is a radix heap of base 64, which that monotony allows. Write times as numbers of eleven 6-bit digits: an event lies
 * in the slot of (the highest digit in which its time differs from the clock, the value of that digit). The next event is in the
 * lowest filled slot; when the clock moves to it, the events of its slot spread over lower ones. So an event moves at most eleven
 * times in its life, in practice two to four times, whatever the number pending. Moves keep the order of arrival, therefore
 * events of one time stay in sequence order without storing a number. Events at the present time wait in one first-in first-out
 * list per priority.
 *
 * Cost: O(1) to schedule, amortised O(1) in the number of pending events to take; 24 bytes an event. Nothing is allocated while
 * at most the number of events given at creation is pending; beyond it the pool doubles (engine_growths tells). A 4-ary heap
 * was measured beside it: 52, 113 and 369 ns an event with 100, 10,000 and 1,000,000 pending, against 43, 57 and 361 here
 * (tests/bench/bench_step.c).
 *
 * There is no cancellation: an event carries an opaque 64-bit word, and a receiver that may lose interest puts a generation
 * number in it.
 */
#ifndef MSIM_SIM_BASE_ENGINE_H
#define MSIM_SIM_BASE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/units.h"

enum { ENGINE_PRIORITIES = 4 }; /* priority classes at one time: 0 leaves first */

struct event {
    nanos time;
    uint64_t payload; /* the scheduler's word */
    uint32_t priority;
};

struct engine;

/* A clock at 0 with an empty queue and room for n_pending events. */
struct engine *engine_create(size_t n_pending);
void engine_destroy(struct engine *engine); /* NULL is allowed */

nanos engine_now(const struct engine *engine);
size_t engine_pending(const struct engine *engine);

/* False, and nothing is scheduled, when `time` lies before the present or `priority` is out of range: a mistake of the caller. */
bool engine_schedule(struct engine *engine, nanos time, uint32_t priority, uint64_t payload);

/* When the next event is; INT64_MAX: none is pending. O(events near it), the clock stays. */
nanos engine_peek(const struct engine *engine);
/* The next event, and the clock moved to it; false when none is pending. */
bool engine_next(struct engine *engine, struct event *event);

uint64_t engine_taken(const struct engine *engine); /* events that have left */
int engine_growths(const struct engine *engine);    /* times the pool had to grow */

#endif
