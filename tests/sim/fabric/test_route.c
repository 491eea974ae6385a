/* Routing: paths hang together, around failures too; ECMP's collisions against published numbers; static and adaptive spread. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/base/random.h"
#include "sim/fabric/load.h"
#include "tests/sim/fabric/fabric_jobs.h"
#include "tests/suite.h"

/* Each link begins where the one before ended, by the names of the links, which do not share code with routing. */
static void assert_path(const struct fabric *fabric, const struct path *path, int from, int to)
{
    int from_host = from / fabric->shape.gpus_per_host, to_host = to / fabric->shape.gpus_per_host;
    char at[96] = "", name[96], host[32];
    for (int h = 0; h < path->n; h++) {
        fabric_link_name(fabric, path->links[h], name, sizeof name);
        ck_assert_msg(fabric_rate(fabric, path->links[h]) > 0, "%s is down", name);
        char *arrow = strstr(name, " -> ");
        *arrow = '\0';
        if (h == 0) {
            if (strncmp(name, "gpu ", 4) == 0)
                snprintf(host, sizeof host, "gpu %d", from);
            else
                snprintf(host, sizeof host, "host %d nic", from_host);
            ck_assert_msg(strncmp(name, host, strlen(host)) == 0, "%s", name);
        } else {
            /* "tor 3 port 5" is a port of "tor 3" */
            ck_assert_msg(strncmp(name, at, strlen(at)) == 0 && (name[strlen(at)] == '\0' || name[strlen(at)] == ' '),
                          "%s after %s", name, at);
        }
        char *port = strstr(arrow + 4, " port ");
        if (port != NULL)
            *port = '\0';
        memcpy(at, arrow + 4, strlen(arrow + 4) + 1);
    }
    if (strncmp(at, "gpu ", 4) == 0)
        snprintf(host, sizeof host, "gpu %d", to);
    else
        snprintf(host, sizeof host, "host %d nic", to_host);
    ck_assert_msg(strncmp(at, host, strlen(host)) == 0, "ends at %s", at);
}

static const char *const fabrics[] = {
    "clos hosts:48 tor:64x200G",
    "clos hosts:100 tor:8x200G/4x400G agg:16x400G",
    "clos hosts:100 tor:8x200G/8x400G agg:32x400G aggs:4",
    "clos hosts:512 gpus:2 nics:2x200G tors:2 tor:8x200G/4x400G agg:8x400G/8x400G core:16x400G",
    "clos hosts:1536 gpus:8 nics:8x200G tors:8 tor:64x200G/32x400G agg:32x400G/32x400G core:64x400G",
    "clos hosts:64 gpus:8 nics:8x400G ports:2 planes:2 tors:16 tor:8x200G/8x200G agg:32x200G/32x200G core:64x200G",
    "clos hosts:300 tor:16x100G/16x100G agg:16x100G/16x100G core:32x100G aggs:8",
    "clos hosts:64 gpus:8 nics:4x200G pcie:32GB/s pcie_switches:4x32GB/s sockets:2x40GB/s affinity:0,0,1,1,3,2,3,2 "
    "tor:16x200G/8x200G "
    "agg:32x200G",
    "clos hosts:64 gpus:4 nics:8x100G ports:2 pcie:64GB/s pcie_switches:2x64GB/s tor:64x50G/32x50G agg:32x50G",
    "clos hosts:64 gpus:8 nics:2x200G pcie:32GB/s pcie_switches:8x32GB/s sockets:2x40GB/s tor:64x200G/8x200G agg:32x200G",
};

