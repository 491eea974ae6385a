/* The network of flows: alone it is the closed form, exactly; collectives' edges; what faults and placements do to a step. */
#include <check.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/spec/catalog.h"
#include "sim/network/collective_flows.h"
#include "sim/network/placement.h"
#include "sim/step/step.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

static const feature_set OVERLAPPING = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(PP_OVERLAP);

/* ---- alone */

/* One message, one collective at a time on an idle fabric: the closed form's time to the nanosecond, whatever the algorithm. */
START_TEST(alone_it_is_the_closed_form)
{
    const bool whole_nodes = _i >= 4; /* data-parallel groups of eight ranks in each of two nodes */
    struct job_case c;
    struct diags diags = {0};
    struct program program;
    struct network_flow *flow;
    job_create(&c, "gpt-22b", OVERLAPPING, 16, 64, whole_nodes ? "tp=1,pp=8,dp=16,mb=1" : "tp=8,pp=4,dp=4,mb=1", NULL);
    c.cluster.collective_algorithm = (enum collective_algorithm)(_i % 4);
    ck_assert_int_eq(program_build(&c.layout, &c.setting, DETAIL_CHUNK, false, &program, &diags), STATUS_OK);
    struct machine machine = machine_of(&c.layout, &c.setting);
    struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_ADAPTIVE};
    ck_assert_int_eq(network_flow_create(&machine, &program, &options, &flow, &diags), STATUS_OK);
    struct network table = network_flow_table(flow);
    nanos now = 0;
    for (int i = 0; i < 40; i++) {
        double bytes = 1000.0 * (1 << (i % 20));
        int rank = 3 * i, kind = i % 2 ? GROUP_DP : GROUP_EMBEDDING, group = program.ranks[rank % 32].groups[kind];
        enum collective collective = i % 4 == 1 ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
        bool message = i < 20 || group < 0;
        nanos want = message ? nanos_from_seconds(cost_seconds(p2p_cost(&machine, bytes)))
                             : nanos_from_seconds(cost_seconds(
                                   collective_cost(&machine, collective, machine.spans[program.groups[group].kind], bytes)));
        if (!message && machine.spans[kind].sharing > 1)
            continue;
        if (message)
            table.begin_message(table.state, now, rank, rank + 32 < 128 ? rank + 32 : rank - 32, bytes, 7);
        else
            table.begin_collective(
                table.state, now,
                &(struct work_collective){.collective = collective, .group = (enum group_kind)kind, .bytes = bytes}, group, 7);
        uint64_t word = 0;
        nanos latency, end = transfer_taken(&table, &word, &latency);
        ck_assert_uint_eq(word, 7);
        ck_assert_int_le(llabs(end - now + latency - want), 1); /* two roundings */
        now = end + latency;
    }
    ck_assert_int_eq(network_flow_status(flow, &diags), STATUS_OK);
    network_flow_destroy(flow);
    program_free(&program);
    fabric_free(&c.fabric);
}
END_TEST

/* A step in which no two exchanges meet: the same in both networks, to a nanosecond per exchange in a row. */
START_TEST(a_pipeline_alone_takes_the_analytic_time)
{
    struct job_case c;
    job_create(&c, "gpt-22b", OVERLAPPING, 2, 16, "tp=8,pp=2,dp=1,mb=1", NULL);
    c.layout.features &= ~FEATURE_BIT(PP_OVERLAP);
    struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_STATIC};
    nanos analytic = job_step(&c, NULL), flow = job_step(&c, &options);
    ck_assert_int_le(llabs(analytic - flow), 2000);
    fabric_free(&c.fabric);
}
END_TEST

/* Nodes of two boards with a NIC for two GPUs: all replicas' groups exchange at once and share NICs as the closed form has it. */
START_TEST(shared_nics_are_shared_alike)
{
    static const char *const layouts[] = {"tp=8,pp=2,dp=2,mb=1", "tp=2,pp=2,dp=8,mb=1", "tp=1,pp=2,dp=16,mb=1",
                                          "tp=2,pp=2,dp=8,mb=1,zero=1"};
    for (int i = 0; i < 4; i++) {
        struct job_case c;
        struct diags diags = {0};
        job_create(&c, "gpt-22b", OVERLAPPING, 4, 64, layouts[i], NULL);
        fabric_free(&c.fabric);
        ck_assert_int_eq(catalog_cluster("jean-zay-a100", &c.cluster, &diags), STATUS_OK);
        c.cluster.nodes = 4;
        c.job.features = c.layout.features = FEATURE_BIT(FUSED_OPS);
        ck_assert_int_eq(fabric_create(&c.cluster, &c.fabric, &diags), STATUS_OK);
        struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_STATIC};
        double analytic = (double)job_step(&c, NULL), flow = (double)job_step(&c, &options);
        ck_assert_double_eq_tol(flow / analytic, 1, 1e-3);
        fabric_free(&c.fabric);
    }
}
END_TEST

