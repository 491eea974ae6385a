/* Experiments: what is read, what is filled in, what flags and overrides change, and that the effective configuration repeats it.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/memory.h"
#include "tests/spec/experiment_loaded.h"
#include "tests/suite.h"

START_TEST(the_example_of_the_manual)
{
    load(&the_file);
    ck_assert_str_eq(e.model.name, "gpt-175b-megascale");
    ck_assert_int_eq(e.model.layers, 96);
    ck_assert_str_eq(e.cluster.name, "megascale-a100");
    ck_assert_int_eq(e.gpus, 12288);
    ck_assert_int_eq(e.cluster.nodes, 1536);
    ck_assert_str_eq(e.cluster.gpu.name, "a100-80g-sxm");
    ck_assert_int_eq(e.job.global_batch, 6144);
    ck_assert_int_eq(e.job.seq_len, 2048);
    ck_assert_int_eq(e.job.precision, PRECISION_BF16);
    ck_assert_int_eq(e.job.gradient_precision, PRECISION_FP32);
    ck_assert_int_eq(e.job.optimizer, OPTIMIZER_ADAM);
    ck_assert_uint_eq(e.job.features, FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(PARALLEL_BLOCK) | FEATURE_BIT(SLIDING_WINDOW) |
                                          FEATURE_BIT(TP_OVERLAP) | FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP));
    ck_assert(e.layout.given);
    ck_assert_str_eq(e.layout.text, "tp=8,pp=8,vpp=6,micro_batch=1,zero=2");
    ck_assert_str_eq(e.faults.trace, "llama3-54d");
    ck_assert_double_eq(e.faults.checkpoint_interval_s, 1800);
    ck_assert_int_eq(e.faults.spares, 4);
    ck_assert_double_eq(e.job.tokens, 300e9);
    ck_assert_uint_eq(e.seed, 7);
}
END_TEST

START_TEST(defaults_follow_from_the_rest)
{
    load(&two_names);
    ck_assert_int_eq(e.job.seq_len, 2048);
    ck_assert_int_eq(e.gpus, 12288);
    ck_assert_int_eq(e.job.global_batch, 12288); /* with a note */
    ck_assert(!e.layout.given);
    ck_assert_int_eq(e.faults.spares, -1);
    ck_assert_uint_eq(e.seed, 1);
    load_with((struct experiment_flags){.model = "tiny-gpt", .gpu = "v100-32g-sxm"}, NULL);
    ck_assert_int_eq(e.job.precision, PRECISION_FP16); /* it has no bf16, nor kernels of FlashAttention-2 */
    ck_assert_uint_eq(e.job.features, (FEATURES_USUAL & ~FEATURES_FLASH) | FEATURE_BIT(FLASH_ATTENTION));
    ck_assert_int_eq(e.gpus, 8);
    ck_assert_str_eq(e.cluster.name, "v100-32g-sxm-node");
    ck_assert_int_eq(e.cluster.fabric_layers, 1);
}
END_TEST

