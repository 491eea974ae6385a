/* Runs as such: same bits twice, gradients against finite differences, learning, failures. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/clock.h"
#include "runtime/run/rank_record.h"
#include "tests/runtime/toys.h"

static void toy_laid_out(struct toy *toy, enum toy_model model, const char *layout, feature_set features)
{
    toy_make(toy, model);
    toy_lay_out(toy, layout, features);
}

#define OVERLAPS (FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(TP_OVERLAP))

START_TEST(two_runs_give_the_same_bits)
{
    struct toy toy;
    struct thread_run a, b;
    struct thread_run_options options = {.steps = 3, .seed = 3, .rate = 1e-2f, .gradients = true};
    static const enum toy_model models[] = {TOY_GPT, TOY_MIXTURE, TOY_LATENT};
    static const char *const layouts[] = {"tp=2,pp=2,dp=2,zero=1,sp=1,schedule=1f1b", "tp=2,sp=1,dp=2,ep=4,zero=1",
                                          "cp=2,dp=2,ep=2,zero=3,recompute=full"};
    toy_laid_out(&toy, models[_i], layouts[_i], OVERLAPS);
    toy.job.dropout = _i ? 0.125 : 0;
    toy.job.clip = 0.5;
    toy_run(&toy, DETAIL_KERNEL, &options, &a, NULL);
    toy_run(&toy, DETAIL_KERNEL, &options, &b, NULL);
    for (int s = 0; s < 3; s++)
        ck_assert(a.steps[s].loss == b.steps[s].loss && a.steps[s].gradient_norm == b.steps[s].gradient_norm);
    ck_assert(memcmp(a.gradients, b.gradients, (size_t)a.n_gradients * sizeof *a.gradients) == 0);
    ck_assert(memcmp(a.weights, b.weights, (size_t)a.n_gradients * sizeof *a.weights) == 0);
    thread_run_free(&a);
    thread_run_free(&b);
}
END_TEST

/* The gathered parameters of one step are what the next one computes with: losses of several steps agree with one rank's. */
START_TEST(steps_follow_one_rank)
{
    static const char *const layouts[] = {"dp=2,zero=0", "dp=2,zero=1",           "dp=4,zero=2",
                                          "dp=2,zero=3", "tp=2,sp=1,dp=2,zero=1", "pp=2,schedule=1f1b"};
    struct toy one, many;
    struct thread_run a, b;
    struct thread_run_options options = {.steps = 4, .seed = 5, .rate = 1e-3f};
    toy_laid_out(&one, TOY_GPT, "mb=1", 0);
    toy_laid_out(&many, TOY_GPT, layouts[_i / 2], _i % 2 ? OVERLAPS : 0);
    toy_run(&one, DETAIL_KERNEL, &options, &a, NULL);
    toy_run(&many, DETAIL_CHUNK, &options, &b, NULL);
    for (int s = 0; s < 4; s++)
        ck_assert_msg(fabs(a.steps[s].loss - b.steps[s].loss) <= 1e-4 * a.steps[s].loss, "%s step %d: %.9g, one rank %.9g",
                      layouts[_i / 2], s, b.steps[s].loss, a.steps[s].loss);
    thread_run_free(&a);
    thread_run_free(&b);
}
END_TEST

/* Every sample is the same text, so the second step measures the loss where the first step's update led. Adam's first update is
 * rate * sign(gradient): L(w - d) and L(w + d) for one d of every weight. Central difference, error O(rate^2). */
START_TEST(gradients_are_finite_differences)
{
    static const unsigned char text[] = "\1\7\3\22\5\31\2\6\11\4\17\23\30\12\13\14\1\24\5";
    struct toy toy;
    struct thread_run there, back, at[2];
    const float rate = _i == TOY_KIMI ? 2e-5f : 2e-4f; /* lengths of keys near zero change fast */
    struct thread_run_options options = {.steps = 1, .seed = 11, .text = text, .gradients = true};
    toy_laid_out(&toy, (enum toy_model)_i, "tp=2,sp=1", 0);
    options.n_text = 17 + (size_t)toy.model.mtp_layers; /* one sequence of 16 and what follows it */
    for (int sign = 0; sign < 2; sign++) {
        options.rate = sign ? -rate : rate;
        options.steps = 1;
        toy_run(&toy, DETAIL_KERNEL, &options, sign ? &back : &there, NULL);
        options.steps = 2;
        toy_run(&toy, DETAIL_KERNEL, &options, &at[sign], NULL);
    }
    double expected = 0, measured = at[1].steps[1].loss - at[0].steps[1].loss;
    for (int64_t i = 0; i < there.n_gradients; i++)
        expected += (double)there.gradients[i] * ((double)back.weights[i] - (double)there.weights[i]);
    ck_assert_msg(fabs(measured - expected) <= 0.02 * fabs(expected), "difference %.9g, gradients say %.9g", measured, expected);
    thread_run_free(&there);
    thread_run_free(&back);
    thread_run_free(&at[0]);
    thread_run_free(&at[1]);
}
END_TEST

