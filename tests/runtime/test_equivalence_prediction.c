/* Modules of multi-token prediction equal one rank, wherever their parts are. */
#include "tests/runtime/equivalence.h"

static const struct variant layouts[] = {
    {"mb=2", 0},
    {"recompute=full", 0},
    {"recompute=selective", 0},
    {"recompute=full:1", 0},
    {"tp=2,sp=0", 0},
    {"tp=2,sp=1", 0},
    {"tp=4,sp=1,recompute=full", TP},
    {"tp=2,sp=1,mb=2", PARALLEL},
    {"pp=2,schedule=1f1b", PP}, /* the table on both ends, tied or not */
    {"pp=4,schedule=zb-1p", 0},
    {"pp=3,tp=2,sp=1,schedule=zb-1p,recompute=full", 0},
    {"pp=2,vpp=2,schedule=interleaved,recompute=selective", PP},
    {"pp=2,vpp=3,schedule=interleaved", PP}, /* a stage of modules alone */
    {"pp=2,vpp=2,schedule=zb-v", 0},         /* both ends on one rank */
    {"pp=2,vpp=2,schedule=dualpipe-v,dp=2,zero=1", DP},
    {"pp=2,vpp=2,schedule=dualpipe,tp=2,sp=1", DP},
    {"dp=2,zero=0", DP},
    {"dp=4,zero=1", DP},
    {"dp=2,zero=2", 0},
    {"dp=2,zero=3", 0},
    {"dp=2,tp=2,sp=1,zero=3,recompute=full", DP},
    {"cp=2,zero=1", DP}, /* later tokens are another rank's */
    {"cp=2,tp=2,sp=1,pp=2,schedule=1f1b", PP},
    {"dp=2,pp=2,tp=2,sp=1,zero=1,schedule=1f1b", TP | PP | DP},
};

START_TEST(equals_one_rank_prediction)
{
    check_variant(TOY_PREDICTION, &layouts[_i], _i);
}
END_TEST

START_TEST(equals_one_rank_prediction_gpt)
{
    check_variant(TOY_PREDICTION_GPT, &layouts[_i], _i + 1);
}
END_TEST

static const struct variant experts[] = {
    {"dp=2,ep=2,zero=1", DP},
    {"dp=4,ep=2,zero=3,recompute=full", DP},
    {"tp=2,sp=1,dp=2,ep=2,etp=2,zero=2", 0},
    {"pp=2,schedule=zb-1p,dp=2,ep=2,zero=0", DP},
};

START_TEST(equals_one_rank_prediction_experts)
{
    check_variant(TOY_PREDICTION, &experts[_i], _i + 2);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {equals_one_rank_prediction, COUNT(layouts)},
        {equals_one_rank_prediction_gpt, COUNT(layouts)},
        {equals_one_rank_prediction_experts, COUNT(experts)},
    };
    return toy_suite("runtime equivalence: multi-token prediction", tests, COUNT(tests));
}
