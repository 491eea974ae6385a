/* validate_run.c - predict a program, execute it, compare operation by operation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/table.h"
#include "cli/validate/validating.h"
#include "model/base/memory.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/work/host_memory.h"
#include "model/cost/work/precision_bytes.h"
#include "runtime/base/parameters.h"

enum { COMPARED_PARAMETERS_MAX = 1 << 26 }; /* what one rank of the CPU computes with in seconds */

static const struct op *op_of(const struct program *program, const struct span *span)
{
    return &program->ops[program->scripts[program->ranks[span->rank].script].first_op + span->op];
}

/* --- the prediction */

static enum status predict_all(struct invocation *call, struct validation *v)
{
    struct breakdown stages = {0};
    struct step_result step;
    struct step_options how = {
        .all_ranks = true, .detail = DETAIL_KERNEL, .n_trace_ranks = -1, .verify = true, .stages = &stages};
    enum status status =
        step_simulate(&v->setup->layout, &v->setup->setting, &how, &step, &v->predicted, &v->program, &call->diags);
    if (status == STATUS_OK) {
        v->predicted_s = step.step_time_s;
        breakdown_free(&stages);
    }
    return status;
}

/* Ranks on GPUs have one each, or were probed as they share it. On CPUs a rank's streams are threads: its exchanges take a core
 * from its computations even where every rank has one. */
static bool shares_cores(const struct validation *v)
{
    return v->devices.kind == DEVICE_CPU && v->devices.n_local == v->devices.n_processes;
}

static enum status predict(struct invocation *call, struct validation *v)
{
    bool alone = v->devices.alone >= 0;
    if (!alone && !shares_cores(v))
        return predict_all(call, v);
    enum status status = program_build(&v->setup->layout, &v->setup->setting, DETAIL_KERNEL, false, &v->program, &call->diags);
    if (status == STATUS_OK && alone)
        validate_predict_alone(v);
    else if (status == STATUS_OK)
        status = validate_predict_shared(v, v->devices.n_cores, &call->diags);
    return status;
}

/* --- numerics: one step of all ranks */

/* Whether a reference can be had, and makes sense. */
static bool is_comparable(const struct validation *v, const struct thread_run_options *options)
{
    return !options->injection && v->devices.alone < 0 && model_map_of(&v->setup->setting).total <= COMPARED_PARAMETERS_MAX;
}

/* One step of all ranks, with gradients; what rank 0 compares it with is executed when the others have gone. */
static enum status run_compared(struct invocation *call, const struct thread_run_options *whole, struct validation *v,
                                struct thread_run *many)
{
    struct thread_run_options options = *whole;
    options.steps = 1;
    options.gradients = true;
    talk(call, 0, "numerics: one step of %d rank%s against one step of one rank on the CPU", v->program.n_ranks,
         v->program.n_ranks == 1 ? "" : "s");
    return devices_run(call, &v->devices, &v->program, &v->setup->setting, &options, many);
}

/* --- the comparison */

/* Whether what operations of a kind took is known without their spans, which hold more: see add_work. */
static bool is_known_work(const struct validation *v, const struct op *op, bool measured)
{
    return shares_cores(v) || (measured && op->kind == OP_COMPUTE);
}

/* `own`: see validate_pair_times; NULL: spans say it all. */
static void add_spans(const struct program *program, const struct timeline *timeline, const nanos *own, bool measured,
                      struct validation *v)
{
    for (size_t i = 0; i < timeline->n_spans; i++) {
        const struct span *span = &timeline->spans[i];
        const struct op *op = op_of(program, span);
        double seconds = (double)(span->end - span->start) * 1e-9, end = (double)span->end * 1e-9;
        struct class_comparison *class = &v->classes[op->class];
        struct rank_comparison *rank = &v->ranks[span->rank];
        double *last = measured ? &rank->measured_s : &rank->predicted_s;
        nanos alone = own ? own[op - program->ops] : -1;
        double taken = alone < 0 ? seconds : (double)alone * 1e-9;
        if (!is_known_work(v, op, measured))
            *(measured ? &class->measured_s : &class->predicted_s) += taken / validation_ranks(v);
        if (measured)
            *(op->kind == OP_COMPUTE ? &v->measured_waiting.computations : &v->measured_waiting.exchanges) += seconds;
        class->operations += measured && op->kind != OP_JOIN;
        *last = fmax(*last, end);
        if (op->stream == STREAM_COMPUTE)
            *(measured ? &rank->measured_busy_s : &rank->predicted_busy_s) += seconds;
    }
}

