/*
 * engine.h - the event queue and virtual clock of a discrete-event simulation.
 *
 * Example: two events at 5 ns and one at 3 ns. They leave in the order B, A, C, because A was scheduled before C:
 *
 *     struct engine *engine = engine_create(16);
 *     engine_schedule(engine, 5, 0, 'A');  engine_schedule(engine, 3, 0, 'B');  engine_schedule(engine, 5, 0, 'C');
 *     while (engine_next(engine, &event))                    engine_now(engine) is 3, 5, 5
 *         handle(event.payload);
 *     engine_destroy(engine);
 *
 * Events leave in the order of (time, priority class, sequence number). The sequence number is the order in which they were
 * scheduled. So events at equal times have one order, on every compiler and machine. Time never runs backwards: an event may be
 * scheduled at the present time or later, never earlier.
 *
 * The queue is a radix heap of base 64, which this monotony allows. Write times as numbers of eleven 6-bit digits. An event lies
 * in the slot (l, v), where l is the highest digit in which its time differs from the clock, and v the value of that digit. The
 * next event is in the lowest filled slot. When the clock moves to it, the events of its slot spread over lower slots. So an
 * event moves at most eleven times, in practice two to four times, whatever the number of pending events. Moves keep the order
 * of arrival, so events of one time stay in sequence order and need not store a number. Events at the present time wait in one
 * FIFO list per priority.
 *
 * Cost: O(1) to schedule, amortised O(1) in the number of pending events to take; 24 bytes per event. Nothing is allocated while
 * at most the number of events given at creation is pending; beyond that the pool doubles (engine_growths counts this). A 4-ary
 * heap was measured for comparison: 52, 113 and 369 ns per event with 100, 10,000 and 1,000,000 pending, against 43, 57 and 361
 * here (tests/bench/bench_step.c).
 *
 * Events cannot be cancelled. An event carries an opaque 64-bit word; a receiver that may lose interest puts a generation number
 * in it.
 */
#ifndef MSIM_SIM_BASE_ENGINE_H
#define MSIM_SIM_BASE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/base/units.h"

enum { ENGINE_PRIORITIES = 4 }; /* priority classes at equal times; 0 leaves first */

struct event {
    nanos time;
    uint64_t payload; /* the scheduler's word */
    uint32_t priority;
};

struct engine;

/* Creates a clock at 0 and an empty queue with room for n_pending events. */
struct engine *engine_create(size_t n_pending);
void engine_destroy(struct engine *engine); /* NULL is allowed */

nanos engine_now(const struct engine *engine);
size_t engine_pending(const struct engine *engine);

/* Returns false and schedules nothing if `time` is in the past or `priority` out of range: a mistake of the caller. */
bool engine_schedule(struct engine *engine, nanos time, uint32_t priority, uint64_t payload);

/* The time of the next event; INT64_MAX: none is pending. The clock stays. O(events near that time). */
nanos engine_peek(const struct engine *engine);
/* Takes the next event and moves the clock to it; returns false if none is pending. */
bool engine_next(struct engine *engine, struct event *event);

uint64_t engine_taken(const struct engine *engine); /* events taken so far */
int engine_growths(const struct engine *engine);    /* number of times the pool grew */

#endif
