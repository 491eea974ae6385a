/* Mixtures of experts: expert parallelism in all its forms equals one rank. */
#include <check.h>
#include <stdlib.h>

#include "tests/runtime/equivalence.h"

/* Experts on ep ranks, whole or (etp, and without ep) split over tp. */
static const struct variant mixtures[] = {
    {"mb=2,recompute=full", 0},
    {"dp=2,ep=2,zero=0", 0},
    {"dp=4,ep=2,zero=1", DP},
    {"dp=4,ep=4,zero=2", 0},
    {"dp=4,ep=2,zero=3,recompute=full", DP},
    {"dp=4,ep=2,zero=1,shard=2", 0},
    {"tp=2,sp=1,dp=4,ep=2,zero=3,shard=2", DP},
    {"dp=2,ep=2,recompute=layernorm+moe_act", DP},
    {"dp=2,ep=2,recompute=full:groups2", DP},
    {"dp=2,ep=2,recompute=full:1", 0},
    {"tp=2,sp=1,dp=2,ep=2,zero=3,recompute=moe", DP},
    {"dp=2,ep=2,zero=3,recompute=selective", 0},
    {"tp=2,sp=1", TP},
    {"tp=2,sp=0", 0},
    {"tp=2,sp=1,ep=2", 0},
    {"tp=4,sp=0,ep=2,zero=1", 0},
    {"tp=2,sp=1,dp=2,ep=2,etp=2,zero=1", DP},
    {"tp=2,sp=1,dp=2,ep=2,zero=3,recompute=full", DP},
    {"tp=2,sp=0,dp=2,ep=2,etp=2,zero=0", 0},
    {"tp=2,sp=1,dp=2,ep=4,zero=1,recompute=full", DP},
    {"tp=2,sp=0,dp=2,ep=4,zero=0", 0},
    {"pp=2,schedule=1f1b,dp=2,ep=2,zero=1", PP | DP},
    {"pp=2,schedule=zb-1p,dp=2,ep=2,zero=0", DP},
    {"pp=2,vpp=2,schedule=interleaved,tp=2,sp=1,ep=2", PP},
    {"dp=2,ep=2,mb=2,zero=1", PARALLEL},
};

START_TEST(equals_one_rank_mixture)
{
    check_variant(TOY_MIXTURE, &mixtures[_i], _i);
}
END_TEST

START_TEST(equals_one_rank_mixture_gpt)
{
    check_variant(TOY_MIXTURE_GPT, &mixtures[_i], _i + 1);
}
END_TEST

START_TEST(equals_one_rank_oss)
{
    check_variant(TOY_OSS, &mixtures[_i], _i + 2);
}
END_TEST

/* Ranks that tp does not give the same number of tokens to send to experts: of 14 they have 4, 4, 4, 2; of 9 they have 3, 3, 3
 * and none. */
START_TEST(equals_one_rank_uneven_shares)
{
    static const char *const layouts[] = {"tp=4,sp=0,zero=0", "tp=4,sp=0,ep=2,zero=0",
                                          "tp=4,sp=0,dp=2,ep=2,etp=4,zero=1,recompute=full"};
    static const enum toy_model models[] = {TOY_MIXTURE, TOY_MIXTURE_GPT, TOY_OSS};
    for (int k = 0; k < COUNT(layouts); k++)
        for (int length = 9; length <= 14; length += 5) {
            struct toy toy;
            toy_make(&toy, models[_i]);
            toy.job.seq_len = length;
            toy.job.optimizer = OPTIMIZER_SGD;
            toy_lay_out(&toy, layouts[k], 0);
            check_toy(&toy, DETAIL_KERNEL);
        }
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {equals_one_rank_mixture, COUNT(mixtures)},
        {equals_one_rank_mixture_gpt, COUNT(mixtures)},
        {equals_one_rank_oss, COUNT(mixtures)},
        {equals_one_rank_uneven_shares, 3},
    };
    return toy_suite("runtime equivalence: mixtures of experts", tests, COUNT(tests));
}
