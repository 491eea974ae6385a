/* Probes on the CPU: what experts' kernels go by is what routing would say, and rates are work over time as often as a job does
 * it. */
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "model/cost/kernel/memory_bound.h"
#include "model/cost/work/host_memory.h"
#include "runtime/probe/probe_cases.h"
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

/* A cluster of `ranks` ranks from rows of four bytes per element, for a toy job; layout NULL: for no job. */
static struct cluster fit_rows(const struct toy *toy, const struct layout *layout, int ranks, struct probe_row *rows, int n_rows)
{
    const struct probe_options options = {.ranks = ranks, .layout = layout, .setting = &toy->setting};
    const struct probe_result result = {.rows = rows, .n_rows = n_rows, .element_bytes = 4};
    const struct probe_device device = {.memory_bytes = 1e9};
    struct cluster cluster;
    probe_fit(&options, &result, &device, ranks, &cluster);
    return cluster;
}

/* 3 times 2 GFLOP in 1 s and once 4 GFLOP in 7 s are 10 GFLOP in 10 s. */
START_TEST(rates_are_of_what_a_job_executes)
{
    struct toy toy;
    struct probe_row rows[] = {{.op = "nothing", .times = 1},
                               {.op = "gemm", .times = 3, .flops = 2e9, .seconds = 1},
                               {.op = "grouped_gemm", .times = 1, .flops = 4e9, .seconds = 7}};
    toy_make(&toy, TOY_MIXTURE);
    toy_complete(&toy);
    struct cluster cluster = fit_rows(&toy, &toy.layout, 2, rows, COUNT(rows));
    ck_assert_double_eq_tol(cluster.gpu.peak_flops[PRECISION_FP32], 1e9, 1);
    cluster = fit_rows(&toy, NULL, 2, rows, COUNT(rows)); /* of no job: products alone */
    ck_assert_double_eq_tol(cluster.gpu.peak_flops[PRECISION_FP32], 2e9, 1);
}
END_TEST

static struct probe_row part_row(enum memory_kernel part, double times, double seconds)
{
    return (struct probe_row){.op = "kernel", .part = part, .times = times, .elements = 1000, .seconds = seconds};
}

/* The first operation of a kind in the works of a job takes what its kernels took, each as often as the operation has it: the
 * residual's backward pass the half of a sum and the columns' sums. */
START_TEST(an_operation_takes_what_its_kernels_take)
{
    static const struct {
        enum memory_kernel kernel;
        double seconds;
    } expected[] = {{MEMORY_ACTIVATION, 0.5}, {MEMORY_RESIDUAL_BACKWARD, 0.2}, {MEMORY_LOSS, 0.75}, {MEMORY_OPTIMIZER, 3}};
    struct toy toy;
    struct work_table table = {0};
    struct probe_row rows[] = {{.op = "nothing"},
                               {.op = "gemm", .times = 1, .flops = 1e9, .seconds = 1},
                               {.op = "copy", .times = 1, .bytes = 8e9, .seconds = 1},
                               part_row(MEMORY_ACTIVATION, 1, 0.5),
                               part_row(MEMORY_RESIDUAL_BACKWARD, 0.5, 0.2),
                               part_row(MEMORY_RESIDUAL_BACKWARD, 1, 0.1),
                               part_row(MEMORY_LOSS, 1, 0.25),
                               part_row(MEMORY_LOSS, 1, 0.5),
                               part_row(MEMORY_OPTIMIZER, 1, 1),
                               part_row(MEMORY_OPTIMIZER, 1, 2)};
    toy_make(&toy, TOY_GPT);
    toy_complete(&toy);
    struct cluster cluster = fit_rows(&toy, &toy.layout, 1, rows, COUNT(rows));
    ck_assert_double_eq_tol(cluster.gpu.hbm_rate, 4e9, 1); /* counted with two bytes an element */
    ck_assert(cluster.gpu.memory.rate[MEMORY_NORM] == 0);  /* not probed */
    for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++)
        work_add_pass(&table, &toy.layout, &toy.setting, (enum pass)pass, (struct layer_range){0, toy.model.layers}, true, true);
    work_add_optimizer(&table, &toy.setting, 1000, 0);
    for (int k = 0; k < COUNT(expected); k++)
        for (int32_t i = 0; i < table.n_items; i++)
            if (table.items[i].kind == WORK_MEMORY_BOUND && table.items[i].memory.kernel == expected[k].kernel)
                ck_assert_double_eq_tol(cost_seconds(memory_bound_cost(&cluster.gpu, &table.items[i].memory)),
                                        expected[k].seconds, 1e-9);
    work_table_free(&table);
}
END_TEST

/* 1 ms whatever they carry and 1 GB/s of the bus; the rate is of bytes that are counted by halves. A reduction is on the bus
 * twice.
 */
START_TEST(exchanges_have_a_base_and_a_rate)
{
    struct toy toy;
    struct probe_row rows[] = {{.op = "nothing"},
                               {.op = "gemm", .times = 1, .flops = 1e9, .seconds = 1},
                               {.op = "all_gather", .times = 1, .ranks = 2, .bytes = 2e3, .worked = 1e-3 + 1e-6},
                               {.op = "all_reduce", .times = 1, .ranks = 2, .bytes = 2e3, .worked = 1e-3 + 2e-6},
                               {.op = "all_gather", .times = 6, .ranks = 2, .bytes = 2e6, .worked = 2e-3},
                               {.op = "all_reduce", .times = 4, .ranks = 2, .bytes = 4e6, .worked = 5e-3}};
    toy_make(&toy, TOY_GPT);
    toy_complete(&toy);
    struct cluster cluster = fit_rows(&toy, &toy.layout, 2, rows, COUNT(rows));
    ck_assert_double_eq_tol(cluster.gpu.nccl_base_s, 1e-3, 1e-9);
    ck_assert_double_eq_tol(cluster.gpu.nccl_rate, 0.5e9, 1);
}
END_TEST

