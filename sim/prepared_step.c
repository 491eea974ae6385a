#include "sim/prepared_step.h"

#include <stdlib.h>

#include "sim/network_analytic.h"
#include "sim/step_executor.h"

struct prepared_step {
    struct program program;
    struct step_tables tables;
    struct op *kinds; /* operations that cost the same are one here; NULL: what is around it changes what one costs */
    uint32_t n_kinds;
    uint32_t *kind; /* [program.n_ops] */
};

/* ---- kinds of operations */

/* An operation without work is a transfer, or takes no time. */
static bool cost_alike(const struct op *a, const struct op *b)
{
    if (a->work >= 0 || b->work >= 0)
        return a->work == b->work;
    return a->kind == b->kind && a->collective == b->collective && a->role == b->role && !(a->bytes < b->bytes) &&
           !(a->bytes > b->bytes);
}

/* There are few: works, and transfers by their bytes. */
static void kinds_find(struct prepared_step *step)
{
    size_t capacity = 0;
    uint32_t *of_work = memory_new((size_t)step->program.works.n_items, sizeof *of_work); /* + 1; 0: none yet */

    step->kind = memory_new(step->program.n_ops, sizeof *step->kind);
    for (uint32_t i = 0; i < step->program.n_ops; i++) {
        const struct op *op = &step->program.ops[i];
        uint32_t k = op->work >= 0 ? of_work[op->work] - 1 : 0; /* none: past all */
        while (k < step->n_kinds && !cost_alike(&step->kinds[k], op))
            k++;
        if (k >= step->n_kinds) {
            k = step->n_kinds++;
            step->kinds = memory_grow(step->kinds, &capacity, step->n_kinds, sizeof *step->kinds);
            step->kinds[k] = *op;
        }
        if (op->work >= 0)
            of_work[op->work] = k + 1;
        step->kind[i] = k;
    }
    free(of_work);
}

/* ---- the step */

enum status prepared_step_create(const struct layout *layout, const struct setting *setting, struct prepared_step **step,
                                 struct diags *diags)
{
    struct prepared_step made = {.kinds = NULL};
    enum status status = program_build(layout, setting, DETAIL_CHUNK, true, &made.program, diags);

    if (status != STATUS_OK)
        return status;
    status = step_tables_create(&made.program, NULL, &made.tables, diags);
    if (status != STATUS_OK) {
        program_free(&made.program);
        return status;
    }
    step_tables_slots(&made.tables, &made.program);
    if (layout->pp > 1) /* otherwise exchanges beside computations make those longer (step_costs.h) */
        kinds_find(&made);
    *step = memory_new(1, sizeof **step);
    **step = made;
    return STATUS_OK;
}

void prepared_step_destroy(struct prepared_step *step)
{
    if (step == NULL)
        return;
    step_tables_free(&step->tables);
    program_free(&step->program);
    free(step->kinds);
    free(step->kind);
    free(step);
}

uint32_t prepared_step_ops(const struct prepared_step *step)
{
    return step->program.n_ops;
}

enum status prepared_step_time(struct prepared_step *step, const struct setting *setting, double *seconds, struct diags *diags)
{
    struct machine machine = machine_of(&step->program.layout, setting);
    struct network network = network_analytic(&machine);
    struct program kinds = step->program;
    struct step_costs costs;
    struct execution execution;

    if (step->kinds != NULL) {
        kinds.ops = step->kinds;
        kinds.n_ops = step->n_kinds;
        kinds.n_scripts = 0;
    }
    step_costs_create(&kinds, &machine, &network, &costs);
    step_tables_time(&step->tables, &step->program, costs.ops, step->kind);
    step_costs_free(&costs);
    enum status status = program_execute_prepared(&step->program, &step->tables, &execution, diags);
    if (status != STATUS_OK)
        return status;
    *seconds = (double)execution.end / (double)NANOS_PER_SECOND;
    execution_free(&execution);
    return STATUS_OK;
}
