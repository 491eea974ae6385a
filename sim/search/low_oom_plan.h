/*
 * low_oom_plan.h - the fastest plan that rarely runs out of memory, where the fastest plan of all often does.
 *
 * Example: the first plan of a search fills 93 % of the memory by prediction. Of published runs that fill as much, 35 % ran
 * out of memory. A second search leaves the room with which at most 10 % do, and finds a plan that is 1.2 % slower:
 *
 *     low_oom_plan_find(&found.plans[0], space, &options, &low);
 *     low.wanted, low.share      true, 0.35
 *     low.found, low.plan        true, the other plan; low_oom_slower_pct(&low) is 1.2
 *
 * With a memory margin a search puts a plan that leaves room first (plan_search.h). This file serves searches without one
 * (--memory-margin 0), and searches in which no plan leaves room. `layout: auto` then takes the first plan all the same, with a
 * warning. The shares come from the record of real runs (model/cost/step/track_record.h). The other plan needs a search of its
 * own, because what a layout recomputes depends on the memory it may use.
 */
#ifndef MSIM_SIM_SEARCH_LOW_OOM_PLAN_H
#define MSIM_SIM_SEARCH_LOW_OOM_PLAN_H

#include "sim/search/plan_search.h"

/* A plan is risky when a larger share than this of the runs as full as it run out of memory. */
#define SHARE_RISKY 0.2

struct low_oom_plan {
    bool wanted;           /* the first plan is risky; the rest only then */
    bool found;            /* some plan leaves as much room */
    double share, first_s; /* of the first plan: the share of runs as full that run out of memory; its step */
    double safer_share;    /* the same share of the other plan */
    struct ranked_plan plan;
};

/* For the first plan of a search of this space; searches again with the same options. */
void low_oom_plan_find(const struct ranked_plan *first, const struct space *space, const struct plan_search_options *options,
                       struct low_oom_plan *low);
/* For the plan that plan_choose chose under the same restrictions, by this process alone. */
void low_oom_plan_choose(const struct ranked_plan *chosen, const struct setting *setting, const char *restrictions, int threads,
                         struct low_oom_plan *low);

/* How much longer the other plan's step is than the first one's, in percent; negative where simulation reversed the order. */
double low_oom_slower_pct(const struct low_oom_plan *low);
/* "tp4 mb1 z2 norm, 1.2 % slower, 8 % OOM". Returns buffer. */
enum { LOW_OOM_TEXT = LAYOUT_TEXT + 64 };
char *low_oom_plan_text(const struct low_oom_plan *low, char *buffer, size_t size);
/* A warning about `what` ("layout: auto on 512 GPUs"), where one is wanted. */
void low_oom_plan_warn(const struct low_oom_plan *low, const char *what, struct diags *diags);

#endif
