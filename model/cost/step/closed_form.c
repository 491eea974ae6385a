/*
 * closed_form.c - combine passes (closed_form_passes.h), schedule (closed_form_schedule.h), exchanges among replicas
 * (closed_form_replicas.h), optimizer and separate host time into a step.
 *
 *     step = passes of a stage on average + bubble + exposed p2p + exposed DP + optimizer + host
 */
#include "model/cost/step/closed_form.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/cost/kernel/data_loading.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/memory/footprint.h"
#include "model/cost/step/closed_form_passes.h"
#include "model/cost/step/closed_form_replicas.h"
#include "model/cost/step/closed_form_schedule.h"

/* The key and the cost of a message between stages. */
struct message {
    int tp, cp, pp, dp, micro_batch; /* tp 0: none */
    enum schedule schedule;
    bool sequence_parallel;
    feature_set features;
    struct cost cost;
};
enum { MESSAGES_KEPT = 64 }; /* those of the innermost dimensions of a space */

struct closed_form {
    struct setting setting;
    struct pass_cache passes;
    struct replica_memo replicas;
    struct message messages[MESSAGES_KEPT];
    struct footprint_memo footprints; /* a search asks first whether a layout fits, then how long it takes */
};

struct closed_form *closed_form_create(const struct setting *setting)
{
    struct closed_form *form = memory_new(1, sizeof *form);
    form->setting = *setting;
    pass_cache_init(&form->passes);
    return form;
}

void closed_form_destroy(struct closed_form *form)
{
    if (!form)
        return;
    pass_cache_free(&form->passes);
    replica_memo_free(&form->replicas);
    footprint_memo_free(&form->footprints);
    free(form);
}

static bool same_message(const struct message *a, const struct message *b)
{
    return a->tp == b->tp && a->cp == b->cp && a->pp == b->pp && a->dp == b->dp && a->micro_batch == b->micro_batch &&
           a->schedule == b->schedule && a->sequence_parallel == b->sequence_parallel && a->features == b->features;
}

/* On an oversubscribed fabric it takes a walk along all of its leaves to know. */
static struct cost message_cost(struct closed_form *form, const struct layout *l)
{
    static const feature_set matter = FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(SCATTER_GATHER_P2P);
    if (l->pp == 1)
        return (struct cost){0};
    struct message asked = {.tp = l->tp,
                            .cp = l->cp,
                            .pp = l->pp,
                            .dp = l->dp,
                            .micro_batch = l->micro_batch,
                            .schedule = l->schedule,
                            .sequence_parallel = l->sequence_parallel,
                            .features = l->features & matter};
    unsigned slot = (unsigned)l->schedule * 7 + (unsigned)l->micro_batch * 4 + l->sequence_parallel * 2u +
                    !(l->features & FEATURE_BIT(PP_OVERLAP));
    struct message *kept = &form->messages[slot % MESSAGES_KEPT];
    if (same_message(kept, &asked))
        return kept->cost;
    const struct machine machine = {.cluster = form->setting.cluster, .layout = l, .job = form->setting.job, .pace = 1};
    *kept = asked;
    kept->cost = p2p_cost(&machine, p2p_bytes(l, &form->setting));
    return kept->cost;
}

/* The passes of a stage on average, by class. What the host adds is what is left of their time. */
static void add_passes(struct cost_by_class *to, const struct pass_costs *c, const struct schedule_time *time, bool splits)
{
    static const enum pass whole[] = {PASS_FORWARD, PASS_BACKWARD},
                           split[] = {PASS_FORWARD, PASS_BACKWARD_INPUT, PASS_BACKWARD_WEIGHT};
    const enum pass *passes = splits ? split : whole;
    double device = 0;
    for (int i = 0; i < (splits ? 3 : 2); i++) {
        const struct part *parts = c->parts[passes[i]];
        const double times[N_PASS_PARTS] = {[PART_MEAN_LAYER] = time->alone * (time->layers.n - time->layers.whole),
                                            [PART_EMBEDDING] = time->ends,
                                            [PART_HEAD] = time->ends};
        for (int part = 0; part < N_PASS_PARTS; part++) {
            cost_by_class_add(to, &parts[part].device, times[part]);
            device += times[part] * parts[part].device_s;
        }
        if (c->whole) {
            const struct part *layer = &c->whole->parts[passes[i]][PART_MEAN_LAYER];
            cost_by_class_add(to, &layer->device, time->alone * time->layers.whole);
            device += time->alone * time->layers.whole * layer->device_s;
        }
    }
    to->s[CLASS_HOST] += time->alone_s - device;
    cost_by_class_add(to, &c->layer_pair, time->paired * time->layers.n);
}

