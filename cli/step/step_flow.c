#include "cli/step/step_flow.h"

#include <stdlib.h>
#include <string.h>

#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
#include "model/base/append.h"
#include "model/base/memory.h"
#include "sim/network/placement.h"

const char *const placement_choices[] = {"data_first", "pipeline_first", "random", "fragmented", NULL};

/* ---- after the run */

static void map_write(const struct step_flow *flow, const struct link_usage *usage, const struct packets *packets, double seconds)
{
    const struct fabric *fabric = &flow->fabric;
    char name[96];

    fprintf(flow->map, "layer,link,utilisation,contended_s,most_transfers,%sname\n",
            packets != NULL ? "deepest_queue_bytes,marks,pauses,paused_s," : "");
    for (uint32_t l = 0; l < fabric_links(fabric); l++) {
        enum fabric_layer layer = fabric_layer_of(fabric, l);
        fprintf(flow->map, "%s,%u,%.6g,%.9g,%u,", fabric_layer_name(layer), l - fabric->first[layer],
                usage[l].carried / (fabric->rates[l] * seconds), (double)usage[l].contended * 1e-9, usage[l].most);
        if (packets != NULL)
            link_seen_write(flow->map, packets, l);
        fprintf(flow->map, "%s\n", fabric_link_name(fabric, l, name, sizeof name));
    }
}

/* What packets carried, and on NVLink flows; who met where is as with fair flows. */
static void packets_see(struct step_flow *flow, struct link_usage *usage, const struct packets *packets, double seconds)
{
    for (uint32_t l = 0; l < fabric_links(&flow->fabric); l++) {
        usage[l].carried += (double)packets_link(packets, l).bytes;
        usage[l].contended = flow->fair[l].contended;
        usage[l].most = flow->fair[l].most;
    }
    step_packets_see(&flow->packets, &flow->fabric, packets, seconds);
}

/* Cables of --link over which nothing went. */
static void note_silent(const struct step_flow *flow, const struct link_usage *usage)
{
    double *carried = memory_new(fabric_links(&flow->fabric), sizeof *carried);
    for (uint32_t l = 0; l < fabric_links(&flow->fabric); l++)
        carried[l] = usage[l].carried;
    fabric_options_note_silent(flow->call, &flow->fabric, carried);
    free(carried);
}

static void network_seen(void *context, struct network_flow *network, const struct step_result *result)
{
    struct step_flow *flow = context;
    const struct packets *packets = network_flow_packets(network);
    struct link_usage *usage = memory_new(fabric_links(&flow->fabric), sizeof *usage);

    network_flow_usage(network, usage);
    if (packets != NULL) {
        packets_see(flow, usage, packets, result->step_time_s);
    } else {
        flow->n_hot = network_flow_hottest(network, usage, HOT_LINKS, flow->hot);
        flow->counts = network_flow_counts(network);
        note_silent(flow, usage);
    }
    flow->seconds = result->step_time_s;
    link_usage_by_layer(&flow->fabric, usage, result->step_time_s, flow->layers);
    if (flow->map != NULL && (packets != NULL) == flow->packets.wanted)
        map_write(flow, usage, packets, result->step_time_s);
    if (packets != NULL || !flow->packets.wanted) {
        free(usage);
        return;
    }
    flow->fair = usage;
    step_packets_measure(&flow->packets, &flow->fabric, usage, result->step_time_s);
}

/* ---- before it */