START_TEST(paths_hang_together)
{
    struct fabric fabric = fabric_parsed(fabrics[_i]);
    struct random_stream s = random_stream_named(7, 7, (uint64_t)_i);
    uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3000; i++) {
            struct router router = {.fabric = &fabric, .routing = (enum routing)(i % N_ROUTINGS), .seed = 3, .load = loads};
            int from = (int)random_below(&s, (uint64_t)fabric.n_gpus), to = (int)random_below(&s, (uint64_t)fabric.n_gpus);
            struct path path;
            if (from == to || !route_gpus(&router, from, to, (uint32_t)i, &path))
                continue;
            ck_assert_int_le(path.n, PATH_HOPS);
            assert_path(&fabric, &path, from, to);
            for (int h = 0; h < path.n; h++)
                loads[path.links[h]]++;
        }
        /* Second round: a tenth of the links between switches is down. */
        for (uint32_t l = fabric.first[LAYER_TOR_UP]; l < fabric_links(&fabric); l++)
            if (random_below(&s, 10) == 0)
                fabric_set_speed(&fabric, l, 0);
    }
    free(loads);
    fabric_free(&fabric);
}
END_TEST

/* Whatever is down: where a way exists (breadth-first search over the links' names would find it), routing finds it. Here: one
 * uplink after another goes down until one is left, then none. */
START_TEST(routes_around_failures_until_none_is_left)
{
    struct fabric fabric = fabric_parsed("clos hosts:64 tor:8x100G/4x100G agg:4x100G/4x100G core:8x100G");
    struct router router = {.fabric = &fabric, .seed = 1};
    struct path path;
    for (int u = 0; u < 4; u++) {
        ck_assert(route_gpus(&router, 0, 63, 0, &path));
        assert_path(&fabric, &path, 0, 63);
        /* not its own uplink, but the destination's down link, which only the first switches of the path can avoid */
        ck_assert_int_eq(path.n, 6);
        fabric_set_speed(&fabric, path.links[4], 0);
    }
    ck_assert(!route_gpus(&router, 0, 63, 0, &path));
    ck_assert(route_gpus(&router, 63, 0, 0, &path));
    fabric_free(&fabric);
}
END_TEST

/* The layers of the path of a GPU, and the NICs at its ends. */
static void nics_of_path(const struct fabric *fabric, int from, int to, int *up, int *down)
{
    struct router router = {.fabric = fabric, .routing = ROUTING_ECMP};
    struct path path;
    *up = *down = -1;
    ck_assert(route_gpus(&router, from, to, 0, &path));
    for (int h = 0; h < path.n; h++) {
        uint32_t link = path.links[h];
        ck_assert(fabric->speed[link] > 0);
        if (fabric_layer_of(fabric, link) == LAYER_NIC_UP)
            *up = (int)(link - fabric->first[LAYER_NIC_UP]);
        if (fabric_layer_of(fabric, link) == LAYER_NIC_DOWN)
            *down = (int)(link - fabric->first[LAYER_NIC_DOWN]);
    }
}

static void nic_down(struct fabric *fabric, uint32_t nic)
{
    fabric_set_speed(fabric, fabric->first[LAYER_NIC_UP] + nic, 0);
    fabric_set_speed(fabric, fabric->first[LAYER_NIC_DOWN] + nic, 0);
}

/* A host has 8 GPUs and 8 NICs, two of each per PCIe switch. A GPU uses the other NIC of its switch, then the nearest one. */
START_TEST(a_nic_that_is_down_has_a_neighbour)
{
    static const char *const texts[] = {
        "clos hosts:4 gpus:8 nics:8x400G tors:8 planes:8 tor:4x400G nvlink:8x450GB/s pcie:64GB/s pcie_switches:4x64GB/s",
        "clos hosts:4 gpus:8 nics:8x400G tor:32x400G pcie:64GB/s pcie_switches:4x64GB/s sockets:2x40GB/s"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct fabric fabric = fabric_parsed(texts[i]);
        struct diags diags = {0};
        int up, down, same = i == 0; /* one ToR per rail joins a NIC to those of its own number alone */
        nics_of_path(&fabric, 3, 11, &up, &down);
        ck_assert(up == 3 && down == 11);
        nic_down(&fabric, 3);
        nics_of_path(&fabric, 3, 11, &up, &down);
        ck_assert_int_eq(up, 2);
        ck_assert_int_eq(down, same ? 10 : 11);
        nics_of_path(&fabric, 11, 3, &up, &down);
        ck_assert_int_eq(up, same ? 10 : 11);
        ck_assert_int_eq(down, 2);
        nic_down(&fabric, 2);
        nics_of_path(&fabric, 3, 11, &up, &down);
        ck_assert_int_eq(up, i == 0 ? 4 : 1); /* as near, or under the same CPU */
        ck_assert_int_eq(route_check(&fabric, &diags), STATUS_OK);
        diags_free(&diags);
        for (uint32_t nic = 0; nic < 8; nic++)
            nic_down(&fabric, nic);
        diags = (struct diags){0};
        ck_assert_int_eq(route_check(&fabric, &diags), STATUS_CHECK);
        diags_free(&diags);
        fabric_free(&fabric);
    }
}
END_TEST

