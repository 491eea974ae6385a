/* overlapped_pairs.c - how long the two halves of an overlapped pair take without each other. */
#include "sim/step/overlapped_pairs.h"

#include <math.h>

void overlapped_pair_times(const struct program *program, const struct machine *machine, double waking_s, nanos *own)
{
    for (uint32_t i = 0; i < program->n_ops; i++)
        own[i] = -1;
    for (uint32_t i = 1; i < program->n_ops; i++) {
        const struct op *op = &program->ops[i];
        if (op->kind != OP_COLLECTIVE || op->work < 0 || program->works.items[op->work].kind != WORK_OVERLAPPED)
            continue;
        struct work_parts parts = work_parts_of(machine, &program->works, op->work);
        int pieces = parts.pieces ? parts.pieces : 1;
        own[i - 1] = nanos_from_seconds(pieces * parts.compute_s); /* the computation precedes its exchange */
        own[i] = nanos_from_seconds(pieces * fmax(0, parts.exchange_s - waking_s));
    }
}