/* LINK@START+LENGTH. */
static bool flap_parse(struct invocation *call, const char *text, const struct fabric *fabric, struct link_event *events)
{
    const char *at = strchr(text, '@'), *plus = at != NULL ? strchr(at, '+') : NULL;
    char start_text[32] = "", why[160];
    uint32_t out, back;
    double start, length;

    if (!fabric_cable_parse(call, "--flap", text, '@', fabric, &out, &back))
        return false;
    if (plus != NULL && (size_t)(plus - at) < sizeof start_text)
        memcpy(start_text, at + 1, (size_t)(plus - at - 1));
    if (plus == NULL || quantity_parse(start_text, DIM_TIME, &start, why, sizeof why) != STATUS_OK ||
        quantity_parse(plus + 1, DIM_TIME, &length, why, sizeof why) != STATUS_OK || start < 0 || length <= 0) {
        diag_error(&call->diags, PLACE_NONE, "--flap %s: write LINK@START+LENGTH, for example tor:17@2s+50ms", text);
        return false;
    }
    nanos stall = retransmit_stall(nanos_from_seconds(length), (int)option_count(call, "retransmit-exponent"),
                                   option_flag(call, "adaptive-retransmission"));
    if (stall < 0) {
        diag_error(&call->diags, PLACE_NONE,
                   "--flap %s: the NICs give up after %d tries, before the link is back, and the job fails; use a shorter time",
                   text, RETRANSMIT_TRIES);
        return false;
    }
    nanos from = nanos_from_seconds(start) + STEP_EPOCH;
    events[0] = (struct link_event){.at = from, .link = out, .speed = 0};
    events[1] = (struct link_event){.at = from, .link = back, .speed = 0};
    events[2] = (struct link_event){.at = from + stall, .link = out, .speed = 1};
    events[3] = (struct link_event){.at = from + stall, .link = back, .speed = 1};
    return true;
}

/* NICs send again where a cable was down for a while. */
static void note_without_flaps(struct invocation *call)
{
    static const char *const names[] = {"retransmit-exponent", "adaptive-retransmission"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (option_given(call, names[i]))
            diag_note(&call->diags, PLACE_NONE, "--%s has no effect without %s--flap", names[i],
                      option_choice(call, "network") == NETWORK_PACKET ? "--network flow with " : "");
}

static enum status flaps_load(struct invocation *call, struct step_flow *flow)
{
    int n;
    const char *const *texts = option_list(call, "flap", &n);

    if (n == 0)
        note_without_flaps(call);
    flow->events = memory_new(4 * (size_t)n, sizeof *flow->events);
    for (int i = 0; i < n; i++)
        if (!flap_parse(call, texts[i], &flow->fabric, flow->events + 4 * i))
            return STATUS_USAGE;
    qsort(flow->events, 4 * (size_t)n, sizeof *flow->events, link_event_compare);
    flow->options.events = flow->events;
    flow->options.n_events = 4 * n;
    return STATUS_OK;
}

/* Faults of NVLink reach only what the fabric carries of it. */
static void nvlink_note(struct invocation *call)
{
    static const char *const names[] = {"link", "flap"};
    int n;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const *texts = option_list(call, names[i], &n);
        for (int t = 0; t < n; t++)
            if (strncmp(texts[t], "nvlink:", 7) == 0)
                diag_note(
                    &call->diags, PLACE_NONE,
                    "--%s %s: messages inside an NVLink domain slow down, but collectives there keep their closed-form time",
                    names[i], texts[t]);
    }
}

enum status step_flow_load(struct invocation *call, const struct job_setup *setup, struct step_flow *flow,
                           struct step_options *how)
{
    enum placement placement = (enum placement)option_choice(call, "placement");

    *flow = (struct step_flow){.call = call};
    enum status status = fabric_options_load(call, setup->setting.cluster, &flow->fabric);
    if (status != STATUS_OK)
        return status;
    if (flow->fabric.n_gpus < setup->setting.gpus) {
        diag_error(&call->diags, PLACE_NONE, "the fabric has %d GPUs, but the job needs %d", flow->fabric.n_gpus,
                   setup->setting.gpus);
        fabric_free(&flow->fabric);
        return STATUS_BAD_INPUT;
    }
    status = output_option(call, "link-map", &flow->map);
    if (status != STATUS_OK) {
        fabric_free(&flow->fabric);
        return status;
    }
    nvlink_note(call);
    flow->placement = memory_new((size_t)setup->setting.gpus, sizeof *flow->placement);
    placement_fill(placement, &setup->layout, &flow->fabric, call->seed, flow->placement);
    struct router router = fabric_options_router(call, &flow->fabric);
    flow->options = (struct network_flow_options){.fabric = &flow->fabric,
                                                  .routing = router.routing,
                                                  .polarised = router.polarised,
                                                  .rail_aware = router.rail_aware,
                                                  .per_step = option_choice(call, "collectives") == 1,
                                                  .queue_pairs = fabric_options_queue_pairs(call, setup->setting.cluster),
                                                  .seed = call->seed,
                                                  .placement = flow->placement};
    how->flow = &flow->options;
    how->all_ranks = true;
    how->seen = network_seen;
    how->seen_context = flow;
    if (option_choice(call, "network") == NETWORK_PACKET)
        status = step_packets_load(call, &flow->fabric, setup->setting.cluster->net_fraction, &flow->packets);
    return status == STATUS_OK ? flaps_load(call, flow) : status;
}

