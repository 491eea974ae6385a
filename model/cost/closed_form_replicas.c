/* The exchanges of gradients and parameters among replicas, stage by stage, and what is exposed of them. */
#include "model/cost/closed_form_replicas.h"

#include <math.h>
#include <stdlib.h>

#include "model/cost/adapter.h"
#include "model/cost/closed_form_schedule.h"
#include "model/cost/collective.h"
#include "model/cost/host_memory.h"
#include "model/cost/machine.h"
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

/* Without overlap chunks follow one another, too. */
static double all_pieces(const struct stage_exchanges *x, double first, double middle, double last)
{
    return first + (x->pieces > 1 ? last : 0) + fmax(0, x->pieces - 2) * middle;
}

static double reduced_apart(const struct stage_exchanges *x, const struct layout *l)
{
    return l->vpp > 1 ? all_pieces(x, x->first.reduce_s, x->middle.reduce_s, x->last.reduce_s) : x->whole.reduce_s;
}

static double gathered_apart(const struct stage_exchanges *x, const struct layout *l)
{
    return l->vpp > 1 ? all_pieces(x, x->first.gather_s, x->middle.gather_s, x->last.gather_s) : x->whole.gather_s;
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

/* Of so many bytes a parameter of a rank's share. */
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

/* Exchanges are of layers. */
static bool goes_by_layer(const struct layout *l)
{
    return l->zero == 3 || layout_offloads_gradients(l);
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
        if (!goes_by_layer(l))
            cut_into_pieces(x, setting, l, loads[i]);
    }
    if (goes_by_layer(l))
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
    return l->zero == 0 ? 0 : 1 + goes_by_layer(l);
}

void replica_memo_free(struct replica_memo *memo)
{
    full_stages_free(&memo->full);
}

/* --- what of it is exposed */

/* A pass of a stage, and of its first, middle and last piece; the last's is of no matter where chunks follow one another. */
struct piece_passes {
    double all, first, middle, last;
};

/* A pass of a stage: the first, that with the head, or as many layers of the fullest. */
static double pass_of_stage(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages,
                            enum pass pass)
{
    if (l->pp == 1)
        return stages->inner.s[pass];
    if (x->stage == 0)
        return stages->first.s[pass];
    return x->head ? stages->head.s[pass] : stages->inner.s[pass] * x->layers / stages->fullest;
}

/* Buckets are passed one after the other. */
static struct piece_passes bucket_passes(const struct stage_exchanges *x, const struct layout *l, const struct pass_costs *c,
                                         const struct stage_times *stages, enum pass pass)
{
    double all = pass_of_stage(x, l, stages, pass);
    double embedding = x->embedding ? c->parts[pass][PART_EMBEDDING].device_s : 0;
    double head = x->head ? c->parts[pass][PART_HEAD].device_s : 0, layers = fmax(0, all - embedding - head);
    struct piece_passes p = {.all = all, .first = embedding + layers * x->first_share, .last = head + layers * x->last_share};
    p.middle = x->pieces > 2 ? (all - p.first - p.last) / (x->pieces - 2) : 0;
    return p;
}

/*
 * ZB-V's stage r, of p and a pattern of n = max(m, 2 p - 1) micro-batches, puts off the last r of either chunk's weights'
 * gradients to its end, those of chunk 0 last. Where none of these micro-batches exist, it has p - r backward passes of chunk 0
 * left; and the last one's gradient is on its way down the stages and back.
 */
static double drained_v_seconds(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages,
                                double m, double message)
{
    const double *chunk = stages->chunk.s;
    double n = fmax(m, 2 * l->pp - 1), put_off = m - (n - x->stage), beyond = l->pp - 1 - x->stage;
    if (put_off > 0)
        return put_off * chunk[PASS_BACKWARD_WEIGHT];
    double left = fmin(m, beyond + 1) * (chunk[PASS_BACKWARD_INPUT] + chunk[PASS_BACKWARD_WEIGHT]);
    return fmax(left, 2 * beyond * (chunk[PASS_BACKWARD_INPUT] + message) + chunk[PASS_BACKWARD_INPUT]);
}

/*
 * Of schedules that end with weights' gradients, what a stage has left to do when its other chunk's gradients are complete
 * (drain() of schedule_zero_bubble_v.c and schedule_dualpipe.c). Both ways: a backward pass for each place beyond it, and at the
 * outermost its own.
 */
static double drained_seconds(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages, double m,
                              double message)
{
    const double *chunk = stages->chunk.s;
    double divided = chunk[PASS_BACKWARD_INPUT] + chunk[PASS_BACKWARD_WEIGHT];
    if (l->schedule == SCHEDULE_ZBV)
        return drained_v_seconds(x, l, stages, m, message);
    int half = l->schedule == SCHEDULE_DUALPIPE ? l->pp / 2 : l->pp;
    int place = l->schedule == SCHEDULE_DUALPIPE && x->stage >= half ? l->pp - 1 - x->stage : x->stage;
    return fmax((half - 1 - place + (place == 0)) * divided, chunk[PASS_BACKWARD_WEIGHT]);
}

