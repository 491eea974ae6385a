/*
 * data_loading.h - the time to load a batch, for which a step waits before its first forward pass unless async_data is used.
 *
 * Example: 32 samples per replica and step, data_sample = 1 ms, 4,096 tokens each, PCIe at 25 GB/s.
 *
 *     time = samples * data_sample + bytes / PCIe rate = 32 * 1 ms + 32 * 4096 * 2 * 8 B / 25 GB/s = 32.08 ms
 *
 * Tokens and labels are 8 bytes each on the way to the GPU. `samples` are those of one replica in one step. `data_sample`, a
 * parameter of the cluster, is the host's time to read, assemble and hand over a sample. With async_data the step does not
 * wait: MegaScale (section 3.4) prepares the next batch while gradients are exchanged, and reads each sample once per machine.
 */
#ifndef MSIM_MODEL_COST_KERNEL_DATA_LOADING_H
#define MSIM_MODEL_COST_KERNEL_DATA_LOADING_H

#include "model/cost/work/work.h"

/* Adds the batch of one replica as a work of class host; returns its index. */
int32_t work_add_data(struct work_table *table, const struct layout *layout, const struct setting *setting);
/* Seconds to load this batch. */
struct cost data_loading_cost(const struct cluster *cluster, const struct work_data *data);
/* Seconds that a step waits before its first forward pass; 0 with async_data. */
double data_loading_seconds(const struct layout *layout, const struct setting *setting);

#endif
