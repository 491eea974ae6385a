#include "cli/step/step_flow.h"

#include <stdlib.h>
#include <string.h>

#include "cli/options/fabric_options.h"
#include "cli/options/shared_options.h"
#include "cli/output/result.h"
#include "cli/output/table.h"
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

static void users_text(const struct hot_link *hot, char *buffer, size_t size)
{
    size_t used = 0;

    buffer[0] = '\0';
    if (hot->messages > 0)
        used += (size_t)snprintf(buffer, size, "%u pp", hot->messages);
    for (int kind = 0; kind < N_GROUP_KINDS && used < size; kind++)
        if (hot->collectives[kind] > 0)
            used += (size_t)snprintf(buffer + used, size - used, "%s%u %s", used > 0 ? ", " : "", hot->collectives[kind],
                                     group_kind_name((enum group_kind)kind));
}

static void write_layers(const struct step_flow *flow, const struct invocation *call)
{
    struct table table = {0};

    table_column(&table, "layer", NULL, ALIGN_LEFT);
    table_column(&table, "links", NULL, ALIGN_RIGHT);
    table_column(&table, "used", NULL, ALIGN_RIGHT);
    table_column(&table, "their mean use", "%", ALIGN_RIGHT);
    table_column(&table, "most", "%", ALIGN_RIGHT);
    for (int layer = 0; layer < N_FABRIC_LAYERS; layer++) {
        if (flow->layers[layer].links == 0)
            continue;
        table_cell(&table, "%s", fabric_layer_name((enum fabric_layer)layer));
        table_cell(&table, "%u", flow->layers[layer].links);
        table_cell(&table, "%u", flow->layers[layer].used);
        table_cell(&table, "%.2f", 100 * flow->layers[layer].mean);
        table_cell(&table, "%.2f", 100 * flow->layers[layer].most);
    }
    table_write_text(&table, call);
    table_free(&table);
}

static void write_hot(const struct step_flow *flow, const struct invocation *call)
{
    struct table table = {0};
    char text[160];

    table_column(&table, "contended link", NULL, ALIGN_LEFT);
    table_column(&table, "alike", NULL, ALIGN_RIGHT);
    table_column(&table, "contended", "ms", ALIGN_RIGHT);
    table_column(&table, "of the step", "%", ALIGN_RIGHT);
    table_column(&table, "at once", NULL, ALIGN_RIGHT);
    table_column(&table, "routed over it", NULL, ALIGN_LEFT);
    for (int i = 0; i < flow->n_hot; i++) {
        const struct hot_link *hot = &flow->hot[i];
        table_cell(&table, "%s", fabric_link_name(&flow->fabric, hot->link, text, sizeof text));
        table_cell(&table, "%u", hot->alike);
        table_cell(&table, "%.2f", (double)hot->contended * 1e-6);
        table_cell(&table, "%.2f", 100 * (double)hot->contended * 1e-9 / flow->seconds);
        table_cell(&table, "%u", hot->most);
        users_text(hot, text, sizeof text);
        table_cell(&table, "%s", text);
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

    for (int layer = 0; layer < N_FABRIC_LAYERS; layer++) {
        const struct layer_use *use = &flow->layers[layer];
        if (use->links > 0)
            json_object_set_new(layers, fabric_layer_name((enum fabric_layer)layer),
                                json_pack("{s:I, s:I, s:f, s:f}", "links", (json_int_t)use->links, "links_used",
                                          (json_int_t)use->used, "mean_utilisation_pct", 100 * use->mean, "max_utilisation_pct",
                                          100 * use->most));
    }
    return layers;
}

static json_t *hot_json(const struct step_flow *flow)
{
    json_t *list = json_array();
    char name[96];

    for (int i = 0; i < flow->n_hot; i++) {
        const struct hot_link *hot = &flow->hot[i];
        json_t *users = json_object();
        json_object_set_new(users, "messages", json_integer(hot->messages));
        for (int kind = 0; kind < N_GROUP_KINDS; kind++)
            if (hot->collectives[kind] > 0)
                json_object_set_new(users, group_kind_name((enum group_kind)kind), json_integer(hot->collectives[kind]));
        fabric_link_name(&flow->fabric, hot->link, name, sizeof name);
        json_array_append_new(list, json_pack("{s:s, s:i, s:f, s:f, s:i, s:o}", "link", name, "links_alike", (int)hot->alike,
                                              "contended_s", (double)hot->contended * 1e-9, "bytes", hot->carried,
                                              "transfers_at_once", (int)hot->most, "users", users));
    }
    return list;
}

void step_flow_json(const struct step_flow *flow, json_t *result)
{
    char text[FABRIC_TEXT_MAX];

    json_object_set_new(result, "network", json_string(flow->packets.wanted ? "packet" : "flow"));
    json_object_set_new(result, "fabric", json_string(fabric_format(&flow->fabric, text, sizeof text)));
    json_object_set_new(result, "routing", json_string(routing_name(flow->options.routing)));
    json_object_set_new(result, "layers", layers_json(flow));
    json_object_set_new(result, "contended_links", hot_json(flow));
    json_object_set_new(result, "flows",
                        json_pack("{s:I, s:I, s:I}", "transfers", (json_int_t)flow->counts.transfers, "solves",
                                  (json_int_t)flow->counts.solves, "rates_changed", (json_int_t)flow->counts.changed));
    if (flow->packets.wanted)
        json_object_set_new(result, "packets", step_packets_json(flow->call, &flow->fabric, &flow->packets));
}
