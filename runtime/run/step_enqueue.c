/* step_enqueue.c - enqueues one step of a pass: makes its weights available, executes it, and handles weight gradients. */
#include "model/cost/work/work.h"
#include "runtime/layer/casts.h"

static bool is_end(const struct unit *unit)
{
    return unit->layer < 0 || unit->is_head;
}

static bool is_backward(const struct step *step)
{
    return step->kind >= STEP_CROSS_ENTROPY_BACKWARD || step->recompute;
}

/* Whether a backward step of one of the ends, or what follows it there, gives a unit gradients. */
static bool gives(const struct step_context *c, const struct step *step, int unit)
{
    bool embeds = (step->kind == STEP_EMBED_GATHER_BACKWARD || step->kind == STEP_EMBED_BACKWARD) && !step->ahead;
    bool before = c->chunk->embedding && unit < c->chunk->units.first_layer;
    return is_backward(step) && (embeds ? before : !before || chunk_shares_table(c->rank, c->chunk, unit));
}

/* The embedding and the head are fetched together before the first layer's forward pass and kept to the end of the backward pass
 * (ZeRO-3 has no pipeline: one chunk has both). */
static void ends_enter(struct step_context *c, const struct step *step)
{
    for (int i = 0; i < c->chunk->units.n_items; i++) {
        if (!is_end(&c->chunk->units.items[i]))
            continue;
        unit_enter(c->rank, &c->chunk->states[i], gives(c, step, i), c->stream);
        if (step->kind == STEP_FINAL_NORM) /* those of prediction modules, which may come later than the embedding's */
            narrow_weights_once(c->rank, &c->chunk->states[i], c->stream);
    }
}

static void ends_leave(struct step_context *c)
{
    for (int i = 0; i < c->chunk->units.n_items; i++)
        if (is_end(&c->chunk->units.items[i]))
            unit_leave(c->rank, &c->chunk->states[i], c->stream);
}

static void layer_enter(struct step_context *c, const struct step *step)
{
    struct unit_state *experts = chunk_experts_unit(c->chunk, step->layer);
    unit_enter(c->rank, chunk_layer_unit(c->chunk, step->layer), is_backward(step), c->stream);
    narrow_weights_once(c->rank, chunk_layer_unit(c->chunk, step->layer), c->stream);
    if (!experts)
        return;
    unit_enter(c->rank, experts, is_backward(step), c->stream);
    narrow_weights_once(c->rank, experts, c->stream);
}

static void layer_leave(struct step_context *c, const struct step *step)
{
    struct unit_state *experts = chunk_experts_unit(c->chunk, step->layer);
    unit_leave(c->rank, chunk_layer_unit(c->chunk, step->layer), c->stream);
    if (experts)
        unit_leave(c->rank, experts, c->stream);
}

static void enter(struct step_context *c, const struct step *step)
{
    if (step->layer < 0 && step->first)
        ends_enter(c, step);
    if (step->layer < 0)
        return;
    if (step->anew) /* those that it was recomputed with go */
        layer_leave(c, step);
    if (step->first || step->anew)
        layer_enter(c, step);
}

static void leave(struct step_context *c, const struct step *step)
{
    if (!step->last)
        return;
    if (step->layer >= 0)
        layer_leave(c, step);
    else if (step->kind == STEP_EMBED_BACKWARD)
        ends_leave(c);
}

/* --- weight gradients */

void weight_gradient(struct step_context *c, struct linear_call linear)
{
    struct kernel_call call = {.kernel = KERNEL_LINEAR_BACKWARD_WEIGHT, .linear = linear};
    if (c->step->sums) {
        c->pass->fresh = tensor_new(c->rank, (size_t)(linear.out * linear.in) * sizeof(float));
        c->pass->fresh_to = linear.dw;
        call.linear.dw = c->pass->fresh->data;
        call.linear.overwrite = true;
    }
    rank_launch(c->rank, c->stream, &call);
}

void gradient_sum_step(struct step_context *c)
{
    struct pass_state *pass = c->pass;
    int64_t n = (int64_t)(pass->fresh->bytes / sizeof(float));
    struct kernel_call add = {
        .kernel = KERNEL_ADD,
        .add = {.n = n, .h = n, .wide = true, .a = pass->fresh_to, .b = pass->fresh->data, .y = pass->fresh_to}};
    rank_launch(c->rank, c->stream, &add);
    tensor_drop(c->rank, &pass->fresh, c->stream);
}

/* --- a step */

/* The modules whose tensors the forward pass drops because the backward pass recomputes them: the whole layer, all but attention
 * under PyTorch's policy, or a set of modules. */
static int forgets(const struct rank *rank, const struct step *step)
{
    if (step->recompute || !step->repeated)
        return 0;
    if (work_keeps_products(rank->layout))
        return ~(int)RECOMPUTE_CORE_ATTN;
    return rank->layout->recompute.what == RECOMPUTE_FULL ? ~0 : (int)layout_recomputed_modules(rank->layout);
}

static void execute(struct step_context *c, const struct step *step)
{
    if (step->kind == STEP_GRADIENT_SUM)
        gradient_sum_step(c);
    else if (step->layer < 0)
        ends_step(c, step);
    else if (is_backward(step) && !step->recompute)
        layer_backward_step(c, step);
    else
        layer_forward_step(c, step);
}

void step_enqueue(struct step_context *of_operation, const struct step *step)
{
    struct step_context context = *of_operation, *c = &context;
    c->stream = pipeline_enter(of_operation, step);
    if (c->stream == c->rank->streams[STREAM_COMPUTE])
        tensors_settle(c->rank);
    c->forgets = forgets(c->rank, step);
    c->step = step;
    enter(c, step);
    if (c->rank->status != STATUS_OK)
        return;
    execute(c, step);
    leave(c, step);
    pipeline_leave(of_operation, step);
}
