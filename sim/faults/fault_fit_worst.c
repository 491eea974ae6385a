/*
 * fault_fit_worst.c - the node that failed most: by chance, as one of many alike, or because a table names one node by mistake
 * (fault_fit.h).
 */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_sf_gamma.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "sim/faults/fault_fit_internal.h"

enum { MISTAKE_FAILURES = 10, MISTAKE_NODES = 8 };
#define MISTAKE_SHARE 0.8

void fit_worst_node(const struct fault_trace *trace, const bool *grouped, int32_t nodes, nanos horizon, struct lemon_evidence *e)
{
    size_t *counts = memory_new((size_t)nodes, sizeof *counts), n = 0;
    *e = (struct lemon_evidence){.worst_node = -1, .p = 1, .worst_p = 1};
    for (size_t i = 0; i < trace->n_items; i++) {
        const struct fault *fault = &trace->items[i];
        if (fault->kind != FAULT_NODE || fault->time >= horizon || fault->node >= nodes || grouped[i])
            continue;
        n++;
        if (++counts[fault->node] > e->worst_failures) {
            e->worst_failures = counts[fault->node];
            e->worst_node = fault->node;
        }
    }
    free(counts);
    e->all_on_one = n >= MISTAKE_FAILURES && nodes >= MISTAKE_NODES && (double)e->worst_failures >= MISTAKE_SHARE * (double)n;
    if (e->worst_node >= 0)
        snprintf(e->worst_host, sizeof e->worst_host, "%s", fault_trace_host(trace, e->worst_node));
}

/* c failures of a renewal process within H have a sum of c - 1 whole up times below H. That sum is nearly gamma-distributed, with
 * the mean and the variance of c - 1 up times. Of `nodes` nodes alike the worst is the smallest of as many chances. */
double fit_chance_of_worst(size_t failures, double shape, double mean_s, double horizon_s, int32_t nodes)
{
    if (failures < 2)
        return 1;
    double first = gsl_sf_gamma(1 + 1 / shape), variation = gsl_sf_gamma(1 + 2 / shape) / (first * first) - 1;
    if (!(variation > 0) || !isfinite(variation))
        return 1;
    double one = gsl_cdf_gamma_P(horizon_s, (double)(failures - 1) / variation, mean_s * variation);
    return -expm1(nodes * log1p(-fmin(one, 1 - 1e-16)));
}
