/* What --sweep of msim plan means: keys, values, combinations. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan/plan_sweep.h"
#include "model/base/memory.h"
#include "tests/suite.h"

static struct sweep_axis *parsed(const char *text)
{
    char why[256] = "";
    struct sweep_axis *axis = memory_new(1, sizeof *axis);
    ck_assert_msg(sweep_axis_parse(text, axis, why, sizeof why) == STATUS_OK, "%s: %s", text, why);
    return axis;
}

static void check_values(const struct sweep_key *key, int n, const char *expected)
{
    char all[512] = "";
    for (int i = 0; i < n; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ", key->values[i]);
    ck_assert_str_eq(all, expected);
}

static const struct {
    const char *text, *path, *values;
} good[] = {
    {"gpus=8", "cluster.gpus", "8 "},
    {"gpus=256..4096", "cluster.gpus", "256 512 1024 2048 4096 "},
    {"gpus=3..13,16", "cluster.gpus", "3 6 12 16 "},
    {"gpus=8..8", "cluster.gpus", "8 "},
    {"gpus=256:1024:4", "cluster.gpus", "256 512 768 1024 "},
    {"gpus=64:1024:5:log,2k", "cluster.gpus", "64 128 256 512 1024 2k "},
    {"mb=1:3:5", "layout.micro_batch", "1 2 3 "}, /* 1, 1.5, 2, 2.5, 3: whole numbers, each once; halves to even */
    {"cluster.pue=1:1.5:3", "cluster.pue", "1 1.25 1.5 "},
    {"expert-load=1:1.4:3", "job.expert_load", "1 1.2 1.4 "},
    {"cluster.leaf_oversubscription=1:1.4:3", "cluster.leaf_oversubscription", "1 1.2 1.4 "},
    {"net_fraction=0.5:1:3", "cluster.net_fraction", "0.5 0.75 1 "},
    {"cluster.nic_rate=100Gbps..400Gbps", "cluster.nic_rate", "100Gbps 200Gbps 400Gbps "},
    {"cluster.gpu.hbm_rate=2TB/s:3TB/s:3", "cluster.gpu.hbm_rate", "2TB/s 2.5TB/s 3TB/s "},
    {"memory-margin=0%:20%:3", "job.memory_margin", "0% 10% 20% "},
    {"memory-margin=0.05..0.2", "job.memory_margin", "0.05 0.1 0.2 "},
    {"tokens=1T..4T", "job.tokens", "1T 2T 4T "},
    {"tokens=500B:1T:2,1e12:2e12:3", "job.tokens", "500B 1000B 1000000000000 1500000000000 2000000000000 "},
    {"offload=none,optimizer:50%", "layout.offload", "none optimizer:50% "},
    {"recompute=full:4,full:every2", "layout.recompute", "full:4 full:every2 "},
    {"seq-len=8k..32k", "job.seq_len", "8000 16000 32000 "},
    {"global_batch=1,2", "job.global_batch", "1 2 "},
    {"tp=1,2", "layout.tp", "1 2 "},
    {"mb=1..4", "layout.micro_batch", "1 2 4 "},
    {"precision=bf16,fp8", "job.precision", "bf16 fp8 "},
    {"cluster=dgx-h100,../mine.yaml", "cluster", "dgx-h100 ../mine.yaml "},
    {"model.layers=2,4", "model.layers", "2 4 "},
    {"features=none,[flash_attention2,fused_ops]", "job.features", "none [flash_attention2,fused_ops] "},
    {"recompute=norm+act,full", "layout.recompute", "norm+act full "},
    {"layout={tp=8,pp=2},{tp=4,pp=4,recompute=mlp+moe}", "layout", "tp=8,pp=2 tp=4,pp=4,recompute=mlp+moe "},
    {"layout={tp=8},auto", "layout", "tp=8 auto "},
    {"features={flash_attention2},{[fused_ops,compile]}", "job.features", "flash_attention2 [fused_ops,compile] "},
    {"cluster={base: dgx-h100, nodes: 4},dgx-h100", "cluster", "{base: dgx-h100, nodes: 4} dgx-h100 "},
};

START_TEST(one_key)
{
    struct sweep_axis *axis = parsed(good[_i].text);
    ck_assert_int_eq(axis->n_keys, 1);
    ck_assert_str_eq(axis->keys[0].path, good[_i].path);
    check_values(&axis->keys[0], axis->n_values, good[_i].values);
    free(axis);
}
END_TEST

START_TEST(keys_that_change_together)
{
    struct sweep_axis *axis = parsed("gpus=64..256+global-batch=128..512+precision=bf16,bf16,fp8");
    ck_assert_int_eq(axis->n_keys, 3);
    ck_assert_int_eq(axis->n_values, 3);
    ck_assert_str_eq(axis->keys[1].path, "job.global_batch");
    check_values(&axis->keys[1], 3, "128 256 512 ");
    check_values(&axis->keys[2], 3, "bf16 bf16 fp8 ");
    free(axis);
}
END_TEST

/* What all values have stands once; what a value has beside it, and of one that has no more "-". Values without commas are as
 * they are. */
static const struct {
    const char *text, *common, *brief;
} lists[] = {
    {"features={a,b},{a,b,c},{b,a,d,c}", "a,b", "- c d,c "},
    {"features=[a, b],[a]", "a", "b - "},
    {"layout={tp=8,pp=2},{tp=8,pp=4,recompute=mlp+moe}", "tp=8", "pp=2 pp=4,recompute=mlp+moe "},
    {"layout={tp=8,pp=2},{tp=4,pp=4}", "", "tp=8,pp=2 tp=4,pp=4 "},
    {"features={a,b},none", "", "a,b none "},
    {"features={a,b}", "", "a,b "},
    {"precision=bf16,bf16", "", "bf16 bf16 "},
};

