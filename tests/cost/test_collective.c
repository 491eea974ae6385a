/* Collectives: alpha-beta closed forms with round parameters, monotonicity, equivalences. */
#include "model/cost/kernel/collective.h"
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

/* A measured cluster adds to the base, and to large messages the time that fills the pipeline: half of it to one of half of
 * net_fill_bytes. Inside a node nothing changes. */
START_TEST(a_measured_network_adds_base_and_fill)
{
    struct shape plain, s;
    const enum collective all[] = {COLLECTIVE_ALL_REDUCE, COLLECTIVE_ALL_GATHER, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALL_TO_ALL,
                                   COLLECTIVE_BROADCAST};
    plain_cluster(&plain);
    s = plain;
    s.cluster.net_base_s = 80e-6;
    s.cluster.net_fill_s = 700e-6;
    s.cluster.net_fill_bytes = 16e6;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct group_span two = spread_over(2, 8), four = spread_over(4, 8);
        ck_assert_double_eq_tol(seconds(&s, all[i], two, 8e9) - seconds(&plain, all[i], two, 8e9), 780e-6, 1e-9);
        ck_assert_double_eq_tol(seconds(&s, all[i], four, 8e6) - seconds(&plain, all[i], four, 8e6), 430e-6, 1e-9);
        ck_assert_double_eq_tol(seconds(&s, all[i], node_of(8), 8e9), seconds(&plain, all[i], node_of(8), 8e9), 1e-15);
    }
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

/* What fills a ring is a time: between nodes of NICs a tenth as fast a tenth of the bytes; as fast as NVLink, as much. A fabric
 * that is too narrow above makes all of it longer, and fills nothing. */
START_TEST(slower_rings_fill_with_less)
{
    struct shape s;
    plain_cluster(&s);
    const double bytes = 512e6, ramp = 8e6;
    for (int slower = 1; slower <= 10; slower += 9)
        for (int narrow = 1; narrow <= 2; narrow++) {
            struct group_span span = spread_over(4, 1);
            span.leaves = 4;
            span.leaf_exits = (struct group_exits){.to_next = 1, .to_all = 1, .units = 4};
            s.cluster.nic_rate = s.cluster.gpu.nccl_rate / slower;
            s.cluster.leaf_oversubscription = narrow;
            s.cluster.gpu.nccl_ramp_bytes = 0;
            double full = seconds(&s, COLLECTIVE_ALL_GATHER, span, 1e18) / 1e18 * bytes; /* of bytes alone */
            double before = seconds(&s, COLLECTIVE_ALL_GATHER, span, bytes);
            s.cluster.gpu.nccl_ramp_bytes = ramp;
            double after = seconds(&s, COLLECTIVE_ALL_GATHER, span, bytes);
            ck_assert_double_eq_tol((after - before) / full, sqrt(ramp / slower / bytes), 1e-9);
            ck_assert_double_eq_tol(full, narrow * slower * bytes * 3 / 4 / s.cluster.gpu.nccl_rate, 1e-9 * full);
        }
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
    double once = cost_seconds(dispatch_time(&s.cluster, span, bytes, (struct token_copies){.copies = 8}));
    double limited =
        cost_seconds(dispatch_time(&s.cluster, span, bytes, (struct token_copies){.copies = 8, .groups = 8, .top_groups = 4}));
    ck_assert_double_eq_tol(once / all, 1 - pow(7.0 / 8, 8), 1e-3);
    ck_assert_double_eq_tol(limited / all, 0.5 * (1 - pow(3.0 / 4, 8)), 1e-3);
    double one_copy = cost_seconds(dispatch_time(&s.cluster, span, bytes, (struct token_copies){.copies = 1}));
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

/* Eight ranks in each of sixteen nodes, by hand: 7/8 of S at 100 GB/s over NVLink, 15/16 over eight NICs of 25 GB/s, in 7, 15 and
 * 7 steps. A reduce-scatter leaves out the last phase, an all-gather the first, one rank to a node both; what is exchanged inside
 * a node, and to everybody, has no phases. */
START_TEST(hierarchical_is_three_phases)
{
    struct shape s;
    plain_cluster(&s);
    s.cluster.collective_algorithm = ALGORITHM_HIERARCHICAL;
    s.cluster.nic_latency_s = s.cluster.hop_latency_s = 0;
    struct group_span span = spread_over(16, 8);
    double bytes = 800e6, inside = bytes * 7 / 8 / 100e9 + 7e-6, rails = bytes * 15 / 16 / 200e9, hop = 14e-6;
    double gather = seconds(&s, COLLECTIVE_ALL_GATHER, span, bytes),
           scatter = seconds(&s, COLLECTIVE_REDUCE_SCATTER, span, bytes);
    ck_assert_double_eq_tol(scatter, inside + rails + 15 * hop, 1e-12);
    ck_assert_double_eq_tol(gather, scatter, 1e-12);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_REDUCE, span, bytes), 2 * inside + 2 * rails + 30 * hop, 1e-12);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_GATHER, spread_over(16, 1), bytes), bytes * 15 / 16 / 25e9 + 15 * hop,
                            1e-12);
    struct collective_phases phases = collective_phases(&s.cluster, COLLECTIVE_REDUCE_SCATTER, span, bytes);
    ck_assert_double_eq_tol(cost_seconds(phases.before), inside, 1e-12);
    ck_assert_double_eq(cost_seconds(phases.after), 0);
    for (int other = 0; other < 2; other++) {
        double flat[2];
        for (int a = 0; a < 2; a++) {
            s.cluster.collective_algorithm = a ? ALGORITHM_HIERARCHICAL : ALGORITHM_NCCL;
            flat[a] = seconds(&s, other ? COLLECTIVE_ALL_TO_ALL : COLLECTIVE_ALL_REDUCE, other ? span : node_of(8), bytes);
        }
        ck_assert_double_eq(flat[0], flat[1]);
    }
}
END_TEST

