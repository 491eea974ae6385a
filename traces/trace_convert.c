/* What every converter ends with: hosts as numbers, events in order, repeats as one. */
#include "traces/trace_convert.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

#define DAY ((nanos)86400 * NANOS_PER_SECOND)

int32_t host_number(struct host_table *table, const char *name, size_t length)
{
    for (size_t i = table->n; i > 0; i--)
        if (strncmp(table->names[i - 1], name, length) == 0 && table->names[i - 1][length] == '\0')
            return (int32_t)(i - 1);
    table->names = memory_grow(table->names, &table->capacity, table->n + 1, sizeof *table->names);
    char *copy = memory_new(length + 1, 1);
    memcpy(copy, name, length);
    table->names[table->n] = copy;
    return (int32_t)table->n++;
}

void host_table_free(struct host_table *table)
{
    for (size_t i = 0; i < table->n; i++)
        free(table->names[i]);
    free(table->names);
    *table = (struct host_table){0};
}

/* The last event of this node and cause that was kept, looking back no further than `merge`. */
static bool repeats(const struct fault_trace *trace, size_t kept, const struct fault *fault, nanos merge)
{
    for (size_t i = kept; i > 0 && trace->items[i - 1].time > fault->time - merge; i--)
        if (trace->items[i - 1].node == fault->node && trace->items[i - 1].detail == fault->detail)
            return true;
    return false;
}

/* The midnight before a time, which may lie before time 0. */
static nanos midnight(nanos time)
{
    return time - (time % DAY + DAY) % DAY;
}

enum status convert_finish(struct fault_trace *trace, const struct convert_options *options, nanos zero, const char *path,
                           struct diags *diags)
{
    size_t kept = 0;
    fault_trace_sort(trace);
    if (zero < 0 && trace->n_items > 0)
        zero = midnight(trace->items[0].time);
    if (trace->n_items > 0 && trace->items[trace->n_items - 1].time - zero > FAULT_TRACE_LONGEST) {
        diag_error(diags, (struct place){.file = path}, "the records span more than the 100 years that a trace may");
        fault_trace_free(trace);
        return STATUS_BAD_INPUT;
    }
    for (size_t i = 0; i < trace->n_items; i++) {
        if (options->merge > 0 && repeats(trace, kept, &trace->items[i], options->merge))
            continue;
        trace->items[kept++] = trace->items[i];
    }
    trace->n_items = kept;
    for (size_t i = 0; i < kept; i++)
        trace->items[i].time -= zero;
    return STATUS_OK;
}
