/* Configurations of PyTorch's stacks, by hand: Hugging Face's trainers, LLaMA-Factory, accelerate, FSDP and others' shapes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/traces/launch_told.h"
#include "traces/launch/frameworks/framework_config.h"
#include "traces/launch/frameworks/framework_keys.h"
#include "traces/launch/launch_shell.h"

static const feature_set TORCH = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA);

#define HF_LINE                                                                                                                  \
    "--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 --gradient_accumulation_steps 4 "              \
    "--max_length 8192 --bf16 --gradient_checkpointing"

START_TEST(trainers_of_hugging_face)
{
    struct told t =
        tell("base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 2\n"
             "gradient_accumulation_steps: 4\nbf16: auto\ngradient_checkpointing: true\nfsdp: [full_shard, auto_wrap]\n"
             "liger_fused_linear_cross_entropy: true\nadapter: lora\n",
             NULL, 8);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=2,zero=3,sp=0,recompute=full,schedule=none", 64);
    ck_assert_uint_eq(t.d.job.job.features, TORCH | FEATURE_BIT(FUSED_LINEAR_LOSS));
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_BF16);
    expect_warning(&t, "adapter");
    told_free(&t);

    t = tell("distributed_type: FSDP\nnum_processes: 16\nmixed_precision: bf16\n"
             "fsdp_config: {fsdp_sharding_strategy: SHARD_GRAD_OP}\n",
             "--model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 4 --gradient_accumulation_steps 2 "
             "--block_size 4096 --gradient_checkpointing --torch_compile true --output_dir out",
             0);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=4,zero=2,sp=0,recompute=full,schedule=none", 128);
    ck_assert_uint_eq(t.d.job.job.features, TORCH | FEATURE_BIT(COMPILE));
    told_free(&t);
}
END_TEST

/* An fp32 copy of the logits, unless a kernel or the compiler takes the loss in, whoever it is that shards. */
START_TEST(losses_of_hugging_face)
{
    static const char axolotl[] = "base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 2\n"
                                  "flash_attention: true\nfsdp: [full_shard, auto_wrap]\n",
                      factory[] = "model_name_or_path: meta-llama/Llama-3.1-8B\nfinetuning_type: full\ncutoff_len: 4096\n"
                                  "per_device_train_batch_size: 1\n",
                      accelerate[] = "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n",
                      compiled[] = "distributed_type: FSDP\nnum_processes: 8\ndynamo_config: {dynamo_backend: INDUCTOR}\n",
                      deepspeed[] = "train_micro_batch_size_per_gpu: auto\nzero_optimization: {stage: 3}\n";
    static const struct {
        const char *config, *more, *line;
        feature_set loss;
    } cases[] = {
        {axolotl, "", NULL, FEATURE_BIT(EAGER_LOSS)},
        {axolotl, "liger_fused_linear_cross_entropy: true\n", NULL, FEATURE_BIT(FUSED_LINEAR_LOSS)},
        {axolotl, "liger_cross_entropy: true\n", NULL, FEATURE_BIT(FUSED_LOSS)},
        {axolotl, "cut_cross_entropy: true\n", NULL, FEATURE_BIT(CUT_LOSS)},
        {axolotl, "cut_cross_entropy: true\nliger_fused_linear_cross_entropy: true\n", NULL, FEATURE_BIT(CUT_LOSS)},
        {axolotl, "torch_compile: true\n", NULL, 0},
        {factory, "", NULL, FEATURE_BIT(EAGER_LOSS)},
        {factory, "enable_liger_kernel: true\n", NULL, FEATURE_BIT(FUSED_LINEAR_LOSS)},
        {accelerate, "", HF_LINE, FEATURE_BIT(EAGER_LOSS)},
        {accelerate, "", HF_LINE " --use_liger_kernel true", FEATURE_BIT(FUSED_LINEAR_LOSS)},
        {compiled, "", HF_LINE, 0},
        {deepspeed, "", HF_LINE, FEATURE_BIT(EAGER_LOSS)},
        {NULL, "", HF_LINE " --torch_compile true", 0},
        {NULL, "", HF_LINE, FEATURE_BIT(EAGER_LOSS)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s", cases[i].config ? cases[i].config : "", cases[i].more);
        struct told t = tell(cases[i].config ? text : NULL, cases[i].line, 8);
        ck_assert_msg(t.diags.n_errors == 0, "%s", t.diags.n_items ? t.diags.items[0].text : "");
        ck_assert_msg((t.d.job.job.features & FEATURES_LOSS) == cases[i].loss, "case %zu: %x", i, (unsigned)t.d.job.job.features);
        told_free(&t);
    }
}
END_TEST

/* The second FSDP of torch has no strategies: it shards unless weights are kept behind the forward pass. */
START_TEST(second_fsdp)
{
    static const struct {
        const char *config, *line;
        int gpus;
        const char *layout;
        int64_t batch;
    } cases[] = {
        {"distributed_type: FSDP\nnum_processes: 16\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: true}\n", HF_LINE,
         0, "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=1,zero=3,sp=0,recompute=full,schedule=none", 64},
        {"distributed_type: FSDP\nnum_processes: 16\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: false}\n",
         HF_LINE, 0, "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=1,zero=2,sp=0,recompute=full,schedule=none", 64},
        {"distributed_type: FSDP\nnum_processes: 16\nfsdp_config: {fsdp_version: 2}\nparallelism_config: {\n"
         "  parallelism_config_dp_replicate_size: 2, parallelism_config_dp_shard_size: 4, parallelism_config_cp_size: 2}\n",
         HF_LINE, 0, "tp=1,cp=2,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=3,shard=8,sp=0,recompute=full,schedule=none", 32},
        {"base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 2\nfsdp_version: 2\n"
         "fsdp_config: {reshard_after_forward: true}\ndp_shard_size: 4\ndp_replicate_size: 2\n",
         NULL, 8, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=2,zero=3,shard=4,sp=0,recompute=none,schedule=none", 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell(cases[i].config, cases[i].line, cases[i].gpus);
        expect_layout(&t, cases[i].layout, cases[i].batch);
        told_free(&t);
    }
}
END_TEST

/* LLaMA-Factory recomputes layers by default, and knows the DeepSpeed configurations that it ships. */
START_TEST(factory_by_its_keys)
{
    struct told t = tell("model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: full\ncutoff_len: 4096\n"
                         "deepspeed: examples/deepspeed/ds_z3_offload_config.json\nper_device_train_batch_size: 1\n"
                         "gradient_accumulation_steps: 2\nbf16: true\nflash_attn: fa2\nenable_liger_kernel: true\n"
                         "optim: adamw_torch\n",
                         NULL, 8);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=3,sp=0,recompute=full,schedule=none,offload=optimizer+parameters",
                  16);
    ck_assert_uint_eq(t.d.job.job.features, TORCH | FEATURE_BIT(FUSED_LINEAR_LOSS));
    told_free(&t);
    t = tell("model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: lora\nper_device_train_batch_size: 1\n"
             "optim: adamw_8bit\ndisable_gradient_checkpointing: true\n",
             NULL, 8);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=0,sp=0,recompute=none,schedule=none", 8);
    ck_assert_int_eq(t.d.job.job.seq_len, 2048);
    ck_assert_int_eq(t.d.job.job.adapter.rank, 8); /* its defaults */
    ck_assert_uint_eq(t.d.job.job.adapter.targets, (1 << N_ADAPTER_TARGETS) - 1);
    ck_assert_int_eq(t.d.job.job.moment_precision, PRECISION_FP8);
    told_free(&t);
}
END_TEST

/* LLaMA-Factory's neat packing, Axolotl's and llm-foundry's sequence ids mask attention between samples; LLaMA-Factory's plain
 * packing does not. */
#define FOUNDRY(ids)                                                                                                             \
    "max_seq_len: 2048\nmodel: {name: mpt_causal_lm, d_model: 4096, n_heads: 32, n_layers: 32, vocab_size: 50368,\n"             \
    "  attn_config: {attn_impl: flash, attn_uses_sequence_id: " ids "}}\noptimizer: {name: decoupled_adamw}\n"                   \
    "global_train_batch_size: 64\ndevice_train_microbatch_size: 8\nprecision: amp_bf16\nfsdp_config: {}\n"
START_TEST(samples_attend_to_themselves)
{
    static const struct {
        const char *keys;
        bool masked;
    } cases[] = {
        {"model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: full\nneat_packing: true\n", true},
        {"model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: full\npacking: true\n", false},
        {"base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 2\nsample_packing: true\n", true},
        {"base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 2\nsample_packing: false\n", false},
        {FOUNDRY("true"), true},
        {FOUNDRY("false"), false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell(cases[i].keys, NULL, 8);
        if (cases[i].masked)
            expect_warning(&t, "attention is masked between documents");
        else
            expect_quiet(&t, "between documents");
        told_free(&t);
    }
}
END_TEST

/* MPT of llm-foundry, and OLMo, whose width of an MLP counts both halves. */
START_TEST(shapes_of_others)
{
    struct told t =
        tell("max_seq_len: 2048\nmodel: {name: mpt_causal_lm, d_model: 4096, n_heads: 32, n_layers: 32, no_bias: true,\n"
             "  max_seq_len: \"${max_seq_len}\", vocab_size: 50368, attn_config: {attn_impl: flash, alibi: true}}\n"
             "optimizer: {name: decoupled_adamw}\nglobal_train_batch_size: 1024\ndevice_train_microbatch_size: 8\n"
             "precision: amp_bf16\nfsdp_config: {sharding_strategy: FULL_SHARD, mixed_precision: PURE,\n"
             "  activation_checkpointing: true}\n",
             NULL, 64);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=64,ep=1,mb=8,zero=3,sp=0,recompute=full,schedule=none", 1024);
    ck_assert(t.d.job.model.ffn_hidden == 16384 && !t.d.job.model.linear_bias && t.d.job.model.position == POSITION_ALIBI);
    ck_assert_int_eq(t.d.job.job.gradient_precision, PRECISION_BF16);
    told_free(&t);
    t = tell("model: {d_model: 4096, n_heads: 32, n_layers: 32, mlp_hidden_size: 22016, weight_tying: false, rope: true,\n"
             "  layer_norm_type: rms, attention_layer_norm: true, activation_type: swiglu, max_sequence_length: 4096,\n"
             "  vocab_size: 100278, embedding_size: 100352}\noptimizer: {name: adamw}\nglobal_train_batch_size: 1024\n"
             "device_train_microbatch_size: 2\nprecision: amp_bf16\nfsdp: {sharding_strategy: HYBRID_SHARD,\n"
             "  hybrid_sharding_num_model_replicas: 4}\nactivation_checkpointing: one_in_four\nfused_loss: true\n",
             NULL, 256);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=256,ep=1,mb=2,zero=3,shard=64,sp=0,recompute=full:every4,schedule=none", 1024);
    ck_assert(t.d.job.model.ffn_hidden == 11008 && t.d.job.model.gated_mlp && t.d.job.model.vocab == 100352);
    ck_assert(t.d.job.model.position == POSITION_ROTARY && t.d.job.model.qk_norm);
    told_free(&t);
}
END_TEST

/* A width by its ratio, one head of keys and values, a compiler without options. */
START_TEST(shapes_of_olmo)
{
    struct told t = tell("model: {d_model: 2048, n_heads: 16, n_layers: 16, mlp_ratio: 8, weight_tying: true, rope: true,\n"
                         "  activation_type: swiglu, max_sequence_length: 2048, vocab_size: 50304, multi_query_attention: true}\n"
                         "device_train_microbatch_size: 2\nglobal_train_batch_size: 64\nprecision: amp_bf16\n"
                         "compile: {fullgraph: false}\n",
                         NULL, 8);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=2,zero=3,sp=0,recompute=none,schedule=none", 64);
    const struct transformer *m = &t.d.job.model;
    ck_assert(m->ffn_hidden == 8192 && m->gated_mlp && m->kv_heads == 1 && m->tied_embeddings);
    ck_assert(t.d.job.job.features & FEATURE_BIT(COMPILE));
    ck_assert_uint_eq(t.diags.n_items, 0);
    told_free(&t);
}
END_TEST

/* Keys that a command sets beside LLaMA-Factory's file are keys, though one of them is a trainer's flag elsewhere. */
START_TEST(factory_by_its_command)
{
    struct told t = tell("model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: full\nbf16: true\n"
                         "per_device_train_batch_size: 1\ncutoff_len: 2048\n",
                         "llamafactory-cli train lf.yaml cutoff_len=4096 per_device_train_batch_size=2", 8);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=2,zero=0,sp=0,recompute=full,schedule=none", 16);
    ck_assert_int_eq(t.d.job.job.seq_len, 4096);
    told_free(&t);
}
END_TEST

/* FSDP recomputes layers itself on request. */
START_TEST(fsdp_repeats_layers)
{
    static const char *const keys[] = {"fsdp_config: {activation_checkpointing: true}",
                                       "fsdp_config: {fsdp_activation_checkpointing: true}"};
    for (int i = 0; i < 2; i++) {
        char text[256];
        snprintf(text, sizeof text, "base_model: meta-llama/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 1\n%s\n",
                 keys[i]);
        struct told t = tell(text, NULL, 8);
        ck_assert_int_eq(t.d.job.layout.recompute.what, RECOMPUTE_FULL);
        told_free(&t);
    }
}
END_TEST

/* Names that are put together otherwise than their makers'. */
START_TEST(names_of_models)
{
    static const struct {
        const char *text;
        int layers;
    } cases[] = {
        {"trainer: {devices: 8, num_nodes: 1, strategy: {tensor_model_parallel_size: 4}}\n"
         "model: {config: {_target_: nemo.collections.llm.Llama4Experts16Config}}\ndata: {micro_batch_size: 1, seq_length: "
         "4096}\n",
         48},
        {"trainer: {devices: 8, num_nodes: 1, strategy: {tensor_model_parallel_size: 4}}\n"
         "model: {config: {_target_: nemo.collections.llm.Llama31Config405B}}\ndata: {micro_batch_size: 1, seq_length: 4096}\n",
         126},
        /* a class, and one of its fields that is otherwise */
        {"trainer: {devices: 8, num_nodes: 1, strategy: {tensor_model_parallel_size: 4}}\n"
         "model: {config: {_target_: nemo.collections.llm.Llama3Config8B, num_layers: 16}}\n"
         "data: {micro_batch_size: 1, seq_length: 4096}\n",
         16},
        {"[model]\nname = \"deepseek_v3\"\nflavor = \"16B\"\n[training]\nseq_len = 4096\nlocal_batch_size = 4\n", 27},
        {"[model]\nname = \"deepseek_v3\"\nflavor = \"236B\"\n[training]\nseq_len = 4096\nlocal_batch_size = 4\n", 60},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell(cases[i].text, NULL, 8);
        ck_assert_msg(t.diags.n_errors == 0 && t.d.n_missing == 0, "%zu", i);
        ck_assert_msg(t.d.job.model.layers == cases[i].layers, "%zu: %d", i, t.d.job.model.layers);
        told_free(&t);
    }
}
END_TEST

/* What of MPT's shape its makers leave out of most files. */
START_TEST(shapes_of_mpt)
{
    struct told t =
        tell("max_seq_len: 2048\nmodel: {name: mpt_causal_lm, d_model: 4096, n_heads: 32, n_layers: 32, expansion_ratio: 2,\n"
             "  vocab_size: 50368, attn_config: {attn_type: multiquery_attention, qk_ln: true, sliding_window_size: 512}}\n"
             "device_train_microbatch_size: 8\nprecision: amp_bf16\n",
             NULL, 8);
    const struct transformer *m = &t.d.job.model;
    ck_assert(m->ffn_hidden == 8192 && m->kv_heads == 1 && m->qk_norm && m->window == 512);
    ck_assert(t.d.job.job.features & FEATURE_BIT(FUSED_LOSS));
    ck_assert_uint_eq(t.diags.n_items, 0);
    told_free(&t);
    t = tell("max_seq_len: 2048\nmodel: {name: mpt_causal_lm, d_model: 4096, n_heads: 32, n_layers: 32, vocab_size: 50368,\n"
             "  loss_fn: torch_crossentropy}\ndevice_train_microbatch_size: 8\nprecision: amp_bf16\n",
             NULL, 8);
    ck_assert(!(t.d.job.job.features & FEATURE_BIT(FUSED_LOSS)) && t.d.job.model.ffn_hidden == 16384);
    told_free(&t);
}
END_TEST

/* Shards within a node, or among a given number of neighbours, and replicas of them. */
START_TEST(hybrid_shards)
{
#define HYBRID "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: %s}\nmixed_precision: bf16\nnum_processes: 16\n%s"
    static const struct {
        const char *strategy, *keys, *layout;
        const char *warning; /* NULL: none */
    } cases[] = {
        {"HYBRID_SHARD", "num_machines: 2\n", "zero=3,shard=8,sp=0", NULL},
        {"4", "num_machines: 4\n", "zero=3,shard=4,sp=0", NULL},
        {"HYBRID_SHARD_ZERO2", "num_machines: 2\n", "zero=2,shard=8,sp=0", NULL},
        {"HYBRID_SHARD", "", "zero=3,shard=8,sp=0", "whose number of GPUs is not specified; msim assumes 8"},
        {"HYBRID_SHARD", "num_machines: 1\n", "zero=3,sp=0", NULL},
        {"FULL_SHARD", "num_machines: 2\n", "zero=3,sp=0", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512], layout[256];
        snprintf(text, sizeof text, HYBRID, cases[i].strategy, cases[i].keys);
        snprintf(layout, sizeof layout, "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=1,%s,recompute=none,schedule=none", cases[i].layout);
        struct told t = tell(text,
                             "accelerate launch t.py --model_name_or_path meta-llama/Meta-Llama-3-8B "
                             "--per_device_train_batch_size 1 --max_seq_length 4096 --bf16 true",
                             0);
        expect_layout(&t, layout, 16);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
    static const struct {
        int size;
        const char *layout, *warning;
    } mics[] = {{4, "zero=3,shard=4,sp=0", NULL},
                {16, "zero=3,sp=0", NULL},
                {3, "zero=3,sp=0", "weights are sharded among 3 ranks, which do not divide 16; msim assumes all"}};
    for (size_t i = 0; i < sizeof mics / sizeof mics[0]; i++) {
        char text[256], layout[256];
        snprintf(text, sizeof text, "{\"zero_optimization\": {\"stage\": 3, \"mics_shard_size\": %d}}", mics[i].size);
        snprintf(layout, sizeof layout, "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=1,%s,recompute=none,schedule=none", mics[i].layout);
        struct told t = tell(text,
                             "t.py --model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 1 "
                             "--max_seq_length 4096 --bf16 true",
                             16);
        expect_layout(&t, layout, 16);
        if (mics[i].warning)
            expect_warning(&t, mics[i].warning);
        told_free(&t);
    }
}
END_TEST

/* Other kinds of accelerate's. */
START_TEST(kinds_of_accelerate)
{
    static const struct {
        const char *text, *layout;
        int64_t batch;
    } cases[] = {
        {"distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 16\nnum_machines: 2\n",
         "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=1,zero=0,sp=0,recompute=none,schedule=none", 16},
        {"distributed_type: MEGATRON_LM\nmixed_precision: bf16\nnum_processes: 16\nmegatron_lm_config: {megatron_lm_tp_degree: "
         "2,\n"
         "  megatron_lm_pp_degree: 4, megatron_lm_num_micro_batches: 8, megatron_lm_recompute_activations: true,\n"
         "  megatron_lm_sequence_parallelism: true, megatron_lm_use_distributed_optimizer: true}\n",
         "tp=2,cp=1,pp=4,vpp=1,dp=2,ep=1,mb=1,zero=1,sp=1,recompute=selective,schedule=1f1b", 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell(cases[i].text,
                             "accelerate launch t.py --model_name_or_path meta-llama/Meta-Llama-3-8B "
                             "--per_device_train_batch_size 1 --max_seq_length 4096 --bf16 true",
                             0);
        expect_layout(&t, cases[i].layout, cases[i].batch);
        ck_assert_msg(t.diags.n_items == 0, "%s", t.diags.n_items ? t.diags.items[0].text : "");
        told_free(&t);
    }
}
END_TEST

/* Arguments of accelerate launch without a file. */
START_TEST(flags_of_accelerate_launch)
{
    static const struct {
        const char *flags, *layout;
        enum precision gradients;
    } cases[] = {
        {"--use_fsdp", "zero=3,sp=0,recompute=none,schedule=none", PRECISION_FP32},
        {"--use_fsdp false", "zero=0,sp=0,recompute=none,schedule=none", PRECISION_FP32},
        {"--use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP", "zero=2,sp=0,recompute=none,schedule=none", PRECISION_FP32},
        {"--use_fsdp --fsdp_version 2 --fsdp_reshard_after_forward true --fsdp_activation_checkpointing true",
         "zero=3,sp=0,recompute=full,schedule=none", PRECISION_FP32},
        {"--use_fsdp --fsdp_version 2 --fsdp_reshard_after_forward false", "zero=2,sp=0,recompute=none,schedule=none",
         PRECISION_FP32},
        {"--use_deepspeed", "zero=2,sp=0,recompute=none,schedule=none", PRECISION_BF16},
        {"--use_deepspeed --zero_stage 3 --offload_optimizer_device cpu --offload_param_device cpu",
         "zero=3,sp=0,recompute=none,schedule=none,offload=optimizer+parameters", PRECISION_BF16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[512], layout[256];
        snprintf(line, sizeof line,
                 "accelerate launch --num_processes 16 --mixed_precision bf16 %s t.py --model_name_or_path "
                 "meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 1 --max_seq_length 4096",
                 cases[i].flags);
        snprintf(layout, sizeof layout, "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=1,%s", cases[i].layout);
        struct told t = tell(NULL, line, 0);
        expect_layout(&t, layout, 16);
        ck_assert_int_eq(t.d.job.job.gradient_precision, cases[i].gradients);
        ck_assert_msg(t.diags.n_items == 0, "%s", t.diags.n_items ? t.diags.items[0].text : "");
        told_free(&t);
    }
}
END_TEST

/* In a list, in one text; unknown parts of either are reported. */
START_TEST(fsdp_of_trainers)
{
    static const struct {
        const char *fsdp, *layout, *warning;
    } cases[] = {
        {"[full_shard, auto_wrap]", "zero=3,sp=0,recompute=none,schedule=none", NULL},
        {"full_shard auto_wrap", "zero=3,sp=0,recompute=none,schedule=none", NULL},
        {"[full_shard, offload]", "zero=3,sp=0,recompute=none,schedule=none,offload=optimizer+parameters", NULL},
        {"full_shard offload auto_wrap", "zero=3,sp=0,recompute=none,schedule=none,offload=optimizer+parameters", NULL},
        {"no_shard", "zero=0,sp=0,recompute=none,schedule=none", NULL},
        {"hybrid_shard_zero2 auto_wrap", "zero=2,sp=0,recompute=none,schedule=none", NULL},
        {"[shard_grad_op, wibble]", "zero=2,sp=0,recompute=none,schedule=none", "fsdp=wibble is unknown to msim and left out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512], layout[256];
        snprintf(text, sizeof text,
                 "model_name_or_path: meta-llama/Meta-Llama-3-8B\nper_device_train_batch_size: 1\nbf16: true\nfsdp: %s\n"
                 "block_size: 4096\n",
                 cases[i].fsdp);
        snprintf(layout, sizeof layout, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,%s", cases[i].layout);
        struct told t = tell(text, NULL, 8);
        expect_layout(&t, layout, 8);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

/* Composer's and OLMo's budgets: a number and its unit; batches of 16 sequences of 2,048 tokens. */
START_TEST(budgets_in_units)
{
    static const struct {
        const char *duration;
        double tokens; /* 0: not said */
        const char *warning;
    } cases[] = {
        {"2e12T", 2e12, NULL},
        {"1e12T", 1e12, NULL},
        {"5000000tok", 5e6, NULL},
        {"739_328", 739328.0 * 16 * 2048, NULL},
        {"100ba", 100.0 * 16 * 2048, NULL},
        {"90sp", 90.0 * 2048, NULL},
        {"1ep", 0, NULL},
        {"2e12X", 0, "max_duration=2e12X is unknown to msim and left out"},
        {"T", 0, "max_duration=T is unknown"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "max_seq_len: 2048\nmax_duration: %s\nmodel: {name: mpt_causal_lm, d_model: 4096, n_heads: 32, n_layers: 32,\n"
                 "  vocab_size: 50368}\nglobal_train_batch_size: 16\ndevice_train_microbatch_size: 2\nprecision: amp_bf16\n",
                 cases[i].duration);
        struct told t = tell(text, NULL, 8);
        ck_assert_msg(t.diags.n_errors == 0, "%s", t.diags.n_items ? t.diags.items[0].text : "");
        ck_assert_double_eq_tol(t.d.job.job.tokens, cases[i].tokens, 0.5);
        if (cases[i].warning)
            expect_warning_at(&t, cases[i].warning, 2, 15);
        else
            expect_quiet(&t, "max_duration");
        told_free(&t);
    }
}
END_TEST

/* Flags that nobody knows, and which of them are slips. */
START_TEST(slips)
{
    struct told t =
        tell(NULL, "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --tensor-model-paralel-size 8 --zz 3", 8);
    ck_assert_int_eq(t.diags.n_errors, 1);
    expect_warning(&t, "--tensor-model-paralel-size is no argument; did you mean --tensor-model-parallel-size?");
    expect_warning(&t, "left out: --zz");
    told_free(&t);
    t = tell("distributed_type: FSDP\nnum_processes: 16\n", HF_LINE " --num-layer 3", 0); /* a program of its own */
    ck_assert_int_eq(t.diags.n_errors, 0);
    expect_warning(&t, "--num-layer (did you mean --num-layers?)");
    told_free(&t);
}
END_TEST
int main(void)
{
    Suite *suite = suite_create("launch_torch");
    TCase *tests = tcase_create("configurations");
    tcase_add_test(tests, trainers_of_hugging_face);
    tcase_add_test(tests, losses_of_hugging_face);
    tcase_add_test(tests, second_fsdp);
    tcase_add_test(tests, factory_by_its_keys);
    tcase_add_test(tests, samples_attend_to_themselves);
    tcase_add_test(tests, shapes_of_others);
    tcase_add_test(tests, shapes_of_olmo);
    tcase_add_test(tests, factory_by_its_command);
    tcase_add_test(tests, fsdp_repeats_layers);
    tcase_add_test(tests, names_of_models);
    tcase_add_test(tests, shapes_of_mpt);
    tcase_add_test(tests, hybrid_shards);
    tcase_add_test(tests, kinds_of_accelerate);
    tcase_add_test(tests, flags_of_accelerate_launch);
    tcase_add_test(tests, fsdp_of_trainers);
    tcase_add_test(tests, budgets_in_units);
    tcase_add_test(tests, slips);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
