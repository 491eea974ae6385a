/* fabric_cluster.c - the fabric of a cluster. */
#include "sim/fabric/fabric.h"

static void clos_from(const struct cluster *cluster, struct fabric_shape *s)
{
    const struct clos_ports ports = cluster_clos_ports(cluster);

    s->planes = ports.planes;
    s->tors_per_set = ports.tors_per_set;
    s->tor_down = ports.tor_down;
    s->tor_up = ports.tor_up;
    s->tor_down_rate = cluster->nic_rate / s->ports_per_nic;
    s->tor_up_rate = s->tor_down_rate * (cluster->nic_split > 1 ? cluster->nic_split : 1);
    if (cluster->fabric_layers < 2)
        return;
    s->aggs_per_pod = s->tor_up;
    s->agg_down = ports.agg_down;
    s->agg_down_rate = s->tor_up_rate;
    if (cluster->fabric_layers < 3)
        return;
    s->agg_up = ports.agg_up;
    s->agg_up_rate = s->core_rate = s->tor_up_rate;
    s->core_down = s->agg_down + s->agg_up;
    if (s->core_down < CLOS_SWITCH_PORTS)
        s->core_down = CLOS_SWITCH_PORTS;
}

static void dragonfly_from(const struct cluster *cluster, struct fabric_shape *s)
{
    const struct dragonfly *d = &cluster->dragonfly;

    s->topology = TOPOLOGY_DRAGONFLY;
    s->planes = 1;
    s->tors_per_set = cluster_dragonfly_rails(cluster);
    s->tor_down = d->endpoints_per_switch;
    s->tor_down_rate = cluster->nic_rate / s->ports_per_nic;
    s->groups = d->groups;
    s->switches_per_group = d->switches_per_group;
    s->local_links = d->local_links;
    s->global_per_switch = d->global_links_per_switch;
    s->global_links = d->global_links;
    s->local_rate = s->global_rate = d->link_rate;
}

enum status fabric_create(const struct cluster *cluster, struct fabric *fabric, struct diags *diags)
{
    struct fabric_shape shape = {
        .hosts = cluster->nodes,
        .gpus_per_host = cluster->gpus_per_node,
        .nics_per_host = cluster->nics_per_node,
        .ports_per_nic = cluster->nic_ports > 1 ? cluster->nic_ports : 1,
        .nic_rate = cluster->nic_rate,
        .nvlink_domain = cluster->nvlink_domain,
        .nvlink_rate = cluster->nvlink_domain > 1 ? cluster->gpu.nccl_rate : 0,
        .pcie_rate = cluster->pcie_rate,
        .pcie_switches = cluster->pcie_switches,
        .root_rate = cluster->pcie_root_rate,
        .sockets = cluster->sockets,
        .socket_rate = cluster->socket_rate,
        .latency_s = cluster->nic_latency_s,
        .hop_latency_s = cluster->hop_latency_s,
    };

    bool dragonfly = cluster->topology == TOPOLOGY_DRAGONFLY;
    if (cluster->nics_per_node < 1) {
        diag_error(diags, PLACE_NONE, "cluster %s has no NICs, so there is no fabric to simulate", cluster->name);
        return STATUS_BAD_INPUT;
    }
    if (cluster->nic_affinity[0] != '\0' && fabric_affinity_parse(cluster->nic_affinity, &shape) != STATUS_OK) {
        diag_error(diags, PLACE_NONE,
                   "cluster %s: nic_affinity: '%s' is not a list of NICs, one per GPU of a node, such as 0,0,1,1", cluster->name,
                   cluster->nic_affinity);
        return STATUS_BAD_INPUT;
    }
    if (dragonfly)
        dragonfly_from(cluster, &shape);
    else
        clos_from(cluster, &shape);
    return fabric_build(&shape, PLACE_NONE, fabric, diags);
}
