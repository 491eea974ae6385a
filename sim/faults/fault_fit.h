/*
 * fault_fit.h - fits a fault model to a trace: rate, differences between nodes, causes and repairs, each with its confidence
 * interval.
 *
 * Example: what does a fleet's own log say about its failures?
 *
 *     status = fault_fit(&trace, "june.csv", 1536, horizon, NULL, &fit, &diags);
 *     ... fit.rate.value = 2.2e-3 per node and day, fit.rate.low, fit.rate.high ...
 *     ... fit.model can be written to a file and drawn from (sim/faults/faults.h) ...
 *
 * Nodes. The up times of each node are a stationary renewal process with Weibull times between repair and failure
 * (sim/faults/faults.h). Some nodes are lemons with `factor` times the rate. A node has up times x_1 ... x_m, its first failure
 * after t0, and c since its last repair. With scale s, shape k and mean up time u = s Gamma(1 + 1/k) its likelihood is
 *
 *     exp(-(t0/s)^k) / u * prod (k/s) (x/s)^(k-1) exp(-(x/s)^k) * exp(-(c/s)^k);        Q(1/k, (H/s)^k) if it never fails
 *
 * The likelihood of the fleet is the product over nodes of the mixture of both kinds. Nelder and Mead's simplex (GSL) maximises
 * it, with and without lemons. Lemons stay if the likelihood ratio has at most one chance in a hundred among nodes alike (2 gain
 * is chi-squared with two degrees: the gain is at least 4.6), and if at least one node is more likely a lemon than not. The
 * evidence also says how often the worst node failed, and how likely that is for any node of N. If nearly all failures (80
 * % of 10 or more, on 8 nodes or more) are on one node, a table has probably named it by mistake: a warning says so, and they are
 * spread over all nodes, so nothing is said of lemons. Confidence intervals (95 %) come from the curvature at the maximum
 * (inverse of the observed information, of the logarithms). The rate has Poisson's exact interval, widened by the square root of
 * the variance over mean of the daily counts or of the nodes' counts, whichever is larger. Clustered failures and unequal nodes
 * say less about the rate of other such fleets. Up times below one minute count as one minute.
 *
 * Bursts. With probability p a failure is followed by another on its node after an exponential gap of mean b. The density of up
 * times becomes the mixture (1 - p) Weibull + p exponential, with b at most two days. The two parameters stay if they gain 4 in
 * log-likelihood (1 in 50 by chance).
 *
 * Groups. Failures at one instant with one cause on three nodes or more are an event of a group (sim/faults/fault_fit_groups.c).
 * The rest of the fit leaves them out. Early deaths are a wave of failures that decays from the start
 * (sim/faults/fault_fit_early.c).
 *
 * The model's rate is that of single nodes: the observed rate without groups, early deaths and bursts.
 *
 * Repairs. Lognormal per kind of repair, from mean and deviation of the logarithms, if at least 5 are known. The name of a cause
 * gives its kind, as in models (sim/faults/fault_keywords.c). If all repairs have one length (the source does not print them),
 * draws have that length, however few there are.
 *
 * Goodness of fit: Kolmogorov-Smirnov distances and p-values. Up times are compared with the fitted distribution of their node's
 * kind, given that they ended before the horizon. The p-values treat the parameters as known, so they are too optimistic.
 */
#ifndef MSIM_SIM_FAULTS_FAULT_FIT_H
#define MSIM_SIM_FAULTS_FAULT_FIT_H

#include "sim/faults/fault_model.h"
#include "traces/fault/fault_trace.h"

struct interval_estimate {
    double value, low, high;
};

struct repair_goodness {
    size_t n, n_few; /* repairs that were fitted; repairs too few to fit */
    struct interval_estimate mu, sigma;
    double ks, p;
};

/* What speaks for lemons: nodes that fail more often than the others. */
struct lemon_evidence {
    double gain;           /* log-likelihood that lemons gain */
    double p;              /* chance of that much in a fleet of nodes alike: likelihood ratio, two parameters */
    int32_t n_lemons;      /* nodes that are more likely lemons than not */
    int32_t worst_node;    /* -1: none failed */
    size_t worst_failures; /* its own, without events of groups */
    double worst_p;        /* chance that any node of such a fleet fails as often */
    char worst_host[64];   /* "": it has no name */
    bool all_on_one;       /* nearly all failures are on one node, as where a table names a node by mistake */
};

struct group_goodness {
    size_t n_events;
    struct interval_estimate rate; /* per group and day */
};

struct fault_fit {
    struct fault_model model;
    size_t n_failures, n_gaps;
    struct interval_estimate rate, shape, lemon_share, lemon_factor;
    struct interval_estimate burst_probability, burst_hours, early_share, early_days; /* all zero: no evidence */
    bool lemons, bursts, early;
    struct lemon_evidence evidence;
    double log_likelihood, log_likelihood_plain; /* with and without lemons */
    double log_likelihood_bursts;                /* with bursts, from the better of those */
    double log_likelihood_early;                 /* gain from early deaths */
    double n_early;                              /* expected number of early deaths */
    size_t n_grouped;                            /* failures that are hits of groups */
    struct group_goodness groups[MAX_GROUPS];    /* one per group of model.groups */
    double ks, p;                                /* of up times */
    struct repair_goodness repairs[N_REPAIR_KINDS];
    double simultaneous; /* fraction of failures at the same second as one of another node */
};

/* `known` (may be NULL): component and kind of repair of causes whose names do not say them (sim/faults/fault_keywords.c).
 * `nodes` is above every node of the trace. Fewer than 5 failures cannot be fitted (STATUS_BAD_INPUT, with a diagnostic). */
MUST_CHECK enum status fault_fit(const struct fault_trace *trace, const char *name, int32_t nodes, nanos horizon,
                                 const struct fault_causes *known, struct fault_fit *fit, struct diags *diags);

/* Probability that n numbers have a Kolmogorov-Smirnov distance at least this large from their own distribution. */
double ks_p_value(double distance, size_t n);

#endif
