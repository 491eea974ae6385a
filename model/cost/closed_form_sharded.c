/*
 * closed_form_sharded.c - what replicas exchange layer by layer, for the closed form: ZeRO-3's weights and gradients, and
 * gradients that the host keeps. Both are of models in one stage.
 */
#include "model/cost/closed_form_replicas.h"

#include <math.h>

#include "model/cost/host_memory.h"

struct exchange exchange_completing(const struct exchange *e)
{
    struct exchange both = *e;
    both.reduce_s += e->replicas_s;
    both.reduce_crowding_s += e->replicas_crowding_s;
    return both;
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
    return waiting * exchange_beyond(fmax(c->copy_s, pass_s), exchange_s, crowding_s) +
           (1 - waiting) * exchange_beyond(pass_s, exchange_s, crowding_s);
}

/* Layers of a kind: their share of all, the passes of one, and who is next on the way back: one that is repeated? */
struct layers_alike {
    double share, forward, backward;
    bool before_repeated;
};
enum { KINDS_MAX = 3 };

/* Those that are repeated (all, where all are alike) and those that keep everything. They stand together, but for those that are
 * repeated at intervals: each of them is between others. */
static int kinds_of_layers(const struct pass_costs *c, const struct layout *l, struct layers_alike kinds[KINDS_MAX])
{
    const struct layer_count one[] = {{1, 0}, {1, 1}};
    double repeated = 1 - c->stages.whole, apart = fmin(repeated, c->stages.whole);
    const double shares[] = {repeated, c->stages.whole};
    for (int i = 0; i < 2; i++)
        kinds[i] = (struct layers_alike){.share = shares[i],
                                         .forward = pass_seconds(c, PASS_FORWARD, PART_MEAN_LAYER, one[i], false, false),
                                         .backward = pass_seconds(c, PASS_BACKWARD, PART_MEAN_LAYER, one[i], false, false),
                                         .before_repeated = i == 0 && l->recompute.what == RECOMPUTE_FULL};
    if (!c->whole)
        return 1;
    if (l->recompute.of != RECOMPUTE_EVERY)
        return 2;
    kinds[2] = kinds[1];
    kinds[2].share -= apart;
    kinds[1].share = apart;
    kinds[1].before_repeated = true;
    kinds[0].before_repeated = false;
    return KINDS_MAX;
}

/* ZeRO-3's units are layers; the tables are one more, gathered with the first layer's weights for the forward pass, kept until
 * the first layer's backward pass, and reduced behind it. */
struct sharded {
    const struct layout *layout;
    const struct pass_costs *c;
    const struct exchange *layer, *ends;
    double waiting;
    bool overlaps; /* recomputation does not gather for itself; reductions run beside the passes */
};

/* What a unit's pass waits for so many gathers, and reductions, beside it. */
static double unit_waits(const struct sharded *of, double pass_s, double gathers, double reduce_s, double reduce_crowding_s)
{
    const struct exchange *e = of->layer;
    return beyond_layer(of->c, of->waiting, pass_s, gathers * e->gather_s + reduce_s,
                        gathers * e->gather_crowding_s + reduce_crowding_s);
}

static double gathers_of(const struct sharded *of, const struct layers_alike *kind)
{
    return kind->before_repeated && !of->overlaps ? 2 : 1;
}

/* A layer between others: the next one's weights are gathered and the one before's gradients reduced beside it. */
static double inner_waits(const struct sharded *of, const struct layers_alike *kind, const struct exchange *reduced)
{
    double reduce = of->overlaps ? reduced->reduce_s : 0, crowding = of->overlaps ? reduced->reduce_crowding_s : 0;
    double waits =
        unit_waits(of, kind->forward, 1, 0, 0) + unit_waits(of, kind->backward, gathers_of(of, kind), reduce, crowding);
    return waits + (of->overlaps ? 0 : reduced->reduce_s);
}

/* The last layer, with the head, turns round: its weights are gathered again beside it, and nothing has been reduced yet. */
static double turn_waits(const struct sharded *of, const struct layers_alike *kind, const struct exchange *reduced)
{
    const struct part(*parts)[N_PASS_PARTS] = of->c->parts;
    double forward = kind->forward + parts[PASS_FORWARD][PART_HEAD].device_s;
    double backward = kind->backward + parts[PASS_BACKWARD][PART_HEAD].device_s, gathers = gathers_of(of, kind);
    double waits = unit_waits(of, forward, gathers, 0, 0) + unit_waits(of, backward, gathers, 0, 0);
    return waits + (of->overlaps ? 0 : reduced->reduce_s);
}

/* The first layer, forward behind another micro-batch (or as the first: `begins`) and backward before one (the last: `ends`). */
static double first_waits(const struct sharded *of, const struct layers_alike *kind, const struct exchange *reduced, bool begins,
                          bool ends)
{
    const struct part(*parts)[N_PASS_PARTS] = of->c->parts;
    double forward = kind->forward + parts[PASS_FORWARD][PART_EMBEDDING].device_s;
    double backward = kind->backward + parts[PASS_BACKWARD][PART_EMBEDDING].device_s;
    double reduce = of->overlaps ? reduced->reduce_s : 0, crowding = of->overlaps ? reduced->reduce_crowding_s : 0;
    double tables = of->ends->reduce_s, both = begins || !of->overlaps ? 0 : reduce + tables;
    double waits = unit_waits(of, forward, 1, both, both > 0 ? crowding + of->ends->reduce_crowding_s : 0);
    double gathered = ends ? 0 : of->ends->gather_s, gathered_crowding = ends ? 0 : of->ends->gather_crowding_s;
    waits += unit_waits(of, backward, ends ? 0 : 1, gathered + reduce, gathered_crowding + crowding);
    return waits + (of->overlaps ? 0 : reduced->reduce_s + tables);
}

