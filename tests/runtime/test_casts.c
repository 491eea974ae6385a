/*
 * Products of 8-bit operands in the executor: fp8 and mxfp8.
 *
 * What a layout may change. Sums in another order differ in the last bit of fp32, and a number that stood at the border between
 * two bytes then becomes the other one: a flip, of one step of the format for one number in a million. A flip reaches all that
 * follows as a difference of 1e-3 or so of a gradient, where further ones come of it. Where ranks share what is reduced
 * (key/value heads, latents, positions) each rounds its own part of a gradient instead of the sum. Neither can be larger than
 * what rounding to 8 bits does at all: the distance between the run in 8 bits and the one in fp32, which is measured here and is
 * the bound. Layouts that sum as one rank does (pipelines, replicas, recomputation) have no flips, and equal it to 1e-5.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/equivalence.h"

static const struct thread_run_options one_step = {.steps = 1, .seed = 7, .gradients = true};
static const struct thread_run_options two_steps = {.steps = 2, .seed = 7, .rate = 0.1f, .gradients = true};

/* In blocks of 32, so of larger matrices. */
static void toy_narrow(struct toy *toy, enum toy_model model, struct variant variant, enum precision precision, bool large)
{
    toy_make(toy, model);
    if (large) {
        toy->model.hidden = 64;
        toy->model.ffn_hidden = 128;
        toy->model.head_dim = 32;
        toy->job.seq_len = toy->model.max_seq_len = 64;
        toy->job.global_batch = 4;
        toy->model.layers = 2;
    }
    toy->job.precision = precision;
    toy->job.optimizer = OPTIMIZER_SGD;
    struct gpu *gpu = &toy->cluster.gpu;
    gpu->peak_flops[PRECISION_FP8] = gpu->peak_flops[PRECISION_MXFP8] = gpu->peak_flops[PRECISION_NVFP4] = 1e11;
    gpu->gemm[PRECISION_FP8] = gpu->gemm[PRECISION_MXFP8] = gpu->gemm[PRECISION_NVFP4] = gpu->gemm[PRECISION_BF16];
    toy_lay_out(toy, variant.layout, variant.features);
}

/* Of all gradients, relative to b's length. */
static double distance(const struct thread_run *a, const struct thread_run *b)
{
    double square = 0, scale = 0;
    for (int64_t i = 0; i < a->n_gradients; i++) {
        double d = (double)a->gradients[i] - (double)b->gradients[i];
        square += d * d;
        scale += (double)b->gradients[i] * (double)b->gradients[i];
    }
    return sqrt(square / scale);
}

static void run(enum toy_model model, struct variant variant, enum precision precision, bool large, enum detail detail,
                const struct thread_run_options *options, struct thread_run *result)
{
    struct toy toy;
    toy_narrow(&toy, model, variant, precision, large);
    toy_run(&toy, detail, options, result, NULL);
}

/* At the details whose turn it is from case number `turn` on. */
static void check_layouts(enum toy_model model, enum precision precision, const struct variant *variants, int n, int turn)
{
    const struct thread_run_options *options = &two_steps;
    bool large = precision == PRECISION_MXFP8;
    for (int i = 0; i < n; i++) {
        const struct variant one = {"mb=1", variants[i].features & PARALLEL};
        struct thread_run wide, narrow, many;
        run(model, one, PRECISION_FP32, large, DETAIL_CHUNK, options, &wide);
        run(model, one, precision, large, DETAIL_CHUNK, options, &narrow);
        double noise = distance(&narrow, &wide);
        ck_assert_msg(noise > 5e-3 && noise < 8e-2, "8 bits make a difference of %g", noise);
        run(model, variants[i], precision, large, detail_in_turn(turn + i), options, &many);
        double loss = narrow.steps[1].loss, change = fabs(many.steps[1].loss / loss - 1), off = distance(&many, &narrow);
        ck_assert_msg(change <= 1e-4, "%s: loss %.9g, one rank %.9g", variants[i].layout, many.steps[1].loss, loss);
        ck_assert_msg(off <= 1.5 * noise, "%s: gradients differ by %g, 8 bits by %g", variants[i].layout, off, noise);
        thread_run_free(&many);
        thread_run_free(&wide);
        thread_run_free(&narrow);
    }
}

/* --- layouts */

