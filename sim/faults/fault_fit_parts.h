/*
 * fault_fit_parts.h - the parts of a fit (fault_fit.h), each by one file: groups first, as their hits are no failures of nodes.
 */
#ifndef MSIM_SIM_FAULTS_FAULT_FIT_PARTS_H
#define MSIM_SIM_FAULTS_FAULT_FIT_PARTS_H

#include <gsl/gsl_multimin.h>

#include "sim/faults/fault_fit.h"

enum { LEAST_FAILURES = 5 };

/* Marks the faults [n_items] that hit a group, and fits the groups. */
void fit_groups(const struct fault_trace *trace, int32_t nodes, nanos horizon, bool *grouped, struct fault_fit *fit);
/* Shape, lemons and bursts, from the faults that are not grouped. */
void fit_nodes(const struct fault_trace *trace, const bool *grouped, int32_t nodes, nanos horizon, struct fault_fit *fit);
/* Early deaths, from when the same faults come. */
void fit_early(const struct fault_trace *trace, const bool *grouped, int32_t nodes, nanos horizon, struct fault_fit *fit);

/* The number that a chi-squared variate with so many degrees of freedom stays below with probability p in (0, 1), to 14 digits,
 * by bisection: GSL's inverse does not converge for some thousands of degrees, and ends the process. */
double chi_squared_quantile(double p, double degrees);
/* Mean and deviation of n numbers. */
double fit_moments(const double *x, size_t n, double *deviation);
/* The least value of f, by Nelder and Mead's simplex from *x with a first step along every axis, in at most so many iterations;
 * *x is where that is. */
double fit_minimum(gsl_multimin_function *f, gsl_vector *x, double step, int iterations);
/* Kolmogorov-Smirnov distance of n numbers from the uniform distribution; sorts them. */
double ks_uniform_distance(double *u, size_t n);

#endif
