/* What oversubscribed leaves and pods, and tapered dragonflies, add to exchanges, by hand. */
#include <check.h>
#include <math.h>

#include "model/cost/kernel/collective.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/kernel/oversubscription.h"
#include "model/spec/catalog.h"
#include "tests/cost/shapes.h"

static struct cluster cluster_of(int nodes, int leaf_nodes, int pod_nodes, double leaf, double pod)
{
    struct cluster c;
    struct diags diags = {0};
    ck_assert_int_eq(catalog_cluster("dgx-h100", &c, &diags), STATUS_OK);
    c.nodes = nodes;
    c.fabric_layers = pod_nodes > 0 ? 3 : 2;
    c.leaf_nodes = leaf_nodes;
    c.pod_nodes = pod_nodes;
    c.leaf_oversubscription = leaf;
    c.pod_oversubscription = pod;
    return c;
}

static struct layout layout_of(int tp, int pp, int dp, int ep)
{
    return (struct layout){.tp = tp, .cp = 1, .pp = pp, .vpp = 1, .dp = dp, .ep = ep, .micro_batch = 1};
}

/* 64 nodes of 8 GPUs in leaves of 16: four leaves. One ring of dp over all 64 nodes leaves a leaf with 4 of its 64 hops. Experts
 * over 64 ranks, that is 8 nodes: their replicas are on every eighth node, and 4 of 8 hops leave a leaf. Of two pods of 32 nodes
 * a ring leaves one with 2 of 64 hops, where links carry 1/8 of what NICs send at 2:1 and 4:1. Expert replicas leave pods with 2
 * of 8. Groups of 8 of 24 nodes, leaves of 12: the second lies across, 1 of 12 nodes sends on. */
static const struct {
    int nodes, tp, ep, dp, leaf_nodes, pod_nodes;
    double leaf, pod, load;
    enum group_kind kind;
} rings[] = {
    {64, 8, 1, 64, 16, 0, 2, 1, 2 * 4 / 64.0, GROUP_DP},
    {64, 8, 1, 64, 16, 0, 4, 1, 4 * 4 / 64.0, GROUP_DP},
    {64, 1, 64, 512, 16, 0, 2, 1, 2 * 4 / 8.0, GROUP_EXPERT_DP},
    {64, 1, 64, 512, 16, 0, 4, 1, 4 * 4 / 8.0, GROUP_EXPERT_DP},
    {64, 8, 1, 64, 16, 32, 1, 4, 4 * 2 / 64.0, GROUP_DP}, /* and 4 / 64 above leaves, which is less */
    {64, 8, 1, 64, 16, 32, 2, 4, 8 * 2 / 64.0, GROUP_DP},
    {64, 1, 64, 512, 16, 32, 2, 4, 8 * 2 / 8.0, GROUP_EXPERT_DP},
    {64, 8, 1, 16, 16, 0, 4, 1, 0, GROUP_DP}, /* one leaf */
    {24, 64, 1, 3, 12, 0, 6, 1, 6 / 12.0, GROUP_TP},
};

START_TEST(loads_of_rings)
{
    struct cluster c = cluster_of(rings[_i].nodes, rings[_i].leaf_nodes, rings[_i].pod_nodes, rings[_i].leaf, rings[_i].pod);
    struct layout layout = layout_of(rings[_i].tp, 1, rings[_i].dp, rings[_i].ep);
    struct group_span span = layout_span(&layout, &c, rings[_i].kind);
    ck_assert_double_eq_tol(oversubscription_of_rings(&c, span), rings[_i].load, 1e-12);
}
END_TEST

/* Above 1 it divides the bandwidth between nodes, of whatever algorithm; at 1 and below, and in one switch, it does nothing. The
 * tree of replicas on every eighth of 64 nodes, two in each of four leaves, leaves these over six edges where a ring has four. */
