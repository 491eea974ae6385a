/* Adapters in the words of those who train them: peft, LLaMA-Factory, Axolotl, NeMo, Megatron-Bridge. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/traces/launch_told.h"

enum { ATTENTION = 1 << ADAPT_QKV | 1 << ADAPT_PROJECTION, ALL = (1 << N_ADAPTER_TARGETS) - 1 };
enum { EMBEDDING = 1 << WHOLE_EMBEDDING, HEAD = 1 << WHOLE_HEAD };
enum { FEED = 1 << ADAPT_MLP_UP | 1 << ADAPT_MLP_DOWN };

static void expect_adapter(const struct told *t, size_t i, int64_t rank, uint32_t targets)
{
    const struct adapter *adapter = &t->d.job.job.adapter;
    ck_assert_msg(adapter->rank == rank && adapter->targets == targets, "%zu: rank %lld, targets %u", i, (long long)adapter->rank,
                  adapter->targets);
}

/* This is reported; NULL: all of it is modelled. */
static void expect_modelled_but(const struct told *t, const char *warning)
{
    if (warning)
        expect_warning(t, warning);
    else
        expect_quiet(t, "not modelled");
}

/* What LoRA is called by those who train it, and which of it msim has. */
START_TEST(adapters_in_the_words_of_others)
{
#define AXOLOTL "base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 4096\nmicro_batch_size: 2\nbf16: true\n"
#define FACTORY "model_name_or_path: meta-llama/Meta-Llama-3-8B\nper_device_train_batch_size: 1\nbf16: true\n"
    static const struct {
        const char *text;
        int64_t rank;
        int targets;
        const char *warning; /* NULL: none of it */
    } jobs[] = {
        {AXOLOTL "adapter: lora\nlora_r: 32\nlora_target_modules: [q_proj, k_proj, v_proj, o_proj]\n", 32, ATTENTION, NULL},
        {AXOLOTL "adapter: qlora\nlora_r: 16\nlora_target_linear: true\n", 16, ALL, NULL},
        {AXOLOTL "adapter: lora\nlora_r: 8\nlora_target_modules: [q_proj, v_proj]\n", 8, 1 << ADAPT_QKV,
         "lora_target_modules (adapters for parts of qkv"},
        {AXOLOTL "adapter: lora\nlora_r: 8\nlora_target_modules: [embed_tokens, o_proj]\n", 8, 1 << ADAPT_PROJECTION,
         "lora_target_modules ('embed_tokens'"},
        {AXOLOTL "adapter: lora\n", 0, 0, "adapter (only an adapter's weights are trained; its rank"},
        {AXOLOTL "adapter: llama-adapter\nlora_r: 8\n", 0, 0, "adapter (only an adapter's weights are trained)"},
        {FACTORY "finetuning_type: lora\nlora_rank: 64\nlora_target: gate_proj,up_proj,down_proj\n", 64,
         1 << ADAPT_MLP_UP | 1 << ADAPT_MLP_DOWN, NULL},
        {FACTORY "finetuning_type: oft\n", 0, 0, "finetuning_type (only an adapter"},
        {FACTORY "finetuning_type: full\nlora_rank: 64\n", 0, 0, NULL},
        {"trainer: {devices: 8, num_nodes: 1, strategy: {tensor_model_parallel_size: 4}, plugins: {precision: bf16-mixed}}\n"
         "model: {config: {_target_: nemo.collections.llm.Llama2Config70B}}\ndata: {micro_batch_size: 1, seq_length: 4096}\n"
         "peft: {_target_: nemo.collections.llm.peft.lora.LoRA, dim: 16, target_modules: [linear_qkv, linear_proj]}\n",
         16, ATTENTION, NULL},
        {"train: {micro_batch_size: 1}\nmodel: {num_layers: 4, hidden_size: 512, num_attention_heads: 8, seq_length: 1024}\n"
         "peft: {_target_: megatron.bridge.peft.lora.LoRA}\n",
         32, ALL, NULL},
        {"trainer: {devices: 8, num_nodes: 1, precision: bf16}\nmodel: {num_layers: 4, hidden_size: 512, "
         "num_attention_heads: 8, micro_batch_size: 1, encoder_seq_length: 1024, peft: {peft_scheme: lora, lora_tuning: "
         "{adapter_dim: 24, target_modules: [attention_qkv, mlp]}}}\n",
         24, 1 << ADAPT_QKV | 1 << ADAPT_MLP_UP | 1 << ADAPT_MLP_DOWN, NULL},
        {FACTORY "use_peft: true\nlora_r: 16\nlora_target_modules: all-linear\nblock_size: 4096\n", 16, ALL, NULL},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct told t = tell(jobs[i].text, NULL, 8);
        expect_adapter(&t, i, jobs[i].rank, (uint32_t)jobs[i].targets);
        if (jobs[i].warning)
            expect_warning(&t, jobs[i].warning);
        told_free(&t);
    }
}
END_TEST

