#include "model/cost/memory/stage_load.h"

#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"

/* --- one stage */

/* Layers of one kind only. */
static bool is_uniform(const struct transformer *m, struct layer_range range)
{
    return !transformer_is_hybrid(m) && (m->moe.experts == 0 || (m->moe.every <= 1 && range.first >= m->moe.first_dense_layers));
}

typedef struct stage_parameters parameters_of_chunk(const struct layout *layout, const struct setting *setting,
                                                    struct layer_range range, bool embedding, bool head);

static struct stage_parameters both_of(struct stage_parameters a, struct stage_parameters b)
{
    return (struct stage_parameters){a.dense + b.dense, a.experts + b.experts};
}

/* Inner chunks of equal length hold the same, so one of them is counted. *pair: of the two chunks, one behind the other, that
 * have most. */
static struct stage_parameters parameters_of_stage(const struct layout *layout, const struct setting *setting, int stage,
                                                   parameters_of_chunk *of_chunk, struct stage_parameters *pair)
{
    struct stage_parameters sum = {0}, inner = {0}, before = {0};
    *pair = before;
    int inner_count = -1, last = layout_virtual_stages(layout) - 1;
    for (int chunk = 0; chunk < layout->vpp; chunk++) {
        int v = layout_virtual_stage(layout, stage, chunk);
        struct layer_range r = layout_layers(layout, setting->model, v);
        bool is_inner = v > 0 && v < last && is_uniform(setting->model, r);
        struct stage_parameters p = inner;
        if (!is_inner || r.count != inner_count)
            p = of_chunk(layout, setting, r, v == 0, v == last);
        if (is_inner) {
            inner = p;
            inner_count = r.count;
        }
        struct stage_parameters two = both_of(before, p);
        if (two.dense + two.experts > pair->dense + pair->experts)
            *pair = two;
        before = p;
        sum = both_of(sum, p);
    }
    return sum;
}

static void count_matrices(struct stage_load *load, const struct layout *layout, const struct setting *setting)
{
    int last = layout_virtual_stages(layout) - 1;
    load->matrices.n = 0;
    if (setting->job->optimizer != OPTIMIZER_MUON)
        return;
    load->matrices = (struct muon_matrices){.n = 0};
    for (int chunk = 0; chunk < layout->vpp; chunk++) {
        int v = layout_virtual_stage(layout, load->stage, chunk);
        muon_matrices_add(&load->matrices, layout, setting, layout_layers(layout, setting->model, v), v == last);
        muon_tables_add(&load->matrices, layout, setting, v == 0, v == last);
    }
}

static void run_add(struct chunk_run *run, struct layer_kind kind, double layers)
{
    int i = 0, kept = kept_kind(kind);
    while (i < run->n_kinds && run->of[i].kind != kept)
        i++;
    if (i == run->n_kinds)
        run->of[run->n_kinds++].kind = kept;
    run->of[i].layers += layers;
}

/* The layers of a chunk. Without a pattern the first and the last tell all. */
static struct chunk_run run_of(const struct transformer *model, struct layer_range range)
{
    struct chunk_run run = {.chunks = 1, .layers = range.count, .prediction = range.first >= model->layers};
    int last = range.first + range.count - 1;
    if (!transformer_is_hybrid(model)) {
        run_add(&run, layer_kind_of(model, range.first), 0.5 * range.count);
        run_add(&run, layer_kind_of(model, last), 0.5 * range.count);
        return run;
    }
    for (int i = range.first; i <= last; i++)
        run_add(&run, layer_kind_of(model, i), 1);
    return run;
}

static bool same_layers(const struct chunk_run *a, const struct chunk_run *b)
{
    bool same = a->layers == b->layers && a->n_kinds == b->n_kinds && a->prediction == b->prediction;
    for (int i = 0; same && i < a->n_kinds; i++)
        same = a->of[i].kind == b->of[i].kind && !(a->of[i].layers < b->of[i].layers) && !(a->of[i].layers > b->of[i].layers);
    return same;
}

static void add_chunk(struct stage_load *load, const struct transformer *model, struct layer_range range)
{
    struct chunk_run *last = load->n_runs > 0 ? &load->runs[load->n_runs - 1] : NULL, run = run_of(model, range);
    if (last != NULL && same_layers(last, &run)) {
        last->chunks++;
        return;
    }
    load->runs = memory_grow(load->runs, &load->capacity, load->n_runs + 1, sizeof *load->runs);
    load->runs[load->n_runs++] = run;
}

