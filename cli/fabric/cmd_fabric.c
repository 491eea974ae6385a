/*
 * msim fabric - show and check the network of a cluster, list the path between two GPUs, and simulate a load.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/fabric/fabric_import.h"
#include "cli/fabric/fabric_load.h"
#include "cli/fabric/fabric_packets.h"
#include "cli/fabric/fabric_time.h"
#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "model/base/memory.h"
#include "model/spec/catalog.h"
#include "sim/fabric/route.h"

static const struct option_row options[] = {
    {.name = "cluster",
     TEXT_FIELDS("NAME|FILE"),
     .help = "use the fabric of this cluster: a catalog name or a file; or specify --gpu or --fabric",
     .group = FABRIC_GROUP},
    {.name = "gpu",
     TEXT_FIELDS("NAME|FILE"),
     .help = "replace the cluster's GPU; without --cluster, use the fabric of as many usual nodes of this GPU as --gpus needs",
     .group = FABRIC_GROUP},
    FABRIC_OPTION_ROWS,
    FABRIC_TIME_OPTION_ROWS,
    FABRIC_LOAD_OPTION_ROWS,
    LOAD_NETWORK_ROW,
    PACKETS_OPTION_ROWS,
    {0}};

/* ---- show, check */

static bool is_dragonfly(const struct fabric *fabric)
{
    return fabric->shape.topology == TOPOLOGY_DRAGONFLY;
}

static json_t *dragonfly_json(const struct fabric *fabric, const struct fabric_counts *c, json_t *links)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:o}", "hosts", c->hosts,
                     "gpus", c->gpus, "nics", c->nics, "nic_ports", c->ports, "groups", c->pods, "switches", c->tors,
                     "local_cables", c->local_cables, "global_cables", c->global_cables, "global_links",
                     fabric->shape.global_links, "links_down", fabric->n_down, "links", (json_int_t)c->links, "bisection_Bps",
                     c->bisection, "local_Bps", c->local_bandwidth, "global_Bps", c->global_bandwidth, "taper", c->taper,
                     "layers", links);
}

static json_t *counts_json(const struct fabric *fabric, const struct fabric_counts *c)
{
    json_t *links = json_object();

    for (int layer = 0; layer < N_FABRIC_LAYERS; layer++)
        json_object_set_new(links, fabric_layer_name((enum fabric_layer)layer),
                            json_integer((json_int_t)fabric_layer_links(fabric, (enum fabric_layer)layer)));
    if (is_dragonfly(fabric))
        return dragonfly_json(fabric, c, links);
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:o}", "hosts", c->hosts, "gpus",
                     c->gpus, "nics", c->nics, "nic_ports", c->ports, "tor_sets", c->sets, "tors", c->tors, "pods", c->pods,
                     "aggs", c->aggs, "cores", c->cores, "links_down", fabric->n_down, "links", (json_int_t)c->links,
                     "bisection_Bps", c->bisection, "tor_oversubscription", c->tor_oversubscription, "agg_oversubscription",
                     c->agg_oversubscription, "layers", links);
}

/* `cables` is what --link calls those of this tier; NULL: it has none of its own. */
static void dragonfly_row(struct table *table, const char *what, int count, const char *cables, int n, double bandwidth)
{
    table_cell(table, "%s", what);
    table_cell(table, "%d", count);
    table_cell(table, "%s", cables != NULL ? cables : "");
    if (cables != NULL) {
        table_cell(table, "%d", n);
        table_cell(table, "%.6g", bandwidth / 1e12);
    } else {
        table_cell(table, "%s", "");
        table_cell(table, "%s", "");
    }
}

static void dragonfly_table(struct table *table, const struct fabric_counts *c)
{
    table_column(table, "tier", NULL, ALIGN_LEFT);
    table_column(table, "number", NULL, ALIGN_RIGHT);
    table_column(table, "cables", NULL, ALIGN_LEFT);
    table_column(table, "their number", NULL, ALIGN_RIGHT);
    table_column(table, "one way", "TB/s", ALIGN_RIGHT);
    dragonfly_row(table, "GPUs", c->gpus, NULL, 0, 0);
    dragonfly_row(table, "hosts", c->hosts, "nic", c->nic_cables, c->nic_bandwidth);
    dragonfly_row(table, "switches", c->tors, "local", c->local_cables, c->local_bandwidth);
    dragonfly_row(table, "groups", c->pods, "global", c->global_cables, c->global_bandwidth);
}