/* A sequence that goes round: the token after the next is known too. Untrained, every prediction costs log(vocabulary); those of
 * the modules count 0.3 together. */
START_TEST(learns_tokens_ahead)
{
    static const unsigned char text[] = "\1\2\3\4\5\6\7\10\1\2\3\4\5\6\7\10\1\2\3\4\5\6\7\10\1\2\3\4\5\6\7\10";
    static const enum toy_model models[] = {TOY_PREDICTION, TOY_PREDICTION_GPT};
    struct toy toy;
    struct thread_run run;
    struct thread_run_options options = {.steps = 60, .seed = 2, .rate = 1e-2f, .text = text, .n_text = sizeof text - 1};
    toy_laid_out(&toy, models[_i], "dp=2,tp=2,sp=1,zero=1", 0);
    toy_run(&toy, DETAIL_CHUNK, &options, &run, NULL);
    ck_assert_double_eq_tol(run.steps[0].loss, 1.3 * log((double)toy.model.vocab), 0.1);
    ck_assert_double_lt(run.steps[59].loss, 0.1);
    thread_run_free(&run);
}
END_TEST

START_TEST(learns_a_text)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog. the lazy dog sleeps. the quick brown fox does not. ";
    struct toy toy;
    struct thread_run run;
    struct thread_run_options options = {
        .steps = 40, .seed = 2, .rate = 1e-2f, .text = (const unsigned char *)text, .n_text = sizeof text - 1};
    toy_make(&toy, TOY_LLAMA);
    toy.model.vocab = 256;
    toy.layout.dp = 2;
    toy.layout.zero = 1;
    toy_complete(&toy);
    toy_run(&toy, DETAIL_CHUNK, &options, &run, NULL);
    ck_assert_double_eq_tol(run.steps[0].loss, log(256), 0.1);
    ck_assert_double_lt(run.steps[39].loss, 2.0);
    thread_run_free(&run);
}
END_TEST

/* One rank holds the whole model: as many weights as are counted. */
START_TEST(a_rank_holds_what_is_counted)
{
    struct toy toy;
    struct parameter_count count;
    struct stage_units units;
    double held = 0;
    toy_laid_out(&toy, (enum toy_model)_i, "mb=1", 0);
    struct shape shape = shape_of(&toy.layout, &toy.setting, 0);
    struct stage_content content = {.range = {.count = toy.model.layers}, .embedding = true, .head = true};
    stage_units_build(&shape, &toy.model, content, &units);
    for (int i = 0; i < units.n_items; i++)
        for (int k = 0; k < units.items[i].n_parameters; k++)
            held += (double)(units.items[i].parameters[k].rows * units.items[i].parameters[k].cols);
    transformer_parameters(&toy.model, &count);
    ck_assert_double_eq(held, count.total + count.mtp);
    stage_units_free(&units);
}
END_TEST

/* --- failures */

static bool mentions(const struct diags *diags, const char *text)
{
    for (size_t i = 0; i < diags->n_items; i++)
        if (strstr(diags->items[i].text, text))
            return true;
    return false;
}

