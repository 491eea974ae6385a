/*
 * closed_form_stages.c - the times of pipeline stages, summed over the passes of their layers.
 */
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/cost/step/closed_form_passes.h"
#include "model/cost/work/host_memory.h"

/* --- passes of layers */

/* A pass of these layers. */
static double range_seconds(const struct pass_costs *costs, enum pass pass, struct layer_range range, bool embedding, bool head)
{
    if (!costs->kinds)
        return pass_seconds(costs, pass, PART_LAYER, pass_layers(costs->stages.recompute, range.count, 1), embedding, head);
    const struct part_seconds *first = &costs->before[pass][range.first], *end = first + range.count;
    const struct part_seconds all = {end->device_s - first->device_s, end->host_s - first->host_s};
    return pass_with_ends(costs->parts[pass], all, embedding, head);
}

/* Layers by themselves. */
static double layers_seconds(const struct pass_costs *costs, enum pass pass, struct layer_count layers)
{
    if (layers.n <= 0)
        return 0;
    return costs->whole ? pass_seconds(costs, pass, PART_LAYER, layers, false, false)
                        : layers.n * pass_seconds(costs, pass, PART_LAYER, (struct layer_count){1, 0}, false, false);
}

/* What the passes of a chunk of n layers wait for copies of the first `leaving`, forward and backward; of that, what both
 * together are behind the link. */
static double copies_of_chunk(const struct pass_costs *costs, double layers, double leaving, double waited[PASS_BACKWARD + 1])
{
    double both = 0;
    for (int p = PASS_FORWARD; p <= PASS_BACKWARD; p++) {
        double layer = pass_seconds(costs, (enum pass)p, PART_MEAN_LAYER, (struct layer_count){1, 0}, false, false);
        waited[p] = pass_waiting_layers(leaving) * fmax(0, costs->copy_s - layer);
        both += layers * layer + waited[p];
    }
    double behind = fmax(0, leaving * costs->copy_s - both);
    waited[PASS_FORWARD] += behind / 2;
    waited[PASS_BACKWARD] += behind / 2;
    return behind;
}

/* --- stages */

static int layers_at(const struct layout *l, const struct transformer *model, int virtual_stage)
{
    return layout_layers(l, model, virtual_stage).count;
}

/* Of stages of one chunk. The fullest is next to an end, or one of two. */
static int largest_whole_stage(const struct layout *l, const struct transformer *model)
{
    const int candidates[] = {0, 1, l->pp - 2};
    int most = 0;
    for (int i = 0; i < 3; i++) {
        int count = layers_at(l, model, candidates[i]);
        most = count > most ? count : most;
    }
    return most;
}

/* DualPipe: a stage holds a virtual stage and its mirror image, each for half of the micro-batches. */
static double largest_mirrored_stage(const struct layout *l, const struct transformer *model)
{
    double most = 0;
    for (int stage = 0; 2 * stage < l->pp; stage++)
        most = fmax(most, (layers_at(l, model, stage) + layers_at(l, model, l->pp - 1 - stage)) / 2.0);
    return most;
}

/* A V: the heavier virtual stages stand just before the last, which is on the first stage, and go down from the second; where
 * they are more than an arm has, the stage in the fold has two of them. */
static int largest_folded_stage(const struct layout *l, const struct transformer *model)
{
    const int candidates[] = {0, 1, l->pp - 1};
    int most = 0;
    for (int i = 0; i < 3; i++) {
        int stage = candidates[i], count = layers_at(l, model, stage) + layers_at(l, model, 2 * l->pp - 1 - stage);
        most = count > most ? count : most;
    }
    return most;
}

