/*
 * bench_packets [permutation|incast|alltoall|pauses] [HOSTS] - the network of packets alone, on a two-layer Clos with a 400 Gbps
 * NIC per host, 32 hosts a ToR, 1:1, ECMP, packets of 4 KiB. Times exclude process start.
 *
 *     permutation   100 MB from each host under DCQCN: collisions, marks, recovery
 *     incast        everybody to host 0, 10 MB each, under DCQCN: deep queue, many senders that are paced
 *     alltoall      10 MB from each host: as many connections as hosts squared
 *     pauses        the permutation without congestion control: everything stands behind something
 *     queue         the engine alone with as many events pending: one event in, one out; what an event costs at least
 *
 *     taskset -c 0 build/tests/bench/bench_packets permutation
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/base/random.h"
#include "sim/base/engine.h"
#include "sim/fabric/load.h"

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int load_time(int hosts, enum load_pattern pattern, double bytes, enum congestion congestion, struct diags *diags)
{
    char text[128];
    struct fabric fabric;
    struct load_result result;
    snprintf(text, sizeof text, "clos hosts:%d tor:32x400G/32x400G agg:64x400G", hosts);
    if (fabric_parse(text, PLACE_NONE, &fabric, diags) != STATUS_OK)
        return 1;
    struct packets_parameters with = packets_usual();
    with.congestion = congestion;
    struct router router = {.fabric = &fabric, .seed = 1};
    struct load load = {.pattern = pattern, .bytes = bytes, .seed = 1, .packets = &with};
    double start = processor_s();
    if (load_run(&router, &load, &result, diags) != STATUS_OK)
        return 1;
    double seconds = processor_s() - start;
    const struct packets_totals *t = &result.packets.totals;
    printf("%d hosts, simulated %.6g ms, processor %.3f s\n", hosts, 1e3 * result.packets.seconds, seconds);
    printf("%.4g packets, %.4g hops, %.4g events; %llu marks, %llu pauses\n", (double)t->packets, (double)t->hops,
           (double)t->events, (unsigned long long)t->marks, (unsigned long long)t->pauses);
    printf("%.3g packets/s, %.3g hops/s, %.3g events/s, %.1f ns an event\n", (double)t->packets / seconds,
           (double)t->hops / seconds, (double)t->events / seconds, seconds * 1e9 / (double)t->events);
    load_result_free(&result);
    fabric_free(&fabric);
    return 0;
}

/* As many pending as links have packets on them: the end of a packet, up to 1 us on. */
static int queue_time(int pending)
{
    enum { EVENTS = 10000000 };
    struct engine *engine = engine_create((size_t)pending);
    struct random_stream s = random_stream_named(1, 1, 1);
    struct event event;
    for (int i = 0; i < pending; i++)
        (void)engine_schedule(engine, (nanos)random_below(&s, 800), 2, 0);
    double start = processor_s();
    for (int i = 0; i < EVENTS; i++) {
        engine_next(engine, &event);
        (void)engine_schedule(engine, event.time + 82 + (i & 1) * 700, (uint32_t)(i & 3), (uint64_t)i);
    }
    printf("%d pending: %.1f ns an event\n", pending, (processor_s() - start) / EVENTS * 1e9);
    engine_destroy(engine);
    return 0;
}

int main(int argc, char **argv)
{
    struct diags diags = {0};
    const char *what = argc > 1 ? argv[1] : "permutation";
    int hosts = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 64, failed;
    if (strcmp(what, "queue") == 0)
        failed = queue_time(hosts);
    else if (strcmp(what, "incast") == 0)
        failed = load_time(hosts, LOAD_INCAST, 10e6, CONGESTION_DCQCN, &diags);
    else if (strcmp(what, "alltoall") == 0)
        failed = load_time(hosts, LOAD_ALL_TO_ALL, 10e6, CONGESTION_DCQCN, &diags);
    else
        failed =
            load_time(hosts, LOAD_PERMUTATION, 100e6, strcmp(what, "pauses") == 0 ? CONGESTION_NONE : CONGESTION_DCQCN, &diags);
    diags_print(&diags, stderr, false);
    diags_free(&diags);
    return failed;
}
