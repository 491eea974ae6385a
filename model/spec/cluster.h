/*
 * cluster.h - the machine: nodes of one kind of GPU, and the fabric between them.
 *
 * Example: megascale-a100, 12,288 A100.
 *
 *     nodes 1536, gpus_per_node 8, nvlink_domain 8
 *     nics_per_node 8, nic_rate 25e9 B/s (200 Gbps)
 *     topology Clos, fabric_layers 3, rails yes
 */
#ifndef MSIM_MODEL_SPEC_CLUSTER_H
#define MSIM_MODEL_SPEC_CLUSTER_H

#include "model/base/order.h"
#include "model/spec/gpu.h"

enum fabric_kind { FABRIC_INFINIBAND, FABRIC_ROCE, FABRIC_ETHERNET_TCP, FABRIC_SLINGSHOT };
/* Whether each NIC of a host connects to a ToR of its own (rail-optimised) or all to one. */
enum rails { RAILS_AUTO /* as the ports of a switch allow: sim/fabric */, RAILS_NO, RAILS_YES };

/* How switches are connected. */
enum topology { TOPOLOGY_CLOS, TOPOLOGY_DRAGONFLY };

enum { AFFINITY_SIZE = 192 };

/* The algorithm of collectives over the network: model/cost/kernel/collective.h. */
enum collective_algorithm { ALGORITHM_NCCL, ALGORITHM_RING, ALGORITHM_TREE, ALGORITHM_HIERARCHICAL };

/* Groups of switches: all switches of a group are connected, and all groups: sim/fabric/dragonfly.h. */
struct dragonfly {
    int groups;
    int switches_per_group;
    int endpoints_per_switch;    /* NIC ports */
    int local_links;             /* cables between two switches of a group */
    int global_links_per_switch; /* ports for other groups */
    int global_links;            /* cables between two groups */
    double link_rate;            /* B/s of a local or global cable and direction */
    /* The input does not specify groups, global_links_per_switch, global_links: they follow from the rest, also after nodes
     * change. */
    bool groups_follow, ports_follow, cables_follow;
};

/* Cables between each two groups, from the ports of a switch for other groups; there are at least two groups. */
static inline int dragonfly_global_links(int switches, int ports, int groups)
{
    return (int)((int64_t)switches * ports / (groups - 1));
}
/* The inverse: ports of a switch for other groups, from the cables between each two groups. */
static inline int dragonfly_global_ports(int switches, int links, int groups)
{
    return (int)int64_divide_up((int64_t)links * (groups - 1), switches);
}

struct cluster {
    char name[NAME_SIZE];
    char source[SOURCE_SIZE];
    struct gpu gpu;
    int nodes;
    bool as_needed; /* the input does not specify the nodes: the cluster has the number that the job needs */
    int gpus_per_node;
    int nvlink_domain; /* GPUs joined by NVLink: gpus_per_node, more (NVL72: 72), or an equal part (two boards of 4 in a node) */
    enum fabric_kind fabric;
    int nics_per_node;
    double nic_rate;      /* B/s per NIC and direction */
    double nic_latency_s; /* one message, host to host, one switch */
    double hop_latency_s; /* each further switch */
    double net_fraction;  /* of nic_rate that NCCL sustains on an idle fabric */
    /* Of a collective between nodes, beyond what the GPU's NCCL parameters and the latencies above give; 0 unless measured. A
     * transport through host memory (GPUDirect-TCPXO, plain TCP) has both; see model/cost/kernel/collective.h. */
    double net_base_s;     /* start and end */
    double net_fill_s;     /* filling the pipeline of a message of net_fill_bytes or more; a shorter one fills its part */
    double net_fill_bytes; /* bytes */
    enum collective_algorithm collective_algorithm;
    enum topology topology;
    /* Members for a Clos (in a dragonfly they are 0, and oversubscription is 1): */
    int fabric_layers;            /* 1: one switch, 2: leaf-spine, 3: Clos with core */
    int leaf_nodes;               /* nodes under one set of ToR (leaf) switches */
    int pod_nodes;                /* nodes under one aggregation block; 0: all */
    double leaf_oversubscription; /* down : up at the ToR layer, 1 = none */
    double pod_oversubscription;  /* down : up at the aggregation layer (Llama 3: 7) */
    int nic_split;                /* ports a ToR downlink is split into (MegaScale: 2) */
    struct dragonfly dragonfly;   /* all 0 in a Clos */
    enum rails rails;
    int nic_ports;     /* ports of a NIC, dividing its rate */
    int queue_pairs;   /* from a GPU to one of another node, each hashed for itself: channels times those of a channel; 0: 1 */
    int planes;        /* separate networks that only hosts join; 0: one, or one per NIC where nothing joins rails */
    double pcie_rate;  /* B/s each way over the lanes of a GPU and of a NIC; 0: not a limit */
    int pcie_switches; /* of a node; 0: what is between GPUs and NICs is not a limit */
    double pcie_root_rate;            /* B/s each way from a PCIe switch to its CPU */
    int sockets;                      /* CPUs of a node, where the path between them can be a limit; 0: it is not */
    double socket_rate;               /* B/s each way from a CPU to the others */
    char nic_affinity[AFFINITY_SIZE]; /* the NIC of each GPU of a node, "0,0,1,1"; empty: shared evenly, in order */
    double host_memory;               /* bytes of a node's memory; 0: unknown */
    double host_memory_rate;          /* B/s of it, data-sheet; 0: unknown */
    double data_sample_s; /* the host reads, assembles and hands over one sample; see model/cost/kernel/data_loading.h */
    double storage_rate;  /* B/s of the whole checkpoint store; 0 unknown */
    double node_power_w;  /* of a node at full load with host, NICs and fans, as published; 0: unknown */
    double pue;           /* power of the site over that of its computers, at least 1; 0: unknown */
};

