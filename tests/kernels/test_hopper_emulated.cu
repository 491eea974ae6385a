/*
 * sm_90a's instructions in emulation (emulation_hopper.cuh): products of tiles that tensor copies brought, in every swizzle,
 * against sums; that wrong descriptors, swizzles and orders are found out; and attention made of them against the reference.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "kernels/cuda_operations.h"
#include "tests/kernels/emulated_run.h"
}
#include "kernels/hopper_tile.cuh"
#include "tests/suite.h"

/* --- products */

enum { M = 64, N = 128, K = 64, TILE_BYTES = N * K * 2 };

enum mistake {
    NO_MISTAKE,
    NO_WAIT_FOR_COPY,
    NO_WAIT_FOR_PRODUCT,
    REFILLED_TOO_EARLY,
    NO_FENCE,
    NO_BARRIER,
    NO_BARRIER_FENCE,
    TOO_MANY_BYTES,
    NO_LAST_WAIT,
    WARPS_DISAGREE,
    MISALIGNED
};

struct trial {
    bool columns;               /* b[K][N], a from registers; else b[N][K], a from shared memory */
    enum swizzle written, read; /* by the copies, by the products */
    int leading, stride;        /* errors of the descriptor of b, bytes */
    enum mistake mistake;
};

struct trial_memory {
    float *out; /* [M][N] */
    const bf16 *a;
    tensor_map a_map, b_map, other_map;
};

static int width_of(enum swizzle swizzle)
{
    return swizzle == SWIZZLE_NONE ? 16 : swizzle == SWIZZLE_32B ? 32 : swizzle == SWIZZLE_64B ? 64 : 128;
}

/* A tile of rows x columns in boxes as wide as the swizzle, one after the other. */
static void bring(unsigned char *tile, const tensor_map *map, int rows, int columns, int width, uint64_t *barrier)
{
    for (int i = 0; i < columns * 2 / width; i++)
        copy_box(tile + i * rows * width, map, i * width / 2, 0, 0, barrier);
}

/* Descriptor of step k of a tile whose columns are k. */
static uint64_t rows_at(const unsigned char *tile, int rows, int k, const trial &t, bool wrong)
{
    const int width = width_of(t.written), plain = t.read == SWIZZLE_NONE;
    const int at = k * 32 / width * rows * width + k * 32 % width;
    return matrix_descriptor(tile + at, (plain ? rows * width : 16) + (wrong ? t.leading : 0), 8 * width + (wrong ? t.stride : 0),
                             t.read);
}

/* And of one whose rows are k. */
static uint64_t columns_at(const unsigned char *tile, int k, const trial &t)
{
    const int width = width_of(t.written), plain = t.read == SWIZZLE_NONE, next = K * width, eight = 8 * width;
    return matrix_descriptor(tile + k * 16 * width, (plain ? eight : next) + t.leading, (plain ? next : eight) + t.stride,
                             t.read);
}

static void multiply(float (*d)[4], const unsigned char *a_tile, const unsigned char *b_tile, const uint32_t (*a)[4],
                     const trial &t)
{
    const int other = t.mistake == WARPS_DISAGREE && threadIdx.x >= 32;
    if (t.mistake != NO_FENCE)
        wgmma_fence();
    for (int k = 0; k < K / 16; k++) {
        if (t.columns)
            wgmma_registers<N>(d, a[k], columns_at(b_tile, k ^ other, t));
        else
            wgmma_shared<N>(d, rows_at(a_tile, M, k, t, false), rows_at(b_tile, N, k ^ other, t, true), true);
    }
    wgmma_commit();
}

static void store_trial(float *out, float (*d)[4])
{
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int n = 0; n < N / 8; n++)
        for (int i = 0; i < 4; i++)
            out[(row + i / 2 * 8) * N + 8 * n + column + i % 2] = d[n][i];
}

static void load_registers(uint32_t (*a)[4], const bf16 *from)
{
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int k = 0; k < K / 16; k++)
        for (int r = 0; r < 4; r++)
            memcpy(&a[k][r], from + (row + r % 2 * 8) * K + 16 * k + column + r / 2 * 8, 4);
}

