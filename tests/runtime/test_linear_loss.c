/* Losses that are made with their product, in pieces: the numbers of one rank with the ordinary loss, and less memory. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "model/cost/work/work.h"
#include "tests/runtime/equivalence.h"

static const feature_set losses[] = {FEATURE_BIT(FUSED_LINEAR_LOSS), FEATURE_BIT(CUT_LOSS)};

static const struct {
    enum toy_model model;
    const char *layout;
    feature_set features; /* changed */
} cases[] = {
    {TOY_GPT, "mb=1", 0},
    {TOY_GPT, "mb=8", 0},
    {TOY_LLAMA, "mb=2", FEATURE_BIT(FUSED_OPS)},
    {TOY_LLAMA, "tp=2,sp=1", 0},
    {TOY_LLAMA, "tp=2,sp=1", FEATURE_BIT(FUSED_OPS)}, /* ordinary: of gathered logits */
    {TOY_GPT, "tp=4,sp=0", TP},
    {TOY_GPT, "tp=4,sp=1,dp=2,zero=1", DP},
    {TOY_GPT, "dp=2,zero=2", DP},
    {TOY_LLAMA, "dp=2,zero=3", DP},
    {TOY_LLAMA, "dp=2,zero=3,recompute=full", 0},
    {TOY_GPT, "dp=4,zero=3,shard=2", DP},
    {TOY_LLAMA, "cp=2,zero=1", 0},
    {TOY_GPT, "pp=2,schedule=gpipe", PP},
    {TOY_GPT, "pp=2,schedule=1f1b", PP},
    {TOY_LLAMA, "pp=2,vpp=2,schedule=interleaved,tp=2,sp=1", PP},
    {TOY_GPT, "pp=2,schedule=zb-1p", PP},
    {TOY_LLAMA, "pp=2,schedule=zb-2p,tp=2,sp=1", PP},
    {TOY_GPT, "pp=2,vpp=2,schedule=zb-v", PP},
    {TOY_LLAMA, "pp=2,vpp=2,schedule=dualpipe", PP},
    {TOY_MIXTURE, "tp=2,sp=1,dp=2,ep=2,zero=2", DP},
    {TOY_PREDICTION, "tp=2,sp=1", 0},
    {TOY_PREDICTION_GPT, "pp=2,schedule=1f1b", 0},
    {TOY_PREDICTION_GPT, "dp=2,zero=3", DP},
    {TOY_GPT, "dp=2,zero=3,offload=optimizer", DP},
    {TOY_GPT, "mb=2,offload=optimizer", 0},
};

static void laid_out(struct toy *toy, enum toy_model model, const char *layout, feature_set features)
{
    toy_make(toy, model);
    toy_lay_out(toy, layout, features);
}

START_TEST(numbers_are_those_of_the_ordinary_loss)
{
    for (int loss = 0; loss < 2; loss++) {
        struct toy toy;
        laid_out(&toy, cases[_i].model, cases[_i].layout, cases[_i].features | losses[loss]);
        check_first_step(&toy, detail_in_turn(_i + loss));
    }
}
END_TEST

/* Three sequences of 16 tokens at a time: a piece of 32, and what is left. */
START_TEST(the_last_piece_may_be_smaller)
{
    struct toy toy;
    laid_out(&toy, _i % 2 ? TOY_LLAMA : TOY_GPT, _i < 2 ? "mb=3" : "mb=3,tp=2,sp=1", losses[_i / 4]);
    toy.job.global_batch = 6;
    toy_complete(&toy);
    int64_t tokens = toy.layout.micro_batch * toy.job.seq_len, chunk = head_chunk_tokens(&toy.layout, &toy.setting);
    ck_assert(_i >= 2 || tokens % chunk != 0);
    check_first_step(&toy, DETAIL_KERNEL);
}
END_TEST

/* Both gradients of the product are made forward, so memory for the weights' is what a loss in pieces costs. */
static double fullest(feature_set loss, int64_t vocab, int tp)
{
    const struct thread_run_options options = {.steps = 1, .seed = 1};
    double most = 0;
    struct toy toy;
    struct thread_run run;
    laid_out(&toy, TOY_GPT, tp > 1 ? "tp=2,sp=1,mb=8" : "mb=8", loss | FEATURE_BIT(FUSED_LOSS));
    toy.model.vocab = vocab;
    toy_complete(&toy);
    toy_run(&toy, DETAIL_CHUNK, &options, &run, NULL);
    for (int r = 0; r < run.n_ranks; r++)
        most = fmax(most, (double)run.memory_peak[r]);
    thread_run_free(&run);
    return most;
}

/* 128 tokens and 1024 words of 32 numbers: 1024/tp chunks' tokens are 4 tp. */
START_TEST(logits_do_not_stay)
{
    for (int tp = 1; tp <= 2; tp++) {
        const double words = 1024.0 / tp, all = 4 * 128 * words, piece = 4 * 4 * tp * words, gradient = 4 * words * 32;
        double whole = fullest(0, 1024, tp), chunked = fullest(losses[0], 1024, tp), cut = fullest(losses[1], 1024, tp);
        ck_assert_msg(fabs(whole - cut - (all - piece)) < 0.02 * all, "tp %d: %g saved of %g", tp, whole - cut, all);
        ck_assert_msg(fabs(whole - chunked - (all - piece - gradient)) < 0.02 * all, "tp %d: %g saved of %g", tp, whole - chunked,
                      all);
    }
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {numbers_are_those_of_the_ordinary_loss, COUNT(cases)}, {the_last_piece_may_be_smaller, 8}, {logits_do_not_stay, 1}};
    return toy_suite("linear losses", tests, COUNT(tests));
}
