/*
 * bench_run [TRACE [NODES [DAYS [RUNS]]]] - the replay alone, without process start, step simulation and output. Default: the
 * shipped llama3-54d on 2,048 nodes for 54 days, 1,000 runs. The commands:
 *
 *     taskset -c 0 build/tests/bench/bench_run
 *     taskset -c 0 build/tests/bench/bench_run $MSIM_SHARED/traces/lanl_replay_1536.csv.gz 1536 974
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/weeks/run.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long argument(int argc, char **argv, int at, long otherwise)
{
    return at < argc ? strtol(argv[at], NULL, 10) : otherwise;
}

static struct run_options bench_options(int32_t nodes, long days)
{
    const nanos second = NANOS_PER_SECOND;
    return (struct run_options){
        .nodes = nodes,
        .horizon = days * 86400 * second,
        .bin = 86400 * second,
        .checkpoint = {.interval = 1800 * second, .block = 30 * second},
        .recovery = {.restart = 900 * second, .spares = 2},
    };
}

static enum status replay(const struct run_options *options, const struct fault_trace *trace, long runs, struct diags *diags)
{
    double start = now_s();
    for (long i = 0; i < runs; i++) {
        struct run_result result;
        enum status status = run_simulate(options, trace, &result, diags);
        if (status != STATUS_OK)
            return status;
        if (i == 0)
            printf("faults     %12zu\ninterrupts %12lld\nETTR       %12.6f\n", result.n_incidents,
                   (long long)result.interruptions, result.ettr);
        run_result_free(&result);
    }
    double each = (now_s() - start) / (double)runs;
    printf("replay     %12.1f us, %.1f ns a fault\n", each * 1e6, each * 1e9 / (double)trace->n_items);
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    struct diags diags = {0};
    struct fault_trace trace = {0};
    char *path = NULL;
    bool shipped;
    struct run_options options = bench_options((int32_t)argument(argc, argv, 2, 2048), argument(argc, argv, 3, 54));
    double start = now_s();
    enum status status = fault_trace_find(argc > 1 ? argv[1] : "llama3-54d", &path, &shipped, &diags);
    if (status == STATUS_OK)
        status = fault_trace_read(path, (struct fault_trace_limits){.keep = options.nodes}, &trace, &diags);
    if (status == STATUS_OK) {
        printf("read       %12.1f us\n", (now_s() - start) * 1e6);
        status = replay(&options, &trace, argument(argc, argv, 4, 1000), &diags);
    }
    diags_print(&diags, stderr, false);
    diags_free(&diags);
    fault_trace_free(&trace);
    free(path);
    return (int)status;
}
