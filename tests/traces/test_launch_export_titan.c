/* What an export for torchtitan says, whether an import reads the same, and what torchtitan has no key for. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "tests/layout/offloaded.h"
#include "tests/suite.h"
#include "tests/traces/launch_drawn.h"
#include "tests/traces/launch_written.h"
#include "traces/launch/frameworks/framework_export.h"

/* Replicas and shards that torchtitan can be told. */
static void draw_degrees(struct random_stream *random, struct layout *l)
{
    bool alone = l->tp * l->cp * l->pp == 1;
    l->zero = l->dp * l->cp == 1 || (alone && random_below(random, 4) == 0) ? 0
              : l->pp > 1                                                   ? 2
                                                                            : 2 + (int)random_below(random, 2);
    l->shard = l->zero && l->dp % 2 == 0 && l->dp * l->cp > 2 && random_below(random, 2) ? l->dp / 2 * l->cp : 0;
    l->offload = offloaded(l->zero == 3 && random_below(random, 4) == 0 ? "optimizer+parameters" : "none");
}

/* A layout that torchtitan can be told. */
static void draw_titan_layout(struct random_stream *random, const struct transformer *model, struct layout *l)
{
    static const enum schedule one[] = {SCHEDULE_GPIPE, SCHEDULE_1F1B},
                               two[] = {SCHEDULE_INTERLEAVED, SCHEDULE_ZBV, SCHEDULE_DUALPIPEV};
    draw_launch_layout(random, model, l);
    l->schedule = l->pp == 1 ? SCHEDULE_NONE : l->vpp == 1 ? one[random_below(random, 2)] : two[random_below(random, 3)];
    l->vpp = l->pp > 1 && schedule_is_folded(l->schedule) ? 2 : l->vpp;
    l->sequence_parallel = l->tp > 1 && random_below(random, 8);
    l->cp_comm = l->cp > 1 && random_below(random, 2) ? CP_ALL_GATHER : CP_RING;
    l->etp = 0;
    if (model->moe.experts && l->ep > 1)
        l->etp = l->tp > 1 && random_below(random, 2) ? l->tp : 0;
    draw_degrees(random, l);
    static const struct recompute recomputes[] = {{.what = RECOMPUTE_NONE},
                                                  {.what = RECOMPUTE_SELECTIVE},
                                                  {.what = RECOMPUTE_FULL},
                                                  {RECOMPUTE_FULL, RECOMPUTE_EVERY, 2},
                                                  {RECOMPUTE_FULL, RECOMPUTE_EVERY, 3}};
    l->recompute = recomputes[random_below(random, 5)];
}

/* A job that torchtitan can run; false when what was drawn is none. */
static bool draw_titan(struct random_stream *random, const struct cluster *cluster, struct launch_job *x)
{
    static const char *const models[] = {"llama3-8b",     "llama3-70b",       "llama3.1-405b", "qwen3-0.6b",  "qwen3-32b",
                                         "qwen3-30b-a3b", "deepseek-v2-lite", "deepseek-v2",   "llama4-scout"};
    static const enum precision precisions[] = {PRECISION_BF16, PRECISION_BF16, PRECISION_FP32, PRECISION_FP8, PRECISION_MXFP8};
    static const feature_set compiled[] = {0, FEATURE_BIT(EAGER_LOSS), FEATURE_BIT(COMPILE),
                                           FEATURE_BIT(COMPILE) | FEATURE_BIT(EAGER_LOSS)};
    struct layout *l = &x->layout;
    struct diags diags = {0};
    *x = (struct launch_job){0};
    ck_assert_int_eq(catalog_model(models[random_below(random, 9)], &x->model, &diags), STATUS_OK);
    draw_titan_layout(random, &x->model, l);
    draw_launch_job(random, x);
    x->job = (struct job){.seq_len = 4096,
                          .global_batch = x->job.global_batch,
                          .gradient_precision = PRECISION_FP32,
                          .memory_margin = MEMORY_MARGIN};
    x->job.precision = precisions[random_below(random, 5)];
    x->job.load.busiest = x->model.moe.experts ? (double)random_below(random, 2) : 0;
    x->job.features =
        FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA) | compiled[random_below(random, 4)];
    if ((x->job.features & FEATURE_BIT(COMPILE)) && l->tp > 1 && random_below(random, 2))
        x->job.features |= FEATURE_BIT(ASYNC_TP);
    l->features = x->job.features;
    struct setting setting = {&x->model, cluster, &x->job, x->gpus};
    int apart = l->cp * (layout_expert_tp(l) == 1 ? l->tp : 1);
    return (l->ep == 1 || l->ep % apart == 0) && layout_check(l, &setting, NULL, 0) == LAYOUT_LEGAL;
}

START_TEST(what_torchtitan_is_told_comes_back)
{
    enum { TRIES = 400000, WANTED = 600 };
    struct random_stream random = random_stream_named((uint64_t)_i + 1, 2, 0);
    struct cluster cluster;
    struct diags diags = {0};
    int n = 0, mixtures = 0, chunked = 0, folded = 0, hybrid = 0, every = 0, offloading = 0;
    ck_assert_int_eq(catalog_cluster("gb200-nvl72", &cluster, &diags), STATUS_OK);
    for (int i = 0; i < TRIES && n < WANTED; i++) {
        struct launch_job x;
        if (!draw_titan(&random, &cluster, &x))
            continue;
        through_a_config(&x, "torchtitan");
        n++;
        mixtures += x.model.moe.experts && x.layout.ep > 1;
        chunked += x.layout.vpp > 2;
        folded += schedule_is_folded(x.layout.schedule);
        hybrid += x.layout.shard > 0;
        every += x.layout.recompute.of == RECOMPUTE_EVERY;
        offloading += !offload_is_none(&x.layout.offload);
    }
    ck_assert_int_eq(n, WANTED);
    ck_assert_int_gt(mixtures, 20);
    ck_assert_int_gt(chunked, 20);
    ck_assert_int_gt(folded, 20);
    ck_assert_int_gt(hybrid, 20);
    ck_assert_int_gt(every, 20);
    ck_assert_int_gt(offloading, 10);
    diags_free(&diags);
}
END_TEST