/* Modules trained whole, and what of them msim has. */
START_TEST(modules_that_are_trained_whole)
{
    static const struct {
        const char *text;
        uint32_t whole;
        const char *warning; /* NULL: none */
    } jobs[] = {
        {AXOLOTL "adapter: lora\nlora_r: 8\nlora_target_linear: true\nlora_modules_to_save: [embed_tokens, lm_head]\n",
         EMBEDDING | HEAD, NULL},
        {AXOLOTL "adapter: lora\nlora_r: 8\nlora_target_linear: true\nlora_modules_to_save:\n  - lm_head\n  - norm\n", HEAD,
         "lora_modules_to_save ('norm' is fully trained"},
        {AXOLOTL "adapter: lora\nlora_r: 8\nlora_target_linear: true\nlora_modules_to_save:\n", 0, NULL},
        {AXOLOTL "lora_modules_to_save: [embed_tokens]\n", 0, NULL}, /* all weights are trained */
        {FACTORY "finetuning_type: lora\nadditional_target: embed_tokens,lm_head\n", EMBEDDING | HEAD, NULL},
        {FACTORY "use_peft: true\nlora_r: 16\nlora_target_modules: all-linear\nblock_size: 4096\n"
                 "lora_modules_to_save: [model.embed_tokens]\n",
         EMBEDDING, NULL},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        struct told t = tell(jobs[i].text, NULL, 8);
        ck_assert_msg(t.d.job.job.adapter.whole == jobs[i].whole, "%zu: %u", i, t.d.job.job.adapter.whole);
        expect_modelled_but(&t, jobs[i].warning);
        told_free(&t);
    }
}
END_TEST

#define TIED                                                                                                                     \
    "base_model: meta-llama/Llama-3.2-1B\nsequence_len: 4096\nmicro_batch_size: 2\nbf16: true\nadapter: lora\nlora_r: 8\n"

/* Of a table that is both ends peft trains a copy of each that is named, and what is not named stays frozen beside it: two
 * matrices, unless they are to stay one. */
START_TEST(tables_that_were_one_are_apart)
{
    static const struct {
        const char *keys;
        uint32_t whole;
        bool tied;
    } jobs[] = {
        {"lora_modules_to_save: [embed_tokens, lm_head]\n", EMBEDDING | HEAD, false},
        {"lora_modules_to_save: [embed_tokens]\n", EMBEDDING, false},
        {"lora_modules_to_save: [embed_tokens, lm_head]\npeft_ensure_weight_tying: true\n", EMBEDDING | HEAD, true},
        {"", 0, true},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char text[512];
        snprintf(text, sizeof text, "%slora_target_linear: true\n%s", TIED, jobs[i].keys);
        struct told t = tell(text, NULL, 8);
        ck_assert_uint_eq(t.d.job.job.adapter.whole, jobs[i].whole);
        ck_assert_msg(t.d.job.model.tied_embeddings == jobs[i].tied, "%zu", i);
        if (jobs[i].tied)
            expect_quiet(&t, "apart");
        else
            expect_warning_at(&t, "peft trains a copy of each named one, so they are two tables", 8, 23);
        told_free(&t);
    }
}
END_TEST

/* Several words behind a flag of a script. */
START_TEST(modules_of_a_command)
{
    struct told t = tell(NULL,
                         "accelerate launch t.py --model_name_or_path meta-llama/Meta-Llama-3-8B --use_peft --lora_r 16 "
                         "--lora_target_modules o_proj down_proj --lora_modules_to_save embed_tokens lm_head --use_dora "
                         "--per_device_train_batch_size 1 --max_seq_length 4096",
                         8);
    ck_assert_int_eq(t.d.job.job.adapter.rank, 16);
    ck_assert_uint_eq(t.d.job.job.adapter.targets, 1 << ADAPT_PROJECTION | 1 << ADAPT_MLP_DOWN);
    ck_assert_uint_eq(t.d.job.job.adapter.whole, EMBEDDING | HEAD);
    expect_warning(&t, "use_dora (every pass computes norms");
    told_free(&t);
}
END_TEST

