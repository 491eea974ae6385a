/* Measurement tables: what a row becomes, and what is said of rows that are wrong. */
#include <glob.h>
#include <unistd.h>

#include "model/cost/work/work.h"
#include "tests/suite.h"
#include "tests/traces/measurement_text.h"

#define GPT                                                                                                                      \
    "g,,24,2304,9216,0,24,24,2048,51200,a100-80g-sxm,32,8,200,2,2,1,1,8,1,0,0,1,512,full,fp16,1f1b,fused_ops;,ok,3.5,44,vpp,"    \
    "\"a, b\"\n"
#define LLAMA                                                                                                                    \
    "l,no-such-model,40,5120,,1,40,8,4096,,a100-80g-sxm,128,,,4,1,,2,16,,3,1,2,2048,none,bf16,,\"flash_attention2; "             \
    "dp_overlap\",oom,,,,\n"

START_TEST(gpt_row)
{
    struct reading r = read_table(HEADER GPT);
    ck_assert_uint_eq(r.diags.n_items, 0);
    ck_assert_uint_eq(r.table.n_items, 1);
    const struct measurement *m = r.row;
    ck_assert_str_eq(m->name, "g");
    ck_assert_str_eq(m->source, "a, b");
    ck_assert_str_eq(m->assumed, "vpp");
    ck_assert_str_eq(m->model.name, "g");
    ck_assert_int_eq(m->model.layers, 24);
    ck_assert_int_eq(m->model.head_dim, 96);
    ck_assert(m->model.tied_embeddings && m->model.linear_bias && !m->model.gated_mlp);
    ck_assert_int_eq(m->model.norm, NORM_LAYER);
    ck_assert_int_eq(m->model.position, POSITION_LEARNED);
    ck_assert_int_eq(m->model.max_seq_len, 2048);
    ck_assert_str_eq(m->cluster.gpu.name, "a100-80g-sxm");
    ck_assert_int_eq(m->cluster.nodes, 4);
    ck_assert_int_eq(m->cluster.gpus_per_node, 8);
    ck_assert_double_eq_tol(m->cluster.nic_rate, 25e9, 1);
    ck_assert_int_eq(m->job.global_batch, 512);
    ck_assert_int_eq(m->job.precision, PRECISION_FP16);
    ck_assert_int_eq(m->job.gradient_precision, PRECISION_FP16);
    ck_assert_uint_eq(m->job.features, FEATURE_BIT(FUSED_OPS) | FEATURE_BIT(SCATTER_GATHER_P2P)); /* of Megatron's line */
    ck_assert_int_eq(m->layout.tp, 2);
    ck_assert_int_eq(m->layout.dp, 8);
    ck_assert_int_eq(m->layout.recompute.what, RECOMPUTE_FULL);
    ck_assert_int_eq(m->layout.schedule, SCHEDULE_1F1B);
    ck_assert_uint_eq(m->layout.features, m->job.features);
    ck_assert_int_eq(m->gpus, 32);
    ck_assert(!m->oom);
    ck_assert_double_eq(m->step_s, 3.5);
    ck_assert_double_eq(m->mfu, 0.44);
    reading_free(&r);
}
END_TEST

/* Empty cells take what the header promises; a name the catalog does not know leaves the shape to stand alone. */
START_TEST(llama_row)
{
    struct reading r = read_table(HEADER LLAMA);
    ck_assert_uint_eq(r.table.n_items, 1);
    const struct measurement *m = r.row;
    ck_assert_str_eq(m->model.name, "no-such-model");
    ck_assert_int_eq(m->model.ffn_hidden, 13824); /* 8/3 * 5120 = 13653.3 -> 54 * 256 */
    ck_assert_int_eq(m->model.kv_heads, 8);
    ck_assert_int_eq(m->model.vocab, 32000);
    ck_assert(!m->model.tied_embeddings && !m->model.linear_bias && m->model.gated_mlp);
    ck_assert_int_eq(m->model.norm, NORM_RMS);
    ck_assert_int_eq(m->model.position, POSITION_ROTARY);
    ck_assert_int_eq(m->layout.cp, 2);
    ck_assert_int_eq(m->layout.vpp, 1);
    ck_assert_int_eq(m->layout.ep, 1);
    ck_assert_int_eq(m->layout.schedule, SCHEDULE_NONE);
    ck_assert(m->layout.sequence_parallel);
    ck_assert_uint_eq(m->layout.features, FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(DP_OVERLAP));
    ck_assert_int_eq(m->job.gradient_precision, PRECISION_BF16); /* ZeRO-3 */
    ck_assert_int_eq(m->cluster.gpus_per_node, 8);
    ck_assert(m->oom);
    ck_assert_double_eq(m->step_s, 0);
    ck_assert_uint_eq(r.diags.n_errors, 0);
    expect_diag(&r.diags, 0, SEVERITY_NOTE, 0, 0,
                "values assumed for empty cells: vocab 51,200 (32,000 for LLaMA-like models), gpus_per_node usual for the GPU, ");
    reading_free(&r);
}
END_TEST

