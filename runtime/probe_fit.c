/* probe_fit.c - a GPU entry that makes the cost model say what was measured. */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/cost/work.h"
#include "runtime/parameters.h"
#include "runtime/probe.h"
#include "runtime/probe_cases.h"

enum { COUNTED_BYTES = 2 }; /* of an activation, by the cost model */

static const double NO_LIMIT = 1e6; /* a share of the memory rate that never limits: products are measured with their traffic */

/* Of each byte of an activation that this device moves. */
static double counted(const struct probe_result *result)
{
    return (double)COUNTED_BYTES / (double)result->element_bytes;
}

/* Seconds beyond what any operation costs; at least a tenth of it. */
static double net(const struct probe_result *result, const struct probe_row *row)
{
    double seconds = row->fastest - result->launch_s;
    return seconds > 0.1 * row->fastest ? seconds : 0.1 * row->fastest;
}

static bool is_op(const struct probe_row *row, const char *op)
{
    return strcmp(row->op, op) == 0;
}

struct sums {
    double work, seconds;
};

static double rate_of(struct sums sums)
{
    return sums.seconds > 0 ? sums.work / sums.seconds : 0;
}

/* FLOPs of all rows of an operation, each as often as the job executes it. */
static struct sums sum_flops(const struct probe_result *result, const char *op)
{
    struct sums sums = {0};
    for (int i = 0; i < result->n_rows; i++) {
        const struct probe_row *row = &result->rows[i];
        if (!is_op(row, op))
            continue;
        sums.work += row->times * row->flops;
        sums.seconds += row->times * net(result, row);
    }
    return sums;
}

/* FLOP/s over all rows of an operation; 0 when there are none. */
static double flop_rate(const struct probe_result *result, const char *op)
{
    return rate_of(sum_flops(result, op));
}

/* Experts' products are counted as products: a job's total comes out right. Without a job they are left alone. */
static double product_rate(const struct probe_options *options, const struct probe_result *result)
{
    struct sums sums = sum_flops(result, "gemm"), experts = sum_flops(result, "grouped_gemm");
    if (options->layout) {
        sums.work += experts.work;
        sums.seconds += experts.seconds;
    }
    return rate_of(sums);
}

static double seconds_of(const struct probe_result *result, const char *op)
{
    for (int i = 0; i < result->n_rows; i++)
        if (is_op(&result->rows[i], op))
            return net(result, &result->rows[i]);
    return 0;
}

static double bytes_of(const struct probe_result *result, const char *op)
{
    for (int i = 0; i < result->n_rows; i++)
        if (is_op(&result->rows[i], op))
            return result->rows[i].bytes;
    return 0;
}

/* --- memory-bound kernels */

/* `times` calls of which the cost model counts `bytes` each. */
static void count(struct sums *sums, const struct probe_result *result, const char *op, double times, double bytes)
{
    sums->work += times * bytes;
    sums->seconds += times * seconds_of(result, op);
}

/* In the proportions of one step of a rank; bytes as model/cost/work_layer.c counts them. */
static double memory_rate_of_job(const struct probe_options *options, const struct probe_result *result)
{
    const struct layout *layout = options->layout;
    const struct setting *setting = options->setting;
    struct shape s = shape_of(layout, setting, options->shape_rank);
    struct parameter_count parameters;
    struct sums sums = {0};
    transformer_parameters(setting->model, &parameters);
    double m = (double)layout_micro_batches(layout, setting->job), layers = m * s.layers / layout->pp;
    double x = (double)(s.local_tokens * s.hidden), a = (double)(s.tokens * s.ffn), v = (double)(s.tokens * s.vocab_count);
    count(&sums, result, "norm_forward", 2 * layers, 4 * x);
    count(&sums, result, "norm_backward", 2 * layers, 10 * x);
    count(&sums, result, "activation_forward", layers, (s.gated ? 6 : 4) * a);
    count(&sums, result, "activation_backward", layers, (s.gated ? 10 : 6) * a);
    count(&sums, result, "add", 3 * layers, (s.linear_bias ? 7 : 6) * x);
    count(&sums, result, "logits_max", m / layout->pp, 6 * v);
    count(&sums, result, "logits_sum", m / layout->pp, 6 * v);
    count(&sums, result, "logits_backward", m / layout->pp, 6 * v);
    double shards = layout->zero ? s.copies.n : 1, own = parameters.total / layout->tp / layout->pp / shards;
    double probed = bytes_of(result, "adam") / probe_adam_bytes(result->element_bytes);
    if (probed > 0)
        count(&sums, result, "adam", own / probed, 38 * probed);
    return sums.seconds > 0 ? rate_of(sums) : 1e9;
}

static double memory_rate_of_ladder(const struct probe_result *result)
{
    static const char *const ops[] = {"norm_forward",        "norm_backward", "activation_forward",
                                      "activation_backward", "add",           "adam"};
    double bytes = 0, seconds = 0;
    for (int i = 0; i < result->n_rows; i++)
        for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
            if (!is_op(&result->rows[i], ops[k]))
                continue;
            bytes += result->rows[i].bytes * counted(result);
            seconds += net(result, &result->rows[i]);
        }
    return seconds > 0 ? bytes / seconds : 1e9;
}

/* --- exchanges: seconds = base + bytes on the bus / rate, a line through the mean of the small and the mean of the large ones */

static double bus_bytes(const struct probe_row *row)
{
    double passes = is_op(row, "all_reduce") ? 2 : 1;
    return row->bytes * passes * (row->ranks - 1) / row->ranks;
}

