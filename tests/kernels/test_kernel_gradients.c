/* Every backward reference against central differences of its forward reference. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "model/base/random.h"
#include "tests/suite.h"

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
    for (int i = 0; i < 2 * N; i++) /* away from the limit, where there is no slope */
        u[i] += fabsf(fabsf(u[i]) - 0.5f) < 0.02f ? 0.05f : 0;
    struct activation_call call = {
        .t = T, .f = H, .gated = _i >= 1, .limit = _i == 2 ? 0.5f : 0, .u = u, .a = a, .da = w, .du = du};
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

/* Copies of tokens in any order, weighted by gates. */
START_TEST(combine)
{
    enum { TOP = 2, COPIES = T * TOP };
    static const int32_t place[COPIES] = {3, 0, 5, 1, 4, 2};
    float rows[COPIES * H], gate[COPIES], y[N], w[N], drows[COPIES * H], dgate[COPIES];
    fill(rows, COPIES * H, 1), fill(gate, COPIES, 2), fill(w, N, 3);
    struct probe probe = {.out = y, .weight = w, .n_out = N};
    probe.forward.kernel = KERNEL_COMBINE_FORWARD;
    probe.forward.combine =
        (struct combine_call){.t = T, .h = H, .top_k = TOP, .rows = rows, .place = place, .gate = gate, .y = y};
    struct kernel_call backward = probe.forward;
    backward.kernel = KERNEL_COMBINE_BACKWARD;
    backward.combine.dy = w;
    backward.combine.drows = drows;
    backward.combine.dgate = dgate;
    kernel_reference_run(&backward);
    gradient_holds(&probe, "rows", rows, drows, COPIES * H);
    gradient_holds(&probe, "gate", gate, dgate, COPIES);
}
END_TEST

/* Logits far enough from one another that no difference changes who is chosen. */
START_TEST(route)
{
    enum { EXPERTS = 4, TOP = 2 };
    float logits[T * EXPERTS] = {0.1f, 0.9f, -0.4f, 0.5f, 1, -1, 0.3f, 0, -0.2f, 0.2f, 0.6f, -0.7f};
    float gate[T * TOP], w[T * TOP], dlogits[T * EXPERTS];
    int32_t expert[T * TOP];
    fill(w, T * TOP, 1);
    struct probe probe = {.out = gate, .weight = w, .n_out = T * TOP};
    probe.forward.kernel = KERNEL_ROUTE_FORWARD;
    probe.forward.route =
        (struct route_call){.t = T, .experts = EXPERTS, .top_k = TOP, .logits = logits, .gate = gate, .expert = expert};
    if (_i) { /* one of two groups: the first row's largest are then both in the second */
        probe.forward.route.groups = 2;
        probe.forward.route.top_groups = 1;
    }
    struct kernel_call backward = probe.forward;
    backward.kernel = KERNEL_ROUTE_BACKWARD;
    backward.route.dgate = w;
    backward.route.dlogits = dlogits;
    kernel_reference_run(&probe.forward);
    ck_assert_int_eq(expert[0], 1);
    ck_assert_int_eq(expert[1], _i ? 0 : 3);
    kernel_reference_run(&backward);
    gradient_holds(&probe, "logits", logits, dlogits, T * EXPERTS);
}
END_TEST

START_TEST(head_norm)
{
    enum { HEADS = 2, D = H / HEADS };
    float x[N], gain[D], bias[D], y[N], w[N], dx[N], dgain[D] = {0}, dbias[D] = {0};
    bool rms = _i == 1;
    fill(x, N, 1), fill(gain, D, 2), fill(bias, D, 3), fill(w, N, 4);
    struct probe probe = {.out = y, .weight = w, .n_out = N};
    probe.forward.kernel = KERNEL_HEAD_NORM_FORWARD;
    probe.forward.head_norm = (struct head_norm_call){.t = T,
                                                      .heads = HEADS,
                                                      .head_dim = D,
                                                      .rms = rms,
                                                      .epsilon = 1e-3f,
                                                      .x_row = H,
                                                      .y_row = H,
                                                      .x = x,
                                                      .gain = gain,
                                                      .bias = rms ? NULL : bias,
                                                      .y = y};
    struct kernel_call backward = probe.forward;
    backward.kernel = KERNEL_HEAD_NORM_BACKWARD;
    backward.head_norm.dy = w;
    backward.head_norm.dx = dx;
    backward.head_norm.dgain = dgain;
    backward.head_norm.dbias = rms ? NULL : dbias;
    kernel_reference_run(&backward);
    gradient_holds(&probe, "gain", gain, dgain, D);
    if (!rms)
        gradient_holds(&probe, "bias", bias, dbias, D);
    gradient_holds(&probe, "x", x, dx, N);
}
END_TEST

