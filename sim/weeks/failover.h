/*
 * failover.h - replicas that fail alone: a failure takes the data-parallel replicas of its node out, and the others go on
 * (PyTorch's torchft; FT-HSDP, arXiv:2602.00277).
 *
 *     others    training ──fault── not noticed ──regroup── training with fewer ───────────────── regroup ── training with all
 *     replica            ──fault── not noticed ──search── (wait for a node) ── rejoin: start, state of a peer ──┘
 *
 * What leaves together is a unit: ranks that need one another for a micro-batch, or hold parts of one state. With idx = d cp + c
 * the place of a rank among the dp cp that share its weights (layout.h), units are idx / size with the least size that is a
 * multiple of
 *
 *     cp              a sequence is divided among them
 *     shard           ZeRO's parts of the states, when there is hybrid sharding
 *     ep etp / tp     experts of a layer
 *
 * ZeRO among all replicas leaves nobody with what a lost one held: there is no failover then. A node that holds ranks of several
 * units takes all of them out; nodes of one unit are lost once.
 *
 *   lost     the others drop the step under way, as its gradients lack a unit's: work since it began
 *   stop     they stand still until the failure is noticed, and for `regroup`, which makes the groups between replicas anew
 *   fewer    of the same global batch each takes more: the speed is the degraded step's (sim/weeks/degraded.h), or (n - missing)
 * / n back     when a node is there for each that the unit lost (a spare, or a repaired one; who waits longest is served first)
 * and `rejoin` is over, the unit waits for the others to end a step and regroup; nothing is undone
 *
 * Slow nodes hold up those who are there: one whose units are out slows nobody. Those that monitoring has found leave at the next
 * regrouping, with their units, as they leave at a restart otherwise; not earlier, although it would cost little. Speed drifts
 * with the processes that have run longest among those who are there: a unit's begin anew when it comes back.
 *
 * The suite of a policy runs on the nodes of the unit, and the healthy ones that it condemns are among them: the unit waits for
 * others in their places. A false alarm of the heartbeats is that of one node, whose unit leaves as if it had failed and comes
 * back where it is; one of what watches for hangs (the whole job stands still) says nothing of where, so the job stops and the
 * suite runs on all nodes.
 *
 * A failure that meets the job regrouping makes it begin anew. Training stops as a whole and goes back to its checkpoint when no
 * unit is left, after silent corruption, which gradients have carried to all, and for such a false alarm. Before announced
 * outages leave none, or code is new, all is saved. Checkpoints go on meanwhile.
 */
#ifndef MSIM_SIM_WEEKS_FAILOVER_H
#define MSIM_SIM_WEEKS_FAILOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "model/base/units.h"
#include "model/layout/layout.h"
#include "sim/weeks/startup.h"

struct run_failover {
    int32_t units;
    int32_t replicas;                      /* data-parallel ones of a unit */
    int32_t tp, span, size, gpus_per_node; /* ranks in a row of one tp group; dp cp; of a unit, in them */
    nanos step;                            /* that is dropped; 0: none */
    nanos regroup;
    nanos rejoin, rejoin_hot; /* hot: the node stands ready */
};

/* Units of a layout; false, with a sentence, where a lost replica cannot be made up for. Times are left alone. */
bool failover_units(const struct layout *layout, const struct cluster *cluster, struct run_failover *failover, char *why,
                    size_t size);

/* Regrouping: each rank is in one group between replicas, and the store keeps them together as startup.h says. */
double failover_regroup_s(const struct layout *layout, int gpus, enum store_kind store);
/* The start of one unit, by itself, with `loading_s` for the state of a peer. */
struct startup failover_rejoin(const struct startup_options *options, const struct layout *layout,
                               const struct run_failover *failover, const struct setting *setting, double loading_s);

#endif
