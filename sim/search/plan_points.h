/*
 * plan_points.h - the best plan of each of several experiments, and the one that trains a number of tokens in time for least.
 *
 * Example: 15T tokens on 512, 1024 or 2048 GPUs within 60 days, for the fewest GPU-hours:
 *
 *     struct plan_points sweep = {.points = points, .n = 3, .within_s = 60 * 86400, .least = LEAST_GPU_HOURS};
 *     points[i].experiment = ..., .limits = ...           for each point; .group = 0: they differ only in their GPUs
 *     plan_points_search(&sweep, &options, NULL);
 *     points[i].fits, points[i].best, points[i].scaling   the plan; tokens/s per GPU relative to 512 GPUs
 *     plan_points_count(&sweep);
 *     points[i].days, sweep.cheapest                      128, 64, 33 days; 2: the others are too slow
 */
#ifndef MSIM_SIM_SEARCH_PLAN_POINTS_H
#define MSIM_SIM_SEARCH_PLAN_POINTS_H

#include "model/cost/step/energy.h"
#include "model/spec/experiment.h"
#include "sim/search/plan_search.h"

struct plan_point {
    enum status
        status; /* STATUS_OK: there is such an experiment and a space of its layouts; set by its reader, then the search */
    struct experiment experiment;
    struct space_limits limits;
    int group;          /* points that differ only in their GPUs; -1: not compared */
    double gpu_price;   /* money per GPU and hour; 0: unknown */
    struct diags diags; /* of the search, behind what was there before */

    /* What plan_point_search finds. */
    bool legal, fits;          /* some layout is, does; the rest of the plan only if it fits */
    enum layout_reason reason; /* where none is legal: the last rule that the closest ones break */
    double missing_bytes;      /* where none fits: by how much the smallest layout is too large */
    struct ranked_plan best;
    double tokens_per_s;
    double scaling; /* tokens per second and GPU, relative to the first point of its group that fits; 0: not compared */

    /* What plan_points_count finds, for the tokens of the job; 0: no budget, no price, or power that is not published. */
    double days, gpu_hours, cost;
    double energy_j; /* an upper bound */
    struct power_bound power;
};

enum sweep_least { LEAST_GPU_HOURS, LEAST_ENERGY, LEAST_COST };

struct plan_points {
    struct plan_point *points;
    int n;
    double within_s; /* the deadline; 0: none */
    enum sweep_least least;
    enum power_count counted; /* of every point: nodes where they are published of all points with published power, or boards */
    int cheapest;             /* done within the deadline, with the least; -1: none, or no deadline */
};

/* Searches one point. */
void plan_point_search(struct plan_point *point, const struct plan_search_options *options);
/* Each point in turn, with its scaling. The watch counts points. */
void plan_points_search(struct plan_points *points, const struct plan_search_options *options, const struct watch *watch);
/* Days, GPU-hours, cost and energy of each point, and the cheapest one. */
void plan_points_count(struct plan_points *points);
/* How much of what the choice minimises a point needs; 0: unknown. */
double plan_point_needs(const struct plan_point *point, enum sweep_least least);
bool plan_points_fit(const struct plan_points *points); /* any of them */

#endif
