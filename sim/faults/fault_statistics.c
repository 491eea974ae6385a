#include "sim/faults/fault_statistics.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_roots.h>
#include <math.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/order.h"

#define DAY ((nanos)86400 * NANOS_PER_SECOND)

static void sort_doubles(double *x, size_t n)
{
    if (n > 1)
        qsort(x, n, sizeof *x, double_compare); /* the order of equal numbers does not matter */
}

static double mean_of(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return n ? sum / (double)n : 0;
}

/* --- Weibull by maximum likelihood --- */

/* Logarithms relative to the largest, so powers stay in (0, 1]. */
struct log_sample {
    double *log_x;
    size_t n;
    double mean;
};

static double likelihood_slope(double k, void *data)
{
    const struct log_sample *sample = data;
    double power = 0, weighted = 0;
    for (size_t i = 0; i < sample->n; i++) {
        double p = exp(k * sample->log_x[i]);
        power += p;
        weighted += p * sample->log_x[i];
    }
    return weighted / power - 1 / k - sample->mean;
}

static double solve_shape(struct log_sample *sample)
{
    double low = 1e-3, high = 1;
    while (likelihood_slope(high, sample) < 0 && high < 1e4)
        high *= 2;
    if (likelihood_slope(low, sample) > 0 || likelihood_slope(high, sample) < 0)
        return 0;
    gsl_function function = {.function = likelihood_slope, .params = sample};
    gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    int status = solver ? gsl_root_fsolver_set(solver, &function, low, high) : GSL_ENOMEM;
    for (int i = 0; i < 200 && status == GSL_SUCCESS; i++) {
        status = gsl_root_fsolver_iterate(solver);
        low = gsl_root_fsolver_x_lower(solver);
        high = gsl_root_fsolver_x_upper(solver);
        if (gsl_root_test_interval(low, high, 0, 1e-12) == GSL_SUCCESS)
            break;
    }
    double root = status == GSL_SUCCESS ? gsl_root_fsolver_root(solver) : 0;
    if (solver)
        gsl_root_fsolver_free(solver);
    return root;
}

/* Largest distance between the sample's distribution and Weibull's (shape 1: exponential). */
static double ks_distance(const double *sorted, size_t n, double shape, double scale)
{
    double distance = 0;
    for (size_t i = 0; i < n; i++) {
        double cdf = -expm1(-pow(sorted[i] / scale, shape));
        distance = fmax(distance, fmax(cdf - (double)i / (double)n, (double)(i + 1) / (double)n - cdf));
    }
    return distance;
}

struct weibull_fit weibull_fit(double *x, size_t n)
{
    sort_doubles(x, n);
    if (n < 3 || x[0] <= 0 || x[0] >= x[n - 1])
        return (struct weibull_fit){0};
    struct log_sample sample = {.log_x = memory_new(n, sizeof(double)), .n = n};
    for (size_t i = 0; i < n; i++)
        sample.log_x[i] = log(x[i] / x[n - 1]);
    sample.mean = mean_of(sample.log_x, n);
    struct weibull_fit fit = {.n = n, .mean_s = mean_of(x, n), .shape = solve_shape(&sample)};
    double power = 0;
    for (size_t i = 0; i < n; i++)
        power += exp(fit.shape * sample.log_x[i]);
    free(sample.log_x);
    if (fit.shape <= 0)
        return (struct weibull_fit){0};
    fit.scale_s = x[n - 1] * pow(power / (double)n, 1 / fit.shape);
    fit.ks = ks_distance(x, n, fit.shape, fit.scale_s);
    fit.ks_exponential = ks_distance(x, n, 1, fit.mean_s);
    return fit;
}

/* --- counts --- */

static bool is_failure(const struct fault *fault)
{
    return fault->kind == FAULT_NODE;
}

static struct weibull_fit fit_gaps(const struct fault_trace *trace)
{
    double *gaps = memory_new(trace->n_items, sizeof *gaps);
    size_t n = 0;
    const struct fault *previous = NULL;
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (!is_failure(fault))
            continue;
        if (previous && fault->time > previous->time)
            gaps[n++] = nanos_to_seconds(fault->time - previous->time);
        previous = fault;
    }
    struct weibull_fit fit = weibull_fit(gaps, n);
    free(gaps);
    return fit;
}

static void fit_logarithms(const double *hours, size_t n, struct repair_fit *fit)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        sum += log(hours[i]);
    fit->mu = n ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++)
        squares += (log(hours[i]) - fit->mu) * (log(hours[i]) - fit->mu);
    fit->sigma = n ? sqrt(squares / (double)n) : 0;
}

static struct repair_fit fit_repair(const struct fault_trace *trace)
{
    struct repair_fit fit = {0};
    double *hours = memory_new(trace->n_items, sizeof *hours);
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (is_failure(fault) && fault->down > 0)
            hours[fit.n++] = (double)fault->down / 3600e9;
        else if (is_failure(fault))
            fit.n_empty++;
    }
    sort_doubles(hours, fit.n);
    fit.mean_s = 3600 * mean_of(hours, fit.n);
    fit.median_s = 3600 * double_quantile(hours, fit.n, 0.5);
    fit.p90_s = 3600 * double_quantile(hours, fit.n, 0.9);
    fit.max_s = 3600 * double_quantile(hours, fit.n, 1);
    fit_logarithms(hours, fit.n, &fit);
    free(hours);
    return fit;
}

