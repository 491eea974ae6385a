/* Experiments on clusters of other sizes: how many GPUs and nodes a job has, and what else follows from that. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/spec/experiment_loaded.h"
#include "tests/suite.h"

/* A GPU alone stands for the number of its usual nodes that the job needs, unless the job specifies the number. */
START_TEST(a_gpu_alone_has_nodes_enough)
{
    const struct experiment_flags alone = {.model = "tiny-gpt", .gpu = "gb200"};
    load_with(alone, "cluster.gpus=144");
    ck_assert_int_eq(e.gpus, 144);
    ck_assert_int_eq(e.cluster.nodes, 36);
    ck_assert_int_eq(e.cluster.fabric_layers, 2);
    ck_assert_int_eq(e.cluster.nvlink_domain, 72);
    ck_assert_str_eq(e.cluster.name, "gb200-node");
    ck_assert(e.cluster.as_needed);
    load_with(alone, "cluster.gpus=8192");
    ck_assert_int_eq(e.cluster.nodes, 2048);
    ck_assert_int_eq(e.cluster.fabric_layers, 3);
    load_with(alone, "cluster.gpus=2");
    ck_assert_int_eq(e.cluster.nodes, 1);
    load_with(alone, "cluster.nodes=64"); /* specified */
    ck_assert_int_eq(e.gpus, 256);
    ck_assert_int_eq(e.cluster.fabric_layers, 2);
    ck_assert(!e.cluster.as_needed);
    load_with((struct experiment_flags){.model = "tiny-gpt"}, "cluster={gpu: gb200, gpus: 144, nic_rate: 800Gbps}");
    ck_assert_int_eq(e.cluster.nodes, 36);
    ck_assert_double_eq(e.cluster.nic_rate, 100e9);
    char *words = said_of(alone, "cluster.gpus=18");
    ck_assert_ptr_nonnull(strstr(words, "18 do not fill nodes of 4; use 16 or 20"));
    free(words);
    words = said_of((struct experiment_flags){.model = "tiny-gpt", .cluster = "gb200-node"}, "cluster.gpus=8");
    ck_assert_ptr_nonnull(strstr(words, "8 exceed the 4 of the cluster"));
    free(words);
}
END_TEST

/* What NVLink joins, of a node of another size than the usual: switches and boards all of it, racks whole nodes, bridges pairs or
 * fours, and cards without any share the node's PCIe. */
START_TEST(nvlink_joins_what_there_is)
{
    static const struct {
        const char *gpu;
        int per_node, domain;
    } nodes[] = {{"a100-80g-sxm", 8, 8}, {"a100-80g-sxm", 4, 4}, {"h100-sxm", 2, 2},  {"v100-32g-sxm", 16, 16},
                 {"gb200", 4, 72},       {"gb200", 8, 72},       {"h100-pcie", 8, 2}, {"h100-pcie", 1, 1},
                 {"h100-pcie", 3, 1},    {"h200-nvl", 8, 4},     {"h200-nvl", 2, 2},  {"h200-nvl", 6, 2},
                 {"gh200", 4, 4},        {"l40s", 8, 8},         {"l40s", 4, 4},      {"tpu-v4", 4, 144}};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        char change[64];
        snprintf(change, sizeof change, "cluster={gpu: %s, gpus: 144, gpus_per_node: %d}", nodes[i].gpu, nodes[i].per_node);
        load_with((struct experiment_flags){.model = "tiny-gpt"}, change);
        ck_assert_msg(e.cluster.nvlink_domain == nodes[i].domain, "%s, %d a node: %d", nodes[i].gpu, nodes[i].per_node,
                      e.cluster.nvlink_domain);
    }
}
END_TEST

/* Another cluster under a job: the job stays as large as its file says, whichever way the cluster is named, unless the command
 * line says how large it is; of what the file says of its own cluster nothing else is left. Without a size in the file it is all
 * of it. */
