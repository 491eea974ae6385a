/* A layout divides the work and changes nothing else: loss and every gradient of any layout equal those of one rank. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/toys.h"

static const struct thread_run_options one_step = {.steps = 1, .seed = 7, .gradients = true};

/* Largest difference of a tensor, relative to the largest gradient of the model it belongs to. */
static void compare(const struct toy *toy, const struct thread_run *one, const struct thread_run *many)
{
    char text[256], name[64];
    struct model_map map = model_map_of(&toy->setting);
    toy_text(toy, text, sizeof text);
    ck_assert_msg(fabs(one->steps[0].loss - many->steps[0].loss) <= 1e-5 * fabs(one->steps[0].loss),
                  "%s: loss %.9g, one rank %.9g", text, many->steps[0].loss, one->steps[0].loss);
    for (int64_t begin = 0; begin < map.total;) {
        model_map_name(&map, begin, name, sizeof name);
        double largest = 0, difference = 0;
        int64_t at = begin;
        for (char other[64]; at < map.total; at++) {
            if (at > begin && (model_map_name(&map, at, other, sizeof other), strcmp(name, other)) != 0)
                break;
            largest = fmax(largest, fabs(one->gradients[at]));
            difference = fmax(difference, fabs(one->gradients[at] - many->gradients[at]));
        }
        ck_assert_msg(difference <= 1e-5 * largest, "%s: gradient of %s differs by %g of %g", text, name, difference, largest);
        begin = at;
    }
    double norm = many->steps[0].gradient_norm;
    ck_assert_msg(isnan(norm) || fabs(norm - one->steps[0].gradient_norm) <= 1e-5 * norm, "%s: gradient norm %g, one rank %g",
                  text, norm, one->steps[0].gradient_norm);
}

/* One rank with the same model and batch; the block's form is part of the model. */
static void run_one(enum toy_model model, bool parallel_block, struct thread_run *result)
{
    struct toy toy;
    toy_make(&toy, model);
    if (parallel_block)
        toy.layout.features |= FEATURE_BIT(PARALLEL_BLOCK);
    toy_complete(&toy);
    toy_run(&toy, DETAIL_KERNEL, &one_step, result, NULL);
}

struct variant {
    const char *layout; /* as layout_parse reads it */
    feature_set features;
};

static void check_variants(enum toy_model model, const struct variant *variants, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct toy toy;
        struct diags diags = {0};
        struct thread_run one, many;
        toy_make(&toy, model);
        ck_assert(layout_parse(variants[i].layout, &toy.layout, &diags) == STATUS_OK);
        toy.layout.features |= variants[i].features;
        toy_complete(&toy);
        run_one(model, toy.layout.features & FEATURE_BIT(PARALLEL_BLOCK), &one);
        for (int detail = DETAIL_CHUNK; detail <= DETAIL_KERNEL; detail++) {
            toy_run(&toy, (enum detail)detail, &one_step, &many, NULL);
            compare(&toy, &one, &many);
            thread_run_free(&many);
        }
        thread_run_free(&one);
        diags_free(&diags);
    }
}

#define COUNT(array) (int)(sizeof(array) / sizeof(array)[0])
#define PP           FEATURE_BIT(PP_OVERLAP)
#define DP           FEATURE_BIT(DP_OVERLAP)
#define TP           FEATURE_BIT(TP_OVERLAP)
#define PARALLEL     FEATURE_BIT(PARALLEL_BLOCK)

static const struct variant variants[] = {
    {"mb=2", 0},
    {"recompute=full", 0},
    {"recompute=selective", 0},
    {"tp=2,sp=0", 0},
    {"tp=2,sp=1", 0},
    {"tp=2,sp=1,recompute=full", 0},
    {"tp=4,sp=1", TP},
    {"tp=4,sp=0,recompute=selective", 0},
    {"pp=2,schedule=gpipe", 0},
    {"pp=2,schedule=1f1b", 0},
    {"pp=4,schedule=1f1b", PP},
    {"pp=2,vpp=2,schedule=interleaved", 0},
    {"pp=2,vpp=2,schedule=interleaved", PP},
    {"pp=3,schedule=1f1b", PP},
    {"pp=2,vpp=3,schedule=interleaved", PP}, /* the embedding and the head alone */
    {"pp=4,schedule=zb-1p", 0},
    {"pp=4,schedule=zb-2p", 0},
    {"pp=2,tp=2,sp=1,schedule=zb-1p,recompute=full", 0},
    {"dp=2,zero=0", 0},
    {"dp=2,zero=0", DP},
    {"dp=2,zero=1", 0},
    {"dp=4,zero=1", DP},
    {"dp=2,zero=2", DP},
    {"dp=2,zero=3", 0},
    {"dp=4,zero=3", DP},
    {"dp=2,zero=3,recompute=full", 0},
    {"dp=2,tp=2,sp=1,zero=3,recompute=full", DP},
    {"dp=2,pp=2,tp=2,sp=1,zero=1,schedule=1f1b", TP | PP | DP},
    {"dp=2,pp=2,vpp=2,zero=2,schedule=interleaved,recompute=selective", PP | DP},
    {"dp=2,pp=2,zero=1,schedule=zb-1p", DP},
    {"dp=2,tp=2,sp=1,zero=2,mb=2", TP | DP},
    {"tp=2,sp=1", PARALLEL},
    {"tp=2,sp=0,pp=2,schedule=zb-1p", PARALLEL},
    {"dp=2,tp=2,sp=1,recompute=full", PARALLEL | TP},
};

START_TEST(equals_one_rank_gpt)
{
    check_variants(TOY_GPT, &variants[_i], 1);
}
END_TEST

