/*
 * fabric.h - the network of a cluster, link by link: hosts, NICs, and a Clos of ToR, aggregation and core switches or a
 * dragonfly.
 *
 * Example: one line describes MegaScale's network of 12,288 GPUs, and another a dragonfly. fabric_format writes the same line
 * again.
 *
 *     clos hosts:1536 gpus:8 nics:8x200G tors:8 tor:64x200G/32x400G agg:32x400G/32x400G core:64x400G
 *     dragonfly hosts:2688 gpus:4 nics:4x200G rails:4 group:32 switch:16x200G pair:15
 *
 *     fabric_parse(text, at, &fabric, &diags);
 *     ... fabric_links(&fabric), fabric_link_name(&fabric, link, buffer, size), fabric_counts(&fabric).bisection ...
 *
 * A fabric is regular. A dozen numbers describe it, and arithmetic numbers its links; only rate and state are stored per link.
 * Links are directed; a cable is two of them.
 *
 * Shape of a Clos (dragonfly.h has that of a dragonfly). There are H hosts of g GPUs and n NICs of p ports. A *set* of T ToRs
 * serves S hosts. Port k of a host (k = NIC * p + port) is connected to ToR k mod T of its set. T = n p is rail-optimised: each
 * rail has its ToR. With T = 1 all NICs of a host are under one ToR. Each ToR has D_t host ports and U_t uplinks. A fabric of P
 * *planes* is P separate networks: ToR k of a set belongs to plane k mod P, and only hosts connect switches of different planes.
 * In each plane:
 *
 *     2 layers   each ToR has U_t / J cables to each of J aggregation switches (spines)
 *     3 layers   ToRs are divided into pods of R. In a pod each ToR has U_t / J cables to each of its J aggregation switches.
 *                Aggregation switch a has U_a uplinks to the core switches of group a mod G. A group has U_a / q switches, with
 *                q cables to each. G = 1 if U_a cables reach every core switch; otherwise there are G times U_a / q core
 *                switches.
 *
 * Counts (closed forms, tested): ToRs P ceil(H / S) T / P, uplinks U_t each, aggregation switches J P per pod, core switches U_a
 * / K per aggregation switch, with K the ports of a core switch. MegaScale: 1,536 hosts of 8 NICs, S = 64, T = 8 (24 sets, 192
 * ToRs), U_t = 32 (6,144 uplinks), pods of R = 32 ToRs, J = 32 (192), U_a = 32, K = 64 (96 core), G = 3.
 *
 * Text form:
 *
 *     fabric   = "clos" word... | "dragonfly" word...      words in any order, each once, between blanks
 *     word     = "hosts:" count            hosts (default: what one ToR set, one pod or a full core can serve, or the groups of
 *                                          a dragonfly)
 *              | "gpus:" count             GPUs per host (default 1)
 *              | "nics:" ports             NICs per host, each COUNTxRATE (default: one NIC per GPU at the rate of a ToR port)
 *              | "ports:" count            ports per NIC, dividing its rate (default 1)
 *    of a Clos:
 *              | "tors:" count             ToRs per set (default: 1)
 *              | "planes:" count           (default 1)
 *              | "tor:" tier | "agg:" tier | "core:" ports
 *              | "aggs:" count             aggregation switches per pod and plane (default: one per ToR uplink)
 *    of a dragonfly:
 *              | "switch:" ports           NIC ports of a switch
 *              | "rails:" count            switches that the ports of a host are spread over (default 1)
 *              | "group:" count            switches of a group (default: twice the NIC ports of a switch)
 *              | "groups:" count           (default: what the hosts fill; without hosts, what one cable between each two, or
 *                                          the cables of pair, can join)
 *              | "local:" ports            cables between each two switches of a group (default: one of a NIC port's rate)
 *              | "global:" ports           ports of a switch for other groups (default: what pair needs, or the number of NIC
 *                                          ports, at a NIC port's rate)
 *              | "pair:" count             cables between each two groups (default: what their ports allow)
 *    of both:
 *              | "nvlink:" ports           GPUs per NVLink domain x rate (default: none)
 *              | "pcie:" rate              PCIe lanes of each GPU and of each NIC (default: no limit)
 *              | "pcie_switches:" ports    PCIe switches of a host x the rate from each to its CPU (default: none)
 *              | "sockets:" ports          CPUs of a host x the rate from each to the others (default: one)
 *              | "affinity:" nic,...       the NIC of each GPU of a host (default: see below)
 *              | "latency:" time ["/" time] host to host over one switch; each further switch (default 3us/0.7us)
 *     tier     = ports "/" ports           down / up; the uplinks of the last tier are left out
 *     ports    = count "x" rate            64x200Gbps; "200G" is short for 200Gbps
 *
 * Without agg there is one tier (a single set), without core two. Switches of a dragonfly count as ToRs, its groups as pods.
 *
 * Links come in layers (enum fabric_layer) of consecutive numbers. Links of GPUs and NICs exist if they have a rate.
 *
 * NVLink domains are runs of consecutive GPUs, from 8 (a host) to 72 (NVL72 racks).
 *
 * Inside a host. GPU i uses NIC i * n / g, or the n / g NICs from there on if there are more NICs than GPUs; `affinity`
 * overrides this. Of k PCIe switches GPU i is on number i * k / g and NIC j on j * k / n. Of c CPUs, switch s is on s * c / k. A
 * transfer takes
 *
 *     the lanes of the GPU; if its NIC is on another PCIe switch, the links from its switch up to the CPU, between the CPUs
 *     if that switch is on another CPU, and down to the NIC's switch; the lanes of the NIC
 *
 * and the reverse at the other end. Two GPUs with one NIC share its lanes and port. NICs of one GPU share its lanes. All GPUs of
 * a PCIe switch whose NICs are elsewhere share its link up.
 */
