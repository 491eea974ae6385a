#include "model/spec/cluster.h"

#include <math.h>

/* What is too large for an int is too large for a fabric. */
static int product(int a, int b)
{
    int64_t wide = (int64_t)a * b;
    return wide < INT32_MAX ? (int)wide : INT32_MAX;
}

/* NIC ports of a node. */
static int node_ports(const struct cluster *c)
{
    return product(c->nics_per_node, c->nic_ports > 1 ? c->nic_ports : 1);
}

int cluster_dragonfly_rails(const struct cluster *c)
{
    int ports = node_ports(c);
    bool one_switch = c->rails == RAILS_NO || (c->rails == RAILS_AUTO && c->dragonfly.endpoints_per_switch % ports == 0);

    return one_switch ? 1 : ports;
}

int cluster_leaf_nodes(const struct cluster *c)
{
    if (c->topology != TOPOLOGY_DRAGONFLY)
        return c->leaf_nodes;
    int64_t ports = (int64_t)cluster_dragonfly_rails(c) * c->dragonfly.endpoints_per_switch / node_ports(c);
    return ports < c->nodes ? (int)ports : c->nodes;
}

int cluster_pod_nodes(const struct cluster *c)
{
    if (c->topology != TOPOLOGY_DRAGONFLY)
        return c->pod_nodes;
    int64_t nodes = (int64_t)c->dragonfly.switches_per_group * c->dragonfly.endpoints_per_switch / node_ports(c);
    return nodes < c->nodes ? (int)nodes : c->nodes;
}

static double port_rate(const struct cluster *c)
{
    return c->nic_rate / (c->nic_ports > 1 ? c->nic_ports : 1);
}

static int ports_up(double down, double oversubscription)
{
    int up = (int)lround(down / (oversubscription > 0 ? oversubscription : 1));
    return up > 1 ? up : 1;
}

/* Planes of a fabric; where nothing joins rails but the hosts, one of each port. */
static int clos_planes(const struct cluster *c)
{
    if (c->rails == RAILS_YES && c->fabric_layers < 2)
        return node_ports(c);
    return c->planes > 1 ? c->planes : 1;
}

struct clos_ports cluster_clos_ports(const struct cluster *c)
{
    int leaf_nodes = c->leaf_nodes > 0 && c->fabric_layers > 1 ? c->leaf_nodes : c->nodes;
    int pod_nodes = c->fabric_layers > 2 && c->pod_nodes > 0 ? c->pod_nodes : c->nodes;
    int split = c->nic_split > 1 ? c->nic_split : 1, ports = node_ports(c), planes = clos_planes(c);
    bool reaches = c->fabric_layers < 2 || product(leaf_nodes, ports) <= CLOS_SWITCH_PORTS / 2 * split;
    bool one_tor = c->rails == RAILS_NO || (c->rails == RAILS_AUTO && reaches);
    struct clos_ports p = {.planes = planes, .tors_per_set = one_tor ? planes : ports};

    p.tor_down = product(leaf_nodes, ports) / (p.tors_per_set > 0 ? p.tors_per_set : 1);
    if (c->fabric_layers > 1 && leaf_nodes > 0) { /* a cluster without nodes has no fabric yet */
        p.tor_up = ports_up((double)p.tor_down / split, c->leaf_oversubscription);
        p.agg_down = product((pod_nodes + leaf_nodes - 1) / leaf_nodes, p.tors_per_set) / planes;
    }
    if (c->fabric_layers > 2)
        p.agg_up = ports_up(p.agg_down, c->pod_oversubscription);
    return p;
}

double cluster_leaf_oversubscription(const struct cluster *c)
{
    const struct dragonfly *d = &c->dragonfly;

    if (c->topology != TOPOLOGY_DRAGONFLY) {
        if (c->leaf_oversubscription <= 1 || c->fabric_layers < 2 || c->nodes < 1)
            return c->leaf_oversubscription;
        struct clos_ports ports = cluster_clos_ports(c);
        return (double)ports.tor_down / ((double)ports.tor_up * (c->nic_split > 1 ? c->nic_split : 1));
    }
    if (d->switches_per_group < 2)
        return 1;
    return d->endpoints_per_switch * port_rate(c) / ((double)(d->switches_per_group - 1) * d->local_links * d->link_rate);
}

double cluster_pod_oversubscription(const struct cluster *c)
{
    const struct dragonfly *d = &c->dragonfly;

    if (c->topology != TOPOLOGY_DRAGONFLY) {
        if (c->pod_oversubscription <= 1 || c->fabric_layers < 3 || c->nodes < 1)
            return c->pod_oversubscription;
        struct clos_ports ports = cluster_clos_ports(c);
        return (double)ports.agg_down / ports.agg_up;
    }
    if (d->groups < 2)
        return 1;
    return (double)d->switches_per_group * d->endpoints_per_switch * port_rate(c) /
           ((double)(d->groups - 1) * d->global_links * d->link_rate);
}

int cluster_dragonfly_groups(const struct cluster *c, int nodes)
{
    int64_t in_group = (int64_t)c->dragonfly.switches_per_group * c->dragonfly.endpoints_per_switch / node_ports(c);

    return (int)int64_divide_up(nodes, in_group);
}

void cluster_dragonfly_follow(struct cluster *c)
{
    struct dragonfly *d = &c->dragonfly;

    if (d->groups_follow)
        d->groups = cluster_dragonfly_groups(c, c->nodes);
    if (d->ports_follow)
        d->global_links_per_switch = d->cables_follow ? d->endpoints_per_switch
                                                      : dragonfly_global_ports(d->switches_per_group, d->global_links, d->groups);
    if (d->cables_follow)
        d->global_links =
            d->groups > 1 ? dragonfly_global_links(d->switches_per_group, d->global_links_per_switch, d->groups) : 0;
}

bool cluster_resize(struct cluster *c, int nodes)
{
    struct cluster sized = *c;
    struct dragonfly *d = &sized.dragonfly;

    sized.nodes = nodes;
    if (c->topology == TOPOLOGY_DRAGONFLY) {
        d->groups_follow = d->groups_follow || cluster_dragonfly_groups(c, nodes) > d->groups;
        cluster_dragonfly_follow(&sized);
        int64_t cables = (int64_t)d->global_links * (d->groups - 1);
        if (d->groups > 1 && (cables < 1 || cables > (int64_t)d->switches_per_group * d->global_links_per_switch))
            return false;
    }
    *c = sized;
    return true;
}

const char *cluster_groups_remedy(const struct cluster *c, int nodes)
{
    bool more = c->topology == TOPOLOGY_DRAGONFLY && !c->dragonfly.groups_follow &&
                cluster_dragonfly_groups(c, nodes) > c->dragonfly.groups;

    return more ? " --set cluster.groups=null" : "";
}
