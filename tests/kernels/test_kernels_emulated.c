/*
 * The CUDA kernels' source on the CPU (emulation.cuh) against the references: values within each kernel's tolerance, every output
 * element written, nothing beside them, the same bits twice. Matrix products are cuBLASLt's and are not here.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda_launch.h"
#include "kernels/gemm_library.h"
#include "tests/kernels/emulated_run.h"
#include "tests/suite.h"

/* Frees the case. */
static void check_drawn(struct kernel_case *c)
{
    const enum kernel kernel = c->call.kernel;
    char why[200] = "";
    ck_assert_msg(emulated_agrees(c, true, why, sizeof why), "%s %s: %s", kernel_name(kernel), c->text, why);
}

static void check_case(enum kernel kernel, uint64_t seed, int64_t size)
{
    struct random_stream random = random_stream_named(seed, 11, (uint64_t)kernel);
    struct kernel_case c;
    kernel_case_draw(&c, kernel, &random, size);
    check_drawn(&c);
}

START_TEST(emulated)
{
    enum kernel kernel = (enum kernel)_i;
    bool attention = kernel == KERNEL_ATTENTION_FORWARD || kernel == KERNEL_ATTENTION_BACKWARD;
    if (kernel == KERNEL_LINEAR_FORWARD || kernel == KERNEL_LINEAR_BACKWARD_INPUT || kernel == KERNEL_LINEAR_BACKWARD_WEIGHT)
        return;
    for (uint64_t seed = 0; seed < (uint64_t)(attention ? suite_draws(3, 3) : suite_draws(6, 3)); seed++)
        check_case(kernel, seed, attention ? 70 : seed % 2 ? 40 : 110);
}
END_TEST

/* Rows of several warps, and several rows to a block. */
static const enum kernel row_kernels[] = {
    KERNEL_NORM_FORWARD,    KERNEL_NORM_BACKWARD,    KERNEL_COLUMN_SUM,        KERNEL_ROWS,
    KERNEL_COMBINE_FORWARD, KERNEL_COMBINE_BACKWARD, KERNEL_HEAD_NORM_FORWARD, KERNEL_HEAD_NORM_BACKWARD};
enum { N_ROW_KERNELS = sizeof row_kernels / sizeof *row_kernels };

START_TEST(emulated_rows)
{
    for (uint64_t seed = 0; seed < (uint64_t)suite_draws(4, 4); seed++)
        check_case(row_kernels[_i], seed, 900);
}
END_TEST

/* Results of several tiles, sums of more steps than are on their way at once, groups that end anywhere. */
START_TEST(emulated_groups)
{
    for (uint64_t seed = 0; seed < (uint64_t)suite_draws(6, 6); seed++)
        check_case((enum kernel)(KERNEL_GROUPED_FORWARD + _i), seed, 500);
}
END_TEST

/* Linear layers of bytes: what is transposed and put in order for cuBLASLt is right. With one scale, and in blocks. */
static void check_narrow(enum kernel kernel, bool in_blocks, uint64_t seed)
{
    struct kernel_case c;
    char why[200] = "";
    emulated_draw_bytes(&c, kernel, in_blocks, seed);
    ck_assert_msg(emulated_agrees(&c, false, why, sizeof why), "%s %s: %s", kernel_name(kernel), c.text, why);
}

START_TEST(linear_of_bytes)
{
    for (uint64_t seed = 0; seed < (uint64_t)suite_draws(6, 6); seed++)
        check_narrow((enum kernel)(KERNEL_LINEAR_FORWARD + _i / 2), _i % 2, seed);
}
END_TEST

/* Every width of tiles; queries of several blocks before, among and behind keys of several steps. */
START_TEST(emulated_query_ranges)
{
    enum { SEEDS = 12 };
    for (uint64_t seed = 0; seed < (uint64_t)suite_draws(SEEDS, SEEDS); seed++)
        check_case(_i % 2 ? KERNEL_QUERY_RANGE_BACKWARD : KERNEL_QUERY_RANGE_FORWARD, seed + SEEDS * (uint64_t)_i,
                   seed % 3 ? 130 : 270);
}
END_TEST

static void check_query_range(enum kernel kernel, uint64_t seed, struct query_range_call range)
{
    struct kernel_case c;
    emulated_draw_query_range(&c, kernel, seed, range);
    check_drawn(&c);
}

/* Queries whose first or last key stands at the edge of a step, in windows so narrow that one key more or less shows. */
START_TEST(query_ranges_at_the_edges_of_steps)
{
    enum { DIM = 8, QUERIES = 129, FIRST = 62, N_FIRST = 6, WINDOWS = 4 };
    for (int i = 0; i < N_FIRST * WINDOWS; i += suite_is_long() ? 1 : WINDOWS + 1) {
        const int64_t first = FIRST + i / WINDOWS, window = i % WINDOWS ? i % WINDOWS + 1 : 0;
        check_query_range(_i ? KERNEL_QUERY_RANGE_BACKWARD : KERNEL_QUERY_RANGE_FORWARD, (uint64_t)i,
                          (struct query_range_call){.queries = QUERIES,
                                                    .keys = first + QUERIES + 1,
                                                    .first = first,
                                                    .window = window,
                                                    .head_dim = DIM,
                                                    .value_dim = DIM});
    }
}
END_TEST

