/* A step packet by packet: alone the closed form and the stores of a packet; where nothing collides the step by flows; two on one
 * link by hand; where much collides, the same bytes twice. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "sim/network/placement.h"
#include "sim/step/step.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

static const feature_set OVERLAPPING = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(PP_OVERLAP);

static struct network_packets_options packets_of(double bytes, enum congestion congestion)
{
    struct network_packets_options options = {.with = packets_usual()};
    options.with.packet_bytes = bytes;
    options.with.xon_gap = 2 * bytes;
    options.with.congestion = congestion;
    return options;
}

/* What a transfer takes until it has left the links and its latency is over, with nothing else under way. */
static nanos transfer_end(struct network *table)
{
    uint64_t word;
    nanos latency, end = transfer_taken(table, &word, &latency);
    return end + latency;
}

/* ---- alone */

/* Messages and rings, one at a time. Over three switches a packet is stored before the three links behind the first; up to a
 * nanosecond for each time and each link that is rounded. The cables' 700 ns are part of the latency that the closed form has. */
START_TEST(alone_it_is_the_closed_form_and_stores)
{
    struct job_case c;
    struct diags diags = {0};
    struct program program;
    struct network_flow *flow;
    job_create(&c, "gpt-22b", OVERLAPPING, 8, 64, "tp=8,pp=4,dp=2,mb=1",
               "clos hosts:8 gpus:8 nics:8x200G nvlink:8x300GB/s tors:8 tor:2x200G/2x200G agg:64x200G");
    c.cluster.collective_algorithm = ALGORITHM_RING;
    ck_assert_int_eq(program_build(&c.layout, &c.setting, DETAIL_CHUNK, false, &program, &diags), STATUS_OK);
    struct machine machine = machine_of(&c.layout, &c.setting);
    struct network_packets_options packets = packets_of(4096, (enum congestion)_i);
    struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_STATIC, .packets = &packets};
    ck_assert_int_eq(network_flow_create(&machine, &program, &options, &flow, &diags), STATUS_OK);
    struct network table = network_flow_table(flow);
    double rate = c.cluster.nic_rate * c.cluster.net_fraction;
    nanos now = 0;
    for (int i = 0; i < 32; i++) {
        double bytes = 1000.0 * (1 << (i / 2));
        int rank = i % 16, group = program.ranks[rank].groups[GROUP_DP];
        const struct work_collective exchange = {.collective = COLLECTIVE_REDUCE_SCATTER, .group = GROUP_DP, .bytes = bytes};
        struct cost cost = i % 2 == 0 ? p2p_cost(&machine, bytes)
                                      : collective_cost(&machine, exchange.collective, machine.spans[GROUP_DP], bytes);
        if (i % 2 == 0)
            table.begin_message(table.state, now, rank, rank + 16, bytes, 7);
        else
            table.begin_collective(table.state, now, &exchange, group, 7);
        double late = (double)(transfer_end(&table) - now) - 1e9 * cost_seconds(cost);
        double packet = fmin(4096, cost.bandwidth_s * rate + 1);
        ck_assert_double_ge(late, -2);
        ck_assert_double_le(late, 3e9 * packet / rate + 8);
        now = packets_now(network_flow_packets(flow)) + 100000;
    }
    ck_assert_int_eq(network_flow_status(flow, &diags), STATUS_OK);
    ck_assert_uint_eq(packets_totals(network_flow_packets(flow)).marks, 0);
    network_flow_destroy(flow);
    program_free(&program);
    fabric_free(&c.fabric);
}
END_TEST

/* ---- together, by hand */

