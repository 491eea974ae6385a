/*
 * kernel_check [SEEDS [SIZE [FIRST]]] - every kernel (from number FIRST on) on the GPU against its reference over random shapes:
 * values within the kernel's tolerance, outputs poisoned before, guards intact, inputs untouched, the same bits twice (matrix
 * products excepted). CSV on stdout: kernel,cases,worst_error,tolerance,result. What has a kernel made for the device's
 * architecture is checked twice: with it, and at the end with the portable one ("portable" behind the name);
 * MSIM_PORTABLE_KERNELS, when set, leaves the portable ones alone. Exit 1 when one failed, 3 when one left the GPU unusable for
 * this process (FIRST goes on behind it), 77 without a GPU.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/kernels/gpu_memory.h"

struct tally {
    int cases;
    double worst;
    bool failed;
};

static bool is_product(enum kernel kernel)
{
    return kernel == KERNEL_LINEAR_FORWARD || kernel == KERNEL_LINEAR_BACKWARD_INPUT || kernel == KERNEL_LINEAR_BACKWARD_WEIGHT;
}

static bool run_once(const struct cuda_launch *launch, struct kernel_case *c, struct kernel_run *run)
{
    struct diags diags = {0};
    kernel_run_prepare(run, c, &gpu_memory);
    bool launched = kernel_cuda_launch(launch, &run->call, &diags) == STATUS_OK;
    if (!launched)
        fprintf(stderr, "%s %s: %s\n", kernel_name(c->call.kernel), c->text,
                diags.n_items ? diags.items[0].text : "not launched");
    kernel_run_fetch(run);
    diags_free(&diags);
    return launched;
}

static void check_case(const struct cuda_launch *launch, enum kernel kernel, uint64_t seed, int64_t size, struct tally *tally)
{
    struct random_stream random = random_stream_named(seed, 21, (uint64_t)kernel);
    struct kernel_case c;
    struct kernel_run first, second;
    char why[200] = "";
    kernel_case_draw(&c, kernel, &random, size);
    bool good = run_once(launch, &c, &first);
    good = run_once(launch, &c, &second) && good;
    kernel_case_reference(&c);
    if (good && !kernel_run_check(&first, why, sizeof why))
        good = false;
    else if (good && !is_product(kernel) && !kernel_run_equal(&first, &second)) {
        snprintf(why, sizeof why, "differs between two runs");
        good = false;
    }
    if (!good)
        fprintf(stderr, "%s %s: %s\n", kernel_name(kernel), c.text, why);
    double error = kernel_run_error(&first);
    tally->cases++;
    tally->worst = error > tally->worst ? error : tally->worst;
    tally->failed |= !good;
    kernel_run_free(&first);
    kernel_run_free(&second);
    kernel_case_free(&c);
}

/* A row of the table; false: a case failed. */
static bool check_kernel(const struct cuda_launch *launch, enum kernel kernel, long seeds, long most)
{
    struct tally tally = {0};
    for (long seed = 0; seed < seeds; seed++)
        check_case(launch, kernel, (uint64_t)seed, seed % 3 == 0 ? 40 : most, &tally);
    printf("%s%s,%d,%.3e,%.0e,%s\n", kernel_name(kernel), launch->portable ? " portable" : "", tally.cases, tally.worst,
           kernel_tolerance(kernel), tally.failed ? "FAILED" : "ok");
    fflush(stdout);
    return !tally.failed;
}

/* What has a kernel made for an architecture, and a portable one. */
static const enum kernel twice[] = {KERNEL_ATTENTION_FORWARD, KERNEL_ATTENTION_BACKWARD};

int main(int argc, char **argv)
{
    struct cuda_launch launch;
    char name[320];
    bool failed = false;
    long seeds = argc > 1 ? strtol(argv[1], NULL, 10) : 12, most = argc > 2 ? strtol(argv[2], NULL, 10) : 300;
    long first = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    if (!gpu_open(&launch, name, sizeof name))
        return EXIT_SKIPPED;
    fprintf(stderr, "%s\n", name);
    if (first == 0)
        printf("kernel,cases,worst_error,tolerance,result\n");
    const long rows = N_KERNELS + (launch.portable ? 0 : (long)(sizeof twice / sizeof *twice));
    for (long row = first; row < rows; row++) {
        launch.portable |= row >= N_KERNELS;
        failed |= !check_kernel(&launch, row < N_KERNELS ? (enum kernel)row : twice[row - N_KERNELS], seeds, most);
    }
    gpu_close(&launch);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
