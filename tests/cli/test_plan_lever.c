/* What the levers of msim plan change: the one thing that they say, and nothing else. */
#include <check.h>
#include <string.h>

#include "cli/plan/plan_levers.h"
#include "model/base/memory.h"
#include "model/spec/catalog.h"
#include "tests/suite.h"

static struct plan_lever lever_named(const char *change)
{
    for (int i = 0; i < N_PLAN_LEVERS; i++) {
        struct plan_lever lever = plan_lever_at(i);
        if (strcmp(lever.change, change) == 0)
            return lever;
    }
    ck_abort_msg("no lever is called %s", change);
}

/* A job on 64 GPUs in nodes of 8 whose numbers are all different from their doubles. */
static struct experiment *job(void)
{
    struct experiment *e = memory_new(1, sizeof *e);
    struct gpu *gpu = &e->cluster.gpu;
    struct diags diags = {0};
    ck_assert_int_eq(catalog_cluster("dgx-h100", &e->cluster, &diags), STATUS_OK);
    e->gpus = 64;
    e->job.global_batch = 128;
    e->job.precision = PRECISION_BF16;
    e->job.gradient_precision = PRECISION_FP32;
    gpu->nvls_rate = 3e11;
    gpu->exp_rate = 4e12;
    gpu->host_launch_s = 5e-6;
    e->cluster.pcie_rate = 6e10;
    for (int kernel = 0; kernel < N_MEMORY_KERNELS; kernel++)
        gpu->memory.rate[kernel] = 1e12 + kernel;
    diags_free(&diags);
    return e;
}

/* --- hardware and batch: by hand */

static void batch(struct experiment *e)
{
    e->job.global_batch = 256;
}
static void network(struct experiment *e)
{
    e->cluster.nic_rate *= 2;
    e->cluster.pcie_rate = 12e10;
}
static void nvlink(struct experiment *e)
{
    e->cluster.gpu.nvlink_rate *= 2;
    e->cluster.gpu.nccl_rate *= 2;
    e->cluster.gpu.nvls_rate = 6e11;
}
static void memory_size(struct experiment *e)
{
    e->cluster.gpu.hbm_bytes *= 2;
}
static void memory_rate(struct experiment *e)
{
    e->cluster.gpu.hbm_rate *= 2;
    for (int kernel = 0; kernel < N_MEMORY_KERNELS; kernel++)
        e->cluster.gpu.memory.rate[kernel] = 2 * (1e12 + kernel);
}
static void arithmetic(struct experiment *e)
{
    for (int precision = 0; precision < N_PRECISIONS; precision++)
        e->cluster.gpu.peak_flops[precision] *= 2;
    e->cluster.gpu.exp_rate = 8e12;
}
static void launch(struct experiment *e)
{
    e->cluster.gpu.host_launch_s = 2.5e-6;
}
static void gradients(struct experiment *e)
{
    e->job.gradient_precision = PRECISION_BF16;
}
static void fp8(struct experiment *e)
{
    e->job.precision = PRECISION_FP8;
}

static const struct {
    const char *change;
    enum plan_lever_kind kind;
    void (*expected)(struct experiment *e);
} one_thing[] = {
    {"global batch x2", LEVER_JOB, batch},
    {"network between nodes x2", LEVER_HARDWARE, network},
    {"NVLink x2", LEVER_HARDWARE, nvlink},
    {"memory size x2", LEVER_HARDWARE, memory_size},
    {"memory rate x2", LEVER_HARDWARE, memory_rate},
    {"arithmetic peak x2", LEVER_HARDWARE, arithmetic},
    {"host's time per launch /2", LEVER_HARDWARE, launch},
    {"gradients reduced in bf16", LEVER_PRECISION, gradients},
    {"precision fp8", LEVER_PRECISION, fp8},
};

START_TEST(one_thing_changes)
{
    struct plan_lever lever = lever_named(one_thing[_i].change);
    struct experiment *changed = job(), *expected = job();
    struct space_limits limits = {0}, untouched = {0};
    ck_assert(lever.turn(changed, &limits, lever.argument));
    one_thing[_i].expected(expected);
    ck_assert_int_eq(lever.kind, one_thing[_i].kind);
    ck_assert_mem_eq(changed, expected, sizeof *changed);
    ck_assert_mem_eq(&limits, &untouched, sizeof limits);
    free(changed);
    free(expected);
}
END_TEST

/* --- where there is nothing to change */

static bool turns(const char *change, struct experiment *e)
{
    struct plan_lever lever = lever_named(change);
    struct space_limits limits = {0};
    return lever.turn(e, &limits, lever.argument);
}

