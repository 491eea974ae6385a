/*
 * fault_fit.h - a fault model fitted to a trace: rates, unevenness, causes and repairs, with how sure one can be of them.
 *
 * Nodes. Each node's up times are a stationary renewal process with Weibull times between repair and failure
 * (sim/faults/faults.h); a share of the nodes are lemons with `factor` times the rate. The likelihood of a node with up times x_1
 * ... x_m, first failure after t0 and c since its last repair is, with scale s, shape k and mean up time u = s Gamma(1 + 1/k),
 *
 *     exp(-(t0/s)^k) / u * prod (k/s) (x/s)^(k-1) exp(-(x/s)^k) * exp(-(c/s)^k);        Q(1/k, (H/s)^k) when it never fails
 *
 * and that of the fleet the product over nodes of the mixture of both kinds. It is maximised by Nelder and Mead's simplex (GSL),
 * with and without lemons; lemons are kept when Akaike's criterion says so. Confidence intervals (95 %) come from the curvature
 * at the maximum (inverse of the observed information, on the logarithms); the rate's is Poisson's exact one, widened by the
 * square root of the variance over mean, of the days' failures or of the nodes', the larger: failures that come in clusters, and
 * nodes that are unlike, tell less of the rate of other such fleets. Up times below a minute count as one.
 *
 * Bursts. With probability p a failure is followed by another on its node after an exponential gap of mean b, so the density of
 * up times becomes the mixture (1 - p) Weibull + p exponential. b is two days at most. The two parameters are kept
 * when they gain 4 in log-likelihood (by chance: one in fifty).
 *
 * Groups. Failures of one instant and cause on three nodes or more are events of a group (sim/faults/fault_fit_groups.c); the
 * rest of the fit does without them. Early deaths. A wave of failures that dies away from the start
 * (sim/faults/fault_fit_early.c).
 *
 * The model's rate is that of the nodes themselves: the observed one less what groups, early deaths and bursts bring.
 *
 * Repairs. Lognormal by kind of repair, which a cause's name tells as it does in models (sim/faults/fault_keywords.c), by mean
 * and deviation of the logarithms, where at least 5 are known; all of one length (a trace whose source does not say them) are
 * drawn with that length, however few.
 *
 * Goodness of fit: Kolmogorov-Smirnov distances and their p-values. Up times are compared with the fitted distribution of their
 * node's kind, given that they ended before the horizon. The p-values take the parameters as given, so they are too kind.
 */
#ifndef MSIM_SIM_FAULTS_FAULT_FIT_H
#define MSIM_SIM_FAULTS_FAULT_FIT_H

#include "sim/faults/fault_model.h"
#include "traces/fault/fault_trace.h"

struct interval_estimate {
    double value, low, high;
};

struct repair_goodness {
    size_t n, n_few; /* repairs that were fitted; or that are too few */
    struct interval_estimate mu, sigma;
    double ks, p;
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
    double log_likelihood, log_likelihood_plain; /* with and without lemons */
    double log_likelihood_bursts;                /* of the better of those, with bursts */
    double log_likelihood_early;                 /* gained by early deaths */
    double n_early;                              /* failures that are early deaths, expected */
    size_t n_grouped;                            /* failures that are hits of groups */
    struct group_goodness groups[MAX_GROUPS];    /* of model.groups */
    double ks, p;                                /* of up times */
    struct repair_goodness repairs[N_REPAIR_KINDS];
    double simultaneous; /* share of failures that share their second with another node's */
};

/* `known` (may be NULL): causes whose component and kind of repair are not what their names speak of
 * (sim/faults/fault_keywords.c). `nodes` above every node of the trace; fewer than 5 failures cannot be fitted (STATUS_BAD_INPUT,
 * with a diagnostic). */
MUST_CHECK enum status fault_fit(const struct fault_trace *trace, const char *name, int32_t nodes, nanos horizon,
                                 const struct fault_causes *known, struct fault_fit *fit, struct diags *diags);

/* Chance of a Kolmogorov-Smirnov distance this large or larger between n numbers and their own distribution. */
double ks_p_value(double distance, size_t n);

#endif
