#include "model/cost/stage_load.h"

#include <stdlib.h>

#include "model/base/memory.h"

/* --- one stage */

/* Layers of one kind only. */
static bool is_uniform(const struct transformer *m, struct layer_range range)
{
    return m->moe.experts == 0 || (m->moe.every <= 1 && range.first >= m->moe.first_dense_layers);
}

/* Inner chunks of equal length hold the same, so one of them is counted. */
static struct stage_parameters parameters_of_stage(const struct layout *layout, const struct setting *setting, int stage)
{
    struct stage_parameters sum = {0}, inner = {0};
    int inner_count = -1, last = layout_virtual_stages(layout) - 1;
    for (int chunk = 0; chunk < layout->vpp; chunk++) {
        int v = layout_virtual_stage(layout, stage, chunk);
        struct layer_range r = layout_layers(layout, setting->model, v);
        bool is_inner = v > 0 && v < last && is_uniform(setting->model, r);
        struct stage_parameters p = inner;
        if (!is_inner || r.count != inner_count)
            p = work_stage_parameters(layout, setting, r, v == 0, v == last);
        if (is_inner) {
            inner = p;
            inner_count = r.count;
        }
        sum.dense += p.dense;
        sum.experts += p.experts;
    }
    return sum;
}

static void count_matrices(struct stage_load *load, const struct layout *layout, const struct setting *setting)
{
    int last = layout_virtual_stages(layout) - 1;
    load->matrices.n = 0;
    for (int chunk = 0; chunk < layout->vpp && setting->job->optimizer == OPTIMIZER_MUON; chunk++) {
        int v = layout_virtual_stage(layout, load->stage, chunk);
        muon_matrices_add(&load->matrices, layout, setting, layout_layers(layout, setting->model, v), v == last);
    }
}

static void add_chunk(struct stage_load *load, int layers, bool first, bool last)
{
    struct chunk_run *run = load->n_runs > 0 ? &load->runs[load->n_runs - 1] : NULL;
    if (run != NULL && run->layers == layers && run->mixture[0] == first && run->mixture[1] == last) {
        run->chunks++;
        return;
    }
    load->runs = memory_grow(load->runs, &load->capacity, load->n_runs + 1, sizeof *load->runs);
    load->runs[load->n_runs++] = (struct chunk_run){1, layers, {first, last}};
}

void stage_load_fill(struct stage_load *load, const struct layout *layout, const struct setting *setting, int stage)
{
    const struct transformer *m = setting->model;
    load->stage = stage;
    load->n_runs = 0;
    load->parameters = parameters_of_stage(layout, setting, stage);
    count_matrices(load, layout, setting);
    for (int chunk = 0; chunk < layout->vpp; chunk++) {
        int v = layout_virtual_stage(layout, stage, chunk);
        struct layer_range r = layout_layers(layout, m, v);
        bool prediction = layer_is_mixture(m, m->layers - 1); /* prediction layers are like the last one */
        if (m->mtp_layers && v == layout_virtual_stages(layout) - 1)
            add_chunk(load, m->mtp_layers, prediction, prediction);
        if (r.count > 0)
            add_chunk(load, r.count, layer_is_mixture(m, r.first), layer_is_mixture(m, r.first + r.count - 1));
    }
}

void stage_load_free(struct stage_load *load)
{
    free(load->runs);
    *load = (struct stage_load){0};
}

/* --- the fullest */

static int layers_of_stage(const struct layout *layout, const struct transformer *model, int stage)
{
    int layers = 0;
    for (int chunk = 0; chunk < layout->vpp; chunk++)
        layers += layout_layers(layout, model, layout_virtual_stage(layout, stage, chunk)).count;
    return layers;
}

/* The first stage with more layers than the second, other than the last; the second when there is none. The heavier ones stand
 * together before the last. */
static int first_heavier_stage(const struct layout *layout, const struct transformer *model)
{
    if (layout->pp < 4)
        return layout->pp > 1;
    int second = layers_of_stage(layout, model, 1), stage = 2;
    if (layers_of_stage(layout, model, layout->pp - 2) <= second)
        return 1;
    while (layers_of_stage(layout, model, stage) <= second)
        stage++;
    return stage;
}

static bool is_of(const struct full_stages *full, const struct layout *l, const struct transformer *model)
{
    return full->n > 0 && full->key.tp == l->tp && full->key.pp == l->pp && full->key.vpp == l->vpp && full->key.ep == l->ep &&
           full->key.expert_tp == layout_expert_tp(l) && full->key.arrangement == schedule_arrangement(l->schedule) &&
           full->key.llama == layout_follows_llama(l, model);
}

void full_stages_of(struct full_stages *full, const struct layout *l, const struct setting *setting)
{
    const struct transformer *model = setting->model;
    if (is_of(full, l, model))
        return;
    const int candidates[FULL_STAGES] = {0, l->pp > 1, first_heavier_stage(l, model), l->pp - 1};
    full->n = 0;
    for (int i = 0; i < FULL_STAGES; i++)
        if (i == 0 || candidates[i] != candidates[i - 1])
            stage_load_fill(&full->stages[full->n++], l, setting, candidates[i]);
    full->key.tp = l->tp, full->key.pp = l->pp, full->key.vpp = l->vpp, full->key.ep = l->ep;
    full->key.expert_tp = layout_expert_tp(l);
    full->key.arrangement = schedule_arrangement(l->schedule);
    full->key.llama = layout_follows_llama(l, model);
}

void full_stages_free(struct full_stages *full)
{
    for (int i = 0; i < FULL_STAGES; i++)
        stage_load_free(&full->stages[i]);
    *full = (struct full_stages){0};
}
