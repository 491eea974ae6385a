#include "sim/search/lever_search.h"

#include <stdlib.h>

#include "model/base/memory.h"

static void search_point(struct plan_point *point, const struct plan_search_options *options)
{
    plan_point_search(point, options);
    diags_free(&point->diags); /* the same for most levers */
}

/* False: there is nothing to change. */
static bool pull(struct levered_plan *plan, const struct levered_plan *base, const struct plan_search_options *options)
{
    plan->point.experiment = base->point.experiment;
    plan->point.limits = base->point.limits;
    if (!plan->lever.turn(&plan->point.experiment, &plan->point.limits, plan->lever.argument))
        return false;
    search_point(&plan->point, options);
    if (plan->point.fits && base->point.fits)
        plan->gain = plan->point.tokens_per_s / base->point.tokens_per_s - 1;
    return true;
}

/* Puts the last item to its place: behind those that are at least as fast. */
static void sort_last(struct lever_search *search)
{
    struct levered_plan item = search->items[search->n_items - 1];
    int at = search->n_items - 1;
    for (; at > 0 && search->items[at - 1].point.tokens_per_s < item.point.tokens_per_s; at--)
        search->items[at] = search->items[at - 1];
    search->items[at] = item;
}

void levers_search(const struct experiment *experiment, const struct space_limits *limits,
                   const struct plan_search_options *options, const struct watch *watch, struct lever_search *search)
{
    struct levered_plan *all = memory_new(N_PLAN_LEVERS + 1, sizeof *all);
    *search = (struct lever_search){.base = all, .items = all + 1};
    search->base->point.experiment = *experiment;
    search->base->point.limits = *limits;
    search_point(&search->base->point, options);
    for (int i = 0; i < N_PLAN_LEVERS; i++) {
        struct levered_plan *plan = &search->items[search->n_items];
        *plan = (struct levered_plan){.lever = plan_lever_at(i)};
        if (pull(plan, search->base, options)) {
            search->n_items++;
            sort_last(search);
        }
        watch_tell(watch, i + 1, N_PLAN_LEVERS);
    }
}

void lever_search_free(struct lever_search *search)
{
    free(search->base);
    *search = (struct lever_search){0};
}
