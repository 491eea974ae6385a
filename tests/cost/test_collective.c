/* Collectives: alpha-beta closed forms with round parameters, monotonicity, equivalences. */
#include "model/cost/collective.h"
#include "shapes.h"

static void plain_cluster(struct shape *shape)
{
    shape_megascale(shape);
    struct gpu *gpu = &shape->cluster.gpu;
    gpu->nccl_rate = 100e9;
    gpu->nccl_ramp_bytes = 0;
    gpu->nccl_own_part = gpu->nccl_own_message = 0;
    gpu->nccl_base_s = 0;
    gpu->nccl_hop_s = 1e-6;
    gpu->nvls_rate = 0;
    shape->cluster.net_fraction = 1;
}

static double seconds(const struct shape *shape, enum collective c, struct group_span span, double bytes)
{
    return cost_seconds(collective_time(&shape->cluster, c, span, bytes));
}

static struct group_span node_of(int n)
{
    return (struct group_span){.ranks = n, .ranks_per_domain = n, .domains = 1, .leaves = 1, .pods = 1, .sharing = 1};
}

static struct group_span spread_over(int nodes, int per_node)
{
    return (struct group_span){
        .ranks = nodes * per_node, .ranks_per_domain = per_node, .domains = nodes, .leaves = 1, .pods = 1, .sharing = 1};
}

START_TEST(ring_inside_a_node_is_alpha_beta)
{
    struct shape s;
    plain_cluster(&s);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_GATHER, node_of(8), 800e6), 7e-6 + 7e-3, 1e-12);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_REDUCE_SCATTER, node_of(8), 800e6), 7e-6 + 7e-3, 1e-12);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_REDUCE, node_of(8), 800e6), 14e-6 + 14e-3, 1e-12);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_TO_ALL, node_of(8), 800e6), 1e-6 + 7e-3, 1e-12);
}
END_TEST

/* Its own eighth, half as long as sending it; half of that again in an all-reduce, as long as any message in an all-to-all. */
START_TEST(a_rank_moves_its_own_part_too)
{
    struct shape s;
    plain_cluster(&s);
    s.cluster.gpu.nccl_own_part = 0.5;
    s.cluster.gpu.nccl_own_message = 1;
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_GATHER, node_of(8), 800e6), 7e-6 + 7.5e-3, 1e-12);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_REDUCE_SCATTER, node_of(8), 800e6), 7e-6 + 7.5e-3, 1e-12);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_TO_ALL, node_of(8), 800e6), 1e-6 + 8e-3, 1e-12);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_REDUCE, node_of(8), 800e6), 14e-6 + 14.25e-3, 1e-12);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_GATHER, node_of(2), 800e6), 1e-6 + 6e-3, 1e-12);
}
END_TEST

/* Two boards of four GPUs: every GPU's PCIe carries a quarter of what goes from one board to the other. */
START_TEST(boards_of_a_node_are_joined_by_pcie)
{
    struct shape s;
    plain_cluster(&s);
    struct group_span boards = node_of(8);
    boards.islands = 2;
    s.cluster.gpu.pcie_rate = 10e9;
    double bytes = 800e6, whole = seconds(&s, COLLECTIVE_ALL_GATHER, node_of(8), bytes);
    double split = seconds(&s, COLLECTIVE_ALL_GATHER, boards, bytes);
    ck_assert_double_eq_tol((split - 7e-6) / (whole - 7e-6), 100e9 / (4 * 10e9 * 0.47), 1e-9);
    s.cluster.gpu.pcie_rate = 1e12; /* not the limit */
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_GATHER, boards, bytes), whole, 1e-15);
}
END_TEST

/* Five ranks, one to each board of two and a half nodes: what a board sends crosses at the pace of its one GPU, also when that of
 * an average node is less. */
START_TEST(a_few_ranks_on_boards_cross_too)
{
    struct shape s;
    plain_cluster(&s);
    struct cluster *cluster = &s.cluster;
    cluster->gpus_per_node = 8, cluster->nvlink_domain = 4, cluster->nodes = 5;
    cluster->gpu.pcie_rate = 10e9;
    struct layout layout = {.tp = 4, .cp = 1, .pp = 2, .vpp = 1, .dp = 5, .ep = 1, .micro_batch = 1};
    struct group_span span = layout_span(&layout, cluster, GROUP_DP);
    ck_assert_int_eq(span.islands, 2);
    double bytes = 800e6, slowest = 10e9 * 0.47;
    for (int c = 0; c < N_COLLECTIVES; c++) {
        double s_ = seconds(&s, (enum collective)c, span, bytes);
        ck_assert(isfinite(s_));
        ck_assert_double_gt(s_, 0);
    }
    ck_assert_double_ge(seconds(&s, COLLECTIVE_ALL_GATHER, span, bytes), bytes * 4 / 5 / slowest);
    for (int dp = 2; dp <= 40; dp++) { /* however groups fall on nodes */
        layout.dp = dp;
        layout.pp = 2;
        double t = seconds(&s, COLLECTIVE_ALL_GATHER, layout_span(&layout, cluster, GROUP_DP), bytes);
        ck_assert(isfinite(t) && t < 1);
    }
}
END_TEST