/* What NCCL takes is the quicker of what can be demanded; short all-reduces over many nodes take the tree. */
START_TEST(the_quicker_algorithm_is_taken)
{
    struct shape s;
    plain_cluster(&s);
    for (int i = 0; i < 40; i++) {
        double bytes = pow(2, i), took[4];
        for (int a = ALGORITHM_NCCL; a <= ALGORITHM_HIERARCHICAL; a++) {
            s.cluster.collective_algorithm = (enum collective_algorithm)a;
            took[a] = seconds(&s, COLLECTIVE_ALL_REDUCE, spread_over(64, 8), bytes);
        }
        ck_assert_double_eq(took[ALGORITHM_NCCL], fmin(took[ALGORITHM_RING], took[ALGORITHM_TREE]));
        if (i == 10)
            ck_assert_double_lt(took[ALGORITHM_TREE], took[ALGORITHM_RING]);
    }
}
END_TEST

/* Eight copies of a token to 4 nodes of 8: one to each other node and on over NVLink, or, where links inside nodes are slow, all
 * for themselves: three quarters of the bytes over the NICs, as in any all-to-all. */
START_TEST(copies_go_the_quicker_way)
{
    struct shape s;
    plain_cluster(&s);
    s.cluster.nics_per_node = 8;
    s.cluster.nic_rate = 25e9;
    struct token_copies tokens = {.copies = 8};
    double bytes = 32e9, reached = 4 * (1 - pow(0.75, 8)) * 0.75;
    s.cluster.gpu.nccl_rate = 400e9;
    ck_assert_double_eq_tol(cost_seconds(dispatch_time(&s.cluster, spread_over(4, 8), bytes, tokens)), bytes / 8 * reached / 25e9,
                            1e-3);
    s.cluster.gpu.nccl_rate = 20e9;
    ck_assert_double_eq_tol(cost_seconds(dispatch_time(&s.cluster, spread_over(4, 8), bytes, tokens)), bytes * 0.75 / 25e9, 1e-3);
}
END_TEST

/* A tree over two nodes sends the buffer once over the NICs, but up and down the chain of each node: seven edges of eight GPUs
 * carry it both ways. So two nodes are never quicker than one. */
START_TEST(a_tree_is_held_up_inside_nodes)
{
    struct shape s;
    plain_cluster(&s);
    s.cluster.nics_per_node = 8;
    s.cluster.nic_rate = 25e9;
    s.cluster.collective_algorithm = ALGORITHM_TREE;
    double bytes = 920e9, seconds_of_eight = 2 * bytes * 7 / 8 / 100e9 / 0.92; /* 200 GB/s of NICs would take 5 s */
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_REDUCE, spread_over(2, 8), bytes), seconds_of_eight, 1e-3);
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_REDUCE, spread_over(2, 1), bytes), bytes / 25e9 / 0.92, 1e-3);
    s.cluster.gpu.nvls_rate = 70e9; /* the switch adds up in one pass, and where it takes longer it is not asked */
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_REDUCE, spread_over(2, 8), bytes), bytes / 70e9, 1e-3);
    s.cluster.gpu.nvls_rate = 40e9;
    ck_assert_double_eq_tol(seconds(&s, COLLECTIVE_ALL_REDUCE, spread_over(2, 8), bytes), seconds_of_eight, 1e-3);
    s.cluster.gpu.nvls_rate = 0;
    s.cluster.collective_algorithm = ALGORITHM_NCCL;
    for (int nodes = 2; nodes <= 64; nodes *= 2)
        ck_assert_double_ge(seconds(&s, COLLECTIVE_ALL_REDUCE, spread_over(nodes, 8), bytes),
                            seconds(&s, COLLECTIVE_ALL_REDUCE, node_of(8), bytes));
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
    tcase_add_test(all, a_measured_network_adds_base_and_fill);
    tcase_add_test(all, a_rank_moves_its_own_part_too);
    tcase_add_test(all, slower_rings_fill_with_less);
    tcase_add_test(all, boards_of_a_node_are_joined_by_pcie);
    tcase_add_test(all, a_few_ranks_on_boards_cross_too);
    tcase_add_test(all, a_token_crosses_once_to_a_node);
    tcase_add_test(all, one_rank_or_no_bytes_cost_nothing);
    tcase_add_test(all, across_nodes_the_nics_of_the_members_limit);
    tcase_add_test(all, hierarchical_is_three_phases);
    tcase_add_test(all, the_quicker_algorithm_is_taken);
    tcase_add_test(all, copies_go_the_quicker_way);
    tcase_add_test(all, a_tree_is_held_up_inside_nodes);
    tcase_add_test(all, more_bandwidth_is_never_slower);
    tcase_add_test(all, time_grows_with_the_message);
    suite_add_tcase(suite, all);
    return suite;
}