START_TEST(another_cluster_keeps_the_jobs_size)
{
    static const char text[] =
        "model: tiny-gpt\ncluster: {base: llama3-h100, gpus: 64, nic_rate: 100Gbps}\njob: {global_batch: 64}\n";
    struct experiment_flags flags = {.text = text, .n_text = strlen(text), .cluster = "dgx-h100"};
    load(&flags);
    ck_assert_str_eq(e.cluster.name, "dgx-h100");
    ck_assert_int_eq(e.gpus, 64);
    ck_assert_double_eq_tol(e.cluster.nic_rate, 50e9, 1);
    load_with(flags, "cluster.gpus=128");
    ck_assert_int_eq(e.gpus, 128);
    flags.cluster = NULL;
    load_with(flags, "cluster=dgx-h100");
    ck_assert_str_eq(e.cluster.name, "dgx-h100");
    ck_assert_int_eq(e.gpus, 64);
    static const char *const both[] = {"cluster.gpus=32", "cluster=dgx-h100"};
    flags.overrides = both;
    flags.n_overrides = 2;
    load(&flags);
    ck_assert_int_eq(e.gpus, 32);
    flags.overrides = (const char *const[]){"cluster={base: dgx-h100, gpus: 16}"};
    flags.n_overrides = 1;
    load(&flags);
    ck_assert_int_eq(e.gpus, 16);
    static const char whole[] = "model: tiny-gpt\ncluster: llama3-h100\njob: {global_batch: 64}\n";
    load(&(struct experiment_flags){.text = whole, .n_text = strlen(whole), .cluster = "dgx-h100"});
    ck_assert_int_eq(e.gpus, 1016);
    flags = the_file;
    flags.cluster = "dgx-h100";
    char *words = said_of(flags, NULL);
    ck_assert_msg(strstr(words, "megascale.yaml:2:") &&
                      strstr(words, "gpus: 12288 exceed the 1016 of the cluster (127 nodes of 8); "
                                    "--gpus 1016 uses all of it"),
                  "%s", words);
    free(words);
}
END_TEST

/* The same of a job whose file counts nodes: 2 of 8 GPUs are 16 of any other cluster. */
START_TEST(another_cluster_keeps_the_files_nodes)
{
    static const char text[] = "model: tiny-gpt\ncluster: {base: dgx-h100, nodes: 2}\njob: {global_batch: 64}\n";
    struct experiment_flags flags = {.text = text, .n_text = strlen(text), .cluster = "selene-a100"};
    load(&flags);
    ck_assert_str_eq(e.cluster.name, "selene-a100");
    ck_assert_int_eq(e.cluster.nodes, 560);
    ck_assert_int_eq(e.gpus, 16);
    load_with(flags, "cluster.gpus=128");
    ck_assert_int_eq(e.gpus, 128);
    load_with(flags, "cluster.nodes=4"); /* of the other cluster, all of them */
    ck_assert_int_eq(e.cluster.nodes, 4);
    ck_assert_int_eq(e.gpus, 32);
    flags.overrides = (const char *const[]){"cluster.gpus=24", "cluster.nodes=4"};
    flags.n_overrides = 2;
    load(&flags);
    ck_assert_int_eq(e.gpus, 24);
    flags = (struct experiment_flags){.text = text, .n_text = strlen(text)};
    load_with(flags, "cluster=selene-a100");
    ck_assert_int_eq(e.gpus, 16);
    flags.overrides = (const char *const[]){"cluster.nodes=3", "cluster=selene-a100"};
    flags.n_overrides = 2;
    load(&flags);
    ck_assert_int_eq(e.gpus, 24);
    static const char nodes_of_four[] =
        "model: tiny-gpt\ncluster: {base: dgx-h100, nodes: 3, gpus_per_node: 4}\njob: {global_batch: 60}\n";
    flags = (struct experiment_flags){.text = nodes_of_four, .n_text = strlen(nodes_of_four), .cluster = "gb200-nvl72"};
    load(&flags);
    ck_assert_int_eq(e.gpus, 12);
    /* The nodes of an unknown cluster have an unknown number of GPUs: all of the other cluster are used, which is reported. */
    static const char unknown[] = "model: tiny-gpt\ncluster: {base: nobodys, nodes: 2}\njob: {global_batch: 4480}\n";
    struct diags diags = {0};
    flags = (struct experiment_flags){.text = unknown, .n_text = strlen(unknown), .cluster = "selene-a100"};
    ck_assert_int_eq(experiment_load(&flags, &e, &diags), STATUS_OK);
    char *words = said(&diags);
    ck_assert_int_eq(e.gpus, 4480);
    ck_assert_msg(strstr(words, "standard input:2:33: warning: nodes: msim does not know the GPUs of this cluster"), "%s", words);
    free(words);
    diags_free(&diags);
}
END_TEST

/* More or fewer nodes of a Slingshot machine are more or fewer groups of the same switches: 64 ports each, and what a group sends
 * over is what it was, but for ports that do not divide among the other groups. */