static bool has_exchanges(const struct probe_result *result)
{
    for (int i = 0; i < result->n_rows; i++)
        if (result->rows[i].ranks)
            return true;
    return false;
}

/* Of the largest one, read once and written once. */
double probe_copy_rate(const struct probe_result *result)
{
    double bytes = 0, seconds = 0;
    for (int i = 0; i < result->n_rows; i++) {
        if (!is_op(&result->rows[i], "copy") || result->rows[i].bytes < bytes)
            continue;
        bytes = result->rows[i].bytes;
        seconds = net(result, &result->rows[i]);
    }
    return seconds > 0 ? bytes / 2 / seconds : 1e9;
}

static void fit_exchanges(const struct probe_result *result, struct gpu *gpu)
{
    double smallest = INFINITY, largest = 0;
    double small_bytes = 0, small_seconds = 0, large_bytes = 0, large_seconds = 0;
    if (!has_exchanges(result)) {
        gpu->nccl_rate = probe_copy_rate(result) * counted(result);
        gpu->nccl_base_s = fmax(result->launch_s, 1e-9);
        return;
    }
    for (int i = 0; i < result->n_rows; i++) {
        if (!result->rows[i].ranks)
            continue;
        smallest = fmin(smallest, result->rows[i].bytes);
        largest = fmax(largest, result->rows[i].bytes);
    }
    for (int i = 0; i < result->n_rows; i++) {
        const struct probe_row *row = &result->rows[i];
        bool small = row->ranks && row->bytes == smallest, large = row->ranks && row->bytes == largest;
        small_bytes += small ? bus_bytes(row) : 0;
        small_seconds += small ? row->fastest : 0;
        large_bytes += large ? bus_bytes(row) : 0;
        large_seconds += large ? row->fastest : 0;
    }
    int kinds = 3;
    double rate = large_seconds > small_seconds ? (large_bytes - small_bytes) / (large_seconds - small_seconds) : 1e9;
    double base = (small_seconds - small_bytes / rate) / kinds;
    gpu->nccl_rate = rate * counted(result);
    gpu->nccl_base_s = base > 0 ? base : 1e-6;
}

/* --- the entry */

static void fit_compute(const struct probe_options *options, const struct probe_result *result, double turns, struct gpu *gpu)
{
    double products = product_rate(options, result);
    gpu->peak_flops[PRECISION_FP32] = gpu->peak_flops[PRECISION_BF16] = products * turns;
    for (int p = PRECISION_FP32; p <= PRECISION_BF16; p++)
        gpu->gemm[p] = (struct gemm_parameters){
            .peak_fraction = 1, .small_tile_fraction = 1, .smallest_tile_fraction = 1, .memory_fraction = NO_LIMIT};
    gpu->attention.forward_fraction = flop_rate(result, "attention_forward") / products;
    gpu->attention.backward_fraction = flop_rate(result, "attention_backward") / products;
    gpu->memory.bandwidth_fraction = 1;
    gpu->launch_s = result->launch_s;
    gpu->sms = 1;
    gpu->sustained_clock = 1;
}

int probe_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? n : 1;
}

struct probe_device probe_this_cpu(int ranks)
{
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    return (struct probe_device){.memory_bytes = memory / ranks};
}

static void name_entry(const struct probe_options *options, const struct probe_device *device, int n, struct gpu *gpu)
{
    const char *plural = options->ranks == 1 ? "" : "s";
    if (device->name) {
        snprintf(gpu->name, sizeof gpu->name, "%s", device->name);
        snprintf(gpu->source, sizeof gpu->source, "measured by msim probe on %s, %d rank%s at the same time", device->name,
                 options->ranks, plural);
        return;
    }
    snprintf(gpu->name, sizeof gpu->name, "cpu-rank-of-%d", n);
    snprintf(gpu->source, sizeof gpu->source, "measured by msim probe, %d rank%s at the same time on %d core%s", options->ranks,
             plural, probe_cores(), probe_cores() == 1 ? "" : "s");
}

void probe_fit(const struct probe_options *options, const struct probe_result *result, const struct probe_device *device, int n,
               struct cluster *cluster)
{
    double turns = fmax(1, options->turns);
    struct gpu gpu = {.gpus_per_node = n, .nvlink_domain = n, .nic_rate = 1e9, .nvlink_rate = 1e9, .pcie_rate = 1e9};
    name_entry(options, device, n, &gpu);
    fit_compute(options, result, turns, &gpu);
    gpu.hbm_rate = (options->layout ? memory_rate_of_job(options, result) : memory_rate_of_ladder(result)) * turns;
    gpu.hbm_bytes = device->memory_bytes;
    fit_exchanges(result, &gpu);
    snprintf(gpu.gemm_source, sizeof gpu.gemm_source, "%s", gpu.source);
    snprintf(gpu.attention_source, sizeof gpu.attention_source, "%s", gpu.source);
    snprintf(gpu.memory_source, sizeof gpu.memory_source, "%s", gpu.source);
    snprintf(gpu.nccl_source, sizeof gpu.nccl_source, "%s", gpu.source);
    *cluster = (struct cluster){.gpu = gpu,
                                .nodes = 1,
                                .gpus_per_node = n,
                                .nvlink_domain = n,
                                .nics_per_node = 1,
                                .nic_rate = 1e9,
                                .net_fraction = 1,
                                .fabric_layers = 1,
                                .leaf_nodes = 1,
                                .leaf_oversubscription = 1,
                                .pod_oversubscription = 1,
                                .nic_split = 1};
    snprintf(cluster->name, sizeof cluster->name, "this-machine");
    snprintf(cluster->source, sizeof cluster->source, "%s", gpu.source);
}
