/* kernel_bench.c - see kernel_bench.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "tests/kernels/gpu_memory.h"
#include "tests/kernels/kernel_bench.h"

enum { PATTERN_BYTES = 16 << 20, WARM_UP = 3 };
static const size_t POOL_BYTES = (size_t)6 << 30, FLUSH_BYTES = (size_t)256 << 20;

/* Random bf16 in (-1, 1), or in [0, 1); as fp32 they are numbers of the same size. */
static void fill_pattern(void *device, bool positive)
{
    uint16_t *pattern = memory_new(1, PATTERN_BYTES);
    struct random_stream random = random_stream_named(1, 31, 0);
    for (size_t i = 0; i < PATTERN_BYTES / 2; i++) {
        const double x = random_uniform(&random);
        pattern[i] = bf16_of_float((float)(positive ? x : 2 * x - 1));
    }
    gpu_must(cudaMemcpy(device, pattern, PATTERN_BYTES, cudaMemcpyHostToDevice), "a pattern");
    free(pattern);
}

static void spread(const struct bench *bench, char *to, const char *pattern, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PATTERN_BYTES)
        gpu_must(cudaMemcpyAsync(to + at, pattern, bytes - at < PATTERN_BYTES ? bytes - at : PATTERN_BYTES,
                                 cudaMemcpyDeviceToDevice, bench->launch.stream),
                 "filling the pool");
}

/* What a row of the table begins with is random, whatever the one before has left. */
void *bench_take(struct bench *bench, size_t bytes)
{
    if (bench->used == 0)
        spread(bench, bench->pool, bench->pattern, POOL_BYTES);
    void *at = bench->pool + bench->used;
    bench->used += (bytes + 255) / 256 * 256;
    if (bench->used > POOL_BYTES) {
        fprintf(stderr, "the pool of %zu bytes is too small\n", POOL_BYTES);
        exit(EXIT_FAILURE);
    }
    return at;
}

void *bf16s(struct bench *bench, int64_t n)
{
    return bench_take(bench, (size_t)n * 2);
}

float *floats(struct bench *bench, int64_t n)
{
    return bench_take(bench, (size_t)n * 4);
}

float *positive_floats(struct bench *bench, int64_t n)
{
    float *at = floats(bench, n);
    spread(bench, (char *)at, bench->positive, (size_t)n * 4);
    return at;
}

int32_t *indices(struct bench *bench, int64_t n, int64_t below)
{
    int32_t *at = bench_take(bench, (size_t)n * 4), *host = memory_new((size_t)n, sizeof *host);
    struct random_stream random = random_stream_named(1, 32, (uint64_t)n);
    for (int64_t i = 0; i < n; i++)
        host[i] = (int32_t)random_below(&random, (uint64_t)below);
    gpu_must(cudaMemcpy(at, host, (size_t)n * 4, cudaMemcpyHostToDevice), "indices");
    free(host);
    return at;
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static enum status launch_kernel_call(const struct bench *bench, const void *call, struct diags *diags)
{
    return kernel_cuda_launch(&bench->launch, call, diags);
}

static bool only_reads(const char *op)
{
    static const enum kernel kernels[] = {KERNEL_LOGITS_MAX, KERNEL_LOGITS_SUM, KERNEL_SQUARE_SUM, KERNEL_COLUMN_SUM};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(op, kernel_name(kernels[i])) == 0)
            return true;
    return false;
}

/* Nothing of the pool stays in the second-level cache. */
static void flush_cache(const struct bench *bench, int value, bool read, struct diags *diags)
{
    struct kernel_call sum = {.kernel = KERNEL_SQUARE_SUM,
                              .square_sum = {(int64_t)(FLUSH_BYTES / sizeof(float)), (const float *)bench->flush,
                                             (float *)(bench->flush + FLUSH_BYTES)}};
    gpu_must(cudaMemsetAsync(bench->flush, value & 0x3f, FLUSH_BYTES, bench->launch.stream), "flush");
    if (read)
        (void)!kernel_cuda_launch(&bench->launch, &sum, diags);
}

static double not_launched(struct bench *bench, const char *op, const char *sizes, struct diags *diags)
{
    fprintf(stderr, "error: %s %s: %s\n", op, sizes, diags->n_items ? diags->items[0].text : "not launched");
    diags_free(diags);
    bench->used = 0;
    bench->failed = true;
    return NAN;
}