/* More NICs than GPUs, and NICs of two ports: a connection has a queue pair on each, so nothing lies idle and the closed form's
 * rate is reached. */
START_TEST(all_nics_and_ports_are_used)
{
    static const struct {
        int nics, ports;
    } hosts[] = {{16, 1}, {8, 2}, {16, 2}, {4, 2}};
    for (int i = 0; i < 4; i++) {
        struct job_case c;
        struct diags diags = {0};
        job_create(&c, "gpt-22b", OVERLAPPING, 4, 64, "tp=8,pp=2,dp=2,mb=1", NULL);
        fabric_free(&c.fabric);
        c.cluster.nics_per_node = hosts[i].nics;
        c.cluster.nic_rate = 8 * 25e9 / hosts[i].nics;
        c.cluster.nic_ports = hosts[i].ports;
        c.job.features = c.layout.features = FEATURE_BIT(FUSED_OPS);
        ck_assert_int_eq(fabric_create(&c.cluster, &c.fabric, &diags), STATUS_OK);
        struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_STATIC};
        ck_assert_double_eq_tol((double)job_step(&c, &options) / (double)job_step(&c, NULL), 1, 1e-3);
        fabric_free(&c.fabric);
    }
}
END_TEST

/* ---- edges */

START_TEST(edges_by_hand)
{
    struct diags diags = {0};
    struct fabric fabric;
    struct collective_plan plan;
    const int gpus[] = {0, 1, 4, 5, 8, 9}; /* two in each of three hosts of four */
    ck_assert_int_eq(fabric_parse("clos hosts:4 gpus:4 nics:4x100G tor:16x100G nvlink:4x300GB/s", PLACE_NONE, &fabric, &diags),
                     STATUS_OK);
    struct group_span span = collective_span(&fabric, gpus, 6);
    ck_assert_int_eq(span.domains, 3);
    ck_assert_int_eq(span.ranks_per_domain, 2);
    ck_assert_int_eq(span.leaves, 1);
    ck_assert_int_eq(span.islands, 1);
    collective_plan_create(&fabric, SHAPE_RING, gpus, 6, false, &plan);
    static const struct collective_edge ring[] = {{0, 4}, {4, 8}, {8, 0}, {1, 5}, {5, 9}, {9, 1}};
    ck_assert_uint_eq(plan.n_edges, 6);
    for (int e = 0; e < 6; e++) {
        ck_assert_int_eq(plan.edges[e].from, ring[e].from);
        ck_assert_int_eq(plan.edges[e].to, ring[e].to);
    }
    collective_plan_free(&plan);
    collective_plan_create(&fabric, SHAPE_DISPATCH, gpus, 6, false, &plan);
    ck_assert_uint_eq(plan.n_edges, 12); /* each to its counterparts in two other hosts */
    ck_assert_double_eq(plan.share, 0.5);
    for (size_t e = 0; e < plan.n_edges; e++)
        ck_assert(plan.edges[e].from % 4 == plan.edges[e].to % 4 && plan.edges[e].from != plan.edges[e].to);
    collective_plan_free(&plan);
    collective_plan_create(&fabric, SHAPE_ALL_TO_ALL, gpus, 6, false, &plan);
    ck_assert_uint_eq(plan.n_edges, 6 * 4);
    for (size_t e = 0; e < plan.n_edges; e++)
        ck_assert_int_ne(plan.edges[e].from / 4, plan.edges[e].to / 4);
    collective_plan_free(&plan);
    fabric_free(&fabric);
}
END_TEST

