/* Fabrics: counts against closed forms, the text form both ways, every refusal with its reason. */
#include <check.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "sim/fabric/fabric.h"
#include "tests/suite.h"

static struct fabric parsed(const char *text)
{
    struct diags diags = {0};
    struct fabric fabric;
    enum status status = fabric_parse(text, PLACE_NONE, &fabric, &diags);
    ck_assert_msg(status == STATUS_OK, "%s: %s", text, diags.n_items ? diags.items[0].text : "");
    ck_assert_int_eq(fabric_check(&fabric, &diags), STATUS_OK);
    return fabric;
}

/* MegaScale section 3.6: 1,536 servers, 64 under a set of eight ToRs; the rest follows at 1:1 with 64-port switches. */
static void assert_megascale(const struct fabric *fabric)
{
    struct fabric_counts counts = fabric_counts(fabric);
    ck_assert_int_eq(counts.gpus, 12288);
    ck_assert_int_eq(counts.sets, 24);
    ck_assert_int_eq(counts.tors, 192);
    ck_assert_int_eq(counts.tor_cables, 6144);
    ck_assert_int_eq(counts.aggs, 192);
    ck_assert_int_eq(counts.agg_cables, 6144);
    ck_assert_int_eq(counts.cores, 96);
    ck_assert_double_eq(counts.tor_oversubscription, 1);
    ck_assert_double_eq(counts.agg_oversubscription, 1);
    ck_assert_double_eq_tol(counts.bisection, 12288 * 25e9 / 2, 1);
}

START_TEST(megascale_from_its_cluster)
{
    struct diags diags = {0};
    struct cluster cluster;
    struct fabric fabric;
    ck_assert_int_eq(catalog_cluster("megascale-a100", &cluster, &diags), STATUS_OK);
    ck_assert_int_eq(fabric_create(&cluster, &fabric, &diags), STATUS_OK);
    ck_assert_int_eq(fabric_check(&fabric, &diags), STATUS_OK);
    assert_megascale(&fabric);
    fabric_free(&fabric);
}
END_TEST

START_TEST(megascale_from_text)
{
    struct fabric fabric =
        parsed("clos hosts:1536 gpus:8 nics:8x200G tors:8 tor:64x200G/32x400G agg:32x400G/32x400G core:64x400G");
    assert_megascale(&fabric);
    fabric_free(&fabric);
}
END_TEST

START_TEST(every_cluster_of_the_catalog)
{
    struct diags diags = {0};
    const char *const *names;
    static const char *const some[] = {"dgx-h100",       "gb200-nvl72", "gb300-nvl72", "jean-zay-a100", "llama3-h100",
                                       "megascale-a100", "selene-a100", "alps",        "frontier",      "perlmutter"};
    names = some;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        struct cluster cluster;
        struct fabric fabric;
        ck_assert_int_eq(catalog_cluster(names[i], &cluster, &diags), STATUS_OK);
        enum status status = fabric_create(&cluster, &fabric, &diags);
        ck_assert_msg(status == STATUS_OK, "%s: %s", names[i], diags.n_items ? diags.items[0].text : "");
        ck_assert_int_eq(fabric_check(&fabric, &diags), STATUS_OK);
        ck_assert_int_eq(fabric_counts(&fabric).gpus, cluster_gpus(&cluster));
        fabric_free(&fabric);
    }
}
END_TEST

/* The fat tree of k-port switches (Al-Fares, Loukissas, Vahdat 2008): k^3/4 hosts, k^2/2 ToR and aggregation, k^2/4 core. */
START_TEST(fat_trees)
{
    for (int k = 4; k <= 16; k += 4) {
        char text[160];
        snprintf(text, sizeof text, "clos tor:%dx100G/%dx100G agg:%dx100G/%dx100G core:%dx100G", k / 2, k / 2, k / 2, k / 2, k);
        struct fabric fabric = parsed(text);
        struct fabric_counts counts = fabric_counts(&fabric);
        ck_assert_int_eq(counts.hosts, k * k * k / 4);
        ck_assert_int_eq(counts.tors, k * k / 2);
        ck_assert_int_eq(counts.aggs, k * k / 2);
        ck_assert_int_eq(counts.cores, k * k / 4);
        ck_assert_int_eq(counts.pods, k);
        ck_assert_double_eq_tol(counts.bisection, counts.hosts * 12.5e9 / 2, 1);
        fabric_free(&fabric);
    }
}
END_TEST

