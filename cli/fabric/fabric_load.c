#include "cli/fabric/fabric_load.h"

#include <stdlib.h>

#include "cli/fabric/fabric_packets.h"
#include "cli/options/fabric_options.h"
#include "cli/output/progress.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "model/base/memory.h"
#include "sim/fabric/load.h"

/* ---- results */

json_t *fabric_result(const struct invocation *call, const struct fabric *fabric)
{
    char text[FABRIC_TEXT_MAX];
    json_t *result = result_create(call, NULL);

    json_object_set_new(result, "fabric", json_string(fabric_format(fabric, text, sizeof text)));
    return result;
}

const char *const load_pattern_choices[] = {"permutation", "ring", "shift", "incast", "all_to_all", NULL};

static void heading_write(struct invocation *call, const struct load_summary *summary)
{
    char time[32], fair[48] = "", demand[32];
    double seconds = summary->with_packets ? summary->packets.seconds : summary->seconds;

    if (summary->with_packets)
        snprintf(fair, sizeof fair, " (fair flows: %s)", quantity_format(summary->seconds, DIM_TIME, time, sizeof time));
    fprintf(call->out, "%zu transfer%s on %zu connection%s, finished after %s%s; the NICs of a GPU carry %s\n",
            summary->transfers, plural((int64_t)summary->transfers), summary->connections + summary->inside,
            plural((int64_t)(summary->connections + summary->inside)), quantity_format(seconds, DIM_TIME, time, sizeof time),
            fair, quantity_format(summary->demand, DIM_RATE, demand, sizeof demand));
    if (summary->inside > 0)
        fprintf(call->out, "%zu of them inside NVLink domains, not listed below\n", summary->inside);
    if (summary->repeats > 1)
        fprintf(call->out, "means over %d seeds\n", summary->repeats);
    fputc('\n', call->out);
}

/* Where a GPU has one connection its sum is that connection's rate, which is in the table above. */
static bool sums_say_more(const struct load_summary *summary)
{
    return summary->sent.n < summary->connections || summary->received.n < summary->connections;
}

static void load_table(struct invocation *call, const struct load_summary *summary)
{
    struct table table = {0};

    table_column(&table,
                 call->format == FORMAT_TEXT && sums_say_more(summary) ? "of a connection, while all send" : "while all send",
                 NULL, ALIGN_LEFT);
    table_column(&table, "rate", "GB/s", ALIGN_RIGHT);
    table_column(&table, "of NIC share", "%", ALIGN_RIGHT);
    if (summary->repeats > 1)
        table_column(&table, "spread over seeds", "%", ALIGN_RIGHT);
    for (int i = 0; i < N_STATISTICS; i++) {
        table_cell(&table, "%s", load_statistic_names[i]);
        table_cell(&table, "%.2f", summary->rates[i] / 1e9);
        table_cell(&table, "%.1f", 100 * summary->rates[i] / summary->demand);
        if (summary->repeats > 1)
            table_cell(&table, "%.1f", 100 * load_spread(summary, i) / summary->demand);
    }
    table_write(&table, call);
    table_free(&table);
}

static void sums_row(struct table *table, const char *what, const struct gpu_sums *sums, double demand)
{
    table_cell(table, "%s", what);
    table_cell(table, "%zu", sums->n);
    for (int i = 0; i < N_OF_GPUS; i++)
        table_cell(table, "%.2f", sums->rates[i] / 1e9);
    table_cell(table, "%.1f", 100 * sums->rates[MEAN_GPU] / demand);
}

static void sums_write(struct invocation *call, const struct load_summary *summary)
{
    struct table table = {0};

    fputc('\n', call->out);
    table_column(&table, "all connections of a GPU", NULL, ALIGN_LEFT);
    table_column(&table, "GPUs", NULL, ALIGN_RIGHT);
    table_column(&table, "worst", "GB/s", ALIGN_RIGHT);
    table_column(&table, "mean", "GB/s", ALIGN_RIGHT);
    table_column(&table, "best", "GB/s", ALIGN_RIGHT);
    table_column(&table, "mean of NIC share", "%", ALIGN_RIGHT);
    sums_row(&table, "sent", &summary->sent, summary->demand);
    sums_row(&table, "received", &summary->received, summary->demand);
    table_write(&table, call);
    table_free(&table);
}

static json_t *sums_json(const struct gpu_sums *sums)
{
    return json_pack("{s:I, s:f, s:f, s:f}", "gpus", (json_int_t)sums->n, "worst", sums->rates[WORST_GPU], "mean",
                     sums->rates[MEAN_GPU], "best", sums->rates[BEST_GPU]);
}

