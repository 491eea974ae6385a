/* NeMo 2 as NeMo-Run writes it, and Megatron-Bridge's container. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/traces/launch_told.h"

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
             "  moe_router_force_load_balancing: true, activation_func_fp8_input_store: true,\n"
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
    ck_assert(t.d.job.job.features & FEATURE_BIT(FP8_ACTIVATION_INPUT));
    ck_assert_int_eq(t.d.job.model.moe.experts, 128);
    ck_assert(t.d.job.model.qk_norm);
    const struct expert_load *load = &t.d.job.job.load;
    ck_assert(load->padded && load->capacity >= 1.5 && load->capacity <= 1.5 && load->busiest >= 1 && load->busiest <= 1);
    told_free(&t);
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

/* A program's assignments; the model, the nodes and what recipes have by themselves are of the function that makes it. */
START_TEST(recipes_that_are_programs)
{
    static const struct {
        const char *text;
        int gpus;
        const char *layout, *warning;
        int layers;
    } cases[] = {
        {"def make():\n"
         "    recipe = llm.llama31_405b.pretrain_recipe(name='x', num_nodes=72, num_gpus_per_node=8)\n"
         "    recipe.trainer.strategy.tensor_model_parallel_size = 8\n"
         "    recipe.trainer.strategy.pipeline_model_parallel_size = 9\n"
         "    recipe.trainer.strategy.virtual_pipeline_model_parallel_size = 7\n"
         "    recipe.trainer.strategy.sequence_parallel = True\n"
         "    recipe.data = run.Config(Data, micro_batch_size=1, global_batch_size=512, seq_length=8192)\n"
         "    return recipe\n",
         0, "tp=8,cp=1,pp=9,vpp=7,dp=8,ep=1,mb=1,zero=1,sp=1,recompute=none,schedule=interleaved",
         "llm.llama31_405b.pretrain_recipe (the recipe's own layout and batch are not known", 126},
        {"cfg = qwen3_30b_a3b_pretrain_config(dir=args.dir)\n" /* a part of which is computed */
         "cfg.model.tensor_model_parallel_size = 2\ncfg.model.expert_model_parallel_size = 8\n"
         "cfg.model.expert_tensor_parallel_size = 1\ncfg.model.recompute_granularity = 'selective'\n"
         "cfg.model.recompute_modules = ['layernorm', 'moe_act']\ncfg.model.sequence_parallel = True\n"
         "cfg.train.micro_batch_size = mb\ncfg.train.micro_batch_size = 2\ncfg.train.global_batch_size = 512\n"
         "cfg.dataset.sequence_length = 4096\n",
         64, "tp=2,cp=1,pp=1,vpp=1,dp=32,ep=8,mb=2,zero=1,sp=1,recompute=layernorm+moe_act,schedule=none",
         "cfg.train.micro_batch_size is left out: the program computes its value", 48},
        {"cfg = my_pretrain_config()\ncfg.model = Provider(num_layers=4, hidden_size=512, num_attention_heads=8,\n"
         "    seq_length=1024, vocab_size=1000)\ncfg.train.micro_batch_size = 1\ncfg.train.global_batch_size = 512\n"
         "cfg.mixed_precision = get_mixed_precision_config('bf16_with_mxfp8_mixed')\n",
         8, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=0,sp=0,recompute=none,schedule=none",
         "the other values of its recipe are not known", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell_as("recipe.py", cases[i].text, NULL, cases[i].gpus);
        expect_layout(&t, cases[i].layout, 512);
        expect_warning(&t, cases[i].warning);
        ck_assert_int_eq(t.d.job.model.layers, cases[i].layers);
        ck_assert_int_eq(t.d.job.job.precision, i == 2 ? PRECISION_MXFP8 : PRECISION_BF16);
        told_free(&t);
    }
}
END_TEST

/* A gradient's sums are as its recipe has them unless that is changed itself. */
START_TEST(programs_change_what_they_called)
{
    static const char start[] = "cfg = llama3_8b_pretrain_config()\ncfg.train.micro_batch_size = 1\n"
                                "cfg.dataset.sequence_length = 8192\n";
    static const struct {
        const char *text;
        enum precision gradients;
    } cases[] = {
        {"cfg.mixed_precision = 'bf16_mixed'\n", PRECISION_FP32},
        {"cfg.mixed_precision = get_mixed_precision_config('bf16_mixed')\ncfg.mixed_precision.grad_reduce_in_fp32 = False\n",
         PRECISION_BF16},
        {"cfg.ddp.grad_reduce_in_fp32 = False\n", PRECISION_BF16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s", start, cases[i].text);
        struct told t = tell_as("recipe.py", text, NULL, 8);
        ck_assert_uint_eq(t.diags.n_errors, 0);
        ck_assert_int_eq(t.d.job.job.precision, PRECISION_BF16);
        ck_assert_int_eq(t.d.job.job.gradient_precision, cases[i].gradients);
        ck_assert_int_eq(t.d.job.model.layers, 32);
        told_free(&t);
    }
}
END_TEST

/* Arguments of a recipe's function override its defaults; changed fields override the arguments. */
START_TEST(programs_tell_what_they_call)
{
    static const char nemo[] =
        "recipe = llm.nemotron4_15b.pretrain_recipe(tensor_parallelism=4, pipeline_parallelism=2,\n"
        "    virtual_pipeline_parallelism=4, sequence_parallelism=True, num_nodes=4, num_gpus_per_node=8,\n"
        "    global_batch_size=32, micro_batch_size=2, seq_length=4096, max_steps=10, name=f'x{y}',\n"
        "    precision='16-mixed', performance_mode=True)\n";
    static const char tuned[] = "recipe = llm.llama3_8b.finetune_recipe(num_nodes=1, num_gpus_per_node=8%s)\n"
                                "recipe.data.micro_batch_size = 1\nrecipe.data.global_batch_size = 32\n"
                                "recipe.data.seq_length = 2048\n";
    struct told t = tell_as("recipe.py", nemo, NULL, 0);
    expect_layout(&t, "tp=4,cp=1,pp=2,vpp=4,dp=4,ep=1,mb=2,zero=1,sp=1,recompute=none,schedule=interleaved", 32);
    expect_warning_at(&t, "performance_mode is unknown to msim and left out", 4, 27);
    ck_assert(t.d.job.gpus == 32 && t.d.job.job.seq_len == 4096 && t.d.job.model.layers == 32);
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_FP16);
    told_free(&t);
    t = tell_as(
        "recipe.py",
        "cfg = llama3_8b_pretrain_config(tensor_model_parallel_size=4, num_node=2, precision_config=bf16_with_mxfp8_mixed(),\n"
        "    global_batch_size=64, micro_batch_size=1, seq_length=8192)\ncfg.model.tensor_model_parallel_size = 2\n",
        NULL, 8);
    expect_layout(&t, "tp=2,cp=1,pp=1,vpp=1,dp=4,ep=1,mb=1,zero=1,sp=0,recompute=none,schedule=none", 64);
    expect_warning_at(&t, "num_node is unknown to msim and left out; did you mean 'num_nodes'?", 1, 63);
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_MXFP8);
    told_free(&t);
    static const struct {
        const char *function, *told;
        enum precision precision;
    } plugins[] = {{"bf16_with_fp8_mixed", NULL, PRECISION_FP8},
                   {"precision.bf16_with_mxfp8_mixed", NULL, PRECISION_MXFP8},
                   {"my_mixed", "trainer.plugins is left out: the result of my_mixed is not known", PRECISION_BF16}};
    for (size_t i = 0; i < sizeof plugins / sizeof plugins[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "recipe = llm.llama3_8b.pretrain_recipe()\nrecipe.trainer.plugins = %s()\n",
                 plugins[i].function);
        t = tell_as("recipe.py", text, NULL, 8);
        ck_assert_msg(t.d.job.job.precision == plugins[i].precision, "%s", plugins[i].function);
        if (plugins[i].told)
            expect_warning_at(&t, plugins[i].told, 2, 26);
        else
            expect_quiet(&t, "trainer.plugins");
        told_free(&t);
    }
    static const struct {
        const char *more;
        int64_t rank;
    } cases[] = {{"", 32}, {", peft_scheme='lora'", 32}, {", peft_scheme=None", 0}, {", peft=LoRA(dim=8)", 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, tuned, cases[i].more);
        t = tell_as("recipe.py", text, NULL, 0);
        ck_assert_msg(t.d.job.job.adapter.rank == cases[i].rank, "%s: %lld", cases[i].more, (long long)t.d.job.job.adapter.rank);
        told_free(&t);
    }
}
END_TEST

