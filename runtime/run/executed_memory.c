/* executed_memory.c - the memory that ranks of the runtime need. */
#include "runtime/run/executed_memory.h"

#include <math.h>

#include "model/cost/memory/footprint.h"
#include "model/cost/work/host_memory.h"
#include "model/cost/work/precision_bytes.h"
#include "runtime/base/parameters.h"

/* Removes gathered weights and gradients from the footprint, since gathered_bytes counts them. What stays on the device is the
 * rank's share, or the part that the host does not have. */
static void stay_here(const struct layout *layout, const struct setting *setting, int stage, struct footprint *f)
{
    struct layout stays = *layout;
    struct footprint all;
    stays.offload = (struct offload){0};
    footprint_of_stage(&stays, setting, stage, &all);
    f->weights = all.weights * (1 - offload_share(&layout->offload, OFFLOAD_PARAMETERS));
    if (layout_scatters_gradients(layout)) {
        stays.zero = 3; /* of which the share alone is counted as gradients */
        footprint_of_stage(&stays, setting, stage, &all);
        f->gradients = all.gradients;
    }
    if (layout_offloads_gradients(layout))
        f->gradients = all.gradients * (1 - offload_share(&layout->offload, OFFLOAD_OPTIMIZER));
}

/* Memory of the update besides gradients and states. */
static double updates_bytes(const struct layout *layout, const struct setting *setting, int stage, double master)
{
    struct stage_load load = {0};
    bool lengths = setting->job->optimizer == OPTIMIZER_LAMB && !layout_offloads(layout, OFFLOAD_OPTIMIZER);
    double bytes = lengths ? master : 0;
    stage_load_fill(&load, layout, setting, stage);
    if (load.matrices.n)
        bytes = muon_executed_scratch_bytes(&load.matrices, layout, setting);
    stage_load_free(&load);
    return bytes;
}

/* Of a loss that is made with its product what no fused kernel needs: a piece's logits, and of each row the largest and the
 * target's; on a GPU the weights' gradient in fp32. */
static double pieces_bytes(const struct layout *layout, const struct setting *setting, size_t element)
{
    const struct transformer *m = setting->model;
    double words = (double)m->vocab / layout->tp, rows = (double)(layout->micro_batch * setting->job->seq_len / layout->cp);
    if (layout->features & FEATURE_BIT(CUT_LOSS))
        return (double)head_chunk_tokens(layout, setting) * words * (double)element + rows * 2 * sizeof(float);
    bool wide = layout->features & FEATURE_BIT(FUSED_LINEAR_LOSS) && element < sizeof(float);
    return wide ? words * (double)m->hidden * (1 + m->mtp_layers) * (double)(sizeof(float) - element) : 0;
}

/* Of all parameters that are updated, in fp32. */
static double master_bytes(const struct layout *layout, const struct setting *whole, int stage)
{
    struct job adam = *whole->job;
    struct setting setting = *whole;
    struct footprint f;
    adam.optimizer = adam.optimizer == OPTIMIZER_MUON ? OPTIMIZER_ADAM : adam.optimizer;
    setting.job = &adam;
    footprint_of_stage(layout, &setting, stage, &f);
    return f.optimizer * sizeof(float) / optimizer_state_bytes(&adam);
}

/* The runtime's memory differs from the footprint. It has no framework, and only the communication buffers of ZeRO and context
 * parallelism. On the CPU, gradients (make_executable) and activations have four bytes instead of two, and there are no master
 * weights. LAMB keeps its updates in a separate buffer until their lengths are known; frameworks overwrite gradients. The buffers
 * of Muon's owners, with a matrix in fp32, exist all the time. */
static double stage_memory(const struct layout *given, const struct setting *setting, bool on_gpu, int stage)
{
    struct footprint f;
    struct layout layout = *given;
    if (layout.zero == 2 && !layout_scatters_gradients(&layout))
        layout.zero = 1; /* gradients of a pipeline's stage stay whole here until the step ends */
    footprint_of_stage(&layout, setting, stage, &f);
    stay_here(&layout, setting, stage, &f);
    double master = master_bytes(&layout, setting, stage), optimizer = f.optimizer - master;
    double updates = updates_bytes(&layout, setting, stage, master) + partial_gradients_bytes(given, setting, stage);
    const size_t element = on_gpu ? 2 : sizeof(float);
    double gathered = gathered_bytes(given, setting, element) +
                      (stage == layout.pp - 1 ? pieces_bytes(&layout, setting, element) : 0) +
                      footprint_executed_context_bytes(given, setting, (double)element);
    if (on_gpu)
        return f.weights + f.gradients + f.optimizer + updates + f.activations + gathered;
    double weights = precision_is_narrow(setting->job->precision) ? f.weights * 5 / 3 : f.weights; /* 4 and 1, not 2 and 1 */
    return weights + 2 * f.gradients + optimizer + updates + 2 * f.activations + gathered;
}

/* Host memory of the fullest rank. On a CPU, which computes in fp32, there is no copy of weights besides the master weights.
 * LAMB's updates of a unit are kept with its states until their lengths are known. */
static double stage_host_memory(const struct layout *layout, const struct setting *setting, bool on_gpu, int stage)
{
    const struct job *job = setting->job;
    struct layout stays = *layout;
    const double states = offload_share(&layout->offload, OFFLOAD_OPTIMIZER);
    struct footprint f, without;
    stays.offload = (struct offload){0};
    footprint_of_stage(layout, setting, stage, &f);
    footprint_of_stage(&stays, setting, stage, &without);
    double updated = without.optimizer / optimizer_state_bytes(job) * states, each = host_parameter_bytes(job);
    double activations = f.host - updated * each, here = on_gpu ? each : each - host_weight_bytes(job);
    double lengths = states > 0 && job->optimizer == OPTIMIZER_LAMB ? largest_owned_bytes(layout, setting) : 0;
    return updated * here + lengths + (on_gpu ? 1 : 2) * activations;
}

/* --- of a job, of a rank */

double executed_memory_of_all(const struct layout *layout, const struct setting *setting, bool on_gpu)
{
    double sum = 0;
    for (int stage = 0; stage < layout->pp; stage++)
        sum += stage_memory(layout, setting, on_gpu, stage) * setting->gpus / layout->pp;
    return sum;
}

/* Of the rank `only`, or of the fullest stage where that is -1. */
static double fullest(const struct layout *layout, const struct setting *setting, bool on_gpu, int only,
                      double (*of_stage)(const struct layout *, const struct setting *, bool, int))
{
    double most = 0;
    if (only >= 0)
        return of_stage(layout, setting, on_gpu, layout_coordinates(layout, only).pp);
    for (int stage = 0; stage < layout->pp; stage++)
        most = fmax(most, of_stage(layout, setting, on_gpu, stage));
    return most;
}

double executed_memory(const struct layout *layout, const struct setting *setting, bool on_gpu, int rank)
{
    return fullest(layout, setting, on_gpu, rank, stage_memory);
}

double executed_host_memory(const struct layout *layout, const struct setting *setting, bool on_gpu, int rank)
{
    return fullest(layout, setting, on_gpu, rank, stage_host_memory);
}
