/*
 * Layouts of jobs drawn at random, as scripts: does Megatron-LM accept them?
 *
 * What is proved: a search under the limits of Megatron-LM exports no interleaved layout that Megatron-Core refuses, and the ones
 * that it leaves out for their number of micro-batches are those that framework_refuses names.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/random.h"
#include "model/plan/space.h"
#include "model/spec/catalog.h"
#include "tests/suite.h"
#include "traces/launch/frameworks/framework_export.h"
#include "traces/launch/megatron/megatron_export.h"

/* The number that a script specifies with an argument. */
static long argument_of(const char *script, const char *argument, long usual)
{
    const char *at = strstr(script, argument);
    return at ? strtol(at + strlen(argument), NULL, 10) : usual;
}

/* Megatron-Core's two checks of an interleaved schedule, on what the script specifies. */
static bool megatron_accepts(const char *script, long gpus)
{
    long pp = argument_of(script, "--pipeline-model-parallel-size ", 1);
    long ranks =
        argument_of(script, "--tensor-model-parallel-size ", 1) * argument_of(script, "--context-parallel-size ", 1) * pp;
    long each = gpus / ranks * argument_of(script, "--micro-batch-size ", 1);
    long m = argument_of(script, "--global-batch-size ", 1) / each;
    long group = argument_of(script, "--microbatch-group-size-per-virtual-pipeline-stage ", pp);
    if (m % group > 0 && m % group < pp)
        return false;
    return pp <= group && group <= m;
}

static bool is_refused(const struct launch_job *x)
{
    char why[256];
    return framework_refuses("Megatron-LM", x, why, sizeof why);
}

static void look_at(const struct launch_job *x, bool refused)
{
    struct diags diags = {0};
    char *script, text[LAYOUT_TEXT];
    size_t size;
    FILE *out = open_memstream(&script, &size);
    megatron_write_script(x, NULL, 0, out, &diags);
    fclose(out);
    ck_assert_msg(megatron_accepts(script, x->gpus) == !refused, "%d GPUs, batch %lld, %s:\n%s", x->gpus,
                  (long long)x->job.global_batch, layout_format(&x->layout, text, sizeof text), script);
    free(script);
    diags_free(&diags);
}

/* Looks at some layouts of a space; counts the interleaved and the refused ones. */
static void look_through(const struct space *space, int n_looks, int *interleaved, int *refused)
{
    const struct setting *setting = space_setting(space);
    for (uint64_t at = 0; at < space_size(space); at += 1 + space_size(space) / (uint64_t)n_looks) {
        struct launch_job x = {.model = *setting->model, .job = *setting->job, .gpus = setting->gpus, .gpus_per_node = 8};
        space_layout(space, at, &x.layout);
        if (x.layout.schedule != SCHEDULE_INTERLEAVED || layout_check(&x.layout, setting, NULL, 0) != LAYOUT_LEGAL)
            continue;
        x.job.features = x.layout.features;
        look_at(&x, is_refused(&x));
        ++*interleaved;
        *refused += is_refused(&x);
    }
}

START_TEST(interleaved_layouts_are_accepted)
{
    static const char *const models[] = {"llama3-8b", "llama3-70b", "llama3-405b", "mixtral-8x7b"};
    static const int odd[] = {1, 1, 3, 5, 6, 7, 9, 12};
    struct random_stream random = random_stream_named(1717, 0, 0);
    struct diags diags = {0};
    int interleaved[2] = {0}, refused[2] = {0};
    for (int i = 0; i < 500; i++) {
        struct transformer model;
        struct cluster cluster;
        ck_assert_int_eq(catalog_model(models[random_below(&random, 4)], &model, &diags), STATUS_OK);
        ck_assert_int_eq(catalog_cluster("dgx-h100", &cluster, &diags), STATUS_OK);
        struct job job = {.seq_len = 8192, .precision = PRECISION_BF16, .gradient_precision = PRECISION_FP32};
        job.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(PP_OVERLAP);
        job.global_batch = (int64_t)odd[random_below(&random, 8)] << random_below(&random, 9);
        const struct setting setting = {&model, &cluster, &job, 8 * odd[random_below(&random, 8)] << random_below(&random, 5)};
        const struct framework_layouts can = framework_layouts_of("Megatron-LM", &model, job.features);
        for (int any = 0; any < 2; any++) {
            struct space_limits limits = {.whole_rounds = !any && can.whole_rounds};
            struct space *space;
            ck_assert_int_eq(space_restrict(&limits, "schedule=none,1f1b,interleaved", PLACE_NONE, &diags), STATUS_OK);
            if (space_create(&setting, &limits, &space, &diags) != STATUS_OK)
                continue;
            look_through(space, 100, &interleaved[any], &refused[any]);
            space_destroy(space);
        }
    }
    ck_assert_int_eq(refused[0], 0);
    ck_assert_int_gt(interleaved[0], 100);
    ck_assert_int_gt(refused[1], 100);
    diags_free(&diags);
}
END_TEST

/* torchtitan has PyTorch's rule, nanotron no such schedule. */
START_TEST(each_framework_has_its_rule)
{
    static const struct {
        int pp, vpp, m;
        bool megatron, torchtitan;
    } cases[] = {{4, 2, 8, false, false}, {4, 2, 6, true, false},  {4, 2, 9, true, true},
                 {4, 2, 2, true, false},  {4, 1, 9, false, false}, {3, 4, 16, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct launch_job x = {.job = {.global_batch = cases[i].m}};
        x.layout = (struct layout){.tp = 1, .cp = 1, .pp = cases[i].pp, .vpp = cases[i].vpp, .dp = 1, .ep = 1, .micro_batch = 1};
        x.layout.schedule = cases[i].vpp > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
        char why[256];
        ck_assert(framework_refuses("Megatron-Bridge", &x, why, sizeof why) == cases[i].megatron);
        ck_assert(framework_refuses("torchtitan", &x, why, sizeof why) == cases[i].torchtitan);
        ck_assert(!framework_refuses("nanotron", &x, why, sizeof why));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_accepted");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, interleaved_layouts_are_accepted);
    tcase_add_test(all, each_framework_has_its_rule);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
