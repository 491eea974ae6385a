/* rank_alone.c - one rank's step when the other ranks' messages are replaced by local copies. */
#include "sim/step/rank_alone.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/units.h"
#include "sim/network/network_analytic.h"
#include "sim/step/step_costs.h"

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

/* A computation that overlaps an exchange takes as long as its pieces do. */
static nanos duration_of(const struct op *op, const struct copy_cost *copy, nanos cost, nanos own)
{
    bool exchange = op->kind == OP_SEND || op->kind == OP_RECV || op->kind == OP_COLLECTIVE;
    if (exchange)
        return nanos_from_seconds(copy->base_s + op->bytes / copy->rate);
    return own >= 0 ? own : cost;
}

double rank_alone_predict(const struct program *program, const struct machine *machine, int rank, const struct copy_cost *copy,
                          struct timeline *timeline)
{
    const struct script *script = &program->scripts[program->ranks[rank].script];
    struct network network = network_analytic(machine);
    struct step_costs costs;
    nanos streams[N_STREAMS] = {0}, *ends = memory_new(script->n_ops, sizeof *ends), last = 0;
    nanos *own = memory_new(program->n_ops, sizeof *own);
    step_costs_create(program, machine, &network, &costs);
    overlapped_pair_times(program, machine, 0, own);
    for (uint32_t i = 0; i < script->n_ops; i++) {
        const uint32_t at = script->first_op + i;
        const struct op *op = &program->ops[at];
        nanos start = streams[op->stream];
        for (int d = 0; d < OP_DEPS; d++)
            if (op->deps[d] != NO_OP)
                start = nanos_later(start, ends[op->deps[d]]);
        ends[i] = streams[op->stream] = start + duration_of(op, copy, costs.ops[at], own[at]);
        last = nanos_later(last, ends[i]);
        timeline_record(timeline, (struct span){.rank = rank, .op = i, .start = start, .end = ends[i]});
    }
    timeline_close(timeline);
    step_costs_free(&costs);
    free(ends);
    free(own);
    return (double)last * 1e-9;
}
