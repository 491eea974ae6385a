#include "sim/base/engine.h"

#include <stdlib.h>

#include "model/base/memory.h"

enum { DIGIT_BITS = 6, DIGITS = 11, VALUES = 1 << DIGIT_BITS };
#define NONE UINT32_MAX

struct pending {
    nanos time;
    uint64_t payload;
    uint32_t next; /* next place in its list, or in the free list */
    uint32_t priority;
};

struct list {
    uint32_t first, last;
};

struct engine {
    nanos now;
    struct pending *pool;
    size_t capacity, used; /* used: places taken from the end of the pool so far */
    uint32_t free;         /* head of the list of free places */
    size_t n_pending;
    uint64_t taken;
    int growths;
    uint32_t levels;         /* bit l: digit l has filled slots */
    uint64_t filled[DIGITS]; /* [l] bit v: slot (l, v) holds events */
    struct list slots[DIGITS][VALUES];
    struct list present[ENGINE_PRIORITIES]; /* events at `now` */
};

struct engine *engine_create(size_t n_pending)
{
    struct engine *engine = memory_new(1, sizeof *engine);

    engine->capacity = n_pending > 0 ? n_pending : 1;
    engine->pool = memory_new(engine->capacity, sizeof *engine->pool);
    engine->free = NONE;
    for (int l = 0; l < DIGITS; l++)
        for (int v = 0; v < VALUES; v++)
            engine->slots[l][v] = (struct list){NONE, NONE};
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

static uint32_t event_take(struct engine *engine)
{
    uint32_t event = engine->free;

    if (event != NONE) {
        engine->free = engine->pool[event].next;
        return event;
    }
    if (engine->used == engine->capacity) {
        engine->pool = memory_grow(engine->pool, &engine->capacity, engine->used + 1, sizeof *engine->pool);
        engine->growths++;
    }
    return (uint32_t)engine->used++;
}

static void list_append(struct engine *engine, struct list *list, uint32_t event)
{
    engine->pool[event].next = NONE;
    if (list->first == NONE)
        list->first = event;
    else
        engine->pool[list->last].next = event;
    list->last = event;
}

/* Puts an event into the slot that its time and the clock give. */
static void event_file(struct engine *engine, uint32_t event)
{
    nanos time = engine->pool[event].time;

    if (time == engine->now) {
        list_append(engine, &engine->present[engine->pool[event].priority], event);
        return;
    }
    int level = (63 - __builtin_clzll((uint64_t)(time ^ engine->now))) / DIGIT_BITS;
    int value = (int)(time >> (level * DIGIT_BITS)) & (VALUES - 1);
    engine->levels |= 1u << level;
    engine->filled[level] |= UINT64_C(1) << value;
    list_append(engine, &engine->slots[level][value], event);
}

bool engine_schedule(struct engine *engine, nanos time, uint32_t priority, uint64_t payload)
{
    if (time < engine->now || priority >= ENGINE_PRIORITIES)
        return false;
    uint32_t event = event_take(engine);
    engine->pool[event] = (struct pending){.time = time, .payload = payload, .next = NONE, .priority = priority};
    event_file(engine, event);
    engine->n_pending++;
    return true;
}

static nanos list_earliest(const struct engine *engine, struct list list)
{
    nanos earliest = INT64_MAX;

    for (uint32_t event = list.first; event != NONE; event = engine->pool[event].next)
        if (engine->pool[event].time < earliest)
            earliest = engine->pool[event].time;
    return earliest;
}

/* Moves the clock to the earliest pending time and spreads its slot over the lower ones, which are all empty. */
static void clock_advance(struct engine *engine)
{
    int level = __builtin_ctz(engine->levels), value = __builtin_ctzll(engine->filled[level]);
    struct list list = engine->slots[level][value];

    engine->now = list_earliest(engine, list);
    engine->slots[level][value] = (struct list){NONE, NONE};
    engine->filled[level] &= ~(UINT64_C(1) << value);
    if (engine->filled[level] == 0)
        engine->levels &= ~(1u << level);
    for (uint32_t event = list.first, next; event != NONE; event = next) {
        next = engine->pool[event].next;
        event_file(engine, event);
    }
}

static struct list *present_list(struct engine *engine)
{
    for (int c = 0; c < ENGINE_PRIORITIES; c++)
        if (engine->present[c].first != NONE)
            return &engine->present[c];
    return NULL;
}

nanos engine_peek(const struct engine *engine)
{
    if (engine->n_pending == 0)
        return INT64_MAX;
    for (int c = 0; c < ENGINE_PRIORITIES; c++)
        if (engine->present[c].first != NONE)
            return engine->now;
    int level = __builtin_ctz(engine->levels), value = __builtin_ctzll(engine->filled[level]);
    return list_earliest(engine, engine->slots[level][value]);
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
    uint32_t first = list->first;
    struct pending *taken = &engine->pool[first];
    *event = (struct event){.time = taken->time, .payload = taken->payload, .priority = taken->priority};
    list->first = taken->next;
    taken->next = engine->free;
    engine->free = first;
    engine->n_pending--;
    engine->taken++;
    return true;
}
