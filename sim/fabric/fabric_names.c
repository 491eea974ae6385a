/* fabric_names.c - the names of links. */
#include <stdio.h>

#include "sim/fabric/dragonfly.h"

/* The two ends of a link, the one nearer to the GPUs first. */
struct ends {
    char low[40], high[40];
};

#define SAY(end, ...) snprintf(end, sizeof(end), __VA_ARGS__)

static void pcie_name(const struct fabric *f, int host, int pcie, char *end, size_t size)
{
    if (f->shape.pcie_switches > 1)
        snprintf(end, size, "host %d pcie %d", host, pcie % f->shape.pcie_switches);
    else
        snprintf(end, size, "host %d pcie", host);
}

static void name_in_host(const struct fabric *f, enum fabric_layer layer, int at, struct ends *ends)
{
    const struct fabric_shape *s = &f->shape;

    switch (layer) {
    case LAYER_NVLINK_OUT:
    case LAYER_NVLINK_IN:
        SAY(ends->low, "gpu %d", at);
        SAY(ends->high, "nvswitch %d", at / s->nvlink_domain);
        break;
    case LAYER_GPU_OUT:
    case LAYER_GPU_IN:
        SAY(ends->low, "gpu %d", at);
        pcie_name(f, at / s->gpus_per_host, fabric_pcie_of_gpu(f, at), ends->high, sizeof ends->high);
        break;
    case LAYER_ROOT_OUT:
    case LAYER_ROOT_IN:
        pcie_name(f, at / s->pcie_switches, at, ends->low, sizeof ends->low);
        SAY(ends->high, "host %d cpu %d", at / s->pcie_switches, s->sockets > 0 ? fabric_socket_of_pcie(f, at) % s->sockets : 0);
        break;
    case LAYER_SOCKET_OUT:
    case LAYER_SOCKET_IN:
        SAY(ends->low, "host %d cpu %d", at / s->sockets, at % s->sockets);
        SAY(ends->high, "host %d other cpus", at / s->sockets);
        break;
    default:
        pcie_name(f, at / s->nics_per_host, fabric_pcie_of_nic(f, at), ends->low, sizeof ends->low);
        SAY(ends->high, "host %d nic %d", at / s->nics_per_host, at % s->nics_per_host);
    }
}

int fabric_upper_switch(const struct fabric *f, uint32_t link)
{
    const struct fabric_shape *s = &f->shape;
    enum fabric_layer layer = fabric_layer_of(f, link);
    int at = (int)(link - f->first[layer]);

    if (layer < LAYER_NIC_UP)
        return -1;
    if (layer <= LAYER_NIC_DOWN)
        return fabric_tor_of_port(f, at);
    if (layer >= LAYER_LOCAL_OUT)
        return dragonfly_cable(f, link).high;
    if (layer <= LAYER_TOR_DOWN) {
        int tor = at / s->tor_up, pod = fabric_pod_of_tor(f, tor);
        return f->n_tors + fabric_agg(f, fabric_plane_of_tor(f, tor), pod, at % s->tor_up / f->agg_cables);
    }
    int agg = at / s->agg_up, in_plane = f->n_aggs / s->planes, plane = agg / in_plane;
    int group = agg % in_plane % f->core_groups;
    return f->n_tors + f->n_aggs + (plane * f->core_groups + group) * f->cores_per_group + at % s->agg_up / f->core_cables;
}

int fabric_lower_switch(const struct fabric *f, uint32_t link)
{
    enum fabric_layer layer = fabric_layer_of(f, link);
    int at = (int)(link - f->first[layer]);

    if (layer < LAYER_TOR_UP)
        return -1;
    if (layer >= LAYER_LOCAL_OUT)
        return dragonfly_cable(f, link).low;
    return layer <= LAYER_TOR_DOWN ? at / f->shape.tor_up : f->n_tors + at / f->shape.agg_up;
}

static void tor_name(const struct fabric *f, int tor, char *end, size_t size)
{
    int a = f->shape.switches_per_group;

    if (f->shape.topology == TOPOLOGY_DRAGONFLY)
        snprintf(end, size, "group %d switch %d", tor / a, tor % a);
    else
        snprintf(end, size, "tor %d", tor);
}

static void name_in_dragonfly(const struct fabric *f, uint32_t link, struct ends *ends)
{
    struct dragonfly_cable cable = dragonfly_cable(f, link);
    int a = f->shape.switches_per_group;

    SAY(ends->low, "group %d switch %d port %d", cable.low / a, cable.low % a, cable.port);
    tor_name(f, cable.high, ends->high, sizeof ends->high);
}

static void name_in_network(const struct fabric *f, uint32_t link, enum fabric_layer layer, int at, struct ends *ends)
{
    const struct fabric_shape *s = &f->shape;
    int upper = fabric_upper_switch(f, link);

    if (layer == LAYER_NIC_UP || layer == LAYER_NIC_DOWN) {
        int port = at % (s->nics_per_host * s->ports_per_nic);
        SAY(ends->low, "host %d nic %d port %d", fabric_host_of_port(f, at), port / s->ports_per_nic, port % s->ports_per_nic);
        tor_name(f, upper, ends->high, sizeof ends->high);
    } else if (layer == LAYER_TOR_UP || layer == LAYER_TOR_DOWN) {
        SAY(ends->low, "tor %d port %d", at / s->tor_up, at % s->tor_up);
        SAY(ends->high, "agg %d", upper - f->n_tors);
    } else {
        SAY(ends->low, "agg %d port %d", at / s->agg_up, at % s->agg_up);
        SAY(ends->high, "core %d", upper - f->n_tors - f->n_aggs);
    }
}

char *fabric_link_name(const struct fabric *f, uint32_t link, char *buffer, size_t size)
{
    enum fabric_layer layer = fabric_layer_of(f, link);
    int at = (int)(link - f->first[layer]);
    bool down = layer % 2 != 0; /* layers come in pairs */
    struct ends ends;

    if (layer < LAYER_NIC_UP)
        name_in_host(f, layer, at, &ends);
    else if (layer >= LAYER_LOCAL_OUT)
        name_in_dragonfly(f, link, &ends);
    else
        name_in_network(f, link, layer, at, &ends);
    snprintf(buffer, size, "%s -> %s", down ? ends.high : ends.low, down ? ends.low : ends.high);
    return buffer;
}