/* Layers of the stage that has most, ends counted by their time. */
static double largest_stage_layers(const struct layout *l, const struct transformer *model)
{
    int layers = model->layers + model->mtp_layers; /* the latter take layers' places */
    int v = l->pp * l->vpp;
    if (l->vpp == 1)
        return largest_whole_stage(l, model);
    if (l->schedule == SCHEDULE_DUALPIPE)
        return largest_mirrored_stage(l, model);
    if (schedule_is_folded(l->schedule))
        return largest_folded_stage(l, model);
    if (layers % v && (layers + 2) % v == 0)
        return (layers + 2) / l->pp - (l->pp == 2); /* of two, either has an end in a layer's place */
    return (layers + l->pp - 1) / l->pp;
}

static struct layer_count count_add(struct layer_count a, struct layer_count b)
{
    return (struct layer_count){a.n + b.n, a.whole + b.whole};
}

/* Layers of the other chunks of the stage that holds virtual stage `end`; those of DualPipe's mirror images are none of a
 * micro-batch's that meets this one. */
static struct layer_count other_layers(const struct layout *l, const struct transformer *model, int end)
{
    struct layer_count layers = {0, 0};
    int stage = layout_stage_of(l, end);
    for (int chunk = 0; chunk < l->vpp && l->schedule != SCHEDULE_DUALPIPE; chunk++) {
        int v = layout_virtual_stage(l, stage, chunk);
        if (v != end)
            layers = count_add(layers, pass_layers(l->recompute, layers_at(l, model, v), 1));
    }
    return layers;
}

/* A pass of them; `layers` are how many they are. */
static double other_seconds(const struct pass_costs *costs, enum pass pass, const struct layout *l,
                            const struct transformer *model, int end, struct layer_count layers)
{
    int stage = layout_stage_of(l, end);
    double seconds = 0;
    if (!costs->kinds)
        return layers_seconds(costs, pass, layers);
    for (int chunk = 0; chunk < l->vpp && l->schedule != SCHEDULE_DUALPIPE; chunk++) {
        int v = layout_virtual_stage(l, stage, chunk);
        if (v != end)
            seconds += range_seconds(costs, pass, layout_layers(l, model, v), false, false);
    }
    return seconds;
}

/* Passes of a stage's layers, without the ends; of DualPipe's, that a micro-batch meets on average. */
static double layers_of_stage_seconds(const struct pass_costs *costs, enum pass pass, const struct layout *l,
                                      const struct transformer *model, int stage)
{
    double seconds = 0;
    for (int chunk = 0; chunk < l->vpp; chunk++) {
        struct layer_range range = layout_layers(l, model, layout_virtual_stage(l, stage, chunk));
        seconds += range_seconds(costs, pass, range, false, false);
    }
    return l->schedule == SCHEDULE_DUALPIPE ? seconds / 2 : seconds;
}

static double both_seconds(const struct pass_costs *costs, const struct layout *l, const struct transformer *model, int stage)
{
    return layers_of_stage_seconds(costs, PASS_FORWARD, l, model, stage) +
           layers_of_stage_seconds(costs, PASS_BACKWARD, l, model, stage);
}

/* By a pattern: the last of those stages whose layers take longest, and the first, sums in another order aside. */
static int slowest_stage(const struct pass_costs *costs, const struct layout *l, const struct transformer *model, int *first)
{
    int slowest = 0;
    double longest = 0;
    for (int stage = 0; stage < l->pp; stage++) {
        double seconds = both_seconds(costs, l, model, stage);
        if (seconds > longest * (1 + 1e-12))
            *first = stage;
        if (seconds >= longest * (1 - 1e-12))
            longest = fmax(longest, seconds), slowest = stage;
    }
    return slowest;
}

/* Of all virtual stages. */
static struct layer_count all_layers(const struct layout *l, const struct transformer *model)
{
    struct layer_count layers = {model->layers, 0};
    for (int v = 0; l->recompute.of != RECOMPUTE_ALL && v < layout_virtual_stages(l); v++)
        layers.whole += pass_layers(l->recompute, layers_at(l, model, v), 1).whole;
    return layers;
}

