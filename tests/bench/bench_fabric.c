/*
 * bench_fabric permutation|jittered|rings|growth [ROUTING] - the flow network alone, on the three-layer Clos of 12,288 hosts with
 * one 400 Gbps NIC each, radix 64, 1:1: 73,728 directed links. ROUTING: ecmp (default), static, adaptive. Times exclude process
 * start.
 *
 *     permutation   a random permutation, 100 MB each: routed and run to completion
 *     jittered      the same with sizes spread by 10 %: 12,288 distinct ends
 *     rings         192 rings of 64 ranks, rank r of ring g on host 192 r + g: the 126 dependent steps of a ring all-reduce; a
 *                   rank's step begins when it has sent the one before and received it from its predecessor. 1,548,288 transfers
 *     growth        the permutation on 1,024 to 131,072 GPUs, and the fitted exponent of time over GPUs
 *
 *     taskset -c 0 build/tests/bench/bench_fabric permutation
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "model/base/memory.h"
#include "sim/fabric/load.h"

static const char clos[] = "clos hosts:12288 tor:32x400G/32x400G agg:32x400G/32x400G core:12x400G";

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void print_counts(const struct flows_counts *counts, double seconds)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("transfers %llu, solves %llu, links settled %llu, water levels %llu, rates changed %llu\n",
           (unsigned long long)counts->transfers, (unsigned long long)counts->solves, (unsigned long long)counts->settled,
           (unsigned long long)counts->evaluated, (unsigned long long)counts->changed);
    printf("%.0f transfers/s, %.0f solves/s, %.1f MiB at most\n", (double)counts->transfers / seconds,
           (double)counts->solves / seconds, (double)usage.ru_maxrss / 1024);
}

static int permutation(const struct fabric *fabric, enum routing routing, double jitter, struct diags *diags, double *seconds)
{
    struct router router = {.fabric = fabric, .routing = routing, .seed = 1};
    struct load load = {.pattern = LOAD_PERMUTATION, .bytes = 1e8, .jitter = jitter, .seed = 1};
    struct load_result result;
    double start = now_s();
    if (load_run(&router, &load, &result, diags) != STATUS_OK)
        return 1;
    *seconds = now_s() - start;
    double mean = 0;
    for (size_t i = 0; i < result.n_connections; i++)
        mean += result.rates[i] / (double)result.n_connections;
    printf("%7d GPUs  %8.1f ms  simulated %.9g s  mean rate %.1f %%, worst %.1f %%\n", fabric->n_gpus, *seconds * 1e3,
           result.seconds, 100 * mean / result.demand, 100 * result.rates[0] / result.demand);
    print_counts(&result.counts, *seconds);
    load_result_free(&result);
    return 0;
}

/* ---- rings in dependent steps */

enum { RINGS = 192, RANKS = 64, STEPS = 2 * (RANKS - 1) };

struct rank {
    int sent, received; /* steps */
    int next;           /* in the ring */
};

static void rank_go(struct flows *flows, struct rank *ranks, int r)
{
    /* Step k needs step k - 1 sent and received; the connection is busy until then. */
    if (!flows_busy(flows, (uint32_t)r) && ranks[r].sent < STEPS && ranks[r].received >= ranks[r].sent)
        flows_send(flows, (uint32_t)r, 1e6);
}

static int rings(const struct fabric *fabric, enum routing routing)
{
    struct router router = {.fabric = fabric, .routing = routing, .seed = 1};
    uint32_t n_links = fabric_links(fabric);
    double start = now_s(), *rates = memory_new(n_links, sizeof *rates);
    uint32_t *loads = memory_new(n_links, sizeof *loads);
    struct rank *ranks = memory_new(RINGS * RANKS, sizeof *ranks);
    struct path path;
    nanos time;

    router.load = loads;
    fabric_rates_now(fabric, rates);
    struct flows *flows = flows_create(rates, n_links);
    flows_reserve(flows, RINGS * RANKS, RINGS * RANKS * 6);
    for (int r = 0; r < RINGS * RANKS; r++) {
        ranks[r].next = (r + RINGS) % (RINGS * RANKS);
        if (!route_gpus(&router, r, ranks[r].next, 0, &path))
            return 1;
        for (int h = 0; h < path.n; h++)
            loads[path.links[h]]++;
        flows_open(flows, path.links, path.n, 1, 0);
        flows_send(flows, (uint32_t)r, 1e6);
    }
    while ((time = flows_next(flows)) != NEVER_ENDS) {
        flows_advance(flows, time);
        for (uint32_t r; (r = flows_take(flows)) != NO_FLOW;) {
            ranks[r].sent++;
            ranks[ranks[r].next].received++;
            rank_go(flows, ranks, (int)r);
            rank_go(flows, ranks, ranks[r].next);
        }
    }
    double seconds = now_s() - start;
    struct flows_counts counts = flows_counts(flows);
    printf("rings, %s: %.3f s  simulated %.9g s\n", routing_name(routing), seconds, (double)flows_now(flows) * 1e-9);
    print_counts(&counts, seconds);
    flows_destroy(flows);
    free(rates);
    free(loads);
    free(ranks);
    return 0;
}

/* ---- growth */

static int growth(enum routing routing, struct diags *diags)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    int n = 0;
    for (int gpus = 1024; gpus <= 131072; gpus *= 2, n++) {
        char text[160];
        struct fabric fabric;
        double seconds;
        snprintf(text, sizeof text, "clos hosts:%d tor:32x400G/32x400G agg:32x400G/32x400G core:128x400G", gpus);
        if (fabric_parse(text, PLACE_NONE, &fabric, diags) != STATUS_OK ||
            permutation(&fabric, routing, 0.1, diags, &seconds) != 0)
            return 1;
        fabric_free(&fabric);
        double x = log(gpus), y = log(seconds);
        sx += x, sy += y, sxx += x * x, sxy += x * y;
    }
    printf("time grows as GPUs^%.3f\n", (n * sxy - sx * sy) / (n * sxx - sx * sx));
    return 0;
}

int main(int argc, char **argv)
{
    struct diags diags = {0};
    struct fabric fabric;
    const char *what = argc > 1 ? argv[1] : "permutation";
    enum routing routing = ROUTING_ECMP;
    double seconds;
    int failed = 1;
    for (int i = 0; argc > 2 && i < N_ROUTINGS; i++)
        if (strcmp(argv[2], routing_name((enum routing)i)) == 0)
            routing = (enum routing)i;
    if (fabric_parse(clos, PLACE_NONE, &fabric, &diags) == STATUS_OK) {
        printf("%u directed links\n", fabric_links(&fabric));
        if (strcmp(what, "rings") == 0)
            failed = rings(&fabric, routing);
        else if (strcmp(what, "growth") == 0)
            failed = growth(routing, &diags);
        else
            failed = permutation(&fabric, routing, strcmp(what, "jittered") == 0 ? 0.1 : 0, &diags, &seconds);
        fabric_free(&fabric);
    }
    diags_print(&diags, stderr, false);
    diags_free(&diags);
    return failed;
}
