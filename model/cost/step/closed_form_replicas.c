/*
 * closed_form_replicas.c - the exchanges of gradients and parameters among replicas, by stage and by layer, and the memo of
 * their times.
 */
#include "model/cost/step/closed_form_replicas.h"

#include <math.h>
#include <stdlib.h>

#include "model/cost/kernel/collective.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/work/adapter.h"
#include "model/cost/work/host_memory.h"
#include "model/cost/work/precision_bytes.h"

/* What a rank holds, and of that what is trained. */
struct held {
    struct stage_parameters all, trained;
};

/* A message beside it gets the rest of the NIC, and half at least. */
static double lost_by_messages(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes,
                               struct cost exchange)
{
    return fmin(collective_sending_s(cluster, collective, span, bytes, exchange), cost_seconds(exchange) / 2);
}

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
    struct exchange e = {0};
    if (gradient > 0) {
        struct cost reduce = collective_time(cluster, reduction, span, gradient);
        e.reduce_s = cost_seconds(reduce);
        e.reduce_interference_s = overlap_interference_s(cluster, reduction, span, gradient, e.reduce_s);
        e.reduce_nic_s = lost_by_messages(cluster, reduction, span, gradient, reduce);
    }
    if (!whole) {
        struct cost gather = collective_time(cluster, COLLECTIVE_ALL_GATHER, span, gathered);
        e.gather_s = cost_seconds(gather);
        e.gather_interference_s = overlap_interference_s(cluster, COLLECTIVE_ALL_GATHER, span, gathered, e.gather_s);
        e.gather_nic_s = lost_by_messages(cluster, COLLECTIVE_ALL_GATHER, span, gathered, gather);
    }
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
    e->replicas_interference_s = overlap_interference_s(setting->cluster, COLLECTIVE_ALL_REDUCE, span, bytes, e->replicas_s);
}

