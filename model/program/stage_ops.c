/* stage_ops.c - append operations to the script of a stage; its parameters and sets of waits. */
#include "model/base/memory.h"
#include "model/cost/work/precision_bytes.h"
#include "model/program/emit.h"

struct stage_parameters stage_parameters_of(const struct stage *stage, struct segment segment)
{
    const struct build *build = stage->build;
    return work_stage_parameters(build->layout, build->setting, segment.range, segment.embedding, segment.head);
}

struct stage_parameters stage_trained_of(const struct stage *stage, struct segment segment)
{
    const struct build *build = stage->build;
    return work_trained_parameters(build->layout, build->setting, segment.range, segment.embedding, segment.head);
}

double stage_gradient_bytes(const struct stage *stage)
{
    return precision_bytes(stage->build->setting->job->gradient_precision);
}

struct op step_op(enum op_kind kind, enum stream stream, enum work_class class)
{
    return (struct op){
        .kind = (uint8_t)kind,
        .stream = (uint8_t)stream,
        .pass = N_PASSES,
        .class = (uint8_t) class,
        .chunk = -1,
        .micro_batch = -1,
        .layer = -1,
        .work = -1,
    };
}

uint32_t stage_add(struct stage *stage, struct op op, const struct waits *waits)
{
    struct build *build = stage->build;
    struct program *program = build->program;
    if (program->n_ops >= PROGRAM_OPS_MAX) {
        build->too_large = true;
        return NO_OP;
    }
    for (int d = 0; d < OP_DEPS; d++)
        op.deps[d] = NO_OP;
    for (int i = 0, n = 0; i < waits->n; i++) {
        if (program->ops[stage->first_op + waits->ops[i]].stream == op.stream)
            continue;
        if (n == OP_DEPS)
            build->waits_lost = true;
        else
            op.deps[n++] = waits->ops[i];
    }
    program->ops = memory_grow(program->ops, &build->capacity, (size_t)program->n_ops + 1, sizeof *program->ops);
    program->ops[program->n_ops] = op;
    return program->n_ops++ - stage->first_op;
}
