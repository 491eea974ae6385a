/*
 * collective.h - the time of a collective over a group. Groups of its kind run at the same time; nothing else uses the fabric.
 *
 * Example: all-gather over the 8 GPUs of an H100 node; 500 MiB is the gathered result.
 *
 *     span = {.ranks = 8, .ranks_per_domain = 8, .domains = 1, ...}
 *     collective_time(cluster, COLLECTIVE_ALL_GATHER, span, 500 MiB)      1,388 us: 10 latency, 1,378 bandwidth
 *
 * Symbols: n ranks; S bytes of the full buffer as nccl-tests counts it: the result of an all-gather, the input of an all-reduce
 * or reduce-scatter, the bytes that one rank of an all-to-all sends. V = S (n-1)/n, doubled for an all-reduce. Inside one
 * NVLink domain
 *
 *     ring:  time = base + hop steps + (V + p c S / n) / B (1 + sqrt(R / S))
 *     NVLS:  time = base + hop steps + S / N (1 + sqrt(R / S)),   all-reduce over 4 or more ranks, where the switch can reduce;
 * the faster one counts; steps = n-1, 2(n-1) for all-reduce, 1 for all-to-all.
 *
 * B is the bus bandwidth of all channels. c is the own part: the channels also move the rank's own part S/n from input to
 * output, and the links are idle meanwhile. That is why two ranks see less bus bandwidth than eight (H100: 258 and 335 GB/s at
 * 512 MiB; one B and one c give both). p = 1; 1/2 for an all-reduce (a free fit gives 0.34 to 0.47 on five GPUs); 0 for a
 * broadcast. An all-to-all sends its own part to itself like the others and has a c of its own. R is the ramp. NCCL cuts a
 * message into channels and chunks, and few chunks do not fill the ring; short messages use protocols that carry flags with the
 * data (LL half, LL128 120/128 of the bandwidth). The model has no switch of protocols. NCCL's choice makes times jump by up to
 * a factor of two between 2 and 8 MiB (all-gather over 4 ranks: A100 22 to 53 us from 1 to 2 MiB, B200 27 to 53 us from 4 to 8
 * MiB), and the fit goes through the middle.
 *
 * Across domains, the group has r ranks in each of d domains. The ring crosses each NIC once, and r NICs per domain share the
 * traffic, so B = min(B, r NIC rate net_fraction / (sharing contention)). Steps are of two kinds: NVLink steps, and steps
 * between domains, which cost the network latency (NCCL's tuning constants). Filling the ring takes time, so R shrinks as B
 * does, sharing aside (A100 and H100 with one NIC per GPU: 0.6 MB, about NCCL's chunk of 512 KiB). An all-reduce may use a
 * tree: 2 log2(d) network steps and the longer of min(d, 4) / 2 S over the NICs and 2 S (r-1)/r over NVLink (chains over the
 * ranks of a domain, up and down; S / N where the switch reduces), at 0.92 of the bandwidth. An all-to-all sends the part (n -
 * r)/n of S over the NIC of the rank and the rest over NVLink.
 *
 * A cluster with measured collectives may add to the base (net_base) and a time net_fill min(1, S / net_fill_bytes): where
 * messages pass through host memory, they fill more stages before the NICs are busy. With both, GPUDirect-TCPXO's all-reduce
 * over two nodes of eight H100 fits within 3 % from 1 MiB to 8 GiB; neither explains it alone.
 *
 * The cluster's `collective_algorithm` chooses among them. By default NCCL uses the faster one; a ring or a tree can be
 * required. Or the hierarchical schedule, with one phase after the other instead of one pipelined ring (Jia et al. 2018,
 * arXiv:1807.11205; Mikami et al. 2018, arXiv:1811.05233):
 *
 *     reduce-scatter of S over the r ranks of a domain; on every rail the collective of S / r over the d domains, as a ring;
 *     all-gather of S over the r ranks
 *
 * A reduce-scatter has no last phase, and an all-gather no first one. The time is the sum. The middle phase carries V = S
 * (d-1)/d, doubled for an all-reduce, over the NICs of the domain, in d - 1 steps instead of n - 1. So it is faster than the
 * flat ring where latency counts and slower where bandwidth does. Groups with one rank per domain have only the middle phase.
 *
 * Where all groups of the kind together would overload the links above leaves or pods, r NIC rates are divided by the overload,
 * and in an all-to-all the part that leaves the domain takes longer by it (oversubscription.h). NCCL's choice of the algorithm
 * does not depend on it, because NCCL knows only the rate of its NICs. Real fabrics also have collisions; the flow network
 * models those.
 */
#ifndef MSIM_MODEL_COST_KERNEL_COLLECTIVE_H
#define MSIM_MODEL_COST_KERNEL_COLLECTIVE_H

#include "model/cost/work/cost.h"
#include "model/cost/work/work.h"

/* The span of `ranks` consecutive ranks on `nodes` whole nodes of a cluster that runs nothing else. */
struct group_span collective_span_of_nodes(const struct cluster *cluster, int ranks, int nodes);
/* The cost in seconds of one collective; `bytes` is S. */
struct cost collective_time(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes);
/* The same in three phases: inside the domains, over the network (all of it where the algorithm pipelines), inside. */
struct collective_phases {
    struct cost before, network, after;
};
struct collective_phases collective_phases(const struct cluster *cluster, enum collective collective, struct group_span span,
                                           double bytes);
/*
 * The cost of an all-to-all that sends copies of each token to experts spread evenly over the group; `bytes` counts all copies.
 *
 * A token crosses the network once to each domain that holds one of its experts and is copied there over NVLink (DeepSeek-AI
 * 2024, section 3.2.2; DeepEP, HybridEP), or every copy crosses by itself where that is faster. k independent copies reach d (1
 * - (1 - 1/d)^k) of d domains, where d counts the domains of the groups of experts to which the router limits itself. Where
 * experts have unequal loads (token_copies.rank_load), the NICs of the busiest domain carry the tokens with a copy there. With
 * x d copies out of d this is (1 - (1 - x/d)^k) / (1 - (1 - 1/d)^k) times the mean. NVLink there carries the load of the
 * busiest rank.
 */
struct cost dispatch_time(const struct cluster *cluster, struct group_span span, double bytes, struct token_copies tokens);
/* Seconds during which a ring or tree keeps the NICs busy: its bandwidth term, or less where the links inside domains are
 * slower. */
double collective_nics_s(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes);
/* Seconds of an exchange during which the NICs of its group in a domain send: its bytes on the bus, and those of the groups
 * that share the NICs, over their rate; at most its transmission time. 0 inside a domain. Source: counted. */
double collective_sending_s(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes,
                            struct cost exchange);
/* V: the bytes that pass over each edge of a ring. */
double collective_ring_bytes(enum collective collective, struct group_span span, double bytes);
/* Whether an all-reduce of `bytes` over this group uses the tree. */
bool collective_takes_tree(const struct cluster *cluster, struct group_span span, double bytes);
/* The cost of one message between two ranks, in the same NVLink domain or not. */
struct cost message_time(const struct cluster *cluster, double bytes, bool same_domain);

#endif
