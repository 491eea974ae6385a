#include "sim/network/delayed_starts.h"

#include <stdlib.h>

#include "model/base/memory.h"

static bool before(const struct delayed_start *a, const struct delayed_start *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(struct delayed_start *a, struct delayed_start *b)
{
    struct delayed_start keep = *a;

    *a = *b;
    *b = keep;
}

void delayed_starts_free(struct delayed_starts *starts)
{
    free(starts->heap);
    *starts = (struct delayed_starts){0};
}

void delayed_starts_add(struct delayed_starts *starts, nanos at, struct flows_start start)
{
    if (starts->n == starts->capacity)
        starts->heap = memory_grow(starts->heap, &starts->capacity, starts->n + 1, sizeof *starts->heap);
    starts->heap[starts->n] = (struct delayed_start){.at = at, .order = starts->added++, .start = start};
    for (size_t i = starts->n++; i > 0 && before(&starts->heap[i], &starts->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&starts->heap[i], &starts->heap[(i - 1) / 2]);
}

nanos delayed_starts_next(const struct delayed_starts *starts)
{
    return starts->n > 0 ? starts->heap[0].at : INT64_MAX;
}

bool delayed_starts_take(struct delayed_starts *starts, nanos now, struct flows_start *start)
{
    struct delayed_start *heap = starts->heap;
    size_t i = 0, child;

    if (delayed_starts_next(starts) > now || starts->n == 0)
        return false;
    *start = heap[0].start;
    heap[0] = heap[--starts->n];
    while ((child = 2 * i + 1) < starts->n) {
        if (child + 1 < starts->n && before(&heap[child + 1], &heap[child]))
            child++;
        if (!before(&heap[child], &heap[i]))
            break;
        swap(&heap[child], &heap[i]);
        i = child;
    }
    return true;
}