void stage_load_fill(struct stage_load *load, const struct layout *layout, const struct setting *setting, int stage)
{
    const struct transformer *m = setting->model;
    load->stage = stage;
    load->n_runs = 0;
    load->parameters = parameters_of_stage(layout, setting, stage, work_stage_parameters, &load->trained_pair);
    load->trained = load->parameters;
    if (job_adapts(setting->job))
        load->trained = parameters_of_stage(layout, setting, stage, work_trained_parameters, &load->trained_pair);
    count_matrices(load, layout, setting);
    for (int chunk = 0; chunk < layout->vpp; chunk++) {
        int v = layout_virtual_stage(layout, stage, chunk);
        struct layer_range r = layout_layers(layout, m, v);
        if (m->mtp_layers && v == layout_virtual_stages(layout) - 1)
            add_chunk(load, m, (struct layer_range){m->layers, m->mtp_layers});
        if (r.count > 0)
            add_chunk(load, m, r);
    }
}

void stage_load_free(struct stage_load *load)
{
    free(load->runs);
    *load = (struct stage_load){0};
}

/* --- the fullest */

/* Layers of the same kinds in the same order. */
static bool same_range(const struct transformer *m, struct layer_range a, struct layer_range b)
{
    bool same = a.count == b.count;
    if (same && is_uniform(m, a) && is_uniform(m, b))
        return true;
    for (int i = 0; same && i < a.count; i++)
        same = kept_kind(layer_kind_of(m, a.first + i)) == kept_kind(layer_kind_of(m, b.first + i));
    return same;
}

/* Two stages that hold the same, ends apart. */
static bool same_stages(const struct layout *l, const struct transformer *m, int a, int b)
{
    bool same = true;
    int last = layout_virtual_stages(l) - 1;
    for (int chunk = 0; same && chunk < l->vpp; chunk++) {
        int va = layout_virtual_stage(l, a, chunk), vb = layout_virtual_stage(l, b, chunk);
        bool inner = va > 0 && va < last && vb > 0 && vb < last;
        same = inner && same_range(m, layout_layers(l, m, va), layout_layers(l, m, vb));
    }
    return same;
}

static bool is_of(const struct full_stages *full, const struct layout *l, const struct transformer *model)
{
    return full->n > 0 && full->key.tp == l->tp && full->key.pp == l->pp && full->key.vpp == l->vpp && full->key.ep == l->ep &&
           full->key.expert_tp == layout_expert_tp(l) && full->key.arrangement == schedule_arrangement(l->schedule) &&
           full->key.llama == layout_follows_llama(l, model) && full->key.apart == work_keeps_matrices_apart(l, model) &&
           full->key.divides == schedule_divides(l->schedule);
}

static void fill_next(struct full_stages *full, const struct layout *l, const struct setting *setting, int stage)
{
    size_t before = full->capacity;
    full->stages = memory_grow(full->stages, &full->capacity, (size_t)full->n + 1, sizeof *full->stages);
    memset(full->stages + before, 0, (full->capacity - before) * sizeof *full->stages);
    stage_load_fill(&full->stages[full->n++], l, setting, stage);
}

bool full_stages_of(struct full_stages *full, const struct layout *l, const struct setting *setting)
{
    const struct transformer *model = setting->model;
    if (is_of(full, l, model))
        return false;
    full->n = 0;
    for (int stage = 0; stage < l->pp; stage++) {
        int i = full->n - 1;
        while (i >= 0 && !same_stages(l, model, full->stages[i].stage, stage))
            i--;
        if (i < 0)
            fill_next(full, l, setting, stage);
        else if (schedule_divides(l->schedule)) /* more waits for its weights' gradients the later the stage */
            full->stages[i].stage = stage;
    }
    full->key.tp = l->tp, full->key.pp = l->pp, full->key.vpp = l->vpp, full->key.ep = l->ep;
    full->key.expert_tp = layout_expert_tp(l);
    full->key.arrangement = schedule_arrangement(l->schedule);
    full->key.llama = layout_follows_llama(l, model);
    full->key.apart = work_keeps_matrices_apart(l, model);
    full->key.divides = schedule_divides(l->schedule);
    return true;
}

void full_stages_free(struct full_stages *full)
{
    for (size_t i = 0; i < full->capacity; i++)
        stage_load_free(&full->stages[i]);
    free(full->stages);
    *full = (struct full_stages){0};
}
