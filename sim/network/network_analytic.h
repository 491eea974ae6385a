/*
 * network_analytic.h - the closed forms as a network: NCCL's tuning model for collectives, latency plus bytes over rate for
 * messages (model/cost/kernel/machine.h). It is uniform. Transfers share links only as the group's span says, and as
 * dp_overlap_contention.h computes for a whole step.
 */
#ifndef MSIM_SIM_NETWORK_NETWORK_ANALYTIC_H
#define MSIM_SIM_NETWORK_NETWORK_ANALYTIC_H

#include "model/cost/kernel/machine.h"
#include "sim/network/network.h"

/* `machine` must outlive the network. */
struct network network_analytic(const struct machine *machine);

#endif
