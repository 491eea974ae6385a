/* What a layer's mixture costs the rank whose experts get most tokens: rows, bytes and what it keeps, by hand. */
#include <math.h>
#include <string.h>

#include "model/cost/kernel/collective.h"
#include "model/cost/kernel/gemm.h"
#include "model/cost/kernel/machine.h"
#include "model/cost/memory/footprint.h"
#include "shapes.h"

enum { TOKENS = 2048, H = 12288, FFN = 1024, EXPERTS = 16, TOP_K = 2, EP = 4 };

/* 16 experts over 4 ranks, two of them for each of 2048 tokens: 4096 rows on average. */
static void shape_experts(struct shape *s)
{
    shape_megascale(s);
    s->layout.tp = 1;
    s->layout.sequence_parallel = false;
    s->layout.dp = s->layout.ep = EP;
    s->layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS); /* a token crosses to a node once */
    s->model.moe = (struct mixture){.experts = EXPERTS, .top_k = TOP_K, .expert_ffn = FFN, .every = 1};
    s->model.gated_mlp = true;
    s->model.linear_bias = false;
}

static void load_experts(struct shape *s, double busiest, double capacity, bool padded)
{
    s->job.load = (struct expert_load){.busiest = busiest, .capacity = capacity, .padded = padded};
    expert_load_complete(&s->job.load, s->model.moe.experts, s->model.moe.top_k);
}

/* The first work of a name in a layer's pass; the test fails where there is none. */
static struct work work_named(const struct shape *s, enum pass pass, const char *label)
{
    struct work_table table = {0};
    struct work found = {.label = NULL};
    (void)work_add_pass(&table, &s->layout, &s->setting, pass, (struct layer_range){1, 1}, false, false);
    for (int32_t i = 0; i < table.n_items && !found.label; i++)
        if (strcmp(table.items[i].label, label) == 0)
            found = table.items[i];
    work_table_free(&table);
    ck_assert_msg(found.label != NULL, "no work is called %s", label);
    return found;
}

START_TEST(the_busiest_rank_has_more_of_everything_behind_the_router)
{
    struct shape s;
    shape_experts(&s);
    double bytes = 4096.0 * H * 2;
    load_experts(&s, 1.5, 0, false);
    double busiest = expert_load_rank(&s.job.load, EP);
    ck_assert(busiest > 1.1 && busiest < 1.5);
    int64_t rows = (int64_t)(4096 * busiest);
    struct work up = work_named(&s, PASS_FORWARD, "expert_up"), grown = work_named(&s, PASS_BACKWARD_WEIGHT, "expert_up");
    ck_assert_int_eq(up.gemm.m, rows / 4);
    ck_assert_int_eq(up.gemm.largest, (int64_t)(1024 * expert_load_largest(&s.job.load, EP)));
    ck_assert(!up.gemm.along_k && grown.gemm.along_k);
    ck_assert_int_eq(grown.gemm.k, rows / 4);
    ck_assert_double_eq(up.flops, 2.0 * 4096 * H * 2 * FFN); /* executed on average */
    ck_assert_double_eq(work_named(&s, PASS_FORWARD, "expert_activation").memory.bytes, (double)rows * FFN * 3 * 2);
    ck_assert_double_eq(work_named(&s, PASS_FORWARD, "permute").memory.bytes, 2 * bytes + 2.0 * (double)rows * H * 2);
    static const char *const ways[] = {"dispatch", "combine"};
    for (int pass = PASS_FORWARD; pass <= (int)PASS_BACKWARD_INPUT; pass += PASS_BACKWARD_INPUT)
        for (int i = 0; i < 2; i++) {
            struct work way = work_named(&s, (enum pass)pass, ways[i]);
            ck_assert_double_eq_tol(way.collective.bytes, bytes * busiest, 1e-3);
            ck_assert_double_eq_tol(way.collective.tokens.rank_load, busiest, 1e-12);
        }
    int64_t routed = work_named(&s, PASS_FORWARD, "router").gemm.m;
    load_experts(&s, 1, 0, false);
    ck_assert_int_eq(routed, work_named(&s, PASS_FORWARD, "router").gemm.m);
    ck_assert_int_eq(work_named(&s, PASS_FORWARD, "expert_up").gemm.largest, 0);
}
END_TEST

/* Stacks that send every copy for itself send the busiest rank's over its own NIC. */
START_TEST(every_copy_for_itself)
{
    struct shape s;
    shape_experts(&s);
    s.layout.features = 0;
    load_experts(&s, 1.5, 0, false);
    struct work_collective way = work_named(&s, PASS_FORWARD, "dispatch").collective;
    ck_assert_int_eq(way.tokens.copies, 0);
    ck_assert_double_eq_tol(way.bytes, 4096.0 * H * 2 * expert_load_rank(&s.job.load, EP), 1e-3);
}
END_TEST