/* Of each a warning, at its key. */
START_TEST(kinds_of_adapters_are_told)
{
    static const struct {
        const char *keys, *warning; /* NULL: none */
        int line, column;
    } jobs[] = {
        {"adapter: lora\npeft_use_dora: true\n", "peft_use_dora (every pass computes norms", 6, 16},
        {"adapter: lora\npeft_use_dora: false\n", NULL, 0, 0},
        {"peft_use_dora: true\n", NULL, 0, 0},
        {"adapter: lora\nlora_dropout: 0.05\n", "lora_dropout (each adapter reads, and keeps, its own copy", 6, 15},
        {"adapter: lora\nlora_dropout: 0.0\n", NULL, 0, 0},
        {"lora_dropout: 0.05\n", NULL, 0, 0},
        {"adapter: lora\npeft_trainable_token_indices: [128000, 128001]\n",
         "peft_trainable_token_indices (rows of the embedding are trained, for which each pass copies all of it and has its "
         "whole gradient: 0.979 GiB each",
         6, 31},
        {"adapter: lora\npeft_trainable_token_indices: {embed_tokens: [128000]}\n", "rows of the embedding", 6, 31},
        {"adapter: lora\nlora_target_parameters: [mlp.experts.down_proj]\n", "lora_target_parameters (adapters of parameters", 6,
         25},
        {"adapter: lora\npeft_layer_replication: [[0, 16], [8, 32]]\n", "layers appear several times", 6, 25},
        {"adapter: qlora\n", "adapter (the frozen weights are kept in 4 bits", 5, 10},
        {"adapter: qlora\nload_in_4bit: true\n", "load_in_4bit (weights are kept in 8 or 4 bits", 6, 15},
        {"adapter: lora\npeft_layers_to_transform: [0, 1]\n", "peft_layers_to_transform (adapters of 2 of 32 layers", 6, 27},
        {"rl: dpo\n", "rl (a step with more than one model", 5, 5},
        {"rl:\n", NULL, 0, 0},
        {"adapter: lora\npeft_layers_to_transform: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, "
         "21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]\n",
         NULL, 0, 0},
        {"adapter: lora\npeft_layers_to_transform: 5\n", "adapters of 1 of 32 layers", 6, 27},
        {"unfrozen_parameters: [lm_head]\n", "unfrozen_parameters (only some parameters", 5, 22},
        {"unfrozen_parameters: []\n", NULL, 0, 0},
        {"optimizer: adafactor\n", "--optimizer adafactor; msim assumes adam", 5, 12},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s%s", AXOLOTL, jobs[i].keys, "lora_r: 8\nlora_target_linear: true\n");
        struct told t = tell(text, NULL, 8);
        if (jobs[i].warning)
            expect_warning_at(&t, jobs[i].warning, jobs[i].line, jobs[i].column);
        else
            expect_quiet(&t, "not modelled");
        told_free(&t);
    }
}
END_TEST

START_TEST(factory_kinds_are_told)
{
    static const struct {
        const char *keys, *warning; /* NULL: none */
    } jobs[] = {
        {"stage: sft\n", NULL},
        {"stage: pt\n", NULL},
        {"stage: dpo\n", "stage (a step with more than one model"},
        {"use_dora: true\n", "use_dora (every pass computes norms"},
        {"use_galore: true\nuse_badam: false\n", "use_galore (the optimizer's states are those of a projection"},
        {"shift_attn: true\n", "shift_attn (attention within groups"},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char text[512];
        snprintf(text, sizeof text, "%sfinetuning_type: lora\n%s", FACTORY, jobs[i].keys);
        struct told t = tell(text, NULL, 8);
        expect_modelled_but(&t, jobs[i].warning);
        ck_assert_int_eq(t.d.job.job.adapter.rank, 8);
        told_free(&t);
    }
}
END_TEST

