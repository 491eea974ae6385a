/* The exchanges of gradients and parameters among replicas, and the optimizer. */
#include "model/cost/closed_form_replicas.h"

#include <math.h>

#include "model/cost/adapter.h"
#include "model/cost/collective.h"
#include "model/cost/host_memory.h"
#include "model/cost/machine.h"
#include "model/cost/muon.h"
#include "model/cost/precision_bytes.h"

/* What a rank holds, and of that what is trained. */
struct held {
    struct stage_parameters all, trained;
};

/* Gradients of what is trained reduced, and parameters gathered, over one kind of group: those that were updated, or of ZeRO-3
 * all that are held. */
static struct exchange exchange_over(const struct setting *setting, const struct layout *l, enum group_kind group, double held,
                                     double trained)
{
    const struct cluster *cluster = setting->cluster;
    double gradient = trained * precision_bytes(setting->job->gradient_precision), parameters = l->zero == 3 ? held : trained;
    if (parameters <= 0 || layout_group_size(l, group) == 1)
        return (struct exchange){0};
    struct group_span span = replica_span(l, cluster, group);
    bool whole = work_reduces_whole(l, setting->job); /* what owners gather is part of the optimizer's step */
    enum collective reduction = whole ? COLLECTIVE_ALL_REDUCE : COLLECTIVE_REDUCE_SCATTER;
    double gathered = whole ? 0 : parameters * 2;
    struct exchange e = {
        .reduce_s = gradient > 0 ? cost_seconds(collective_time(cluster, reduction, span, gradient)) : 0,
        .gather_s = whole ? 0 : cost_seconds(collective_time(cluster, COLLECTIVE_ALL_GATHER, span, gathered)),
    };
    if (l->pp > 1) /* it fills and drains meanwhile */
        return e;
    if (gradient > 0)
        e.reduce_crowding_s = crowding_seconds(cluster, reduction, span, gradient, e.reduce_s);
    e.gather_crowding_s = crowding_seconds(cluster, COLLECTIVE_ALL_GATHER, span, gathered, e.gather_s);
    return e;
}

/* DualPipe's two copies of a stage add up what is left of their gradients. */
static double mirror_seconds(const struct setting *setting, const struct layout *l, struct stage_parameters p)
{
    if (l->schedule != SCHEDULE_DUALPIPE)
        return 0;
    double bytes = work_reduced_parameters(l, setting->job, p) * precision_bytes(setting->job->gradient_precision);
    struct group_span span = layout_span(l, setting->cluster, GROUP_MIRROR);
    return cost_seconds(collective_time(setting->cluster, COLLECTIVE_ALL_REDUCE, span, bytes));
}

/* Hybrid sharding: the gradients that a rank is left with, among those who hold the same. */
static void add_replicas(const struct setting *setting, const struct layout *l, struct stage_parameters p, struct exchange *e)
{
    if (!l->shard)
        return;
    double bytes = work_own_parameters(l, p) * precision_bytes(setting->job->gradient_precision);
    struct group_span span = replica_span(l, setting->cluster, GROUP_REPLICA);
    e->replicas_s = cost_seconds(collective_time(setting->cluster, COLLECTIVE_ALL_REDUCE, span, bytes));
    if (l->pp == 1)
        e->replicas_crowding_s = crowding_seconds(setting->cluster, COLLECTIVE_ALL_REDUCE, span, bytes, e->replicas_s);
}

/* Of what a rank holds: experts have fewer replicas and groups of their own. The two follow one another. */
static struct exchange dp_exchange(const struct setting *setting, const struct layout *l, struct held p)
{
    struct exchange dense = exchange_over(setting, l, GROUP_DP, p.all.dense, p.trained.dense);
    struct exchange experts = exchange_over(setting, l, GROUP_EXPERT_DP, p.all.experts, p.trained.experts);
    struct exchange e = {
        .reduce_s = dense.reduce_s + experts.reduce_s + mirror_seconds(setting, l, p.trained),
        .gather_s = dense.gather_s + experts.gather_s,
        .reduce_crowding_s = dense.reduce_crowding_s + experts.reduce_crowding_s,
        .gather_crowding_s = dense.gather_crowding_s + experts.gather_crowding_s,
    };
    add_replicas(setting, l, p.trained, &e);
    return e;
}

/* Once they are complete, gradients are exchanged in both ways. */
static struct exchange completing(const struct exchange *e)
{
    struct exchange both = *e;
    both.reduce_s += e->replicas_s;
    both.reduce_crowding_s += e->replicas_crowding_s;
    return both;
}

