/* verify.c - run the parts of the verifier in order. */
#include "model/program/verify.h"

#include <stdlib.h>

static void view_create(struct script_view *view, const struct program *program, int32_t s)
{
    const struct script *script = &program->scripts[s];
    *view = (struct script_view){.ops = program->ops + script->first_op, .n_ops = script->n_ops};
    for (uint32_t i = 0; i < view->n_ops; i++) {
        view->n_queue[view->ops[i].stream]++;
        if (view->ops[i].kind == OP_COLLECTIVE)
            view->n_collectives[view->ops[i].role]++;
    }
    uint32_t *next = view->storage = memory_new(3 * (size_t)view->n_ops, sizeof *next);
    view->position = next;
    next += view->n_ops;
    for (int stream = 0; stream < N_STREAMS; next += view->n_queue[stream++])
        view->queue[stream] = next;
    for (int kind = 0; kind < N_GROUP_KINDS; next += view->n_collectives[kind++])
        view->collectives[kind] = next;
    uint32_t queued[N_STREAMS] = {0}, listed[N_GROUP_KINDS] = {0};
    for (uint32_t i = 0; i < view->n_ops; i++) {
        const struct op *op = &view->ops[i];
        view->position[i] = queued[op->stream];
        view->queue[op->stream][queued[op->stream]++] = i;
        if (op->kind == OP_COLLECTIVE)
            view->collectives[op->role][listed[op->role]++] = i;
    }
}

static void verifier_free(struct verifier *verifier)
{
    for (int32_t s = 0; verifier->views && s < verifier->program->n_scripts; s++)
        free(verifier->views[s].storage);
    for (size_t i = 0; i < verifier->n_matchings; i++)
        free(verifier->matchings[i].send_of);
    free(verifier->matchings);
    free(verifier->matching_of);
    free(verifier->views);
}

enum status program_verify(const struct program *program, struct diags *diags)
{
    struct verifier verifier = {.program = program, .diags = diags};
    bool right = verify_tables(&verifier);
    if (right) {
        verifier.views = memory_new((size_t)program->n_scripts, sizeof *verifier.views);
        for (int32_t s = 0; s < program->n_scripts; s++)
            view_create(&verifier.views[s], program, s);
        right = verify_collectives(&verifier);
        right = verify_messages(&verifier) && right; /* each is worth knowing */
        right = verify_copies(&verifier) && right;
        right = right && verify_progress(&verifier);
    }
    verifier_free(&verifier);
    return right ? STATUS_OK : STATUS_BAD_INPUT;
}