/* The benchmark's Clos, and the links of each layer. */
START_TEST(layers_of_links)
{
    struct fabric fabric = parsed("clos hosts:12288 tor:32x400G/32x400G agg:32x400G/32x400G core:12x400G");
    ck_assert_uint_eq(fabric_counts(&fabric).links, 73728);
    ck_assert_int_eq(fabric.n_cores, 1024);
    ck_assert_int_eq(fabric_layer_of(&fabric, 0), LAYER_NIC_UP);
    ck_assert_int_eq(fabric_layer_of(&fabric, 12288), LAYER_NIC_DOWN);
    ck_assert_int_eq(fabric_layer_of(&fabric, 73727), LAYER_AGG_DOWN);
    char name[96];
    ck_assert_str_eq(fabric_link_name(&fabric, 33, name, sizeof name), "host 33 nic 0 port 0 -> tor 1");
    ck_assert_str_eq(fabric_link_name(&fabric, 2 * 12288 + 35, name, sizeof name), "tor 1 port 3 -> agg 3");
    fabric_free(&fabric);
}
END_TEST

/* 7:1 above the pods (Llama 3), and an over-subscribed ToR. */
START_TEST(oversubscription)
{
    struct fabric fabric = parsed("clos hosts:128 tor:32x100G/8x100G agg:14x100G/2x100G core:64x100G");
    struct fabric_counts counts = fabric_counts(&fabric);
    ck_assert_double_eq_tol(counts.tor_oversubscription, 4, 1e-12);
    ck_assert_double_eq_tol(counts.agg_oversubscription, 7, 1e-12);
    ck_assert_double_eq_tol(counts.bisection, 4 * 8 * 12.5e9 / 2, 1);
    fabric_free(&fabric);
}
END_TEST

/* Planes, ports and what hosts are like inside, from the keys of a cluster: eight NICs of two ports, a port in each of two planes
 * and all sixteen ports of a host on ToRs of their own. */
START_TEST(planes_and_hosts_from_a_cluster)
{
    struct diags diags = {0};
    struct cluster cluster;
    struct fabric fabric;
    ck_assert_int_eq(catalog_cluster("megascale-a100", &cluster, &diags), STATUS_OK);
    cluster.nodes = 128;
    cluster.fabric_layers = 2;
    cluster.nic_ports = 2;
    cluster.planes = 2;
    cluster.pcie_rate = cluster.pcie_root_rate = 32e9;
    cluster.pcie_switches = 4;
    cluster.sockets = 2;
    cluster.socket_rate = 40e9;
    snprintf(cluster.nic_affinity, sizeof cluster.nic_affinity, "1,0,3,2,5,4,7,6");
    ck_assert_int_eq(fabric_create(&cluster, &fabric, &diags), STATUS_OK);
    ck_assert_int_eq(fabric_check(&fabric, &diags), STATUS_OK);
    struct fabric_counts counts = fabric_counts(&fabric);
    ck_assert_int_eq(counts.tors, 2 * 16);
    ck_assert_int_eq(counts.ports, 128 * 16);
    ck_assert_double_eq_tol(counts.bisection, 128 * 8 * 25e9 / 2, 1);
    ck_assert_int_eq(fabric_nic_of_gpu(&fabric, 8), 9);
    ck_assert_int_eq(fabric_gpu_of_nic(&fabric, 1, 0), 9);
    ck_assert_uint_eq(fabric_layer_links(&fabric, LAYER_GPU_OUT), 1024);
    ck_assert_uint_eq(fabric_layer_links(&fabric, LAYER_PCIE_IN), 1024);
    ck_assert_uint_eq(fabric_layer_links(&fabric, LAYER_ROOT_OUT), 512);
    ck_assert_uint_eq(fabric_layer_links(&fabric, LAYER_SOCKET_IN), 256);
    fabric_free(&fabric);
    snprintf(cluster.nic_affinity, sizeof cluster.nic_affinity, "one each");
    ck_assert_int_eq(fabric_create(&cluster, &fabric, &diags), STATUS_BAD_INPUT);
    diags_free(&diags);
}
END_TEST