START_TEST(a_lost_rank_is_named)
{
    struct toy toy;
    struct diags diags = {0};
    struct thread_run run;
    struct injection injection = {.trouble = _i ? TROUBLE_HANGS : TROUBLE_KILLED, .rank = 2, .step = 1};
    struct thread_run_options options = {
        .steps = 3, .seed = 1, .timeout = 500 * (NANOS_PER_SECOND / 1000), .injection = &injection};
    toy_laid_out(&toy, TOY_GPT, "tp=2,sp=1,pp=2,schedule=1f1b", OVERLAPS);
    ck_assert(toy_run(&toy, DETAIL_KERNEL, &options, &run, &diags) == STATUS_FAILED);
    ck_assert_uint_eq(diags.n_items, 4); /* every rank ended, and says why */
    ck_assert(mentions(&diags, _i ? "rank 2 hung on request" : "rank 2 was killed on request"));
    if (_i) /* whoever's patience ends first says so */
        ck_assert(mentions(&diags, "rank 2 never came to ") && mentions(&diags, "did not arrive within 0.5 s"));
    diags_free(&diags);
}
END_TEST

/* What others wait for a rank that is killed, or that has no memory, does not depend on their patience. */
static void expect_soon(struct toy *toy, const struct thread_run_options *options, const char *first)
{
    struct diags diags = {0};
    struct thread_run run;
    nanos began = clock_monotonic();
    ck_assert(toy_run(toy, DETAIL_KERNEL, options, &run, &diags) == STATUS_FAILED);
    ck_assert_int_lt(clock_monotonic() - began, options->timeout / 2);
    ck_assert_uint_eq(diags.n_items, (size_t)toy->setting.gpus);
    ck_assert_msg(mentions(&diags, first), "%s", diags.items[0].text);
    diags_free(&diags);
}

START_TEST(a_rank_that_goes_is_not_waited_for)
{
    struct toy toy;
    struct thread_run run;
    struct injection injection = {.trouble = TROUBLE_KILLED, .rank = 2, .step = 1};
    struct thread_run_options options = {.steps = 2, .seed = 1, .timeout = 1200 * NANOS_PER_SECOND};
    toy_laid_out(&toy, TOY_GPT, "tp=2,sp=1,pp=2,schedule=1f1b", OVERLAPS);
    options.injection = &injection;
    expect_soon(&toy, &options, "first failure: rank 2 was killed on request");
    toy_laid_out(&toy, TOY_LLAMA, "pp=2,schedule=gpipe", 0);
    options.injection = NULL;
    toy_run(&toy, DETAIL_KERNEL, &options, &run, NULL);
    size_t *peak = run.memory_peak;
    ck_assert_uint_ne(peak[0], peak[1]);
    options.memory_limit = (peak[0] + peak[1]) / 2; /* enough for one of them */
    thread_run_free(&run);
    expect_soon(&toy, &options, "out of memory");
}
END_TEST

static double computed(const struct thread_run *run, int rank, const struct program *program)
{
    double seconds = 0;
    const struct script *script = &program->scripts[program->ranks[rank].script];
    for (size_t i = 0; i < run->timeline.n_spans; i++) {
        const struct span *span = &run->timeline.spans[i];
        if (span->rank == rank && program->ops[script->first_op + span->op].kind == OP_COMPUTE)
            seconds += (double)(span->end - span->start) * 1e-9;
    }
    return seconds;
}

START_TEST(a_slow_rank_computes_longer)
{
    struct toy toy;
    struct thread_run run;
    struct program program;
    struct diags diags = {0};
    struct injection injection = {.trouble = TROUBLE_SLOW, .rank = 1, .step = 1, .factor = 30};
    struct thread_run_options options = {.steps = 2, .seed = 1, .injection = &injection};
    toy_laid_out(&toy, TOY_GPT, "dp=2,zero=1", OVERLAPS);
    ck_assert(program_build(&toy.layout, &toy.setting, DETAIL_LAYER, false, &program, &diags) == STATUS_OK);
    ck_assert(run_on_threads(&program, &toy.setting, &options, &run, &diags) == STATUS_OK);
    ck_assert_int_eq(run.timeline_step, 1);
    ck_assert_double_gt(computed(&run, 1, &program), 3 * computed(&run, 0, &program));
    thread_run_free(&run);
    program_free(&program);
    diags_free(&diags);
}
END_TEST

/* The first step, which loads kernels and takes memory, is not timed where there is another. */
START_TEST(the_step_told_of_is_not_the_first)
{
    static const struct thread_run_step steps[] = {{.duration = 3}, {.duration = 9}, {.duration = 2}, {.duration = 8}};
    ck_assert_int_eq(run_median_step(steps, 1), 0);
    ck_assert_int_eq(run_median_step(steps, 2), 1);
    ck_assert_int_eq(run_median_step(steps, 3), 2); /* of 9 and 2 the lower */
    ck_assert_int_eq(run_median_step(steps, 4), 3);
}
END_TEST

