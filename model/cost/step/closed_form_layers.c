/*
 * closed_form_layers.c - a model in one stage, layer by layer: where weights or gradients are sharded (ZeRO-3, ZeRO-2), or
 * gradients or activations are in the memory of the host.
 *
 * Computations, exchanges among replicas and copies in both directions overlap, and a layer waits for the last of them. With
 * two or three buffers between them this is not a matter of rates alone. So the streams are followed as in programs (replicas.c
 * and host.c there): four times at which a stream becomes free, and the end times that later layers wait for. After the first
 * micro-batches each one takes the same time as the one before. So only three are followed, and the rest take as long as the
 * third.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/step/closed_form_replicas.h"
#include "model/cost/work/host_memory.h"

enum { FOLLOWED = 4, UNSENT = -1 };

/* Seconds of passes: of a layer, and of the model's ends. */
struct layer_passes {
    double forward, backward;
};

struct walk {
    const struct layout *layout;
    const struct transformer *model;
    const struct replica_costs *costs;
    const struct pass_costs *c;
    int n;                                    /* layers */
    bool sharded, scatters, gives, overlaps;  /* ZeRO-3; gradients are reduced layer by layer, or leave; dp_overlap */
    const struct stage_exchanges *in_buckets; /* of several layers, exchanged once a step beside passes; NULL: there are none */
    int leaving_layers;                       /* number of first layers whose activations leave for the host */
    struct layer_passes *layers, embedding, head;
    double *left, *sent; /* by layer: when the copy of its activations, of its gradients was down; UNSENT: there is none */

    /* When the streams are free; what exchanges issued so far take of computations, and of that what the last computation has
     * seen or waited for. */
    double compute, exchange, down, up, interference, charged;
    /* What later layers wait for, the oldest first (host.h). */
    double downs[OFFLOAD_BUFFERS], reads[OFFLOAD_BUFFERS], buckets[OFFLOADED_GRADIENT_BUCKETS], gathers[FETCHED_UNITS];
    double scattered[SCATTERED_UNITS]; /* when the last layers' gradients were, oldest first */
    double gathered;                   /* the weights of the next unit; UNSENT: nobody has asked for them */
    double copies_s;                   /* waited for so far */
};

static void push(double *ring, int n, double end)
{
    memmove(ring, ring + 1, (size_t)(n - 1) * sizeof *ring);
    ring[n - 1] = end;
}

/* --- streams */

static void compute(struct walk *w, double seconds)
{
    w->compute += seconds + w->interference - w->charged;
    w->charged = w->interference;
}

static void await_copy(struct walk *w, double end)
{
    w->copies_s += fmax(0, end - w->compute);
    w->compute = fmax(w->compute, end);
}

/* The last exchange issued, which then takes nothing from what comes behind it. */
static void await_exchange(struct walk *w)
{
    w->compute = fmax(w->compute, w->exchange);
    w->charged = w->interference;
}

static void reduce(struct walk *w, const struct exchange *e)
{
    if (e->reduce_s <= 0)
        return;
    w->exchange = fmax(w->exchange, w->compute) + e->reduce_s;
    w->interference += e->reduce_interference_s;
}

static double copy_up(struct walk *w, double ready, double seconds)
{
    return w->up = fmax(w->up, ready) + seconds;
}

static double copy_down(struct walk *w, double ready, double seconds)
{
    return w->down = fmax(w->down, ready) + seconds;
}

/* --- weights that are sharded */

static void gather(struct walk *w, const struct exchange *e, double fetch_s)
{
    double ready = w->compute;
    if (fetch_s > 0)
        ready = fmax(ready, copy_up(w, w->gathers[0], fetch_s));
    if (e->gather_s <= 0)
        return;
    w->exchange = fmax(w->exchange, ready) + e->gather_s;
    w->interference += e->gather_interference_s;
    push(w->gathers, FETCHED_UNITS, w->exchange);
}

static void gather_unit(struct walk *w, int layer, bool forward)
{
    if (forward && layer == 0)
        gather(w, &w->costs->ends, w->costs->ends_fetch_s);
    if (!forward && work_gathers_to_recompute(w->layout, w->model, layer))
        gather(w, &w->costs->layer, w->costs->fetch_s);
    gather(w, &w->costs->layer, w->costs->fetch_s);
    w->gathered = w->exchange;
}

