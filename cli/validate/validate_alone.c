/* validate_alone.c - the prediction for one rank without the others. */
#include <stdlib.h>

#include "cli/validate/validating.h"
#include "model/base/memory.h"
#include "model/base/units.h"
#include "sim/network/network_analytic.h"
#include "sim/step/step_costs.h"

/* An exchange is a copy of its full buffer (runtime/comm/comm_alone.h); a product beside one takes what its pieces do. */
static nanos duration_of(const struct validation *v, const struct step_costs *costs, const nanos *own, uint32_t op)
{
    const struct op *o = &v->program.ops[op];
    bool exchange = o->kind == OP_SEND || o->kind == OP_RECV || o->kind == OP_COLLECTIVE;
    if (!exchange && own[op] >= 0)
        return own[op];
    return exchange ? nanos_from_seconds(v->copy_base_s + o->bytes / v->copy_rate) : costs->ops[op];
}

void validate_predict_alone(struct validation *v)
{
    const struct program *program = &v->program;
    const struct script *script = &program->scripts[program->ranks[v->devices.alone].script];
    struct machine machine = machine_of(&v->setup->layout, &v->setup->setting);
    struct network network = network_analytic(&machine);
    struct step_costs costs;
    nanos streams[N_STREAMS] = {0}, *ends = memory_new(script->n_ops, sizeof *ends), last = 0;
    nanos *own = memory_new(program->n_ops, sizeof *own);
    step_costs_create(program, &machine, &network, &costs);
    validate_pair_times(v, 0, own);
    for (uint32_t i = 0; i < script->n_ops; i++) {
        const struct op *op = &program->ops[script->first_op + i];
        nanos start = streams[op->stream];
        for (int d = 0; d < OP_DEPS; d++)
            if (op->deps[d] != NO_OP)
                start = nanos_later(start, ends[op->deps[d]]);
        ends[i] = streams[op->stream] = start + duration_of(v, &costs, own, script->first_op + i);
        last = nanos_later(last, ends[i]);
        timeline_record(&v->predicted, (struct span){.rank = v->devices.alone, .op = i, .start = start, .end = ends[i]});
    }
    timeline_close(&v->predicted);
    v->predicted_s = (double)last * 1e-9;
    step_costs_free(&costs);
    free(ends);
    free(own);
}