/* +NAME and -NAME are of the usual features, of a file's, or of what was said before, in the order in which they stand. */
START_TEST(features_change)
{
    const struct experiment_flags named = {.model = "llama2-7b", .cluster = "dgx-h100"};
    struct experiment_flags flags = named;
    load(&flags);
    const feature_set usual = e.job.features, file = FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(PARALLEL_BLOCK) |
                                                     FEATURE_BIT(SLIDING_WINDOW) | FEATURE_BIT(TP_OVERLAP) |
                                                     FEATURE_BIT(PP_OVERLAP) | FEATURE_BIT(DP_OVERLAP);
    const struct {
        bool of_file;
        const char *overrides[2];
        feature_set features;
    } cases[] = {
        {false, {"job.features=[+ep_overlap]", NULL}, usual | FEATURE_BIT(EP_OVERLAP)},
        {false, {"job.features=+ep_overlap,-tp_overlap", NULL}, (usual | FEATURE_BIT(EP_OVERLAP)) & ~FEATURE_BIT(TP_OVERLAP)},
        {false, {"job.features=[-tp_overlap, +tp_overlap]", NULL}, usual},
        {false, {"job.features=+flash_attention3", NULL}, (usual & ~FEATURES_FLASH) | FEATURE_BIT(FLASH_ATTENTION3)},
        {false, {"job.features=[compile, +cuda_graphs]", NULL}, FEATURE_BIT(COMPILE) | FEATURE_BIT(CUDA_GRAPHS)},
        {false, {"job.features=none", "job.features=+compile"}, FEATURE_BIT(COMPILE)},
        {false,
         {"job.features=+compile", "job.features=[+cuda_graphs]"},
         usual | FEATURE_BIT(COMPILE) | FEATURE_BIT(CUDA_GRAPHS)},
        {false, {"job.features=+compile", "job.features=async_tp"}, FEATURE_BIT(ASYNC_TP)},
        {false, {"job.features=[]", "job.features=+compile"}, FEATURE_BIT(COMPILE)},
        {false, {"job.features=null", NULL}, usual}, /* as if nothing was said */
        {false, {"job.features=null", "job.features=+compile"}, usual | FEATURE_BIT(COMPILE)},
        {true, {"job.features=", NULL}, usual},
        {false,
         {"job.features=[-tp_overlap]", "job.features=+compile"},
         (usual | FEATURE_BIT(COMPILE)) & ~FEATURE_BIT(TP_OVERLAP)},
        {true, {"job.features=-tp_overlap", NULL}, file & ~FEATURE_BIT(TP_OVERLAP)},
        {true, {"job.features=[+compile]", "job.features=-pp_overlap"}, (file | FEATURE_BIT(COMPILE)) & ~FEATURE_BIT(PP_OVERLAP)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        flags = cases[i].of_file ? the_file : named;
        flags.overrides = cases[i].overrides;
        flags.n_overrides = cases[i].overrides[1] ? 2 : 1;
        load(&flags);
        ck_assert_msg(e.job.features == cases[i].features, "%s: %x, not %x", cases[i].overrides[0], e.job.features,
                      cases[i].features);
    }
}
END_TEST

/* A list of a single feature produces a warning that names what it turns off; a change of the defaults, or one of them, does not.
 * Names count, not changes. Removing a feature that is not there produces a warning that lists those that are. */
START_TEST(features_that_are_not_meant_warn)
{
    static const char without[] = "fused_ops, tp_overlap, pp_overlap, dp_overlap, async_data, fused_loss";
    char usual[256];
    snprintf(usual, sizeof usual, "-flash_attention, -compile has no effect; the job has flash_attention2, %s", without);
    const struct {
        const char *overrides[2];
        const char *said; /* NULL: nothing */
    } cases[] = {
        {{"job.features=ep_overlap", NULL}, "features: only ep_overlap, without"},
        {{"job.features=ep_overlap", "job.features=+compile"}, "features: only ep_overlap, without"},
        {{"job.features=ep_overlap", "job.features=+compile"}, "; +ep_overlap adds to these"},
        {{"job.features=+ep_overlap", NULL}, NULL},
        {{"job.features=tp_overlap", NULL}, NULL},
        {{"job.features=none", NULL}, NULL},
        {{"job.features=none", "job.features=+compile"}, NULL},
        {{"job.features=[]", "job.features=+compile"}, NULL},
        {{"job.features=-tp_overlap", NULL}, NULL},
        {{"job.features=-flash_attention,-compile", NULL}, usual},
        {{"job.features=-tp_overlap", "job.features=-tp_overlap"}, "-tp_overlap has no effect; the job has flash_attention2,"},
        {{"job.features=none", "job.features=-compile"}, "-compile has no effect; the job has none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct experiment_flags flags = {.model = "llama2-7b",
                                         .cluster = "dgx-h100",
                                         .overrides = (const char **)cases[i].overrides,
                                         .n_overrides = cases[i].overrides[1] ? 2 : 1};
        struct diags diags = {0};
        ck_assert_int_eq(experiment_load(&flags, &e, &diags), STATUS_OK);
        char *words = said(&diags);
        bool told = cases[i].said ? strstr(words, cases[i].said) != NULL : strstr(words, "features:") == NULL;
        ck_assert_msg(told, "%s: %s", cases[i].overrides[0], words);
        free(words);
        diags_free(&diags);
    }
}
END_TEST

/* However a layout is typed, what is written of it is one text. */
START_TEST(layouts_have_one_order)
{
    static const char *const typed[] = {"tp=8,pp=4,vpp=2,mb=1,zero=1,shard=8", "shard=8,zero=1,mb=1,vpp=2,pp=4,tp=8",
                                        "mb1 pp4 z1/8 vpp2 tp8"};
    char *first = NULL;
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++) {
        struct experiment_flags flags = the_file;
        flags.layout = typed[i];
        load(&flags);
        ck_assert_str_eq(e.layout.text, "tp=8,pp=4,vpp=2,micro_batch=1,zero=1,shard=8");
        char *json = experiment_to_json(&e);
        if (first)
            ck_assert_str_eq(json, first);
        else
            first = json;
        if (json != first)
            free(json);
    }
    free(first);
}
END_TEST