/* Matrices have other names in other families; c_proj is two matrices of GPT-2's layers and one of StarCoder2's. */
START_TEST(matrices_in_the_words_of_families)
{
    static const struct {
        const char *model, *modules;
        int targets;
        const char *warning;
    } jobs[] = {
        {"EleutherAI/gpt-neox-20b", "query_key_value, dense, dense_h_to_4h, dense_4h_to_h", ALL, NULL},
        {"tiiuae/falcon-7b", "query_key_value", 1 << ADAPT_QKV, NULL},
        {"bigscience/bloom-7b1", "self_attention.query_key_value, self_attention.dense", ATTENTION, NULL},
        {"EleutherAI/gpt-j-6b", "q_proj, k_proj, v_proj, out_proj, fc_in, fc_out", ALL, NULL},
        {"gpt2-xl", "c_attn", 1 << ADAPT_QKV, NULL},
        {"gpt2-xl", "c_proj", 1 << ADAPT_PROJECTION | 1 << ADAPT_MLP_DOWN, NULL},
        {"gpt2-xl", "attn.c_proj, c_fc", 1 << ADAPT_PROJECTION | 1 << ADAPT_MLP_UP, NULL},
        {"bigcode/starcoder2-7b", "c_fc, c_proj", FEED, NULL},
        {"mosaicml/mpt-7b", "Wqkv, out_proj, up_proj, down_proj", ALL, NULL},
        {"internlm/internlm2-7b", "wqkv, wo, w1, w3, w2", ALL, NULL},
        {"baichuan-inc/Baichuan2-7B-Base", "W_pack, o_proj", ATTENTION, NULL},
        {"gpt2-xl", "c_attn, wibble", 1 << ADAPT_QKV, "('wibble' is none of the matrices"},
        {"gpt2-xl", "wpe, xc_attn", 0, "('xc_attn' is none of the matrices"}, /* no end of a path */
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "base_model: %s\nsequence_len: 1024\nmicro_batch_size: 2\nbf16: true\nadapter: lora\nlora_r: 8\n"
                 "lora_target_modules: [%s]\n",
                 jobs[i].model, jobs[i].modules);
        struct told t = tell(text, NULL, 8);
        ck_assert_msg(t.diags.n_errors == 0 && t.d.job.job.adapter.targets == (uint32_t)jobs[i].targets, "%zu: %u, %s", i,
                      t.d.job.job.adapter.targets, t.diags.n_items ? t.diags.items[0].text : "");
        expect_modelled_but(&t, jobs[i].warning);
        told_free(&t);
    }
}
END_TEST

#define NEMO1                                                                                                                    \
    "trainer: {devices: 8, num_nodes: 1, precision: bf16}\nmodel: {num_layers: 4, hidden_size: 512, num_attention_heads: 8,\n"   \
    "  micro_batch_size: 1, encoder_seq_length: 1024%s}\n%s"
#define NEMO2                                                                                                                    \
    "trainer: {devices: 8, num_nodes: 1, strategy: {tensor_model_parallel_size: 4}, plugins: {precision: bf16-mixed}}\n"         \
    "model: {config: {_target_: nemo.collections.llm.Llama2Config70B%s}}\ndata: {micro_batch_size: 1, seq_length: 4096}\n%s"

