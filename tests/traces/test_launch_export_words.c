/* By hand: what exports say of a job, and what has no argument or key, which is reported. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/plan/space.h"
#include "model/spec/catalog.h"
#include "tests/suite.h"
#include "tests/traces/frameworks_loaded.h"
#include "tests/traces/launch_written.h"
#include "traces/launch/frameworks/framework_export.h"
#include "traces/launch/megatron/megatron_export.h"

/* By hand: layers that need a layout of their own, and what no argument says. */
START_TEST(stages_that_do_not_divide_are_named)
{
    struct diags diags = {0};
    struct launch_job x = {.job = {.seq_len = 4096,
                                   .global_batch = 64,
                                   .precision = PRECISION_BF16,
                                   .dropout = 0.1,
                                   .features = FEATURE_BIT(FUSED_OPS)},
                           .layout = {.tp = 1,
                                      .cp = 1,
                                      .pp = 4,
                                      .vpp = 1,
                                      .dp = 2,
                                      .ep = 1,
                                      .micro_batch = 1,
                                      .zero = 1,
                                      .schedule = SCHEDULE_1F1B,
                                      .features = FEATURE_BIT(FUSED_OPS)},
                           .gpus = 8,
                           .gpus_per_node = 8};
    ck_assert_int_eq(catalog_model("llama3-8b", &x.model, &diags), STATUS_OK);
    struct {
        int layers;
        const char *stages;
        bool ends;
    } cases[] = {{32, NULL, false}, {30, NULL, true}, {29, "Et*7|t*7|t*8|t*7L", false}, {31, "Et*8|t*8|t*8|t*7L", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct megatron_export *e = memory_new(1, sizeof *e);
        x.model.layers = cases[i].layers;
        megatron_export(&x, e);
        if (cases[i].stages)
            ck_assert_str_eq(e->arguments.of[ARGUMENT_STAGE_LAYOUT].text, cases[i].stages);
        else
            ck_assert_ptr_null(e->arguments.of[ARGUMENT_STAGE_LAYOUT].text);
        ck_assert_int_eq(e->arguments.of[ARGUMENT_LOSS_COUNTS].text != NULL, cases[i].ends);
        ck_assert_int_eq(e->n_lost, 0);
        megatron_export_free(e);
        free(e);
    }
    diags_free(&diags);
}
END_TEST

START_TEST(what_no_argument_says_is_told)
{
    struct diags diags = {0};
    struct launch_job x = {.job = {.seq_len = 4096,
                                   .global_batch = 64,
                                   .precision = PRECISION_BF16,
                                   .optimizer = OPTIMIZER_LAMB,
                                   .features = FEATURE_BIT(PARALLEL_BLOCK) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(COMPILE)},
                           .layout = {.tp = 2,
                                      .cp = 1,
                                      .pp = 4,
                                      .vpp = 1,
                                      .dp = 1,
                                      .ep = 1,
                                      .micro_batch = 1,
                                      .recompute.what = RECOMPUTE_MLP_ACT,
                                      .schedule = SCHEDULE_GPIPE},
                           .gpus = 8,
                           .gpus_per_node = 8};
    ck_assert_int_eq(catalog_model("llama3-8b", &x.model, &diags), STATUS_OK);
    struct megatron_export *e = memory_new(1, sizeof *e);
    megatron_export(&x, e);
    static const char *const expected[] = {"schedule gpipe", "recompute mlp_act", "parallel_block",
                                           "compile",        "pp_overlap",        "optimizer lamb"};
    ck_assert_int_eq(e->n_lost, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_msg(strncmp(e->lost[i], expected[i], strlen(expected[i])) == 0, "%s", e->lost[i]);
    ck_assert_ptr_null(e->arguments.of[ARGUMENT_OPTIMIZER].text); /* adam, as where nobody says */
    megatron_export_free(e);
    ck_assert_int_eq(catalog_model("mixtral-8x7b", &x.model, &diags), STATUS_OK);
    for (int sp = 0; sp < 2; sp++) {
        x.layout.sequence_parallel = sp;
        megatron_export(&x, e);
        bool told = false;
        for (int i = 0; i < e->n_lost; i++)
            told |= strncmp(e->lost[i], "no sequence_parallel", 20) == 0;
        ck_assert(told == !sp); /* its mixtures do not train otherwise */
        megatron_export_free(e);
    }
    free(e);
    diags_free(&diags);
}
END_TEST

/* Whatever layout a search finds among those that a framework can say: it says it. Without the restrictions there are others. */
START_TEST(layouts_that_can_be_said_are_said)
{
    static const char *const frameworks[] = {"Megatron-LM", "NeMo", "Megatron-Bridge", "NeMo 2", "nanotron", "torchtitan"},
                             *const models[] = {"llama3-8b", "mixtral-8x7b"};
    struct diags diags = {0};
    for (int i = 0; i < 12; i++) {
        const char *framework = frameworks[i % 6];
        struct transformer model;
        struct cluster cluster;
        /* of nanotron's and torchtitan's layers nothing is fused, and such experts they have none */
        feature_set features = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA) |
                               (i % 6 < 4    ? FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(SCATTER_GATHER_P2P)
                                : i % 6 == 5 ? FEATURE_BIT(EAGER_LOSS) | FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(PP_OVERLAP)
                                             : 0);
        struct job job = {.seq_len = 8192,
                          .global_batch = 64,
                          .precision = PRECISION_BF16,
                          .gradient_precision = PRECISION_FP32,
                          .features = features};
        if (i / 6 && i % 6 >= 4)
            continue;
        ck_assert_int_eq(catalog_model(models[i / 6], &model, &diags), STATUS_OK);
        ck_assert_int_eq(catalog_cluster("dgx-h100", &cluster, &diags), STATUS_OK);
        const struct setting setting = {&model, &cluster, &job, 16};
        const struct framework_layouts can = framework_layouts_of(framework, &model, features);
        int lost[2] = {0};
        for (int all = 0; all < 2; all++) {
            struct space_limits limits = {.modules_kept = all ? 0 : (int)can.unsaid};
            struct space *space;
            ck_assert_int_eq(space_restrict(&limits, "dp_overlap=1", PLACE_NONE, &diags), STATUS_OK);
            for (int r = 0; !all && can.restrictions[r]; r++)
                ck_assert_int_eq(space_restrict(&limits, can.restrictions[r], PLACE_NONE, &diags), STATUS_OK);
            ck_assert_int_eq(space_create(&setting, &limits, &space, &diags), STATUS_OK);
            for (uint64_t at = 0; at < space_size(space); at += 1 + space_size(space) / 200) {
                struct launch_job x = {.model = model, .job = job, .gpus = 16, .gpus_per_node = 8};
                char text[LAYOUT_TEXT], why[256];
                space_layout(space, at, &x.layout);
                x.job.features = x.layout.features;
                if ((x.layout.features & FEATURES_LINEAR_LOSS) ||
                    layout_check(&x.layout, &setting, why, sizeof why) != LAYOUT_LEGAL)
                    continue;
                int n = framework_n_lost(frameworks_loaded(), framework, &x);
                ck_assert_msg(all || n == 0, "%s: %s", framework, layout_format(&x.layout, text, sizeof text));
                lost[all] += n > 0;
            }
            space_destroy(space);
        }
        ck_assert_int_eq(lost[0], 0);
        ck_assert_int_gt(lost[1], 0);
    }
    diags_free(&diags);
}
END_TEST

/* The base of rotary positions, where it is not the default. */
START_TEST(the_base_of_rotary_positions_is_written)
{
    static const struct {
        const char *model, *framework, *written; /* NULL: no such line */
    } cases[] = {
        {"llama3-8b", NULL, "--rotary-base 500000\n"},
        {"mixtral-8x7b", NULL, "--rotary-base 1000000\n"},
        {"llama2-7b", NULL, NULL},
        {"gpt3-13b", NULL, NULL},
        {"llama3-8b", "NeMo", "  rotary_base: 500000\n"},
        {"llama3-8b", "nanotron", "    rope_theta: 500000\n"},
    };
    struct diags diags = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct launch_job x = {
            .job = {.seq_len = 2048, .global_batch = 64, .precision = PRECISION_BF16},
            .layout = {.tp = 2, .cp = 1, .pp = 1, .vpp = 1, .dp = 4, .ep = 1, .micro_batch = 1, .schedule = SCHEDULE_NONE},
            .gpus = 8,
            .gpus_per_node = 8};
        ck_assert_int_eq(catalog_model(cases[i].model, &x.model, &diags), STATUS_OK);
        char *text = launch_written(cases[i].framework, &x, &diags);
        ck_assert_msg(cases[i].written ? strstr(text, cases[i].written) != NULL : !strstr(text, "rotary-base"), "%s", text);
        free(text);
    }
    diags_free(&diags);
}
END_TEST

