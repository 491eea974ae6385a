/*
 * kernels/gemm_cublaslt.c with a cuBLASLt on the CPU that is as strict as the documentation (emulated_cublaslt.c): what linear
 * layers ask for is what they compute, in bf16 and bytes; what a GPU does not multiply becomes a sentence.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm_library.h"
#include "model/base/memory.h"
#include "tests/kernels/kernel_device.h"
#include "tests/suite.h"

static char workspace[1 << 20] __attribute__((aligned(256)));

static struct cuda_launch launch_new(void)
{
    struct cuda_launch launch = {.workspace = workspace, .workspace_bytes = sizeof workspace, .multiprocessors = 2};
    struct diags diags = {0};
    ck_assert_msg(gemm_library_new(&launch.gemm, &diags) == STATUS_OK, "%s", diags.n_items ? diags.items[0].text : "");
    return launch;
}

/* Twice on one library: the second time what was described is found. Frees the case. */
static void check_drawn(const struct cuda_launch *launch, struct kernel_case *c)
{
    struct kernel_run runs[2];
    struct diags diags = {0};
    char why[200] = "";
    for (int i = 0; i < 2; i++) {
        kernel_run_prepare(&runs[i], c, &kernel_device_host);
        ck_assert_msg(kernel_cuda_launch(launch, &runs[i].call, &diags) == STATUS_OK, "%s %s: %s", kernel_name(c->call.kernel),
                      c->text, diags.n_items ? diags.items[0].text : "failed");
        kernel_run_fetch(&runs[i]);
    }
    kernel_case_reference(c);
    ck_assert_msg(kernel_run_check(&runs[0], why, sizeof why), "%s %s: %s", kernel_name(c->call.kernel), c->text, why);
    ck_assert_msg(kernel_run_equal(&runs[0], &runs[1]), "%s %s: differs between two runs", kernel_name(c->call.kernel), c->text);
    kernel_run_free(&runs[0]);
    kernel_run_free(&runs[1]);
    kernel_case_free(c);
}

/* Shapes one after the other on one library, so that none finds another's description. */
START_TEST(linear_layers)
{
    struct cuda_launch launch = launch_new();
    for (uint64_t seed = 0; seed < 40; seed++) {
        const enum kernel kernel = (enum kernel)(KERNEL_LINEAR_FORWARD + (int)(seed % 3));
        struct random_stream random = random_stream_named(seed, 71, (uint64_t)kernel);
        struct kernel_case c;
        kernel_case_draw(&c, kernel, &random, seed % 4 ? 40 : 150);
        check_drawn(&launch, &c);
    }
    gemm_library_free(launch.gemm);
}
END_TEST

/* Each operand in turn is all that begins one element on: the algorithm was chosen for that as well. */
START_TEST(operands_off_by_one)
{
    struct cuda_launch launch = launch_new();
    int n = 1;
    for (int i = 0; i < n; i++) {
        struct random_stream random = random_stream_named(5, 73, 0);
        struct kernel_case c;
        kernel_case_draw(&c, (enum kernel)(KERNEL_LINEAR_FORWARD + _i), &random, 40);
        kernel_case_align(&c);
        n = c.n_operands;
        c.operands[i].displaced = operand_element_bytes(&c.operands[i], true);
        check_drawn(&launch, &c);
    }
    ck_assert_int_ge(n, 3);
    gemm_library_free(launch.gemm);
}
END_TEST

/* One scale on Hopper, blocks on Blackwell: TN in every pass, scales where they belong. */
START_TEST(linear_layers_of_bytes)
{
    const bool in_blocks = _i == 1;
    setenv("MSIM_EMULATED_CAPABILITY", in_blocks ? "100" : "90", 1);
    struct cuda_launch launch = launch_new();
    for (uint64_t seed = 0; seed < 24; seed++) {
        const enum kernel kernel = (enum kernel)(KERNEL_LINEAR_FORWARD + (int)(seed % 3));
        struct random_stream random = random_stream_named(seed, 72, (uint64_t)kernel);
        struct kernel_case c;
        kernel_case_draw_bytes(&c, kernel, in_blocks, linear_narrow_scratch, &random);
        check_drawn(&launch, &c);
    }
    gemm_library_free(launch.gemm);
    unsetenv("MSIM_EMULATED_CAPABILITY");
}
END_TEST

/* A product of ones, m x n x k, that has to fail with the operation's name and cuBLASLt's answer. */
static void check_refused(const struct cuda_launch *launch, struct gemm_fused_call call)
{
    struct diags diags = {0};
    ck_assert_int_eq(gemm_fused_cuda(launch, &call, &diags), STATUS_FAILED);
    ck_assert_int_eq(diags.n_items, 1);
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "gemm of 8 bits"));
    ck_assert_ptr_nonnull(strstr(diags.items[0].text, "CUBLAS_STATUS_NOT_SUPPORTED"));
    diags_free(&diags);
}

/* Blocks on Hopper, two operands in e5m2, a size that 16 does not divide, a pointer that is not one of 16 bytes: each becomes an
 * error, nothing is kept of it, and the same product without the mistake is done. */
START_TEST(what_hopper_does_not_multiply)
{
    struct cuda_launch launch = launch_new();
    uint8_t *x = kernel_device_host.memory_new(4096), *w = kernel_device_host.memory_new(4096);
    uint16_t *y = kernel_device_host.memory_new(8192);
    float one = 1;
    struct diags diags = {0};
    struct narrow_operand scaled = {.format = NARROW_E4M3, .scale = &one}, blocks = {.format = NARROW_E4M3, .blocks = w};
    const struct gemm_fused_call good = {.m = 32, .n = 32, .k = 64, .x = x, .w = w, .y = y, .x_as = scaled, .w_as = scaled};
    memset(x, 0x38, 4096); /* ones */
    memset(w, 0x38, 4096);
    struct gemm_fused_call bad = good;
    bad.x_as = bad.w_as = blocks;
    check_refused(&launch, bad);
    bad = good;
    bad.x_as.format = bad.w_as.format = NARROW_E5M2;
    check_refused(&launch, bad);
    bad = good;
    bad.k = 40;
    check_refused(&launch, bad);
    bad = good;
    bad.x = x + 8;
    check_refused(&launch, bad);
    ck_assert_int_eq(gemm_fused_cuda(&launch, &good, &diags), STATUS_OK);
    for (int i = 0; i < 32 * 32; i++)
        ck_assert_float_eq(float_of_bf16(y[i]), 64);
    gemm_library_free(launch.gemm);
    free(x), free(w), free(y);
}
END_TEST

/* Without cuBLASLt, or in a launch that has none, a sentence. */
START_TEST(no_library)
{
    struct cuda_launch launch = {.workspace = workspace, .workspace_bytes = sizeof workspace};
    struct diags diags = {0};
    uint16_t numbers[4] = {0};
    struct kernel_call call = {.kernel = KERNEL_LINEAR_FORWARD,
                               .linear = {.t = 1, .in = 1, .out = 1, .x = numbers, .w = numbers + 1, .y = numbers + 2}};
    ck_assert_int_eq(kernel_cuda_launch(&launch, &call, &diags), STATUS_MISSING);
    ck_assert_int_eq(diags.n_items, 1);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("products by cuBLASLt, emulated");
    TCase *tcase = tcase_create("products");
    tcase_add_test(tcase, linear_layers);
    tcase_add_loop_test(tcase, operands_off_by_one, 0, 3);
    tcase_add_loop_test(tcase, linear_layers_of_bytes, 0, 2);
    tcase_add_test(tcase, what_hopper_does_not_multiply);
    tcase_add_test(tcase, no_library);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
