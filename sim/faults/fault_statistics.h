/*
 * fault_statistics.h - statistics of a fault trace: rate, burstiness, skew across nodes, repair times and causes.
 *
 * Example: `msim faults summary trace.csv` prints these; from C:
 *
 *     fault_statistics(&trace, 1536, horizon, &statistics);
 *     ... statistics.per_node_day, statistics.gaps.shape, statistics.top_share ...
 *     fault_statistics_free(&statistics);
 *
 * Only node outages are failures; stragglers and slow links are counted apart. Rates are per nodes * horizon.
 *
 * Times between failures of the fleet are fitted with a Weibull distribution by maximum likelihood. x_i are the n gaps; gaps of
 * 0 are left out, because failures of one instant are one burst. The shape k solves
 *
 *     sum(x^k ln x) / sum(x^k) - 1/k - mean(ln x) = 0,        scale = (mean of x^k)^(1/k).
 *
 * The left side grows with k, so there is one root; Brent's method (GSL) finds it. k = 1 is a Poisson process, k < 1 means
 * bursts. `ks` is the Kolmogorov-Smirnov distance of the gaps to the fit, `ks_exponential` to the exponential with the same
 * mean. Repairs are fitted with a lognormal by mean and standard deviation of ln hours; repairs of length 0 are left out.
 */
#ifndef MSIM_SIM_FAULTS_FAULT_STATISTICS_H
#define MSIM_SIM_FAULTS_FAULT_STATISTICS_H

#include "traces/fault/fault_trace.h"

struct weibull_fit {
    size_t n;      /* gaps used; fewer than 3 different ones: the fit is all zero */
    double mean_s; /* of the gaps */
    double shape, scale_s;
    double ks, ks_exponential;
};

struct repair_fit {
    size_t n, n_empty; /* with and without length */
    double mean_s, median_s, p90_s, max_s;
    double mu, sigma; /* of ln hours */
};

/* One row of a table of counts: a node, a kind or a cause. */
struct fault_count {
    int32_t what; /* node, enum fault_kind, or index in trace->details (-1 none) */
    size_t n;
    double mean_down_s;
};

enum { TOP_NODES = 10 };

struct fault_statistics {
    size_t n_failures, n_slow, n_planned; /* node outages; stragglers and slow links; planned outages */
    double horizon_s;
    int32_t nodes, nodes_hit;
    double mtbf_s;            /* horizon / failures; 0: unknown, as nothing failed */
    double per_node_day;      /* failures */
    double most_per_node_day; /* nothing failed: below it, at 95 % confidence, if failures are memoryless; else 0 */
    double variance_to_mean;  /* of daily counts; 1 for a Poisson process */
    double top_share;         /* fraction of the failures on the 1 % of nodes (at least one) that fail most */
    struct weibull_fit gaps;
    struct repair_fit repair;
    struct fault_count top_nodes[TOP_NODES]; /* most failures first, then lowest node */
    int n_top_nodes;
    struct fault_count *causes; /* most first; released by fault_statistics_free */
    size_t n_causes;
    size_t kinds[N_FAULT_KINDS];
};

/* Statistics over `nodes` nodes (above every node of the trace) and `horizon`. */
void fault_statistics(const struct fault_trace *trace, int32_t nodes, nanos horizon, struct fault_statistics *out);
void fault_statistics_free(struct fault_statistics *statistics);

/* Fits n positive numbers. */
struct weibull_fit weibull_fit(double *x, size_t n); /* sorts x */

/* End of the last day with a fault, on any node: the time that a trace covers, as far as its rows show. */
nanos fault_trace_horizon(const struct fault_trace *trace);

#endif
