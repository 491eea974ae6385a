/*
 * verify_copies.c - check that all that a layer gives to the host comes back, once.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "model/program/verify.h"

/* A copy of what one layer keeps of one micro-batch. */
static bool is_of_layer(const struct op *op, enum stream stream)
{
    return op->stream == stream && op->role == COPIED_ACTIVATIONS && op->work >= 0;
}

static bool is_same_layer(const struct op *a, const struct op *b)
{
    return a->layer == b->layer && a->chunk == b->chunk && a->micro_batch == b->micro_batch;
}

static double bytes_of(const struct verifier *v, const struct op *op)
{
    return v->program->works.items[op->work].host.bytes;
}

/* A copy up of a layer waits for the copy down. */
static bool verify_return(struct verifier *v, int32_t s, uint32_t i, uint8_t *returned)
{
    const struct op *ops = v->views[s].ops, *op = &ops[i];
    for (int d = 0; d < OP_DEPS; d++) {
        const struct op *down = op->deps[d] == NO_OP ? NULL : &ops[op->deps[d]];
        if (!down || !is_of_layer(down, STREAM_DOWN) || !is_same_layer(down, op))
            continue;
        bool all = bytes_of(v, op) >= bytes_of(v, down) && bytes_of(v, op) <= bytes_of(v, down);
        if (all && !returned[op->deps[d]]++)
            return true;
        VERIFY_ERROR(v, "program: script %" PRId32 ", op %" PRIu32 ": brings %g of the %g bytes that op %" PRIu32 " took away%s",
                     s, i, bytes_of(v, op), bytes_of(v, down), op->deps[d], returned[op->deps[d]] > 1 ? ", again" : "");
        return false;
    }
    VERIFY_ERROR(v, "program: script %" PRId32 ", op %" PRIu32 ": brings what no copy that it waits for took away", s, i);
    return false;
}

static bool verify_script_copies(struct verifier *v, int32_t s)
{
    const struct script_view *view = &v->views[s];
    uint8_t *returned = memory_new((size_t)view->n_ops + 1, sizeof *returned);
    int wrong = 0;
    for (uint32_t k = 0; k < view->n_queue[STREAM_UP] && wrong < REPORTS_MAX; k++) {
        uint32_t i = view->queue[STREAM_UP][k];
        wrong += is_of_layer(&view->ops[i], STREAM_UP) && !verify_return(v, s, i, returned);
    }
    for (uint32_t k = 0; k < view->n_queue[STREAM_DOWN] && wrong < REPORTS_MAX; k++) {
        uint32_t i = view->queue[STREAM_DOWN][k];
        if (returned[i] || !is_of_layer(&view->ops[i], STREAM_DOWN))
            continue;
        VERIFY_ERROR(v, "program: script %" PRId32 ", op %" PRIu32 ": takes away what does not come back", s, i);
        wrong++;
    }
    free(returned);
    return wrong == 0;
}

bool verify_copies(struct verifier *v)
{
    bool right = true;
    for (int32_t s = 0; s < v->program->n_scripts; s++)
        right = verify_script_copies(v, s) && right;
    return right;
}
