/* Every backward reference against central differences of its forward reference. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/base/random.h"

/* The function differentiated: L = sum of weight[i] * out[i] after `forward` has run. */
struct probe {
    struct kernel_call forward;
    float *out;
    const float *weight;
    int64_t n_out;
    float *restore; /* an in-place operation's input, copied to `out` before each run; NULL: none */
};

static void fill(float *values, int64_t n, uint64_t name)
{
    struct random_stream random = random_stream_named(7, 2, name);
    for (int64_t i = 0; i < n; i++)
        values[i] = (float)(2 * random_uniform(&random) - 1);
}

static double probe_loss(const struct probe *probe)
{
    double loss = 0;
    if (probe->restore)
        memcpy(probe->out, probe->restore, (size_t)probe->n_out * sizeof(float));
    kernel_reference_run(&probe->forward);
    for (int64_t i = 0; i < probe->n_out; i++)
        loss += (double)probe->weight[i] * probe->out[i];
    return loss;
}

static void gradient_holds(const struct probe *probe, const char *what, float *input, const float *gradient, int64_t n)
{
    const float step = 1.0f / 128;
    for (int64_t i = 0; i < n; i++) {
        float kept = input[i];
        input[i] = kept + step;
        double above = probe_loss(probe);
        input[i] = kept - step;
        double below = probe_loss(probe);
        input[i] = kept;
        double slope = (above - below) / (2 * (double)step);
        ck_assert_msg(fabs(slope - gradient[i]) < 2e-3 * (1 + fabs(slope)), "%s[%lld]: backward says %g, differences say %g",
                      what, (long long)i, (double)gradient[i], slope);
    }
}

enum { T = 3, H = 8, N = T * H };

START_TEST(norm)
{
    float x[N], gain[H], bias[H], y[N], mean[T], rstd[T], w[N], around[N], dx[N], dgain[H] = {0}, dbias[H] = {0};
    bool rms = _i == 1;
    fill(x, N, 1), fill(gain, H, 2), fill(bias, H, 3), fill(w, N, 4), fill(around, N, 5);
    struct probe probe = {.out = y, .weight = w, .n_out = N};
    probe.forward =
        (struct kernel_call){.kernel = KERNEL_NORM_FORWARD, .norm_forward = {T, H, rms, 1e-3f, x, gain, bias, y, mean, rstd}};
    kernel_reference_run(&probe.forward);
    struct norm_backward_call call = {T, H, rms, w, x, gain, mean, rstd, around, dx, dgain, dbias};
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_NORM_BACKWARD, .norm_backward = call});
    for (int i = 0; i < N; i++)
        dx[i] -= around[i];
    gradient_holds(&probe, "dx", x, dx, N);
    gradient_holds(&probe, "dgain", gain, dgain, H);
    gradient_holds(&probe, "dbias", bias, dbias, H);
}
END_TEST

START_TEST(linear)
{
    enum { IN = 5, OUT = 4 };
    float x[T * IN], w[OUT * IN], bias[OUT], y[T * OUT], dy[T * OUT], dx[T * IN], dw[OUT * IN] = {0}, dbias[OUT] = {0};
    fill(x, T * IN, 1), fill(w, OUT * IN, 2), fill(bias, OUT, 3), fill(dy, T * OUT, 4);
    struct linear_call call = {
        .t = T, .in = IN, .out = OUT, .x = x, .w = w, .bias = bias, .y = y, .dy = dy, .dx = dx, .dw = dw, .dbias = dbias};
    struct probe probe = {{.kernel = KERNEL_LINEAR_FORWARD, .linear = call}, y, dy, T * OUT, NULL};
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_LINEAR_BACKWARD_INPUT, .linear = call});
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_LINEAR_BACKWARD_WEIGHT, .linear = call});
    gradient_holds(&probe, "dx", x, dx, T * IN);
    gradient_holds(&probe, "dw", w, dw, OUT * IN);
    gradient_holds(&probe, "dbias", bias, dbias, OUT);
}
END_TEST

/* Turning is linear, so its backward pass is the turn back: gradient of sum w turn(x) is turn^-1(w). Values do not turn. */
START_TEST(rotary)
{
    enum { SEQ = 3, HEADS = 2, KV = 1, DIM = 4, WIDTH = (HEADS + 2 * KV) * DIM, ALL = SEQ * WIDTH };
    float x[ALL], y[ALL], w[ALL], dx[ALL];
    fill(x, ALL, 1), fill(w, ALL, 2);
    memcpy(dx, w, sizeof dx);
    struct rotary_call call = {.t = SEQ, .seq_len = SEQ, .heads = HEADS, .kv_heads = KV, .head_dim = DIM, .base = 100, .qkv = y};
    struct probe probe = {{.kernel = KERNEL_ROTARY, .rotary = call}, y, w, ALL, x};
    call.qkv = dx;
    call.inverse = true;
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_ROTARY, .rotary = call});
    gradient_holds(&probe, "dqkv", x, dx, ALL);
}
END_TEST

static const struct attention_shape {
    int seq, window, heads, kv;
} attention_shapes[] = {{5, 0, 2, 2}, {6, 3, 2, 1}, {1, 0, 1, 1}, {7, 1, 4, 2}};

