#include "sim/fabric/fabric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/order.h"
#include "model/base/units.h"
#include "sim/fabric/dragonfly.h"
#include "sim/fabric/fabric_internal.h"

static const char *const layer_names[N_FABRIC_LAYERS] = {"nvlink_out", "nvlink_in",  "gpu_out",   "gpu_in",     "root_out",
                                                         "root_in",    "socket_out", "socket_in", "pcie_out",   "pcie_in",
                                                         "nic_up",     "nic_down",   "tor_up",    "tor_down",   "agg_up",
                                                         "agg_down",   "local_out",  "local_in",  "global_out", "global_in"};

const char *fabric_layer_name(enum fabric_layer layer)
{
    return layer_names[layer];
}

/* ---- what is wrong with a shape */

static void clos_ranges_check(const struct fabric_shape *s, const struct complaint *to)
{
    fabric_count_check(to, s->planes, 1, "planes");
    fabric_count_check(to, s->tors_per_set, 1, "ToRs per set");
    fabric_count_check(to, s->tor_down, 1, "host ports of a ToR");
    fabric_count_check(to, s->tor_up, 0, "uplinks of a ToR");
    fabric_count_check(to, s->aggs_per_pod, 0, "aggregation switches per pod");
    fabric_count_check(to, s->agg_down, 0, "down ports of an aggregation switch");
    fabric_count_check(to, s->agg_up, 0, "uplinks of an aggregation switch");
    fabric_count_check(to, s->core_down, 0, "ports of a core switch");
    fabric_rate_check(to, s->tor_down_rate, "a ToR's host ports");
    if (s->agg_down > 0) {
        if (s->tor_up > 0)
            fabric_rate_check(to, s->tor_up_rate, "ToR uplinks");
        fabric_rate_check(to, s->agg_down_rate, "an aggregation switch's ports");
    }
    if (s->core_down > 0) {
        if (s->agg_up > 0)
            fabric_rate_check(to, s->agg_up_rate, "uplinks of aggregation switches");
        fabric_rate_check(to, s->core_rate, "a core switch's ports");
    }
}

static void ranges_check(const struct fabric_shape *s, const struct complaint *to)
{
    fabric_count_check(to, s->hosts, 1, "hosts");
    fabric_count_check(to, s->gpus_per_host, 1, "GPUs per host");
    fabric_count_check(to, s->nics_per_host, 1, "NICs per host");
    fabric_count_check(to, s->ports_per_nic, 1, "ports per NIC");
    fabric_count_check(to, s->nvlink_domain, 0, "GPUs per NVLink domain");
    fabric_count_check(to, s->pcie_switches, 0, "PCIe switches per host");
    fabric_count_check(to, s->sockets, 0, "CPUs per host");
    fabric_rate_check(to, s->nic_rate, "a NIC");
    if (s->topology == TOPOLOGY_DRAGONFLY)
        dragonfly_ranges_check(s, to);
    else
        clos_ranges_check(s, to);
    if (!(s->latency_s >= 0 && s->latency_s < 1) || !(s->hop_latency_s >= 0 && s->hop_latency_s < 1))
        diag_error(to->diags, to->at, "fabric: latencies must be between 0 and 1 s");
    if (s->nvlink_domain > 1)
        fabric_rate_check(to, s->nvlink_rate, "NVLink");
    if (s->pcie_rate > 0)
        fabric_rate_check(to, s->pcie_rate, "PCIe lanes");
    if (s->pcie_switches > 0)
        fabric_rate_check(to, s->root_rate, "the path from a PCIe switch to its CPU");
    if (s->sockets > 0)
        fabric_rate_check(to, s->socket_rate, "the path between CPUs");
}

static bool even(int a, int b)
{
    return a > b ? a % b == 0 : b % a == 0;
}