START_TEST(flags_win)
{
    struct experiment_flags flags = the_file;
    flags.model = "gpt3-175b";
    flags.layout = "tp=4, pp=2,mb=2,sp=1";
    load(&flags);
    ck_assert_str_eq(e.model.name, "gpt3-175b");
    ck_assert_str_eq(e.layout.text, "tp=4,pp=2,micro_batch=2,sequence_parallel=1");
    ck_assert_int_eq(e.gpus, 12288);
    flags.layout = " tp = 4 , mb=2 ,  sp= 1 ";
    load(&flags);
    ck_assert_str_eq(e.layout.text, "tp=4,micro_batch=2,sequence_parallel=1");
    flags.layout = "tp=4,ep=8,expert_tensor_parallel=4";
    load(&flags);
    ck_assert_str_eq(e.layout.text, "tp=4,ep=8,etp=4");
    flags.layout = "auto";
    flags.cluster = "dgx-h100";
    load_with(flags, "cluster.gpus=512");
    ck_assert(!e.layout.given);
    ck_assert_int_eq(e.gpus, 512);
    flags.overrides = (const char *const[]){"cluster.gpus=1016"};
    flags.n_overrides = 1;
    flags.gpu = "h200-sxm"; /* another GPU in the cluster that is there */
    load(&flags);
    ck_assert_str_eq(e.cluster.name, "dgx-h100");
    ck_assert_str_eq(e.cluster.gpu.name, "h200-sxm");
}
END_TEST

/* What is said of experts' loads is written again, and what follows from it is there. */
START_TEST(loads_of_experts_come_back)
{
    static const char text[] = "model: mixtral-8x7b\ncluster: {base: dgx-h100, gpus: 8}\n"
                               "job: {expert_load: 1.75, capacity_factor: 1.25, pad_to_capacity: true}\n";
    struct diags diags = {0};
    ck_assert_int_eq(experiment_parse_text("t.yaml", text, strlen(text), &e, &diags), STATUS_OK);
    for (int again = 0; again < 2; again++) {
        const struct expert_load *load = &e.job.load;
        ck_assert_double_eq(load->busiest, 1.75);
        ck_assert_double_eq(load->capacity, 1.25);
        ck_assert(load->padded && load->dropped > 0.01);
        ck_assert_double_eq(expert_load_rank(load, 4), 1.25);
        char *json = experiment_to_json(&e);
        ck_assert_int_eq(experiment_parse_text("t.json", json, strlen(json), &e, &diags), STATUS_OK);
        free(json);
    }
    diags_free(&diags);
}
END_TEST