/* Layers of switches that a fabric usually has (assumption): one for one node, two (leaf and spine) up to 1,024 nodes, else
 * three. */
static inline int cluster_usual_layers(int nodes)
{
    return nodes == 1 ? 1 : nodes <= 1024 ? 2 : 3;
}

static inline int cluster_gpus(const struct cluster *cluster)
{
    return cluster->nodes * cluster->gpus_per_node;
}

/* NICs of one NVLink domain, or of one node where that is more. */
static inline int cluster_domain_nics(const struct cluster *cluster)
{
    int hosts = cluster->nvlink_domain > cluster->gpus_per_node ? cluster->nvlink_domain / cluster->gpus_per_node : 1;
    return hosts * cluster->nics_per_node;
}

/* NICs that n GPUs of one NVLink domain use: their own, or at most all of the domain. */
static inline double cluster_nics_of(const struct cluster *cluster, int n)
{
    double each = cluster->nics_per_node > cluster->gpus_per_node ? (double)cluster->nics_per_node / cluster->gpus_per_node : 1;
    return n * each < cluster_domain_nics(cluster) ? n * each : cluster_domain_nics(cluster);
}

/* B/s of a GPU's share of its node's NICs. */
static inline double cluster_gpu_nic_rate(const struct cluster *cluster)
{
    return cluster->nic_rate * cluster->nics_per_node / cluster->gpus_per_node;
}

/* Nodes under one set of ToRs, or under the dragonfly switches to which a node's NICs connect; 0: unknown. */
int cluster_leaf_nodes(const struct cluster *cluster);
/* Nodes under one aggregation block, or in one group of a dragonfly; 0: all. */
int cluster_pod_nodes(const struct cluster *cluster);
/* The ports of a Clos's switches, as sim/fabric builds them: of a leaf's ToRs (one per plane, or one per port of a node where
 * rails have their own) and of a pod's aggregation switches, downward and upward. The upward number follows from the
 * oversubscription, rounded, at least one. Missing layers have none. */
#define CLOS_SWITCH_PORTS 64
struct clos_ports {
    int planes; /* of the cluster; where only hosts connect rails, one per port */
    int tors_per_set;
    int tor_down, tor_up; /* ports of one ToR; `nic_split` downward ports are as fast as one upward port */
    int agg_down, agg_up;
};
struct clos_ports cluster_clos_ports(const struct cluster *cluster);
/* The traffic that NICs of a leaf (or leaves of a pod) can send over the capacity of the links that leave it. A Clos is
 * oversubscribed with the ports that it has, so 8:1 of 4 ports is 4:1. In a dragonfly: the endpoints of a switch over its local
 * cables, and those of a group over its global cables (1 / taper). Adaptive routing fills all cables (sim/fabric/dragonfly.h),
 * because traffic between a pair of groups also uses other groups. So the number of groups of a job does not matter. */
double cluster_leaf_oversubscription(const struct cluster *cluster);
double cluster_pod_oversubscription(const struct cluster *cluster);
/* Number of dragonfly switches to which the NICs of a node connect: one, or one per port. */
int cluster_dragonfly_rails(const struct cluster *cluster);
/* Derives, for the nodes of a dragonfly, groups, ports for other groups and cables between two groups, unless the input
 * specifies them. */
void cluster_dragonfly_follow(struct cluster *cluster);
/* Changes the number of nodes. A dragonfly with too few groups for them gets more, even if its file specifies their number.
 * Returns false, and changes nothing, if the switches of a group cannot have the cables to that number of groups. */
bool cluster_resize(struct cluster *cluster, int nodes);
/* Number of dragonfly groups that `nodes` fill. The remedy is an option for the user to add if its file specifies fewer groups,
 * else "". */
int cluster_dragonfly_groups(const struct cluster *cluster, int nodes);
const char *cluster_groups_remedy(const struct cluster *cluster, int nodes);

#endif