/* What comes and goes is counted with its tensors (gathered_bytes): of gradients and weights that the host has the rest stays, of
 * those that are scattered the rank's share. */
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

/* What stands beside gradients and states for the update. */
static double updates_bytes(const struct validation *v, const struct layout *layout, int stage, double master)
{
    const struct setting *setting = &v->setup->setting;
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
static double master_bytes(const struct validation *v, const struct layout *layout, int stage)
{
    struct job adam = *v->setup->setting.job;
    struct setting setting = v->setup->setting;
    struct footprint f;
    adam.optimizer = adam.optimizer == OPTIMIZER_MUON ? OPTIMIZER_ADAM : adam.optimizer;
    setting.job = &adam;
    footprint_of_stage(layout, &setting, stage, &f);
    return f.optimizer * sizeof(float) / optimizer_state_bytes(&adam);
}

/* What the runtime holds: nothing of a framework, no communication buffers but those of ZeRO and of context parallelism. In
 * fp32 on the CPU gradients (make_executable) and activations have four bytes instead of the two counted, and there are no master
 * weights. LAMB's updates stand in a buffer of their own until their lengths are known: gradients stay as they are, where
 * frameworks write over them; what Muon's owners need is there all the time, too, with a matrix in fp32. */
static double stage_memory(const struct validation *v, int stage)
{
    struct footprint f;
    struct layout layout = v->setup->layout;
    if (layout.zero == 2 && !layout_scatters_gradients(&layout))
        layout.zero = 1; /* gradients of a pipeline's stage stay whole here until the step ends */
    footprint_of_stage(&layout, &v->setup->setting, stage, &f);
    stay_here(&layout, &v->setup->setting, stage, &f);
    const struct job *job = v->setup->setting.job;
    double master = master_bytes(v, &layout, stage), optimizer = f.optimizer - master;
    double updates =
        updates_bytes(v, &layout, stage, master) + partial_gradients_bytes(&v->setup->layout, &v->setup->setting, stage);
    bool cuda = v->devices.kind == DEVICE_CUDA;
    const size_t element = cuda ? 2 : sizeof(float);
    double gathered = gathered_bytes(&v->setup->layout, &v->setup->setting, element) +
                      (stage == layout.pp - 1 ? pieces_bytes(&layout, &v->setup->setting, element) : 0) +
                      footprint_executed_context_bytes(&v->setup->layout, &v->setup->setting, (double)element);
    if (cuda)
        return f.weights + f.gradients + f.optimizer + updates + f.activations + gathered;
    double weights = precision_is_narrow(job->precision) ? f.weights * 5 / 3 : f.weights; /* 4 and 1, not 2 and 1 */
    return weights + 2 * f.gradients + optimizer + updates + 2 * f.activations + gathered;
}

/* What the host has of the fullest rank: on a CPU, which computes in fp32, no copy of weights beside the master. LAMB's updates
 * of a unit stand beside its states until their lengths are known. */
static double host_memory(const struct validation *v, int stage)
{
    const struct layout *layout = &v->setup->layout;
    const struct setting *setting = &v->setup->setting;
    const struct job *job = setting->job;
    struct layout stays = *layout;
    const double states = offload_share(&layout->offload, OFFLOAD_OPTIMIZER);
    const bool cuda = v->devices.kind == DEVICE_CUDA;
    struct footprint f, without;
    stays.offload = (struct offload){0};
    footprint_of_stage(layout, setting, stage, &f);
    footprint_of_stage(&stays, setting, stage, &without);
    double updated = without.optimizer / optimizer_state_bytes(job) * states, each = host_parameter_bytes(job);
    double activations = f.host - updated * each, here = cuda ? each : each - host_weight_bytes(job);
    double lengths = states > 0 && job->optimizer == OPTIMIZER_LAMB ? largest_owned_bytes(layout, setting) : 0;
    return updated * here + lengths + (cuda ? 1 : 2) * activations;
}

double validate_memory_of_all(const struct validation *v)
{
    const struct layout *layout = &v->setup->layout;
    double sum = 0;
    if (v->devices.alone >= 0)
        return stage_memory(v, layout_coordinates(layout, v->devices.alone).pp);
    for (int stage = 0; stage < layout->pp; stage++)
        sum += stage_memory(v, stage) * v->setup->setting.gpus / layout->pp;
    return sum;
}

static double fullest(const struct validation *v, double (*of_stage)(const struct validation *v, int stage))
{
    double most = 0;
    if (v->devices.alone >= 0)
        return of_stage(v, layout_coordinates(&v->setup->layout, v->devices.alone).pp);
    for (int stage = 0; stage < v->setup->layout.pp; stage++)
        most = fmax(most, of_stage(v, stage));
    return most;
}

static double predicted_memory(const struct validation *v)
{
    return fullest(v, stage_memory);
}

static double predicted_host_memory(const struct validation *v)
{
    return fullest(v, host_memory);
}

/* What operations had a core for, and what is left of their spans. Where that is not known of exchanges, what their pieces waited
 * is taken away from their spans. */
static void add_work(struct validation *v)
{
    const struct thread_run *run = &v->run;
    for (int c = 0; c < N_WORK_CLASSES; c++) {
        double exchanged = shares_cores(v) ? run->exchanged[c] : -run->rested[c];
        v->classes[c].predicted_s += v->predicted_work_s[c] / validation_ranks(v);
        v->classes[c].measured_s += (run->computed[c] + exchanged) / validation_ranks(v);
        v->measured_waiting.computations -= run->computed[c];
        v->measured_waiting.exchanges -= run->exchanged[c];
    }
}

static void compare(struct validation *v)
{
    v->ranks = memory_new((size_t)v->program.n_ranks, sizeof *v->ranks);
    struct machine machine = machine_of(&v->setup->layout, &v->setup->setting);
    nanos *own = memory_new(v->program.n_ops, sizeof *own);
    v->slices = work_slices(&machine, &v->program.works);
    validate_pair_times(v, 0, own);
    add_spans(&v->program, &v->predicted, v->devices.alone < 0 ? own : NULL, false, v);
    add_spans(&v->program, &v->run.timeline, NULL, true, v);
    free(own);
    add_work(v);
    v->measured_s = (double)v->run.steps[v->run.timeline_step].duration * 1e-9;
    v->error_pct = 100 * (v->predicted_s - v->measured_s) / v->measured_s;
    v->memory_predicted = predicted_memory(v);
    v->host_predicted = predicted_host_memory(v);
    for (int i = 0; i < v->run.n_ranks; i++) {
        v->memory_measured = fmax(v->memory_measured, (double)v->run.memory_peak[i]);
        v->host_measured = fmax(v->host_measured, (double)v->run.host_peak[i]);
    }
}

/* What a rank may have: what was said, or what its GPU has. */
static double memory_limit(const struct thread_run_options *options, const struct validation *v)
{
    if (options->memory_limit || v->devices.kind == DEVICE_CPU)
        return (double)options->memory_limit;
    return (double)v->devices.facts.memory_bytes;
}

static void note_memory(struct invocation *call, const struct thread_run_options *options, const struct validation *v)
{
    char wanted[32], limit[32];
    double predicted = predicted_memory(v), most = memory_limit(options, v);
    if (most > 0 && predicted > most)
        diag_warning(&call->diags, (struct place){0}, "memory: %s predicted for the fullest rank, %s %s",
                     quantity_format(predicted, DIM_BYTES, wanted, sizeof wanted),
                     options->memory_limit ? "the limit is" : "the GPU has",
                     quantity_format(most, DIM_BYTES, limit, sizeof limit));
}

static enum status execute(struct invocation *call, const struct thread_run_options *options, struct validation *v)
{
    struct thread_run many = {0};
    enum status status = STATUS_OK;
    bool comparable = is_comparable(v, options);
    if (comparable)
        status = run_compared(call, options, v, &many);
    if (status == STATUS_OK) {
        talk(call, 0, "executing %d step%s", options->steps, plural(options->steps));
        status = devices_run(call, &v->devices, &v->program, &v->setup->setting, options, &v->run);
    }
    if (status == STATUS_OK && comparable && v->devices.rank == 0)
        status = validate_numerics(call, options, &many, v);
    thread_run_free(&many);
    return status;
}

enum status validate_run(struct invocation *call, const struct thread_run_options *options, struct validation *v)
{
    enum status status = predict(call, v);
    if (status == STATUS_OK)
        note_memory(call, options, v);
    if (status == STATUS_OK)
        status = execute(call, options, v);
    if (status == STATUS_OK)
        compare(v);
    return status;
}

void validation_free(struct validation *v)
{
    program_free(&v->program);
    timeline_free(&v->predicted);
    thread_run_free(&v->run);
    free(v->ranks);
    devices_close(&v->devices);
}
