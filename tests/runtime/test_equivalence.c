/* Dense models: layouts of tensor, pipeline and data parallelism equal one rank. */
#include <check.h>
#include <stdlib.h>

#include "tests/runtime/equivalence.h"

static const struct variant variants[] = {
    {"mb=2", 0},
    {"recompute=full", 0},
    {"recompute=selective", 0},
    {"recompute=full:1", 0},
    {"recompute=full:every2", PARALLEL},
    {"recompute=full:groups3", 0},
    {"tp=2,sp=1,recompute=full:groups2", TP},
    {"dp=2,zero=3,recompute=full:every2", DP},
    {"dp=2,zero=3,recompute=full:2", 0},
    {"pp=2,tp=2,sp=1,schedule=zb-1p,recompute=full:groups2", 0},
    {"pp=2,schedule=1f1b,recompute=full:1", PP | DP},
    {"recompute=layernorm+mlp_act", 0},
    {"tp=2,sp=1,recompute=core_attn+layernorm+mlp", TP},
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
    {"dp=4,zero=1,shard=2", 0},
    {"dp=4,zero=2,shard=2", DP},
    {"dp=4,zero=3,shard=2", 0},
    {"dp=4,tp=2,sp=1,zero=3,shard=2,recompute=full", DP},
    {"dp=2,cp=2,pp=2,zero=1,shard=2,schedule=1f1b", PP | DP},
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
    check_variant(TOY_GPT, &variants[_i], _i);
}
END_TEST

/* Recomputation that ends with what the down-projection reads: its product and what is added to it are not repeated. */
START_TEST(equals_one_rank_by_need)
{
    static const struct variant some[] = {
        {"mb=8,recompute=full", PYTORCH},
        {"tp=2,sp=1,recompute=full", PYTORCH},
        {"tp=2,sp=1,recompute=full:2", PYTORCH},
        {"tp=2,sp=1,pp=2,schedule=zb-1p,recompute=full", PYTORCH},
        {"dp=2,tp=2,sp=1,zero=3,recompute=full", PYTORCH | DP},
        {"tp=2,sp=1,recompute=full", PYTORCH | PARALLEL},
    };
    check_variant(TOY_GPT, &some[_i], _i + 1);
}
END_TEST

START_TEST(equals_one_rank_llama)
{
    check_variant(TOY_LLAMA, &variants[_i], _i + 2);
}
END_TEST

START_TEST(equals_one_rank_window)
{
    static const struct variant some[] = {{"tp=2,sp=1,pp=2,schedule=1f1b", TP}, {"dp=2,zero=3,recompute=selective", DP}};
    check_variant(TOY_WINDOW, &some[_i], _i + 1);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {equals_one_rank_gpt, COUNT(variants)},
        {equals_one_rank_by_need, 5},
        {equals_one_rank_llama, COUNT(variants)},
        {equals_one_rank_window, 2},
    };
    return toy_suite("runtime equivalence: dense", tests, COUNT(tests));
}
