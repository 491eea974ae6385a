#include <stdlib.h>
#include <string.h>

#include "cli/options/command.h"
#include "cli/options/shared_options.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "cli/validate/devices.h"
#include "model/spec/catalog.h"
#include "traces/table/csv.h"

static const struct option_row options[] = {
    {.name = "ranks",
     COUNT_FIELDS,
     .low = 1,
     .high = 64,
     .initial = "2",
     .help = "measure with N ranks at the same time. On GPUs, and with mpirun, the number of started processes counts"},
    {.name = "time",
     TIME_FIELDS,
     .low = 0.001,
     .high = 60,
     .initial = "20ms",
     .help = "measure each kernel and size for this long"},
    DEVICE_OPTION_ROWS,
    {0},
};

/* ---- what was measured */

static bool is_attention(const struct probe_row *row)
{
    return row->seq_len > 0;
}

static void write_csv(FILE *out, const char *gpu, const struct probe_result *result)
{
    static const char *const header[] = {"gpu",   "op",    "dtype",   "m",       "n",        "k",
                                         "count", "batch", "seq_len", "heads",   "kv_heads", "head_dim",
                                         "ranks", "nodes", "bytes",   "time_us", "spread"};
    csv_write_row(out, header, sizeof header / sizeof header[0]);
    for (int i = 0; i < result->n_rows; i++) {
        const struct probe_row *r = &result->rows[i];
        const int64_t sizes[] = {r->m, r->n, r->k, r->count, r->batch, r->seq_len, r->heads, r->kv_heads, r->head_dim, r->ranks};
        csv_write_cell(out, true, gpu);
        csv_write_cell(out, false, r->op);
        csv_write_cell(out, false, result->element_bytes == sizeof(float) ? "fp32" : "bf16");
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            if (sizes[k])
                csv_write_integer(out, false, sizes[k]);
            else
                csv_write_cell(out, false, "");
        }
        csv_write_cell(out, false, r->ranks ? "1" : "");
        if (r->bytes > 0)
            csv_write_number(out, false, r->bytes);
        else
            csv_write_cell(out, false, "");
        csv_write_number(out, false, r->seconds * 1e6);
        csv_write_number(out, false, r->spread);
        fputc('\n', out);
    }
}

static void shape_text(const struct probe_row *r, char *text, size_t size)
{
    if (r->count)
        snprintf(text, size, "%lld of %lld x %lld x %lld, %s", (long long)r->count, (long long)r->m, (long long)r->n,
                 (long long)r->k, r->gives);
    else if (r->m)
        snprintf(text, size, "%lld x %lld x %lld, %s", (long long)r->m, (long long)r->n, (long long)r->k, r->gives);
    else if (is_attention(r))
        snprintf(text, size, "batch %lld, %lld tokens, %d heads of %d", (long long)r->batch, (long long)r->seq_len, r->heads,
                 r->head_dim);
    else if (r->ranks)
        snprintf(text, size, "%.0f bytes, %d ranks", r->bytes, r->ranks);
    else
        snprintf(text, size, "%.0f bytes", r->bytes);
}

static void write_text(struct invocation *call, const struct probe_result *result)
{
    struct table table = {0};
    char shape[96];
    table_column(&table, "operation", NULL, ALIGN_LEFT);
    table_column(&table, "size", NULL, ALIGN_LEFT);
    table_column(&table, "time", "us", ALIGN_RIGHT);
    table_column(&table, "rate", NULL, ALIGN_RIGHT);
    table_column(&table, "spread", "%", ALIGN_RIGHT);
    for (int i = 0; i < result->n_rows; i++) {
        const struct probe_row *r = &result->rows[i];
        shape_text(r, shape, sizeof shape);
        table_cell(&table, "%s", r->op);
        table_cell(&table, "%s", shape);
        table_cell(&table, "%.1f", r->seconds * 1e6);
        if (r->flops > 0)
            table_cell(&table, "%.2f GFLOP/s", r->flops / r->seconds * 1e-9);
        else
            table_cell(&table, "%.2f GB/s", r->bytes / r->seconds * 1e-9);
        table_cell(&table, "%.0f", 100 * r->spread);
    }
    table_write_text(&table, call);
    table_free(&table);
}

