/*
 * faults.h - fault traces drawn from a model of how a fleet fails (sim/faults/fault_model.h).
 *
 *   arrivals   Each node fails in a renewal process of its own: its time to the next failure, counted from the end of the repair
 *              before, is Weibull with shape k < 1 (decreasing hazard: failures come in clusters). Its mean is 1 / rate, so the
 *              fleet has the published rate whatever the shape. The process is stationary: the first failure comes after a
 *              residual life U * X with X the length-biased lifetime scale * G^(1/k), G ~ Gamma(1 + 1/k).
 *   causes     Drawn with the published counts as weights.
 *   repair     Lognormal by kind of cause. Causes that leave the node healthy (a software bug) take it away for no time.
 *   the rest   Early deaths, followers in bursts, events of groups, stragglers and slow links: see the model.
 *
 * Chance comes from one stream per node (or group) and purpose (model/base/random.h) through inverse distribution functions of
 * GSL, and times are whole seconds, so a seed gives the same bytes everywhere, and a node's failures do not depend on how many
 * nodes there are.
 *
 * Cost: about 0.1 us per node, and a microsecond per fault. Whether a node fails at all within the horizon is decided from a
 * table of bounds where they suffice, without inverting the gamma distribution.
 */
#ifndef MSIM_SIM_FAULTS_FAULTS_H
#define MSIM_SIM_FAULTS_FAULTS_H

#include "sim/faults/fault_model.h"
#include "traces/fault/fault_trace.h"

/* Faults of `nodes` nodes in [0, horizon), in order of time. */
void faults_generate(const struct fault_model *model, int32_t nodes, nanos horizon, uint64_t seed, struct fault_trace *trace);

/* Memoryless failures of the whole cluster at the model's rate, causes and repairs as the model's: for comparison with closed
 * forms. */
void faults_generate_poisson(const struct fault_model *model, int32_t nodes, nanos horizon, uint64_t seed,
                             struct fault_trace *trace);

/* The seed of replica r. */
uint64_t faults_replica_seed(uint64_t seed, uint64_t replica);

#endif
