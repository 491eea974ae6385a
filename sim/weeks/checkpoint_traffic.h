/*
 * checkpoint_traffic.h - checkpoints' traffic on a fabric, link by link, where sim/weeks/checkpoint_cost.h divides bytes by
 * rates.
 *
 *   neighbours   every GPU sends its state to the GPU half the cluster further, where copies in memory are kept: all at once, so
 *                everything crosses the bisection and meets what the routing lets collide
 *   broadcast    every GPU passes the state on to the next of its data-parallel group (rank + tp cp, when ranks fill the hosts in
 *                order): a pipelined ring, each link used once by every state
 *
 * Each takes until its last transfer has ended, with everybody speeding up as others finish (sim/fabric/load.h). The way to and
 * from storage is not on this fabric and keeps its closed form.
 */
#ifndef MSIM_SIM_WEEKS_CHECKPOINT_TRAFFIC_H
#define MSIM_SIM_WEEKS_CHECKPOINT_TRAFFIC_H

#include "sim/fabric/route.h"
#include "sim/weeks/checkpoint_cost.h"

/* Replaces what `cost` (checkpoint_cost_of) says of neighbours and broadcasts. STATUS_BAD_INPUT when the fabric has fewer GPUs
 * than the job, or two of them cannot reach one another. */
MUST_CHECK enum status checkpoint_cost_on_fabric(const struct layout *layout, const struct setting *setting,
                                                 const struct router *router, int queue_pairs, struct checkpoint_cost *cost,
                                                 struct diags *diags);

#endif
