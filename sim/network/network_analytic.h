/*
 * network_analytic.h - the network of the closed-form models: NCCL's tuning model for collectives, latency plus bytes over rate
 * for messages (model/cost/kernel/machine.h). Nothing shares a link except as the group's span says, and as
 * dp_overlap_contention.h has it for a whole step; uniform.
 */
#ifndef MSIM_SIM_NETWORK_NETWORK_ANALYTIC_H
#define MSIM_SIM_NETWORK_NETWORK_ANALYTIC_H

#include "model/cost/kernel/machine.h"
#include "sim/network/network.h"

/* `machine` must outlive the network. */
struct network network_analytic(const struct machine *machine);

#endif
