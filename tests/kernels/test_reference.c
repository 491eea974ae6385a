/* The references on cases small enough for a pencil, and the identities that tie one operation to another. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "model/base/random.h"
#include "tests/suite.h"

static void run(enum kernel kernel, struct kernel_call call)
{
    call.kernel = kernel;
    kernel_reference_run(&call);
}

static void fill(float *values, int64_t n, uint64_t name)
{
    struct random_stream random = random_stream_named(3, 4, name);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(2 * random_uniform(&random) - 1);
}

static void near(const float *got, const float *expected, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - expected[i]) <= tolerance, "[%lld]: %g, not %g", (long long)i, (double)got[i],
                      (double)expected[i]);
}

/* x = (1, 3): mean 2, deviation 1; root of the mean square of (3, 4) is sqrt(12.5). */
START_TEST(norm_of_two)
{
    float x[] = {1, 3, 3, 4}, gain[] = {2, 2}, bias[] = {10, 20}, y[4], mean[2], rstd[2];
    run(KERNEL_NORM_FORWARD, (struct kernel_call){.norm_forward = {1, 2, false, 0, x, gain, bias, y, mean, rstd}});
    near(y, (float[]){8, 22}, 2, 1e-6);
    ck_assert_float_eq(mean[0], 2);
    ck_assert_float_eq(rstd[0], 1);
    run(KERNEL_NORM_FORWARD, (struct kernel_call){.norm_forward = {1, 2, true, 0, x + 2, gain, NULL, y, NULL, rstd}});
    near(y, (float[]){6 / sqrtf(12.5f), 8 / sqrtf(12.5f)}, 2, 1e-6);
}
END_TEST

/* x = (1 2), w = ((1 0) (0 1) (1 1)), bias (1 1 1): y = (2 3 4), added to what was there when asked. */
START_TEST(linear_by_hand)
{
    float x[] = {1, 2}, w[] = {1, 0, 0, 1, 1, 1}, bias[] = {1, 1, 1}, y[] = {NAN, NAN, NAN}, dx[2], dw[6] = {0},
          dbias[3] = {5, 5, 5};
    struct linear_call call = {
        .t = 1, .in = 2, .out = 3, .x = x, .w = w, .bias = bias, .y = y, .dy = y, .dx = dx, .dw = dw, .dbias = dbias};
    run(KERNEL_LINEAR_FORWARD, (struct kernel_call){.linear = call});
    near(y, (float[]){2, 3, 4}, 3, 0);
    run(KERNEL_LINEAR_BACKWARD_INPUT, (struct kernel_call){.linear = call});
    near(dx, (float[]){6, 7}, 2, 0);
    run(KERNEL_LINEAR_BACKWARD_WEIGHT, (struct kernel_call){.linear = call});
    near(dw, (float[]){2, 4, 3, 6, 4, 8}, 6, 0);
    near(dbias, (float[]){7, 8, 9}, 3, 0);
    call.accumulate = true;
    run(KERNEL_LINEAR_FORWARD, (struct kernel_call){.linear = call});
    near(y, (float[]){4, 6, 8}, 3, 0);
}
END_TEST

START_TEST(activation_by_hand)
{
    float u[] = {0, 1, -1, 100}, a[4];
    run(KERNEL_ACTIVATION_FORWARD, (struct kernel_call){.activation = {.t = 1, .f = 4, .u = u, .a = a}});
    near(a, (float[]){0, 0.8411920f, -0.1588080f, 100}, 4, 1e-6);
    float gate_up[] = {0, 2, 3, 5}; /* gates 0 and 2, ups 3 and 5 */
    run(KERNEL_ACTIVATION_FORWARD, (struct kernel_call){.activation = {.t = 1, .f = 2, .gated = true, .u = gate_up, .a = a}});
    near(a, (float[]){0, 10 / (1 + expf(-2))}, 2, 1e-6);
    float far[] = {9, -9, 4, -9}; /* gates 9 and -9, which only from above is too large; ups 4 and -9 */
    run(KERNEL_ACTIVATION_FORWARD,
        (struct kernel_call){.activation = {.t = 1, .f = 2, .gated = true, .limit = 7, .u = far, .a = a}});
    near(a, (float[]){7 * 5 / (1 + expf(-1.702f * 7)), -9 * -6 / (1 + expf(1.702f * 9))}, 2, 1e-5);
}
END_TEST

