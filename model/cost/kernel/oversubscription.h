/*
 * oversubscription.h - the slowdown of exchanges between nodes on a fabric that is narrower above its leaves or pods than
 * below.
 *
 * Example: groups over D = 16 nodes under L = 4 leaves, each leaf oversubscribed 3:1.
 *
 *     ring          e = L / D = 1/4                           load 3 * 1/4 = 0.75: no slowdown
 *     all-to-all    e = (1 - 1/L) / (1 - 1/D) = 0.8           load 3 * 0.8 = 2.4: the bandwidth term takes 2.4 times as long
 *
 * Theory. A GPU sends at the rate of its NICs. While all groups of one kind do so at once, a part e of the traffic of the GPUs
 * of a leaf (the nodes under one ToR set) goes to other leaves (struct group_exits, model/layout/layout.h). With k the NICs'
 * rate over that of the links above the leaf, the load of these links is k e. Above 1 the bandwidth term of the exchange is
 * multiplied by
 *
 *     max(1, k e of leaves, k e of pods)
 *
 * k of leaves comes from `leaf_oversubscription` and their ports (cluster_leaf_oversubscription); k of pods is that times the
 * same of `pod_oversubscription`. Fair flows over evenly used paths take exactly this time
 * (tests/sim/fabric/test_narrow_fabric.c). For groups over D domains that fill L leaves (or pods):
 *
 *     ring          domains in order send to the next, and L of D hops leave a leaf: e = L / D. Where groups do not fill leaves,
 *                   the part of each group in a leaf is counted (model/layout/span.c), and e is that of the leaf with the most
 *                   traffic. This holds for every ring: rails of a hierarchical collective, shards, replicas of shards and of
 *                   experts, keys and values in context parallelism.
 *     tree          3/2 of that, at most 1, where a leaf between others has several domains: each of the two trees has three
 *                   edges between such a leaf and others, while the busiest NIC sends over four (collective.c)
 *     all-to-all    e = (1 - 1/L) / (1 - 1/D)
 *     message       e: the fraction of the GPUs under the leaf whose next stage is under another leaf. Only messages that leave
 *                   take longer, and a pipeline is filled and drained hop by hop. So the mean over all messages counts, those
 *                   that stay and those that leave. Where the last leaf, or the last one that sends, is only partly full, so
 *                   are the links of its traffic.
 *     in turns      (machine.h, replica_turns) one NIC is full at a time, so e of a ring is divided by the turns
 *
 * Dragonfly: leaves are its switches (those that a node's NICs alternate between), pods its groups, and k is the NICs' rate
 * over that of local cables and of global cables (model/spec/cluster.h). Traffic that leaves a group uses a local cable in both
 * groups. A ring sends to one other switch or group and so over a part of the cables. Adaptive routing sends the rest around,
 * over two cables instead of one. Let `of` be the number of switches or groups, q the number that the job uses, each of which
 * sends to p - 1 others. The direct cables carry p - 1 parts, those over idle ones of - q, and those over busy ones half of q -
 * p, as each detour uses cables of two. So k is larger by
 *
 *     (of - 1) / (of - 1 - (q - p) / 2),     p = 2 for rings and messages, p = L or pods in an all-to-all.
 *
 * Not modelled: kinds of groups that exchange at the same time (each is timed alone, as everywhere in the closed form), other
 * jobs, hash collisions, placements other than in order. The flow network models those.
 */
#ifndef MSIM_MODEL_COST_KERNEL_OVERSUBSCRIPTION_H
#define MSIM_MODEL_COST_KERNEL_OVERSUBSCRIPTION_H

#include "model/layout/layout.h"

/* The number of halves of S that the busiest node of double binary trees sends: to two children and a parent in the tree in
 * which it is an inner node, to a parent in the other. With two and three nodes it is smaller. */
#define COLLECTIVE_TREE_LINKS 4

/* The load of the fullest links above leaves or pods, over their capacity, while all groups of a kind send around rings at
 * their NICs' rate; 0: nothing leaves a leaf. */
double oversubscription_of_rings(const struct cluster *cluster, struct group_span span);
/* The same for double binary trees over the domains in order. */
double oversubscription_of_trees(const struct cluster *cluster, struct group_span span);
/* The same while every rank sends to all others of its group. */
double oversubscription_of_all_to_all(const struct cluster *cluster, struct group_span span);
/* The same while every stage sends to the next; `span` of GROUP_PP. */
double oversubscription_of_stages(const struct cluster *cluster, struct group_span span);
/* The factor by which the bandwidth term of pipeline messages between nodes is longer on average than that of a message alone
 * on the fabric; at least 1. */
double oversubscription_of_messages(const struct cluster *cluster, const struct layout *layout);

#endif