/* Who is cut off: nobody by an uplink of several; a GPU by its NIC's port, one way by one direction; a ToR by all its uplinks. */
START_TEST(what_is_cut_off_is_said)
{
    struct fabric fabric = fabric_parsed("clos hosts:64 tor:8x100G/4x100G agg:4x100G/4x100G core:8x100G");
    struct diags diags = {0};
    ck_assert_int_eq(route_check(&fabric, &diags), STATUS_OK);
    fabric_set_speed(&fabric, fabric.first[LAYER_TOR_UP] + 1, 0);
    ck_assert_int_eq(route_check(&fabric, &diags), STATUS_OK);
    fabric_set_speed(&fabric, fabric.first[LAYER_NIC_DOWN] + 9, 0);
    ck_assert_int_eq(route_check(&fabric, &diags), STATUS_CHECK);
    ck_assert_uint_eq(diags.n_items, 1);
    ck_assert_str_eq(diags.items[0].text, "there is no path from GPU 8 to GPU 9");
    diags_free(&diags);
    fabric_set_speed(&fabric, fabric.first[LAYER_NIC_DOWN] + 9, 1);
    for (uint32_t u = 0; u < 4; u++)
        fabric_set_speed(&fabric, fabric.first[LAYER_TOR_UP] + u, 0);
    diags = (struct diags){0};
    ck_assert_int_eq(route_check(&fabric, &diags), STATUS_CHECK);
    ck_assert_uint_eq(diags.n_items, 1 + 7); /* the GPU at the edge of its ToR, and the ToR against seven others */
    diags_free(&diags);
    fabric_free(&fabric);
}
END_TEST

/* The other NIC port of a host in another plane is out of reach; NVLink joins the planes. */
START_TEST(planes_are_joined_by_hosts)
{
    struct fabric apart = fabric_parsed("clos hosts:16 gpus:2 nics:2x100G tors:2 planes:2 tor:8x100G/4x100G agg:4x100G");
    struct fabric joined =
        fabric_parsed("clos hosts:16 gpus:2 nics:2x100G tors:2 planes:2 tor:8x100G/4x100G agg:4x100G nvlink:2x300GB/s");
    struct router router = {.fabric = &apart, .seed = 1};
    struct path path;
    ck_assert(route_gpus(&router, 0, 30, 0, &path));
    ck_assert(!route_gpus(&router, 0, 31, 0, &path));
    router.fabric = &joined;
    ck_assert(route_gpus(&router, 0, 31, 0, &path));
    ck_assert_int_eq(fabric_layer_of(&joined, path.links[0]), LAYER_NVLINK_OUT);
    ck_assert_int_eq(fabric_layer_of(&joined, path.links[1]), LAYER_NVLINK_IN);
    fabric_free(&apart);
    fabric_free(&joined);
}
END_TEST

/* ---- inside hosts */

static void assert_way(const struct fabric *fabric, int from, int to, uint32_t queue_pair, const char *const *want)
{
    struct router router = {.fabric = fabric, .routing = ROUTING_STATIC};
    struct path path;
    char name[96];
    int h = 0;
    ck_assert(route_gpus(&router, from, to, queue_pair, &path));
    for (; want[h] != NULL; h++) {
        ck_assert_int_lt(h, path.n);
        ck_assert_str_eq(fabric_link_name(fabric, path.links[h], name, sizeof name), want[h]);
    }
    ck_assert_int_eq(path.n, h);
}