static const char *const texts[] = {
    "clos tor:64x200G",
    "clos hosts:100 tor:64x200G/32x400G agg:64x400G",
    "clos hosts:1536 gpus:8 nics:8x200G tors:8 tor:64x200G/32x400G agg:32x400G/32x400G core:64x400G",
    "clos hosts:64 gpus:8 nics:8x400G ports:2 planes:2 tors:16 tor:64x200G/64x200G agg:64x200G nvlink:8x450GB/s pcie:64GB/s",
    "clos hosts:36 gpus:4 nics:4x400G tors:4 tor:36x400G/18x400G agg:8x400G nvlink:72x900GB/s latency:2us/500ns",
    "clos hosts:512 tor:16x100G/16x100G agg:16x100G/16x100G core:32x100G aggs:8",
    "clos gpus:8 nics:4x200G affinity:0,0,1,1,3,3,2,2 pcie:32GB/s pcie_switches:4x31.5GB/s sockets:2x40GB/s tor:64x200G",
    "clos gpus:8 nics:3x0.1Gbps affinity:0,0,0,1,1,1,2,2 tor:63x123456789bps",
    "dragonfly switch:2x100G",
    "dragonfly group:3 switch:1x100G local:2x50G",
    "dragonfly hosts:2688 gpus:4 nics:4x200G rails:4 group:32 switch:16x200G pair:15 nvlink:4x383GB/s latency:2us/350ns",
    "dragonfly hosts:5 groups:3 group:4 switch:2x100G global:3x400G",
    "dragonfly groups:1 switch:8x100G pair:3",
    ("dragonfly gpus:8 nics:4x200G ports:2 rails:8 group:8 switch:4x100G global:2x100G pair:5 affinity:0,0,1,1,3,3,2,2 "
     "pcie:32GB/s"),
};

START_TEST(texts_come_back)
{
    char once[FABRIC_TEXT_MAX], twice[FABRIC_TEXT_MAX];
    struct fabric fabric = parsed(texts[_i]);
    fabric_format(&fabric, once, sizeof once);
    fabric_free(&fabric);
    fabric = parsed(once);
    ck_assert_str_eq(fabric_format(&fabric, twice, sizeof twice), once);
    fabric_free(&fabric);
}
END_TEST

/* What a text leaves out. */
START_TEST(defaults_of_a_dragonfly)
{
    static const struct {
        const char *text;
        int hosts, groups, switches, per_switch, pair;
    } cases[] = {
        {"dragonfly switch:4x100G", 1056, 33, 8, 4, 1},                                      /* balanced, the largest */
        {"dragonfly switch:4x100G pair:4", 9 * 32, 9, 8, 4, 4},                              /* the most that four cables join */
        {"dragonfly switch:4x100G groups:5", 5 * 32, 5, 8, 4, 8},                            /* all ports in use: 8 * 4 / 4 */
        {"dragonfly switch:4x100G hosts:100", 100, 4, 8, 4, 10},                             /* 8 * 4 / 3 and two ports idle */
        {"dragonfly switch:4x100G hosts:100 pair:5", 100, 4, 8, 2, 5},                       /* 3 * 5 of 8 switches */
        {"dragonfly switch:4x100G hosts:20", 20, 1, 8, 4, 0},                                /* one group */
        {"dragonfly switch:4x100G gpus:4 nics:4x100G rails:4 group:4", 4 * 17, 17, 4, 4, 1}, /* four hosts to a group */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fabric fabric = parsed(cases[i].text);
        ck_assert_int_eq(fabric.shape.hosts, cases[i].hosts);
        ck_assert_int_eq(fabric.n_pods, cases[i].groups);
        ck_assert_int_eq(fabric.shape.switches_per_group, cases[i].switches);
        ck_assert_int_eq(fabric.shape.global_per_switch, cases[i].per_switch);
        ck_assert_int_eq(fabric.shape.global_links, cases[i].pair);
        fabric_free(&fabric);
    }
}
END_TEST

