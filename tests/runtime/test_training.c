/* What a step does to the weights: optimizers, clipping, dropout. By exact lengths first, then against one rank over several
 * steps. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "tests/runtime/equivalence.h"

static void toy_laid_out(struct toy *toy, enum toy_model model, const char *layout, enum optimizer optimizer)
{
    toy_make(toy, model);
    toy->job.optimizer = optimizer;
    toy_lay_out(toy, layout, DP | PP);
}

static double distance(const float *a, const float *b, int64_t begin, int64_t end)
{
    double square = 0;
    for (int64_t i = begin; i < end; i++) {
        double d = (double)a[i] - (b ? (double)b[i] : 0);
        square += d * d;
    }
    return sqrt(square);
}

/* The weights before the first step. */
static void run_still(const struct toy *toy, struct thread_run_options options, struct thread_run *run)
{
    options.steps = 1;
    options.rate = 0;
    toy_run(toy, DETAIL_CHUNK, &options, run, NULL);
}

static const char *const layouts[] = {
    "mb=1",
    "dp=4,ep=2,zero=0",
    "dp=2,ep=2,zero=1",
    "dp=4,ep=2,zero=3",
    "tp=2,sp=1,dp=2,ep=2,zero=2",
    "tp=2,sp=1,dp=2,ep=2,etp=2,zero=1",
    "tp=4,sp=0,zero=0",
    "pp=2,schedule=1f1b,dp=2,zero=1",
    "pp=2,vpp=2,schedule=dualpipe,dp=2,ep=2,zero=1",
    "cp=2,ep=2,zero=2",
    "pp=2,schedule=zb-2p,tp=2,sp=1,zero=0",
    "pp=2,schedule=zb-2p,dp=2,ep=2,zero=1",
    "pp=2,vpp=2,schedule=zb-v,dp=2,zero=2",
    "dp=4,ep=2,zero=1,shard=2",
    "tp=2,sp=1,dp=4,ep=2,zero=3,shard=2",
    "cp=2,dp=2,ep=2,zero=2,shard=2",
    "pp=2,schedule=zb-2p,dp=4,ep=2,zero=1,shard=2",
    "pp=2,vpp=2,schedule=dualpipe,cp=2,dp=2,ep=2,zero=1,shard=2",
};

/* SGD's first step is rate * gradient, so what clipping leaves of it has the length rate * clip. */
START_TEST(clipping_bounds_the_step)
{
    struct toy toy;
    struct thread_run still, run;
    struct thread_run_options options = {.steps = 1, .seed = 3, .rate = 0.5f, .gradients = true};
    toy_laid_out(&toy, TOY_MIXTURE, layouts[_i], OPTIMIZER_SGD);
    toy.job.clip = 1; /* so that rolling schedules know the norm */
    run_still(&toy, options, &still);
    double norm = still.steps[0].gradient_norm;
    for (int loose = 0; loose < 2; loose++) {
        toy.job.clip = norm * (loose ? 2 : 0.25);
        toy_run(&toy, DETAIL_KERNEL, &options, &run, NULL);
        double expected = 0.5 * (loose ? norm : toy.job.clip);
        ck_assert_double_eq_tol(distance(run.weights, still.weights, 0, run.n_gradients), expected, 1e-5 * expected);
        thread_run_free(&run);
    }
    thread_run_free(&still);
}
END_TEST

