/*
 * collective.h - time of a collective over a group with the fabric to itself.
 *
 * Symbols: n ranks, S bytes of the full buffer (as nccl-tests counts it: what all-gather produces, what all-reduce and
 * reduce-scatter take, what one rank of an all-to-all sends), V = S (n-1)/n, doubled for an all-reduce. Inside one NVLink domain
 *
 *     ring:  time = base + hop steps + V / B (1 + sqrt(R / S)),   steps = n-1, 2(n-1) for all-reduce, 1 for all-to-all
 *     NVLS:  time = base + hop steps + S / N (1 + sqrt(R / S)),   all-reduce over 4 or more ranks, where the switch can reduce;
 * the faster one counts
 *
 * B is the bus bandwidth of all channels, R the ramp: NCCL cuts a message into channels and chunks, and a message of few chunks
 * does not fill the ring (and small ones use protocols that carry flags with the data). Fitted per GPU to nccl-tests at 2, 4, 8
 * ranks.
 *
 * Across domains, r ranks of the group in each of d domains: the ring crosses each NIC once, r NICs per domain share the traffic,
 * so B = min(B, r NIC rate net_fraction / (sharing contention)) and steps split into inter-domain ones, which cost the network
 * latency (NCCL's tuning constants), and NVLink ones. All-reduce may take a tree: 2 log2(d) network steps and 2 S / B at 0.92 of
 * the bandwidth. All-to-all sends the part (n - r)/n of S over the NIC of the rank, the rest over NVLink.
 *
 * Oversubscribed layers: the part of a ring's hops that leave a pod is small (rings follow placement), so rings keep their
 * bandwidth and only all-to-all beyond a pod divides by the oversubscription. Real fabrics collide; that is the flow network's
 * subject.
 */
#ifndef MSIM_MODEL_COST_COLLECTIVE_H
#define MSIM_MODEL_COST_COLLECTIVE_H

#include "model/cost/cost.h"
#include "model/cost/work.h"

struct cost collective_time(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes);
/* Does an all-reduce over this group take the tree? */
bool collective_takes_tree(const struct cluster *cluster, struct group_span span, double bytes);
/* One message of a rank to another one, in the same NVLink domain or not. */
struct cost message_time(const struct cluster *cluster, double bytes, bool same_domain);

#endif