START_TEST(a_dragonfly_of_other_size_is_as_tapered)
{
    static const char *const clusters[] = {"alps", "frontier", "perlmutter"};
    static const int nodes[] = {256, 400, 1000, 2688, 5000, 9408, 10000};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        char change[32];
        snprintf(change, sizeof change, "cluster.nodes=%d", nodes[i]);
        load_with((struct experiment_flags){.model = "llama2-70b", .cluster = clusters[_i]}, change);
        const struct dragonfly *d = &e.cluster.dragonfly;
        int ports = d->endpoints_per_switch + (d->switches_per_group - 1) * d->local_links + d->global_links_per_switch;
        ck_assert_int_eq(d->groups, (nodes[i] + 127) / 128);
        ck_assert_int_le(ports, 64);
        ck_assert_double_gt(1 / cluster_pod_oversubscription(&e.cluster), 0.56);
        ck_assert_double_lt(1 / cluster_pod_oversubscription(&e.cluster), 0.63);
    }
}
END_TEST

/* A result's configuration as an experiment: what of a dragonfly followed from its nodes does so again when these change, what
 * was said stays. */
START_TEST(a_dragonfly_out_of_a_result_follows_its_nodes)
{
    static const struct {
        const char *cluster; /* 256 nodes: two groups of 128 */
        int groups, cables;  /* with 384 nodes */
    } cases[] = {
        {"{base: alps, nodes: 256}", 3, 160},                  /* 32 * 10 / 2 */
        {"{base: alps, nodes: 256, groups: 5}", 5, 80},        /* of which nobody said the cables */
        {"{base: alps, nodes: 256, global_links: 20}", 3, 20}, /* of which nobody said the groups */
        {"{base: alps, nodes: 256, global_links_per_switch: null, global_links: 16}", 3, 16},
        {"{base: alps, nodes: 256, global_links_per_switch: null}", 3, 256}, /* one per endpoint: 32 * 16 / 2 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct diags diags = {0};
        snprintf(text, sizeof text, "model: llama2-70b\ncluster: %s\njob: {global_batch: 1024}\n", cases[i].cluster);
        ck_assert_int_eq(experiment_parse_text("t", text, strlen(text), &e, &diags), STATUS_OK);
        char *result = experiment_to_json(&e);
        const char *path = temporary_file("result.json", result, strlen(result));
        const char *more[] = {"cluster.nodes=384", "cluster.gpus=1536"};
        load(&(struct experiment_flags){.file = path, .overrides = more, .n_overrides = 2});
        ck_assert_int_eq(e.cluster.nodes, 384);
        ck_assert_int_eq(e.cluster.dragonfly.groups, cases[i].groups);
        ck_assert_int_eq(e.cluster.dragonfly.global_links, cases[i].cables);
        free(result);
        diags_free(&diags);
    }
}
END_TEST

/* As many nodes more as a search proposes: with the groups and cables that typing them brings. */
START_TEST(a_resized_dragonfly_is_what_typing_it_gives)
{
    static const int nodes[] = {100, 300, 1536, 5000};
    static struct cluster sized;
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        char change[32];
        load_with((struct experiment_flags){.model = "llama2-70b", .cluster = "perlmutter"}, "cluster.nodes=1536");
        sized = e.cluster;
        ck_assert(cluster_resize(&sized, nodes[i]));
        snprintf(change, sizeof change, "cluster.nodes=%d", nodes[i]);
        load_with((struct experiment_flags){.model = "llama2-70b", .cluster = "perlmutter"}, change);
        ck_assert_int_eq(memcmp(&sized.dragonfly, &e.cluster.dragonfly, sizeof sized.dragonfly), 0);
        ck_assert_double_eq(cluster_pod_oversubscription(&sized), cluster_pod_oversubscription(&e.cluster));
    }
    ck_assert(!cluster_resize(&sized, 128 * 400)); /* 400 groups, which 320 ports do not reach */
    ck_assert_int_eq(sized.nodes, 5000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("experiment_clusters");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, a_gpu_alone_has_nodes_enough);
    tcase_add_test(tests, nvlink_joins_what_there_is);
    tcase_add_test(tests, another_cluster_keeps_the_jobs_size);
    tcase_add_test(tests, another_cluster_keeps_the_files_nodes);
    tcase_add_loop_test(tests, a_dragonfly_of_other_size_is_as_tapered, 0, 3);
    tcase_add_test(tests, a_dragonfly_out_of_a_result_follows_its_nodes);
    tcase_add_test(tests, a_resized_dragonfly_is_what_typing_it_gives);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