static void count_row(struct table *table, const char *what, int count, int cables, double bandwidth, double over)
{
    char ratio[32];
    table_cell(table, "%s", what);
    table_cell(table, "%d", count);
    if (cables > 0) {
        table_cell(table, "%d", cables);
        table_cell(table, "%.6g", bandwidth / 1e12);
    } else {
        table_cell(table, "%s", "");
        table_cell(table, "%s", "");
    }
    if (over > 0)
        table_cell(table, "%s", ratio_text(over, ratio, sizeof ratio));
    else
        table_cell(table, "%s", "");
}

static void clos_table(struct table *table, const struct fabric *fabric, const struct fabric_counts *c)
{
    table_column(table, "tier", NULL, ALIGN_LEFT);
    table_column(table, "number", NULL, ALIGN_RIGHT);
    table_column(table, "cables up", NULL, ALIGN_RIGHT);
    table_column(table, "one way", "TB/s", ALIGN_RIGHT);
    table_column(table, "oversubscription", NULL, ALIGN_RIGHT);
    count_row(table, "GPUs", c->gpus, 0, 0, 0);
    count_row(table, "hosts", c->hosts, c->nic_cables, c->nic_bandwidth, 0);
    count_row(table, "ToR sets", c->sets, 0, 0, 0);
    count_row(table, "ToR switches", c->tors, c->tor_cables, c->tor_bandwidth, c->tor_oversubscription);
    if (fabric->layers > 1)
        count_row(table, fabric->layers > 2 ? "aggregation switches" : "spine switches", c->aggs, c->agg_cables, c->agg_bandwidth,
                  c->agg_oversubscription);
    if (fabric->layers > 2)
        count_row(table, "core switches", c->cores, 0, 0, 0);
}

static void show_table(struct invocation *call, const struct fabric *fabric)
{
    struct fabric_counts c = fabric_counts(fabric);
    struct table table = {0};
    char text[FABRIC_TEXT_MAX];

    if (call->format == FORMAT_TEXT)
        fprintf(call->out, "%s\n\n", fabric_format(fabric, text, sizeof text));
    if (is_dragonfly(fabric))
        dragonfly_table(&table, &c);
    else
        clos_table(&table, fabric, &c);
    table_write(&table, call);
    table_free(&table);
    if (call->format != FORMAT_TEXT)
        return;
    fprintf(call->out, "\n%u directed links, %d down; bisection %s", c.links, fabric->n_down,
            quantity_format(c.bisection, DIM_RATE, text, sizeof text));
    if (is_dragonfly(fabric) && c.pods > 1)
        fprintf(call->out, "; %d cable%s between two groups, which carry %.3g of the rate of a full group's NICs",
                fabric->shape.global_links, plural(fabric->shape.global_links), c.taper);
    fputc('\n', call->out);
}

static enum status show(struct invocation *call, const struct fabric *fabric, int queue_pairs)
{
    struct fabric_counts counts = fabric_counts(fabric);

    (void)queue_pairs;
    if (call->format != FORMAT_JSON) {
        show_table(call, fabric);
        return STATUS_OK;
    }
    json_t *result = fabric_result(call, fabric);
    json_object_set_new(result, "counts", counts_json(fabric, &counts));
    return result_write(call, result);
}

static enum status check(struct invocation *call, const struct fabric *fabric, int queue_pairs)
{
    enum status status = fabric_check(fabric, &call->diags);

    (void)queue_pairs;
    if (status == STATUS_OK)
        status = route_check(fabric, &call->diags);
    if (status != STATUS_OK)
        return status;
    if (call->format == FORMAT_JSON) {
        json_t *result = fabric_result(call, fabric);
        json_object_set_new(result, "holds", json_true());
        return result_write(call, result);
    }
    if (call->format == FORMAT_CSV)
        fputs("holds\n1\n", call->out);
    else
        fprintf(call->out, "the fabric is consistent: ports, cables and counts agree%s\n",
                fabric->n_down > 0 ? ", and every pair of GPUs is connected despite the links that are down" : "");
    return STATUS_OK;
}

/* ---- route */