/* Hosts of two islands of two: a group over both of a host crosses PCIe there, one inside an island does not. */
START_TEST(islands_are_counted)
{
    struct diags diags = {0};
    struct fabric fabric;
    const int both[] = {0, 1, 2, 3, 4, 5, 6, 7}, one[] = {0, 1, 4, 5}, apart[] = {0, 2, 4, 6};
    ck_assert_int_eq(fabric_parse("clos hosts:2 gpus:4 nics:4x100G tor:16x100G nvlink:2x300GB/s", PLACE_NONE, &fabric, &diags),
                     STATUS_OK);
    ck_assert_int_eq(collective_span(&fabric, both, 8).islands, 2);
    ck_assert_int_eq(collective_span(&fabric, one, 4).islands, 1);
    ck_assert_int_eq(collective_span(&fabric, apart, 4).islands, 2);
    fabric_free(&fabric);
}
END_TEST

/* Double binary trees: every node has one parent in each tree but its root, at most two children, and no node carries more than
 * four half-streams each way. */
START_TEST(trees_are_trees)
{
    struct diags diags = {0};
    struct fabric fabric;
    ck_assert_int_eq(fabric_parse("clos hosts:64 tor:64x100G", PLACE_NONE, &fabric, &diags), STATUS_OK);
    for (int n = 2; n <= 64; n++) {
        struct collective_plan plan;
        int gpus[64], out[64] = {0}, in[64] = {0};
        for (int i = 0; i < n; i++)
            gpus[i] = i;
        collective_plan_create(&fabric, SHAPE_TREE, gpus, n, false, &plan);
        ck_assert_uint_eq(plan.n_edges, 4 * (size_t)(n - 1));
        for (size_t e = 0; e < plan.n_edges; e++) {
            out[plan.edges[e].from]++;
            in[plan.edges[e].to]++;
        }
        for (int i = 0; i < n; i++) {
            ck_assert_int_eq(in[i], out[i]);
            ck_assert_int_ge(out[i], n > 2 ? 1 : 2);
            ck_assert_int_le(out[i], 4);
        }
        collective_plan_free(&plan);
    }
    fabric_free(&fabric);
}
END_TEST

/* Everybody sends to everybody of other hosts, once. */
START_TEST(all_to_all_is_all_pairs)
{
    struct diags diags = {0};
    struct fabric fabric;
    struct collective_plan plan;
    int gpus[64], met[64][64] = {{0}};
    ck_assert_int_eq(fabric_parse("clos hosts:16 gpus:4 nics:4x100G tor:64x100G nvlink:4x300GB/s", PLACE_NONE, &fabric, &diags),
                     STATUS_OK);
    for (int i = 0; i < 64; i++)
        gpus[i] = i;
    collective_plan_create(&fabric, SHAPE_ALL_TO_ALL, gpus, 64, false, &plan);
    ck_assert_uint_eq(plan.n_edges, 64 * 60);
    ck_assert_double_eq_tol(plan.share, 1.0 / 60, 1e-15);
    for (size_t e = 0; e < plan.n_edges; e++)
        met[plan.edges[e].from][plan.edges[e].to]++;
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 64; j++)
            ck_assert_int_eq(met[i][j], i / 4 != j / 4);
    collective_plan_free(&plan);
    fabric_free(&fabric);
}
END_TEST

/* One reduce-scatter of the first data-parallel group, from an empty network. */
static nanos exchange_alone(struct job_case *c, bool per_step, double bytes)
{
    struct diags diags = {0};
    struct program program;
    struct network_flow *flow;
    ck_assert_int_eq(program_build(&c->layout, &c->setting, DETAIL_CHUNK, false, &program, &diags), STATUS_OK);
    struct machine machine = machine_of(&c->layout, &c->setting);
    struct network_flow_options options = {.fabric = &c->fabric, .routing = ROUTING_STATIC, .per_step = per_step};
    ck_assert_int_eq(network_flow_create(&machine, &program, &options, &flow, &diags), STATUS_OK);
    struct network table = network_flow_table(flow);
    table.begin_collective(table.state, 0,
                           &(struct work_collective){.collective = COLLECTIVE_REDUCE_SCATTER, .group = GROUP_DP, .bytes = bytes},
                           program.ranks[0].groups[GROUP_DP], 7);
    nanos end = 0, next, latency;
    uint64_t word;
    while ((next = table.next(table.state)) != INT64_MAX)
        while (table.take(table.state, next, &word, &latency))
            end = next + latency;
    network_flow_destroy(flow);
    program_free(&program);
    return end;
}