/* --- numbers of 8 bits */

/* The value of a byte with this number of mantissa bits and this bias, by the definition. */
static double meaning(int byte, int mantissa, int bias)
{
    int field = (byte & 0x7f) >> mantissa, fraction = byte & ((1 << mantissa) - 1);
    double size = field ? (1 + (double)fraction / (1 << mantissa)) * pow(2, field - bias)
                        : (double)fraction / (1 << mantissa) * pow(2, 1 - bias);
    return byte & 0x80 ? -size : size;
}

/* All 256 bytes of both formats: their numbers, that these come back, and that what lies between two neighbours goes to the
 * nearer one and from the middle to the even one. */
START_TEST(every_byte)
{
    enum narrow_format format = _i ? NARROW_E5M2 : NARROW_E4M3;
    int mantissa = _i ? 2 : 3, bias = _i ? 15 : 7, last = _i ? 0x7b : 0x7e;
    for (int byte = 0; byte < 256; byte++) {
        float value = narrow_to_float((uint8_t)byte, format);
        int size = byte & 0x7f;
        if (size > last) {
            ck_assert_msg(_i && size == 0x7c ? isinf(value) : isnan(value), "0x%02x is %g", byte, (double)value);
            continue;
        }
        ck_assert_msg((double)value == meaning(byte, mantissa, bias), "0x%02x is %g", byte, (double)value);
        ck_assert_msg(narrow_from_float(value, format) == byte, "%g becomes 0x%02x", (double)value,
                      narrow_from_float(value, format));
        if (size == last)
            continue;
        float next = narrow_to_float((uint8_t)(byte + 1), format), middle = (value + next) / 2;
        ck_assert_uint_eq(narrow_from_float(middle, format), byte % 2 ? byte + 1 : byte);
        ck_assert_uint_eq(narrow_from_float(nextafterf(middle, value), format), byte);
        ck_assert_uint_eq(narrow_from_float(nextafterf(middle, next), format), byte + 1);
    }
    float beyond[] = {nextafterf(_i ? 57344 : 448, INFINITY), 1e30f, INFINITY};
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(narrow_from_float(beyond[i], format), last);
        ck_assert_uint_eq(narrow_from_float(-beyond[i], format), last | 0x80);
    }
    ck_assert_uint_eq(narrow_from_float(NAN, format) & 0x7f, 0x7f);
}
END_TEST

/* With a largest number of 448 the scale is 1. 17 and 19 are ties between multiples of 2: to the even mantissa; 2^-10 and 3 *
 * 2^-10 between multiples of 2^-9. */
START_TEST(quantise_by_hand)
{
    float x[] = {448, 1, -0.5f, 0, 17, 19, 0x1p-9f, 0x1p-10f, 3 * 0x1p-10f, 0x1p-6f, 447, -240}, scale, most = 0;
    static const uint8_t expected[] = {0x7e, 0x38, 0xb0, 0, 0x58, 0x5a, 1, 0, 2, 0x08, 0x7e, 0xf7};
    uint8_t y[12];
    struct quantise_call call = {.rows = 3, .cols = 4, .format = NARROW_E4M3, .x = x, .largest = &most, .y = y, .scale = &scale};
    struct largest_call largest = {.rows = 3, .cols = 4, .x = x, .largest = &most};
    run(KERNEL_LARGEST, (struct kernel_call){.largest = largest});
    ck_assert_float_eq(most, 448);
    run(KERNEL_QUANTISE, (struct kernel_call){.quantise = call});
    ck_assert_float_eq(scale, 1);
    for (int i = 0; i < 12; i++)
        ck_assert_msg(y[i] == expected[i], "%g becomes 0x%02x", (double)x[i], y[i]);
    const int32_t one = 1; /* row */
    largest.count = call.count = &one;
    x[2] = -7;
    x[0] = 3;
    run(KERNEL_LARGEST, (struct kernel_call){.largest = largest});
    ck_assert_float_eq(most, 7);
    run(KERNEL_QUANTISE, (struct kernel_call){.quantise = call});
    ck_assert_float_eq(scale, 0x1p-6f); /* 7 is 448 of them */
    ck_assert(y[0] == 0x74 && y[2] == 0xfe && y[4] == 0 && y[11] == 0);
}
END_TEST