/* One warpgroup; thread 0 brings the tiles. */
static void trial_kernel(trial t, trial_memory memory)
{
    unsigned char *tiles = dynamic_shared() + (EIGHT_ROWS_BYTES - emulation::SHARED_START);
    unsigned char *a_tile = tiles, *b_tile = tiles + TILE_BYTES + (t.mistake == MISALIGNED ? 16 : 0);
    uint64_t *here = (uint64_t *)(tiles + 2 * TILE_BYTES);
    const int width = width_of(t.written), b_rows = t.columns ? K : N, b_columns = t.columns ? N : K;
    float d[N / 8][4] = {};
    uint32_t a[K / 16][4];
    load_registers(a, memory.a);
    if (threadIdx.x == 0) {
        if (t.mistake != NO_BARRIER)
            barrier_init(here, 1);
        if (t.mistake != NO_BARRIER_FENCE)
            barrier_init_fence();
        barrier_expect(here, (M + N) * K * 2 + (t.mistake == TOO_MANY_BYTES ? 16 : 0));
        bring(a_tile, &memory.a_map, M, K, width, here);
        bring(b_tile, &memory.b_map, b_rows, b_columns, width, here);
    }
    __syncthreads();
    if (t.mistake != NO_WAIT_FOR_COPY)
        barrier_wait(here, 0);
    multiply(d, a_tile, b_tile, a, t);
    if (t.mistake == NO_WAIT_FOR_PRODUCT)
        store_trial(memory.out, d);
    __syncthreads();
    if (t.mistake == REFILLED_TOO_EARLY && threadIdx.x == 0) {
        barrier_expect(here, N * K * 2);
        bring(b_tile, &memory.other_map, b_rows, b_columns, width, here);
    }
    if (t.mistake != NO_LAST_WAIT)
        wgmma_wait<0>();
    barrier_wait(here, t.mistake == REFILLED_TOO_EARLY);
    if (t.mistake != NO_WAIT_FOR_PRODUCT)
        store_trial(memory.out, d);
}

/* Small whole numbers: every sum is exact. */
static void draw_numbers(struct random_stream *random, bf16 *to, int n)
{
    for (int i = 0; i < n; i++)
        to[i].bits = bf16_of_float((float)random_below(random, 9) - 4);
}

/* Whether the product came out right, element by element. */
static bool trial_is_right(const trial &t)
{
    static bf16 a[M * K], b[N * K], other[N * K];
    static float out[M][N];
    struct random_stream random = random_stream_named(1, 51, t.columns);
    draw_numbers(&random, a, M * K);
    draw_numbers(&random, b, N * K);
    draw_numbers(&random, other, N * K);
    const int box = width_of(t.written) / 2;
    trial_memory memory = {out[0], a, {}, {}, {}};
    ck_assert_int_eq(tensor_map_make(&memory.a_map, a, K, M, 1, box, M, t.written), cudaSuccess);
    ck_assert_int_eq(
        tensor_map_make(&memory.b_map, b, t.columns ? N : K, t.columns ? K : N, 1, box, t.columns ? K : N, t.written),
        cudaSuccess);
    memory.other_map = memory.b_map;
    memory.other_map.base = &other[0].bits;
    memset(out, 0xff, sizeof out);
    ck_assert_int_eq(launch_kernel(trial_kernel, dim3(1), dim3(WARPGROUP), 3 * TILE_BYTES, NULL, t, memory), cudaSuccess);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += float_of_bf16(a[m * K + k].bits) * float_of_bf16(b[t.columns ? k * N + n : n * K + k].bits);
            if (!(out[m][n] == sum))
                return false;
        }
    return true;
}

/* Right where copies and products agree and only there. */
START_TEST(products_in_every_swizzle)
{
    for (int w = 0; w < 4; w++)
        for (int r = 0; r < 4; r++) {
            const enum swizzle written = (enum swizzle)w, read = (enum swizzle)r;
            if (_i == 1 && width_of(read) > 2 * width_of(written))
                continue; /* refused: steps of k begin inside of the pattern */
            ck_assert_msg(trial_is_right({_i == 1, written, read, 0, 0, NO_MISTAKE}) == (w == r), "written %d, read %d", w, r);
        }
}
END_TEST

/* A distance of a descriptor matters where the layout has it, and where it has not it may be anything. */
START_TEST(distances_of_descriptors)
{
    for (int s = 0; s < 4; s++) {
        const enum swizzle swizzle = (enum swizzle)s;
        ck_assert(!trial_is_right({_i == 1, swizzle, swizzle, 0, 16, NO_MISTAKE}));
        ck_assert(!trial_is_right({_i == 1, swizzle, swizzle, 0, 1024, NO_MISTAKE}));
        const bool used = _i == 1 || swizzle == SWIZZLE_NONE;
        ck_assert_int_eq(trial_is_right({_i == 1, swizzle, swizzle, 128, 0, NO_MISTAKE}), !used);
    }
}
END_TEST

