/* steps_build.c - adds one step, or one group of products with one input, to a list of steps. */
#include "model/base/memory.h"
#include "model/cost/work/work.h"
#include "runtime/layer/steps/steps_internal.h"

struct step *steps_add(struct builder *b, enum step_kind kind, const char *label)
{
    struct step_list *list = b->list;
    int layer = b->range.first + b->layer;
    struct layer_range with = {0};
    if (b->layer >= 0)
        with = layout_repeated_with(b->layout, b->model, layer);
    list->items = memory_grow(list->items, &list->capacity, list->n_items + 1, sizeof *list->items);
    list->items[list->n_items] = (struct step){.kind = kind,
                                               .layer = b->layer,
                                               .ahead = b->ahead,
                                               .recompute = b->recompute,
                                               .repeated = with.count > 0,
                                               .continues = with.count > 0 && layer > with.first,
                                               .hands_on = layer < with.first + with.count - 1,
                                               .label = label ? label : "",
                                               .parts = 1,
                                               .pieces = 1};
    return &list->items[list->n_items++];
}

static struct step *add_cast(struct builder *b, enum step_kind kind, enum step_kind of, const char *label)
{
    if (!b->casts)
        return NULL;
    struct step *step = steps_add(b, kind, label);
    step->of = of;
    return step;
}

struct step *steps_cast(struct builder *b, enum step_kind of)
{
    return add_cast(b, STEP_CAST, of, "cast");
}

struct step *steps_cast_gradient(struct builder *b, enum step_kind of)
{
    return add_cast(b, STEP_CAST_GRADIENT, of, "cast_gradient");
}

struct step *steps_add_exchange_over(struct builder *b, enum step_kind kind, enum collective collective, enum group_kind group)
{
    struct step *step = steps_add(b, kind, NULL);
    step->exchange = true;
    step->collective = (uint8_t)collective;
    step->group = (uint8_t)group;
    return step;
}

struct step *steps_add_exchange(struct builder *b, enum step_kind kind, enum collective collective)
{
    return steps_add_exchange_over(b, kind, collective, GROUP_TP);
}

/* Gather a sharded sequence; nothing where it is not sharded. */
void steps_gather(struct builder *b, enum step_kind kind)
{
    if (b->sequence_parallel)
        steps_add_exchange(b, kind, COLLECTIVE_ALL_GATHER);
}

static enum collective reduction_of(const struct builder *b)
{
    return b->sequence_parallel ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
}

void steps_reduce(struct builder *b, enum step_kind kind)
{
    if (b->layout->tp > 1)
        steps_add_exchange(b, kind, reduction_of(b));
}

/* Whether what the layer's next product gives is kept: of the first, the third, ... */
bool steps_next_is_kept(struct builder *b)
{
    return b->keeps_products && b->products++ % 2 == 0;
}

/* Parts are numbered where they are parts of one matrix. */
static void number_part(struct step *step, const struct column_group *g, int i)
{
    if (!step || g->sum == STEP_NOTHING)
        return;
    step->part = i;
    step->parts = g->n;
}

static struct step *add_part(struct builder *b, enum step_kind kind, const struct column_group *g, int i)
{
    struct step *step = steps_add(b, kind, g->items[i].label);
    number_part(step, g, i);
    return step;
}

/* The input is gathered before the first product of it that is not taken from what was kept. */
void steps_group_forward(struct builder *b, const struct column_group *g, bool gathers)
{
    for (int i = 0; i < g->n; i++) {
        bool kept = steps_next_is_kept(b);
        number_part(steps_cast(b, g->items[i].forward), g, i);
        if (gathers && g->items[i].reads_input && !(kept && b->recompute)) {
            steps_gather(b, g->gather);
            gathers = false;
        }
        add_part(b, g->items[i].forward, g, i)->kept = kept;
    }
}

/* Where gradients are not added inside their products: `product`, a weight gradient's, leaves it to a step behind it. */
void steps_leave_sum(const struct builder *b, struct step *product)
{
    product->sums = work_sums_gradients(b->layout, b->job);
}

void steps_add_sum(struct builder *b)
{
    if (work_sums_gradients(b->layout, b->job))
        steps_add(b, STEP_GRADIENT_SUM, "gradient_sum");
}

static void sum_inputs(struct builder *b, const struct column_group *g)
{
    if (g->n > 1 && g->sum != STEP_NOTHING)
        steps_add(b, g->sum, "input_gradients")->parts = g->n;
}

/* The input is gathered again while its gradient is computed; the exchange of that gradient overlaps the weights' gradients. */
void steps_group_backward(struct builder *b, const struct column_group *g, bool exchanges, bool input, bool weight)
{
    bool each = g->each_exchanges;
    for (int i = g->n - 1; i >= 0; i--) {
        if (input) {
            number_part(steps_cast_gradient(b, g->items[i].input), g, i);
            add_part(b, g->items[i].input, g, i);
        }
        if (input && exchanges && g->gather_again != STEP_NOTHING && i == g->n - 1)
            steps_gather(b, g->gather_again);
        if (input && !each && i == 0)
            sum_inputs(b, g);
        if (weight)
            steps_leave_sum(b, add_part(b, g->items[i].weight, g, i));
        if (input && exchanges && (each || i == 0) && b->layout->tp > 1) {
            struct step *step = steps_add_exchange(b, g->reduce, reduction_of(b));
            step->alone = each;
            step->part = i;
        }
        if (weight)
            steps_add_sum(b);
    }
    if (input && each)
        sum_inputs(b, g);
}
