/*
 * machine.h - the cost of a work, a message or a collective on a given cluster under a given layout.
 *
 * Example:
 *
 *     struct machine machine = machine_of(&layout, &setting);          one per layout; cheap, allocates nothing
 *     work_cost(&machine, &program.works, op->work)                    seconds of a computation, by launch, compute, memory, ...
 *     collective_cost(&machine, COLLECTIVE_ALL_REDUCE, machine.spans[GROUP_DP], bytes)
 *
 * All functions are pure.
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
    double pace; /* factor by which arithmetic takes longer than in kernels timed alone on an average GPU; see "Pace" below */
    double documents;        /* query-key pairs of documents beyond those of an average sequence, relative to these; 0: average */
    struct gemm_memo *gemms; /* memo of products; NULL: none */
    struct documents_memo *walks; /* memo of documents; NULL: none */
    int hosts; /* ranks of one model replica, which wait for each other in every micro-batch; 0: pauses are not counted */
};
struct machine machine_of(const struct layout *layout, const struct setting *setting);
/* The span over which replicas (GROUP_DP; of experts GROUP_EXPERT_DP; of shards GROUP_REPLICA) exchange gradients and weights.
 * ZeRO-3 without dp_overlap sends each matrix when it is needed, from the rank that owns it, so through one NIC and not through
 * all NICs of a domain at once. (Megatron-LM's SC'21 table 2: both of its models exchange at 21 to 23 GB/s per GPU on a NIC of
 * 25 GB/s, from 640 to 2,240 GPUs.) */
struct group_span replica_span(const struct layout *layout, const struct cluster *cluster, enum group_kind group);
/* The number of members of a domain that take turns in this way, through one NIC at a time. 1: all send at once, or it is
 * another kind of group. */
int replica_turns(const struct layout *layout, const struct cluster *cluster, enum group_kind group, struct group_span span);
/* Sets pace, the last part of machine_of. The spans of groups inside a layer must be set. */
void machine_set_pace(struct machine *machine, const struct setting *setting, int gpus);

/*
 * Pace. Two things make a GPU in a training job slower than a kernel timed alone. Power: the controller averages over a longer
 * time than a layer takes. So the clock falls in proportion to the share of time in which tensor cores work, from 1 when they
 * idle to gpu.sustained_clock when they always work. Lockstep: a synchronous job runs at the speed of its slowest GPU.
 */

/* The pace of the slowest of n GPUs relative to the average one. Clocks are normally distributed with relative standard
 * deviation `spread`. Result: 1 + spread times the expected maximum of n standard normals (Blom 1958: the quantile of (n - 3/8)
 * / (n + 1/4)). */
double slowest_of(int n, double spread);

/*
 * Pauses. A Python process stops from time to time to collect garbage. The frequency depends on how many long-lived objects it
 * makes; eager checkpointing makes some per layer and micro-batch. Ranks do not stop together. So a rank that stops holds up
 * all ranks of its tensor-parallel group and, with 1F1B's tight coupling, of its pipeline. A micro-batch is late by the pauses
 * of all of them:
 * gpu.host_pause per checkpointed layer and rank. (MegaScale, section 6.3, names irregular garbage collection as a cause of
 * slow steps.) Returns seconds per micro-batch.
 */
double pause_seconds(const struct cluster *cluster, int hosts, double layers);

/*
 * Interference. An exchange of t seconds (alone) that overlaps with a computation occupies one SM per channel. The bytes that
 * pass through the GPU (on the bus) are written where they arrive, read, and written or read once more: up to three bytes of
 * memory traffic each, less what the cache keeps. Inside an NVLink domain NCCL uses all its channels, between domains two per
 * NIC of the group. The computations that overlap with the exchange lose, in seconds,
 *
 *     interference = channels / SMs t + traffic bytes / HBM rate,
 *
 * at most t: then they make no progress during the exchange. An entry with one SM is a device measured as a whole (msim probe).
 * For a GPU only the traffic is then known. Where ranks have fewer than two cores each, an exchange uses the core that would
 * compute (gpu.exchange_share).
 */