/* Most first, then the lowest name. */
static int compare_counts(const void *left, const void *right)
{
    const struct fault_count *a = left, *b = right;
    if (a->n != b->n)
        return a->n > b->n ? -1 : 1;
    return (a->what > b->what) - (a->what < b->what);
}

static void count_nodes(const struct fault_trace *trace, struct fault_statistics *out)
{
    struct fault_count *nodes = memory_new((size_t)out->nodes, sizeof *nodes);
    for (int32_t i = 0; i < out->nodes; i++)
        nodes[i].what = i;
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (!is_failure(fault) || fault->node >= out->nodes)
            continue;
        struct fault_count *count = &nodes[fault->node];
        out->nodes_hit += count->n++ == 0;
        count->mean_down_s += nanos_to_seconds(fault->down);
    }
    if (out->nodes > 1)
        qsort(nodes, (size_t)out->nodes, sizeof *nodes, compare_counts);
    int32_t top = out->nodes / 100 > 0 ? out->nodes / 100 : 1;
    size_t on_top = 0;
    for (int32_t i = 0; i < top && i < out->nodes; i++)
        on_top += nodes[i].n;
    out->top_share = out->n_failures ? (double)on_top / (double)out->n_failures : 0;
    for (int32_t i = 0; i < TOP_NODES && i < out->nodes && nodes[i].n > 0; i++) {
        out->top_nodes[i] = nodes[i];
        out->top_nodes[i].mean_down_s /= (double)nodes[i].n;
        out->n_top_nodes++;
    }
    free(nodes);
}

static void count_causes(const struct fault_trace *trace, struct fault_statistics *out)
{
    size_t n = trace->n_details + 1; /* the last one: no cause given */
    struct fault_count *causes = memory_new(n, sizeof *causes);
    for (size_t i = 0; i < n; i++)
        causes[i].what = i + 1 < n ? (int32_t)i : -1;
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        struct fault_count *count = &causes[fault->detail < 0 ? n - 1 : (size_t)fault->detail];
        count->n++;
        count->mean_down_s += nanos_to_seconds(fault->down);
        out->kinds[fault->kind]++;
    }
    qsort(causes, n, sizeof *causes, compare_counts);
    for (size_t i = 0; i < n && causes[i].n > 0; i++) {
        causes[i].mean_down_s /= (double)causes[i].n;
        out->n_causes++;
    }
    out->causes = causes;
}

static double daily_variance_to_mean(const struct fault_trace *trace, nanos horizon)
{
    size_t days = (size_t)(horizon / DAY);
    if (days < 2)
        return 0;
    double *counts = memory_new(days, sizeof *counts);
    for (size_t i = 0; i < trace->n_items; i++) {
        size_t day = (size_t)(trace->items[i].time / DAY);
        if (is_failure(&trace->items[i]) && day < days)
            counts[day]++;
    }
    double mean = mean_of(counts, days), squares = 0;
    for (size_t i = 0; i < days; i++)
        squares += (counts[i] - mean) * (counts[i] - mean);
    free(counts);
    return mean > 0 ? squares / (double)(days - 1) / mean : 0;
}

void fault_statistics(const struct fault_trace *trace, int32_t nodes, nanos horizon, struct fault_statistics *out)
{
    *out = (struct fault_statistics){.nodes = nodes, .horizon_s = nanos_to_seconds(horizon)};
    for (size_t i = 0; i < trace->n_items; i++) {
        out->n_failures += is_failure(&trace->items[i]);
        out->n_planned += trace->items[i].kind == FAULT_PLANNED;
    }
    out->n_slow = trace->n_items - out->n_failures - out->n_planned;
    if (out->n_failures > 0) {
        out->mtbf_s = out->horizon_s / (double)out->n_failures;
        out->per_node_day = (double)out->n_failures / nodes / (out->horizon_s / 86400);
    }
    if (out->n_failures == 0 && out->horizon_s > 0) /* memoryless failures: none with a chance of exp(-rate * time) */
        out->most_per_node_day = -log(0.05) / nodes / (out->horizon_s / 86400);
    out->variance_to_mean = daily_variance_to_mean(trace, horizon);
    out->gaps = fit_gaps(trace);
    out->repair = fit_repair(trace);
    count_nodes(trace, out);
    count_causes(trace, out);
}

void fault_statistics_free(struct fault_statistics *statistics)
{
    free(statistics->causes);
    *statistics = (struct fault_statistics){0};
}

nanos fault_trace_horizon(const struct fault_trace *trace)
{
    nanos last = trace->n_items ? trace->items[trace->n_items - 1].time : 0;
    if (trace->last_outside > last)
        last = trace->last_outside;
    return (last / DAY + 1) * DAY;
}
