/*
 * The formula. F, B, W: forward, input-gradient and weight-gradient time of one micro-batch on one stage; T = F + B + W of the
 * slowest stage.
 *
 *     step = m T + bubble + exposed p2p + exposed DP + optimizer + host
 *     bubble = (p-1)(F + B + W) / v        gpipe, 1f1b (v = 1), interleaved; of unequal stages, v = 1: see rounds_of
 *              (p-1)(F + B)  - (p-1) W ... see bubble_seconds for the zero-bubble schedules
 *
 * Where passes run in pairs (DualPipe; interleaved with ep_overlap) the micro-batches that neither fill nor drain the pipeline
 * take what a pair takes instead of T; see paired_micro_batches.
 *
 * Passes are costed once for each distinct (tp, cp, ep, sp, micro-batch, recomputation and who does it, one micro-batch or more,
 * features) as the mean over the model's layers.
 */
#include "model/cost/closed_form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/collective.h"
#include "model/cost/data_loading.h"
#include "model/cost/footprint.h"
#include "model/cost/machine.h"

struct pass_key {
    int tp, cp, ep, micro_batch, recompute, by_need, sequence_parallel, expert_tp;
    int accumulates; /* more than one micro-batch: gradients are added up */
    feature_set features;
};

/* Seconds by class of one micro-batch. */
struct pass_costs {
    struct pass_key key;
    bool used;
    struct cost_by_class layer_forward, layer_input, layer_weight; /* one layer, mean over the model's */
    struct cost_by_class ends_forward, ends_backward;              /* embedding and head together: at pp = 1 */
    double head_s, embedding_s;                                    /* both passes, for the slowest stage */
    double forward_s, input_s, weight_s;                           /* totals of the three */
    double layer_launches;                                         /* host seconds of one layer's forward and backward */
    bool pairs_known;
    struct cost_by_class layer_pair; /* one layer forward and backward in a pair of passes */
    double pair_s;                   /* its total */
};

struct closed_form {
    struct setting setting;
    struct pass_costs *slots; /* open addressing */
    size_t n_slots, n_used;
    struct layout
        weighed; /* the layout asked for last, and its memory: a search asks first whether it fits, then how long it takes */
    double weighed_bytes; /* 0: none yet */
};

enum { FIRST_SLOTS = 256 };

struct closed_form *closed_form_create(const struct setting *setting)
{
    struct closed_form *form = memory_new(1, sizeof *form);
    form->setting = *setting;
    form->n_slots = FIRST_SLOTS;
    form->slots = memory_new(form->n_slots, sizeof *form->slots);
    return form;
}

void closed_form_destroy(struct closed_form *form)
{
    if (!form)
        return;
    free(form->slots);
    free(form);
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
        .ep = l->ep,
        .micro_batch = l->micro_batch,
        .recompute = l->recompute,
        .by_need = layout_recomputes_by_need(l),
        .sequence_parallel = l->sequence_parallel,
        .expert_tp = layout_expert_tp(l),
        .accumulates = layout_micro_batches(l, job) > 1,
        .features = l->features & PASS_FEATURES,
    };
}

static size_t key_hash(const struct pass_key *k)
{
    const int fields[] = {
        k->tp,        k->cp,          k->ep,           k->micro_batch, k->recompute, k->by_need, k->sequence_parallel,
        k->expert_tp, k->accumulates, (int)k->features};
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        h = (h ^ (uint64_t)(uint32_t)fields[i]) * UINT64_C(0xff51afd7ed558ccd);
    return (size_t)(h ^ (h >> 32));
}

static bool key_equal(const struct pass_key *a, const struct pass_key *b)
{
    return a->tp == b->tp && a->cp == b->cp && a->ep == b->ep && a->micro_batch == b->micro_batch &&
           a->recompute == b->recompute && a->by_need == b->by_need && a->sequence_parallel == b->sequence_parallel &&
           a->expert_tp == b->expert_tp && a->accumulates == b->accumulates && a->features == b->features;
}

static struct pass_costs *slot_of(struct pass_costs *slots, size_t n, const struct pass_key *key)
{
    size_t i = key_hash(key) % n;
    while (slots[i].used && !key_equal(&slots[i].key, key))
        i = (i + 1) % n;
    return &slots[i];
}

static void slots_grow(struct closed_form *form)
{
    size_t n = form->n_slots * 2;
    struct pass_costs *bigger = memory_new(n, sizeof *bigger);
    for (size_t i = 0; i < form->n_slots; i++)
        if (form->slots[i].used)
            *slot_of(bigger, n, &form->slots[i].key) = form->slots[i];
    free(form->slots);
    form->slots = bigger;
    form->n_slots = n;
}