/* Repetitions of n layers, of which groups share one. */
static double checkpoints_of(const struct layout *l, struct layer_count layers)
{
    double repeated = layers.n - layers.whole;
    return layout_recomputes_groups(l) ? ceil(repeated / l->recompute.layers) : repeated;
}

/*
 * A pair of passes of interleaved stages that keep step. Pass i forward and pass j backward of a stage (schedule_interleaved.c)
 * are i and j of rounds of p v: chunk i / p mod v and v - 1 - j / p mod v. A forward pass is one stage further down in the next
 * turn, a backward pass one up, so in turn t stage r has i = t - r + 2 (p - 1) + (v - 1) p and j = t + r. Each turn takes what
 * the fullest pair of it does; where stages may drift apart by `together` turns, that many do.
 */
static double lockstep_seconds(const double *chunks, int p, int v, int together)
{
    int turns = p * v;
    double seconds = 0;
    for (int first = 0; first < turns; first += together) {
        double longest = 0;
        for (int r = 0; r < p; r++) {
            double pairs = 0;
            for (int t = first; t < first + together; t++) {
                int i = (t - r + 2 * (p - 1) + (v - 1) * p) % turns, j = (t + r) % turns;
                pairs += chunks[i / p * p + r] + chunks[turns + (v - 1 - j / p) * p + r];
            }
            longest = fmax(longest, pairs);
        }
        seconds += longest;
    }
    return seconds / p;
}

/* Passes of every virtual stage, one direction after the other. */
static void chunks_fill(struct pass_costs *costs, const struct transformer *model, const struct layout *l)
{
    int n = l->pp * l->vpp;
    costs->chunks = memory_grow(costs->chunks, &costs->n_chunks, 2 * (size_t)n, sizeof *costs->chunks);
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++)
        for (int i = 0; i < n; i++) {
            struct layer_range range = layout_layers(l, model, i);
            bool whole = costs->kinds || i == 0 || i == n - 1;
            costs->chunks[pass * n + i] = whole
                                              ? range_seconds(costs, (enum pass)pass, range, i == 0, i == n - 1)
                                              : layers_seconds(costs, (enum pass)pass, pass_layers(l->recompute, range.count, 1));
        }
}

/* Chunks of the slowest stage that take as long as what a micro-batch passes before stage `stage`. */
static double chunks_before(const struct stage_times *t, const struct pass_costs *costs, const struct transformer *model,
                            const struct layout *l, int stage)
{
    struct layer_range before = {0, layout_layers(l, model, stage).first};
    if (!costs->kinds)
        return before.count / (t->fullest / l->vpp);
    return (range_seconds(costs, PASS_FORWARD, before, false, false) +
            range_seconds(costs, PASS_BACKWARD, before, false, false)) /
           (t->chunk.s[PASS_FORWARD] + t->chunk.s[PASS_BACKWARD]);
}

/* The last stage that has as many layers as the fullest; 0 if none has. */
static int last_full_stage(const struct stage_times *t, const struct transformer *model, const struct layout *l)
{
    for (int stage = l->pp - 1; stage > 0; stage--) {
        int layers = 0;
        for (int chunk = 0; chunk < l->vpp; chunk++)
            layers += layers_at(l, model, layout_virtual_stage(l, stage, chunk));
        if (layers >= t->fullest)
            return stage;
    }
    return 0;
}

static bool are_even(const struct pass_costs *costs, const struct transformer *model, const struct layout *l)
{
    int layers = model->layers + model->mtp_layers, parts = l->pp * l->vpp;
    return !costs->kinds && (layers % parts == 0 || (layers + 2) % parts == 0);
}

static void interleaved_times_fill(struct stage_times *t, struct pass_costs *costs, const struct transformer *model,
                                   const struct layout *l)
{
    t->uneven = !are_even(costs, model, l);
    if (!t->uneven)
        return;
    chunks_fill(costs, model, l);
    t->lockstep = lockstep_seconds(costs->chunks, l->pp, l->vpp, 1);
    t->rounds = costs->kinds ? lockstep_seconds(costs->chunks, l->pp, l->vpp, l->pp) : 0;
}