/* A scale is the least power of two by which the largest number is not too large: at 1.75 times a power of two the next one. */
START_TEST(scales_by_hand)
{
    static const struct {
        float largest;
        enum narrow_format format;
        int exponent;
    } cases[] = {{448, NARROW_E4M3, 0},     {449, NARROW_E4M3, 1},          {225, NARROW_E4M3, 0},         {224, NARROW_E4M3, -1},
                 {0.25f, NARROW_E4M3, -10}, {57344, NARROW_E5M2, 0},        {57345, NARROW_E5M2, 1},       {1, NARROW_E5M2, -15},
                 {0, NARROW_E4M3, -126},    {0x1p-140f, NARROW_E5M2, -126}, {0x1.fp127f, NARROW_E4M3, 120}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float x = cases[i].largest, scale;
        uint8_t y;
        struct quantise_call call = {
            .rows = 1, .cols = 1, .format = cases[i].format, .x = &x, .largest = &x, .y = &y, .scale = &scale};
        run(KERNEL_QUANTISE, (struct kernel_call){.quantise = call});
        ck_assert_msg(scale == ldexpf(1, cases[i].exponent), "%g: scale %g", (double)x, (double)scale);
    }
}
END_TEST

/* Blocks of 32 along rows and along columns, the last one of 8; what is behind the count is 0. */
START_TEST(blocks_by_hand)
{
    enum { ROWS = 40, COLS = 40, ACROSS = 2 };
    static float x[ROWS * COLS];
    static uint8_t y[ROWS * COLS], blocks[ROWS * ACROSS];
    const int32_t count = 35;
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = 1;
    x[3 * COLS + 33] = 448; /* of the blocks (3, 1) and (0, 33) */
    struct quantise_blocks_call call = {
        .rows = ROWS, .cols = COLS, .format = NARROW_E4M3, .count = &count, .x = x, .y = y, .blocks = blocks};
    run(KERNEL_QUANTISE_BLOCKS, (struct kernel_call){.quantise_blocks = call});
    for (int i = 0; i < ROWS * ACROSS; i++)
        ck_assert_int_eq(blocks[i] - 127, i == 3 * ACROSS + 1 ? 0 : i / ACROSS < count ? -8 : -126);
    ck_assert(y[0] == 0x78 && y[3 * COLS + 33] == 0x7e && y[3 * COLS + 32] == 0x38 && y[36 * COLS] == 0); /* 256, 448, 1 */
    call.down = true;
    run(KERNEL_QUANTISE_BLOCKS, (struct kernel_call){.quantise_blocks = call});
    for (int i = 0; i < COLS * ACROSS; i++)
        ck_assert_int_eq(blocks[i] - 127, i == 33 ? 0 : -8);
    ck_assert(y[3 * COLS + 33] == 0x7e && y[4 * COLS + 33] == 0x38 && y[3 * COLS + 32] == 0x78 && y[33 * COLS + 33] == 0x78);
}
END_TEST