/* What an exchange adds to the passes that cover it: what it takes from them, or what sticks out. */
static double beyond(double passes_s, double exchange_s, double crowding_s)
{
    return fmax(exchange_s - passes_s, crowding_s);
}

/* The share of the layers of a model that is one stage whose passes wait for copies of activations. */
static double waiting_share(const struct layout *l, const struct transformer *model)
{
    double layers = model->layers;
    return layers > 0 ? pass_waiting_layers(pass_leaving_layers(l, layers, layers)) / layers : 0;
}

/* The same for a layer's pass, on average: those that wait for copies cover more. */
static double beyond_layer(const struct pass_costs *c, double waiting, double pass_s, double exchange_s, double crowding_s)
{
    return waiting * beyond(fmax(c->copy_s, pass_s), exchange_s, crowding_s) +
           (1 - waiting) * beyond(pass_s, exchange_s, crowding_s);
}

/* Layers of a kind: their share of all, and the passes of one. */
struct layers_alike {
    double share, forward, backward;
    bool repeated;
};

/* Those that are repeated (all, where all are alike) and those that keep everything. */
static int kinds_of_layers(const struct pass_costs *c, const struct layout *l, struct layers_alike kinds[2])
{
    const struct layer_count one[] = {{1, 0}, {1, 1}};
    const double shares[] = {1 - c->stages.whole, c->stages.whole};
    for (int i = 0; i < 2; i++)
        kinds[i] = (struct layers_alike){.share = shares[i],
                                         .forward = pass_seconds(c, PASS_FORWARD, PART_MEAN_LAYER, one[i], false, false),
                                         .backward = pass_seconds(c, PASS_BACKWARD, PART_MEAN_LAYER, one[i], false, false),
                                         .repeated = i == 0 && l->recompute.what == RECOMPUTE_FULL};
    return c->whole ? 2 : 1;
}

/* What ZeRO-3's exchanges of one layer add to its passes: of a micro-batch, and of that which completes the gradients. */
struct sharded_layer {
    double waited, completed;
};

static struct sharded_layer sharded_layer_of(const struct layout *l, const struct pass_costs *c, const struct exchange *e,
                                             const struct layers_alike *of, double waiting)
{
    double longer = beyond_layer(c, waiting, of->forward, e->gather_s, e->gather_crowding_s), backward = of->backward;
    if (!(l->features & FEATURE_BIT(DP_OVERLAP))) { /* recomputation gathers for itself; reductions are waited for */
        double gathers = of->repeated ? 2 : 1;
        double waited = longer + beyond_layer(c, waiting, backward, gathers * e->gather_s, gathers * e->gather_crowding_s);
        return (struct sharded_layer){waited + e->reduce_s, waited + e->reduce_s + e->replicas_s};
    }
    struct exchange last = completing(e);
    double scattered = beyond_layer(c, waiting, backward, e->gather_s + e->reduce_s, e->gather_crowding_s + e->reduce_crowding_s);
    double completed =
        beyond_layer(c, waiting, backward, e->gather_s + last.reduce_s, e->gather_crowding_s + last.reduce_crowding_s);
    return (struct sharded_layer){longer + scattered, longer + completed};
}

/* ZeRO-3: every micro-batch gathers each layer's weights for the forward and again for the backward pass and reduces its
 * gradients. */
static double exposed_sharded(const struct setting *setting, const struct layout *l, const struct pass_costs *c,
                              const struct exchange *e, double m)
{
    struct layers_alike kinds[2];
    double completions = layout_offloads_gradients(l) ? m : 1, waiting = waiting_share(l, setting->model);
    double seconds = m * e->gather_s + (l->features & FEATURE_BIT(DP_OVERLAP) ? completing(e).reduce_s : 0);
    for (int i = 0, n = kinds_of_layers(c, l, kinds); i < n; i++) {
        struct sharded_layer layer = sharded_layer_of(l, c, e, &kinds[i], waiting);
        seconds += kinds[i].share * setting->model->layers * ((m - completions) * layer.waited + completions * layer.completed);
    }
    return seconds;
}

/* Tables trained beside adapters are reduced when a pass has ended, the next one's first layer beside them where exchanges
 * overlap. They are gathered with the weights. */
static double exposed_ends(const struct layout *l, const struct pass_costs *c, const struct exchange *layer,
                           const struct exchange *ends, double m)
{
    const struct layer_count one = {1, c->stages.whole};
    double forward = pass_seconds(c, PASS_FORWARD, PART_MEAN_LAYER, one, false, false), gather = layer->gather_s;
    double reduce = ends->reduce_s, waited = fmax(0, gather + reduce - fmax(forward, gather));
    if (!(l->features & FEATURE_BIT(DP_OVERLAP)))
        waited = reduce;
    return (m - 1) * waited + reduce + ends->replicas_s;
}

