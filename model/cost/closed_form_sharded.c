/*
 * closed_form_sharded.c - what replicas exchange layer by layer, for the closed form: ZeRO-3's weights and gradients, of a model
 * in one stage.
 */
#include "model/cost/closed_form_replicas.h"

#include <math.h>

struct exchange exchange_completing(const struct exchange *e)
{
    struct exchange both = *e;
    both.reduce_s += e->replicas_s;
    both.reduce_crowding_s += e->replicas_crowding_s;
    return both;
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
    bool overlaps; /* recomputation does not gather for itself; reductions run beside the passes */
};

/* What a unit's pass waits for so many gathers, and reductions, beside it. */
static double unit_waits(const struct sharded *of, double pass_s, double gathers, double reduce_s, double reduce_crowding_s)
{
    const struct exchange *e = of->layer;
    return exchange_beyond(pass_s, gathers * e->gather_s + reduce_s, gathers * e->gather_crowding_s + reduce_crowding_s);
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
    const struct exchange *layer = &costs->layer, complete = exchange_completing(layer);
    bool overlaps = l->features & FEATURE_BIT(DP_OVERLAP);
    const struct sharded of = {.layout = l, .c = c, .layer = layer, .ends = &costs->ends, .overlaps = overlaps};
    double seconds = layer->gather_s + costs->ends.gather_s + micro_batch_waits(&of, setting->model, &complete, m <= 1, true);
    if (m > 1)
        seconds += micro_batch_waits(&of, setting->model, layer, true, false);
    if (m > 2)
        seconds += (m - 2) * micro_batch_waits(&of, setting->model, layer, false, false);
    return seconds + costs->ends.replicas_s + (overlaps ? complete.reduce_s + costs->ends.reduce_s : 0);
}
