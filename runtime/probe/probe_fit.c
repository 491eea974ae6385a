/* probe_fit.c - fits a GPU entry with which the cost model predicts the measured times. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model/cost/work/host_memory.h"
#include "model/cost/work/precision_bytes.h"
#include "model/cost/work/work.h"
#include "runtime/probe/probe.h"

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
    double seconds = row->seconds - result->launch_s;
    return seconds > 0.1 * row->seconds ? seconds : 0.1 * row->seconds;
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

/* FLOP/s of the products that a scan is counted as: in what its kernels take beyond what the model counts for launches and for
 * what streams; 0: there is none. */
static double scan_rate(const struct probe_result *result)
{
    const double memory_rate = 2 * probe_copy_rate(result) * counted(result);
    double flops = 0, seconds = 0, beside = 0;
    for (int i = 0; i < result->n_rows; i++) {
        const struct probe_row *row = &result->rows[i];
        if (!is_op(row, "scan"))
            continue;
        flops += row->times * row->flops;
        seconds += row->times * row->seconds;
        beside += row->times * ((double)row->count * result->launch_s + row->bytes / memory_rate);
    }
    return seconds > 0 ? flops / fmax(seconds - beside, 0.1 * seconds) : 0;
}

/* Those of 8-bit operands, with what a device does to them first; 0: the job has none. */
static double narrow_rate(const struct probe_result *result)
{
    struct sums sums = sum_flops(result, "narrow_gemm"), experts = sum_flops(result, "narrow_grouped_gemm");
    return rate_of((struct sums){sums.work + experts.work, sums.seconds + experts.seconds});
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

/* --- kernels that stream memory: bytes as the cost model counts them, per second of what the runtime executes for them */

/* Works of one layer, a dense one where there is one: those the kernels were probed for; behind them all others. */
static void works_of_job(const struct probe_options *options, struct work_table *table)
{
    struct layout layout = *options->layout; /* without what is repeated */
    const struct transformer *model = options->setting->model;
    struct layer_range one = {0, 1}, all = {0, model->layers};
    layout.recompute = (struct recompute){.what = RECOMPUTE_NONE};
    while (one.first < model->layers - 1 && layer_is_mixture(model, one.first))
        one.first++;
    one.first = layer_is_mixture(model, one.first) ? 0 : one.first;
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++)
        work_add_pass(table, &layout, options->setting, (enum pass)pass, one, false, false);
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++)
        work_add_pass(table, &layout, options->setting, (enum pass)pass, all, true, true);
}

static const struct work_memory *first_of(const struct work_table *table, enum memory_kernel kernel)
{
    for (int32_t i = 0; i < table->n_items; i++)
        if (table->items[i].kind == WORK_MEMORY_BOUND && table->items[i].memory.kernel == kernel)
            return &table->items[i].memory;
    return NULL;
}

/* Seconds of one operation: of all its kernels, beyond the cost of enqueueing that the model counts for those it knows of. */
static double seconds_of(const struct probe_result *result, enum memory_kernel kernel, const struct work_memory *counted)
{
    double seconds = 0;
    for (int i = 0; i < result->n_rows; i++)
        if (result->rows[i].part == kernel)
            seconds += result->rows[i].times * net(result, &result->rows[i]);
    double beyond = seconds - (counted->count - 1) * result->launch_s;
    return beyond > 0.1 * seconds ? beyond : 0.1 * seconds;
}

/* Casts: all that stream without a kind of their own where operands have 8 bits. In bytes of the cost model, which counts an
 * element read in two bytes and written twice. */
static void fit_casts(const struct probe_options *options, const struct probe_result *result, struct gpu *gpu)
{
    double seconds = 0, bytes = 0;
    for (int i = 0; i < result->n_rows; i++) {
        const struct probe_row *row = &result->rows[i];
        if (!is_op(row, "cast") && !is_op(row, "cast_largest"))
            continue;
        seconds += net(result, row);
        bytes = row->elements * (2 + 2 * precision_bytes(options->setting->job->precision));
    }
    gpu->memory.rate[MEMORY_STREAM] = seconds > 0 ? bytes / seconds : 0;
}

static void fit_kernels(const struct probe_options *options, const struct probe_result *result, struct gpu *gpu)
{
    struct work_table table = {0};
    fit_casts(options, result, gpu);
    works_of_job(options, &table);
    for (int i = 0; i < result->n_rows; i++) /* the number of probed parameters */
        if (result->rows[i].part == MEMORY_OPTIMIZER && result->rows[i].elements > 0) {
            work_add_optimizer(&table, options->setting, result->rows[i].elements, 0);
            break;
        }
    for (int k = MEMORY_STREAM + 1; k < N_MEMORY_KERNELS; k++) {
        const struct work_memory *counted = first_of(&table, (enum memory_kernel)k);
        double seconds = counted ? seconds_of(result, (enum memory_kernel)k, counted) : 0;
        gpu->memory.rate[k] = seconds > 0 ? counted->bytes / seconds : 0;
    }
    work_table_free(&table);
}