/* Two GPUs for a NIC on their PCIe switch; a NIC on a switch of the same CPU; a NIC beyond the other CPU. */
START_TEST(ways_inside_hosts)
{
    struct fabric near = fabric_parsed("clos hosts:4 gpus:8 nics:4x200G pcie:32GB/s pcie_switches:4x32GB/s tor:16x200G");
    assert_way(&near, 3, 8, 0,
               (const char *[]){"gpu 3 -> host 0 pcie 1", "host 0 pcie 1 -> host 0 nic 1", "host 0 nic 1 port 0 -> tor 0",
                                "tor 0 -> host 1 nic 0 port 0", "host 1 nic 0 -> host 1 pcie 0", "host 1 pcie 0 -> gpu 8", NULL});
    fabric_free(&near);
    struct fabric far = fabric_parsed("clos hosts:4 gpus:8 nics:2x200G pcie:32GB/s pcie_switches:4x32GB/s sockets:2x40GB/s "
                                      "affinity:0,0,0,0,1,1,1,0 tor:8x200G");
    assert_way(&far, 2, 12, 0,
               (const char *[]){"gpu 2 -> host 0 pcie 1", "host 0 pcie 1 -> host 0 cpu 0", "host 0 cpu 0 -> host 0 pcie 0",
                                "host 0 pcie 0 -> host 0 nic 0", "host 0 nic 0 port 0 -> tor 0", "tor 0 -> host 1 nic 1 port 0",
                                "host 1 nic 1 -> host 1 pcie 2", "host 1 pcie 2 -> gpu 12", NULL});
    assert_way(&far, 7, 12, 0,
               (const char *[]){"gpu 7 -> host 0 pcie 3", "host 0 pcie 3 -> host 0 cpu 1", "host 0 cpu 1 -> host 0 other cpus",
                                "host 0 other cpus -> host 0 cpu 0", "host 0 cpu 0 -> host 0 pcie 0",
                                "host 0 pcie 0 -> host 0 nic 0", "host 0 nic 0 port 0 -> tor 0", "tor 0 -> host 1 nic 1 port 0",
                                "host 1 nic 1 -> host 1 pcie 2", "host 1 pcie 2 -> gpu 12", NULL});
    fabric_set_speed(&far, far.first[LAYER_SOCKET_OUT] + 1, 0);
    struct router router = {.fabric = &far, .routing = ROUTING_STATIC};
    struct path path;
    ck_assert(!route_gpus(&router, 7, 12, 0, &path));
    ck_assert(route_gpus(&router, 6, 12, 0, &path));
    fabric_free(&far);
    struct fabric many = fabric_parsed("clos hosts:4 gpus:2 nics:4x100G ports:2 tor:32x50G");
    ck_assert_int_eq(fabric_gpu_ports(&many), 4);
    assert_way(&many, 1, 2, 3, (const char *[]){"host 0 nic 3 port 1 -> tor 0", "tor 0 -> host 1 nic 1 port 1", NULL});
    fabric_free(&many);
}
END_TEST

