/*
 * The kernels of quantise.cu in emulation, byte for byte against loops: sizes that allow accesses of 16 bytes and sizes that do
 * not, operands that begin anywhere, and nothing written beside the results.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda_operations.h"
#include "model/base/memory.h"
#include "model/base/random.h"
#include "tests/kernels/kernel_case.h"
#include "tests/suite.h"

enum { GUARD = 64, MARK = 0xa5 };

/* `bytes` at `displaced` bytes behind a multiple of 256, between guards. */
struct area {
    unsigned char *block, *at;
    size_t bytes;
};

static struct area area_new(size_t bytes, size_t displaced)
{
    const size_t all = (256 + displaced + bytes + GUARD + 255) / 256 * 256;
    struct area area = {.block = aligned_alloc(256, all), .bytes = bytes};
    ck_assert_ptr_nonnull(area.block);
    memset(area.block, MARK, all);
    area.at = area.block + 256 + displaced;
    return area;
}

static void area_check(const struct area *area, const void *expected, const char *what, const int64_t sizes[2])
{
    for (size_t i = 1; i <= GUARD; i++)
        ck_assert_msg(area->at[-(ptrdiff_t)i] == MARK, "%s %lld x %lld: written %zu in front", what, (long long)sizes[0],
                      (long long)sizes[1], i);
    for (size_t i = 0; i < GUARD; i++)
        ck_assert_msg(area->at[area->bytes + i] == MARK, "%s %lld x %lld: written %zu behind", what, (long long)sizes[0],
                      (long long)sizes[1], i);
    for (size_t i = 0; i < area->bytes; i++)
        ck_assert_msg(area->at[i] == ((const unsigned char *)expected)[i], "%s %lld x %lld: byte %zu is %d and not %d", what,
                      (long long)sizes[0], (long long)sizes[1], i, area->at[i], ((const unsigned char *)expected)[i]);
}

static struct cuda_launch launch_new(void)
{
    static char workspace[1 << 16] __attribute__((aligned(256)));
    return (struct cuda_launch){.workspace = workspace, .workspace_bytes = sizeof workspace, .multiprocessors = 2};
}

static const int64_t sizes[][2] = {{1, 1},   {16, 16},   {16, 128}, {128, 16},  {128, 128}, {144, 272}, {33, 16},
                                   {16, 33}, {100, 100}, {1, 512},  {130, 257}, {64, 40},   {7, 8},     {256, 130}};
static const size_t displacements[] = {0, 16, 1, 8, 2};
enum { N_SIZES = sizeof sizes / sizeof *sizes, N_DISPLACEMENTS = sizeof displacements / sizeof *displacements };

START_TEST(bytes_are_transposed)
{
    const int64_t rows = sizes[_i][0], cols = sizes[_i][1];
    const size_t n = (size_t)(rows * cols);
    const struct cuda_launch launch = launch_new();
    struct random_stream random = random_stream_named(3, 81, (uint64_t)_i);
    unsigned char *expected = memory_new(n, 1);
    for (int d = 0; d < N_DISPLACEMENTS; d++) {
        struct area from = area_new(n, displacements[d]), to = area_new(n, displacements[(d * 2) % N_DISPLACEMENTS]);
        for (size_t i = 0; i < n; i++)
            from.at[i] = (unsigned char)random_below(&random, 256);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++)
                expected[c * rows + r] = from.at[r * cols + c];
        ck_assert_int_eq(transpose_bytes_cuda(&launch, from.at, rows, cols, to.at), 0);
        area_check(&to, expected, "transposed", sizes[_i]);
        free(from.block);
        free(to.block);
    }
    free(expected);
}
END_TEST

static float scale_of(const struct narrow_operand *as, int64_t row, int64_t col, int64_t cols)
{
    const int64_t across = (cols + NARROW_BLOCK - 1) / NARROW_BLOCK;
    const int64_t block = as->down ? row / NARROW_BLOCK * cols + col : row * across + col / NARROW_BLOCK;
    const uint32_t bits = as->scale ? 0 : (uint32_t)as->blocks[block] << 23;
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    return as->scale ? *as->scale : scale;
}

/* Every byte there is comes, in both formats, with a scale and with blocks; rows behind the count stay as they are. */
static void check_widened(const int64_t size[2], const struct narrow_operand *as, const int32_t *count, size_t displaced)
{
    const int64_t rows = size[0], cols = size[1];
    const size_t n = (size_t)(rows * cols);
    const struct cuda_launch launch = launch_new();
    struct area from = area_new(n, displaced), to = area_new(2 * n, displaced % 2 ? 2 : displaced);
    uint16_t *expected = memory_new(n, sizeof *expected);
    memset(expected, MARK, n * sizeof *expected);
    for (size_t i = 0; i < n; i++)
        from.at[i] = (unsigned char)(i * 7);
    for (int64_t r = 0; r < (count ? *count : rows); r++)
        for (int64_t c = 0; c < cols; c++) {
            const float value = narrow_to_float(from.at[r * cols + c], as->format) * scale_of(as, r, c, cols);
            expected[r * cols + c] = isnan(value) ? 0x7fff : bf16_of_float(value);
        }
    ck_assert_int_eq(widen_cuda(&launch, from.at, as, rows, cols, count, to.at), 0);
    for (size_t i = 0; i < n; i++) { /* a number that is none may have either sign */
        uint16_t bits;
        memcpy(&bits, to.at + 2 * i, sizeof bits);
        if (expected[i] == 0x7fff && (bits & 0x7fff) == 0x7fff)
            expected[i] = bits;
    }
    area_check(&to, expected, "widened", size);
    free(expected);
    free(from.block);
    free(to.block);
}

