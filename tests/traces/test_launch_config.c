/* Configurations of other frameworks, by hand. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/layout/offloaded.h"
#include "tests/suite.h"
#include "tests/traces/frameworks_loaded.h"
#include "traces/launch/frameworks/framework_config.h"
#include "traces/launch/megatron/megatron_translate.h"

struct configured {
    struct launch_words words;
    struct diags diags;
    struct launch_description d;
    const struct framework *framework;
    enum status status;
};

static struct configured read_config(const char *text)
{
    struct configured c = {0};
    struct megatron_arguments *arguments = memory_new(1, sizeof *arguments);
    c.status = framework_config_parse(frameworks_loaded(), "c.yaml", text, strlen(text), &c.words, &c.framework, &c.diags);
    megatron_read(&c.words, frameworks_loaded()->ignored, false, arguments, &c.diags);
    if (c.status == STATUS_OK)
        megatron_translate(arguments, &(struct launch_known){0}, &c.d, &c.diags);
    free(arguments);
    return c;
}

static void configured_free(struct configured *c)
{
    launch_words_free(&c->words);
    diags_free(&c->diags);
}

static void expect_layout(const struct configured *c, const char *layout)
{
    char text[LAYOUT_TEXT];
    ck_assert_msg(c->diags.n_errors == 0 && c->d.n_missing == 0, "%s",
                  c->diags.n_items ? c->diags.items[0].text : c->d.missing[0]);
    ck_assert_str_eq(layout_format(&c->d.job.layout, text, sizeof text), layout);
}

START_TEST(nemo_has_the_same_words_in_other_places)
{
    struct configured c = read_config(
        "trainer: {devices: 8, num_nodes: 4, precision: bf16-mixed, max_steps: 10}\n"
        "model:\n"
        "  micro_batch_size: 2\n  global_batch_size: 64\n  tensor_model_parallel_size: 2\n"
        "  pipeline_model_parallel_size: 4\n  virtual_pipeline_model_parallel_size: 2\n  sequence_parallel: true\n"
        "  encoder_seq_length: 4096\n  max_position_embeddings: ${.encoder_seq_length}\n"
        "  num_layers: 16\n  hidden_size: 2048\n  num_attention_heads: 16\n  num_query_groups: 4\n"
        "  ffn_hidden_size: ${multiply:4,2}\n  activation: fast-swiglu\n  normalization: rmsnorm\n  bias: false\n"
        "  add_qkv_bias: true\n  qk_layernorm: true\n"
        "  share_embeddings_and_output_weights: False\n  position_embedding_type: rope\n"
        "  tokenizer: {type: meta-llama/Llama-2-70b-hf}\n  transformer_engine: True\n  fp8: true\n  fp8_hybrid: true\n"
        "  activations_checkpoint_granularity: full\n  optim: {name: mcore_distributed_optim}\n");
    ck_assert_int_eq(c.diags.n_errors, 1);
    ck_assert(strstr(c.diags.items[0].text, "--ffn-hidden-size") && strstr(c.diags.items[0].text, "another key"));
    ck_assert_int_eq(c.diags.items[0].line, 15);
    diags_free(&c.diags);
    c.diags = (struct diags){0};
    expect_layout(&c, "tp=2,cp=1,pp=4,vpp=2,dp=4,ep=1,mb=2,zero=1,sp=1,recompute=full,schedule=interleaved");
    ck_assert_int_eq(c.d.job.model.kv_heads, 4);
    ck_assert_int_eq(c.d.job.model.max_seq_len, 4096);
    ck_assert_int_eq(c.d.job.model.vocab, 32000);
    ck_assert_int_eq(c.d.job.model.norm, NORM_RMS);
    ck_assert(c.d.job.model.gated_mlp && !c.d.job.model.linear_bias && !c.d.job.model.tied_embeddings);
    ck_assert(c.d.job.model.qkv_bias && c.d.job.model.qk_norm);
    ck_assert_int_eq(c.d.job.job.precision, PRECISION_FP8);
    ck_assert_int_eq(c.d.job.gpus, 32);
    configured_free(&c);
}
END_TEST

/* Its recipes leave fp8_hybrid on and switch by fp8. */
START_TEST(nemo_switches_fp8_by_one_key)
{
    static const struct {
        const char *keys;
        enum precision expected;
    } cases[] = {{"fp8: False, fp8_e4m3: False, fp8_hybrid: True", PRECISION_BF16},
                 {"fp8: True, fp8_e4m3: False, fp8_hybrid: True", PRECISION_FP8},
                 {"fp8: True, fp8_e4m3: True, fp8_hybrid: False", PRECISION_FP8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[160];
        snprintf(text, sizeof text, "trainer: {precision: bf16}\nmodel: {%s}\n", cases[i].keys);
        struct configured c = read_config(text);
        ck_assert_int_eq(c.d.job.job.precision, cases[i].expected);
        configured_free(&c);
    }
}
END_TEST

/* A number of layers to offload, which its recipes leave there, counts where the switch is on. */
START_TEST(nemo_switches_offloading_by_one_key)
{
    for (int on = 0; on < 2; on++) {
        char text[256];
        snprintf(text, sizeof text,
                 "trainer: {precision: bf16}\nmodel: {num_layers: 16, cpu_offloading: %s, cpu_offloading_num_layers: %s}\n",
                 on ? "True" : "False", on ? "15" : "\"${sum:${.num_layers},-1}\"");
        struct configured c = read_config(text);
        ck_assert_uint_eq(c.diags.n_errors, 0);
        ck_assert(offload_is_none(&c.d.job.layout.offload) == !on);
        configured_free(&c);
    }
}
END_TEST

/* Megatron-Core's optimizer overlaps on request, Apex's by default; gradients have the type that the optimizer specifies. */
START_TEST(nemo_has_its_optimizers_ways)
{
    static const struct {
        const char *optim;
        bool overlaps;
        enum precision gradients;
    } cases[] = {{"name: mcore_distributed_optim", false, PRECISION_FP32},
                 {"name: mcore_distributed_optim, overlap_grad_sync: True, overlap_param_sync: True", true, PRECISION_FP32},
                 {"name: distributed_fused_adam, grad_sync_dtype: bf16", true, PRECISION_BF16},
                 {"name: distributed_fused_adam, overlap_grad_sync: False", false, PRECISION_FP32}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "trainer: {precision: bf16}\nmodel: {optim: {%s}}\n", cases[i].optim);
        struct configured c = read_config(text);
        ck_assert_msg(((c.d.job.job.features & FEATURE_BIT(DP_OVERLAP)) != 0) == cases[i].overlaps, "%zu", i);
        ck_assert_int_eq(c.d.job.job.gradient_precision, cases[i].gradients);
        ck_assert_int_eq(c.d.job.layout.zero, 1);
        configured_free(&c);
    }
}
END_TEST

