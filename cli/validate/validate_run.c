/*
 * validate_run.c - predict a program, execute it, and compare operation by operation.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/table.h"
#include "cli/validate/validate_internal.h"
#include "model/base/memory.h"
#include "model/cost/kernel/machine.h"
#include "runtime/base/cores.h"
#include "runtime/base/parameters.h"
#include "runtime/run/executed_memory.h"
#include "sim/step/rank_alone.h"

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

static void predict_alone(struct validation *v)
{
    struct machine machine = machine_of(&v->setup->layout, &v->setup->setting);
    const struct copy_cost copy = {.base_s = v->copy_base_s, .rate = v->copy_rate}; /* runtime/comm/comm_alone.h */
    v->predicted_s = rank_alone_predict(&v->program, &machine, v->devices.alone, &copy, &v->predicted);
}

static enum status predict_shared(struct validation *v, struct diags *diags)
{
    struct machine machine = machine_of(&v->setup->layout, &v->setup->setting);
    struct core_span *cores = memory_new((size_t)v->program.n_ranks, sizeof *cores);
    struct shared_cores_prediction prediction;
    for (int r = 0; r < v->program.n_ranks; r++) {
        struct core_range range = cores_of_rank(r, v->program.n_ranks, v->devices.n_cores);
        cores[r] = (struct core_span){.first = range.first, .n = range.n};
    }
    enum status status = shared_cores_predict(&v->program, &machine, cores, v->waking_s, &prediction, &v->predicted, diags);
    free(cores);
    if (status == STATUS_OK) {
        v->predicted_s = prediction.step_s;
        v->predicted_waiting = prediction.waiting;
        memcpy(v->predicted_work_s, prediction.work_s, sizeof v->predicted_work_s);
    }
    return status;
}

static enum status predict(struct invocation *call, struct validation *v)
{
    bool alone = v->devices.alone >= 0;
    if (!alone && !shares_cores(v))
        return predict_all(call, v);
    enum status status = program_build(&v->setup->layout, &v->setup->setting, DETAIL_KERNEL, false, &v->program, &call->diags);
    if (status == STATUS_OK && alone)
        predict_alone(v);
    else if (status == STATUS_OK)
        status = predict_shared(v, &call->diags);
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
    info(call, 0, "numerics: comparing one step of %d rank%s with one rank on the CPU", v->program.n_ranks,
         v->program.n_ranks == 1 ? "" : "s");
    return devices_run(call, &v->devices, &v->program, &v->setup->setting, &options, many);
}

/* --- the comparison */

/* Whether what operations of a kind took is known without their spans, which hold more: see add_work. */
static bool is_known_work(const struct validation *v, const struct op *op, bool measured)
{
    return shares_cores(v) || (measured && op->kind == OP_COMPUTE);
}

/* `own`: see overlapped_pair_times; NULL: spans say it all. */
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

double validate_memory_of_all(const struct validation *v)
{
    bool on_gpu = v->devices.kind == DEVICE_CUDA;
    if (v->devices.alone >= 0)
        return executed_memory(&v->setup->layout, &v->setup->setting, on_gpu, v->devices.alone);
    return executed_memory_of_all(&v->setup->layout, &v->setup->setting, on_gpu);
}

static double predicted_memory(const struct validation *v)
{
    return executed_memory(&v->setup->layout, &v->setup->setting, v->devices.kind == DEVICE_CUDA, v->devices.alone);
}

static double predicted_host_memory(const struct validation *v)
{
    return executed_host_memory(&v->setup->layout, &v->setup->setting, v->devices.kind == DEVICE_CUDA, v->devices.alone);
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
    overlapped_pair_times(&v->program, &machine, 0, own);
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
        diag_warning(&call->diags, PLACE_NONE, "memory: %s predicted for the fullest rank, %s %s",
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
        info(call, 0, "executing %d step%s", options->steps, plural(options->steps));
        status = devices_run(call, &v->devices, &v->program, &v->setup->setting, options, &v->run);
    }
    if (status == STATUS_OK && comparable && v->devices.rank == 0)
        status = numerics_compare(&v->setup->layout, &v->setup->setting, v->devices.kind == DEVICE_CUDA, options, &many,
                                  &v->numerics, &call->diags);
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
