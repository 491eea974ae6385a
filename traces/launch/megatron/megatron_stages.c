/* megatron_stages.c - translates arguments of the pipeline: chunks, schedule, stages. */
#include <stdlib.h>
#include <string.h>

#include "traces/launch/megatron/megatron_translate_internal.h"

/* Does the embedding, or the loss, take a layer's place? DeepSpeed can be told both at once. */
static bool counts(struct translation *m, enum argument end)
{
    return translate_true(m, end) || translate_is(m, ARGUMENT_PARTITION, "type:transformer|embedding");
}

/* Layers that stages share evenly: all, the two ends where they count as one each, without those of named stages. */
static int64_t shared_layers(struct translation *m, int *stages)
{
    int64_t layers = m->description->job.model.layers;
    int64_t first = translate_int(m, ARGUMENT_FIRST_LAYERS, 0, 0), last = translate_int(m, ARGUMENT_LAST_LAYERS, 0, 0);
    layers += counts(m, ARGUMENT_EMBEDDING_COUNTS) + counts(m, ARGUMENT_LOSS_COUNTS);
    *stages = m->description->job.layout.pp - (first > 0) - (last > 0);
    return layers - first - last;
}

static int chunks_by_layers(struct translation *m)
{
    int stages;
    int64_t each = translate_int(m, ARGUMENT_CHUNK_LAYERS, 1, 1), layers = shared_layers(m, &stages);
    if (stages > 0 && layers > 0 && layers % (stages * each) == 0)
        return (int)(layers / stages / each);
    if (m->description->job.model.layers > 0)
        diag_error(m->diags, m->arguments->of[ARGUMENT_CHUNK_LAYERS].at,
                   "--num-layers-per-virtual-pipeline-stage: %lld layers are not %d stages of chunks of %lld", (long long)layers,
                   stages, (long long)each);
    return 1;
}

static int chunks_of_layout(struct translation *m)
{
    int *layers = memory_new(PIECES_MAX, sizeof *layers), pp = m->description->job.layout.pp;
    int stages = megatron_stage_layout(m->arguments->of[ARGUMENT_STAGE_LAYOUT].text, layers);
    free(layers);
    if (stages > 0 && pp > 0 && stages % pp == 0)
        return stages / pp;
    diag_error(m->diags, m->arguments->of[ARGUMENT_STAGE_LAYOUT].at,
               "--pipeline-model-parallel-layout: %d stages are not the same number of chunks on each of %d ranks", stages, pp);
    return 1;
}

void translate_chunks(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    enum argument by = ARGUMENT_CHUNKS_LOGGED;
    l->vpp = 1;
    if (translate_has(m, ARGUMENT_PP_SCHEDULE) && !translate_has(m, ARGUMENT_STAGE_LAYOUT))
        return;
    if (translate_has(m, by) || translate_has(m, by = ARGUMENT_CHUNKS))
        l->vpp = (int)translate_int(m, by, 1, 1);
    else if (l->pp > 1 && translate_has(m, by = ARGUMENT_CHUNK_LAYERS))
        l->vpp = chunks_by_layers(m);
    else if (l->pp > 1 && translate_has(m, by = ARGUMENT_STAGE_LAYOUT))
        l->vpp = chunks_of_layout(m);
    else
        return;
    if (l->pp == 1)
        l->vpp = 1;
    translate_from(m, "layout.vpp", by);
}

void translate_schedule(struct translation *m)
{
    struct layout *l = &m->description->job.layout;
    l->schedule = l->pp == 1 ? SCHEDULE_NONE : l->vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
    if (translate_torch_schedule(m))
        return;
    if (l->pp > 1 && translate_true(m, ARGUMENT_ZERO_BUBBLE_V)) {
        l->schedule = SCHEDULE_ZBV;
        l->vpp = 2;
        translate_from(m, "layout.schedule", ARGUMENT_ZERO_BUBBLE_V);
    } else if (l->pp > 1 && translate_true(m, ARGUMENT_ZERO_BUBBLE)) {
        l->schedule = translate_has(m, ARGUMENT_ZERO_BUBBLE_PENDING) ? SCHEDULE_ZB2P : SCHEDULE_ZB1P;
        l->vpp = 1;
        translate_from(m, "layout.schedule", ARGUMENT_ZERO_BUBBLE);
    } else {
        if (l->pp == 1)
            launch_originate(m->description, "layout.schedule", "one stage");
        else
            launch_originate(m->description, "layout.schedule", "what Megatron-LM does with pp = %d and vpp = %d", l->pp, l->vpp);
    }
}

/* msim has a rule for the layers of virtual stages; a warning reports a job that divides them differently. */
static void compare_stages(struct translation *m, const int *layers, enum argument spelling)
{
    const struct launch_job *job = &m->description->job;
    for (int v = 0; v < layout_virtual_stages(&job->layout); v++) {
        int ours = layout_layers(&job->layout, &job->model, v).count;
        if (ours != layers[v]) {
            translate_not_modelled(m, spelling, "layers of virtual stage %d: %d are specified; msim assumes %d", v, layers[v],
                                   ours);
            return;
        }
    }
}

void translate_stages(struct translation *m)
{
    const struct launch_job *job = &m->description->job;
    int stages = layout_virtual_stages(&job->layout), n = stages;
    if (job->layout.pp == 1 || stages > PIECES_MAX || job->model.layers < 1)
        return;
    if (translate_has(m, ARGUMENT_PP_SCHEDULE) && !translate_has(m, ARGUMENT_STAGE_LAYOUT))
        return;
    int *layers = memory_new(PIECES_MAX, sizeof *layers), sharing;
    enum argument spelling = ARGUMENT_PP;
    if (translate_has(m, ARGUMENT_STAGE_LAYOUT)) {
        spelling = ARGUMENT_STAGE_LAYOUT;
        n = megatron_stage_layout(m->arguments->of[spelling].text, layers);
    } else {
        bool first = translate_has(m, ARGUMENT_FIRST_LAYERS), last = translate_has(m, ARGUMENT_LAST_LAYERS);
        int64_t shared = shared_layers(m, &sharing);
        int vpp = job->layout.schedule == SCHEDULE_DUALPIPE ? 1 : job->layout.vpp;
        int each = sharing > 0 ? (int)(shared / sharing / vpp) : 0;
        for (int v = 0; v < n; v++)
            layers[v] = each;
        for (int c = 0; c < vpp && first; c++)
            layers[c * job->layout.pp] = (int)(translate_int(m, ARGUMENT_FIRST_LAYERS, 0, 0) / vpp);
        for (int c = 0; c < vpp && last; c++)
            layers[(c + 1) * job->layout.pp - 1] = (int)(translate_int(m, ARGUMENT_LAST_LAYERS, 0, 0) / vpp);
        layers[0] -= counts(m, ARGUMENT_EMBEDDING_COUNTS);
        layers[n - 1] -= counts(m, ARGUMENT_LOSS_COUNTS);
        spelling = last ? ARGUMENT_LAST_LAYERS : first ? ARGUMENT_FIRST_LAYERS : ARGUMENT_PP;
    }
    bool by_weight = spelling == ARGUMENT_PP && layout_follows_llama(&job->layout, &job->model); /* other stacks' own rule */
    if (n == stages && !by_weight)
        compare_stages(m, layers, spelling);
    free(layers);
}
