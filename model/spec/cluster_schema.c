/* cluster_schema.c - the rows of a cluster. Its GPU is a mapping that the catalog has resolved (entry.c). */
#include <stdlib.h>
#include <string.h>

#include "model/spec/cluster.h"
#include "model/spec/schemas.h"

static const char *const fabrics[] = {[FABRIC_INFINIBAND] = "infiniband",
                                      [FABRIC_ROCE] = "roce",
                                      [FABRIC_ETHERNET_TCP] = "ethernet_tcp",
                                      [FABRIC_SLINGSHOT] = "slingshot",
                                      NULL};

static const char *const rails[] = {[RAILS_AUTO] = "auto", [RAILS_NO] = "no", [RAILS_YES] = "yes", NULL};

static const char *const topologies[] = {[TOPOLOGY_CLOS] = "clos", [TOPOLOGY_DRAGONFLY] = "dragonfly", NULL};

static const char *const algorithms[] = {[ALGORITHM_NCCL] = "nccl",
                                         [ALGORITHM_RING] = "ring",
                                         [ALGORITHM_TREE] = "tree",
                                         [ALGORITHM_HIERARCHICAL] = "hierarchical",
                                         NULL};

static const struct field cluster_rows[] = {
    TEXT("name", struct cluster, name, UNSET, "name"),
    TEXT("source", struct cluster, source, UNSET, "where the description comes from"),
    GROUP("gpu", struct cluster, gpu, gpu_schema, REQUIRED, "its GPU: a catalog name, a file, or a mapping"),
    INTEGER("nodes", struct cluster, nodes, 1, 1e6, REQUIRED, "hosts (default: those of `base: NAME`)"),
    INTEGER("gpus_per_node", struct cluster, gpus_per_node, 1, 1024, UNSET, "GPUs of a host (default: the GPU's usual number)"),
    INTEGER("nvlink_domain", struct cluster, nvlink_domain, 1, 100000, UNSET, "GPUs joined by NVLink (default: the GPU's)"),
    CHOICE("fabric", struct cluster, fabric, fabrics, "infiniband", "kind of network"),
    INTEGER("nics_per_node", struct cluster, nics_per_node, 1, 1024, UNSET, "NICs of a host (default: one per GPU)"),
    PORT_RATE("nic_rate", struct cluster, nic_rate, 1e7, 1e13, UNSET, "per NIC and direction"),
    QUANTITY("nic_latency", struct cluster, nic_latency_s, DIM_TIME, 1e-9, 1, "2.5us", "one message, host to host, one switch"),
    QUANTITY("hop_latency", struct cluster, hop_latency_s, DIM_TIME, 0, 1, "0.6us", "each further switch"),
    QUANTITY("net_fraction", struct cluster, net_fraction, DIM_FRACTION, 0.01, 1, "0.9", "of nic_rate that NCCL sustains"),
    QUANTITY("net_base", struct cluster, net_base_s, DIM_TIME, 0, 1e-2, "0s",
             "added to the start and end of a collective between nodes, where it was measured"),
    QUANTITY("net_fill", struct cluster, net_fill_s, DIM_TIME, 0, 1e-1, "0s",
             "filling the pipeline of a large collective between nodes, beyond the GPU's nccl.ramp, where it was measured"),
    QUANTITY("net_fill_bytes", struct cluster, net_fill_bytes, DIM_BYTES, 1024, 0x1p27, "16MiB",
             "bytes from which a collective pays all of net_fill; a smaller one pays its part"),
    CHOICE("collective_algorithm", struct cluster, collective_algorithm, algorithms, "nccl",
           "nccl: the faster of ring and tree; hierarchical: in the node, between nodes by rail, in the node"),
    CHOICE("topology", struct cluster, topology, topologies, UNSET,
           "clos: ToR, aggregation and core switches; dragonfly: groups of switches, all joined to all (Slingshot)"),
    INTEGER("fabric_layers", struct cluster, fabric_layers, 1, 3, UNSET,
            "1 one switch, 2 leaf-spine, 3 Clos with core (default: usual for the number of nodes)"),
    INTEGER("leaf_nodes", struct cluster, leaf_nodes, 1, 1e6, UNSET, "hosts under one set of leaf (ToR) switches"),
    INTEGER("pod_nodes", struct cluster, pod_nodes, 0, 1e6, UNSET, "hosts under one aggregation block; 0 all"),
    QUANTITY("leaf_oversubscription", struct cluster, leaf_oversubscription, DIM_COUNT, 0.01, 1000, "1", "down : up at the leaf"),
    QUANTITY("pod_oversubscription", struct cluster, pod_oversubscription, DIM_COUNT, 0.01, 1000, "1",
             "down : up at the aggregation layer"),
    INTEGER("nic_split", struct cluster, nic_split, 1, 16, "1", "links that one switch port is split into towards the hosts"),
    INTEGER("groups", struct cluster, dragonfly.groups, 1, 1e5, UNSET,
            "of a dragonfly (default: the number that its nodes fill)"),
    INTEGER("switches_per_group", struct cluster, dragonfly.switches_per_group, 1, 1e4, UNSET,
            "of a dragonfly (default: twice endpoints_per_switch)"),
    INTEGER("endpoints_per_switch", struct cluster, dragonfly.endpoints_per_switch, 1, 1e4, UNSET,
            "NIC ports at a switch of a dragonfly (default: 16, as in Slingshot)"),
    INTEGER("local_links", struct cluster, dragonfly.local_links, 1, 1e4, UNSET,
            "cables between two switches of a dragonfly's group (default: 1)"),
    INTEGER("global_links_per_switch", struct cluster, dragonfly.global_links_per_switch, 1, 1e4, UNSET,
            "ports of a dragonfly's switch for other groups (default: enough for global_links, else endpoints_per_switch)"),
    INTEGER("global_links", struct cluster, dragonfly.global_links, 1, 1e4, UNSET,
            "cables between two groups of a dragonfly (default: all that their ports allow)"),
    PORT_RATE("link_rate", struct cluster, dragonfly.link_rate, 1e7, 1e13, UNSET,
              "per local or global cable and direction (default: the rate of a NIC port)"),
    CHOICE("rails", struct cluster, rails, rails, "auto",
           "connect each NIC of a host to its own ToR; auto: if one ToR has too few ports"),
    INTEGER("nic_ports", struct cluster, nic_ports, 1, 64, "1", "ports of a NIC, which share its rate"),
    INTEGER("queue_pairs", struct cluster, queue_pairs, 1, 64, "2",
            "queue pairs between two GPUs of different hosts, each with its own hash; NCCL: two channels per NIC, one each"),
    INTEGER("planes", struct cluster, planes, 1, 1024, UNSET, "separate networks that only the hosts join"),
    QUANTITY("pcie_rate", struct cluster, pcie_rate, DIM_RATE, 1e7, 1e13, UNSET,
             "over the lanes of a GPU and of a NIC (default: no limit)"),
    INTEGER("pcie_switches", struct cluster, pcie_switches, 1, 1024, UNSET, "of a node, between its GPUs and NICs"),
    QUANTITY("pcie_root_rate", struct cluster, pcie_root_rate, DIM_RATE, 1e7, 1e13, UNSET, "from a PCIe switch to its CPU"),
    INTEGER("sockets", struct cluster, sockets, 1, 64, UNSET, "CPUs of a node, each with an equal share of the PCIe switches"),
    QUANTITY("socket_rate", struct cluster, socket_rate, DIM_RATE, 1e7, 1e13, UNSET, "from a CPU to the others of its node"),
    TEXT("nic_affinity", struct cluster, nic_affinity, UNSET, "the NIC of each GPU of a node: 0,0,1,1 (default: evenly)"),
    QUANTITY("host_memory", struct cluster, host_memory, DIM_BYTES, 1e9, 1e15, UNSET, "of a node (default: usual for the GPU)"),
    QUANTITY("host_memory_rate", struct cluster, host_memory_rate, DIM_RATE, 1e9, 1e15, UNSET,
             "its bandwidth on the data sheet (default: usual for the GPU)"),
    QUANTITY("data_sample", struct cluster, data_sample_s, DIM_TIME, 0, 10, "0.1ms",
             "the host's time per sample without async_data"),
    QUANTITY("storage_rate", struct cluster, storage_rate, DIM_RATE, 1e6, 1e15, UNSET, "bandwidth of the whole checkpoint store"),
    QUANTITY("node_power", struct cluster, node_power_w, DIM_POWER, 10, 1e6, UNSET,
             "published power of a node at full load with host, NICs and fans; not used with another GPU"),
    QUANTITY("pue", struct cluster, pue, DIM_COUNT, 1, 10, UNSET,
             "power of the site / power of its computers; the rest is cooling and distribution (default: 1, assumed)"),
};

