/* Configurations of PyTorch's stacks, of NeMo 2 and Megatron-Bridge, and keys that a command line sets, by hand. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/traces/launch_told.h"
#include "traces/launch/framework_config.h"
#include "traces/launch/framework_keys.h"
#include "traces/launch/launch_shell.h"
#include "traces/launch/megatron_log.h"

#define TITAN "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\nlocal_batch_size = 4\n"
static const feature_set TORCH = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA);

/* Without a key: FSDP over all, a layer in two repeated; the batch is each replica's. */
START_TEST(titan_unasked)
{
    struct told t = tell(TITAN, NULL, 64);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=64,ep=1,mb=4,zero=3,sp=0,recompute=full:every2,schedule=none", 256);
    ck_assert_int_eq(t.d.job.model.layers, 32);
    ck_assert_int_eq(t.d.job.model.vocab, 128256);
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_BF16);
    ck_assert_int_eq(t.d.job.job.gradient_precision, PRECISION_FP32);
    ck_assert_uint_eq(t.d.job.job.features, TORCH);
    told_free(&t);
}
END_TEST

START_TEST(titan_by_its_keys)
{
    static const struct {
        const char *keys;
        int gpus;
        const char *layout;
        int64_t batch;
    } cases[] = {
        {"[parallelism]\ntensor_parallel_degree = 8\n[activation_checkpoint]\nmode = \"full\"", 64,
         "tp=8,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=4,zero=3,sp=1,recompute=full,schedule=none", 32},
        {"[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\ncontext_parallel_degree = 2\n"
         "[activation_checkpoint]\nmode = \"none\"",
         0, "tp=1,cp=2,cp_comm=all_gather,pp=1,vpp=1,dp=8,ep=1,mb=4,zero=3,shard=8,sp=0,recompute=none,schedule=none", 32},
        {"[parallelism]\ndata_parallel_replicate_degree = 8\ndata_parallel_shard_degree = 1\n"
         "[activation_checkpoint]\nmode = \"none\"",
         0, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=4,zero=0,sp=0,recompute=none,schedule=none", 32},
        {"[parallelism]\ncontext_parallel_degree = 4\ncontext_parallel_rotate_method = \"alltoall\"\n"
         "[activation_checkpoint]\nmode = \"none\"",
         8, "tp=1,cp=4,pp=1,vpp=1,dp=2,ep=1,mb=4,zero=3,sp=0,recompute=none,schedule=none", 8},
        {"[parallelism]\nfsdp_reshard_after_forward = \"never\"\n[activation_checkpoint]\nmode = \"selective\"\n"
         "selective_ac_option = \"op\"",
         8, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=4,zero=2,sp=0,recompute=selective,schedule=none", 32},
        {"[parallelism]\npipeline_parallel_degree = 4\n[activation_checkpoint]\nmode = \"none\"", 32,
         "tp=1,cp=1,pp=4,vpp=1,dp=8,ep=1,mb=1,zero=2,sp=0,recompute=none,schedule=1f1b", 32},
        {"[parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
         "pipeline_parallel_microbatch_size = 2\n[activation_checkpoint]\nmode = \"none\"",
         32, "tp=1,cp=1,pp=4,vpp=2,dp=8,ep=1,mb=2,zero=2,sp=0,recompute=none,schedule=interleaved", 32},
        {"[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"interleaved1f1b\"\n"
         "pipeline_parallel_layers_per_stage = 5\n[activation_checkpoint]\nmode = \"none\"", /* 34 of 5: seven, no multiple */
         16, "tp=1,cp=1,pp=2,vpp=2,dp=8,ep=1,mb=1,zero=2,sp=0,recompute=none,schedule=interleaved", 32},
        {"[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
         "pipeline_parallel_layers_per_stage = 4\n[activation_checkpoint]\nmode = \"none\"", /* 34 of 4: nine; of 6: six */
         16, "tp=1,cp=1,pp=2,vpp=2,dp=8,ep=1,mb=1,zero=2,sp=0,recompute=none,schedule=interleaved", 32},
        {"[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"Interleaved1F1B\"\n"
         "pipeline_parallel_layers_per_stage = 6\n[activation_checkpoint]\nmode = \"none\"",
         16, "tp=1,cp=1,pp=2,vpp=3,dp=8,ep=1,mb=1,zero=2,sp=0,recompute=none,schedule=interleaved", 32},
        {"[parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_schedule = \"ZBVZeroBubble\"\n"
         "[activation_checkpoint]\nmode = \"none\"",
         32, "tp=1,cp=1,pp=4,vpp=2,dp=8,ep=1,mb=1,zero=2,sp=0,recompute=none,schedule=zb-v", 32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s\n", TITAN, cases[i].keys);
        struct told t = tell(text, NULL, cases[i].gpus);
        expect_layout(&t, cases[i].layout, cases[i].batch);
        told_free(&t);
    }
}
END_TEST

/* The keys of 2024. */
START_TEST(titan_in_its_first_year)
{
    struct told t = tell("[model]\nname = \"llama3\"\nflavor = \"70B\"\n"
                         "[training]\nseq_len = 8192\nbatch_size = 8\ndata_parallel_shard_degree = -1\n"
                         "tensor_parallel_degree = 8\ncompile = true\n"
                         "[experimental]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"1F1B\"\n"
                         "pipeline_parallel_microbatches = 4\nenable_async_tensor_parallel = true\n"
                         "[activation_checkpoint]\nmode = 'full'\n[float8]\nenable_float8_linear = true\n",
                         NULL, 64);
    expect_layout(&t, "tp=8,cp=1,pp=2,vpp=1,dp=4,ep=1,mb=2,zero=2,sp=1,recompute=full,schedule=1f1b", 32);
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_FP8);
    ck_assert_uint_eq(t.d.job.job.features, TORCH | FEATURE_BIT(COMPILE) | FEATURE_BIT(ASYNC_TP));
    told_free(&t);
}
END_TEST

START_TEST(titan_in_eight_bits)
{
    static const struct {
        const char *key;
        enum precision precision;
    } cases[] = {{"", PRECISION_BF16},
                 {"converters = [\"float8\"]", PRECISION_FP8},
                 {"converters = [\"quantize.linear.float8\", \"quantize.grouped_mm.float8\"]", PRECISION_FP8},
                 {"converters = [\"mx\"]", PRECISION_MXFP8},
                 {"converters = [\"quantize.linear.mx\"]", PRECISION_MXFP8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "[training]\nseq_len = 4096\nlocal_batch_size = 1\n[model]\nname = \"llama3\"\nflavor = \"8B\"\n%s\n",
                 cases[i].key);
        struct told t = tell(text, NULL, 8);
        ck_assert_int_eq(t.d.job.job.precision, cases[i].precision);
        told_free(&t);
    }
}
END_TEST

START_TEST(titan_mistakes)
{
    struct told t = tell("[model]\nname = \"llama3\"\nflavor = \"9B\"\n[training]\nseq_len = 4096\nlocal_batch_size = 1\n"
                         "[parallelism]\ndata_parallel_shard_degree = 3\n",
                         NULL, 8);
    ck_assert_uint_eq(t.diags.n_errors, 2);
    expect_warning(&t, "unknown model 'llama3-9B'");
    expect_warning(&t, "are not the 8 replicas");
    told_free(&t);
}
END_TEST

/* On the command line, with dashes or without; what comes last wins. */
START_TEST(keys_that_a_command_sets)
{
    struct told t =
        tell(TITAN,
             "--parallelism.tensor_parallel_degree 2 --parallelism.tensor_parallel_degree=4 --optimizer.lr 3e-4 "
             "--activation_checkpoint.mode full --model.flavor=70B --model.name llama3 --training.global_batch_size 64",
             32);
    expect_layout(&t, "tp=4,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=4,zero=3,sp=1,recompute=full,schedule=none", 64);
    ck_assert_int_eq(t.d.job.model.layers, 80);
    expect_warning(&t, "--optimizer.lr"); /* a note: nobody knows it */
    told_free(&t);
}
END_TEST

#define NEMO2                                                                                                                    \
    "trainer:\n  devices: 8\n  num_nodes: 8\n  max_steps: 100\n"                                                                 \
    "  strategy: {tensor_model_parallel_size: 4, pipeline_model_parallel_size: 4, virtual_pipeline_model_parallel_size: 5,\n"    \
    "    sequence_parallel: true, ddp: {overlap_grad_reduce: true, overlap_param_gather: true, grad_reduce_in_fp32: false}}\n"   \
    "  plugins: {_target_: nemo.Precision, precision: bf16-mixed, fp8: hybrid, fp8_recipe: delayed}\n"                           \
    "  callbacks:\n  - {_target_: nemo.TimingCallback}\n  - {_target_: nemo.Overlap, tp_comm_overlap: true}\n"                   \
    "data: {global_batch_size: 128, micro_batch_size: 1, seq_length: 8192}\n"                                                    \
    "optim: {config: {optimizer: adam, use_distributed_optimizer: true}}\n"

START_TEST(nemo2_by_class)
{
    struct told t = tell(NEMO2 "model: {config: {_target_: nemo.collections.llm.gpt.model.llama.Llama3Config70B}}\n", NULL, 0);
    expect_layout(&t, "tp=4,cp=1,pp=4,vpp=5,dp=4,ep=1,mb=1,zero=1,sp=1,recompute=none,schedule=interleaved", 128);
    ck_assert_int_eq(t.d.job.gpus, 64);
    ck_assert_int_eq(t.d.job.model.layers, 80);
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_FP8);
    ck_assert_int_eq(t.d.job.job.gradient_precision, PRECISION_BF16);
    ck_assert_uint_eq(t.d.job.job.features, FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(TP_OVERLAP) |
                                                FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA) |
                                                FEATURE_BIT(FUSED_LOSS));
    told_free(&t);
    t = tell(NEMO2 "model: {config: {_target_: x.Llama31Config405B}}\n",
             "trainer.strategy.pipeline_model_parallel_size=8 ++trainer.num_nodes=36 "
             "trainer.strategy.virtual_pipeline_model_parallel_size=7 model.config.recompute_granularity=full",
             0);
    expect_layout(&t, "tp=4,cp=1,pp=8,vpp=7,dp=9,ep=1,mb=1,zero=1,sp=1,recompute=full,schedule=interleaved", 128);
    ck_assert_int_eq(t.d.job.model.layers, 126);
    told_free(&t);
}
END_TEST

