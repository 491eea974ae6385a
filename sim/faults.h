/*
 * faults.h - fault traces made from a model of how a fleet fails.
 *
 * A model says how often nodes fail, how unevenly, for which causes and for how long:
 *
 *   arrivals   Each node fails in a renewal process of its own: its time to the next failure, counted from the end of the repair
 *              before, is Weibull with shape k < 1 (decreasing hazard: failures come in clusters). Its mean is 1 / rate, so the
 *              fleet has the published rate whatever the shape. The process is stationary: the first failure comes after a
 *              residual life U * X with X the length-biased lifetime scale * G^(1/k), G ~ Gamma(1 + 1/k).
 *   lemons     A share of the nodes fails `lemon_factor` times as often as the rest; the fleet's mean rate stays.
 *   causes     Drawn with the published counts as weights.
 *   repair     Lognormal by kind of cause. Causes that leave the node healthy (a software bug) take it away for no time.
 *
 * Chance comes from one stream per node and purpose (model/base/random.h) through inverse distribution functions of GSL, and
 * times are whole seconds, so a seed gives the same bytes everywhere, and a node's failures do not depend on how many nodes there
 * are. Faults that hit many nodes at once (a switch, a power feed) are drawn as faults of single nodes.
 */
#ifndef MSIM_SIM_FAULTS_H
#define MSIM_SIM_FAULTS_H

#include "traces/fault_trace.h"

enum repair_kind { REPAIR_NONE, REPAIR_HARDWARE, REPAIR_NETWORK, REPAIR_SOFTWARE, REPAIR_FACILITY, N_REPAIR_KINDS };

struct fault_cause {
    const char *name;
    double weight; /* published count */
    enum repair_kind repair;
};

/* Logarithm of the hours a repair takes: normal with these. */
struct repair_time {
    double mu, sigma;
};

struct fault_model {
    const char *name;
    const char *source;
    double rate;        /* failures per node and day */
    double shape;       /* Weibull k of one node */
    double lemon_share; /* of the nodes */
    double lemon_factor;
    const struct fault_cause *causes;
    int n_causes;
    const struct repair_time *repairs; /* [N_REPAIR_KINDS] */
    int nodes;                         /* of the published fleet, 8 GPUs each */
    double days;                       /* observed */
};

extern const struct fault_model fault_presets[];
extern const int n_fault_presets;
const struct fault_model *fault_preset(const char *name); /* NULL: unknown */

/* Faults of `nodes` nodes in [0, horizon), in order of time. */
void faults_generate(const struct fault_model *model, int32_t nodes, nanos horizon, uint64_t seed, struct fault_trace *trace);

#endif