/* Experts divided over tp as well: the ranks of an expert gather what the busiest of ep ranks got, from both. */
START_TEST(experts_divided_over_tp)
{
    struct shape s;
    shape_experts(&s);
    s.layout.tp = s.layout.etp = 2;
    load_experts(&s, 1.5, 0, false);
    double busiest = expert_load_rank(&s.job.load, EP);
    ck_assert_double_eq_tol(work_named(&s, PASS_FORWARD, "expert_tp").collective.bytes, 4096.0 * H * 2 * busiest, 1e-3);
    ck_assert_int_eq(work_named(&s, PASS_FORWARD, "expert_up").gemm.m, (int64_t)(4096 * busiest) / 4);
}
END_TEST

START_TEST(what_is_dropped_is_neither_sent_nor_computed)
{
    struct shape s;
    shape_experts(&s);
    load_experts(&s, 2, 1.25, false);
    double kept = 1 - s.job.load.dropped, busiest = expert_load_rank(&s.job.load, EP);
    ck_assert(kept < 0.95 && busiest < 1.25);
    int64_t rows = (int64_t)(4096 * kept);
    ck_assert_double_eq(work_named(&s, PASS_FORWARD, "expert_up").flops, 2.0 * (double)rows * H * 2 * FFN);
    ck_assert_int_eq(work_named(&s, PASS_FORWARD, "expert_up").gemm.m, (int64_t)(4096 * busiest) / 4);
    ck_assert_double_eq_tol(work_named(&s, PASS_FORWARD, "dispatch").collective.bytes, 4096.0 * busiest * H * 2, 1e-3);
    load_experts(&s, 2, 1.25, true); /* filled up, on all ranks alike */
    struct work up = work_named(&s, PASS_FORWARD, "expert_up");
    ck_assert_int_eq(up.gemm.m, 4096 * 5 / 4 / 4);
    ck_assert_int_eq(up.gemm.largest, 0);
    ck_assert_double_eq(up.flops, 2.0 * 5120 * H * 2 * FFN);
    ck_assert_double_eq_tol(work_named(&s, PASS_FORWARD, "dispatch").collective.bytes, 5120.0 * H * 2, 1e-3);
}
END_TEST

static double layer_bytes(const struct shape *s)
{
    return footprint_layer_bytes(&s->layout, &s->setting, layer_kind_of(&s->model, 1));
}

/* The memory kept for copies is in proportion to their number, as with more experts per token. */
START_TEST(the_busiest_rank_keeps_more)
{
    struct shape s;
    shape_experts(&s);
    s.layout.recompute = (struct recompute){.what = RECOMPUTE_NONE};
    double even = layer_bytes(&s);
    s.model.moe.top_k = 2 * TOP_K;
    double routed = layer_bytes(&s) - even;
    s.model.moe.top_k = TOP_K;
    ck_assert_double_gt(routed, 0);
    for (double busiest = 1.1; busiest < 8; busiest *= 1.5) {
        load_experts(&s, busiest, 0, false);
        ck_assert_double_eq_tol((layer_bytes(&s) - even) / routed, expert_load_rank(&s.job.load, EP) - 1, 1e-9);
    }
    s.layout.ep = 1;
    ck_assert_double_eq_tol(layer_bytes(&s), even, 1e-3);
}
END_TEST

/* Eight products in rounds of four; one that takes longer than both rounds is waited for. */
START_TEST(the_largest_product_is_waited_for)
{
    struct shape s;
    shape_experts(&s);
    struct work_gemm gemm = {
        .m = 512, .n = 4096, .k = 4096, .count = 8, .apart = true, .output_bytes = 2, .precision = PRECISION_BF16};
    const struct gpu *gpu = &s.cluster.gpu;
    double alike = cost_seconds(gemm_cost(gpu, &gemm));
    gemm.largest = 1024;
    ck_assert_double_eq(cost_seconds(gemm_cost(gpu, &gemm)), alike);
    gemm.largest = 32768;
    struct work_gemm alone = gemm;
    alone.m = 32768, alone.count = 1, alone.apart = false, alone.largest = 0;
    ck_assert_double_eq(cost_seconds(gemm_cost(gpu, &gemm)), cost_seconds(gemm_cost(gpu, &alone)));
    ck_assert_double_gt(cost_seconds(gemm_cost(gpu, &gemm)), alike);
    gemm.along_k = true;
    gemm.largest = alone.k = 65536;
    alone.m = 512;
    ck_assert_double_eq(cost_seconds(gemm_cost(gpu, &gemm)), cost_seconds(gemm_cost(gpu, &alone)));
}
END_TEST

