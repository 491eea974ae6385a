/* The kind of groups that fills the links above leaves most, and what is said of it. The loads are tests/cost's. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/notes.h"
#include "model/base/memory.h"
#include "model/spec/catalog.h"
#include "tests/suite.h"

/* 64 nodes of 8 GPUs in leaves of 16. Experts over 64 ranks are on 8 nodes, their replicas on every eighth node: 4 of 8 hops
 * leave a leaf; all-to-all over 64 nodes leaves it to 48 of 63. A pipeline of eight stages of 8 nodes leaves it with every
 * other hop. */
static const struct {
    int tp, pp, ep, dp;
    double leaf, pod, load;
    enum group_kind kind;
} cases[] = {
    {8, 1, 1, 64, 2, 1, 2 * 4 / 64.0, GROUP_DP},
    {8, 1, 1, 64, 4, 1, 4 * 4 / 64.0, GROUP_DP},
    {1, 1, 64, 512, 2, 1, 2 * 4 / 8.0, GROUP_EXPERT_DP},
    {1, 1, 64, 512, 4, 1, 4 * 4 / 8.0, GROUP_EXPERT_DP},
    {8, 1, 1, 64, 1, 4, 4 * 2 / 64.0, GROUP_DP},
    {8, 1, 1, 64, 2, 3, 6.4 * 2 / 64.0, GROUP_DP}, /* 16 ports down, 5 up */
    {8, 1, 1, 64, 1, 1, 0, GROUP_DP},              /* a full fabric */
    {8, 1, 1, 16, 4, 1, 0, GROUP_DP},              /* one leaf */
    {8, 8, 1, 8, 4, 1, 4 * 4 / 8.0, GROUP_PP},
    {1, 1, 512, 512, 4, 1, 4 * 48 / 63.0, GROUP_EP},
};

START_TEST(rings_above_leaves)
{
    struct cluster *c = memory_new(1, sizeof *c);
    struct diags diags = {0};
    char text[OVERSUBSCRIBED_TEXT];
    enum group_kind kind = N_GROUP_KINDS;
    ck_assert_int_eq(catalog_cluster("dgx-h100", c, &diags), STATUS_OK);
    c->leaf_nodes = 16;
    c->leaf_oversubscription = cases[_i].leaf;
    c->pod_oversubscription = cases[_i].pod;
    c->fabric_layers = cases[_i].pod > 1 ? 3 : 2;
    c->pod_nodes = cases[_i].pod > 1 ? 32 : c->pod_nodes;
    struct layout layout = {
        .tp = cases[_i].tp, .cp = 1, .pp = cases[_i].pp, .vpp = 1, .dp = cases[_i].dp, .ep = cases[_i].ep, .micro_batch = 1};
    ck_assert_double_eq_tol(oversubscribed_load(&layout, c, &kind), cases[_i].load, 1e-12);
    if (cases[_i].load > 0)
        ck_assert_int_eq(kind, cases[_i].kind);
    oversubscribed_text(&layout, c, text, sizeof text);
    ck_assert_int_eq(text[0] != '\0', cases[_i].load > 0);
    ck_assert_int_eq(strstr(text, "between pipeline stages") != NULL, cases[_i].kind == GROUP_PP && cases[_i].load > 0);
    ck_assert_int_eq(strstr(text, "all-to-all of ep load") != NULL, cases[_i].kind == GROUP_EP);
    ck_assert_int_eq(strstr(text, "times as long (included)") != NULL, cases[_i].load > 1);
    ck_assert_uint_lt(strlen(text), sizeof text - 1);
    free(c);
    diags_free(&diags);
}
END_TEST

/* Where trees are asked for, what is reduced in one piece takes them: of 64 nodes in leaves of 4 a ring has 16 of 64 hops out of
 * a leaf, the two trees three edges each of a leaf where the busiest NIC sends four halves, 3/2 as much. What is scattered and
 * gathered stays a ring. */
START_TEST(trees_are_called_trees)
{
    static const struct {
        int zero;
        enum collective_algorithm algorithm;
        double load;
        const char *said;
    } trees[] = {{0, ALGORITHM_TREE, 8 * 1.5 / 4, "trees of dp in order load it to 300 %, so they take 3 times"},
                 {1, ALGORITHM_TREE, 8 / 4.0, "rings of dp in order load it to 200 %, so they take 2 times"},
                 {0, ALGORITHM_NCCL, 8 / 4.0, "rings of dp in order load it to 200 %"}};
    struct cluster *c = memory_new(1, sizeof *c);
    struct diags diags = {0};
    ck_assert_int_eq(catalog_cluster("dgx-h100", c, &diags), STATUS_OK);
    c->leaf_nodes = 4;
    c->fabric_layers = 2;
    c->rails = RAILS_NO;
    c->leaf_oversubscription = 8;
    for (size_t i = 0; i < sizeof trees / sizeof trees[0]; i++) {
        struct layout layout = {.tp = 8, .cp = 1, .pp = 1, .vpp = 1, .dp = 64, .ep = 1, .micro_batch = 1, .zero = trees[i].zero};
        char text[OVERSUBSCRIBED_TEXT];
        c->collective_algorithm = trees[i].algorithm;
        ck_assert_double_eq_tol(oversubscribed_text(&layout, c, text, sizeof text), trees[i].load, 1e-12);
        ck_assert_msg(strstr(text, trees[i].said) != NULL, "%s", text);
    }
    free(c);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oversubscribed");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, rings_above_leaves, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(all, trees_are_called_trees);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