/* Products of bytes are those of the numbers they stand for, all three of a linear layer, with one scale and in blocks. */
START_TEST(products_of_bytes)
{
    enum { T = 40, IN = 36, OUT = 70 };
    static float scratch[T * IN + T * OUT + IN * OUT], y[2][T * OUT], dx[2][T * IN], dw[2][OUT * IN];
    static float values[3][OUT * T + OUT * IN], *at;
    static uint8_t bytes[3][OUT * T + OUT * IN], blocks[3][OUT * T];
    static const int64_t rows[] = {T, OUT, T}, cols[] = {IN, IN, OUT}; /* x, w, dy */
    float scales[] = {0.5f, 4, 0.25f};
    for (int kernel = KERNEL_LINEAR_FORWARD; kernel <= KERNEL_LINEAR_BACKWARD_WEIGHT; kernel++) {
        struct narrow_operand as[3] = {{.format = NARROW_E4M3}, {.format = NARROW_E4M3}, {.format = NARROW_E5M2}};
        for (int o = 0; o < 3; o++) {
            as[o].down = kernel == KERNEL_LINEAR_BACKWARD_WEIGHT || (kernel == KERNEL_LINEAR_BACKWARD_INPUT && o == 1);
            as[o].scale = _i ? NULL : &scales[o];
            as[o].blocks = blocks[o];
            for (int64_t i = 0; i < rows[o] * cols[o]; i++)
                bytes[o][i] = (uint8_t)(i * 37 % 101);
            for (int64_t i = 0; i < OUT * T; i++)
                blocks[o][i] = (uint8_t)(120 + i * 5 % 7);
            at = values[o];
            (void)narrow_widened(bytes[o], &as[o], rows[o], cols[o], &at);
        }
        struct linear_call wide = {.t = T, .in = IN, .out = OUT, .x = values[0], .w = values[1], .dy = values[2]};
        struct linear_call narrow = {.t = T, .in = IN, .out = OUT, .x = bytes[0], .w = bytes[1], .dy = bytes[2]};
        wide.y = y[0], wide.dx = dx[0], wide.dw = dw[0];
        narrow.y = y[1], narrow.dx = dx[1], narrow.dw = dw[1];
        narrow.x_as = as[0], narrow.w_as = as[1], narrow.dy_as = as[2], narrow.scratch = scratch;
        run((enum kernel)kernel, (struct kernel_call){.linear = wide});
        run((enum kernel)kernel, (struct kernel_call){.linear = narrow});
        ck_assert_uint_le(linear_reference_scratch(&(struct kernel_call){.kernel = (enum kernel)kernel, .linear = narrow}),
                          sizeof scratch);
    }
    ck_assert(memcmp(y[0], y[1], sizeof y[0]) == 0 && memcmp(dx[0], dx[1], sizeof dx[0]) == 0);
    ck_assert(memcmp(dw[0], dw[1], sizeof dw[0]) == 0);
    ck_assert_float_eq(values[0][1], narrow_to_float(37, NARROW_E4M3) * (_i ? 0x1p-2f : 0.5f));
}
END_TEST

/* The first token sees itself only: its value, log-sum-exp its score. Equal keys: the mean of the values seen. */
START_TEST(attention_by_hand)
{
    enum { SEQ = 3, DIM = 2 };
    float qkv[SEQ][3][DIM] = {{{1, 0}, {2, 0}, {1, 10}}, {{0, 1}, {2, 0}, {3, 20}}, {{5, 5}, {2, 0}, {8, 30}}};
    float out[SEQ * DIM], lse[SEQ];
    struct attention_call call = {
        .batch = 1, .seq_len = SEQ, .heads = 1, .kv_heads = 1, .head_dim = DIM, .qkv = qkv, .out = out, .log_sum_exp = lse};
    run(KERNEL_ATTENTION_FORWARD, (struct kernel_call){.attention = call});
    near(out, (float[]){1, 10, 2, 15, 4, 20}, SEQ * DIM, 1e-5);
    near(lse, (float[]){sqrtf(2), logf(2), logf(3) + 10 / sqrtf(2)}, SEQ, 1e-5);
    call.window = 2;
    run(KERNEL_ATTENTION_FORWARD, (struct kernel_call){.attention = call});
    near(out, (float[]){1, 10, 2, 15, 5.5f, 25}, SEQ * DIM, 1e-5);
    call.window = SEQ + 1;
    float full[SEQ * DIM];
    call.out = full;
    run(KERNEL_ATTENTION_FORWARD, (struct kernel_call){.attention = call});
    near(full, (float[]){1, 10, 2, 15, 4, 20}, SEQ * DIM, 1e-5);
}
END_TEST

