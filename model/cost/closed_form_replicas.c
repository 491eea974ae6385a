/* The exchanges of gradients and parameters among replicas, and the optimizer. */
#include "model/cost/closed_form_replicas.h"

#include <math.h>

#include "model/cost/collective.h"
#include "model/cost/machine.h"
#include "model/cost/precision_bytes.h"

struct exchange {
    double reduce_s, gather_s;
    double reduce_crowding_s, gather_crowding_s; /* that they take from computations beside them */
};

/* Gradient reduction and parameter gathering of `parameters` over one kind of group. */
static struct exchange exchange_over(const struct setting *setting, const struct layout *l, enum group_kind group,
                                     double parameters)
{
    const struct cluster *cluster = setting->cluster;
    double gradient = parameters * precision_bytes(setting->job->gradient_precision);
    if (parameters <= 0 || layout_group_size(l, group) == 1)
        return (struct exchange){0};
    struct group_span span = replica_span(l, cluster, group);
    enum collective reduction = l->zero ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
    double gathered = l->zero ? parameters * 2 : 0;
    struct exchange e = {
        .reduce_s = cost_seconds(collective_time(cluster, reduction, span, gradient)),
        .gather_s = l->zero ? cost_seconds(collective_time(cluster, COLLECTIVE_ALL_GATHER, span, gathered)) : 0,
    };
    if (l->pp > 1) /* it fills and drains meanwhile */
        return e;
    e.reduce_crowding_s = crowding_seconds(cluster, reduction, span, gradient, e.reduce_s);
    e.gather_crowding_s = crowding_seconds(cluster, COLLECTIVE_ALL_GATHER, span, gathered, e.gather_s);
    return e;
}

/* Of a rank's parameters, those whose optimizer states it has. */
static double own_parameters(const struct layout *l, struct stage_parameters p)
{
    return l->zero ? p.dense / layout_group_size(l, GROUP_DP) + p.experts / layout_group_size(l, GROUP_EXPERT_DP)
                   : p.dense + p.experts;
}

/* DualPipe's two copies of a stage add up what is left of their gradients. */
static double mirror_seconds(const struct setting *setting, const struct layout *l, struct stage_parameters p)
{
    if (l->schedule != SCHEDULE_DUALPIPE)
        return 0;
    double bytes = own_parameters(l, p) * precision_bytes(setting->job->gradient_precision);
    struct group_span span = layout_span(l, setting->cluster, GROUP_MIRROR);
    return cost_seconds(collective_time(setting->cluster, COLLECTIVE_ALL_REDUCE, span, bytes));
}

/* Of what a rank holds: experts have fewer replicas and groups of their own. The two follow one another. */
static struct exchange dp_exchange(const struct setting *setting, const struct layout *l, struct stage_parameters p)
{
    struct exchange dense = exchange_over(setting, l, GROUP_DP, p.dense);
    struct exchange experts = exchange_over(setting, l, GROUP_EXPERT_DP, p.experts);
    return (struct exchange){dense.reduce_s + experts.reduce_s + mirror_seconds(setting, l, p), dense.gather_s + experts.gather_s,
                             dense.reduce_crowding_s + experts.reduce_crowding_s,
                             dense.gather_crowding_s + experts.gather_crowding_s};
}

/* What an exchange adds to the passes that cover it: what it takes from them, or what sticks out. */
static double beyond(double passes_s, double exchange_s, double crowding_s)
{
    return fmax(exchange_s - passes_s, crowding_s);
}

/* ZeRO-3: every micro-batch gathers each layer's weights for the forward and again for the backward pass and reduces its
 * gradients. */
