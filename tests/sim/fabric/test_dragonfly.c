/* Dragonflies: counts and cables against closed forms, ways between all switches, loads by hand, adversarial traffic against
 * Kim, Dally, Scott and Abts 2008, ways around failures; alone the flow network is the closed form there, too. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "model/cost/collective.h"
#include "model/spec/catalog.h"
#include "sim/fabric/dragonfly.h"
#include "sim/fabric/load.h"
#include "sim/network_flow.h"
#include "sim/step.h"
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

/* The switches that a way passes, by the arithmetic of links; each link begins where the one before ended. */
static int assert_way(const struct fabric *f, const struct path *path, int from, int to)
{
    int at = fabric_tor_of_port(f, from), cables = 0;
    ck_assert_uint_eq(path->links[0], f->first[LAYER_NIC_UP] + (uint32_t)from);
    for (int h = 1; h < path->n - 1; h++, cables++) {
        uint32_t link = path->links[h];
        bool out = fabric_layer_of(f, link) % 2 == 0;
        ck_assert_int_eq(out ? fabric_lower_switch(f, link) : fabric_upper_switch(f, link), at);
        ck_assert(fabric_rate(f, link) > 0);
        at = fabric_switch_behind(f, link);
    }
    ck_assert_int_eq(at, fabric_tor_of_port(f, to));
    ck_assert_uint_eq(path->links[path->n - 1], f->first[LAYER_NIC_DOWN] + (uint32_t)to);
    ck_assert_int_eq(path->switches, cables + 1);
    return cables;
}

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

static int globals_of(const struct fabric *f, const struct path *path)
{
    int n = 0;
    for (int i = 0; i < path->n; i++)
        n += fabric_layer_of(f, path->links[i]) >= LAYER_GLOBAL_OUT;
    return n;
}

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

/* ---- loads */

static struct load_result load_of(const struct fabric *fabric, enum routing routing, struct load load)
{
    struct router router = {.fabric = fabric, .routing = routing, .seed = load.seed};
    struct load_result result;
    struct diags diags = {0};
    enum status status = load_run(&router, &load, &result, &diags);
    ck_assert_msg(status == STATUS_OK, "%s", diags.n_items ? diags.items[0].text : "");
    return result;
}

/* Everybody to everybody over the largest dragonfly: (a p)^2 transfers over each global link, one way, and p^2 (1 + 2 a h) over
 * each local one: those of its two switches, of the sender's to the h groups at the other, and of those groups to the other's
 * hosts. */
START_TEST(all_to_all_by_hand)
{
    const int p = 2, a = 4, h = 2, n = 72;
    struct fabric fabric = fabric_parsed("dragonfly switch:2x100G");
    struct load_result result =
        load_of(&fabric, ROUTING_ECMP, (struct load){.pattern = LOAD_ALL_TO_ALL, .bytes = (n - 1) * 1e6, .seed = 1});
    for (uint32_t l = fabric.first[LAYER_LOCAL_OUT]; l < fabric_links(&fabric); l++) {
        bool local = fabric_layer_of(&fabric, l) <= LAYER_LOCAL_IN;
        ck_assert_uint_eq(flows_most(result.flows, l), (uint32_t)(local ? p * p * (1 + 2 * a * h) : a * p * a * p));
    }
    /* 71 transfers at a NIC, 68 on a local cable, 64 on a global one: the NICs are the limit */
    ck_assert_double_eq_tol(result.seconds, 71e6 / 12.5e9, 1e-8);
    load_result_free(&result);
    fabric_free(&fabric);
}
END_TEST

/* The same where a pair of groups has a cable of a quarter of that rate: (a p)^2 transfers of 1 MB over it, and that is what the
 * closed form of the taper says of an all-to-all: 64 of the 71 that a rank sends leave its group. */