static enum status load_json(struct invocation *call, const struct fabric *fabric, const struct load *load,
                             const struct load_summary *summary)
{
    json_t *object = fabric_result(call, fabric), *rates = json_object(), *spread = json_object();

    for (int i = 0; i < N_STATISTICS; i++) {
        json_object_set_new(rates, load_statistic_keys[i], json_real(summary->rates[i]));
        json_object_set_new(spread, load_statistic_keys[i], json_real(load_spread(summary, i)));
    }
    json_object_set_new(object, "pattern", json_string(load_pattern_name(load->pattern)));
    json_object_set_new(object, "repeats", json_integer(summary->repeats));
    json_object_set_new(object, "transfers", json_integer((json_int_t)summary->transfers));
    json_object_set_new(object, "connections", json_integer((json_int_t)summary->connections));
    json_object_set_new(object, "connections_inside_nvlink", json_integer((json_int_t)summary->inside));
    json_object_set_new(object, "seconds", json_real(summary->seconds));
    json_object_set_new(object, "demand_Bps", json_real(summary->demand));
    json_object_set_new(object, "rates_Bps", rates);
    json_object_set_new(object, "spread_Bps", spread);
    json_object_set_new(object, "sent_by_gpu_Bps", sums_json(&summary->sent));
    json_object_set_new(object, "received_by_gpu_Bps", sums_json(&summary->received));
    json_object_set_new(object, "solves", json_integer((json_int_t)summary->solves));
    if (summary->with_packets)
        json_object_set_new(object, "packets", packets_summary_json(call, fabric, &summary->packets));
    return result_write(call, object);
}

static void map_write(FILE *out, const struct fabric *fabric, const struct load_result *result)
{
    char name[96];
    double *carried = memory_new(fabric_links(fabric), sizeof *carried);
    double seconds = result->packets.packets != NULL ? result->packets.seconds : result->seconds;

    flows_carried(result->flows, carried);
    const struct packets *packets = result->packets.packets;
    fprintf(out, "layer,link,utilisation,contended_s,most_transfers,%sname\n",
            packets != NULL ? "deepest_queue_bytes,marks,pauses,paused_s," : "");
    for (uint32_t l = 0; l < fabric_links(fabric); l++) {
        enum fabric_layer layer = fabric_layer_of(fabric, l);
        fprintf(out, "%s,%u,%.6g,%.9g,%u,", fabric_layer_name(layer), l - fabric->first[layer],
                carried[l] / (fabric->rates[l] * seconds), (double)flows_contended(result->flows, l) * 1e-9,
                flows_most(result->flows, l));
        if (packets != NULL)
            link_seen_write(out, packets, l);
        fprintf(out, "%s\n", fabric_link_name(fabric, l, name, sizeof name));
    }
    free(carried);
}

/* Cables of --link over which nothing went. */
static void note_silent(struct invocation *call, const struct fabric *fabric, const struct load_result *result)
{
    double *carried = memory_new(fabric_links(fabric), sizeof *carried);
    flows_carried(result->flows, carried);
    fabric_options_note_silent(call, fabric, carried);
    free(carried);
}

/* One seed after another is one piece of work. */
struct seeds_progress {
    struct progress progress;
    int seed, seeds;
};

static void seeds_update(void *context, double done, double total)
{
    struct seeds_progress *at = context;

    progress_update(&at->progress, done + at->seed * total, at->seeds * total);
}

/* Seeds count up from the call's, for the hash and for the pattern. */
static enum status repeats_run(struct invocation *call, const struct fabric *fabric, struct load *what, FILE *map,
                               struct load_summary *summary)
{
    struct router router = fabric_options_router(call, fabric);
    struct seeds_progress at = {.progress = progress_begin(call, "packets"), .seeds = summary->repeats};
    enum status status = STATUS_OK;

    what->progress = seeds_update;
    what->context = &at;
    for (int i = 0; i < summary->repeats; i++) {
        struct load_result result;
        at.seed = i;
        router.seed = what->seed = call->seed + (uint64_t)i;
        status = load_run(&router, what, &result, &call->diags);
        if (status != STATUS_OK)
            break;
        load_summary_add(summary, fabric, &result);
        if (map != NULL && i == summary->repeats - 1)
            map_write(map, fabric, &result);
        if (summary->repeats == 1) /* another seed may take other cables */
            note_silent(call, fabric, &result);
        load_result_free(&result);
    }
    progress_end(&at.progress);
    return status;
}

enum status fabric_load(struct invocation *call, const struct fabric *fabric, int queue_pairs)
{
    struct load what = {.pattern = (enum load_pattern)option_choice(call, "pattern"),
                        .gpus = (int)option_count(call, "gpus"),
                        .senders = (int)option_count(call, "senders"),
                        .stride = (int)option_count(call, "stride"),
                        .bytes = option_quantity(call, "bytes"),
                        .jitter = option_quantity(call, "jitter"),
                        .queue_pairs = queue_pairs};
    struct load_summary summary = {.repeats = (int)option_count(call, "repeats"),
                                   .with_packets = option_choice(call, "network") == LOAD_NETWORK_PACKET};
    FILE *map;

    if (!summary.with_packets)
        fabric_packets_note_idle(call);
    enum status status = output_option(call, "link-map", &map);

    if (status == STATUS_OK && summary.with_packets) {
        status = fabric_packets_parameters(call, &summary.packets.with);
        what.packets = &summary.packets.with;
    }
    if (status == STATUS_OK)
        status = repeats_run(call, fabric, &what, map, &summary);
    if (status != STATUS_OK)
        return status;
    if (call->format == FORMAT_JSON)
        return load_json(call, fabric, &what, &summary);
    if (call->format == FORMAT_TEXT)
        heading_write(call, &summary);
    if (summary.with_packets)
        packets_summary_write(call, fabric, &summary.packets, summary.rates);
    else
        load_table(call, &summary);
    if (call->format == FORMAT_TEXT && sums_say_more(&summary))
        sums_write(call, &summary);
    return STATUS_OK;
}
