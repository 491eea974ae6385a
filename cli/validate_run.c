/* validate_run.c - predict a program, execute it, compare operation by operation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/validating.h"
#include "model/base/memory.h"

static const double NUMERIC_TOLERANCE = 1e-4; /* fp32, sums in other orders */

static const struct op *op_of(const struct program *program, const struct span *span)
{
    return &program->ops[program->scripts[program->ranks[span->rank].script].first_op + span->op];
}

/* --- the prediction */

static enum status predict(struct invocation *call, struct validation *v)
{
    struct breakdown stages = {0};
    struct step_options how = {
        .all_ranks = true, .detail = DETAIL_KERNEL, .n_trace_ranks = -1, .verify = true, .stages = &stages};
    enum status status =
        step_simulate(&v->setup->layout, &v->setup->setting, &how, &v->step, &v->predicted, &v->program, &call->diags);
    if (status == STATUS_OK)
        breakdown_free(&stages);
    return status;
}

/* --- numerics: one step against one rank */

static enum status run_reference(struct invocation *call, const struct validation *v, const struct thread_run_options *options,
                                 struct thread_run *result)
{
    struct setting setting = v->setup->setting;
    struct layout layout = {.tp = 1,
                            .cp = 1,
                            .pp = 1,
                            .vpp = 1,
                            .dp = 1,
                            .ep = 1,
                            .micro_batch = 1,
                            .schedule = SCHEDULE_NONE,
                            .features = v->setup->layout.features &
                                        ~(FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(SCATTER_GATHER_P2P))};
    struct program program;
    setting.gpus = 1;
    enum status status = program_build(&layout, &setting, DETAIL_KERNEL, false, &program, &call->diags);
    if (status != STATUS_OK)
        return status;
    struct thread_run_options unlimited = *options; /* one rank holds what the others divide */
    unlimited.memory_limit = 0;
    status = run_on_threads(&program, &setting, &unlimited, result, &call->diags);
    program_free(&program);
    return status;
}

/* Tensors lie one after the other in the map. */
static void compare_gradients(const struct setting *setting, const float *one, const float *many, struct numerics *n)
{
    struct model_map map = model_map_of(setting);
    char name[64], other[64];
    for (int64_t at = 0; at < map.total;) {
        double largest = 0, difference = 0;
        model_map_name(&map, at, name, sizeof name);
        do {
            largest = fmax(largest, fabs(one[at]));
            difference = fmax(difference, fabs((double)one[at] - many[at]));
            at++;
        } while (at < map.total && strcmp(name, model_map_name(&map, at, other, sizeof other)) == 0);
        double error = largest > 0 ? difference / largest : difference > 0 ? INFINITY : 0;
        if (error > n->gradient_error) {
            n->gradient_error = error;
            memcpy(n->worst, name, sizeof name);
        }
    }
}

static enum status check_numerics(struct invocation *call, const struct thread_run_options *whole, struct validation *v)
{
    struct thread_run one = {0}, many = {0};
    struct thread_run_options options = *whole;
    options.steps = 1;
    options.gradients = true;
    enum status status = run_reference(call, v, &options, &one);
    if (status == STATUS_OK)
        status = run_on_threads(&v->program, &v->setup->setting, &options, &many, &call->diags);
    if (status == STATUS_OK) {
        struct numerics *n = &v->numerics;
        n->loss_error = fabs(many.steps[0].loss - one.steps[0].loss) / fabs(one.steps[0].loss);
        compare_gradients(&v->setup->setting, one.gradients, many.gradients, n);
        n->max_rel_error = fmax(n->loss_error, n->gradient_error);
        n->held = n->max_rel_error <= NUMERIC_TOLERANCE;
    }
    thread_run_free(&one);
    thread_run_free(&many);
    return status;
}

/* --- the comparison */

static void add_spans(const struct program *program, const struct timeline *timeline, bool measured, struct validation *v)
{
    for (size_t i = 0; i < timeline->n_spans; i++) {
        const struct span *span = &timeline->spans[i];
        const struct op *op = op_of(program, span);
        double seconds = (double)(span->end - span->start) * 1e-9, end = (double)span->end * 1e-9;
        struct class_comparison *class = &v->classes[op->class];
        struct rank_comparison *rank = &v->ranks[span->rank];
        double *last = measured ? &rank->measured_s : &rank->predicted_s;
        *(measured ? &class->measured_s : &class->predicted_s) += seconds / program->n_ranks;
        class->operations += measured && op->kind != OP_JOIN;
        *last = fmax(*last, end);
        if (op->stream == STREAM_COMPUTE)
            *(measured ? &rank->measured_busy_s : &rank->predicted_busy_s) += seconds;
    }
}

/* What fp32 on this device needs: weights and activations have four bytes instead of two, there are no master weights, and
 * nothing is held by a framework or in communication buffers. */
static double predicted_memory(const struct validation *v)
{
    double most = 0;
    for (int stage = 0; stage < v->setup->layout.pp; stage++) {
        struct footprint f;
        footprint_of_stage(&v->setup->layout, &v->setup->setting, stage, &f);
        double optimizer = f.optimizer * 8 / 12; /* two moments of three */
        most = fmax(most, 2 * f.weights + f.gradients + optimizer + 2 * f.activations);
    }
    return most;
}

static void compare(struct validation *v)
{
    v->ranks = memory_new((size_t)v->program.n_ranks, sizeof *v->ranks);
    add_spans(&v->program, &v->predicted, false, v);
    add_spans(&v->program, &v->run.timeline, true, v);
    v->predicted_s = v->step.step_time_s;
    v->measured_s = (double)v->run.steps[v->run.timeline_step].duration * 1e-9;
    v->error_pct = 100 * (v->predicted_s - v->measured_s) / v->measured_s;
    v->memory_predicted = predicted_memory(v);
    for (int i = 0; i < v->run.n_ranks; i++)
        v->memory_measured = fmax(v->memory_measured, (double)v->run.memory_peak[i]);
}

static void note_memory(struct invocation *call, const struct thread_run_options *options, const struct validation *v)
{
    char wanted[32], limit[32];
    double predicted = predicted_memory(v);
    if (options->memory_limit && predicted > (double)options->memory_limit)
        diag_warning(&call->diags, (struct place){0}, "memory: %s predicted for the fullest rank, the limit is %s",
                     quantity_format(predicted, DIM_BYTES, wanted, sizeof wanted),
                     quantity_format((double)options->memory_limit, DIM_BYTES, limit, sizeof limit));
}

enum status validate_run(struct invocation *call, const struct thread_run_options *options, struct validation *v)
{
    enum status status = predict(call, v);
    if (status == STATUS_OK)
        note_memory(call, options, v);
    if (status == STATUS_OK && !options->injection) {
        talk(call, 0, "numerics: one step of %d ranks against one step of one rank", v->program.n_ranks);
        status = check_numerics(call, options, v);
    }
    if (status == STATUS_OK) {
        talk(call, 0, "executing %d steps on %d ranks", options->steps, v->program.n_ranks);
        status = run_on_threads(&v->program, &v->setup->setting, options, &v->run, &call->diags);
    }
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
}
