/*
 * topology.h - what other programs say of a cluster's shape.
 *
 *     NCCL_TOPO_DUMP_FILE=topo.xml       one node: GPUs, NICs, PCIe switches            (XML)
 *     topology.conf of Slurm             nodes under switches, or in blocks             (SwitchName=, BlockName=)
 *     ibnetdiscover                      every switch, NIC and cable of InfiniBand
 *
 *     struct topology_seen topology = {0};
 *     status = topology_read("topo.xml", &topology, &diags);           ... topology.gpus_per_node ...
 *     status = topology_read("topology.conf", &topology, &diags);      ... topology.nodes, topology.leaf_nodes ...
 *
 * Several files add up: what one does not say another may. Which kind a file is follows from its content.
 */
#ifndef MSIM_TRACES_TOPOLOGY_TOPOLOGY_H
#define MSIM_TRACES_TOPOLOGY_TOPOLOGY_H

#include <stdbool.h>

#include "model/base/diag.h"

/* 0 or "": the files do not say it. */
struct topology_seen {
    /* inside a node */
    int gpus_per_node, nics_per_node;
    int sm;                 /* compute capability of the GPUs: 90 is 9.0 */
    char gcn[16];           /* of AMD's: gfx942 */
    double nic_rate;        /* B/s */
    double pcie_rate;       /* B/s, of the lanes of a GPU */
    int pcie_switches;      /* of a node */
    double pcie_root_rate;  /* B/s, from a PCIe switch to its CPU */
    char nic_affinity[256]; /* the NIC of each GPU, where it is not the usual one: "0,0,1,1" */
    /* between nodes */
    int nodes;
    int layers;                   /* of switches, 1 to 3 */
    int leaf_nodes;               /* under one switch, or one set of them */
    int pod_nodes;                /* under one aggregation block; of three layers */
    int block_nodes;              /* of Slurm's blocks */
    int rails;                    /* 1: each NIC of a node is at its own leaf switch; -1: all are at one */
    double leaf_oversubscription; /* down : up */
    char source[512];             /* the files, and what they are */
};

/* Adds what a file says. STATUS_BAD_INPUT, and reported: it is none of these, it is wrong, or it says otherwise than a file
 * before it. */
MUST_CHECK enum status topology_read(const char *path, struct topology_seen *topology, struct diags *diags);
/* The same of text in memory, with a NUL behind its n bytes. */
MUST_CHECK enum status topology_parse(const char *name, char *bytes, size_t n, struct topology_seen *topology,
                                      struct diags *diags);

#endif