/* Queries that begin late, narrow values, shared keys; in a window, with slopes. */
START_TEST(query_range)
{
    enum { QUERIES = 3, KEYS = 6, HEADS = 2, D = 4, V = 2, Q = HEADS * D, OUT = HEADS * V };
    float q[QUERIES * Q], k[KEYS * D], v[KEYS * V], out[QUERIES * OUT], w[QUERIES * OUT], log_sum_exp[HEADS * QUERIES];
    float dq[QUERIES * Q], dk[KEYS * D] = {0}, dv[KEYS * V] = {0};
    static const float slopes[HEADS] = {0.5f, 0.25f};
    fill(q, QUERIES * Q, 1), fill(k, KEYS * D, 2), fill(v, KEYS * V, 3), fill(w, QUERIES * OUT, 4);
    struct probe probe = {.out = out, .weight = w, .n_out = QUERIES * OUT};
    probe.forward.kernel = KERNEL_QUERY_RANGE_FORWARD;
    probe.forward.query_range = (struct query_range_call){.batch = 1,
                                                          .queries = QUERIES,
                                                          .keys = KEYS,
                                                          .first = 2,
                                                          .window = _i ? 3 : 0,
                                                          .heads = HEADS,
                                                          .kv_heads = 1,
                                                          .head_dim = D,
                                                          .value_dim = V,
                                                          .slopes = _i ? slopes : NULL,
                                                          .q_at = {Q, 0},
                                                          .k_at = {D, 0},
                                                          .v_at = {V, 0},
                                                          .out_at = {OUT, 0},
                                                          .q = q,
                                                          .k = k,
                                                          .v = v,
                                                          .out = out,
                                                          .log_sum_exp = log_sum_exp};
    struct kernel_call backward = probe.forward;
    backward.kernel = KERNEL_QUERY_RANGE_BACKWARD;
    backward.query_range.dout = w;
    backward.query_range.dq = dq;
    backward.query_range.dk = dk;
    backward.query_range.dv = dv;
    kernel_reference_run(&probe.forward);
    kernel_reference_run(&backward);
    gradient_holds(&probe, "q", q, dq, QUERIES * Q);
    gradient_holds(&probe, "k", k, dk, KEYS * D);
    gradient_holds(&probe, "v", v, dv, KEYS * V);
}
END_TEST

/* One call for all keys, and one for each half of them, the second taking in what the first gave: the same results and gradients.
 * The first query sees nothing of the second half. */
