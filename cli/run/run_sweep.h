/*
 * run_sweep.h - `msim run --sweep`: goodput at values of one thing, or at every combination of several.
 */
#ifndef MSIM_CLI_RUN_RUN_SWEEP_H
#define MSIM_CLI_RUN_RUN_SWEEP_H

#include "cli/run/run_many.h"

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
const char *run_sweep_key_name(enum run_sweep_key key);
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
double run_grid_value(const struct run_grid *grid, int axis, int point);
/* The axis of a key; -1: it has none. */
int run_grid_axis(const struct run_grid *grid, enum run_sweep_key key);

struct run_point {
    double step_time_s, step_mfu;
    struct run_options options;   /* as far as the closed form looks */
    struct run_failover failover; /* that they point to */
    int gpus;
    int64_t global_batch;
    struct estimate goodput, ettr;
    struct estimate end_s;   /* of the budget of tokens; nothing without one */
    double full_cost;        /* of a million tokens, were the goodput 100 % */
    double away;             /* nodes, mean over the horizon and the replicas */
    double use[N_TIME_USES]; /* shares of the horizon, mean */
    double closed_form;
};

/* In the call's format. */
MUST_CHECK enum status run_sweep_report(struct invocation *call, const struct run_session *s, const struct run_grid *grid,
                                        const struct run_point *points, int64_t n);

#endif
