/*
 * bench_step [REPEATS] - the simulation of one step, without process start and output: gpt-175b-megascale on 12,288 GPUs of
 * megascale-a100, batch 6144, tp=8, pp=8, vpp=6 (MegaScale's layout); folded, with every rank, and with every rank through the
 * event queue; then the event queue alone. The command:
 *
 *     taskset -c 0 build/tests/bench/bench_step
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "model/spec/catalog.h"
#include "sim/base/engine.h"
#include "sim/step/step.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void measure(const struct setting *setting, const char *what, struct step_options options, int repeats)
{
    struct layout layout = {.tp = 8, .pp = 8, .vpp = 6, .zero = 2, .sequence_parallel = true, .micro_batch = 1};
    double best = 1e300;
    struct step_result result = {0};

    layout_complete(&layout, setting);
    for (int k = 0; k < repeats; k++) {
        struct diags diags = {0};
        double start = now_s();
        if (step_simulate(&layout, setting, &options, &result, NULL, NULL, &diags) != STATUS_OK) {
            diags_print(&diags, stderr, false);
            exit(1);
        }
        double took = now_s() - start;
        best = took < best ? took : best;
        diags_free(&diags);
    }
    printf("%-28s %10.3f ms  %12llu operations  %7.2f M/s  %8.1f MiB at most  step %.6f s\n", what, best * 1e3,
           (unsigned long long)result.events, (double)result.events / best * 1e-6, peak_mib(), result.step_time_s);
}

/* The hold model: a queue kept at n events; each one taken schedules the next at a random distance. */
static void measure_engine(size_t n, uint64_t span)
{
    enum { EVENTS = 5000000 };
    struct engine *engine = engine_create(n);
    uint64_t state = 1;
    struct event event;

    for (size_t k = 0; k < n; k++, state = state * UINT64_C(6364136223846793005) + 1)
        engine_schedule(engine, (nanos)((state >> 33) % span), 0, k);
    double start = now_s();
    for (int k = 0; k < EVENTS && engine_next(engine, &event); k++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
        engine_schedule(engine, event.time + (nanos)((state >> 33) % span), 0, event.payload);
    }
    double took = now_s() - start;
    printf("engine, %7zu pending         %10.1f ns per event  %7.2f M/s\n", n, took / EVENTS * 1e9, EVENTS / took * 1e-6);
    engine_destroy(engine);
}

int main(int argc, char **argv)
{
    int repeats = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;
    struct transformer model;
    struct cluster cluster;
    struct diags diags = {0};

    if (catalog_model("gpt-175b-megascale", &model, &diags) != STATUS_OK ||
        catalog_cluster("megascale-a100", &cluster, &diags) != STATUS_OK) {
        diags_print(&diags, stderr, false);
        return 1;
    }
    struct job job = {.global_batch = 6144,
                      .seq_len = 2048,
                      .precision = PRECISION_BF16,
                      .gradient_precision = PRECISION_FP32,
                      .features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(PARALLEL_BLOCK) | FEATURE_BIT(TP_OVERLAP) |
                                  FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP)};
    struct setting setting = {&model, &cluster, &job, 12288};
    measure(&setting, "folded, chunks", (struct step_options){0}, 10 * repeats);
    measure(&setting, "folded, layers", (struct step_options){.detail = DETAIL_LAYER}, repeats);
    measure(&setting, "folded, kernels", (struct step_options){.detail = DETAIL_KERNEL}, repeats);
    measure(&setting, "all ranks, data flow", (struct step_options){.all_ranks = true}, repeats);
    measure(&setting, "all ranks, event queue", (struct step_options){.all_ranks = true, .time_order = true}, 1);
    for (size_t n = 100; n <= 1000000; n *= 100)
        measure_engine(n, UINT64_C(20000000));
    return 0;
}
