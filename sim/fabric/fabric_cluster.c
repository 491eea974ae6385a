#include <math.h>

#include "sim/fabric/fabric.h"

enum { SWITCH_PORTS = 64, HALF_SWITCH = SWITCH_PORTS / 2 };

static int ports_up(double down, double oversubscription)
{
    int up = (int)lround(down / (oversubscription > 0 ? oversubscription : 1));
    return up > 1 ? up : 1;
}

/* What is too large for an int is too large for a fabric, which fabric_build says. */
static int product(int a, int b)
{
    int64_t wide = (int64_t)a * b;
    return wide < INT32_MAX ? (int)wide : INT32_MAX;
}

static void tors_from(const struct cluster *cluster, struct fabric_shape *s)
{
    int leaf_nodes = cluster->leaf_nodes > 0 && cluster->fabric_layers > 1 ? cluster->leaf_nodes : cluster->nodes;
    int split = cluster->nic_split > 1 ? cluster->nic_split : 1, ports = product(s->nics_per_host, s->ports_per_nic);
    bool reaches = cluster->fabric_layers < 2 || product(leaf_nodes, ports) <= HALF_SWITCH * split;
    bool one_tor = cluster->rails == RAILS_NO || (cluster->rails == RAILS_AUTO && reaches);

    s->tors_per_set = one_tor ? s->planes : ports;
    s->tor_down = product(leaf_nodes, ports) / s->tors_per_set;
    s->tor_down_rate = cluster->nic_rate / s->ports_per_nic;
    s->tor_up_rate = s->tor_down_rate * split;
    if (cluster->fabric_layers > 1)
        s->tor_up = ports_up((double)s->tor_down / split, cluster->leaf_oversubscription);
}

static void aggs_from(const struct cluster *cluster, struct fabric_shape *s)
{
    int leaf_nodes = cluster->leaf_nodes > 0 ? cluster->leaf_nodes : cluster->nodes;
    int pod_nodes = cluster->fabric_layers > 2 && cluster->pod_nodes > 0 ? cluster->pod_nodes : cluster->nodes;
    int sets = (pod_nodes + leaf_nodes - 1) / leaf_nodes;

    s->aggs_per_pod = s->tor_up;
    s->agg_down = product(sets, s->tors_per_set) / s->planes;
    s->agg_down_rate = s->tor_up_rate;
    if (cluster->fabric_layers < 3)
        return;
    s->agg_up = ports_up(s->agg_down, cluster->pod_oversubscription);
    s->agg_up_rate = s->core_rate = s->tor_up_rate;
    s->core_down = s->agg_down + s->agg_up;
    if (s->core_down < SWITCH_PORTS)
        s->core_down = SWITCH_PORTS;
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
        .planes = cluster->planes > 1 ? cluster->planes : 1,
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
    if (!dragonfly && cluster->rails == RAILS_YES && cluster->fabric_layers < 2)
        shape.planes = product(cluster->nics_per_node, shape.ports_per_nic); /* nothing joins the rails but the hosts */
    if (cluster->nics_per_node < 1) {
        diag_error(diags, (struct place){0}, "cluster %s has no NICs, so there is no fabric to simulate", cluster->name);
        return STATUS_BAD_INPUT;
    }
    if (cluster->nic_affinity[0] != '\0' && fabric_affinity_parse(cluster->nic_affinity, &shape) != STATUS_OK) {
        diag_error(diags, (struct place){0},
                   "cluster %s: nic_affinity: '%s' is not a list of NICs, one for each GPU of a node: 0,0,1,1", cluster->name,
                   cluster->nic_affinity);
        return STATUS_BAD_INPUT;
    }
    if (dragonfly)
        dragonfly_from(cluster, &shape);
    else
        tors_from(cluster, &shape);
    if (!dragonfly && cluster->fabric_layers > 1)
        aggs_from(cluster, &shape);
    return fabric_build(&shape, (struct place){0}, fabric, diags);
}