/* GPUs, NICs, PCIe switches and CPUs of a host. */
static void host_inside_check(const struct fabric_shape *s, const struct complaint *to)
{
    if (s->n_affinity == 0 && !even(s->gpus_per_host, s->nics_per_host))
        diag_error(
            to->diags, to->at,
            "fabric: the %d NICs of a host cannot be shared evenly by its %d GPUs; specify the NIC of each (affinity:0,0,1)",
            s->nics_per_host, s->gpus_per_host);
    if (s->n_affinity > 0 && s->n_affinity != s->gpus_per_host)
        diag_error(to->diags, to->at, "fabric: affinity lists the NICs of %d GPUs, but a host has %d", s->n_affinity,
                   s->gpus_per_host);
    for (int i = 0; i < s->n_affinity && i < AFFINITY_MAX; i++)
        if (s->affinity[i] >= s->nics_per_host)
            diag_error(to->diags, to->at, "fabric: affinity: GPU %d uses NIC %d, but a host has NICs 0 to %d", i, s->affinity[i],
                       s->nics_per_host - 1);
    if (s->pcie_switches > 0 && (!even(s->gpus_per_host, s->pcie_switches) || !even(s->nics_per_host, s->pcie_switches)))
        diag_error(to->diags, to->at, "fabric: the %d GPUs and %d NICs of a host do not divide evenly over %d PCIe switches",
                   s->gpus_per_host, s->nics_per_host, s->pcie_switches);
    if (s->sockets > 0 && (s->pcie_switches < s->sockets || s->pcie_switches % s->sockets))
        diag_error(to->diags, to->at, "fabric: the %d PCIe switches of a host do not divide evenly over %d CPUs",
                   s->pcie_switches, s->sockets);
    if (s->nvlink_domain > 1 &&
        (s->nvlink_domain > s->gpus_per_host ? s->nvlink_domain % s->gpus_per_host : s->gpus_per_host % s->nvlink_domain))
        diag_error(to->diags, to->at, "fabric: NVLink domains of %d GPUs are neither a multiple nor a divisor of hosts of %d",
                   s->nvlink_domain, s->gpus_per_host);
}

static void tors_check(const struct fabric_shape *s, const struct complaint *to)
{
    fabric_host_ports_check(s, to, "ToRs of its set", "ToR", "host");
    if (s->tors_per_set % s->planes)
        diag_error(to->diags, to->at, "fabric: %d ToRs per set do not divide evenly over %d planes", s->tors_per_set, s->planes);
}

static void tiers_check(const struct fabric_shape *s, const struct complaint *to)
{
    if (s->agg_down > 0 && s->tor_up == 0)
        diag_error(to->diags, to->at, "fabric: ToRs have no uplinks; add some (tor:64x200G/32x400G)");
    else if (s->agg_down > 0 && (s->aggs_per_pod == 0 || s->tor_up % s->aggs_per_pod))
        diag_error(to->diags, to->at, "fabric: a ToR's %d uplinks do not divide evenly over %d aggregation switches", s->tor_up,
                   s->aggs_per_pod);
    else if (s->agg_down > 0 && s->agg_down % (s->tor_up / s->aggs_per_pod))
        diag_error(to->diags, to->at, "fabric: an aggregation switch's %d ports are not a multiple of the %d cables to each ToR",
                   s->agg_down, s->tor_up / s->aggs_per_pod);
    if (s->core_down > 0 && s->agg_down == 0)
        diag_error(to->diags, to->at, "fabric: core switches need aggregation switches; add agg:");
    else if (s->core_down > 0 && s->agg_up == 0)
        diag_error(to->diags, to->at, "fabric: aggregation switches have no uplinks; add some (agg:32x400G/32x400G)");
}

/* ---- the derived numbers */

/* Cables between an aggregation and a core switch: what the core ports allow, evenly. */
static void cores_derive(struct fabric *f)
{
    const struct fabric_shape *s = &f->shape;
    int aggs = f->n_pods * s->aggs_per_pod; /* of a plane */

    f->core_cables = 1;
    f->core_groups = (int)int64_divide_up(aggs, s->core_down);
    for (int q = s->core_down / aggs; q > 1; q--)
        if (s->agg_up % q == 0) {
            f->core_cables = q;
            break;
        }
    f->cores_per_group = s->agg_up / f->core_cables;
    f->n_cores = s->planes * f->core_groups * f->cores_per_group;
}

static void clos_derive(struct fabric *f)
{
    const struct fabric_shape *s = &f->shape;

    f->layers = s->agg_down == 0 ? 1 : s->core_down == 0 ? 2 : 3;
    f->n_tors = f->n_sets * s->tors_per_set;
    f->n_pods = 1;
    f->tors_per_pod = f->n_tors / s->planes;
    if (f->layers > 1) {
        f->agg_cables = s->tor_up / s->aggs_per_pod;
        f->tors_per_pod = s->agg_down / f->agg_cables;
        f->n_pods = (int)int64_divide_up(f->n_tors / s->planes, f->tors_per_pod);
        f->n_aggs = s->planes * f->n_pods * s->aggs_per_pod;
    }
    if (f->layers > 2)
        cores_derive(f);
}