static const struct variant divided[] = {
    {"tp=2,sp=0", 0},
    {"tp=2,sp=1", 0},
    {"tp=4,sp=1", TP},
    {"tp=2,sp=1", PARALLEL | TP},
    {"tp=2,sp=1,recompute=full", 0},
    {"tp=2,sp=1,recompute=core_attn+layernorm+mlp", TP},
    {"tp=2,sp=1,recompute=layernorm+mlp", PARALLEL},
    {"tp=2,sp=1,recompute=selective", PYTORCH},
    {"tp=2,sp=1,pp=2,schedule=zb-1p,recompute=full", PYTORCH},
    {"dp=2,tp=2,sp=1,zero=3,recompute=full", DP},
    {"dp=2,pp=2,tp=2,sp=1,zero=1,schedule=1f1b", TP | PP | DP},
    {"cp=2,tp=2,sp=1", 0},
};

START_TEST(divided_layouts)
{
    static const enum toy_model models[] = {TOY_GPT, TOY_LLAMA};
    check_layouts(models[_i % 2], PRECISION_FP8, &divided[_i / 2], 1, _i);
}
END_TEST

START_TEST(other_models)
{
    static const enum toy_model models[] = {TOY_MIXTURE,    TOY_MIXTURE_GPT,  TOY_LATENT, TOY_LATENT_GPT,
                                            TOY_PREDICTION, TOY_LATENT_NORMS, TOY_OSS};
    static const struct variant some[] = {{"tp=2,sp=1,dp=2,ep=2,zero=1", DP | TP},
                                          {"dp=2,ep=2,recompute=layernorm+moe_act", DP},
                                          {"dp=2,zero=3,recompute=full", 0}};
    int dense = models[_i] == TOY_LATENT_GPT ? 2 : 0;
    check_layouts(models[_i], PRECISION_FP8, some + dense, 3 - dense, _i);
}
END_TEST

START_TEST(blocks)
{
    static const enum toy_model models[] = {TOY_GPT, TOY_LLAMA, TOY_MIXTURE};
    static const struct variant some[] = {
        {"tp=2,sp=1", 0}, {"tp=2,sp=0,recompute=full", 0}, {"dp=2,pp=2,zero=1,schedule=1f1b", DP}, {"dp=2,tp=2,sp=1,zero=3", DP}};
    check_layouts(models[_i / 4], PRECISION_MXFP8, &some[_i % 4], 1, _i / 4 + _i % 4);
}
END_TEST

/* The same sums in the same order: no flips. */
START_TEST(layouts_that_sum_alike)
{
    static const struct variant same[] = {
        {"recompute=full", 0},
        {"recompute=selective", 0},
        {"recompute=selective", PYTORCH},
        {"pp=2,schedule=gpipe", 0},
        {"pp=2,schedule=1f1b", PP},
        {"pp=2,vpp=2,schedule=interleaved", PP},
        {"pp=4,schedule=zb-1p", 0},
        {"pp=4,schedule=zb-2p", 0},
        {"pp=2,vpp=2,schedule=zb-v", 0},
        {"dp=2,zero=1", DP},
        {"dp=2,zero=3", DP},
        {"dp=2,pp=2,zero=1,schedule=zb-1p,recompute=full", DP},
        {"recompute=layernorm+mlp_act", 0},
        {"recompute=layernorm+mlp", PARALLEL},
    };
    static const enum toy_model models[] = {TOY_GPT, TOY_LLAMA, TOY_PREDICTION};
    for (int m = 0; m < COUNT(models); m++) {
        struct thread_run one, many;
        struct variant alone = {"mb=1", same[_i].features & (PYTORCH | PARALLEL)};
        run(models[m], alone, PRECISION_FP8, false, DETAIL_KERNEL, &one_step, &one);
        run(models[m], same[_i], PRECISION_FP8, false, _i % 2 ? DETAIL_KERNEL : DETAIL_LAYER, &one_step, &many);
        ck_assert_double_eq_tol(many.steps[0].loss, one.steps[0].loss, 1e-6 * one.steps[0].loss);
        ck_assert_msg(distance(&many, &one) <= 1e-5, "%s: off by %g", same[_i].layout, distance(&many, &one));
        thread_run_free(&one);
        thread_run_free(&many);
    }
}
END_TEST

/* --- training */