START_TEST(bandwidth_is_divided)
{
    static const enum collective_algorithm algorithms[] = {ALGORITHM_RING, ALGORITHM_TREE, ALGORITHM_HIERARCHICAL};
    static const double times[] = {2, 3, 2};
    struct layout layout = layout_of(1, 1, 512, 64);
    for (int i = 0; i < 3; i++) {
        struct cluster narrow = cluster_of(64, 16, 0, 4, 1), fine = cluster_of(64, 16, 0, 4.0 / 3, 1), one = narrow;
        one.fabric_layers = 1;
        narrow.collective_algorithm = fine.collective_algorithm = one.collective_algorithm = algorithms[i];
        struct group_span span = layout_span(&layout, &narrow, GROUP_EXPERT_DP);
        struct cost charged = collective_time(&narrow, COLLECTIVE_ALL_REDUCE, span, 1e9);
        struct cost free = collective_time(&fine, COLLECTIVE_ALL_REDUCE, span, 1e9);
        ck_assert_double_eq_tol(charged.bandwidth_s / free.bandwidth_s, times[i], 1e-12);
        ck_assert_double_eq_tol(charged.latency_s, free.latency_s, 1e-15);
        ck_assert_double_eq_tol(cost_seconds(collective_time(&one, COLLECTIVE_ALL_REDUCE, span, 1e9)), cost_seconds(free), 1e-15);
        ck_assert_int_eq(collective_takes_tree(&narrow, span, 1e6), collective_takes_tree(&fine, span, 1e6));
    }
}
END_TEST

/* A fabric that carries what NICs send adds nothing, however groups and stages lie across leaves and pods. */
START_TEST(full_fabrics_add_nothing)
{
    static const int tps[] = {1, 2, 6, 8, 16}, pps[] = {1, 2, 3, 8, 12}, dps[] = {1, 4, 5, 16};
    for (int i = 0; i < 5 * 5 * 4 * 6; i++) {
        struct layout layout = layout_of(tps[i % 5], pps[i / 5 % 5], dps[i / 25 % 4], 1);
        struct cluster wide = cluster_of(200, 1 + i / 100, 3 * (1 + i / 100), 1, 1), one = wide;
        one.fabric_layers = 1;
        layout.schedule = layout.pp > 1 ? SCHEDULE_1F1B : SCHEDULE_NONE;
        ck_assert_double_eq(oversubscription_of_messages(&wide, &layout), 1);
        for (int kind = 0; kind < N_GROUP_KINDS; kind++) {
            struct group_span span = layout_span(&layout, &wide, (enum group_kind)kind);
            for (int c = 0; c < N_COLLECTIVES && span.ranks > 1; c++)
                for (int a = ALGORITHM_NCCL; a <= ALGORITHM_HIERARCHICAL; a++) {
                    wide.collective_algorithm = one.collective_algorithm = (enum collective_algorithm)a;
                    ck_assert_double_eq(cost_seconds(collective_time(&wide, (enum collective)c, span, 1e8)),
                                        cost_seconds(collective_time(&one, (enum collective)c, span, 1e8)));
                }
        }
    }
}
END_TEST

/* ZeRO-3 without dp_overlap sends through one of eight NICs at a time, so the links above leaves have an eighth to carry. */
START_TEST(one_nic_at_a_time)
{
    struct cluster c = cluster_of(16, 2, 0, 8, 1);
    struct layout layout = layout_of(1, 1, 128, 1);
    c.rails = RAILS_NO; /* 16 ports, of which two go up; of a rail's two, 8:1 leaves one */
    layout.zero = 3;
    ck_assert_double_eq_tol(oversubscription_of_rings(&c, replica_span(&layout, &c, GROUP_DP)), 8 / 2.0 / 8, 1e-12);
    layout.features = FEATURE_BIT(DP_OVERLAP);
    ck_assert_double_eq_tol(oversubscription_of_rings(&c, replica_span(&layout, &c, GROUP_DP)), 8 / 2.0, 1e-12);
}
END_TEST

