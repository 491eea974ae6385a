#include "sim/step/prepared_step.h"

#include <stdlib.h>

#include "sim/network/network_analytic.h"
#include "sim/step/dp_overlap_contention.h"
#include "sim/step/op_kinds.h"
#include "sim/step/step_executor.h"

struct prepared_step {
    struct program program;
    struct step_tables tables;
    struct op_kinds kinds;
    nanos *lost; /* [program.n_ops] time lost to replicas' exchanges at the last timing; NULL: no such exchanges */
    bool timed;
};

enum status prepared_step_create(const struct layout *layout, const struct setting *setting, struct prepared_step **step,
                                 struct diags *diags)
{
    struct prepared_step made = {.kinds = {.n = 0}};
    enum status status = program_build(layout, setting, DETAIL_CHUNK, true, &made.program, diags);

    if (status != STATUS_OK)
        return status;
    status = step_tables_create(&made.program, NULL, &made.tables, diags);
    if (status != STATUS_OK) {
        program_free(&made.program);
        return status;
    }
    step_tables_slots(&made.tables, &made.program);
    op_kinds_find(&made.program, &made.kinds);
    if (has_dp_overlap_contention(layout))
        made.lost = memory_new(made.program.n_ops, sizeof *made.lost);
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
    op_kinds_free(&step->kinds);
    free(step->lost);
    free(step);
}

uint32_t prepared_step_ops(const struct prepared_step *step)
{
    return step->program.n_ops;
}

bool prepared_step_loses(const struct prepared_step *step)
{
    return step->lost != NULL;
}

static enum status execute(const struct prepared_step *step, double *seconds, struct diags *diags)
{
    struct execution execution;
    enum status status = program_execute_prepared(&step->program, &step->tables, NULL, EXECUTE_TOTALS, &execution, diags);
    if (status != STATUS_OK)
        return status;
    *seconds = (double)execution.end / (double)NANOS_PER_SECOND;
    execution_free(&execution);
    return STATUS_OK;
}

static enum status time_step(struct prepared_step *step, const struct setting *setting, bool near, double *seconds,
                             struct diags *diags)
{
    struct machine machine = machine_of(&step->program.layout, setting);
    struct network network = network_analytic(&machine);
    struct step_costs costs;
    enum status status;

    op_kinds_cost(&step->kinds, &step->program, &machine, &network, &costs);
    if (near && step->lost != NULL && step->timed)
        status = op_kinds_time_losing(&step->kinds, &step->program, &costs, &step->tables, step->lost, diags);
    else
        status = op_kinds_time(&step->kinds, &step->program, &machine, &costs, &step->tables, step->lost, diags);
    step_costs_free(&costs);
    step->timed |= status == STATUS_OK;
    return status == STATUS_OK ? execute(step, seconds, diags) : status;
}

enum status prepared_step_time(struct prepared_step *step, const struct setting *setting, double *seconds, struct diags *diags)
{
    return time_step(step, setting, false, seconds, diags);
}

enum status prepared_step_time_near(struct prepared_step *step, const struct setting *setting, double *seconds,
                                    struct diags *diags)
{
    return time_step(step, setting, true, seconds, diags);
}