/* The slowest rate of a shift by one host: what a part of the host leaves to those that share it, by hand. */
START_TEST(shares_inside_hosts)
{
    static const struct {
        const char *text, *slow; /* a link at a quarter of its rate */
        double worst, best;      /* GB/s */
    } cases[] = {
        /* two GPUs on a NIC of 25 GB/s; its lanes at 8 GB/s; one GPU's lanes at 8 GB/s, which leaves 17 to the other */
        {"clos hosts:4 gpus:8 nics:4x200G pcie:32GB/s tor:16x200G", NULL, 12.5, 12.5},
        {"clos hosts:4 gpus:8 nics:4x200G pcie:32GB/s tor:16x200G", "host 0 pcie -> host 0 nic 1", 4, 12.5},
        {"clos hosts:4 gpus:8 nics:4x200G pcie:32GB/s tor:16x200G", "gpu 2 -> host 0 pcie", 8, 17},
        /* two NICs of 50 GB/s for a GPU whose lanes carry 64 */
        {"clos hosts:4 gpus:4 nics:8x400G pcie:64GB/s tor:32x400G", NULL, 64, 64},
        /* three of four GPUs of a CPU use the NIC of another PCIe switch, each switch over its own way of 10 GB/s, and down to
         * the NIC's over one; the NIC's own GPU has the rest */
        {"clos hosts:4 gpus:4 nics:1x400G pcie_switches:4x10GB/s tor:4x400G", NULL, 10 / 3.0, 40},
        /* the two GPUs of the other CPU share the path from CPU to CPU */
        {"clos hosts:4 gpus:4 nics:1x400G pcie_switches:4x64GB/s sockets:2x10GB/s tor:4x400G", NULL, 5, 20},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct diags diags = {0};
        struct fabric fabric = fabric_parsed(cases[i].text);
        struct router router = {.fabric = &fabric};
        struct load load = {.pattern = LOAD_SHIFT, .bytes = 1e9, .stride = fabric.shape.gpus_per_host};
        struct load_result result;
        char name[96];
        for (uint32_t l = 0; cases[i].slow != NULL && l < fabric_links(&fabric); l++)
            if (strcmp(fabric_link_name(&fabric, l, name, sizeof name), cases[i].slow) == 0)
                fabric_set_speed(&fabric, l, 0.25);
        ck_assert_int_eq(load_run(&router, &load, &result, &diags), STATUS_OK);
        ck_assert_double_eq_tol(result.rates[0] / 1e9, cases[i].worst, 1e-6);
        ck_assert_double_eq_tol(result.rates[result.n_connections - 1] / 1e9, cases[i].best, 1e-6);
        load_result_free(&result);
        fabric_free(&fabric);
    }
}
END_TEST

/* ---- collisions */

struct spread {
    double mean, worst; /* of demand, averaged over seeds */
};

/* `n` transfers from the hosts of one ToR, each to a ToR of its own, so that only the first uplink is shared. */
static struct spread collide(const char *text, int n, enum routing routing)
{
    enum { SEEDS = 400 };
    struct fabric fabric = fabric_parsed(text);
    struct spread spread = {0, 0};
    double *rates = memory_new(fabric_links(&fabric), sizeof *rates);
    uint32_t *loads = memory_new(fabric_links(&fabric), sizeof *loads);
    fabric_rates_now(&fabric, rates);
    for (int seed = 0; seed < SEEDS; seed++) {
        struct router router = {.fabric = &fabric, .routing = routing, .seed = (uint64_t)seed, .load = loads};
        struct flows *flows = flows_create(rates, fabric_links(&fabric));
        double worst = 1, sum = 0;
        for (int i = 0; i < n; i++) {
            struct path path;
            ck_assert(route_gpus(&router, i, (i + 1) * fabric.hosts_per_set, 0, &path));
            flows_send(flows, flows_open(flows, path.links, path.n, 1, 0), 1e9);
            for (int h = 0; h < path.n; h++)
                loads[path.links[h]]++;
        }
        for (int i = 0; i < n; i++) {
            double share = flows_rate(flows, (uint32_t)i) / fabric.shape.nic_rate;
            sum += share;
            worst = share < worst ? share : worst;
        }
        ck_assert_ptr_null(flows_check(flows));
        flows_destroy(flows);
        memset(loads, 0, fabric_links(&fabric) * sizeof *loads);
        spread.mean += sum / n / SEEDS;
        spread.worst += worst / SEEDS;
    }
    free(rates);
    free(loads);
    fabric_free(&fabric);
    return spread;
}

