/*
 * machine.h - what a work, a message, a collective costs on a given cluster under a given layout.
 *
 * Build one machine per layout (cheap: no allocation), then ask. All functions are pure.
 */
#ifndef MSIM_MODEL_COST_KERNEL_MACHINE_H
#define MSIM_MODEL_COST_KERNEL_MACHINE_H

#include "model/cost/work/work.h"

struct documents_memo;
struct gemm_memo;

struct machine {
    const struct cluster *cluster;
    const struct layout *layout;
    const struct job *job;
    struct group_span spans[N_GROUP_KINDS];
    double pace;             /* arithmetic takes this much longer than on one average GPU with kernels timed alone; see below */
    double documents;        /* query-key pairs of documents beyond those of an average sequence, relative to these; 0 */
    struct gemm_memo *gemms; /* where what products take is kept; NULL: nowhere */
    struct documents_memo *walks; /* and what is known of documents; or NULL */
    int hosts; /* ranks that wait for one another in every micro-batch: of one model replica; 0: pauses are not counted */
};
struct machine machine_of(const struct layout *layout, const struct setting *setting);
/* The span over which replicas (GROUP_DP; of experts GROUP_EXPERT_DP; of shards GROUP_REPLICA) exchange gradients and weights.
 * ZeRO-3 without dp_overlap sends each matrix as it is needed, from the rank that owns it: through one NIC, not through all of a
 * domain at once. (Megatron-LM's SC'21 table 2: both of its models exchange at 21 to 23 GB/s a GPU on a NIC of 25 GB/s, from 640
 * to 2,240 GPUs alike.) */
struct group_span replica_span(const struct layout *layout, const struct cluster *cluster, enum group_kind group);
/* How many members of a domain take turns at that, through one NIC at a time; 1: all send at once, or it is another kind of
 * group. */
int replica_turns(const struct layout *layout, const struct cluster *cluster, enum group_kind group, struct group_span span);
/* What machine_of does last; the spans of groups inside a layer must be there. */
void machine_set_pace(struct machine *machine, const struct setting *setting, int gpus);

/*
 * Pace. Two things make a GPU in a training job slower than a kernel timed alone. Power: the controller averages over longer than
 * a layer takes, so the clock falls in proportion to the share of time in which tensor cores work, from 1 when they idle to
 * gpu.sustained_clock when they always work. Lockstep: a synchronous job runs at the speed of its slowest GPU.
 */

/* The slowest of n GPUs whose clocks are normally distributed with relative standard deviation `spread`, against the average one:
 * 1 + spread times the expected maximum of n standard normals (Blom 1958: the quantile of (n - 3/8) / (n + 1/4)). */
double slowest_of(int n, double spread);

/*
 * Pauses. A Python process stops now and then to look for garbage among its objects; how often follows from how many long-lived
 * ones it makes, of which eager checkpointing makes some for each layer and micro-batch. Ranks do not stop together, so whoever
 * stops holds up all ranks of its tensor parallel group and, with 1F1B's tight coupling, of its pipeline: a micro-batch is late
 * by the pauses of all of them, gpu.host_pause for each checkpointed layer of each rank. (MegaScale, section 6.3, names irregular
 * garbage collection among the causes of slow steps.)
 */
double pause_seconds(const struct cluster *cluster, int hosts, double layers);

/*
 * Crowding. While an exchange of t seconds (alone) runs beside a computation its kernels occupy SMs, one a channel, and the bytes
 * that pass through the GPU (on the bus) are written where they arrive, read, and written or read once more: up to three bytes of
 * memory traffic each, less what the cache keeps. Inside an NVLink domain NCCL makes all its channels, between domains two for
 * each NIC that the group has there. What the computations beside an exchange lose, in seconds, is
 *
 *     interference = channels / SMs t + traffic bytes / HBM rate,
 *
 * at most t: then they stand still meanwhile. An entry with one SM is of a device measured as a whole (msim probe): of a GPU only
 * the traffic is known; where ranks have fewer than two cores each, an exchange takes the core that would compute
 * (gpu.exchange_share).
 */
