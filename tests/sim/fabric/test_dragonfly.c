/* Dragonflies: counts and cables against closed forms, the bisection against all ways to part the switches, ways between all
 * switches. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/spec/catalog.h"
#include "sim/fabric/dragonfly.h"
#include "tests/sim/fabric/dragonfly_ways.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

/* ---- counts */

/* NICs and cables between the halves of the largest dragonfly, whose groups g are odd. Of the one in the middle the first half
 * of the switches is with the groups before it: cables between those and the groups after it, between the halves of it, and of
 * those of its 2 (g / 2) global cables whose switch is with the other half. Or all of it is with the one, where half of its NICs
 * cross. */
static int cables_of_halves(int p)
{
    int a = 2 * p, before = p * p, parted = before * before + p * p;
    for (int other = 0; other < 2 * before; other++)
        parted += (other < before) != (other % a < p);
    int whole = before * (before + 1) + a * p / 2;
    return parted < whole ? parted : whole;
}

/* The paper's examples: p = h = 2, a = 4 has 72 terminals (figure 5), p = h = 4, a = 8 has 1,056 (section 4.2). */
START_TEST(the_largest_of_the_paper)
{
    for (int p = 1; p <= 6; p++) {
        char text[64];
        snprintf(text, sizeof text, "dragonfly switch:%dx100G", p);
        struct fabric fabric = fabric_parsed(text);
        struct fabric_counts counts = fabric_counts(&fabric);
        struct diags diags = {0};
        int a = 2 * p, g = a * p + 1;
        ck_assert_int_eq(fabric_check(&fabric, &diags), STATUS_OK);
        ck_assert_int_eq(counts.pods, g);
        ck_assert_int_eq(counts.tors, g * a);
        ck_assert_int_eq(counts.hosts, g * a * p);
        ck_assert_int_eq(counts.local_cables, g * a * (a - 1) / 2);
        ck_assert_int_eq(counts.global_cables, g * (g - 1) / 2);
        ck_assert_double_eq(counts.taper, 1);
        ck_assert_double_eq_tol(counts.bisection, fmin(counts.hosts / 2.0, cables_of_halves(p)) * 12.5e9, 1);
        if (p == 2)
            ck_assert_int_eq(counts.hosts, 72);
        if (p == 4)
            ck_assert_int_eq(counts.hosts, 1056);
        fabric_free(&fabric);
    }
}
END_TEST

/* Atchley et al. 2023: four cables between any two of 74 groups, 270 TB/s each way, a taper of 57 %. */
START_TEST(frontier)
{
    struct diags diags = {0};
    struct cluster cluster;
    struct fabric fabric;
    ck_assert_int_eq(catalog_cluster("frontier", &cluster, &diags), STATUS_OK);
    ck_assert_int_eq(fabric_create(&cluster, &fabric, &diags), STATUS_OK);
    ck_assert_int_eq(fabric_check(&fabric, &diags), STATUS_OK);
    struct fabric_counts counts = fabric_counts(&fabric);
    ck_assert_int_eq(counts.pods, 74);
    ck_assert_int_eq(counts.tors, 74 * 32);
    ck_assert_int_eq(counts.global_cables, 74 * 73 / 2 * 4);
    ck_assert_double_eq_tol(counts.global_bandwidth, 270.1e12, 1e6);
    ck_assert_double_eq_tol(counts.taper, 0.57, 0.001);
    ck_assert_double_eq_tol(cluster_pod_oversubscription(&cluster), 1 / counts.taper, 1e-12);
    ck_assert_int_eq(cluster_pod_nodes(&cluster), 128);
    ck_assert_int_eq(cluster_leaf_nodes(&cluster), fabric.hosts_per_set);
    fabric_free(&fabric);
}
END_TEST

/* Between halves of the hosts, however many of the groups they fill: 16 of 33 are four of the eight switches of the first group,
 * with 4 x 4 cables to the others, and one more to the host of the second group; their 16 NICs carry less. With thin local cables
 * these are what counts, 16 and 1, or 17 with the switches of the second group that have no hosts. In two groups alike it is the
 * global cables. */
