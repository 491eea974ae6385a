/* shortlist.c - the order of plans, and a bounded heap of them. */
#include "model/plan/shortlist.h"

#include <stdlib.h>

#include "model/base/memory.h"

int plan_compare(const struct plan *a, const struct plan *b)
{
    if (a->estimate.step_s < b->estimate.step_s || a->estimate.step_s > b->estimate.step_s)
        return a->estimate.step_s < b->estimate.step_s ? -1 : 1;
    int more = offload_number(&a->layout.offload) - offload_number(&b->layout.offload); /* copies that passes hide cost nothing */
    if (more != 0)
        return more;
    if (a->estimate.memory_bytes < b->estimate.memory_bytes || a->estimate.memory_bytes > b->estimate.memory_bytes)
        return a->estimate.memory_bytes < b->estimate.memory_bytes ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

void shortlist_init(struct shortlist *list, int limit)
{
    *list = (struct shortlist){.plans = memory_new((size_t)limit, sizeof(struct plan)), .limit = limit};
}

static void swap_plans(struct plan *a, struct plan *b)
{
    struct plan kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_up(struct shortlist *list, int at)
{
    while (at > 0 && plan_compare(&list->plans[at], &list->plans[(at - 1) / 2]) > 0) {
        swap_plans(&list->plans[at], &list->plans[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sift_down(struct shortlist *list, int at)
{
    for (;;) {
        int worst = at;
        for (int child = 2 * at + 1; child <= 2 * at + 2 && child < list->n; child++)
            if (plan_compare(&list->plans[child], &list->plans[worst]) > 0)
                worst = child;
        if (worst == at)
            return;
        swap_plans(&list->plans[at], &list->plans[worst]);
        at = worst;
    }
}

void shortlist_offer(struct shortlist *list, const struct plan *plan)
{
    if (list->n < list->limit) {
        list->plans[list->n++] = *plan;
        sift_up(list, list->n - 1);
    } else if (plan_compare(plan, &list->plans[0]) < 0) {
        list->plans[0] = *plan;
        sift_down(list, 0);
    }
}

struct plan *shortlist_take(struct shortlist *list, int *n)
{
    struct plan *plans = list->plans;
    *n = list->n;
    while (list->n > 1) { /* heap sort: the worst goes to the end */
        swap_plans(&plans[0], &plans[list->n - 1]);
        list->n--;
        sift_down(list, 0);
    }
    *list = (struct shortlist){0};
    return plans;
}
