/* trace_convert.c - the end of every converter: hosts get numbers, events an order, and repeats are merged. */
#include "traces/fault/trace_convert.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/hash.h"
#include "model/base/memory.h"

#define DAY ((nanos)86400 * NANOS_PER_SECOND)

/* Where a name stands, or would. */
static size_t *place_of(const struct host_table *table, const char *name, size_t length)
{
    size_t at = hash_bytes(HASH_BEGIN, name, length) & (table->n_places - 1);
    for (; table->places[at] > 0; at = (at + 1) & (table->n_places - 1)) {
        const char *there = table->names[table->places[at] - 1];
        if (strncmp(there, name, length) == 0 && there[length] == '\0')
            break;
    }
    return &table->places[at];
}

/* At most half of the places are taken. */
static void make_room(struct host_table *table)
{
    if (2 * (table->n + 1) <= table->n_places)
        return;
    free(table->places);
    table->n_places = table->n_places ? 2 * table->n_places : 64;
    table->places = memory_new(table->n_places, sizeof *table->places);
    for (size_t i = 0; i < table->n; i++)
        *place_of(table, table->names[i], strlen(table->names[i])) = i + 1;
}

int32_t host_number(struct host_table *table, const char *name, size_t length)
{
    make_room(table);
    size_t *place = place_of(table, name, length);
    if (*place > 0)
        return (int32_t)(*place - 1);
    table->names = memory_grow(table->names, &table->capacity, table->n + 1, sizeof *table->names);
    char *copy = memory_new(length + 1, 1);
    memcpy(copy, name, length);
    table->names[table->n] = copy;
    *place = ++table->n;
    return (int32_t)(table->n - 1);
}

void host_table_name(const struct host_table *table, struct fault_trace *trace)
{
    for (size_t i = 0; i < table->n; i++)
        fault_trace_name_node(trace, (int32_t)i, table->names[i]);
}

void host_table_free(struct host_table *table)
{
    for (size_t i = 0; i < table->n; i++)
        free(table->names[i]);
    free(table->names);
    free(table->places);
    *table = (struct host_table){0};
}

/* --- repeats --- */

/* A fault where its repeats lie beside it. */
struct sighting {
    int32_t node, cause; /* cause -1: any */
    int rank;
    nanos time;
    size_t index;
};

static int sighting_compare(const void *a, const void *b)
{
    const struct sighting *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->cause != y->cause)
        return x->cause < y->cause ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static struct sighting *sightings_of(const struct fault_trace *trace, const int *ranks)
{
    struct sighting *all = memory_new(trace->n_items ? trace->n_items : 1, sizeof *all);
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        int rank = ranks && fault->detail >= 0 ? ranks[fault->detail] : 0;
        all[i] = (struct sighting){fault->node, ranks ? -1 : fault->detail, rank, fault->time, i};
    }
    qsort(all, trace->n_items, sizeof *all, sighting_compare);
    return all;
}

/* What slows lasts from the first sighting to the end of the last, and is as slow as the worst of them. */
static void extend(struct fault *first, const struct fault *next)
{
    nanos end = next->time + next->down;
    if (end > first->time + first->down)
        first->down = end - first->time;
    if (next->speed < first->speed)
        first->speed = next->speed;
}

/* Marks all but one of the faults [n_items] that are one event: the worst, or the first of those. */
static void mark_repeats(struct fault_trace *trace, const struct sighting *all, nanos merge, bool *repeated)
{
    size_t kept = 0; /* of the event so far */
    nanos last = 0;  /* when it was seen last */
    for (size_t i = 0; i < trace->n_items; i++) {
        struct fault *fault = &trace->items[all[i].index], *first = &trace->items[all[kept].index];
        bool slow = fault->kind == FAULT_STRAGGLER || fault->kind == FAULT_LINK;
        nanos end = slow ? fault->time + fault->down : fault->time;
        bool same = i > 0 && all[i].node == all[i - 1].node && all[i].cause == all[i - 1].cause && all[i].time - last < merge;
        last = same && last > end ? last : end;
        if (!same) {
            kept = i;
        } else if (all[i].rank > all[kept].rank) {
            repeated[all[kept].index] = true;
            kept = i;
        } else {
            repeated[all[i].index] = true;
            if (slow)
                extend(first, fault);
        }
    }
}

static void merge_repeats(struct fault_trace *trace, nanos merge, const int *ranks)
{
    size_t kept = 0;
    if (merge <= 0 || trace->n_items == 0)
        return;
    bool *repeated = memory_new(trace->n_items, sizeof *repeated);
    struct sighting *all = sightings_of(trace, ranks);
    mark_repeats(trace, all, merge, repeated);
    for (size_t i = 0; i < trace->n_items; i++)
        if (!repeated[i])
            trace->items[kept++] = trace->items[i];
    trace->n_items = kept;
    free(all);
    free(repeated);
}

/* --- the end --- */

/* The midnight before a time, which may lie before time 0. */
static nanos midnight(nanos time)
{
    return time - (time % DAY + DAY) % DAY;
}

enum status convert_finish(struct fault_trace *trace, const struct convert_options *options, const int *ranks, nanos zero,
                           const char *path, struct diags *diags)
{
    const struct place at = {.file = path};
    fault_trace_sort(trace);
    if (options->has_from)
        zero = options->from;
    else if (zero < 0 && trace->n_items > 0)
        zero = midnight(trace->items[0].time);
    merge_repeats(trace, options->merge, ranks);
    fault_trace_cut(trace, zero, options->length, at, diags);
    if (trace->n_items > 0 && trace->items[trace->n_items - 1].time - zero > FAULT_TRACE_LONGEST) {
        diag_error(diags, at, "the records span more than 100 years, the longest possible trace");
        fault_trace_free(trace);
        return STATUS_BAD_INPUT;
    }
    for (size_t i = 0; i < trace->n_items; i++)
        trace->items[i].time -= zero;
    return STATUS_OK;
}
