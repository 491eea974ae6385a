#include "sim/step/op_kinds.h"

#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/step/dp_overlap_contention.h"

/* An operation without work is a transfer, or has no duration. */
static bool cost_alike(const struct op *a, const struct op *b)
{
    if (a->work >= 0 || b->work >= 0)
        return a->work == b->work;
    return a->kind == b->kind && a->collective == b->collective && a->role == b->role && !(a->bytes < b->bytes) &&
           !(a->bytes > b->bytes);
}

void op_kinds_find(const struct program *program, struct op_kinds *kinds)
{
    size_t capacity = 0;
    *kinds = (struct op_kinds){.n = program->n_ops};
    if (program->layout.pp <= 1)
        return;
    uint32_t *of_work = memory_new((size_t)program->works.n_items, sizeof *of_work); /* + 1; 0: none yet */
    kinds->n = 0;
    kinds->kind = memory_new(program->n_ops, sizeof *kinds->kind);
    for (uint32_t i = 0; i < program->n_ops; i++) {
        const struct op *op = &program->ops[i];
        uint32_t k = op->work >= 0 ? of_work[op->work] - 1 : 0; /* none: past all */
        while (k < kinds->n && !cost_alike(&kinds->ops[k], op))
            k++;
        if (k >= kinds->n) {
            k = kinds->n++;
            kinds->ops = memory_grow(kinds->ops, &capacity, kinds->n, sizeof *kinds->ops);
            kinds->ops[k] = *op;
        }
        if (op->work >= 0)
            of_work[op->work] = k + 1;
        kinds->kind[i] = k;
    }
    free(of_work);
}

void op_kinds_free(struct op_kinds *kinds)
{
    free(kinds->ops);
    free(kinds->kind);
    *kinds = (struct op_kinds){0};
}

void op_kinds_cost(const struct op_kinds *kinds, const struct program *program, const struct machine *machine,
                   const struct network *network, struct step_costs *costs)
{
    struct program one_of_each = *program;
    if (kinds->ops != NULL) {
        one_of_each.ops = kinds->ops;
        one_of_each.n_ops = kinds->n;
        one_of_each.n_scripts = 0;
    }
    step_costs_create(&one_of_each, machine, network, costs);
}

static nanos alone(const struct op_kinds *kinds, const struct step_costs *costs, uint32_t i)
{
    return costs->ops[kinds->kind != NULL ? kinds->kind[i] : i];
}

enum status op_kinds_time(const struct op_kinds *kinds, const struct program *program, const struct machine *machine,
                          const struct step_costs *costs, struct step_tables *tables, nanos *lost, struct diags *diags)
{
    if (!has_dp_overlap_contention(machine->layout))
        return step_tables_time(tables, program, costs->ops, kinds->kind, diags);
    nanos *ops = memory_new(program->n_ops, sizeof *ops);
    for (uint32_t i = 0; i < program->n_ops; i++)
        ops[i] = alone(kinds, costs, i);
    enum status status = dp_overlap_contention_time(program, machine, costs->works, ops, diags);
    for (uint32_t i = 0; i < program->n_ops && lost != NULL; i++)
        lost[i] = ops[i] - alone(kinds, costs, i);
    if (status == STATUS_OK)
        status = step_tables_time(tables, program, ops, NULL, diags);
    free(ops);
    return status;
}

enum status op_kinds_time_losing(const struct op_kinds *kinds, const struct program *program, const struct step_costs *costs,
                                 struct step_tables *tables, const nanos *lost, struct diags *diags)
{
    nanos *ops = memory_new(program->n_ops, sizeof *ops);
    for (uint32_t i = 0; i < program->n_ops; i++)
        ops[i] = alone(kinds, costs, i) + lost[i];
    enum status status = step_tables_time(tables, program, ops, NULL, diags);
    free(ops);
    return status;
}