/* Part by part a ring alone takes what it takes in one go, to a nanosecond a part. With edges of different speeds every edge e
 * ends its part k at max(its part k - 1, part k - 1 of edge e - 1) + what the part takes on e: worked out here by that
 * recurrence. */
START_TEST(rings_part_by_part)
{
    enum { HOSTS = 8, PARTS = HOSTS - 1 };
    struct job_case c;
    double bytes = 1e9, speed[HOSTS];
    job_create(&c, "gpt-22b", OVERLAPPING, HOSTS, 64, "tp=8,pp=1,dp=8,mb=1", NULL);
    nanos steady = exchange_alone(&c, false, bytes), parts = exchange_alone(&c, true, bytes);
    ck_assert_int_le(llabs(parts - steady), PARTS);
    struct machine machine = machine_of(&c.layout, &c.setting);
    struct group_span span = machine.spans[GROUP_DP];
    span.sharing = 1;
    struct cost cost = collective_time(machine.cluster, COLLECTIVE_REDUCE_SCATTER, span, bytes);
    double ends[HOSTS] = {0}, last = 0;
    for (int e = 0; e < HOSTS; e++) {
        speed[e] = e == 2 ? 0.25 : e == 5 ? 0.5 : 1;
        fabric_set_speed(&c.fabric, c.fabric.first[LAYER_NIC_UP] + (uint32_t)e * 8, speed[e]);
    }
    for (int k = 0; k < PARTS; k++) {
        double before[HOSTS];
        for (int e = 0; e < HOSTS; e++)
            before[e] = ends[e];
        for (int e = 0; e < HOSTS; e++) {
            double arrived = k > 0 ? before[(e + HOSTS - 1) % HOSTS] : 0;
            ends[e] = (before[e] > arrived ? before[e] : arrived) + cost.bandwidth_s / PARTS / speed[e];
            last = ends[e] > last ? ends[e] : last;
        }
    }
    parts = exchange_alone(&c, true, bytes);
    nanos want = nanos_from_seconds(last + cost_seconds(cost) - cost.bandwidth_s);
    ck_assert_int_le(llabs(parts - want), 4 * PARTS);
    ck_assert_int_ge(parts, exchange_alone(&c, false, bytes) - PARTS);
    fabric_free(&c.fabric);
}
END_TEST

/* In a whole step, where rings meet messages and one another: part by part is no quicker than in one go, and not much slower. */
START_TEST(a_step_part_by_part)
{
    struct job_case c;
    job_create(&c, "gpt-22b", OVERLAPPING, 32, 64, "tp=8,pp=4,dp=8,mb=1", NULL);
    struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_ECMP, .seed = 1};
    nanos steady = job_step(&c, &options);
    options.per_step = true;
    nanos parts = job_step(&c, &options);
    ck_assert_int_ge(parts, steady - steady / 1000);
    ck_assert_int_le(parts, steady + steady / 10);
    fabric_free(&c.fabric);
}
END_TEST

/* ---- faults and placements */

/* A NIC at a quarter of its rate slows the step; a failed uplink is routed around and costs at most a little; a NIC that is down
 * shares the work with its neighbour, and a host without any NIC is an error that says which ranks. */
START_TEST(faults_on_the_fabric)
{
    struct job_case c;
    struct diags diags = {0};
    job_create(&c, "gpt-22b", OVERLAPPING, 128, 256, "tp=8,pp=4,dp=32,mb=1", NULL);
    struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_ADAPTIVE};
    nanos healthy = job_step(&c, &options);
    uint32_t up = c.fabric.first[LAYER_NIC_UP] + 80, down = c.fabric.first[LAYER_NIC_DOWN] + 80;
    fabric_set_speed(&c.fabric, up, 0.1);
    fabric_set_speed(&c.fabric, down, 0.1);
    nanos slow = job_step(&c, &options);
    ck_assert_int_gt(slow, healthy + healthy / 100);
    fabric_set_speed(&c.fabric, up, 1);
    fabric_set_speed(&c.fabric, down, 1);
    fabric_set_speed(&c.fabric, c.fabric.first[LAYER_TOR_UP] + 3, 0);
    fabric_set_speed(&c.fabric, c.fabric.first[LAYER_TOR_DOWN] + 3, 0);
    nanos rerouted = job_step(&c, &options);
    ck_assert_int_lt(rerouted, healthy + healthy / 50);
    fabric_set_speed(&c.fabric, up, 0);
    ck_assert_int_gt(job_step(&c, &options), healthy + healthy / 200);
    for (uint32_t nic = 0; nic < 8; nic++)
        fabric_set_speed(&c.fabric, c.fabric.first[LAYER_NIC_UP] + 80 + nic, 0);
    struct step_options how = {.all_ranks = true, .flow = &options};
    struct step_result result;
    ck_assert_int_eq(step_simulate(&c.layout, &c.setting, &how, &result, NULL, NULL, &diags), STATUS_FAILED);
    ck_assert_uint_eq(diags.n_errors, 1);
    diags_free(&diags);
    fabric_free(&c.fabric);
}
END_TEST