START_TEST(equals_one_rank_llama)
{
    check_variants(TOY_LLAMA, &variants[_i], 1);
}
END_TEST

/* Experts on ep ranks; split over tp (ep divides dp * cp) or whole (it does not). */
static const struct variant mixtures[] = {
    {"mb=2,recompute=full", 0},
    {"dp=2,ep=2,zero=0", 0},
    {"dp=4,ep=2,zero=1", DP},
    {"dp=4,ep=4,zero=2", 0},
    {"dp=4,ep=2,zero=3,recompute=full", DP},
    {"dp=2,ep=2,zero=3,recompute=selective", 0},
    {"tp=2,sp=1", TP},
    {"tp=2,sp=0", 0},
    {"tp=2,sp=1,ep=2", 0},
    {"tp=4,sp=0,ep=2,zero=1", 0},
    {"tp=2,sp=1,dp=2,ep=2,zero=1", DP},
    {"tp=2,sp=0,dp=2,ep=2,zero=0", 0},
    {"tp=2,sp=1,dp=2,ep=4,zero=1,recompute=full", DP},
    {"tp=2,sp=0,dp=2,ep=4,zero=0", 0},
    {"pp=2,schedule=1f1b,dp=2,ep=2,zero=1", PP | DP},
    {"pp=2,schedule=zb-1p,dp=2,ep=2,zero=0", DP},
    {"pp=2,vpp=2,schedule=interleaved,tp=2,sp=1,ep=2", PP},
    {"dp=2,ep=2,mb=2,zero=1", PARALLEL},
};

START_TEST(equals_one_rank_mixture)
{
    check_variants(TOY_MIXTURE, &mixtures[_i], 1);
}
END_TEST

START_TEST(equals_one_rank_mixture_gpt)
{
    check_variants(TOY_MIXTURE_GPT, &mixtures[_i], 1);
}
END_TEST

/* Stretches of every sequence on cp ranks. */
static const struct variant contexts[] = {
    {"cp=2,zero=0", 0},
    {"cp=2,mb=2,zero=1", DP},
    {"cp=4,zero=0,recompute=selective", 0},
    {"cp=2,dp=2,zero=3,recompute=full", DP},
    {"cp=2,tp=2,sp=1,zero=1", TP},
    {"cp=2,tp=2,sp=0,pp=2,schedule=1f1b", PP},
    {"cp=2,pp=2,schedule=zb-1p,recompute=full", DP},
    {"cp=2,dp=2,pp=2,vpp=2,schedule=interleaved,zero=2", PP | DP},
};

START_TEST(equals_one_rank_context)
{
    static const enum toy_model models[] = {TOY_GPT, TOY_LLAMA, TOY_WINDOW, TOY_ALIBI};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        check_variants(models[i], &contexts[_i], 1);
}
END_TEST

/* Two-armed and bidirectional schedules. */
static const struct variant folded[] = {
    {"pp=2,vpp=2,schedule=zb-v", 0},
    {"pp=2,vpp=2,schedule=zb-v,dp=2,zero=1", DP},
    {"pp=2,vpp=2,schedule=zb-v,tp=2,sp=1,recompute=full", 0},
    {"pp=2,vpp=2,schedule=dualpipe-v", 0},
    {"pp=2,vpp=2,schedule=dualpipe-v,dp=2,zero=2", DP},
    {"pp=2,vpp=2,schedule=dualpipe", 0},
    {"pp=2,vpp=2,schedule=dualpipe,dp=2,zero=1", DP},
    {"pp=4,vpp=2,schedule=dualpipe,recompute=selective", 0},
    {"pp=2,vpp=2,schedule=dualpipe,tp=2,sp=1,zero=0", DP | TP},
};

START_TEST(equals_one_rank_folded)
{
    check_variants(TOY_GPT, &folded[_i], 1);
    check_variants(TOY_MIXTURE, &folded[_i], 1);
}
END_TEST

static const struct variant attentions[] = {
    {"mb=2", 0},
    {"recompute=full", PARALLEL},
    {"tp=2,sp=1,recompute=selective", TP},
    {"tp=4,sp=0", 0},
    {"tp=2,sp=1", PARALLEL},
    {"tp=2,sp=1,pp=2,schedule=zb-1p", 0},
    {"cp=2,tp=2,sp=1,zero=1", 0},
    {"dp=2,zero=3,recompute=full", DP},
};

START_TEST(equals_one_rank_attention)
{
    static const enum toy_model models[] = {TOY_ALIBI, TOY_NORMS, TOY_LATENT, TOY_LATENT_GPT};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        check_variants(models[i], &attentions[_i], 1);
}
END_TEST

START_TEST(equals_one_rank_window)
{
    static const struct variant some[] = {{"tp=2,sp=1,pp=2,schedule=1f1b", TP}, {"dp=2,zero=3,recompute=selective", DP}};
    check_variants(TOY_WINDOW, some, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime equivalence");
    TCase *cases = tcase_create("layouts");
    tcase_set_timeout(cases, 120);
    int n = COUNT(variants);
    tcase_add_loop_test(cases, equals_one_rank_gpt, 0, n);
    tcase_add_loop_test(cases, equals_one_rank_llama, 0, n);
    tcase_add_test(cases, equals_one_rank_window);
    tcase_add_loop_test(cases, equals_one_rank_mixture, 0, COUNT(mixtures));
    tcase_add_loop_test(cases, equals_one_rank_mixture_gpt, 0, COUNT(mixtures));
    tcase_add_loop_test(cases, equals_one_rank_context, 0, COUNT(contexts));
    tcase_add_loop_test(cases, equals_one_rank_folded, 0, COUNT(folded));
    tcase_add_loop_test(cases, equals_one_rank_attention, 0, COUNT(attentions));
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