/* MegaScale's port splitting in three numbers: uniform hashing of transfers on 32 uplinks of 400 Gbps. */
START_TEST(ecmp_collisions)
{
    struct spread whole = collide("clos hosts:1056 tor:32x400G/32x400G agg:64x400G", 32, ROUTING_ECMP);
    struct spread split = collide("clos hosts:4224 tor:64x200G/32x400G agg:66x400G", 64, ROUTING_ECMP);
    struct spread half = collide("clos hosts:1056 tor:32x200G/32x400G agg:64x400G", 32, ROUTING_ECMP);
    ck_assert_double_eq_tol(100 * whole.mean, 63.7, 1);
    ck_assert_double_eq_tol(100 * whole.worst, 29.5, 1);
    ck_assert_double_eq_tol(100 * split.mean, 73.4, 1);
    ck_assert_double_eq_tol(100 * split.worst, 38.1, 1);
    ck_assert_double_eq_tol(100 * half.mean, 90.2, 1);
    ck_assert_double_eq_tol(100 * half.worst, 58.9, 1);
}
END_TEST

/* Least loaded and by destination: no collisions at all where there is an uplink for each. */
START_TEST(adaptive_and_static_do_not_collide)
{
    struct spread adaptive = collide("clos hosts:1056 tor:32x400G/32x400G agg:64x400G", 32, ROUTING_ADAPTIVE);
    ck_assert_double_eq_tol(adaptive.worst, 1, 1e-9);
    struct diags diags = {0};
    struct fabric fabric = fabric_parsed("clos hosts:1024 tor:32x400G/32x400G agg:32x400G");
    struct router router = {.fabric = &fabric, .routing = ROUTING_STATIC};
    struct load load = {.pattern = LOAD_SHIFT, .bytes = 1e6};
    struct load_result result;
    ck_assert_int_eq(load_run(&router, &load, &result, &diags), STATUS_OK);
    ck_assert_double_eq_tol(result.rates[0] / result.demand, 1, 1e-9);
    ck_assert_double_eq_tol(result.seconds, 1e6 / 50e9, 1e-9);
    load_result_free(&result);
    fabric_free(&fabric);
}
END_TEST

/* What GPUs send and get over all their connections. One switch, 8 hosts of a GPU: everybody to everybody fills all NICs, an
 * incast the one NIC that gets it all, of which each sender has a seventh; a permutation is its connections. With two GPUs a host
 * behind NVLink, what stays inside is in no sum, and a GPU sends a share of its half of the NIC to each of the others. */
