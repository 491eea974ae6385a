/*
 * fault_statistics.h - what a fault trace is like: how often, how bursty, how uneven, how long.
 *
 * Only node outages count as failures; stragglers and slow links are counted beside. Rates are over the exposure nodes * horizon.
 *
 * Times between failures of the fleet are fitted with a Weibull distribution by maximum likelihood. With x_i the n gaps (zero
 * gaps dropped: failures of one instant are one burst), the shape k solves
 *
 *     sum(x^k ln x) / sum(x^k) - 1/k - mean(ln x) = 0,        scale = (mean of x^k)^(1/k),
 *
 * whose left side grows with k, so the root is one; it is found by Brent's method (GSL). k = 1 is a Poisson process, k < 1 means
 * bursts. `ks` are Kolmogorov-Smirnov distances of the gaps to the fit and to the exponential with the same mean. Repairs are
 * fitted with a lognormal by their mean and standard deviation of ln hours, repairs of no length left out.
 */
#ifndef MSIM_SIM_FAULTS_FAULT_STATISTICS_H
#define MSIM_SIM_FAULTS_FAULT_STATISTICS_H

#include "traces/fault/fault_trace.h"

struct weibull_fit {
    size_t n;      /* gaps used; the fit needs 3 different ones and is all zero otherwise */
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
    size_t n_failures, n_slow, n_planned; /* node outages; stragglers and slow links; outages that are announced */
    double horizon_s;
    int32_t nodes, nodes_hit;
    double mtbf_s;           /* horizon / failures */
    double per_node_day;     /* failures */
    double variance_to_mean; /* of daily counts; 1 for a Poisson process */
    double top_share;        /* of the failures, on the 1 % of nodes (at least one) that fail most */
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

/* A fit to n positive numbers. */
struct weibull_fit weibull_fit(double *x, size_t n); /* sorts x */

/* End of the last day on which something fails, on nodes that were left out too: what a trace covers, as far as its rows can
 * tell. */
nanos fault_trace_horizon(const struct fault_trace *trace);

#endif
