/*
 * faults.h - draws random fault traces from a fault model (sim/faults/fault_model.h).
 *
 * Example: a month of faults of 1,536 nodes. The same seed always gives the same trace.
 *
 *     faults_generate(&model, 1536, nanos_from_seconds(30 * 86400.0), 1, &trace);
 *
 *   arrivals   Each node has its own renewal process. The time from the end of a repair to the next failure is Weibull with
 *              shape k < 1 (decreasing hazard: failures come in clusters). Its mean is 1 / rate, so the fleet has the published
 *              rate for any shape. The process is stationary: the first failure comes after a residual life U * X, where X is
 *              the length-biased lifetime scale * G^(1/k), G ~ Gamma(1 + 1/k).
 *   causes     Drawn with the published counts as weights.
 *   repair     Lognormal per kind of repair. Causes that leave the node healthy (a software bug) take no node away.
 *   the rest   Early deaths, failures that follow in bursts, events of groups, stragglers and slow links: see the model.
 *
 * Each node (or group) has one random stream per purpose (model/base/random.h), read through inverse distribution functions of
 * GSL. Times are whole seconds. So a seed gives the same bytes everywhere, and the failures of a node do not depend on the
 * number of nodes.
 *
 * Cost: about 0.1 us per node, and 1 us per fault. A table of bounds mostly decides whether a node fails within the horizon,
 * without inverting the gamma distribution.
 */
#ifndef MSIM_SIM_FAULTS_FAULTS_H
#define MSIM_SIM_FAULTS_FAULTS_H

#include "sim/faults/fault_model.h"
#include "traces/fault/fault_trace.h"

/* Draws the faults of `nodes` nodes in [0, horizon), in order of time. */
void faults_generate(const struct fault_model *model, int32_t nodes, nanos horizon, uint64_t seed, struct fault_trace *trace);

/* Draws memoryless failures of the whole cluster at the model's rate, with its causes and repairs, to compare with closed forms.
 */
void faults_generate_poisson(const struct fault_model *model, int32_t nodes, nanos horizon, uint64_t seed,
                             struct fault_trace *trace);

/* The seed of one replica. */
uint64_t faults_replica_seed(uint64_t seed, uint64_t replica);

#endif
