#include "sim/step/breakdown.h"

#include <stdlib.h>

void breakdown_free(struct breakdown *breakdown)
{
    free(breakdown->stages);
    *breakdown = (struct breakdown){0};
}

struct cost_by_class breakdown_mean(const struct breakdown *breakdown, int stage)
{
    struct class_nanos sum = {{0}};
    struct cost_by_class mean = {{0}};
    int64_t ranks = 0;

    for (int i = 0; i < breakdown->n_stages; i++) {
        if (stage >= 0 && stage != i)
            continue;
        ranks += breakdown->stages[i].ranks;
        for (int c = 0; c < N_WORK_CLASSES; c++)
            sum.ns[c] += breakdown->stages[i].by_class.ns[c];
    }
    for (int c = 0; ranks > 0 && c < N_WORK_CLASSES; c++)
        mean.s[c] = (double)sum.ns[c] / (double)ranks / (double)NANOS_PER_SECOND;
    return mean;
}

bool breakdown_sums(const struct breakdown *breakdown)
{
    for (int i = 0; i < breakdown->n_stages; i++) {
        const struct stage_breakdown *stage = &breakdown->stages[i];
        nanos sum = 0;
        for (int c = 0; c < N_WORK_CLASSES; c++)
            sum += stage->by_class.ns[c];
        if (sum != stage->ranks * breakdown->step)
            return false;
    }
    return true;
}

/* The latest end of the operations for which an operation waits on its own rank: its predecessor and its dependencies. */
static uint32_t latest_before(const struct step_op *ops, uint32_t i, struct op_times times, nanos *ready)
{
    const struct step_op *op = &ops[i];
    uint32_t latest = op->previous;

    *ready = latest == NO_OP ? STEP_EPOCH : op_end(times, ops, latest);
    for (int d = 0; d < OP_DEPS && op->deps[d] != NO_OP; d++)
        if (op_end(times, ops, op->deps[d]) > *ready) {
            latest = op->deps[d];
            *ready = op_end(times, ops, latest);
        }
    return latest;
}

void gap_attribute(const struct step_op *ops, struct op_times times, uint32_t awaited, nanos from, struct class_nanos *by)
{
    nanos to = op_end(times, ops, awaited);

    while (to > from && awaited != NO_OP) {
        const struct step_op *op = &ops[awaited];
        nanos busy = nanos_later(op_start(times, ops, awaited), from), ready;
        uint32_t before = latest_before(ops, awaited, times, &ready);
        nanos waiting = nanos_later(ready, from);

        by->ns[op->class] += to - busy;
        if (busy > waiting) {
            by->ns[op->wait_class] += busy - waiting;
            busy = waiting;
        }
        to = busy;
        awaited = before;
    }
    by->ns[CLASS_BUBBLE] += to - from; /* > 0 only if the walk reached the start of the step */
}