static void derive(struct fabric *f)
{
    const struct fabric_shape *s = &f->shape;

    f->hosts_per_set = s->tor_down / (s->nics_per_host * s->ports_per_nic / s->tors_per_set);
    f->n_sets = (int)int64_divide_up(s->hosts, f->hosts_per_set);
    if (s->topology == TOPOLOGY_DRAGONFLY)
        dragonfly_derive(f);
    else
        clos_derive(f);
    f->n_gpus = s->hosts * s->gpus_per_host;
    f->n_nics = s->hosts * s->nics_per_host;
    f->n_ports = f->n_nics * s->ports_per_nic;
}

static void clos_derived_check(const struct fabric *f, const struct complaint *to)
{
    const struct fabric_shape *s = &f->shape;

    if (f->layers == 1 && f->n_sets > 1)
        diag_error(to->diags, to->at,
                   "fabric: disconnected: %d hosts need %d ToR sets, and nothing connects them; add agg:", s->hosts, f->n_sets);
    if (f->layers == 1 && s->tors_per_set != s->planes)
        diag_error(to->diags, to->at, "fabric: disconnected: nothing connects the %d ToRs of the set; add agg:, or planes:%d",
                   s->tors_per_set, s->tors_per_set);
    if (f->layers == 2 && f->n_pods > 1)
        diag_error(to->diags, to->at,
                   "fabric: disconnected: spines of %d ports reach only %d ToRs of %d in a plane; add core:, or ports",
                   s->agg_down, f->tors_per_pod, f->n_tors / s->planes);
    if (f->layers == 3 && f->core_groups > s->aggs_per_pod)
        diag_error(to->diags, to->at,
                   "fabric: disconnected: core switches of %d ports reach only %d of %d aggregation switches, so not every pod; "
                   "use at least %d ports",
                   s->core_down, s->core_down, f->n_aggs / s->planes, f->n_pods);
}

/* Sizes in wide arithmetic before anything is allocated; false: too large. */
static bool size_check(const struct fabric_shape *s, const struct complaint *to)
{
    int64_t ports_per_host = (int64_t)s->nics_per_host * s->ports_per_nic;
    int64_t sets = int64_divide_up((int64_t)s->hosts * (ports_per_host / s->tors_per_set), s->tor_down);
    double tors = (double)sets * s->tors_per_set, uplinks = tors * s->tor_up, agg_links = 0;
    double ports = (double)s->hosts * (double)ports_per_host;
    double gpus = (double)s->hosts * ((double)s->gpus_per_host + s->pcie_switches); /* and all else in hosts, more or less */

    if (s->topology == TOPOLOGY_DRAGONFLY)
        agg_links = dragonfly_cables(s, sets, &tors);
    if (s->agg_down > 0 && s->core_down > 0) {
        double tors_per_pod = (double)s->agg_down * s->aggs_per_pod / s->tor_up;
        agg_links = (ceil(tors / s->planes / tors_per_pod)) * s->planes * s->aggs_per_pod * (double)s->agg_up;
    }
    char text[40];
    if (tors > FABRIC_COUNT_MAX || ports + uplinks + agg_links + gpus > FABRIC_LINKS_MAX / 4) {
        diag_error(to->diags, to->at, "fabric: too large: %s cables; at most %d",
                   quantity_format(ports + uplinks + agg_links + gpus, DIM_COUNT, text, sizeof text), FABRIC_LINKS_MAX / 4);
        return false;
    }
    return true;
}

/* ---- links */

static void layer_set(struct fabric *f, enum fabric_layer layer, double rate)
{
    for (uint32_t l = f->first[layer]; l < f->first[layer + 1]; l++)
        f->rates[l] = rate;
}

