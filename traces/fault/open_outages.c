/* Outages in logs that say when a node went and when it came back. */
#include <stdio.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "traces/fault/trace_convert.h"

struct open_outage *outage_of(struct open_outages *outages, int32_t node)
{
    size_t needed = (size_t)node + 1;
    outages->items = memory_grow(outages->items, &outages->capacity, needed, sizeof *outages->items);
    while (outages->n < needed)
        outages->items[outages->n++] = (struct open_outage){.open = false};
    return &outages->items[node];
}

static void close_at(struct open_outage *outage, struct fault_trace *trace, nanos down)
{
    outage->fault.down = down > 0 ? down : 0;
    fault_trace_add(trace, outage->fault, outage->cause);
    outage->open = false;
}

void outage_begin(struct open_outages *outages, struct fault_trace *trace, struct fault fault, bool ends_by_answer,
                  const char *cause)
{
    struct open_outage *outage = outage_of(outages, fault.node);
    if (outage->open && !(outage->fault.kind == FAULT_PLANNED && fault.kind == FAULT_NODE))
        return;
    if (outage->open)
        close_at(outage, trace, fault.time - outage->fault.time);
    outage->open = true;
    outage->ends_by_answer = ends_by_answer;
    outage->fault = fault;
    snprintf(outage->cause, sizeof outage->cause, "%s", cause);
}

void outage_end(struct open_outages *outages, struct fault_trace *trace, int32_t node, nanos time)
{
    struct open_outage *outage = outage_of(outages, node);
    if (outage->open)
        close_at(outage, trace, time - outage->fault.time);
}

void outages_finish(struct open_outages *outages, struct fault_trace *trace, nanos down)
{
    for (size_t i = 0; i < outages->n; i++)
        if (outages->items[i].open) {
            outages->n_endless++;
            close_at(&outages->items[i], trace, down);
        }
    free(outages->items);
    outages->items = NULL;
    outages->n = outages->capacity = 0;
}