struct refusal {
    const char *text, *why;
};
static const struct refusal refusals[] = {
    {"torus 4x4x4", "a fabric must start with its kind: clos hosts:... tor:... agg:... core:..., or dragonfly hosts:... "
                    "group:... switch:... pair:..."},
    {"clos", "a fabric needs ToR switches, such as tor:64x200Gbps/32x400Gbps"},
    {"clos hosts:64", "a fabric needs ToR switches, such as tor:64x200Gbps/32x400Gbps"},
    {"clos toor:64x200G", "fabric: unknown word 'toor'; did you mean 'tor'?"},
    {"clos tor:64x200G tor:64x200G", "fabric: 'tor' is given twice"},
    {"clos tor", "fabric: 'tor' has no value; write tor:..."},
    {"clos tor:64", "tor: '64' is not COUNTxRATE; write for example 64x200Gbps"},
    {"clos tor:64x200", "tor: '200' is not a rate above 0; write for example 200Gbps or 25GB/s"},
    {"clos tor:0x200G", "tor: '0' is not a whole number between 1 and 1048576"},
    {"clos hosts:65 tor:64x200G", "fabric: disconnected: 65 hosts need 2 ToR sets, and nothing connects them; add agg:"},
    {"clos hosts:65 tor:64x200G agg:8x400G", "fabric: ToRs have no uplinks; add some (tor:64x200G/32x400G)"},
    {"clos hosts:4096 tor:64x200G/32x400G agg:32x400G",
     "fabric: disconnected: spines of 32 ports reach only 32 ToRs of 64 in a plane; add core:, or ports"},
    {"clos hosts:4096 tor:64x200G/32x400G agg:32x400G core:64x400G",
     "fabric: aggregation switches have no uplinks; add some (agg:32x400G/32x400G)"},
    {"clos tor:64x200G core:64x400G", "fabric: core switches need aggregation switches; add agg:"},
    {"clos gpus:8 nics:3x200G tor:66x200G",
     "fabric: the 3 NICs of a host cannot be shared evenly by its 8 GPUs; specify the NIC of each (affinity:0,0,1)"},
    {"clos gpus:4 nics:2x200G affinity:0,0,1 tor:64x200G", "fabric: affinity lists the NICs of 3 GPUs, but a host has 4"},
    {"clos gpus:4 nics:2x200G affinity:0,0,1,2 tor:64x200G", "fabric: affinity: GPU 3 uses NIC 2, but a host has NICs 0 to 1"},
    {"clos gpus:4 nics:2x200G affinity:0,0,,1 tor:64x200G",
     "affinity: '0,0,,1' is not a list of NICs, one per GPU of a host (at most 64); write for example 0,0,1,1"},
    {"clos gpus:8 nics:8x200G pcie_switches:3x32GB/s tor:64x200G",
     "fabric: the 8 GPUs and 8 NICs of a host do not divide evenly over 3 PCIe switches"},
    {"clos gpus:8 nics:8x200G pcie_switches:4x32GB/s sockets:3x40GB/s tor:64x200G",
     "fabric: the 4 PCIe switches of a host do not divide evenly over 3 CPUs"},
    {"clos gpus:8 nics:8x200G sockets:2x40GB/s tor:64x200G",
     "fabric: the 0 PCIe switches of a host do not divide evenly over 2 CPUs"},
    {"clos gpus:8 nics:8x200G tors:3 tor:64x200G",
     "fabric: the 8 NIC ports of a host do not divide evenly over 3 ToRs of its set"},
    {"clos gpus:8 nics:8x200G tor:63x200G", "fabric: a ToR's 63 host ports are not a multiple of the 8 that each host uses"},
    {"clos tor:64x200G/31x400G agg:64x400G aggs:8",
     "fabric: a ToR's 31 uplinks do not divide evenly over 8 aggregation switches"},
    {"clos tor:64x200G/32x400G agg:63x400G aggs:16",
     "fabric: an aggregation switch's 63 ports are not a multiple of the 2 cables to each ToR"},
    {"clos tors:2 nics:2x100G tor:64x200G/32x400G planes:3 agg:64x400G",
     "fabric: 2 ToRs per set do not divide evenly over 3 planes"},
    {"clos gpus:8 nvlink:12x450GB/s tor:64x200G",
     "fabric: NVLink domains of 12 GPUs are neither a multiple nor a divisor of hosts of 8"},
    {"clos hosts:1_000_000 gpus:8 tor:64x200G/32x400G agg:64x400G/64x400G core:64x400G",
     "fabric: too large: 24.0 M cables; at most 4194304"},
    {"clos hosts:8192 tor:32x400G/4x400G agg:32x400G/32x400G core:2x400G",
     "fabric: disconnected: core switches of 2 ports reach only 2 of 32 aggregation switches, so not every pod; use at least 8 "
     "ports"},
    {"dragonfly", "a dragonfly needs switches, as NIC ports x rate, such as switch:16x200Gbps"},
    {"dragonfly tor:4x100G", "fabric: 'tor' belongs to a clos, not to a dragonfly"},
    {"dragonfly switch:4x100G bandwidth:3",
     "fabric: unknown word 'bandwidth'; words are hosts gpus nics ports switch rails group groups local global pair nvlink pcie "
     "pcie_switches sockets affinity latency, each followed by a colon and a value"},
    {"dragonfly switch:4x100G grup:3", "fabric: unknown word 'grup'; did you mean 'group'?"},
    {"clos tor:4x100G pair:3", "fabric: 'pair' belongs to a dragonfly, not to a clos"},
    {"dragonfly switch:4x100G group:4 gpus:3 nics:3x100G",
     "fabric: a switch's 4 NIC ports are not a multiple of the 3 that each host uses"},
    {"dragonfly switch:4x100G group:4 nics:1x100G rails:2",
     "fabric: the 1 NIC ports of a host do not divide evenly over 2 switches"},
    {"dragonfly switch:4x100G group:3 gpus:2 nics:2x100G rails:2",
     "fabric: the 3 switches of a group must be a multiple of the 2 switches that a host connects to"},
    {"dragonfly switch:4x100G groups:2 hosts:65", "fabric: 65 hosts need 3 groups, but there are 2"},
    {"dragonfly switch:4x200G pair:33", "fabric: 33 cables to each of 1 other groups exceed the 32 global ports of a group"},
    {"dragonfly switch:4x100G groups:40", "fabric: disconnected: the 32 global ports of a group cannot reach 39 other groups; "
                                          "use more ports per switch, or more switches per group"},
    {"dragonfly switch:4x100G groups:9 global:4x100G pair:5",
     "fabric: 5 cables to each of 8 other groups exceed the 32 global ports of a group"},
    {"dragonfly switch:16x100G groups:1900 pair:4 global:250x100G", "fabric: too large: 10.1 M cables; at most 4194304"},
};