/* A catalog model keeps what columns cannot say; columns win where they speak. */
START_TEST(catalog_row)
{
    struct setting setting;
    struct reading r =
        read_table("case,model,layers,hidden,heads,seq_len,vocab,gpu,gpus,tp,pp,vpp,dp,micro_batch,global_batch,recompute,"
                   "precision,step_time_s\n"
                   "c,gpt-175b-megascale,48,,,2048,,a100-80g-sxm,256,8,8,6,4,1,256,none,bf16,14.8\n");
    ck_assert_uint_eq(r.table.n_items, 1);
    setting = measurement_setting(r.row);
    ck_assert_int_eq(setting.model->layers, 48);
    ck_assert_int_eq(setting.model->hidden, 12288);
    ck_assert_int_eq(setting.model->heads, 128);
    ck_assert_int_eq(setting.model->vocab, 64000);
    ck_assert_int_eq(setting.gpus, 256);
    ck_assert_int_eq(r.row->layout.schedule, SCHEDULE_INTERLEAVED);
    reading_free(&r);
}
END_TEST

/* All cells that cannot be read are reported at once, each at its own place, and their rows are skipped. */
START_TEST(bad_cells)
{
    struct reading r =
        read_table(HEADER "g,,24,abc,9216,0,24,24,2048,51200,a100-80g-sxm,32,8,200,2,2,1,1,8,1,0,0,1,512,ful,fp16,1f1b,,"
                          "ok,3.5,44,,\n"
                          "h,,24,2304,9216,2,24,24,2048,51200,a100-80g-sxm,32,8,200,-2,2,1,1,8,1,4,0,1,512,full,fp17,"
                          "1f1b,,gone,-1,144,,\n");
    static const struct {
        int line, column;
        const char *part;
    } told[] = {
        {2, 7, "hidden 'abc' is not a whole number"},
        {3, 17, "gated_mlp '2' is not a whole number from 0 to 1"},
        {3, 58, "tp '-2'"},
        {3, 71, "zero '4' is not a whole number from 0 to 3"},
        {3, 102, "step_time_s '-1'"},
        {3, 105, "mfu_pct '144' is not a number from 0 to 100"},
    };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        bool found = false;
        for (size_t j = 0; j < r.diags.n_items; j++)
            found |= r.diags.items[j].severity == SEVERITY_WARNING && r.diags.items[j].line == told[i].line &&
                     r.diags.items[j].column == told[i].column && strstr(r.diags.items[j].text, told[i].part);
        ck_assert_msg(found, "%d:%d: %s", told[i].line, told[i].column, told[i].part);
    }
    ck_assert_uint_eq(r.diags.n_errors, 0);
    ck_assert_uint_eq(r.table.n_items, 0);
    ck_assert_uint_eq(r.table.n_skipped, 2);
    ck_assert_uint_eq(reading_warnings(&r), sizeof told / sizeof *told); /* each once, and nothing that follows from them */
    reading_free(&r);
}
END_TEST

