/* torchtitan: what it does without a key, its keys through the years, keys that a command sets, rates in its log. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/traces/launch_told.h"
#include "traces/launch/megatron/megatron_log.h"

#define TITAN "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\nlocal_batch_size = 4\n"
#define MODEL "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
#define BATCH "seq_len = 8192\nlocal_batch_size = 4\n"

/* A table of these keys, where only [training] has others beside them. */
static struct told tell_keys(const char *table, const char *keys, int gpus)
{
    char text[1024];
    bool training = strcmp(table, "training") == 0;
    snprintf(text, sizeof text, MODEL "[activation_checkpoint]\nmode = \"none\"\n[training]\n" BATCH "%s%s%s%s\n",
             training ? "" : "[", training ? "" : table, training ? "" : "]\n", keys);
    return tell(text, NULL, gpus);
}

static const char *const tables[] = {"training", "experimental", "parallelism"};

START_TEST(degrees_have_stood_in_three_tables)
{
    static const struct {
        const char *keys, *layout;
    } cases[] = {
        {"tp_degree = 4", "tp=4,cp=1,pp=1,vpp=1,dp=4,ep=1,mb=4,zero=3,sp=1,recompute=none,schedule=none"},
        {"tensor_parallel_size = 4", "tp=4,cp=1,pp=1,vpp=1,dp=4,ep=1,mb=4,zero=3,sp=1,recompute=none,schedule=none"},
        {"tensor_parallel_degree = 4", "tp=4,cp=1,pp=1,vpp=1,dp=4,ep=1,mb=4,zero=3,sp=1,recompute=none,schedule=none"},
        {"sequence_parallel_degree = 4", "tp=4,cp=1,pp=1,vpp=1,dp=4,ep=1,mb=4,zero=3,sp=1,recompute=none,schedule=none"},
        {"context_parallel_degree = 2",
         "tp=1,cp=2,cp_comm=all_gather,pp=1,vpp=1,dp=8,ep=1,mb=4,zero=3,sp=0,recompute=none,schedule=none"},
        {"data_parallel_replicate_degree = 4",
         "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=4,zero=3,shard=4,sp=0,recompute=none,schedule=none"},
        {"data_parallel_degree = 16", "tp=1,cp=1,pp=1,vpp=1,dp=16,ep=1,mb=4,zero=3,sp=0,recompute=none,schedule=none"},
        {"pipeline_parallel_degree = 2\npipeline_parallel_microbatches = 2",
         "tp=1,cp=1,pp=2,vpp=1,dp=8,ep=1,mb=2,zero=2,sp=0,recompute=none,schedule=1f1b"},
        {"pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"GPipe\"",
         "tp=1,cp=1,pp=2,vpp=1,dp=8,ep=1,mb=1,zero=2,sp=0,recompute=none,schedule=gpipe"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++) {
            struct told t = tell_keys(tables[k], cases[i].keys, 16);
            char text[LAYOUT_TEXT];
            ck_assert_msg(t.diags.n_items == 0, "%s: %s", tables[k], t.diags.n_items ? t.diags.items[0].text : "");
            ck_assert_str_eq(layout_format(&t.d.job.layout, text, sizeof text), cases[i].layout);
            told_free(&t);
        }
}
END_TEST

/* Where routing is forced to balance. */
START_TEST(forced_balance)
{
    static const char *const keys[] = {"[debug]\nmoe_force_load_balance = true\n", "debug_moe_force_load_balance = true\n", ""};
    for (int i = 0; i < 3; i++) {
        char text[512];
        snprintf(text, sizeof text, "[model]\nname = \"qwen3\"\nflavor = \"30B-A3B\"\n%s[training]\n" BATCH "%s",
                 i == 0 ? keys[0] : "", i == 1 ? keys[1] : "");
        struct told t = tell(text, NULL, 16);
        ck_assert_int_eq(t.d.job.model.moe.experts, 128);
        ck_assert_double_eq(t.d.job.job.load.busiest, i < 2);
        told_free(&t);
    }
}
END_TEST

/* Its latest place wins. */
START_TEST(the_latest_table_wins)
{
    struct told t =
        tell(MODEL "[parallelism]\ntensor_parallel_degree = 2\n[training]\n" BATCH "tensor_parallel_degree = 8\n", NULL, 8);
    ck_assert_int_eq(t.d.job.layout.tp, 2);
    told_free(&t);
}
END_TEST

START_TEST(schedules_by_every_spelling)
{
    static const struct {
        const char *name;
        enum schedule schedule;
        const char *warning;
    } cases[] = {
        {"1f1b", SCHEDULE_1F1B, NULL},
        {"Schedule1F1B", SCHEDULE_1F1B, NULL},
        {"gpipe", SCHEDULE_GPIPE, NULL},
        {"interleaved_1f1b", SCHEDULE_INTERLEAVED, NULL},
        {"ScheduleInterleaved1F1B", SCHEDULE_INTERLEAVED, NULL},
        {"flexible_interleaved_1f1b", SCHEDULE_INTERLEAVED, "msim assumes interleaved 1F1B"},
        {"InterleavedZeroBubble", SCHEDULE_INTERLEAVED, "msim assumes interleaved 1F1B"},
        {"ScheduleZBVZeroBubble", SCHEDULE_ZBV, NULL},
        {"DualPipeV", SCHEDULE_DUALPIPEV, NULL},
        {"Zigzag", SCHEDULE_1F1B, "msim does not know Zigzag"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char keys[160];
        snprintf(keys, sizeof keys, "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"%s\"", cases[i].name);
        struct told t = tell_keys("parallelism", keys, 16);
        ck_assert_int_eq(t.d.job.layout.schedule, cases[i].schedule);
        if (cases[i].warning)
            expect_warning_at(&t, cases[i].warning, 11, 30);
        else
            ck_assert_uint_eq(t.diags.n_items, 0);
        told_free(&t);
    }
}
END_TEST

START_TEST(modes_of_recomputation)
{
    static const struct {
        const char *keys, *recompute, *warning;
    } cases[] = {
        {"mode = \"none\"", "none", NULL},
        {"mode = \"full\"", "full", NULL},
        {"mode = \"selective\"\nselective_ac_option = \"3\"", "full:every3", NULL},
        {"mode = \"selective\"\nselective_ac_option = \"op\"", "selective", NULL},
        {"selective_ac_option = \"2\"\nmode = \"memory_budget\"\nmemory_budget = 0.5", "selective",
         "a compiler chooses what is kept"},
        {"mode = \"sometimes\"", "full:every2", "activation_checkpoint.mode=sometimes is unknown to msim and left out"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512], recompute[RECOMPUTE_TEXT];
        snprintf(text, sizeof text, MODEL "[training]\n" BATCH "[activation_checkpoint]\n%s\n", cases[i].keys);
        struct told t = tell(text, NULL, 16);
        ck_assert_str_eq(recompute_format(t.d.job.layout.recompute, recompute, sizeof recompute), cases[i].recompute);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

START_TEST(eight_bits_by_their_keys)
{
    static const struct {
        const char *keys;
        enum precision precision;
        const char *warning;
    } cases[] = {
        {"[model]\nconverters = [\"float8\"]", PRECISION_FP8, NULL},
        {"[model]\nconverters = [\"quantize.linear.float8\"]\n[quantize.linear.float8]\nrecipe_name = \"rowwise\"", PRECISION_FP8,
         "quantize.linear.float8.recipe_name (a scale per row"},
        {"[float8]\nrecipe_name = \"rowwise\"", PRECISION_BF16, NULL}, /* of nothing */
        {"[model]\nconverters = [\"mx\"]", PRECISION_MXFP8, NULL},
        {"[model]\nconverters = [\"mx\"]\n[float8]\nrecipe_name = \"rowwise\"", PRECISION_MXFP8, NULL},
        {"[model]\nconverters = [\"quantize.grouped_mm.float8\"]", PRECISION_BF16,
         "model.converters=quantize.grouped_mm.float8 is unknown"}, /* experts' alone */
        {"[model]\nconverters = [\"float8\", \"wibble\"]", PRECISION_FP8, "model.converters=wibble is unknown"},
        {"[training]\nenable_fp8_linear = true", PRECISION_FP8, NULL},
        {"[training]\nfp8_linear = \"dynamic\"", PRECISION_FP8, NULL},
        {"[training]\nfp8_linear = \"\"", PRECISION_BF16, NULL},
        {"[float8]\nenable_float8_linear = true", PRECISION_FP8, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        bool model = strncmp(cases[i].keys, "[model]", 7) == 0, training = strncmp(cases[i].keys, "[training]", 10) == 0;
        const char *rest = model ? cases[i].keys + 8 : training ? cases[i].keys + 11 : cases[i].keys;
        snprintf(text, sizeof text, "[training]\n" BATCH "%s\n" MODEL "%s\n", training ? rest : "", training ? "" : rest);
        struct told t = tell(text, NULL, 8);
        ck_assert_int_eq(t.d.job.job.precision, cases[i].precision);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

/* Keys that change time or memory and are not modelled; a default value produces no message. */
START_TEST(keys_that_are_told)
{
    static const struct {
        const char *table, *keys, *warning;
    } cases[] = {
        {"training", "dtype = \"bfloat16\"", "training.dtype (master weights in fewer bits)"},
        {"training", "dtype = \"float32\"", NULL},
        {"training", "enable_loss_parallel = false", "every rank of tp has all logits"},
        {"training", "enable_loss_parallel = true", NULL},
        {"parallelism", "disable_loss_parallel = true", "every rank of tp has all logits"},
        {"parallelism", "disable_loss_parallel = false", NULL},
        {"parallelism", "pipeline_parallel_schedule_csv = \"\"", NULL},
        {"parallelism", "pipeline_parallel_schedule_csv = \"mine.csv\"", "a schedule from a file"},
        {"parallelism", "pipeline_parallel_split_points = []", NULL},
        {"parallelism", "pipeline_parallel_split_points = [\"layers.9\"]", "stages divided by hand"},
        {"parallelism", "module_fqns_per_model_part = [[\"layers.9\"]]", "stages divided by hand"},
        {"parallelism", "pipeline_parallel_first_stage_less_layers = 1", NULL},
        {"parallelism", "pipeline_parallel_last_stage_less_layers = 3", "layers that the head counts as"},
        {"optimizer", "early_step_in_backward = true", "each gradient is used and freed at once"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell_keys(cases[i].table, cases[i].keys, 16);
        if (cases[i].warning)
            expect_warning(&t, cases[i].warning);
        else
            ck_assert_msg(t.diags.n_items == 0, "%s: %s", cases[i].keys, t.diags.n_items ? t.diags.items[0].text : "");
        told_free(&t);
    }
}
END_TEST

/* Modules of each stage by their names: how many chunks they make, and where they are not divided as msim divides them. */
START_TEST(stages_by_their_modules)
{
    static const struct {
        const char *schedule, *modules;
        int vpp;
        const char *warning;
    } cases[] = {
        {"1F1B", "[\"tok_embeddings\", @0 @1], [@2 @3 \"norm\", \"output\"]", 1, NULL},
        {"1F1B", "[\"tok_embeddings\", @0 @1 @2], [@3 \"norm\", \"output\"]", 1,
         "parallelism.module_fqns_per_model_part (layers of virtual stage 0: 24 are specified; msim assumes 16"},
        {"Interleaved1F1B", "[\"tok_embeddings\", @0], [@1], [@2], [@3 \"norm\", \"output\"]", 2, NULL},
        {"ZBVZeroBubble", "[\"tok_embeddings\", @0], [@1], [@2], [@3 \"norm\", \"output\"]", 2, NULL},
        {"1F1B", "[\"tok_embeddings\", @0], [@1], [@2], [@3 \"norm\", \"output\"]", 1,
         "2 stages per rank of a schedule that has 1; msim assumes even ones"},
        {"1F1B", "[\"tok_embeddings\", @1 @0], [@2 @3 \"norm\", \"output\"]", 1, "stages divided by hand"},
        {"1F1B", "[\"tok_embeddings\", @0 @1], [@2 @3 \"norm\", \"rotary\"]", 1, "stages divided by hand"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char keys[2048] = "", text[4096];
        size_t n = 0;
        for (const char *p = cases[i].modules; *p; p++)
            if (*p == '@') {
                int first = 8 * (*++p - '0');
                for (int k = first; k < first + 8; k++)
                    n += (size_t)snprintf(keys + n, sizeof keys - n, "\"layers.%d\", ", k);
            } else {
                keys[n++] = *p;
            }
        snprintf(text, sizeof text,
                 MODEL "[activation_checkpoint]\nmode = \"none\"\n[compile]\nenable = true\n[training]\n" BATCH
                       "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = \"%s\"\n"
                       "module_fqns_per_model_part = [%s]\n",
                 cases[i].schedule, keys);
        struct told t = tell(text, NULL, 16);
        ck_assert_int_eq(t.d.job.layout.vpp, cases[i].vpp);
        expect_said(&t, cases[i].warning);
        told_free(&t);
    }
}
END_TEST

START_TEST(titan_masks_between_documents)
{
    struct told t = tell(MODEL "attn_mask_type = \"block_causal\"\n[training]\n" BATCH, NULL, 8);
    expect_warning(&t,
                   "attention is masked between documents; msim assumes whole sequences; set their length with job.documents");
    ck_assert(!job_masks_documents(&t.d.job.job)); /* lengths are not made up */
    told_free(&t);
    t = tell(MODEL "attn_mask_type = \"causal\"\n[training]\n" BATCH, NULL, 8);
    ck_assert_uint_eq(t.diags.n_items, 0);
    told_free(&t);
}
END_TEST

/* Of the loss alone, the model is as it is. */
START_TEST(titan_compiles_components)
{
    static const struct {
        const char *components;
        bool compiled;
    } cases[] = {{"", true}, {"components = [\"model\", \"loss\"]\n", true}, {"components = [\"loss\"]\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\nlocal_batch_size = 4\n[compile]\n"
                 "enable = true\n%s",
                 cases[i].components);
        struct told t = tell(text, NULL, 8);
        ck_assert_msg(((t.d.job.job.features & FEATURE_BIT(COMPILE)) != 0) == cases[i].compiled, "%zu", i);
        told_free(&t);
    }
}
END_TEST

static const feature_set TORCH =
    FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP) | FEATURE_BIT(ASYNC_DATA) | FEATURE_BIT(EAGER_LOSS);

/* The loss is of an fp32 copy of the logits unless the compiler has it, which it had not before it had a table of its own. */
START_TEST(losses_are_compiled_or_not)
{
    static const struct {
        const char *table, *keys;
        bool eager;
    } cases[] = {
        {"compile", "enable = false", true},
        {"compile", "enable = true", false},
        {"compile", "enable = true\ncomponents = [\"model\", \"loss\"]", false},
        {"compile", "enable = true\ncomponents = [\"loss\"]", false},
        {"compile", "enable = true\ncomponents = [\"model\"]", true},
        {"compile", "enable = false\ncomponents = [\"model\", \"loss\"]", true},
        {"training", "compile = true", true},
        {"training", "compile = false", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told t = tell_keys(cases[i].table, cases[i].keys, 8);
        ck_assert_uint_eq(t.diags.n_items, 0);
        ck_assert_msg(((t.d.job.job.features & FEATURE_BIT(EAGER_LOSS)) != 0) == cases[i].eager, "%s", cases[i].keys);
        told_free(&t);
    }
}
END_TEST

/* Without a key: FSDP over all, a layer in two repeated; the batch is each replica's. */
START_TEST(titan_defaults)
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
    expect_warning(&t, "do not make the 8 replicas");
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

int main(void)
{
    Suite *suite = suite_create("launch_titan");
    TCase *all = tcase_create("all");
    tcase_add_test(all, titan_compiles_components);
    tcase_add_test(all, titan_defaults);
    tcase_add_test(all, losses_are_compiled_or_not);
    tcase_add_test(all, titan_by_its_keys);
    tcase_add_test(all, titan_in_its_first_year);
    tcase_add_test(all, titan_in_eight_bits);
    tcase_add_test(all, titan_mistakes);
    tcase_add_test(all, titan_logs_rates);
    tcase_add_test(all, keys_that_a_command_sets);
    tcase_add_test(all, titan_masks_between_documents);
    tcase_add_test(all, degrees_have_stood_in_three_tables);
    tcase_add_test(all, forced_balance);
    tcase_add_test(all, the_latest_table_wins);
    tcase_add_test(all, schedules_by_every_spelling);
    tcase_add_test(all, stages_by_their_modules);
    tcase_add_test(all, modes_of_recomputation);
    tcase_add_test(all, eight_bits_by_their_keys);
    tcase_add_test(all, keys_that_are_told);
    suite_add_tcase(suite, all);
    return suite_run(suite);
}
