/* embedding_reference.c - lookup of tokens and positions, in plain C. */
#include <string.h>

#include "kernels/reference.h"

static bool holds(const struct embedding_call *call, int32_t token)
{
    return token >= call->first && token < call->first + call->count;
}

void embedding_forward_reference(const struct embedding_call *call)
{
    const float *table = call->table, *positions = call->positions;
    for (int64_t row = 0; row < call->t; row++) {
        float *x = (float *)call->x + row * call->h;
        const float *at = holds(call, call->tokens[row]) ? table + (call->tokens[row] - call->first) * call->h : NULL;
        const float *position = positions ? positions + position_of(&call->at, call->seq_len, row) * call->h : NULL;
        for (int64_t i = 0; i < call->h; i++)
            x[i] = (at ? at[i] : 0) + (position ? position[i] : 0);
    }
}

static void add_row(float *to, const float *from, int64_t h)
{
    for (int64_t i = 0; i < h; i++)
        to[i] += from[i];
}

void embedding_backward_reference(const struct embedding_call *call)
{
    const float *dx = call->dx;
    for (int64_t row = 0; row < call->t; row++) {
        if (holds(call, call->tokens[row]))
            add_row(call->dtable + (call->tokens[row] - call->first) * call->h, dx + row * call->h, call->h);
        if (call->dpositions)
            add_row(call->dpositions + position_of(&call->at, call->seq_len, row) * call->h, dx + row * call->h, call->h);
    }
}