/* Shape, framework and values that a program leaves to what it calls. */
START_TEST(programs_say_a_part)
{
    static const struct {
        const char *text, *layout, *told;
        int layers, line, column;
    } cases[] = {
        {"cfg = deepseek_v3_pretrain_config()\ncfg.model.num_layers = 4\ncfg.train.micro_batch_size = 1\n"
         "cfg.dataset.sequence_length = 4096\n", /* fewer layers of a model that its recipe names */
         "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=1,sp=0,recompute=none,schedule=none", NULL, 4, 0, 0},
        {"cfg = llama3_8b_pretrain_config()\ncfg.train.global_batch_size = 8\ncfg.train.micro_batch_size = 1\n"
         "cfg.dataset.sequence_length = 8192\n", /* keys as LitGPT has them */
         "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=1,sp=0,recompute=none,schedule=none", NULL, 32, 0, 0},
        {"from my.pretraining.llama3_8b import pretrain_config\nimport argparse\n"
         "args = argparse.ArgumentParser().parse_args()\nNODES, TP = 2, 4\ncfg = pretrain_config(); m = cfg.model\n"
         "m.tensor_model_parallel_size, m.context_parallel_size = TP, (2)\nm.sequence_parallel: bool = True\n"
         "cfg.train.global_batch_size = args.gbs\ncfg.train.global_batch_size = 8 * NODES; cfg.train.micro_batch_size = 1\n"
         "setattr(cfg.dataset, 'sequence_length', 2 ** 13)\nif args.slow: cfg['model']['context_parallel_size'] = 1\n",
         "tp=4,cp=2,pp=1,vpp=1,dp=1,ep=1,mb=1,zero=1,sp=1,recompute=none,schedule=none",
         "cfg.train.global_batch_size is left out: the program computes its value", 32, 8, 1},
        {"cfg = llama3_8b_pretrain_config()\ncfg.train.micro_batch_size = 1\ncfg.dataset.sequence_length = 8192\n"
         "cfg.model.tensor_model_parallel_size = Defaults.tp\n",
         "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=1,sp=0,recompute=none,schedule=none",
         "model.tensor_model_parallel_size is left out: the program computes its value, Defaults.tp", 32, 4, 40},
        {"cfg = llama3_8b_pretrain_config()\ncfg.train.micro_batch_size = 1\ncfg.dataset.sequence_length = 8192\n"
         "cfg.model.tensor_model_parallel_size = load_config('x')\n",
         "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=1,sp=0,recompute=none,schedule=none",
         "model.tensor_model_parallel_size is left out: the program computes its value, load_config()", 32, 4, 40},
        {"cfg = llama3_8b_pretrain_config()\ncfg.train.micro_batch_size = 1\ncfg.dataset.sequence_length = 8192\n"
         "model = find(cfg)\nmodel.tensor_model_parallel_size = 2\n",
         "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=1,sp=0,recompute=none,schedule=none",
         "tensor_model_parallel_size is left out: it is not known which part of a recipe it belongs to", 32, 5, 1},
        {"a = qwen3_8b_pretrain_config()\na.train.micro_batch_size = 4\nb = llama3_8b_pretrain_config()\n"
         "b.train.micro_batch_size = 1\nb.dataset.sequence_length = 8192\na.model.tensor_model_parallel_size = 2\n"
         "b.model.sequence_parallel = False\n",
         "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=1,sp=0,recompute=none,schedule=none",
         "of 2 recipes msim takes this one, b, which the program changes most", 32, 3, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell_as("recipe.py", cases[i].text, NULL, 8);
        expect_layout(&t, cases[i].layout, i == 2 ? 16 : 8);
        ck_assert_int_eq(t.d.job.model.layers, cases[i].layers);
        if (cases[i].told)
            expect_warning_at(&t, cases[i].told, cases[i].line, cases[i].column);
        told_free(&t);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_nemo");
    TCase *all = tcase_create("all");
    tcase_add_test(all, nemo2_by_class);
    tcase_add_test(all, nemo2_by_shape);
    tcase_add_test(all, bridge_by_its_container);
    tcase_add_test(all, nemo_settles_what_is_said_twice);
    tcase_add_test(all, recipes_that_are_programs);
    tcase_add_test(all, programs_change_what_they_called);
    tcase_add_test(all, programs_tell_what_they_call);
    tcase_add_test(all, programs_say_a_part);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