START_TEST(tapered_all_to_all_is_the_closed_form)
{
    const int n = 72;
    struct fabric fabric = fabric_parsed("dragonfly switch:2x100G global:2x25G");
    struct load_result result =
        load_of(&fabric, ROUTING_ECMP, (struct load){.pattern = LOAD_ALL_TO_ALL, .bytes = (n - 1) * 1e6, .seed = 1});
    double by_hand = 64e6 / (25e9 / 8);
    ck_assert_double_eq_tol(result.seconds, by_hand, 1e-8);
    struct cluster cluster = {.topology = TOPOLOGY_DRAGONFLY,
                              .gpu = {.nccl_rate = 1e15},
                              .nodes = n,
                              .gpus_per_node = 1,
                              .nvlink_domain = 1,
                              .nics_per_node = 1,
                              .nic_rate = 12.5e9,
                              .net_fraction = 1,
                              .dragonfly = {.groups = 9,
                                            .switches_per_group = 4,
                                            .endpoints_per_switch = 2,
                                            .local_links = 1,
                                            .global_links = 1,
                                            .link_rate = 25e9 / 8}};
    struct group_span span = {.ranks = n,
                              .ranks_per_domain = 1,
                              .domains = n,
                              .leaves = 36,
                              .pods = 9,
                              .sharing = 1,
                              .leaf_exits = {.to_all = 70 / 71.0, .units = 36},
                              .pod_exits = {.to_all = 64 / 71.0, .units = 9}};
    ck_assert_double_eq_tol(cluster_pod_oversubscription(&cluster), 1 / fabric_counts(&fabric).taper, 1e-12);
    cluster.dragonfly.local_links = 100; /* local cables are not what is looked at */
    struct cost cost = collective_time(&cluster, COLLECTIVE_ALL_TO_ALL, span, n * 1e6);
    ck_assert_double_eq_tol(cost.bandwidth_s / by_hand, 1, 1e-9);
    load_result_free(&result);
    fabric_free(&fabric);
}
END_TEST

/* All of group i to group i + 1 (Kim et al. 2008, section 4.2: the worst case). Straight ways share the L cables of a pair: each
 * of the a p senders has L / (a p) of a cable, exactly. */
START_TEST(straight_ways_collapse)
{
    static const struct {
        const char *text;
        double rate;
        int senders;
    } cases[] = {{"dragonfly switch:2x100G", 12.5e9 / 8, 8}, {"dragonfly switch:4x100G", 12.5e9 / 32, 32}};
    for (int i = 0; i < 2; i++) {
        struct fabric fabric = fabric_parsed(cases[i].text);
        struct load load = {.pattern = LOAD_SHIFT, .bytes = 1e6, .stride = cases[i].senders, .seed = 1};
        struct load_result result = load_of(&fabric, ROUTING_ECMP, load);
        ck_assert_double_eq_tol(result.rates[0], cases[i].rate, 1);
        ck_assert_double_eq_tol(result.rates[result.n_connections - 1], cases[i].rate, 1);
        load_result_free(&result);
        fabric_free(&fabric);
    }
}
END_TEST

/* By Valiant each crosses two global cables, none of them that of its pair: every other one of a group carries the first half of
 * its own transfers and the second half of others', so a group sends at most (g - 2) / 2 cables' rate, half of its global
 * bandwidth as groups get many. Hashing many queue pairs comes near. */
START_TEST(valiant_has_half_of_the_global_bandwidth)
{
    const int g = 33, senders = 32;
    struct fabric fabric = fabric_parsed("dragonfly switch:4x100G local:8x100G");
    double *carried = memory_new(fabric_links(&fabric), sizeof *carried), sum = 0, mean = 0;
    struct load_result result =
        load_of(&fabric, ROUTING_VALIANT,
                (struct load){.pattern = LOAD_SHIFT, .bytes = 1e6, .stride = senders, .queue_pairs = 64, .seed = 1});
    flows_carried(result.flows, carried);
    for (uint32_t l = fabric.first[LAYER_GLOBAL_OUT]; l < fabric_links(&fabric); l++)
        sum += carried[l];
    ck_assert_double_eq_tol(sum, 2.0 * g * senders * 1e6, 1);
    for (int i = 0; i < g; i++)
        ck_assert_double_eq(carried[dragonfly_global_link(&fabric, i, (i + 1) % g, 0)], 0);
    for (size_t i = 0; i < result.n_connections; i++)
        mean += result.rates[i] / (double)result.n_connections;
    double bound = (g - 2) / 2.0 * 12.5e9 / senders;
    ck_assert_double_lt(mean, bound);
    ck_assert_double_gt(mean, 0.9 * bound);
    ck_assert_double_gt(result.rates[0], 0.75 * bound);
    load_result_free(&result);
    free(carried);
    fabric_free(&fabric);
}
END_TEST