START_TEST(refusals_say_why)
{
    struct diags diags = {0};
    struct fabric fabric;
    const struct refusal *r = &refusals[_i];
    ck_assert_int_eq(fabric_parse(r->text, PLACE_NONE, &fabric, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_ge(diags.n_items, 1);
    ck_assert_str_eq(diags.items[0].text, r->why);
    diags_free(&diags);
}
END_TEST

START_TEST(all_mistakes_at_once_with_columns)
{
    struct diags diags = {0};
    struct fabric fabric;
    struct place at = {.file = "x.yaml", .line = 3, .column = 10};
    ck_assert_int_eq(fabric_parse("clos hots:3 gpus:0 tor:4", at, &fabric, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_items, 3);
    ck_assert_int_eq(diags.items[0].column, 15);
    ck_assert_int_eq(diags.items[1].column, 22);
    ck_assert_int_eq(diags.items[2].column, 29);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fabric");
    TCase *all = tcase_create("all");
    tcase_add_test(all, megascale_from_its_cluster);
    tcase_add_test(all, megascale_from_text);
    tcase_add_test(all, every_cluster_of_the_catalog);
    tcase_add_test(all, planes_and_hosts_from_a_cluster);
    tcase_add_test(all, fat_trees);
    tcase_add_test(all, layers_of_links);
    tcase_add_test(all, oversubscription);
    tcase_add_test(all, defaults_of_a_dragonfly);
    tcase_add_loop_test(all, texts_come_back, 0, (int)(sizeof texts / sizeof texts[0]));
    tcase_add_loop_test(all, refusals_say_why, 0, (int)(sizeof refusals / sizeof refusals[0]));
    tcase_add_test(all, all_mistakes_at_once_with_columns);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
