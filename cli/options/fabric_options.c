#include "cli/options/fabric_options.h"

#include <stdlib.h>
#include <string.h>

const char *const routing_choices[] = {"ecmp", "static", "adaptive", "valiant", NULL};
const char *const routing_meanings[] = {"by a hash of the connection", "by destination", "to the least loaded link",
                                        "over a third group of a dragonfly, chosen by hash", NULL};

/* As layers are, in pairs. */
static const char *const cables[N_FABRIC_LAYERS / 2] = {"nvlink", "gpu", "root", "socket", "pcie",
                                                        "nic",    "tor", "agg",  "local",  "global"};
/* What a fabric without such links lacks. */
static const char *const cable_words[N_FABRIC_LAYERS / 2] = {
    [0] = "nvlink:8x300GB/s in --fabric",
    [1] = "pcie:32GB/s in --fabric, or the cluster's pcie_rate",
    [2] = "pcie_switches:4x32GB/s in --fabric, or the cluster's pcie_switches and pcie_root_rate",
    [3] = "sockets:2x40GB/s in --fabric, or the cluster's sockets and socket_rate",
    [4] = "pcie:32GB/s in --fabric, or the cluster's pcie_rate",
    [6] = "a second tier of switches",
    [7] = "a third tier of switches",
    [8] = "a dragonfly's groups",
    [9] = "a dragonfly of several groups"};
enum { N_CABLES = sizeof cables / sizeof cables[0] };

bool fabric_cable_parse(struct invocation *call, const char *option, const char *text, char stop, const struct fabric *fabric,
                        uint32_t *out, uint32_t *back)
{
    const char *colon = strchr(text, ':'), *last = strchr(text, stop);
    char *end;

    for (int c = 0; c < N_CABLES && colon != NULL && last != NULL; c++) {
        if (strncmp(text, cables[c], (size_t)(colon - text)) != 0 || cables[c][colon - text] != '\0')
            continue;
        enum fabric_layer layer = (enum fabric_layer)(2 * c);
        long number = strtol(colon + 1, &end, 10);
        if (fabric_layer_links(fabric, layer) == 0) {
            diag_error(&call->diags, PLACE_NONE, "%s %s: this fabric has no %s links; to add them, specify %s", option, text,
                       cables[c], cable_words[c]);
            return false;
        }
        if (end != last || number < 0 || number >= (long)fabric_layer_links(fabric, layer)) {
            diag_error(&call->diags, PLACE_NONE, "%s %s: there are %u %s cables, numbered from 0", option, text,
                       fabric_layer_links(fabric, layer), cables[c]);
            return false;
        }
        *out = fabric->first[layer] + (uint32_t)number;
        *back = fabric->first[layer + 1] + (uint32_t)number;
        return true;
    }
    diag_error(&call->diags, PLACE_NONE,
               "%s %s: write LAYER:NUMBER%c...; LAYER is nvlink, gpu, root, socket, pcie, nic, tor or agg, in a dragonfly also "
               "local or global",
               option, text, stop);
    return false;
}

/* LAYER:NUMBER=SPEED; both directions of the cable. */
static bool link_apply(struct invocation *call, const char *text, struct fabric *fabric)
{
    uint32_t out, back;
    char *end;

    if (!fabric_cable_parse(call, "--link", text, '=', fabric, &out, &back))
        return false;
    const char *value = strchr(text, '=') + 1;
    double speed = strtod(value, &end);
    if (end == value || *end != '\0' || !(speed >= 0 && speed <= 1)) {
        diag_error(&call->diags, PLACE_NONE, "--link %s: the speed must be between 0 (down) and 1", text);
        return false;
    }
    fabric_set_speed(fabric, out, speed);
    fabric_set_speed(fabric, back, speed);
    if (speed == 0 && fabric_layer_of(fabric, out) == LAYER_NIC_UP && fabric->shape.nics_per_host > 1)
        diag_note(&call->diags, PLACE_NONE, "--link %s: its GPUs use the nearest other NIC of their host, as NCCL does", text);
    return true;
}

void fabric_options_note_silent(struct invocation *call, const struct fabric *fabric, const double *carried)
{
    uint32_t out, back;
    int n;
    const char *const *links = option_list(call, "link", &n);

    for (int i = 0; i < n; i++)
        if (fabric_cable_parse(call, "--link", links[i], '=', fabric, &out, &back) && fabric->speed[out] > 0 &&
            carried[out] + carried[back] <= 0)
            diag_note(&call->diags, PLACE_NONE, "--link %s: this cable carries nothing here, so its speed changes nothing",
                      links[i]);
}

enum status fabric_options_load(struct invocation *call, const struct cluster *cluster, struct fabric *fabric)
{
    const char *text = option_text(call, "fabric");
    int n;
    const char *const *links = option_list(call, "link", &n);
    enum status status = text != NULL ? fabric_parse(text, (struct place){.file = "--fabric", .column = 1}, fabric, &call->diags)
                                      : fabric_create(cluster, fabric, &call->diags);

    for (int i = 0; i < n && status == STATUS_OK; i++)
        if (!link_apply(call, links[i], fabric)) {
            fabric_free(fabric);
            status = STATUS_USAGE;
        }
    if (status == STATUS_OK && fabric->shape.topology == TOPOLOGY_CLOS && option_choice(call, "routing") == ROUTING_VALIANT) {
        diag_error(&call->diags, PLACE_NONE,
                   "--routing valiant needs a dragonfly; in a Clos fabric, ecmp already uses every top switch");
        fabric_free(fabric);
        status = STATUS_USAGE;
    }
    return status;
}

/* Of the networks that an option may be for, the one that it is for: cables fail and come back in flows only. */
static const char *network_of(const char *name, const char *values)
{
    bool resent = strcmp(name, "retransmit-exponent") == 0 || strcmp(name, "adaptive-retransmission") == 0;

    return resent ? "flow with --flap" : strcmp(name, "flap") == 0 ? "flow" : values;
}

void fabric_options_note_idle(struct invocation *call, const char *option, const char *values)
{
    for (int i = 0; i < call->n_values; i++) {
        const struct option_row *row = call->values[i].row;
        if (call->values[i].given && row->group && strcmp(row->group, FABRIC_GROUP) == 0 && strcmp(row->name, option) != 0)
            diag_note(&call->diags, PLACE_NONE, "--%s has no effect without --%s %s", row->name, option,
                      network_of(row->name, values));
    }
}

int fabric_options_queue_pairs(const struct invocation *call, const struct cluster *cluster)
{
    if (option_given(call, "queue-pairs"))
        return (int)option_count(call, "queue-pairs");
    return cluster != NULL && cluster->queue_pairs > 0 ? cluster->queue_pairs : 1;
}

struct router fabric_options_router(const struct invocation *call, const struct fabric *fabric)
{
    bool own = !option_given(call, "routing") && fabric->shape.topology == TOPOLOGY_DRAGONFLY;
    return (struct router){.fabric = fabric,
                           .routing = own ? ROUTING_ADAPTIVE : (enum routing)option_choice(call, "routing"),
                           .polarised = option_flag(call, "polarised"),
                           .rail_aware = option_flag(call, "rail-aware"),
                           .seed = call->seed};
}
