/* Context parallelism and kinds of attention equal one rank. */
#include <check.h>
#include <stdlib.h>

#include "tests/runtime/equivalence.h"

/* Ranges of every sequence on cp ranks. */
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
    for (int i = 0; i < COUNT(models); i++)
        check_variant(models[i], &contexts[_i], _i + i);
}
END_TEST

/* Keys and values gathered at once; heads exchanged, those of keys going to several ranks (llama's two) or not; and both. */
static const struct variant exchanges[] = {
    {"cp=2,cp_comm=all_gather,mb=2,zero=1", DP},
    {"cp=4,cp_comm=all_gather,recompute=selective", 0},
    {"cp=2,cp_comm=a2a,mb=2,zero=1", DP},
    {"cp=4,cp_comm=a2a", 0},
    {"cp=4,cp_comm=a2a:2+ring,mb=2", 0},
    {"cp=4,cp_comm=a2a:2+all_gather,recompute=full", 0},
    {"cp=2,cp_comm=a2a,recompute=core_attn+layernorm", DP},
    {"cp=2,cp_comm=a2a,tp=2,sp=1,zero=1,recompute=selective", TP},
    {"cp=2,cp_comm=a2a,dp=2,zero=3,recompute=full", DP},
    {"cp=4,cp_comm=a2a:2+ring,pp=2,schedule=zb-1p,recompute=full", PP},
    {"cp=2,cp_comm=a2a,dp=2,pp=2,vpp=2,schedule=interleaved,zero=2", PP | DP},
    {"cp=2,cp_comm=all_gather,tp=2,sp=1,pp=2,schedule=1f1b", PP},
    {"cp=2,cp_comm=a2a,offload=activations", 0},
};

START_TEST(equals_one_rank_exchange)
{
    static const enum toy_model models[] = {TOY_GPT, TOY_LLAMA, TOY_WINDOW, TOY_ALIBI, TOY_LATENT, TOY_LATENT_NORMS};
    for (int i = 0; i < COUNT(models); i++)
        check_variant(models[i], &exchanges[_i], _i + i);
}
END_TEST

/* Eager stacks, whose attention keeps scores and whose recomputation goes by need. */
static const struct variant eager_exchanges[] = {
    {"cp=2,cp_comm=a2a,dp=2,zero=3,recompute=selective", PYTORCH},
    {"cp=2,cp_comm=all_gather,dp=2,zero=3,recompute=selective", PYTORCH},
    {"cp=4,cp_comm=a2a:2+ring", FEATURE_BIT(FLASH_ATTENTION2)},
    {"cp=4,cp_comm=a2a:2+all_gather", FEATURE_BIT(FLASH_ATTENTION2)},
    {"cp=4,cp_comm=a2a", FEATURE_BIT(FLASH_ATTENTION2)},
};

START_TEST(equals_one_rank_eager_exchange)
{
    static const enum toy_model models[] = {TOY_GPT, TOY_LLAMA, TOY_LATENT};
    for (int i = 0; i < COUNT(models); i++)
        check_variant(models[i], &eager_exchanges[_i], _i + i);
}
END_TEST

/* An up-projection that is computed again gives what nobody reads once its queries, keys and values are with other ranks. */
START_TEST(equals_one_rank_latent_modules)
{
    static const struct variant variants[] = {
        {"cp=2,cp_comm=a2a,recompute=mla_up_proj", 0},
        {"cp=2,cp_comm=a2a,recompute=mla_up_proj+core_attn+layernorm", 0},
        {"cp=2,cp_comm=all_gather,recompute=mla_up_proj+core_attn", 0},
    };
    static const enum toy_model models[] = {TOY_LATENT, TOY_LATENT_GPT, TOY_LATENT_NORMS};
    for (int i = 0; i < COUNT(models); i++)
        check_variant(models[i], &variants[_i], _i + i);
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
    static const enum toy_model models[] = {TOY_ALIBI, TOY_NORMS, TOY_LATENT, TOY_LATENT_GPT, TOY_LATENT_NORMS};
    for (int i = 0; i < COUNT(models); i++)
        check_variant(models[i], &attentions[_i], _i + i);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {
        {equals_one_rank_context, COUNT(contexts)},
        {equals_one_rank_exchange, COUNT(exchanges)},
        {equals_one_rank_eager_exchange, COUNT(eager_exchanges)},
        {equals_one_rank_latent_modules, 3},
        {equals_one_rank_attention, COUNT(attentions)},
    };
    return toy_suite("runtime equivalence: attention", tests, COUNT(tests));
}
