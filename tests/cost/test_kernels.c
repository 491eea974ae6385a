/* GEMM, attention and memory-bound kernels: limits that follow from the theory in their headers. */
#include <math.h>

#include "model/cost/attention.h"
#include "model/cost/data_loading.h"
#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "shapes.h"

static struct gpu plain_gpu(void)
{
    struct shape shape;
    shape_megascale(&shape);
    struct gpu gpu = shape.cluster.gpu;
    gpu.launch_s = 0;
    gpu.sustained_clock = 1;
    gpu.gemm[PRECISION_BF16] = (struct gemm_parameters){
        .peak_fraction = 1, .small_tile_fraction = 1, .smallest_tile_fraction = 1, .quantisation = 1, .memory_fraction = 1};
    return gpu;
}

static struct cost gemm(const struct gpu *gpu, int64_t m, int64_t n, int64_t k)
{
    struct work_gemm g = {.m = m, .n = n, .k = k, .count = 1, .precision = PRECISION_BF16, .output_bytes = 2};
    return gemm_cost(gpu, &g);
}

/* 108 SMs, tiles of 256 x 128: 108 tiles fill one wave; the 109th costs a second one (performance guide's example), unless
 * smaller tiles do better. */
START_TEST(gemm_pays_for_whole_waves)
{
    struct gpu gpu = plain_gpu();
    gpu.gemm[PRECISION_BF16].small_tile_fraction = 0.01; /* leave only the large tile */
    double full = gemm(&gpu, 256, 128 * 108, 65536).compute_s, over = gemm(&gpu, 256, 128 * 109, 65536).compute_s;
    double tile = 2.0 * 256 * 128 * 65536 / (312e12 / 108);
    ck_assert_double_eq_tol(full, tile, tile * 1e-9);
    ck_assert_double_gt(over, 1.05 * tile); /* k is divided: 17 sixteenths of a wave, and the partial sums */
    ck_assert_double_lt(over, 2 * tile);
    gpu.gemm[PRECISION_BF16].split_s = 1; /* a library that does not divide k */
    ck_assert_double_eq_tol(gemm(&gpu, 256, 128 * 109, 65536).compute_s, 2 * tile, tile * 1e-9);
}
END_TEST

START_TEST(gemm_reaches_the_peak_fraction_when_large)
{
    struct gpu gpu = plain_gpu();
    gpu.gemm[PRECISION_BF16].peak_fraction = 0.8;
    double ideal = 2.0 * 65536 * 65536 * 65536 / (0.8 * 312e12);
    ck_assert_double_eq_tol(gemm(&gpu, 65536, 65536, 65536).compute_s / ideal, 1, 0.01);
}
END_TEST

START_TEST(thin_gemm_is_limited_by_memory)
{
    struct gpu gpu = plain_gpu();
    double bytes = 2.0 * (64.0 * 16384 + 16384.0 * 16384 + 64.0 * 16384);
    double seconds = cost_seconds(gemm(&gpu, 64, 16384, 16384));
    ck_assert_double_ge(seconds, bytes / gpu.hbm_rate);
    ck_assert_double_le(seconds, 1.25 * bytes / gpu.hbm_rate);
}
END_TEST

START_TEST(gemm_grows_with_every_dimension)
{
    struct shape shape;
    shape_megascale(&shape);
    const struct gpu *gpu = &shape.cluster.gpu;
    for (int64_t k = 512; k <= 16384; k *= 2)
        ck_assert_double_lt(cost_seconds(gemm(gpu, 2048, 4096, k)), cost_seconds(gemm(gpu, 2048, 4096, 2 * k)));
    for (int64_t m = 512; m <= 16384; m *= 2)
        ck_assert_double_lt(cost_seconds(gemm(gpu, m, 4096, 4096)), cost_seconds(gemm(gpu, 2 * m, 4096, 4096)));
}
END_TEST

START_TEST(attention_counts_pairs_and_heads)
{
    struct shape shape;
    shape_megascale(&shape);
    struct gpu gpu = shape.cluster.gpu;
    gpu.launch_s = 0;
    gpu.sustained_clock = 1;
    gpu.attention = (struct attention_parameters){.forward_fraction = 0.5, .backward_fraction = 0.5};
    double s = 8192, pairs = s * (s + 1) / 2;
    struct work_attention a = {.batch = 4,
                               .query_tokens = 8192,
                               .key_tokens = 8192,
                               .pairs = pairs,
                               .heads = 27,
                               .kv_heads = 27,
                               .head_dim = 128,
                               .value_dim = 128,
                               .fused = 2};
    double flops = 4.0 * 128 * pairs * 4 * 27;
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, false)), flops / (0.5 * 312e12), 1e-9);
    ck_assert_double_eq_tol(cost_seconds(attention_cost(&gpu, &a, true)), 2.5 * flops / (0.5 * 312e12), 1e-9);
}
END_TEST

START_TEST(memory_bound_is_bytes_over_bandwidth)
{
    struct gpu gpu = plain_gpu();
    gpu.memory = (struct memory_parameters){.bandwidth_fraction = 0.5};
    struct work_memory w = {.bytes = 2039e9, .count = 3};
    ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&gpu, &w)), 2, 1e-9);
}
END_TEST

/* 1,024 samples of 2,048 tokens over 16 replicas: 64 samples of 1 ms and 64 x 2,048 x 16 bytes over 1 MB/s; none with async_data.
 */
START_TEST(data_waits_for_samples_and_bytes)
{
    struct job job = {.global_batch = 1024, .seq_len = 2048};
    struct cluster cluster = {.gpu = plain_gpu(), .data_sample_s = 1e-3};
    cluster.gpu.pcie_rate = 1e6;
    struct setting setting = {.cluster = &cluster, .job = &job};
    struct layout layout = {.dp = 16, .cp = 1};
    ck_assert_double_eq_tol(data_loading_seconds(&layout, &setting), 0.064 + 2.097152, 1e-12);
    layout.features = FEATURE_BIT(ASYNC_DATA);
    ck_assert_double_eq(data_loading_seconds(&layout, &setting), 0);
}
END_TEST

Suite *suite_kernels(void)
{
    Suite *suite = suite_create("kernels");
    TCase *all = tcase_create("all");
    tcase_add_test(all, gemm_pays_for_whole_waves);
    tcase_add_test(all, gemm_reaches_the_peak_fraction_when_large);
    tcase_add_test(all, thin_gemm_is_limited_by_memory);
    tcase_add_test(all, gemm_grows_with_every_dimension);
    tcase_add_test(all, attention_counts_pairs_and_heads);
    tcase_add_test(all, memory_bound_is_bytes_over_bandwidth);
    tcase_add_test(all, data_waits_for_samples_and_bytes);
    suite_add_tcase(suite, all);
    return suite;
}