/* Buckets in which a stage of one chunk exchanges its gradients: 40 million parameters (Megatron-LM's default), or a million per
 * replica where that is more; at least four. As the programs do it. */
static double buckets_of(const struct layout *l, double parameters)
{
    return fmax(4, ceil(parameters / fmax(40e6, 1e6 * l->dp * l->cp)));
}

/* By chunk (or bucket): the last one's reduction and the first one's gather stay exposed, the others run beside the last backward
 * and first forward. Interleaved, a stage passes pp micro-batches through a chunk before it turns to the next. */
static double exposed_dp(const struct layout *l, const struct replica_costs *costs, const struct stage_times *stages)
{
    const struct exchange e = completing(&costs->exchange);
    if (!(l->features & FEATURE_BIT(DP_OVERLAP)))
        return e.reduce_s + e.gather_s;
    double pieces = costs->pieces, passes = l->schedule == SCHEDULE_INTERLEAVED ? l->pp : 1;
    double hidden = (pieces - 1) / pieces;
    return (e.reduce_s + e.gather_s) / pieces +
           (beyond(passes * stages->inner.s[PASS_BACKWARD], e.reduce_s, e.reduce_crowding_s) +
            beyond(passes * stages->inner.s[PASS_FORWARD], e.gather_s, e.gather_crowding_s)) *
               hidden;
}

/* What a layer's backward pass, with `kept` seconds of copies up of its activations, takes longer for gradients on either way,
 * and parameters up. exposed_sharded has what ZeRO-3 exchanges. */
static double longer_layer(const struct layout *l, const struct replica_costs *costs, double backward, double kept, double m)
{
    const struct exchange e = completing(&costs->exchange);
    double with = fmax(backward, kept), up = kept + costs->copy_s * (m - 1) / m + costs->fetch_s;
    double gathers = fmax(e.gather_s, costs->fetch_s);
    if (l->zero == 3)
        with = l->features & FEATURE_BIT(DP_OVERLAP) ? fmax(with, gathers + e.reduce_s) : fmax(with, gathers) + e.reduce_s;
    return fmax(with, fmax(up, costs->copy_s)) - with;
}

/*
 * The host keeps gradients: each micro-batch reduces them layer by layer (ZeRO-3 does so anyway) and copies them down, those of
 * all but the first come up before. On the way up are the activations of that layer, too. What the backward pass does not cover,
 * and the last layer's.
 */
static double exposed_gradients(const struct layout *l, const struct replica_costs *costs, const struct pass_costs *c,
                                const struct stage_times *stages, const struct transformer *model, double m)
{
    const struct exchange e = completing(&costs->exchange);
    struct layer_count one = {1, c->stages.whole};
    double backward = pass_seconds(c, PASS_BACKWARD, PART_MEAN_LAYER, one, false, false), waited = 0;
    bool overlaps = l->features & FEATURE_BIT(DP_OVERLAP);
    if (l->zero < 3) {
        double reduced = overlaps ? beyond(backward, e.reduce_s, e.reduce_crowding_s) : e.reduce_s;
        double gathered = model->layers * e.gather_s, forward = stages->inner.s[PASS_FORWARD];
        waited = m * model->layers * reduced + (overlaps ? e.reduce_s + e.gather_s + fmax(0, gathered - forward) : gathered);
    }
    double each = m * fmax(0, model->layers - OFFLOADED_GRADIENT_BUCKETS), waiting = waiting_share(l, model);
    return waited + costs->copy_s +
           each * (waiting * longer_layer(l, costs, backward, c->copy_s, m) +
                   (1 - waiting) * longer_layer(l, costs, backward, 0, m));
}

