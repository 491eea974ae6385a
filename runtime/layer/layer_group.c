/* layer_group.c - exchanges over the tensor-parallel group, and the output of a chunk, which the next stage receives. */
#include "runtime/layer/layer.h"

void tp_gather_rows(struct step_context *c, struct tensor *in, struct tensor **out, int64_t width, enum gathered read,
                    const char *what)
{
    const struct shape *s = &c->rank->shape;
    if (in->format != NARROW_NONE) {
        narrow_gather(c, in, out, read, what);
        return;
    }
    if (!*out)
        *out = tensor_new(c->rank, (size_t)(s->tokens * width) * device_element_bytes(c->rank->device));
    struct exchange_call call = {.exchange = EXCHANGE_ALL_GATHER,
                                 .element = rank_element(c->rank),
                                 .in = in->data,
                                 .out = (*out)->data,
                                 .count = s->local_tokens * width,
                                 .what = what};
    pipeline_exchange(c, &call);
}

void tp_gather(struct step_context *c, struct tensor *in, struct tensor **out, const char *what)
{
    tp_gather_rows(c, in, out, c->rank->shape.hidden, GATHERED_BOTH, what);
}

void layer_gather_input(const struct layer_context *c, struct tensor *in, struct tensor **out, bool again, const char *what)
{
    bool stays = !c->shape->gathers_again || (c->shared && !again);
    enum gathered read = stays ? GATHERED_BOTH : again ? GATHERED_COLUMNS : GATHERED_ROWS;
    tp_gather_rows(c->step, in, out, c->shape->hidden, read, what);
}

void tp_reduce_rows(struct step_context *c, struct tensor **tensor, int64_t width, const char *what)
{
    const struct shape *s = &c->rank->shape;
    struct exchange_call call = {.exchange = EXCHANGE_ALL_REDUCE,
                                 .element = rank_element(c->rank),
                                 .in = (*tensor)->data,
                                 .out = (*tensor)->data,
                                 .count = s->tokens * width,
                                 .what = what};
    struct tensor *kept = NULL;
    if (s->sequence_parallel) {
        kept = tensor_new(c->rank, (size_t)(s->local_tokens * width) * device_element_bytes(c->rank->device));
        call.exchange = EXCHANGE_REDUCE_SCATTER;
        call.out = kept->data;
        call.count = s->local_tokens * width;
    }
    pipeline_exchange(c, &call);
    if (kept) {
        tensor_drop(c->rank, tensor, c->stream);
        *tensor = kept;
    }
}

void tp_reduce(struct step_context *c, struct tensor **tensor, const char *what)
{
    tp_reduce_rows(c, tensor, c->rank->shape.hidden, what);
}

struct tensor *output_new(struct step_context *c, bool forward, bool last_of_chunk)
{
    const struct shape *s = &c->rank->shape;
    int last = layout_virtual_stages(c->rank->layout) - 1, v = c->chunk->virtual_stage;
    size_t bytes = (size_t)(s->local_tokens * s->hidden) * device_element_bytes(c->rank->device);
    bool sent = last_of_chunk && (forward ? v < last : v > 0);
    return sent ? tensor_new_travelling(c->rank, bytes, c->stream) : tensor_new(c->rank, bytes);
}
