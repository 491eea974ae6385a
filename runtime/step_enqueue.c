/* step_enqueue.c - one step of a pass: which weights have to be there, and who executes it. */
#include "runtime/rank.h"

static bool is_end(const struct unit *unit)
{
    return unit->layer < 0 || unit->is_head;
}

/* The embedding and the head are fetched together before the first layer's forward pass and kept to the end of the backward pass
 * (ZeRO-3 has no pipeline: one chunk has both). */
static void ends_enter(struct step_context *c, bool backward)
{
    for (int i = 0; i < c->chunk->units.n_items; i++)
        if (is_end(&c->chunk->units.items[i]))
            unit_enter(c->rank, &c->chunk->states[i], backward, c->stream);
}

static void ends_leave(struct step_context *c)
{
    for (int i = 0; i < c->chunk->units.n_items; i++)
        if (is_end(&c->chunk->units.items[i]))
            unit_leave(c->rank, &c->chunk->states[i], c->stream);
}

static bool is_backward(const struct step *step)
{
    return step->kind >= STEP_CROSS_ENTROPY_BACKWARD || step->recompute;
}

static void enter(struct step_context *c, const struct step *step)
{
    if (!step->first)
        return;
    if (step->layer < 0) {
        ends_enter(c, is_backward(step));
        return;
    }
    struct unit_state *experts = chunk_experts_unit(c->chunk, step->layer);
    unit_enter(c->rank, chunk_layer_unit(c->chunk, step->layer), is_backward(step), c->stream);
    if (experts)
        unit_enter(c->rank, experts, is_backward(step), c->stream);
}

static void leave(struct step_context *c, const struct step *step)
{
    if (!step->last)
        return;
    struct unit_state *experts = step->layer >= 0 ? chunk_experts_unit(c->chunk, step->layer) : NULL;
    if (step->layer >= 0)
        unit_leave(c->rank, chunk_layer_unit(c->chunk, step->layer), c->stream);
    if (experts)
        unit_leave(c->rank, experts, c->stream);
    if (step->layer < 0 && step->kind == STEP_EMBED_BACKWARD)
        ends_leave(c);
}

void step_enqueue(struct step_context *c, const struct step *step)
{
    if (c->stream == c->rank->streams[STREAM_COMPUTE])
        tensors_settle(c->rank);
    c->keep = step->recompute || c->rank->layout->recompute != RECOMPUTE_FULL;
    enter(c, step);
    if (c->rank->status != STATUS_OK)
        return;
    if (step->layer < 0)
        ends_step(c, step);
    else if (is_backward(step) && !step->recompute)
        layer_backward_step(c, step);
    else
        layer_forward_step(c, step);
    leave(c, step);
}