/* From a chunk to the next a micro-batch, or a gradient, goes once around the stages; in a V to its end and back. Of DualPipe's
 * two directions one comes across all stages. */
static struct piece_passes chunk_passes(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages,
                                        enum pass pass, double m, double message)
{
    const double *chunk = stages->chunk.s;
    double way = l->pp * chunk[pass];
    if (pass == PASS_BACKWARD_WEIGHT)
        way = drained_seconds(x, l, stages, m, message);
    else if (l->schedule == SCHEDULE_DUALPIPE)
        way = abs(l->pp - 1 - 2 * x->stage) * chunk[pass];
    else if (schedule_is_folded(l->schedule))
        way = (2 * (l->pp - 1 - x->stage) + 1) * chunk[pass];
    return (struct piece_passes){.all = way * x->pieces, .first = way, .middle = way, .last = way};
}

/* How long passes are held up by pieces that follow one another beside them: whichever piece they wait for last. Linear between
 * the first and the last, so that its neighbours tell all. Forward passes wait for their piece, gradients for their pass: the
 * same in reverse. */
static double held_up(const struct stage_exchanges *x, const struct piece_passes *p, double first, double middle, double last)
{
    int n = x->pieces;
    double all = all_pieces(x, first, middle, last), longest = first;
    if (n > 1)
        longest = fmax(longest, all - (p->all - p->last));
    if (n > 2) {
        longest = fmax(longest, first + middle - p->first);
        longest = fmax(longest, all - last - (p->all - p->last - p->middle));
    }
    return longest;
}

/* Passes of one direction from the first stage to this one. */
static double way_to(const struct stage_exchanges *x, const struct layout *l, const struct stage_times *stages, enum pass pass,
                     double message)
{
    double one = l->vpp > 1 ? stages->chunk.s[pass] : stages->inner.s[pass];
    int stage = l->schedule == SCHEDULE_DUALPIPE && 2 * x->stage >= l->pp ? l->pp - 1 - x->stage : x->stage;
    if (stage == 0)
        return 0;
    return (l->vpp > 1 ? one : stages->first.s[pass]) + (stage - 1) * one + stage * message;
}

/* A pass of bucket i of a model in one stage. */
static double bucket_seconds(const struct stage_exchanges *x, const struct layout *l, const struct pass_costs *c,
                             const struct transformer *model, enum pass pass, int i)
{
    int begin = (int)((int64_t)x->layers * i / x->pieces), end = (int)((int64_t)x->layers * (i + 1) / x->pieces);
    struct layer_count layers = {end - begin, 0};
    for (int layer = begin; c->whole && layer < end; layer++)
        layers.whole += layout_repeated_with(l, model, layer).count == 0;
    return pass_seconds(c, pass, PART_MEAN_LAYER, layers, i == 0, i == x->pieces - 1);
}

/* What a pass takes longer in buckets than in one piece: the host, which is ahead of the device in a part of the pass, does not
 * make up for others where each is waited for. Of a pipeline the passes behind it do. */
static double cut_seconds(const struct stage_exchanges *x, const struct layout *l, const struct pass_costs *c,
                          const struct stage_times *stages, const struct transformer *model, enum pass pass)
{
    int n = x->pieces;
    if (n == 1 || l->pp > 1)
        return 0;
    double pieces = bucket_seconds(x, l, c, model, pass, 0) + bucket_seconds(x, l, c, model, pass, n - 1);
    double between = x->layers * (1 - x->first_share - x->last_share);
    if (!c->whole) /* layers are alike, so the buckets between take what their layers do */
        pieces += between * pass_seconds(c, pass, PART_MEAN_LAYER, (struct layer_count){1, 0}, false, false);
    for (int i = 1; c->whole && i < n - 1; i++)
        pieces += bucket_seconds(x, l, c, model, pass, i);
    return fmax(0, pieces - stages->inner.s[pass]);
}

/* What of one stage's exchanges holds up the step. */
struct exposed {
    double begin, end, after;
    double host; /* of passes that are cut for them */
};