/* Grouped-query attention equals attention whose key and value heads are copied for each query head of the group. */
START_TEST(groups_share_keys)
{
    enum { SEQ = 6, DIM = 4, GROUPED = (4 + 2 * 2) * DIM, COPIED = (4 + 2 * 4) * DIM, OUT = SEQ * 4 * DIM };
    float grouped[SEQ * GROUPED], copied[SEQ * COPIED], a[OUT], b[OUT], lse[2][4 * SEQ];
    fill(grouped, SEQ * GROUPED, 1);
    for (int row = 0; row < SEQ; row++)
        for (int head = 0; head < 12; head++) {
            int from = head < 4 ? head : head < 8 ? 4 + (head - 4) / 2 : 6 + (head - 8) / 2;
            memcpy(copied + row * COPIED + head * DIM, grouped + row * GROUPED + from * DIM, DIM * sizeof(float));
        }
    struct attention_call call = {
        .batch = 1, .seq_len = SEQ, .heads = 4, .kv_heads = 2, .head_dim = DIM, .qkv = grouped, .out = a, .log_sum_exp = lse[0]};
    run(KERNEL_ATTENTION_FORWARD, (struct kernel_call){.attention = call});
    call.kv_heads = 4, call.qkv = copied, call.out = b, call.log_sum_exp = lse[1];
    run(KERNEL_ATTENTION_FORWARD, (struct kernel_call){.attention = call});
    near(a, b, OUT, 0);
    near(lse[0], lse[1], 4 * SEQ, 0);
}
END_TEST

/* Scores depend on the distance between positions only; position 0 does not turn; the inverse turns back; values stay. */
START_TEST(rotary_keeps_distances)
{
    enum { SEQ = 8, DIM = 4, WIDTH = 3 * DIM };
    float qkv[SEQ * WIDTH], start[SEQ * WIDTH];
    for (int row = 0; row < SEQ; row++)
        fill(start + row * WIDTH, WIDTH, 5); /* the same query, key and value everywhere */
    memcpy(qkv, start, sizeof qkv);
    struct rotary_call call = {.t = SEQ, .seq_len = SEQ, .heads = 1, .kv_heads = 1, .head_dim = DIM, .base = 100, .qkv = qkv};
    run(KERNEL_ROTARY, (struct kernel_call){.rotary = call});
    near(qkv, start, WIDTH, 0);
    float score[2] = {0, 0};
    for (int i = 0; i < DIM; i++) {
        score[0] += qkv[3 * WIDTH + i] * qkv[1 * WIDTH + DIM + i];
        score[1] += qkv[7 * WIDTH + i] * qkv[5 * WIDTH + DIM + i];
    }
    ck_assert_float_eq_tol(score[0], score[1], 1e-5f);
    ck_assert_int_eq(memcmp(qkv + 7 * WIDTH + 2 * DIM, start + 2 * DIM, DIM * sizeof(float)), 0);
    call.inverse = true;
    run(KERNEL_ROTARY, (struct kernel_call){.rotary = call});
    near(qkv, start, SEQ * WIDTH, 1e-6);
}
END_TEST

/* Equal logits: the loss is the logarithm of the vocabulary, the gradient 1/v everywhere and 1/v - 1 at the target. */
START_TEST(cross_entropy_of_equals)
{
    enum { V = 5 };
    float logits[V] = {3, 3, 3, 3, 3}, max, sums[2];
    double loss = 1;
    const int32_t target = 2;
    struct logits_call call = {
        .t = 1, .v = V, .targets = &target, .logits = logits, .max = &max, .sums = sums, .scale = 2, .loss = &loss};
    run(KERNEL_LOGITS_MAX, (struct kernel_call){.logits = call});
    run(KERNEL_LOGITS_SUM, (struct kernel_call){.logits = call});
    run(KERNEL_LOGITS_LOSS, (struct kernel_call){.logits = call});
    ck_assert_double_eq_tol(loss, 1 + 2 * log(5), 1e-6);
    run(KERNEL_LOGITS_BACKWARD, (struct kernel_call){.logits = call});
    near(logits, (float[]){0.4f, 0.4f, -1.6f, 0.4f, 0.4f}, V, 1e-6);
}
END_TEST

