/* library_events.c - the clock and the queue of events. */
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/base/engine.h"
#include "sim/library/msim.h"

struct msim_events {
    struct engine *engine;
};

struct msim_events *msim_events_create(size_t n_pending)
{
    struct msim_events *events = memory_new(1, sizeof *events);
    events->engine = engine_create(n_pending);
    return events;
}

enum msim_status msim_events_schedule(struct msim_events *events, int64_t time_ns, uint32_t priority, uint64_t payload)
{
    return engine_schedule(events->engine, time_ns, priority, payload) ? MSIM_OK : MSIM_USAGE;
}

int msim_events_next(struct msim_events *events, struct msim_event *event)
{
    struct event next;
    if (!engine_next(events->engine, &next))
        return 0;
    *event = (struct msim_event){.time_ns = next.time, .priority = next.priority, .payload = next.payload};
    return 1;
}

int64_t msim_events_now_ns(const struct msim_events *events)
{
    return engine_now(events->engine);
}

size_t msim_events_pending(const struct msim_events *events)
{
    return engine_pending(events->engine);
}

void msim_events_destroy(struct msim_events *events)
{
    if (events)
        engine_destroy(events->engine);
    free(events);
}
