/*
 * run_grid.h - how goodput depends on one thing, or on several: every combination of values, each with its replicas.
 *
 * Example: 0, 2 or 4 spare nodes with restarts of 5 or 10 minutes are six points:
 *
 *     struct run_grid grid = {.n_axes = 2, .n_points = 6, .axes = {{.key = RUN_SWEEP_SPARES, .n = 3, .values = {0, 2, 4}},
 *                                                                  {.key = RUN_SWEEP_RESTART, .n = 2, .values = {300, 600}}}};
 *     run_grid_run(&grid, 64, &one_process, point, context, points);
 *
 * `point` is called for each of them; it sets the values (run_grid_set) and runs this process's share of the replicas
 * (campaign_run_own). All points see the same faults, so they differ by their values and not by luck. Processes meet once a block
 * of points, whose outcomes take some 100 MB at most.
 */
#ifndef MSIM_SIM_SEARCH_RUN_GRID_H
#define MSIM_SIM_SEARCH_RUN_GRID_H

#include "sim/search/replica_campaign.h"

enum run_sweep_key {
    RUN_SWEEP_GPUS,
    RUN_SWEEP_MTTF,
    RUN_SWEEP_REPAIR,
    RUN_SWEEP_RESTART,
    RUN_SWEEP_DETECT,
    RUN_SWEEP_INTERVAL,
    RUN_SWEEP_BLOCK,
    RUN_SWEEP_SPARES,
    N_RUN_SWEEP_KEYS
};
extern const char *const run_sweep_key_names[N_RUN_SWEEP_KEYS]; /* those of options, but for mttf */
/* Times are in seconds, the others are counts. */
bool run_sweep_is_time(enum run_sweep_key key);

enum { RUN_SWEEP_AXES = 3, RUN_SWEEP_POINTS = 200 };

struct run_sweep_axis {
    enum run_sweep_key key;
    int n;
    double values[RUN_SWEEP_POINTS]; /* in order */
    bool logarithmic;                /* in even ratios */
};
struct run_grid {
    struct run_sweep_axis axes[RUN_SWEEP_AXES];
    int n_axes, n_points;
    char text[512]; /* as asked */
};
/* The value of an axis at a point; the values of the first axis are next to each other. */
double run_grid_value(const struct run_grid *grid, int axis, int point);
/* The axis of a key; -1: it has none. */
int run_grid_axis(const struct run_grid *grid, enum run_sweep_key key);
/* Gives a run all values of a point but the number of GPUs. */
void run_grid_set(const struct run_grid *grid, int point, const struct run_parts *run);

struct run_point {
    double step_time_s, step_mfu; /* this block is the caller's to fill in */
    struct run_options options;   /* as far as the closed form looks */
    struct run_failover failover; /* that they point to */
    int gpus;
    int64_t global_batch;
    double full_cost; /* of a million tokens, were the goodput 100 % */

    struct estimate goodput, ettr; /* percent */
    struct estimate end_s;         /* of the budget of tokens; nothing without one */
    double away;                   /* nodes, mean over the horizon and the replicas */
    double use[N_TIME_USES];       /* shares of the horizon, mean */
    double closed_form;            /* goodput, percent */
};

/* Fills in its block of points[i], and this process's share of the outcomes [n] of point i. */
typedef enum status run_point_function(void *context, int i, struct replica_outcome *outcomes);

/* Runs all points with n replicas each and fills in points [grid->n_points], on every process. */
MUST_CHECK enum status run_grid_run(const struct run_grid *grid, int64_t n, const struct processes *processes,
                                    run_point_function *point, void *context, struct run_point *points);

#endif