START_TEST(nothing_to_change)
{
    struct experiment *e = job();
    ck_assert(!turns("precision bf16", e));
    e->job.precision = PRECISION_FP32;
    ck_assert(turns("precision bf16", e));
    e->job.precision = PRECISION_FP8;
    ck_assert(!turns("precision bf16", e)); /* no peak above that of fp8 */
    e->job.gradient_precision = PRECISION_BF16;
    ck_assert(!turns("gradients reduced in bf16", e));
    e->gpus = 8;
    ck_assert(!turns("network between nodes x2", e));
    ck_assert(turns("NVLink x2", e));
    e->job.global_batch = 500000000;
    ck_assert(turns("global batch x2", e)); /* to the largest that is accepted */
    e->job.global_batch = 500000001;
    ck_assert(!turns("global batch x2", e));
    ck_assert(!turns("shard in an NVLink domain", e));
    e->gpus = 1;
    ck_assert(!turns("NVLink x2", e));
    free(e);
}
END_TEST

/* --- the space */

START_TEST(spaces_are_widened_where_nobody_asked)
{
    static const struct {
        const char *change, *asked;
        enum space_dimension dimension;
    } cases[] = {{"offload=auto", "offload=none", SPACE_OFFLOAD},
                 {"shard in an NVLink domain", "shard=4", SPACE_SHARD},
                 {"rare schedules", "schedule=1f1b", SPACE_SCHEDULE}};
    struct experiment *e = job(), *as_it_was = job();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct plan_lever lever = lever_named(cases[k].change);
        struct space_limits limits = {0};
        struct diags diags = {0};
        ck_assert_int_eq(lever.kind, LEVER_LAYOUT);
        ck_assert(lever.turn(e, &limits, lever.argument));
        ck_assert_int_gt(limits.dimensions[cases[k].dimension].n, 0);
        for (int d = 0; d < N_SPACE_DIMENSIONS; d++)
            ck_assert(d == (int)cases[k].dimension || limits.dimensions[d].n == 0);
        if (cases[k].dimension == SPACE_SHARD)
            ck_assert(space_limit_allows(&limits.dimensions[SPACE_SHARD], 0) &&
                      space_limit_allows(&limits.dimensions[SPACE_SHARD], 8) &&
                      !space_limit_allows(&limits.dimensions[SPACE_SHARD], 4));
        if (cases[k].dimension == SPACE_SCHEDULE)
            for (int schedule = 0; schedule < N_SCHEDULES; schedule++)
                ck_assert_int_eq(space_limit_allows(&limits.dimensions[SPACE_SCHEDULE], schedule), schedule >= SCHEDULE_ZB2P);
        limits = (struct space_limits){0};
        ck_assert_int_eq(space_restrict(&limits, cases[k].asked, PLACE_NONE, &diags), STATUS_OK);
        ck_assert(!lever.turn(e, &limits, lever.argument)); /* an explicit request is meant */
        diags_free(&diags);
    }
    ck_assert_mem_eq(e, as_it_was, sizeof *e);
    free(e);
    free(as_it_was);
}
END_TEST

/* What is to be typed, read as it would be, is what the lever does. */
START_TEST(options_say_what_levers_do)
{
    static const char prefix[] = "--space ";
    struct experiment *e = job();
    int features = 0, spaces = 0;
    for (int i = 0; i < N_PLAN_LEVERS; i++) {
        struct plan_lever lever = plan_lever_at(i);
        struct space_limits turned = {0}, typed = {0};
        struct diags diags = {0};
        char option[64], expected[64];
        plan_lever_option(&lever, e, option, sizeof option);
        ck_assert_int_eq(*option == '\0', lever.kind == LEVER_HARDWARE);
        snprintf(expected, sizeof expected, "--features +%s", i < N_FEATURES ? feature_names[i] : "");
        if (i < N_FEATURES) {
            ck_assert_str_eq(option, expected);
            features++;
        } else if (strncmp(option, prefix, strlen(prefix)) == 0) {
            ck_assert(lever.turn(e, &turned, lever.argument));
            ck_assert_int_eq(space_restrict(&typed, option + strlen(prefix), PLACE_NONE, &diags), STATUS_OK);
            ck_assert_mem_eq(&turned, &typed, sizeof typed);
            spaces++;
        }
        diags_free(&diags);
    }
    struct plan_lever doubled = lever_named("global batch x2");
    char option[64];
    ck_assert_str_eq(plan_lever_option(&doubled, e, option, sizeof option), "--global-batch 256");
    ck_assert_int_eq(features, N_FEATURES);
    ck_assert_int_eq(spaces, 3);
    free(e);
}
END_TEST

