/* Packets on dragonflies: channels that rise along every way, transfers alone by hand, and circles of ways that do not close. */
#include <check.h>
#include <stdlib.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "sim/fabric/load.h"
#include "sim/fabric/packets_internal.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

/* ---- channels */

/* The channel of a port among those of its link. */
static uint32_t channel_of(const struct packets *p, uint32_t port)
{
    uint32_t channel = 0;
    while (channel < link_ports(p, link_of(p, port)) && port_of(p, link_of(p, port), channel) != port)
        channel++;
    ck_assert_uint_lt(channel, link_ports(p, link_of(p, port)));
    return channel;
}

/* Of all pairs, by every routing: the ports are those of the path's links, and (channel, local before global) rises along it.
 * Returns the highest channel. */
static uint32_t channels_checked(const struct fabric *fabric, int step)
{
    struct packets_parameters with = packets_of_4000(CONGESTION_NONE);
    uint32_t *loads = memory_new(fabric_links(fabric), sizeof *loads), highest = 0;
    with.switch_buffer = 1e9;
    struct packets *p = packets_created(fabric, &with);
    for (int routing = 0; routing < N_ROUTINGS; routing++)
        for (int from = 0; from < fabric->n_gpus; from += step)
            for (int to = 0; to < fabric->n_gpus; to++) {
                struct router router = {.fabric = fabric, .routing = (enum routing)routing, .seed = 5, .load = loads};
                struct path path;
                int before = -1;
                if (!route_gpus(&router, from, to, 0, &path))
                    continue;
                uint32_t connection = packets_open(p, path.links, path.n, 0), first = p->connections[connection].first_hop;
                for (int h = 0; h < path.n; h++) {
                    ck_assert_uint_eq(link_of(p, p->hops[first + (uint32_t)h]), path.links[h]);
                    if (path.links[h] < fabric->first[LAYER_LOCAL_OUT])
                        continue;
                    uint32_t channel = channel_of(p, p->hops[first + (uint32_t)h]);
                    int rank = (int)channel * 2 + (path.links[h] >= fabric->first[LAYER_GLOBAL_OUT]);
                    ck_assert_int_gt(rank, before);
                    before = rank;
                    highest = channel > highest ? channel : highest;
                    loads[path.links[h]]++;
                }
            }
    free(loads);
    packets_destroy(p);
    return highest;
}

START_TEST(channels_rise_along_every_way)
{
    static const char *const texts[] = {"dragonfly switch:2x200G", "dragonfly groups:5 group:6 switch:2x200G pair:2 local:2x100G",
                                        "dragonfly groups:1 group:5 switch:2x200G", "dragonfly switch:1x200G"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fabric fabric = fabric_parsed(texts[i]);
        ck_assert_uint_eq(channels_checked(&fabric, 1), fabric.n_pods > 1 ? 2 : 1); /* Valiant's three; two in one group */
        fabric_free(&fabric);
    }
}
END_TEST

START_TEST(channels_rise_where_cables_have_failed)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:6 group:5 switch:1x200G pair:2");
    struct random_stream s = random_stream_named((uint64_t)_i, 0x6370, 0);
    for (uint32_t l = fabric.first[LAYER_LOCAL_OUT]; l < fabric_links(&fabric); l++)
        if (random_uniform(&s) < 0.1 * (1 + _i % 5))
            fabric_set_speed(&fabric, l, 0);
    ck_assert_uint_gt(channels_checked(&fabric, 1), 2);
    fabric_free(&fabric);
}
END_TEST

/* ---- alone */

/* 250 packets of 160 ns, stored at each switch, over cables of 700 ns: by every way that a routing takes. */
START_TEST(alone_a_transfer_takes_bytes_over_rate)
{
    struct fabric fabric = fabric_parsed("dragonfly switch:2x200G");
    for (int routing = 0; routing < N_ROUTINGS; routing++)
        for (int to = 1; to < fabric.n_gpus; to += 7) {
            uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads), who;
            struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads};
            struct packets_parameters with = packets_of_4000((enum congestion)_i);
            struct packets *packets = packets_created(&fabric, &with);
            struct path path;
            ck_assert(route_gpus(&router, 0, to, 0, &path));
            packets_send(packets, packets_open(packets, path.links, path.n, 0), 1e6);
            ck_assert_int_eq(packets_next(packets, &who), PACKETS_ENDED);
            ck_assert_int_eq(packets_now(packets), 250 * 160 + (path.n - 1) * 160 + path.n * 700);
            ck_assert_uint_eq(packets_totals(packets).marks + packets_totals(packets).pauses, 0);
            packets_destroy(packets);
            free(loads);
        }
    fabric_free(&fabric);
}
END_TEST

