/* How wide the optimizer keeps its moments: in the words of Megatron-LM, torch's libraries and JAX, and in those of exports. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "tests/suite.h"
#include "tests/traces/launch_told.h"
#include "tests/traces/launch_written.h"
#include "traces/launch/frameworks/framework_export.h"
#include "traces/launch/megatron/megatron_export.h"

#define TITAN "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n"
#define TUNED                                                                                                                    \
    "model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: full\nper_device_train_batch_size: 1\ncutoff_len: 2048\n"
#define JAX     "per_device_batch_size: 1\nmax_target_length: 2048\nmodel_name: llama2-7b\n"
#define LITGPT  "model_name: Llama-3-8B\nprecision: %s\ntrain: {global_batch_size: 8, micro_batch_size: 1}\n"
#define BRIDGE  "cfg = llama3_8b_pretrain_config()\ncfg.train.micro_batch_size = 1\ncfg.dataset.sequence_length = 8192\n"
#define PRECISE "--use-precision-aware-optimizer --use-distributed-optimizer "

START_TEST(moments_in_their_words)
{
    static const struct {
        const char *path, *text, *line;
        enum precision moments;
    } cases[] = {
        {"c.yaml", TUNED, NULL, PRECISION_FP32},
        {"c.yaml", TUNED "optim: adamw_torch_fused\n", NULL, PRECISION_FP32},
        {"c.yaml", TUNED "optim: adamw_bnb_8bit\n", NULL, PRECISION_FP8},
        {"c.yaml", TUNED "optim: paged_adamw_8bit\n", NULL, PRECISION_FP8},
        {"c.yaml", TUNED "optim: ao_adamw_8bit\n", NULL, PRECISION_FP8},
        {"c.toml", TITAN, NULL, PRECISION_FP32},
        {"c.toml", TITAN "dtype = \"bfloat16\"\n", NULL, PRECISION_BF16},
        {"c.toml", TITAN "dtype = \"float32\"\n", NULL, PRECISION_FP32},
        {"c.yaml", JAX, NULL, PRECISION_FP32},
        {"c.yaml", JAX "weight_dtype: bfloat16\n", NULL, PRECISION_BF16},
        {"c.yaml", JAX "mu_dtype: float32\n", NULL, PRECISION_FP32},
        {"recipe.py", BRIDGE, NULL, PRECISION_FP32},
        {"recipe.py", BRIDGE "cfg.optimizer.exp_avg_dtype = cfg.optimizer.exp_avg_sq_dtype = torch.bfloat16\n", NULL,
         PRECISION_BF16},
        {"recipe.py", BRIDGE "cfg.optimizer.exp_avg_dtype = torch.uint8\ncfg.optimizer.exp_avg_sq_dtype = torch.uint8\n", NULL,
         PRECISION_FP8},
        {"recipe.py", BRIDGE, PRECISE "--exp-avg-dtype fp16 --exp-avg-sq-dtype fp16", PRECISION_FP16},
        {"recipe.py", BRIDGE, PRECISE "--exp-avg-dtype fp32 --exp-avg-sq-dtype fp32", PRECISION_FP32},
        {"recipe.py", BRIDGE, "--optimizer sgd --exp-avg-dtype bf16", PRECISION_BF16}, /* which has one */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell_as(cases[i].path, cases[i].text, cases[i].line, 8);
        ck_assert_msg(t.diags.n_errors == 0 && t.d.n_missing == 0, "%zu: %s", i,
                      t.diags.n_items ? t.diags.items[0].text : t.d.missing[0]);
        ck_assert_msg(t.d.job.job.moment_precision == cases[i].moments, "%zu: %s", i,
                      precision_name(t.d.job.job.moment_precision));
        expect_quiet(&t, "moment");
        told_free(&t);
    }
}
END_TEST

/* LitGPT keeps everything in 16 bits with a precision called "true"; "mixed" on the command line overrides it. */
START_TEST(moments_of_what_is_true)
{
    static const struct {
        const char *precision, *line;
        enum precision moments;
    } cases[] = {{"bf16-mixed", NULL, PRECISION_FP32},
                 {"bf16-true", NULL, PRECISION_BF16},
                 {"16-true", NULL, PRECISION_FP16},
                 {"bf16-true", "precision=bf16-mixed", PRECISION_FP32}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, LITGPT, cases[i].precision);
        struct told t = tell_as("c.yaml", text, cases[i].line, 8);
        ck_assert_msg(t.d.job.job.moment_precision == cases[i].moments, "%zu", i);
        told_free(&t);
    }
}
END_TEST

