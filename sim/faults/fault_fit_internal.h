/*
 * fault_fit_internal.h - the parts of a fit and the statistics that they share. Private to fault_fit*.c.
 *
 * fault_fit.c calls the parts in this order: groups first, because a hit of a group is no failure of the node itself; then the
 * nodes; then early deaths. Calls go one way: fault_fit.c -> fault_fit_{groups,worst,nodes,early}.c ->
 * fault_fit_numbers.c, and fault_fit_nodes.c -> fault_fit_worst.c.
 */
#ifndef MSIM_SIM_FAULTS_FAULT_FIT_INTERNAL_H
#define MSIM_SIM_FAULTS_FAULT_FIT_INTERNAL_H

#include <gsl/gsl_multimin.h>

#include "sim/faults/fault_fit.h"

enum { LEAST_FAILURES = 5 };

/* Fits the groups, and marks the faults [n_items] that are hits of one. */
void fit_groups(const struct fault_trace *trace, int32_t nodes, nanos horizon, bool *grouped, struct fault_fit *fit);
/* The node with most failures of its own. */
void fit_worst_node(const struct fault_trace *trace, const bool *grouped, int32_t nodes, nanos horizon, struct lemon_evidence *e);
/* The chance that any of `nodes` nodes alike fails this often within the horizon: up times are Weibull. */
double fit_chance_of_worst(size_t failures, double shape, double mean_s, double horizon_s, int32_t nodes);
/* Fits shape, lemons and bursts to the faults that are not grouped. */
void fit_nodes(const struct fault_trace *trace, const bool *grouped, int32_t nodes, nanos horizon, struct fault_fit *fit);
/* Fits early deaths to the times of the same faults. */
void fit_early(const struct fault_trace *trace, const bool *grouped, int32_t nodes, nanos horizon, struct fault_fit *fit);

/* The quantile p, in (0, 1), of the chi-squared distribution with `degrees` degrees of freedom, to 14 digits, by bisection. GSL's
 * own inverse does not converge for some thousands of degrees, and ends the process. */
double chi_squared_quantile(double p, double degrees);
/* Mean and standard deviation of n numbers. */
double fit_moments(const double *x, size_t n, double *deviation);
/* Minimises f from *x with Nelder and Mead's simplex: `step` is the first step along every axis. Returns the minimum; *x is where
 * it lies. */
double fit_minimum(gsl_multimin_function *f, gsl_vector *x, double step, int iterations);
/* Kolmogorov-Smirnov distance of n numbers from the uniform distribution on [0, 1]. Sorts them. */
double ks_uniform_distance(double *u, size_t n);

#endif