/* LAMB's step is as long as rate times the tensor it changes. */
START_TEST(lamb_steps_in_proportion)
{
    struct toy toy;
    struct thread_run still, run;
    struct thread_run_options options = {.steps = 1, .seed = 3, .rate = 0.125f, .gradients = true};
    toy_laid_out(&toy, TOY_MIXTURE, layouts[_i], OPTIMIZER_LAMB);
    run_still(&toy, options, &still);
    toy_run(&toy, DETAIL_KERNEL, &options, &run, NULL);
    struct model_map map = model_map_of(&toy.setting);
    int checked = 0;
    for (struct model_tensor r = model_map_tensor(&map, 0);; r = model_map_tensor(&map, r.end)) {
        double length = distance(still.weights, NULL, r.begin, r.end);
        if (length > 0) {
            double expected = 0.125 * length, step = distance(run.weights, still.weights, r.begin, r.end);
            ck_assert_msg(fabs(step - expected) <= 2e-5 * expected, "%s: %s moved by %g, not %g", layouts[_i], r.name, step,
                          expected);
            checked++;
        }
        if (r.end == map.total)
            break;
    }
    ck_assert_int_ge(checked, 4 * 7);
    thread_run_free(&still);
    thread_run_free(&run);
}
END_TEST

/* Weights of both after some steps; `tolerance` of how far the one rank's moved. */
static void compare_training(struct toy *one, struct toy *many, const struct thread_run_options *options, double tolerance)
{
    struct thread_run still, a, b;
    char text[256];
    run_still(one, *options, &still);
    toy_run(one, DETAIL_KERNEL, options, &a, NULL);
    toy_run(many, DETAIL_LAYER, options, &b, NULL);
    toy_text(many, text, sizeof text);
    for (int s = 0; s < options->steps; s++)
        ck_assert_msg(fabs(a.steps[s].loss - b.steps[s].loss) <= 1e-5 * a.steps[s].loss, "%s step %d: %.9g, one rank %.9g", text,
                      s, b.steps[s].loss, a.steps[s].loss);
    double moved = distance(a.weights, still.weights, 0, a.n_gradients), apart = distance(a.weights, b.weights, 0, a.n_gradients);
    ck_assert_msg(apart <= tolerance * moved, "%s: weights are %g apart after moving by %g", text, apart, moved);
    ck_assert_double_gt(moved, 0);
    thread_run_free(&still);
    thread_run_free(&a);
    thread_run_free(&b);
}

/* Adam and LAMB divide a gradient by its size: where it is next to nothing its rounding decides. */
START_TEST(optimizers_follow_one_rank)
{
    static const struct {
        enum optimizer optimizer;
        float rate;
        double tolerance;
    } cases[] = {{OPTIMIZER_ADAM, 1e-3f, 5e-3}, {OPTIMIZER_LAMB, 1e-3f, 5e-3}, {OPTIMIZER_SGD, 0.1f, 2e-5}};
    struct toy one, many;
    for (int k = 0; k < 3; k++) {
        struct thread_run_options options = {.steps = 3, .seed = 5, .rate = cases[k].rate, .gradients = true};
        toy_laid_out(&one, TOY_MIXTURE, "mb=1", cases[k].optimizer);
        toy_laid_out(&many, TOY_MIXTURE, layouts[_i], cases[k].optimizer);
        one.job.clip = many.job.clip = 1;
        compare_training(&one, &many, &options, cases[k].tolerance);
    }
}
END_TEST

/* The same elements are dropped whatever the layout, in a recomputation too. */
START_TEST(dropout_follows_one_rank)
{
    static const char *const some[] = {"mb=4,recompute=full",
                                       "tp=2,sp=1,dp=2,zero=1",
                                       "tp=2,sp=0,recompute=selective",
                                       "cp=2,tp=2,sp=1,mb=2,zero=1",
                                       "cp=4,mb=2,zero=0",
                                       "pp=2,schedule=zb-1p,recompute=full",
                                       "pp=2,vpp=2,schedule=dualpipe-v",
                                       "pp=2,vpp=2,schedule=dualpipe,dp=2,zero=1"};
    static const enum toy_model models[] = {TOY_GPT, TOY_MIXTURE, TOY_PREDICTION};
    struct toy one, many;
    for (int m = 0; m < COUNT(models); m++) {
        struct thread_run_options options = {.steps = 2, .seed = 5, .rate = 0.1f, .gradients = true};
        toy_laid_out(&one, models[m], "mb=1", OPTIMIZER_SGD);
        toy_laid_out(&many, models[m], some[_i], OPTIMIZER_SGD);
        one.job.dropout = many.job.dropout = 0.25;
        compare_training(&one, &many, &options, 2e-5);
    }
}
END_TEST

