/* The speed of a step on a cluster that is not whole, against the step that is left. */
#include <check.h>
#include <math.h>

#include "model/spec/experiment.h"
#include "sim/step/step.h"
#include "sim/weeks/degraded.h"
#include "tests/suite.h"

static struct experiment e;
static struct diags diags;

/* 32 replicas of one GPU each, on nodes of 8. */
static struct setting setting_of_32(void)
{
    static const char *const overrides[] = {"cluster.gpus=32", "job.global_batch=672"}; /* 32, 28 and 24 divide it */
    const struct experiment_flags flags = {.model = "llama2-7b", .gpu = "a100-80g-sxm", .overrides = overrides, .n_overrides = 2};
    ck_assert(experiment_load(&flags, &e, &diags) == STATUS_OK);
    return (struct setting){&e.model, &e.cluster, &e.job, e.gpus};
}

static double step_of(const struct setting *whole, struct layout layout, int dp, int shard)
{
    struct setting setting = *whole;
    struct step_options options = {.detail = DETAIL_CHUNK};
    struct step_result step;
    setting.gpus = layout.dp = dp;
    layout.shard = shard;
    ck_assert(step_simulate(&layout, &setting, &options, &step, NULL, NULL, &diags) == STATUS_OK);
    return step.step_time_s;
}

/* Shards stay where they are as long as whole groups of replicas are left; otherwise all that are left hold them. */
START_TEST(fewer_replicas_hold_the_shards)
{
    static const struct {
        int missing, shard;
    } cases[] = {{8, 8}, {4, 0}, {24, 0}};
    struct setting setting = setting_of_32();
    struct layout layout = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .ep = 1, .zero = 3, .shard = 8, .micro_batch = 1};
    layout_complete(&layout, &setting);
    struct degraded *degraded = degraded_create(&layout, &setting, &diags);
    ck_assert_ptr_nonnull(degraded);
    struct degraded_speed asked = degraded_speed_of(degraded);
    double healthy = step_of(&setting, layout, 32, 8);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cluster_condition condition = {FULL_SPEED, FULL_SPEED, cases[i].missing};
        double left = step_of(&setting, layout, 32 - cases[i].missing, cases[i].shard);
        ck_assert_int_eq(asked.speed(asked.context, &condition), lround(healthy / left * FULL_SPEED));
    }
    degraded_destroy(degraded);
    diags_free(&diags);
}
END_TEST

/* On one GPU at half its pace every kernel takes twice as long, but for the parts that no rate sets: launches, drains. Each case
 * has much of its time in another kind of kernel; on B200 the attention of narrow heads waits for the special-function units. */
START_TEST(half_the_pace_is_twice_the_time)
{
    static const struct {
        const char *model, *gpu, *job;
    } cases[] = {{"llama2-7b", "a100-80g-sxm", "job.seq_len=2048"},
                 {"llama2-7b", "a100-80g-sxm", "job.features=[flash_attention2]"},
                 {"llama3.2-1b", "b200", "job.seq_len=131072"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const overrides[] = {"cluster.gpus=1", "job.global_batch=1", cases[i].job};
        const struct experiment_flags flags = {
            .model = cases[i].model, .gpu = cases[i].gpu, .overrides = overrides, .n_overrides = 3};
        ck_assert(experiment_load(&flags, &e, &diags) == STATUS_OK);
        struct setting setting = {&e.model, &e.cluster, &e.job, e.gpus};
        struct layout layout = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .ep = 1, .micro_batch = 1};
        layout_complete(&layout, &setting);
        struct degraded *degraded = degraded_create(&layout, &setting, &diags);
        ck_assert_ptr_nonnull(degraded);
        struct degraded_speed asked = degraded_speed_of(degraded);
        struct cluster_condition half = {FULL_SPEED / 2, FULL_SPEED, 0};
        double growth = (double)FULL_SPEED / asked.speed(asked.context, &half);
        ck_assert_msg(growth >= 1.98 && growth <= 2, "case %zu: %.4f times", i, growth);
        degraded_destroy(degraded);
    }
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("degraded");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, fewer_replicas_hold_the_shards);
    tcase_add_test(tests, half_the_pace_is_twice_the_time);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
