/*
 * The CUDA kernels' source on the CPU (emulation.cuh) against the references: values within each kernel's tolerance, every output
 * element written, nothing beside them, the same bits twice. Matrix products are cuBLASLt's and are not here.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda_launch.h"
#include "kernels/gemm_library.h"
#include "tests/kernels/kernel_case.h"
#include "tests/kernels/kernel_device.h"
#include "tests/kernels/kernel_draw.h"

/* What the dispatcher would call for matrix products: cuBLASLt is not emulated. */
enum status linear_cuda(const struct cuda_launch *launch, enum kernel kernel, const struct linear_call *call, struct diags *diags)
{
    (void)launch, (void)kernel, (void)call, (void)diags;
    return STATUS_MISSING;
}

static void run_once(struct kernel_case *c, struct kernel_run *result)
{
    static char workspace[1 << 20] __attribute__((aligned(256)));
    memset(workspace, 0xff, sizeof workspace);
    struct cuda_launch launch = {.workspace = workspace, .workspace_bytes = sizeof workspace, .multiprocessors = 2};
    struct diags diags = {0};
    kernel_run_prepare(result, c, &kernel_device_host);
    ck_assert_msg(kernel_cuda_launch(&launch, &result->call, &diags) == STATUS_OK, "%s %s: %s", kernel_name(c->call.kernel),
                  c->text, diags.n_items ? diags.items[0].text : "failed");
    kernel_run_fetch(result);
}

/* Frees the case. */
static void check_drawn(struct kernel_case *c)
{
    const char *name = kernel_name(c->call.kernel);
    struct kernel_run first, second;
    run_once(c, &first);
    run_once(c, &second);
    kernel_case_reference(c);
    char why[200] = "";
    ck_assert_msg(kernel_run_check(&first, why, sizeof why), "%s %s: %s", name, c->text, why);
    ck_assert_msg(kernel_run_equal(&first, &second), "%s %s: differs between two runs", name, c->text);
    kernel_run_free(&first);
    kernel_run_free(&second);
    kernel_case_free(c);
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
    for (uint64_t seed = 0; seed < (attention ? 3 : 6); seed++)
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
    for (uint64_t seed = 0; seed < 4; seed++)
        check_case(row_kernels[_i], seed, 900);
}
END_TEST

/* Results of several tiles, sums of more steps than are on their way at once, groups that end anywhere. */
START_TEST(emulated_groups)
{
    for (uint64_t seed = 0; seed < 6; seed++)
        check_case((enum kernel)(KERNEL_GROUPED_FORWARD + _i), seed, 500);
}
END_TEST

/* Linear layers of bytes: what is transposed and put in order for cuBLASLt is right. With one scale, and in blocks. */
static void check_narrow(enum kernel kernel, bool in_blocks, uint64_t seed)
{
    static const float scaled;
    struct random_stream random = random_stream_named(seed, 17, (uint64_t)kernel);
    struct kernel_case c = {.call.kernel = kernel};
    struct draw draw = {.c = &c, .random = &random, .size = 6}, *d = &draw;
    struct linear_call *call = &c.call.linear;
    struct kernel_run ran;
    bool forward = kernel == KERNEL_LINEAR_FORWARD, weight = kernel == KERNEL_LINEAR_BACKWARD_WEIGHT;
    *call = (struct linear_call){.t = 32 * draw_between(d, 1, 6),
                                 .in = 32 * draw_between(d, 1, 6),
                                 .out = 32 * draw_between(d, 1, 6),
                                 .accumulate = draw_coin(d)};
    draw_text(d, "t %lld in %lld out %lld", (long long)call->t, (long long)call->in, (long long)call->out);
    struct narrow_operand how = {.format = NARROW_E4M3, .scale = in_blocks ? NULL : &scaled, .down = weight}, turned = how;
    turned.down = !forward;
    if (!weight)
        draw_narrow(d, "w", SLOT(linear.w), SLOT(linear.w_as), call->out, call->in, turned);
    if (forward || weight)
        draw_narrow(d, "x", SLOT(linear.x), SLOT(linear.x_as), call->t, call->in, how);
    how.format = NARROW_E5M2;
    if (!forward)
        draw_narrow(d, "dy", SLOT(linear.dy), SLOT(linear.dy_as), call->t, call->out, how);
    if (forward)
        draw_numbers(d, "y", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(linear.y), call->t * call->out, -1, 1);
    else if (weight)
        FLOATS("dw", ROLE_IN_OUT, linear.dw, call->in * call->out);
    else
        draw_numbers(d, "dx", OPERAND_ACTIVATION, ROLE_IN_OUT, SLOT(linear.dx), call->t * call->in, -1, 1);
    if (forward && draw_coin(d))
        IN("bias", linear.bias, call->out);
    size_t scratch = linear_reference_scratch(&c.call), device = linear_narrow_scratch(kernel, call);
    draw_operand(d, "scratch", OPERAND_SCRATCH, ROLE_OUT, SLOT(linear.scratch), (int64_t)(scratch > device ? scratch : device));
    run_once(&c, &ran);
    kernel_case_reference(&c);
    char why[200] = "";
    ck_assert_msg(kernel_run_check(&ran, why, sizeof why), "%s %s: %s", kernel_name(kernel), c.text, why);
    kernel_run_free(&ran);
    kernel_case_free(&c);
}