static bool has_sum_of(const struct shape *s, double elements)
{
    struct work_table table = {0};
    bool found = false;
    (void)work_add_pass(&table, &s->layout, &s->setting, PASS_BACKWARD, (struct layer_range){1, 1}, false, false);
    for (int32_t i = 0; i < table.n_items; i++)
        found |= strcmp(table.items[i].label, "gradient_sum") == 0 && fabs(table.items[i].memory.bytes - 10 * elements) < 1;
    work_table_free(&table);
    return found;
}

/* Eager code adds the gradients of all of a rank's experts to sums in fp32 for each micro-batch (2 read new, 4 + 4), and those of
 * the shared expert; fused products add them themselves, and one micro-batch has nothing to add to. */
START_TEST(gradients_of_experts_are_summed)
{
    struct shape s;
    shape_experts(&s);
    s.model.moe.shared_experts = 1;
    const double experts = 3.0 * H * FFN * EXPERTS / EP, shared = 3.0 * H * FFN;
    ck_assert(!has_sum_of(&s, experts) && !has_sum_of(&s, shared));
    s.layout.features = FEATURE_BIT(FLASH_ATTENTION2);
    ck_assert(has_sum_of(&s, experts) && has_sum_of(&s, shared));
    s.layout.micro_batch = (int)(s.job.global_batch / s.layout.dp);
    ck_assert(!has_sum_of(&s, experts) && !has_sum_of(&s, shared));
}
END_TEST

/* Over 8 nodes of 8 ranks: NICs carry the busiest node's tokens, each of which has a copy there with 1 - (1 - x/8)^8 in the place
 * of 1 - (7/8)^8; NVLink what the busiest rank gets less what came over its NIC. Within a node, the busiest rank's copies. */
START_TEST(nics_carry_the_busiest_node_and_nvlink_the_busiest_rank)
{
    struct shape s;
    shape_experts(&s);
    struct group_span span = {.ranks = 64, .domains = 8, .ranks_per_domain = 8, .sharing = 1, .leaves = 1, .pods = 1};
    const struct token_copies even = {.copies = 8}, uneven = {.copies = 8, .rank_load = 1.5, .domain_load = 1.2};
    double bytes = 8e12, reached = (1 - pow(1 - 1.2 / 8, 8)) / (1 - pow(7.0 / 8, 8));
    s.cluster.gpu.nccl_rate = 1e16;
    double mean = cost_seconds(dispatch_time(&s.cluster, span, bytes, even));
    ck_assert_double_eq_tol(cost_seconds(dispatch_time(&s.cluster, span, 1.5 * bytes, uneven)) / mean, reached, 1e-3);
    ck_assert(reached > 1.05 && reached < 1.2);
    s.cluster.gpu.nccl_rate =
        0.66 * cluster_gpu_nic_rate(&s.cluster) * s.cluster.net_fraction; /* what holds up; see copies_go_the_quicker_way */
    mean = cost_seconds(dispatch_time(&s.cluster, span, bytes, even));
    double leaving = 8.0 / 8 * (1 - pow(7.0 / 8, 8)) * 7 / 8, all = 63.0 / 64;
    double ratio = (1.5 * all - reached * leaving) / (all - leaving);
    ck_assert_double_eq_tol(cost_seconds(dispatch_time(&s.cluster, span, 1.5 * bytes, uneven)) / mean, ratio, 1e-3);
    span.domains = 8;
    s.cluster.gpu.nccl_rate = 1e16;
    s.cluster.gpu.nccl_ramp_bytes = 1e6; /* short messages are so for all: more is never quicker */
    for (double load = 1; load < 4; load += 0.25) {
        struct token_copies more = {.copies = 8, .rank_load = load, .domain_load = 1};
        ck_assert_double_eq_tol(cost_seconds(dispatch_time(&s.cluster, span, load * 1e6, more)) /
                                    cost_seconds(dispatch_time(&s.cluster, span, 1e6, even)),
                                1, 1e-9);
    }
    span.domains = 1, span.ranks = span.ranks_per_domain = 8;
    ck_assert_double_eq(cost_seconds(dispatch_time(&s.cluster, span, 1.5 * bytes, uneven)),
                        cost_seconds(collective_time(&s.cluster, COLLECTIVE_ALL_TO_ALL, span, 1.5 * bytes)));
}
END_TEST

Suite *suite_experts(void)
{
    Suite *suite = suite_create("experts");
    TCase *all = tcase_create("all");
    tcase_add_test(all, the_busiest_rank_has_more_of_everything_behind_the_router);
    tcase_add_test(all, every_copy_for_itself);
    tcase_add_test(all, experts_divided_over_tp);
    tcase_add_test(all, what_is_dropped_is_neither_sent_nor_computed);
    tcase_add_test(all, the_busiest_rank_keeps_more);
    tcase_add_test(all, the_largest_product_is_waited_for);
    tcase_add_test(all, gradients_of_experts_are_summed);
    tcase_add_test(all, nics_carry_the_busiest_node_and_nvlink_the_busiest_rank);
    suite_add_tcase(suite, all);
    return suite;
}