static void pass_by_class(const struct machine *machine, struct work_table *table, const struct setting *setting, enum pass pass,
                          struct layer_range range, bool embedding, bool head, double scale, struct cost_by_class *out)
{
    int32_t id = work_add_pass(table, machine->layout, setting, pass, range, embedding, head);
    if (pass == PASS_BACKWARD_WEIGHT || range.count == 0) /* counted with the whole backward pass */
        table->items[id].sequence.host_paced = false;
    struct cost_by_class by = {0};
    work_cost_by_class(machine, table, id, &by);
    for (int i = 0; i < N_WORK_CLASSES; i++)
        out->s[i] += by.s[i] * scale;
}

/* Spans that pass costs need, without those of dimensions the key leaves open. */
static struct machine pass_machine(const struct layout *layout, const struct setting *setting)
{
    struct machine machine = {.cluster = setting->cluster, .layout = layout, .job = setting->job};
    machine.spans[GROUP_TP] = layout_span(layout, setting->cluster, GROUP_TP);
    machine.spans[GROUP_CP] = layout_span(layout, setting->cluster, GROUP_CP);
    machine.spans[GROUP_EP] = layout_span(layout, setting->cluster, GROUP_EP);
    machine_set_pace(&machine, setting, setting->gpus);
    return machine;
}

static void costs_fill(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    struct machine machine = pass_machine(layout, setting);
    struct work_table table = {0};
    int layers = setting->model->layers;
    struct layer_range all = {0, layers}, none = {0, 0};
    pass_by_class(&machine, &table, setting, PASS_FORWARD, all, false, false, 1.0 / layers, &costs->layer_forward);
    pass_by_class(&machine, &table, setting, PASS_BACKWARD, all, false, false, 1.0 / layers, &costs->layer_input);
    pass_by_class(&machine, &table, setting, PASS_BACKWARD_WEIGHT, all, false, false, 1.0 / layers, &costs->layer_weight);
    for (int i = 0; i < N_WORK_CLASSES; i++) /* the weight gradient as part of the whole backward */
        costs->layer_input.s[i] = fmax(0, costs->layer_input.s[i] - costs->layer_weight.s[i]);
    pass_by_class(&machine, &table, setting, PASS_FORWARD, none, true, true, 1, &costs->ends_forward);
    pass_by_class(&machine, &table, setting, PASS_BACKWARD, none, true, true, 1, &costs->ends_backward);
    struct cost_by_class embedding = {0};
    pass_by_class(&machine, &table, setting, PASS_FORWARD, none, true, false, 1, &embedding);
    pass_by_class(&machine, &table, setting, PASS_BACKWARD, none, true, false, 1, &embedding);
    costs->embedding_s = cost_by_class_total(&embedding);
    costs->head_s = cost_by_class_total(&costs->ends_forward) + cost_by_class_total(&costs->ends_backward) - costs->embedding_s;
    costs->forward_s = cost_by_class_total(&costs->layer_forward);
    costs->input_s = cost_by_class_total(&costs->layer_input);
    costs->weight_s = cost_by_class_total(&costs->layer_weight);
    work_table_free(&table);
}

/* Forward and backward passes that run in pairs. */
static void costs_fill_pairs(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    struct machine machine = pass_machine(layout, setting);
    struct work_table table = {0};
    int layers = setting->model->layers;
    struct layer_range all = {0, layers};
    int32_t passes[2];
    for (int i = 0; i < 2; i++)
        passes[i] = work_add_pass(&table, layout, setting, i ? PASS_BACKWARD : PASS_FORWARD, all, false, false);
    for (int i = 0; i < 2; i++)
        work_cost_by_class(&machine, &table, work_add_paired(&table, passes[i], passes[i], passes[!i]), &costs->layer_pair);
    for (int i = 0; i < N_WORK_CLASSES; i++)
        costs->layer_pair.s[i] /= layers;
    costs->pair_s = cost_by_class_total(&costs->layer_pair);
    costs->pairs_known = true;
    work_table_free(&table);
}

static struct pass_costs *costs_of(struct closed_form *form, const struct layout *layout)
{
    struct pass_key key = key_of(layout, form->setting.job);
    struct pass_costs *slot = slot_of(form->slots, form->n_slots, &key);
    if (slot->used)
        return slot;
    if (++form->n_used * 2 > form->n_slots) {
        slots_grow(form);
        slot = slot_of(form->slots, form->n_slots, &key);
    }
    *slot = (struct pass_costs){.key = key, .used = true};
    costs_fill(slot, &form->setting, layout);
    return slot;
}