START_TEST(a_slow_rank_changes_no_number)
{
    struct toy toy;
    struct thread_run fast, slow;
    struct injection injection = {.trouble = TROUBLE_SLOW, .rank = 1, .step = 1, .factor = 3};
    struct thread_run_options options = {.steps = 3, .seed = 1, .rate = 1e-3f};
    toy_laid_out(&toy, TOY_GPT, "dp=2,zero=1", OVERLAPS);
    toy_run(&toy, DETAIL_KERNEL, &options, &fast, NULL);
    options.injection = &injection;
    toy_run(&toy, DETAIL_KERNEL, &options, &slow, NULL);
    ck_assert(fast.steps[2].loss == slow.steps[2].loss);
    thread_run_free(&fast);
    thread_run_free(&slow);
}
END_TEST

START_TEST(too_little_memory_is_refused)
{
    struct toy toy;
    struct diags diags = {0};
    struct thread_run run;
    struct thread_run_options options = {.steps = 1, .seed = 1, .memory_limit = 10000};
    toy_laid_out(&toy, TOY_GPT, "dp=2,zero=1", 0);
    ck_assert(toy_run(&toy, DETAIL_KERNEL, &options, &run, &diags) == STATUS_FAILED);
    ck_assert(mentions(&diags, "out of memory"));
    diags_free(&diags);
}
END_TEST

START_TEST(what_it_cannot_execute_is_refused)
{
    struct toy toy;
    struct diags diags = {0};
    struct thread_run run;
    struct thread_run_options options = {.steps = 1, .seed = 1};
    toy_laid_out(&toy, TOY_LATENT, "dp=2", 0);
    toy.job.precision = PRECISION_NVFP4;
    toy.cluster.gpu.peak_flops[PRECISION_NVFP4] = 1e11;
    ck_assert(toy_run(&toy, DETAIL_KERNEL, &options, &run, &diags) == STATUS_MISSING);
    ck_assert_uint_eq(diags.n_items, 1);
    diags_free(&diags);
    toy_laid_out(&toy, TOY_GPT, "dp=2", 0);
    toy.model.max_seq_len = toy.job.seq_len - 1; /* one row of learned positions too few */
    ck_assert(toy_run(&toy, DETAIL_KERNEL, &options, &run, &diags) == STATUS_MISSING);
    ck_assert(mentions(&diags, "positions"));
    diags_free(&diags);
}
END_TEST

/* Of mixers with a state: exit code and a sentence each. */
START_TEST(what_hybrids_lack_is_refused)
{
    static const char *const why[] = {"cp", "Muon", "16 bits", "output gate"};
    struct toy toy;
    struct diags diags = {0};
    struct thread_run run;
    struct thread_run_options options = {.steps = 1, .seed = 1};
    toy_laid_out(&toy, TOY_MAMBA, _i == 0 ? "cp=2" : "dp=2", 0);
    toy.job.optimizer = _i == 1 ? OPTIMIZER_MUON : OPTIMIZER_ADAM;
    toy.job.precision = _i == 2 ? PRECISION_FP8 : PRECISION_FP32;
    toy.cluster.gpu.peak_flops[PRECISION_FP8] = 1e11;
    toy.model.output_gate = _i == 3;
    ck_assert(toy_run(&toy, DETAIL_KERNEL, &options, &run, &diags) == STATUS_MISSING);
    ck_assert(mentions(&diags, why[_i]));
    diags_free(&diags);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {two_runs_give_the_same_bits, 3},
        {steps_follow_one_rank, 12},
        {gradients_are_finite_differences, N_TOY_MODELS},
        {learns_tokens_ahead, 2},
        {learns_a_text, 1},
        {a_rank_holds_what_is_counted, N_TOY_MODELS},
        {a_lost_rank_is_named, 2},
        {a_rank_that_goes_is_not_waited_for, 1},
        {a_slow_rank_computes_longer, 1},
        {the_step_told_of_is_not_the_first, 1},
        {a_slow_rank_changes_no_number, 1},
        {too_little_memory_is_refused, 1},
        {what_it_cannot_execute_is_refused, 1},
        {what_hybrids_lack_is_refused, 4},
    };
    return toy_suite("runtime run", tests, COUNT(tests));
}
