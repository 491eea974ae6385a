/* Probes on the CPU: what experts' kernels go by is what routing would say, and rates are work over time as often as a job does
 * it. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "runtime/probe_cases.h"
#include "tests/runtime/toys.h"

START_TEST(a_spread_is_as_sorting_says)
{
    static const struct probe_routing routings[] = {{16, 4}, {24, 8}, {10, 4}, {3, 8}, {7, 1}};
    struct probe_routing r = routings[_i];
    int32_t *integers = memory_new((size_t)probe_routing_integers(&r), sizeof *integers);
    int32_t *counts = memory_new((size_t)r.experts, sizeof *counts), *place = memory_new((size_t)r.copies, sizeof *place);
    probe_routing_fill(&r, integers);
    struct kernel_call sort = {
        .kernel = KERNEL_EXPERT_SORT,
        .expert_sort = {.n = r.copies, .experts = r.experts, .expert = integers, .counts = counts, .place = place}};
    kernel_reference_run(&sort);
    const int32_t *offsets = integers + 2 * r.copies;
    ck_assert(memcmp(place, integers + r.copies, (size_t)r.copies * sizeof *place) == 0);
    ck_assert_int_eq(offsets[0], 0);
    for (int e = 0; e < r.experts; e++)
        ck_assert_int_eq(offsets[e + 1] - offsets[e], counts[e]);
    free(integers);
    free(counts);
    free(place);
}
END_TEST

static int count_op(const struct probe_result *result, const char *op)
{
    int n = 0;
    for (int i = 0; i < result->n_rows; i++)
        n += strcmp(result->rows[i].op, op) == 0;
    return n;
}

/* Two products an expert, three kernels each; nothing of it without experts. */
START_TEST(a_job_with_experts_has_their_kernels)
{
    static const enum toy_model models[] = {TOY_GPT, TOY_MIXTURE, TOY_PREDICTION};
    static const char *const others[] = {"top_k", "expert_sort", "permute", "combine_forward", "combine_backward"};
    struct toy toy;
    struct probe_result result;
    struct diags diags = {0};
    toy_make(&toy, models[_i]);
    toy_complete(&toy);
    struct probe_options options = {.ranks = 1, .seconds = 1e-4, .layout = &toy.layout, .setting = &toy.setting};
    ck_assert(probe_cpu(&options, &result, &diags) == STATUS_OK);
    ck_assert_int_eq(count_op(&result, "grouped_gemm"), toy.model.moe.experts ? 6 : 0);
    for (int i = 0; i < COUNT(others); i++)
        ck_assert_int_eq(count_op(&result, others[i]), toy.model.moe.experts ? 1 : 0);
    for (int i = 0; i < result.n_rows; i++)
        ck_assert_msg(result.rows[i].seconds > 0, "%s", result.rows[i].op);
    probe_result_free(&result);
    diags_free(&diags);
}
END_TEST

/* 3 times 2 GFLOP in 1 s and once 4 GFLOP in 7 s are 10 GFLOP in 10 s; a core for two ranks was half of one. */
START_TEST(rates_are_of_what_a_job_executes)
{
    struct toy toy;
    struct cluster cluster;
    struct probe_row rows[] = {{.op = "nothing", .times = 1},
                               {.op = "gemm", .times = 3, .flops = 2e9, .seconds = 1, .fastest = 1},
                               {.op = "grouped_gemm", .times = 1, .flops = 4e9, .seconds = 7, .fastest = 7}};
    struct probe_result result = {.rows = rows, .n_rows = COUNT(rows), .element_bytes = 4};
    struct probe_device device = {.memory_bytes = 1e9};
    toy_make(&toy, TOY_MIXTURE);
    toy_complete(&toy);
    struct probe_options options = {.ranks = 1, .layout = &toy.layout, .setting = &toy.setting};
    probe_fit(&options, &result, &device, 2, &cluster);
    ck_assert_double_eq_tol(cluster.gpu.peak_flops[PRECISION_FP32], 1e9, 1);
    options.turns = 2;
    probe_fit(&options, &result, &device, 2, &cluster);
    ck_assert_double_eq_tol(cluster.gpu.peak_flops[PRECISION_FP32], 2e9, 1);
    options.layout = NULL; /* of no job: products alone */
    options.turns = 0.5;
    probe_fit(&options, &result, &device, 2, &cluster);
    ck_assert_double_eq_tol(cluster.gpu.peak_flops[PRECISION_FP32], 2e9, 1);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {a_spread_is_as_sorting_says, 5},
        {a_job_with_experts_has_their_kernels, 3},
        {rates_are_of_what_a_job_executes, 1},
    };
    return toy_suite("probes", tests, COUNT(tests));
}
