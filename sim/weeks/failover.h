/*
 * failover.h - failover: a failure takes out the data-parallel replicas of its node, and the others go on (PyTorch's torchft;
 * FT-HSDP, arXiv:2602.00277).
 *
 *     others    training ──fault── not noticed ──regroup── training with fewer ───────────────── regroup ── training with all
 *     replica            ──fault── not noticed ──search── (wait for a node) ── rejoin: start, state of a peer ──┘
 *
 * Example: 4 replicas on 4 nodes. Node 2 fails in the middle of a step of 10 s. The others lose 5 s of work, stand still for
 * detection and 20 s of regrouping, and train at about 3/4 of the speed. 8 min later the new replica has its state; 20 s more,
 * and all train.
 *
 * Units. Replicas that leave together are a unit: ranks that need one another for a micro-batch, or hold parts of one state. Let
 * idx = d cp + c be the index of a rank among the dp cp ranks that share its weights (layout.h). Its unit is idx / size, where
 * size is the least common multiple of
 *
 *     cp              ranks that share a sequence
 *     shard           ZeRO's parts of the states, with hybrid sharding
 *     ep etp / tp     experts of a layer
 *
 * If ZeRO shards states among all replicas, no other replica has the state that one loses, so failover is impossible. A node
 * with ranks of several units takes all of them out. A second failure in a unit that is out loses nothing more.
 *
 *   lost     the others drop the step under way, because its gradients lack a unit's share
 *   stop     they stand still until the failure is noticed, and for `regroup` to rebuild the groups between replicas
 *   fewer    they share the same global batch. The speed is that of the degraded step (sim/weeks/degraded.h), or
 *            (n - missing) / n
 *   back     once each lost node of the unit is replaced (by a spare or a repaired node; the longest wait is served first) and
 *            `rejoin` has passed, the unit waits for the others to end their step and regroup. Nothing is undone
 *
 * Slow nodes hold up the replicas that train; a node whose units are out slows nobody. Slow nodes that monitoring has found
 * leave with their units at the next regrouping, as they leave at a restart without failover. They do not trigger one, although
 * it would cost little. Drift counts from the start of the oldest processes that train; those of a unit start anew when it comes
 * back.
 *
 * The diagnostic suite of a policy runs on the nodes of the unit, and may condemn healthy ones among them: the unit then waits
 * for their replacements. A false alarm of the heartbeats names one node; its unit leaves as if it had failed, and comes back on
 * the same nodes. A false alarm of a hang detector names none (the whole job stands still), so the job stops and the suite runs
 * on all nodes.
 *
 * A failure during regrouping restarts the regrouping. The whole job stops and goes back to its checkpoint when no unit is left,
 * after silent corruption (gradients have spread it to all), and after a false hang alarm. Before planned outages that leave no
 * unit, and before planned restarts, it saves everything. Checkpoints continue meanwhile.
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
    int32_t replicas;                      /* data-parallel replicas of a unit */
    int32_t tp, span, size, gpus_per_node; /* consecutive ranks of a tp group; dp cp; idx per unit */
    nanos step;                            /* work of a step, which a failure drops; 0: none */
    nanos regroup;
    nanos rejoin, rejoin_hot; /* hot: a hot spare is ready */
};

/* Fills all but the times. Returns false, with the reason in `why`, if others cannot replace a lost replica's state. */
bool failover_units(const struct layout *layout, const struct cluster *cluster, struct run_failover *failover, char *why,
                    size_t size);

/* Seconds of regrouping: each rank is in one group between replicas; startup.h has the cost of the store. */
double failover_regroup_s(const struct layout *layout, int gpus, enum store_kind store);
/* The start of one unit alone; `loading_s` copies the state of a peer. */
struct startup failover_rejoin(const struct startup_options *options, const struct layout *layout,
                               const struct run_failover *failover, const struct setting *setting, double loading_s);

#endif
