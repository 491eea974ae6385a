/*
 * Topologies of NCCL, Slurm and InfiniBand, as the shape of a cluster.
 *
 * What is proved, by files that are counted by hand: GPUs, NICs, PCIe switches and the NIC of each GPU from NCCL's tree; nodes,
 * leaves and layers from Slurm's switches, in whatever order they stand, and nodes of a block; hosts, NICs, rates, layers, rails
 * and oversubscription from the cables of InfiniBand; files add up, and contradictions and mistakes are reported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/base/append.h"
#include "tests/suite.h"
#include "traces/topology/topology.h"

/* What a text says, "gpus nics gbps pcie@switches affinity; nodes layers leaf pod block rails over", or the first mistake. */
static const char *shape_of(const char *const *texts)
{
    static char words[512];
    struct topology_seen t = {0};
    struct diags diags = {0};
    for (; *texts && diags.n_errors == 0; texts++) {
        char *copy = strdup(*texts);
        enum status status = topology_parse("file", copy, strlen(copy), &t, &diags);
        ck_assert_int_eq(status == STATUS_OK, diags.n_errors == 0);
        free(copy);
    }
    snprintf(words, sizeof words, "%d %d %.4g %.3g@%d %s; %d %d %d %d %d %d %g", t.gpus_per_node, t.nics_per_node,
             t.nic_rate * 8 / 1e9, t.pcie_rate / 1e9, t.pcie_switches, *t.nic_affinity ? t.nic_affinity : "-", t.nodes, t.layers,
             t.leaf_nodes, t.pod_nodes, t.block_nodes, t.rails, t.leaf_oversubscription);
    for (size_t i = 0; i < diags.n_items && diags.n_errors > 0; i++)
        if (diags.items[i].severity == SEVERITY_ERROR)
            snprintf(words, sizeof words, "%s", diags.items[i].text);
    diags_free(&diags);
    return words;
}
#define SHAPE(...)      shape_of((const char *const[]){__VA_ARGS__, NULL})
#define HAS(text, part) ck_assert_msg(strstr(text, part) != NULL, "%s", text)

#define LINK   " link_speed=\"16.0 GT/s PCIe\" link_width=\"16\""
#define GPU(n) "<pci busid=\"g" n "\"" LINK "><gpu dev=\"" n "\" sm=\"80\" rank=\"" n "\"/></pci>"
#define NIC(n)                                                                                                                   \
    "<pci busid=\"n" n "\"" LINK "><nic><net name=\"mlx5_" n "\" dev=\"" n "\" speed=\"200000\" port=\"1\"/></nic></pci>"
#define SWITCH(inside) "<pci busid=\"s\" class=\"0x060400\"" LINK ">" inside "</pci>"
#define SYSTEM(inside) "<?xml version=\"1.0\"?>\n<system version=\"1\">" inside "</system>"

START_TEST(a_node_of_nccl)
{
#ifdef MSIM_EXPAT
    /* 31.5 GB/s: 16 GT/s, 16 lanes, 128 bits in 130 */
    ck_assert_str_eq(SHAPE(SYSTEM("<cpu numaid=\"0\">" SWITCH(GPU("0") GPU("1") NIC("0")) "</cpu><cpu numaid=\"1\">" SWITCH(
                         GPU("2") GPU("3") NIC("1")) "</cpu>")),
                     "4 2 200 31.5@2 -; 0 0 0 0 0 0 0");
    /* both NICs beside the second pair of GPUs: GPUs share them in order, and switches are not alike */
    ck_assert_str_eq(
        SHAPE(SYSTEM("<cpu numaid=\"0\">" SWITCH(GPU("0") GPU("1")) SWITCH(GPU("2") GPU("3") NIC("0") NIC("1")) "</cpu>")),
        "4 2 200 31.5@0 -; 0 0 0 0 0 0 0");
    /* two GPUs beside no NIC share both, as the others have one each */
    ck_assert_str_eq(SHAPE(SYSTEM("<cpu numaid=\"0\">" SWITCH(GPU("0") GPU("1")) SWITCH(NIC("0") GPU("2"))
                                      SWITCH(NIC("1") GPU("3")) "</cpu>")),
                     "4 2 200 31.5@0 0,1,0,1; 0 0 0 0 0 0 0");
    /* no switches, and a NIC for management */
    ck_assert_str_eq(
        SHAPE(SYSTEM("<cpu numaid=\"0\">" GPU("0") NIC("0") "<nic><net name=\"eth0\" dev=\"1\" speed=\"10000\"/></nic></cpu>")),
        "1 1 200 31.5@0 -; 0 0 0 0 0 0 0");
    HAS(SHAPE(SYSTEM("<cpu/>")), "contains no GPU");
    HAS(SHAPE("<system><cpu>"), "is not XML");
#endif
}
END_TEST