static bool gpu_parse(struct invocation *call, const char *text, int limit, int *gpu)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end != '\0' || value < 0 || value >= limit) {
        diag_error(&call->diags, PLACE_NONE, "'%.40s' is not a GPU; GPUs are numbered 0 to %d", text, limit - 1);
        return false;
    }
    *gpu = (int)value;
    return true;
}

static void path_rows(const struct fabric *fabric, const struct path *path, int queue_pair, struct table *table)
{
    char text[96];

    for (int h = 0; h < path->n; h++) {
        table_cell(table, "%d", queue_pair);
        table_cell(table, "%s", fabric_layer_name(fabric_layer_of(fabric, path->links[h])));
        table_cell(table, "%s", fabric_link_name(fabric, path->links[h], text, sizeof text));
        table_cell(table, "%.6g", fabric_rate(fabric, path->links[h]) / 1e9);
    }
}

static json_t *path_json(const struct fabric *fabric, const struct path *path, int queue_pair)
{
    char text[96];
    json_t *links = json_array();

    for (int h = 0; h < path->n; h++)
        json_array_append_new(links,
                              json_pack("{s:s, s:s, s:f}", "layer", fabric_layer_name(fabric_layer_of(fabric, path->links[h])),
                                        "link", fabric_link_name(fabric, path->links[h], text, sizeof text), "rate_Bps",
                                        fabric_rate(fabric, path->links[h])));
    return json_pack("{s:i, s:o}", "queue_pair", queue_pair, "links", links);
}

static enum status write_ways(struct invocation *call, const struct fabric *fabric, int from, int to, const struct table *table,
                              json_t *ways)
{
    if (call->format != FORMAT_JSON) {
        table_write(table, call);
        return STATUS_OK;
    }
    json_t *result = fabric_result(call, fabric);
    json_object_set_new(result, "from", json_integer(from));
    json_object_set_new(result, "to", json_integer(to));
    json_object_set(result, "ways", ways);
    return result_write(call, result);
}

static enum status route(struct invocation *call, const struct fabric *fabric, int queue_pairs)
{
    struct router router = fabric_options_router(call, fabric);
    uint32_t *loads = memory_new(fabric_links(fabric), sizeof *loads);
    struct table table = {0};
    json_t *ways = json_array();
    enum status status = STATUS_OK;
    struct path path;
    int from, to;

    router.load = loads;
    table_column(&table, "queue pair", NULL, ALIGN_RIGHT);
    table_column(&table, "layer", NULL, ALIGN_LEFT);
    table_column(&table, "link", NULL, ALIGN_LEFT);
    table_column(&table, "rate", "GB/s", ALIGN_RIGHT);
    if (!gpu_parse(call, call->operands[1], fabric->n_gpus, &from) || !gpu_parse(call, call->operands[2], fabric->n_gpus, &to))
        status = STATUS_USAGE;
    for (int q = 0; q < queue_pairs && status == STATUS_OK; q++) {
        if (route_gpus(&router, from, to, (uint32_t)q, &path)) {
            path_rows(fabric, &path, q, &table);
            json_array_append_new(ways, path_json(fabric, &path, q));
            for (int h = 0; h < path.n; h++)
                loads[path.links[h]]++;
        } else {
            diag_error(&call->diags, PLACE_NONE, "there is no path%s from GPU %d to GPU %d", route_limit_text(fabric), from, to);
            status = STATUS_FAILED;
        }
    }
    if (status == STATUS_OK)
        status = write_ways(call, fabric, from, to, &table, ways);
    table_free(&table);
    json_decref(ways);
    free(loads);
    return status;
}

/* ---- the command */

static const struct verb {
    const char *name;
    int operands;
    enum status (*run)(struct invocation *call, const struct fabric *fabric, int queue_pairs);
} verbs[] = {{"show", 1, show},        {"check", 1, check}, {"route", 3, route},
             {"load", 1, fabric_load}, {"time", 1, NULL},   {"import", 2, NULL}};
enum { N_VERBS = sizeof verbs / sizeof verbs[0] };