/* Rows that can be read but not be used are skipped, and the others stay. */
START_TEST(unusable_rows)
{
    struct reading r = read_table(
        HEADER GPT
        "a,,24,2304,9216,0,24,24,2048,51200,a100-80g-smx,32,8,200,2,2,1,1,8,1,0,0,1,512,full,fp16,1f1b,,ok,3.5,44,,\n"
        "b,,24,2304,9216,0,24,24,2048,51200,a100-80g-sxm,33,8,200,2,2,1,1,8,1,0,0,1,512,full,fp16,1f1b,,ok,3.5,44,,\n"
        "c,secret,,,,,,,2048,51200,a100-80g-sxm,32,8,200,2,2,1,1,8,1,0,0,1,512,full,fp16,1f1b,,ok,3.5,44,,\n"
        "d,,24,2304,9216,0,24,24,2048,51200,a100-80g-sxm,32,8,200,2,2,1,1,8,1,0,0,1,512,full,FP16,1F1B,,ok,,,,\n"
        "e,,24,2304,9216,0,24,24,2048,51200,a100-80g-sxm,32,8,200,2,2,1,1,8,1,0,0,1,512,full,fp16,1f1b,none;warp;warp,ok,4,"
        ",,\n"
        "f,,24,2304,9216,0,24,24,2048,51200,a100-80g-sxm,32,8,200,2,2,1,1,8,1,0,0,1,512,full,fp16,zb-w,,ok,4,,,\n"
        "g,,24,2304,9216,0,24,24,2048,51200,a100-80g-sxm,32,8,200,2,2,1,1,8,1,0,0,1,512,ful,fp16,1f1b,,ok,4,,,\n"
        "h,,24,2304,9216,0,24,24,2048,51200,a100-80g-sxm,32,8,200,2,2,1,1,8,1,0,0,1,512,full,fp17,1f1b,,ok,4,,,\n");
    ck_assert_uint_eq(r.table.n_items, 4);
    ck_assert_uint_eq(r.table.n_skipped, 5);
    ck_assert_str_eq(r.table.items[1].name, "d"); /* nothing to compare with, but predicted; words in any case */
    ck_assert_int_eq(r.table.items[1].layout.schedule, SCHEDULE_1F1B);
    ck_assert_int_eq(r.table.items[1].job.precision, PRECISION_FP16);
    ck_assert_double_eq(r.table.items[1].step_s, 0);
    ck_assert_str_eq(r.table.items[2].name, "e");
    ck_assert_int_eq(r.table.items[2].at.line, 7);
    ck_assert_uint_eq(r.diags.n_errors, 0);
    expect_diag(&r.diags, 0, SEVERITY_WARNING, 3, 36, "row skipped: ");
    ck_assert_ptr_nonnull(strstr(r.diags.items[0].text, "a100-80g-smx"));
    expect_diag(&r.diags, 1, SEVERITY_WARNING, 4, 49, "33 gpus, but tp 2 x pp 2 x cp 1 x dp 8 is 32");
    expect_diag(&r.diags, 2, SEVERITY_WARNING, 5, 3, "no model 'secret'");
    expect_diag(&r.diags, 3, SEVERITY_WARNING, 7, 95, "unknown feature 'warp'");
    expect_diag(&r.diags, 4, SEVERITY_WARNING, 8, 90, "schedule 'zb-w' is unknown, 1f1b is taken; did you mean 'zb-v'?");
    expect_diag(&r.diags, 5, SEVERITY_WARNING, 9, 80, "recompute 'ful' is unknown; did you mean 'full'?");
    expect_diag(&r.diags, 6, SEVERITY_WARNING, 10, 85, "precision 'fp17' is unknown");
    ck_assert_uint_eq(r.diags.n_items, 8); /* the feature is warned of once */
    ck_assert_ptr_nonnull(strstr(r.diags.items[7].text, "values assumed for empty cells: features none (eager code)"));
    reading_free(&r);
}
END_TEST

/* The same run in other words. */
static const struct {
    const char *cells; /* pp to schedule */
    int dp, vpp, zero, batch;
    enum schedule schedule;
    size_t warnings;
} adapted[] = {
    {"1,1,1,16,1,0,0,1,512,full,fp16,1f1b", 16, 1, 0, 512, SCHEDULE_NONE, 0},
    {"2,1,1,8,1,0,0,1,512,full,fp16,interleaved", 8, 1, 0, 512, SCHEDULE_1F1B, 1},
    {"2,3,1,8,1,0,0,1,512,full,fp16,1f1b", 8, 3, 0, 512, SCHEDULE_INTERLEAVED, 1},
    {"2,,1,8,1,0,0,1,512,full,fp16,none", 8, 1, 0, 512, SCHEDULE_1F1B, 1},
    {"2,1,1,8,1,0,0,1,512,full,fp16,zb-v", 8, 2, 0, 512, SCHEDULE_ZBV, 0},
    {"2,4,1,8,1,0,0,1,512,full,fp16,zb-2p", 8, 1, 0, 512, SCHEDULE_ZB2P, 1},
    {"2,1,1,8,1,3,0,1,512,full,fp16,1f1b", 8, 1, 2, 512, SCHEDULE_1F1B, 1},
    {"2,1,1,8,1,0,0,3,500,full,fp16,1f1b", 8, 1, 0, 504, SCHEDULE_1F1B, 1},
    {"2,1,1,8,1,0,0,3,504,full,fp16,1f1b", 8, 1, 0, 504, SCHEDULE_1F1B, 0},
};

