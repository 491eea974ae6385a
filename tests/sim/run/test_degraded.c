/* The speed of a step on a cluster that is not whole, against the step that is left. */
#include <check.h>
#include <math.h>

#include "model/spec/experiment.h"
#include "sim/degraded.h"
#include "sim/step.h"
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

int main(void)
{
    Suite *suite = suite_create("degraded");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, fewer_replicas_hold_the_shards);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