/* A shape that is there wins over the class. */
START_TEST(nemo2_by_shape)
{
    struct told t =
        tell(NEMO2 "model: {config: {_target_: my.OwnConfig, num_layers: 20, hidden_size: 1024, num_attention_heads: 16,\n"
                   "  num_query_groups: 4, gated_linear_unit: true, normalization: RMSNorm, add_bias_linear: false,\n"
                   "  vocab_size: 32000, ffn_hidden_size: 4096, position_embedding_type: rope,\n"
                   "  share_embeddings_and_output_weights: false, cross_entropy_loss_fusion: false}}\n",
             NULL, 0);
    expect_layout(&t, "tp=4,cp=1,pp=4,vpp=5,dp=4,ep=1,mb=1,zero=1,sp=1,recompute=none,schedule=interleaved", 128);
    const struct transformer *m = &t.d.job.model;
    ck_assert(m->layers == 20 && m->kv_heads == 4 && m->gated_mlp && !m->tied_embeddings && !m->linear_bias);
    ck_assert_uint_eq(t.d.job.job.features & FEATURES_LOSS, 0);
    told_free(&t);
}
END_TEST

START_TEST(bridge_by_its_container)
{
    struct told t =
        tell("train: {global_batch_size: 512, micro_batch_size: 2, train_iters: 100}\n"
             "model: {num_layers: 48, hidden_size: 2048, ffn_hidden_size: 6144, num_attention_heads: 32,\n"
             "  num_query_groups: 4, kv_channels: 128, gated_linear_unit: true, normalization: RMSNorm,\n"
             "  add_bias_linear: false, qk_layernorm: true, position_embedding_type: rope, num_moe_experts: 128,\n"
             "  moe_router_topk: 8, moe_ffn_hidden_size: 768, moe_grouped_gemm: true, vocab_size: 151936,\n"
             "  moe_token_dispatcher_type: alltoall, share_embeddings_and_output_weights: false, hidden_dropout: 0.0,\n"
             "  cross_entropy_loss_fusion: true, cross_entropy_fusion_impl: linear, tensor_model_parallel_size: 2,\n"
             "  pipeline_model_parallel_size: 1, expert_model_parallel_size: 4, expert_tensor_parallel_size: 1,\n"
             "  moe_expert_capacity_factor: 1.5, moe_pad_expert_input_to_capacity: true, moe_token_drop_policy: probs,\n"
             "  moe_router_force_load_balancing: true,\n"
             "  virtual_pipeline_model_parallel_size: null, sequence_parallel: true, recompute_granularity: null}\n"
             "ddp: {use_distributed_optimizer: true, overlap_grad_reduce: true, overlap_param_gather: true,\n"
             "  grad_reduce_in_fp32: true}\n"
             "dataset: {sequence_length: 4096}\ncomm_overlap: {tp_comm_overlap: true}\n"
             "mixed_precision: bf16_with_mxfp8_mixed\noptimizer: {optimizer: adam}\n",
             NULL, 16);
    expect_layout(&t, "tp=2,cp=1,pp=1,vpp=1,dp=8,ep=4,mb=2,zero=1,sp=1,recompute=none,schedule=none", 512);
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_MXFP8);
    ck_assert_int_eq(t.d.job.job.gradient_precision, PRECISION_FP32);
    ck_assert_uint_eq(t.d.job.job.features & FEATURES_LOSS, FEATURE_BIT(CUT_LOSS));
    ck_assert_int_eq(t.d.job.model.moe.experts, 128);
    ck_assert(t.d.job.model.qk_norm);
    const struct expert_load *load = &t.d.job.job.load;
    ck_assert(load->padded && load->capacity >= 1.5 && load->capacity <= 1.5 && load->busiest >= 1 && load->busiest <= 1);
    told_free(&t);
}
END_TEST

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

