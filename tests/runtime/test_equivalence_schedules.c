/* Folded and bidirectional schedules equal one rank. */
#include <check.h>
#include <stdlib.h>

#include "tests/runtime/equivalence.h"

/* Two-armed and bidirectional schedules. */
static const struct variant folded[] = {
    {"pp=2,vpp=2,schedule=zb-v", 0},
    {"pp=2,vpp=2,schedule=zb-v,dp=2,zero=1", DP},
    {"pp=2,vpp=2,schedule=zb-v,tp=2,sp=1,recompute=full", 0},
    {"pp=2,vpp=2,schedule=zb-v,recompute=full:1", 0},
    {"pp=2,vpp=2,schedule=dualpipe-v", 0},
    {"pp=2,vpp=2,schedule=dualpipe-v,dp=2,zero=2", DP},
    {"pp=2,vpp=2,schedule=dualpipe", 0},
    {"pp=2,vpp=2,schedule=dualpipe,dp=2,zero=1", DP},
    {"pp=4,vpp=2,schedule=dualpipe,recompute=selective", 0},
    {"pp=2,vpp=2,schedule=dualpipe,tp=2,sp=1,zero=0", DP | TP},
};

/* Interleaved: rounds that are not full (8 micro-batches of a global batch of 8), passes in pairs. */
static const struct variant rounds[] = {
    {"pp=3,vpp=2,schedule=interleaved", 0},
    {"pp=3,vpp=2,schedule=interleaved", PP},
    {"pp=3,vpp=2,schedule=interleaved", PP | PAIRS},
    {"pp=2,vpp=2,schedule=interleaved,dp=2,ep=2,zero=1", PP | DP | PAIRS},
    {"pp=2,vpp=2,schedule=interleaved,tp=2,sp=1", PAIRS},
};

START_TEST(equals_one_rank_interleaved)
{
    check_variant(TOY_MIXTURE, &rounds[_i], _i);
}
END_TEST

START_TEST(equals_one_rank_folded)
{
    check_variant(TOY_GPT, &folded[_i], _i + 1);
    check_variant(TOY_MIXTURE, &folded[_i], _i + 2);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {equals_one_rank_interleaved, COUNT(rounds)},
        {equals_one_rank_folded, COUNT(folded)},
    };
    return toy_suite("runtime equivalence: schedules", tests, COUNT(tests));
}