/* GPipe's passes of one direction follow one another: none makes up for what another's copies take. */
static bool copies_by_direction(const struct pass_costs *costs, const struct layout *l)
{
    return costs->copy_s > 0 && l->schedule == SCHEDULE_GPIPE;
}

/* The passes of a chunk, of which the last two layers stay where the backward pass follows at once: a stage's last chunk's, of
 * the only micro-batch or of GPipe's last. What both together are behind the link is what the next micro-batch waits for. */
static void way_copies(const struct stage_times *t, const struct pass_costs *costs, double layers, double leaving,
                       bool last_chunk, double waited[PASS_BACKWARD + 1])
{
    double turned[PASS_BACKWARD + 1];
    double behind = copies_of_chunk(costs, layers, leaving, waited);
    waited[PASS_FORWARD] -= behind / 2;
    waited[PASS_BACKWARD] -= behind / 2;
    if (!last_chunk || (!t->by_direction && costs->key.accumulates))
        return;
    (void)copies_of_chunk(costs, layers, fmin(leaving, fmax(0, layers - OFFLOAD_BUFFERS)), turned);
    waited[PASS_BACKWARD] = fmin(waited[PASS_BACKWARD], turned[PASS_BACKWARD]);
    if (!costs->key.accumulates)
        waited[PASS_FORWARD] = fmin(waited[PASS_FORWARD], turned[PASS_FORWARD]);
}

/* What stages wait for copies. One micro-batch by itself is never behind the link. */
static void copies_add(struct stage_times *t, const struct pass_costs *costs, const struct transformer *model,
                       const struct layout *l)
{
    int last = l->pp * l->vpp - 1, beside = l->vpp - 1;
    double chunk[PASS_BACKWARD + 1], at_first[PASS_BACKWARD + 1], at_last[PASS_BACKWARD + 1], at[PASS_BACKWARD + 1],
        turned[PASS_BACKWARD + 1];
    const double full = t->fullest / l->vpp, first = layers_at(l, model, 0), ending = layers_at(l, model, last);
    t->copies = pass_leaving_layers(l, t->fullest, full) * costs->copy_s;
    if (t->by_direction) {
        way_copies(t, costs, full, pass_leaving_layers(l, t->fullest, full), true, chunk);
        way_copies(t, costs, first, pass_leaving_layers(l, t->fullest, first), true, at_first);
        way_copies(t, costs, ending, pass_leaving_layers(l, t->fullest, ending), true, at_last);
        turning_copies(costs, (int)ending, (int)round(pass_leaving_layers(l, t->fullest, ending)), true, turned);
        at_last[PASS_FORWARD] = costs->key.accumulates ? at_last[PASS_FORWARD] : turned[PASS_FORWARD];
        at_last[PASS_BACKWARD] = costs->key.accumulates ? at_last[PASS_BACKWARD] : turned[PASS_BACKWARD];
    } else {
        t->behind = copies_of_chunk(costs, full, pass_leaving_layers(l, t->fullest, full), chunk);
        copies_of_chunk(costs, first, pass_leaving_layers(l, t->fullest, first), at_first);
        turning_copies(costs, (int)ending, (int)round(pass_leaving_layers(l, t->fullest, ending)), false, at_last);
    }
    for (int p = PASS_FORWARD; p <= PASS_BACKWARD; p++) {
        t->inner.s[p] += l->vpp * chunk[p];
        t->chunk.s[p] += chunk[p];
        t->head.s[p] += at_last[p] + beside * chunk[p];
        t->first.s[p] += at_first[p] + beside * chunk[p];
    }
    for (int v = 0; v <= last; v++) {
        double layers = layers_at(l, model, v);
        if (v < last)
            way_copies(t, costs, layers, pass_leaving_layers(l, t->fullest, layers), v > last - l->pp, at);
        t->sum.s[PASS_FORWARD] += v < last ? at[PASS_FORWARD] : at_last[PASS_FORWARD];
        t->sum.s[PASS_BACKWARD] += v < last ? at[PASS_BACKWARD] : at_last[PASS_BACKWARD];
    }
}

