/*
 * host_memory.h - what the host keeps, and what it takes to have it there.
 *
 * The link. A copy of B bytes takes B / rate on a stream of its own direction, beside whatever the GPU computes: copy engines
 * need no SM, and what they take of the GPU's memory is left out (25 of 2,039 GB/s; of a Grace's link a tenth). A GPU reaches its
 * host over NVLink-C2C (gpu.host_rate) or PCIe (gpu.pcie_rate); pairs of GPUs share the lanes between a PCIe switch and its CPU,
 * unless the cluster says how many switches a node has, and get less where both copy. Of the nominal rate a copy reaches
 * HOST_LINK_FRACTION. NICs beside the GPUs, and what both directions and the host's cores ask of its memory at once, are not
 * counted.
 *
 * The update. Adam on the host's cores streams a gradient, the master weight and two moments (read), the latter three and a
 * 16-bit weight (written) through the node's memory, whose bandwidth the ranks of a node share; vector units keep up with that,
 * so the cores themselves are not the limit (they are for an Adam that is not vectorised: five times slower, and not what
 * frameworks ship).
 *
 * Memory. Optimizer states leave the GPU; gradients too where ZeRO shards them (layout_offloads_gradients), but for those
 * of OFFLOADED_GRADIENT_BUCKETS units of layers: one being made, one that leaves, and the sum that arrives. Of activations what
 * OFFLOADED_LAYERS_STAGED layers keep stays: two leaving while the next is computed, two arriving before their backward passes
 * (Transformer Engine's double buffers, in either direction). A stage that holds no more has nothing to gain. Of a rank's share
 * of the parameters FETCHED_UNITS units of layers are there: one being gathered, the next one arriving. Where a part of it is
 * offloaded, that part does so, and the rest stays and is updated where it is, beside the host's update.
 */
#ifndef MSIM_MODEL_COST_WORK_HOST_MEMORY_H
#define MSIM_MODEL_COST_WORK_HOST_MEMORY_H

#include "model/cost/work/work.h"

/* Buffers in each direction: what is computed on may be so far from what is copied. */
enum { OFFLOAD_BUFFERS = 2, OFFLOADED_LAYERS_STAGED = 2 * OFFLOAD_BUFFERS, OFFLOADED_GRADIENT_BUCKETS = 3, FETCHED_UNITS = 2 };

/* Of a link's nominal rate. Assumption, after what bandwidthTest shows of pinned memory: 12 to 13 of 15.75 GB/s (gen 3), 24 to 26
 * of 31.5 (gen 4), 52 to 55 of 63 (gen 5), 375 to 420 of 450 (NVLink-C2C). */
#define HOST_LINK_FRACTION 0.8
/* B/s that a GPU's share of the host's memory is taken to give where nobody says: a DGX A100's, 2 x 8 channels of DDR4-3200. */
#define HOST_MEMORY_RATE_UNKNOWN 51.2e9

/* B/s of a rank's copies in one direction while all ranks on its node copy. */
double host_link_rate(const struct cluster *cluster, const struct layout *layout);
/* The data sheet's rate (gpu.host_rate) of a link whose copies were measured to go on at `rate`, while as many copy. */
double host_nominal_rate(double rate);
/* B/s of the host's memory that a rank's share of an update gets, of the updates of all ranks on the node; where its bandwidth is
 * unknown, that of a DGX A100 is assumed. */
double host_update_rate(const struct cluster *cluster, const struct layout *layout);
/* The data sheet's bandwidth of a node's memory (cluster.host_memory_rate) where each of `ranks` on it was measured to update at
 * `rate` while all do. */
double host_nominal_memory_rate(double rate, int ranks);
/* Bytes of the host's memory that the update of a parameter is counted with. */
double host_update_bytes(const struct job *job);
/* Bytes of host memory for each rank, 0: unknown. */
double host_capacity(const struct cluster *cluster, const struct layout *layout);

/* A copy between GPU and host, either way; an update of n parameters on the host. */
int32_t work_add_copy(struct work_table *table, const char *label, double bytes);
int32_t work_add_host_update(struct work_table *table, const struct setting *setting, double parameters);
struct cost copy_cost(const struct cluster *cluster, const struct layout *layout, double bytes);
struct cost host_update_cost(const struct cluster *cluster, const struct layout *layout, double bytes);

/* Bytes a parameter: what the optimizer keeps of it (the fp32 master weight, and moments); of the weight that is computed with
 * the copy that an update writes in the host's memory, beside a master that is another; all that the host has, with the gradient,
 * in fp32; what comes back. */
double optimizer_state_bytes(const struct job *job);
double host_weight_bytes(const struct job *job);
double host_parameter_bytes(const struct job *job);
double offloaded_weight_bytes(const struct job *job);

#endif
