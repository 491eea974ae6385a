/* Launches and accesses in emulation (emulation.cuh): what a GPU would refuse is refused here. */
#include <check.h>
#include <stdlib.h>

extern "C" {
#include "tests/kernels/emulated_run.h"
}
#include "kernels/vector.cuh"
#include "tests/suite.h"

static void nothing(void)
{
}

static void nothing_either(void)
{
}

/* The limits of CUDA's technical specifications, each at its last good value and one beyond. */
START_TEST(grids_and_blocks)
{
    const void *kernel = (const void *)nothing;
    const dim3 warp(32);
    ck_assert_int_eq(emulation::launch_answer(kernel, dim3(INT32_MAX, 65535, 65535), dim3(1024), 0), cudaSuccess);
    ck_assert_int_eq(emulation::launch_answer(kernel, dim3((unsigned)INT32_MAX + 1), warp, 0), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(emulation::launch_answer(kernel, dim3(1, 65536), warp, 0), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(emulation::launch_answer(kernel, dim3(1, 1, 65536), warp, 0), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(emulation::launch_answer(kernel, dim3(0), warp, 0), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(emulation::launch_answer(kernel, dim3(1, 0), warp, 0), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(emulation::launch_answer(kernel, dim3(1), dim3(0), 0), cudaErrorInvalidConfiguration);
    ck_assert_int_eq(emulation::launch_answer(kernel, dim3(1), dim3(1056), 0), cudaErrorInvalidConfiguration);
}
END_TEST

/* More than 48 KiB of shared memory is there for the kernel that asked, as much as it last asked for. */
START_TEST(shared_memory)
{
    enum { FREE = 48 << 10, MORE = 100 << 10 };
    ck_assert_int_eq(launch_kernel(nothing, dim3(1), dim3(32), FREE, NULL), cudaSuccess);
    ck_assert_int_eq(launch_kernel(nothing, dim3(1), dim3(32), FREE + 1, NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(allow_shared(nothing, MORE), cudaSuccess);
    ck_assert_int_eq(launch_kernel(nothing, dim3(1), dim3(32), MORE, NULL), cudaSuccess);
    ck_assert_int_eq(launch_kernel(nothing, dim3(1), dim3(32), MORE + 1, NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(launch_kernel(nothing_either, dim3(1), dim3(32), MORE, NULL), cudaErrorInvalidValue);
    ck_assert_int_eq(allow_shared(nothing, FREE), cudaSuccess);
    ck_assert_int_eq(launch_kernel(nothing, dim3(1), dim3(32), MORE, NULL), cudaErrorInvalidValue);
    ck_assert_int_ne(allow_shared(nothing, (size_t)228 << 10), cudaSuccess);
}
END_TEST

/* Where a block has little of it, scans by chunks have fewer columns, or go token by token. */
START_TEST(scans_in_little_shared_memory)
{
    const enum kernel kernel = _i % 2 ? KERNEL_SCAN_BACKWARD : KERNEL_SCAN_FORWARD;
    struct scan_call scan = {};
    struct kernel_case c;
    char why[200] = "";
    scan.batch = scan.groups = 1, scan.seq_len = 70, scan.chunk = 32, scan.head_dim = _i % 4 < 2 ? 40 : 8;
    scan.state = _i / 2 % 2 ? 136 : 72, scan.delta = _i / 4;
    emulation::most_shared = emulation::SHARED_OF_SM_89;
    emulated_draw_scan(&c, kernel, (uint64_t)_i, scan, true);
    ck_assert_msg(emulated_agrees(&c, false, why, sizeof why), "%s", why);
    emulation::most_shared = emulation::SHARED_OF_SM_80;
}
END_TEST

/* Where it has more, the delta rule's next chunk arrives meanwhile. */
START_TEST(scans_in_much_shared_memory)
{
    struct scan_call scan = {};
    struct kernel_case c;
    char why[200] = "";
    scan.batch = scan.groups = 1, scan.seq_len = 400, scan.chunk = 32, scan.head_dim = 40, scan.state = 72, scan.delta = true;
    emulation::most_shared = emulation::SHARED_OF_SM_90;
    emulated_draw_scan(&c, KERNEL_SCAN_BACKWARD, (uint64_t)_i, scan, true);
    c.amplification = scan_amplification(&c.call.scan);
    ck_assert_msg(emulated_agrees(&c, false, why, sizeof why), "%s", why);
    emulation::most_shared = emulation::SHARED_OF_SM_80;
}
END_TEST

/* Forward all states find tiles that 99 KiB hold, backward those of up to 64 rows without the delta rule. */
START_TEST(scans_that_fit_little_shared_memory)
{
    static const int states[] = {64, 128, 256};
    struct scan_call scan = {};
    scan.batch = scan.groups = 1, scan.heads = 2, scan.rows = 1, scan.seq_len = 64, scan.head_dim = 64,
    scan.state = states[_i % 3];
    scan.delta = _i / 3;
    ck_assert(scan_chunks_fit(&scan) && scan_chunks_fit_backward(&scan));
    emulation::most_shared = emulation::SHARED_OF_SM_89;
    ck_assert(scan_chunks_fit(&scan));
    ck_assert_int_eq(scan_chunks_fit_backward(&scan), scan.state <= 64 && !scan.delta);
    emulation::most_shared = (size_t)48 << 10;
    ck_assert(!scan_chunks_fit(&scan));
    emulation::most_shared = emulation::SHARED_OF_SM_80;
}
END_TEST

/* Accesses of 8 and 16 bytes, to bf16 and fp32, one element off. Loads of 16 bytes are not here: clang does not check where a
 * whole uint4 or float4 is copied from, gcc does. */
static void access_kernel(const bf16 *narrow, float *wide, int kind)
{
    float four[4] = {};
    if (kind == 0)
        load<4>(four, narrow);
    if (kind == 1)
        store<4>(wide, four);
    if (threadIdx.x == 0 && kind == 0)
        wide[0] = four[0];
}

enum { N_ACCESSES = 2 };

static void access_memory(int kind, int displaced)
{
    static bf16 narrow[64] __attribute__((aligned(16)));
    static float wide[64] __attribute__((aligned(16)));
    ck_assert_int_eq(
        launch_kernel(access_kernel, dim3(1), dim3(32), 0, NULL, (const bf16 *)narrow + displaced, wide + displaced, kind),
        cudaSuccess);
}

START_TEST(aligned_accesses)
{
    access_memory(_i, 0);
    access_memory(_i, 16);
}
END_TEST

START_TEST(accesses_off_by_one)
{
    access_memory(_i, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launches, emulated");
    TCase *tcase = tcase_create("limits");
    tcase_add_test(tcase, grids_and_blocks);
    tcase_add_test(tcase, shared_memory);
    tcase_add_loop_test(tcase, scans_in_little_shared_memory, 0, 8);
    tcase_add_loop_test(tcase, scans_in_much_shared_memory, 0, 3);
    tcase_add_loop_test(tcase, scans_that_fit_little_shared_memory, 0, 6);
    tcase_add_loop_test(tcase, aligned_accesses, 0, N_ACCESSES);
    tcase_add_loop_exit_test(tcase, accesses_off_by_one, EXIT_FAILURE, 0, N_ACCESSES);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