#ifndef MSIM_SIM_FABRIC_FABRIC_H
#define MSIM_SIM_FABRIC_FABRIC_H

#include <stdint.h>

#include "model/base/diag.h"
#include "model/spec/cluster.h"

enum { AFFINITY_MAX = 64 /* GPUs */, FABRIC_TEXT_MAX = 1024 /* bytes of a text form */ };

/* The numbers of a fabric, as in its text; 0: the part does not exist. */
struct fabric_shape {
    enum topology topology;
    int hosts, gpus_per_host, nics_per_host, ports_per_nic;
    double nic_rate; /* B/s of a NIC with all its ports */
    int planes;
    int tors_per_set; /* over all planes; dragonfly: switches that the ports of a host use */
    int tor_down, tor_up;
    double tor_down_rate, tor_up_rate; /* per cable */
    int aggs_per_pod;                  /* per plane; spines if there is no core */
    int agg_down, agg_up;
    double agg_down_rate, agg_up_rate;
    int core_down;
    double core_rate;
    int switches_per_group, groups;      /* dragonfly; groups 0: the number that the hosts need */
    int local_links;                     /* cables between two switches of a group */
    int global_per_switch, global_links; /* ports of a switch for other groups; cables between two groups; 0: default */
    double local_rate, global_rate;      /* per cable */
    int nvlink_domain;                   /* GPUs */
    double nvlink_rate;
    double pcie_rate;               /* of the lanes of a GPU and of a NIC */
    int pcie_switches, sockets;     /* per host */
    double root_rate, socket_rate;  /* from a PCIe switch to its CPU; from a CPU to the others */
    int n_affinity;                 /* 0, or gpus_per_host: */
    uint8_t affinity[AFFINITY_MAX]; /* the NIC of each GPU of a host */
    double latency_s, hop_latency_s;
};

enum fabric_layer {
    LAYER_NVLINK_OUT, /* of each GPU */
    LAYER_NVLINK_IN,
    LAYER_GPU_OUT, /* PCIe lanes of each GPU */
    LAYER_GPU_IN,
    LAYER_ROOT_OUT, /* of each PCIe switch, to its CPU */
    LAYER_ROOT_IN,
    LAYER_SOCKET_OUT, /* of each CPU, to the others of its host */
    LAYER_SOCKET_IN,
    LAYER_PCIE_OUT, /* PCIe lanes of each NIC */
    LAYER_PCIE_IN,
    LAYER_NIC_UP, /* of each NIC port, to its ToR */
    LAYER_NIC_DOWN,
    LAYER_TOR_UP, /* of each ToR uplink */
    LAYER_TOR_DOWN,
    LAYER_AGG_UP, /* of each uplink of an aggregation switch */
    LAYER_AGG_DOWN,
    LAYER_LOCAL_OUT, /* of each cable in a group of a dragonfly: from the switch of the lower number */
    LAYER_LOCAL_IN,
    LAYER_GLOBAL_OUT, /* of each cable between groups: from the group of the lower number */
    LAYER_GLOBAL_IN,
    N_FABRIC_LAYERS
};
const char *fabric_layer_name(enum fabric_layer layer); /* nvlink_out ... global_in */