double overlap_interference_s(const struct cluster *cluster, enum collective collective, struct group_span span, double bytes,
                              double seconds);

/*
 * Pieces. A product and the exchange of its input or output are cut along the sequence into n equal pieces: n products, each
 * launched separately, that overlap with n exchanges. The first exchange (or the last one, where the product comes first)
 * overlaps with no product. With g and c the times of the product and the exchange of a piece, the pair takes
 *
 *     c + (n g overlapped with (n - 1) c),
 *
 * where an exchange takes SMs from the overlapping product. Attention between documents has most of its pairs in the first step
 * of a ring, with the rank's own keys: c + (g' overlapped with c) + ((n - 1) g overlapped with (n - 2) c), as one step is
 * fetched ahead. n is the power of two up to work_sequence.pieces with the shortest time; executors cut a pair into the same
 * number of pieces.
 */
struct work_parts {
    int pieces;                   /* n; 1: not cut, one after the other; 0: independent, they overlap as a whole */
    double compute_s, exchange_s; /* seconds of a piece */
    double first_s; /* seconds of the first piece where later ones compute less (attention to documents in a ring); 0 elsewhere */
};
struct work_parts work_parts_of(const struct machine *machine, const struct work_table *table, int32_t overlapped);
/* The largest number of pieces of any pair with an exchange over the tensor-parallel group, at least 1. Each rank holds its
 * part of the sequence as that many slices, so that a piece is a contiguous part of the whole; see runtime/base/rank.h. */
int work_slices(const struct machine *machine, const struct work_table *table);

/*
 * The host. A pass's kernels are enqueued one by one while the device works on earlier ones. Returns the seconds that a pass
 * takes beyond the device's own time because of that. Neither side is even: where the two are about equal, the device starves
 * at some places and has a queue at others. So they combine as a third-power mean and not as a maximum. The host runs ahead
 * within a pass, so this applies to the pass and not to each layer: during a long kernel (the head's) the host enqueues the
 * layers next to it.
 */
double starved_seconds(double host_s, double device_s);
/* Seconds that the host needs to enqueue a pass; 0 for works that it does not limit. */
double work_host_seconds(const struct machine *machine, const struct work_table *table, int32_t work);

/* The cost of a leaf work, of a whole sequence, or of a pass that is paired with another one (WORK_PART). The two parts of a
 * pair add up to max(c1 + c2, e1 + e2, c1 + e1, c2 + e2) of their computations c and exchanges e. */
struct cost work_cost(const struct machine *machine, const struct work_table *table, int32_t work);
/* The same by class; added to `by`. The total equals cost_seconds(work_cost(...)) up to rounding. */
void work_cost_by_class(const struct machine *machine, const struct work_table *table, int32_t work, struct cost_by_class *by);

/* The cost of a collective over a group that has the fabric to itself; bytes of the full buffer (all-gather: the result). */
struct cost collective_cost(const struct machine *machine, enum collective collective, struct group_span span, double bytes);
/* The factor by which an oversubscribed fabric lengthens its bandwidth term; 1: not at all (oversubscription.h). */
double collective_over(const struct machine *machine, enum collective collective, struct group_span span, double bytes);
/* The same for a work that is an exchange, or a pair with one; 1 for others. */
double work_over(const struct machine *machine, const struct work_table *table, int32_t work);
/* The same for a message: the mean over those that leave a leaf and those that do not. */
double p2p_over(const struct machine *machine);
/* Whether the whole job is in one NVLink domain. If not, messages between stages leave their domain. */
bool stages_share_domain(const struct machine *machine);
/* The cost of one pipeline message between neighbouring stages; `bytes` as one rank sends them. */
struct cost p2p_cost(const struct machine *machine, double bytes);
/* Bytes that one rank sends to the next stage per micro-batch (bf16 activations, divided by sequence parallelism or
 * scatter-gather). */
double p2p_bytes(const struct layout *layout, const struct setting *setting);

#endif