/* By hand: what torchtitan cannot be told, each in a sentence; stages as its own rule has them are not named. */
static const struct {
    struct layout layout;
    const char *model, *lost, *written;
} titan_says[] = {
    {{.tp = 2, .pp = 1, .vpp = 1, .dp = 4, .zero = 1}, "llama3-8b", "zero 1: torchtitan shards gradients", NULL},
    {{.tp = 2, .pp = 1, .vpp = 1, .dp = 4}, "llama3-8b", "zero 0 with tensor or pipeline", NULL},
    {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8},
     "llama3-8b",
     NULL,
     "data_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n"},
    {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 3, .shard = 4},
     "llama3-8b",
     NULL,
     "data_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"},
    {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 2}, "llama3-8b", NULL, "fsdp_reshard_after_forward = \"never\"\n"},
    {{.tp = 1, .pp = 4, .vpp = 1, .dp = 2, .zero = 2, .schedule = SCHEDULE_ZB1P}, "llama3-8b", "schedule zb-1p", NULL},
    {{.tp = 1, .pp = 2, .vpp = 3, .dp = 4, .zero = 2, .schedule = SCHEDULE_INTERLEAVED},
     "llama3-8b",
     NULL,
     "module_fqns_per_model_part = [\n"}, /* of 34 places 6, 6, 6, 6, 5, 5 are its own way, without the ends' */
    {{.tp = 1, .pp = 2, .vpp = 17, .dp = 4, .zero = 2, .schedule = SCHEDULE_INTERLEAVED},
     "llama3-8b",
     NULL,
     "pipeline_parallel_layers_per_stage = 1\n"},
    {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 3, .recompute = {RECOMPUTE_FULL, RECOMPUTE_FIRST, 4}},
     "llama3-8b",
     "recompute full:4",
     "mode = \"full\"\n"},
    {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 3, .recompute = {RECOMPUTE_FULL, RECOMPUTE_EVERY, 4}},
     "llama3-8b",
     NULL,
     "mode = \"selective\"\nselective_ac_option = \"4\"\n"},
    {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 3}, "gpt3-13b", "model gpt3-13b: it is none of torchtitan's flavors", NULL},
    {{.tp = 1, .pp = 1, .vpp = 1, .dp = 8, .zero = 3},
     "deepseek-v3",
     "modules that predict further tokens",
     "flavor = \"671B\"\nname = \"deepseek_v3\"\n"},
};

START_TEST(torchtitan_says_what_it_can)
{
    for (size_t i = 0; i < sizeof titan_says / sizeof titan_says[0]; i++) {
        struct diags lost = {0};
        struct launch_job x = {
            .job = {.seq_len = 4096, .global_batch = 64, .precision = PRECISION_BF16, .gradient_precision = PRECISION_FP32},
            .layout = titan_says[i].layout,
            .gpus = 8,
            .gpus_per_node = 8};
        x.layout.cp = x.layout.ep = x.layout.micro_batch = 1;
        x.layout.sequence_parallel = x.layout.tp > 1;
        x.layout.schedule = x.layout.pp > 1 && !x.layout.schedule ? SCHEDULE_1F1B : x.layout.schedule;
        x.job.features = x.layout.features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA);
        ck_assert_int_eq(catalog_model(titan_says[i].model, &x.model, &lost), STATUS_OK);
        char *text = launch_written("torchtitan", &x, &lost);
        ck_assert_msg(lost.n_items == (titan_says[i].lost != NULL), "%zu: %s", i, text);
        ck_assert_msg(!titan_says[i].lost || strstr(lost.items[0].text, titan_says[i].lost), "%s",
                      lost.n_items ? lost.items[0].text : "");
        ck_assert_msg(!titan_says[i].written || strstr(text, titan_says[i].written), "%s", text);
        free(text);
        diags_free(&lost);
    }
}
END_TEST

/* Of overlaps those that the job allows are asked for: one that it does not would leave no layout that has a use for it. */
START_TEST(torchtitan_asks_for_what_the_job_allows)
{
    static const struct {
        feature_set features;
        bool replicas, tensors;
    } cases[] = {{0, false, true},
                 {FEATURE_BIT(DP_OVERLAP), true, true},
                 {FEATURE_BIT(ASYNC_TP), false, false},
                 {FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_TP), true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct framework_layouts can = framework_layouts_of("torchtitan", &(struct transformer){0}, cases[i].features);
        bool replicas = false, tensors = false;
        for (int r = 0; can.restrictions[r]; r++) {
            replicas |= strcmp(can.restrictions[r], "dp_overlap=1") == 0;
            tensors |= strcmp(can.restrictions[r], "tp_overlap=0") == 0;
        }
        ck_assert(replicas == cases[i].replicas && tensors == cases[i].tensors);
    }
}
END_TEST
int main(void)
{
    Suite *suite = suite_create("launch_export_titan");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, what_torchtitan_is_told_comes_back, 0, 2);
    tcase_add_test(all, torchtitan_says_what_it_can);
    tcase_add_test(all, torchtitan_asks_for_what_the_job_allows);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