struct fabric {
    struct fabric_shape shape;
    int layers;        /* of switches: 1 to 3; a dragonfly has one */
    int hosts_per_set; /* S */
    int n_sets;
    int tors_per_pod;            /* R, per plane; switches of a group */
    int n_pods;                  /* groups of a dragonfly */
    int n_tors, n_aggs, n_cores; /* over all planes */
    int core_groups;             /* G, per plane */
    int cores_per_group;         /* U_a / q */
    int core_cables;             /* q: from an aggregation switch to one core switch */
    int agg_cables;              /* U_t / J: from a ToR to one aggregation switch */
    int32_t n_gpus, n_nics, n_ports;
    uint32_t first[N_FABRIC_LAYERS + 1]; /* first link of each layer; the last one is the number of links */
    double *rates;                       /* [links] B/s as built; the caller may read */
    float *speed;                        /* [links] 1 healthy, 0 down, between: degraded */
    int n_down;                          /* links with speed 0 */
};

/* Creates the fabric of a cluster. Assumptions for missing values of a Clos: 64-port switches; core switches as large as
 * aggregation switches; with `rails: auto` one ToR per set if 32 (times nic_split) ports reach all NIC ports of leaf_nodes,
 * otherwise one per NIC port of a host (as with `rails: yes`). */
MUST_CHECK enum status fabric_create(const struct cluster *cluster, struct fabric *fabric, struct diags *diags);
/* Parses a text; `at` is its position, for diagnostics. All errors are reported at once. */
MUST_CHECK enum status fabric_parse(const char *text, struct place at, struct fabric *fabric, struct diags *diags);
/* Parses NIC,NIC,... of the GPUs of a host into n_affinity and affinity; on STATUS_BAD_INPUT they do not change. */
MUST_CHECK enum status fabric_affinity_parse(const char *text, struct fabric_shape *shape);
/* Builds the fabric of a shape. */
MUST_CHECK enum status fabric_build(const struct fabric_shape *shape, struct place at, struct fabric *fabric,
                                    struct diags *diags);
/* A fabric of its own with the rates and speeds of another; free it, too. */
void fabric_copy(const struct fabric *fabric, struct fabric *copy);
void fabric_free(struct fabric *fabric);
/* Writes the complete text form; FABRIC_TEXT_MAX bytes suffice. Returns buffer. */
char *fabric_format(const struct fabric *fabric, char *buffer, size_t size);

/* Checks the structure: numbers agree, each port of a switch is used at most once, all ports of a plane are connected, counts
 * match the closed forms. Cheap: a few passes over the links. */
MUST_CHECK enum status fabric_check(const struct fabric *fabric, struct diags *diags);

static inline uint32_t fabric_links(const struct fabric *fabric)
{
    return fabric->first[N_FABRIC_LAYERS];
}
static inline uint32_t fabric_layer_links(const struct fabric *fabric, enum fabric_layer layer)
{
    return fabric->first[layer + 1] - fabric->first[layer];
}
enum fabric_layer fabric_layer_of(const struct fabric *fabric, uint32_t link);
/* The switches at the upper and lower end of a cable of the network, given either of its links. Numbers: ToRs first, then
 * aggregation, then core switches. The out links of a dragonfly's cable lead to its upper end. -1: no switch, as at NICs and
 * inside hosts. */
int fabric_upper_switch(const struct fabric *fabric, uint32_t link);
int fabric_lower_switch(const struct fabric *fabric, uint32_t link);
/* The switch to which a link leads, or -1. */
static inline int fabric_switch_behind(const struct fabric *fabric, uint32_t link)
{
    return fabric_layer_of(fabric, link) % 2 == 0 ? fabric_upper_switch(fabric, link) : fabric_lower_switch(fabric, link);
}
/* Writes both ends: "tor 17 port 3 -> agg 35". Returns buffer; 96 bytes suffice. */
char *fabric_link_name(const struct fabric *fabric, uint32_t link, char *buffer, size_t size);

/* Sets a link's speed, a fraction of its rate. A cable needs two calls, one per direction. */
void fabric_set_speed(struct fabric *fabric, uint32_t link, double speed);
static inline double fabric_rate(const struct fabric *fabric, uint32_t link)
{
    return fabric->rates[link] * (double)fabric->speed[link];
}
/* Present rates, for flows_create: rates[fabric_links]. */
void fabric_rates_now(const struct fabric *fabric, double *rates);