START_TEST(sums_of_gpus)
{
    static const struct {
        const char *fabric;
        enum load_pattern pattern;
        size_t senders, receivers;
        double sent, received;
    } cases[] = {{"clos hosts:8 tor:8x400G", LOAD_ALL_TO_ALL, 8, 8, 50e9, 50e9},
                 {"clos hosts:8 tor:8x400G", LOAD_INCAST, 7, 1, 50e9 / 7, 50e9},
                 {"clos hosts:8 tor:8x400G", LOAD_PERMUTATION, 8, 8, 50e9, 50e9},
                 {"clos hosts:4 gpus:2 nics:1x400G nvlink:2x300GB/s tor:4x400G", LOAD_ALL_TO_ALL, 8, 8, 25e9, 25e9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct diags diags = {0};
        struct fabric fabric = fabric_parsed(cases[i].fabric);
        struct router router = {.fabric = &fabric, .routing = ROUTING_STATIC};
        struct load load = {.pattern = cases[i].pattern, .bytes = 1e6, .seed = 2};
        struct load_result r;
        ck_assert_int_eq(load_run(&router, &load, &r, &diags), STATUS_OK);
        ck_assert_uint_eq(r.sent.n, cases[i].senders);
        ck_assert_uint_eq(r.received.n, cases[i].receivers);
        for (size_t g = 0; g < r.sent.n; g++)
            ck_assert_double_eq_tol(r.sent.rates[g], cases[i].sent, 1);
        for (size_t g = 0; g < r.received.n; g++)
            ck_assert_double_eq_tol(r.received.rates[g], cases[i].received, 1);
        load_result_free(&r);
        fabric_free(&fabric);
    }
}
END_TEST

/* Where nothing collides a transfer ends when its own bytes are sent: once to twice as many, evenly spread. */
START_TEST(sizes_are_spread_above_the_smallest)
{
    struct diags diags = {0};
    struct fabric fabric = fabric_parsed("clos hosts:1024 tor:32x400G/32x400G agg:32x400G");
    struct router router = {.fabric = &fabric, .routing = ROUTING_STATIC};
    struct load load = {.pattern = LOAD_SHIFT, .bytes = 1e6, .jitter = 1, .seed = 3};
    struct load_result result;
    ck_assert_int_eq(load_run(&router, &load, &result, &diags), STATUS_OK);
    double least = 1e6 / 50e9;
    ck_assert_uint_eq(result.n_connections, 1024);
    for (size_t i = 0; i < result.n_connections; i++) /* order statistics of 1,024: within five deviations */
        ck_assert_double_eq_tol(result.ends[i] / least, 1 + (double)(i + 1) / 1025, 5 * 0.5 / sqrt(1025));
    ck_assert_double_ge(result.ends[0], least);
    ck_assert_double_le(result.seconds, 2 * least * (1 + 1e-6));
    load_result_free(&result);
    fabric_free(&fabric);
}
END_TEST

static double mean_rate(const struct router *router, const struct load *load)
{
    struct diags diags = {0};
    struct load_result result;
    double mean = 0;
    ck_assert_int_eq(load_run(router, load, &result, &diags), STATUS_OK);
    for (size_t i = 0; i < result.n_connections; i++)
        mean += result.rates[i] / result.demand / (double)result.n_connections;
    load_result_free(&result);
    return mean;
}

/* Switches that hash alike use a fraction of the ports above; queue pairs spread a connection. */
START_TEST(polarisation_and_queue_pairs)
{
    struct fabric fabric = fabric_parsed("clos hosts:1024 tor:16x100G/16x100G agg:16x100G/16x100G core:64x100G");
    struct router router = {.fabric = &fabric, .seed = 5};
    struct load load = {.pattern = LOAD_PERMUTATION, .bytes = 1e6, .seed = 2};
    double plain = mean_rate(&router, &load);
    router.polarised = true;
    double polarised = mean_rate(&router, &load);
    router.polarised = false;
    load.queue_pairs = 8;
    double spread = mean_rate(&router, &load);
    ck_assert_double_lt(polarised, plain - 0.1);
    ck_assert_double_gt(spread, plain + 0.1);
    fabric_free(&fabric);
}
END_TEST

/* Everybody to one: its NIC is shared evenly. */
START_TEST(incast_shares_the_last_link)
{
    struct fabric fabric = fabric_parsed("clos hosts:256 tor:16x100G/16x100G agg:16x100G");
    struct router router = {.fabric = &fabric, .seed = 5};
    struct load load = {.pattern = LOAD_INCAST, .bytes = 1e6};
    struct load_result result;
    struct diags diags = {0};
    ck_assert_int_eq(load_run(&router, &load, &result, &diags), STATUS_OK);
    ck_assert_double_eq_tol(result.rates[0], 12.5e9 / 255, 1);
    ck_assert_double_eq_tol(result.seconds, 255 * 1e6 / 12.5e9, 2e-9);
    load_result_free(&result);
    fabric_free(&fabric);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("route");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, paths_hang_together, 0, (int)(sizeof fabrics / sizeof fabrics[0]));
    tcase_add_test(all, routes_around_failures_until_none_is_left);
    tcase_add_test(all, a_nic_that_is_down_has_a_neighbour);
    tcase_add_test(all, what_is_cut_off_is_said);
    tcase_add_test(all, planes_are_joined_by_hosts);
    tcase_add_test(all, ways_inside_hosts);
    tcase_add_test(all, shares_inside_hosts);
    tcase_add_test(all, ecmp_collisions);
    tcase_add_test(all, adaptive_and_static_do_not_collide);
    tcase_add_test(all, sums_of_gpus);
    tcase_add_test(all, sizes_are_spread_above_the_smallest);
    tcase_add_test(all, polarisation_and_queue_pairs);
    tcase_add_test(all, incast_shares_the_last_link);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