#define HF_LINE                                                                                                                  \
    "--model_name_or_path meta-llama/Llama-3.1-8B --per_device_train_batch_size 1 --gradient_accumulation_steps 4 "              \
    "--max_length 8192 --bf16 --gradient_checkpointing"

/* DeepSpeed's Ulysses is context parallelism that exchanges heads; a ratio of the states is offloaded; ZeRO++ is told. */
/* DeepSpeed's gradients are of the weights' type under ZeRO, which "auto" is the trainer's. */
START_TEST(deepspeed_has_gradients_of_the_weights_type)
{
    static const struct {
        const char *keys;
        enum precision gradients;
    } cases[] = {
        {"deepspeed: examples/deepspeed/ds_z3_config.json\nbf16: true\n", PRECISION_BF16},
        {"deepspeed: examples/deepspeed/ds_z3_config.json\nfp16: true\n", PRECISION_FP16},
        {"deepspeed: examples/deepspeed/ds_z3_config.json\n", PRECISION_FP32},
        {"deepspeed: examples/deepspeed/ds_z0_config.json\nbf16: true\n", PRECISION_FP32},
        {"bf16: true\n", PRECISION_FP32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: full\nper_device_train_batch_size: 1\n%s",
                 cases[i].keys);
        struct told t = tell(text, NULL, 8);
        ck_assert_msg(t.d.job.job.gradient_precision == cases[i].gradients, "%zu", i);
        told_free(&t);
    }
}
END_TEST

