/*
 * step_executor_accounts.c - sums up the executed operations of all ranks to the breakdown of the step.
 */
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/step/step_executor_internal.h"

/* Adds the work on the compute stream, which is the same for all ranks of a script. */
static void breakdown_add_work(struct executor *x, const struct step_costs *costs)
{
    const struct program *program = x->program;
    struct class_nanos *scripts = memory_new((size_t)program->n_scripts, sizeof *scripts);

    for (int32_t s = 0; s < program->n_scripts; s++) {
        const struct step_script *script = &x->tables->scripts[s];
        for (uint32_t i = script->first[STREAM_COMPUTE]; i != NO_OP; i = script->ops[i].next) {
            const struct op *op = &script->source[i];
            if (op->kind != OP_COMPUTE)
                continue;
            if (op->work < 0 || costs->works == NULL) {
                scripts[s].ns[op->class] += script->ops[i].duration;
                continue;
            }
            nanos crowded = script->ops[i].duration;
            for (int c = 0; c < N_WORK_CLASSES; c++) {
                scripts[s].ns[c] += costs->works[op->work].ns[c];
                crowded -= costs->works[op->work].ns[c];
            }
            scripts[s].ns[CLASS_DP_COMM] += crowded;
        }
    }
    for (int32_t r = 0; r < program->n_ranks; r++) {
        struct class_nanos *by = actor_account(x, &x->actors[r]);
        for (int c = 0; c < N_WORK_CLASSES; c++)
            by->ns[c] += scripts[program->ranks[r].script].ns[c];
    }
    free(scripts);
}

/* Adds the time between a rank's last computation and the end of the step: its own exchanges, then the wait for the slowest. */
static void breakdown_add_tail(struct executor *x, int32_t rank)
{
    const struct actor *actor = &x->actors[rank];
    const struct step_script *script = &x->tables->scripts[x->program->ranks[rank].script];
    int last = actor_last_stream(actor);

    if (last != STREAM_COMPUTE)
        gap_attribute(actor->ops, actor->times, script->last[last], actor->free_at[STREAM_COMPUTE], actor_account(x, actor));
    actor_account(x, actor)->ns[CLASS_BUBBLE] += x->out->end - actor_span(actor);
}

/* Sums accounts to stages. */
static void breakdown_collect(struct executor *x)
{
    struct breakdown *breakdown = &x->out->breakdown;

    for (int32_t r = 0; r < x->program->n_ranks; r++) {
        struct stage_breakdown *stage = &breakdown->stages[executor_stage(x, r)];
        int64_t count = x->fold != NULL ? x->fold->rank_count[r] : 1;
        stage->ranks += count;
        for (int c = 0; x->fold != NULL && c < N_WORK_CLASSES; c++)
            stage->by_class.ns[c] += count * x->accounts[r].ns[c];
    }
    for (int s = 0; x->fold == NULL && s < breakdown->n_stages; s++)
        breakdown->stages[s].by_class = x->accounts[s];
}

void breakdown_finish(struct executor *x, const struct step_costs *costs)
{
    x->out->breakdown.step = x->out->end;
    breakdown_add_work(x, costs);
    for (int32_t r = 0; r < x->program->n_ranks; r++)
        breakdown_add_tail(x, r);
    breakdown_collect(x);
}