/* Parts of a step add up to it in another order than it is known in: so much may rounding make of that. */
#define ROUNDING 1e-9

/* Of passes `c`, by what is known of them. */
static double at_least(struct pass_costs *c, const struct setting *setting, const struct layout *l, double m)
{
    pass_costs_know_least(c, setting, l);
    const struct stage_times *stages = inner_times_of(c, setting, l);
    if (c->known == PARTS_ALL && schedule_paired(l, m) > 0)
        pass_costs_pair(c, setting, l);
    return schedule_least(l, stages, c->pair_s, m) * (1 - ROUNDING);
}

double closed_form_at_least(struct closed_form *form, const struct layout *l)
{
    struct pass_costs *c = pass_costs_of(&form->passes, &form->setting, l);
    return at_least(c, &form->setting, l, (double)layout_micro_batches(l, form->setting.job));
}

/* Whether that is not more than limit_s when everything is known of the passes. */
static bool may_be_within(struct pass_costs *c, const struct setting *setting, const struct layout *l, double m, double limit_s)
{
    if (isfinite(limit_s) && c->known != PARTS_ALL && at_least(c, setting, l, m) > limit_s)
        return false;
    pass_costs_know_all(c, setting, l);
    return at_least(c, setting, l, m) <= limit_s;
}

bool closed_form_within(struct closed_form *form, const struct layout *l, double limit_s, struct step_estimate *out)
{
    const struct setting *setting = &form->setting;
    struct pass_costs *c = pass_costs_of(&form->passes, setting, l);
    double m = (double)layout_micro_batches(l, setting->job);
    if (!may_be_within(c, setting, l, m, limit_s))
        return false;
    const struct stage_times *stages = stage_times_of(c, setting, l);
    double pause =
        layout_checkpoints_in_python(l, setting->model) ? pause_seconds(setting->cluster, l->tp * l->cp * l->pp, 1) : 0;
    const struct cost sent = message_cost(form, l);
    double message = cost_seconds(sent);
    if (stages->uneven && at_least(c, setting, l, m) + schedule_least_messages(l, m, message) * (1 - ROUNDING) > limit_s)
        return false;
    stage_times_follow(c, l, m, message);
    struct schedule_time time = schedule_time_of(l, setting, stages, c->pair_s, m, pause, message);
    if (time.total_s * (1 - ROUNDING) > limit_s)
        return false;
    struct replica_time replicas = replica_time_of(&form->replicas, setting, l, c, stages, m, &sent);
    if ((time.total_s + replicas.exposed_s + replicas.host_s + replicas.optimizer_s) * (1 - ROUNDING) > limit_s)
        return false;
    struct step_estimate e = {0};
    add_passes(&e.by_class, c, &time, schedule_divides(l->schedule));
    e.by_class.s[CLASS_BUBBLE] += time.bubble_s + fmin(0, replicas.exposed_s); /* the slowest had less to wait for */
    e.by_class.s[CLASS_PP_COMM] += time.messages_s;
    e.by_class.s[CLASS_HOST] += time.pauses_s + replicas.host_s + data_loading_seconds(l, setting);
    e.by_class.s[CLASS_DP_COMM] += fmax(0, replicas.exposed_s);
    e.by_class.s[CLASS_OPTIMIZER] += replicas.optimizer_s;
    e.step_s = cost_by_class_total(&e.by_class);
    if (e.step_s > limit_s)
        return false;
    e.memory_bytes = closed_form_memory(form, l);
    *out = e;
    return true;
}

void closed_form_estimate(struct closed_form *form, const struct layout *layout, struct step_estimate *out)
{
    (void)closed_form_within(form, layout, INFINITY, out);
}

double closed_form_memory(struct closed_form *form, const struct layout *layout)
{
    return footprint_peak_of(&form->footprints, layout, &form->setting)->total;
}

double closed_form_host_memory(struct closed_form *form, const struct layout *layout)
{
    return footprint_peak_of(&form->footprints, layout, &form->setting)->host;
}
