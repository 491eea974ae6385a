/* What exchanges between replicas take from the computations beside them. */
#include <check.h>

#include "sim/network/network_analytic.h"
#include "sim/step/step_costs.h"
#include "tests/plan/settings.h"
#include "tests/suite.h"

enum { LAYERS = 8, MICRO_BATCHES = 3, REPLICAS = 32 };

/* Seconds by which the computations of the first script are longer than their works. */
static double crowded_seconds(const struct setting *setting, const struct layout *layout, enum detail detail)
{
    struct program program;
    struct step_costs costs;
    struct diags diags = {0};
    enum status status = program_build(layout, setting, detail, true, &program, &diags);
    ck_assert_msg(status == STATUS_OK, "%s", diags.n_items > 0 ? diags.items[0].text : "");
    struct machine machine = machine_of(layout, setting);
    struct network network = network_analytic(&machine);
    step_costs_create(&program, &machine, &network, &costs);
    nanos sum = 0;
    for (uint32_t i = 0; i < program.scripts[0].n_ops; i++) {
        const struct op *op = &program.ops[program.scripts[0].first_op + i];
        if (op->kind != OP_COMPUTE || op->work < 0)
            continue;
        sum += costs.ops[program.scripts[0].first_op + i];
        for (int c = 0; c < N_WORK_CLASSES; c++)
            sum -= costs.works[op->work].ns[c];
    }
    step_costs_free(&costs);
    program_free(&program);
    diags_free(&diags);
    return (double)sum * 1e-9;
}

static double interference(const struct setting *setting, const struct layout *layout, enum collective collective, double bytes)
{
    struct machine machine = machine_of(layout, setting);
    struct group_span span = machine.spans[GROUP_DP];
    double alone = cost_seconds(collective_cost(&machine, collective, span, bytes));
    return overlap_interference_s(setting->cluster, collective, span, bytes, alone);
}

static double parameters(const struct setting *setting, const struct layout *layout, int layers, bool ends)
{
    return work_stage_parameters(layout, setting, (struct layer_range){0, layers}, ends, ends).dense;
}

static struct layout sharded(const struct setting *setting, feature_set features)
{
    struct layout layout = {.tp = 1, .dp = REPLICAS, .micro_batch = 1, .zero = 3};
    layout.features = features | FEATURE_BIT(FLASH_ATTENTION2);
    layout_complete(&layout, setting);
    return layout;
}

/* ZeRO-3 of m micro-batches of L layers: every gather but the first is under a computation, and every reduction but the last; the
 * embedding and the head go with the first layer. */
START_TEST(every_covered_exchange_is_paid_once)
{
    struct job_case c;
    dense_case(&c, LAYERS, REPLICAS, MICRO_BATCHES * REPLICAS);
    const struct setting *s = &c.setting;
    struct layout l = sharded(s, FEATURE_BIT(DP_OVERLAP));
    double layer = parameters(s, &l, 1, false), ends = parameters(s, &l, 0, true);
    double gather = interference(s, &l, COLLECTIVE_ALL_GATHER, 2 * layer),
           gather_ends = interference(s, &l, COLLECTIVE_ALL_GATHER, 2 * ends);
    double reduce = interference(s, &l, COLLECTIVE_REDUCE_SCATTER, 4 * layer);
    double reduce_ends = interference(s, &l, COLLECTIVE_REDUCE_SCATTER, 4 * ends);
    double expected = (2 * LAYERS * MICRO_BATCHES - 1) * gather + (LAYERS * MICRO_BATCHES - 1) * reduce +
                      (MICRO_BATCHES - 1) * (gather_ends + reduce_ends);
    for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++)
        ck_assert_double_eq_tol(crowded_seconds(s, &l, (enum detail)detail), expected, 1e-9 * 4 * LAYERS * MICRO_BATCHES);
}
END_TEST

/* Without overlap nothing runs beside the gradients' exchange but, with ZeRO-3, gathers do. */
START_TEST(what_is_waited_for_crowds_nothing)
{
    struct job_case c;
    dense_case(&c, LAYERS, REPLICAS, MICRO_BATCHES * REPLICAS);
    struct layout l = sharded(&c.setting, 0);
    ck_assert_double_gt(crowded_seconds(&c.setting, &l, DETAIL_CHUNK), 0);
    l.zero = 1;
    ck_assert_double_eq(crowded_seconds(&c.setting, &l, DETAIL_CHUNK), 0);
}
END_TEST

/* Of a pipeline it is known when the step has been executed (dp_overlap_contention.h). */
START_TEST(a_pipeline_is_not_crowded_yet)
{
    struct job_case c;
    dense_case(&c, LAYERS, REPLICAS, MICRO_BATCHES * REPLICAS);
    struct layout l = {.tp = 1, .pp = 2, .dp = REPLICAS / 2, .micro_batch = 1, .zero = 1};
    l.features = FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(FLASH_ATTENTION2);
    layout_complete(&l, &c.setting);
    ck_assert_double_eq(crowded_seconds(&c.setting, &l, DETAIL_CHUNK), 0);
    l = (struct layout){.tp = 1, .dp = REPLICAS, .micro_batch = 1, .zero = 1, .features = l.features};
    layout_complete(&l, &c.setting);
    ck_assert_double_gt(crowded_seconds(&c.setting, &l, DETAIL_CHUNK), 0);
}
END_TEST

/* 24 channels inside a domain, two a NIC between domains; the traffic of what passes the bus; never more than all of the time. */
START_TEST(interference_is_channels_and_traffic)
{
    struct job_case c;
    dense_case(&c, LAYERS, REPLICAS, REPLICAS);
    struct cluster *cluster = &c.cluster;
    struct group_span node = {.ranks = 8, .ranks_per_domain = 8, .domains = 1, .sharing = 1}, nodes = node, alone = node;
    cluster->gpu.sms = 100, cluster->gpu.hbm_rate = 1e12;
    double traffic = overlap_interference_s(cluster, COLLECTIVE_ALL_GATHER, node, 8e12 / 7, 100) - 24;
    ck_assert_double_eq_tol(overlap_interference_s(cluster, COLLECTIVE_ALL_GATHER, node, 8e12 / 7, 200) - traffic, 48, 1e-12);
    ck_assert_double_eq_tol(overlap_interference_s(cluster, COLLECTIVE_ALL_REDUCE, node, 8e12 / 7, 100) - 24, 2 * traffic, 1e-12);
    nodes.ranks = 32, nodes.domains = 4;
    ck_assert_double_eq_tol(overlap_interference_s(cluster, COLLECTIVE_ALL_GATHER, nodes, 0, 1), 0.16, 1e-12);
    alone.ranks = alone.domains = 8, alone.ranks_per_domain = 1;
    ck_assert_double_eq_tol(overlap_interference_s(cluster, COLLECTIVE_ALL_GATHER, alone, 0, 1), 0.02, 1e-12);
    cluster->gpu.sms = 12;
    ck_assert_double_eq(overlap_interference_s(cluster, COLLECTIVE_ALL_GATHER, node, 0, 1), 1);
    cluster->gpu.sms = 1; /* measured as a whole */
    ck_assert_double_eq_tol(overlap_interference_s(cluster, COLLECTIVE_ALL_GATHER, node, 8e12 / 7, 100), traffic, 1e-12);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("step_costs");
    TCase *all = tcase_create("interference");
    tcase_add_test(all, every_covered_exchange_is_paid_once);
    tcase_add_test(all, what_is_waited_for_crowds_nothing);
    tcase_add_test(all, a_pipeline_is_not_crowded_yet);
    tcase_add_test(all, interference_is_channels_and_traffic);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
