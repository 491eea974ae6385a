/* What hashing leaves of exchanges: to the nanosecond what the most crowded link says; on the clusters of the catalog little; and
 * where nothing collides a sharded step takes what the closed form's network says, however many groups share a host. */
#include <check.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/spec/catalog.h"
#include "sim/network/collective_flows.h"
#include "sim/step/step.h"
#include "tests/sim/fabric/fabric_jobs.h"

static const feature_set SHARDED = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS);

/* A job of llama3-8b on `hosts` hosts of a catalog cluster. */
static void job_on(struct job_case *c, const char *cluster, int hosts, feature_set features, const char *layout)
{
    struct diags diags = {0};
    *c = (struct job_case){.job = {.global_batch = 2 * hosts * 8,
                                   .seq_len = 4096,
                                   .precision = PRECISION_BF16,
                                   .gradient_precision = PRECISION_FP32,
                                   .optimizer = OPTIMIZER_ADAM,
                                   .features = features}};
    ck_assert_int_eq(catalog_model("llama3-8b", &c->model, &diags), STATUS_OK);
    ck_assert_int_eq(catalog_cluster(cluster, &c->cluster, &diags), STATUS_OK);
    c->cluster.nodes = hosts;
    c->setting =
        (struct setting){.model = &c->model, .cluster = &c->cluster, .job = &c->job, .gpus = hosts * c->cluster.gpus_per_node};
    ck_assert_int_eq(layout_parse(layout, &c->layout, &diags), STATUS_OK);
    layout_complete(&c->layout, &c->setting);
    ck_assert_int_eq(layout_check(&c->layout, &c->setting, NULL, 0), LAYOUT_LEGAL);
    ck_assert_int_eq(fabric_create(&c->cluster, &c->fabric, &diags), STATUS_OK);
}

static double step_of(struct job_case *c, const struct network_flow_options *flow, bool fold)
{
    struct diags diags = {0};
    struct step_options how = {.all_ranks = true, .flow = flow, .fold_flow = fold};
    struct step_result result;
    ck_assert_int_eq(step_simulate(&c->layout, &c->setting, &how, &result, NULL, NULL, &diags), STATUS_OK);
    return (double)result.step;
}

/* ---- the most crowded link */

/* Crossings of the most crowded link, of all queue pairs of all edges, in units of a link that is as fast as a NIC. */
static double crowd(const struct fabric *fabric, const struct network_flow_options *options, const struct collective_plan *plan)
{
    const struct router router = {.fabric = fabric, .routing = options->routing, .seed = options->seed};
    double *crossings = memory_new(fabric_links(fabric), sizeof *crossings), most = 0;
    for (size_t e = 0; e < plan->n_edges; e++)
        for (int q = 0; q < options->queue_pairs; q++) {
            struct path path;
            ck_assert(route_gpus(&router, plan->edges[e].from, plan->edges[e].to, (uint32_t)q, &path));
            for (int h = 0; h < path.n; h++)
                crossings[path.links[h]] += fabric->shape.nic_rate / fabric->rates[path.links[h]];
        }
    for (uint32_t l = 0; l < fabric_links(fabric); l++)
        most = crossings[l] > most ? crossings[l] : most;
    free(crossings);
    return most;
}

/* All channels of a ring begin at once and carry as much. The most crowded link is full and gives each queue pair on it its fair
 * share, which is the least of all, until the end: so the exchange takes as many times its time alone as queue pairs of that link
 * are more than those of a NIC. */
START_TEST(a_ring_takes_what_its_most_crowded_link_does)
{
    static const int queue_pairs[] = {1, 2, 4, 16};
    struct job_case c;
    struct diags diags = {0};
    struct program program;
    job_on(&c, "llama3-h100", 32, SHARDED | FEATURE_BIT(DP_OVERLAP), "tp=1,zero=1,mb=1");
    ck_assert_int_eq(program_build(&c.layout, &c.setting, DETAIL_CHUNK, false, &program, &diags), STATUS_OK);
    struct machine machine = machine_of(&c.layout, &c.setting);
    int gpus[256];
    for (int i = 0; i < 256; i++)
        gpus[i] = i;
    struct collective_plan plan;
    collective_plan_create(&c.fabric, SHAPE_RING, gpus, 256, false, &plan);
    struct network_flow_options options = {
        .fabric = &c.fabric, .routing = ROUTING_ECMP, .seed = (uint64_t)_i, .queue_pairs = queue_pairs[_i % 4]};
    struct network_flow *flow;
    ck_assert_int_eq(network_flow_create(&machine, &program, &options, &flow, &diags), STATUS_OK);
    struct network table = network_flow_table(flow);
    struct cost alone = collective_cost(&machine, COLLECTIVE_ALL_GATHER, machine.spans[GROUP_DP], 1e9);
    uint64_t word;
    nanos latency;
    table.begin_collective(table.state, 0,
                           &(struct work_collective){.collective = COLLECTIVE_ALL_GATHER, .group = GROUP_DP, .bytes = 1e9},
                           program.ranks[0].groups[GROUP_DP], 0);
    nanos end = transfer_taken(&table, &word, &latency);
    double crowded = crowd(&c.fabric, &options, &plan) / options.queue_pairs;
    ck_assert_double_ge(crowded, 1 - 1e-12);
    ck_assert_double_eq_tol((double)end, alone.bandwidth_s * crowded * 1e9, 3);
    collective_plan_free(&plan);
    network_flow_destroy(flow);
    program_free(&program);
    fabric_free(&c.fabric);
}
END_TEST

