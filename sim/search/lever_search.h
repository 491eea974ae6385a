/*
 * lever_search.h - what would make a job faster: the best plan after one change at a time.
 *
 * Example: the change that helps most:
 *
 *     struct lever_search search;
 *     levers_search(&experiment, &limits, &options, NULL, &search);
 *     search.items[0].lever.change, search.items[0].gain       "feature ep_overlap", 0.031: 3.1 % more tokens per second
 *     lever_search_free(&search);
 *
 * Each lever (model/plan/levers.h) is a search of its own, so its gain is that of the best layout after the change.
 */
#ifndef MSIM_SIM_SEARCH_LEVER_SEARCH_H
#define MSIM_SIM_SEARCH_LEVER_SEARCH_H

#include "model/plan/levers.h"
#include "sim/search/plan_points.h"

struct levered_plan {
    struct plan_lever lever; /* of the job without a change: 0 */
    struct plan_point point;
    double gain; /* tokens per second more than without the change, as a fraction; 0 where that does not fit */
};

struct lever_search {
    struct levered_plan *items; /* fastest first; those that do not fit last, in the order of plan_lever_at */
    struct levered_plan *base;  /* the job without a change */
    int n_items;
};

/* The watch counts levers. */
void levers_search(const struct experiment *experiment, const struct space_limits *limits,
                   const struct plan_search_options *options, const struct watch *watch, struct lever_search *search);
void lever_search_free(struct lever_search *search);

#endif
