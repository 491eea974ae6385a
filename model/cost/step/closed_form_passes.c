#include "model/cost/step/closed_form_passes.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/hash.h"
#include "model/base/memory.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/work/host_memory.h"

enum { FIRST_SLOTS = 256 };

/* --- the cache */

void pass_cache_init(struct pass_cache *cache)
{
    *cache = (struct pass_cache){.n_slots = FIRST_SLOTS};
    cache->slots = memory_new(cache->n_slots, sizeof *cache->slots);
}

static void pass_costs_free(struct pass_costs *costs)
{
    if (!costs)
        return;
    for (int pass = 0; pass < N_PASSES; pass++)
        free(costs->before[pass]);
    free(costs->kinds);
    free(costs->chunks);
    free(costs);
}

void pass_cache_free(struct pass_cache *cache)
{
    for (size_t i = 0; i < cache->n_slots; i++)
        pass_costs_free(cache->slots[i]);
    free(cache->slots);
    gemm_memo_free(&cache->gemms);
    *cache = (struct pass_cache){0};
}

/* Features that change a pass; the others change only how passes are put together. */
#define PASS_FEATURES                                                                                                            \
    (~(FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(SCATTER_GATHER_P2P) | FEATURE_BIT(ASYNC_DATA) |           \
       FEATURE_BIT(EP_OVERLAP)))

static struct pass_key key_of(const struct layout *l, const struct job *job)
{
    return (struct pass_key){
        .tp = l->tp,
        .cp = l->cp,
        .cp_comm = (int)l->cp_comm,
        .ep = l->ep,
        .micro_batch = l->micro_batch,
        .recompute = l->recompute.what,
        .partial = l->recompute.of != RECOMPUTE_ALL,
        .by_need = layout_recomputes_by_need(l),
        .sequence_parallel = l->sequence_parallel,
        .expert_tp = layout_expert_tp(l),
        .accumulates = layout_micro_batches(l, job) > 1,
        .offloads = l->offload.of[OFFLOAD_ACTIVATIONS],
        .features = l->features & PASS_FEATURES,
    };
}

static_assert(sizeof(struct pass_key) == 11 * sizeof(int) + sizeof(struct offload_amount) + sizeof(feature_set),
              "no padding: keys are hashed and compared by their bytes");

static struct pass_costs **slot_of(struct pass_costs **slots, size_t n, const struct pass_key *key)
{
    size_t i = (size_t)hash_key(key, sizeof *key) % n;
    while (slots[i] != NULL && memcmp(&slots[i]->key, key, sizeof *key) != 0)
        i = (i + 1) % n;
    return &slots[i];
}

static void slots_grow(struct pass_cache *cache)
{
    size_t n = cache->n_slots * 2;
    struct pass_costs **bigger = memory_new(n, sizeof *bigger);
    for (size_t i = 0; i < cache->n_slots; i++)
        if (cache->slots[i] != NULL)
            *slot_of(bigger, n, &cache->slots[i]->key) = cache->slots[i];
    free(cache->slots);
    cache->slots = bigger;
    cache->n_slots = n;
}

/* --- parts */

/* What parts are costed with. */
struct costing {
    const struct setting *setting;
    struct machine machine;
    struct work_table table;
};

/* Spans that pass costs need, without those of dimensions the key leaves open; pauses are counted with the pipeline. */
static struct costing costing_at_pace(const struct pass_costs *costs, const struct setting *setting, const struct layout *layout,
                                      double pace)
{
    struct machine machine = {.cluster = setting->cluster,
                              .layout = layout,
                              .job = setting->job,
                              .pace = pace,
                              .gemms = costs->gemms,
                              .walks = costs->walks};
    machine.spans[GROUP_TP] = layout_span(layout, setting->cluster, GROUP_TP);
    machine.spans[GROUP_CP] = layout_span(layout, setting->cluster, GROUP_CP);
    machine.spans[GROUP_CP_HEADS] = layout_span(layout, setting->cluster, GROUP_CP_HEADS);
    machine.spans[GROUP_EP] = layout_span(layout, setting->cluster, GROUP_EP);
    return (struct costing){.setting = setting, .machine = machine};
}

static struct costing costing_of(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    struct costing costing = costing_at_pace(costs, setting, layout, costs->pace);
    if (costs->pace <= 0) {
        machine_set_pace(&costing.machine, setting, setting->gpus);
        costs->pace = costing.machine.pace;
    }
    return costing;
}

