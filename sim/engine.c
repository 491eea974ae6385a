#include "sim/engine.h"

#include <stdlib.h>

#include "model/base/memory.h"

enum { N_BUCKETS = 64 };
#define NONE UINT32_MAX

struct pending {
    nanos time;
    uint64_t what;
    uint32_t next; /* in its list, or in the free list */
    uint32_t priority;
};

struct list {
    uint32_t first, last;
};

struct engine {
    nanos now;
    struct pending *pool;
    size_t capacity, used; /* used: slots ever taken from the pool's end */
    uint32_t free;         /* head of the list of returned slots */
    size_t n_pending;
    uint64_t taken;
    int growths;
    uint64_t filled;                        /* bit b: bucket b holds events; bit 0 is unused */
    struct list buckets[N_BUCKETS];         /* [b]: times whose highest bit different from `now` is b - 1 */
    struct list present[ENGINE_PRIORITIES]; /* events at `now` */
};

struct engine *engine_create(size_t n_pending)
{
    struct engine *engine = memory_new(1, sizeof *engine);

    engine->capacity = n_pending > 0 ? n_pending : 1;
    engine->pool = memory_new(engine->capacity, sizeof *engine->pool);
    engine->free = NONE;
    for (int b = 0; b < N_BUCKETS; b++)
        engine->buckets[b] = (struct list){NONE, NONE};
    for (int c = 0; c < ENGINE_PRIORITIES; c++)
        engine->present[c] = (struct list){NONE, NONE};
    return engine;
}

void engine_destroy(struct engine *engine)
{
    if (engine == NULL)
        return;
    free(engine->pool);
    free(engine);
}

nanos engine_now(const struct engine *engine)
{
    return engine->now;
}

size_t engine_pending(const struct engine *engine)
{
    return engine->n_pending;
}

uint64_t engine_taken(const struct engine *engine)
{
    return engine->taken;
}

int engine_growths(const struct engine *engine)
{
    return engine->growths;
}

static uint32_t slot_take(struct engine *engine)
{
    uint32_t slot = engine->free;

    if (slot != NONE) {
        engine->free = engine->pool[slot].next;
        return slot;
    }
    if (engine->used == engine->capacity) {
        engine->pool = memory_grow(engine->pool, &engine->capacity, engine->used + 1, sizeof *engine->pool);
        engine->growths++;
    }
    return (uint32_t)engine->used++;
}

static void list_append(struct engine *engine, struct list *list, uint32_t slot)
{
    engine->pool[slot].next = NONE;
    if (list->first == NONE)
        list->first = slot;
    else
        engine->pool[list->last].next = slot;
    list->last = slot;
}

static void slot_file(struct engine *engine, uint32_t slot)
{
    const struct pending *event = &engine->pool[slot];

    if (event->time == engine->now) {
        list_append(engine, &engine->present[event->priority], slot);
        return;
    }
    int bucket = 64 - __builtin_clzll((uint64_t)(event->time ^ engine->now));
    engine->filled |= UINT64_C(1) << bucket;
    list_append(engine, &engine->buckets[bucket], slot);
}

bool engine_schedule(struct engine *engine, nanos time, uint32_t priority, uint64_t what)
{
    if (time < engine->now || priority >= ENGINE_PRIORITIES)
        return false;
    uint32_t slot = slot_take(engine);
    engine->pool[slot] = (struct pending){.time = time, .what = what, .next = NONE, .priority = priority};
    slot_file(engine, slot);
    engine->n_pending++;
    return true;
}

/* Move the clock to the earliest pending time and spread its bucket over the lower ones, which are all empty. */
static void clock_advance(struct engine *engine)
{
    int bucket = __builtin_ctzll(engine->filled);
    struct list list = engine->buckets[bucket];
    nanos earliest = INT64_MAX;

    for (uint32_t slot = list.first; slot != NONE; slot = engine->pool[slot].next)
        if (engine->pool[slot].time < earliest)
            earliest = engine->pool[slot].time;
    engine->now = earliest;
    engine->filled &= ~(UINT64_C(1) << bucket);
    engine->buckets[bucket] = (struct list){NONE, NONE};
    for (uint32_t slot = list.first, next; slot != NONE; slot = next) {
        next = engine->pool[slot].next;
        slot_file(engine, slot);
    }
}

static struct list *present_list(struct engine *engine)
{
    for (int c = 0; c < ENGINE_PRIORITIES; c++)
        if (engine->present[c].first != NONE)
            return &engine->present[c];
    return NULL;
}

bool engine_next(struct engine *engine, struct event *event)
{
    if (engine->n_pending == 0)
        return false;
    struct list *list = present_list(engine);
    if (list == NULL) {
        clock_advance(engine);
        list = present_list(engine);
    }
    uint32_t slot = list->first;
    struct pending *taken = &engine->pool[slot];
    *event = (struct event){.time = taken->time, .what = taken->what, .priority = taken->priority};
    list->first = taken->next;
    taken->next = engine->free;
    engine->free = slot;
    engine->n_pending--;
    engine->taken++;
    return true;
}