START_TEST(nanotron_gives_the_batch_by_its_factors)
{
    struct configured c = read_config(
        "parallelism: {dp: 8, tp: 4, pp: 2, tp_mode: REDUCE_SCATTER, recompute_layer: true}\n"
        "tokens: {sequence_length: 4096, micro_batch_size: 2, batch_accumulation_per_replica: 16}\n"
        "model:\n  dtype: bfloat16\n  model_config: {hidden_size: 4096, intermediate_size: 14336, num_attention_heads: 32,\n"
        "    num_hidden_layers: 32, num_key_value_heads: 8, vocab_size: 50257, tie_word_embeddings: true}\n"
        "optimizer: {zero_stage: 1, accumulate_grad_in_fp32: false}\n");
    expect_layout(&c, "tp=4,cp=1,pp=2,vpp=1,dp=8,ep=1,mb=2,zero=1,sp=1,recompute=full,schedule=1f1b");
    ck_assert_int_eq(c.d.job.job.global_batch, 256);
    ck_assert_int_eq(c.d.job.gpus, 64);
    ck_assert_int_eq(c.d.job.model.vocab, 50257);
    ck_assert(c.d.job.model.tied_embeddings);
    ck_assert_int_eq(c.d.job.job.gradient_precision, PRECISION_BF16);
    ck_assert_uint_eq(c.d.job.job.features, FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA));
    configured_free(&c);
}
END_TEST

/* All forward passes first, and experts. */
START_TEST(nanotron_has_engines_and_experts)
{
    struct configured c = read_config(
        "parallelism: {dp: 8, tp: 4, pp: 2, pp_engine: afab}\n"
        "tokens: {sequence_length: 4096, micro_batch_size: 2, batch_accumulation_per_replica: 16}\n"
        "model:\n  dtype: bfloat16\n  model_config: {hidden_size: 4096, intermediate_size: 14336, num_attention_heads: 32,\n"
        "    num_hidden_layers: 32, num_key_value_heads: 8, vocab_size: 50257,\n"
        "    moe_config: {num_experts: 16, top_k: 4, moe_intermediate_size: 1024}}\n");
    ck_assert_int_eq(c.d.job.layout.schedule, SCHEDULE_GPIPE);
    ck_assert(c.d.job.model.moe.experts == 16 && c.d.job.model.moe.top_k == 4 && c.d.job.model.moe.expert_ffn == 1024);
    configured_free(&c);
}
END_TEST

