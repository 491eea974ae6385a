/*
 * collective.h - time of a collective over a group, with the fabric to itself and the other groups of its kind.
 *
 * Symbols: n ranks, S bytes of the full buffer (as nccl-tests counts it: what all-gather produces, what all-reduce and
 * reduce-scatter take, what one rank of an all-to-all sends), V = S (n-1)/n, doubled for an all-reduce. Inside one NVLink domain
 *
 *     ring:  time = base + hop steps + (V + p c S / n) / B (1 + sqrt(R / S))
 *     NVLS:  time = base + hop steps + S / N (1 + sqrt(R / S)),   all-reduce over 4 or more ranks, where the switch can reduce;
 * the faster one counts; steps = n-1, 2(n-1) for all-reduce, 1 for all-to-all.
 *
 * B is the bus bandwidth of all channels. c is the own part: the same channels also move the rank's own part S/n, from input to
 * output, while the links are idle; that is why two ranks see less bus bandwidth than eight (H100 258 and 335 GB/s at 512 MiB,
 * one B and one c give both). p = 1, and 1/2 for an all-reduce (free, it fits to 0.34 to 0.47 on five GPUs), 0 for a broadcast.
 * An all-to-all sends its own part to itself like the others, which has a c of its own. R is the ramp: NCCL cuts a message into
 * channels and chunks, and one of few chunks does not fill the ring; short ones use protocols that carry flags with the data (LL
 * half, LL128 120/128 of the bandwidth). The model has no switch of protocols: NCCL's own choice makes times jump by up to a
 * factor of two between 2 and 8 MiB (all-gather over 4 ranks: A100 22 to 53 us from 1 to 2 MiB, B200 27 to 53 us from 4 to 8
 * MiB), and the fit goes through the middle.
 *
 * Across domains, r ranks of the group in each of d domains: the ring crosses each NIC once, r NICs per domain share the traffic,
 * so B = min(B, r NIC rate net_fraction / (sharing contention)) and steps split into inter-domain ones, which cost the network
 * latency (NCCL's tuning constants), and NVLink ones. Filling the ring takes a time, so R shrinks as B does, sharing aside
 * (A100 and H100 with a NIC a GPU: 0.6 MB, about NCCL's chunk of 512 KiB). All-reduce may take a tree: 2 log2(d) network steps
 * and the longer of min(d, 4) / 2 S over the NICs and 2 S (r-1)/r over NVLink (chains over the ranks of a domain, up and down; S
 * / N where the switch reduces), at 0.92 of the bandwidth. All-to-all sends the part (n - r)/n of S over the NIC of the rank, the
 * rest over NVLink.
 *
 * A cluster whose collectives were measured may add to the base (net_base) and a time net_fill min(1, S / net_fill_bytes): where
 * messages pass through host memory, they fill more stages before the NICs are busy. With both, GPUDirect-TCPXO's all-reduce over
 * two nodes of eight H100 fits within 3 % from 1 MiB to 8 GiB; neither explains it alone.
 *
 * Which of them is the cluster's `collective_algorithm`: NCCL takes the quicker one; a ring or a tree can be demanded. Or the
 * hierarchical schedule, one phase after the other instead of one pipelined ring (Jia et al. 2018,
 * arXiv:1807.11205; Mikami et al. 2018, arXiv:1811.05233),
 *
 *     reduce-scatter of S over the r ranks of a domain; on every rail the collective of S / r over the d domains, as a ring;
 *     all-gather of S over the r ranks
 *
 * of which a reduce-scatter leaves out the last and an all-gather the first phase. Its time is the sum; the middle phase carries
 * V = S (d-1)/d, doubled for an all-reduce, over the NICs of the domain, in d - 1 steps instead of n - 1. So it is quicker than
 * the flat ring where latency counts and slower where bandwidth does. Groups with one rank in a domain have only the middle
 * phase.
 *
 * Where all groups of the kind at once would overfill what is above leaves or pods, r NIC rates are divided by how much, and in
 * an all-to-all what leaves the domain takes so much longer (oversubscription.h). Which algorithm NCCL takes does not depend on
 * it: it knows the rate of its NICs. Real fabrics collide; that is the flow network's subject.
 */
#ifndef MSIM_MODEL_COST_KERNEL_COLLECTIVE_H
#define MSIM_MODEL_COST_KERNEL_COLLECTIVE_H

#include "model/cost/work/cost.h"
#include "model/cost/work/work.h"

/* The span of `ranks` consecutive ranks on `nodes` whole nodes of a cluster, which nobody else uses. */
struct group_span collective_span_of_nodes(const struct cluster *cluster, int ranks, int nodes);
struct cost collective_time(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes);
/* The same one after the other: inside the domains, over the network (all of it where the algorithm pipelines), inside. */
struct collective_phases {
    struct cost before, network, after;
};
struct collective_phases collective_phases(const struct cluster *cluster, enum collective collective, struct group_span span,
                                           double bytes);
/* An all-to-all of copies of each token (bytes: all copies) to experts spread evenly over the group. A token crosses the network
 * once to each domain that holds one of its experts, and is copied there over NVLink (DeepSeek-AI 2024, section 3.2.2; DeepEP,
 * HybridEP), or every copy for itself where that is quicker. k independent copies reach d (1 - (1 - 1/d)^k) of d domains, where d
 * counts the domains of the groups of experts that the router limits itself to. Where experts are not loaded alike
 * (token_copies.rank_load) the NICs of the busiest domain carry the tokens of which a copy goes there, x of d for x d copies: (1
 * - (1 - x/d)^k) / (1 - (1 - 1/d)^k) times the mean, and NVLink there what the busiest rank gets. */
struct cost dispatch_time(const struct cluster *cluster, struct group_span span, double bytes, struct token_copies tokens);
/* How long a ring or tree keeps the NICs busy: its bandwidth term, or less where the links inside domains hold it up. */
double collective_nics_s(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes);
/* How long of an exchange's time the NICs that its group has in a domain are sending: its bytes on the bus, and those of the
 * groups that share them, over their rate, at most its transmission. 0 inside a domain. Source: counted. */
double collective_sending_s(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes,
                            struct cost exchange);
/* V: what passes on the bus, over each edge of a ring. */
double collective_ring_bytes(enum collective collective, struct group_span span, double bytes);
/* Does an all-reduce over this group take the tree? */
bool collective_takes_tree(const struct cluster *cluster, struct group_span span, double bytes);
/* One message of a rank to another one, in the same NVLink domain or not. */
struct cost message_time(const struct cluster *cluster, double bytes, bool same_domain);

#endif
