/* run_grid.c - goodput as a function of one or several parameters. */
#include "sim/search/run_grid.h"

#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/weeks/run_closed_form.h"

const char *const run_sweep_key_names[N_RUN_SWEEP_KEYS] = {
    "gpus", "mttf", "repair", "restart", "detect", "checkpoint-interval", "checkpoint-block", "spares"};

bool run_sweep_is_time(enum run_sweep_key key)
{
    return key != RUN_SWEEP_GPUS && key != RUN_SWEEP_SPARES;
}

/* The first axis's values are next to each other. */
double run_grid_value(const struct run_grid *grid, int axis, int point)
{
    for (int a = 0; a < axis; a++)
        point /= grid->axes[a].n;
    return grid->axes[axis].values[point % grid->axes[axis].n];
}

int run_grid_axis(const struct run_grid *grid, enum run_sweep_key key)
{
    for (int a = 0; a < grid->n_axes; a++)
        if (grid->axes[a].key == key)
            return a;
    return -1;
}

static void set_point(const struct run_parts *run, enum run_sweep_key key, double value)
{
    nanos time = run_sweep_is_time(key) ? nanos_from_seconds(value) : 0;
    switch (key) {
    case RUN_SWEEP_MTTF: run->model->rate = 86400 / value / run->options->nodes; break;
    case RUN_SWEEP_REPAIR: run_parts_set_repairs(run, value); break;
    case RUN_SWEEP_RESTART:
        run->options->recovery.restart = run->robust->restart = run->robust->restart_hot = time;
        run->robust->reload = 0; /* as with --restart */
        run->failover->rejoin = run->failover->rejoin_hot = time;
        break;
    case RUN_SWEEP_DETECT: run->options->recovery.detect = time; break;
    case RUN_SWEEP_INTERVAL: run->options->checkpoint.interval = time; break;
    case RUN_SWEEP_BLOCK: run->options->checkpoint.block = time; break;
    case RUN_SWEEP_SPARES: run->options->recovery.spares = (int)llround(value); break;
    default: break;
    }
}

void run_grid_set(const struct run_grid *grid, int point, const struct run_parts *run)
{
    for (int a = 0; a < grid->n_axes; a++)
        set_point(run, grid->axes[a].key, run_grid_value(grid, a, point));
}

static void estimate_point(const struct replica_outcome *outcomes, int64_t n, struct run_point *point)
{
    double *goodput = memory_new((size_t)n, sizeof *goodput), *ettr = memory_new((size_t)n, sizeof *ettr);
    double *end_s = memory_new((size_t)n, sizeof *end_s);
    point->options.horizon = outcomes_horizon(outcomes, n);
    double horizon_s = nanos_to_seconds(point->options.horizon);
    struct run_account mean = {0};
    for (int64_t i = 0; i < n; i++) {
        goodput[i] = 100 * outcome_goodput(&outcomes[i]);
        ettr[i] = 100 * outcome_ettr(&outcomes[i]);
        point->away += outcome_away(&outcomes[i]) / (double)n;
        end_s[i] = outcome_end_s(&outcomes[i]);
        mean.failures += (double)outcomes[i].failures / (double)n;
        mean.interruptions += (double)outcomes[i].interruptions / (double)n;
        for (int use = 0; use < N_TIME_USES; use++)
            point->use[use] += (double)outcomes[i].use[use] / (double)outcomes[i].horizon / (double)n;
    }
    point->goodput = estimate_of(goodput, (size_t)n);
    point->ettr = estimate_of(ettr, (size_t)n);
    if (point->options.goal > 0)
        point->end_s = estimate_of(end_s, (size_t)n);
    for (int use = 0; use < N_TIME_USES; use++)
        mean.use_s[use] = point->use[use] * horizon_s;
    point->closed_form = 100 * run_closed_form_of(&point->options, &mean).exponential;
    free(goodput);
    free(ettr);
    free(end_s);
}

/* Points [begin, end). */
static enum status run_block(int64_t n, const struct processes *processes, run_point_function *point, void *context, int begin,
                             int end, struct run_point *points)
{
    struct replica_outcome *outcomes = memory_new((size_t)(end - begin) * (size_t)n, sizeof *outcomes);
    enum status status = STATUS_OK;
    for (int i = begin; i < end && status == STATUS_OK; i++)
        status = point(context, i, outcomes + (int64_t)(i - begin) * n);
    status = outcomes_share(processes, outcomes, n, end - begin, status);
    for (int i = begin; i < end && status == STATUS_OK; i++)
        estimate_point(outcomes + (int64_t)(i - begin) * n, n, &points[i]);
    free(outcomes);
    return status;
}

enum status run_grid_run(const struct run_grid *grid, int64_t n, const struct processes *processes, run_point_function *point,
                         void *context, struct run_point *points)
{
    enum { AT_ONCE = 800000 };
    int64_t block = n < AT_ONCE ? AT_ONCE / n : 1;
    enum status status = STATUS_OK;
    for (int64_t begin = 0; begin < grid->n_points && status == STATUS_OK; begin += block) {
        int64_t end = begin + block < grid->n_points ? begin + block : grid->n_points;
        status = run_block(n, processes, point, context, (int)begin, (int)end, points);
    }
    return status;
}