/* 4.096 us x 2^20 = 4.295 s a try: 10 ms cost as much as 4 s, 5 s two tries, 31 s more than seven. Adaptive: 1/128, 3/128, ... of
 * it. */
START_TEST(retransmission_by_hand)
{
    nanos t = retransmit_interval(20);
    ck_assert_int_eq(t, 4294967296);
    ck_assert_int_eq(retransmit_stall(10000000, 20, false), t);
    ck_assert_int_eq(retransmit_stall(4000000000, 20, false), t);
    ck_assert_int_eq(retransmit_stall(5000000000, 20, false), 2 * t);
    ck_assert_int_eq(retransmit_stall(7 * t, 20, false), 7 * t);
    ck_assert_int_eq(retransmit_stall(7 * t + 1, 20, false), -1);
    ck_assert_int_eq(retransmit_stall(10000000, 20, true), t / 128);
    ck_assert_int_eq(retransmit_stall(50000000, 20, true), 3 * (t / 128));
    ck_assert_int_eq(retransmit_stall(31000000000, 20, true), -1);
}
END_TEST

/* A flap in a step that uses the link: the step is longer by about the stall; after the step: not at all. */
START_TEST(a_flap_stalls_the_step)
{
    struct job_case c;
    job_create(&c, "gpt-22b", OVERLAPPING, 4, 16, "tp=8,pp=4,dp=1,mb=1", NULL);
    struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_STATIC};
    nanos healthy = job_step(&c, &options);
    nanos stall = 3 * healthy;
    struct link_event events[] = {{healthy / 2, c.fabric.first[LAYER_NIC_UP] + 8, 0},
                                  {healthy / 2 + stall, c.fabric.first[LAYER_NIC_UP] + 8, 1}};
    options.events = events;
    options.n_events = 2;
    nanos flapped = job_step(&c, &options);
    ck_assert_int_gt(flapped, healthy + stall / 2);
    ck_assert_int_le(flapped, healthy + stall);
    events[0].at = 10 * healthy;
    events[1].at = 11 * healthy;
    ck_assert_int_eq(job_step(&c, &options), healthy);
    fabric_free(&c.fabric);
}
END_TEST