/* Layers of switches that a mapping means, as complete.c has it. */
static int layers_meant(const struct yaml_node *mapping)
{
    const struct yaml_node *layers = yaml_find(mapping, "fabric_layers"), *nodes = yaml_find(mapping, "nodes");
    int given = layers && layers->kind == YAML_SCALAR ? (int)strtol(layers->text, NULL, 10) : 0;
    int hosts = nodes && nodes->kind == YAML_SCALAR ? (int)strtol(nodes->text, NULL, 10) : 0;
    return given > 0 ? given : cluster_usual_layers(hosts > 0 ? hosts : 1);
}

/* Every layer of switches has people who call it the spine. */
static const char *cluster_advice(const char *key, const struct yaml_node *mapping)
{
    static const char *const upper[] = {"spine_oversubscription", "oversubscription", "core_oversubscription", "taper"};
    static const char *const lower[] = {"tor_oversubscription", "edge_oversubscription", "rail_oversubscription"};
    const struct yaml_node *topology = yaml_find(mapping, "topology");
    bool dragonfly = topology && topology->kind == YAML_SCALAR && strcmp(topology->text, "dragonfly") == 0;
    for (size_t i = 0; dragonfly && i < sizeof upper / sizeof *upper; i++)
        if (strcmp(key, upper[i]) == 0)
            return "of a dragonfly it follows from `endpoints_per_switch`, `global_links_per_switch` and `link_rate`";
    for (size_t i = 0; i < sizeof lower / sizeof *lower; i++)
        if (strcmp(key, lower[i]) == 0)
            return "write `leaf_oversubscription`, down : up of a ToR";
    for (size_t i = 0; i < sizeof upper / sizeof *upper; i++)
        if (strcmp(key, upper[i]) == 0)
            return layers_meant(mapping) < 3
                       ? "between leaf and spine, of two layers, it is `leaf_oversubscription`, down : up of a leaf"
                       : "between aggregation and core, of three layers, it is `pod_oversubscription`; "
                         "`leaf_oversubscription` is below";
    return NULL;
}
const struct schema cluster_schema = SCHEMA_WITH("cluster", cluster_rows, cluster_advice);

json_t *cluster_write(const struct cluster *cluster, bool followed)
{
    static const char *const of_clos[] = {"leaf_oversubscription", "pod_oversubscription", "nic_split"}; /* others are unset */
    const struct dragonfly *d = &cluster->dragonfly;
    const struct {
        const char *key;
        bool follows;
    } of_dragonfly[] = {
        {"groups", d->groups_follow}, {"global_links_per_switch", d->ports_follow}, {"global_links", d->cables_follow}};
    json_t *mapping = schema_write(&cluster_schema, cluster);

    for (size_t i = 0; cluster->topology == TOPOLOGY_DRAGONFLY && i < sizeof of_clos / sizeof *of_clos; i++)
        json_object_del(mapping, of_clos[i]);
    for (size_t i = 0; !followed && i < sizeof of_dragonfly / sizeof *of_dragonfly; i++)
        if (of_dragonfly[i].follows)
            json_object_del(mapping, of_dragonfly[i].key);
    return mapping;
}