/* "auto" with dimensions: those are given, the search finds the others; however it is written, and written again. */
START_TEST(auto_keeps_what_is_named)
{
    static const char *const files[] = {"layout: {auto: true, pp: 2, mb: 1}\n", "layout: auto,pp=2,mb=1\n", "layout: auto\n",
                                        "layout:\n"};
    char text[256];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct diags diags = {0};
        snprintf(text, sizeof text, "model: llama2-7b\ncluster: {base: dgx-h100, gpus: 8}\n%s", files[i]);
        ck_assert_int_eq(experiment_parse_text("t.yaml", text, strlen(text), &e, &diags), STATUS_OK);
        ck_assert(!e.layout.given);
        ck_assert_str_eq(e.layout.text, i < 2 ? "pp=2,micro_batch=1" : "");
        char *json = experiment_to_json(&e);
        ck_assert_int_eq(experiment_parse_text("t.json", json, strlen(json), &e, &diags), STATUS_OK);
        ck_assert(!e.layout.given);
        ck_assert_str_eq(e.layout.text, i < 2 ? "pp=2,micro_batch=1" : "");
        free(json);
        diags_free(&diags);
    }
    struct experiment_flags flags = the_file;
    flags.layout = "auto";
    load_with(flags, "layout.pp=2");
    ck_assert(!e.layout.given);
    ck_assert_str_eq(e.layout.text, "pp=2");
    load_with(flags, "layout.auto=false");
    ck_assert(e.layout.given);
    flags.layout = "auto,pp=4, tp=8";
    load(&flags);
    ck_assert(!e.layout.given);
    ck_assert_str_eq(e.layout.text, "tp=8,pp=4");
}
END_TEST

START_TEST(overrides_reach_any_key)
{
    load_with(the_file, "job.global_batch=3072");
    ck_assert_int_eq(e.job.global_batch, 3072);
    ck_assert_int_eq(e.job.optimizer, OPTIMIZER_ADAM);
    load_with(the_file, "cluster.gpus=256");
    ck_assert_int_eq(e.gpus, 256);
    load_with(the_file, "cluster.gpu.hbm_rate=3TB/s");
    ck_assert_double_eq(e.cluster.gpu.hbm_rate, 3e12);
    ck_assert_int_eq(e.cluster.gpu.sms, 108);
    load_with(the_file, "cluster.gpu.gemm.bf16.peak_fraction=0.5");
    ck_assert_double_eq(e.cluster.gpu.gemm[PRECISION_BF16].peak_fraction, 0.5);
    load_with(the_file, "cluster.gpu=h100-sxm");
    ck_assert_int_eq(e.cluster.gpu.sms, 132);
    load_with(the_file, "model.layers=48");
    ck_assert_int_eq(e.model.layers, 48);
    ck_assert_int_eq((int)e.model.hidden, 12288);
    load_with(the_file, "model=llama2-7b");
    ck_assert_str_eq(e.model.name, "llama2-7b");
    load_with(the_file, "layout.mb=3");
    ck_assert_str_eq(e.layout.text, "tp=8,pp=8,vpp=6,micro_batch=3,zero=2");
    load_with(the_file, "layout=tp=2");
    ck_assert_str_eq(e.layout.text, "tp=2");
    load_with(the_file, "job.features=[compile, async_data]");
    ck_assert_uint_eq(e.job.features, FEATURE_BIT(COMPILE) | FEATURE_BIT(ASYNC_DATA));
    load_with(the_file, "job.features=none");
    ck_assert_uint_eq(e.job.features, 0);
    load_with(the_file, "job.features=compile;async_tp");
    ck_assert_uint_eq(e.job.features, FEATURE_BIT(COMPILE) | FEATURE_BIT(ASYNC_TP));
    load_with(the_file, "job={global_batch: 512, precision: fp16}");
    ck_assert_int_eq(e.job.precision, PRECISION_FP16);
    load_with(the_file, "faults.horizon=974d");
    ck_assert_double_eq(e.faults.horizon_s, 974 * 86400.0);
    load_with(the_file, "seed=12");
    ck_assert_uint_eq(e.seed, 12);
}
END_TEST