static void links_create(struct fabric *f)
{
    const struct fabric_shape *s = &f->shape;
    bool dragonfly = s->topology == TOPOLOGY_DRAGONFLY;
    /* Of each pair of layers. */
    const struct {
        uint32_t cables;
        double rate;
    } pairs[N_FABRIC_LAYERS / 2] = {
        [LAYER_NVLINK_OUT / 2] = {s->nvlink_domain > 1 ? (uint32_t)f->n_gpus : 0, s->nvlink_rate},
        [LAYER_GPU_OUT / 2] = {s->pcie_rate > 0 ? (uint32_t)f->n_gpus : 0, s->pcie_rate},
        [LAYER_ROOT_OUT / 2] = {(uint32_t)s->hosts * (uint32_t)s->pcie_switches, s->root_rate},
        [LAYER_SOCKET_OUT / 2] = {(uint32_t)s->hosts * (uint32_t)s->sockets, s->socket_rate},
        [LAYER_PCIE_OUT / 2] = {s->pcie_rate > 0 ? (uint32_t)f->n_nics : 0, s->pcie_rate},
        [LAYER_NIC_UP / 2] = {(uint32_t)f->n_ports, fmin(s->nic_rate / s->ports_per_nic, s->tor_down_rate)},
        [LAYER_TOR_UP / 2] = {f->layers > 1 ? (uint32_t)f->n_tors * (uint32_t)s->tor_up : 0,
                              fmin(s->tor_up_rate, s->agg_down_rate)},
        [LAYER_AGG_UP / 2] = {f->layers > 2 ? (uint32_t)f->n_aggs * (uint32_t)s->agg_up : 0, fmin(s->agg_up_rate, s->core_rate)},
        [LAYER_LOCAL_OUT / 2] = {dragonfly ? dragonfly_local_cables(f) : 0, s->local_rate},
        [LAYER_GLOBAL_OUT / 2] = {dragonfly ? dragonfly_global_cables(f) : 0, s->global_rate},
    };

    for (int layer = 0; layer < N_FABRIC_LAYERS; layer++)
        f->first[layer + 1] = f->first[layer] + pairs[layer / 2].cables;
    f->rates = memory_new(fabric_links(f), sizeof *f->rates);
    f->speed = memory_new(fabric_links(f), sizeof *f->speed);
    for (int layer = 0; layer < N_FABRIC_LAYERS; layer++)
        layer_set(f, (enum fabric_layer)layer, pairs[layer / 2].rate);
    for (uint32_t l = 0; l < fabric_links(f); l++)
        f->speed[l] = 1;
}

enum status fabric_build(const struct fabric_shape *shape, struct place at, struct fabric *fabric, struct diags *diags)
{
    const struct complaint to = {.at = at, .diags = diags};
    size_t before = diags->n_errors;
    struct fabric built = {.shape = *shape};

    ranges_check(shape, &to);
    if (diags->n_errors == before) {
        host_inside_check(shape, &to);
        if (shape->topology == TOPOLOGY_DRAGONFLY) {
            dragonfly_shape_check(shape, &to);
        } else {
            tors_check(shape, &to);
            tiers_check(shape, &to);
        }
    }
    if (diags->n_errors == before && size_check(shape, &to)) {
        derive(&built);
        if (shape->topology == TOPOLOGY_DRAGONFLY)
            dragonfly_derived_check(&built, &to);
        else
            clos_derived_check(&built, &to);
    }
    if (diags->n_errors != before)
        return STATUS_BAD_INPUT;
    links_create(&built);
    *fabric = built;
    return STATUS_OK;
}

void fabric_copy(const struct fabric *fabric, struct fabric *copy)
{
    size_t links = fabric_links(fabric);
    *copy = *fabric;
    copy->rates = memory_new(links, sizeof *copy->rates);
    copy->speed = memory_new(links, sizeof *copy->speed);
    memcpy(copy->rates, fabric->rates, links * sizeof *copy->rates);
    memcpy(copy->speed, fabric->speed, links * sizeof *copy->speed);
}

void fabric_free(struct fabric *fabric)
{
    free(fabric->rates);
    free(fabric->speed);
    *fabric = (struct fabric){0};
}

/* ---- answers */

int fabric_tor_of_port(const struct fabric *fabric, int port)
{
    const struct fabric_shape *s = &fabric->shape;
    int per_host = s->nics_per_host * s->ports_per_nic, host = port / per_host;

    return host / fabric->hosts_per_set * s->tors_per_set + port % per_host % s->tors_per_set;
}

int fabric_gpu_of_nic(const struct fabric *fabric, int host, int nic)
{
    const struct fabric_shape *s = &fabric->shape;

    for (int gpu = host * s->gpus_per_host; gpu < (host + 1) * s->gpus_per_host; gpu++)
        if (fabric_nic_of_gpu(fabric, gpu) == host * s->nics_per_host + nic)
            return gpu;
    return -1;
}

void fabric_set_speed(struct fabric *fabric, uint32_t link, double speed)
{
    fabric->n_down += (speed <= 0) - (fabric->speed[link] <= 0);
    fabric->speed[link] = speed > 0 ? (float)speed : 0;
}

void fabric_rates_now(const struct fabric *fabric, double *rates)
{
    for (uint32_t l = 0; l < fabric_links(fabric); l++)
        rates[l] = fabric_rate(fabric, l);
}
