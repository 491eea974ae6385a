/*
 * shortlist.h - the best n of many plans: a heap with the worst of them on top. A plan that does not belong costs one comparison,
 * one that does O(log n). The content depends only on the set of plans offered, not on their order, as plan_compare is a total
 * order.
 */
#ifndef MSIM_MODEL_PLAN_SHORTLIST_H
#define MSIM_MODEL_PLAN_SHORTLIST_H

#include <math.h>

#include "model/plan/search.h"

struct shortlist {
    struct plan *plans; /* heap: plans[i] is no better than its children 2i + 1 and 2i + 2 */
    int n, limit;
};

void shortlist_init(struct shortlist *list, int limit);
void shortlist_offer(struct shortlist *list, const struct plan *plan);
/* Best first; the list is empty afterwards and the caller owns what is returned. */
struct plan *shortlist_take(struct shortlist *list, int *n);

/* A plan that takes longer is refused whatever its memory and index: the cheap question, asked before a plan is put together. */
static inline double shortlist_slowest(const struct shortlist *list)
{
    return list->n == list->limit ? list->plans[0].estimate.step_s : INFINITY;
}

#endif