/* By a scalar, with what their recipes have for the rest. */
START_TEST(nemo_by_a_scalar)
{
    static const struct {
        const char *form, *model, *keys;
        int64_t rank;
        int targets;
        const char *warning;
    } jobs[] = {
        {NEMO2, "", "peft: lora\n", 32, ALL, NULL},
        {NEMO2, "", "peft: {peft_scheme: lora}\n", 32, ALL, NULL},
        {NEMO2, "", "peft: null\n", 0, 0, NULL},
        {NEMO2, "", "peft: none\n", 0, 0, NULL},
        {NEMO2, "", "peft: dora\n", 32, ALL, "peft (every pass computes norms"},
        {NEMO2, "", "peft: {_target_: nemo.collections.llm.peft.DoRA, dim: 16}\n", 16, ALL, "peft._target_ (every pass"},
        {NEMO2, "",
         "peft: {_target_: nemo.collections.llm.peft.CanonicalLoRA, target_modules: [linear_fc1_up, linear_fc1_gate]}\n", 32,
         1 << ADAPT_MLP_UP, NULL},
        {NEMO1, "", "peft: lora\n", 32, 1 << ADAPT_QKV, NULL},
        {NEMO1, ", peft: lora", "", 32, 1 << ADAPT_QKV, NULL},
        {NEMO1, ", peft: {peft_scheme: qlora}", "", 32, 1 << ADAPT_QKV, "model.peft.peft_scheme (the frozen weights"},
        {NEMO1, ", peft: {peft_scheme: lora, lora_tuning: {target_modules: [attention_qkv], layer_selection: [1, 4]}}", "", 32,
         1 << ADAPT_QKV, "model.peft.lora_tuning.layer_selection (adapters of 2 of 4 layers"},
        {NEMO1, ", peft: {peft_scheme: lora, lora_tuning: {layer_selection: null, weight_tying: true}}", "", 32, 1 << ADAPT_QKV,
         "weight_tying (layers share"},
        {NEMO2, "",
         "peft: {_target_: nemo.LoRA, dim: 16, target_modules: ['*.layers.0.*.linear_qkv', '*.layers.1.*.linear_qkv']}\n", 16,
         1 << ADAPT_QKV, "peft.target_modules (matrices of some layers"},
        {NEMO2, "", "peft: {_target_: nemo.LoRA, dim: 16, target_modules: ['*linear_qkv', '*.linear_proj']}\n", 16, ATTENTION,
         NULL},
        {NEMO2, "", "peft: {_target_: nemo.LoRA, dim: 16, target_modules: [], exclude_modules: ['*.linear_qkv']}\n", 16,
         ALL & ~(1 << ADAPT_QKV), NULL},
        {NEMO2, "", "peft: {_target_: nemo.LoRA, dim: 16, dropout: 0.1}\n", 16, ALL, "peft.dropout (each adapter"},
        {NEMO1, ", peft: {peft_scheme: ptuning}", "", 0, 0, "model.peft.peft_scheme (only an adapter's weights"},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char text[768];
        snprintf(text, sizeof text, jobs[i].form, jobs[i].model, jobs[i].keys);
        struct told t = tell(text, NULL, 8);
        expect_adapter(&t, i, jobs[i].rank, (uint32_t)jobs[i].targets);
        if (jobs[i].warning)
            expect_warning(&t, jobs[i].warning);
        told_free(&t);
    }
}
END_TEST

/* On the command line of NeMo 2, where nothing else says what LoRA is. */
START_TEST(nemo_by_a_command)
{
    static const char command[] = "nemo llm finetune --factory llama3_8b %s trainer.devices=8 trainer.num_nodes=1 "
                                  "data.micro_batch_size=1 data.seq_length=4096 data.global_batch_size=16";
    for (int i = 0; i < 2; i++) {
        char line[256];
        snprintf(line, sizeof line, command, i ? "peft=lora" : "");
        struct told t = tell(NULL, line, 0);
        ck_assert_msg(t.diags.n_errors == 0, "%s", t.diags.n_items ? t.diags.items[0].text : "");
        ck_assert_int_eq(t.d.job.job.adapter.rank, i ? 32 : 0);
        ck_assert_uint_eq(t.d.job.job.adapter.targets, i ? ALL : 0);
        ck_assert_int_eq(t.d.job.model.layers, 32);
        told_free(&t);
    }
}
END_TEST

#define PEFT                                                                                                                     \
    "{\"peft_type\": \"LORA\", \"base_model_name_or_path\": \"%s\", \"r\": 8,\n"                                                 \
    " \"target_modules\": %s, %s}"

