/*
 * oversubscription.h - what a fabric that is narrower above its leaves or pods than below adds to exchanges between nodes.
 *
 * A GPU sends as fast as its NICs take it. While all groups of one kind do so at once, a part e of what the GPUs of a leaf (the
 * nodes under one ToR set) send goes to other leaves (struct group_exits, model/layout/layout.h), and with k the NICs' rate over
 * that of the links above the leaf these are loaded k e of what they carry. Above 1 the exchange takes so much longer: its
 * bandwidth term is multiplied by
 *
 *     max(1, k e of leaves, k e of pods)
 *
 * with k of leaves what `leaf_oversubscription` makes of their ports (cluster_leaf_oversubscription), k of pods that times the
 * same of `pod_oversubscription`. Fair flows over paths that are used evenly take exactly that
 * (tests/sim/fabric/test_narrow_fabric.c). Of groups over D domains that fill L leaves (or pods):
 *
 *     ring          domains in order send to the next, and L of D hops leave a leaf: e = L / D. Where groups do not fill leaves
 *                   what the leaf has of each is counted (model/layout/span.c), and e is that of the leaf where most leaves.
 *                   So of every ring: rails of a hierarchical collective, shards, replicas of shards and of experts, keys and
 *                   values in context parallelism.
 *     tree          3/2 of that, at most 1, where a leaf between others has several domains: each of the two trees has
 *                   three edges between such a leaf and others, while the busiest NIC sends over four (collective.c)
 *     all-to-all    e = (1 - 1/L) / (1 - 1/D)
 *     message       e: of the GPUs under the leaf those whose next stage is under another one. Only messages that leave take
 *                   longer, and a pipeline is filled and drained hop by hop: the mean of all messages counts, of those that
 *                   stay and of those that leave. Where the last leaf, or the last one that sends, is full in part only, so
 *                   are the links of what goes there
 *     in turns      (machine.h, replica_turns) one of the NICs is full at a time, so of a ring's e that part
 *
 * A dragonfly's leaves are its switches (those that a node's NICs go round), its pods its groups, its k what NICs send over what
 * local cables and global cables carry (model/spec/cluster.h). What leaves a group takes a local cable in both. A ring sends to
 * one other switch or group and so over a part of the cables; adaptive routing sends the rest around, over two instead of one. Of
 * `of` switches or groups, of which the job has q and each sends to p - 1 others, the direct cables carry p - 1 parts, those over
 * idle ones of - q, and those over busy ones half of q - p, as each way around takes from two. So k is longer by
 *
 *     (of - 1) / (of - 1 - (q - p) / 2),     p = 2 for rings and messages, p = L or pods in an all-to-all.
 *
 * Not modelled: kinds that exchange at the same time (each is timed alone, as everywhere in the closed form), other jobs, hashes
 * that collide, placements other than in order. Those are the flow network's subject.
 */
#ifndef MSIM_MODEL_COST_KERNEL_OVERSUBSCRIPTION_H
#define MSIM_MODEL_COST_KERNEL_OVERSUBSCRIPTION_H

#include "model/layout/layout.h"

/* Halves of S that the busiest node of double binary trees sends: to two children and a parent in the tree in which it is inside,
 * to a parent in the other; two and three nodes have fewer of them. */
#define COLLECTIVE_TREE_LINKS 4

/* The load of the fullest links above leaves or pods, over what they carry, while all groups of a kind send in order around at
 * their NICs' rate; 0: none leaves a leaf. */
double oversubscription_of_rings(const struct cluster *cluster, struct group_span span);
/* The same while they are double binary trees over the domains in order. */
double oversubscription_of_trees(const struct cluster *cluster, struct group_span span);
/* The same while every rank sends to all others of its group. */
double oversubscription_of_all_to_all(const struct cluster *cluster, struct group_span span);
/* The same while every stage sends to the next; `span` of GROUP_PP. */
double oversubscription_of_stages(const struct cluster *cluster, struct group_span span);
/* What a pipeline's messages between nodes take of bandwidth on average, over one that has the fabric to itself; at least 1. */
double oversubscription_of_messages(const struct cluster *cluster, const struct layout *layout);

#endif