/* A core that computes and exchanges does one at a time; ranks with two cores each, and GPUs, do both. */
START_TEST(exchanges_take_the_core_that_computes)
{
    static const struct {
        const char *gpu;
        int cores;
        double share;
    } devices[] = {{"", 3, 1}, {"", 4, 0}, {"some GPU", 1, 0}};
    struct toy toy;
    toy_make(&toy, TOY_GPT);
    toy_complete(&toy);
    for (int i = 0; i < COUNT(devices); i++) {
        struct probe_row row = {.op = "gemm", .times = 1, .flops = 1e9, .seconds = 1};
        const struct probe_options options = {
            .ranks = 2, .cores = devices[i].cores, .layout = &toy.layout, .setting = &toy.setting};
        const struct probe_result result = {.rows = &row, .n_rows = 1, .element_bytes = 4};
        const struct probe_device device = {.name = devices[i].gpu[0] ? devices[i].gpu : NULL, .memory_bytes = 1e9};
        struct cluster cluster;
        probe_fit(&options, &result, &device, 2, &cluster);
        ck_assert_msg(cluster.gpu.exchange_share == devices[i].share, "case %d: %g", i, cluster.gpu.exchange_share);
    }
}
END_TEST

/* A job that offloads has updates by the host's cores probed, too: two ranks that update side by side at 3 GB/s of what is
 * counted each have half of a memory that gives both as much. */
START_TEST(updates_by_the_host_take_what_they_took)
{
    struct toy toy;
    struct probe_result result;
    struct diags diags = {0};
    struct probe_row rows[] = {{.op = "nothing"},
                               {.op = "gemm", .times = 1, .flops = 1e9, .seconds = 1},
                               {.op = "host_update", .times = 1, .bytes = 3e9, .seconds = 1}};
    toy_make(&toy, TOY_GPT);
    toy.layout.dp = 2;
    toy_complete(&toy);
    struct probe_options options = {.ranks = 2, .seconds = 1e-4, .layout = &toy.layout, .setting = &toy.setting};
    for (int i = 0; i < 3; i++) {
        toy.layout.offload = i ? offload_all(OFFLOAD_OPTIMIZER) : (struct offload){0};
        toy.job.optimizer = i == 2 ? OPTIMIZER_SGD : OPTIMIZER_ADAM;
        ck_assert(probe_cpu(&options, &result, &diags) == STATUS_OK);
        ck_assert_int_eq(count_op(&result, "host_update"), i > 0);
        ck_assert_int_eq(count_op(&result, "host_copy"), i > 0);
        for (int r = 0; r < result.n_rows; r++)
            ck_assert(strcmp(result.rows[r].op, "host_update") != 0 || result.rows[r].seconds > 0);
        probe_result_free(&result);
    }
    struct cluster cluster = fit_rows(&toy, &toy.layout, 2, rows, COUNT(rows));
    ck_assert_double_eq_tol(host_update_rate(&cluster, &toy.layout), 3e9, 1);
    diags_free(&diags);
}
END_TEST

/* A job that offloads has its copies probed, on ranks side by side; a copy of what the cost model counts as two bytes an element
 * takes what that of the same elements took: 8 GB/s of four bytes are 4 GB/s. Without offloading nothing is copied. */
START_TEST(copies_to_the_host_take_what_they_took)
{
    struct toy toy;
    struct cluster cluster;
    struct probe_result result;
    struct diags diags = {0};
    struct probe_row rows[] = {{.op = "nothing"},
                               {.op = "gemm", .times = 1, .flops = 1e9, .seconds = 1},
                               {.op = "host_copy", .times = 1, .bytes = 2e3, .seconds = 1},
                               {.op = "host_copy", .times = 1, .bytes = 8e9, .seconds = 1}};
    struct probe_device device = {.memory_bytes = 1e9};
    toy_make(&toy, TOY_GPT);
    toy_complete(&toy);
    struct probe_options options = {.ranks = 2, .seconds = 1e-4, .layout = &toy.layout, .setting = &toy.setting};
    for (int offloads = 0; offloads < 2; offloads++) {
        toy.layout.offload = offload_wholes[offloads ? 2 : 0];
        ck_assert(probe_cpu(&options, &result, &diags) == STATUS_OK);
        ck_assert_int_eq(count_op(&result, "host_copy"), offloads);
        probe_fit(&options, &result, &device, 2, &cluster);
        ck_assert((cluster.gpu.host_rate > 0) == (offloads == 1));
        probe_result_free(&result);
    }
    cluster = fit_rows(&toy, &toy.layout, 2, rows, COUNT(rows));
    ck_assert_double_eq_tol(host_link_rate(&cluster, &toy.layout), 4e9, 1);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {a_spread_is_as_sorting_says, 5},
        {a_job_with_experts_has_their_kernels, 3},
        {rates_are_of_what_a_job_executes, 1},
        {an_operation_takes_what_its_kernels_take, 1},
        {exchanges_have_a_base_and_a_rate, 1},
        {exchanges_take_the_core_that_computes, 1},
        {copies_to_the_host_take_what_they_took, 1},
        {updates_by_the_host_take_what_they_took, 1},
    };
    return toy_suite("probes", tests, COUNT(tests));
}