START_TEST(bytes_are_widened)
{
    const int64_t *size = sizes[_i];
    const float half = 0.5f;
    uint8_t *blocks = memory_new((size_t)(size[0] * size[1]) + 64, 1);
    for (size_t i = 0; i < (size_t)(size[0] * size[1]); i++)
        blocks[i] = (uint8_t)(100 + i % 50);
    for (int d = 0; d < N_DISPLACEMENTS; d++)
        for (int way = 0; way < 6; way++) {
            const struct narrow_operand as = {.format = way % 2 ? NARROW_E5M2 : NARROW_E4M3,
                                              .down = way / 2 == 2,
                                              .scale = way / 2 == 0 ? &half : NULL,
                                              .blocks = blocks};
            const int32_t count = (int32_t)(size[0] * 2 / 3);
            check_widened(size, &as, d % 2 ? &count : NULL, displacements[d]);
        }
    free(blocks);
}
END_TEST

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* What narrow.h says of one block of a row, by the reference's conversions. */
static void expect_block(const uint16_t *x, int64_t n, bool there, enum narrow_format format, uint8_t *y, uint8_t *scale)
{
    float most = 0;
    for (int64_t i = 0; i < n && there; i++)
        most = fmaxf(most, fabsf(float_of_bf16(x[i])));
    const int exponent = narrow_exponent(bits_of(most), format);
    for (int64_t i = 0; i < n; i++)
        y[i] = narrow_from_float(there ? ldexpf(float_of_bf16(x[i]), -exponent) : 0, format);
    *scale = (uint8_t)(exponent + 127);
}

static void check_rows(const int64_t size[2], enum narrow_format format, const int32_t *count, size_t displaced, int seed)
{
    const int64_t rows = size[0], cols = size[1], across = (cols + NARROW_BLOCK - 1) / NARROW_BLOCK;
    const size_t n = (size_t)(rows * cols), n_blocks = (size_t)(rows * across);
    const struct cuda_launch launch = launch_new();
    struct random_stream random = random_stream_named((uint64_t)seed, 83, 0);
    struct area x = area_new(2 * n, displaced % 2 ? 2 : displaced), y = area_new(n, displaced), blocks = area_new(n_blocks, 1);
    uint8_t *expected = memory_new(n, 1), *scales = memory_new(n_blocks, 1);
    uint16_t *numbers = (uint16_t *)(void *)x.at;
    for (size_t i = 0; i < n; i++)
        numbers[i] = bf16_of_float(ldexpf((float)(2 * random_uniform(&random) - 1), (int)random_below(&random, 20) - 10));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t b = 0; b < across; b++) {
            const int64_t at = r * cols + b * NARROW_BLOCK, left = cols - b * NARROW_BLOCK;
            expect_block(numbers + at, left < NARROW_BLOCK ? left : NARROW_BLOCK, !count || r < *count, format, expected + at,
                         &scales[r * across + b]);
        }
    const struct quantise_blocks_call call = {
        .rows = rows, .cols = cols, .count = count, .format = format, .x = x.at, .y = y.at, .blocks = blocks.at};
    ck_assert_int_eq(quantise_blocks_cuda(&launch, &call), 0);
    area_check(&y, expected, "quantised", size);
    area_check(&blocks, scales, "scales", size);
    free(expected);
    free(scales);
    free(x.block);
    free(y.block);
    free(blocks.block);
}

START_TEST(rows_are_quantised_in_blocks)
{
    for (int d = 0; d < N_DISPLACEMENTS; d++) {
        const int32_t count = (int32_t)(sizes[_i][0] / 2);
        check_rows(sizes[_i], NARROW_E4M3, NULL, displacements[d], _i);
        check_rows(sizes[_i], NARROW_E5M2, &count, displacements[d], _i);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels of bytes in emulation");
    TCase *tcase = tcase_create("bytes");
    tcase_add_loop_test(tcase, bytes_are_transposed, 0, N_SIZES);
    tcase_add_loop_test(tcase, bytes_are_widened, 0, N_SIZES);
    tcase_add_loop_test(tcase, rows_are_quantised_in_blocks, 0, N_SIZES);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