/* 8 nodes of experts over two leaves of 4: 4 of the 7 other nodes are in the other one. Over leaves of 6 nodes the second of
 * three groups has 4 nodes in each of two: of what a leaf of 6 sends, 4 x 4/7 leave. */
START_TEST(loads_of_all_to_all)
{
    struct layout layout = layout_of(1, 1, 192, 64);
    struct cluster fours = cluster_of(24, 4, 0, 4, 1), sixes = cluster_of(24, 12, 0, 4, 1), pods = cluster_of(24, 2, 4, 2, 4);
    ck_assert_double_eq_tol(oversubscription_of_all_to_all(&fours, layout_span(&layout, &fours, GROUP_EP)), 4 * 4 / 7.0, 1e-12);
    ck_assert_double_eq_tol(oversubscription_of_all_to_all(&sixes, layout_span(&layout, &sixes, GROUP_EP)),
                            4 * (4 * 4 / 7.0) / 12, 1e-12);
    ck_assert_double_eq_tol(oversubscription_of_all_to_all(&pods, layout_span(&layout, &pods, GROUP_EP)), 8 * 4 / 7.0, 1e-12);
}
END_TEST

/* 8 stages of 8 nodes in leaves of 16: half of what NICs send leaves, 4:1 makes that 2. Of 7 hops 3 leave, so a message takes
 * (4 + 3 x 2) / 7; interleaved of 8 with the one around 4. Pods of 32 nodes: 2:1 and 4:1 make 8 x 1/4, of one hop. */
START_TEST(messages_of_stages)
{
    struct layout layout = layout_of(8, 8, 8, 1);
    struct cluster leaves = cluster_of(64, 16, 0, 4, 1), pods = cluster_of(64, 16, 32, 2, 4), full = cluster_of(64, 16, 32, 1, 1);
    struct machine machine = {.cluster = &leaves, .layout = &layout, .pace = 1}, wide = {.cluster = &full, .layout = &layout};
    layout.schedule = SCHEDULE_1F1B;
    ck_assert_double_eq_tol(oversubscription_of_stages(&leaves, layout_span(&layout, &leaves, GROUP_PP)), 2, 1e-12);
    ck_assert_double_eq_tol(oversubscription_of_messages(&leaves, &layout), 10 / 7.0, 1e-12);
    ck_assert_double_eq_tol(oversubscription_of_messages(&pods, &layout), (6 + 2) / 7.0, 1e-12);
    ck_assert_double_eq(oversubscription_of_messages(&full, &layout), 1);
    ck_assert_double_eq_tol(p2p_cost(&machine, 1e8).bandwidth_s / p2p_cost(&wide, 1e8).bandwidth_s, 10 / 7.0, 1e-12);
    layout.schedule = SCHEDULE_INTERLEAVED;
    ck_assert_double_eq_tol(oversubscription_of_messages(&leaves, &layout), 12 / 8.0, 1e-12);
}
END_TEST

/* Stages across leaves: each message by itself, with the number of messages that leave its sender's leaf and that reach its
 * receiver's. Where both are full in part, only flows get what others leave (test_narrow_fabric.c); here they share evenly. */
static double messages_one_by_one(int nodes, int stage, int leaf, double k, bool around)
{
    enum { MOST = 64 };
    int out[MOST] = {0}, in[MOST] = {0}, n = around ? nodes : nodes - stage;
    double sum = 0;
    for (int r = 0; r < n; r++)
        if (r / leaf != (r + stage) % nodes / leaf) {
            out[r / leaf]++;
            in[(r + stage) % nodes / leaf]++;
        }
    for (int r = 0; r < n; r++) {
        int from = r / leaf, to = (r + stage) % nodes / leaf;
        sum += from == to ? 1 : fmax(1, k * (out[from] > in[to] ? out[from] : in[to]) / leaf);
    }
    return sum / n;
}