/* Eight copies of each token over eight nodes of one NIC-bound rank pair: without copies on arrival 7/8 of the bytes leave; with
 * them a token leaves once for each node that it reaches, 8 (1 - (7/8)^8) of 8 of which 7/8 are others'; a router that keeps to
 * four of eight groups reaches fewer. */
START_TEST(a_token_crosses_once_to_a_node)
{
    struct shape s;
    plain_cluster(&s);
    s.cluster.gpu.nccl_rate = 1e15;
    struct group_span span = spread_over(8, 8);
    double bytes = 8e9, all = seconds(&s, COLLECTIVE_ALL_TO_ALL, span, bytes);
    double once = cost_seconds(dispatch_time(&s.cluster, span, bytes, (struct token_copies){8, 0, 0}));
    double limited = cost_seconds(dispatch_time(&s.cluster, span, bytes, (struct token_copies){8, 8, 4}));
    ck_assert_double_eq_tol(once / all, 1 - pow(7.0 / 8, 8), 1e-3);
    ck_assert_double_eq_tol(limited / all, 0.5 * (1 - pow(3.0 / 4, 8)), 1e-3);
    double one_copy = cost_seconds(dispatch_time(&s.cluster, span, bytes, (struct token_copies){1, 0, 0}));
    ck_assert_double_eq(one_copy, all);
}
END_TEST

START_TEST(one_rank_or_no_bytes_cost_nothing)
{
    struct shape s;
    plain_cluster(&s);
    for (int c = 0; c < N_COLLECTIVES; c++) {
        ck_assert_double_eq(seconds(&s, (enum collective)c, node_of(1), 1e9), 0);
        ck_assert_double_eq(seconds(&s, (enum collective)c, node_of(8), 0), 0);
    }
}
END_TEST

START_TEST(across_nodes_the_nics_of_the_members_limit)
{
    struct shape s;
    plain_cluster(&s);
    double nic = s.cluster.nic_rate * s.cluster.nics_per_node / s.cluster.gpus_per_node, bytes = 64e9;
    double one = seconds(&s, COLLECTIVE_ALL_GATHER, spread_over(16, 1), bytes);
    double four = seconds(&s, COLLECTIVE_ALL_GATHER, spread_over(16, 4), bytes);
    ck_assert_double_eq_tol(one, bytes * 15 / 16 / nic, 1e-2);
    ck_assert_double_eq_tol(four, bytes * 63 / 64 / (4 * nic), 1e-2);
}
END_TEST

START_TEST(more_bandwidth_is_never_slower)
{
    struct shape slow, fast;
    shape_megascale(&slow);
    fast = slow;
    fast.cluster.nic_rate *= 2;
    fast.cluster.gpu.nccl_rate *= 2;
    const struct group_span spans[] = {node_of(2), node_of(8), spread_over(2, 8), spread_over(32, 1), spread_over(192, 1)};
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++)
        for (int c = 0; c < N_COLLECTIVES; c++)
            for (double bytes = 256; bytes < 1e11; bytes *= 16)
                ck_assert_double_le(seconds(&fast, (enum collective)c, spans[i], bytes),
                                    seconds(&slow, (enum collective)c, spans[i], bytes));
}
END_TEST

START_TEST(time_grows_with_the_message)
{
    struct shape s;
    shape_megascale(&s);
    for (int c = 0; c < N_COLLECTIVES; c++)
        for (double bytes = 256; bytes < 1e11; bytes *= 4)
            ck_assert_double_lt(seconds(&s, (enum collective)c, spread_over(16, 2), bytes),
                                seconds(&s, (enum collective)c, spread_over(16, 2), 4 * bytes));
}
END_TEST

Suite *suite_collective(void)
{
    Suite *suite = suite_create("collective");
    TCase *all = tcase_create("all");
    tcase_add_test(all, ring_inside_a_node_is_alpha_beta);
    tcase_add_test(all, a_rank_moves_its_own_part_too);
    tcase_add_test(all, boards_of_a_node_are_joined_by_pcie);
    tcase_add_test(all, a_few_ranks_on_boards_cross_too);
    tcase_add_test(all, a_token_crosses_once_to_a_node);
    tcase_add_test(all, one_rank_or_no_bytes_cost_nothing);
    tcase_add_test(all, across_nodes_the_nics_of_the_members_limit);
    tcase_add_test(all, more_bandwidth_is_never_slower);
    tcase_add_test(all, time_grows_with_the_message);
    suite_add_tcase(suite, all);
    return suite;
}