/* Used before it is there. */
START_TEST(orders)
{
    static const enum mistake mistakes[] = {NO_WAIT_FOR_COPY, NO_WAIT_FOR_PRODUCT, REFILLED_TOO_EARLY};
    emulation::copies_eager = mistakes[_i] == REFILLED_TOO_EARLY;
    ck_assert(trial_is_right({true, SWIZZLE_128B, SWIZZLE_128B, 0, 0, NO_MISTAKE}));
    ck_assert(!trial_is_right({true, SWIZZLE_128B, SWIZZLE_128B, 0, 0, mistakes[_i]}));
    emulation::copies_eager = false;
}
END_TEST

/* What the emulation refuses: it ends the process. */
static const enum mistake refused[] = {NO_FENCE,     NO_BARRIER,     NO_BARRIER_FENCE, TOO_MANY_BYTES,
                                       NO_LAST_WAIT, WARPS_DISAGREE, MISALIGNED};

START_TEST(refusals)
{
    (void)trial_is_right({false, SWIZZLE_128B, SWIZZLE_128B, 0, 0, refused[_i]});
}
END_TEST

START_TEST(maps_that_cannot_be)
{
    tensor_map map;
    static bf16 base[64] __attribute__((aligned(16)));
    ck_assert_int_eq(tensor_map_make(&map, base, 64, 64, 1, 64, 64, SWIZZLE_128B), cudaSuccess);
    ck_assert_int_ne(tensor_map_make(&map, base + 1, 64, 64, 1, 64, 64, SWIZZLE_128B), cudaSuccess);
    ck_assert_int_ne(tensor_map_make(&map, base, 60, 64, 1, 64, 64, SWIZZLE_128B), cudaSuccess);
    ck_assert_int_ne(tensor_map_make(&map, base, 128, 64, 1, 128, 64, SWIZZLE_128B), cudaSuccess);
    ck_assert_int_ne(tensor_map_make(&map, base, 64, 64, 1, 64, 64, SWIZZLE_64B), cudaSuccess);
    ck_assert_int_ne(tensor_map_make(&map, base, 64, 512, 1, 64, 257, SWIZZLE_128B), cudaSuccess);
}
END_TEST

/* --- attention */

static void run_attention(struct kernel_case *c, struct kernel_run *result, bool portable)
{
    struct cuda_launch launch = {};
    launch.multiprocessors = 2;
    launch.portable = portable;
    kernel_run_prepare(result, c, &kernel_device_host);
    if (result->call.kernel == KERNEL_ATTENTION_FORWARD)
        ck_assert_int_eq(attention_forward_cuda(&launch, &result->call.attention), cudaSuccess);
    else
        ck_assert_int_eq(attention_backward_cuda(&launch, &result->call.attention), cudaSuccess);
    kernel_run_fetch(result);
}

/* Sequences of up to 700: every buffer is filled three times. Late copies and early ones give the same bits; the kernel of other
 * architectures gives the same numbers. */
static void check_case(struct kernel_case c)
{
    const enum kernel kernel = c.call.kernel;
    struct kernel_run late, early, portable;
    char why[200] = "";
    run_attention(&c, &late, false);
    emulation::copies_eager = true;
    run_attention(&c, &early, false);
    emulation::copies_eager = false;
    run_attention(&c, &portable, true);
    kernel_case_reference(&c);
    ck_assert_msg(kernel_run_check(&late, why, sizeof why), "%s: %s", c.text, why);
    ck_assert_msg(kernel_run_equal(&late, &early), "%s: depends on when copies arrive", c.text);
    ck_assert_msg(kernel_run_check(&portable, why, sizeof why), "%s, portable: %s", c.text, why);
    ck_assert_msg(kernel == KERNEL_ATTENTION_BACKWARD || !kernel_run_equal(&late, &portable), "%s: both kernels are one", c.text);
    kernel_run_free(&late);
    kernel_run_free(&early);
    kernel_run_free(&portable);
    kernel_case_free(&c);
}

static void check_attention(enum kernel kernel, int seed)
{
    struct kernel_case c;
    emulated_draw_attention(&c, kernel, seed);
    check_case(c);
}

START_TEST(attention_forward)
{
    check_attention(KERNEL_ATTENTION_FORWARD, _i);
}
END_TEST

START_TEST(attention_backward)
{
    check_attention(KERNEL_ATTENTION_BACKWARD, _i);
}
END_TEST