/* NeMo has adapters, though not what is trained whole beside them; others train all weights, each by its own name. */
START_TEST(adapters_are_whose_they_are)
{
    static const struct {
        const char *framework, *told, *written; /* NULL: Megatron-LM; nothing */
        uint32_t whole;
    } cases[] = {
        {"NeMo", NULL, "    peft_scheme: lora\n", 0},
        {"NeMo", NULL, "      target_modules: [attention_qkv]\n", 0},
        {"NeMo", "embedding or head trained together with adapters: NeMo freezes them", "    peft_scheme: lora\n", 2},
        {"nanotron", "adapters of rank 16: nanotron trains all weights", NULL, 0},
        {NULL, "adapters of rank 16: Megatron-LM's pretraining trains all weights", NULL, 0},
    };
    struct diags diags = {0};
    struct launch_job x = {
        .job = {.seq_len = 4096, .global_batch = 64, .precision = PRECISION_BF16, .optimizer = OPTIMIZER_ADAM},
        .layout = {.tp = 2, .cp = 1, .pp = 1, .vpp = 1, .dp = 4, .ep = 1, .micro_batch = 1, .schedule = SCHEDULE_NONE},
        .gpus = 8,
        .gpus_per_node = 8};
    ck_assert_int_eq(catalog_model("llama3-8b", &x.model, &diags), STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct diags lost = {0};
        bool told = false;
        x.job.adapter = (struct adapter){.rank = 16, .targets = 1 << ADAPT_QKV, .whole = cases[i].whole};
        char *text = launch_written(cases[i].framework, &x, &lost);
        for (size_t k = 0; k < lost.n_items; k++) {
            ck_assert_msg(cases[i].told || !strstr(lost.items[k].text, "adapter"), "%s", lost.items[k].text);
            told |= cases[i].told && strstr(lost.items[k].text, cases[i].told);
        }
        ck_assert_msg(told == (cases[i].told != NULL), "%zu", i);
        ck_assert_msg(!cases[i].written || strstr(text, cases[i].written), "%s", text);
        ck_assert(cases[i].written || !strstr(text, "lora"));
        free(text);
        diags_free(&lost);
    }
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_export_words");
    TCase *all = tcase_create("all");
    tcase_add_test(all, the_base_of_rotary_positions_is_written);
    tcase_add_test(all, layouts_that_can_be_said_are_said);
    tcase_add_test(all, stages_that_do_not_divide_are_named);
    tcase_add_test(all, adapters_are_whose_they_are);
    tcase_add_test(all, what_no_argument_says_is_told);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