static struct part part_of(struct costing *costing, enum pass pass, struct layer_range range, bool embedding, bool head)
{
    struct part part = {0};
    struct work_table *table = &costing->table;
    int32_t id = work_add_pass(table, costing->machine.layout, costing->setting, pass, range, embedding, head);
    part.host_s = work_host_seconds(&costing->machine, table, id);
    table->items[id].sequence.host_paced = false;
    work_cost_by_class(&costing->machine, table, id, &part.device);
    part.device_s = cost_by_class_total(&part.device);
    return part;
}

static void part_add(struct part *sum, const struct part *part, double times)
{
    cost_by_class_add(&sum->device, &part->device, times);
    sum->device_s += times * part->device_s;
    sum->host_s += times * part->host_s;
}

/* Layers of one kind: how many there are, how many behind the leading dense ones, and one of them. */
struct kind_numbers {
    int all[N_LAYER_KINDS], late[N_LAYER_KINDS], one[N_LAYER_KINDS];
    int n_all, n_late;
};

static struct kind_numbers kinds_of(const struct transformer *model)
{
    struct kind_numbers kinds = {.n_all = model->layers};
    int dense = model->moe.experts > 0 && model->moe.first_dense_layers < model->layers ? model->moe.first_dense_layers : 0;
    for (int i = 0; i < model->layers; i++) {
        int kind = layer_kind_index(layer_kind_of(model, i));
        kinds.all[kind]++;
        kinds.late[kind] += i >= dense;
        kinds.one[kind] = i;
    }
    kinds.n_late = model->layers - dense;
    return kinds;
}

/* By a pattern, or by windows that some layers have and others not. */
static bool kinds_differ(const struct setting *setting)
{
    const struct transformer *model = setting->model;
    return transformer_is_hybrid(model) ||
           (model->window > 0 && model->window_every > 0 && model->window < setting->job->seq_len);
}

static void layers_before_fill(struct pass_costs *costs, enum pass pass, const struct transformer *model)
{
    int n = model->layers + model->mtp_layers;
    if (!costs->before[pass])
        costs->before[pass] = memory_new((size_t)n + 1, sizeof *costs->before[pass]);
    struct part_seconds *before = costs->before[pass];
    for (int i = 0; i < n; i++) {
        const struct part_seconds *one = &costs->kinds[pass][layer_kind_index(layer_kind_of(model, i))];
        before[i + 1] = (struct part_seconds){before[i].device_s + one->device_s, before[i].host_s + one->host_s};
    }
}

/* See PARTS_LEAST. At full clock the slowest of the GPUs sets the pace alone, and the less a product takes the less does what
 * overlaps with it; what the host takes need not be less, so it is left out. Of a mixture's leading dense layers no more is known
 * than that they take some time. */
static void costs_draft(struct pass_costs *costs, const struct setting *setting, const struct layout *layout, enum pass first,
                        enum pass last)
{
    const struct gpu *gpu = &setting->cluster->gpu;
    struct costing costing = costing_at_pace(costs, setting, layout, slowest_of(setting->gpus, gpu->clock_spread));
    struct kind_numbers kinds = kinds_of(setting->model);
    for (int pass = first; pass <= (int)last; pass++) {
        struct part *parts = costs->parts[pass];
        for (int kind = 0; kind < N_LAYER_KINDS; kind++) {
            if (kinds.late[kind] == 0)
                continue;
            struct layer_range one = {kinds.one[kind], 1};
            int32_t id = work_add_pass(&costing.table, layout, setting, (enum pass)pass, one, false, false);
            costing.table.items[id].sequence.host_paced = false;
            double seconds = cost_seconds(work_cost(&costing.machine, &costing.table, id));
            parts[PART_MEAN_LAYER].device_s += seconds * kinds.late[kind] / kinds.n_all;
            parts[PART_LAYER].device_s += seconds * kinds.late[kind] / kinds.n_late;
        }
    }
    work_table_free(&costing.table);
}

static void costs_fill(struct pass_costs *costs, const struct setting *setting, const struct layout *layout, enum pass first,
                       enum pass last)
{
    static const struct layer_range none = {0, 0};
    struct costing costing = costing_of(costs, setting, layout);
    struct kind_numbers kinds = kinds_of(setting->model);
    if (costs->differ && !costs->kinds)
        costs->kinds = memory_new(N_PASSES, sizeof *costs->kinds);
    for (int pass = first; pass <= (int)last; pass++) {
        struct part *parts = costs->parts[pass];
        for (int kind = 0; kind < N_LAYER_KINDS; kind++) {
            if (kinds.all[kind] == 0)
                continue;
            struct part layer = part_of(&costing, (enum pass)pass, (struct layer_range){kinds.one[kind], 1}, false, false);
            part_add(&parts[PART_MEAN_LAYER], &layer, (double)kinds.all[kind] / kinds.n_all);
            part_add(&parts[PART_LAYER], &layer, (double)kinds.late[kind] / kinds.n_late);
            if (costs->kinds)
                costs->kinds[pass][kind] = (struct part_seconds){layer.device_s, layer.host_s};
        }
        if (costs->kinds)
            layers_before_fill(costs, (enum pass)pass, setting->model);
        parts[PART_EMBEDDING] = part_of(&costing, (enum pass)pass, none, true, false);
        parts[PART_HEAD] = part_of(&costing, (enum pass)pass, none, false, true);
    }
    work_table_free(&costing.table);
}