START_TEST(adapted_rows)
{
    char text[1024];
    snprintf(text, sizeof text, HEADER "a,,24,2304,9216,0,24,24,2048,51200,a100-80g-sxm,32,8,200,2,%s,,ok,3.5,44,,\n",
             adapted[_i].cells);
    struct reading r = read_table(text);
    ck_assert_uint_eq(r.table.n_items, 1);
    const struct measurement *row = r.row;
    ck_assert_int_eq(row->layout.dp, adapted[_i].dp);
    ck_assert_int_eq(row->layout.vpp, adapted[_i].vpp);
    ck_assert_int_eq(row->layout.zero, adapted[_i].zero);
    ck_assert_int_eq(row->layout.schedule, adapted[_i].schedule);
    ck_assert_int_eq(row->job.global_batch, adapted[_i].batch);
    ck_assert_uint_eq(reading_warnings(&r), adapted[_i].warnings);
    reading_free(&r);
}
END_TEST

/* A shard over all replicas is the same as none. */
START_TEST(hybrid_sharding)
{
    struct reading r = read_table("case,model,gpu,gpus,seq_len,tp,pp,dp,zero,shard,micro_batch,global_batch,recompute,precision,"
                                  "step_time_s\n"
                                  "a,llama3-8b,h100-sxm,64,8192,1,1,64,3,8,1,64,full,bf16,1\n"
                                  "b,llama3-8b,h100-sxm,64,8192,1,1,64,3,64,1,64,full,bf16,1\n"
                                  "c,llama3-8b,h100-sxm,64,8192,1,1,64,3,,1,64,full,bf16,1\n");
    ck_assert_uint_eq(r.table.n_items, 3);
    ck_assert_int_eq(r.row->layout.shard, 8);
    ck_assert_int_eq(r.table.items[1].layout.shard, 0);
    ck_assert_int_eq(r.table.items[2].layout.shard, 0);
    reading_free(&r);
}
END_TEST

/* How cp exchanges; a ring where nothing is said, and without cp nothing. */
START_TEST(context_exchanges)
{
    struct reading r = read_table("case,model,gpu,gpus,seq_len,tp,pp,cp,cp_comm,dp,micro_batch,global_batch,recompute,precision,"
                                  "step_time_s\n"
                                  "a,llama3-8b,h100-sxm,64,8192,1,1,8,A2A:4+ring,8,1,64,full,bf16,1\n"
                                  "b,llama3-8b,h100-sxm,64,8192,1,1,8,all_gather,8,1,64,full,bf16,1\n"
                                  "c,llama3-8b,h100-sxm,64,8192,1,1,8,,8,1,64,full,bf16,1\n"
                                  "d,llama3-8b,h100-sxm,64,8192,1,1,8,a2a:8,8,1,64,full,bf16,1\n"
                                  "e,llama3-8b,h100-sxm,64,8192,1,1,1,a2a,64,1,64,full,bf16,1\n"
                                  "f,llama3-8b,h100-sxm,64,8192,1,1,8,rings,8,1,64,full,bf16,1\n");
    const enum cp_comm expected[] = {cp_comm_of(4, false), CP_ALL_GATHER, CP_RING, CP_A2A, CP_RING};
    ck_assert_uint_eq(r.table.n_items, 5);
    ck_assert_uint_eq(r.table.n_skipped, 1);
    for (size_t i = 0; i < r.table.n_items; i++)
        ck_assert_int_eq(r.table.items[i].layout.cp_comm, expected[i]);
    expect_diag(&r.diags, 0, SEVERITY_WARNING, 7, 36, "cp_comm 'rings' is unknown; did you mean 'ring'?");
    reading_free(&r);
}
END_TEST