static void learn(enum precision precision, struct thread_run *result)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog. the lazy dog sleeps. the quick brown fox does not. ";
    struct toy toy;
    struct thread_run_options options = {
        .steps = 40, .seed = 2, .rate = 3e-3f, .text = (const unsigned char *)text, .n_text = sizeof text - 1};
    toy_narrow(&toy, TOY_LLAMA, (struct variant){"tp=2,sp=1,dp=2,zero=1", DP}, precision, true);
    toy.model.vocab = 256;
    toy.job.optimizer = OPTIMIZER_ADAM;
    toy_run(&toy, DETAIL_CHUNK, &options, result, NULL);
}

/* As well as in fp32 or nearly: forty steps of Adam take two ways from the first different rounding on, so no value is near. */
START_TEST(learns_a_text)
{
    struct thread_run wide, narrow;
    learn(PRECISION_FP32, &wide);
    learn(_i ? PRECISION_MXFP8 : PRECISION_FP8, &narrow);
    double first = narrow.steps[0].loss, last = narrow.steps[39].loss, expected = wide.steps[39].loss;
    ck_assert_msg(last < 0.5 * first, "from %g to %g", first, last);
    ck_assert_msg(last <= 1.1 * expected, "%g, in fp32 %g", last, expected);
    ck_assert(last != expected);
    thread_run_free(&wide);
    thread_run_free(&narrow);
}
END_TEST

START_TEST(two_runs_give_the_same_bits)
{
    struct thread_run a, b;
    struct variant variant = {"tp=2,sp=1,dp=2,zero=1", DP};
    enum precision precision = _i ? PRECISION_MXFP8 : PRECISION_FP8;
    run(TOY_MIXTURE, variant, precision, true, DETAIL_KERNEL, &two_steps, &a);
    run(TOY_MIXTURE, variant, precision, true, DETAIL_KERNEL, &two_steps, &b);
    ck_assert(memcmp(a.gradients, b.gradients, (size_t)a.n_gradients * sizeof *a.gradients) == 0);
    ck_assert(a.steps[1].loss == b.steps[1].loss);
    thread_run_free(&a);
    thread_run_free(&b);
}
END_TEST

/* What products read is kept in a byte instead of four: each micro-batch more in flight costs less. */
START_TEST(operands_are_kept_narrow)
{
    static const struct variant schedules[] = {{"pp=2,schedule=gpipe", 0}, {"pp=2,schedule=1f1b", 0}}; /* four, two of them */
    double held[2];
    for (int narrow = 0; narrow < 2; narrow++) {
        struct thread_run four, two;
        run(TOY_GPT, schedules[0], narrow ? PRECISION_FP8 : PRECISION_FP32, true, DETAIL_KERNEL, &one_step, &four);
        run(TOY_GPT, schedules[1], narrow ? PRECISION_FP8 : PRECISION_FP32, true, DETAIL_KERNEL, &one_step, &two);
        held[narrow] = (double)(four.memory_peak[0] - two.memory_peak[0]);
        thread_run_free(&four);
        thread_run_free(&two);
    }
    /* elements a token of a layer, by what is kept: x, x2 and means; norms' outputs, attention's and the activation's as bytes */
    ck_assert_msg(held[1] < 0.85 * held[0], "%g bytes, in fp32 %g", held[1], held[0]);
}
END_TEST

/* 4 bits; shares of a sequence that are not whole blocks. */
START_TEST(what_it_cannot_execute_is_refused)
{
    struct toy toy;
    struct diags diags = {0};
    struct thread_run result;
    toy_narrow(&toy, TOY_GPT, (struct variant){"tp=2,sp=1", 0}, _i ? PRECISION_MXFP8 : PRECISION_NVFP4, false);
    ck_assert(toy_run(&toy, DETAIL_KERNEL, &one_step, &result, &diags) == STATUS_MISSING);
    ck_assert_uint_eq(diags.n_items, 1);
    ck_assert(strstr(diags.items[0].text, _i ? "blocks" : "nvfp4"));
    diags_free(&diags);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{divided_layouts, 2 * COUNT(divided)},
                                     {other_models, 7},
                                     {blocks, 12},
                                     {layouts_that_sum_alike, 14},
                                     {learns_a_text, 2},
                                     {two_runs_give_the_same_bits, 2},
                                     {operands_are_kept_narrow, 1},
                                     {what_it_cannot_execute_is_refused, 2}};
    return toy_suite("runtime 8-bit operands", tests, COUNT(tests));
}