/* On average over the model's layers. */
static double copy_of_layer(const struct setting *setting, const struct layout *layout)
{
    const struct transformer *model = setting->model;
    double bytes = 0;
    for (int i = 0; i < model->layers; i++)
        bytes += footprint_layer_bytes(layout, setting, layer_kind_of(model, i));
    return cost_seconds(copy_cost(setting->cluster, layout, bytes / model->layers));
}

static struct layout recomputing(const struct layout *layout, enum recompute_what what)
{
    struct layout all = *layout;
    all.recompute = (struct recompute){.what = what};
    return all;
}

/* Of layers that are all alike. */
static void pair_all(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    if (costs->pairs_known)
        return;
    struct costing costing = costing_of(costs, setting, layout);
    int layers = setting->model->layers;
    struct layer_range all = {0, layers};
    int32_t passes[2];
    for (int i = 0; i < 2; i++)
        passes[i] = work_add_pass(&costing.table, layout, setting, i ? PASS_BACKWARD : PASS_FORWARD, all, false, false);
    for (int i = 0; i < 2; i++)
        work_cost_by_class(&costing.machine, &costing.table, work_add_paired(&costing.table, passes[i], passes[i], passes[!i]),
                           &costs->layer_pair);
    for (int i = 0; i < N_WORK_CLASSES; i++)
        costs->layer_pair.s[i] /= layers;
    costs->pair_s = cost_by_class_total(&costs->layer_pair);
    costs->pairs_known = true;
    work_table_free(&costing.table);
}

void pass_costs_pair(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    if (!costs->whole) {
        pair_all(costs, setting, layout);
        return;
    }
    const struct layout repeated = recomputing(layout, layout->recompute.what), whole = recomputing(layout, RECOMPUTE_NONE);
    pair_all(costs->repeated, setting, &repeated);
    pair_all(costs->whole, setting, &whole);
    costs->layer_pair = (struct cost_by_class){{0}};
    cost_by_class_add(&costs->layer_pair, &costs->repeated->layer_pair, 1 - costs->stages.whole);
    cost_by_class_add(&costs->layer_pair, &costs->whole->layer_pair, costs->stages.whole);
    costs->pair_s = cost_by_class_total(&costs->layer_pair);
}

/* Prediction modules keep everything. */
static void take_parts(struct pass_costs *costs, enum pass first, enum pass last)
{
    for (int pass = first; pass <= (int)last; pass++) {
        memcpy(costs->parts[pass], costs->repeated->parts[pass], sizeof costs->parts[pass]);
        costs->parts[pass][PART_HEAD] = costs->whole->parts[pass][PART_HEAD];
    }
}

/* Of layers that are all alike. What stages took before the two parts were known is not what they take. */
static void divide_all(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    if (costs->divided_known)
        return;
    (costs->known == PARTS_LEAST ? costs_draft : costs_fill)(costs, setting, layout, PASS_BACKWARD_INPUT, PASS_BACKWARD_WEIGHT);
    costs->divided_known = true;
    costs->stages.pp = 0;
}

void pass_costs_divide(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    if (!costs->whole) {
        divide_all(costs, setting, layout);
        return;
    }
    const struct layout repeated = recomputing(layout, layout->recompute.what), whole = recomputing(layout, RECOMPUTE_NONE);
    divide_all(costs->repeated, setting, &repeated);
    divide_all(costs->whole, setting, &whole);
    take_parts(costs, PASS_BACKWARD_INPUT, PASS_BACKWARD_WEIGHT);
    costs->divided_known = true;
}

static struct pass_costs **find_slot(struct pass_cache *cache, const struct pass_key *key)
{
    struct pass_costs **slot = slot_of(cache->slots, cache->n_slots, key);
    if (*slot == NULL && (cache->n_used + 1) * 2 > cache->n_slots) {
        slots_grow(cache);
        slot = slot_of(cache->slots, cache->n_slots, key);
    }
    return slot;
}