void step_flow_free(struct step_flow *flow)
{
    step_packets_free(&flow->packets);
    fabric_free(&flow->fabric);
    free(flow->placement);
    free(flow->events);
    free(flow->fair);
    flow->placement = NULL;
    flow->events = NULL;
    flow->fair = NULL;
}

/* ---- reports */

/* A layer of the fabric. */
#define LAYER_ROWS(ROW)                                                                                                          \
    ROW(layer_use, links, as_count(s->links), "", JSON, "links of the layer", .show = "%.0f")                                    \
    ROW(layer_use, links_used, as_count(s->used), "", JSON, "links that carried something", .title = "used", .show = "%.0f")     \
    ROW(layer_use, mean_utilisation_pct, as_real(100 * s->mean), "%", JSON, "mean use of those", .title = "their mean use",      \
        .show = "%.2f")                                                                                                          \
    ROW(layer_use, max_utilisation_pct, as_real(100 * s->most), "%", JSON, "use of the fullest", .title = "most", .show = "%.2f")
RESULT_ROWS(fabric_layer_rows, LAYER_ROWS)

static void write_layers(const struct step_flow *flow, const struct invocation *call)
{
    struct table table = {0};

    table_column(&table, "layer", NULL, ALIGN_LEFT);
    rows_columns(fabric_layer_rows, &flow->layers[0], &table);
    for (int layer = 0; layer < N_FABRIC_LAYERS; layer++) {
        if (flow->layers[layer].links == 0)
            continue;
        table_cell(&table, "%s", fabric_layer_name((enum fabric_layer)layer));
        rows_cells(fabric_layer_rows, &flow->layers[layer], &table);
    }
    table_write_text(&table, call);
    table_free(&table);
}

/* One of the links that are shared to their limit. */
struct hot {
    const struct step_flow *flow;
    const struct hot_link *link;
};

static struct value name_of(const struct hot *hot)
{
    char name[96];
    return as_text(fabric_link_name(&hot->flow->fabric, hot->link->link, name, sizeof name));
}

/* "3 pp, 2 dp". */
static struct value users_of(const struct hot *hot)
{
    char text[160] = "";
    json_t *users = json_pack("{s:I}", "messages", (json_int_t)hot->link->messages);

    if (hot->link->messages > 0)
        text_append(text, sizeof text, "%u pp", hot->link->messages);
    for (int kind = 0; kind < N_GROUP_KINDS; kind++) {
        uint32_t n = hot->link->collectives[kind];
        const char *name = group_kind_name((enum group_kind)kind);
        if (n == 0)
            continue;
        text_append(text, sizeof text, "%s%u %s", *text ? ", " : "", n, name);
        json_object_set_new(users, name, json_integer(n));
    }
    return shown_as(as_json(users), "%s", text);
}