/* --- putting passes together */

/* What the first stage waits for its first gradient, (p-1)(F+B) in `rounds` of one stage, less the forwards it may do meanwhile:
 * as many as its memory holds, or as there are micro-batches. */
static double first_wait(double rounds, double m, double held, double forward, double input)
{
    return rounds * (forward + input) - (fmin(m, held) - 1) * forward;
}

/*
 * Micro-batches whose forward and backward passes run in pairs F&B. What fills and drains the pipeline does not: p + 1 of
 * DualPipe's (P + 1 of the 2 pp places of DualPipe-V, of the 2 m chunks), one round of p of interleaved 1F1B, and the round that
 * is not full.
 */
static double paired_micro_batches(const struct layout *l, double m)
{
    switch (l->schedule) {
    case SCHEDULE_INTERLEAVED: return l->features & FEATURE_BIT(EP_OVERLAP) ? fmax(0, floor(m / l->pp) * l->pp - l->pp) : 0;
    case SCHEDULE_DUALPIPE: return fmax(0, m - l->pp - 1);
    case SCHEDULE_DUALPIPEV: return fmax(0, m - l->pp - 0.5);
    default: return 0;
    }
}

/* Times of one chunk. A last round of fewer than p micro-batches goes round the ring of stages once per chunk all the same: in
 * the backward direction, where no forward passes are left to fill the gap; in both when it is the only round. */
static double interleaved_bubble(const struct layout *l, double m, double pair, double forward, double backward)
{
    double missing = ceil(m / l->pp) * l->pp - m;
    double ring = m > l->pp ? backward : forward + backward;
    return (l->pp - 1) * pair + (l->vpp - 1) * missing * ring;
}

/* `pair`: a forward and a backward pass together, less than their sum where they hide one another's exchanges. `rounds`: how many
 * times the fullest stage's passes a micro-batch takes on all others together; p - 1 of equal ones. */
static double bubble_seconds(const struct layout *l, double m, double rounds, double pair, double forward, double input,
                             double weight)
{
    switch (l->schedule) {
    case SCHEDULE_INTERLEAVED: return interleaved_bubble(l, m, pair / l->vpp, forward / l->vpp, (input + weight) / l->vpp);
    case SCHEDULE_ZB1P: return fmax(rounds * fmax(0, forward + input - weight), first_wait(rounds, m, l->pp, forward, input));
    case SCHEDULE_ZB2P:
        return fmax(rounds * fmax(0, forward + input - 2 * weight), first_wait(rounds, m, 2.0 * l->pp - 1, forward, input));
    /* What the programs give: none for F = B = W; DualPipe's published (P/2 - 1)(F&B + B - 3W) for F = B. */
    case SCHEDULE_ZBV: return rounds * fmax(0, fmax(forward, input) - weight);
    case SCHEDULE_DUALPIPE: return (l->pp / 2.0 - 1) * (pair - input - weight + forward + fmax(0, input - weight));
    case SCHEDULE_DUALPIPEV: return rounds * (pair - input - weight + forward + fmax(0, input - weight)) / 2;
    default: return rounds * (forward + input + weight);
    }
}

static double exposed_p2p(const struct closed_form *form, const struct layout *l, double m)
{
    if (l->pp == 1)
        return 0;
    double bytes = p2p_bytes(l, &form->setting);
    const struct machine machine = {.cluster = form->setting.cluster, .layout = l, .job = form->setting.job, .pace = 1};
    double one = cost_seconds(p2p_cost(&machine, bytes));
    double fill = 2.0 * (l->pp - 1) * one; /* the first micro-batch down and the last gradient up */
    if (l->features & FEATURE_BIT(PP_OVERLAP))
        return fill;
    return fill + 2.0 * m * l->vpp * one; /* one message forward and one back per chunk and micro-batch hold the compute stream */
}

struct exchange {
    double reduce_s, gather_s;
    double reduce_crowding_s, gather_crowding_s; /* that they take from computations beside them */
};