double overlap_interference_s(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes,
                              double seconds);

/*
 * Pieces. A product and the exchange of its input or its output are cut along the sequence into n equal pieces: n products of a
 * piece's rows, each launched for itself, beside n exchanges of a piece's bytes. The first exchange (or, where the product comes
 * first, the last) has no product beside it. With g and c the time of a piece's product and exchange the pair takes
 *
 *     c + (n g beside (n - 1) c),
 *
 * where an exchange takes SMs from the product beside it. Attention between documents has most of its pairs in the first step of
 * a ring, with a rank's own keys: c + (g' beside c) + ((n - 1) g beside (n - 2) c), as one step is fetched ahead. n is the power
 * of two up to work_sequence.pieces that takes least; the executor cuts a pair into as many.
 */
struct work_parts {
    int pieces;                   /* n; 1: one after the other; 0: independent ones, simply side by side */
    double compute_s, exchange_s; /* of a piece */
    double first_s;               /* of the first, where others compute less: attention to documents in a ring; otherwise 0 */
};
struct work_parts work_parts_of(const struct machine *machine, const struct work_table *table, int32_t overlapped);
/* Most pieces of any pair whose exchange is over the tensor-parallel group, at least 1. What that group divides of a sequence
 * stands in as many slices on each rank, so that a piece is a stretch of the whole; see runtime/base/rank.h. */
int work_slices(const struct machine *machine, const struct work_table *table);

/*
 * The host. A pass's kernels are enqueued one by one while the device works on those before. What the pass takes beyond the
 * device's own time for that: neither is even, so where the two are about equal the device starves in places and runs behind in
 * others, and they combine as a third-power mean rather than a maximum. The host runs ahead within a pass, so it is the pass that
 * starves, not each of its layers: a long kernel (the head's) is time to enqueue the layers beside it.
 */
double starved_seconds(double host_s, double device_s);
/* What the host takes to enqueue a pass; 0 of what it does not pace. */
double work_host_seconds(const struct machine *machine, const struct work_table *table, int32_t work);

/* One leaf work, a whole sequence, or what a part of a pass takes beside another pass (WORK_PART; the two passes' shares add up
 * to the pair: max(c1 + c2, e1 + e2, c1 + e1, c2 + e2) of what they compute and exchange). */
struct cost work_cost(const struct machine *machine, const struct work_table *table, int32_t work);
/* The same split by class; `by` is added to. Total equals cost_seconds(work_cost(...)) up to rounding. */
void work_cost_by_class(const struct machine *machine, const struct work_table *table, int32_t work, struct cost_by_class *by);

/* A collective over a group with nothing else in the way; bytes of the full buffer (all-gather: the gathered result). */
struct cost collective_cost(const struct machine *machine, enum collective collective, struct group_span span, double bytes);
/* How many times as long an oversubscribed fabric makes what bandwidth takes of it; 1: not at all (oversubscription.h). */
double collective_over(const struct machine *machine, enum collective collective, struct group_span span, double bytes);
/* The same of a work that is an exchange, or a pair with one; 1 of others. */
double work_over(const struct machine *machine, const struct work_table *table, int32_t work);
/* The same of a message, the mean of those that leave a leaf and those that do not. */
double p2p_over(const struct machine *machine);
/* Is the whole job in one NVLink domain? Otherwise messages between stages leave theirs. */
bool stages_share_domain(const struct machine *machine);
/* One pipeline message between neighbouring stages; bytes as one rank sends them. */
struct cost p2p_cost(const struct machine *machine, double bytes);
/* Bytes one rank sends to the next stage for one micro-batch (bf16 activations, split by sequence parallelism or scatter-gather).
 */
double p2p_bytes(const struct layout *layout, const struct setting *setting);

#endif
