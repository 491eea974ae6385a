/* MaxText's base.yml and its command, OLMo-core's config.json, Colossal-AI's plugins: what they say, field by field. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "model/spec/catalog.h"
#include "tests/suite.h"
#include "tests/traces/launch_told.h"

static void expect_shape(const struct told *t, int layers, int64_t hidden, int64_t ffn, int heads, int kv_heads, int64_t vocab)
{
    const struct transformer *m = &t->d.job.model;
    ck_assert_int_eq(m->layers, layers);
    ck_assert_int_eq(m->hidden, hidden);
    ck_assert_int_eq(m->ffn_hidden, ffn);
    ck_assert_int_eq(m->heads, heads);
    ck_assert_int_eq(m->kv_heads, kv_heads);
    ck_assert_int_eq(m->vocab, vocab);
}

/* --- MaxText */

START_TEST(maxtext_by_its_file)
{
    struct told t = tell_file("maxtext.yml", NULL, 64);
    expect_layout(&t, "tp=2,cp=1,pp=1,vpp=1,dp=32,ep=1,mb=4,zero=3,sp=0,recompute=layernorm+mlp_act,schedule=none", 128);
    ck_assert_msg(t.diags.n_items == 0, "%s", t.diags.n_items ? t.diags.items[0].text : "");
    expect_shape(&t, 32, 4096, 14336, 32, 8, 128256);
    const struct transformer *m = &t.d.job.model;
    ck_assert(m->gated_mlp && !m->tied_embeddings && !m->linear_bias && m->norm == NORM_RMS && m->position == POSITION_ROTARY);
    ck_assert_int_eq(t.d.job.job.seq_len, 8192);
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_BF16);
    ck_assert_int_eq(t.d.job.job.optimizer, OPTIMIZER_ADAM);
    ck_assert_double_eq_tol(t.d.job.job.tokens, 1000.0 * 128 * 8192, 0.5);
    ck_assert_uint_eq(t.d.job.job.features,
                      FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA) | FEATURE_BIT(COMPILE));
    told_free(&t);
}
END_TEST

/* On its command line, over the file: key=value without a point in the key. */
START_TEST(maxtext_by_its_command)
{
    struct told t = tell_file("maxtext.yml",
                              "run_name=x per_device_batch_size=1 ici_tensor_parallelism=8 ici_fsdp_parallelism=1 "
                              "remat_policy=full quantization=fp8 max_target_length=4096 gradient_accumulation_steps=4",
                              64);
    expect_layout(&t, "tp=8,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=8,zero=3,sp=0,recompute=full,schedule=none", 256);
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_FP8);
    ck_assert_int_eq(t.d.job.job.seq_len, 4096);
    ck_assert_msg(t.diags.n_items == 0, "%s", t.diags.n_items ? t.diags.items[0].text : ""); /* not of run_name either */
    told_free(&t);
    t = tell_file("maxtext.yml", "run_name=x enable_checkpointing=false", 64);
    ck_assert_uint_eq(t.diags.n_items, 0);
    told_free(&t);
    t = tell_file("maxtext.yml", "run_name=x new_key=3 steps=5", 64);
    expect_warning(&t, "unknown to msim, left out: new_key");
    ck_assert_uint_eq(t.diags.n_items, 1);
    told_free(&t);
}
END_TEST

#define MESH "per_device_batch_size: 2\nmax_target_length: 2048\nmodel_name: llama2-7b\nremat_policy: full\n"

/* Keys that change nothing, by their prefixes; but a key that resembles one that matters is reported. */
START_TEST(maxtext_ignores)
{
    struct told t = tell("per_device_batch_size: 2\nmax_target_length: 2048\nmodel_name: llama2-7b\nlog_steps: 5\nsave_steps: 3\n"
                         "dataset_x: x\ncheckpoint_period: 3\nenable_attention_log: true\nmlpwo: remat\nbrand_new_switch: False\n"
                         "brand_new_number: -1\nbrand_new_name: ''\nbrand_new_list: []\nbrand_new_map: {}\n",
                         NULL, 8);
    ck_assert_msg(t.diags.n_items == 0, "%s", t.diags.n_items ? t.diags.items[0].text : "");
    told_free(&t);
    t = tell("per_device_batch_size: 2\nmax_target_length: 2048\nmodel_name: llama2-7b\ndecode_block: x\n", NULL, 8);
    expect_warning_at(&t, "decode_block is unknown to msim and left out; did you mean 'decoder_block'?", 4, 1);
    told_free(&t);
}
END_TEST