static int host_ascending(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Whatever the order, every rank has a GPU of its own, and hosts keep their ranks together. */
START_TEST(placements_are_permutations)
{
    struct job_case c;
    job_create(&c, "gpt-22b", OVERLAPPING, 128, 256, "tp=8,pp=4,dp=32,mb=1", NULL);
    for (int p = 0; p < N_PLACEMENTS; p++) {
        int gpus[1024], sorted[1024];
        placement_fill((enum placement)p, &c.layout, &c.fabric, 3, gpus);
        for (int r = 0; r < 1024; r++) {
            sorted[r] = gpus[r];
            ck_assert_int_eq(gpus[r] % 8, r % 8);
            ck_assert_int_eq(gpus[r] / 8, gpus[r / 8 * 8] / 8);
        }
        qsort(sorted, 1024, sizeof sorted[0], host_ascending);
        for (int r = 0; r < 1024; r++)
            ck_assert_int_eq(sorted[r], r);
    }
    fabric_free(&c.fabric);
}
END_TEST

/* Gradients of 64 replicas, all groups at once: the time until the last has them. */
static nanos gradients_exchanged(struct job_case *c, enum placement placement, double bytes, uint64_t seed)
{
    struct diags diags = {0};
    struct program program;
    struct network_flow *flow;
    int *gpus = memory_new((size_t)c->setting.gpus, sizeof *gpus);
    ck_assert_int_eq(program_build(&c->layout, &c->setting, DETAIL_CHUNK, false, &program, &diags), STATUS_OK);
    struct machine machine = machine_of(&c->layout, &c->setting);
    placement_fill(placement, &c->layout, &c->fabric, seed, gpus);
    struct network_flow_options options = {.fabric = &c->fabric, .routing = ROUTING_ECMP, .seed = seed, .placement = gpus};
    ck_assert_int_eq(network_flow_create(&machine, &program, &options, &flow, &diags), STATUS_OK);
    struct network table = network_flow_table(flow);
    for (int g = 0; g < program.n_groups; g++)
        if (program.groups[g].kind == GROUP_DP)
            table.begin_collective(
                table.state, 0,
                &(struct work_collective){.collective = COLLECTIVE_REDUCE_SCATTER, .group = GROUP_DP, .bytes = bytes}, g,
                (uint64_t)g);
    nanos end = 0, next, latency;
    uint64_t word;
    while ((next = table.next(table.state)) != INT64_MAX)
        while (table.take(table.state, next, &word, &latency))
            end = next + latency > end ? next + latency : end;
    network_flow_destroy(flow);
    program_free(&program);
    free(gpus);
    return end;
}

/* MegaScale section 3.6: it schedules data-intensive nodes under the same ToRs, and forms data-parallel groups before pipelines,
 * so that gradients do not cross uplinks. Here: groups of 64 under a set of 64 hosts take the closed form's time whatever the
 * hash; where hosts come in runs from all over the fabric, or one by one, rings cross uplinks, collide there, and their slowest
 * edge holds them up. */
START_TEST(data_parallel_groups_belong_under_one_set_of_tors)
{
    struct job_case c;
    job_create(&c, "gpt-22b", OVERLAPPING, 256, 256, "tp=8,pp=4,dp=64,mb=1", NULL);
    struct machine machine = machine_of(&c.layout, &c.setting);
    double bytes = 1e9;
    nanos alone =
        nanos_from_seconds(cost_seconds(collective_cost(&machine, COLLECTIVE_REDUCE_SCATTER, machine.spans[GROUP_DP], bytes)));
    for (uint64_t seed = 1; seed <= 3; seed++) {
        nanos took[N_PLACEMENTS];
        for (int p = 0; p < N_PLACEMENTS; p++)
            took[p] = gradients_exchanged(&c, (enum placement)p, bytes, seed);
        ck_assert_int_le(llabs(took[PLACEMENT_DATA_FIRST] - alone), 1);
        ck_assert_int_ge(took[PLACEMENT_PIPELINE_FIRST], took[PLACEMENT_DATA_FIRST]);
        ck_assert_int_gt(took[PLACEMENT_FRAGMENTED], took[PLACEMENT_DATA_FIRST] * 5 / 4);
        ck_assert_int_gt(took[PLACEMENT_RANDOM], took[PLACEMENT_FRAGMENTED]);
    }
    fabric_free(&c.fabric);
}
END_TEST

/* A whole step under a placement, and what the worst link carried. */
struct placed_step {
    struct step_result result;
    struct hot_link worst;
    uint32_t dp_over_uplinks; /* edges of data-parallel groups over the uplinks that held transfers back */
};

static void placed_seen(void *context, struct network_flow *network, const struct step_result *result)
{
    struct placed_step *step = context;
    const struct fabric *fabric = network_flow_fabric(network);
    struct link_usage *usage = memory_new(fabric_links(fabric), sizeof *usage);
    struct hot_link hot[HOTTEST_MAX];
    (void)result;
    network_flow_usage(network, usage);
    int n = network_flow_hottest(network, usage, HOTTEST_MAX, hot);
    ck_assert_int_gt(n, 0);
    step->worst = hot[0];
    for (int i = 0; i < n; i++)
        if (fabric_layer_of(fabric, hot[i].link) >= LAYER_TOR_UP)
            step->dp_over_uplinks += hot[i].collectives[GROUP_DP];
    free(usage);
}

static struct placed_step step_placed(struct job_case *c, enum placement placement, uint64_t seed)
{
    struct diags diags = {0};
    struct placed_step step = {.dp_over_uplinks = 0};
    int *gpus = memory_new((size_t)c->setting.gpus, sizeof *gpus);
    placement_fill(placement, &c->layout, &c->fabric, seed, gpus);
    struct network_flow_options flow = {.fabric = &c->fabric, .routing = ROUTING_ECMP, .seed = seed, .placement = gpus};
    struct step_options how = {.all_ranks = true, .flow = &flow, .seen = placed_seen, .seen_context = &step};
    ck_assert_int_eq(step_simulate(&c->layout, &c->setting, &how, &step.result, NULL, NULL, &diags), STATUS_OK);
    free(gpus);
    return step;
}

/* The same on whole steps of 1,024 ranks, pipeline messages and gradients at once, 16 hosts to a set of ToRs, uplinks hashed: 1:1
 * and 4:1 over-subscribed. MegaScale's placement is the quickest, and why shows: no data-parallel edge leaves its ToRs, so what
 * the uplinks carry is messages, short and mostly hidden. In the other placements rings meet on uplinks, the slowest edge holds
 * up each, and exposed data-parallel time is what grows. Scattering host by host is the worst: every edge crosses. With fewer
 * uplinks all but MegaScale's lose more. */
START_TEST(whole_steps_want_data_parallel_groups_under_one_set)
{
    static const char *const fabrics[] = {
        "clos hosts:128 gpus:8 nics:8x200G tors:8 tor:16x200G/16x200G agg:64x200G nvlink:8x245GB/s",
        "clos hosts:128 gpus:8 nics:8x200G tors:8 tor:16x200G/4x200G agg:64x200G nvlink:8x245GB/s"};
    double lost[2][N_PLACEMENTS];
    for (int f = 0; f < 2; f++) {
        struct job_case c;
        struct diags diags = {0};
        struct placed_step took[N_PLACEMENTS];
        job_create(&c, "gpt-22b", OVERLAPPING, 128, 128, "tp=8,pp=8,dp=16,mb=1", NULL);
        fabric_free(&c.fabric);
        ck_assert_int_eq(fabric_parse(fabrics[f], PLACE_NONE, &c.fabric, &diags), STATUS_OK);
        for (int p = 0; p < N_PLACEMENTS; p++)
            took[p] = step_placed(&c, (enum placement)p, 1);
        const struct placed_step *best = &took[PLACEMENT_DATA_FIRST];
        ck_assert_uint_eq(best->dp_over_uplinks, 0);
        ck_assert_uint_eq(best->worst.collectives[GROUP_DP], 0);
        for (int p = 0; p < N_PLACEMENTS; p++) {
            lost[f][p] = took[p].result.step_time_s - best->result.step_time_s;
            if (p == PLACEMENT_DATA_FIRST)
                continue;
            ck_assert_int_gt(took[p].result.step, best->result.step);
            ck_assert_uint_gt(took[p].dp_over_uplinks, 0);
            ck_assert_double_gt(took[p].result.breakdown.s[CLASS_DP_COMM], best->result.breakdown.s[CLASS_DP_COMM]);
            ck_assert_int_le(took[p].result.step, took[PLACEMENT_RANDOM].result.step);
        }
        fabric_free(&c.fabric);
    }
    for (int p = PLACEMENT_PIPELINE_FIRST; p < N_PLACEMENTS; p++)
        ck_assert_double_gt(lost[1][p], lost[0][p]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("network_flow");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, alone_it_is_the_closed_form, 0, 8); /* algorithms, for two layouts */
    tcase_add_test(all, a_pipeline_alone_takes_the_analytic_time);
    tcase_add_test(all, shared_nics_are_shared_alike);
    tcase_add_test(all, all_nics_and_ports_are_used);
    tcase_add_test(all, edges_by_hand);
    tcase_add_test(all, islands_are_counted);
    tcase_add_test(all, trees_are_trees);
    tcase_add_test(all, all_to_all_is_all_pairs);
    tcase_add_test(all, rings_part_by_part);
    tcase_add_test(all, a_step_part_by_part);
    tcase_add_test(all, faults_on_the_fabric);
    tcase_add_test(all, retransmission_by_hand);
    tcase_add_test(all, a_flap_stalls_the_step);
    tcase_add_test(all, placements_are_permutations);
    tcase_add_test(all, data_parallel_groups_belong_under_one_set_of_tors);
    tcase_add_test(all, whole_steps_want_data_parallel_groups_under_one_set);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