/* Layer by layer down, updated and up; the norm first. */
static double host_optimizer_seconds(const struct setting *setting, const struct layout *l, struct stage_parameters p,
                                     struct stage_parameters layers, int pieces)
{
    const struct machine machine = {.cluster = setting->cluster, .layout = l, .job = setting->job, .pace = 1};
    double states = offload_share(&l->offload, OFFLOAD_OPTIMIZER);
    double returned = states - offload_share(&l->offload, OFFLOAD_PARAMETERS);
    double own = work_own_parameters(l, p), piece = own / pieces;
    double gradient = layout_offloads_gradients(l) ? 0 : precision_bytes(setting->job->gradient_precision);
    struct work_table table = {0};
    const int32_t works[] = {work_add_device_optimizer(&table, setting, own, 0),
                             work_add_copy(&table, "copy_down", piece * gradient * states),
                             work_add_host_update(&table, setting, piece * states),
                             work_add_copy(&table, "copy_up", piece * offloaded_weight_bytes(setting->job) * returned),
                             work_add_device_optimizer(&table, setting, 0, work_cast_parameters(l, layers)),
                             work_add_kept_update(&table, setting, own * (1 - states))};
    enum { WORKS = sizeof works / sizeof *works };
    double s[WORKS];
    for (int i = 0; i < WORKS; i++)
        s[i] = cost_seconds(work_cost(&machine, &table, works[i]));
    work_table_free(&table);
    double casts = precision_is_narrow(setting->job->precision) ? s[4] : 0;
    double there = fmax(s[0], s[1]) + s[2] + s[3] + (pieces - 1) * fmax(s[1], fmax(s[2], s[3]));
    return fmax(there, states < 1 ? s[0] + s[5] : 0) + casts;
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

static double gather_from_owners_seconds(const struct setting *setting, const struct layout *l, const struct muon_gather *g)
{
    return owners_gather_seconds(setting, l, GROUP_DP, g->dense) + owners_gather_seconds(setting, l, GROUP_EXPERT_DP, g->experts);
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

/* The first and the last stage add up the gradients of the token table that both hold. */
static double table_seconds(const struct setting *setting, const struct layout *l)
{
    if (!work_shares_table(l, setting->model) || !adapter_trains(setting->job, setting->model, WHOLE_EMBEDDING))
        return 0;
    double gradient = precision_bytes(setting->job->gradient_precision);
    double bytes = (double)setting->model->vocab * (double)setting->model->hidden / l->tp * gradient;
    struct group_span span = layout_span(l, setting->cluster, GROUP_EMBEDDING);
    return cost_seconds(collective_time(setting->cluster, COLLECTIVE_ALL_REDUCE, span, bytes));
}

/* By a pattern, of a stage on average. */
static int fullest_layers(const struct layout *l, const struct stage_times *stages, const struct transformer *model)
{
    if (transformer_is_hybrid(model))
        return (model->layers + l->pp - 1) / l->pp;
    return stages->fullest < model->layers ? (int)ceil(stages->fullest) : model->layers;
}

/* Of the stage with the most layers, with what it holds; none for other optimizers. */
static struct muon_matrices matrices_of(const struct setting *setting, const struct layout *l, int n)
{
    struct muon_matrices matrices = {.n = 0};
    if (setting->job->optimizer != OPTIMIZER_MUON)
        return matrices;
    muon_matrices_add(&matrices, l, setting, (struct layer_range){0, n}, l->pp == 1);
    muon_tables_add(&matrices, l, setting, true, l->pp == 1);
    muon_matrices_repeat(&matrices, l->schedule == SCHEDULE_DUALPIPE ? 2 : 1);
    return matrices;
}

static struct cost update_cost(const struct setting *setting, const struct layout *l, struct stage_parameters p,
                               struct stage_parameters layers, const struct muon_matrices *matrices, struct gemm_memo *gemms,
                               int n)
{
    if (layout_offloads(l, OFFLOAD_OPTIMIZER))
        return (struct cost){.memory_s = host_optimizer_seconds(setting, l, p, layers, n)};
    if (setting->job->optimizer != OPTIMIZER_MUON)
        return optimizer_cost(setting, l, p, layers);
    return muon_cost(setting, l, p, layers, matrices, gemms);
}

static struct stage_parameters times(struct stage_parameters p, double factor)
{
    return (struct stage_parameters){factor * p.dense, factor * p.experts};
}

/* Of a stage with its ends, of a layer of it on average, and what is trained of its layers alone. Tables trained beside adapters
 * are most of what is trained: a layer has no share of them, they stand apart. */
struct stage_held {
    struct held all, layer, ends;
    struct stage_parameters within;
};

static struct stage_held stage_held_of(const struct setting *setting, const struct layout *l, int n)
{
    double copies = l->schedule == SCHEDULE_DUALPIPE ? 2 : 1; /* two stages have each layer */
    int layers = setting->model->layers;
    struct layer_range range = {0, n};
    struct stage_parameters p = work_stage_parameters(l, setting, range, true, l->pp == 1);
    struct stage_parameters t = work_trained_parameters(l, setting, range, true, l->pp == 1);
    struct stage_parameters inner = work_trained_parameters(l, setting, range, false, false);
    struct held all = {times(p, copies), times(t, copies)};
    double tables = job_adapts(setting->job) ? copies * (t.dense - inner.dense) : 0;
    const struct stage_parameters apart = {.dense = tables};
    return (struct stage_held){
        .all = all,
        .within = times(inner, copies),
        .layer = {{all.all.dense / layers, all.all.experts / layers},
                  {(all.trained.dense - tables) / layers, all.trained.experts / layers}},
        .ends = {apart, apart},
    };
}

static struct replica_costs replica_costs_of(const struct setting *setting, const struct layout *l,
                                             const struct stage_times *stages, struct gemm_memo *gemms)
{
    int n = fullest_layers(l, stages, setting->model);
    const struct stage_held p = stage_held_of(setting, l, n);
    const struct muon_matrices matrices = matrices_of(setting, l, n);
    const struct muon_gather gather = muon_gather_of(&matrices, l, setting, p.all.all);
    bool leaves = layout_offloads_gradients(l);
    double own = work_own_parameters(l, p.layer.all);
    double gradient = precision_bytes(setting->job->gradient_precision) * own * offload_share(&l->offload, OFFLOAD_OPTIMIZER);
    double fetched = offloaded_weight_bytes(setting->job) * own * offload_share(&l->offload, OFFLOAD_PARAMETERS);
    return (struct replica_costs){
        .tp = l->tp,
        .cp = l->cp,
        .pp = l->pp,
        .vpp = l->vpp,
        .dp = l->dp,
        .ep = l->ep,
        .expert_tp = layout_expert_tp(l),
        .shard = l->shard,
        .arrangement = schedule_arrangement(l->schedule),
        .layers = n,
        .offload = l->offload,
        .exchange = dp_exchange(setting, l, l->zero == 3 || leaves ? p.layer : p.all),
        .ends = l->zero == 3 && p.ends.trained.dense > 0 ? dp_exchange(setting, l, p.ends) : (struct exchange){0},
        .copy_s = leaves ? cost_seconds(copy_cost(setting->cluster, l, gradient)) : 0,
        .fetch_s = fetched > 0 ? cost_seconds(copy_cost(setting->cluster, l, fetched)) : 0,
        .pieces = l->vpp > 1 ? l->vpp : buckets_of(l, p.all.trained.dense + p.all.trained.experts),
        .table_s = table_seconds(setting, l),
        .owners_s = gather_from_owners_seconds(setting, l, &gather),
        .optimizer = update_cost(setting, l, p.all.trained, p.within, &matrices, gemms, n),
    };
}

/* Do these costs hold for a layout that keeps its states in the same way? */
static bool holds_for(const struct replica_costs *costs, const struct layout *l, int layers)
{
    return costs->tp == l->tp && costs->cp == l->cp && costs->pp == l->pp && costs->vpp == l->vpp && costs->dp == l->dp &&
           costs->ep == l->ep && costs->expert_tp == layout_expert_tp(l) && costs->shard == l->shard &&
           costs->arrangement == schedule_arrangement(l->schedule) && costs->layers == layers &&
           offload_equal(&costs->offload, &l->offload);
}

static int sharding_of(const struct layout *l)
{
    return l->zero < 3 ? l->zero > 0 : 2 + ((l->features & FEATURE_BIT(DP_OVERLAP)) != 0);
}

struct replica_time replica_time_of(struct replica_memo *memo, const struct setting *setting, const struct layout *l,
                                    const struct pass_costs *c, const struct stage_times *stages, double m)
{
    struct replica_costs *costs = &memo->costs[sharding_of(l)];
    if (!holds_for(costs, l, fullest_layers(l, stages, setting->model)))
        *costs = replica_costs_of(setting, l, stages, c->gemms);
    bool leaves = layout_offloads_gradients(l);
    struct exchange gathers = costs->exchange;
    gathers.gather_s = fmax(gathers.gather_s, costs->fetch_s); /* the next one comes while one is gathered */
    double exposed = l->zero == 3 ? exposed_sharded(setting, l, c, &gathers, m) : leaves ? 0 : exposed_dp(l, costs, stages);
    if (costs->ends.reduce_s > 0)
        exposed += exposed_ends(l, c, &gathers, &costs->ends, m);
    if (leaves)
        exposed += exposed_gradients(l, costs, c, stages, setting->model, m);
    double slowed = (c->pace - 1) * costs->optimizer.compute_s;
    return (struct replica_time){exposed + costs->table_s + costs->owners_s, cost_seconds(costs->optimizer) + slowed};
}