/* Of what a rank holds: experts have fewer replicas and groups of their own. The two follow one another. */
static struct exchange dp_exchange(const struct setting *setting, const struct layout *l, struct held p)
{
    struct exchange dense = exchange_over(setting, l, GROUP_DP, p.all.dense, p.trained.dense);
    struct exchange experts = exchange_over(setting, l, GROUP_EXPERT_DP, p.all.experts, p.trained.experts);
    struct exchange e = {
        .reduce_s = dense.reduce_s + experts.reduce_s + mirror_seconds(setting, l, p.trained),
        .gather_s = dense.gather_s + experts.gather_s,
        .reduce_interference_s = dense.reduce_interference_s + experts.reduce_interference_s,
        .gather_interference_s = dense.gather_interference_s + experts.gather_interference_s,
        .reduce_nic_s = dense.reduce_nic_s + experts.reduce_nic_s,
        .gather_nic_s = dense.gather_nic_s + experts.gather_nic_s,
    };
    add_replicas(setting, l, p.trained, &e);
    return e;
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

/* The norm of the gradients over one kind of group: 4 bytes, as the programs do it. */
static double norm_seconds(const struct setting *setting, const struct layout *l, enum group_kind group)
{
    static const double bytes = 4;
    if (layout_group_size(l, group) == 1)
        return 0;
    struct group_span span = layout_span(l, setting->cluster, group);
    return cost_seconds(collective_time(setting->cluster, COLLECTIVE_ALL_REDUCE, span, bytes));
}

/* --- what a stage exchanges */

static struct stage_parameters times(struct stage_parameters p, double factor)
{
    return (struct stage_parameters){factor * p.dense, factor * p.experts};
}

static struct stage_parameters less(struct stage_parameters a, struct stage_parameters b)
{
    return (struct stage_parameters){a.dense - b.dense, a.experts - b.experts};
}

static int layers_of(const struct layout *l, const struct transformer *model, int stage)
{
    int layers = 0;
    for (int chunk = 0; chunk < l->vpp; chunk++)
        layers += layout_layers(l, model, layout_virtual_stage(l, stage, chunk)).count;
    return layers;
}

static struct exchange trained_exchange(const struct setting *setting, const struct layout *l, struct stage_parameters p)
{
    const struct exchange e = dp_exchange(setting, l, (struct held){p, p});
    return exchange_completing(&e);
}

static bool is_first(const struct layout *l, int stage, int chunk)
{
    return layout_virtual_stage(l, stage, chunk) == 0;
}

static bool is_last(const struct layout *l, int stage, int chunk)
{
    return layout_virtual_stage(l, stage, chunk) == layout_virtual_stages(l) - 1;
}

/* Pieces that follow one another: chunks, or of a stage of one chunk its buckets, the first of which has the embedding and the
 * last the head. */
static void cut_into_pieces(struct stage_exchanges *x, const struct setting *setting, const struct layout *l,
                            const struct stage_load *load)
{
    int end = l->vpp - 1;
    struct layer_range first = layout_layers(l, setting->model, layout_virtual_stage(l, x->stage, 0)), last = first;
    bool chunks = l->vpp > 1, embedding[] = {is_first(l, x->stage, 0), chunks && is_first(l, x->stage, end)},
         head[] = {chunks && is_last(l, x->stage, 0), is_last(l, x->stage, end)};
    x->embedding = embedding[0] || embedding[1];
    x->head = head[0] || head[1];
    x->pieces = chunks ? l->vpp : work_gradient_buckets(l, load->trained, x->layers);
    x->whole = x->first = x->middle = x->last = trained_exchange(setting, l, load->trained);
    if (x->pieces == 1)
        return;
    if (chunks) {
        last = layout_layers(l, setting->model, layout_virtual_stage(l, x->stage, end));
    } else {
        int from = (int)((int64_t)x->layers * (x->pieces - 1) / x->pieces);
        last = (struct layer_range){first.first + from, x->layers - from};
        first.count = x->layers / x->pieces;
        x->first_share = (double)first.count / x->layers;
        x->last_share = (double)last.count / x->layers;
    }
    struct stage_parameters of_first = work_trained_parameters(l, setting, first, embedding[0], head[0]);
    struct stage_parameters of_last = work_trained_parameters(l, setting, last, embedding[1], head[1]);
    x->first = trained_exchange(setting, l, of_first);
    x->last = trained_exchange(setting, l, of_last);
    if (x->pieces > 2)
        x->middle = trained_exchange(setting, l, times(less(less(load->trained, of_first), of_last), 1.0 / (x->pieces - 2)));
}

static struct stage_parameters plus(struct stage_parameters a, struct stage_parameters b)
{
    return (struct stage_parameters){a.dense + b.dense, a.experts + b.experts};
}

static struct held ends_held(const struct setting *setting, const struct layout *l, bool embedding, bool head)
{
    static const struct layer_range none = {0, 0};
    return (struct held){work_stage_parameters(l, setting, none, embedding, head),
                         work_trained_parameters(l, setting, none, embedding, head)};
}

/* Of `bytes` per parameter of a rank's share. */
static double copy_seconds(const struct setting *setting, const struct layout *l, struct stage_parameters p, double bytes)
{
    return bytes > 0 ? cost_seconds(copy_cost(setting->cluster, l, work_own_parameters(l, p) * bytes)) : 0;
}

/* What a layer exchanges, the mean of all; the tables stand apart. */
static void fill_layer(struct replica_costs *costs, const struct setting *setting, const struct layout *l,
                       const struct stage_load *load)
{
    double share = 1.0 / setting->model->layers;
    struct held first = ends_held(setting, l, true, false), last = ends_held(setting, l, false, true), ends, layer;
    ends = (struct held){plus(first.all, last.all), plus(first.trained, last.trained)};
    layer = (struct held){times(less(load->parameters, ends.all), share), times(less(load->trained, ends.trained), share)};
    bool one = setting->model->layers == 1;
    costs->layer = dp_exchange(setting, l, layer);
    if (l->zero == 3) {
        costs->ends = dp_exchange(setting, l, ends);
    } else {
        struct stage_parameters of_first = plus(layer.trained, one ? ends.trained : first.trained);
        struct stage_parameters of_last = plus(layer.trained, last.trained);
        costs->first = dp_exchange(setting, l, (struct held){of_first, of_first});
        costs->last = dp_exchange(setting, l, (struct held){of_last, of_last});
        costs->all_gather_s = trained_exchange(setting, l, load->trained).gather_s;
    }
    if (layout_offloads_gradients(l)) {
        double bytes = precision_bytes(setting->job->gradient_precision) * offload_share(&l->offload, OFFLOAD_OPTIMIZER);
        costs->copy_s = copy_seconds(setting, l, layer.trained, bytes);
        costs->copy_first_s = copy_seconds(setting, l, l->zero == 3 ? ends.trained : first.trained, bytes);
        costs->copy_last_s = l->zero == 3 ? 0 : copy_seconds(setting, l, last.trained, bytes);
    }
    double fetched = offloaded_weight_bytes(setting->job) * offload_share(&l->offload, OFFLOAD_PARAMETERS);
    costs->fetch_s = copy_seconds(setting, l, layer.all, fetched);
    costs->ends_fetch_s = copy_seconds(setting, l, ends.all, fetched);
}

/* The ends and, of many stages between them, the one that holds most. */
static int choose_stages(const struct full_stages *full, const struct stage_load *chosen[REPLICA_STAGES])
{
    int n = 0, most = 1;
    if (full->n <= REPLICA_STAGES) {
        for (; n < full->n; n++)
            chosen[n] = &full->stages[n];
        return n;
    }
    for (int i = 1; i < full->n - 1; i++) {
        const struct stage_parameters *a = &full->stages[i].trained, *b = &full->stages[most].trained;
        most = a->dense + a->experts > b->dense + b->experts ? i : most;
    }
    chosen[n++] = &full->stages[0];
    chosen[n++] = &full->stages[most];
    chosen[n++] = &full->stages[full->n - 1];
    return n;
}

static void replica_costs_fill(struct replica_costs *costs, const struct setting *setting, const struct layout *l,
                               const struct full_stages *full, struct gemm_memo *gemms)
{
    const struct stage_load *loads[REPLICA_STAGES];
    *costs = (struct replica_costs){.tp = l->tp,
                                    .cp = l->cp,
                                    .pp = l->pp,
                                    .vpp = l->vpp,
                                    .dp = l->dp,
                                    .ep = l->ep,
                                    .expert_tp = layout_expert_tp(l),
                                    .shard = l->shard,
                                    .arrangement = schedule_arrangement(l->schedule),
                                    .offload = l->offload,
                                    .table_s = table_seconds(setting, l),
                                    .model_norm_s = norm_seconds(setting, l, GROUP_MODEL)};
    if (l->zero > 0 || (l->ep > 1 && setting->model->moe.experts > 0))
        costs->shards_norm_s = norm_seconds(setting, l, GROUP_DP);
    costs->n = choose_stages(full, loads);
    for (int i = 0; i < costs->n; i++) {
        struct stage_exchanges *x = &costs->at[i];
        x->stage = loads[i]->stage;
        x->layers = layers_of(l, setting->model, x->stage);
        x->update = update_cost(setting, l, loads[i], x->layers, gemms);
        x->owners_s = owners_seconds(setting, l, loads[i]);
        if (!layout_gradients_leave_rank(l))
            cut_into_pieces(x, setting, l, loads[i]);
    }
    if (layout_gradients_leave_rank(l))
        fill_layer(costs, setting, l, loads[0]);
}

/* Do these costs hold for a layout that keeps its states in the same way? */
static bool holds_for(const struct replica_costs *costs, const struct layout *l)
{
    return costs->tp == l->tp && costs->cp == l->cp && costs->pp == l->pp && costs->vpp == l->vpp && costs->dp == l->dp &&
           costs->ep == l->ep && costs->expert_tp == layout_expert_tp(l) && costs->shard == l->shard &&
           costs->arrangement == schedule_arrangement(l->schedule) && offload_equal(&costs->offload, &l->offload);
}

static int sharding_of(const struct layout *l)
{
    if (l->zero == 3)
        return 3 + ((l->features & FEATURE_BIT(DP_OVERLAP)) != 0);
    return l->zero == 0 ? 0 : 1 + layout_gradients_leave_rank(l);
}

void replica_memo_free(struct replica_memo *memo)
{
    full_stages_free(&memo->full);
}

struct replica_time replica_time_of(struct replica_memo *memo, const struct setting *setting, const struct layout *l,
                                    const struct pass_costs *c, const struct stage_times *stages, double m,
                                    const struct cost *message)
{
    struct replica_costs *costs = &memo->costs[sharding_of(l)];
    if (full_stages_of(&memo->full, l, setting))
        for (int i = 0; i < N_SHARDINGS; i++)
            memo->costs[i].tp = 0;
    if (!holds_for(costs, l))
        replica_costs_fill(costs, setting, l, &memo->full, c->gemms);
    struct replica_time time = replicas_of_stages(costs, l, c, stages, setting->model, m, message);
    if (goes_layer_by_layer(l)) {
        struct layer_waits waits = layer_waits_of(l, setting->model, costs, c, stages, m);
        bool apart = l->zero < 3 && layout_gradients_leave_rank(l) && !(l->features & FEATURE_BIT(DP_OVERLAP));
        time.exposed_s += waits.exchanges_s + (apart ? costs->all_gather_s : 0);
        time.host_s += waits.copies_s;
    }
    return time;
}