static json_t *row_json(const struct probe_row *r)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f}", "op", r->op, "m",
                     (json_int_t)r->m, "n", (json_int_t)r->n, "k", (json_int_t)r->k, "count", (json_int_t)r->count, "batch",
                     (json_int_t)r->batch, "seq_len", (json_int_t)r->seq_len, "heads", r->heads, "kv_heads", r->kv_heads,
                     "head_dim", r->head_dim, "ranks", r->ranks, "bytes", r->bytes, "flops", r->flops, "time_s", r->seconds,
                     "fastest_s", r->fastest, "spread", r->spread);
}

static enum status write_json(struct invocation *call, const struct probe_result *result, const struct cluster *cluster)
{
    json_t *object = result_create(call, NULL), *rows = json_array();
    const struct gpu *gpu = &cluster->gpu;
    for (int i = 0; i < result->n_rows; i++)
        json_array_append_new(rows, row_json(&result->rows[i]));
    json_object_set_new(object, "rows", rows);
    json_object_set_new(object, "entry",
                        json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "name", gpu->name, "source", gpu->source,
                                  "fp32_flops", gpu->peak_flops[PRECISION_FP32], "attention_forward_fraction",
                                  gpu->attention.forward_fraction, "attention_backward_fraction",
                                  gpu->attention.backward_fraction, "memory_rate", gpu->hbm_rate, "exchange_rate", gpu->nccl_rate,
                                  "exchange_base_s", gpu->nccl_base_s, "launch_s", gpu->launch_s));
    return result_write(call, object);
}

static enum status deliver(struct invocation *call, const struct probe_result *result, const struct cluster *cluster)
{
    if (call->format == FORMAT_JSON)
        return write_json(call, result, cluster);
    if (call->format == FORMAT_CSV)
        write_csv(call->out, cluster->gpu.name, result);
    else
        write_text(call, result);
    return STATUS_OK;
}

static enum status run(struct invocation *call)
{
    struct probe_options how = {.ranks = (int)option_count(call, "ranks"), .seconds = option_quantity(call, "time")};
    struct probe_result result;
    struct cluster cluster;
    struct devices devices;
    enum status status = devices_open(call, &devices);
    if (status != STATUS_OK)
        return status;
    bool threads = devices.kind == DEVICE_CPU && devices.n_processes == 1;
    int ranks = threads ? how.ranks : devices.n_processes;
    status = devices_probe(call, &devices, &how, ranks, &result, &cluster);
    if (status == STATUS_OK) {
        if (devices.rank == 0)
            status = deliver(call, &result, &cluster);
        probe_result_free(&result);
    }
    devices_close(&devices);
    return status;
}

static const struct example examples[] = {
    {"msim probe", "measure two ranks on this machine"},
    {"msim probe --ranks 4 --format csv -o cpu.csv", "write a measurement table"},
    {0},
};

const struct command command_probe = {
    .name = "probe",
    .summary = "measure this machine's kernels and links, and write a measurement table",
    .description = "Measures matrix products, attention, memory-bound kernels and exchanges over a range of sizes. All ranks "
                   "measure at the same time, because they share the machine as in training.\n"
                   "\n"
                   "Times are medians of five batches, with the spread from fastest to slowest. On a GPU: bf16, operands in "
                   "memory and not in the L2 cache, exchanges with NCCL among the processes that mpirun or srun started. On a "
                   "CPU: single precision, ranks as threads or processes. JSON also holds the rates fitted to the rows. CSV "
                   "is a kernel table for `msim calibrate`.",
    .options = options,
    .examples = examples,
    .run = run,
};
