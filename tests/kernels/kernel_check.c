/*
 * kernel_check [SEEDS [SIZE [FIRST]]] - every kernel (from number FIRST on) on the GPU against its reference over random shapes:
 * values within the kernel's tolerance, outputs poisoned before, guards intact, inputs untouched, the same bits twice (matrix
 * products excepted). CSV on stdout: kernel,cases,worst_error,tolerance,result. What has a kernel made for the device's
 * architecture is checked twice: first with the portable one ("portable" behind the name), which is known then should the other
 * one hang; MSIM_PORTABLE_KERNELS, when set, leaves the portable ones alone. Linear layers come again with operands of 8 bits,
 * where the device has products of those: with one scale ("bytes"), and with scales of blocks ("blocks"). Scans come again in
 * sizes that go by chunks on tensor cores ("chunks"), with the delta rule, too ("delta"). Exit 1 when one failed, 3 when one left
 * the GPU unusable for this process (FIRST goes on behind it), 77 without a GPU.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/gemm_library.h"
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

/* How a row of the table is checked; the cells behind the kernel's name. */
enum how { AS_IT_IS, IN_BYTES, IN_BLOCKS, IN_CHUNKS, IN_DELTA, PORTABLE };
static const char *const how_names[] = {"", " bytes", " blocks", " chunks", " delta", " portable"};

struct row {
    enum kernel kernel;
    enum how how;
};

static void draw(struct kernel_case *c, const struct row *row, uint64_t seed, int64_t size)
{
    struct random_stream random = random_stream_named(seed, 21, (uint64_t)row->kernel);
    if (row->how == IN_BYTES || row->how == IN_BLOCKS)
        kernel_case_draw_bytes(c, row->kernel, row->how == IN_BLOCKS, linear_narrow_scratch, &random);
    else if (row->how == IN_CHUNKS || row->how == IN_DELTA)
        kernel_case_draw_chunked(c, row->kernel, (int)seed, row->how == IN_DELTA, &random);
    else
        kernel_case_draw(c, row->kernel, &random, size);
}

static void check_case(const struct cuda_launch *launch, const struct row *row, uint64_t seed, int64_t size, struct tally *tally)
{
    struct kernel_case c;
    struct kernel_run first, second;
    char why[200] = "";
    draw(&c, row, seed, size);
    bool good = run_once(launch, &c, &first);
    good = run_once(launch, &c, &second) && good;
    kernel_case_reference(&c);
    if (good && !kernel_run_check(&first, why, sizeof why))
        good = false;
    else if (good && !is_product(row->kernel) && !kernel_run_equal(&first, &second)) {
        snprintf(why, sizeof why, "differs between two runs");
        good = false;
    }
    if (!good)
        fprintf(stderr, "%s%s %s: %s\n", kernel_name(row->kernel), how_names[row->how], c.text, why);
    double error = kernel_run_error(&first);
    tally->cases++;
    tally->worst = error > tally->worst ? error : tally->worst;
    tally->failed |= !good;
    kernel_run_free(&first);
    kernel_run_free(&second);
    kernel_case_free(&c);
}

/* False: a case failed. */
static bool check_row(const struct cuda_launch *launch, const struct row *row, long seeds, long most)
{
    struct tally tally = {0};
    const bool chunked = row->how == IN_CHUNKS || row->how == IN_DELTA;
    const long cases = chunked && seeds < N_CHUNKED ? N_CHUNKED : seeds; /* every width of tiles */
    for (long seed = 0; seed < cases; seed++)
        check_case(launch, row, (uint64_t)seed, seed % 3 == 0 ? 40 : most, &tally);
    printf("%s%s,%d,%.3e,%.0e,%s\n", kernel_name(row->kernel), how_names[row->how], tally.cases, tally.worst,
           kernel_tolerance(row->kernel), tally.failed ? "FAILED" : "ok");
    fflush(stdout);
    return !tally.failed;
}

enum { LINEARS = 3, BYTES_FROM = 89, BLOCKS_FROM = 100, MOST_ROWS = N_KERNELS + 2 * LINEARS + 4 + 2 };

/* Every kernel, and again what a device of this compute capability (90: 9.0) does in several ways. */
static int list_rows(struct row rows[MOST_ROWS], int capability, bool portable)
{
    static const enum kernel twice[] = {KERNEL_ATTENTION_FORWARD, KERNEL_ATTENTION_BACKWARD};
    int n = 0;
    for (int i = 0; i < 2 && !portable; i++)
        rows[n++] = (struct row){twice[i], PORTABLE};
    for (int kernel = 0; kernel < N_KERNELS; kernel++)
        rows[n++] = (struct row){(enum kernel)kernel, portable ? PORTABLE : AS_IT_IS};
    for (int i = 0; i < LINEARS && capability >= BYTES_FROM; i++)
        rows[n++] = (struct row){(enum kernel)(KERNEL_LINEAR_FORWARD + i), IN_BYTES};
    for (int i = 0; i < LINEARS && capability >= BLOCKS_FROM; i++)
        rows[n++] = (struct row){(enum kernel)(KERNEL_LINEAR_FORWARD + i), IN_BLOCKS};
    rows[n++] = (struct row){KERNEL_SCAN_FORWARD, IN_CHUNKS};
    rows[n++] = (struct row){KERNEL_SCAN_BACKWARD, IN_CHUNKS};
    rows[n++] = (struct row){KERNEL_SCAN_FORWARD, IN_DELTA};
    rows[n++] = (struct row){KERNEL_SCAN_BACKWARD, IN_DELTA};
    return n;
}

int main(int argc, char **argv)
{
    struct cuda_launch launch;
    struct row rows[MOST_ROWS];
    char name[320];
    bool failed = false;
    long seeds = argc > 1 ? strtol(argv[1], NULL, 10) : 12, most = argc > 2 ? strtol(argv[2], NULL, 10) : 300;
    long first = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    if (!gpu_open(&launch, name, sizeof name))
        return EXIT_SKIPPED;
    fprintf(stderr, "%s\n", name);
    if (first == 0)
        printf("kernel,cases,worst_error,tolerance,result\n");
    fflush(stdout); /* the campaign counts lines should the first kernel hang */
    const bool portable = launch.portable;
    const int n = list_rows(rows, gpu_capability(), portable);
    for (int i = (int)first; i < n; i++) {
        launch.portable = portable || rows[i].how == PORTABLE;
        failed |= !check_row(&launch, &rows[i], seeds, most);
    }
    gpu_close(&launch);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
