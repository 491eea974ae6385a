/*
 * executed_memory.h - the memory that ranks of the runtime need for a layout.
 *
 * Example: before `msim validate` executes four ranks as threads, it compares executed_memory_of_all(...) with the memory of this
 * machine; afterwards it compares executed_memory(..., -1) with what the fullest rank took.
 *
 * The runtime is leaner than a framework (model/cost/memory/footprint.h): it has no framework's overhead and no communication
 * buffers but those of ZeRO and of context parallelism. On a CPU it computes in fp32, where the footprint counts two bytes.
 */
#ifndef MSIM_RUNTIME_RUN_EXECUTED_MEMORY_H
#define MSIM_RUNTIME_RUN_EXECUTED_MEMORY_H

#include "model/layout/layout.h"

/* Bytes of device memory of all ranks together. `on_gpu`: they compute in bf16 on GPUs, otherwise in fp32 on a CPU. */
double executed_memory_of_all(const struct layout *layout, const struct setting *setting, bool on_gpu);
/* Bytes of one rank's device memory, and of what it keeps in the memory of its host; rank -1: of the fullest rank. */
double executed_memory(const struct layout *layout, const struct setting *setting, bool on_gpu, int rank);
double executed_host_memory(const struct layout *layout, const struct setting *setting, bool on_gpu, int rank);

#endif