/* When this number of messages between ranks of different ToRs ends, all on one uplink. */
static nanos meeting_end(struct job_case *c, const struct network_packets_options *packets, int n, double bytes)
{
    struct diags diags = {0};
    struct program program;
    struct network_flow *flow;
    ck_assert_int_eq(program_build(&c->layout, &c->setting, DETAIL_CHUNK, false, &program, &diags), STATUS_OK);
    struct machine machine = machine_of(&c->layout, &c->setting);
    struct network_flow_options options = {.fabric = &c->fabric, .routing = ROUTING_STATIC, .packets = packets};
    ck_assert_int_eq(network_flow_create(&machine, &program, &options, &flow, &diags), STATUS_OK);
    struct network table = network_flow_table(flow);
    nanos last = 0;
    for (int i = 0; i < n; i++)
        table.begin_message(table.state, 1, i, 16 + i, bytes, (uint64_t)i);
    for (int i = 0; i < n; i++)
        last = nanos_later(last, transfer_end(&table));
    network_flow_destroy(flow);
    program_free(&program);
    return last;
}

/* N messages at once over one uplink of a NIC's rate: with pauses alone it is busy from the first packet to the last, so the last
 * ends when fair flows do, and three packets' stores later. */
START_TEST(messages_over_one_uplink_end_with_fair_flows)
{
    struct job_case c;
    job_create(&c, "gpt-22b", OVERLAPPING, 4, 64, "tp=8,pp=4,dp=1,mb=1",
               "clos hosts:4 gpus:8 nics:8x200G nvlink:8x300GB/s tors:1 tor:16x200G/1x200G agg:2x200G");
    struct network_packets_options packets = packets_of(4096, CONGESTION_NONE);
    double packet_ns = 4096e9 / (c.cluster.nic_rate * c.cluster.net_fraction);
    for (int n = 1; n <= 8; n += THINNED == 1 ? 1 : 7) {
        nanos fair = meeting_end(&c, NULL, n, 4e6), end = meeting_end(&c, &packets, n, 4e6);
        ck_assert_int_ge(end, fair);
        ck_assert_int_le(end, fair + (nanos)(3 * packet_ns) + 8);
    }
    fabric_free(&c.fabric);
}
END_TEST

/* ---- steps */

struct seen {
    struct packets_totals totals;
};

static void look(void *context, struct network_flow *network, const struct step_result *result)
{
    struct seen *seen = context;
    (void)result;
    if (network_flow_packets(network) == NULL)
        return;
    ck_assert_pstr_eq(packets_check(network_flow_packets(network)), NULL);
    seen->totals = packets_totals(network_flow_packets(network));
}

static nanos step_of(struct job_case *c, const struct network_flow_options *flow, struct seen *seen)
{
    struct diags diags = {0};
    struct step_options how = {.all_ranks = true, .flow = flow, .seen = look, .seen_context = seen};
    struct step_result result;
    enum status status = step_simulate(&c->layout, &c->setting, &how, &result, NULL, NULL, &diags);
    ck_assert_msg(status == STATUS_OK, "%s", diags.n_items ? diags.items[0].text : "");
    return result.step;
}

/* 32 GPUs on rails, a full bisection, routing by destination: nothing collides, and the step packet by packet is that by flows
 * within a thousandth and the closed form within half a percent. Rings as long transfers; and part by part, where each part
 * begins when the one before has come whole, its last packet stored in three switches: half a percent as well. Groups of one NIC
 * and of several. */
START_TEST(where_nothing_collides_all_agree)
{
    static const char *const layouts[] = {"tp=8,pp=2,dp=2,mb=1", "tp=8,pp=1,dp=4,mb=1", "tp=4,pp=2,dp=4,mb=1",
                                          "tp=8,pp=4,dp=1,mb=1"};
    struct job_case c;
    job_create(&c, "llama3-8b", OVERLAPPING, 4, 16, layouts[_i / 2],
               "clos hosts:4 gpus:8 nics:8x200G nvlink:8x300GB/s tors:8 tor:2x200G/2x200G agg:64x200G");
    struct network_packets_options packets = packets_of(65536, CONGESTION_DCQCN);
    struct network_flow_options options = {.fabric = &c.fabric, .routing = ROUTING_STATIC, .per_step = _i % 2};
    struct seen seen = {0};
    double analytic = (double)step_of(&c, NULL, &seen), flow = (double)step_of(&c, &options, &seen);
    options.packets = &packets;
    double packet = (double)step_of(&c, &options, &seen);
    ck_assert_double_eq_tol(packet / flow, 1, options.per_step ? 5e-3 : 1e-3);
    ck_assert_double_eq_tol(packet / analytic, 1, 5e-3);
    ck_assert_uint_gt(seen.totals.packets, 10000);
    ck_assert_int_eq(seen.totals.bytes_sent, seen.totals.bytes_arrived);
    fabric_free(&c.fabric);
}
END_TEST