/* Of experts that are not: the rest of what is said of them stays, and follows. */
START_TEST(experts_are_balanced)
{
    struct plan_lever lever = lever_named("experts balanced");
    struct experiment *e = job(), *expected = job();
    struct space_limits limits = {0};
    ck_assert_int_eq(lever.kind, LEVER_JOB);
    e->model.moe = expected->model.moe = (struct mixture){.experts = 8, .top_k = 2};
    e->job.load = expected->job.load = (struct expert_load){.busiest = 2, .capacity = 0.75};
    expert_load_complete(&e->job.load, 8, 2);
    ck_assert_double_gt(e->job.load.dropped, 0.25);
    ck_assert(lever.turn(e, &limits, lever.argument));
    expected->job.load.busiest = 1;
    expert_load_complete(&expected->job.load, 8, 2);
    ck_assert_double_eq(e->job.load.dropped, 0.25);
    ck_assert_mem_eq(e, expected, sizeof *e);
    ck_assert(!lever.turn(e, &limits, lever.argument));
    free(e);
    free(expected);
}
END_TEST

/* --- features */

#define B(feature) FEATURE_BIT(feature)
static const struct {
    feature_set has;
    const char *change;
    feature_set then; /* 0: nothing to change */
} features[] = {
    {0, "feature flash_attention2", B(FLASH_ATTENTION2)},
    {B(FLASH_ATTENTION) | B(FUSED_OPS), "feature flash_attention2", B(FLASH_ATTENTION2) | B(FUSED_OPS)}, /* in its place */
    {B(FLASH_ATTENTION2), "feature flash_attention3", B(FLASH_ATTENTION3)},
    {B(FLASH_ATTENTION2), "feature flash_attention2", 0},
    {B(FLASH_ATTENTION2), "feature flash_attention", 0},
    {B(FLASH_ATTENTION3), "feature flash_attention2", 0},
    {B(FLASH_ATTENTION), "feature fused_softmax", 0},
    {B(FLASH_ATTENTION3), "feature fused_softmax", 0},
    {B(FUSED_OPS), "feature compile", 0},
    {B(COMPILE), "feature fused_ops", 0},
    {B(COMPILE), "feature fused_rmsnorm", 0},
    {B(TP_OVERLAP), "feature async_tp", 0},
    {B(ASYNC_TP), "feature tp_overlap", 0},
    {B(PP_OVERLAP), "feature dp_overlap", B(PP_OVERLAP) | B(DP_OVERLAP)},
};

START_TEST(features_are_added_that_would_be_used)
{
    struct plan_lever lever = lever_named(features[_i].change);
    struct experiment *changed = job(), *expected = job();
    struct space_limits limits = {0};
    expected->job.features = changed->job.features = features[_i].has;
    bool turned = lever.turn(changed, &limits, lever.argument);
    ck_assert_int_eq(turned, features[_i].then != 0);
    if (turned)
        expected->job.features = features[_i].then;
    ck_assert_mem_eq(changed, expected, sizeof *changed);
    free(changed);
    free(expected);
}
END_TEST

/* Every lever has a name of its own; the two features that are another model say so. */
START_TEST(levers_are_told_apart)
{
    int of_model = 0;
    for (int i = 0; i < N_PLAN_LEVERS; i++) {
        struct plan_lever lever = plan_lever_at(i);
        ck_assert_str_ne(lever.change, "");
        ck_assert_ptr_nonnull(plan_lever_kind_names[lever.kind]);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(lever.change, plan_lever_at(j).change);
        of_model += lever.kind == LEVER_MODEL;
    }
    ck_assert_int_eq(of_model, 2);
    ck_assert_int_eq(lever_named("feature parallel_block").kind, LEVER_MODEL);
    ck_assert_int_eq(lever_named("feature sliding_window").kind, LEVER_MODEL);
    ck_assert_int_eq(lever_named("feature ep_overlap").kind, LEVER_SOFTWARE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("levers");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, one_thing_changes, 0, sizeof one_thing / sizeof *one_thing);
    tcase_add_test(all, nothing_to_change);
    tcase_add_test(all, options_say_what_levers_do);
    tcase_add_test(all, experts_are_balanced);
    tcase_add_test(all, spaces_are_widened_where_nobody_asked);
    tcase_add_loop_test(all, features_are_added_that_would_be_used, 0, sizeof features / sizeof *features);
    tcase_add_test(all, levers_are_told_apart);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