static const struct verb *verb_find(struct invocation *call)
{
    const char *names[N_VERBS];

    for (int i = 0; i < N_VERBS; i++) {
        names[i] = verbs[i].name;
        if (strcmp(call->operands[0], verbs[i].name) != 0)
            continue;
        bool imports = strcmp(verbs[i].name, "import") == 0;
        if (call->n_operands == verbs[i].operands || (imports && call->n_operands > verbs[i].operands))
            return &verbs[i];
        diag_error(&call->diags, PLACE_NONE, "msim fabric %s takes %s", verbs[i].name,
                   imports                 ? "one file or more: msim fabric import topo.xml topology.conf --gpu h100-sxm"
                   : verbs[i].operands > 1 ? "two GPUs: msim fabric route 0 9000"
                                           : "no operands; specify the cluster with --cluster");
        return NULL;
    }
    char hint[96];
    diag_error(&call->diags, PLACE_NONE, "msim fabric: there is no '%.40s'; %s", call->operands[0],
               name_hint(call->operands[0], names, N_VERBS, "it is show, check, route, load, time or import", hint, sizeof hint));
    return NULL;
}

/* The cluster of --cluster or --gpu. */
static enum status cluster_find(struct invocation *call, struct cluster *cluster)
{
    const char *name = option_text(call, "cluster"), *gpu = option_text(call, "gpu");
    int gpus = (int)option_count(call, "gpus");

    if (name == NULL) {
        struct cluster_kind kind;
        enum status status = cluster_kind_of_gpu(gpu, 0, 0, &kind, &call->diags);
        if (status != STATUS_OK)
            return status;
        int host = kind.like.gpu.gpus_per_node;
        return cluster_of_kind(&kind, gpus > host ? (gpus + host - 1) / host : 1, cluster, &call->diags);
    }
    enum status status = catalog_cluster(name, cluster, &call->diags);
    return status == STATUS_OK && gpu != NULL ? catalog_gpu(gpu, &cluster->gpu, &call->diags) : status;
}

/* msim fabric time needs a cluster with its GPU, and no fabric. */
static enum status time_of_cluster(struct invocation *call)
{
    struct cluster cluster;
    if (option_text(call, "fabric") != NULL || (option_text(call, "cluster") == NULL && option_text(call, "gpu") == NULL)) {
        diag_error(
            &call->diags, PLACE_NONE,
            "msim fabric time needs the GPUs' rates, too; specify --cluster NAME, or --gpu NAME --gpus N, without --fabric");
        return STATUS_USAGE;
    }
    enum status status = cluster_find(call, &cluster);
    return status == STATUS_OK ? fabric_time(call, &cluster) : status;
}

/* Options of traffic, where the verb simulates none; options of routes and links, where it predicts a time by the cluster's
 * entry alone. */
static void note_without_load(struct invocation *call, const struct verb *verb)
{
    for (int i = 0; i < call->n_values && verb->run != fabric_load; i++) {
        const struct option_row *row = call->values[i].row;
        bool of_load = row->group != NULL && (strcmp(row->group, LOAD_GROUP) == 0 || strcmp(row->group, PACKETS_GROUP) == 0);
        bool idle = of_load && strcmp(row->name, "gpus") != 0; /* --gpus is also the size of the fabric of a GPU */
        bool timed = verb->run == NULL && strcmp(row->name, "bytes") == 0;
        bool of_links = verb->run == NULL && row->group != NULL && strcmp(row->group, FABRIC_GROUP) == 0 &&
                        strcmp(row->name, "cluster") != 0 && strcmp(row->name, "gpu") != 0;
        if (call->values[i].given && (of_links || (idle && !timed)))
            diag_note(&call->diags, PLACE_NONE, "--%s has no effect with msim fabric %s, which simulates no traffic", row->name,
                      verb->name);
    }
}

static enum status run(struct invocation *call)
{
    const struct verb *verb = verb_find(call);
    bool of_cluster = option_text(call, "cluster") != NULL || option_text(call, "gpu") != NULL;
    struct cluster cluster;
    struct fabric fabric;

    if (verb == NULL)
        return STATUS_USAGE;
    note_without_load(call, verb);
    if (verb->run == NULL)
        return strcmp(verb->name, "import") == 0 ? fabric_import(call) : time_of_cluster(call);
    if (!of_cluster && option_text(call, "fabric") == NULL) {
        diag_error(&call->diags, PLACE_NONE,
                   "the fabric is missing; specify --cluster NAME, --gpu NAME --gpus N, or --fabric 'clos hosts:... tor:...' or "
                   "'dragonfly ...'");
        return STATUS_USAGE;
    }
    enum status status = of_cluster ? cluster_find(call, &cluster) : STATUS_OK;
    if (status == STATUS_OK)
        status = fabric_options_load(call, &cluster, &fabric);
    if (status != STATUS_OK)
        return status;
    status = verb->run(call, &fabric, fabric_options_queue_pairs(call, of_cluster ? &cluster : NULL));
    fabric_free(&fabric);
    return status;
}

