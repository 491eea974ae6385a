#include "sim/step/step.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "model/base/memory.h"
#include "sim/network/fold.h"
#include "sim/network/network_analytic.h"
#include "sim/step/dp_overlap_contention.h"
#include "sim/step/step_executor.h"

static void record_ranks(const struct program *whole, const struct execution *execution, const struct step_options *options,
                         struct timeline *timeline)
{
    if (options->n_trace_ranks < 0)
        for (int r = 0; r < whole->n_ranks; r++)
            execution_record(execution, r, timeline);
    for (int i = 0; i < options->n_trace_ranks; i++)
        execution_record(execution, options->trace_ranks[i], timeline);
    if (execution->end > timeline->end)
        timeline->end = execution->end; /* ranks that end later are not recorded */
    timeline_close(timeline);
}

static bool trace_ranks_exist(const struct step_options *options, const struct program *program, struct diags *diags)
{
    for (int i = 0; i < options->n_trace_ranks; i++)
        if (options->trace_ranks[i] < 0 || options->trace_ranks[i] >= program->n_ranks) {
            diag_error(diags, PLACE_NONE, "there is no rank %d to trace; ranks are 0 to %d%s", options->trace_ranks[i],
                       program->n_ranks - 1, options->all_ranks ? "" : " (one per stage when ranks are folded)");
            return false;
        }
    return true;
}

/*
 * Utilisation. MFU divides the FLOPs the model needs by what the GPUs could have done at the dense peak of the job's precision;
 * HFU counts the FLOPs executed: recomputation, and what attention kernels repeat. Fused attention skips masked pairs and its
 * works count so; the full convention counts the square, s * s instead of s * (s + 1) / 2 pairs.
 */
static void result_utilise(struct step_result *result, const struct layout *layout, const struct setting *setting,
                           struct executed_flops executed)
{
    double s = (double)setting->job->seq_len;
    double available = setting->cluster->gpu.peak_flops[setting->job->precision] * setting->gpus * result->step_time_s;
    double full = model_flops_per_step(setting, layout->features, FLOPS_FULL);
    double causal = model_flops_per_step(setting, layout->features, FLOPS_CAUSAL);

    if (available <= 0)
        return;
    result->mfu = full / available;
    result->mfu_causal = causal / available;
    result->mfu_masked = model_flops_per_step(setting, layout->features, FLOPS_MASKED) / available;
    result->hfu_causal = executed.total / available;
    result->hfu = (executed.total + executed.causal * (2 * s / (s + 1) - 1)) / available;
}

static void result_fill(struct step_result *result, const struct layout *layout, const struct setting *setting,
                        const struct execution *execution, struct executed_flops executed)
{
    const struct job *job = setting->job;

    result->step = execution->end;
    result->step_time_s = (double)execution->end / (double)NANOS_PER_SECOND;
    result->breakdown = breakdown_mean(&execution->breakdown, -1);
    result->events = execution->events;
    result->actors = execution->program->n_ranks;
    if (execution->end > 0)
        result->tokens_per_s = (double)job->global_batch * (double)job->seq_len / result->step_time_s;
    result_utilise(result, layout, setting, executed);
    footprint_peak(layout, setting, &result->memory, &result->memory_stage);
}

/* Gives the stages' breakdown to the caller instead of freeing it. */
static void stages_move(struct execution *execution, struct breakdown *stages)
{
    *stages = execution->breakdown;
    execution->breakdown = (struct breakdown){0};
}

/* What operations lose to replicas' exchanges beside them. Of transfers on a fabric the fabric says it. */
static enum status costs_beside(const struct program *program, const struct machine *machine, bool analytic,
                                struct step_costs *costs, struct diags *diags)
{
    if (!has_dp_overlap_contention(machine->layout))
        return STATUS_OK;
    nanos *alone = memory_new(program->n_ops, sizeof *alone);
    memcpy(alone, costs->ops, program->n_ops * sizeof *alone);
    enum status status = dp_overlap_contention_time(program, machine, costs->works, costs->ops, diags);
    for (uint32_t i = 0; i < program->n_ops && !analytic; i++)
        if (program->ops[i].kind != OP_COMPUTE)
            costs->ops[i] = alone[i];
    free(alone);
    return status;
}

static enum status program_run(const struct layout *layout, const struct setting *setting, const struct step_options *options,
                               const struct program *program, struct step_result *result, struct timeline *timeline,
                               struct diags *diags)
{
    struct machine machine = machine_of(layout, setting);
    struct network network = network_analytic(&machine);
    struct network_flow *flow = NULL;
    struct step_costs costs;
    struct execution execution;

    if (!trace_ranks_exist(options, program, diags))
        return STATUS_BAD_INPUT;
    enum status status = STATUS_OK;
    if (options->flow != NULL)
        status = network_flow_create(&machine, program, options->flow, &flow, diags);
    if (status != STATUS_OK)
        return status;
    if (flow != NULL)
        network = network_flow_table(flow);
    const struct fold *fold = flow != NULL && options->fold_flow ? network_flow_fold(flow) : NULL;
    unsigned how = (options->time_order ? EXECUTE_TIME_ORDER : 0) | (timeline == NULL ? EXECUTE_TOTALS : 0);
    step_costs_create(program, &machine, &network, &costs);
    status = costs_beside(program, &machine, flow == NULL, &costs, diags);
    if (status == STATUS_OK)
        status = fold != NULL ? program_execute_folded(fold, &costs, &network, options->watch, &execution, diags)
                              : program_execute(program, &costs, &network, how, options->watch, &execution, diags);
    bool executed = status == STATUS_OK;
    enum status carried = flow != NULL ? network_flow_status(flow, diags) : STATUS_OK;
    if (executed)
        status = carried;
    if (status == STATUS_OK) {
        double stands_for = (double)setting->gpus / program->n_ranks;
        result_fill(result, layout, setting, &execution, step_costs_flops(program, &costs, stands_for));
        if (timeline != NULL)
            record_ranks(program, &execution, options, timeline);
        if (options->stages != NULL)
            stages_move(&execution, options->stages);
        if (flow != NULL && options->seen != NULL)
            options->seen(options->seen_context, flow, result);
    }
    if (executed)
        execution_free(&execution);
    network_flow_destroy(flow);
    step_costs_free(&costs);
    return status;
}

bool step_is_long(const struct layout *layout, const struct job *job)
{
    const int64_t passes_max = 1 << 22;
    return layout_micro_batches(layout, job) > passes_max / ((int64_t)layout->pp * layout->vpp);
}

enum status step_simulate(const struct layout *layout, const struct setting *setting, const struct step_options *options,
                          struct step_result *result, struct timeline *timeline, struct program *program, struct diags *diags)
{
    double began = clock_seconds();
    struct program built;
    struct step_result out = {0};
    struct timeline recorded = {0};
    enum status status = program_build(layout, setting, options->detail, !options->all_ranks, &built, diags);

    if (status != STATUS_OK)
        return status;
    if (options->verify)
        status = program_verify(&built, diags);
    if (status == STATUS_OK)
        status = program_run(layout, setting, options, &built, &out, timeline != NULL ? &recorded : NULL, diags);
    if (status == STATUS_OK) {
        out.seconds = clock_seconds() - began;
        *result = out;
        if (timeline != NULL)
            *timeline = recorded;
    }
    if (status == STATUS_OK && program != NULL)
        *program = built;
    else
        program_free(&built);
    return status;
}