static struct exposed exposed_of(const struct stage_exchanges *x, const struct layout *l, const struct pass_costs *c,
                                 const struct stage_times *stages, const struct transformer *model, double m, double message)
{
    bool overlaps = l->features & FEATURE_BIT(DP_OVERLAP), drains = !schedule_ends_with_weights(l->schedule);
    double late = drains ? way_to(x, l, stages, PASS_BACKWARD, message) : 0;
    if (!overlaps)
        return (struct exposed){.end = reduced_apart(x, l) - late, .after = gathered_apart(x, l) + x->owners_s};
    enum pass last = schedule_ends_with_weights(l->schedule) ? PASS_BACKWARD_WEIGHT : PASS_BACKWARD;
    struct piece_passes f, b;
    f = l->vpp > 1 ? chunk_passes(x, l, stages, PASS_FORWARD, m, message) : bucket_passes(x, l, c, stages, PASS_FORWARD);
    b = l->vpp > 1 ? chunk_passes(x, l, stages, last, m, message) : bucket_passes(x, l, c, stages, last);
    double begin = held_up(x, &f, x->first.gather_s, x->middle.gather_s, x->last.gather_s);
    double end = held_up(x, &b, x->first.reduce_s, x->middle.reduce_s, x->last.reduce_s), hidden = 1 - 1.0 / x->pieces;
    begin = fmax(begin, x->first.gather_s + x->whole.gather_crowding_s * hidden);
    end = fmax(end, x->first.reduce_s + x->whole.reduce_crowding_s * hidden);
    double cut = (x->whole.gather_s > 0 ? cut_seconds(x, l, c, stages, model, PASS_FORWARD) : 0) +
                 cut_seconds(x, l, c, stages, model, last);
    return (struct exposed){
        .begin = begin - way_to(x, l, stages, PASS_FORWARD, message), .end = end - late, .after = x->owners_s, .host = cut};
}

/*
 * Where steps roll into one another a stage's step is from its first pass to its last update. In a full pipeline all stages' are
 * as long, begun one after the other. Where a V has too few micro-batches for that, the first stage's is the way there and back,
 * and stage r's is shorter by what is before and behind it; but what any of them waits for at the beginning holds up all.
 */
static double slack_of(const struct stage_exchanges *x, const struct stage_times *stages, double message)
{
    return x->stage * (stages->chunk.s[PASS_FORWARD] + stages->chunk.s[PASS_BACKWARD_INPUT] + 2 * message);
}

static struct replica_time stages_seconds(const struct replica_costs *costs, const struct layout *l, const struct pass_costs *c,
                                          const struct stage_times *stages, const struct transformer *model, double m,
                                          double message)
{
    struct replica_time slowest = {0}, own = {0};
    struct exposed at[REPLICA_STAGES];
    double begin = 0, end = 0, host = 0;
    bool rolls = schedule_rolls(l->schedule), few = l->schedule == SCHEDULE_ZBV && m < 2 * l->pp - 1;
    for (int i = 0; i < costs->n; i++) {
        const struct stage_exchanges *x = &costs->at[i];
        at[i] = goes_by_layer(l) ? (struct exposed){.after = x->owners_s} : exposed_of(x, l, c, stages, model, m, message);
        begin = fmax(begin, at[i].begin);
        end = fmax(end, at[i].end);
        host += at[i].host;
    }
    for (int i = 0; i < costs->n; i++) {
        const struct stage_exchanges *x = &costs->at[i];
        double rolled = fmax(0, few ? begin : at[i].begin) + fmax(0, at[i].end) - (few ? slack_of(x, stages, message) : 0);
        own.optimizer_s = cost_seconds(x->update) + (c->pace - 1) * x->update.compute_s;
        own.exposed_s = at[i].after + (rolls ? rolled : 0);
        if (i == 0 || own.optimizer_s + own.exposed_s > slowest.optimizer_s + slowest.exposed_s)
            slowest = own;
    }
    slowest.optimizer_s += costs->shards_norm_s + (rolls ? 0 : costs->model_norm_s);
    slowest.exposed_s += costs->table_s + (rolls ? 0 : begin + end);
    slowest.host_s = host;
    return slowest;
}

struct replica_time replica_time_of(struct replica_memo *memo, const struct setting *setting, const struct layout *l,
                                    const struct pass_costs *c, const struct stage_times *stages, double m, double message)
{
    struct replica_costs *costs = &memo->costs[sharding_of(l)];
    if (full_stages_of(&memo->full, l, setting))
        for (int i = 0; i < N_SHARDINGS; i++)
            memo->costs[i].tp = 0;
    if (!holds_for(costs, l))
        replica_costs_fill(costs, setting, l, &memo->full, c->gemms);
    struct replica_time time = stages_seconds(costs, l, c, stages, setting->model, m, message);
    if (goes_layer_by_layer(l)) {
        struct layer_waits waits = layer_waits_of(l, setting->model, costs, c, stages, m);
        bool apart = l->zero < 3 && layout_offloads_gradients(l) && !(l->features & FEATURE_BIT(DP_OVERLAP));
        time.exposed_s += waits.exchanges_s + (apart ? costs->all_gather_s : 0);
        time.host_s += waits.copies_s;
    }
    return time;
}
