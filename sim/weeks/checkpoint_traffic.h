/*
 * checkpoint_traffic.h - the time of checkpoint transfers on a fabric, link by link; sim/weeks/checkpoint_cost.h divides bytes
 * by rates instead.
 *
 * Example: in a cluster of 64 GPUs on two leaves, GPU 0 sends its state to GPU 32, 1 to 33, and so on. All 32 flows of a leaf
 * cross its uplinks, so with one uplink per two GPUs the transfer takes twice as long.
 *
 *   neighbours   each GPU sends its state to the GPU half the cluster further, which keeps copies in memory. All send at once, so
 *                everything crosses the bisection and collides where the routing lets it
 *   broadcast    each GPU passes the state on to the next of its data-parallel group (rank + tp cp, if ranks fill the hosts in
 *                order): a pipelined ring that uses each link once per state
 *
 * A pattern lasts until its last transfer ends; the others speed up as transfers finish (sim/fabric/load.h). The path to and
 * from storage is not on this fabric and keeps its closed form.
 */
#ifndef MSIM_SIM_WEEKS_CHECKPOINT_TRAFFIC_H
#define MSIM_SIM_WEEKS_CHECKPOINT_TRAFFIC_H

#include "sim/fabric/route.h"
#include "sim/weeks/checkpoint_cost.h"

/* Replaces the times of neighbours and broadcasts in `cost` (from checkpoint_cost_of). STATUS_BAD_INPUT if the fabric has fewer
 * GPUs than the job, or two of its GPUs are not connected. */
MUST_CHECK enum status checkpoint_cost_on_fabric(const struct layout *layout, const struct setting *setting,
                                                 const struct router *router, int queue_pairs, struct checkpoint_cost *cost,
                                                 struct diags *diags);

#endif