START_TEST(messages_over_edges)
{
    for (int pp = 2; pp <= 8; pp++)
        for (int stage = 1; stage <= 8; stage++)
            for (int leaf = 1; leaf <= 9; leaf++) {
                struct cluster c = cluster_of(64, leaf, 0, 8, 1);
                struct layout layout = layout_of(8, pp, stage, 1);
                c.rails = RAILS_NO;
                layout.schedule = SCHEDULE_1F1B;
                double k = leaf * 8.0 / leaf;
                ck_assert_double_eq_tol(cluster_leaf_oversubscription(&c), k, 1e-12);
                double charged = oversubscription_of_messages(&c, &layout);
                double counted = messages_one_by_one(pp * stage, stage, leaf, k, false);
                ck_assert_msg(fabs(charged / counted - 1) < 0.02, "pp %d, stages of %d, leaves of %d: %g, not %g", pp, stage,
                              leaf, charged, counted);
                layout.schedule = SCHEDULE_INTERLEAVED;
                charged = oversubscription_of_messages(&c, &layout);
                counted = messages_one_by_one(pp * stage, stage, leaf, k, true);
                ck_assert_msg(fabs(charged / counted - 1) < 0.02, "around: pp %d, stages of %d, leaves of %d: %g, not %g", pp,
                              stage, leaf, charged, counted);
            }
}
END_TEST

/* Groups of four switches with a node of 8 NICs each, two cables of a NIC's rate between switches and eight between groups, of
 * which there are four: 8 NICs over 6 local cables, 32 over 24 global ones, so k = 4/3 for both. A job of four nodes in one
 * group: tp over two nodes sends all over the two cables of a pair, 2, and around over either other switch, where it takes from
 * theirs, 2 again: half of 8 NICs. A job of two stages of a group each in the first two groups: 8 global cables, and 16
 * over the idle two. Of four stages a group has 8 to the next, and half of 16 around. */
START_TEST(dragonflies)
{
    struct cluster c = cluster_of(16, 0, 0, 1, 1);
    c.topology = TOPOLOGY_DRAGONFLY;
    c.fabric_layers = 0;
    c.rails = RAILS_NO;
    c.dragonfly = (struct dragonfly){.groups = 4,
                                     .switches_per_group = 4,
                                     .endpoints_per_switch = 8,
                                     .local_links = 2,
                                     .global_links_per_switch = 6,
                                     .global_links = 8,
                                     .link_rate = c.nic_rate};
    struct layout pairs = layout_of(16, 1, 2, 1), two = layout_of(8, 2, 4, 1), four = layout_of(8, 4, 4, 1);
    ck_assert_double_eq_tol(oversubscription_of_rings(&c, layout_span(&pairs, &c, GROUP_TP)), 8 / 4.0, 1e-12);
    c.dragonfly.local_links = 100; /* global cables alone */
    ck_assert_double_eq_tol(oversubscription_of_stages(&c, layout_span(&two, &c, GROUP_PP)), 32 / 24.0, 1e-12);
    ck_assert_double_eq_tol(oversubscription_of_stages(&c, layout_span(&four, &c, GROUP_PP)), 32 / 16.0, 1e-12);
}
END_TEST

Suite *suite_oversubscription(void)
{
    Suite *suite = suite_create("oversubscription");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, loads_of_rings, 0, (int)(sizeof rings / sizeof rings[0]));
    tcase_add_test(all, bandwidth_is_divided);
    tcase_add_test(all, full_fabrics_add_nothing);
    tcase_add_test(all, one_nic_at_a_time);
    tcase_add_test(all, loads_of_all_to_all);
    tcase_add_test(all, messages_of_stages);
    tcase_add_test(all, messages_over_edges);
    tcase_add_test(all, dragonflies);
    suite_add_tcase(suite, all);
    return suite;
}