/* One row of the table; gives back the median in seconds. */
double time_call(struct bench *bench, const char *op, const char *sizes, launcher *run, const void *call, double bytes,
                 double flops)
{
    float times[MOST_REPEATS];
    struct diags diags = {0};
    for (int i = -WARM_UP; i < bench->repeats; i++) {
        flush_cache(bench, i, only_reads(op), &diags);
        gpu_must(cudaEventRecord(bench->begin, bench->launch.stream), "event");
        if (run(bench, call, &diags) != STATUS_OK)
            return not_launched(bench, op, sizes, &diags);
        gpu_must(cudaEventRecord(bench->end, bench->launch.stream), "event");
        gpu_must(cudaEventSynchronize(bench->end), op);
        if (i >= 0)
            gpu_must(cudaEventElapsedTime(&times[i], bench->begin, bench->end), "elapsed");
    }
    qsort(times, (size_t)bench->repeats, sizeof *times, compare);
    const double median = times[bench->repeats / 2] * 1e-3, low = times[bench->repeats / 10] * 1e-3,
                 high = times[bench->repeats * 9 / 10] * 1e-3;
    printf("\"%s\",%s,%s,%.0f,%.0f,%.3f,%.3f,%.3f,%.1f,%.1f,%.3f,%.3f\n", bench->gpu, op, sizes, bytes, flops, median * 1e6,
           low * 1e6, high * 1e6, bytes / median * 1e-9, flops / median * 1e-12,
           bench->copy_rate > 0 ? bytes / median / bench->copy_rate : 1, bench->peak > 0 ? flops / median / bench->peak : 0);
    fflush(stdout);
    bench->used = 0;
    return median;
}

void time_kernel(struct bench *bench, const char *sizes, const struct kernel_call *call, double bytes, double flops)
{
    (void)time_call(bench, kernel_name(call->kernel), sizes, launch_kernel_call, call, bytes, flops);
}

void bench_copy(struct bench *bench)
{
    const size_t bytes = (size_t)2 << 30;
    char *from = bench_take(bench, bytes), *to = bench_take(bench, bytes);
    struct kernel_call call = {.kernel = KERNEL_COPY, .copy = {to, from, bytes}};
    double seconds = time_call(bench, "copy", "2 GiB", launch_kernel_call, &call, 2.0 * (double)bytes, 0);
    bench->copy_rate = 2.0 * (double)bytes / seconds;
}

/* Dense bf16 FLOPs of a multiprocessor and clock (NVIDIA's A100, H100 and B200 data sheets: 312, 989 and 2250 TFLOP/s). */
static double tensor_peak(int multiprocessors)
{
    int major = 0, kilohertz = 0;
    gpu_must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "an attribute");
    gpu_must(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0), "an attribute");
    const double each = major == 8 ? 2048 : major == 9 ? 4096 : major == 10 ? 8192 : 0;
    return each * multiprocessors * kilohertz * 1e3;
}

void bench_open(struct bench *bench, const char *gpu)
{
    bench->gpu = gpu;
    bench->peak = tensor_peak(bench->launch.multiprocessors);
    bench->pool = gpu_memory.memory_new(POOL_BYTES);
    bench->flush = gpu_memory.memory_new(FLUSH_BYTES + sizeof(float)); /* and a sum */
    bench->pattern = gpu_memory.memory_new(PATTERN_BYTES);
    bench->positive = gpu_memory.memory_new(PATTERN_BYTES);
    fill_pattern(bench->pattern, false);
    fill_pattern(bench->positive, true);
    gpu_must(cudaEventCreate(&bench->begin), "event");
    gpu_must(cudaEventCreate(&bench->end), "event");
}

void bench_close(struct bench *bench)
{
    gpu_must(cudaEventDestroy(bench->begin), "event");
    gpu_must(cudaEventDestroy(bench->end), "event");
    gpu_memory.memory_free(bench->pool);
    gpu_memory.memory_free(bench->flush);
    gpu_memory.memory_free(bench->pattern);
    gpu_memory.memory_free(bench->positive);
    gpu_close(&bench->launch);
}