/* Capacities, for reports. */
struct fabric_counts {
    int hosts, gpus, nics, ports, tors, sets, pods, aggs, cores;
    int nic_cables, tor_cables, agg_cables;             /* cables from NICs, ToRs and aggregation switches up */
    uint32_t links;                                     /* directed links of the network, without NVLink and PCIe */
    double nic_bandwidth, tor_bandwidth, agg_bandwidth; /* B/s one way, over the used part */
    double tor_oversubscription, agg_oversubscription;  /* down : up of a switch with all ports in use */
    /* Of a dragonfly, whose switches are `tors` and whose groups are `pods`: */
    int local_cables, global_cables;
    double local_bandwidth, global_bandwidth; /* B/s one way, over all cables */
    double taper;                             /* of a full group: rate of global cables / rate of its NICs */
    /* B/s one way between two halves of the hosts under ideal routing; in a dragonfly from the first half to the rest, over all
     * cables. */
    double bisection;
};
struct fabric_counts fabric_counts(const struct fabric *fabric);

/* ---- arithmetic of positions */

static inline int fabric_host_of_port(const struct fabric *fabric, int port)
{
    return port / (fabric->shape.nics_per_host * fabric->shape.ports_per_nic);
}
/* The NIC of a GPU, or the first of several. */
static inline int fabric_nic_of_gpu(const struct fabric *fabric, int gpu)
{
    const struct fabric_shape *shape = &fabric->shape;
    int host = gpu / shape->gpus_per_host, at = gpu % shape->gpus_per_host;
    return host * shape->nics_per_host +
           (shape->n_affinity > 0 ? shape->affinity[at] : at * shape->nics_per_host / shape->gpus_per_host);
}
/* The first GPU of a host whose first NIC is number `nic` of the host; -1: none. */
int fabric_gpu_of_nic(const struct fabric *fabric, int host, int nic);
/* Number of NIC ports of a GPU. Queue pair q of a connection uses port q mod this number. */
static inline int fabric_gpu_ports(const struct fabric *fabric)
{
    const struct fabric_shape *shape = &fabric->shape;
    int nics =
        shape->n_affinity > 0 || shape->nics_per_host < shape->gpus_per_host ? 1 : shape->nics_per_host / shape->gpus_per_host;
    return nics * shape->ports_per_nic;
}
/* PCIe switches and CPUs are numbered host by host. */
static inline int fabric_pcie_of_gpu(const struct fabric *fabric, int gpu)
{
    const struct fabric_shape *shape = &fabric->shape;
    return gpu / shape->gpus_per_host * shape->pcie_switches +
           gpu % shape->gpus_per_host * shape->pcie_switches / shape->gpus_per_host;
}
static inline int fabric_pcie_of_nic(const struct fabric *fabric, int nic)
{
    const struct fabric_shape *shape = &fabric->shape;
    return nic / shape->nics_per_host * shape->pcie_switches +
           nic % shape->nics_per_host * shape->pcie_switches / shape->nics_per_host;
}
static inline int fabric_socket_of_pcie(const struct fabric *fabric, int pcie)
{
    const struct fabric_shape *shape = &fabric->shape;
    return pcie / shape->pcie_switches * shape->sockets + pcie % shape->pcie_switches * shape->sockets / shape->pcie_switches;
}
/* ToRs are numbered set by set; ToR t is number t % tors_per_set of its set. */
int fabric_tor_of_port(const struct fabric *fabric, int port);
static inline int fabric_plane_of_tor(const struct fabric *fabric, int tor)
{
    return tor % fabric->shape.tors_per_set % fabric->shape.planes;
}
/* Index of a ToR within its plane, and from there its pod. */
static inline int fabric_tor_in_plane(const struct fabric *fabric, int tor)
{
    const struct fabric_shape *shape = &fabric->shape;
    return tor / shape->tors_per_set * (shape->tors_per_set / shape->planes) + tor % shape->tors_per_set / shape->planes;
}
static inline int fabric_pod_of_tor(const struct fabric *fabric, int tor)
{
    return fabric_tor_in_plane(fabric, tor) / fabric->tors_per_pod;
}
/* Aggregation switches are numbered plane by plane, pod by pod. */
static inline int fabric_agg(const struct fabric *fabric, int plane, int pod, int index)
{
    return (plane * fabric->n_pods + pod) * fabric->shape.aggs_per_pod + index;
}

/* GPUs that exchanges treat as one domain: an NVLink domain, or a host with several NVLink islands. */
static inline int fabric_domain_gpus(const struct fabric *fabric)
{
    int domain = fabric->shape.nvlink_domain, host = fabric->shape.gpus_per_host;
    return domain > 1 && domain < host ? host : domain;
}

#endif
