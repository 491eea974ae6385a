/*
 * dp_overlap_contention.h - how much exchanges between replicas slow down the passes and messages of a pipeline that they
 * overlap.
 *
 * Example: a gradient exchange uses 30 % of a NIC (u = 0.3). A pipeline message of 10 ms that overlaps it is sent at max(1/2, 1
 * - 0.3) of its rate and takes 14.3 ms. Meanwhile the exchange advances at 1 / 1.3 of its speed.
 *
 * With dp_overlap gradients and parameters are exchanged during passes and pipeline messages. While both are under way
 *
 *   a NIC     is shared fairly. A message between nodes, which alone uses all of it, is sent at max(1/2, 1 - u) of its rate. u
 *             is the fraction of the NIC that the exchange alone uses (collective_sending_s over all of its time), at the sender
 *             or the receiver, whichever is slower. The exchange advances at 1 / (1 + u) while its rank sends or receives: its
 *             own bytes take twice as long.
 *   a GPU     loses to the exchange the time of overlap_interference_s (SMs of its channels, memory traffic), evenly over the
 *             exchange. Of a pass, computations lose it; exchanges inside its layers do not.
 *
 * The overlap depends on these times in turn. So the step is executed first as if nothing were shared, and durations are
 * lengthened by the overlap seen then; twice more if a stage loses more than 0.2 % of the step. Successive steps oscillate
 * around their limit, mostly by tenths of a percent, by several percent in small jobs with much to exchange. After an odd number
 * of iterations they are closer to flows. One rank per stage is enough, because ranks of a stage have the same script. Not
 * modelled: messages that meet one another, and exchanges inside layers that leave their node.
 *
 * Validated against the flow network, with shared NICs only, on a fabric of one layer (tests/sim/fabric): steps that would be
 * 7.5 and 10.6 % too short come within 0.1 %. If several groups share a NIC, 5.4 % become 2.7 %.
 */
#ifndef MSIM_SIM_STEP_DP_OVERLAP_CONTENTION_H
#define MSIM_SIM_STEP_DP_OVERLAP_CONTENTION_H

#include "model/base/diag.h"
#include "sim/step/step_costs.h"

/* Does the layout have a pipeline that overlaps exchanges between replicas? Without one the slowed computation is known when it
 * is issued (step_costs.h). */
bool has_dp_overlap_contention(const struct layout *layout);

/* Lengthens the durations `ops` [program.n_ops] of such a program, which hold for the analytic network, by the overlap. `works`:
 * its works by class (step_costs.h). Fails like program_execute; `ops` is then unchanged. */
MUST_CHECK enum status dp_overlap_contention_time(const struct program *program, const struct machine *machine,
                                                  const struct class_nanos *works, nanos *ops, struct diags *diags);

#endif
