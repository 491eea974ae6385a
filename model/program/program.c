/* program.c - releasing and printing programs. */
#include "model/program/emit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void program_free(struct program *program)
{
    free(program->ops);
    free(program->scripts);
    free(program->ranks);
    free(program->groups);
    free(program->members);
    work_table_free(&program->works);
    *program = (struct program){0};
}

void program_fold(const struct program *program, struct program *folded)
{
    *folded = *program;
    folded->groups = NULL;
    folded->members = NULL;
    folded->n_groups = folded->n_members = 0;
    program_ranks_build(folded, true);
}

void program_fold_free(struct program *folded)
{
    free(folded->ranks);
    free(folded->groups);
    free(folded->members);
    *folded = (struct program){0};
}

static void dump_number(FILE *out, const char *name, int32_t value)
{
    if (value >= 0)
        fprintf(out, " %s=%" PRId32, name, value);
}

static void dump_subject(const struct program *program, const struct program_rank *rank, const struct op *op, FILE *out)
{
    switch ((enum op_kind)op->kind) {
    case OP_SEND:
    case OP_RECV:
        fprintf(out, " %s=%" PRId32 " tag=%" PRIu32 " bytes=%.0f", op->kind == OP_SEND ? "to" : "from", rank->peers[op->role],
                op->tag, op->bytes);
        break;
    case OP_COLLECTIVE:
        fprintf(out, " %s group=%s bytes=%.0f", collective_name((enum collective)op->collective),
                group_kind_name((enum group_kind)op->role), op->bytes);
        break;
    case OP_COMPUTE:
        if (op->work >= 0)
            fprintf(out, " work=%s", program->works.items[op->work].label);
        break;
    case OP_JOIN:
    case N_OP_KINDS: break;
    }
}

void program_dump(const struct program *program, int rank, FILE *out)
{
    static const char *const kinds[N_OP_KINDS] = {"compute", "send", "recv", "collective", "join"};
    static const char *const streams[N_STREAMS] = {"compute", "tp", "send", "recv", "dp", "host", "down", "up"};
    const struct program_rank *at = &program->ranks[rank];
    const struct script *script = &program->scripts[at->script];
    for (uint32_t i = 0; i < script->n_ops; i++) {
        const struct op *op = &program->ops[script->first_op + i];
        fprintf(out, "%" PRIu32 " %s %s", i, streams[op->stream], kinds[op->kind]);
        if (op->pass < N_PASSES)
            fprintf(out, " %s", pass_name((enum pass)op->pass));
        dump_number(out, "chunk", op->chunk);
        dump_number(out, "mb", op->micro_batch);
        dump_number(out, "layer", op->layer);
        dump_subject(program, at, op, out);
        for (int d = 0, n = 0; d < OP_DEPS; d++)
            if (op->deps[d] != NO_OP)
                fprintf(out, "%s%" PRIu32, n++ ? "," : " after=", op->deps[d]);
        fputc('\n', out);
    }
}

char *op_text(const struct op *op, uint32_t index, char buffer[OP_TEXT_SIZE])
{
    static const char *const kinds[N_OP_KINDS] = {"computation", "send", "receive", "collective", "join"};
    char of[64] = "";
    if (op->pass < N_PASSES && op->micro_batch >= 0)
        snprintf(of, sizeof of, " of %s %" PRId32 ", chunk %d", pass_name((enum pass)op->pass), op->micro_batch, op->chunk);
    else if (op->kind == OP_COLLECTIVE)
        snprintf(of, sizeof of, " over %s", group_kind_name((enum group_kind)op->role));
    snprintf(buffer, OP_TEXT_SIZE, "op %" PRIu32 " (%s%s)", index, kinds[op->kind], of);
    return buffer;
}