START_TEST(bisection_is_of_hosts)
{
    static const struct {
        const char *text;
        double rate;
    } cases[] = {{"dragonfly switch:4x200G pair:1 hosts:33", 16 * 25e9},
                 {"dragonfly switch:4x200G pair:1 hosts:33 local:1x25G", 16 * 3.125e9 + 25e9},
                 {"dragonfly switch:4x200G hosts:32 local:1x25G", 16 * 3.125e9},
                 {"dragonfly switch:4x200G groups:2 pair:3", 75e9},
                 {"dragonfly switch:4x200G groups:4 pair:3", 4 * 75e9},
                 {"dragonfly switch:4x200G hosts:5", 2 * 25e9},
                 {"dragonfly switch:4x200G hosts:4", 2 * 25e9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fabric fabric = fabric_parsed(cases[i].text);
        ck_assert_double_eq_tol(fabric_counts(&fabric).bisection, cases[i].rate, 1);
        fabric_free(&fabric);
    }
}
END_TEST

/* The least over all ways to part the switches, of cables that lead from the one part to the other and of NICs that do: the first
 * half's at switches of the other part, the rest's at those of the one. */
static double cut_by_trying(const struct fabric *f)
{
    int half = f->shape.hosts / 2 * (f->n_ports / f->shape.hosts);
    double least = INFINITY;
    for (unsigned part = 0; part < 1u << f->n_tors; part++) {
        double sum = 0;
        for (int port = 0; port < f->n_ports; port++) {
            bool one = part >> fabric_tor_of_port(f, port) & 1u, sends = port < half;
            enum fabric_layer layer = sends ? LAYER_NIC_UP : LAYER_NIC_DOWN;
            sum += one != sends ? fabric_rate(f, f->first[layer] + (uint32_t)port) : 0;
        }
        for (uint32_t l = f->first[LAYER_LOCAL_OUT]; l < fabric_links(f); l++) {
            struct dragonfly_cable cable = dragonfly_cable(f, l);
            bool out = fabric_layer_of(f, l) % 2 == 0;
            bool from = part >> (out ? cable.low : cable.high) & 1u, to = part >> (out ? cable.high : cable.low) & 1u;
            sum += from && !to ? fabric_rate(f, l) : 0;
        }
        least = fmin(least, sum);
    }
    return least;
}

/* Also where cables have failed or are slow, each way for itself, and where local ones on the way to global ones are what is
 * thin. */
START_TEST(bisection_is_the_least_cut)
{
    static const char *const texts[] = {"dragonfly switch:1x100G groups:5 group:2 pair:1",
                                        "dragonfly switch:2x100G groups:3 group:4 pair:2",
                                        "dragonfly switch:4x100G groups:4 group:3 pair:1 local:1x25G",
                                        "dragonfly switch:2x100G groups:3 group:4 pair:4 hosts:19 local:2x25G",
                                        "dragonfly nics:2x100G rails:2 switch:2x100G groups:3 group:4 pair:2 hosts:11"};
    struct random_stream stream = random_stream_named((uint64_t)_i, 0x6375, 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fabric fabric = fabric_parsed(texts[i]);
        ck_assert_double_eq_tol(fabric_counts(&fabric).bisection, cut_by_trying(&fabric), 1e3);
        for (uint32_t l = fabric.first[LAYER_LOCAL_OUT]; l < fabric_links(&fabric); l++)
            if (random_uniform(&stream) < 0.4)
                fabric_set_speed(&fabric, l, floor(random_uniform(&stream) * 3) / 4);
        ck_assert_double_eq_tol(fabric_counts(&fabric).bisection, cut_by_trying(&fabric), 1e3);
        fabric_free(&fabric);
    }
}
END_TEST

/* Two groups whose cables end at a switch each. Eight of them: every switch has its own, and local cables do not matter. One of
 * 50 GB/s: four NICs of 12.5 GB/s at its switch fill it; of one NIC there 12.5, and 1 GB/s from each of three neighbours. */
START_TEST(thin_local_cables_lower_the_bisection)
{
    struct fabric fabric = fabric_parsed("dragonfly switch:1x100G groups:2 group:8 pair:8 local:1x8G");
    ck_assert_double_eq_tol(fabric_counts(&fabric).bisection, 8 * 12.5e9, 1);
    fabric_free(&fabric);
    fabric = fabric_parsed("dragonfly switch:4x100G groups:2 group:4 pair:1 local:1x8G global:1x400G");
    ck_assert_double_eq_tol(fabric_counts(&fabric).bisection, 50e9, 1);
    fabric_free(&fabric);
    fabric = fabric_parsed("dragonfly switch:1x100G groups:2 group:4 pair:1 local:1x8G global:1x400G");
    ck_assert_double_eq_tol(fabric_counts(&fabric).bisection, 15.5e9, 1);
    fabric_free(&fabric);
}
END_TEST

/* Counted from the names of the links, which know nothing of the formulas: m cables between two switches of a group, L between
 * two groups at different switches, no port used twice. */
START_TEST(cables_by_their_names)
{
    enum { G = 5, A = 6, M = 2, L = 4, P = 3, PORTS = P + (A - 1) * M + 3 };
    struct fabric fabric = fabric_parsed("dragonfly groups:5 group:6 switch:3x100G local:2x50G global:3x200G pair:4");
    int local[G][A][A] = {0}, global[G][G] = {0};
    bool port_used[G][A][PORTS] = {0}, gateway[G][G][A] = {0};
    for (uint32_t l = fabric.first[LAYER_LOCAL_OUT]; l < fabric_links(&fabric); l++) {
        char name[96];
        int g, s, port, h, t;
        enum fabric_layer layer = fabric_layer_of(&fabric, l);
        fabric_link_name(&fabric, l, name, sizeof name);
        if (layer == LAYER_LOCAL_IN || layer == LAYER_GLOBAL_IN) {
            ck_assert_int_eq(sscanf(name, "group %d switch %d -> group %d switch %d port %d", &h, &t, &g, &s, &port), 5);
            ck_assert_int_eq(fabric_switch_behind(&fabric, l), g * A + s);
            continue;
        }
        ck_assert_int_eq(sscanf(name, "group %d switch %d port %d -> group %d switch %d", &g, &s, &port, &h, &t), 5);
        ck_assert_int_eq(fabric_switch_behind(&fabric, l), h * A + t);
        ck_assert_int_lt(port, PORTS);
        ck_assert(!port_used[g][s][port]);
        port_used[g][s][port] = true;
        ck_assert_double_eq(fabric_rate(&fabric, l), layer == LAYER_LOCAL_OUT ? 6.25e9 : 25e9);
        if (layer == LAYER_LOCAL_OUT) {
            ck_assert_int_eq(g, h);
            local[g][s][t]++;
        } else {
            ck_assert(!gateway[g][h][s] && !gateway[h][g][t]);
            gateway[g][h][s] = gateway[h][g][t] = true;
            global[g][h]++;
        }
    }
    for (int g = 0; g < G; g++) {
        for (int s = 0; s < A; s++)
            for (int t = 0; t < A; t++)
                ck_assert_int_eq(local[g][s][t] + local[g][t][s], s == t ? 0 : M);
        for (int h = 0; h < G; h++)
            ck_assert_int_eq(global[g][h] + global[h][g], g == h ? 0 : L);
    }
    fabric_free(&fabric);
}
END_TEST

/* ---- ways */

/* From each switch of the largest dragonfly: itself, (a - 1) + h one cable away, 2 h (a - 1) two and h (a - 1)^2 three. */
START_TEST(straight_ways_are_the_shortest)
{
    struct fabric fabric = fabric_parsed("dragonfly switch:2x100G");
    const int a = 4, h = 2, p = 2;
    for (int routing = ROUTING_ECMP; routing <= ROUTING_STATIC; routing++)
        for (int from = 0; from < fabric.n_tors; from++) {
            struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .seed = 3};
            int at_distance[4] = {0};
            for (int to = 0; to < fabric.n_tors; to++) {
                struct path path;
                ck_assert(route_ports(&router, from * p, to * p + 1, 0, &path));
                int cables = assert_way(&fabric, &path, from * p, to * p + 1);
                ck_assert_int_le(cables, 3);
                at_distance[cables]++;
            }
            ck_assert_int_eq(at_distance[0], 1);
            ck_assert_int_eq(at_distance[1], a - 1 + h);
            ck_assert_int_eq(at_distance[2], 2 * h * (a - 1));
            ck_assert_int_eq(at_distance[3], h * (a - 1) * (a - 1));
        }
    fabric_free(&fabric);
}
END_TEST
/* Valiant: two global cables and at most five of all between groups, over every third group; two local ones in a group. */
START_TEST(valiant_goes_over_third_groups)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:7 group:4 switch:2x100G pair:2");
    struct router router = {.fabric = &fabric, .routing = ROUTING_VALIANT, .seed = 5};
    bool third[7] = {false};
    struct path path;
    for (uint32_t q = 0; q < 200; q++) {
        ck_assert(route_ports(&router, 0, 8 * 3 + 5, q, &path));
        ck_assert_int_le(assert_way(&fabric, &path, 0, 8 * 3 + 5), 5);
        ck_assert_int_eq(globals_of(&fabric, &path), 2);
        for (int h = 1; h < path.n - 1; h++)
            third[dragonfly_group(&fabric, fabric_switch_behind(&fabric, path.links[h]))] = true;
        ck_assert(route_ports(&router, 0, 7, q, &path));
        ck_assert_int_eq(assert_way(&fabric, &path, 0, 7), 2);
        ck_assert_int_eq(globals_of(&fabric, &path), 0);
    }
    for (int g = 1; g < 7; g++)
        ck_assert(third[g]);
    fabric_free(&fabric);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dragonfly");
    TCase *all = tcase_create("all");
    tcase_add_test(all, the_largest_of_the_paper);
    tcase_add_test(all, frontier);
    tcase_add_test(all, bisection_is_of_hosts);
    tcase_add_loop_test(all, bisection_is_the_least_cut, 0, 5);
    tcase_add_test(all, thin_local_cables_lower_the_bisection);
    tcase_add_test(all, cables_by_their_names);
    tcase_add_test(all, straight_ways_are_the_shortest);
    tcase_add_test(all, valiant_goes_over_third_groups);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