/* Of layers that are all alike. */
static struct pass_costs *costs_of_all(struct pass_cache *cache, const struct setting *setting, const struct layout *layout)
{
    struct pass_key key = key_of(layout, setting->job);
    struct pass_costs **slot = find_slot(cache, &key);
    if (*slot != NULL)
        return *slot;
    cache->n_used++;
    *slot = memory_new(1, sizeof **slot);
    (*slot)->key = key;
    (*slot)->gemms = &cache->gemms;
    (*slot)->walks = &cache->walks;
    (*slot)->differ = kinds_differ(setting);
    if (layout_offloads(layout, OFFLOAD_ACTIVATIONS))
        (*slot)->copy_s = copy_of_layer(setting, layout);
    return *slot;
}

void pass_costs_know_least(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    if (costs->known != PARTS_UNKNOWN)
        return;
    if (transformer_is_hybrid(setting->model)) {
        pass_costs_know_all(costs, setting, layout);
        return;
    }
    costs_draft(costs, setting, layout, PASS_FORWARD, PASS_BACKWARD);
    costs->known = PARTS_LEAST;
}

void pass_costs_know_all(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    if (costs->known == PARTS_ALL)
        return;
    memset(costs->parts, 0, sizeof costs->parts);
    costs->divided_known = false;
    costs->stages.pp = 0;
    costs_fill(costs, setting, layout, PASS_FORWARD, PASS_BACKWARD);
    costs->known = PARTS_ALL;
}

struct pass_costs *pass_costs_of(struct pass_cache *cache, const struct setting *setting, const struct layout *layout)
{
    if (layout->recompute.of == RECOMPUTE_ALL)
        return costs_of_all(cache, setting, layout);
    struct pass_key key = key_of(layout, setting->job);
    struct pass_costs *known = *slot_of(cache->slots, cache->n_slots, &key);
    if (known != NULL)
        return known;
    const struct layout repeated = recomputing(layout, layout->recompute.what), whole = recomputing(layout, RECOMPUTE_NONE);
    struct pass_costs *costs = memory_new(1, sizeof *costs);
    costs->key = key;
    costs->gemms = &cache->gemms;
    costs->walks = &cache->walks;
    costs->repeated = costs_of_all(cache, setting, &repeated);
    costs->whole = costs_of_all(cache, setting, &whole);
    pass_costs_know_all(costs->repeated, setting, &repeated);
    pass_costs_know_all(costs->whole, setting, &whole);
    costs->pace = costs->repeated->pace;
    if (layout_offloads(layout, OFFLOAD_ACTIVATIONS))
        costs->copy_s = copy_of_layer(setting, layout);
    take_parts(costs, PASS_FORWARD, PASS_BACKWARD);
    costs->known = PARTS_ALL;
    *find_slot(cache, &key) = costs;
    cache->n_used++;
    return costs;
}

/* --- passes */

struct layer_count pass_layers(struct recompute recompute, double layers, double chunks)
{
    if (recompute.of == RECOMPUTE_ALL || chunks <= 0)
        return (struct layer_count){layers, 0};
    double each = layers / chunks, light = floor(each), heavier = each - light;
    double of_light = light - recompute_layers(recompute, (int)light);
    double of_heavy = light + 1 - recompute_layers(recompute, (int)light + 1);
    return (struct layer_count){layers, chunks * ((1 - heavier) * of_light + heavier * of_heavy)};
}

double pass_with_ends(const struct part *parts, struct part_seconds layers, bool embedding, bool head)
{
    double device = layers.device_s, host = layers.host_s;
    if (embedding)
        device += parts[PART_EMBEDDING].device_s, host += parts[PART_EMBEDDING].host_s;
    if (head)
        device += parts[PART_HEAD].device_s, host += parts[PART_HEAD].host_s;
    return host > 0 ? device + starved_seconds(host, device) : device;
}

double pass_seconds(const struct pass_costs *costs, enum pass pass, enum pass_part layer, struct layer_count layers,
                    bool embedding, bool head)
{
    const struct part *parts = costs->parts[pass];
    double repeated = layers.n - layers.whole;
    struct part_seconds all = {repeated * parts[layer].device_s, repeated * parts[layer].host_s};
    if (costs->whole) {
        all.device_s += layers.whole * costs->whole->parts[pass][layer].device_s;
        all.host_s += layers.whole * costs->whole->parts[pass][layer].host_s;
    }
    return pass_with_ends(parts, all, embedding, head);
}

double pass_leaving_layers(const struct layout *layout, double stage_layers, double layers)
{
    int all = (int)ceil(stage_layers);
    return all > 0 ? layers * offload_layers(&layout->offload, all) / all : 0;
}

double pass_waiting_layers(double leaving)
{
    return fmax(0, leaving - OFFLOAD_BUFFERS);
}
