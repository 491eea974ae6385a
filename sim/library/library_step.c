/* library_step.c - one step in virtual time, and its timeline. */
#include <stdlib.h>

#include "model/base/file.h"
#include "model/base/memory.h"
#include "sim/library/library_internal.h"
#include "sim/step/step.h"

struct msim_step {
    char layout[LAYOUT_TEXT];
    struct step_result result;
    struct timeline timeline;
    struct program program;
    bool recorded; /* both of these are there */
};

static enum status step_run(const struct setting *setting, const struct layout *layout, const struct msim_step_options *options,
                            enum detail detail, struct msim_step *step, struct diags *diags)
{
    step->recorded = options && options->timeline;
    const struct step_options how = {
        .all_ranks = options && options->all_ranks,
        .detail = detail,
        .n_trace_ranks = step->recorded ? -1 : 0,
    };
    layout_format(layout, step->layout, sizeof step->layout);
    return step_simulate(layout, setting, &how, &step->result, step->recorded ? &step->timeline : NULL,
                         step->recorded ? &step->program : NULL, diags);
}

enum msim_status msim_step_simulate(const struct msim_experiment *experiment, const char *layout,
                                    const struct msim_step_options *options, struct msim_messages *messages,
                                    struct msim_step **step)
{
    struct library_call call;
    struct diags *diags = library_begin(&call, messages);
    struct setting setting = experiment_setting(&experiment->experiment);
    struct layout chosen;
    enum detail detail = DETAIL_CHUNK;
    *step = NULL;
    enum status status = options ? library_detail(options->detail, &detail, diags) : STATUS_OK;
    if (status == STATUS_OK)
        status = library_layout(&experiment->experiment, layout, &chosen, diags);
    if (status != STATUS_OK)
        return library_done(&call, status);
    struct msim_step *handle = memory_new(1, sizeof *handle);
    status = step_run(&setting, &chosen, options, detail, handle, diags);
    if (status == STATUS_OK)
        *step = handle;
    else
        free(handle);
    return library_done(&call, status);
}

void msim_step_get(const struct msim_step *step, struct msim_step_result *result)
{
    const struct step_result *from = &step->result;
    *result = (struct msim_step_result){
        .step_s = from->step_time_s,
        .mfu = from->mfu,
        .hfu = from->hfu,
        .mfu_causal = from->mfu_causal,
        .hfu_causal = from->hfu_causal,
        .tokens_per_s = from->tokens_per_s,
        .memory_bytes = from->memory.total,
        .memory_stage = from->memory_stage,
        .ranks_simulated = from->actors,
    };
}

const char *msim_step_layout(const struct msim_step *step)
{
    return step->layout;
}

size_t msim_step_classes(void)
{
    return N_WORK_CLASSES;
}

const char *msim_step_class_name(size_t i)
{
    return i < N_WORK_CLASSES ? work_class_name((enum work_class)i) : NULL;
}

double msim_step_class_s(const struct msim_step *step, size_t i)
{
    return i < N_WORK_CLASSES ? step->result.breakdown.s[i] : 0;
}

size_t msim_step_spans(const struct msim_step *step)
{
    return step->timeline.n_spans;
}

enum msim_status msim_step_span(const struct msim_step *step, size_t i, struct msim_span *span)
{
    if (i >= step->timeline.n_spans)
        return MSIM_USAGE;
    const struct span *from = &step->timeline.spans[i];
    const struct program *program = &step->program;
    const struct rank_place place = program_rank_place(program, from->rank);
    const struct op *op = &program->ops[program->scripts[program->ranks[from->rank].script].first_op + from->op];
    *span = (struct msim_span){
        .rank = place.rank,
        .stage = place.at.pp,
        .stream = stream_title(op->stream),
        .start_ns = from->start,
        .end_ns = from->end,
    };
    span_label(program, op, span->label, sizeof span->label);
    return MSIM_OK;
}

static enum status trace_write(const struct msim_step *step, const char *path, struct diags *diags)
{
    struct file_output out;
    enum status status = file_output_open(&out, path, diags);
    if (status != STATUS_OK)
        return status;
    status = timeline_write_chrome(&step->timeline, &step->program, "predicted", out.stream, diags);
    if (status == STATUS_OK)
        return file_output_commit(&out, diags);
    file_output_abandon(&out);
    return status;
}

enum msim_status msim_step_write_trace(const struct msim_step *step, const char *path, struct msim_messages *messages)
{
    struct library_call call;
    struct diags *diags = library_begin(&call, messages);
    /* "-" would be standard output, which the library leaves to the program. */
    if (!step->recorded || path[0] == '\0' || (path[0] == '-' && path[1] == '\0')) {
        diag_error(diags, PLACE_NONE, "%s",
                   step->recorded ? "a trace needs the path of a file"
                                  : "the step was simulated without a timeline; set options.timeline");
        return library_done(&call, STATUS_USAGE);
    }
    return library_done(&call, trace_write(step, path, diags));
}

void msim_step_destroy(struct msim_step *step)
{
    if (step && step->recorded) {
        timeline_free(&step->timeline);
        program_free(&step->program);
    }
    free(step);
}