/* The layer that is all of a model is both: there is none before or behind it. */
static double only_waits(const struct sharded *of, const struct layers_alike *kind, const struct exchange *reduced, bool begins,
                         bool ends)
{
    const struct part(*parts)[N_PASS_PARTS] = of->c->parts;
    const struct part *f = parts[PASS_FORWARD], *b = parts[PASS_BACKWARD];
    double forward = kind->forward + f[PART_EMBEDDING].device_s + f[PART_HEAD].device_s;
    double backward = kind->backward + b[PART_EMBEDDING].device_s + b[PART_HEAD].device_s;
    double tables = of->ends->reduce_s, both = begins || !of->overlaps ? 0 : reduced->reduce_s + tables;
    double crowding = both > 0 ? reduced->reduce_crowding_s + of->ends->reduce_crowding_s : 0;
    double waits = unit_waits(of, forward, gathers_of(of, kind), both, crowding);
    waits += unit_waits(of, backward, ends ? 0 : 1, ends ? 0 : of->ends->gather_s, ends ? 0 : of->ends->gather_crowding_s);
    return waits + (of->overlaps ? 0 : reduced->reduce_s + tables);
}

/* Which kind a layer is of. */
static int kind_of_layer(const struct sharded *of, const struct transformer *model, int layer)
{
    return of->c->whole && layout_repeated_with(of->layout, model, layer).count == 0 ? 1 : 0;
}

/* Of a micro-batch whose gradients are `reduced` so. */
static double micro_batch_waits(const struct sharded *of, const struct transformer *model, const struct exchange *reduced,
                                bool begins, bool ends)
{
    struct layers_alike kinds[KINDS_MAX];
    double waits = 0;
    int n = kinds_of_layers(of->c, of->layout, kinds), first = kind_of_layer(of, model, 0);
    int last = kind_of_layer(of, model, model->layers - 1);
    if (model->layers == 1)
        return only_waits(of, &kinds[first], reduced, begins, ends);
    for (int i = 0; i < n; i++) {
        double inner = kinds[i].share * model->layers - (i == first) - (i == last);
        waits += fmax(0, inner) * inner_waits(of, &kinds[i], reduced);
    }
    return waits + turn_waits(of, &kinds[last], reduced) + first_waits(of, &kinds[first], reduced, begins, ends);
}

double sharded_seconds(const struct setting *setting, const struct layout *l, const struct replica_costs *costs,
                       const struct pass_costs *c, double m)
{
    struct exchange layer = costs->layer;
    layer.gather_s = fmax(layer.gather_s, costs->fetch_s); /* the next one comes while one is gathered */
    const struct exchange complete = exchange_completing(&layer);
    const struct sharded of = {.layout = l,
                               .c = c,
                               .layer = &layer,
                               .ends = &costs->ends,
                               .waiting = waiting_share(l, setting->model),
                               .overlaps = l->features & FEATURE_BIT(DP_OVERLAP)};
    const struct exchange *each = layout_offloads_gradients(l) ? &complete : &layer;
    double seconds = layer.gather_s + costs->ends.gather_s + micro_batch_waits(&of, setting->model, &complete, m <= 1, true);
    if (m > 1)
        seconds += micro_batch_waits(&of, setting->model, each, true, false);
    if (m > 2)
        seconds += (m - 2) * micro_batch_waits(&of, setting->model, each, false, false);
    double completed = layout_offloads_gradients(l) ? m : 1;
    return seconds + completed * costs->ends.replicas_s + (of.overlaps ? complete.reduce_s + costs->ends.reduce_s : 0);
}

/* What a layer's backward pass, with `kept` seconds of copies up of its activations, takes longer for gradients on either way,
 * and parameters up. sharded_seconds has what ZeRO-3 exchanges. */
static double longer_layer(const struct layout *l, const struct replica_costs *costs, double backward, double kept, double m)
{
    const struct exchange e = exchange_completing(&costs->layer);
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
double left_gradients_seconds(const struct layout *l, const struct replica_costs *costs, const struct pass_costs *c,
                              const struct stage_times *stages, const struct transformer *model, double m)
{
    const struct exchange e = exchange_completing(&costs->layer);
    struct layer_count one = {1, c->stages.whole};
    double backward = pass_seconds(c, PASS_BACKWARD, PART_MEAN_LAYER, one, false, false), waited = 0;
    bool overlaps = l->features & FEATURE_BIT(DP_OVERLAP);
    if (l->zero < 3) {
        double reduced = overlaps ? exchange_beyond(backward, e.reduce_s, e.reduce_crowding_s) : e.reduce_s;
        double gathered = model->layers * e.gather_s, forward = stages->inner.s[PASS_FORWARD];
        waited = m * model->layers * reduced + (overlaps ? e.reduce_s + e.gather_s + fmax(0, gathered - forward) : gathered);
    }
    double each = m * fmax(0, model->layers - OFFLOADED_GRADIENT_BUCKETS), waiting = waiting_share(l, model);
    return waited + costs->copy_s +
           each * (waiting * longer_layer(l, costs, backward, c->copy_s, m) +
                   (1 - waiting) * longer_layer(l, costs, backward, 0, m));
}