enum { VT = 4, VV = 12, SHARDS = 3 };

/* The columns of one shard, and its part of the loss steps. */
static struct logits_call shard_of(const float *whole, int shard, float *logits, float *max, float *sums, const int32_t *targets)
{
    int width = VV / SHARDS;
    for (int row = 0; row < VT; row++)
        memcpy(logits + row * width, whole + row * VV + shard * width, (size_t)width * sizeof(float));
    return (struct logits_call){.t = VT,
                                .v = width,
                                .first = shard * width,
                                .targets = targets,
                                .logits = logits,
                                .max = max,
                                .sums = sums,
                                .scale = 0.25f};
}

/* Shards of the vocabulary with the two reductions done by hand give what one rank gives. */
START_TEST(cross_entropy_in_shards)
{
    const int32_t targets[VT] = {0, 5, 11, 7};
    float whole[VT * VV], part[SHARDS][VT * VV / SHARDS], max[SHARDS][VT], sums[SHARDS][2 * VT], one_max[VT], one_sums[2 * VT];
    fill(whole, VT * VV, 8);
    double loss = 0, one_loss = 0;
    struct logits_call shards[SHARDS];
    for (int i = 0; i < SHARDS; i++) {
        shards[i] = shard_of(whole, i, part[i], max[i], sums[i], targets);
        shards[i].loss = &loss;
        run(KERNEL_LOGITS_MAX, (struct kernel_call){.logits = shards[i]});
    }
    for (int row = 0; row < VT; row++)
        max[0][row] = max[1][row] = max[2][row] = fmaxf(max[0][row], fmaxf(max[1][row], max[2][row]));
    for (int i = 0; i < SHARDS; i++)
        run(KERNEL_LOGITS_SUM, (struct kernel_call){.logits = shards[i]});
    for (int row = 0; row < 2 * VT; row++)
        sums[0][row] = sums[1][row] = sums[2][row] = sums[0][row] + sums[1][row] + sums[2][row];
    run(KERNEL_LOGITS_LOSS, (struct kernel_call){.logits = shards[0]});
    struct logits_call one = {.t = VT,
                              .v = VV,
                              .targets = targets,
                              .logits = whole,
                              .max = one_max,
                              .sums = one_sums,
                              .scale = 0.25f,
                              .loss = &one_loss};
    run(KERNEL_LOGITS_MAX, (struct kernel_call){.logits = one});
    run(KERNEL_LOGITS_SUM, (struct kernel_call){.logits = one});
    run(KERNEL_LOGITS_LOSS, (struct kernel_call){.logits = one});
    ck_assert_double_eq_tol(loss, one_loss, 1e-6);
    run(KERNEL_LOGITS_BACKWARD, (struct kernel_call){.logits = one});
    for (int i = 0; i < SHARDS; i++) {
        run(KERNEL_LOGITS_BACKWARD, (struct kernel_call){.logits = shards[i]});
        for (int row = 0; row < VT; row++)
            near(part[i] + row * 4, whole + row * VV + i * 4, 4, 1e-6);
    }
}
END_TEST

