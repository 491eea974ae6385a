/*
 * closed_form_updates.c - the optimizer step of a stage, for the closed form: on the GPU, by the host's cores, or Muon's parts.
 */
#include "model/cost/step/closed_form_replicas.h"

#include <math.h>

#include "model/cost/kernel/collective.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/work/host_memory.h"
#include "model/cost/work/muon.h"
#include "model/cost/work/precision_bytes.h"

/* What is trained of a stage: of the tables at its ends, and of its layers. */
struct trained_parts {
    struct stage_parameters first, last, layers;
};

static struct stage_parameters less(struct stage_parameters a, struct stage_parameters b)
{
    return (struct stage_parameters){a.dense - b.dense, a.experts - b.experts};
}

/* The first table goes with the first chunk's first layer, the other with the last chunk's last. */
static struct trained_parts trained_parts_of(const struct setting *setting, const struct layout *l, const struct stage_load *load)
{
    static const struct layer_range none = {0, 0};
    struct trained_parts parts = {.layers = load->trained};
    int last = layout_virtual_stages(l) - 1;
    for (int chunk = 0; chunk < l->vpp; chunk++) {
        int v = layout_virtual_stage(l, load->stage, chunk);
        if (v == 0)
            parts.first = work_trained_parameters(l, setting, none, true, false);
        if (v == last)
            parts.last = work_trained_parameters(l, setting, none, false, true);
    }
    parts.layers = less(less(parts.layers, parts.first), parts.last);
    return parts;
}

/* Seconds of n parameters on their way down, at the host's cores, and up. */
struct host_way {
    double down, update, up;
};

static double copied_seconds(const struct setting *setting, const struct layout *l, double bytes)
{
    return bytes > 0 ? cost_seconds(copy_cost(setting->cluster, l, bytes)) : 0;
}

static struct host_way host_way_of(const struct setting *setting, const struct layout *l, double own)
{
    double states = offload_share(&l->offload, OFFLOAD_OPTIMIZER) * own;
    double returned = states - offload_share(&l->offload, OFFLOAD_PARAMETERS) * own;
    double gradient = layout_offloads_gradients(l) ? 0 : precision_bytes(setting->job->gradient_precision);
    return (struct host_way){copied_seconds(setting, l, states * gradient),
                             cost_seconds(host_update_cost(setting->cluster, l, states * host_update_bytes(setting->job))),
                             copied_seconds(setting, l, returned * offloaded_weight_bytes(setting->job))};
}

/* Layer by layer down, updated behind the norm, and up, each beside the others' next. */
static double host_way_seconds(const struct setting *setting, const struct layout *l, const struct trained_parts *parts,
                               int pieces, double norm_s)
{
    double first = work_own_parameters(l, parts->first), last = work_own_parameters(l, parts->last);
    double layer = work_own_parameters(l, parts->layers) / pieces, down = 0, updated = norm_s, up = 0;
    const struct host_way ways[] = {host_way_of(setting, l, layer + first + (pieces == 1 ? last : 0)),
                                    host_way_of(setting, l, layer), host_way_of(setting, l, layer + last)};
    for (int i = 0; i < pieces; i++) {
        const struct host_way *way = &ways[i == 0 ? 0 : i < pieces - 1 ? 1 : 2];
        down += way->down;
        updated = fmax(updated, down) + way->update;
        up = fmax(up, updated) + way->up;
    }
    return up;
}

static double host_optimizer_seconds(const struct setting *setting, const struct layout *l, const struct trained_parts *parts,
                                     int layers)
{
    const struct machine machine = {.cluster = setting->cluster, .layout = l, .job = setting->job, .pace = 1};
    double own =
        work_own_parameters(l, parts->first) + work_own_parameters(l, parts->layers) + work_own_parameters(l, parts->last);
    double states = offload_share(&l->offload, OFFLOAD_OPTIMIZER);
    struct work_table table = {0};
    const int32_t works[] = {work_add_device_optimizer(&table, setting, own, 0),
                             work_add_device_optimizer(&table, setting, 0, work_cast_parameters(l, parts->layers)),
                             work_add_kept_update(&table, setting, own * (1 - states))};
    enum { WORKS = sizeof works / sizeof *works };
    double s[WORKS];
    for (int i = 0; i < WORKS; i++)
        s[i] = cost_seconds(work_cost(&machine, &table, works[i]));
    work_table_free(&table);
    double casts = precision_is_narrow(setting->job->precision) ? s[1] : 0;
    double there = host_way_seconds(setting, l, parts, layers > 0 ? layers : 1, s[0]);
    return fmax(there, states < 1 ? s[0] + s[2] : 0) + casts;
}