/* Which stage is the fullest, and how full. */
static void fullest_fill(struct stage_times *t, const struct pass_costs *costs, const struct transformer *model,
                         const struct layout *l)
{
    t->last_full = l->pp - 1;
    if (costs->differ && costs->known == PARTS_LEAST) {
        t->fullest = (double)model->layers / l->pp;
        t->last_full = 0;
        return;
    }
    if (costs->kinds) {
        double layer = pass_seconds(costs, PASS_FORWARD, PART_MEAN_LAYER, (struct layer_count){1, 0}, false, false) +
                       pass_seconds(costs, PASS_BACKWARD, PART_MEAN_LAYER, (struct layer_count){1, 0}, false, false);
        t->last_full = slowest_stage(costs, l, model, &t->first_full);
        t->fullest = both_seconds(costs, l, model, t->last_full) / layer;
        return;
    }
    t->fullest = largest_stage_layers(l, model);
    while (l->vpp == 1 && t->last_full > 0 && layers_at(l, model, t->last_full) < t->fullest)
        t->last_full--;
}

/* Chunks of a stage that a micro-batch meets. */
static int chunks_met(const struct layout *l)
{
    return l->schedule == SCHEDULE_DUALPIPE ? 1 : l->vpp;
}

/* The backward pass's two parts are asked for once they are known. */
static int n_passes_known(const struct pass_costs *costs)
{
    return costs->divided_known ? N_PASSES : PASS_BACKWARD + 1;
}

/* What the fullest stage takes without ends and copies, and all layers. */
static void inner_times_fill(struct stage_times *t, const struct pass_costs *costs, const struct transformer *model,
                             const struct layout *l)
{
    fullest_fill(t, costs, model, l);
    struct layer_count fullest = pass_layers(l->recompute, t->fullest, chunks_met(l)), all = all_layers(l, model);
    t->whole = all.whole / all.n;
    t->checkpoints[0] = checkpoints_of(l, fullest);
    t->checkpoints[2] = checkpoints_of(l, all);
    for (int pass = 0; pass < n_passes_known(costs); pass++) {
        enum pass p = (enum pass)pass;
        t->inner.s[p] =
            costs->kinds ? layers_of_stage_seconds(costs, p, l, model, t->last_full) : layers_seconds(costs, p, fullest);
        t->chunk.s[p] = t->inner.s[p] / chunks_met(l);
        t->layers.s[p] = pass_seconds(costs, p, PART_MEAN_LAYER, all, false, false);
        t->layer.s[p] = t->layers.s[p] / model->layers;
    }
    if (l->schedule != SCHEDULE_INTERLEAVED || (costs->differ && costs->known == PARTS_LEAST))
        return;
    bool even = are_even(costs, model, l);
    t->fill_chunks = even ? l->pp - 1 : chunks_before(t, costs, model, l, l->pp - 1);
    t->least_chunks = t->fill_chunks;
    if (!even)
        t->least_chunks = chunks_before(t, costs, model, l, costs->kinds ? t->last_full : last_full_stage(t, model, l));
}

