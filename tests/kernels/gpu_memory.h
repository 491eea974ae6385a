/* gpu_memory.h - the GPU behind kernel_device.h, and what a test on it needs. Plain cudaMalloc; nothing is checked in a forked
 * child. */
#ifndef MSIM_TESTS_KERNELS_GPU_MEMORY_H
#define MSIM_TESTS_KERNELS_GPU_MEMORY_H

#include "kernels/cuda_launch.h"
#include "tests/kernels/kernel_device.h"

enum { EXIT_BROKEN = 3, EXIT_SKIPPED = 77 };

/* False, with a sentence on stderr, where there is no GPU. Without cuBLASLt, which is said as well, matrix products fail. */
bool gpu_open(struct cuda_launch *launch, char *name, size_t name_size);
void gpu_close(struct cuda_launch *launch);
int gpu_capability(void); /* 90: compute capability 9.0 */
/* `error` is cudaSuccess. Otherwise the process ends with EXIT_BROKEN: after a fault on the GPU nothing works in it any more. */
void gpu_must(int error, const char *what);
extern const struct kernel_device gpu_memory;

#endif