/* Both have one width here, the wider one; a difference is reported at the one that is not used. */
START_TEST(moments_that_differ_are_told)
{
    static const struct {
        const char *more, *told;
        enum precision moments;
        int line, column;
    } cases[] = {
        {"cfg.optimizer.exp_avg_dtype = torch.bfloat16\n",
         "first moment in bf16 and its second in fp32; msim assumes fp32 for both", PRECISION_FP32, 4, 31},
        {"cfg.optimizer.exp_avg_sq_dtype = torch.bfloat16\n", "first moment in fp32 and its second in bf16; msim assumes fp32",
         PRECISION_FP32, 4, 34},
        {"cfg.optimizer.exp_avg_dtype = 'fp8'\ncfg.optimizer.exp_avg_sq_dtype = 'fp16'\n",
         "first moment in fp8 and its second in fp16; msim assumes fp16", PRECISION_FP16, 4, 31},
        {"cfg.optimizer.exp_avg_dtype = 'int4'\n", "a moment of the optimizer in int4; msim assumes fp32", PRECISION_FP32, 4, 31},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, BRIDGE "%s", cases[i].more);
        struct told t = tell_as("recipe.py", text, NULL, 8);
        ck_assert_int_eq(t.d.job.job.moment_precision, cases[i].moments);
        expect_warning_at(&t, cases[i].told, cases[i].line, cases[i].column);
        told_free(&t);
    }
}
END_TEST

/* Each export has its own keys for them, or reports that it has none. */
START_TEST(moments_are_written)
{
    static const struct {
        const char *framework, *written, *told; /* NULL: Megatron-LM */
        enum precision moments;
        int zero;
        enum optimizer optimizer;
    } cases[] = {
        {NULL, "--use-precision-aware-optimizer\n    --exp-avg-dtype bf16\n    --exp-avg-sq-dtype bf16\n", NULL, PRECISION_BF16,
         1, OPTIMIZER_ADAM},
        {NULL, "--exp-avg-sq-dtype fp8\n", NULL, PRECISION_FP8, 3, OPTIMIZER_ADAM},
        {NULL, NULL, "moments in bf16: only those of --use-distributed-optimizer can be", PRECISION_BF16, 0, OPTIMIZER_ADAM},
        {NULL, NULL, "moments in bf16: only Adam's can be", PRECISION_BF16, 1, OPTIMIZER_SGD},
        {NULL, NULL, NULL, PRECISION_FP32, 1, OPTIMIZER_ADAM},
        {"Megatron-Bridge", "cfg.optimizer.exp_avg_sq_dtype = torch.bfloat16\n", NULL, PRECISION_BF16, 1, OPTIMIZER_ADAM},
        {"NeMo 2", "recipe.optim.config.exp_avg_dtype = torch.uint8\n", NULL, PRECISION_FP8, 1, OPTIMIZER_ADAM},
        {"NeMo 2", "recipe.optim.config.use_precision_aware_optimizer = True\n", NULL, PRECISION_BF16, 1, OPTIMIZER_ADAM},
        {"NeMo", NULL, "the optimizer's moments in bf16", PRECISION_BF16, 1, OPTIMIZER_ADAM},
        {"nanotron", NULL, "the optimizer's moments in fp16", PRECISION_FP16, 1, OPTIMIZER_ADAM},
        {"torchtitan", NULL, "the optimizer's moments in bf16", PRECISION_BF16, 2, OPTIMIZER_ADAM},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct diags lost = {0};
        struct launch_job x = {
            .job = {.seq_len = 4096, .global_batch = 64, .precision = PRECISION_BF16, .optimizer = cases[i].optimizer},
            .layout = {.tp = 1, .cp = 1, .pp = 1, .vpp = 1, .dp = 8, .ep = 1, .micro_batch = 1, .zero = cases[i].zero},
            .gpus = 8,
            .gpus_per_node = 8};
        int told = 0;
        x.job.moment_precision = cases[i].moments;
        ck_assert_int_eq(catalog_model("llama3-8b", &x.model, &lost), STATUS_OK);
        char *text = launch_written(cases[i].framework, &x, &lost);
        for (size_t k = 0; k < lost.n_items; k++) {
            told += cases[i].told && strstr(lost.items[k].text, cases[i].told);
            ck_assert_msg(cases[i].told || !strstr(lost.items[k].text, "moment"), "%s", lost.items[k].text);
            ck_assert_msg(!strstr(lost.items[k].text, "exp_avg") && !strstr(lost.items[k].text, "aware"), "%s",
                          lost.items[k].text);
        }
        ck_assert_msg(told == (cases[i].told != NULL), "%zu: %s", i, text);
        ck_assert_msg(!cases[i].written || strstr(text, cases[i].written), "%s", text);
        ck_assert_msg(cases[i].written || (!strstr(text, "exp-avg") && !strstr(text, "exp_avg") && !strstr(text, "aware")), "%s",
                      text);
        if (cases[i].written && cases[i].framework)
            ck_assert_msg(strstr(text, "import torch\n") != NULL, "%s", text);
        free(text);
        diags_free(&lost);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_moments");
    TCase *all = tcase_create("all");
    tcase_add_test(all, moments_in_their_words);
    tcase_add_test(all, moments_of_what_is_true);
    tcase_add_test(all, moments_that_differ_are_told);
    tcase_add_test(all, moments_are_written);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
