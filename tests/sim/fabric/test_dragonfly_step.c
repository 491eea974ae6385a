/* Steps on dragonflies: alone the flow network is the closed form, there too; groups whose cables are few make steps longer. */
#include <check.h>
#include <stdlib.h>

#include "model/cost/kernel/collective.h"
#include "sim/network/network_flow.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

/* GPUs of megascale's nodes on a dragonfly of four nodes to a group; the closed forms know it, too. */
static void dragonfly_job(struct job_case *c, feature_set features, int nodes, int batch, const char *layout)
{
    struct diags diags = {0};
    job_create(c, "gpt-22b", features, nodes, batch, layout, NULL);
    fabric_free(&c->fabric);
    c->cluster.topology = TOPOLOGY_DRAGONFLY;
    c->cluster.fabric_layers = c->cluster.leaf_nodes = c->cluster.pod_nodes = 0;
    c->cluster.nic_split = 1;
    c->cluster.rails = RAILS_YES;
    c->cluster.dragonfly = (struct dragonfly){.groups = (nodes + 3) / 4,
                                              .switches_per_group = 16,
                                              .endpoints_per_switch = 2,
                                              .local_links = 4,
                                              .global_links_per_switch = 64,
                                              .global_links = 64,
                                              .link_rate = 25e9};
    ck_assert_int_eq(fabric_create(&c->cluster, &c->fabric, &diags), STATUS_OK);
    ck_assert_int_eq(fabric_check(&c->fabric, &diags), STATUS_OK);
}

/* Collectives one at a time on an idle dragonfly, over groups of 2 nodes that lie in different groups of it: the closed form's
 * time to the nanosecond, latencies of local and global hops included, whatever the algorithm. */
START_TEST(alone_it_is_the_closed_form)
{
    struct job_case c;
    struct diags diags = {0};
    struct program program;
    struct network_flow *flow;
    dragonfly_job(&c, FEATURE_BIT(FLASH_ATTENTION2), 16, 64, "tp=8,pp=4,dp=4,mb=1");
    c.cluster.collective_algorithm = (enum collective_algorithm)_i;
    ck_assert_int_eq(program_build(&c.layout, &c.setting, DETAIL_CHUNK, false, &program, &diags), STATUS_OK);
    struct machine machine = machine_of(&c.layout, &c.setting);
    struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_ADAPTIVE};
    ck_assert_int_eq(network_flow_create(&machine, &program, &options, &flow, &diags), STATUS_OK);
    struct network table = network_flow_table(flow);
    nanos now = 0;
    ck_assert_int_eq(machine.spans[GROUP_EMBEDDING].pods, 2);
    for (int i = 0; i < 20; i++) {
        double bytes = 1000.0 * (1 << i);
        int kind = i % 2 ? GROUP_DP : GROUP_EMBEDDING, group = program.ranks[i % 8].groups[kind];
        enum collective collective = i % 4 == 1 ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
        nanos want = nanos_from_seconds(cost_seconds(collective_cost(&machine, collective, machine.spans[kind], bytes)));
        table.begin_collective(
            table.state, now, &(struct work_collective){.collective = collective, .group = (enum group_kind)kind, .bytes = bytes},
            group, 7);
        uint64_t word = 0;
        nanos latency, end = transfer_taken(&table, &word, &latency);
        ck_assert_int_le(llabs(end - now + latency - want), 1); /* two roundings */
        now = end + latency;
    }
    ck_assert_int_eq(network_flow_status(flow, &diags), STATUS_OK);
    network_flow_destroy(flow);
    program_free(&program);
    fabric_free(&c.fabric);
}
END_TEST

/* A step over four groups whose cables are many: the same in both networks. With two cables between groups, straight ways make
 * it longer, and adaptive ones at most as long. */
START_TEST(a_step_over_groups)
{
    struct job_case c;
    dragonfly_job(&c, FEATURE_BIT(FUSED_OPS), 16, 64, "tp=8,pp=2,dp=8,mb=1");
    struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_ADAPTIVE, .queue_pairs = 2};
    double analytic = (double)job_step(&c, NULL);
    ck_assert_double_eq_tol((double)job_step(&c, &options) / analytic, 1, 1e-3);
    struct fabric narrow =
        fabric_parsed("dragonfly hosts:16 gpus:8 nics:8x200G rails:8 group:16 switch:2x200G local:4x200G pair:2");
    options.fabric = &narrow;
    options.routing = ROUTING_ECMP;
    double straight = (double)job_step(&c, &options);
    options.routing = ROUTING_ADAPTIVE;
    double adaptive = (double)job_step(&c, &options);
    ck_assert_double_gt(straight, 1.05 * analytic);
    ck_assert_double_lt(adaptive, straight);
    fabric_free(&narrow);
    fabric_free(&c.fabric);
}
END_TEST

/* Four nodes per group: neighbours in a pipeline are one cable apart and replicas three, and the closed form adds the switches of
 * that number to the time of a hop. */
START_TEST(hops_of_the_closed_form)
{
    struct job_case c;
    dragonfly_job(&c, FEATURE_BIT(FUSED_OPS), 16, 64, "tp=8,pp=2,dp=8,mb=1");
    c.cluster.hop_latency_s = 1e-3;
    struct group_span span = {.ranks = 2, .ranks_per_domain = 1, .domains = 2, .leaves = 1, .pods = 1, .sharing = 1};
    double none = collective_time(&c.cluster, COLLECTIVE_ALL_GATHER, span, 1).latency_s;
    span.leaves = 2;
    ck_assert_double_eq_tol(collective_time(&c.cluster, COLLECTIVE_ALL_GATHER, span, 1).latency_s - none, 1e-3, 1e-9);
    span.pods = 2;
    ck_assert_double_eq_tol(collective_time(&c.cluster, COLLECTIVE_ALL_GATHER, span, 1).latency_s - none, 3e-3, 1e-9);
    fabric_free(&c.fabric);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dragonfly_step");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, alone_it_is_the_closed_form, 0, 4);
    tcase_add_test(all, a_step_over_groups);
    tcase_add_test(all, hops_of_the_closed_form);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