/* What gradients are summed in, where a row says so, whatever it computes in and shards; as before where it does not. */
START_TEST(gradients_as_said)
{
    struct reading r = read_table("case,model,gpu,gpus,seq_len,zero,micro_batch,precision,grad_dtype,global_batch,step_time_s\n"
                                  "a,llama3-8b,h100-sxm,64,8192,1,1,bf16,fp32,64,3\n"
                                  "b,llama3-8b,h100-sxm,64,8192,1,1,bf16,,64,3\n"
                                  "c,llama3-8b,h100-sxm,64,8192,0,1,bf16,BFloat16,64,3\n"
                                  "d,llama3-8b,h100-sxm,64,8192,0,1,fp16,float32,64,3\n"
                                  "e,llama3-8b,h100-sxm,64,8192,0,1,fp16,fp8,64,3\n");
    const enum precision expected[] = {PRECISION_FP32, PRECISION_BF16, PRECISION_BF16, PRECISION_FP32};
    ck_assert_uint_eq(r.table.n_items, 4);
    ck_assert_uint_eq(r.table.n_skipped, 1);
    for (size_t i = 0; i < r.table.n_items; i++)
        ck_assert_int_eq(r.table.items[i].job.gradient_precision, expected[i]);
    reading_free(&r);
}
END_TEST

START_TEST(missing_columns)
{
    struct measurement_table table;
    struct diags diags = {0};
    ck_assert_int_eq(build("case,layers,hiden\n", &table, &diags), STATUS_BAD_INPUT);
    ck_assert_uint_eq(diags.n_errors, 1);
    expect_diag(&diags, 0, SEVERITY_ERROR, 1, 1, "missing columns 'hidden' (did you mean 'hiden'?), 'heads'");
    diags_free(&diags);
}
END_TEST