/* The stages with the ends, all of them together, and copies. */
static void stage_times_complete(struct stage_times *t, struct pass_costs *costs, const struct transformer *model,
                                 const struct layout *l)
{
    int last = layout_virtual_stages(l) - 1;
    const struct layer_range first_range = layout_layers(l, model, 0), last_range = layout_layers(l, model, last);
    bool folded = schedule_is_folded(l->schedule) && l->schedule != SCHEDULE_DUALPIPE; /* one stage has both ends */
    struct layer_count at_first = pass_layers(l->recompute, first_range.count, 1);
    struct layer_count at_last = pass_layers(l->recompute, last_range.count, 1);
    struct layer_count beside_first = other_layers(l, model, 0), beside_last = other_layers(l, model, last);
    struct layer_count with_head = count_add(at_last, beside_last);
    while (l->vpp == 1 && !costs->kinds && t->first_full < t->last_full && layers_at(l, model, t->first_full) < t->fullest)
        t->first_full++;
    t->head_layers = with_head.n;
    t->checkpoints[1] = checkpoints_of(l, with_head);
    for (int pass = 0; pass < n_passes_known(costs); pass++) {
        enum pass p = (enum pass)pass;
        double embedding = range_seconds(costs, p, first_range, true, false);
        double head = range_seconds(costs, p, last_range, false, true);
        double ends = costs->kinds
                          ? range_seconds(costs, p, first_range, false, false) + range_seconds(costs, p, last_range, false, false)
                          : layers_seconds(costs, p, count_add(at_first, at_last));
        t->head.s[p] = head + (folded ? embedding : other_seconds(costs, p, l, model, last, beside_last));
        t->first.s[p] = folded ? t->head.s[p] : embedding + other_seconds(costs, p, l, model, 0, beside_first);
        t->sum.s[p] = embedding + head - ends + t->layers.s[p];
    }
    if (l->schedule == SCHEDULE_INTERLEAVED)
        interleaved_times_fill(t, costs, model, l);
    if (costs->copy_s > 0)
        copies_add(t, costs, model, l);
}

/* A pipeline of one stage is its own first and last; what it waits for copies is with closed_form_layers.c. */
static void only_stage_fill(struct stage_times *t, const struct pass_costs *costs, const struct transformer *model,
                            const struct layout *l)
{
    struct layer_count layers = pass_layers(l->recompute, model->layers, 1);
    t->fullest = t->head_layers = model->layers;
    t->whole = layers.whole / layers.n;
    for (int i = 0; i < 3; i++)
        t->checkpoints[i] = checkpoints_of(l, layers);
    for (int pass = 0; pass < n_passes_known(costs); pass++) {
        double all = pass_seconds(costs, (enum pass)pass, PART_MEAN_LAYER, layers, true, true);
        t->inner.s[pass] = t->head.s[pass] = t->first.s[pass] = t->sum.s[pass] = t->chunk.s[pass] = all;
    }
}

const struct stage_times *inner_times_of(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    struct stage_times *t = &costs->stages;
    enum arrangement arrangement = schedule_arrangement(layout->schedule);
    bool divides = layout->schedule >= SCHEDULE_ZB1P && !costs->divided_known; /* DualPipe divides some */
    if (!divides && t->pp == layout->pp && t->vpp == layout->vpp && t->arrangement == arrangement &&
        recompute_equal(t->recompute, layout->recompute) && t->by_direction == copies_by_direction(costs, layout))
        return t;
    if (divides)
        pass_costs_divide(costs, setting, layout);
    *t = (struct stage_times){.pp = layout->pp,
                              .vpp = layout->vpp,
                              .arrangement = arrangement,
                              .recompute = layout->recompute,
                              .by_direction = copies_by_direction(costs, layout)};
    if (layout->pp == 1)
        only_stage_fill(t, costs, setting->model, layout);
    else
        inner_times_fill(t, costs, setting->model, layout);
    t->complete = layout->pp == 1;
    return t;
}

const struct stage_times *stage_times_of(struct pass_costs *costs, const struct setting *setting, const struct layout *layout)
{
    (void)inner_times_of(costs, setting, layout);
    if (!costs->stages.complete)
        stage_times_complete(&costs->stages, costs, setting->model, layout);
    costs->stages.complete = true;
    return &costs->stages;
}