/* This unit's weights, and the next one's are asked for when the unit before is done. */
static void await_weights(struct walk *w, int layer, bool forward, bool last_micro_batch)
{
    int last = w->n - 1;
    double done = w->compute;
    if (w->gathered < 0) {
        gather_unit(w, layer, forward);
        w->charged = w->interference;
    }
    double arrived = w->gathered;
    if (!forward && layer == 0 && last_micro_batch)
        w->gathered = UNSENT;
    else if (forward)
        gather_unit(w, layer < last ? layer + 1 : last, layer < last);
    else
        gather_unit(w, layer > 0 ? layer - 1 : 0, layer == 0);
    w->compute = fmax(done, arrived);
}

/* --- gradients */

/* The exchange and the copy of a layer's gradients, with those of a table at an end of the model. */
static const struct exchange *reduced_with(const struct walk *w, int layer)
{
    if (w->sharded || (layer > 0 && layer < w->n - 1))
        return &w->costs->layer;
    return layer == 0 ? &w->costs->first : &w->costs->last;
}

static double copied_with(const struct walk *w, int layer)
{
    double seconds = w->costs->copy_s;
    if (layer == 0)
        seconds += w->costs->copy_first_s;
    return layer == w->n - 1 ? seconds + w->costs->copy_last_s : seconds;
}

/* Room for them, and the sum so far. */
static void before_gradients(struct walk *w, int layer)
{
    if (w->sent[layer] < 0)
        await_copy(w, w->buckets[0]);
    else
        await_copy(w, copy_up(w, fmax(w->sent[layer], w->buckets[0]), copied_with(w, layer)));
}

static void after_gradients(struct walk *w, int layer, bool complete)
{
    const struct exchange *e = reduced_with(w, layer);
    const struct exchange all = exchange_completing(e), ends = exchange_completing(&w->costs->ends);
    complete = complete || w->gives;
    reduce(w, complete ? &all : e);
    if (w->sharded && layer == 0)
        reduce(w, complete ? &ends : &w->costs->ends);
    bool reduces = e->reduce_s > 0;
    if (!w->overlaps && reduces)
        await_exchange(w);
    push(w->scattered, SCATTERED_UNITS, w->exchange);
    if (w->gives) {
        w->sent[layer] = copy_down(w, reduces ? w->exchange : w->compute, copied_with(w, layer));
        push(w->buckets, OFFLOADED_GRADIENT_BUCKETS, w->sent[layer]);
    }
}

/* --- passes */

static void forward_layer(struct walk *w, int layer)
{
    int last = w->n - 1;
    bool leaves = layer < w->leaving_layers && layer <= last - OFFLOAD_BUFFERS; /* the backward pass follows at once */
    if (layer == 0)
        compute(w, w->embedding.forward);
    if (leaves)
        await_copy(w, w->downs[0]);
    compute(w, w->layers[layer].forward);
    w->left[layer] = leaves ? copy_down(w, w->compute, w->c->copy_s) : UNSENT;
    if (leaves)
        push(w->downs, OFFLOAD_BUFFERS, w->left[layer]);
    if (layer == last)
        compute(w, w->head.forward);
}

static void backward_layer(struct walk *w, int layer)
{
    if (layer == w->n - 1)
        compute(w, w->head.backward);
    if (w->left[layer] >= 0)
        await_copy(w, copy_up(w, fmax(w->reads[0], w->left[layer]), w->c->copy_s));
    compute(w, w->layers[layer].backward);
    if (w->left[layer] >= 0)
        push(w->reads, OFFLOAD_BUFFERS, w->compute);
    if (layer == 0)
        compute(w, w->embedding.backward);
}

/* The exchange of the bucket that begins with a layer; NULL: none does. */
static const struct exchange *bucket_from(const struct walk *w, int layer)
{
    const struct stage_exchanges *x = w->in_buckets;
    int i = (int)(((int64_t)(layer + 1) * x->pieces - 1) / x->layers);
    if ((int)((int64_t)x->layers * i / x->pieces) != layer)
        return NULL;
    return i == 0 ? &x->first : i < x->pieces - 1 ? &x->middle : &x->last;
}