static double exposed_sharded(const struct setting *setting, const struct layout *l, const struct pass_costs *c,
                              struct stage_parameters parameters, double m)
{
    int layers = setting->model->layers;
    struct stage_parameters layer = {parameters.dense / layers, parameters.experts / layers};
    struct exchange e = dp_exchange(setting, l, layer);
    double forward = pass_seconds(c, PASS_FORWARD, PART_MEAN_LAYER, 1, false, false);
    double backward = pass_seconds(c, PASS_BACKWARD, PART_MEAN_LAYER, 1, false, false);
    if (!(l->features & FEATURE_BIT(DP_OVERLAP))) { /* recomputation gathers for itself; reductions are waited for */
        double gathers = l->recompute == RECOMPUTE_FULL ? 2 : 1;
        double waited = beyond(forward, e.gather_s, e.gather_crowding_s) +
                        beyond(backward, gathers * e.gather_s, gathers * e.gather_crowding_s) + e.reduce_s;
        return m * (layers * waited + e.gather_s);
    }
    double longer = beyond(forward, e.gather_s, e.gather_crowding_s) +
                    beyond(backward, e.gather_s + e.reduce_s, e.gather_crowding_s + e.reduce_crowding_s);
    return m * (layers * longer + e.gather_s) + e.reduce_s;
}

/* Buckets in which a stage of one chunk exchanges its gradients: 40 million parameters (Megatron-LM's default), or a million per
 * replica where that is more; at least four. As the programs do it. */
static double buckets_of(const struct layout *l, double parameters)
{
    return fmax(4, ceil(parameters / fmax(40e6, 1e6 * l->dp * l->cp)));
}

static double exposed_dp(const struct setting *setting, const struct layout *l, const struct pass_costs *c,
                         struct stage_parameters parameters, double m, double stage_backward, double stage_forward)
{
    if (l->zero == 3)
        return exposed_sharded(setting, l, c, parameters, m);
    struct exchange e = dp_exchange(setting, l, parameters);
    if (!(l->features & FEATURE_BIT(DP_OVERLAP)))
        return e.reduce_s + e.gather_s;
    /* By chunk (or bucket): the last one's reduction and the first one's gather stay exposed, the others run beside the last
     * backward and first forward. Interleaved, a stage passes pp micro-batches through a chunk before it turns to the next. */
    double pieces = l->vpp > 1 ? l->vpp : buckets_of(l, parameters.dense + parameters.experts),
           passes = l->schedule == SCHEDULE_INTERLEAVED ? l->pp : 1;
    double hidden = (pieces - 1) / pieces;
    return (e.reduce_s + e.gather_s) / pieces + (beyond(passes * stage_backward, e.reduce_s, e.reduce_crowding_s) +
                                                 beyond(passes * stage_forward, e.gather_s, e.gather_crowding_s)) *
                                                    hidden;
}

static double optimizer_seconds(const struct setting *setting, const struct layout *l, struct stage_parameters p)
{
    const struct machine machine = {.cluster = setting->cluster, .layout = l, .job = setting->job, .pace = 1};
    struct work_table table = {0};
    int32_t id = work_add_optimizer(&table, l, setting, own_parameters(l, p));
    double s = cost_seconds(work_cost(&machine, &table, id));
    work_table_free(&table);
    return s;
}

/* The first and the last stage add up the gradients of the token table that both hold. */
static double table_seconds(const struct setting *setting, const struct layout *l)
{
    if (!work_shares_table(l, setting->model))
        return 0;
    double gradient = precision_bytes(setting->job->gradient_precision);
    double bytes = (double)setting->model->vocab * (double)setting->model->hidden / l->tp * gradient;
    struct group_span span = layout_span(l, setting->cluster, GROUP_EMBEDDING);
    return cost_seconds(collective_time(setting->cluster, COLLECTIVE_ALL_REDUCE, span, bytes));
}

void replicas_add(const struct setting *setting, const struct layout *l, const struct pass_costs *c,
                  const struct stage_times *stages, double m, struct cost_by_class *by)
{
    double copies = l->schedule == SCHEDULE_DUALPIPE ? 2 : 1; /* two stages have each layer */
    int n = stages->fullest < setting->model->layers ? (int)ceil(stages->fullest) : setting->model->layers;
    struct stage_parameters p = work_stage_parameters(l, setting, (struct layer_range){0, n}, true, l->pp == 1);
    struct stage_parameters parameters = {copies * p.dense, copies * p.experts};
    by->s[CLASS_DP_COMM] +=
        exposed_dp(setting, l, c, parameters, m, stages->inner.s[PASS_BACKWARD], stages->inner.s[PASS_FORWARD]) +
        table_seconds(setting, l);
    by->s[CLASS_OPTIMIZER] += optimizer_seconds(setting, l, parameters);
}
