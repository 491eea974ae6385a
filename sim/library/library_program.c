/* library_program.c - programs in the form of msim.h. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/program/program.h"
#include "sim/library/library_internal.h"
#include "traces/timeline/timeline.h"

_Static_assert((int)MSIM_CHUNK == DETAIL_CHUNK && (int)MSIM_LAYER == DETAIL_LAYER && (int)MSIM_KERNEL == DETAIL_KERNEL,
               "details have the same numbers");
_Static_assert((int)MSIM_COMPUTE == OP_COMPUTE && (int)MSIM_SEND == OP_SEND && (int)MSIM_RECEIVE == OP_RECV &&
                   (int)MSIM_COLLECTIVE == OP_COLLECTIVE && (int)MSIM_JOIN == OP_JOIN &&
                   (int)MSIM_OP_DEPENDENCIES == (int)OP_DEPS,
               "so have operations");

struct msim_program {
    struct program program;
};

enum status library_detail(enum msim_detail number, enum detail *detail, struct diags *diags)
{
    *detail = (enum detail)number;
    if ((unsigned)number <= MSIM_KERNEL)
        return STATUS_OK;
    diag_error(diags, PLACE_NONE, "unknown detail %d; there are MSIM_CHUNK, MSIM_LAYER and MSIM_KERNEL", (int)number);
    return STATUS_USAGE;
}

enum msim_status msim_program_build(const struct msim_experiment *experiment, const char *layout, enum msim_detail detail,
                                    int all_ranks, struct msim_messages *messages, struct msim_program **program)
{
    struct library_call call;
    struct diags *diags = library_begin(&call, messages);
    struct setting setting = experiment_setting(&experiment->experiment);
    struct layout chosen;
    enum detail how;
    *program = NULL;
    enum status status = library_detail(detail, &how, diags);
    if (status == STATUS_OK)
        status = library_layout(&experiment->experiment, layout, &chosen, diags);
    if (status != STATUS_OK)
        return library_done(&call, status);
    struct msim_program *handle = memory_new(1, sizeof *handle);
    status = program_build(&chosen, &setting, how, !all_ranks, &handle->program, diags);
    if (status == STATUS_OK)
        *program = handle;
    else
        free(handle);
    return library_done(&call, status);
}

enum msim_status msim_program_verify(const struct msim_program *program, struct msim_messages *messages)
{
    struct library_call call;
    return library_done(&call, program_verify(&program->program, library_begin(&call, messages)));
}

size_t msim_program_ranks(const struct msim_program *program)
{
    return (size_t)program->program.n_ranks;
}

static const struct script *script_of(const struct program *program, size_t rank)
{
    return &program->scripts[program->ranks[rank].script];
}

size_t msim_program_ops(const struct msim_program *program, size_t rank)
{
    return rank < msim_program_ranks(program) ? script_of(&program->program, rank)->n_ops : 0;
}

enum msim_status msim_program_op(const struct msim_program *program, size_t rank, size_t i, struct msim_op *op)
{
    if (i >= msim_program_ops(program, rank))
        return MSIM_USAGE;
    const struct program *plain = &program->program;
    const struct program_rank *who = &plain->ranks[rank];
    const struct op *from = &plain->ops[script_of(plain, rank)->first_op + i];
    bool message = from->kind == OP_SEND || from->kind == OP_RECV;
    int group = from->kind == OP_COLLECTIVE ? who->groups[from->role] : -1;
    *op = (struct msim_op){
        .kind = (enum msim_op_kind)from->kind,
        .stream = stream_title(from->stream),
        .chunk = from->chunk,
        .micro_batch = from->micro_batch,
        .layer = from->layer,
        .peer = message ? who->peers[from->role] : -1,
        .group_size = group >= 0 ? plain->groups[group].n_members : 0,
        .bytes = from->bytes,
    };
    span_label(plain, from, op->label, sizeof op->label);
    for (int d = 0; d < OP_DEPS; d++)
        op->dependencies[d] = from->deps[d] == NO_OP ? -1 : (int)from->deps[d];
    return MSIM_OK;
}

void msim_program_destroy(struct msim_program *program)
{
    if (program)
        program_free(&program->program);
    free(program);
}