/* Weights that were updated in the step before are gathered layer by layer from its first instant on. */
static void forward_pass(struct walk *w, bool first, bool last)
{
    int layers = w->n;
    bool gathers = first && w->scatters && !w->sharded && w->overlaps;
    for (int layer = 1; gathers && layer < layers; layer++)
        w->interference += reduced_with(w, layer)->gather_interference_s;
    for (int layer = 1; first && w->in_buckets && layer < layers; layer++)
        w->interference += bucket_from(w, layer) ? bucket_from(w, layer)->gather_interference_s : 0;
    for (int layer = 0; layer < layers; layer++) {
        if (w->sharded)
            await_weights(w, layer, true, last);
        if (gathers)
            w->compute = fmax(w->compute, w->exchange += reduced_with(w, layer)->gather_s);
        if (first && w->in_buckets && bucket_from(w, layer))
            w->compute = fmax(w->compute, w->exchange += bucket_from(w, layer)->gather_s);
        forward_layer(w, layer);
    }
}

static void backward_pass(struct walk *w, bool last)
{
    for (int layer = w->n - 1; layer >= 0; layer--) {
        if (w->sharded)
            await_weights(w, layer, false, last);
        if (w->gives)
            before_gradients(w, layer);
        else if (w->scatters && !w->sharded)
            w->compute = fmax(w->compute, w->scattered[0]);
        backward_layer(w, layer);
        if (w->scatters)
            after_gradients(w, layer, last);
        if (last && w->in_buckets && bucket_from(w, layer))
            reduce(w, bucket_from(w, layer));
    }
}

static void layers_open(struct walk *w, int n)
{
    w->n = n;
    w->layers = memory_new((size_t)n, sizeof *w->layers);
    w->left = memory_new(2 * (size_t)n, sizeof *w->left);
    w->sent = w->left + n;
    for (int i = 0; i < n; i++)
        w->sent[i] = UNSENT;
}

static void layers_close(struct walk *w)
{
    free(w->layers);
    free(w->left);
}

/* --- what layers take: each by itself where it is a unit of its own, otherwise its part of the whole pass */

static double layer_alone(const struct pass_costs *c, const struct layout *l, const struct transformer *model, enum pass pass,
                          int layer, bool embedding, bool head)
{
    if (c->kinds)
        return pass_with_ends(c->parts[pass], c->kinds[pass][layer_kind_index(layer_kind_of(model, layer))], embedding, head);
    if (!c->whole)
        return pass_seconds(c, pass, PART_MEAN_LAYER, (struct layer_count){1, 0}, embedding, head);
    double again = pass == PASS_FORWARD ? 1 : work_repeats_before(l, model, layer);
    return pass_seconds(c, pass, PART_MEAN_LAYER, (struct layer_count){1, 1 - again}, embedding, head);
}

void pass_ends(const struct pass_costs *c, const struct layout *l, const struct transformer *model, enum pass pass,
               double *embedding, double *head)
{
    int last = model->layers - 1;
    *embedding = layer_alone(c, l, model, pass, 0, true, false) - layer_alone(c, l, model, pass, 0, false, false);
    *head = layer_alone(c, l, model, pass, last, false, true) - layer_alone(c, l, model, pass, last, false, false);
}

static void passes_fill(struct walk *w, enum pass pass, double whole)
{
    int last = w->n - 1;
    double sum = 0, inner = 0;
    for (int i = 0; i <= last; i++) {
        bool like_before = i > 0 && !w->c->kinds && !w->c->whole;
        double *seconds = pass == PASS_FORWARD ? &w->layers[i].forward : &w->layers[i].backward;
        if (like_before)
            *seconds = inner;
        else
            *seconds = inner = layer_alone(w->c, w->layout, w->model, pass, i, false, false);
        sum += *seconds;
    }
    double embedding, head;
    pass_ends(w->c, w->layout, w->model, pass, &embedding, &head);
    bool units = w->sharded || (w->scatters && pass != PASS_FORWARD);
    double part = units ? 1 : whole / (sum + embedding + head);
    for (int i = 0; i <= last; i++)
        *(pass == PASS_FORWARD ? &w->layers[i].forward : &w->layers[i].backward) *= part;
    *(pass == PASS_FORWARD ? &w->embedding.forward : &w->embedding.backward) = embedding * part;
    *(pass == PASS_FORWARD ? &w->head.forward : &w->head.backward) = head * part;
}