/* ---- the clusters of the catalog */

static const char *const clusters[] = {"megascale-a100", "llama3-h100", "selene-a100", "dgx-h100",
                                       "jean-zay-a100",  "alps",        "frontier",    "perlmutter"};
static const char *const layouts[] = {"tp=1,zero=3,mb=1", "tp=2,zero=3,mb=1", "tp=4,zero=3,mb=1",     "tp=8,zero=3,mb=1",
                                      "tp=1,zero=1,mb=1", "tp=4,zero=1,mb=1", "tp=4,cp=2,zero=1,mb=1"};
enum { N_CLUSTERS = sizeof clusters / sizeof *clusters, N_SHARDED = sizeof layouts / sizeof *layouts };

/* Exchanges among replicas beside computation, and (where they are not) matrix by matrix through the NIC of its owner. */
START_TEST(where_nothing_collides_it_is_the_analytic_step)
{
    for (int l = 0; l < N_SHARDED; l++)
        for (int overlapped = 0; overlapped < 2; overlapped++) {
            struct job_case c;
            job_on(&c, clusters[_i], 8, SHARDED | (overlapped ? FEATURE_BIT(DP_OVERLAP) : 0), layouts[l]);
            struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_STATIC};
            double analytic = step_of(&c, NULL, false);
            for (int fold = 0; fold < 2; fold++) {
                double flow = step_of(&c, &options, fold);
                ck_assert_msg(flow > 0.999 * analytic && flow < 1.001 * analytic, "%s %s: %g of %g", clusters[_i], layouts[l],
                              flow * 1e-9, analytic * 1e-9);
            }
            fabric_free(&c.fabric);
        }
}
END_TEST

/* Kernel by kernel a mixture's exchanges are on the links: a token goes to each node that has one of its experts once, to its own
 * rail there, in both networks. Routers that keep to groups of experts (deepseek-v3) and one that does not. */
START_TEST(dispatch_is_the_analytic_one)
{
    static const char *const models[] = {"deepseek-v3", "qwen3-235b-a22b"};
    struct job_case c;
    struct diags diags = {0};
    job_on(&c, "dgx-h100", 8, SHARDED, "tp=1,zero=1,mb=1");
    ck_assert_int_eq(catalog_model(models[_i], &c.model, &diags), STATUS_OK);
    ck_assert_int_eq(layout_parse("tp=1,ep=32,zero=1,mb=1", &c.layout, &diags), STATUS_OK);
    layout_complete(&c.layout, &c.setting);
    ck_assert_int_eq(layout_check(&c.layout, &c.setting, NULL, 0), LAYOUT_LEGAL);
    for (int fold = 0; fold < 2; fold++) {
        struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_STATIC};
        struct step_options how = {.all_ranks = true, .detail = DETAIL_KERNEL};
        struct step_result analytic, flow;
        ck_assert_int_eq(step_simulate(&c.layout, &c.setting, &how, &analytic, NULL, NULL, &diags), STATUS_OK);
        how.flow = &options;
        how.fold_flow = fold;
        ck_assert_int_eq(step_simulate(&c.layout, &c.setting, &how, &flow, NULL, NULL, &diags), STATUS_OK);
        ck_assert_double_eq_tol(flow.step_time_s / analytic.step_time_s, 1, 3e-3);
    }
    fabric_free(&c.fabric);
}
END_TEST

/* Queue pairs of one connection even out: 16 leave most of the bandwidth, where one lets three edges of a ring meet. */
START_TEST(hashing_costs_llama_3_little)
{
    struct job_case c;
    job_on(&c, "llama3-h100", 32, SHARDED | FEATURE_BIT(DP_OVERLAP), "tp=8,zero=3,mb=1");
    double analytic = step_of(&c, NULL, false);
    ck_assert_int_eq(c.cluster.queue_pairs, 16);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_ECMP, .queue_pairs = 16, .seed = seed};
        ck_assert_double_lt(step_of(&c, &options, true), 1.3 * analytic);
        options.queue_pairs = 1;
        ck_assert_double_gt(step_of(&c, &options, true), 1.5 * analytic);
    }
    fabric_free(&c.fabric);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("load_balance");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, a_ring_takes_what_its_most_crowded_link_does, 0, 8);
    tcase_add_loop_test(all, where_nothing_collides_it_is_the_analytic_step, 0, N_CLUSTERS);
    tcase_add_loop_test(all, dispatch_is_the_analytic_one, 0, 2);
    tcase_add_test(all, hashing_costs_llama_3_little);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
