/*
 * dp_overlap_contention.h - how much the passes and messages of a pipeline are slowed by exchanges between replicas.
 *
 * With dp_overlap gradients and parameters are exchanged beside passes and pipeline messages. While both are under way
 *
 *   a NIC     is divided fairly. A message between nodes, which has all of it alone, is sent at max(1/2, 1 - u) of its rate, u
 *             what the exchange alone takes of the NIC (collective_sending_s over all of its time), at the sender's or at the
 *             receiver's, whichever holds it up longer. The exchange goes on at 1 / (1 + u) while its rank sends or receives:
 *             what it sends takes twice as long.
 *   a GPU     loses to the exchange what overlap_interference_s says (SMs of its channels, memory traffic), evenly over the
 *             exchange; of a pass its computations do, exchanges inside its layers do not.
 *
 * What is under way when depends on that in turn: the step is executed as if nothing were shared, and durations are made longer
 * by what lay beside them then; twice more where a stage loses more than 0.2 % of the step. Steps go up and down around where
 * they settle, by tenths of a percent mostly, by several in small jobs with much to exchange; after an odd number of times they
 * are nearer to flows. One rank a stage tells it for all, as their scripts are the same. Left out: messages that meet one
 * another, and exchanges inside layers that leave their node.
 *
 * Checked against the flow network where only NICs are shared, on a fabric of one layer (tests/sim/fabric): steps that alone are
 * 7.5 and 10.6 % too short are 0.1 % off so; where several groups share a NIC 5.4 % become 2.7.
 */
#ifndef MSIM_SIM_STEP_DP_OVERLAP_CONTENTION_H
#define MSIM_SIM_STEP_DP_OVERLAP_CONTENTION_H

#include "model/base/diag.h"
#include "sim/step/step_costs.h"

/* Has the layout a pipeline beside which replicas exchange? Without one, what is crowded is known when it is issued
 * (step_costs.h). */
bool has_dp_overlap_contention(const struct layout *layout);

/* What the operations of such a layout's program take by the analytic network, `ops` [program.n_ops], their works divided into
 * `works` (step_costs.h), becomes what they take beside one another. Fails as program_execute does; ops are then as they were. */
MUST_CHECK enum status dp_overlap_contention_time(const struct program *program, const struct machine *machine,
                                                  const struct class_nanos *works, nanos *ops, struct diags *diags);

#endif