/* A sign in front of a cell: what current training stacks of the row's GPU have, changed. Without one a + is between names. */
START_TEST(features_of_a_row_change)
{
    static const char header[] = "case,model,gpu,gpus,seq_len,tp,pp,dp,micro_batch,global_batch,precision,features,step_time_s,"
                                 "recompute\n";
    static const struct {
        const char *gpu, *precision, *cell;
        feature_set features;
        const char *said; /* NULL: no warning */
    } cases[] = {
        {"h100-sxm", "bf16", "+cuda_graphs", FEATURES_USUAL | FEATURE_BIT(CUDA_GRAPHS), NULL},
        {"h100-sxm", "bf16", "+cuda_graphs;-tp_overlap", (FEATURES_USUAL | FEATURE_BIT(CUDA_GRAPHS)) & ~FEATURE_BIT(TP_OVERLAP),
         NULL},
        {"h100-sxm", "bf16", "+flash_attention3", (FEATURES_USUAL & ~FEATURES_FLASH) | FEATURE_BIT(FLASH_ATTENTION3), NULL},
        {"h100-sxm", "bf16", "-fused_loss", FEATURES_USUAL & ~FEATURE_BIT(FUSED_LOSS), NULL},
        {"h100-sxm", "bf16", "flash_attention2+compile", FEATURE_BIT(FLASH_ATTENTION2) | FEATURE_BIT(COMPILE), NULL},
        {"h100-sxm", "bf16", "-compile", FEATURES_USUAL, "-compile without effect; the run has flash_attention2, fused_ops,"},
        {"h100-sxm", "bf16", "compile;-dp_overlap", FEATURE_BIT(COMPILE), "-dp_overlap without effect; the run has compile"},
        {"h100-sxm", "bf16", "-fuse_all", FEATURES_USUAL, "unknown feature '-fuse_all' left out"},
        {"v100-32g-sxm", "fp16", "-tp_overlap",
         (FEATURES_USUAL & ~(FEATURES_FLASH | FEATURE_BIT(TP_OVERLAP))) | FEATURE_BIT(FLASH_ATTENTION), NULL},
        {"v100-32g-sxm", "fp16", "-flash_attention", FEATURES_USUAL & ~FEATURES_FLASH, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        struct measurement_table table;
        struct diags diags = {0};
        snprintf(text, sizeof text, "%sa,llama3-8b,%s,64,8192,2,1,32,1,128,%s,%s,9,full\n", header, cases[i].gpu,
                 cases[i].precision, cases[i].cell);
        ck_assert_int_eq(build(text, &table, &diags), STATUS_OK);
        ck_assert_uint_eq(table.n_items, 1);
        ck_assert_msg(table.items[0].job.features == cases[i].features, "%s: %x", cases[i].cell, table.items[0].job.features);
        ck_assert_uint_eq(table.items[0].layout.features, cases[i].features);
        ck_assert_msg(says(&diags, SEVERITY_WARNING, cases[i].said ? cases[i].said : "") == (cases[i].said != NULL), "%s",
                      cases[i].cell);
        bool changes = cases[i].cell[0] == '+' || cases[i].cell[0] == '-';
        ck_assert_int_eq(says(&diags, SEVERITY_NOTE, "features of 1 row, which begin with a sign, change those of"), changes);
        measurement_table_free(&table);
        diags_free(&diags);
    }
}
END_TEST

/* A sign without a feature says nothing that a run could have had: the row is skipped, told once with line and column. */
START_TEST(features_of_signs_alone_skip_the_row)
{
    static const char header[] = "case,model,gpu,gpus,seq_len,tp,pp,dp,micro_batch,global_batch,precision,features,step_time_s\n";
    static const struct {
        const char *cell, *why; /* NULL: a cell like others */
    } cases[] = {
        {"+none", "a name belongs behind a sign"},
        {"-none", "a name belongs behind a sign"},
        {"+", "a name belongs behind a sign"},
        {"+ ; -", "a name belongs behind a sign"},
        {"compile;-", "a name belongs behind a sign"},
        {"compile;+none", "a name belongs behind a sign"},
        {"+compile;-", "a name belongs behind a sign"},
        {";", "names are wanted"},
        {"none", NULL},
        {"none;+compile", NULL},
        {"-", NULL}, /* unknown, as in other columns */
        {"+ compile ; - dp_overlap", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        struct measurement_table table;
        struct diags diags = {0};
        snprintf(text, sizeof text, "%sa,llama3-8b,h100-sxm,64,8192,2,1,32,1,128,bf16,%s,9\n", header, cases[i].cell);
        ck_assert_int_eq(build(text, &table, &diags), STATUS_OK);
        ck_assert_msg(table.n_skipped == (cases[i].why != NULL) && table.n_items + table.n_skipped == 1, "%s", cases[i].cell);
        if (cases[i].why)
            expect_diag(&diags, 0, SEVERITY_WARNING, 2, 48, cases[i].why);
        size_t n_skips = 0;
        for (size_t k = 0; k < diags.n_items; k++)
            n_skips += strstr(diags.items[k].text, "row skipped") != NULL;
        ck_assert_uint_eq(n_skips, cases[i].why != NULL);
        measurement_table_free(&table);
        diags_free(&diags);
    }
}
END_TEST

/* A catalog name replaces the columns of the shape; without a column of features, the defaults of stacks apply. */
START_TEST(own_runs_need_few_columns)
{
    struct measurement_table table;
    struct diags diags = {0};
    ck_assert_int_eq(build("case,model,gpu,gpus,seq_len,tp,pp,dp,micro_batch,global_batch,recompute,precision,step_time_s\n"
                           "a,llama3-8b,h100-sxm,64,8192,2,1,32,1,128,none,bf16,3\n"
                           "b,nobodys,h100-sxm,64,8192,2,1,32,1,128,none,bf16,3\n",
                           &table, &diags),
                     STATUS_OK);
    ck_assert_uint_eq(table.n_items, 1);
    ck_assert_uint_eq(table.n_skipped, 1);
    ck_assert_int_eq(table.items[0].model.layers, 32);
    ck_assert_uint_eq(table.items[0].job.features, FEATURES_USUAL);
    measurement_table_free(&table);
    ck_assert_int_eq(build("case,model,gpu,gpus,seq_len,tp,pp,dp,micro_batch,global_batch,recompute,precision,step_time_s\n"
                           "a,llama3-8b,v100-32g-sxm,64,8192,2,1,32,1,128,none,fp16,3\n",
                           &table, &diags),
                     STATUS_OK);
    ck_assert_uint_eq(table.items[0].job.features, features_usual(&table.items[0].cluster.gpu));
    ck_assert_uint_eq(table.items[0].layout.features & FEATURES_FLASH, FEATURE_BIT(FLASH_ATTENTION));
    measurement_table_free(&table);
    diags_free(&diags);
}
END_TEST

/* What a layout leaves open in a table is what it leaves open on the command line, where the column is missing and where its cell
 * is empty; the value of a row wins, and assumed values are reported. */
START_TEST(layouts_leave_open_what_step_does)
{
    static const char *const tables[] = {"model,gpu,gpus,seq_len,tp,pp,micro_batch,global_batch\n"
                                         "llama3-70b,h100-sxm,1024,8192,8,4,1,1024\nllama3-70b,h100-sxm,1024,8192,1,4,1,1024\n",
                                         "model,gpu,gpus,seq_len,tp,pp,micro_batch,global_batch,zero,sequence_parallel\n"
                                         "llama3-70b,h100-sxm,1024,8192,8,4,1,1024,,\n"
                                         "llama3-70b,h100-sxm,1024,8192,1,4,1,1024,-,n/a\n"};
    for (int t = 0; t < 2; t++) {
        struct reading r = read_table(tables[t]);
        bool told = false;
        ck_assert_uint_eq(r.table.n_items, 2);
        for (int i = 0; i < 2; i++) {
            const struct measurement *row = &r.table.items[i];
            struct setting setting = measurement_setting(row);
            struct layout step = layout_defaults;
            char mine[LAYOUT_TEXT], theirs[LAYOUT_TEXT];
            ck_assert_int_eq(layout_parse(i ? "pp4 mb1" : "tp8 pp4 mb1", &step, &r.diags), STATUS_OK);
            layout_complete(&step, &setting);
            ck_assert_str_eq(layout_format(&row->layout, mine, sizeof mine), layout_format(&step, theirs, sizeof theirs));
            ck_assert_int_eq(row->job.gradient_precision, PRECISION_FP32);
        }
        for (size_t i = 0; i < r.diags.n_items; i++)
            told |= strstr(r.diags.items[i].text, "zero 1 with gradients in fp32 (in bf16 if the cell contains 1), "
                                                  "sequence_parallel 1 if tp > 1") != NULL;
        ck_assert(told);
        reading_free(&r);
    }
    struct reading r = read_table("model,gpu,gpus,seq_len,tp,micro_batch,global_batch,zero,sequence_parallel\n"
                                  "llama3-70b,h100-sxm,64,8192,8,1,1024,0,0\nllama3-70b,h100-sxm,64,8192,8,1,1024,2,no\n");
    ck_assert_int_eq(r.row[0].layout.zero, 0);
    ck_assert(!r.row[0].layout.sequence_parallel && !r.row[1].layout.sequence_parallel);
    ck_assert_int_eq(r.row[0].job.gradient_precision, PRECISION_FP32);
    ck_assert_int_eq(r.row[1].job.gradient_precision, PRECISION_BF16);
    reading_free(&r);
    r = read_table("model,gpu,gpus,seq_len,tp,micro_batch,global_batch,precision\nllama3-70b,h100-sxm,64,8192,8,1,1024,fp16\n");
    ck_assert_int_eq(r.row->job.gradient_precision, PRECISION_FP16); /* whatever is said of zero */
    ck_assert_ptr_nonnull(strstr(r.diags.items[0].text, "zero 1, sequence_parallel 1 if tp > 1"));
    reading_free(&r);
}
END_TEST

/* Between semicolons a comma is a decimal point, and a point groups digits. */
START_TEST(semicolons)
{
    struct reading r = read_table("\xEF\xBB\xBF"
                                  "model;gpu;gpus;seq_len;tp;global_batch;step_time_s\n"
                                  "llama3-8b;h100-sxm;1.024;8192;8;1.024;4,5\n");
    ck_assert_uint_eq(r.table.n_items, 1);
    ck_assert_int_eq(r.row->gpus, 1024);
    ck_assert_int_eq(r.row->layout.dp, 128);
    ck_assert_double_eq_tol(r.row->step_s, 4.5, 1e-12);
    ck_assert_str_eq(r.row->name, "llama3-8b");
    reading_free(&r);
}
END_TEST

/* Rates and shares stand for a step's time, accumulation and tokens for its batch: 64 x 8192 tokens on 8 GPUs. */
START_TEST(rates)
{
    struct reading r =
        read_table("case,model,gpu,gpus,seq_len,micro_batch,accumulation,batch_tokens,tokens_per_s,tokens_per_s_gpu,"
                   "samples_per_s,tflops_gpu,mfu_pct\n"
                   "a,llama3-8b,h100-sxm,8,8192,1,8,,65536,,,,\n"
                   "b,llama3-8b,h100-sxm,8,8192,1,,524288,,8192,,,\n"
                   "c,llama3-8b,h100-sxm,8,8192,1,8,,,,8,,\n"
                   "d,llama3-8b,h100-sxm,8,8192,1,8,,,,,400,\n"
                   "e,llama3-8b,h100-sxm,8,8192,1,8,,,,,,0.4\n"
                   "f,llama3-8b,h100-sxm,8,8192,1,8,,,,,,40\n"
                   "g,llama3-8b,h100-sxm,8,8192,1,,,,,,,40\n");
    ck_assert_uint_eq(r.table.n_items, 6);
    ck_assert_uint_eq(r.table.n_skipped, 1);
    for (size_t i = 0; i < r.table.n_items; i++) {
        ck_assert_int_eq(r.table.items[i].job.global_batch, 64);
        ck_assert(r.table.items[i].derived);
    }
    for (size_t i = 0; i < 3; i++)
        ck_assert_double_eq_tol(r.table.items[i].step_s, 8, 1e-9);
    struct setting setting = measurement_setting(&r.table.items[3]);
    double flops = model_flops_per_step(&setting, r.table.items[3].layout.features, FLOPS_FULL);
    double peak = r.table.items[3].cluster.gpu.peak_flops[PRECISION_BF16];
    ck_assert_double_eq_tol(r.table.items[3].step_s, flops / (8 * 400e12), 1e-9);
    ck_assert_double_eq_tol(r.table.items[4].step_s, flops / (8 * 0.4 * peak), 1e-9);
    ck_assert_double_eq_tol(r.table.items[5].step_s, r.table.items[4].step_s, 1e-12);
    reading_free(&r);
}
END_TEST

static void expect_all_usable(const char *pattern, size_t n_expected)
{
    glob_t files = {0};
    size_t n_rows = 0;
    if (glob(pattern, 0, NULL, &files) != 0) {
        printf("skipped: nothing like %s\n", pattern);
        return;
    }
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct measurement_table table;
        struct diags diags = {0};
        enum status status = measurement_table_read(files.gl_pathv[i], &table, &diags);
        diags_print(&diags, stdout, false);
        ck_assert_int_eq(status, STATUS_OK);
        ck_assert_uint_eq(table.n_skipped, 0);
        n_rows += table.n_items;
        measurement_table_free(&table);
        diags_free(&diags);
    }
    globfree(&files);
    ck_assert_uint_eq(n_rows, n_expected);
}

START_TEST(published_tables)
{
    expect_all_usable(MSIM_SOURCE_DIR "/traces/published/*.csv", 43);
}
END_TEST

START_TEST(shared_tables)
{
    const char *shared = getenv("MSIM_SHARED");
    char pattern[4096];
    if (!shared)
        return;
    snprintf(pattern, sizeof pattern, "%s/measured/*.csv", shared);
    expect_all_usable(pattern, 1656);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("measurement");
    TCase *rows = tcase_create("rows");
    tcase_add_test(rows, gpt_row);
    tcase_add_test(rows, gradients_as_said);
    tcase_add_test(rows, llama_row);
    tcase_add_test(rows, catalog_row);
    tcase_add_test(rows, bad_cells);
    tcase_add_test(rows, unusable_rows);
    tcase_add_loop_test(rows, adapted_rows, 0, sizeof adapted / sizeof *adapted);
    tcase_add_test(rows, hybrid_sharding);
    tcase_add_test(rows, context_exchanges);
    tcase_add_test(rows, missing_columns);
    tcase_add_test(rows, own_runs_need_few_columns);
    tcase_add_test(rows, features_of_a_row_change);
    tcase_add_test(rows, features_of_signs_alone_skip_the_row);
    tcase_add_test(rows, layouts_leave_open_what_step_does);
    tcase_add_test(rows, semicolons);
    tcase_add_test(rows, rates);
    tcase_add_test(rows, published_tables);
    tcase_add_test(rows, shared_tables);
    suite_add_tcase(suite, rows);
    return suite_run(suite);
}
