/* Hybrids: layers of every kind of mixer with a state, by patterns, equal one rank. */
#include <check.h>
#include <stdlib.h>

#include "tests/runtime/equivalence.h"

static const struct variant hybrids[] = {
    {"mb=2", 0},
    {"tp=2,sp=0", 0},
    {"tp=2,sp=1", 0},
    {"tp=4,sp=1", TP},
    {"tp=2,sp=1", TP | PARALLEL},
    {"tp=2,sp=0,mb=2", PARALLEL},
    {"dp=2,zero=0", 0},
    {"dp=2,zero=1", DP},
    {"dp=4,zero=2,mb=2", 0},
    {"dp=2,zero=3", DP},
    {"tp=2,sp=1,dp=2,zero=3,recompute=full", DP},
    {"dp=4,zero=2,shard=2", 0},
    {"pp=2,schedule=1f1b", PP},
    {"pp=4,schedule=gpipe,mb=2", 0},
    {"pp=2,vpp=2,schedule=interleaved,tp=2,sp=1", PP},
    {"pp=2,schedule=zb-1p,dp=2,zero=1", PP | DP},
    {"pp=4,schedule=zb-2p,tp=2,sp=1", PP},
    {"pp=2,vpp=2,schedule=zb-v", 0},
    {"recompute=full", 0},
    {"tp=2,sp=1,recompute=full,mb=2", TP},
    {"tp=2,sp=1,recompute=layernorm", 0},
    {"tp=2,sp=1,recompute=layernorm", PARALLEL},
    {"recompute=core_attn", 0},
    {"recompute=selective", 0},
    {"dp=2,zero=3,recompute=selective", DP},
    {"tp=2,sp=1,recompute=selective", PYTORCH},
};

START_TEST(equals_one_rank)
{
    int model = _i / COUNT(hybrids), hybrid = _i % COUNT(hybrids);
    check_variant((enum toy_model)(TOY_MAMBA + model), &hybrids[hybrid], model + hybrid);
}
END_TEST

int main(void)
{
    const struct toy_test tests[] = {{equals_one_rank, (N_TOY_MODELS - TOY_MAMBA) * COUNT(hybrids)}};
    return toy_suite("runtime equivalence: hybrids", tests, COUNT(tests));
}