/* A batch and its factors that make another one. */
START_TEST(deepspeed_compares_batches)
{
    static const struct {
        int batch;
        const char *warning;
    } cases[] = {
        {64, NULL},
        {48, "gradient_accumulation_steps: 2 micro-batches of 4 on each of 8 replicas are 64 sequences; train_batch_size, 48"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{\"train_batch_size\": %d, \"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 2}",
                 cases[i].batch);
        struct told t =
            tell(text, "--model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 4 --bf16 true", 8);
        ck_assert_int_eq(t.d.job.job.global_batch, cases[i].batch);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

START_TEST(deepspeed_beyond_stages)
{
    struct told t = tell("{\"train_micro_batch_size_per_gpu\": 1, \"sequence_parallel_size\": 8, \"bf16\": {\"enabled\": true},\n"
                         "\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": \"cpu\", \"ratio\": 0.4},\n"
                         "  \"zero_hpz_partition_size\": 8, \"zero_quantized_weights\": true},\n"
                         "\"optimizer\": {\"type\": \"AdamW\"}, \"activation_checkpointing\": {\"cpu_checkpointing\": true}}\n",
                         HF_LINE, 64);
    expect_layout(&t,
                  "tp=1,cp=8,cp_comm=a2a,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=3,sp=0,recompute=full,schedule=none,"
                  "offload=optimizer:40%",
                  32);
    expect_warning(&t, "zero_hpz_partition_size (");
    expect_warning(&t, "zero_quantized_weights (");
    expect_warning(&t, "cpu_checkpointing (");
    told_free(&t);
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

/* LLaMA-Factory repeats layers unless told otherwise, and knows DeepSpeed's configurations that it ships. */
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
    expect_warning(&t, "optim (the optimizer's first moment in fewer bits)");
    told_free(&t);
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

/* FSDP repeats layers itself where it is told to. */
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

/* What says the precision wins over what says how replicas exchange; a vocabulary is padded where that is on. */
START_TEST(nemo_settles_what_is_said_twice)
{
    static const struct {
        const char *text;
        enum precision gradients;
        int64_t vocab; /* 0: of the catalog */
        const char *warning;
    } cases[] = {
        {"trainer: {devices: 8, num_nodes: 1, strategy: {tensor_model_parallel_size: 4, ddp: {grad_reduce_in_fp32: true}},\n"
         "  plugins: {precision: bf16-mixed, grad_reduce_in_fp32: false, fp8: hybrid, fp8_params: true}}\n"
         "model: {config: {_target_: nemo.collections.llm.Llama2Config70B}}\ndata: {micro_batch_size: 1, seq_length: 4096}\n",
         PRECISION_BF16, 0, "trainer.plugins.fp8_params (parameters are gathered in 8 bits)"},
        {"train: {micro_batch_size: 1}\nmodel: {num_layers: 4, hidden_size: 512, num_attention_heads: 8, seq_length: 1024,\n"
         "  vocab_size: 1000, should_pad_vocab: false}\nddp: {grad_reduce_in_fp32: false}\n"
         "mixed_precision: {bf16: true, grad_reduce_in_fp32: true}\n",
         PRECISION_FP32, 1000, NULL},
        {"train: {micro_batch_size: 1}\nmodel: {num_layers: 4, hidden_size: 512, num_attention_heads: 8, seq_length: 1024,\n"
         "  vocab_size: 1000, should_pad_vocab: true}\nddp: {grad_reduce_in_fp32: false}\n",
         PRECISION_BF16, 1024, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell(cases[i].text, NULL, 8);
        ck_assert_msg(t.d.job.job.gradient_precision == cases[i].gradients, "%zu", i);
        ck_assert_msg(!cases[i].vocab || t.d.job.model.vocab == cases[i].vocab, "%zu: %lld", i, (long long)t.d.job.model.vocab);
        if (cases[i].warning)
            expect_warning(&t, cases[i].warning);
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

/* Shards within a node, or among so many neighbours, and copies of them. */
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
        {"HYBRID_SHARD", "", "zero=3,shard=8,sp=0", "of how many GPUs is not said; 8 are taken"},
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
                {3, "zero=3,sp=0", "weights are shards among 3 ranks, into which 16 do not divide; all are taken"}};
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

/* What accelerate launch is told without a file. */
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

/* DeepSpeed's bf16 optimizer without a stage shards states and sums gradients in fp32 unless their type is told. */
START_TEST(deepspeed_without_a_stage)
{
    static const struct {
        const char *text;
        int zero;
        enum precision gradients;
    } cases[] = {
        {"{\"bf16\": {\"enabled\": true}, \"train_batch_size\": 64}", 1, PRECISION_FP32},
        {"{\"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": \"bf16\"}, \"train_batch_size\": 64}", 1,
         PRECISION_BF16},
        {"{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 1}, \"train_batch_size\": 64}", 1, PRECISION_BF16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell(cases[i].text,
                             "--deepspeed --num-layers 12 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
                             "--micro-batch-size 1 --vocab-size 50257 --bf16",
                             8);
        ck_assert_int_eq(t.diags.n_errors, 0);
        ck_assert_int_eq(t.d.job.layout.zero, cases[i].zero);
        ck_assert_int_eq(t.d.job.job.gradient_precision, cases[i].gradients);
        told_free(&t);
    }
}
END_TEST

/* The same under Hugging Face's trainer, which has no pipeline: of sums in bf16 every rank has all states. A command's stage of
 * ZeRO is not asked. */
START_TEST(deepspeed_without_a_stage_of_trainers)
{
    static const struct {
        const char *file, *flags;
        int zero;
        enum precision gradients;
        const char *warning;
    } cases[] = {
        {"{\"bf16\": {\"enabled\": \"auto\"}, \"train_batch_size\": \"auto\"}", "", 1, PRECISION_FP32, NULL},
        {"{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 0}}", "", 1, PRECISION_FP32, NULL},
        {"{\"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": \"bf16\"}, \"train_batch_size\": 8}", "", 0,
         PRECISION_BF16, NULL},
        {"{\"bf16\": {\"enabled\": true}, \"data_types\": {\"grad_accum_dtype\": \"fp32\"}, \"train_batch_size\": 8}", "", 1,
         PRECISION_FP32, NULL},
        {"{\"bf16\": {\"enabled\": true, \"immediate_grad_update\": false}, \"train_batch_size\": 8}", "", 1, PRECISION_FP32,
         "beside their sums"},
        {"{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2}}", "", 2, PRECISION_BF16, NULL},
        {"{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2}}", " --zero_stage 3", 3, PRECISION_BF16, NULL},
        {"{\"fp16\": {\"enabled\": true}, \"train_batch_size\": 8}", " --fp16 True", 0, PRECISION_FP16, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[256];
        snprintf(line, sizeof line,
                 "--model_name_or_path meta-llama/Meta-Llama-3-8B --per_device_train_batch_size 1 --max_seq_length 2048%s%s",
                 strstr(cases[i].flags, "fp16") ? "" : " --bf16 True", cases[i].flags);
        struct told t = tell(cases[i].file, line, 8);
        ck_assert_int_eq(t.diags.n_errors, 0);
        ck_assert_msg(t.d.job.layout.zero == cases[i].zero, "%zu: %d", i, t.d.job.layout.zero);
        ck_assert_msg(t.d.job.job.gradient_precision == cases[i].gradients, "%zu", i);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

/* In a list, in one text; what is unknown of either is told. */
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
    expect_warning(&t, "--tensor-model-paralel-size (did you mean --tensor-model-parallel-size?) --zz");
    told_free(&t);
}
END_TEST

/* Lines count a GPU's tokens a second: 4 x 8,192 tokens at 1,024 are 32 s, with the commas that Python writes. */
START_TEST(titan_logs_rates)
{
    static const char log[] = "[titan] x - INFO - step:  1  loss:  8.1  memory: 40.5GiB(51%)  tps: 12  mfu: 0.4%\n"
                              "[titan] x - INFO - step: 10  loss:  8.0  memory: 40.5GiB(51%)  tps: 1,024  mfu: 40.1%\n"
                              "[titan] x - INFO - step: 20  loss:  7.9  memory: 40.5GiB(51%)  tps: 1,024  mfu: 40.1%\n"
                              "[titan] x - INFO - step: 30  loss:  7.9  memory: 40.5GiB(51%)  wps: 1,024  mfu: 40.1%\n"
                              "[titan] x - INFO - step: 40  loss:  7.9  memory: 40.5GiB(51%)  tps: 1,0";
    struct launch_words words = {0};
    struct diags diags = {0};
    struct launch_log l;
    ck_assert(launch_is_log(log, strlen(log)));
    megatron_log_parse("l", log, strlen(log), -1, &words, &l, &diags);
    ck_assert_uint_eq(l.n_iterations, 4);
    ck_assert(l.per_token);
    launch_log_settle(&l, 4 * 8192);
    ck_assert_double_eq_tol(l.step_s, 32, 1e-9);
    launch_log_settle(&l, 4 * 8192); /* once */
    ck_assert_double_eq_tol(l.step_s, 32, 1e-9);
    launch_words_free(&words);
    diags_free(&diags);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_torch");
    TCase *tests = tcase_create("configurations");
    tcase_add_test(tests, titan_unasked);
    tcase_add_test(tests, titan_by_its_keys);
    tcase_add_test(tests, titan_in_its_first_year);
    tcase_add_test(tests, titan_in_eight_bits);
    tcase_add_test(tests, titan_mistakes);
    tcase_add_test(tests, titan_logs_rates);
    tcase_add_test(tests, keys_that_a_command_sets);
    tcase_add_test(tests, nemo2_by_class);
    tcase_add_test(tests, nemo2_by_shape);
    tcase_add_test(tests, bridge_by_its_container);
    tcase_add_test(tests, trainers_of_hugging_face);
    tcase_add_test(tests, deepspeed_has_gradients_of_the_weights_type);
    tcase_add_test(tests, deepspeed_compares_batches);
    tcase_add_test(tests, deepspeed_beyond_stages);
    tcase_add_test(tests, second_fsdp);
    tcase_add_test(tests, factory_by_its_keys);
    tcase_add_test(tests, shapes_of_others);
    tcase_add_test(tests, shapes_of_olmo);
    tcase_add_test(tests, factory_by_its_command);
    tcase_add_test(tests, fsdp_repeats_layers);
    tcase_add_test(tests, nemo_settles_what_is_said_twice);
    tcase_add_test(tests, names_of_models);
    tcase_add_test(tests, shapes_of_mpt);
    tcase_add_test(tests, hybrid_shards);
    tcase_add_test(tests, kinds_of_accelerate);
    tcase_add_test(tests, flags_of_accelerate_launch);
    tcase_add_test(tests, deepspeed_without_a_stage);
    tcase_add_test(tests, deepspeed_without_a_stage_of_trainers);
    tcase_add_test(tests, fsdp_of_trainers);
    tcase_add_test(tests, budgets_in_units);
    tcase_add_test(tests, slips);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
