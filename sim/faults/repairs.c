#include "sim/faults/repairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

static double mean_hours(struct repair_time repair)
{
    return exp(repair.mu + repair.sigma * repair.sigma / 2);
}

struct repairs repairs_of_model(const struct fault_model *model)
{
    struct repairs repairs = {0};
    double hours = 0, weight = 0;
    for (int i = 0; i < model->causes.n; i++) {
        const struct fault_cause *cause = &model->causes.items[i];
        if (cause->repair == REPAIR_NONE)
            continue;
        hours += cause->weight * mean_hours(model->repairs[cause->repair]);
        weight += cause->weight;
    }
    repairs.mean_s = weight > 0 ? 3600 * hours / weight : 0;
    memcpy(repairs.kinds, model->repairs, sizeof repairs.kinds);
    for (int i = 0; i < model->groups.n; i++)
        repairs.groups[i] = model->groups.items[i].repair;
    return repairs;
}

static bool is_repair(const struct fault *fault)
{
    return fault->kind == FAULT_NODE && fault->down > 0;
}

struct repairs repairs_of_trace(const struct fault_trace *trace)
{
    struct repairs repairs = {.down = memory_new(trace->n_items + 1, sizeof *repairs.down)};
    double total = 0, n = 0;
    for (size_t i = 0; i < trace->n_items; i++) {
        repairs.down[i] = trace->items[i].down;
        if (!is_repair(&trace->items[i]))
            continue;
        total += nanos_to_seconds(trace->items[i].down);
        n++;
    }
    repairs.mean_s = n > 0 ? total / n : 0;
    return repairs;
}

void repairs_free(struct repairs *repairs)
{
    free(repairs->down);
    *repairs = (struct repairs){0};
}

void repairs_set_model(const struct repairs *repairs, double mean_s, struct fault_model *model)
{
    if (repairs->mean_s <= 0)
        return;
    double longer = log(mean_s / repairs->mean_s);
    for (int i = 0; i < N_REPAIR_KINDS; i++)
        model->repairs[i].mu = repairs->kinds[i].mu + longer;
    for (int i = 0; i < model->groups.n; i++)
        if (!model->groups.items[i].planned)
            model->groups.items[i].repair.mu = repairs->groups[i].mu + longer;
}

void repairs_set_trace(const struct repairs *repairs, double mean_s, struct fault_trace *trace)
{
    for (size_t i = 0; repairs->mean_s > 0 && i < trace->n_items; i++) {
        double down = (double)repairs->down[i] * (mean_s / repairs->mean_s);
        if (is_repair(&trace->items[i])) /* an outage stays one, however short */
            trace->items[i].down = down < (double)FAULT_TRACE_LONGEST ? (nanos)fmax(nearbyint(down), 1) : FAULT_TRACE_LONGEST;
    }
}
