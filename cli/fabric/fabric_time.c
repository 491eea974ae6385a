#include "cli/fabric/fabric_time.h"

#include "cli/output/result.h"
#include "cli/output/result_row.h"
#include "model/cost/kernel/collective.h"

const char *const time_op_choices[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", NULL};

/* One collective, and its time. */
struct timing {
    const struct cluster *cluster;
    enum collective collective;
    struct group_span span;
    int nodes;
    double bytes;
    struct cost cost;
    double nics_s;
};

/* Sizes of a ladder as nccl-tests runs it, where --bytes is not given. */
#define LADDER_FIRST  0x1p11
#define LADDER_LAST   0x1p33
#define LADDER_FACTOR 4.0

static struct timing timing_of(const struct cluster *cluster, enum collective collective, int gpus, double bytes)
{
    int nodes = (gpus + cluster->gpus_per_node - 1) / cluster->gpus_per_node;
    struct timing t = {.cluster = cluster, .collective = collective, .nodes = nodes, .bytes = bytes};
    t.span = collective_span_of_nodes(cluster, gpus, nodes);
    t.cost = collective_time(cluster, collective, t.span, bytes);
    t.nics_s = collective_nics_s(cluster, collective, t.span, bytes);
    return t;
}

/* The algorithm that the time is of, by the cluster's choice or NCCL's. */
static const char *algorithm_of(const struct timing *t)
{
    bool phases = t->cluster->collective_algorithm == ALGORITHM_HIERARCHICAL && t->span.domains > 1;
    if (t->collective == COLLECTIVE_ALL_TO_ALL)
        return "pairwise";
    if (phases && t->collective != COLLECTIVE_BROADCAST && t->span.ranks_per_domain > 1)
        return "hierarchical";
    if (t->collective == COLLECTIVE_ALL_REDUCE && collective_takes_tree(t->cluster, t->span, t->bytes))
        return "tree";
    return t->span.domains == 1 && t->collective == COLLECTIVE_ALL_REDUCE ? "ring or NVLS" : "ring";
}

static double algorithm_rate(const struct timing *t)
{
    return t->bytes / cost_seconds(t->cost);
}

/* As nccl-tests defines it: what a ring's links carry. */
static double bus_rate(const struct timing *t)
{
    return algorithm_rate(t) * collective_ring_bytes(t->collective, t->span, t->bytes) / t->bytes;
}

#define TIME_ROWS(ROW)                                                                                                           \
    ROW(timing, bytes, as_real(s->bytes), "B", JSON | CSV | TEXT, "full buffer, as nccl-tests counts it", .show = "%.0f")        \
    ROW(timing, time_s, as_real(cost_seconds(s->cost)), "s", JSON | CSV | TEXT, "predicted time of the collective",              \
        .title = "time", .text_unit = "us", .scale = 1e6, .show = "%.1f")                                                        \
    ROW(timing, latency_s, as_real(s->cost.latency_s), "s", JSON | CSV | TEXT, "start, end, and hops of the first byte",         \
        .title = "latency", .text_unit = "us", .scale = 1e6, .show = "%.1f")                                                     \
    ROW(timing, transfer_s, as_real(s->cost.bandwidth_s), "s", JSON | CSV | TEXT, "moving the bytes, with filling the pipeline", \
        .title = "transfer", .text_unit = "us", .scale = 1e6, .show = "%.1f")                                                    \
    ROW(timing, nics_s, as_real(s->nics_s), "s", JSON | CSV | TEXT, "during which NICs send; 0 inside an NVLink domain",         \
        .title = "NICs busy", .text_unit = "us", .scale = 1e6, .show = "%.1f")                                                   \
    ROW(timing, algbw_Bps, as_real(algorithm_rate(s)), "B/s", JSON | CSV | TEXT, "bytes over time", .title = "algbw",            \
        .text_unit = "GB/s", .scale = 1e-9, .show = "%.2f")                                                                      \
    ROW(timing, busbw_Bps, as_real(bus_rate(s)), "B/s", JSON | CSV | TEXT, "bus bandwidth of nccl-tests", .title = "busbw",      \
        .text_unit = "GB/s", .scale = 1e-9, .show = "%.2f")                                                                      \
    ROW(timing, algorithm, as_text(algorithm_of(s)), "", JSON | CSV | TEXT, "ring, tree, hierarchical, pairwise", .show = "%s")
RESULT_ROWS(time_rows, TIME_ROWS)

static void write_text(struct invocation *call, const struct timing *times, size_t n)
{
    const struct timing *t = times;
    struct table table = {0};
    if (call->format == FORMAT_TEXT)
        fprintf(call->out, "%s of %d GPUs on %d node%s of %s (%s), alone on the fabric\n\n", collective_name(t->collective),
                t->span.ranks, t->nodes, t->nodes == 1 ? "" : "s", t->cluster->name, t->cluster->gpu.name);
    rows_columns(time_rows, t, &table);
    for (size_t i = 0; i < n; i++)
        rows_cells(time_rows, &times[i], &table);
    table_write(&table, call);
    table_free(&table);
    if (call->format == FORMAT_TEXT)
        fputs("\nA log of nccl-tests calibrates these times: msim calibrate LOG --base CLUSTER.yaml\n", call->out);
}

static void write_csv(struct invocation *call, const struct timing *times, size_t n)
{
    rows_csv_heading(time_rows, times, true, call->out);
    fputc('\n', call->out);
    for (size_t i = 0; i < n; i++) {
        rows_csv_cells(time_rows, &times[i], true, call->out);
        fputc('\n', call->out);
    }
}

static enum status write_json(struct invocation *call, const struct timing *times, size_t n)
{
    const struct timing *t = times;
    json_t *result = result_create(call, NULL), *list = json_array();
    json_object_set_new(result, "config",
                        json_pack("{s:s, s:s, s:s, s:i, s:i}", "cluster", t->cluster->name, "gpu", t->cluster->gpu.name, "op",
                                  collective_name(t->collective), "gpus", t->span.ranks, "nodes", t->nodes));
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, rows_object(time_rows, &times[i]));
    json_object_set_new(result, "times", list);
    return result_write(call, result);
}

