/* layer_step.c - passes each step of a layer to the file that executes it: asks one after the other until one recognises the
 * step. */
#include "runtime/layer/layer.h"

static struct layer_context layer_context_of(struct step_context *c, const struct step *step)
{
    const struct unit_state *unit = chunk_layer_unit(c->chunk, step->layer);
    const int layer = c->chunk->range.first + step->layer;
    const struct layer_kind kind = layer_kind_of(c->rank->setting->model, layer);
    const bool parallel = c->rank->shape.parallel_block && kind.feed == FEEDS_DENSE && kind.mixers != MIXES_NOT;
    return (struct layer_context){.step = c,
                                  .rank = c->rank,
                                  .shape = &c->rank->shape,
                                  .state = &c->pass->layers[step->layer].own,
                                  .swapped = &c->pass->layers[step->layer].swapped,
                                  .unit = unit,
                                  .experts = chunk_experts_unit(c->chunk, step->layer),
                                  .layer = layer,
                                  .kind = kind,
                                  .parallel = parallel,
                                  .single = parallel || kind.feed == FEEDS_NOT,
                                  .shared = parallel || kind.mixers == MIXES_BY_BOTH};
}

void layer_forward_step(struct step_context *context, const struct step *step)
{
    struct layer_context c = layer_context_of(context, step);
    if (!cast_layer_step(&c, step) && !attention_step(&c, step) && !heads_step(&c, step) && !heads_ready_step(&c, step) &&
        !latent_step(&c, step) && !mixer_step(&c, step) && !mixture_forward_step(&c, step) && !prediction_step(&c, step))
        layer_forward_rest(&c, step);
}

void layer_backward_step(struct step_context *context, const struct step *step)
{
    struct layer_context c = layer_context_of(context, step);
    if (!cast_layer_step(&c, step) && !attention_step(&c, step) && !heads_step(&c, step) && !heads_ready_step(&c, step) &&
        !latent_step(&c, step) && !mixer_step(&c, step) && !mixture_backward_step(&c, step) && !prediction_step(&c, step))
        layer_backward_rest(&c, step);
}