/* First step: m / c1 = g and v / c2 = g^2, so p moves by rate * sign(g), and by decay. */
START_TEST(adam_first_step)
{
    float p[] = {1, 1}, m[2] = {0}, v[2] = {0}, g[] = {8, -0.5f}, compute[2];
    struct adam_call call = {.n = 2,
                             .p = p,
                             .m = m,
                             .v = v,
                             .g = g,
                             .compute = compute,
                             .rate = 0.1f,
                             .beta1 = 0.9f,
                             .beta2 = 0.99f,
                             .epsilon = 0,
                             .decay = 0.5f,
                             .gradient_scale = 0.25f,
                             .step = 1};
    run(KERNEL_ADAM, (struct kernel_call){.adam = call});
    near(p, (float[]){0.85f, 1.05f}, 2, 1e-6);
    near(compute, p, 2, 0);
    near(m, (float[]){0.2f, -0.0125f}, 2, 1e-7);
}
END_TEST

enum { OF_HOST = 300001 }; /* several threads' worth */

static float of_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* A step by the host's cores over N elements whose values follow from their index; p is returned. */
static float *step_on_host(enum kernel kernel, int threads, uint16_t *compute, bool reference)
{
    static const float square = 4;
    float *p = malloc(OF_HOST * sizeof *p), *m = malloc(OF_HOST * sizeof *m), *v = malloc(OF_HOST * sizeof *v);
    float *g = malloc(OF_HOST * sizeof *g);
    for (int i = 0; i < OF_HOST; i++)
        p[i] = (float)(i % 97) / 97 - 0.5f, m[i] = (float)(i % 89) * 1e-3f, v[i] = (float)(i % 83 + 10) * 1e-4f,
        g[i] = (float)(i % 101) / 50 - 1;
    struct kernel_call call = {.kernel = KERNEL_ADAM,
                               .adam = {OF_HOST, p, m, v, g, compute, 0.01f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.5f, {&square, 1}, 3}};
    if (kernel == KERNEL_SGD)
        call = (struct kernel_call){.kernel = KERNEL_SGD, .sgd = {OF_HOST, p, m, g, compute, 0.01f, 0.9f, 0.1f, {&square, 1}}};
    if (reference)
        kernel_reference_run(&call);
    else
        optimizer_host_run(&call, threads);
    free(m);
    free(v);
    free(g);
    return p;
}

/* What the reference gives but for fp32's rounding, whatever the number of threads, and its bf16 nearest. */
START_TEST(optimizers_of_the_host)
{
    const enum kernel kernel = _i ? KERNEL_SGD : KERNEL_ADAM;
    uint16_t *compute = malloc(OF_HOST * sizeof *compute);
    float *expected = step_on_host(kernel, 1, NULL, true), *one = step_on_host(kernel, 1, compute, false);
    near(one, expected, OF_HOST, 1e-6);
    for (int i = 0; i < OF_HOST; i++)
        ck_assert_float_le(fabsf(of_bf16(compute[i]) - one[i]), fabsf(one[i]) * 0x1p-8f);
    for (int threads = 2; threads <= 7; threads += 5) {
        float *more = step_on_host(kernel, threads, compute, false);
        ck_assert_mem_eq(more, one, OF_HOST * sizeof *one);
        free(more);
    }
    free(compute);
    free(expected);
    free(one);
}
END_TEST

/* p = (3, 4), g such that u = (1, -1): |p| = 5, |u| = sqrt 2, so p moves by rate * 5 / sqrt 2 in each coordinate. */
START_TEST(lamb_scales_by_length)
{
    float p[] = {3, 4}, m[2] = {0}, v[2] = {0}, g[] = {2, -7}, update[2], norms[2], step = 0.1f * 5 / sqrtf(2);
    struct lamb_call call = {.n = 2,
                             .p = p,
                             .m = m,
                             .v = v,
                             .g = g,
                             .update = update,
                             .norms = norms,
                             .rate = 0.1f,
                             .beta1 = 0.9f,
                             .beta2 = 0.99f,
                             .gradient_scale = 1,
                             .step = 1};
    run(KERNEL_LAMB, (struct kernel_call){.lamb = call});
    near(p, (float[]){3 - step, 4 + step}, 2, 1e-5);
    near(norms, (float[]){25, 2}, 2, 1e-4);
}
END_TEST