/* Windows that end at the edges of tiles, or one beside: which tiles are masked and which are skipped depends on it. */
static const int64_t windows[] = {1, 63, 64, 65, 127, 128, 129};

/* The first key of each tile scores far higher than any other with the first query that no longer sees it: what is not masked
 * there is all that comes out. */
static void tempt(const struct attention_call *call)
{
    const int64_t d = call->head_dim, row = (call->heads + 2 * call->kv_heads) * d;
    float *qkv = (float *)call->qkv;
    for (int64_t key = 0; key + call->window < call->seq_len; key += BOX)
        for (int64_t i = 0; i < call->heads * d; i++) {
            qkv[(key + call->window) * row + i] = 2;
            if (i < call->kv_heads * d)
                qkv[key * row + call->heads * d + i] = 2;
        }
}

static void check_window(enum kernel kernel, int64_t window)
{
    struct kernel_case c;
    for (int seed = 0;; seed += 2) {
        emulated_draw_attention(&c, kernel, seed);
        if (c.call.attention.seq_len > 140)
            break;
        kernel_case_free(&c);
    }
    c.call.attention.window = window;
    tempt(&c.call.attention);
    if (kernel == KERNEL_ATTENTION_BACKWARD) { /* of what the forward pass leaves */
        const struct attention_call before = c.call.attention;
        struct kernel_call forward = {};
        forward.kernel = KERNEL_ATTENTION_FORWARD;
        forward.attention = before;
        kernel_reference_run(&forward);
        float *out = (float *)before.out;
        for (int64_t i = 0; i < before.batch * before.seq_len * before.heads * before.head_dim; i++)
            out[i] = float_of_bf16(bf16_of_float(out[i]));
    }
    check_case(c);
}

START_TEST(windows_forward)
{
    check_window(KERNEL_ATTENTION_FORWARD, windows[_i]);
}
END_TEST

START_TEST(windows_backward)
{
    check_window(KERNEL_ATTENTION_BACKWARD, windows[_i]);
}
END_TEST

/* The trial finds that both kernels agree, whichever way tensor copies come, and that they do not where wgmma is not what the
 * kernels take it for. */
START_TEST(trial_of_attention)
{
    struct cuda_launch launch = {};
    const float *difference = NULL;
    launch.multiprocessors = 2;
    launch.workspace = kernel_device_host.memory_new(CUDA_WORKSPACE_BYTES);
    launch.workspace_bytes = CUDA_WORKSPACE_BYTES;
    emulation::copies_eager = _i == 0;
    ck_assert_int_eq(attention_trial_cuda(&launch, _i == 0 ? 64 : 128, _i == 0, &difference), cudaSuccess);
    ck_assert_msg(*difference > 0 && *difference < 0.4f * ATTENTION_TRIAL_TOLERANCE, "%g", (double)*difference);
    emulation::copies_eager = false;
    if (_i == 0) {
        emulation::layouts_differ = true;
        ck_assert_int_eq(attention_trial_cuda(&launch, 64, true, &difference), cudaSuccess);
        ck_assert_msg(!(*difference <= 4 * ATTENTION_TRIAL_TOLERANCE), "%g", (double)*difference);
        emulation::layouts_differ = false;
    }
    launch.portable = true;
    ck_assert_int_eq(attention_trial_cuda(&launch, 64, false, &difference), cudaErrorNotSupported);
    free(launch.workspace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sm_90a, emulated");
    TCase *tcase = tcase_create("instructions");
    tcase_add_loop_test(tcase, products_in_every_swizzle, 0, 2);
    tcase_add_loop_test(tcase, distances_of_descriptors, 0, 2);
    tcase_add_loop_test(tcase, orders, 0, 3);
    tcase_add_loop_exit_test(tcase, refusals, EXIT_FAILURE, 0, (int)(sizeof refused / sizeof *refused));
    tcase_add_test(tcase, maps_that_cannot_be);
    suite_add_tcase(suite, tcase);
    tcase = tcase_create("attention");
    tcase_add_loop_test(tcase, attention_forward, 0, suite_draws(10, 5));
    tcase_add_loop_test(tcase, attention_backward, 0, suite_draws(6, 3));
    tcase_add_loop_test(tcase, windows_forward, 0, (int)(sizeof windows / sizeof *windows));
    tcase_add_loop_test(tcase, windows_backward, 0, (int)(sizeof windows / sizeof *windows));
    tcase_add_loop_test(tcase, trial_of_attention, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