/* What it says of biases, layers and modules that have none. */
START_TEST(pefts_other_keys)
{
    static const struct {
        const char *model, *modules, *keys;
        int targets;
        const char *warning; /* NULL: nothing is not modelled */
    } jobs[] = {
        {"meta-llama/Meta-Llama-3-8B", "\"all-linear\"", "\"exclude_modules\": [\"gate_proj\", \"up_proj\", \"lm_head\"]",
         ATTENTION | 1 << ADAPT_MLP_DOWN, NULL},
        {"meta-llama/Meta-Llama-3-8B", "\"all-linear\"", "\"exclude_modules\": [\"q_proj\"]", ALL,
         "target_modules (adapters for parts of qkv"},
        {"meta-llama/Meta-Llama-3-8B", "\"all-linear\"", "\"exclude_modules\": [\"model.layers.0.mlp.down_proj\"]", ALL,
         "exclude_modules (matrices of some layers"},
        {"meta-llama/Meta-Llama-3-8B", "\"all-linear\"", "\"exclude_modules\": [\"vision_tower\"]", ALL,
         "exclude_modules ('vision_tower' is none of the matrices"},
        {"meta-llama/Meta-Llama-3-8B", "\"all-linear\"", "\"exclude_modules\": null, \"bias\": \"none\"", ALL, NULL},
        {"meta-llama/Meta-Llama-3-8B", "\"all-linear\"", "\"bias\": \"all\"", ALL, NULL}, /* it has none */
        /* 28 layers of (28 + 2 x 4) x 128 */
        {"Qwen/Qwen2.5-7B", "\"all-linear\"", "\"bias\": \"all\"", ALL, "bias (0.129 M biases are trained, too"},
        {"Qwen/Qwen2.5-7B", "[\"o_proj\"]", "\"bias\": \"lora_only\"", 1 << ADAPT_PROJECTION, NULL},
        /* 44 layers of 3 x 6144; with all others of (3 + 1 + 4 + 1) x 6144 and two norms */
        {"EleutherAI/gpt-neox-20b", "[\"query_key_value\"]", "\"bias\": \"lora_only\"", 1 << ADAPT_QKV, "bias (0.811 M biases"},
        {"EleutherAI/gpt-neox-20b", "[\"query_key_value\"]", "\"bias\": \"all\"", 1 << ADAPT_QKV, "bias (2.97 M biases"},
        {"Qwen/Qwen2.5-7B", "[\"o_proj\"]", "\"lora_bias\": true", 1 << ADAPT_PROJECTION, "lora_bias (adapters with biases"},
        {"Qwen/Qwen2.5-7B", "[\"model.layers.3.self_attn.o_proj\"]", "\"lora_bias\": false", 1 << ADAPT_PROJECTION,
         "target_modules (matrices of some layers"},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        char text[512];
        snprintf(text, sizeof text, PEFT, jobs[i].model, jobs[i].modules, jobs[i].keys);
        struct told t = tell(text, "torchrun t.py --per_device_train_batch_size 1 --max_seq_length 4096 --bf16 true", 8);
        ck_assert_msg(t.diags.n_errors == 0 && t.d.job.job.adapter.targets == (uint32_t)jobs[i].targets, "%zu: %u, %s", i,
                      t.d.job.job.adapter.targets, t.diags.n_items ? t.diags.items[0].text : "");
        expect_modelled_but(&t, jobs[i].warning);
        told_free(&t);
    }
}
END_TEST

/* peft's own file beside a script says what the script leaves out. */
START_TEST(pefts_own_file)
{
    struct told t = tell("{\"peft_type\": \"LORA\", \"base_model_name_or_path\": \"meta-llama/Meta-Llama-3-8B\", \"r\": 32,\n"
                         " \"target_modules\": [\"q_proj\", \"k_proj\", \"v_proj\"], \"modules_to_save\": [\"lm_head\"],\n"
                         " \"use_dora\": false, \"layers_to_transform\": null, \"rank_pattern\": {\"q_proj\": 8}}",
                         "torchrun t.py --per_device_train_batch_size 1 --max_seq_length 4096 --bf16 true", 8);
    expect_layout(&t, "tp=1,cp=1,pp=1,vpp=1,dp=8,ep=1,mb=1,zero=0,sp=0,recompute=none,schedule=none", 8);
    ck_assert_int_eq(t.d.job.model.layers, 32);
    ck_assert_int_eq(t.d.job.job.adapter.rank, 32);
    ck_assert_uint_eq(t.d.job.job.adapter.targets, 1 << ADAPT_QKV);
    ck_assert_uint_eq(t.d.job.job.adapter.whole, HEAD);
    expect_warning(&t, "rank_pattern (ranks that differ by module");
    expect_quiet(&t, "use_dora");
    told_free(&t);
}
END_TEST