START_TEST(switches_of_slurm)
{
    ck_assert_str_eq(SHAPE("SwitchName=leaf1 Nodes=gpu[001-032]\nSwitchName=leaf2 Nodes=gpu[033-064]\nSwitchName=spine1 "
                           "Switches=leaf[1-2]\n"),
                     "0 0 0 0@0 -; 64 2 32 0 0 0 0");
    /* any order, any case, comments, three layers, a smaller pod */
    ck_assert_str_eq(
        SHAPE("# ours\nswitchname=top switches=p[1-2]\r\nSwitchName=p1 Switches=a,b LinkSpeed=4\nSwitchName=p2 "
              "Switches=c\nSwitchName=a Nodes=n[1-16]\nSwitchName=b Nodes=n[17-32] # b\nSwitchName=c Nodes=n[33-40]\n"),
        "0 0 0 0@0 -; 40 3 16 32 0 0 0");
    ck_assert_str_eq(SHAPE("SwitchName=s Nodes=n[1-4]\n"), "0 0 0 0@0 -; 4 1 4 0 0 0 0");
    ck_assert_str_eq(SHAPE("SwitchName=s Nodes=n[1-4]\nSwitchName=t Nodes=n[5-8]\n"), "0 0 0 0@0 -; 8 2 4 0 0 0 0");
    ck_assert_str_eq(SHAPE("BlockName=b1 Nodes=n[01-18]\nBlockName=b2 Nodes=n[19-36]\nBlockSizes=18\n"),
                     "0 0 0 0@0 -; 36 0 0 0 18 0 0");
    HAS(SHAPE("SwitchName=s Nodes=n[1-\n"), "'n[1-' is no list of nodes");
    HAS(SHAPE("SwitchName=s Switches=t\nSwitchName=u Nodes=n1\n"), "switch 's': a switch below it is not described");
    HAS(SHAPE("SwitchName=s Switches=t\nSwitchName=t Switches=s\n"), "or they form a circle");
}
END_TEST

#define SW(n)        "\nswitchguid=0x" n "(" n ")\nSwitch\t41 \"S-" n "\"\t\t# \"MF0;sw" n ":X/U1\" enhanced port 0 lid 3 lmc 0\n"
#define TO_NIC(p, n) "[" p "]\t\"H-" n "\"[1](" n ") \t\t# \"x mlx5_0\" lid 5 4xHDR\n"
#define TO_SW(p, n)  "[" p "]\t\"S-" n "\"[1]\t\t# \"MF0;sw" n ":MQM8700/U1\" lid 7 4xHDR\n"
#define CA(n, name, s, rate)                                                                                                     \
    "\ncaguid=0x" n "\nCa\t1 \"H-" n "\"\t\t# \"" name "\"\n[1](" n ") \t\"S-" s "\"[1]\t\t# lid 5 lmc 0 \"MF0;sw" s             \
    ":MQM8700/U1\" lid 3 " rate "\n"

START_TEST(cables_of_infiniband)
{
    /* two leaves, one per rail, and a spine; a switch's own NIC does not count */
    ck_assert_str_eq(SHAPE(SW("1") TO_NIC("1", "a1") TO_NIC("2", "b1") TO_SW("21", "3") SW("2") TO_NIC("1", "a2")
                               TO_NIC("2", "b2") TO_SW("21", "3") SW("3") TO_SW("1", "1") TO_SW("2", "2")
                                   CA("a1", "n1 mlx5_0", "1", "4xHDR") CA("a2", "n1 mlx5_1", "2", "4xHDR")
                                       CA("b1", "n2 mlx5_0", "1", "4xHDR") CA("b2", "n2 mlx5_1", "2", "4xHDR")
                                           CA("c", "Mellanox Technologies Aggregation Node", "2", "4xHDR")),
                     "0 2 200 0@0 -; 2 2 2 0 0 1 2");
    ck_assert_str_eq(SHAPE(SW("1") TO_NIC("1", "a1") CA("a1", "n1 mlx5_0", "1", "4xNDR") CA("a2", "n1 mlx5_1", "1", "4xNDR")),
                     "0 2 400 0@0 -; 1 1 1 0 0 -1 0");
    HAS(SHAPE(SW("1") TO_SW("1", "2")), "has no NIC at a switch");
}
END_TEST

START_TEST(files_add_up)
{
    ck_assert_str_eq(SHAPE("SwitchName=s Nodes=n[1-2]\n",
                           SW("1") TO_NIC("1", "a1") CA("a1", "n1 mlx5_0", "1", "4xNDR") CA("b1", "n2 mlx5_0", "1", "4xNDR")),
                     "0 1 400 0@0 -; 2 1 2 0 0 0 0");
    HAS(SHAPE("SwitchName=s Nodes=n[1-3]\n", "BlockName=b Nodes=n[1-2]\n"), "2 nodes, where a file before says 3");
    HAS(SHAPE("nodes: 3\n"), "is no topology that msim reads");
}
END_TEST

/* The public cases, where they lie beside the project. */
START_TEST(public_cases)
{
    static const char *const names[] = {"topo.xml", "topology.conf"};
    const char *shared = getenv("MSIM_SHARED");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        struct topology_seen t = {0};
        struct diags diags = {0};
        snprintf(path, sizeof path, "%s/cases/operations/%s", shared ? shared : "", names[i]);
        if (access(path, R_OK) != 0) {
            printf("skipped: no %s (MSIM_SHARED is '%s')\n", names[i], shared ? shared : "");
            continue;
        }
        ck_assert_int_eq(topology_read(path, &t, &diags), STATUS_OK);
        ck_assert(i == 0 ? t.gpus_per_node == 1 && t.nic_rate == 50e9 : t.nodes == 64 && t.leaf_nodes == 32 && t.layers == 2);
        diags_free(&diags);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("topology");
    TCase *tests = tcase_create("files");
    tcase_add_test(tests, a_node_of_nccl);
    tcase_add_test(tests, switches_of_slurm);
    tcase_add_test(tests, cables_of_infiniband);
    tcase_add_test(tests, files_add_up);
    tcase_add_test(tests, public_cases);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