/* Adaptive, on this fabric and with this seed: in adversarial traffic at least what Valiant has, in a permutation at least what
 * straight ways have, for the slowest and in the mean. */
START_TEST(adaptive_is_the_better_of_both)
{
    struct fabric fabric = fabric_parsed("dragonfly switch:4x100G");
    const struct {
        struct load load;
        enum routing other;
    } cases[] = {{{.pattern = LOAD_SHIFT, .bytes = 1e6, .stride = 32, .seed = 2}, ROUTING_VALIANT},
                 {{.pattern = LOAD_PERMUTATION, .bytes = 1e6, .seed = 2}, ROUTING_ECMP}};
    for (int i = 0; i < 2; i++) {
        struct load_result adaptive = load_of(&fabric, ROUTING_ADAPTIVE, cases[i].load);
        struct load_result other = load_of(&fabric, cases[i].other, cases[i].load);
        double mean = 0, mean_other = 0;
        for (size_t c = 0; c < adaptive.n_connections; c++) {
            mean += adaptive.rates[c];
            mean_other += other.rates[c];
        }
        ck_assert_double_ge(adaptive.rates[0], other.rates[0]);
        ck_assert_double_ge(mean, mean_other);
        ck_assert_double_le(adaptive.seconds, other.seconds);
        load_result_free(&adaptive);
        load_result_free(&other);
    }
    fabric_free(&fabric);
}
END_TEST

/* ---- around failures */

/* Cable by cable until a pair of groups is joined over third ones only, and a group by nothing. */
START_TEST(ways_around_global_cables)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:6 group:4 switch:2x100G pair:3");
    for (int routing = 0; routing < N_ROUTINGS; routing++) {
        uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
        struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads};
        struct path path;
        for (int l = 0; l < 3; l++) {
            ck_assert(route_ports(&router, 0, 8 * 2, 0, &path));
            assert_way(&fabric, &path, 0, 8 * 2);
            ck_assert_int_eq(globals_of(&fabric, &path), routing == ROUTING_VALIANT ? 2 : 1);
            fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 0, 2, l), 0);
        }
        ck_assert(route_ports(&router, 0, 8 * 2, 0, &path));
        assert_way(&fabric, &path, 0, 8 * 2);
        ck_assert_int_eq(globals_of(&fabric, &path), 2);
        ck_assert(route_ports(&router, 8 * 2, 0, 0, &path)); /* the other direction is up */
        for (int g = 1; g < 6; g++)
            for (int l = 0; l < 3; l++)
                fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 0, g, l), 0);
        ck_assert(!route_ports(&router, 0, 8 * 2, 0, &path));
        ck_assert(route_ports(&router, 0, 6, 0, &path));
        for (uint32_t l = 0; l < fabric_links(&fabric); l++)
            fabric_set_speed(&fabric, l, 1);
        free(loads);
    }
    fabric_free(&fabric);
}
END_TEST