/* peft's target_modules as one text is a pattern of the names of the model's own modules. */
START_TEST(patterns_of_modules)
{
#define PATTERN(model, pattern) "peft_type: LORA\nr: 8\nbase_model_name_or_path: " model "\ntarget_modules: '" pattern "'\n"
#define LLAMA                   "meta-llama/Meta-Llama-3-8B"
    static const struct {
        const char *text;
        int targets;
        const char *warning;
    } cases[] = {
        {PATTERN(LLAMA, ".*\\.(q|k|v|o)_proj"), ATTENTION, NULL},
        {PATTERN(LLAMA, "^model\\.layers\\.\\d+\\.(self_attn|mlp)\\..*"), ALL, NULL},
        {PATTERN(LLAMA, ".*(gate|up|down)_proj$"), FEED, NULL},
        {PATTERN(LLAMA, ".*[qv]_proj"), 1 << ADAPT_QKV, "adapters for parts of qkv"},
        {PATTERN(LLAMA, ".*layers\\.(1[0-9])\\.self_attn\\.[qkv]_proj"), 1 << ADAPT_QKV, "matrices of some layers"},
        {PATTERN(LLAMA, ".*(q|k|v|o)_proj|lm_head"), ATTENTION, "adapters of embedding or head"},
        {PATTERN(LLAMA, ".*c_attn$"), 0, "matches none of the model's modules, such as model.layers.0.self_attn.q_proj"},
        {PATTERN(LLAMA, ".*(?<!x)_proj"), 0, "the pattern cannot be read: a look ahead or behind"},
        {PATTERN("gpt2", ".*\\.attn\\.c_(attn|proj)"), ATTENTION, NULL},
        {PATTERN("gpt2", ".*c_proj"), 1 << ADAPT_PROJECTION | 1 << ADAPT_MLP_DOWN, NULL},
        {PATTERN("EleutherAI/pythia-1b", ".*(query_key_value|dense)"), ATTENTION, NULL},
        {PATTERN("mosaicml/mpt-7b", "transformer\\.blocks\\.\\d+\\.(attn\\.Wqkv|attn\\.out_proj)"), ATTENTION, NULL},
        {PATTERN("mistralai/Mixtral-8x7B-v0.1", ".*self_attn.*"), ATTENTION, NULL},
        {PATTERN("mistralai/Mixtral-8x7B-v0.1", ".*w[13]|.*o_proj"), 1 << ADAPT_PROJECTION, "adapters of experts"},
        {PATTERN(LLAMA, ".*_proj") "exclude_modules: '.*mlp.*'\n", ATTENTION, NULL},
        {PATTERN(LLAMA, ".*_proj") "exclude_modules: '.*layers\\.3\\.mlp.*'\n", ALL, "matrices of some layers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell(cases[i].text, "--seq-length 1024 --micro-batch-size 1 --bf16", 8);
        ck_assert_msg(t.diags.n_errors == 0, "%zu: %s", i, t.diags.items[0].text);
        expect_adapter(&t, i, cases[i].targets ? 8 : 0, (uint32_t)cases[i].targets);
        expect_modelled_but(&t, cases[i].warning);
        told_free(&t);
    }
    /* Axolotl hands its own to peft; a list is none */
    struct told t = tell(AXOLOTL "adapter: lora\nlora_r: 8\nlora_target_modules: '.*(self_attn|mlp).*'\n", NULL, 8);
    expect_adapter(&t, 100, 8, ALL);
    told_free(&t);
    t = tell(AXOLOTL "adapter: lora\nlora_r: 8\nlora_target_modules: [q_proj, k_proj, v_proj]\n", NULL, 8);
    expect_adapter(&t, 101, 8, 1 << ADAPT_QKV);
    told_free(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("launch_adapter");
    TCase *all = tcase_create("all");
    tcase_add_test(all, adapters_in_the_words_of_others);
    tcase_add_test(all, patterns_of_modules);
    tcase_add_test(all, modules_that_are_trained_whole);
    tcase_add_test(all, tables_that_were_one_are_apart);
    tcase_add_test(all, modules_of_a_command);
    tcase_add_test(all, kinds_of_adapters_are_told);
    tcase_add_test(all, factory_kinds_are_told);
    tcase_add_test(all, matrices_in_the_words_of_families);
    tcase_add_test(all, nemo_by_a_scalar);
    tcase_add_test(all, nemo_by_a_command);
    tcase_add_test(all, pefts_other_keys);
    tcase_add_test(all, pefts_own_file);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