struct exchange exchange_completing(const struct exchange *e)
{
    struct exchange both = *e;
    both.reduce_s += e->replicas_s;
    both.reduce_interference_s += e->replicas_interference_s;
    return both;
}

bool goes_layer_by_layer(const struct layout *l)
{
    return l->pp == 1 && (layout_gradients_leave_rank(l) || layout_offloads(l, OFFLOAD_ACTIVATIONS));
}

bool exchanges_buckets(const struct layout *l)
{
    return goes_layer_by_layer(l) && !layout_gradients_leave_rank(l) && (l->features & FEATURE_BIT(DP_OVERLAP));
}

struct layer_waits layer_waits_of(const struct layout *l, const struct transformer *model, const struct replica_costs *costs,
                                  const struct pass_costs *c, const struct stage_times *stages, double m)
{
    struct walk w = {.layout = l,
                     .model = model,
                     .costs = costs,
                     .c = c,
                     .sharded = costs->layer.gather_s > 0 && l->zero == 3,
                     .scatters = layout_gradients_leave_rank(l),
                     .gives = layout_offloads_gradients(l),
                     .overlaps = l->features & FEATURE_BIT(DP_OVERLAP),
                     .leaving_layers = layout_offloads(l, OFFLOAD_ACTIVATIONS) ? offload_layers(&l->offload, model->layers) : 0,
                     .gathered = UNSENT};
    if (exchanges_buckets(l))
        w.in_buckets = &costs->at[0];
    double ends[FOLLOWED], copies[FOLLOWED];
    int n = (int)fmin(m, FOLLOWED);
    layers_open(&w, model->layers);
    passes_fill(&w, PASS_FORWARD, stages->inner.s[PASS_FORWARD]);
    passes_fill(&w, PASS_BACKWARD, stages->inner.s[PASS_BACKWARD]);
    for (int j = 0; j < n; j++) {
        forward_pass(&w, j == 0, j == n - 1);
        backward_pass(&w, j == n - 1);
        ends[j] = w.compute;
        copies[j] = w.copies_s;
    }
    layers_close(&w);
    double tail = w.gives ? fmax(w.exchange, w.down) : w.exchange, repeated = m - n;
    double all = fmax(w.compute, tail) + (repeated > 0 ? repeated * (ends[FOLLOWED - 2] - ends[FOLLOWED - 3]) : 0);
    struct layer_waits waits = {.copies_s = w.copies_s};
    if (repeated > 0)
        waits.copies_s += repeated * (copies[FOLLOWED - 2] - copies[FOLLOWED - 3]);
    if (w.gives) /* the norm is of what is down */
        waits.copies_s += fmax(0, w.down - fmax(w.compute, w.exchange));
    waits.exchanges_s = all - m * (stages->inner.s[PASS_FORWARD] + stages->inner.s[PASS_BACKWARD]) - waits.copies_s;
    return waits;
}

void turning_copies(const struct pass_costs *c, int layers, int leaving, bool once, double waited[PASS_BACKWARD + 1])
{
    const struct layer_count one = {1, 0};
    struct walk w = {.c = c,
                     .leaving_layers = leaving,
                     .head = {c->parts[PASS_FORWARD][PART_HEAD].device_s, c->parts[PASS_BACKWARD][PART_HEAD].device_s}};
    const struct layer_passes layer = {pass_seconds(c, PASS_FORWARD, PART_MEAN_LAYER, one, false, false),
                                       pass_seconds(c, PASS_BACKWARD, PART_MEAN_LAYER, one, false, false)};
    layers_open(&w, layers);
    for (int i = 0; i < layers; i++)
        w.layers[i] = layer;
    for (int j = 0; j < (once ? 1 : FOLLOWED); j++) {
        double before = w.copies_s;
        forward_pass(&w, false, false);
        waited[PASS_FORWARD] = w.copies_s - before;
        backward_pass(&w, false);
        waited[PASS_BACKWARD] = w.copies_s - before - waited[PASS_FORWARD];
    }
    layers_close(&w);
}