/* What is repeated is what was there: no bit of a gradient differs from those of a run that keeps everything. */
START_TEST(repetitions_change_no_bit)
{
    static const struct {
        enum toy_model model;
        const char *layout, *recompute;
    } some[] = {{TOY_GPT, "mb=2", "full:1"},
                {TOY_GPT, "mb=2", "full:groups3"},
                {TOY_LLAMA, "tp=2,sp=1", "full:every2"},
                {TOY_LLAMA, "pp=2,vpp=2,schedule=zb-v", "full:1"},
                {TOY_MIXTURE, "dp=2,ep=2", "full:groups2"}};
    struct thread_run_options options = {.steps = 2, .seed = 5, .rate = 0.1f, .gradients = true};
    struct toy kept, repeated;
    char layout[128];
    snprintf(layout, sizeof layout, "%s,recompute=%s", some[_i].layout, some[_i].recompute);
    toy_laid_out(&kept, some[_i].model, some[_i].layout, OPTIMIZER_SGD);
    toy_laid_out(&repeated, some[_i].model, layout, OPTIMIZER_SGD);
    kept.job.dropout = repeated.job.dropout = 0.25;
    compare_training(&kept, &repeated, &options, 0);
}
END_TEST

START_TEST(dropout_changes_with_the_step)
{
    static const unsigned char text[] = "\1\7\3\22\5\31\2\6\11\4\17\23\30\12\13\14\1"; /* one sequence of 16 */
    struct toy toy;
    struct thread_run run;
    struct thread_run_options options = {.steps = 2, .seed = 5, .text = text, .n_text = 17};
    toy_laid_out(&toy, TOY_GPT, "mb=1", OPTIMIZER_SGD);
    toy.job.dropout = 0.5;
    toy_run(&toy, DETAIL_CHUNK, &options, &run, NULL);
    ck_assert(run.steps[0].loss != run.steps[1].loss); /* same data, same weights */
    thread_run_free(&run);
}
END_TEST

/* Stages of a rolling schedule exchange the norm where it is needed only; then it is every rank's. */
START_TEST(rolling_schedules_know_the_norm_they_need)
{
    struct toy one, many;
    struct thread_run a, b;
    struct thread_run_options options = {.steps = 1, .seed = 1};
    toy_laid_out(&one, TOY_GPT, "mb=1", OPTIMIZER_ADAM);
    toy_laid_out(&many, TOY_GPT, "pp=2,schedule=zb-2p,dp=2,zero=1", OPTIMIZER_ADAM);
    toy_run(&one, DETAIL_CHUNK, &options, &a, NULL);
    for (int clips = 0; clips < 2; clips++) {
        many.job.clip = clips;
        toy_run(&many, DETAIL_CHUNK, &options, &b, NULL);
        ck_assert(isnan(b.steps[0].gradient_norm) == !clips);
        if (clips)
            ck_assert_double_eq_tol(b.steps[0].gradient_norm, a.steps[0].gradient_norm, 1e-5 * a.steps[0].gradient_norm);
        thread_run_free(&b);
    }
    thread_run_free(&a);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {clipping_bounds_the_step, COUNT(layouts)},
        {lamb_steps_in_proportion, COUNT(layouts)},
        {optimizers_follow_one_rank, COUNT(layouts)},
        {dropout_follows_one_rank, 8},
        {repetitions_change_no_bit, 5},
        {dropout_changes_with_the_step, 1},
        {rolling_schedules_know_the_norm_they_need, 1},
    };
    return toy_suite("runtime training", tests, COUNT(tests));
}