START_TEST(deepspeed_only_says_more_about_a_job)
{
    struct configured c =
        read_config("{\"train_batch_size\": 512, \"train_micro_batch_size_per_gpu\": \"auto\",\n"
                    " \"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true,\n"
                    "   \"offload_optimizer\": {\"device\": \"cpu\"}, \"offload_param\": {\"device\": \"cpu\"}},\n"
                    " \"bf16\": {\"enabled\": true}}");
    ck_assert(c.framework && c.framework->companion);
    ck_assert_int_eq(c.d.job.layout.zero, 2);
    ck_assert(offload_equal(&c.d.job.layout.offload, &offload_wholes[1]));
    ck_assert_int_eq(c.d.job.job.global_batch, 512);
    ck_assert_int_eq(c.d.job.job.precision, PRECISION_BF16);
    ck_assert_int_eq(c.d.job.layout.micro_batch, 0);
    ck_assert_int_eq(c.diags.n_items, 1);
    ck_assert(strstr(c.diags.items[0].text, "not with ZeRO stage 2"));
    configured_free(&c);
}
END_TEST

START_TEST(deepspeed_offloads_states_and_parameters)
{
    static const struct {
        const char *zero, *warning; /* NULL: none */
        const char *offload;
    } cases[] = {
        {"\"stage\": 3", NULL, "none"},
        {"\"stage\": 1, \"cpu_offload\": true", NULL, "optimizer"},
        {"\"stage\": 1, \"cpu_offload\": false", NULL, "none"},
        {"\"stage\": 3, \"offload_optimizer\": {\"device\": \"none\"}", NULL, "none"},
        {"\"stage\": 3, \"offload_optimizer\": {\"device\": \"nvme\"}", "on disks", "optimizer"},
        {"\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\"}, \"offload_param\": {\"device\": \"cpu\"}", NULL,
         "optimizer+parameters"},
        {"\"stage\": 3, \"offload_param\": {\"device\": \"cpu\"}", "without their optimizer states", "none"},
        {"\"stage\": 3, \"offload_param\": {\"device\": \"none\"}", NULL, "none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"zero_optimization\": {%s}}", cases[i].zero);
        struct configured c = read_config(text);
        struct offload meant = offloaded(cases[i].offload);
        ck_assert_msg(offload_equal(&c.d.job.layout.offload, &meant), "%s", text);
        ck_assert_msg(c.diags.n_items == (cases[i].warning != NULL), "%s", text);
        ck_assert(!cases[i].warning || strstr(c.diags.items[0].text, cases[i].warning));
        configured_free(&c);
    }
}
END_TEST

START_TEST(recipes_have_the_arguments_themselves)
{
    struct configured c =
        read_config("ENV_VARS: {}\nMODEL_ARGS:\n  --num-layers: 12\n  --hidden-size: 512\n  --num-attention-heads: 8\n"
                    "  --micro-batch-size: 4\n  --global-batch-size: 32\n  --seq-length: 1024\n  --bf16: true\n"
                    "  --swiglu: false\n  --vocab-size: 1024\n  --world-size: 8\n"
                    "  --recompute-granularity: selective\n  --recompute-modules: [mlp, layernorm]\n");
    expect_layout(&c, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=4,zero=0,sp=0,recompute=layernorm+mlp,schedule=none");
    ck_assert(!c.d.job.model.gated_mlp);
    configured_free(&c);
}
END_TEST

START_TEST(other_files_are_refused)
{
    static const char *const texts[] = {"a: 1\n", "model: x\ncluster: y\n", "[1, 2]", "{", "model: {a: 1}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct configured c = read_config(texts[i]);
        ck_assert_msg(c.status == STATUS_BAD_INPUT && c.diags.n_errors > 0, "%s", texts[i]);
        configured_free(&c);
    }
    ck_assert(framework_is_config("a.yaml", "", 0) && framework_is_config("a", "  {", 3));
    ck_assert(framework_is_config("-", "# x\n\nmodel:\n", 13) && framework_is_config("-", "a: 1", 4));
    ck_assert(!framework_is_config("a.sh", "echo {", 6) && !framework_is_config("-", "#!/bin/sh\n: x", 12));
    ck_assert(!framework_is_config("-", "A=1\n", 4) && !framework_is_config("-", "#", 1) && !framework_is_config("-", "", 0));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_config");
    TCase *all = tcase_create("all");
    tcase_add_test(all, nemo_has_the_same_words_in_other_places);
    tcase_add_test(all, nemo_switches_fp8_by_one_key);
    tcase_add_test(all, nemo_switches_offloading_by_one_key);
    tcase_add_test(all, nemo_has_its_optimizers_ways);
    tcase_add_test(all, nanotron_gives_the_batch_by_its_factors);
    tcase_add_test(all, nanotron_has_engines_and_experts);
    tcase_add_test(all, deepspeed_only_says_more_about_a_job);
    tcase_add_test(all, deepspeed_offloads_states_and_parameters);
    tcase_add_test(all, recipes_have_the_arguments_themselves);
    tcase_add_test(all, other_files_are_refused);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