START_TEST(lists_show_what_differs)
{
    struct sweep_axis *axis = parsed(lists[_i].text);
    char common[SWEEP_TEXT], brief[SWEEP_TEXT], all[512] = "";
    sweep_values_common(&axis->keys[0], axis->n_values, common, sizeof common);
    ck_assert_str_eq(common, lists[_i].common);
    for (int i = 0; i < axis->n_values; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s ",
                 sweep_value_brief(&axis->keys[0], axis->n_values, i, brief, sizeof brief));
    ck_assert_str_eq(all, lists[_i].brief);
    free(axis);
}
END_TEST

static const struct {
    const char *text, *why;
} bad[] = {
    {"", "is not KEY=VALUES"},
    {"gpus", "is not KEY=VALUES"},
    {"=1", "is not KEY=VALUES"},
    {"gpus=", "1 to 64 values"},
    {"gpus=1,,2", "1 to 64 values"},
    {"gpus=1,", "1 to 64 values"},
    {"model=a,b\nc", "printable characters"},
    {"model=a,\xff", "printable characters"},
    {"gpus=8..4", "A must be above 0 and below B"},
    {"gpus=0..4", "A must be above 0 and below B"},
    {"gpus=a..b", "not a"},
    {"gpus=8:4:2", "B larger than A"},
    {"gpus=8:16:1", "need N from 2 to 64"},
    {"cluster.nic_rate=100..400Gbps", "unit"},
    {"cluster.nic_rate=100Gbps..400", "unit"},
    {"memory-margin=0%..20%", "A..B doubles A up to B"},
    {"gpus=8:16:4:lin", "is not a range"},
    {"gpus=1..2..4", "is not a range"},
    {"gups=8", "no key 'gups'; did you mean 'gpus'?"},
    {"globl_batch=8", "did you mean 'global-batch'?"},
    {"optimzer=adam", "did you mean 'optimizer'?"},
    {"xyzzy=8", "no key 'xyzzy'; examples are gpus"},
    {"gpu=8..64", "gpu=8: this is not the name of a GPU; did you mean 'gpus'"},
    {"set=8", "no key 'set'"},
    {"gpus=8,16+global-batch=8", "gpus has 2 values, but global-batch has 1"},
    {"gpus=8+layout={tp=8},{tp=4}", "gpus has 1 value, but layout has 2"},
    {"tp=1+pp=1+cp=1+ep=1+vpp=1", "at most 4 can change"},
    {"gpus=1+", ""}, /* a value "1+", which the experiment refuses */
};

START_TEST(what_cannot_be_read)
{
    char why[256] = "";
    struct sweep_axis *axis = memory_new(1, sizeof *axis);
    enum status status = sweep_axis_parse(bad[_i].text, axis, why, sizeof why);
    if (bad[_i].why[0]) {
        ck_assert_int_ne(status, STATUS_OK);
        ck_assert_msg(strstr(why, bad[_i].why) != NULL, "%s: %s", bad[_i].text, why);
    }
    free(axis);
}
END_TEST

START_TEST(keys_in_braces_are_values)
{
    struct sweep_axis *axis = parsed("gpus=8,16+layout={tp=8,recompute=mlp+pp=2},{tp=4}");
    ck_assert_int_eq(axis->n_keys, 2);
    check_values(&axis->keys[1], 2, "tp=8,recompute=mlp+pp=2 tp=4 ");
    free(axis);
    axis = parsed("layout={tp=8,offload=optimizer:50%},{base: x}");
    check_values(&axis->keys[0], 2, "tp=8,offload=optimizer:50% {base: x} ");
    free(axis);
}
END_TEST

/* Every combination once, the first axis next to each other. */
START_TEST(points_are_all_combinations)
{
    struct plan_axes *axes = memory_new(1, sizeof *axes);
    axes->n_axes = 3;
    axes->axes[0].n_values = 3;
    axes->axes[1].n_values = 2;
    axes->axes[2].n_values = 4;
    bool seen[3][2][4] = {0};
    for (int point = 0; point < 24; point++) {
        int a = plan_axes_index(axes, 0, point), b = plan_axes_index(axes, 1, point), c = plan_axes_index(axes, 2, point);
        ck_assert(!seen[a][b][c]);
        seen[a][b][c] = true;
        ck_assert_int_eq(a, point % 3);
        for (int axis = 0; axis < 3; axis++) {
            int first = plan_axes_first(axes, axis, point);
            for (int other = 0; other < 3; other++)
                ck_assert_int_eq(plan_axes_index(axes, other, first), other == axis ? 0 : plan_axes_index(axes, other, point));
        }
    }
    free(axes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan axes");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, lists_show_what_differs, 0, (int)(sizeof lists / sizeof lists[0]));
    tcase_add_loop_test(all, one_key, 0, sizeof good / sizeof good[0]);
    tcase_add_test(all, keys_that_change_together);
    tcase_add_test(all, keys_in_braces_are_values);
    tcase_add_loop_test(all, what_cannot_be_read, 0, sizeof bad / sizeof bad[0]);
    tcase_add_test(all, points_are_all_combinations);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