static struct cost optimizer_cost(const struct setting *setting, const struct layout *l, struct stage_parameters p,
                                  struct stage_parameters layers)
{
    const struct machine machine = {.cluster = setting->cluster, .layout = l, .job = setting->job, .pace = 1};
    struct work_table table = {0};
    int32_t id = work_add_optimizer(&table, setting, work_own_parameters(l, p), work_cast_parameters(l, layers));
    struct cost cost = work_cost(&machine, &table, id);
    work_table_free(&table);
    return cost;
}

/* Updates to owners and back, dense ones and then experts'. */
static struct cost muon_exchange_cost(const struct setting *setting, const struct layout *l, const struct muon_matrices *matrices,
                                      enum group_kind group)
{
    double bytes = muon_exchange_bytes(matrices, l, setting, group);
    if (bytes <= 0)
        return (struct cost){0};
    struct group_span span = replica_span(l, setting->cluster, group);
    return cost_scale(collective_time(setting->cluster, COLLECTIVE_ALL_TO_ALL, span, bytes), 2);
}

/* Owners' weights to everybody: copies, and the exchanges. */
static struct cost copies_cost(const struct machine *machine, struct work_table *table, const struct muon_gather *g)
{
    double all = g->dense + g->experts;
    if (all <= 0)
        return (struct cost){0};
    int32_t flat = work_add_muon_copy(table, "muon_flatten", g->own);
    int32_t back = work_add_muon_copy(table, "muon_unflatten", all - g->own);
    return cost_add(work_cost(machine, table, flat), work_cost(machine, table, back));
}

static double owners_gather_seconds(const struct setting *setting, const struct layout *l, enum group_kind group,
                                    double parameters)
{
    if (parameters <= 0)
        return 0;
    struct group_span span = replica_span(l, setting->cluster, group);
    return cost_seconds(collective_time(setting->cluster, COLLECTIVE_ALL_GATHER, span, parameters * MUON_WEIGHT_BYTES));
}

double owners_seconds(const struct setting *setting, const struct layout *l, const struct stage_load *load)
{
    struct muon_gather g = muon_gather_of(&load->matrices, l, setting, load->parameters);
    return owners_gather_seconds(setting, l, GROUP_DP, g.dense) + owners_gather_seconds(setting, l, GROUP_EXPERT_DP, g.experts);
}

/* The parts of Muon's step one after the other, as the programs have them. */
static struct cost muon_cost(const struct setting *setting, const struct layout *l, struct stage_parameters p,
                             struct stage_parameters layers, const struct muon_matrices *matrices, struct gemm_memo *gemms)
{
    struct machine machine = {.cluster = setting->cluster, .layout = l, .job = setting->job, .pace = 1, .gemms = gemms};
    struct work_table table = {0};
    struct muon_updated updated = muon_updated_of(matrices, l, setting, p);
    struct muon_gather gather = muon_gather_of(matrices, l, setting, p);
    machine.spans[GROUP_TP] = layout_span(l, setting->cluster, GROUP_TP);
    int32_t products = work_add_newton_schulz(&table, l, setting, matrices);
    int32_t update = work_add_muon_update(&table, setting, updated.all, updated.matrices);
    int32_t apply = work_add_muon_apply(&table, setting, updated.matrices, work_cast_parameters(l, layers));
    struct cost cost = cost_add(work_cost(&machine, &table, update), work_cost(&machine, &table, apply));
    if (products >= 0)
        cost = cost_add(cost, work_cost(&machine, &table, products));
    cost = cost_add(cost, muon_exchange_cost(setting, l, matrices, GROUP_DP));
    cost = cost_add(cost, muon_exchange_cost(setting, l, matrices, GROUP_EXPERT_DP));
    cost = cost_add(cost, copies_cost(&machine, &table, &gather));
    work_table_free(&table);
    return cost;
}

struct cost update_cost(const struct setting *setting, const struct layout *l, const struct stage_load *load, int layers,
                        struct gemm_memo *gemms)
{
    const struct trained_parts parts = trained_parts_of(setting, l, load);
    if (layout_offloads(l, OFFLOAD_OPTIMIZER))
        return (struct cost){.memory_s = host_optimizer_seconds(setting, l, &parts, layers)};
    if (setting->job->optimizer != OPTIMIZER_MUON)
        return optimizer_cost(setting, l, load->trained, parts.layers);
    return muon_cost(setting, l, load->parameters, parts.layers, &load->matrices, gemms);
}
