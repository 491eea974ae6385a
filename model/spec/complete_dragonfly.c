/* complete_dragonfly.c - derive missing values of a dragonfly, and check which keys belong to which topology. */
#include "model/spec/entry.h"

/* Slingshot's switches have 64 ports, 16 of them for NICs, 31 for the 31 other switches of a group and 17 for other groups (De
 * Sensi et al. 2020, arXiv:2008.08886, from memory). */
enum { SLINGSHOT_ENDPOINTS = 16 };

/* One key that one topology has and the other does not: said, where not at its default. */
struct key_said {
    const char *key;
    bool given;
};

static void keys_refuse(const struct key_said *keys, size_t n, const char *why, const struct yaml_node *tree, struct diags *diags)
{
    for (size_t i = 0; i < n; i++)
        if (keys[i].given)
            diag_error(diags, yaml_place(tree, keys[i].key), "%s: %s", keys[i].key, why);
}

static void clos_keys_check(const struct cluster *c, const struct yaml_node *tree, struct diags *diags)
{
    const struct key_said keys[] = {
        {"fabric_layers", c->fabric_layers > 0},
        {"leaf_nodes", c->leaf_nodes > 0},
        {"pod_nodes", c->pod_nodes > 0},
        {"leaf_oversubscription", c->leaf_oversubscription > 1 || c->leaf_oversubscription < 1},
        {"pod_oversubscription", c->pod_oversubscription > 1 || c->pod_oversubscription < 1},
        {"nic_split", c->nic_split > 1},
        {"planes", c->planes > 1},
    };

    keys_refuse(keys, sizeof keys / sizeof keys[0],
                "this key belongs to a Clos fabric, not to a dragonfly (switches_per_group, endpoints_per_switch, global_links); "
                "null removes it",
                tree, diags);
}

static void dragonfly_keys_check(const struct cluster *c, const struct yaml_node *tree, struct diags *diags)
{
    const struct dragonfly *d = &c->dragonfly;
    const struct key_said keys[] = {
        {"groups", d->groups > 0},
        {"switches_per_group", d->switches_per_group > 0},
        {"endpoints_per_switch", d->endpoints_per_switch > 0},
        {"local_links", d->local_links > 0},
        {"global_links_per_switch", d->global_links_per_switch > 0},
        {"global_links", d->global_links > 0},
        {"link_rate", d->link_rate > 0},
    };

    keys_refuse(keys, sizeof keys / sizeof keys[0], "this key needs `topology: dragonfly`; null removes it", tree, diags);
}

/* Ports of a switch and nodes: do they go together? */
static bool ports_check(const struct cluster *c, const struct yaml_node *tree, struct diags *diags)
{
    const struct dragonfly *d = &c->dragonfly;
    int rails = cluster_dragonfly_rails(c), ports = c->nics_per_node * (c->nic_ports > 1 ? c->nic_ports : 1),
        each = ports / rails;

    if (d->endpoints_per_switch % each)
        diag_error(diags, yaml_place(tree, "endpoints_per_switch"),
                   "endpoints_per_switch: %d NIC ports are not a multiple of the %d that each node uses%s",
                   d->endpoints_per_switch, each, rails > 1 ? "" : "; or set `rails: yes`, one switch for each");
    else if (d->switches_per_group % rails)
        diag_error(diags, yaml_place(tree, "switches_per_group"),
                   "switches_per_group: %d is not a multiple of the %d switches that the NIC ports of a node connect to (`rails: "
                   "no`: one)",
                   d->switches_per_group, rails);
    else
        return true;
    return false;
}

static void groups_check(struct cluster *c, int needed, const struct yaml_node *tree, struct diags *diags)
{
    struct dragonfly *d = &c->dragonfly;
    int64_t others = d->groups - 1, ports = (int64_t)d->switches_per_group * d->global_links_per_switch;

    if (d->groups < needed)
        diag_error(diags, yaml_place(tree, "groups"), "groups: %d nodes fill %d groups, not %d; null computes their number",
                   c->nodes, needed, d->groups);
    else if (others > 0 && d->global_links < 1)
        diag_error(diags, yaml_place(tree, "global_links_per_switch"),
                   "global_links_per_switch: %d switches with %d each have %lld, too few to reach %lld other groups",
                   d->switches_per_group, d->global_links_per_switch, (long long)ports, (long long)others);
    else if (d->global_links * others > ports)
        diag_error(diags, yaml_place(tree, "global_links"),
                   "global_links: %d to each of %lld other groups exceed the %lld that %d switches with %d each have",
                   d->global_links, (long long)others, (long long)ports, d->switches_per_group, d->global_links_per_switch);
}

static void dragonfly_complete(struct cluster *c, const struct yaml_node *tree, struct diags *diags)
{
    struct dragonfly *d = &c->dragonfly;

    if (!d->endpoints_per_switch)
        d->endpoints_per_switch = SLINGSHOT_ENDPOINTS;
    if (!d->switches_per_group)
        d->switches_per_group = 2 * d->endpoints_per_switch; /* balanced: Kim et al. 2008, section 3.1 */
    if (!d->local_links)
        d->local_links = 1;
    if (d->link_rate <= 0)
        d->link_rate = c->nic_rate / (c->nic_ports > 1 ? c->nic_ports : 1);
    if (!ports_check(c, tree, diags))
        return;
    d->groups_follow = !d->groups;
    d->ports_follow = !d->global_links_per_switch;
    d->cables_follow = !d->global_links;
    cluster_dragonfly_follow(c);
    groups_check(c, cluster_dragonfly_groups(c, c->nodes), tree, diags);
}

void cluster_topology_complete(struct cluster *c, const struct yaml_node *tree, struct diags *diags)
{
    size_t before = diags->n_errors;

    if (c->topology != TOPOLOGY_DRAGONFLY) {
        dragonfly_keys_check(c, tree, diags);
        return;
    }
    clos_keys_check(c, tree, diags);
    if (diags->n_errors == before)
        dragonfly_complete(c, tree, diags);
}
