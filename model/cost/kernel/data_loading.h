/*
 * data_loading.h - what a step waits for before its first forward pass when nothing prepared its batch during the step before.
 *
 *     time = samples * data_sample + bytes / PCIe rate
 *
 * Tokens and labels are 8 bytes each on the way to the GPU; `samples` are those of one replica in one step, and `data_sample`, a
 * parameter of the cluster, is what the host needs per sample to read, assemble and hand it over. MegaScale (section 3.4)
 * prepares the next step's batch while gradients are exchanged and reads each sample once per machine; with async_data none of
 * the time is left in the step.
 */
#ifndef MSIM_MODEL_COST_KERNEL_DATA_LOADING_H
#define MSIM_MODEL_COST_KERNEL_DATA_LOADING_H

#include "model/cost/work/work.h"

/* The batch of one replica as a work of class host; its index. */
int32_t work_add_data(struct work_table *table, const struct layout *layout, const struct setting *setting);
struct cost data_loading_cost(const struct cluster *cluster, const struct work_data *data);
/* Seconds of a step's first wait: 0 with async_data. */
double data_loading_seconds(const struct layout *layout, const struct setting *setting);

#endif
