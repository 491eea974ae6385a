/*
 * kernel_bench.h - rows of kernel_time's table: operands in one pool of device memory, one call timed.
 */
#ifndef MSIM_TESTS_KERNELS_KERNEL_BENCH_H
#define MSIM_TESTS_KERNELS_KERNEL_BENCH_H

#include <cuda_runtime_api.h>

#include "kernels/cuda_launch.h"

enum { MOST_REPEATS = 101 };

struct bench {
    struct cuda_launch launch;
    char *pool, *flush, *pattern, *positive;
    size_t used;
    int repeats;
    bool failed;      /* something was not launched */
    double copy_rate; /* bytes per second */
    double peak;      /* FLOPs per second */
    cudaEvent_t begin, end;
    const char *gpu;
};

/* `launch` and `repeats` are there already. */
void bench_open(struct bench *bench, const char *gpu);
void bench_close(struct bench *bench);

/* Operands of the next call; random numbers in (-1, 1), or in [0, 1). */
void *bench_take(struct bench *bench, size_t bytes);
void *bf16s(struct bench *bench, int64_t n);
float *floats(struct bench *bench, int64_t n);
float *positive_floats(struct bench *bench, int64_t n);
int32_t *indices(struct bench *bench, int64_t n, int64_t below);

/* One row of the table each; time_call gives back the median in seconds. */
typedef enum status launcher(const struct bench *bench, const void *call, struct diags *diags);
double time_call(struct bench *bench, const char *op, const char *sizes, launcher *run, const void *call, double bytes,
                 double flops);
void time_kernel(struct bench *bench, const char *sizes, const struct kernel_call *call, double bytes, double flops);
void bench_copy(struct bench *bench); /* what copy_fraction is held against */

#endif