/* ---- in company */

/* Circles of ways: in a group of three switches each sends to the next over the third, twice as much as its cables carry; groups
 * that send to the next over a third one; and any to any. Buffers are so small that everybody is paused, and everything arrives.
 */
static const struct {
    const char *fabric;
    enum load_pattern pattern;
    int stride;
} circles[] = {
    {"dragonfly groups:1 group:3 switch:4x100G", LOAD_SHIFT, 4},
    {"dragonfly groups:1 group:5 switch:4x100G", LOAD_SHIFT, 8},
    {"dragonfly groups:4 group:2 switch:4x100G pair:1", LOAD_SHIFT, 8},
    {"dragonfly switch:2x100G", LOAD_SHIFT, 8},
    {"dragonfly switch:2x100G", LOAD_ALL_TO_ALL, 0},
    {"dragonfly switch:2x100G", LOAD_INCAST, 0},
};

START_TEST(circles_do_not_close)
{
    struct fabric fabric = fabric_parsed(circles[_i].fabric);
    uint64_t pauses = 0;
    for (int routing = 0; routing < N_ROUTINGS; routing++) {
        struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .seed = 1};
        struct packets_parameters with = packets_of_4000(CONGESTION_NONE);
        struct load load = {
            .pattern = circles[_i].pattern, .stride = circles[_i].stride, .bytes = 2e6, .seed = 1, .packets = &with};
        struct load_result result;
        struct diags diags = {0};
        with.xoff = 16e3;
        ck_assert_int_eq(load_run(&router, &load, &result, &diags), STATUS_OK);
        struct packets_totals totals = packets_totals(result.packets.packets);
        ck_assert_pstr_eq(packets_check(result.packets.packets), NULL);
        ck_assert_int_eq(totals.bytes_sent, totals.bytes_arrived);
        pauses += totals.pauses;
        load_result_free(&result);
    }
    ck_assert_uint_gt(pauses, 0);
    fabric_free(&fabric);
}
END_TEST

/* Any to any over what is left of the cables, again and again, with or without DCQCN: nothing is lost, books agree all along. */
START_TEST(nothing_is_lost_where_cables_have_failed)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:6 group:4 switch:2x200G pair:2");
    struct random_stream s = random_stream_named((uint64_t)_i, 0x6c6f, 0);
    for (uint32_t l = fabric.first[LAYER_LOCAL_OUT]; l < fabric_links(&fabric); l++)
        if (random_uniform(&s) < 0.2)
            fabric_set_speed(&fabric, l, random_below(&s, 2) ? 0 : 0.5);
    struct packets_parameters with = packets_of_4000(_i % 2 ? CONGESTION_DCQCN : CONGESTION_NONE);
    struct router router = {.fabric = &fabric, .routing = ROUTING_VALIANT, .seed = (uint64_t)_i};
    with.pfc_alpha = 0.01;
    struct packets *packets = packets_created(&fabric, &with);
    uint32_t who;
    for (uint32_t i = 0; i < 300; i++) {
        struct path path;
        int from = (int)random_below(&s, (uint64_t)fabric.n_gpus), to = (int)random_below(&s, (uint64_t)fabric.n_gpus);
        if (route_gpus(&router, from, to, i, &path))
            packets_send(packets, packets_open(packets, path.links, path.n, 0), (double)(1 + random_below(&s, 1000000)));
    }
    while (packets_next(packets, &who) != PACKETS_IDLE)
        ck_assert_pstr_eq(packets_check(packets), NULL);
    struct packets_totals totals = packets_totals(packets);
    ck_assert_int_eq(totals.bytes_sent, totals.bytes_arrived);
    ck_assert_int_gt(totals.bytes_sent, 0);
    packets_destroy(packets);
    fabric_free(&fabric);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dragonfly_packets");
    TCase *all = tcase_create("all");
    tcase_add_test(all, channels_rise_along_every_way);
    tcase_add_loop_test(all, channels_rise_where_cables_have_failed, 0, 10);
    tcase_add_loop_test(all, alone_a_transfer_takes_bytes_over_rate, 0, N_CONGESTIONS);
    tcase_add_loop_test(all, circles_do_not_close, 0, (int)(sizeof circles / sizeof *circles));
    tcase_add_loop_test(all, nothing_is_lost_where_cables_have_failed, 0, 6);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
