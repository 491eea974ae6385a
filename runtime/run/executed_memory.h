/*
 * executed_memory.h - the memory that ranks of the runtime need for a layout.
 *
 * Example: `msim validate` with four ranks as threads.
 *
 *     executed_memory_of_all(&layout, &setting, false)         before the run: do four ranks fit this machine?
 *     executed_memory(&layout, &setting, false, -1)            afterwards: compared with the peak of the fullest rank
 *
 * The runtime needs less than a framework (model/cost/memory/footprint.h): it has no framework's overhead, and its only
 * communication buffers are those of ZeRO and context parallelism. On a CPU it computes in fp32, where the footprint counts 2
 * bytes.
 */
#ifndef MSIM_RUNTIME_RUN_EXECUTED_MEMORY_H
#define MSIM_RUNTIME_RUN_EXECUTED_MEMORY_H

#include "model/layout/layout.h"

/* Bytes of device memory of all ranks together. `on_gpu`: they compute in bf16 on GPUs; false: in fp32 on a CPU. */
double executed_memory_of_all(const struct layout *layout, const struct setting *setting, bool on_gpu);
/* Bytes of one rank's device memory, and of its tensors in the memory of the host; rank -1: of the fullest rank. */
double executed_memory(const struct layout *layout, const struct setting *setting, bool on_gpu, int rank);
double executed_host_memory(const struct layout *layout, const struct setting *setting, bool on_gpu, int rank);

#endif