START_TEST(attention)
{
    enum { BATCH = 2, DIM = 4, MOST = BATCH * 7 * 8 * DIM };
    struct attention_shape shape = attention_shapes[_i];
    float qkv[MOST], out[MOST], lse[BATCH * 7 * 4], w[MOST], dqkv[MOST];
    int64_t rows = BATCH * shape.seq, n = rows * (shape.heads + 2 * shape.kv) * DIM, n_out = rows * shape.heads * DIM;
    fill(qkv, n, 1), fill(w, n_out, 2);
    struct attention_call call = {.batch = BATCH,
                                  .seq_len = shape.seq,
                                  .window = shape.window,
                                  .heads = shape.heads,
                                  .kv_heads = shape.kv,
                                  .head_dim = DIM,
                                  .qkv = qkv,
                                  .out = out,
                                  .log_sum_exp = lse,
                                  .dout = w,
                                  .dqkv = dqkv};
    struct probe probe = {{.kernel = KERNEL_ATTENTION_FORWARD, .attention = call}, out, w, n_out, NULL};
    kernel_reference_run(&probe.forward);
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_ATTENTION_BACKWARD, .attention = call});
    gradient_holds(&probe, "dqkv", qkv, dqkv, n);
}
END_TEST

START_TEST(activation)
{
    float u[2 * N], a[N], w[N], du[2 * N];
    fill(u, 2 * N, 1), fill(w, N, 2);
    struct activation_call call = {.t = T, .f = H, .gated = _i == 1, .u = u, .a = a, .da = w, .du = du};
    struct probe probe = {{.kernel = KERNEL_ACTIVATION_FORWARD, .activation = call}, a, w, N, NULL};
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_ACTIVATION_BACKWARD, .activation = call});
    gradient_holds(&probe, "du", u, du, call.gated ? 2 * N : N);
}
END_TEST

START_TEST(dropout)
{
    float x[N], bias[H], residual[N], y[N], w[N], dx[N];
    fill(x, N, 1), fill(bias, H, 2), fill(residual, N, 3), fill(w, N, 4);
    struct dropout_call call = {.n = N,
                                .h = H,
                                .p = 0.25f,
                                .seed = 9,
                                .first = 100,
                                .x = x,
                                .bias = bias,
                                .residual = residual,
                                .y = y,
                                .dy = w,
                                .dx = dx};
    struct probe probe = {{.kernel = KERNEL_DROPOUT_FORWARD, .dropout = call}, y, w, N, NULL};
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_DROPOUT_BACKWARD, .dropout = call});
    float dbias[H] = {0};
    struct column_sum_call sum = {.t = T, .h = H, .x = dx, .sum = dbias};
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_COLUMN_SUM, .column_sum = sum});
    gradient_holds(&probe, "dx", x, dx, N);
    gradient_holds(&probe, "dbias", bias, dbias, H);
    gradient_holds(&probe, "dresidual", residual, w, N);
}
END_TEST

START_TEST(embedding)
{
    enum { SEQ = 2, TOKENS = 4, FIRST = 10, COUNT = 3 };
    const int32_t tokens[TOKENS] = {11, 9, 12, 11}; /* 9 belongs to another rank */
    float table[COUNT * H], positions[SEQ * H], x[TOKENS * H], w[TOKENS * H], dtable[COUNT * H] = {0}, dpositions[SEQ * H] = {0};
    fill(table, COUNT * H, 1), fill(positions, SEQ * H, 2), fill(w, TOKENS * H, 3);
    struct embedding_call call = {.t = TOKENS,
                                  .h = H,
                                  .seq_len = SEQ,
                                  .first = FIRST,
                                  .count = COUNT,
                                  .tokens = tokens,
                                  .table = table,
                                  .positions = positions,
                                  .x = x,
                                  .dx = w,
                                  .dtable = dtable,
                                  .dpositions = dpositions};
    struct probe probe = {{.kernel = KERNEL_EMBEDDING_FORWARD, .embedding = call}, x, w, TOKENS * H, NULL};
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_EMBEDDING_BACKWARD, .embedding = call});
    gradient_holds(&probe, "dtable", table, dtable, COUNT * H);
    gradient_holds(&probe, "dpositions", positions, dpositions, SEQ * H);
}
END_TEST

static const enum kernel loss_steps[] = {KERNEL_LOGITS_MAX, KERNEL_LOGITS_SUM, KERNEL_LOGITS_LOSS};

static double loss_of(const struct logits_call *call)
{
    *call->loss = 0;
    for (int i = 0; i < 3; i++)
        kernel_reference_run(&(struct kernel_call){.kernel = loss_steps[i], .logits = *call});
    return *call->loss;
}

START_TEST(cross_entropy)
{
    const int32_t targets[T] = {0, 7, 3};
    float logits[N], gradient[N], max[T], sums[2 * T];
    double loss;
    fill(logits, N, 1);
    struct logits_call call = {
        .t = T, .v = H, .targets = targets, .logits = logits, .max = max, .sums = sums, .scale = 0.5f, .loss = &loss};
    loss_of(&call);
    memcpy(gradient, logits, sizeof gradient);
    struct logits_call back = call;
    back.logits = gradient;
    kernel_reference_run(&(struct kernel_call){.kernel = KERNEL_LOGITS_BACKWARD, .logits = back});
    for (int i = 0; i < N; i++) {
        float kept = logits[i];
        logits[i] = kept + 1.0f / 64;
        double above = loss_of(&call);
        logits[i] = kept - 1.0f / 64;
        double slope = (above - loss_of(&call)) * 32;
        logits[i] = kept;
        ck_assert_double_eq_tol(slope, gradient[i], 1e-3);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel gradients");
    TCase *tcase = tcase_create("against differences");
    tcase_add_loop_test(tcase, norm, 0, 2);
    tcase_add_test(tcase, linear);
    tcase_add_test(tcase, rotary);
    tcase_add_loop_test(tcase, attention, 0, 4);
    tcase_add_loop_test(tcase, activation, 0, 2);
    tcase_add_test(tcase, dropout);
    tcase_add_test(tcase, embedding);
    tcase_add_test(tcase, cross_entropy);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
