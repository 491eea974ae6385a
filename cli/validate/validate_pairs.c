/* validate_pairs.c - what the halves of an overlapped pair take by themselves.
 *
 * At kernel detail the simulator's exchange of such a pair lasts as long as the pair does (sim/step/step_costs.h), which says
 * when things happen but not what the exchange takes. Here it takes its pieces' time, and so does the computation: what the
 * runtime measures of both. */
#include <math.h>

#include "cli/validate/validating.h"
#include "model/cost/kernel/machine.h"

void validate_pair_times(const struct validation *v, double waking_s, nanos *own)
{
    const struct program *program = &v->program;
    struct machine machine = machine_of(&v->setup->layout, &v->setup->setting);
    for (uint32_t i = 0; i < program->n_ops; i++)
        own[i] = -1;
    for (uint32_t i = 1; i < program->n_ops; i++) {
        const struct op *op = &program->ops[i];
        if (op->kind != OP_COLLECTIVE || op->work < 0 || program->works.items[op->work].kind != WORK_OVERLAPPED)
            continue;
        struct work_parts parts = work_parts_of(&machine, &program->works, op->work);
        int pieces = parts.pieces ? parts.pieces : 1;
        own[i - 1] = nanos_from_seconds(pieces * parts.compute_s); /* the computation stands before its exchange */
        own[i] = nanos_from_seconds(pieces * fmax(0, parts.exchange_s - waking_s));
    }
}