/* A third switch where a local cable has failed; nothing where all of a switch's have. */
START_TEST(ways_around_local_cables)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:1 group:5 switch:2x100G local:2x100G");
    struct router router = {.fabric = &fabric};
    struct diags diags = {0};
    struct path path;
    fabric_set_speed(&fabric, dragonfly_local_link(&fabric, 0, 3, 0), 0);
    ck_assert(route_ports(&router, 0, 6, 0, &path));
    ck_assert_int_eq(assert_way(&fabric, &path, 0, 6), 1);
    fabric_set_speed(&fabric, dragonfly_local_link(&fabric, 0, 3, 1), 0);
    ck_assert(route_ports(&router, 0, 6, 0, &path));
    ck_assert_int_eq(assert_way(&fabric, &path, 0, 6), 2);
    ck_assert_int_eq(route_check(&fabric, &diags), STATUS_OK);
    for (int s = 1; s < 5; s++)
        for (int i = 0; i < 2; i++)
            fabric_set_speed(&fabric, dragonfly_local_link(&fabric, 0, s, i), 0);
    ck_assert(!route_ports(&router, 0, 6, 0, &path));
    ck_assert_int_eq(route_check(&fabric, &diags), STATUS_CHECK);
    diags_free(&diags);
    fabric_free(&fabric);
}
END_TEST

/* Out to another group and back where a switch has lost all its local cables. */
START_TEST(ways_out_of_a_group_and_back)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:3 group:4 switch:2x100G pair:4");
    struct diags diags = {0};
    for (int s = 1; s < 4; s++)
        fabric_set_speed(&fabric, dragonfly_local_link(&fabric, 0, s, 0), 0);
    for (int routing = 0; routing < N_ROUTINGS; routing++) {
        uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
        struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads, .seed = 7};
        struct path path;
        for (int to = 1; to < 4; to++) {
            ck_assert(route_ports(&router, 0, to * 2, 0, &path));
            ck_assert_int_le(assert_way(&fabric, &path, 0, to * 2), 4); /* at most a local cable there, and one back */
            ck_assert_int_eq(globals_of(&fabric, &path), 2);
            ck_assert(route_ports(&router, to * 2, 0, 0, &path)); /* the other direction is up */
            ck_assert_int_eq(globals_of(&fabric, &path), 0);
        }
        free(loads);
    }
    ck_assert_int_eq(route_check(&fabric, &diags), STATUS_OK);
    fabric_free(&fabric);
}
END_TEST

/* Where nothing shorter is left, over two other groups. Three groups of two switches, a cable each: group 0's switches 0 and 1
 * have cables to groups 1 and 2. Without the local cable switch 0 reaches switch 1 over both; without the one between groups 1
 * and 2, too, nothing does. */
START_TEST(ways_over_two_groups)
{
    for (int routing = 0; routing < N_ROUTINGS; routing++) {
        struct fabric fabric = fabric_parsed("dragonfly switch:1x100G");
        uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
        struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads};
        struct diags diags = {0};
        struct path path;
        fabric_set_speed(&fabric, dragonfly_local_link(&fabric, 0, 1, 0), 0);
        ck_assert(route_ports(&router, 0, 1, 0, &path));
        ck_assert_int_eq(globals_of(&fabric, &path), 3);
        ck_assert_int_le(assert_way(&fabric, &path, 0, 1), 5); /* a local cable in each of the other groups */
        ck_assert_int_eq(route_check(&fabric, &diags), STATUS_OK);
        fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 1, 2, 0), 0);
        ck_assert(!route_ports(&router, 0, 1, 0, &path));
        free(loads);
        fabric_free(&fabric);
    }
}
END_TEST

/* Two groups that have lost their cables to each other and to all that the other is joined with: A - C - D - B is left. */
START_TEST(ways_between_groups_over_two_others)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:4 group:4 switch:2x100G pair:1");
    struct router router = {.fabric = &fabric};
    struct path path;
    fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 0, 3, 0), 0);
    ck_assert(route_ports(&router, 0, 8 * 3, 0, &path));
    ck_assert_int_eq(globals_of(&fabric, &path), 2);
    fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 0, 2, 0), 0);
    fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 1, 3, 0), 0);
    ck_assert(route_ports(&router, 0, 8 * 3, 0, &path));
    assert_way(&fabric, &path, 0, 8 * 3);
    ck_assert_int_eq(globals_of(&fabric, &path), 3);
    fabric_set_speed(&fabric, dragonfly_global_link(&fabric, 1, 2, 0), 0);
    ck_assert(!route_ports(&router, 0, 8 * 3, 0, &path));
    fabric_free(&fabric);
}
END_TEST