START_TEST(linear_of_bytes)
{
    for (uint64_t seed = 0; seed < 6; seed++)
        check_narrow((enum kernel)(KERNEL_LINEAR_FORWARD + _i / 2), _i % 2, seed);
}
END_TEST

/* Every width of tiles; queries of several blocks before, among and behind keys of several steps. */
START_TEST(emulated_stretches)
{
    enum { SEEDS = 12 };
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        check_case(_i % 2 ? KERNEL_STRETCH_BACKWARD : KERNEL_STRETCH_FORWARD, seed + SEEDS * (uint64_t)_i, seed % 3 ? 130 : 270);
}
END_TEST

/* One head, with this place, window and head sizes. */
static void check_stretch(enum kernel kernel, uint64_t seed, struct stretch_call stretch)
{
    struct random_stream random = random_stream_named(seed, 18, 0);
    struct kernel_case c = {.call.kernel = kernel};
    struct draw draw = {.c = &c, .random = &random, .size = stretch.keys};
    const int64_t d = stretch.head_dim, v = stretch.value_dim;
    stretch.batch = stretch.heads = stretch.kv_heads = 1;
    stretch.q_at = (struct strided){d, stretch.queries * d};
    stretch.k_at = (struct strided){d, stretch.keys * d};
    stretch.v_at = (struct strided){v, stretch.keys * v};
    stretch.out_at = (struct strided){v, stretch.queries * v};
    c.call.stretch = stretch;
    draw_text(&draw, "from %lld window %lld dims %lld %lld", (long long)stretch.first, (long long)stretch.window, (long long)d,
              (long long)v);
    draw_stretch_operands(&draw, kernel);
    check_drawn(&c);
}

/* Queries whose first or last key stands at the edge of a step, in windows so narrow that one key more or less shows. */
START_TEST(stretches_at_the_edges_of_steps)
{
    enum { DIM = 8, QUERIES = 129, FIRST = 62, N_FIRST = 6, WINDOWS = 4 };
    for (int i = 0; i < N_FIRST * WINDOWS; i++) {
        const int64_t first = FIRST + i / WINDOWS, window = i % WINDOWS ? i % WINDOWS + 1 : 0;
        check_stretch(_i ? KERNEL_STRETCH_BACKWARD : KERNEL_STRETCH_FORWARD, (uint64_t)i,
                      (struct stretch_call){.queries = QUERIES,
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
        check_stretch(_i ? KERNEL_STRETCH_BACKWARD : KERNEL_STRETCH_FORWARD, i,
                      (struct stretch_call){.queries = 9, .keys = 9, .head_dim = sizes[i][0], .value_dim = sizes[i][1]});
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
    tcase_set_timeout(tcase, 200);
    tcase_add_loop_test(tcase, emulated, 0, N_KERNELS);
    tcase_add_loop_test(tcase, emulated_rows, 0, N_ROW_KERNELS);
    tcase_add_loop_test(tcase, linear_of_bytes, 0, 6);
    tcase_add_test(tcase, norm_of_very_wide_rows);
    tcase_add_loop_test(tcase, embedding_of_many_rows, 0, 2);
    suite_add_tcase(suite, tcase);
    TCase *groups = tcase_create("groups of rows");
    tcase_set_timeout(groups, 200);
    tcase_add_loop_test(groups, emulated_groups, 0, KERNEL_GROUPED_BACKWARD_WEIGHT - KERNEL_GROUPED_FORWARD + 1);
    suite_add_tcase(suite, groups);
    TCase *stretches = tcase_create("stretches");
    tcase_set_timeout(stretches, 200);
    tcase_add_loop_test(stretches, emulated_stretches, 0, 4);
    tcase_add_loop_test(stretches, stretches_at_the_edges_of_steps, 0, 2);
    tcase_add_loop_test(stretches, heads_at_the_edges_of_tiles, 0, 2);
    suite_add_tcase(suite, stretches);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
