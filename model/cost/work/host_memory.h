/*
 * host_memory.h - costs of keeping states in the host's memory: copies, updates on the host's cores, capacity.
 *
 * Example: a GPU on PCIe gen 4 (31.5 GB/s nominal) copies the activations of a layer, 500 MB.
 *
 *     copy_cost(cluster, layout, 500e6)     500e6 / (0.8 * 31.5e9) = 20 ms, on the stream of its direction
 *
 * Copies. A copy of B bytes takes B / rate on the stream of its direction, and overlaps with the GPU's computations. Copy
 * engines need no SM, and their share of GPU memory bandwidth is ignored (25 of 2,039 GB/s; with a Grace's link a tenth). A GPU
 * reaches its host over NVLink-C2C (gpu.host_rate) or PCIe (gpu.pcie_rate). Unless the cluster states the number of switches
 * per node, pairs of GPUs share the lanes between a PCIe switch and its CPU, and get less where both copy. A copy reaches
 * HOST_LINK_FRACTION of the nominal rate. Not counted: NICs on the same lanes, and contention for host memory between both
 * directions and the host's cores.
 *
 * Update. Adam on the host's cores streams data through the memory of the node, whose bandwidth the ranks of a node share. It
 * reads a gradient, the master weight and two moments, and writes the latter three and a 16-bit weight. Vector units keep up
 * with that, so the cores are not the limit. (They are for an Adam without vector instructions, five times slower, which no
 * framework ships.)
 *
 * Memory. Optimizer states leave the GPU. Gradients leave where ZeRO shards them (layout_offloads_gradients), except
 * OFFLOADED_GRADIENT_BUCKETS units of layers: one being computed, one that leaves, and the sum that arrives. The activations of
 * OFFLOADED_LAYERS_STAGED layers stay: two leave while the next layer computes, two arrive before their backward passes
 * (Transformer Engine's double buffers, in either direction). A stage with at most that many layers gains nothing.
 * FETCHED_UNITS units of layers of a rank's share of the parameters are on the GPU: one being gathered, the next one arriving.
 * Where a part of the states is offloaded, all this applies to that part; the rest stays and is updated on the GPU, during the
 * host's update.
 */
#ifndef MSIM_MODEL_COST_WORK_HOST_MEMORY_H
#define MSIM_MODEL_COST_WORK_HOST_MEMORY_H

#include "model/cost/work/work.h"

/* Number of buffers in each direction, and of the layers and units above. Computation may be OFFLOAD_BUFFERS layers ahead of
 * copies. */
enum { OFFLOAD_BUFFERS = 2, OFFLOADED_LAYERS_STAGED = 2 * OFFLOAD_BUFFERS, OFFLOADED_GRADIENT_BUCKETS = 3, FETCHED_UNITS = 2 };

/* Achieved fraction of a link's nominal rate. Assumption, from bandwidthTest with pinned memory: 12 to 13 of 15.75 GB/s (gen
 * 3), 24 to 26 of 31.5 (gen 4), 52 to 55 of 63 (gen 5), 375 to 420 of 450 (NVLink-C2C). */
#define HOST_LINK_FRACTION 0.8
/* Default for a GPU's share of host memory bandwidth, B/s, where the cluster states none: a DGX A100's, 2 x 8 channels of
 * DDR4-3200. */
#define HOST_MEMORY_RATE_UNKNOWN 51.2e9

/* B/s of a rank's copies in one direction while all ranks on its node copy. */
double host_link_rate(const struct cluster *cluster, const struct layout *layout);
/* The nominal rate (gpu.host_rate) of a link whose copies were measured at `rate` while the same number of ranks copied. */
double host_nominal_rate(double rate);
/* B/s of host memory for a rank's update, while all ranks on the node update. Where the bandwidth is unknown, a DGX A100's is
 * assumed. */
double host_update_rate(const struct cluster *cluster, const struct layout *layout);
/* The nominal bandwidth of a node's memory (cluster.host_memory_rate), where each of `ranks` ranks was measured to update at
 * `rate` while all did. */
double host_nominal_memory_rate(double rate, int ranks);
/* Bytes read and written in host memory per updated parameter. */
double host_update_bytes(const struct job *job);
/* Bytes of host memory per rank, 0: unknown. */
double host_capacity(const struct cluster *cluster, const struct layout *layout);

/* Add a copy between GPU and host, in either direction, or an update of `parameters` parameters on the host. Return the index
 * of the work. */
int32_t work_add_copy(struct work_table *table, const char *label, double bytes);
int32_t work_add_host_update(struct work_table *table, const struct setting *setting, double parameters);
struct cost copy_cost(const struct cluster *cluster, const struct layout *layout, double bytes);
struct cost host_update_cost(const struct cluster *cluster, const struct layout *layout, double bytes);

/*
 * Bytes per parameter:
 * - optimizer_state_bytes    optimizer states (the fp32 master weight, and moments)
 * - host_weight_bytes        the copy of the computed weight that an update writes into host memory, next to a different master
 * - host_parameter_bytes     everything in host memory, with the gradient in fp32
 * - offloaded_weight_bytes   the weight that is copied back to the GPU
 */
double optimizer_state_bytes(const struct job *job);
double host_weight_bytes(const struct job *job);
double host_parameter_bytes(const struct job *job);
double offloaded_weight_bytes(const struct job *job);

#endif
