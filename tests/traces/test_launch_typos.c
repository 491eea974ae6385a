/* Keys of configurations that are spelt nearly as one that matters; and complete configurations, in which there are none. */
#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/file.h"
#include "tests/suite.h"
#include "tests/traces/frameworks_loaded.h"
#include "traces/launch/frameworks/framework_config.h"
#include "traces/launch/frameworks/framework_typos.h"
#include "traces/launch/job/name_typo.h"
#include "traces/launch/megatron/megatron_translate.h"

START_TEST(typos_and_other_things)
{
    static const struct {
        const char *name, *meant;
        bool typo;
    } cases[] = {
        {"micro_batch_per_gpu", "train_micro_batch_size_per_gpu", true},
        {"micro_batch_size", "train_micro_batch_size_per_gpu", true},
        {"batch_size", "train_batch_size", true},
        {"batch_size", "train_micro_batch_size_per_gpu", false}, /* too little of it */
        {"gradient_acumulation_steps", "gradient_accumulation_steps", true},
        {"zero_optimisation", "zero_optimization", true},
        {"enable", "enabled", true},
        {"seq_length", "seq_len", true},
        {"local_batchsize", "local_batch_size", true},
        {"Local-Batch-Size", "local_batch_size", true},
        {"tensor_paralell_degree", "tensor_parallel_degree", true},
        {"cp_size", "tp_size", false}, /* others, one letter apart */
        {"cp_size", "dp_size", false},
        {"adam_beta1", "adam_beta2", false},
        {"fp16", "bf16", false},
        {"per_device_eval_batch_size", "per_device_train_batch_size", false},
        {"eval_steps", "max_steps", false},
        {"decoder_seq_length", "encoder_seq_length", false},
        {"save_interval", "eval_interval", false},
        {"stage", "stage", false}, /* the key itself */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg((name_typo(cases[i].name, cases[i].meant, true) > 0) == cases[i].typo, "%s, %s", cases[i].name,
                      cases[i].meant);
    ck_assert_int_eq(name_typo("data_sharding", "data_parallel_sharding_strategy", false), 0);
}
END_TEST

/* A letter left out, or two exchanged, anywhere but in the first of a word or a word of three; an underscore left out. */
START_TEST(any_letter_may_be_missing)
{
    static const char *const keys[] = {"train_micro_batch_size_per_gpu", "tensor_parallel_degree", "gradient_accumulation_steps",
                                       "pipeline_model_parallel_size", "activation_checkpoint"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        for (size_t i = 1; keys[k][i]; i++) {
            char less[64], swapped[64];
            size_t first = i;
            while (first > 0 && keys[k][first - 1] != '_')
                first--;
            size_t word = strcspn(keys[k] + first, "_");
            snprintf(less, sizeof less, "%.*s%s", (int)i, keys[k], keys[k] + i + 1);
            if (keys[k][i] != '_' && (word < 5 || i == first))
                continue;
            ck_assert_msg(name_typo(less, keys[k], true) > 0, "%s", less);
            snprintf(swapped, sizeof swapped, "%s", keys[k]);
            if (i + 1 >= first + word || keys[k][i] == '_' || keys[k][i] == keys[k][i + 1])
                continue;
            swapped[i] = keys[k][i + 1], swapped[i + 1] = keys[k][i];
            ck_assert_msg(name_typo(swapped, keys[k], true) > 0, "%s", swapped);
        }
}
END_TEST

static void parse(const char *name, const char *text, struct launch_words *words, struct diags *diags)
{
    const struct framework *framework;
    ck_assert_msg(framework_config_parse(frameworks_loaded(), name, text, strlen(text), words, &framework, diags) == STATUS_OK,
                  "%s: %s", name, diags->n_items ? diags->items[0].text : "");
}

static const char *const complete[] = {"maxtext.yml", "olmo_core.json",  "colossal.json",     "accelerate.yaml", "axolotl.yaml",
                                       "bridge.yaml", "deepspeed.json",  "llamafactory.yaml", "llmfoundry.yaml", "nemo.yaml",
                                       "olmo.yaml",   "torchtitan.toml", "trainer.yaml"};
enum { N_COMPLETE = sizeof complete / sizeof complete[0] };

/* Configurations with all that people write into them. */
START_TEST(complete_files_are_quiet)
{
    char path[512];
    struct launch_words words = {0};
    struct diags diags = {0};
    snprintf(path, sizeof path, "%s/tests/traces/configurations/%s", MSIM_SOURCE_DIR, complete[_i]);
    char *text;
    size_t n;
    ck_assert_int_eq(file_read(path, 1 << 20, &text, &n, &diags), STATUS_OK);
    parse(path, text, &words, &diags);
    ck_assert_msg(diags.n_items == 0, "%s", diags.n_items ? diags.items[0].text : "");
    ck_assert_uint_gt(words.n, 5);
    free(text);
    launch_words_free(&words);
    diags_free(&diags);
}
END_TEST

static void expect(const struct diags *diags, size_t i, int line, int column, const char *text)
{
    ck_assert_uint_gt(diags->n_items, i);
    ck_assert_str_eq(diags->items[i].text, text);
    ck_assert_int_eq(diags->items[i].line, line);
    ck_assert_int_eq(diags->items[i].column, column);
    ck_assert_int_eq(diags->n_errors, 0);
}

START_TEST(typos_have_places)
{
    struct launch_words words = {0};
    struct diags diags = {0};
    parse("ds.json",
          "{\"train_batch_size\": 64,\n \"micro_batch_per_gpu\": 4,\n \"zero_optimisation\": {\"stage\": 3},\n"
          " \"fp16\": {\"enable\": null}, \"bf16\": {\"enable\": true}}",
          &words, &diags);
    ck_assert_uint_eq(diags.n_items, 3); /* null says nothing */
    expect(&diags, 0, 2, 2,
           "micro_batch_per_gpu is unknown to msim and left out; did you mean 'train_micro_batch_size_per_gpu'?");
    expect(&diags, 1, 3, 2, "zero_optimisation is unknown to msim and left out; did you mean 'zero_optimization'?");
    expect(&diags, 2, 4, 37, "enable is unknown to msim and left out; did you mean 'enabled'?");
    diags_free(&diags);
    diags = (struct diags){0};
    parse("t.toml", "[model]\nname = \"llama3\"\n[training]\nseq_length = 8192\n[parallelism]\ntensor_paralel_degree = 8\n",
          &words, &diags);
    ck_assert_uint_eq(diags.n_items, 2);
    expect(&diags, 0, 4, 1, "seq_length is unknown to msim and left out; did you mean 'seq_len'?");
    expect(&diags, 1, 6, 1, "tensor_paralel_degree is unknown to msim and left out; did you mean 'tensor_parallel_degree'?");
    diags_free(&diags);
    diags = (struct diags){0};
    parse("b.yaml", "train: {micro_batch_size: 1, global_batch_sise: 8}\nmodel: {num_layers: 2, tensor_modle_parallel_size: 2}\n",
          &words, &diags);
    ck_assert_uint_eq(diags.n_items, 2);
    expect(&diags, 0, 2, 24,
           "tensor_modle_parallel_size is unknown to msim and left out; did you mean 'tensor_model_parallel_size'?");
    expect(&diags, 1, 1, 30, "global_batch_sise is unknown to msim and left out; did you mean 'global_batch_size'?");
    diags_free(&diags);
    diags = (struct diags){0};
    parse("n.yaml",
          "trainer:\n  strategy: {tensor_model_parallel_size: 2}\n  callbacks:\n  - {_target_: a.B, verbose: true}\n"
          "  - {_target_: a.C, tp_comm_overlaps: true}\nmodel: {config: {_target_: x.Llama3Config8B}}\n",
          &words, &diags);
    ck_assert_uint_eq(diags.n_items, 1); /* in an item of a list */
    expect(&diags, 0, 5, 21, "tp_comm_overlaps is unknown to msim and left out; did you mean 'tp_comm_overlap'?");
    launch_words_free(&words);
    diags_free(&diags);
}
END_TEST

/* DeepSpeed's autocast is in the type that it names; where it is off, that says nothing. */
START_TEST(autocast_has_a_type)
{
    static const struct {
        const char *keys;
        enum precision precision;
    } cases[] = {
        {"enabled: true", PRECISION_BF16},
        {"enabled: true, dtype: bfloat16", PRECISION_BF16},
        {"enabled: true, dtype: float16", PRECISION_FP16},
        {"enabled: true, dtype: torch.float16", PRECISION_FP16},
        {"enabled: false, dtype: float16", PRECISION_FP32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[160];
        struct launch_words words = {0};
        struct diags diags = {0};
        struct launch_description d = {0};
        struct megatron_arguments *arguments = memory_new(1, sizeof *arguments);
        snprintf(text, sizeof text, "train_batch_size: 64\ntorch_autocast: {%s}\n", cases[i].keys);
        parse("ds.yaml", text, &words, &diags);
        megatron_read(&words, frameworks_loaded()->ignored, false, arguments, &diags);
        megatron_translate(arguments, &(struct launch_known){0}, &d, &diags);
        ck_assert_msg(d.job.job.precision == cases[i].precision, "%s: %s", cases[i].keys, precision_name(d.job.job.precision));
        free(arguments);
        launch_words_free(&words);
        diags_free(&diags);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_typos");
    TCase *all = tcase_create("all");
    tcase_add_test(all, typos_and_other_things);
    tcase_add_test(all, any_letter_may_be_missing);
    tcase_add_loop_test(all, complete_files_are_quiet, 0, N_COMPLETE);
    tcase_add_test(all, typos_have_places);
    tcase_add_test(all, autocast_has_a_type);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
