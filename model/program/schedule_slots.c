/* schedule_slots.c - lists of slots. */
#include "model/program/schedule.h"

#include <stdlib.h>

#include "model/base/memory.h"

void slots_add(struct slots *slots, enum pass pass, int chunk, int64_t micro_batch)
{
    slots->items = memory_grow(slots->items, &slots->capacity, slots->n_items + 1, sizeof *slots->items);
    slots->items[slots->n_items++] =
        (struct slot){.micro_batch = (int32_t)micro_batch, .chunk = (int16_t)chunk, .pass = (uint8_t)pass, .exchanges = true};
}

void slots_free(struct slots *slots)
{
    free(slots->items);
    *slots = (struct slots){0};
}