static const struct example examples[] = {
    {"msim fabric show --cluster megascale-a100", "show switches, cables and bisection of 12,288 GPUs"},
    {"msim fabric route 0 9000 --cluster megascale-a100 --queue-pairs 4", "list the links between two GPUs"},
    {"msim fabric time --op all_reduce --bytes 1GiB --gpus 64 --cluster dgx-h100",
     "predict the time of one all-reduce over 8 nodes, and its parts"},
    {"msim fabric load --fabric 'clos hosts:12288 tor:32x400G/32x400G agg:32x400G/32x400G core:12x400G'",
     "simulate a random permutation of 12,288 hosts, with hash collisions"},
    {"msim fabric load --fabric 'clos hosts:16 tor:16x400G' --pattern incast --bytes 20MB --network packet "
     "--congestion none",
     "show whether an incast of 15 to 1 pauses its senders, and the depth of the queue"},
    {"msim fabric import topo.xml topology.conf --gpu h100-sxm -o mine.yaml",
     "write a cluster's entry from NCCL's topology of a node and Slurm's topology"},
    {"msim fabric show --gpu h100-sxm --gpus 1024", "show the assumed fabric of 128 usual nodes of a GPU"},
    {"msim fabric load --cluster megascale-a100 --pattern shift --link tor:0=0 --routing adaptive",
     "route around a failed uplink"},
    {"msim fabric load --fabric 'dragonfly switch:4x200G' --pattern shift --stride 32 --routing valiant",
     "send from each group to the next, over third groups"},
    {0},
};

static const struct command_note notes[] = {
    {"The fabric in one line",
     "'clos' followed by words such as hosts:1536 gpus:8 nics:8x200G tors:8 tor:64x200G/32x400G "
     "agg:32x400G/32x400G core:64x400G. Or 'dragonfly' followed by words such as hosts:2688 gpus:4 nics:4x200G "
     "rails:4 group:32 switch:16x200G pair:15: 16 NIC ports per switch, 32 switches per group, all connected, "
     "and 15 cables between each pair of groups."},
    {"Dragonfly routing",
     "ecmp and static use a direct path: to the group of the destination, over one of the cables between the "
     "two groups. valiant uses a third group, chosen by hash. adaptive uses a third group where it is less "
     "loaded (UGAL); this is the default of a dragonfly."},
    {"Fair rates", "load reports the max-min fair rate of each connection. Where a GPU has several connections (incast, "
                   "all_to_all), it also reports the sum that the GPU sends and receives."},
    {"Packets", "load --network packet also simulates the traffic packet by packet: output queues with a shared buffer, "
                "ECN marks, PFC pauses, and senders with DCQCN or without congestion control. It reports rates, completion "
                "times, marks and pauses next to the fair rates, and the links with the longest pauses and deepest queues. "
                "Rates count from half of the time to the first completion; if senders have not settled by then, increase "
                "--bytes. Ten million packets times links take about a second. --mtu 64KiB simulates a large load "
                "coarsely; marks (a probability per packet) and queues then mean less."},
    {0},
};

const struct command command_fabric = {
    .name = "fabric",
    .summary = "show and check the network of a cluster, trace paths, and simulate traffic",
    .description = "show counts switches, cables and bisection. check verifies ports, cables, counts and connectivity. route "
                   "A B lists the links on the path between two GPUs. load simulates a traffic pattern and reports the "
                   "bandwidth of each connection. time predicts the time of one collective and its parts; without --bytes, of "
                   "a ladder of sizes as nccl-tests runs it. import writes a cluster's entry from NCCL's topology of a node "
                   "(NCCL_TOPO_DUMP_FILE), Slurm's topology.conf and the output of ibnetdiscover; several files add up.\n"
                   "\n"
                   "The fabric is that of a cluster entry (--cluster), that of as many usual nodes of a GPU as --gpus needs "
                   "(--gpu), or one line (--fabric).",
    .operands = "show|check|route A B|load|time|import FILE...",
    .min_operands = 1,
    .max_operands = -1,
    .options = options,
    .notes = notes,
    .examples = examples,
    .keys = fabric_keys,
    .run = run,
};