/* Hosts at random over uplinks of half their NICs, hashed: what collides waits in queues, is marked and paused, and takes longer
 * than fair rates would. The same call twice is the same to the last packet; another seed marks others. */
START_TEST(what_collides_takes_longer_and_twice_the_same)
{
    struct job_case c;
    job_create(&c, "llama3-8b", OVERLAPPING, 8, 32, "tp=8,pp=1,dp=8,mb=1",
               "clos hosts:8 gpus:8 nics:8x200G nvlink:8x300GB/s tors:1 tor:16x200G/8x200G agg:64x200G");
    int placement[64];
    placement_fill(PLACEMENT_RANDOM, &c.layout, &c.fabric, 1, placement);
    struct network_packets_options packets = packets_of(131072, (enum congestion)_i);
    struct network_flow_options options = {
        .fabric = &c.fabric, .routing = ROUTING_ECMP, .queue_pairs = 2, .seed = 1, .placement = placement};
    struct seen seen = {0}, again = {0}, other = {0};
    double flow = (double)step_of(&c, &options, &seen);
    options.packets = &packets;
    nanos packet = step_of(&c, &options, &seen);
    ck_assert_double_ge((double)packet, flow * 0.999);
    ck_assert_double_le((double)packet, flow * 1.3);
    ck_assert_uint_gt(_i == CONGESTION_NONE ? seen.totals.pauses : seen.totals.marks, 1000);
    ck_assert_int_eq(step_of(&c, &options, &again), packet);
    ck_assert_uint_eq(again.totals.events, seen.totals.events);
    ck_assert_uint_eq(again.totals.marks, seen.totals.marks);
    packets.with.seed = 2;
    step_of(&c, &options, &other);
    ck_assert(_i == CONGESTION_NONE || other.totals.marks != seen.totals.marks);
    fabric_free(&c.fabric);
}
END_TEST

/* A step longer than packets can be followed ends with that as its reason. */
START_TEST(a_step_too_long_is_refused)
{
    struct job_case c;
    struct diags diags = {0};
    struct step_result result;
    job_create(&c, "gpt-22b", OVERLAPPING, 2, 16, "tp=8,pp=2,dp=1,mb=1",
               "clos hosts:2 gpus:8 nics:8x10kbps nvlink:8x300GB/s tors:8 planes:8 tor:2x10kbps");
    struct network_packets_options packets = packets_of(1000, CONGESTION_NONE);
    struct network_flow_options options = {.fabric = &c.fabric, .packets = &packets};
    struct step_options how = {.all_ranks = true, .flow = &options};
    ck_assert_int_eq(step_simulate(&c.layout, &c.setting, &how, &result, NULL, NULL, &diags), STATUS_FAILED);
    ck_assert_uint_eq(diags.n_errors, 1);
    ck_assert_msg(strstr(diags.items[0].text, "16 hours") != NULL, "%s", diags.items[0].text);
    diags_free(&diags);
    fabric_free(&c.fabric);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("network_packets");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, alone_it_is_the_closed_form_and_stores, 0, N_CONGESTIONS);
    tcase_add_test(all, messages_over_one_uplink_end_with_fair_flows);
    suite_add_rounds(all, where_nothing_collides_all_agree, 8, 0);
    tcase_add_loop_test(all, what_collides_takes_longer_and_twice_the_same, 0, N_CONGESTIONS);
    tcase_add_test(all, a_step_too_long_is_refused);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