/* 6144 sequences of 2048 tokens are 12,582,912 tokens; 4M are 1953.125 of them. What is said last counts, in whichever of the two
 * ways. */
START_TEST(a_batch_is_said_in_tokens)
{
    load_with(the_file, "job.batch_tokens=12582912");
    ck_assert_int_eq(e.job.global_batch, 6144);
    ck_assert_int_eq(e.job.batch_tokens, 0);
    char *json = experiment_to_json(&e);
    ck_assert_ptr_null(strstr(json, "batch_tokens"));
    free(json);
    load_with(the_file, "job.batch_tokens=4M");
    ck_assert_int_eq(e.job.global_batch, 1953);
    load_with(the_file, "job.batch_tokens=1");
    ck_assert_int_eq(e.job.global_batch, 1);
    load_with(the_file, "job.batch_tokens=null"); /* takes nothing back that is said in sequences */
    ck_assert_int_eq(e.job.global_batch, 6144);
    const char *const both_ways[2][2] = {{"job.batch_tokens=4096", "job.global_batch=7"},
                                         {"job.global_batch=7", "job.batch_tokens=4096"}};
    for (int i = 0; i < 2; i++) {
        struct experiment_flags flags = the_file;
        flags.overrides = both_ways[i];
        flags.n_overrides = 2;
        load(&flags);
        ck_assert_int_eq(e.job.global_batch, i ? 2 : 7);
    }
}
END_TEST