/* With a third of all cables down a way is found exactly where there is one: what a search over the cables themselves reaches. */
START_TEST(a_way_wherever_there_is_one)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:5 group:3 switch:1x100G pair:1");
    struct random_stream stream = random_stream_named((uint64_t)_i, 0x7761, 0);
    bool joined[15][15] = {{false}};
    for (uint32_t l = fabric.first[LAYER_LOCAL_OUT]; l < fabric_links(&fabric); l++) {
        struct dragonfly_cable cable = dragonfly_cable(&fabric, l);
        enum fabric_layer layer = fabric_layer_of(&fabric, l);
        bool out = layer == LAYER_LOCAL_OUT || layer == LAYER_GLOBAL_OUT, up = random_uniform(&stream) > 0.5;
        fabric_set_speed(&fabric, l, up ? 1 : 0);
        joined[out ? cable.low : cable.high][out ? cable.high : cable.low] = up;
    }
    for (int k = 0; k < 15; k++) /* Warshall */
        for (int i = 0; i < 15; i++)
            for (int j = 0; j < 15; j++)
                joined[i][j] = joined[i][j] || (joined[i][k] && joined[k][j]);
    for (int routing = 0; routing < N_ROUTINGS; routing++) {
        uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
        struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads};
        for (int from = 0; from < 15; from++)
            for (int to = 0; to < 15; to++) {
                struct path path;
                bool found = route_ports(&router, from, to, 0, &path);
                ck_assert_msg(found == (from == to || joined[from][to]), "%d to %d", from, to);
                if (found && from != to)
                    assert_way(&fabric, &path, from, to);
            }
        free(loads);
    }
    fabric_free(&fabric);
}
END_TEST

/* A tenth of all cables down, at random: everybody is still reached by every routing, over cables that are up. */
START_TEST(a_tenth_of_the_cables_down)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:8 group:6 switch:2x100G pair:2");
    struct random_stream stream = random_stream_named((uint64_t)_i, 0x6466, 0);
    uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
    for (uint32_t l = fabric.first[LAYER_LOCAL_OUT]; l < fabric_links(&fabric); l++)
        if (random_uniform(&stream) < 0.1)
            fabric_set_speed(&fabric, l, 0);
    for (int routing = 0; routing < N_ROUTINGS; routing++)
        for (int from = 0; from < fabric.n_ports; from += 2)
            for (int to = 1; to < fabric.n_ports; to += 2) {
                struct router router = {.fabric = &fabric, .routing = (enum routing)routing, .load = loads};
                struct path path;
                ck_assert(route_ports(&router, from, to, 0, &path));
                ck_assert_int_le(path.n, PATH_HOPS);
                assert_way(&fabric, &path, from, to);
                for (int h = 0; h < path.n; h++)
                    loads[path.links[h]]++;
            }
    free(loads);
    fabric_free(&fabric);
}
END_TEST

/* ---- the step */

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

static nanos step_of(struct job_case *c, const struct network_flow_options *flow)
{
    struct diags diags = {0};
    struct step_options how = {.all_ranks = true, .flow = flow};
    struct step_result result;
    enum status status = step_simulate(&c->layout, &c->setting, &how, &result, NULL, NULL, &diags);
    ck_assert_msg(status == STATUS_OK, "%s", diags.n_items ? diags.items[0].text : "");
    return result.step;
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
        nanos end, latency;
        while (end = table.next(table.state), !table.take(table.state, end, &word, &latency))
            ;
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
    double analytic = (double)step_of(&c, NULL);
    ck_assert_double_eq_tol((double)step_of(&c, &options) / analytic, 1, 1e-3);
    struct fabric narrow =
        fabric_parsed("dragonfly hosts:16 gpus:8 nics:8x200G rails:8 group:16 switch:2x200G local:4x200G pair:2");
    options.fabric = &narrow;
    options.routing = ROUTING_ECMP;
    double straight = (double)step_of(&c, &options);
    options.routing = ROUTING_ADAPTIVE;
    double adaptive = (double)step_of(&c, &options);
    ck_assert_double_gt(straight, 1.05 * analytic);
    ck_assert_double_lt(adaptive, straight);
    fabric_free(&narrow);
    fabric_free(&c.fabric);
}
END_TEST