START_TEST(query_range_in_halves)
{
    enum { QUERIES = 4, KEYS = 6, HEADS = 2, D = 4, HALF = KEYS / 2, Q = QUERIES * HEADS * D };
    float q[Q], k[KEYS * D], v[KEYS * D], w[Q], out[2][Q], lse[2][HEADS * QUERIES];
    float dq[2][Q], dk[2][KEYS * D] = {{0}}, dv[2][KEYS * D] = {{0}};
    fill(q, Q, 1), fill(k, KEYS * D, 2), fill(v, KEYS * D, 3), fill(w, Q, 4);
    struct query_range_call whole = {.batch = 1, .queries = QUERIES, .keys = KEYS, .first = 2, .heads = HEADS, .kv_heads = 1};
    whole.head_dim = whole.value_dim = D;
    whole.window = _i ? 4 : 0;
    whole.q_at.row = whole.out_at.row = HEADS * D, whole.k_at.row = whole.v_at.row = D;
    whole.q = q, whole.dout = w;
    for (int backward = 0; backward < 2; backward++)
        for (int part = 0; part < 3; part++) { /* the whole, the halves */
            struct kernel_call call = {.kernel = backward ? KERNEL_QUERY_RANGE_BACKWARD : KERNEL_QUERY_RANGE_FORWARD,
                                       .query_range = whole};
            int which = part > 0, first = part == 2 ? HALF : 0;
            call.query_range.k = k + first * D, call.query_range.v = v + first * D;
            call.query_range.dk = dk[which] + first * D, call.query_range.dv = dv[which] + first * D;
            call.query_range.dq = dq[which], call.query_range.out = out[which], call.query_range.log_sum_exp = lse[which];
            call.query_range.keys = part ? HALF : KEYS;
            call.query_range.first -= first;
            call.query_range.accumulate = part == 2;
            kernel_reference_run(&call);
        }
    for (int i = 0; i < Q; i++) {
        ck_assert_float_eq_tol(out[0][i], out[1][i], 1e-6f);
        ck_assert_float_eq_tol(dq[0][i], dq[1][i], 1e-6f);
    }
    for (int i = 0; i < KEYS * D; i++) {
        ck_assert_float_eq_tol(dk[0][i], dk[1][i], 1e-6f);
        ck_assert_float_eq_tol(dv[0][i], dv[1][i], 1e-6f);
    }
    for (int i = 0; i < HEADS * QUERIES; i++)
        ck_assert_float_eq_tol(lse[0][i], lse[1][i], 1e-6f);
}
END_TEST

/* A group of one row, an empty one, one of two rows. */
START_TEST(grouped)
{
    enum { GROUPS = 3, IN = 4, OUT = 3, WEIGHTS = GROUPS * OUT * IN };
    static const int32_t offsets[GROUPS + 1] = {0, 1, 1, T};
    float x[T * IN], weights[WEIGHTS], bias[GROUPS * OUT], y[T * OUT], w[T * OUT];
    float dx[T * IN], dw[WEIGHTS] = {0}, dbias[GROUPS * OUT] = {0};
    fill(x, T * IN, 1), fill(weights, WEIGHTS, 2), fill(bias, GROUPS * OUT, 3), fill(w, T * OUT, 4);
    struct probe probe = {.out = y, .weight = w, .n_out = T * OUT};
    probe.forward.kernel = KERNEL_GROUPED_FORWARD;
    probe.forward.grouped = (struct grouped_call){
        .groups = GROUPS, .most = T, .in = IN, .out = OUT, .offsets = offsets, .x = x, .w = weights, .bias = bias, .y = y};
    struct kernel_call backward = {.kernel = KERNEL_GROUPED_BACKWARD_INPUT, .grouped = probe.forward.grouped};
    backward.grouped.dy = w;
    backward.grouped.dx = dx;
    kernel_reference_run(&backward);
    backward.kernel = KERNEL_GROUPED_BACKWARD_WEIGHT;
    backward.grouped.dw = dw;
    backward.grouped.dbias = dbias;
    kernel_reference_run(&backward);
    gradient_holds(&probe, "x", x, dx, T * IN);
    gradient_holds(&probe, "w", weights, dw, WEIGHTS);
    gradient_holds(&probe, "bias", bias, dbias, GROUPS * OUT);
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
    tcase_add_loop_test(tcase, activation, 0, 3);
    tcase_add_test(tcase, dropout);
    tcase_add_test(tcase, embedding);
    tcase_add_test(tcase, cross_entropy);
    tcase_add_test(tcase, combine);
    tcase_add_loop_test(tcase, route, 0, 2);
    tcase_add_loop_test(tcase, head_norm, 0, 2);
    tcase_add_loop_test(tcase, query_range, 0, 2);
    tcase_add_loop_test(tcase, query_range_in_halves, 0, 2);
    tcase_add_test(tcase, grouped);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