/* A model that is not its base, and has no name of its own, says so; one that is given what it has is its base. */
START_TEST(a_changed_model_says_so)
{
    static const struct {
        const char *model, *name;
    } cases[] = {
        {"llama3-8b", "llama3-8b"},
        {"{base: llama3-8b, layers: 16}", "llama3-8b (changed)"},
        {"{base: llama3-8b, layers: 32, norm: rms}", "llama3-8b"},
        {"{base: llama3-8b, layers: 032, hidden: 4Ki, tied_embeddings: no}", "llama3-8b"},
        {"{base: llama3-8b, layers: 32.0, linear_bias: false, window: 0}", "llama3-8b"},
        {"{base: llama3-8b, tied_embeddings: yes}", "llama3-8b (changed)"},
        {"{base: llama3-8b, layers: 16, name: mine}", "mine"},
        {"{base: llama3-8b, published_parameters: 8B, source: here, rope_theta: 10000}", "llama3-8b"},
        {"{base: mixtral-8x7b, moe: {top_k: 2}}", "mixtral-8x7b"},
        {"{base: mixtral-8x7b, moe: {top_k: 1}}", "mixtral-8x7b (changed)"},
        {"{base: mixtral-8x7b, moe: null, ffn_hidden: 14336}", "mixtral-8x7b (changed)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct diags diags = {0};
        int n = snprintf(text, sizeof text, "model: %s\ncluster: h100-sxm-node\njob: {global_batch: 8}\n", cases[i].model);
        ck_assert_int_eq(experiment_parse_text("t.yaml", text, (size_t)n, &e, &diags), STATUS_OK);
        ck_assert_str_eq(e.model.name, cases[i].name);
        ck_assert_uint_eq(model_name_length(e.model.name), strcspn(cases[i].name, " "));
        diags_free(&diags);
    }
    struct experiment_flags flags = {.model = "llama3-8b", .gpu = "h100-sxm"};
    load_with(flags, "model.hidden=2048");
    ck_assert_str_eq(e.model.name, "llama3-8b (changed)");
    char *json = experiment_to_json(&e); /* a result is an experiment of the same name */
    struct diags diags = {0};
    ck_assert_int_eq(experiment_parse_text("again", json, strlen(json), &e, &diags), STATUS_OK);
    ck_assert_str_eq(e.model.name, "llama3-8b (changed)");
    diags_free(&diags);
    free(json);
}
END_TEST

/* A model that is written out under its name, as in a result, is another one where a flag changes it, but not where the flag
 * names it. */
START_TEST(a_result_whose_model_a_flag_changes_says_so)
{
    static const struct {
        const char *model, *override, *name;
    } cases[] = {
        {"name: x, ", "model.layers=3", "x (changed)"},
        {"name: x, ", "model.layers=2", "x"},
        {"name: x, ", "model.layers=2.0", "x"},
        {"name: x, ", "model.published_parameters=8B", "x"},
        {"name: x, ", "model={layers: 3, heads: 4}", "x (changed)"},
        {"name: x, ", "model={layers: 3, name: y}", "y"},
        {"name: x, ", "model.name=x (changed)", "x (changed)"},
        {"name: x, ", "model=llama3-8b", "llama3-8b"},
        {"name: x, ", "job.seq_len=32", "x"},
        {"name: x (changed), ", "model.layers=3", "x (changed)"},
        {"", "model.layers=3", "model"},
        {"base: llama3-8b, name: x, ", "model.kv_heads=8", "x (changed)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        int n = snprintf(text, sizeof text,
                         "model: {%ssource: here, layers: 2, hidden: 64, heads: 8, kv_heads: 4, vocab: 64, max_seq_len: 64}\n"
                         "cluster: h100-sxm-node\njob: {global_batch: 8}\n",
                         cases[i].model);
        load_with((struct experiment_flags){.file = temporary_file("result.yaml", text, (size_t)n)}, cases[i].override);
        ck_assert_str_eq(e.model.name, cases[i].name);
    }
}
END_TEST

/* Of the file's trace at 1800 s: what replaces either in another way takes it away. */
START_TEST(faults_are_said_in_one_way)
{
    load_with(the_file, "faults.checkpoint_steps=100");
    ck_assert_int_eq(e.faults.checkpoint_steps, 100);
    ck_assert_double_eq(e.faults.checkpoint_interval_s, 0);
    load_with(the_file, "faults.model=rsc-1");
    ck_assert_str_eq(e.faults.model, "rsc-1");
    ck_assert_str_eq(e.faults.trace, "");
    load_with(the_file, "faults={model: rsc-1, spares: 1}");
    ck_assert_str_eq(e.faults.model, "rsc-1");
    ck_assert_str_eq(e.faults.trace, "");
    ck_assert_int_eq(e.faults.spares, 1);
    load_with(the_file, "job={batch_tokens: 4096}");
    ck_assert_int_eq(e.job.global_batch, 2);
    load_with(the_file, "=faults.trace={a: 'b'}\xff\n #.csv");
    ck_assert_str_eq(e.faults.trace, "{a: 'b'}\xff\n #.csv");
    load_with(the_file, "faults.model=null");
    ck_assert_str_eq(e.faults.model, "");
    ck_assert_str_eq(e.faults.trace, "llama3-54d");
}
END_TEST

/* What result files hold is an experiment file that gives the same experiment, to the last bit. */
START_TEST(the_effective_configuration_repeats_the_experiment)
{
    static const char *const models[] = {"gpt-175b-megascale", "deepseek-v3", "gpt-oss-120b", "mpt-7b",
                                         "llama4-maverick",    "llama2-70b",  "apertus-70b",  "apertus-70b",
                                         "llama3-8b",          "llama3-8b",   "llama3-8b"};
    static const char *const clusters[] = {"megascale-a100", "gb300-nvl72", "llama3-h100", "v100-32g-sxm-node",
                                           "jean-zay-a100",  "llama3-h100", "alps",        "frontier",
                                           "dgx-h100",       "dgx-h100",    "dgx-h100"};
    static const char *const changes[] = {"cluster.net_fraction=0.123456789012345678",
                                          "faults.spares=0",
                                          "layout=tp=8,pp=2,sp=true",
                                          "faults={trace: x, restart: 15min, checkpoint_steps: 100}",
                                          "cluster.hop_latency=0.4us",
                                          "job.adapter={rank: 16, targets: [qkv, mlp_down]}",
                                          "cluster.nodes=1000",
                                          "cluster.global_links_per_switch=null",
                                          "job.documents={mean: 1.2k, spread: 1.1}",
                                          "job.documents={mean: 1234.5, spread: 0}",
                                          "job.moment_precision=fp8"};
    struct experiment again;
    struct diags diags = {0};
    load_with((struct experiment_flags){.model = models[_i], .cluster = clusters[_i]}, changes[_i]);
    char *text = experiment_to_json(&e);
    for (int i = 0; i < 3; i++) { /* what an entry may not say is not written either */
        static const char *const of_clos[] = {"\"leaf_oversubscription\"", "\"pod_oversubscription\"", "\"nic_split\""};
        ck_assert_int_eq(strstr(text, of_clos[i]) == NULL, e.cluster.topology == TOPOLOGY_DRAGONFLY);
    }
    memset(&again, 0, sizeof again);
    enum status status = experiment_parse_text("again", text, strlen(text), &again, &diags);
    char *words = said(&diags);
    ck_assert_msg(status == STATUS_OK, "%s\n%s", words, text);
    ck_assert_int_eq(memcmp(&e, &again, sizeof e), 0);
    free(words);
    free(text);
    diags_free(&diags);
}
END_TEST

/* A file named in a file is looked for beside it. */
START_TEST(files_name_their_neighbours)
{
    load(&(struct experiment_flags){.file = TEST_DATA "/neighbours.yaml"});
    ck_assert_str_eq(e.model.name, "my-llama");
    ck_assert_int_eq(e.model.layers, 4);
    ck_assert_int_eq((int)e.model.hidden, 4096); /* from llama2-7b, which it builds on */
    ck_assert_str_eq(e.cluster.name, "my-cluster");
    ck_assert_int_eq(e.cluster.leaf_nodes, 4);
    ck_assert_double_eq(e.cluster.gpu.hbm_rate, 2.5e12); /* changed in place */
    ck_assert_int_eq(e.cluster.gpu.sms, 108);
    ck_assert_int_eq(e.gpus, 16);
}
END_TEST

START_TEST(everything_in_place)
{
    load(&(struct experiment_flags){.file = TEST_DATA "/inline.json"});
    ck_assert_str_eq(e.model.source, "given in place");
    ck_assert_int_eq(e.model.head_dim, 64);
    ck_assert_int_eq((int)e.model.ffn_hidden, 1024);
    ck_assert_int_eq(e.cluster.nics_per_node, 8); /* one per GPU */
    ck_assert_double_eq(e.cluster.nic_rate, 25e9);
    ck_assert_int_eq(e.cluster.nvlink_domain, 8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("experiment");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, the_example_of_the_manual);
    tcase_add_test(tests, defaults_follow_from_the_rest);
    tcase_add_test(tests, faults_are_said_in_one_way);
    tcase_add_test(tests, a_changed_model_says_so);
    tcase_add_test(tests, a_result_whose_model_a_flag_changes_says_so);
    tcase_add_test(tests, features_change);
    tcase_add_test(tests, features_that_are_not_meant_warn);
    tcase_add_test(tests, layouts_have_one_order);
    tcase_add_test(tests, flags_win);
    tcase_add_test(tests, loads_of_experts_come_back);
    tcase_add_test(tests, auto_keeps_what_is_named);
    tcase_add_test(tests, overrides_reach_any_key);
    tcase_add_test(tests, a_batch_is_said_in_tokens);
    tcase_add_loop_test(tests, the_effective_configuration_repeats_the_experiment, 0, 11);
    tcase_add_test(tests, files_name_their_neighbours);
    tcase_add_test(tests, everything_in_place);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