START_TEST(sums_and_adds)
{
    float x[] = {1, 2, 3, 4, 5, 6}, sum[] = {10, 20, 30}, y[6], norm = 1;
    run(KERNEL_COLUMN_SUM, (struct kernel_call){.column_sum = {.t = 2, .h = 3, .x = x, .sum = sum}});
    near(sum, (float[]){15, 27, 39}, 3, 0);
    run(KERNEL_ADD, (struct kernel_call){.add = {.n = 6, .h = 3, .a = x, .b = x, .bias = sum, .y = y}});
    near(y, (float[]){17, 31, 45, 23, 37, 51}, 6, 0);
    run(KERNEL_SQUARE_SUM, (struct kernel_call){.square_sum = {.n = 6, .x = x, .sum = &norm}});
    ck_assert_float_eq(norm, 92);
}
END_TEST

/* The mask depends on the place in the whole tensor: two halves draw what one piece draws; about p of it is dropped. */
START_TEST(dropout_by_place)
{
    enum { ALL = 4096 };
    float x[ALL], whole[ALL], halves[ALL];
    for (int i = 0; i < ALL; i++)
        x[i] = 1;
    struct dropout_call call = {.n = ALL, .h = ALL, .p = 0.25f, .seed = 5, .x = x, .y = whole};
    run(KERNEL_DROPOUT_FORWARD, (struct kernel_call){.dropout = call});
    call.n = ALL / 2, call.y = halves;
    run(KERNEL_DROPOUT_FORWARD, (struct kernel_call){.dropout = call});
    call.first = ALL / 2, call.y = halves + ALL / 2;
    run(KERNEL_DROPOUT_FORWARD, (struct kernel_call){.dropout = call});
    near(halves, whole, ALL, 0);
    int dropped = 0;
    for (int i = 0; i < ALL; i++) {
        ck_assert(whole[i] == 0 || fabsf(whole[i] - 4.0f / 3) < 1e-6f);
        dropped += whole[i] == 0;
    }
    ck_assert_int_ge(dropped, ALL / 4 - 140); /* five standard deviations: 5 sqrt(4096 * 3 / 16) = 139 */
    ck_assert_int_le(dropped, ALL / 4 + 140);
    call = (struct dropout_call){.n = ALL, .h = ALL, .p = 0, .seed = 5, .x = x, .residual = x, .y = whole};
    run(KERNEL_DROPOUT_FORWARD, (struct kernel_call){.dropout = call});
    ck_assert_float_eq(whole[17], 2);
}
END_TEST

START_TEST(every_kernel_has_a_name)
{
    for (int i = 0; i < N_KERNELS; i++) {
        ck_assert_str_ne(kernel_name((enum kernel)i), "unknown");
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(kernel_name((enum kernel)i), kernel_name((enum kernel)j));
    }
    ck_assert_str_eq(kernel_name(N_KERNELS), "unknown");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel references");
    TCase *tcase = tcase_create("by hand");
    tcase_add_test(tcase, norm_of_two);
    tcase_add_test(tcase, linear_by_hand);
    tcase_add_test(tcase, activation_by_hand);
    tcase_add_test(tcase, attention_by_hand);
    tcase_add_test(tcase, groups_share_keys);
    tcase_add_test(tcase, rotary_keeps_distances);
    tcase_add_test(tcase, cross_entropy_of_equals);
    tcase_add_test(tcase, cross_entropy_in_shards);
    tcase_add_test(tcase, adam_first_step);
    tcase_add_loop_test(tcase, optimizers_of_the_host, 0, 2);
    tcase_add_test(tcase, lamb_scales_by_length);
    tcase_add_test(tcase, sums_and_adds);
    tcase_add_test(tcase, dropout_by_place);
    tcase_add_loop_test(tcase, every_byte, 0, 2);
    tcase_add_test(tcase, quantise_by_hand);
    tcase_add_test(tcase, scales_by_hand);
    tcase_add_test(tcase, blocks_by_hand);
    tcase_add_loop_test(tcase, products_of_bytes, 0, 2);
    tcase_add_test(tcase, every_kernel_has_a_name);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
