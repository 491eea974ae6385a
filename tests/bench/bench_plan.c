/*
 * bench_plan [GPUS [BATCH [THREADS]]] - the search alone, without process start, re-ranking and output:
 * gpt-175b-megascale on megascale-a100, whole space with every overlap allowed. Defaults: 12288 6144 1. The command:
 *
 *     taskset -c 0 build/tests/bench/bench_plan
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "model/plan/search.h"
#include "model/spec/catalog.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void print_counts(const struct search_counts *counts)
{
    printf("in space   %12llu\n", (unsigned long long)counts->in_space);
    printf("ruled out  %12llu  by one check of their family\n", (unsigned long long)counts->ruled_out);
    printf("examined   %12llu\n", (unsigned long long)counts->examined);
    printf("legal      %12llu\n", (unsigned long long)counts->legal);
    printf("fit        %12llu\n", (unsigned long long)counts->fit);
}

static void measure(const struct setting *setting, int threads, struct diags *diags)
{
    const struct space_limits limits = {0};
    struct space *space;
    double start = now_s();
    if (space_create(setting, &limits, &space, diags) != STATUS_OK)
        return;
    double built = now_s();
    struct search_options options = {.keep = 20, .threads = threads};
    struct search_result result;
    search_run(space, &options, &result);
    double end = now_s();
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    print_counts(&result.counts);
    printf("space      %12.3f ms\n", (built - start) * 1e3);
    printf("search     %12.3f ms on %d thread(s)\n", (end - built) * 1e3, threads);
    printf("rate       %12.0f layouts examined per second\n", (double)result.counts.examined / (end - built));
    printf("memory     %12.1f MiB at most\n", (double)usage.ru_maxrss / 1024);
    for (int i = 0; i < result.n_plans && i < 3; i++) {
        char text[160];
        printf("%8.3f s  %s\n", result.plans[i].estimate.step_s, layout_format(&result.plans[i].layout, text, sizeof text));
    }
    search_result_free(&result);
    space_destroy(space);
}

static long argument(int argc, char **argv, int at, long otherwise)
{
    return at < argc ? strtol(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    struct diags diags = {0};
    struct transformer model;
    struct cluster cluster;
    struct job job = {
        .global_batch = argument(argc, argv, 2, 6144),
        .seq_len = 2048,
        .precision = PRECISION_BF16,
        .gradient_precision = PRECISION_FP32,
        .optimizer = OPTIMIZER_ADAM,
        .features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(PARALLEL_BLOCK) |
                    FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP),
    };
    if (catalog_model("gpt-175b-megascale", &model, &diags) == STATUS_OK &&
        catalog_cluster("megascale-a100", &cluster, &diags) == STATUS_OK) {
        struct setting setting = {&model, &cluster, &job, (int)argument(argc, argv, 1, 12288)};
        measure(&setting, (int)argument(argc, argv, 3, 1), &diags);
    }
    diags_print(&diags, stderr, false);
    enum status status = diags_status(&diags);
    diags_free(&diags);
    return (int)status;
}