enum status fabric_time(struct invocation *call, const struct cluster *cluster)
{
    static const enum collective collectives[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER,
                                                  COLLECTIVE_ALL_TO_ALL, COLLECTIVE_BROADCAST};
    enum { LADDER_MAX = 16 };
    struct timing times[LADDER_MAX];
    enum collective collective = collectives[option_choice(call, "op")];
    int64_t all = (int64_t)cluster->nodes * cluster->gpus_per_node;
    int64_t gpus = option_given(call, "gpus") ? option_count(call, "gpus") : all;
    size_t n = 0;
    if (gpus < 2 || gpus > all) {
        diag_error(&call->diags, PLACE_NONE, "%s has %lld GPUs; specify --gpus from 2 to %lld", cluster->name, (long long)all,
                   (long long)all);
        return STATUS_BAD_INPUT;
    }
    if (gpus > cluster->gpus_per_node && gpus % cluster->gpus_per_node != 0) {
        diag_error(&call->diags, PLACE_NONE, "%lld GPUs do not fill nodes of %d; specify a multiple of %d with --gpus",
                   (long long)gpus, cluster->gpus_per_node, cluster->gpus_per_node);
        return STATUS_BAD_INPUT;
    }
    if (option_given(call, "bytes"))
        times[n++] = timing_of(cluster, collective, (int)gpus, option_quantity(call, "bytes"));
    for (double bytes = LADDER_FIRST; n < LADDER_MAX && bytes <= LADDER_LAST && !option_given(call, "bytes");
         bytes *= LADDER_FACTOR)
        times[n++] = timing_of(cluster, collective, (int)gpus, bytes);
    if (call->format == FORMAT_JSON)
        return write_json(call, times, n);
    if (call->format == FORMAT_CSV)
        write_csv(call, times, n);
    else
        write_text(call, times, n);
    return STATUS_OK;
}

const struct result_table fabric_keys[] = {{"times[]", time_rows}, {0}};