/* --- exchanges: seconds = waking + work, work = base + bytes on the bus / rate. The fit reproduces the work of the shortest
 * exchange, and the total work of all others, weighted by how often the job executes them. */

static double bus_bytes(const struct probe_row *row)
{
    double passes = is_op(row, "all_reduce") ? 2 : 1;
    return row->bytes * passes * (row->ranks - 1) / row->ranks;
}

/* Bytes per second of the row of an operation that moves most; 0: there is none. */
static double streaming_rate(const struct probe_result *result, const char *op)
{
    struct sums largest = {0};
    for (int i = 0; i < result->n_rows; i++)
        if (is_op(&result->rows[i], op) && result->rows[i].bytes >= largest.work)
            largest = (struct sums){result->rows[i].bytes, net(result, &result->rows[i])};
    return rate_of(largest);
}

/* Each byte is read once and written once. */
double probe_copy_rate(const struct probe_result *result)
{
    double rate = streaming_rate(result, "copy") / 2;
    return rate > 0 ? rate : 1e9;
}

struct exchange_sums {
    double times, bytes, seconds;
};

static void fit_exchanges(const struct probe_result *result, struct gpu *gpu)
{
    double shortest = probe_shortest_exchange(result);
    struct exchange_sums sums[2] = {{0}}; /* of the shortest, of the others */
    if (isinf(shortest)) {
        gpu->nccl_rate = probe_copy_rate(result) * counted(result);
        gpu->nccl_base_s = fmax(result->launch_s, 1e-9);
        return;
    }
    for (int i = 0; i < result->n_rows; i++) {
        const struct probe_row *row = &result->rows[i];
        struct exchange_sums *sum = &sums[row->bytes > shortest];
        if (!row->ranks)
            continue;
        sum->times += row->times;
        sum->bytes += row->times * bus_bytes(row);
        sum->seconds += row->times * row->worked;
    }
    const struct exchange_sums *few = &sums[0], *many = &sums[1];
    double more_bytes = many->bytes - many->times / few->times * few->bytes;
    double more_seconds = many->seconds - many->times / few->times * few->seconds;
    double rate = more_bytes > 0 && more_seconds > 0 ? more_bytes / more_seconds : probe_copy_rate(result);
    double base = (few->seconds - few->bytes / rate) / few->times;
    gpu->nccl_rate = rate * counted(result);
    gpu->nccl_base_s = result->waking_s + (base > 0 ? base : 1e-6);
}

/* --- the entry */

static void fit_compute(const struct probe_options *options, const struct probe_result *result, struct gpu *gpu)
{
    double products = product_rate(options, result);
    gpu->peak_flops[PRECISION_FP32] = gpu->peak_flops[PRECISION_BF16] = products;
    for (int p = PRECISION_FP32; p <= PRECISION_BF16; p++)
        gpu->gemm[p] = (struct gemm_parameters){
            .peak_fraction = 1, .small_tile_fraction = 1, .smallest_tile_fraction = 1, .memory_fraction = NO_LIMIT};
    double narrow = narrow_rate(result);
    enum precision precision = narrow > 0 ? options->setting->job->precision : PRECISION_BF16;
    gpu->peak_flops[precision] = narrow > 0 ? narrow : products;
    gpu->gemm[precision] = gpu->gemm[PRECISION_BF16];
    gpu->scan_flops = scan_rate(result);
    gpu->attention.forward_fraction = flop_rate(result, "attention_forward") / products;
    gpu->attention.backward_fraction = flop_rate(result, "attention_backward") / products;
    gpu->memory.bandwidth_fraction = 1;
    gpu->launch_s = result->launch_s;
    gpu->sms = 1;
    gpu->sustained_clock = 1;
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
             plural, probe_cores(options), probe_cores(options) == 1 ? "" : "s");
}

void probe_fit(const struct probe_options *options, const struct probe_result *result, const struct probe_device *device, int n,
               struct cluster *cluster)
{
    struct gpu gpu = {.gpus_per_node = n, .nvlink_domain = n, .nic_rate = 1e9, .nvlink_rate = 1e9, .pcie_rate = 1e9};
    name_entry(options, device, n, &gpu);
    fit_compute(options, result, &gpu);
    gpu.exchange_share = !device->name && probe_cores(options) < 2 * options->ranks;
    gpu.hbm_rate = 2 * probe_copy_rate(result) * counted(result); /* read and written */
    if (options->layout)
        fit_kernels(options, result, &gpu);
    gpu.host_rate = host_nominal_rate(streaming_rate(result, "host_copy") * counted(result));
    gpu.hbm_bytes = device->memory_bytes;
    fit_exchanges(result, &gpu);
    snprintf(gpu.gemm_source, sizeof gpu.gemm_source, "%s", gpu.source);
    snprintf(gpu.attention_source, sizeof gpu.attention_source, "%s", gpu.source);
    snprintf(gpu.memory_source, sizeof gpu.memory_source, "%s", gpu.source);
    snprintf(gpu.nccl_source, sizeof gpu.nccl_source, "%s", gpu.source);
    *cluster = (struct cluster){.gpu = gpu,
                                .host_memory_rate = host_nominal_memory_rate(streaming_rate(result, "host_update"), n),
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