/* Heads that a tile just holds, and those that it just does not. */
START_TEST(heads_at_the_edges_of_tiles)
{
    static const int sizes[][2] = {{64, 64},   {72, 64},   {64, 72},   {96, 96},   {104, 96},  {96, 104},  {128, 128},
                                   {136, 128}, {128, 136}, {192, 128}, {200, 128}, {192, 136}, {256, 256}, {8, 256}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_query_range(_i ? KERNEL_QUERY_RANGE_BACKWARD : KERNEL_QUERY_RANGE_FORWARD, i,
                          (struct query_range_call){.queries = 9, .keys = 9, .head_dim = sizes[i][0], .value_dim = sizes[i][1]});
}
END_TEST

/* Queries behind the last key, among others of their block that see some: they have seen nothing, and what lies in a tile beyond
 * the last key is no key to them. */
START_TEST(queries_behind_their_keys)
{
    enum { QUERIES = 100, KEYS = 70, WINDOWS = 6 };
    for (int64_t window = 2; window <= WINDOWS; window++) /* of one key alone the gradient is nought */
        check_query_range(
            _i ? KERNEL_QUERY_RANGE_BACKWARD : KERNEL_QUERY_RANGE_FORWARD, (uint64_t)window,
            (struct query_range_call){
                .queries = QUERIES, .keys = KEYS, .first = KEYS - 8, .window = window, .head_dim = 64, .value_dim = 64});
}
END_TEST

/* Keys against their queries: every score is some hundreds below zero, so weights relative to zero vanish. `rows` of each,
 * `row` apart. */
static void oppose(float *q, float *k, int64_t rows, int64_t row, int64_t q_width, int64_t k_width)
{
    for (int64_t i = 0; i < rows; i++, q += row, k += row) {
        for (int64_t j = 0; j < q_width; j++)
            q[j] = 6;
        for (int64_t j = 0; j < k_width; j++)
            k[j] = float_of_bf16(bf16_of_float(k[j] / 8 - 6));
    }
}

START_TEST(scores_far_below_zero)
{
    enum { ROWS = 90, DIM = 64 };
    struct kernel_case c;
    if (_i == 0) {
        emulated_draw_query_range(&c, KERNEL_QUERY_RANGE_FORWARD, 1,
                                  (struct query_range_call){.queries = ROWS, .keys = ROWS, .head_dim = DIM, .value_dim = DIM});
        oppose((float *)c.call.query_range.q, (float *)c.call.query_range.k, ROWS, DIM, DIM, DIM);
    } else {
        emulated_draw_attention(&c, KERNEL_ATTENTION_FORWARD, 0);
        const struct attention_call *call = &c.call.attention;
        const int64_t q = call->heads * (int64_t)call->head_dim, k = call->kv_heads * (int64_t)call->head_dim;
        oppose((float *)call->qkv, (float *)call->qkv + q, call->batch * call->seq_len, q + 2 * k, q, k);
    }
    check_drawn(&c);
}
END_TEST

/* A tile has no room for them. */
START_TEST(heads_that_are_too_wide)
{
    static const int sizes[][2] = {{264, 64}, {64, 264}, {257, 257}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct kernel_case c;
        struct diags diags = {0};
        struct cuda_launch launch = {.multiprocessors = 2};
        emulated_draw_query_range(
            &c, _i ? KERNEL_QUERY_RANGE_BACKWARD : KERNEL_QUERY_RANGE_FORWARD, i,
            (struct query_range_call){.queries = 9, .keys = 9, .head_dim = sizes[i][0], .value_dim = sizes[i][1]});
        ck_assert_int_ne(kernel_cuda_launch(&launch, &c.call, &diags), STATUS_OK);
        ck_assert_int_gt(diags.n_items, 0);
        diags_free(&diags);
        kernel_case_free(&c);
    }
}
END_TEST

/* Rows that the shared memory of a block does not hold twice: three tensors of 64 KiB. */
START_TEST(norm_of_very_wide_rows)
{
    enum { T = 3, H = 16384, N = T * H };
    static uint16_t dy[N], x[N], gain[H], dx[N];
    static float dy_wide[N], x_wide[N], gain_wide[H], dx_wide[N], sums[2][2 * H];
    const float mean[T] = {0.1f, 0, -0.1f}, rstd[T] = {1, 2, 0.5f};
    struct random_stream random = random_stream_named(1, 13, 0);
    for (int i = 0; i < N; i++) {
        dy[i] = bf16_of_float((float)(2 * random_uniform(&random) - 1));
        x[i] = bf16_of_float((float)(2 * random_uniform(&random) - 1));
        dy_wide[i] = float_of_bf16(dy[i]), x_wide[i] = float_of_bf16(x[i]);
    }
    for (int i = 0; i < H; i++) {
        gain[i] = bf16_of_float((float)random_uniform(&random));
        gain_wide[i] = float_of_bf16(gain[i]);
    }
    struct norm_backward_call narrow = {T, H, false, dy, x, gain, mean, rstd, NULL, dx, sums[0], sums[0] + H};
    struct norm_backward_call wide = {T, H, false, dy_wide, x_wide, gain_wide, mean, rstd, NULL, dx_wide, sums[1], sums[1] + H};
    struct kernel_call emulated_call = {.kernel = KERNEL_NORM_BACKWARD, .norm_backward = narrow};
    struct kernel_call reference = {.kernel = KERNEL_NORM_BACKWARD, .norm_backward = wide};
    struct cuda_launch launch = {.multiprocessors = 2};
    struct diags diags = {0};
    ck_assert_int_eq(kernel_cuda_launch(&launch, &emulated_call, &diags), STATUS_OK);
    kernel_reference_run(&reference);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq_tol(float_of_bf16(dx[i]), dx_wide[i], 0.01f);
    for (int i = 0; i < 2 * H; i++)
        ck_assert_float_eq_tol(sums[0][i], sums[1][i], 1e-4f);
}
END_TEST

/* More rows than a chunk, tokens that come in many of them, and a workspace with room for two rows of the vocabulary at a time:
 * sums in the order of rows, so the same bits as the reference. */
START_TEST(embedding_of_many_rows)
{
    enum { T = 1300, FIRST = 2, COUNT = 5, VOCAB = 9, WIDE = 16, CHUNKS = 3, ROOM = (T + CHUNKS * 2) * 4 };
    static uint16_t dx[T * WIDE];
    static float dx_wide[T * WIDE];
    static int32_t tokens[T];
    float sums[COUNT * WIDE], expected[COUNT * WIDE];
    void *workspace = kernel_device_host.memory_new(ROOM);
    struct random_stream random = random_stream_named((uint64_t)_i, 12, 0);
    struct embedding_call call = {.t = T, .h = _i ? 9 : WIDE, .seq_len = T, .first = FIRST, .count = COUNT, .tokens = tokens};
    for (int i = 0; i < T; i++)
        tokens[i] = (int32_t)random_below(&random, VOCAB);
    for (int i = 0; i < T * WIDE; i++) {
        dx[i] = bf16_of_float((float)(2 * random_uniform(&random) - 1));
        dx_wide[i] = float_of_bf16(dx[i]);
    }
    for (int i = 0; i < COUNT * WIDE; i++)
        sums[i] = expected[i] = (float)random_uniform(&random);
    struct cuda_launch launch = {.workspace = workspace, .workspace_bytes = ROOM, .multiprocessors = 2};
    struct kernel_call emulated_call = {.kernel = KERNEL_EMBEDDING_BACKWARD, .embedding = call}, reference = emulated_call;
    struct diags diags = {0};
    emulated_call.embedding.dx = dx;
    emulated_call.embedding.dtable = sums;
    reference.embedding.dx = dx_wide;
    reference.embedding.dtable = expected;
    ck_assert_int_eq(kernel_cuda_launch(&launch, &emulated_call, &diags), STATUS_OK);
    kernel_reference_run(&reference);
    ck_assert(memcmp(sums, expected, (size_t)(COUNT * call.h) * sizeof *sums) == 0);
    free(workspace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("CUDA kernels, emulated");
    TCase *tcase = tcase_create("against references");
    tcase_add_loop_test(tcase, emulated, 0, N_KERNELS);
    tcase_add_loop_test(tcase, emulated_rows, 0, N_ROW_KERNELS);
    tcase_add_loop_test(tcase, linear_of_bytes, 0, 6);
    tcase_add_test(tcase, norm_of_very_wide_rows);
    tcase_add_loop_test(tcase, embedding_of_many_rows, 0, 2);
    suite_add_tcase(suite, tcase);
    TCase *groups = tcase_create("groups of rows");
    tcase_add_loop_test(groups, emulated_groups, 0, KERNEL_GROUPED_BACKWARD_WEIGHT - KERNEL_GROUPED_FORWARD + 1);
    suite_add_tcase(suite, groups);
    TCase *query_ranges = tcase_create("query_ranges");
    tcase_add_loop_test(query_ranges, emulated_query_ranges, 0, 4);
    tcase_add_loop_test(query_ranges, query_ranges_at_the_edges_of_steps, 0, 2);
    tcase_add_loop_test(query_ranges, heads_at_the_edges_of_tiles, 0, 2);
    tcase_add_loop_test(query_ranges, heads_that_are_too_wide, 0, 2);
    tcase_add_loop_test(query_ranges, queries_behind_their_keys, 0, 2);
    tcase_add_loop_test(query_ranges, scores_far_below_zero, 0, 2);
    suite_add_tcase(suite, query_ranges);
    return suite_run(suite);
}