/* Four nodes to a group: a pipeline's neighbours and replicas lie one and three cables apart, and the closed form adds so many
 * switches to what a hop takes. */
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

/* A group of 16 whose local cables have failed but for those from each switch to the next, and no global ones: the 12th switch is
 * reached over 12 cables, the 13th not at all, which messages then say. */
START_TEST(ways_end_after_twelve_cables)
{
    struct fabric fabric = fabric_parsed("dragonfly groups:2 group:16 switch:1x100G pair:1");
    struct router router = {.fabric = &fabric, .routing = ROUTING_STATIC};
    struct load load = {.pattern = LOAD_SHIFT, .stride = 13, .bytes = 1e6};
    struct load_result result;
    struct diags diags = {0};
    struct path path;
    for (int from = 0; from < 16; from++)
        for (int to = 0; to < 16; to++)
            if (abs(from - to) > 1)
                fabric_set_speed(&fabric, dragonfly_local_link(&fabric, from, to, 0), 0);
    for (int way = 0; way < 2; way++)
        fabric_set_speed(&fabric, dragonfly_global_link(&fabric, way, 1 - way, 0), 0);
    ck_assert(route_ports(&router, 0, DRAGONFLY_LONGEST, 0, &path));
    ck_assert_int_eq(assert_way(&fabric, &path, 0, DRAGONFLY_LONGEST), DRAGONFLY_LONGEST);
    ck_assert(!route_ports(&router, 0, DRAGONFLY_LONGEST + 1, 0, &path));
    ck_assert_int_ne(load_run(&router, &load, &result, &diags), STATUS_OK);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "no way of at most 12 cables from GPU 0 to GPU 13"));
    diags_free(&diags);
    fabric_free(&fabric);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dragonfly");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, the_largest_of_the_paper);
    tcase_add_test(all, frontier);
    tcase_add_test(all, bisection_is_of_hosts);
    tcase_add_loop_test(all, bisection_is_the_least_cut, 0, 5);
    tcase_add_test(all, thin_local_cables_lower_the_bisection);
    tcase_add_test(all, cables_by_their_names);
    tcase_add_test(all, straight_ways_are_the_shortest);
    tcase_add_test(all, valiant_goes_over_third_groups);
    tcase_add_test(all, all_to_all_by_hand);
    tcase_add_test(all, tapered_all_to_all_is_the_closed_form);
    tcase_add_test(all, straight_ways_collapse);
    tcase_add_test(all, valiant_has_half_of_the_global_bandwidth);
    tcase_add_test(all, adaptive_is_the_better_of_both);
    tcase_add_test(all, ways_around_global_cables);
    tcase_add_test(all, ways_around_local_cables);
    tcase_add_test(all, ways_out_of_a_group_and_back);
    tcase_add_test(all, ways_over_two_groups);
    tcase_add_test(all, ways_between_groups_over_two_others);
    tcase_add_loop_test(all, a_way_wherever_there_is_one, 0, 20);
    tcase_add_loop_test(all, a_tenth_of_the_cables_down, 0, 5);
    tcase_add_loop_test(all, alone_it_is_the_closed_form, 0, 4);
    tcase_add_test(all, a_step_over_groups);
    tcase_add_test(all, hops_of_the_closed_form);
    tcase_add_test(all, ways_end_after_twelve_cables);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