#define HOT_LINK_ROWS(ROW)                                                                                                       \
    ROW(hot, link, name_of(s), "", JSON, "name of the link", .title = "contended link", .show = "%s")                            \
    ROW(hot, links_alike, as_count(s->link->alike), "", JSON, "links with the same load", .title = "alike", .show = "%.0f")      \
    ROW(hot, contended_s, as_real((double)s->link->contended * 1e-9), "s", JSON, "time in which transfers share it fully",       \
        .title = "contended", .text_unit = "ms", .scale = 1e3, .show = "%.2f")                                                   \
    ROW(hot, share, as_real((double)s->link->contended * 1e-9 / s->flow->seconds), "", 0, "share of the step",                   \
        .title = "of the step", .text_unit = "%", .scale = 100, .show = "%.2f")                                                  \
    ROW(hot, bytes, as_real(s->link->carried), "", JSON, "bytes carried")                                                        \
    ROW(hot, transfers_at_once, as_count(s->link->most), "", JSON, "most transfers at once", .title = "at once", .show = "%.0f") \
    ROW(hot, users, users_of(s), "", JSON, "messages and collectives routed over it", .title = "routed over it", .show = "%s")
RESULT_ROWS(hot_link_rows, HOT_LINK_ROWS)

static void write_hot(const struct step_flow *flow, const struct invocation *call)
{
    struct table table = {0};

    for (int i = 0; i < flow->n_hot; i++) {
        const struct hot hot = {flow, &flow->hot[i]};
        if (i == 0)
            rows_columns(hot_link_rows, &hot, &table);
        rows_cells(hot_link_rows, &hot, &table);
    }
    table_write_text(&table, call);
    table_free(&table);
}

void step_flow_write(const struct step_flow *flow, const struct invocation *call)
{
    fputs("fabric\n", call->out);
    write_layers(flow, call);
    fputc('\n', call->out);
    if (flow->packets.wanted)
        step_packets_write(call, &flow->fabric, &flow->packets);
    else if (flow->n_hot > 0)
        write_hot(flow, call);
    else
        fputs("no link was shared to its limit\n", call->out);
    fputc('\n', call->out);
}

static json_t *layers_json(const struct step_flow *flow)
{
    json_t *layers = json_object();

    for (int layer = 0; layer < N_FABRIC_LAYERS; layer++)
        if (flow->layers[layer].links > 0)
            json_object_set_new(layers, fabric_layer_name((enum fabric_layer)layer),
                                rows_object(fabric_layer_rows, &flow->layers[layer]));
    return layers;
}

static json_t *hot_json(const struct step_flow *flow)
{
    json_t *list = json_array();

    for (int i = 0; i < flow->n_hot; i++)
        json_array_append_new(list, rows_object(hot_link_rows, &(struct hot){flow, &flow->hot[i]}));
    return list;
}

static struct value fabric_of(const struct step_flow *flow)
{
    char text[FABRIC_TEXT_MAX];
    return as_text(fabric_format(&flow->fabric, text, sizeof text));
}

static json_t *packets_of(const struct step_flow *flow)
{
    return flow->packets.wanted ? step_packets_json(flow->call, &flow->fabric, &flow->packets) : NULL;
}

#define FLOW_ROWS(ROW)                                                                                                           \
    ROW(step_flow, network, as_text(s->packets.wanted ? "packet" : "flow"), "", JSON, "analytic, flow or packet")                \
    ROW(step_flow, fabric, fabric_of(s), "", JSON, "the fabric, as --fabric takes it")                                           \
    ROW(step_flow, routing, as_text(routing_name(s->options.routing)), "", JSON, "how paths are chosen")                         \
    ROW(step_flow, layers, as_json(layers_json(s)), "", JSON, "use of the links of each layer")                                  \
    ROW(step_flow, contended_links, as_json(hot_json(s)), "", JSON, "links that transfers share to their limit")                 \
    ROW(step_flow, transfers, as_count((int64_t)s->counts.transfers), "", JSON, "transfers simulated", .inside = "flows")        \
    ROW(step_flow, solves, as_count((int64_t)s->counts.solves), "", JSON, "times that rates were computed", .inside = "flows")   \
    ROW(step_flow, rates_changed, as_count((int64_t)s->counts.changed), "", JSON, "rates that changed", .inside = "flows")       \
    ROW(step_flow, packets, as_json(packets_of(s)), "", JSON, "queues, marks and pauses, with --network packet")
RESULT_ROWS(step_flow_rows, FLOW_ROWS)
