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
    check_variants(TOY_MIXTURE, &mixtures[_i], 1);
}
END_TEST

START_TEST(equals_one_rank_mixture_gpt)
{
    check_variants(TOY_MIXTURE_GPT, &mixtures[_i], 1);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {equals_one_rank_mixture, COUNT(mixtures)},
        {equals_one_rank_mixture_gpt, COUNT(mixtures)},
    };
    return toy_suite("runtime equivalence: mixtures of experts", tests, COUNT(tests));
}