/* Gradient reduction and parameter gathering of `parameters` over one kind of group. */
static struct exchange exchange_over(const struct closed_form *form, const struct layout *l, enum group_kind group,
                                     double parameters)
{
    const struct cluster *cluster = form->setting.cluster;
    double gradient = parameters * (form->setting.job->gradient_precision == PRECISION_FP32 ? 4 : 2);
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

/* Of what a rank holds: experts have fewer replicas and groups of their own. The two follow one another. */
static struct exchange dp_exchange(const struct closed_form *form, const struct layout *l, struct stage_parameters p)
{
    struct exchange dense = exchange_over(form, l, GROUP_DP, p.dense);
    struct exchange experts = exchange_over(form, l, GROUP_EXPERT_DP, p.experts);
    return (struct exchange){dense.reduce_s + experts.reduce_s, dense.gather_s + experts.gather_s,
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
static double exposed_sharded(const struct closed_form *form, const struct layout *l, const struct pass_costs *c,
                              struct stage_parameters parameters, double m)
{
    int layers = form->setting.model->layers;
    struct stage_parameters layer = {parameters.dense / layers, parameters.experts / layers};
    struct exchange e = dp_exchange(form, l, layer);
    double backward = c->input_s + c->weight_s;
    if (!(l->features & FEATURE_BIT(DP_OVERLAP))) { /* recomputation gathers for itself; reductions are waited for */
        double gathers = l->recompute == RECOMPUTE_FULL ? 2 : 1;
        double waited = beyond(c->forward_s, e.gather_s, e.gather_crowding_s) +
                        beyond(backward, gathers * e.gather_s, gathers * e.gather_crowding_s) + e.reduce_s;
        return m * (layers * waited + e.gather_s);
    }
    double longer = beyond(c->forward_s, e.gather_s, e.gather_crowding_s) +
                    beyond(backward, e.gather_s + e.reduce_s, e.gather_crowding_s + e.reduce_crowding_s);
    return m * (layers * longer + e.gather_s) + e.reduce_s;
}

/* Buckets in which a stage of one chunk exchanges its gradients: 40 million parameters (Megatron-LM's default), or a million per
 * replica where that is more; at least four. As the programs do it. */
static double buckets_of(const struct layout *l, double parameters)
{
    return fmax(4, ceil(parameters / fmax(40e6, 1e6 * l->dp * l->cp)));
}

static double exposed_dp(const struct closed_form *form, const struct layout *l, const struct pass_costs *c,
                         struct stage_parameters parameters, double m, double stage_backward, double stage_forward)
{
    if (l->zero == 3)
        return exposed_sharded(form, l, c, parameters, m);
    struct exchange e = dp_exchange(form, l, parameters);
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

static double optimizer_seconds(const struct closed_form *form, const struct layout *l, double parameters)
{
    const struct machine machine = {.cluster = form->setting.cluster, .layout = l, .job = form->setting.job, .pace = 1};
    double share = l->zero >= 1 ? parameters / (l->dp * l->cp) : parameters;
    struct work_table table = {0};
    int32_t id = work_add_optimizer(&table, l, &form->setting, share);
    double s = cost_seconds(work_cost(&machine, &table, id));
    work_table_free(&table);
    return s;
}

static void add_scaled(struct cost_by_class *to, const struct cost_by_class *from, double scale)
{
    for (int i = 0; i < N_WORK_CLASSES; i++)
        to->s[i] += from->s[i] * scale;
}

/* Of stages of one chunk. The fullest is next to an end, or one of two. */
static int largest_whole_stage(const struct layout *l, const struct transformer *model)
{
    const int candidates[] = {0, 1, l->pp - 2};
    int most = 0;
    for (int i = 0; i < 3; i++) {
        int count = layout_layers(l, model, candidates[i]).count;
        most = count > most ? count : most;
    }
    return most;
}

/* Layers of the stage that has most, ends counted by their time. */
static int largest_stage_layers(const struct layout *l, const struct transformer *model)
{
    int layers = model->layers + model->mtp_layers; /* the latter take layers' places */
    int v = l->pp * l->vpp;
    if (l->vpp == 1)
        return largest_whole_stage(l, model);
    if (layers % v && (layers + 2) % v == 0)
        return (layers + 2) / l->pp;
    return (layers + l->pp - 1) / l->pp;
}

/* Layers that the stage with the head runs of a micro-batch, other than those of multi-token prediction. */
static double head_stage_layers(const struct layout *l, const struct transformer *model)
{
    int stage = layout_stage_of(l, layout_virtual_stages(l) - 1), layers = 0;
    for (int chunk = 0; chunk < l->vpp; chunk++)
        layers += layout_layers(l, model, layout_virtual_stage(l, stage, chunk)).count;
    return l->schedule == SCHEDULE_DUALPIPE ? layers / 2.0 : layers; /* each of two chunks runs half of them */
}

/* What the first or the last stage takes of a micro-batch beyond the layers of the fullest stage. DualPipe: two stages have the
 * head for half of the micro-batches. */
static double ends_seconds(const struct layout *l, const struct transformer *model, const struct pass_costs *c, double fullest)
{
    if (l->pp == 1)
        return c->head_s + c->embedding_s;
    double spared = (fullest - head_stage_layers(l, model)) * (c->forward_s + c->input_s + c->weight_s);
    return fmax(0, c->head_s / (l->schedule == SCHEDULE_DUALPIPE ? 2 : 1) - spared);
}

/* Stages of one chunk need not be equal, and what fills and drains the pipeline passes each of them. */
static double rounds_of(const struct layout *l, const struct transformer *model, double fullest)
{
    return l->vpp == 1 ? (model->layers + model->mtp_layers) / fullest - 1 : l->pp - 1;
}

void closed_form_estimate(struct closed_form *form, const struct layout *l, struct estimate *out)
{
    const struct setting *setting = &form->setting;
    struct pass_costs *c = costs_of(form, l);
    double m = (double)layout_micro_batches(l, setting->job), paired = paired_micro_batches(l, m),
           n = l->pp == 1 ? setting->model->layers : largest_stage_layers(l, setting->model);
    struct estimate e = {0};
    if (paired > 0 && !c->pairs_known)
        costs_fill_pairs(c, setting, l);
    double pair_s = paired > 0 ? c->pair_s : c->forward_s + c->input_s + c->weight_s;
    add_scaled(&e.by_class, &c->layer_pair, paired * n);
    add_scaled(&e.by_class, &c->layer_forward, (m - paired) * n);
    add_scaled(&e.by_class, &c->layer_input, (m - paired) * n);
    add_scaled(&e.by_class, &c->layer_weight, (m - paired) * n);
    double copies = l->schedule == SCHEDULE_DUALPIPE ? 2 : 1; /* two stages have each layer */
    e.by_class.s[CLASS_HEAD] += m * ends_seconds(l, setting->model, c, n);

    struct layer_range range = {0, (int)n < setting->model->layers ? (int)n : setting->model->layers};
    struct stage_parameters p = work_stage_parameters(l, setting, range, true, l->pp == 1);
    struct stage_parameters parameters = {copies * p.dense, copies * p.experts};
    double pause =
        layout_checkpoints_in_python(l, setting->model) ? pause_seconds(setting->cluster, l->tp * l->cp * l->pp, n) : 0;
    e.by_class.s[CLASS_BUBBLE] += bubble_seconds(l, m, rounds_of(l, setting->model, n), n * pair_s + pause, n * c->forward_s,
                                                 n * c->input_s + pause, n * c->weight_s);
    e.by_class.s[CLASS_PP_COMM] += exposed_p2p(form, l, m);
    e.by_class.s[CLASS_DP_COMM] += exposed_dp(form, l, c, parameters, m, n * (c->input_s + c->weight_s), n * c->forward_s);
    e.by_class.s[CLASS_OPTIMIZER] += optimizer_seconds(form, l, parameters.dense + parameters.experts);
    e.by_class.s[CLASS_HOST] += data_loading_seconds(l, setting);
    e.by_class.s[CLASS_HOST] += m * pause;
    e.step_s = cost_by_class_total(&e.by_class);
    e.memory_bytes = closed_form_memory(form, l);
    *out = e;
}

/* Do two layouts have one footprint? Dimensions that change most often first. */
static bool weighs_the_same(const struct layout *a, const struct layout *b)
{
    return ((a->features ^ b->features) & ~FOOTPRINT_IGNORES) == 0 && a->sequence_parallel == b->sequence_parallel &&
           a->zero == b->zero && a->recompute == b->recompute && a->schedule == b->schedule && a->micro_batch == b->micro_batch &&
           a->vpp == b->vpp && a->ep == b->ep && a->pp == b->pp && a->cp == b->cp && a->tp == b->tp && a->dp == b->dp &&
           layout_expert_tp(a) == layout_expert_tp(b);
}

double closed_form_memory(struct closed_form *form, const struct layout *layout)
{
    if (form->weighed_bytes > 0 && weighs_the_same(layout, &form->weighed))
        return form->weighed_bytes;
    struct footprint f;
    footprint_peak(layout, &form->setting, &f, NULL);
    form->weighed = *layout;
    form->weighed_bytes = f.total;
    return f.total;
}