START_TEST(maxtext_meshes)
{
    static const struct {
        const char *axes;
        int gpus;
        const char *layout;
        int64_t batch;
        const char *warning;
    } cases[] = {
        /* by default: shards within slices of 8, replicas between them */
        {"", 8, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=2,zero=3,sp=0,recompute=full,schedule=none", 16, NULL},
        {"", 32, "tp=1,cp=1,pp=1,vpp=1,dp=32,ep=1,mb=2,zero=3,shard=8,sp=0,recompute=full,schedule=none", 64,
         "whose number is not specified"},
        {"dcn_data_parallelism: 4\nici_fsdp_parallelism: 8\n", 0,
         "tp=1,cp=1,pp=1,vpp=1,dp=32,ep=1,mb=2,zero=3,shard=8,sp=0,recompute=full,schedule=none", 64, NULL},
        {"dcn_data_parallelism: 1\ndcn_fsdp_parallelism: 4\nici_fsdp_parallelism: 8\n", 0,
         "tp=1,cp=1,pp=1,vpp=1,dp=32,ep=1,mb=2,zero=3,sp=0,recompute=full,schedule=none", 64, NULL},
        {"dcn_data_parallelism: 4\nici_fsdp_parallelism: 1\nici_data_parallelism: 8\n", 0,
         "tp=1,cp=1,pp=1,vpp=1,dp=32,ep=1,mb=2,zero=0,sp=0,recompute=full,schedule=none", 64, NULL},
        {"ici_tensor_parallelism: 4\nici_fsdp_parallelism: 2\n", 16,
         "tp=4,cp=1,pp=1,vpp=1,dp=4,ep=1,mb=8,zero=3,shard=2,sp=0,recompute=full,schedule=none", 32, NULL},
        {"ici_tensor_sequence_parallelism: 4\nici_fsdp_parallelism: 2\ndcn_data_parallelism: 1\n", 8,
         "tp=4,cp=1,pp=1,vpp=1,dp=2,ep=1,mb=8,zero=3,sp=1,recompute=full,schedule=none", 16, NULL},
        {"ici_context_parallelism: 2\nici_fsdp_parallelism: 4\ndcn_data_parallelism: 2\n", 16,
         "tp=1,cp=2,cp_comm=all_gather,pp=1,vpp=1,dp=8,ep=1,mb=4,zero=3,shard=8,sp=0,recompute=full,schedule=none", 32, NULL},
        {"ici_pipeline_parallelism: 2\nici_fsdp_parallelism: 4\ndcn_data_parallelism: 1\nnum_pipeline_microbatches: 4\n", 8,
         "tp=1,cp=1,pp=2,vpp=1,dp=4,ep=1,mb=1,zero=2,sp=0,recompute=full,schedule=gpipe", 16, "circular pipeline"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, MESH "%s", cases[i].axes);
        struct told t = tell(text, NULL, cases[i].gpus);
        expect_layout(&t, cases[i].layout, cases[i].batch);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

/* A model by its name wins over the shape in base.yml, unless that may override it. */
START_TEST(maxtext_models_by_name)
{
    struct told t = tell_file("maxtext.yml", "model_name=llama2-70b", 64);
    expect_shape(&t, 80, 8192, 28672, 64, 8, 32000);
    told_free(&t);
    t = tell_file("maxtext.yml", "model_name=llama2-70b override_model_config=true base_num_decoder_layers=40", 64);
    expect_shape(&t, 40, 8192, 28672, 64, 8, 32000); /* but for base.yml the model is what it is */
    told_free(&t);
    t = tell_file("maxtext.yml", "model_name=llama2-70b override_model_config=true base_num_kv_heads=16 base_mlp_dim=1024", 64);
    expect_shape(&t, 80, 8192, 1024, 64, 16, 32000);
    told_free(&t);
    t = tell_file("maxtext.yml", "model_name=llama2-70b base_num_decoder_layers=40 max_target_length=4096", 64);
    expect_shape(&t, 80, 8192, 28672, 64, 8, 32000); /* which MaxText refuses */
    expect_warning(&t, "base_num_decoder_layers is left out: the model's own value counts");
    ck_assert_uint_eq(t.diags.n_items, 1);
    told_free(&t);
    t = tell_file("maxtext.yml", "model_name=llama2-70b --num-layers 20", 64); /* --with wins */
    expect_shape(&t, 20, 8192, 28672, 64, 8, 32000);
    told_free(&t);
    t = tell_file("maxtext.yml",
                  "model_name=deepseek3-671b override_model_config=true base_num_decoder_layers=30 num_experts=64 "
                  "shared_experts=2 first_num_dense_layers=1 q_lora_rank=768",
                  64);
    ck_assert_int_eq(t.d.job.model.layers, 30);
    ck_assert_int_eq(t.d.job.model.moe.experts, 64);
    ck_assert_int_eq(t.d.job.model.moe.shared_experts, 2);
    ck_assert_int_eq(t.d.job.model.moe.first_dense_layers, 1);
    ck_assert_int_eq(t.d.job.model.latent.q_lora_rank, 768);
    ck_assert_int_eq(t.d.job.model.latent.kv_lora_rank, 512);
    told_free(&t);
    t = tell_file("maxtext.yml", "model_name=mixtral-8x7b", 64);
    ck_assert_int_eq(t.d.job.model.moe.experts, 8);
    told_free(&t);
    t = tell_file("maxtext.yml",
                  "num_experts=8 num_experts_per_tok=2 base_moe_mlp_dim=1024 ici_expert_parallelism=4 "
                  "ici_fsdp_parallelism=1 ici_tensor_parallelism=1",
                  64);
    ck_assert_int_eq(t.d.job.model.moe.experts, 8);
    ck_assert_int_eq(t.d.job.model.moe.top_k, 2);
    ck_assert_int_eq(t.d.job.model.moe.expert_ffn, 1024);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=64,ep=4,mb=2,zero=3,sp=0,recompute=layernorm+moe_act,schedule=none", 128);
    told_free(&t);
}
END_TEST

/* A capacity counts where experts are products of whole matrices, which have room for that number of tokens each. */
START_TEST(maxtext_loads_of_experts)
{
    static const struct {
        const char *keys;
        double capacity, busiest;
    } cases[] = {{"num_experts=8", 0, 0},
                 {"num_experts=8 capacity_factor=1.5", 0, 0},
                 {"num_experts=8 capacity_factor=1.5 sparse_matmul=false", 1.5, 0},
                 {"num_experts=8 capacity_factor=-1.0 sparse_matmul=false", 0, 0},
                 {"num_experts=8 use_random_routing=true", 0, 1},
                 {"model_name=mixtral-8x7b capacity_factor=1.25 sparse_matmul=False", 1.25, 0},
                 {"num_experts=1 capacity_factor=1.5 sparse_matmul=false use_random_routing=true", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell_file("maxtext.yml", cases[i].keys, 64);
        const struct expert_load *load = &t.d.job.job.load;
        ck_assert_double_eq(load->capacity, cases[i].capacity);
        ck_assert_double_eq(load->busiest, cases[i].busiest);
        ck_assert_int_eq(load->padded, cases[i].capacity > 0);
        told_free(&t);
    }
}
END_TEST

/* DeepSeek-V2-Lite by base.yml's keys is the catalog's: latent attention, shared experts, dense layers first. */
START_TEST(maxtext_describes_deepseek)
{
    struct told t = tell_file("maxtext.yml",
                              "decoder_block=deepseek attention_type=mla base_emb_dim=2048 base_num_query_heads=16 "
                              "base_num_kv_heads=16 base_mlp_dim=10944 base_moe_mlp_dim=1408 base_num_decoder_layers=27 "
                              "first_num_dense_layers=1 num_experts=64 num_experts_per_tok=6 shared_experts=2 vocab_size=102400 "
                              "q_lora_rank=0 kv_lora_rank=512 qk_nope_head_dim=128 qk_rope_head_dim=64 v_head_dim=128 "
                              "n_routing_groups=-1 topk_routing_group=-1 routed_scaling_factor=1.0 interleave_moe_layer_step=1",
                              64);
    struct transformer lite;
    struct diags diags = {0};
    ck_assert_int_eq(catalog_model("deepseek-v2-lite", &lite, &diags), STATUS_OK);
    ck_assert_msg(t.diags.n_items == 0, "%s", t.diags.n_items ? t.diags.items[0].text : "");
    struct parameter_count ours, theirs;
    transformer_parameters(&t.d.job.model, &ours);
    transformer_parameters(&lite, &theirs);
    ck_assert_double_eq(ours.total, theirs.total);
    ck_assert_double_eq(ours.active, theirs.active);
    told_free(&t);
    diags_free(&diags);
    t = tell_file("maxtext.yml", "num_experts=8 base_moe_mlp_dim=1024 first_num_dense_layers=32", 64);
    expect_warning(&t, "first_num_dense_layers: 32 dense layers leave none of 32 for experts");
    told_free(&t);
    t = tell_file("maxtext.yml", "mtp_num_layers=1", 64);
    ck_assert_int_eq(t.d.job.model.mtp_layers, 1);
    told_free(&t);
    t = tell_file("maxtext.yml", "num_experts=8 num_experts=1", 64);
    ck_assert_int_eq(t.d.job.model.moe.experts, 0);
    told_free(&t);
}
END_TEST

/* Windows are of the kind of attention that has them. */
START_TEST(maxtext_windows)
{
    struct told t = tell_file("maxtext.yml", "sliding_window_size=1024 attention_type=local_sliding", 64);
    ck_assert_int_eq(t.d.job.model.window, 1024);
    told_free(&t);
    t = tell_file("maxtext.yml", "sliding_window_size=1024 attention_type=global", 64);
    ck_assert_int_eq(t.d.job.model.window, 0);
    told_free(&t);
}
END_TEST

/* Told where it stands; a batch that is no whole one, and axes that are not the GPUs, are mistakes. */
START_TEST(maxtext_tells)
{
    static const struct {
        const char *keys, *words;
        int line, column;
    } cases[] = {
        {"remat_policy: save_qkv_proj\n", "remat_policy (a policy between", 4, 15},
        {"remat_policy: sometimes\n", "remat_policy=sometimes is unknown to msim and left out", 4, 15},
        {"quantization: int8\n", "quantization (products of 8-bit integers", 4, 15},
        {"weight_dtype: bfloat16\n", "weight_dtype (master weights in fewer bits)", 4, 15},
        {"mu_dtype: bfloat16\n", "mu_dtype (the optimizer's first moment in bf16", 4, 11},
        {"opt_type: adafactor\n", "--optimizer adafactor; msim assumes adam", 4, 11},
        {"shard_optimizer_over_data: true\n", "shard_optimizer_over_data (replicas divide", 4, 28},
        {"global_parameter_scale: 2\n", "global_parameter_scale (widths are multiplied", 4, 25},
        {"brand_new_key: 3\n", "brand_new_key is unknown to msim and left out", 4, 1},
        {"per_device_batch_size: 0.3\n", "no whole number", 4, 24},
        {"ici_tensor_parallelism: 16384\ndcn_tensor_parallelism: 16384\n", "layout.tp: 268435456 is more than 16384", 4, 25},
        {"ici_tensor_parallelism: 16385\n", "is not between -1 and 16384", 4, 25},
        {"ici_pipeline_parallelism: -1\n", "all remaining devices; msim assumes one", 4, 27},
        {"ici_fsdp_parallelism: 3\ndcn_data_parallelism: 1\n", "do not make the 8 replicas", 4, 23},
        {"ici_fsdp_parallelism: 48\ndcn_fsdp_parallelism: -1\ndcn_data_parallelism: 1\n", "do not make the 8 replicas", 4, 23},
        {"ici_fsdp_parallelism: 16\ndcn_fsdp_parallelism: -1\ndcn_data_parallelism: 1\n", "do not make the 8 replicas", 4, 23},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        bool batch = strncmp(cases[i].keys, "per_device_batch_size", 21) == 0;
        snprintf(text, sizeof text, "%s\nmax_target_length: 2048\nmodel_name: llama2-7b\n%s",
                 batch ? "steps: 10" : "per_device_batch_size: 2", cases[i].keys);
        struct told t = tell(text, NULL, 8);
        expect_warning_at(&t, cases[i].words, cases[i].line, cases[i].column);
        told_free(&t);
    }
}
END_TEST

/* --- OLMo-core */

START_TEST(olmo_core_by_its_file)
{
    struct told t = tell_file("olmo_core.json", NULL, 64);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=64,ep=1,mb=2,zero=3,shard=16,sp=0,recompute=full:every2,schedule=none", 1024);
    ck_assert_msg(t.diags.n_items == 0, "%s", t.diags.n_items ? t.diags.items[0].text : "");
    expect_shape(&t, 32, 4096, 11008, 32, 32, 100352);
    const struct transformer *m = &t.d.job.model;
    ck_assert(m->gated_mlp && m->qk_norm && !m->tied_embeddings && !m->linear_bias && m->norm == NORM_RMS);
    ck_assert_int_eq(t.d.job.job.seq_len, 4096);
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_BF16);
    ck_assert_int_eq(t.d.job.job.gradient_precision, PRECISION_FP32);
    ck_assert_int_eq(t.d.job.job.optimizer, OPTIMIZER_ADAM);
    ck_assert_double_eq_tol(t.d.job.job.tokens, 5e12, 0.5);
    ck_assert_uint_eq(t.d.job.job.features, FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA) |
                                                FEATURE_BIT(COMPILE) | FEATURE_BIT(EAGER_LOSS));
    told_free(&t);
}
END_TEST

#define CORE                                                                                                                     \
    "model: {d_model: 1024, n_layers: 8, vocab_size: 32000, block: {sequence_mixer: {n_heads: 8, n_kv_heads: 2},\n"              \
    "  feed_forward: {hidden_size: 4096}, layer_norm: {name: rms}}%s}\n"                                                         \
    "data_loader: {global_batch_size: 131072}\ndataset: {sequence_length: 2048}\n"                                               \
    "train_module: {rank_microbatch_size: %s, %s}\n"

START_TEST(olmo_core_by_its_parts)
{
    static const struct {
        const char *keys, *layout;
        const char *warning;
    } cases[] = {
        {"dp_config: {name: fsdp, param_dtype: bfloat16}",
         "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=2,zero=3,sp=0,recompute=none,schedule=none", NULL},
        {"dp_config: {name: ddp}", "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=2,zero=0,sp=0,recompute=none,schedule=none", NULL},
        {"dp_config: {name: hsdp, shard_degree: 4}",
         "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=2,zero=3,shard=4,sp=0,recompute=none,schedule=none", NULL},
        {"dp_config: {name: hsdp}", "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=2,zero=3,shard=8,sp=0,recompute=none,schedule=none",
         "the number of ranks that share weights"},
        {"dp_config: {name: fsdp}, tp_config: {degree: 4, enable_async: true}, ac_config: {mode: full}",
         "tp=4,cp=1,pp=1,vpp=1,dp=4,ep=1,mb=2,zero=3,sp=1,recompute=full,schedule=none", NULL},
        {"dp_config: {name: fsdp}, cp_config: {degree: 2}",
         "tp=1,cp=2,pp=1,vpp=1,dp=8,ep=1,mb=2,zero=3,sp=0,recompute=none,schedule=none", NULL},
        {"dp_config: {name: fsdp}, pp_config: {degree: 2, schedule: Interleaved1F1B}",
         "tp=1,cp=1,pp=2,vpp=2,dp=8,ep=1,mb=2,zero=2,sp=0,recompute=none,schedule=interleaved", NULL},
        {"ac_config: {mode: selected_modules, modules: [blocks.*.feed_forward]}",
         "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=2,zero=0,sp=0,recompute=full,schedule=none", "msim assumes the nearer one"},
        {"dp_config: {name: fsdp}, wibble: 3", "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=2,zero=3,sp=0,recompute=none,schedule=none",
         "train_module.wibble is unknown to msim and left out"},
        {"dp_config: {name: fsdp}, optim: {_CLASS_: a.b.WibbleConfig}",
         "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=2,zero=3,sp=0,recompute=none,schedule=none",
         "train_module.optim._CLASS_=a.b.WibbleConfig"},
        {"dp_config: {name: fsdp}, optim: {_CLASS_: a.b.LionConfig}",
         "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=2,zero=3,sp=0,recompute=none,schedule=none", "--optimizer lion; msim assumes adam"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text, CORE, "", "4096", cases[i].keys);
        struct told t = tell(text, NULL, 16);
        expect_layout(&t, cases[i].layout, 64);
        ck_assert_int_eq(t.d.job.model.kv_heads, 2);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

START_TEST(olmo_core_loads_of_experts)
{
    static const char *const factors[] = {"", ", capacity_factor: null", ", capacity_factor: 1.25"};
    for (int i = 0; i < 3; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "model: {d_model: 1024, n_layers: 8, vocab_size: 32000, block: {sequence_mixer: {n_heads: 8, n_kv_heads: 2},\n"
                 "  feed_forward_moe: {num_experts: 16, hidden_size: 512, router: {top_k: 2}%s}, layer_norm: {name: rms}}}\n"
                 "data_loader: {global_batch_size: 131072}\ndataset: {sequence_length: 2048}\n"
                 "train_module: {rank_microbatch_size: 4096, dp_config: {name: fsdp}}\n",
                 factors[i]);
        struct told t = tell(text, NULL, 16);
        ck_assert_int_eq(t.d.job.model.moe.experts, 16);
        ck_assert_double_eq(t.d.job.job.load.capacity, i == 2 ? 1.25 : 0);
        ck_assert_int_eq(t.d.job.job.load.padded, i == 2);
        told_free(&t);
    }
}
END_TEST

START_TEST(olmo_core_masks_between_documents)
{
    static const char *const said[] = {"true", "false"};
    for (int i = 0; i < 2; i++) {
        char text[1024], part[1024];
        snprintf(part, sizeof part, CORE, "", "4096", "dp_config: {name: fsdp}");
        char *length = strstr(part, "{sequence_length: 2048");
        ck_assert_ptr_nonnull(length);
        snprintf(text, sizeof text, "%.*s{generate_doc_lengths: %s, %s", (int)(length - part), part, said[i], length + 1);
        struct told t = tell(text, NULL, 16);
        if (i == 0)
            expect_warning(&t, "attention is masked between documents");
        else
            expect_quiet(&t, "between documents");
        told_free(&t);
    }
}
END_TEST

/* Tokens that are no whole number of sequences. */
START_TEST(olmo_core_mistakes)
{
    char text[1024];
    snprintf(text, sizeof text, CORE, ", block_overrides: {\"3\": {name: default}}", "3000", "dp_config: {name: fsdp}");
    struct told t = tell(text, NULL, 16);
    expect_warning_at(
        &t, "train_module.rank_microbatch_size: 3000 tokens are no whole number of sequences: 1 of 2048 tokens and a rest of 952",
        5, 38);
    expect_warning(&t, "model.block_overrides (layers that differ");
    ck_assert_uint_eq(t.diags.n_errors, 1);
    ck_assert_int_eq(t.d.n_missing, 0);
    told_free(&t);
    snprintf(text, sizeof text, CORE, "", "3000", "dp_config: {name: fsdp}");
    t = tell(text, "--micro-batch-size 2", 16); /* --with wins */
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=2,zero=3,sp=0,recompute=none,schedule=none", 64);
    told_free(&t);
    snprintf(text, sizeof text, CORE, "", "few", "dp_config: {name: fsdp}");
    t = tell(text, NULL, 16);
    expect_warning_at(&t, "train_module.rank_microbatch_size=few is unknown to msim and left out", 5, 38);
    told_free(&t);
}
END_TEST

/* --- Colossal-AI */

#define LITGPT "train: {global_batch_size: 64, micro_batch_size: 4, max_seq_length: 2048}\nnum_nodes: 2\ndevices: 8\n"

/* Pre-training by a name or a shape is compiled and sharded within nodes; fine-tuning repeats blocks and shards among all. */
START_TEST(litgpt_by_its_file)
{
    struct told t = tell("model_name: Llama-3.2-1B\nprecision: bf16-mixed\n" LITGPT, NULL, 0);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=4,zero=3,shard=8,sp=0,recompute=none,schedule=none", 64);
    ck_assert(t.d.job.model.layers == 16 && t.d.job.model.tied_embeddings && t.diags.n_items == 0);
    ck_assert_int_eq(t.d.job.job.gradient_precision, PRECISION_FP32);
    ck_assert(t.d.job.job.features & FEATURE_BIT(COMPILE));
    told_free(&t);
    t = tell("model_config: {n_layer: 12, n_embd: 768, n_head: 12, n_query_groups: 4, intermediate_size: 2048, "
             "padded_vocab_size: 32000,\n"
             "  block_size: 4096, bias: false, norm_class_name: RMSNorm, mlp_class_name: LLaMAMLP}\n" LITGPT,
             NULL, 0);
    expect_shape(&t, 12, 768, 2048, 12, 4, 32000);
    ck_assert(t.d.job.model.norm == NORM_RMS && t.d.job.model.gated_mlp && !t.d.job.model.tied_embeddings);
    told_free(&t);
    t = tell("checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B\nprecision: bf16-true\nlora_r: 32\nlora_key: true\n"
             "lora_projection: true\nlora_mlp: false\n" LITGPT,
             NULL, 0);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=4,zero=3,sp=0,recompute=full,schedule=none", 64);
    ck_assert_int_eq(t.d.job.job.adapter.rank, 32);
    ck_assert_uint_eq(t.d.job.job.adapter.targets, 1 << ADAPT_QKV | 1 << ADAPT_PROJECTION);
    ck_assert_int_eq(t.d.job.job.gradient_precision, PRECISION_BF16);
    expect_warning(&t, "precision (master weights in fewer bits)");
    told_free(&t);
    t = tell("model_name: pythia-1b\ndevices: 8\ntrain: {global_batch_size: 64, micro_batch_size: 4}\n", NULL, 0);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=4,zero=3,sp=0,recompute=none,schedule=none", 64);
    ck_assert_int_eq(t.d.job.job.seq_len, 2048); /* Pythia's */
    told_free(&t);
    t = tell("model_name: pythia-1b\ndevices: 8\nprecision: bf16-true\n"
             "train: {global_batch_size: 64, micro_batch_size: 4, max_seq_length: 512}\n",
             "litgpt.yaml precision=bf16-mixed devices=4", 0);
    ck_assert_int_eq(t.d.job.layout.dp, 4);
    ck_assert_int_eq(t.d.job.job.seq_len, 512);
    ck_assert_int_eq(t.d.job.job.gradient_precision, PRECISION_FP32);
    ck_assert_int_eq(t.diags.n_items, 0);
    told_free(&t);
    t = tell("checkpoint_dir: checkpoints/meta-llama/Llama-3.1-8B\ndevices: 1\n"
             "train: {global_batch_size: 8, micro_batch_size: 1, max_seq_length: 512}\n",
             NULL, 1);
    ck_assert_int_eq(t.d.job.layout.recompute.what, RECOMPUTE_NONE);
    ck_assert_int_eq(t.d.job.job.adapter.rank, 0);
    told_free(&t);
}
END_TEST

START_TEST(colossal_by_its_file)
{
    struct told t = tell_file("colossal.json", NULL, 64);
    expect_layout(&t, "tp=2,cp=1,pp=2,vpp=2,dp=16,ep=1,mb=1,zero=1,sp=1,recompute=full,schedule=interleaved", 256);
    ck_assert_msg(t.diags.n_items == 0, "%s", t.diags.n_items ? t.diags.items[0].text : "");
    expect_shape(&t, 32, 4096, 11008, 32, 32, 32000);
    ck_assert_int_eq(t.d.job.job.seq_len, 4096);
    ck_assert_int_eq(t.d.job.job.precision, PRECISION_BF16);
    ck_assert_double_eq_tol(t.d.job.job.tokens, 100.0 * 256 * 4096, 0.5);
    ck_assert_uint_eq(t.d.job.job.features, FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA) |
                                                FEATURE_BIT(PP_OVERLAP));
    told_free(&t);
}
END_TEST

/* Flags of its applications. */
START_TEST(colossal_by_flags)
{
    static const struct {
        const char *flags, *layout;
        int64_t batch;
        const char *warning;
    } cases[] = {
        {"--plugin zero2", "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=4,zero=2,sp=0,recompute=none,schedule=none", 64, NULL},
        {"--plugin gemini --grad_checkpoint", "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=4,zero=3,sp=0,recompute=full,schedule=none", 64,
         NULL},
        {"--plugin gemini_auto", "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=4,zero=3,sp=0,recompute=none,schedule=none", 64,
         "states move to the host"},
        {"--plugin zero2_cpu", "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=4,zero=2,sp=0,recompute=none,schedule=none,offload=optimizer",
         64, NULL},
        {"--plugin 3d --tp 4 --zero 1 --accumulation_steps 2",
         "tp=4,cp=1,pp=1,vpp=1,dp=4,ep=1,mb=4,zero=1,sp=0,recompute=none,schedule=none", 32, NULL},
        {"--plugin 3d --tp 2 --pp 2 --mbs 2 --pp_style 1f1b",
         "tp=2,cp=1,pp=2,vpp=1,dp=4,ep=1,mb=2,zero=0,sp=0,recompute=none,schedule=1f1b", 16, NULL},
        {"--plugin 3d --tp 2 --sp_mode split_gather --sp 2",
         "tp=2,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=4,zero=0,sp=1,recompute=none,schedule=none", 32, NULL},
        {"--plugin 3d --sp_mode all_to_all --sp 4",
         "tp=1,cp=4,cp_comm=a2a,pp=1,vpp=1,dp=4,ep=1,mb=4,zero=0,sp=0,recompute=none,schedule=none", 16, NULL},
        {"--plugin wibble --zero 2", "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=4,zero=2,sp=0,recompute=none,schedule=none", 64,
         "plugin=wibble is unknown to msim and left out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[512];
        snprintf(line, sizeof line, "--config 7b --batch_size 4 --max_length 4096 --mixed_precision bf16 --use_flash_attn %s",
                 cases[i].flags);
        struct told t = tell(NULL, line, 16);
        expect_layout(&t, cases[i].layout, cases[i].batch);
        ck_assert_int_eq(t.d.job.job.precision, PRECISION_BF16);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

START_TEST(colossal_tells)
{
    static const struct {
        const char *keys, *words;
    } cases[] = {
        {"plugin: {name: GeminiPlugin, shard_param_frac: 0.5}", "plugin.shard_param_frac (a part of the weights is sharded"},
        {"plugin: {name: GeminiPlugin, offload_optim_frac: 1.0}", "plugin.offload_optim_frac (a part of the states"},
        {"plugin: {name: HybridParallelPlugin, custom_policy: mine}", "plugin.custom_policy (a custom policy"},
        {"plugin: {name: HybridParallelPlugin, wibble: mine}", "plugin.wibble is unknown to msim and left out"},
        {"plugin: {name: HybridParallelPlugin, tp_sizes: 3}", "did you mean 'tp_size'?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, "model: 7b\nbatch_size: 4\nmax_length: 4096\n%s\n", cases[i].keys);
        struct told t = tell(text, NULL, 8);
        expect_warning(&t, cases[i].words);
        told_free(&t);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_others");
    TCase *all = tcase_create("all");
    tcase_add_test(all, litgpt_by_its_file);
    tcase_add_test(all, maxtext_by_its_file);
    tcase_add_test(all, maxtext_by_its_command);
    tcase_add_test(all, maxtext_ignores);
    tcase_add_test(all, maxtext_meshes);
    tcase_add_test(all, maxtext_models_by_name);
    tcase_add_test(all, maxtext_loads_of_experts);
    tcase_add_test(all, maxtext_describes_deepseek);
    tcase_add_test(all, maxtext_windows);
    tcase_add_test(all, maxtext_tells);
    tcase_add_test(all, olmo_core_by_its_file);
    tcase_add_test(all, olmo_core_by_its_parts);
    tcase_add_test(all, olmo_core_loads_of_experts);
    tcase_add_test(all, olmo_core_masks_between_documents);
    tcase_add_test(all, olmo_core_mistakes);
    tcase_add_test(all, colossal_by_its_file);
    tcase_add_test(all, colossal_by_flags);
    tcase_add_test(all, colossal_tells);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
