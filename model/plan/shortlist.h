/*
 * shortlist.h - the best n of many plans: a heap with the worst kept plan on top.
 *
 * Example:
 *
 *     shortlist_init(&list, 20);
 *     shortlist_offer(&list, &plan);              for each plan
 *     plans = shortlist_take(&list, &n);          the 20 best, best first
 *
 * Offering a plan that is not kept costs one comparison, a kept one O(log n). The content depends only on the set of offered
 * plans and not on their order, because plan_compare is a total order.
 */
#ifndef MSIM_MODEL_PLAN_SHORTLIST_H
#define MSIM_MODEL_PLAN_SHORTLIST_H

#include <math.h>

#include "model/plan/search.h"

struct shortlist {
    struct plan *plans; /* heap: plans[i] is not better than its children 2i + 1 and 2i + 2 */
    int n, limit;
};

void shortlist_init(struct shortlist *list, int limit);
void shortlist_offer(struct shortlist *list, const struct plan *plan);
/* Returns the plans, best first; the caller frees them. The list is then empty. */
struct plan *shortlist_take(struct shortlist *list, int *n);

/* Seconds above which a plan is refused whatever its memory and index. Ask this before building a plan. */
static inline double shortlist_slowest(const struct shortlist *list)
{
    return list->n == list->limit ? list->plans[0].estimate.step_s : INFINITY;
}

#endif
