#include "sim/search/plan_points.h"

/* Where no layout is legal: the last check that any of them reaches. */
static enum layout_reason last_reason(const struct search_counts *counts)
{
    int last = 0;
    for (int reason = 1; reason < N_LAYOUT_REASONS; reason++)
        if (counts->rejected[reason] > 0)
            last = reason;
    return (enum layout_reason)last;
}

void plan_point_search(struct plan_point *point, const struct plan_search_options *options)
{
    struct setting setting = experiment_setting(&point->experiment);
    struct plans_found found;
    struct space *space;
    point->status = space_create(&setting, &point->limits, &space, &point->diags);
    if (point->status != STATUS_OK)
        return;
    plans_search(space, options, &found, &point->diags);
    point->legal = found.search.counts.legal > 0;
    point->reason = last_reason(&found.search.counts);
    point->fits = found.plans != NULL;
    point->missing_bytes = found.search.least_bytes - found.search.limit_bytes;
    if (point->fits) {
        const struct job *job = &point->experiment.job;
        point->best = found.plans[0];
        point->tokens_per_s = (double)job->global_batch * (double)job->seq_len / ranked_step_s(&point->best);
    }
    plans_found_free(&found);
    space_destroy(space);
}

static double tokens_per_gpu(const struct plan_point *point)
{
    return point->tokens_per_s / point->experiment.gpus;
}

static double scaling_of(const struct plan_points *points, int i)
{
    const struct plan_point *point = &points->points[i];
    for (int k = 0; k <= i && point->fits && point->group >= 0; k++)
        if (points->points[k].fits && points->points[k].group == point->group)
            return tokens_per_gpu(point) / tokens_per_gpu(&points->points[k]);
    return 0;
}

void plan_points_search(struct plan_points *points, const struct plan_search_options *options, const struct watch *watch)
{
    for (int i = 0; i < points->n; i++) {
        watch_tell(watch, i, points->n);
        if (points->points[i].status == STATUS_OK)
            plan_point_search(&points->points[i], options);
        points->points[i].scaling = scaling_of(points, i);
    }
}

/* --- the budget of tokens --- */

static struct power_bound power_of(const struct plan_point *point, enum power_count count)
{
    return power_bound_of(&point->experiment.cluster, point->experiment.gpus, count);
}

/* Nodes where they are known of every point with published power, so that points can be compared; boards otherwise. */
static enum power_count counted_power(const struct plan_points *points)
{
    bool nodes = true;
    for (int i = 0; i < points->n; i++) {
        const struct plan_point *point = &points->points[i];
        nodes = nodes && (!point->fits || power_of(point, POWER_NODES).count != POWER_UNKNOWN ||
                          power_of(point, POWER_BOARDS).count == POWER_UNKNOWN);
    }
    return nodes ? POWER_NODES : POWER_BOARDS;
}

double plan_point_needs(const struct plan_point *point, enum sweep_least least)
{
    switch (least) {
    case LEAST_ENERGY: return point->energy_j;
    case LEAST_COST: return point->cost;
    default: return point->gpu_hours;
    }
}

void plan_points_count(struct plan_points *points)
{
    points->counted = counted_power(points);
    points->cheapest = -1;
    for (int i = 0; i < points->n; i++) {
        struct plan_point *point = &points->points[i];
        if (point->fits)
            point->power = power_of(point, points->counted);
        if (!point->fits || point->experiment.job.tokens <= 0)
            continue;
        double seconds = point->experiment.job.tokens / point->tokens_per_s, needs;
        point->days = seconds / 86400;
        point->gpu_hours = seconds / 3600 * point->experiment.gpus;
        point->cost = point->gpu_price * point->gpu_hours;
        point->energy_j = power_bound_energy(&point->power, point->gpu_hours);
        needs = plan_point_needs(point, points->least);
        if (seconds <= points->within_s && needs > 0 &&
            (points->cheapest < 0 || needs < plan_point_needs(&points->points[points->cheapest], points->least)))
            points->cheapest = i;
    }
}

bool plan_points_fit(const struct plan_points *points)
{
    for (int i = 0; i < points->n; i++)
        if (points->points[i].fits)
            return true;
    return false;
}
