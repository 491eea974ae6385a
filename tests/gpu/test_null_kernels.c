/* The host code of kernels on the null GPU: limits of grids, and how often the device is asked. */
#include <check.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "kernels/cuda_operations.h"
#include "tests/gpu/null_cuda_internal.h"
#include "tests/suite.h"

static struct cuda_launch kernels_launch(void)
{
    struct cuda_launch launch = {.workspace_bytes = CUDA_WORKSPACE_BYTES, .multiprocessors = 132};
    int count;
    cudaGetDeviceCount(&count);
    cudaStreamCreate(&launch.stream);
    cudaMalloc(&launch.workspace, launch.workspace_bytes);
    return launch;
}

/* Pointers that are aligned; no kernel follows them. */
static struct attention_call attention_of(int64_t batch, int heads)
{
    static char anything[256] __attribute__((aligned(256)));
    return (struct attention_call){.batch = batch,
                                   .seq_len = 256,
                                   .heads = heads,
                                   .kv_heads = heads,
                                   .head_dim = 128,
                                   .qkv = anything,
                                   .out = anything,
                                   .log_sum_exp = (float *)anything,
                                   .dout = anything,
                                   .dqkv = anything,
                                   .workspace = anything};
}

START_TEST(attention_refuses_grids_that_are_too_large)
{
    const struct cuda_launch launch = kernels_launch();
    const struct attention_call heads = attention_of(1, 65536), batch = attention_of(65536, 1), most = attention_of(65535, 1);
    ck_assert(!attention_forward_has_hopper(&heads) && !attention_backward_has_hopper(&batch));
    ck_assert_int_eq(attention_forward_cuda(&launch, &heads), cudaErrorInvalidValue);
    ck_assert_int_eq(attention_forward_cuda(&launch, &batch), cudaErrorInvalidValue);
    ck_assert_int_eq(attention_backward_cuda(&launch, &heads), cudaErrorInvalidValue);
    ck_assert_int_eq(attention_backward_cuda(&launch, &batch), cudaErrorInvalidValue);
    ck_assert_int_eq(attention_forward_cuda(&launch, &most), cudaSuccess);
    ck_assert_int_eq(attention_backward_cuda(&launch, &most), cudaSuccess);
}
END_TEST

/* What a device and a driver offer is asked for once, not at each launch; a tensor map is made for each. */
START_TEST(attention_asks_the_device_once)
{
    const struct cuda_launch launch = kernels_launch();
    const struct attention_call call = attention_of(2, 4);
    ck_assert_int_eq(attention_forward_cuda(&launch, &call), cudaSuccess);
    ck_assert_int_eq(attention_backward_cuda(&launch, &call), cudaSuccess);
    const struct null_counts before = null_counts;
    enum { TIMES = 10 };
    for (int i = 0; i < TIMES; i++) {
        ck_assert_int_eq(attention_forward_cuda(&launch, &call), cudaSuccess);
        ck_assert_int_eq(attention_backward_cuda(&launch, &call), cudaSuccess);
    }
    ck_assert_int_eq(null_counts.launches - before.launches, 4 * TIMES);
    ck_assert_int_eq(null_counts.encodings - before.encodings, 3 * TIMES);
    ck_assert_int_eq(null_counts.attributes - before.attributes, 3 * TIMES); /* which device is current, for each kernel */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels' host code on the null GPU");
    TCase *tcase = tcase_create("attention");
    tcase_add_test(tcase, attention_refuses_grids_that_are_too_large);
    tcase_add_test(tcase, attention_asks_the_device_once);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
